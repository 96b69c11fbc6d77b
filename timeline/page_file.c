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

#define BYTES        ((size_t)PAGE_FILE_PAGE * PAGE_FILE_PAGES)
#define PATIENCE_US  TIME_S /* for somebody who replaces the file at the same moment */
#define NAP_US       TIME_MS
#define DIGITS_MAX   20
#define AGAIN        1 /* it has changed under our hands */
#define FRESH_SUFFIX 64

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

static int fail_errno(struct hvd_err *err, const char *path)
{
    int error = errno;

    return err_set(err, code_of(error), "%s: %s", path, strerror(error));
}

/* ---- lines ----------------------------------------------------------------------------------- */

/* What is left of the page that has begun becomes blank. */
static void fill_page(struct page_file *file)
{
    size_t rest = (PAGE_FILE_PAGE - file->used % PAGE_FILE_PAGE) % PAGE_FILE_PAGE;

    if (!rest)
        return;
    memset(file->data + file->used, ' ', rest);
    file->used += rest;
    file->data[file->used - 1] = '\n';
}

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

/* A disk that became full may have taken a part of a page: the file ends before it, unless somebody
 * else has found room behind it. */
static void cut_back(int fd, size_t written)
{
    off_t end = lseek(fd, 0, SEEK_CUR);
    off_t rest = (off_t)(written % PAGE_FILE_PAGE);
    struct stat now;

    if (rest && end >= rest && !fstat(fd, &now) && now.st_size == end && ftruncate(fd, end - rest))
        return;
}

/* One write, so that nothing of anybody else comes between two of its pages; only one that was cut
 * short is gone on with. */
static int write_pages(int fd, const char *data, size_t length, struct hvd_err *err)
{
    size_t done = 0;

    while (done < length) {
        ssize_t wrote = write(fd, data + done, length - done);

        if (wrote < 0 && errno == EINTR)
            continue;
        if (wrote <= 0) {
            int error = wrote < 0 ? errno : ENOSPC;

            cut_back(fd, done);
            return err_set(err, code_of(error), "%s", strerror(error));
        }
        done += (size_t)wrote;
    }
    return 0;
}

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

/* ---- which file ------------------------------------------------------------------------------ */

/* Beside it, whole, before it gets its name: whoever finds the file finds its first page. AGAIN:
 * the name that it has until then is taken. */
static int make_fresh(const char *path, const struct page_file_first *first, const char *fresh,
                      int *ret_fd, struct hvd_err *err)
{
    char page[PAGE_FILE_PAGE];
    size_t length = strlen(first->text);
    int fd = open(fresh, O_RDWR | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0666);
    int rc;

    if (fd < 0)
        return errno == EEXIST ? AGAIN : fail_errno(err, path);
    memset(page, ' ', sizeof(page));
    memcpy(page, first->text, length);
    page[sizeof(page) - 1] = '\n';
    rc = write_pages(fd, page, sizeof(page), err);
    if (rc) {
        close(fd);
        unlink(fresh);
        return err_prefix(err, rc, "%s", path);
    }
    *ret_fd = fd;
    return 0;
}

/* over: in place of a file that is there. AGAIN also: without it, and now there is one. */
static int put_fresh(const char *path, const struct page_file_first *first, bool over, int *ret_fd,
                     struct hvd_err *err)
{
    char fresh[LIMIT_PATH_BYTES + FRESH_SUFFIX];
    int fd = -1;
    int rc;

    snprintf(fresh, sizeof(fresh), "%s.%ld-%" PRId64, path, (long)getpid(), clock_now_us());
    rc = make_fresh(path, first, fresh, &fd, err);
    if (rc)
        return rc;
    if (over ? !rename(fresh, path) : !link(fresh, path)) {
        *ret_fd = fd;
    } else if (!over && errno == EEXIST) {
        rc = AGAIN;
    } else {
        rc = fail_errno(err, path);
    }
    if (rc)
        close(fd);
    unlink(fresh); /* its other name */
    return rc;
}

static bool is_named(int fd, const char *path)
{
    struct stat ours, there;

    return !fstat(fd, &ours) && !stat(path, &there) && ours.st_dev == there.st_dev &&
           ours.st_ino == there.st_ino;
}

/* Who holds the lock of the old file replaces it; the others find that it is not there any more. */
static int replace(int old_fd, const char *path, const struct page_file_first *first, int *ret_fd,
                   struct hvd_err *err)
{
    if (flock(old_fd, LOCK_EX | LOCK_NB))
        return errno == EWOULDBLOCK ? AGAIN : fail_errno(err, path);
    if (!is_named(old_fd, path))
        return AGAIN;
    return put_fresh(path, first, true, ret_fd, err);
}

/* HVD_E_NOTFOUND: it does not begin as such a file. An empty one has the number 0. */
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

/* fd is the file that is there; when it is not the one to go on with, *ret_fd is another. */
static int judge(int fd, const char *path, const struct page_file_first *first, int *ret_fd,
                 struct hvd_err *err)
{
    struct stat status;
    uint64_t number = 0;

    if (fstat(fd, &status))
        return fail_errno(err, path);
    if (!S_ISREG(status.st_mode) || read_number(fd, first, &number))
        return err_set(err, HVD_E_EXISTS,
                       "%s is there and is no timeline; remove it, or choose another name", path);
    if (number > first->number)
        return err_set(err, HVD_E_STATE, "%s is the timeline of a later job; choose another name",
                       path);
    if (number < first->number)
        return replace(fd, path, first, ret_fd, err);
    *ret_fd = fd;
    return 0;
}

static int open_once(const char *path, const struct page_file_first *first, int *ret_fd,
                     struct hvd_err *err)
{
    /* not to wait for the other end of what turns out to be a pipe */
    int fd = open(path, O_RDWR | O_APPEND | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    int rc;

    if (fd < 0 && errno == ENOENT)
        return put_fresh(path, first, false, ret_fd, err);
    if (fd < 0)
        return fail_errno(err, path);
    rc = judge(fd, path, first, ret_fd, err);
    if (rc || *ret_fd != fd)
        close(fd);
    return rc;
}

static void nap(void)
{
    const struct timespec time = { .tv_nsec = NAP_US * 1000 };

    nanosleep(&time, NULL);
}

int page_file_open(struct page_file *file, const char *path, const struct page_file_first *first,
                   struct hvd_err *err)
{
    int64_t until_us = clock_now_us() + PATIENCE_US;
    int fd = -1;
    int rc;

    *file = (struct page_file){ .fd = -1 };
    if (strlen(path) > LIMIT_PATH_BYTES)
        return err_set(err, HVD_E_LIMIT, "%.40s... is longer than LIMIT_PATH_BYTES (%d)", path,
                       LIMIT_PATH_BYTES);
    while ((rc = open_once(path, first, &fd, err)) == AGAIN && clock_now_us() < until_us)
        nap();
    if (rc == AGAIN)
        return err_set(err, HVD_E_BUSY, "%s: somebody holds its lock; choose another name", path);
    if (rc)
        return rc;
    file->data = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (file->data == MAP_FAILED) {
        file->data = NULL;
        close(fd);
        return err_set(err, HVD_E_NOMEM, "no memory for a timeline");
    }
    file->fd = fd;
    return 0;
}

void page_file_close(struct page_file *file)
{
    if (file->fd >= 0)
        close(file->fd);
    if (file->data)
        munmap(file->data, BYTES);
    *file = (struct page_file){ .fd = -1 };
}
