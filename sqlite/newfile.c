/*
 * newfile.c: makes a database file under a temporary name and renames it when it is complete. db.c
 * calls it. The lock on the directory keeps other processes from the same file; a process that dies
 * leaves a temporary file, which the next process removes.
 */
#include "sqlite/newfile.h"

#include "base/panic.h"
#include "os/remedy.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#define LOCK_RETRY_MS  10
#define NAME_MAX_BYTES (LIMIT_DB_PATH_BYTES + 32)

/* The suffixes of the files that SQLite keeps beside a database; "" is the database itself. */
static const char *const companions[] = { "", "-journal", "-wal", "-shm" };

/* Removes the temporary file, and what SQLite has made beside it; files that are missing are fine.
 * Returns 0 or an errno. */
static int newfile_remove_temp(const char *temp)
{
    char name[NAME_MAX_BYTES];

    for (size_t i = 0; i < ARRAY_SIZE(companions); i++) {
        snprintf(name, sizeof(name), "%s%s", temp, companions[i]);
        if (unlink(name) && errno != ENOENT)
            return errno;
    }
    return 0;
}

/* Locks the directory and creates an empty temporary file there. `wait_ms`: how long the call waits
 * for another process that has the lock. */
int newfile_begin(struct newfile *newfile, const char *path, unsigned mode, int wait_ms,
                  struct hvd_err *err)
{
    const char *slash = strrchr(path, '/');
    char dir[NAME_MAX_BYTES] = ".", name[NAME_MAX_BYTES];
    int number; /* the errno of a failure */
    int fd;

    ASSERT(strlen(path) <= LIMIT_DB_PATH_BYTES);
    *newfile = (struct newfile){ .path = path, .dir_fd = -1 };
    if (slash) /* the directory of "/x" is "/" */
        snprintf(dir, sizeof(dir), "%.*s", slash == path ? 1 : (int)(slash - path), path);
    newfile->dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (newfile->dir_fd < 0)
        return remedy_set(err, dir, "cannot open the directory", errno);
    /* The lock is polled, because flock cannot wait with a time limit. */
    for (int waited_ms = 0; flock(newfile->dir_fd, LOCK_EX | LOCK_NB); waited_ms += LOCK_RETRY_MS) {
        if (errno != EWOULDBLOCK)
            return remedy_set(err, path, "cannot lock the directory of the file", errno);
        if (waited_ms >= wait_ms)
            return err_set(
                err, HVD_E_BUSY,
                "%s: another process has locked the directory of this file, perhaps to create the "
                "same file; try again",
                path);
        poll(NULL, 0, LOCK_RETRY_MS);
    }
    /* Now the directory is locked. The file, its -journal and its -wal must still be missing:
     * SQLite would play back an old -wal into the new file. SQLite clears an old -shm itself. */
    if (!access(path, F_OK))
        return err_set(err, HVD_E_EXISTS,
                       "%s: another process has created this file by now; open that file", path);
    for (size_t i = 1; i < ARRAY_SIZE(companions) - 1; i++) {
        snprintf(name, sizeof(name), "%s%s", path, companions[i]);
        if (!access(name, F_OK))
            return err_set(
                err, HVD_E_CORRUPT,
                "%s is there without its database; move this file to the folder of the database, "
                "or delete it to start afresh",
                name);
    }
    /* The empty file is created with open, because the errno of open says more than SQLite does. */
    snprintf(newfile->temp, sizeof(newfile->temp), "%s" NEWFILE_SUFFIX, path);
    number = newfile_remove_temp(newfile->temp);
    if (number)
        return remedy_set(err, newfile->temp,
                          "cannot remove the file that an earlier start has left", number);
    fd = open(newfile->temp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
    if (fd < 0)
        return remedy_set(err, newfile->temp, "cannot create it", errno);
    close(fd);
    return 0;
}

/* Gives the complete temporary file its real name. If the last step (the sync of the directory)
 * fails, the complete file stays; the first commit to its -wal syncs the directory again. */
int newfile_publish(struct newfile *newfile, struct hvd_err *err)
{
    int fd = open(newfile->temp, O_RDONLY | O_CLOEXEC);
    int number = fd < 0 || fsync(fd) ? errno : 0;

    if (fd >= 0)
        close(fd);
    if (number)
        return remedy_set(err, newfile->temp, "cannot write it to the disk", number);
    if (rename(newfile->temp, newfile->path))
        return remedy_set(err, newfile->path, "cannot give the new file this name", errno);
    if (fsync(newfile->dir_fd))
        return remedy_set(err, newfile->path, "cannot write the directory of the file to the disk",
                          errno);
    return 0;
}

/* Removes the temporary file, if it was not published, and unlocks the directory. */
void newfile_release(struct newfile *newfile)
{
    if (newfile->temp[0])
        (void)newfile_remove_temp(newfile->temp);
    if (newfile->dir_fd >= 0)
        close(newfile->dir_fd);
    *newfile = (struct newfile){ .dir_fd = -1 };
}
