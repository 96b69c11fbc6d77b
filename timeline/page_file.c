/*
 * page_file.c: a file to which several processes append, in pages of PAGE_FILE_PAGE bytes; each
 * page has whole lines, so lines of different processes do not mix. Used by timeline.c. A file of
 * an earlier job is replaced by one process, which holds the file's lock; the others find the new
 * file when they open the path again.
 */
#include "timeline/page_file.h"

#include "base/limits.h"
#include "base/text.h"
#include "base/time.h"
#include "os/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define BYTES        ((size_t)PAGE_FILE_PAGE * PAGE_FILE_PAGES) /* the size of the buffer */
#define RETRY_US     TIME_S  /* time limit for all tries, while another process replaces the file */
#define PAUSE_US     TIME_MS /* the pause between two tries */
#define DIGITS_MAX   20      /* most digits of a number of 64 bits */
#define AGAIN        1       /* a return code: another process has changed the file meanwhile */
#define FRESH_SUFFIX 64      /* most bytes behind the path in the temporary name of a new file */

/* Returns the code of the library for an errno. */
static int code_of(int error)
{
    switch (error) {
    case ENOENT:
    case ENOTDIR: return HVD_E_NOTFOUND;
    case EACCES:
    case EPERM:
    case EROFS: return HVD_E_DENIED;
    case ENOSPC:
    case EDQUOT:
    case EFBIG: return HVD_E_FULL;
    case ENOMEM: return HVD_E_NOMEM;
    default: return HVD_E_IO;
    }
}

/* Sets the error for the path from errno, and returns its code. */
static int fail_errno(struct hvd_err *err, const char *path)
{
    int error = errno;

    return err_set(err, code_of(error), "%s: %s", path, strerror(error));
}

/* Fills the rest of the last page with blanks. */
static void fill_page(struct page_file *file)
{
    size_t rest = (PAGE_FILE_PAGE - file->used % PAGE_FILE_PAGE) % PAGE_FILE_PAGE;

    if (!rest)
        return;
    memset(file->data + file->used, ' ', rest);
    file->used += rest;
    file->data[file->used - 1] = '\n';
}

/* Adds a line to the buffer; a line that does not fit in the rest of its page begins the next page.
 * false: the buffer is full. */
bool page_file_add(struct page_file *file, const char *line, size_t length)
{
    size_t rest = PAGE_FILE_PAGE - file->used % PAGE_FILE_PAGE;

    if (length > rest && file->used + rest < BYTES)
        fill_page(file);
    else if (length > rest)
        return false;
    if (file->used + length > BYTES)
        return false;
    memcpy(file->data + file->used, line, length);
    file->used += length;
    return true;
}

/* Writes all pages by one write, so that no page of another process comes between them. Only a
 * write that was cut short is continued by a second one. */
static int write_pages(int fd, const char *data, size_t length, struct hvd_err *err)
{
    size_t done = 0;

    while (done < length) {
        ssize_t wrote = write(fd, data + done, length - done);
        int error = wrote < 0 ? errno : ENOSPC;
        off_t end, rest = (off_t)(done % PAGE_FILE_PAGE);
        struct stat now;

        if (wrote < 0 && error == EINTR)
            continue;
        if (wrote > 0) {
            done += (size_t)wrote;
            continue;
        }

        /* When the disk became full, the write may have stored a part of a page. The file is cut
         * before that page, unless another process has written after it. */
        end = lseek(fd, 0, SEEK_CUR);
        if (rest && end >= rest && !fstat(fd, &now) && now.st_size == end)
            (void)!ftruncate(fd, end - rest);
        return err_set(err, code_of(error), "%s", strerror(error));
    }
    return 0;
}

/* Writes the buffer to the file, in whole pages, and empties it, also after an error. */
int page_file_write(struct page_file *file, struct hvd_err *err)
{
    int rc;

    if (!file->used)
        return 0;
    fill_page(file);
    rc = write_pages(file->fd, file->data, file->used, err);
    file->used = 0;
    return rc;
}

/* Makes a new file with its first page. The file gets its name only when it is complete, so a
 * process that finds it also finds its first page. over is true: the new file replaces the one
 * with this name. AGAIN: the temporary name is taken; or `over` is false, and another process
 * has made the file meanwhile. */
static int put_fresh(const char *path, const struct page_file_first *first, bool over, int *ret_fd,
                     struct hvd_err *err)
{
    char fresh[LIMIT_PATH_BYTES + FRESH_SUFFIX];
    char page[PAGE_FILE_PAGE];
    int fd, rc;

    snprintf(fresh, sizeof(fresh), "%s.%ld-%" PRId64, path, (long)getpid(), clock_now_us());
    fd = open(fresh, O_RDWR | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0600);
    if (fd < 0)
        return errno == EEXIST ? AGAIN : fail_errno(err, path);
    memset(page, ' ', sizeof(page));
    memcpy(page, first->text, strlen(first->text));
    page[sizeof(page) - 1] = '\n';
    rc = write_pages(fd, page, sizeof(page), err);
    if (rc)
        err_prefix(err, rc, "%s", path);
    else if (!(over ? !rename(fresh, path) : !link(fresh, path)))
        rc = !over && errno == EEXIST ? AGAIN : fail_errno(err, path);
    if (rc)
        close(fd);
    else
        *ret_fd = fd;
    unlink(fresh); /* its temporary name; after a rename there is none */
    return rc;
}

/* Reads the number of the job in the first page. HVD_E_NOTFOUND: the file does not begin as a
 * timeline does. An empty file has the number 0. */
static int read_number(int fd, const struct page_file_first *first, uint64_t *ret_number)
{
    char head[PAGE_FILE_PAGE];
    ssize_t length = pread(fd, head, first->same + DIGITS_MAX, 0);
    size_t digits = 0;

    if (length == 0) {
        *ret_number = 0;
        return 0;
    }
    if (length <= (ssize_t)first->same || memcmp(head, first->text, first->same) != 0)
        return HVD_E_NOTFOUND;
    while (first->same + digits < (size_t)length && head[first->same + digits] >= '0' &&
           head[first->same + digits] <= '9')
        digits++;
    return text_parse_u64((struct span){ head + first->same, digits }, 0, UINT64_MAX, "number",
                          ret_number, NULL);
}

/* Tries once to open the file. A file of this job is used; a file of an earlier job is replaced,
 * and *ret_fd is the new file. AGAIN: another process is replacing the file. */
static int open_once(const char *path, const struct page_file_first *first, int *ret_fd,
                     struct hvd_err *err)
{
    /* O_NONBLOCK: the path may be a pipe, and the call must not wait for the other end. O_NOFOLLOW:
     * in a folder where other users may write, a link may lead to any file. */
    int fd = open(path, O_RDWR | O_APPEND | O_NOFOLLOW | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    struct stat status, named;
    uint64_t number = 0;
    int rc;

    if (fd < 0 && errno == ENOENT)
        return put_fresh(path, first, false /* no file to replace */, ret_fd, err);
    if (fd < 0 && errno == ELOOP)
        return err_set(err, HVD_E_DENIED, "%s is a symbolic link; give the name of the file itself",
                       path);
    if (fd < 0)
        return fail_errno(err, path);
    if (fstat(fd, &status))
        rc = fail_errno(err, path);
    else if (!S_ISREG(status.st_mode) || read_number(fd, first, &number))
        rc = err_set(err, HVD_E_EXISTS,
                     "%s exists and is no timeline; remove the file, or choose another name", path);
    else if (status.st_uid != geteuid())
        rc = err_set(err, HVD_E_DENIED, "%s belongs to user %u; choose another name", path,
                     (unsigned)status.st_uid);
    else if (number > first->number)
        rc = err_set(err, HVD_E_STATE, "%s is the timeline of a later job; choose another name",
                     path);
    else if (number == first->number) {
        *ret_fd = fd;
        return 0;
    } else if (flock(fd, LOCK_EX | LOCK_NB))
        /* Only the process that holds the lock of the old file replaces the file. Other processes
         * then find a new file with this name. */
        rc = errno == EWOULDBLOCK ? AGAIN : fail_errno(err, path);
    else if (stat(path, &named) || named.st_dev != status.st_dev || named.st_ino != status.st_ino)
        rc = AGAIN; /* the file was replaced between the open and the lock */
    else
        rc = put_fresh(path, first, true /* over the old file */, ret_fd, err);
    close(fd);
    return rc;
}

/* Opens the file. While another process replaces the file (AGAIN), this function tries again for up
 * to RETRY_US. */
int page_file_open(struct page_file *file, const char *path, const struct page_file_first *first,
                   struct hvd_err *err)
{
    const struct timespec pause = { .tv_nsec = PAUSE_US * 1000 };
    int64_t until_us = clock_now_us() + RETRY_US;
    int fd = -1;
    int rc;

    *file = (struct page_file){ .fd = -1 };
    if (strlen(path) > LIMIT_PATH_BYTES)
        return err_set(
            err, HVD_E_LIMIT,
            "%.40s...: the path is longer than %d bytes (LIMIT_PATH_BYTES); choose a shorter path",
            path, LIMIT_PATH_BYTES);
    while ((rc = open_once(path, first, &fd, err)) == AGAIN && clock_now_us() < until_us)
        nanosleep(&pause, NULL);
    if (rc == AGAIN)
        return err_set(err, HVD_E_BUSY,
                       "%s: another process holds the lock of this file; choose another name",
                       path);
    if (rc)
        return rc;
    file->data = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (file->data == MAP_FAILED) {
        file->data = NULL;
        close(fd);
        return err_set(err, HVD_E_NOMEM, "no memory for a timeline; free memory on this host");
    }
    file->fd = fd;
    return 0;
}

/* Closes the file and frees the buffer. Lines that are only in the buffer are lost. */
void page_file_close(struct page_file *file)
{
    if (file->fd >= 0)
        close(file->fd);
    if (file->data)
        munmap(file->data, BYTES);
    *file = (struct page_file){ .fd = -1 };
}
