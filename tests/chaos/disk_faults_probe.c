/*
 * disk_faults_probe.c: a process with a faulty disk and clock, for a test. It carries out the
 * commands that it reads, one a line, and answers each with a line: 0 or the errno; for "clock" the
 * seconds of three clocks.
 *
 *     create PATH | write PATH | overwrite PATH | sync PATH | folder PATH | remove PATH | pipe |
 *     clock | env
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static int number_of(long rc)
{
    return rc < 0 ? errno : 0;
}

static int on_pipe(void)
{
    int fds[2];
    int number;

    if (pipe2(fds, O_CLOEXEC))
        return errno;
    number = number_of(write(fds[1], "x", 1));
    close(fds[0]);
    close(fds[1]);
    return number;
}

int main(void)
{
    char line[512];

    while (fgets(line, sizeof(line), stdin)) {
        char *path = line + strcspn(line, " \n");

        line[strcspn(line, "\n")] = '\0';
        if (*path)
            *path++ = '\0';
        if (!strcmp(line, "clock")) {
            struct timespec wall;
            struct timespec steady;
            struct timeval day;

            clock_gettime(CLOCK_REALTIME, &wall);
            clock_gettime(CLOCK_MONOTONIC, &steady);
            gettimeofday(&day, NULL);
            printf("%lld %lld %lld %lld\n", (long long)wall.tv_sec, (long long)day.tv_sec,
                   (long long)time(NULL), (long long)steady.tv_sec);
        } else if (!strcmp(line, "env")) {
            printf("%d\n", getenv("LD_PRELOAD") || getenv("CHAOS_DISK_FAULTS"));
        } else if (!strcmp(line, "pipe")) {
            printf("%d\n", on_pipe());
        } else if (!strcmp(line, "folder")) {
            printf("%d\n", number_of(mkdir(path, 0700)));
        } else if (!strcmp(line, "remove")) {
            printf("%d\n", number_of(unlinkat(AT_FDCWD, path, 0)));
        } else {
            int fd = open(path, O_RDWR | (strcmp(line, "create") ? 0 : O_CREAT), 0600);
            int number = number_of(fd);

            if (!number && !strcmp(line, "write"))
                number = number_of(write(fd, "x", 1));
            if (!number && !strcmp(line, "overwrite"))
                number = number_of(pwrite(fd, "x", 1, 0));
            if (!number && !strcmp(line, "sync"))
                number = number_of(fsync(fd));
            if (!number && !strcmp(line, "datasync"))
                number = number_of(fdatasync(fd));
            if (fd >= 0)
                close(fd);
            printf("%d\n", number);
        }
        fflush(stdout);
    }
    return 0;
}
