/*
 * test_snapshot_hold.c: state/snapshot/snapshot_hold.c: the agent holds a commit while the worker
 * writes others, in one process, in two threads and in two processes, one of which is killed.
 */
#include "state/snapshot/snapshot_hold.h"

#include "base/rng.h"
#include "base/time.h"
#include "os/clock.h"
#include "state/sum.h"
#include "tests/lib/fixture.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHUNK STATE_CHUNK_BYTES
#ifdef __SANITIZE_THREAD__
#define WITH_THREAD_SANITIZER true
#elif defined(__has_feature)
#define WITH_THREAD_SANITIZER __has_feature(thread_sanitizer)
#else
#define WITH_THREAD_SANITIZER false
#endif
/* Each hold takes so much longer under ThreadSanitizer. */
#define HOLDS      (WITH_THREAD_SANITIZER ? 300 : 3000)
#define DEATHS     100
#define PATIENCE_S 100

static const struct snapshot_shape small = { .manifest = 7,
                                             .replicated_bytes = CHUNK,
                                             .bytes = CHUNK };

static struct snapshot *worker;
static struct snapshot *agent; /* another mapping of the same memory */

static void begin(struct test *t)
{
    worker = agent = NULL;
    CHECK_OK(t, snapshot_create(&small, &agent, NULL));
    CHECK_OK(t, snapshot_open(dup(snapshot_fd(agent)), &small, &worker, NULL));
}

static void end(struct test *t)
{
    (void)t;
    snapshot_free(worker);
    snapshot_free(agent);
}
FIXTURE(begin, end)

/* Fills a chunk with one word, which depends on the commit alone. Few large copies are fast, also
 * under a sanitizer. */
static void fill(uint8_t *bytes, uint64_t commit)
{
    uint64_t word = commit * UINT64_C(0x9e3779b97f4a7c15);

    memcpy(bytes, &word, sizeof(word));
    for (size_t filled = sizeof(word); filled < CHUNK; filled *= 2)
        memcpy(bytes + filled, bytes, filled);
}

/* true: each byte of the chunk is of this commit, and the checksum is right. */
static bool is_of(const uint8_t *bytes, uint64_t sum, uint64_t commit)
{
    uint64_t word = commit * UINT64_C(0x9e3779b97f4a7c15);

    return !memcmp(bytes, &word, sizeof(word)) &&
           !memcmp(bytes, bytes + sizeof(word), CHUNK - sizeof(word)) &&
           sum_of(bytes, CHUNK) == sum;
}

static uint8_t *write_commit(struct snapshot *snapshot, uint64_t commit)
{
    uint8_t *bytes = snapshot_begin(snapshot);

    snapshot_set_sum(snapshot, 0, SUM_NONE);
    fill(bytes, commit);
    snapshot_set_sum(snapshot, 0, sum_of(bytes, CHUNK));
    snapshot_end(snapshot, commit);
    return bytes;
}

static bool holds(struct snapshot *snapshot, uint64_t commit)
{
    return snapshot_hold_commit(snapshot) == commit && snapshot_hold_stands(snapshot) &&
           is_of(snapshot_hold_bytes(snapshot), snapshot_hold_sum(snapshot, 0), commit);
}

static uint64_t blocks_of(const struct snapshot *snapshot)
{
    struct stat st = { 0 };

    return fstat(snapshot_fd(snapshot), &st) ? 0 : (uint64_t)st.st_blocks * 512;
}

TEST(a_held_commit_stays)
{
    struct msg_held held[2];
    uint64_t before;

    for (uint64_t i = 1; i <= 4; i++)
        write_commit(worker, i);
    before = blocks_of(agent);
    snapshot_hold(agent, 0);
    CHECK(t, holds(agent, 4));
    for (uint64_t i = 5; i <= 12; i++) {
        write_commit(worker, i);
        CHECK(t, holds(agent, 4));
        CHECK_INT(t, snapshot_held(agent, held), ==, 2);
        CHECK_INT(t, held[0].commit, ==, i);
        CHECK_INT(t, held[1].commit, ==, i - 1);
    }
    CHECK_INT(t, blocks_of(agent), >=, before + CHUNK); /* the third buffer has memory now */
    snapshot_hold_end(agent);
    CHECK_INT(t, snapshot_hold_commit(agent), ==, 0);
    CHECK(t, !snapshot_hold_bytes(agent) && !snapshot_hold_stands(agent));
    for (uint64_t i = 13; i <= 16; i++)
        write_commit(worker, i);
    CHECK(t, !snapshot_find(agent, 4));
}

/* Without a hold no byte of the third buffer is written. */
TEST(a_third_buffer_takes_no_memory_before_a_hold)
{
    for (uint64_t i = 1; i <= 9; i++)
        write_commit(worker, i);
    CHECK_INT(t, blocks_of(agent), <, 3 * CHUNK);
}

TEST(a_hold_awaits_the_first_commit_from_a_number)
{
    uint32_t bell;

    write_commit(worker, 1);
    snapshot_hold(agent, 3);
    CHECK_INT(t, snapshot_hold_commit(agent), ==, 0);
    bell = snapshot_bell(agent);
    write_commit(worker, 2);
    CHECK_INT(t, snapshot_hold_commit(agent), ==, 0);
    CHECK_INT(t, snapshot_bell(agent), ==, bell);
    for (uint64_t i = 3; i <= 6; i++)
        write_commit(worker, i);
    CHECK(t, snapshot_bell(agent) != bell);
    CHECK(t, holds(agent, 3));
    snapshot_hold(agent, 9); /* the hold of 3 ends */
    write_commit(worker, 11);
    CHECK(t, holds(agent, 11));
    snapshot_hold(agent, 10); /* the worker is past 10 */
    CHECK(t, holds(agent, 11));
}

/* The worker is dead, and another rank had not come as far: the commit before the newest is held.
 */
TEST(a_hold_of_one_commit_takes_no_other)
{
    for (uint64_t i = 1; i <= 5; i++)
        write_commit(worker, i);
    snapshot_hold_only(agent, 4);
    CHECK(t, holds(agent, 4));
    snapshot_hold_only(agent, 5);
    CHECK(t, holds(agent, 5));
    snapshot_hold_only(agent, 2); /* written over long ago */
    CHECK_INT(t, snapshot_hold_commit(agent), ==, 0);
    snapshot_hold_only(agent, 6); /* not there yet, and not awaited */
    write_commit(worker, 6);
    write_commit(worker, 7);
    CHECK_INT(t, snapshot_hold_commit(agent), ==, 6);
    write_commit(worker, 8);
    CHECK(t, holds(agent, 6));
    snapshot_hold_end(agent);
}

TEST(a_hold_of_the_newest_awaits_the_first_commit_of_all)
{
    snapshot_hold(agent, 0);
    CHECK_INT(t, snapshot_hold_commit(agent), ==, 0);
    write_commit(worker, 1);
    write_commit(worker, 2);
    CHECK(t, holds(agent, 1));
}

/* At a switch the newest commit gets the number of the first commit of the next round. */
TEST(a_new_number_counts_as_a_commit)
{
    write_commit(worker, 1);
    snapshot_hold(agent, 5);
    snapshot_rename(worker, 5);
    CHECK_INT(t, snapshot_hold_commit(agent), ==, 5);
    write_commit(worker, 6);
    write_commit(worker, 7);
    CHECK(t, is_of(snapshot_hold_bytes(agent), snapshot_hold_sum(agent, 0), 1));
    snapshot_hold(agent, 0);
    snapshot_rename(worker, 9); /* the held commit gets another number, and stays */
    write_commit(worker, 10);
    write_commit(worker, 11);
    CHECK(t, holds(agent, 7));
}

/* A worker that has read the number of an earlier hold marks a commit that is too old for this one.
 * The other mapping stands for that worker. */
TEST(a_mark_for_an_earlier_hold_does_not_count)
{
    write_commit(worker, 1);
    snapshot_hold(agent, 4);
    snapshot_hold(worker, 1);
    CHECK_INT(t, snapshot_hold_commit(worker), ==, 1);
    CHECK_INT(t, snapshot_hold_commit(agent), ==, 0);
    CHECK(t, !snapshot_hold_stands(worker));
    write_commit(worker, 3);
    CHECK_INT(t, snapshot_hold_commit(agent), ==, 0);
    write_commit(worker, 5);
    write_commit(worker, 6);
    CHECK(t, holds(agent, 5));
}

/* A fetch of the agent has filled the replicated part of a buffer. The worker goes on in that
 * buffer, though the hold has ended meanwhile. */
TEST(a_buffer_that_was_opened_is_opened_again)
{
    const uint8_t *opened;

    write_commit(worker, 1);
    write_commit(worker, 2);
    snapshot_hold(agent, 0);
    write_commit(worker, 3);
    opened = snapshot_begin(agent);
    snapshot_hold_end(agent);
    CHECK(t, snapshot_begin(worker) - opened == snapshot_find(worker, 3) - snapshot_find(agent, 3));
    snapshot_end(worker, 4);
    CHECK(t, snapshot_find(agent, 4) == opened);
}

TEST(a_writer_without_memory_takes_its_buffer_back)
{
    const uint8_t *held;
    uint32_t bell;

    CHECK(t, !snapshot_take_back(worker)); /* there is no hold */
    write_commit(worker, 1);
    snapshot_hold(agent, 0);
    held = snapshot_hold_bytes(agent);
    CHECK(t, !snapshot_take_back(worker)); /* the newest commit is never lost */
    CHECK(t, holds(agent, 1));
    write_commit(worker, 2);
    bell = snapshot_bell(agent);
    (void)snapshot_begin(worker);
    CHECK(t, snapshot_take_back(worker));
    CHECK(t, !snapshot_hold_stands(agent));
    CHECK(t, snapshot_bell(agent) != bell);
    write_commit(worker, 3);
    CHECK(t, snapshot_find(agent, 3) == held);
    write_commit(worker, 4); /* the hold does not come back by itself */
    CHECK(t, !snapshot_hold_stands(agent));
    snapshot_hold(agent, 0);
    CHECK(t, holds(agent, 4));
}

/* ---- two threads, two processes ---------------------------------------------------------------
 */

static struct snapshot *shared; /* of both threads, so that ThreadSanitizer sees the memory */
static _Atomic bool over;

/* Writes commits as fast as it can. */
static void *write_until_over(void *arg)
{
    uint64_t *ret_commits = arg;

    while (!atomic_load(&over))
        write_commit(shared, ++*ret_commits);
    return NULL;
}

/* Holds a commit, waits until there is one, checks each byte, and ends the hold. `turn` chooses
 * whether the newest commit or a later one is held. Returns a text that says what is wrong. */
static const char *hold_once(struct snapshot *snapshot, uint64_t turn)
{
    uint64_t from = turn % 2 ? 0 : snapshot_newest(snapshot) + turn % 5;
    int64_t until_us = clock_now_us() + PATIENCE_S * TIME_S;
    uint64_t commit;

    snapshot_hold(snapshot, from);
    for (;;) {
        uint32_t bell = snapshot_bell(snapshot);

        commit = snapshot_hold_commit(snapshot);
        if (commit)
            break;
        if (clock_now_us() > until_us)
            return "no commit is held";
        snapshot_await_bell(snapshot, bell, TIME_S);
    }
    if (commit < from)
        return "the held commit is too old";
    for (uint64_t i = 0; i <= turn % 3; i++) {
        if (!is_of(snapshot_hold_bytes(snapshot), snapshot_hold_sum(snapshot, 0), commit))
            return "the held commit has changed";
    }
    if (!snapshot_hold_stands(snapshot))
        return "the hold was lost";
    snapshot_hold_end(snapshot);
    return "";
}

TEST_FLAGS(one_thread_writes_and_one_holds, TEST_NO_TORTURE)
{
    const char *wrong = "";
    uint64_t commits = 0;
    pthread_t thread;

    shared = agent;
    atomic_store(&over, false);
    CHECK(t, !pthread_create(&thread, NULL, write_until_over, &commits));
    for (uint64_t i = 0; i < HOLDS && !*wrong; i++)
        wrong = hold_once(agent, i);
    atomic_store(&over, true);
    pthread_join(thread, NULL);
    CHECK_TEXT(t, wrong, "");
    CHECK_INT(t, commits, >, HOLDS / 10);
}

static pid_t start_writer(void)
{
    pid_t pid = fork();

    if (pid == 0) {
        struct snapshot *own;
        uint64_t commit;

        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (snapshot_open(dup(snapshot_fd(agent)), &small, &own, NULL))
            _exit(99);
        for (commit = snapshot_newest(own);;)
            write_commit(own, ++commit);
    }
    return pid;
}

TEST_FLAGS(one_process_writes_and_one_holds, TEST_NO_TORTURE)
{
    const char *wrong = "";
    pid_t pid = start_writer();

    CHECK(t, pid > 0);
    for (uint64_t i = 0; i < HOLDS && !*wrong; i++)
        wrong = hold_once(agent, i);
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    CHECK_TEXT(t, wrong, "");
    CHECK_INT(t, snapshot_newest(agent), >, HOLDS / 10);
}

/* true: all commits that count are whole. No process writes meanwhile. */
static bool all_is_whole(void)
{
    struct msg_held held[2];
    size_t count = snapshot_held(agent, held);

    for (size_t i = 0; i < count; i++)
        if (!is_of(snapshot_find(agent, held[i].commit),
                   snapshot_chunk_sum(agent, held[i].commit, 0), held[i].commit))
            return false;
    return count == 0 || held[0].commit == snapshot_newest(agent);
}

/* The writer is killed at any moment of commits and holds. Its newest commit is whole, the held
 * commit stays, and the next writer goes on. */
TEST_FLAGS(a_writer_may_die_while_a_commit_is_held, TEST_NO_TORTURE)
{
    struct rng rng;

    rng_seed(&rng, 5);
    for (int i = 0; i < DEATHS; i++) {
        uint64_t before = snapshot_newest(agent);
        const char *wrong = "";
        pid_t pid = start_writer();
        uint64_t commit;

        CHECK(t, pid > 0);
        for (uint64_t k = rng_below(&rng, 20); k && !*wrong; k--)
            wrong = hold_once(agent, k);
        snapshot_hold(agent, rng_below(&rng, 2) ? 0 : snapshot_newest(agent) + rng_below(&rng, 3));
        for (volatile uint64_t k = rng_below(&rng, 300000); k; k--)
            ;
        kill(pid, SIGKILL);
        waitpid(pid, NULL, 0);
        CHECK_TEXT(t, wrong, "");
        CHECK(t, snapshot_newest(agent) >= before && all_is_whole());
        commit = snapshot_hold_commit(agent);
        CHECK(t, !commit || holds(agent, commit));
        if (rng_below(&rng, 2)) {
            write_commit(agent, snapshot_newest(agent) + 1); /* the writer's successor */
            write_commit(agent, snapshot_newest(agent) + 1);
            CHECK(t, !commit || holds(agent, commit));
            CHECK(t, all_is_whole());
        }
        snapshot_hold_end(agent);
    }
}
