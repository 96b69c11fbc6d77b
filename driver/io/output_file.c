/*
 * output_file.c: opens the files of workers for output.c, in the thread that writes. In a folder
 * that other users may write to (a shared disk), another user may have made a file or a link, so
 * each name is opened from a descriptor of the folder above it. Invariant: no write follows a link,
 * waits for a reader, or makes a file longer than its share of --output-limit.
 */
#include "driver/io/output_file.h"

#include "base/limits.h"
#include "base/log.h"
#include "os/private.h"
#include "os/remedy.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* True: the bit of this name was not set, and it is set now. Each name has one of 64 bits, from a
 * digest of the name. So a log line appears at most once for a name; two names may share a bit. */
static bool file_is_new(uint64_t *bits, const char *name)
{
    uint64_t digest = 5381;
    uint64_t bit;

    while (*name)
        digest = digest * 33 + (unsigned char)*name++;
    bit = UINT64_C(1) << (digest % 64);
    if (*bits & bit)
        return false;
    *bits |= bit;
    return true;
}

/* Opens the file `name` of a worker to append `length` bytes. `folder_fd` is the descriptor of its
 * folder, HOST/SLOT, and `folder` the path of that folder. A file that would be longer than its
 * share of --output-limit is renamed to NAME.1 first, which replaces an older NAME.1. */
static int file_open_last(struct output_files *files, int folder_fd, const char *folder,
                          const char *name, size_t length, int *ret_fd, struct hvd_err *err)
{
    const int flags = O_WRONLY | O_APPEND | O_CREAT;
    uint64_t most = files->limit_bytes / OUTPUT_FILE_SHARES;
    char whole[3 * LIMIT_PATH_BYTES], older[NAME_MAX + 1];
    struct stat st;
    int fd = -1;
    int rc = private_open(folder_fd, folder, name, flags, &fd, err);

    if (rc)
        return rc;
    snprintf(whole, sizeof(whole), "%s/%s", folder, name);
    if (fstat(fd, &st)) {
        rc = remedy_set(err, whole, "cannot read its owner and mode", errno);
    } else if (st.st_size > 0 && (uint64_t)st.st_size + length > most) {
        snprintf(older, sizeof(older), "%s.1", name);
        close(fd);
        fd = -1;
        if (renameat(folder_fd, name, folder_fd, older))
            rc = remedy_set(err, whole, "is full, and cannot be renamed", errno);
        else
            rc = private_open(folder_fd, folder, name, flags, &fd, err);
        if (!rc && file_is_new(&files->renamed, whole))
            log_warning(WORKER,
                        "%s: has reached its share of --output-limit (%" PRIu64
                        " KiB): whenever it is full it is renamed to %s and replaces the older %s; "
                        "raise --output-limit to keep more output",
                        whole, most / 1024, older, older);
    }
    if (rc && fd >= 0)
        close(fd);
    if (!rc)
        *ret_fd = fd;
    return rc;
}

/* Opens the file of a worker, "HOST/SLOT/INCARNATION.out", for `length` more bytes. A failure is
 * logged here; the caller then leaves the bytes out of the file. */
int output_file_open(struct output_files *files, const char *name, size_t length, int *ret_fd)
{
    int folder = open(files->folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
    const char *last = strrchr(name, '/');
    /* "HOST/SLOT", and the path of that folder */
    char below[LIMIT_HOST_NAME_BYTES + 48], path[2 * LIMIT_PATH_BYTES];
    struct hvd_err err = { .text = "" };
    int below_fd = -1;
    int rc = 0;

    /* If the folder does not exist any more, it is made again: an operator may have removed it with
     * all files. */
    if (folder < 0 && errno == ENOENT && !mkdir(files->folder, 0700))
        folder = open(files->folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (folder < 0)
        rc = remedy_set(&err, files->folder, "cannot open the folder", errno);
    snprintf(below, sizeof(below), "%.*s", (int)(last - name), name);
    snprintf(path, sizeof(path), "%s/%s", files->folder, below);
    if (!rc)
        rc = private_below(folder, files->folder, below, true /* make the folder */, &below_fd,
                           &err);
    if (!rc)
        rc = file_open_last(files, below_fd, path, last + 1, length, ret_fd, &err);
    if (rc && file_is_new(&files->refused, name))
        log_warning(WORKER, "%s; this output of the worker is printed, and kept in no file",
                    err.text);
    if (below_fd >= 0)
        close(below_fd);
    if (folder >= 0)
        close(folder);
    return rc;
}
