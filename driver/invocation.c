#include "driver/invocation.h"

#include "base/buf.h"
#include "base/limits.h"
#include "base/mem.h"
#include "os/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The file: texts, each with its NUL: MAGIC, cwd, options, how many words, the words, the
 * environment. */
#define MAGIC "hvd-elastic command 1"
#define MOST  (8 * 1024 * 1024)

static int add(struct buf *out, const char *text)
{
    return buf_append(out, text, strlen(text) + 1);
}

static int write_out(const char *path, const struct buf *text, struct hvd_err *err)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    size_t done = 0;
    bool failed = fd < 0;

    while (!failed && done < text->length) {
        ssize_t written = write(fd, text->data + done, text->length - done);

        failed = written < 0 && errno != EINTR;
        done += written > 0 ? (size_t)written : 0;
    }
    failed = failed || fsync(fd);
    if (failed)
        err_set(err, errno == ENOSPC ? HVD_E_FULL : HVD_E_IO, "%s: cannot be written: %s", path,
                strerror(errno));
    if (fd >= 0)
        close(fd);
    return failed ? HVD_E_IO : 0;
}

static int save(const char *folder, const struct buf *text, struct hvd_err *err)
{
    char path[LIMIT_PATH_BYTES];
    char fresh[LIMIT_PATH_BYTES];
    int rc;

    snprintf(path, sizeof(path), "%s/command", folder);
    snprintf(fresh, sizeof(fresh), "%s/invocation.new", folder);
    rc = write_out(fresh, text, err);
    if (!rc && rename(fresh, path))
        rc = err_set(err, HVD_E_IO, "%s: cannot be replaced: %s", path, strerror(errno));
    return rc;
}

int invocation_save(const char *folder, const struct invocation *invocation, struct hvd_err *err)
{
    struct buf text;
    int rc;

    buf_init(&text, MOST);
    rc = add(&text, MAGIC);
    rc = rc ? rc : add(&text, invocation->cwd);
    rc = rc ? rc : add(&text, invocation->options);
    rc = rc ? rc : buf_printf(&text, "%d", invocation->argc);
    rc = rc ? rc : buf_append(&text, "", 1);
    for (int i = 0; i < invocation->argc && !rc; i++)
        rc = add(&text, invocation->argv[i]);
    for (char *const *entry = invocation->envp; *entry && !rc; entry++)
        rc = add(&text, *entry);
    if (rc)
        rc = err_set(err, rc, "%s: command and environment are too long to be kept", folder);
    else
        rc = save(folder, &text, err);
    buf_release(&text);
    return rc;
}

/* The next text; NULL when the bytes end before it does. */
static char *next(char **at, const char *end)
{
    char *text = *at;
    char *nul = text < end ? memchr(text, 0, (size_t)(end - text)) : NULL;

    if (nul)
        *at = nul + 1;
    return nul ? text : NULL;
}

static int corrupt(const char *path, struct hvd_err *err)
{
    return err_set(err, HVD_E_CORRUPT,
                   "%s: not what a driver writes; start with the whole command and the same "
                   "--state-dir instead of --resume",
                   path);
}

static size_t count_texts(const char *at, const char *end)
{
    size_t count = 0;

    for (; at < end; at++)
        count += *at == 0;
    return count;
}

static int take_apart(const char *path, size_t length, struct invocation *invocation,
                      struct hvd_err *err)
{
    char *at = invocation->text;
    const char *end = at + length;
    size_t texts = count_texts(at, end);
    const char *magic = next(&at, end);
    const char *cwd = next(&at, end);
    const char *options = next(&at, end);
    const char *count = next(&at, end);
    char *stop = NULL;
    long argc = count ? strtol(count, &stop, 10) : 0;
    size_t i = 0;

    if (!count || strcmp(magic, MAGIC) != 0 || *stop || argc < 1 || (size_t)argc > texts - 4)
        return corrupt(path, err);
    invocation->argv = mem_zalloc_array((size_t)argc + 1, sizeof(char *));
    invocation->envp = mem_zalloc_array(texts, sizeof(char *));
    if (!invocation->argv || !invocation->envp)
        return err_set(err, HVD_E_NOMEM, "no memory for the command");
    invocation->cwd = cwd;
    invocation->options = options;
    invocation->argc = (int)argc;
    for (i = 0; i < (size_t)argc; i++)
        invocation->argv[i] = next(&at, end);
    for (i = 0; (invocation->envp[i] = next(&at, end));)
        i++;
    return at == end ? 0 : corrupt(path, err);
}

int invocation_load(const char *folder, struct invocation *ret_invocation, struct hvd_err *err)
{
    struct invocation invocation = { 0 };
    char path[LIMIT_PATH_BYTES];
    struct buf text;
    int rc;

    snprintf(path, sizeof(path), "%s/command", folder);
    buf_init(&text, MOST);
    rc = file_read(path, &text, err);
    if (!rc && !text.length)
        rc = corrupt(path, err);
    if (!rc && !(invocation.text = mem_alloc(text.length))) {
        rc = err_set(err, HVD_E_NOMEM, "no memory for the command");
    } else if (!rc) {
        memcpy(invocation.text, text.data, text.length);
        rc = take_apart(path, text.length, &invocation, err);
    }
    buf_release(&text);
    if (rc)
        invocation_release(&invocation);
    else
        *ret_invocation = invocation;
    return rc;
}

void invocation_release(struct invocation *invocation)
{
    mem_free(invocation->text);
    mem_free(invocation->argv);
    mem_free(invocation->envp);
    *invocation = (struct invocation){ 0 };
}
