/*
 * The scan of /proc for the processes of a job. Links to cat, which waits for its standard input,
 * stand for the job's programs: the kernel names a process after the file that was run.
 */
#include "base/buf.h"
#include "base/rng.h"
#include "base/time.h"
#include "os/clock.h"
#include "os/process.h"
#include "tests/chaos/arena_folder.h"
#include "tests/chaos/proc_scan.h"
#include "tests/lib/fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define CAT       "/bin/cat"
#define ENV_BYTES 256
#define CAST_MAX  8

struct stage {
    struct chaos_plan plan;
    struct arena arena;
    int in, hold; /* a pipe without data */
    pid_t cast[CAST_MAX];
    size_t cast_count;
};

static bool stage_set(struct stage *stage)
{
    int ends[2];

    memset(stage, 0, sizeof(*stage));
    stage->in = stage->hold = -1;
    for (uint32_t i = 0; i < 3; i++) {
        struct arena_host *host = &stage->arena.hosts[stage->arena.host_count++];

        snprintf(host->name, sizeof(host->name), "127.0.0.%u", (unsigned)i + 1);
        host->slots = 2;
        host->listed = true;
    }
    if (arena_folder_make(&stage->arena, NULL) || pipe2(ends, O_CLOEXEC))
        return false;
    stage->in = ends[0];
    stage->hold = ends[1];
    return true;
}

/* Waits until the environment of a process that has just been started can be read: the spawn is
 * over when its descriptors are closed, a moment before that. False: the process is gone. */
static bool await_environment(pid_t pid)
{
    char path[64], byte;
    ssize_t got = 0;
    int fd;

    snprintf(path, sizeof(path), "/proc/%d/environ", pid);
    while (!got) {
        fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd < 0)
            return false;
        got = read(fd, &byte, 1);
        close(fd);
    }
    return got > 0;
}

/* Starts a program under this name. 0: it could not be started. */
static pid_t enact(struct stage *stage, const char *name, bool session, const char *folder,
                   const char *host, const char *slot, const char *incarnation)
{
    char file[ARENA_PATH], mark[ENV_BYTES], env[3][ENV_BYTES];
    const char *argv[] = { arena_path(&stage->arena, name, file), NULL };
    const char *envp[] = { "PATH=/bin:/usr/bin", mark, env[0], env[1], env[2], NULL };
    struct process_spec spec = {
        .argv = argv, .envp = envp, .in = stage->in, .out = -1, .err = -1, .session = session
    };
    pid_t pid = 0;

    snprintf(mark, sizeof(mark), "CHAOS_ARENA=%s", folder);
    snprintf(env[0], sizeof(env[0]), "HVD_HOST=%s", host);
    snprintf(env[1], sizeof(env[1]), "HVD_SLOT=%s", slot);
    snprintf(env[2], sizeof(env[2]), "HVD_INCARNATION=%s", incarnation);
    if (access(file, F_OK) && symlink(CAT, file))
        return 0;
    if (stage->cast_count == CAST_MAX || process_spawn(&spec, &pid, NULL))
        return 0;
    stage->cast[stage->cast_count++] = pid;
    return await_environment(pid) ? pid : 0;
}

static const struct proc_info *seen(const struct proc_scan *scan, pid_t pid)
{
    for (uint32_t i = 0; i < scan->count; i++)
        if (scan->processes[i].pid == pid)
            return &scan->processes[i];
    return NULL;
}

/* ---- the processes that the scan finds ---- */

static struct stage own;
static struct proc_scan scan;

static void begin(struct test *t)
{
    CHECK(t, stage_set(&own));
}

static void end(struct test *t)
{
    (void)t;
    if (own.in >= 0)
        close(own.in);
    if (own.hold >= 0)
        close(own.hold);
    for (size_t i = 0; i < own.cast_count; i++) {
        kill(own.cast[i], SIGKILL);
        while (waitpid(own.cast[i], NULL, 0) < 0 && errno == EINTR)
            continue;
    }
    if (own.arena.folder[0])
        arena_folder_remove(&own.arena);
}
FIXTURE(begin, end)

TEST_FLAGS(knows_a_worker_by_its_environment, TEST_NO_TORTURE)
{
    const struct proc_info *it;
    struct rng rng;
    struct buf text;
    pid_t worker, foreign;

    buf_init(&text, 4096);
    rng_seed(&rng, 1);
    worker = enact(&own, "chaos_trainer", false, own.arena.folder, "127.0.0.2", "1", "17");
    foreign = enact(&own, "chaos_trainer", false, "/nowhere", "127.0.0.2", "1", "17");
    CHECK(t, worker > 0 && foreign > 0);
    proc_scan_take(&scan, &own.arena);
    CHECK_INT(t, scan.count, ==, 1);
    CHECK(t, !seen(&scan, foreign));
    it = seen(&scan, worker);
    CHECK(t, it);
    CHECK_INT(t, it->kind, ==, PROC_WORKER);
    CHECK_INT(t, it->parent, ==, getpid());
    CHECK_INT(t, it->host, ==, 1);
    CHECK_INT(t, it->slot, ==, 1);
    CHECK_INT(t, it->incarnation, ==, 17);
    CHECK_INT(t, it->files, >=, 3);
    CHECK_INT(t, it->memories, ==, 0);
    CHECK_TEXT(t, it->name, "chaos_trainer");
    CHECK_INT(t, proc_scan_count(&scan, PROC_WORKER), ==, 1);
    CHECK(t, proc_scan_pick(&scan, PROC_WORKER, -1, &rng) == it);
    CHECK(t, proc_scan_pick(&scan, PROC_WORKER, 1, &rng) == it);
    CHECK(t, !proc_scan_pick(&scan, PROC_WORKER, 0, &rng));
    CHECK(t, !proc_scan_pick(&scan, PROC_AGENT, -1, &rng));
    proc_scan_show(&scan, &text);
    CHECK_HAS(t, buf_text(&text), "host 1 slot 1 #17");
    buf_release(&text);
}

TEST_FLAGS(tells_driver_keeper_and_the_rest_apart, TEST_NO_TORTURE)
{
    pid_t driver, keeper, agent, other;

    driver = enact(&own, "hvd-elastic", false, own.arena.folder, "", "", "");
    keeper = enact(&own, "hvd-agent", true, own.arena.folder, "", "", "");
    agent = enact(&own, "hvd-agent", false, own.arena.folder, "", "", "");
    other = enact(&own, "scout", false, own.arena.folder, "127.0.0.9", "x", "-1");
    CHECK(t, driver > 0 && keeper > 0 && agent > 0 && other > 0);
    proc_scan_take(&scan, &own.arena);
    CHECK_INT(t, scan.count, ==, 4);
    CHECK_INT(t, seen(&scan, driver)->kind, ==, PROC_DRIVER);
    own.arena.driver = driver; /* the one that the campaign has started is its parent */
    proc_scan_take(&scan, &own.arena);
    CHECK_INT(t, seen(&scan, driver)->kind, ==, PROC_FRONT);
    CHECK_INT(t, seen(&scan, keeper)->kind, ==, PROC_KEEPER);
    CHECK_INT(t, seen(&scan, agent)->kind, ==, PROC_AGENT); /* without its keeper */
    CHECK_INT(t, seen(&scan, agent)->host, ==, -1);
    CHECK_INT(t, seen(&scan, other)->kind, ==, PROC_OTHER);
    CHECK_INT(t, seen(&scan, other)->host, ==, -1);
    CHECK_INT(t, seen(&scan, other)->incarnation, ==, 0);
}

TEST_FLAGS(an_ended_process_is_not_seen, TEST_NO_TORTURE)
{
    siginfo_t ended;
    pid_t worker;

    worker = enact(&own, "chaos_trainer", false, own.arena.folder, "127.0.0.1", "0", "1");
    CHECK(t, worker > 0);
    kill(worker, SIGSTOP);
    CHECK(t, waitpid(worker, NULL, WUNTRACED) == worker);
    proc_scan_take(&scan, &own.arena);
    CHECK_INT(t, scan.count, ==, 1);
    CHECK_INT(t, scan.processes[0].state, ==, 'T');
    kill(worker, SIGKILL);
    /* the worker stays a zombie */
    CHECK(t, !waitid(P_PID, (id_t)worker, &ended, WEXITED | WNOWAIT));
    proc_scan_take(&scan, &own.arena);
    CHECK_INT(t, scan.count, ==, 0);
}

/* A shell that starts a process and then becomes a program that waits for no child. The process
 * ends by a signal only: the shell would reap a process that ends before the shell has become the
 * other program. */
static pid_t enact_careless(struct stage *stage)
{
    char file[ARENA_PATH], mark[ENV_BYTES];
    const char *argv[] = { "/bin/sh", "-c", "sleep 600 & exec \"$0\"", NULL, NULL };
    const char *envp[] = { "PATH=/bin:/usr/bin", mark, NULL };
    struct process_spec spec = {
        .argv = argv, .envp = envp, .in = stage->in, .out = -1, .err = -1
    };
    pid_t pid = 0;

    argv[3] = arena_path(&stage->arena, "chaos_trainer", file);
    snprintf(mark, sizeof(mark), "CHAOS_ARENA=%s", stage->arena.folder);
    if (symlink(CAT, file) || process_spawn(&spec, &pid, NULL))
        return 0;
    stage->cast[stage->cast_count++] = pid;
    return pid;
}

/* The process in the scan that this one has started; NULL: none. */
static const struct proc_info *child_of(pid_t parent)
{
    for (uint32_t i = 0; i < scan.count; i++)
        if (scan.processes[i].parent == parent)
            return &scan.processes[i];
    return NULL;
}

TEST_FLAGS(a_process_with_an_unreaped_child_is_found, TEST_NO_TORTURE)
{
    int64_t deadline_us = clock_now_us() + 3 * TIME_MIN;
    const struct proc_info *it, *child;
    pid_t worker;

    worker = enact_careless(&own);
    CHECK(t, worker > 0);
    do {
        CHECK(t, clock_now_us() < deadline_us);
        (void)poll(NULL, 0, 10);
        proc_scan_take(&scan, &own.arena);
        it = seen(&scan, worker);
        child = child_of(worker);
        if (it && it->kind == PROC_WORKER && child)
            kill(child->pid, SIGKILL);
    } while (!it || !it->unreaped);
    CHECK_INT(t, it->kind, ==, PROC_WORKER);
    CHECK_INT(t, it->unreaped, ==, 1);
    CHECK_INT(t, scan.count, ==, 1);
}

TEST(picks_each_of_several)
{
    uint32_t picked[6] = { 0 };
    struct rng rng;

    scan.count = 6;
    rng_seed(&rng, 7);
    for (uint32_t i = 0; i < scan.count; i++)
        scan.processes[i] = (struct proc_info){ .kind = i % 2 ? PROC_WORKER : PROC_AGENT,
                                                .pid = (pid_t)i,
                                                .host = (int)i / 2 };
    for (int i = 0; i < 200; i++)
        picked[proc_scan_pick(&scan, PROC_WORKER, -1, &rng)->pid]++;
    for (uint32_t i = 0; i < scan.count; i++)
        CHECK(t, i % 2 ? picked[i] > 20 : picked[i] == 0);
}

/* ---- what the discovery script does
 * --------------------------------------------------------------
 */

/* Runs the discovery script. Returns its exit code; -1: the script had to be ended. */
static int discover(const struct arena *arena, struct buf *out)
{
    char file[ARENA_PATH], mark[ENV_BYTES], part[512];
    const char *argv[] = { arena_path(arena, "discover", file), NULL };
    const char *envp[] = { "PATH=/bin:/usr/bin", mark, NULL };
    int memory = memfd_create("printed", MFD_CLOEXEC);
    struct process_spec spec = { .argv = argv, .envp = envp, .in = -1, .out = memory, .err = -1 };
    int status = -1;
    ssize_t got;
    pid_t pid;

    snprintf(mark, sizeof(mark), "CHAOS_ARENA=%s", arena->folder);
    if (memory >= 0 && !process_spawn(&spec, &pid, NULL) && waitpid(pid, &status, 0) == pid) {
        got = pread(memory, part, sizeof(part), 0);
        if (got < 0 || buf_append(out, part, (size_t)got))
            status = -1;
    }
    close(memory);
    return status < 0 || !WIFEXITED(status) ? -1 : WEXITSTATUS(status);
}

TEST_FLAGS(the_discovery_script_varies_its_answer, TEST_NO_TORTURE)
{
    struct buf out;

    buf_init(&out, 4096);
    CHECK_OK(t, arena_list(&own.arena, NULL));
    CHECK_INT(t, discover(&own.arena, &out), ==, 0);
    CHECK_TEXT(t, buf_text(&out), "127.0.0.1:2\n127.0.0.2:2\n127.0.0.3:2\n");
    buf_clear(&out);
    own.arena.hosts[1].listed = false;
    CHECK_OK(t, arena_list(&own.arena, NULL));
    CHECK_INT(t, discover(&own.arena, &out), ==, 0);
    CHECK_TEXT(t, buf_text(&out), "127.0.0.1:2\n127.0.0.3:2\n");
    CHECK_INT(t, arena_whole(&own.arena), ==, 4);
    buf_clear(&out);
    CHECK_OK(t, arena_mood(&own.arena, "fail", NULL));
    CHECK_INT(t, discover(&own.arena, &out), ==, 3);
    CHECK_OK(t, arena_mood(&own.arena, "empty", NULL));
    CHECK_INT(t, discover(&own.arena, &out), ==, 0);
    CHECK_TEXT(t, buf_text(&out), "");
    CHECK_OK(t, arena_mood(&own.arena, "rubbish", NULL));
    CHECK_INT(t, discover(&own.arena, &out), ==, 0);
    CHECK_HAS(t, buf_text(&out), "Traceback");
    buf_clear(&out);
    CHECK_OK(t, arena_mood(&own.arena, NULL, NULL));
    CHECK_INT(t, discover(&own.arena, &out), ==, 0);
    CHECK_TEXT(t, buf_text(&out), "127.0.0.1:2\n127.0.0.3:2\n");
    buf_release(&out);
}
