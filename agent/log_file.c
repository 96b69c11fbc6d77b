#include "agent/log_file.h"

#include "base/log.h"
#include "os/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Every folder on the way to the file. What cannot be made shows when the file is opened. */
static void make_folders(const char *path)
{
    char folder[LIMIT_PATH_BYTES];

    for (size_t i = 1; path[i] && i < sizeof(folder); i++) {
        if (path[i] != '/')
            continue;
        memcpy(folder, path, i);
        folder[i] = '\0';
        if (mkdir(folder, S_IRWXU) && errno != EEXIST)
            return;
    }
}

static int open_it(const char *path)
{
    int flags = O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY;
    int fd = open(path, flags, S_IRUSR | S_IWUSR);

    if (fd >= 0 || errno != ENOENT)
        return fd;
    make_folders(path);
    return open(path, flags, S_IRUSR | S_IWUSR);
}

/* Two threads may have the first line. */
static int fd_of(struct log_file *file)
{
    int fd;

    pthread_mutex_lock(&file->opening);
    if (file->fd < 0)
        file->fd = open_it(file->path);
    fd = file->fd;
    pthread_mutex_unlock(&file->opening);
    return fd;
}

/* Whole lines, one call each: two agents that share a file do not mix. What a full disk does not
 * take is lost; there is nobody to tell. */
static void write_line(void *arg, const char *line, size_t length)
{
    struct log_file *file = arg;
    int fd = file->path[0] ? fd_of(file) : -1;
    ssize_t written;

    if (fd < 0)
        return;
    do
        written = write(fd, line, length);
    while (written < 0 && errno == EINTR);
}

static int64_t wall_us(void *arg)
{
    (void)arg;
    return clock_wall_us();
}

static int name_it(struct log_file *file, const char *path, const char *job, const char *host)
{
    const char *state = getenv("XDG_STATE_HOME");
    const char *home = getenv("HOME");

    if (path)
        return snprintf(file->path, sizeof(file->path), "%s", path);
    if (state && state[0] == '/')
        return snprintf(file->path, sizeof(file->path), "%s/hvd-elastic/%s/%s.log", state, job,
                        host);
    if (home && home[0] == '/')
        return snprintf(file->path, sizeof(file->path), "%s/.local/state/hvd-elastic/%s/%s.log",
                        home, job, host);
    return 0;
}

void log_file_open(struct log_file *file, const char *path, const char *job, const char *host)
{
    int length;

    *file = (struct log_file){ .fd = -1, .opening = PTHREAD_MUTEX_INITIALIZER };
    length = name_it(file, path, job, host);
    if (length < 0 || (size_t)length >= sizeof(file->path))
        file->path[0] = '\0';
    log_open(&(struct log_sink){ write_line, wall_us, file });
}

void log_file_close(struct log_file *file)
{
    log_open(NULL);
    if (file->fd >= 0)
        close(file->fd);
    file->fd = -1;
}
