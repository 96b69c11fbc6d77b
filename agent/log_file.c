/*
 * log_file.c: the agent's log, in a file that is created when the first line is written. Called by
 * main.c, in the agent and in its supervisor, which may share one file. Invariants: a line is one
 * write, so the lines of several processes do not mix; only a plain file of this user is written.
 */
#include "agent/log_file.h"

#include "base/log.h"
#include "os/clock.h"
#include "os/private.h"
#include "os/state_home.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Opens the log file of this path, and returns its descriptor. In a folder that others may write
 * to, another user may have planted the file: private_open takes only a plain file of this user.
 * -1: not opened; errno is ENOENT if the folder does not exist. */
static int log_file_in_folder(const char *path)
{
    const char *slash = strrchr(path, '/');
    const char *name = slash ? slash + 1 : path;
    char folder[LIMIT_PATH_BYTES];
    struct hvd_err err;
    int at, fd = -1;

    /* a path without a slash is a file in the current folder, "." */
    snprintf(folder, sizeof(folder), "%.*s", slash ? (int)(name - path) : 1, slash ? path : ".");
    at = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (at < 0)
        return -1;
    if (private_open(at, folder, name, O_WRONLY | O_APPEND | O_CREAT, &fd, &err))
        errno = EACCES;
    close(at);
    return fd;
}

/* Writes one line of the log (`arg` is the struct log_file) with one call of write. A line that a
 * full disk does not take, or whose file is refused, is lost: the agent has no other place to
 * report it. The first line creates the file, under a lock, because two threads may write their
 * first lines at the same time. */
static void log_file_write(void *arg, const char *line, size_t length)
{
    struct log_file *file = arg;
    const char *path = file->path;
    char folder[LIMIT_PATH_BYTES];
    int fd;

    if (!path[0])
        return;
    pthread_mutex_lock(&file->opening);
    if (file->fd < 0)
        file->fd = log_file_in_folder(path);
    if (file->fd < 0 && errno == ENOENT) {
        /* Creates every folder of the path. An error shows later, when the file is opened. */
        for (size_t i = 1; path[i] && i < sizeof(folder); i++) {
            if (path[i] != '/')
                continue;
            memcpy(folder, path, i);
            folder[i] = '\0';
            if (mkdir(folder, S_IRWXU) && errno != EEXIST)
                break;
        }
        file->fd = log_file_in_folder(path);
    }
    fd = file->fd;
    pthread_mutex_unlock(&file->opening);
    if (fd >= 0)
        (void)!TEMP_FAILURE_RETRY(write(fd, line, length)); /* a failure is ignored: see above */
}

/* Chooses the path of the log file: `path`, or, if that is NULL, a file in the user's state
 * directory. From now on log lines go to this file. No line is written anywhere if the path is too
 * long, or is "/dev/null". */
void log_file_open(struct log_file *file, const char *path, const char *job, const char *host)
{
    char state[LIMIT_PATH_BYTES];
    size_t size = sizeof(file->path);
    int length = 0;

    *file = (struct log_file){ .fd = -1, .opening = PTHREAD_MUTEX_INITIALIZER };
    if (path)
        length = snprintf(file->path, size, "%s", path);
    else if (!state_home(state, NULL))
        length = snprintf(file->path, size, "%s/%s/%s.log", state, job, host);
    if (length < 0 || (size_t)length >= size || !strcmp(file->path, "/dev/null"))
        file->path[0] = '\0';
    log_open(&(struct log_sink){ log_file_write, clock_wall_us, file });
}

void log_file_close(struct log_file *file)
{
    log_open(NULL);
    if (file->fd >= 0)
        close(file->fd);
    file->fd = -1;
}
