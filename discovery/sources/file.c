/*
 * file.c: hosts from a file (--hostfile), which is read again for each answer, so that an operator
 * can edit it while the job runs. Each line is one host.
 */
#include "os/file.h"
#include "discovery/sources/source_internal.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

/* Checks that the path is a plain file. Another kind of file, such as a pipe, may block the event
 * loop or cannot be read twice. */
static int file_check(const char *path, struct hvd_err *err)
{
    struct stat st;

    if (stat(path, &st))
        return err_set(
            err, errno == EACCES ? HVD_E_DENIED : HVD_E_NOTFOUND,
            "%s: the file of hosts cannot be read: %s; write the hosts in this file, one a line",
            path, strerror(errno));
    if (!S_ISREG(st.st_mode))
        return err_set(err, HVD_E_INVAL,
                       "%s: is no regular file; name a file that can be read again and again",
                       path);
    return 0;
}

static int file_open(struct discoverer *discoverer, struct hvd_err *err)
{
    int rc = discover_take_path(discoverer, err);

    return rc ? rc : file_check(discoverer->path, err);
}

/* Reads the file of hosts, and answers. `err` is set only if rc is not 0. */
static void file_ask(struct discoverer *discoverer)
{
    struct hosts hosts;
    struct hvd_err err;
    struct buf text;
    /* The path is checked for each answer, because the file may have been replaced. */
    int rc = file_check(discoverer->path, &err);

    buf_init(&text, LIMIT_HOST_TEXT_BYTES + 1);
    hosts_init(&hosts);
    if (!rc)
        rc = file_read(discoverer->path, &text, &err);
    if (!rc)
        rc = discover_read(discoverer, (struct span){ buf_text(&text), text.length }, NULL, &hosts,
                           &err);
    discover_answer(discoverer, rc, &hosts, &err);
    buf_release(&text);
}

const struct discover_source discover_file = {
    .option = "hostfile",
    .when_empty = "is empty",
    .is_hostfile = true,
    .open = file_open,
    .ask = file_ask,
};
