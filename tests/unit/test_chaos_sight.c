/*
 * Programs of other names stand for the job's: cat, which waits for its standard input, by links
 * that are called as they are. The kernel calls a process as its file was called.
 */
#include "base/buf.h"
#include "base/rng.h"
#include "base/time.h"
#include "os/clock.h"
#include "os/process.h"
#include "tests/chaos/arena_folder.h"
#include "tests/chaos/sight.h"
#include "tests/lib/test.h"

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
    int in, hold; /* a pipe that nothing comes out of */
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

static void stage_clear(struct stage *stage)
{
    if (stage->in >= 0)
        close(stage->in);
    if (stage->hold >= 0)
        close(stage->hold);
    for (size_t i = 0; i < stage->cast_count; i++) {
        kill(stage->cast[i], SIGKILL);
        while (waitpid(stage->cast[i], NULL, 0) < 0 && errno == EINTR)
            continue;
    }
    if (stage->arena.folder[0])
        arena_folder_remove(&stage->arena);
}

/* 0: it could not be started. */
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
    return pid;
}

static const struct sight_process *seen(const struct sight *sight, pid_t pid)
{
    for (uint32_t i = 0; i < sight->count; i++)
        if (sight->processes[i].pid == pid)
            return &sight->processes[i];
    return NULL;
}

/* ---- who is seen -------------------------------------------------------------------------------
 */

static void knows_a_worker_by_its_environment(struct test *t)
{
    static struct sight sight;
    const struct sight_process *it;
    struct stage stage;
    struct rng rng;
    struct buf text;
    pid_t worker, foreign;

    buf_init(&text, 4096);
    rng_seed(&rng, 1);
    CHECK(t, stage_set(&stage));
    worker = enact(&stage, "apprentice", false, stage.arena.folder, "127.0.0.2", "1", "17");
    foreign = enact(&stage, "apprentice", false, "/nowhere", "127.0.0.2", "1", "17");
    CHECK(t, worker > 0 && foreign > 0);
    sight_take(&sight, &stage.arena);
    CHECK_INT(t, sight.count, ==, 1);
    CHECK(t, !seen(&sight, foreign));
    it = seen(&sight, worker);
    CHECK(t, it);
    CHECK_INT(t, it->kind, ==, SIGHT_WORKER);
    CHECK_INT(t, it->parent, ==, getpid());
    CHECK_INT(t, it->host, ==, 1);
    CHECK_INT(t, it->slot, ==, 1);
    CHECK_INT(t, it->incarnation, ==, 17);
    CHECK_INT(t, it->files, >=, 3);
    CHECK_INT(t, it->memories, ==, 0);
    CHECK_TEXT(t, it->name, "apprentice");
    CHECK_INT(t, sight_count(&sight, SIGHT_WORKER), ==, 1);
    CHECK(t, sight_pick(&sight, SIGHT_WORKER, -1, &rng) == it);
    CHECK(t, sight_pick(&sight, SIGHT_WORKER, 1, &rng) == it);
    CHECK(t, !sight_pick(&sight, SIGHT_WORKER, 0, &rng));
    CHECK(t, !sight_pick(&sight, SIGHT_AGENT, -1, &rng));
    sight_show(&sight, &text);
    CHECK_HAS(t, buf_text(&text), "host 1 slot 1 #17");
out:
    buf_release(&text);
    stage_clear(&stage);
}

static void tells_driver_keeper_and_the_rest_apart(struct test *t)
{
    static struct sight sight;
    struct stage stage;
    pid_t driver, keeper, agent, other;

    CHECK(t, stage_set(&stage));
    driver = enact(&stage, "hvd-elastic", false, stage.arena.folder, "", "", "");
    keeper = enact(&stage, "hvd-agent", true, stage.arena.folder, "", "", "");
    agent = enact(&stage, "hvd-agent", false, stage.arena.folder, "", "", "");
    other = enact(&stage, "scout", false, stage.arena.folder, "127.0.0.9", "x", "-1");
    CHECK(t, driver > 0 && keeper > 0 && agent > 0 && other > 0);
    sight_take(&sight, &stage.arena);
    CHECK_INT(t, sight.count, ==, 4);
    CHECK_INT(t, seen(&sight, driver)->kind, ==, SIGHT_DRIVER);
    CHECK_INT(t, seen(&sight, keeper)->kind, ==, SIGHT_KEEPER);
    CHECK_INT(t, seen(&sight, agent)->kind, ==, SIGHT_AGENT); /* without its keeper */
    CHECK_INT(t, seen(&sight, agent)->host, ==, -1);
    CHECK_INT(t, seen(&sight, other)->kind, ==, SIGHT_OTHER);
    CHECK_INT(t, seen(&sight, other)->host, ==, -1);
    CHECK_INT(t, seen(&sight, other)->incarnation, ==, 0);
out:
    stage_clear(&stage);
}

static void who_has_ended_is_not_seen(struct test *t)
{
    static struct sight sight;
    struct stage stage;
    siginfo_t ended;
    pid_t worker;

    CHECK(t, stage_set(&stage));
    worker = enact(&stage, "apprentice", false, stage.arena.folder, "127.0.0.1", "0", "1");
    CHECK(t, worker > 0);
    kill(worker, SIGSTOP);
    CHECK(t, waitpid(worker, NULL, WUNTRACED) == worker);
    sight_take(&sight, &stage.arena);
    CHECK_INT(t, sight.count, ==, 1);
    CHECK_INT(t, sight.processes[0].state, ==, 'T');
    kill(worker, SIGKILL);
    CHECK(t, !waitid(P_PID, (id_t)worker, &ended, WEXITED | WNOWAIT)); /* it stays a zombie */
    sight_take(&sight, &stage.arena);
    CHECK_INT(t, sight.count, ==, 0);
out:
    stage_clear(&stage);
}

/* A shell that starts one and becomes somebody who waits for nobody. */
static pid_t enact_careless(struct stage *stage)
{
    char file[ARENA_PATH], mark[ENV_BYTES];
    const char *argv[] = { "/bin/sh", "-c", "true & exec \"$0\"", NULL, NULL };
    const char *envp[] = { "PATH=/bin:/usr/bin", mark, NULL };
    struct process_spec spec = {
        .argv = argv, .envp = envp, .in = stage->in, .out = -1, .err = -1
    };
    pid_t pid = 0;

    argv[3] = arena_path(&stage->arena, "apprentice", file);
    snprintf(mark, sizeof(mark), "CHAOS_ARENA=%s", stage->arena.folder);
    if (symlink(CAT, file) || process_spawn(&spec, &pid, NULL))
        return 0;
    stage->cast[stage->cast_count++] = pid;
    return pid;
}

static void who_does_not_wait_for_its_child_is_found(struct test *t)
{
    static struct sight sight;
    int64_t deadline_us = clock_now_us() + TIME_MIN;
    const struct sight_process *it;
    struct stage stage;
    pid_t worker;

    CHECK(t, stage_set(&stage));
    worker = enact_careless(&stage);
    CHECK(t, worker > 0);
    do {
        CHECK(t, clock_now_us() < deadline_us);
        (void)poll(NULL, 0, 10);
        sight_take(&sight, &stage.arena);
        it = seen(&sight, worker);
    } while (!it || !it->unreaped);
    CHECK_INT(t, it->kind, ==, SIGHT_WORKER);
    CHECK_INT(t, it->unreaped, ==, 1);
    CHECK_INT(t, sight.count, ==, 1);
out:
    stage_clear(&stage);
}

static void picks_each_of_several(struct test *t)
{
    struct sight sight = { .count = 6 };
    uint32_t picked[6] = { 0 };
    struct rng rng;

    rng_seed(&rng, 7);
    for (uint32_t i = 0; i < sight.count; i++)
        sight.processes[i] = (struct sight_process){ .kind = i % 2 ? SIGHT_WORKER : SIGHT_AGENT,
                                                     .pid = (pid_t)i,
                                                     .host = (int)i / 2 };
    for (int i = 0; i < 200; i++)
        picked[sight_pick(&sight, SIGHT_WORKER, -1, &rng)->pid]++;
    for (uint32_t i = 0; i < sight.count; i++)
        CHECK(t, i % 2 ? picked[i] > 20 : picked[i] == 0);
out:
    return;
}

/* ---- what the discovery script does
 * --------------------------------------------------------------
 */

/* Its exit code, and what it has printed; -1 when it had to be ended. */
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

static void the_script_does_as_it_feels(struct test *t)
{
    struct stage stage;
    struct buf out;

    buf_init(&out, 4096);
    CHECK(t, stage_set(&stage));
    CHECK_OK(t, arena_list(&stage.arena, NULL));
    CHECK_INT(t, discover(&stage.arena, &out), ==, 0);
    CHECK_TEXT(t, buf_text(&out), "127.0.0.1:2\n127.0.0.2:2\n127.0.0.3:2\n");
    buf_clear(&out);
    stage.arena.hosts[1].listed = false;
    CHECK_OK(t, arena_list(&stage.arena, NULL));
    CHECK_INT(t, discover(&stage.arena, &out), ==, 0);
    CHECK_TEXT(t, buf_text(&out), "127.0.0.1:2\n127.0.0.3:2\n");
    CHECK_INT(t, arena_whole(&stage.arena), ==, 4);
    buf_clear(&out);
    CHECK_OK(t, arena_mood(&stage.arena, "fail", NULL));
    CHECK_INT(t, discover(&stage.arena, &out), ==, 3);
    CHECK_OK(t, arena_mood(&stage.arena, "empty", NULL));
    CHECK_INT(t, discover(&stage.arena, &out), ==, 0);
    CHECK_TEXT(t, buf_text(&out), "");
    CHECK_OK(t, arena_mood(&stage.arena, "rubbish", NULL));
    CHECK_INT(t, discover(&stage.arena, &out), ==, 0);
    CHECK_HAS(t, buf_text(&out), "Traceback");
    buf_clear(&out);
    CHECK_OK(t, arena_mood(&stage.arena, NULL, NULL));
    CHECK_INT(t, discover(&stage.arena, &out), ==, 0);
    CHECK_TEXT(t, buf_text(&out), "127.0.0.1:2\n127.0.0.3:2\n");
out:
    buf_release(&out);
    stage_clear(&stage);
}

TESTS(CASE_FLAGS(knows_a_worker_by_its_environment, TEST_NO_TORTURE),
      CASE_FLAGS(tells_driver_keeper_and_the_rest_apart, TEST_NO_TORTURE),
      CASE_FLAGS(who_has_ended_is_not_seen, TEST_NO_TORTURE),
      CASE_FLAGS(who_does_not_wait_for_its_child_is_found, TEST_NO_TORTURE),
      CASE(picks_each_of_several), CASE_FLAGS(the_script_does_as_it_feels, TEST_NO_TORTURE))
