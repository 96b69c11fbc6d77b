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

/* Appends a text and its NUL. */
static int invocation_add(struct buf *out, const char *text)
{
    return buf_append(out, text, strlen(text) + 1);
}

/* Appends all texts of the invocation, each with its NUL. A text may have any byte but NUL, so no
 * text needs quotes. */
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

/* Writes the file "command" in the folder. After a failure the former file is unchanged, because a
 * rename replaces it only when the new file is complete and on disk. */
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

/* Returns the text at *at, and moves *at behind the NUL of this text. NULL: there is no NUL before
 * `end`. */
static char *invocation_next(char **at, const char *end)
{
    char *text = *at;
    char *nul = text < end ? memchr(text, 0, (size_t)(end - text)) : NULL;

    if (nul)
        *at = nul + 1;
    return nul ? text : NULL;
}

/* Sets the error for a file "command" that no driver has written. Returns HVD_E_CORRUPT. */
static int invocation_corrupt(const char *path, struct hvd_err *err)
{
    return err_set(err, HVD_E_CORRUPT,
                   "%s: no driver has written this file; start with the whole command and the same "
                   "--state-dir instead of --resume",
                   path);
}

/* Makes an invocation from the bytes of the file "command"; `from` names the file in errors.
 * ret_invocation->text is a copy of all bytes, and the other fields point into that copy; only the
 * arrays argv and envp have memory of their own. The texts behind the words of the command are the
 * environment. */
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
    /* `texts` counts the NULs. Four texts come before the words: MAGIC, cwd, options and the number
     * of words. The rest must have at least as many texts as there are words. */
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

/* Reads the file "command" in the folder. */
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
