/*
 * worker_report.c: lines, exit codes and pauses of the programs that train with the library. A line
 * is one write to a file opened with O_APPEND, which POSIX does not split.
 */
#include "tests/workers/worker_report.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define LINE_ROOM 1024

NORETURN void worker_give_up(int status, const char *what)
{
    fprintf(stderr, "%s: %s: %s\n", program_invocation_short_name, what, hvd_last_error());
    exit(status);
}

NORETURN void worker_wrong(const char *format, ...)
{
    char text[LINE_ROOM];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    fprintf(stderr, "%s: wrong: %s\n", program_invocation_short_name, text);
    exit(WORKER_WRONG);
}

int worker_status(int rc)
{
    if (rc >= 0)
        return 0;
    fprintf(stderr, "%s: %s: %s\n", program_invocation_short_name, hvd_strerror(rc),
            hvd_last_error());
    return 1;
}

void worker_append_text(const char *path, const char *text, size_t length)
{
    int fd = path ? open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600) : -1;

    if (path && (fd < 0 || write(fd, text, length) != (ssize_t)length))
        worker_give_up(1, path);
    if (fd >= 0)
        close(fd);
}

void worker_append(const char *path, const char *format, ...)
{
    char line[LINE_ROOM];
    va_list args;
    int length;

    va_start(args, format);
    length = vsnprintf(line, sizeof(line), format, args);
    va_end(args);
    if (length < 0 || length >= LINE_ROOM)
        worker_give_up(1, "a line is too long");
    worker_append_text(path, line, (size_t)length);
}

void worker_say_round(const char *path)
{
    worker_append(path, "%s %" PRIu64 " %d %d\n", worker_incarnation(), hvd_round(), hvd_rank(),
                  hvd_size());
}

const char *worker_variable(const char *name, const char *otherwise)
{
    const char *value = getenv(name);

    return value ? value : otherwise;
}

void worker_pass(uint64_t ms)
{
    struct timespec left = { (time_t)(ms / 1000), (long)(ms % 1000) * 1000000 };

    while (ms && nanosleep(&left, &left) && errno == EINTR)
        continue;
}
