/*
 * invocation.c: the file "command" in the job's folder. run.c saves it when a driver begins, and
 * loads it for "--resume JOB" without a command. A rename replaces the file, so a successor never
 * reads half of it.
 */
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

/* The file is a sequence of texts, each with its NUL: MAGIC, cwd, options, the number of words, the
 * words, the environment. */
#define MAGIC "hvd-elastic command 1"

static int invocation_add(struct buf *out, const char *text)
{
    return buf_append(out, text, strlen(text) + 1);
}

/* Writes texts one after the other, each with its NUL. A text may have any other byte, so no text
 * needs quotes. */
int invocation_encode(const struct invocation *invocation, struct buf *out, struct hvd_err *err)
{
    int rc = invocation_add(out, MAGIC);

    rc = rc ? rc : invocation_add(out, invocation->cwd);
    rc = rc ? rc : invocation_add(out, invocation->options);
    rc = rc ? rc : buf_printf(out, "%d", invocation->argc);
    rc = rc ? rc : buf_append(out, "", 1);
    for (int i = 0; i < invocation->argc && !rc; i++)
        rc = invocation_add(out, invocation->argv[i]);
    for (char *const *entry = invocation->envp; *entry && !rc; entry++)
        rc = invocation_add(out, *entry);
    return rc ? err_set(err, rc,
                        "the command and the environment are too long to be kept; shorten them")
              : 0;
}

/* Writes the file "command". */
int invocation_save(const char *folder, const struct invocation *invocation, struct hvd_err *err)
{
    char path[LIMIT_PATH_BYTES], fresh[LIMIT_PATH_BYTES];
    struct buf text;
    size_t done = 0;
    bool failed;
    int fd = -1;
    int rc;

    buf_init(&text, INVOCATION_BYTES_MAX);
    rc = invocation_encode(invocation, &text, err);
    if (rc)
        err_prefix(err, rc, "%s", folder);

    /* Writes a new file and renames it. */
    snprintf(path, sizeof(path), "%s/command", folder);
    snprintf(fresh, sizeof(fresh), "%s/invocation.new", folder);
    if (!rc) {
        fd = open(fresh, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
        failed = fd < 0;
        while (!failed && done < text.length) {
            ssize_t written = write(fd, text.data + done, text.length - done);

            failed = written < 0 && errno != EINTR;
            done += written > 0 ? (size_t)written : 0;
        }
        if (failed || fsync(fd))
            rc = err_set(err, errno == ENOSPC ? HVD_E_FULL : HVD_E_IO,
                         "%s: cannot be written: %s; free some space, or let this user write there",
                         fresh, strerror(errno));
    }
    if (fd >= 0)
        close(fd);
    if (!rc && rename(fresh, path))
        rc = err_set(err, HVD_E_IO, "%s: cannot be replaced: %s; let this user write there", path,
                     strerror(errno));
    buf_release(&text);
    return rc;
}

/* Returns the text at *at and moves *at to the next one. NULL: the bytes end before the text does.
 */
static char *invocation_next(char **at, const char *end)
{
    char *text = *at;
    char *nul = text < end ? memchr(text, 0, (size_t)(end - text)) : NULL;

    if (nul)
        *at = nul + 1;
    return nul ? text : NULL;
}

static int invocation_corrupt(const char *path, struct hvd_err *err)
{
    return err_set(err, HVD_E_CORRUPT,
                   "%s: no driver has written this file; start with the whole command and the same "
                   "--state-dir instead of --resume",
                   path);
}

/* Reads the bytes. All of them are in invocation.text, and the other fields point into it; only the
 * arrays argv and envp are allocated. The environment has all texts after the words, to the end. */
int invocation_decode(const char *from, const struct buf *bytes, struct invocation *ret_invocation,
                      struct hvd_err *err)
{
    struct invocation invocation = { 0 };
    const char *magic, *count, *end;
    char *at, *stop = NULL;
    size_t texts = 0, entries = 0;
    long argc;
    int rc = 0;

    if (!bytes->length)
        return invocation_corrupt(from, err);
    if (!(invocation.text = mem_alloc(bytes->length)))
        return err_set(err, HVD_E_NOMEM, "%s: no memory to read the file; free memory on this host",
                       from);
    memcpy(invocation.text, bytes->data, bytes->length);
    at = invocation.text;
    end = at + bytes->length;
    magic = invocation_next(&at, end);
    invocation.cwd = invocation_next(&at, end);
    invocation.options = invocation_next(&at, end);
    count = invocation_next(&at, end);
    argc = count ? strtol(count, &stop, 10) : 0;
    for (const char *byte = invocation.text; byte < end; byte++)
        texts += *byte == 0;
    /* There must be at least as many texts as the count says. */
    if (!count || strcmp(magic, MAGIC) != 0 || *stop || argc < 1 || (size_t)argc > texts - 4) {
        invocation_release(&invocation);
        return invocation_corrupt(from, err);
    }
    invocation.argc = (int)argc;
    invocation.argv = mem_zalloc_array((size_t)argc + 1, sizeof(char *));
    invocation.envp = mem_zalloc_array(texts, sizeof(char *));
    if (invocation.argv && invocation.envp) {
        for (int i = 0; i < invocation.argc; i++)
            invocation.argv[i] = invocation_next(&at, end);
        while ((invocation.envp[entries] = invocation_next(&at, end)))
            entries++;
    } else {
        rc = err_set(err, HVD_E_NOMEM, "%s: no memory to read the file; free memory on this host",
                     from);
    }
    if (!rc && at != end)
        rc = invocation_corrupt(from, err);
    if (rc)
        invocation_release(&invocation);
    else
        *ret_invocation = invocation;
    return rc;
}

/* Reads the file "command". */
int invocation_load(const char *folder, struct invocation *ret_invocation, struct hvd_err *err)
{
    char path[LIMIT_PATH_BYTES];
    struct buf text;
    int rc;

    snprintf(path, sizeof(path), "%s/command", folder);
    buf_init(&text, INVOCATION_BYTES_MAX);
    rc = file_read(path, &text, err);
    if (!rc)
        rc = invocation_decode(path, &text, ret_invocation, err);
    buf_release(&text);
    return rc;
}

void invocation_release(struct invocation *invocation)
{
    mem_free(invocation->text);
    mem_free(invocation->argv);
    mem_free(invocation->envp);
    *invocation = (struct invocation){ 0 };
}
