/*
 * children_bench.c: starts real processes in an agent's child table, runs its event loop, and notes
 * what the table reports of them. Cases wait for these reports, never for time.
 */
#include "tests/lib/children_bench.h"

#include "base/mem.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define LATE_S 180

struct bench_worker *bench_worker(struct bench *bench, uint64_t number)
{
    return &bench->workers[number % BENCH_WORKERS];
}

static void on_spawned(void *arg, uint64_t incarnation, pid_t pid)
{
    struct bench_worker *worker = bench_worker(arg, incarnation);

    worker->disorder |= worker->pid || worker->failed || worker->ended;
    worker->pid = pid;
}

static void on_spawn_failed(void *arg, uint64_t incarnation, int code, const char *text)
{
    struct bench_worker *worker = bench_worker(arg, incarnation);

    worker->disorder |= worker->pid || worker->failed || worker->ended;
    worker->failed = code;
    snprintf(worker->why, sizeof(worker->why), "%s", text);
}

/* Notes output of a worker: its bytes, and the last part of its standard output. */
static void on_output(void *arg, uint64_t incarnation, enum msg_stream stream,
                      struct msg_bytes data)
{
    struct bench_worker *worker = bench_worker(arg, incarnation);

    worker->disorder |= !worker->pid || worker->ended || data.length == 0;
    worker->said_bytes += data.length;
    worker->error |= stream == STREAM_STDERR;
    if (stream == STREAM_STDOUT) {
        size_t have = strlen(worker->said);
        size_t room = sizeof(worker->said) - 1;
        size_t skip;

        if (data.length > room) {
            data.at += data.length - room;
            data.length = room;
        }
        skip = have + data.length > room ? have + data.length - room : 0;
        memmove(worker->said, worker->said + skip, have - skip);
        memcpy(worker->said + have - skip, data.at, data.length);
        worker->said[have - skip + data.length] = '\0';
    }
}

static void on_dying(void *arg, uint64_t incarnation)
{
    struct bench_worker *worker = bench_worker(arg, incarnation);

    worker->disorder |= !worker->pid || worker->dying++ || worker->ended;
}

static void on_ended(void *arg, uint64_t incarnation, enum msg_ended ended, int32_t value,
                     enum msg_witness witness)
{
    struct bench *bench = arg;
    struct bench_worker *worker = bench_worker(bench, incarnation);

    worker->disorder |= !worker->dying || worker->ended ||
                        !children_remains(bench->children, incarnation, &bench->remains);
    for (int i = 0; i < STREAM_COUNT; i++)
        snprintf(bench->tail[i], sizeof(bench->tail[i]), "%.*s",
                 (int)bench->remains.output[i].length, (const char *)bench->remains.output[i].at);
    worker->ended = ended;
    worker->value = value;
    worker->witness = witness;
}

static const struct children_ops ops = { on_spawned, on_spawn_failed, on_output, on_dying,
                                         on_ended };

static void on_late(evutil_socket_t fd, short what, void *arg)
{
    (void)fd;
    (void)what;
    ((struct bench *)arg)->late = true;
}

/* Called when the FIFO has text, or when its last writer has closed it. */
static void on_fifo(evutil_socket_t fd, short what, void *arg)
{
    struct bench *bench = arg;
    char text[256];

    (void)what;
    if (read(fd, text, sizeof(text)) == 0) {
        bench->gone = true;
        event_del(&bench->gone_event);
    }
}

int bench_descriptors(void)
{
    DIR *folder = opendir("/proc/self/fd");
    int count = -3; /* not counted: the descriptor of the listing, and the entries . and .. */

    while (folder && readdir(folder))
        count++;
    if (folder)
        closedir(folder);
    return count;
}

bool bench_open(struct bench *bench, struct test *t)
{
    const struct timeval late = { LATE_S, 0 };
    struct hvd_err err = { 0 };

    *bench = (struct bench){ .fifo_fd = -1 };
    snprintf(bench->dir, sizeof(bench->dir), "%s", test_dir(t));
    snprintf(bench->fifo, sizeof(bench->fifo), "%s/alive", bench->dir);
    bench->workers = mmap(NULL, BENCH_WORKERS * sizeof(*bench->workers), PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    bench->base = event_base_new();
    if (!bench->base || bench->workers == MAP_FAILED || mkfifo(bench->fifo, 0600))
        abort();
    bench->fifo_fd = open(bench->fifo, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    evtimer_assign(&bench->late_timer, bench->base, on_late, bench);
    event_assign(&bench->gone_event, bench->base, bench->fifo_fd, EV_READ | EV_PERSIST, on_fifo,
                 bench);
    if (event_add(&bench->late_timer, &late) || event_add(&bench->gone_event, NULL))
        abort();
    if (children_create(bench->base, &ops, bench, &bench->children, &err)) {
        test_fail(t, __FILE__, __LINE__, "%s", err.text);
        return false;
    }
    bench->fds = bench_descriptors();
    return true;
}

void bench_close(struct bench *bench)
{
    children_free(bench->children);
    if (event_initialized(&bench->late_timer)) {
        event_del(&bench->late_timer);
        event_del(&bench->gone_event);
    }
    if (bench->base)
        event_base_free(bench->base);
    if (bench->fifo_fd >= 0)
        close(bench->fifo_fd);
    if (bench->workers)
        munmap(bench->workers, BENCH_WORKERS * sizeof(*bench->workers));
}

uint64_t bench_spawn(struct bench *bench, const char *cwd, const char *const *argv)
{
    char incarnation[64];
    const char *env[] = { "PATH=/usr/bin:/bin", incarnation, "LAST=1", NULL };
    struct msg launch = { .type = MSG_LAUNCH, .incarnation = ++bench->count };

    while (argv[launch.u.launch.argv.count])
        launch.u.launch.argv.count++;
    launch.u.launch.argv.items = argv;
    launch.u.launch.cwd = cwd;
    snprintf(incarnation, sizeof(incarnation), "HVD_INCARNATION=%llu",
             (unsigned long long)bench->count);
    memset(bench_worker(bench, bench->count), 0, sizeof(struct bench_worker));
    children_spawn(bench->children, &launch, env);
    return bench->count;
}

uint64_t bench_shell(struct bench *bench, const char *format, ...)
{
    char command[2048];
    const char *argv[] = { "sh", "-c", command, NULL };
    va_list args;

    va_start(args, format);
    vsnprintf(command, sizeof(command), format, args);
    va_end(args);
    return bench_spawn(bench, "", argv);
}

bool bench_is_over(struct bench *bench, uint64_t number)
{
    const struct bench_worker *worker = bench_worker(bench, number);

    return worker->ended || worker->failed;
}

const char *bench_fifo(struct bench *bench, const char *name)
{
    static char path[300];

    snprintf(path, sizeof(path), "%s/%s", bench->dir, name);
    if (mkfifo(path, 0600))
        abort();
    return path;
}

pid_t bench_pid_said(struct bench *bench, uint64_t number, const char *after)
{
    const char *said = strstr(bench_worker(bench, number)->said, after);

    if (!said || !strchr(said, '\n'))
        return 0;
    return (pid_t)strtol(said + strlen(after), NULL, 10);
}

bool bench_tidy(struct bench *bench)
{
    return list_empty(&bench->children->all);
}

void bench_join(struct bench *bench, uint64_t number, pid_t pid, const char *fifo)
{
    char path[64];
    int fd = open(fifo, O_WRONLY | O_CLOEXEC); /* blocks until the FIFO has a reader */
    int length = snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)getpid(),
                          children_page(bench->children, number));

    children_joined(bench->children, number, pid);
    if (fd < 0 || write(fd, path, (size_t)length) != length)
        abort();
    close(fd);
}

void bench_turn(struct bench *bench)
{
    (void)event_base_loop(bench->base, EVLOOP_ONCE);
}
