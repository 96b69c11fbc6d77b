#include "sqlite/newfile.h"

#include "base/panic.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#define LOCK_RETRY_MS  10
#define NAME_MAX_BYTES (LIMIT_DB_PATH_BYTES + 32)

/* What SQLite keeps beside a database; the empty one is the file itself. */
static const char *const companions[] = { "", "-journal", "-wal", "-shm" };

static int fail(int number, const char *path, const char *what, struct hvd_err *err)
{
    const char *remedy = "check the disk";
    int code = HVD_E_IO;

    if (number == ENOENT || number == ENOTDIR) {
        code = HVD_E_NOTFOUND;
        remedy = "create the directory";
    } else if (number == EACCES || number == EPERM || number == EROFS) {
        code = HVD_E_DENIED;
        remedy = "make it and its directory writable for this user";
    } else if (number == ENOSPC || number == EDQUOT) {
        code = HVD_E_FULL;
        remedy = "free some space";
    } else if (number == ENAMETOOLONG) {
        code = HVD_E_INVAL;
        remedy = "give a shorter one";
    }
    return err_set(err, code, "%s: %s: %s; %s", path, what, strerrordesc_np(number), remedy);
}

static int open_directory(const char *path, int *ret_fd, struct hvd_err *err)
{
    const char *slash = strrchr(path, '/');
    char dir[NAME_MAX_BYTES] = ".";
    int fd;

    if (slash) /* "/x" is in "/" */
        snprintf(dir, sizeof(dir), "%.*s", slash == path ? 1 : (int)(slash - path), path);
    fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return fail(errno, dir, "cannot open the directory", err);
    *ret_fd = fd;
    return 0;
}

static int lock_directory(const struct newfile *newfile, int wait_ms, struct hvd_err *err)
{
    for (int waited_ms = 0; flock(newfile->dir_fd, LOCK_EX | LOCK_NB); waited_ms += LOCK_RETRY_MS) {
        if (errno != EWOULDBLOCK)
            return fail(errno, newfile->path, "cannot lock its directory", err);
        if (waited_ms >= wait_ms)
            return err_set(err, HVD_E_BUSY,
                           "%s: another process has locked its directory, perhaps to create the "
                           "same file; try again",
                           newfile->path);
        poll(NULL, 0, LOCK_RETRY_MS);
    }
    return 0;
}

/* Under the lock: the file is still missing, and nothing is left that belonged to one. An old -wal
 * would be played back into the new file. */
static int check_missing(const char *path, struct hvd_err *err)
{
    char name[NAME_MAX_BYTES];

    if (!access(path, F_OK))
        return err_set(err, HVD_E_EXISTS, "%s: it is there by now", path);
    for (size_t i = 1; i < ARRAY_SIZE(companions) - 1; i++) {
        snprintf(name, sizeof(name), "%s%s", path, companions[i]);
        if (!access(name, F_OK))
            return err_set(err, HVD_E_CORRUPT,
                           "%s is there without its database; move it to where that went, or "
                           "delete it to start afresh",
                           name);
    }
    return 0;
}

/* 0 or errno. */
static int remove_temp(const char *temp)
{
    char name[NAME_MAX_BYTES];

    for (size_t i = 0; i < ARRAY_SIZE(companions); i++) {
        snprintf(name, sizeof(name), "%s%s", temp, companions[i]);
        if (unlink(name) && errno != ENOENT)
            return errno;
    }
    return 0;
}

/* Empty, so that it is we who learn why it cannot be made. */
static int make_temp(const struct newfile *newfile, unsigned mode, struct hvd_err *err)
{
    int number = remove_temp(newfile->temp);
    int fd;

    if (number)
        return fail(number, newfile->temp, "cannot remove what is left of an earlier start", err);
    fd = open(newfile->temp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
    if (fd < 0)
        return fail(errno, newfile->temp, "cannot create it", err);
    close(fd);
    return 0;
}

int newfile_begin(struct newfile *newfile, const char *path, unsigned mode, int wait_ms,
                  struct hvd_err *err)
{
    int rc;

    ASSERT(strlen(path) <= LIMIT_DB_PATH_BYTES);
    *newfile = (struct newfile){ .path = path, .dir_fd = -1 };
    rc = open_directory(path, &newfile->dir_fd, err);
    if (rc)
        return rc;
    rc = lock_directory(newfile, wait_ms, err);
    if (rc)
        return rc;
    rc = check_missing(path, err);
    if (rc)
        return rc;
    snprintf(newfile->temp, sizeof(newfile->temp), "%s" NEWFILE_SUFFIX, path);
    return make_temp(newfile, mode, err);
}

static int sync_file(const char *name)
{
    int fd = open(name, O_RDONLY | O_CLOEXEC);
    int number = 0;

    if (fd < 0)
        return errno;
    if (fsync(fd))
        number = errno;
    close(fd);
    return number;
}

/* When the last step fails the file stands, complete; the first commit to its -wal syncs the
 * directory once more. */
int newfile_publish(struct newfile *newfile, struct hvd_err *err)
{
    int number = sync_file(newfile->temp);

    if (number)
        return fail(number, newfile->temp, "cannot write it to the disk", err);
    if (rename(newfile->temp, newfile->path))
        return fail(errno, newfile->path, "cannot rename the new file to it", err);
    if (fsync(newfile->dir_fd))
        return fail(errno, newfile->path, "cannot write its directory to the disk", err);
    return 0;
}

void newfile_release(struct newfile *newfile)
{
    if (newfile->temp[0])
        (void)remove_temp(newfile->temp);
    if (newfile->dir_fd >= 0)
        close(newfile->dir_fd);
    *newfile = (struct newfile){ .dir_fd = -1 };
}
