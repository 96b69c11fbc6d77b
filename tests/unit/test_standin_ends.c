/* The stand-in of NCCL: operations and communicators that fail, are revoked, aborted or shrunk.
 * A play is the function that each member's thread runs; a member is warm after its first
 * reduction. */
#include "os/clock.h"
#include "os/thread.h"
#include "tests/lib/fake_gpu.h"
#include "tests/lib/fixture.h"
#include "tests/lib/nccl_team.h"

#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define COUNT    1000
#define LOOKS    20
#define SHORT_US 20000

/* ---- what members do ------------------------------------------------------------------------- */

static int reduce(struct team_member *member)
{
    return member->nccl->allreduce(member->in, member->out, COUNT, NCCL_FLOAT32, NCCL_SUM,
                                   member->comm, member->stream);
}

/* Reduces on all members, so that all connections are open. true: the result is right. */
static bool is_warm(struct team_member *member)
{
    return team_ended(member, reduce(member)) == 0;
}

static bool is_in_progress(struct team_member *member)
{
    int state = -1;

    for (int i = 0; i < LOOKS; i++) {
        if (member->nccl->async_error(member->comm, &state) || state != NCCL_IN_PROGRESS)
            return false;
        sched_yield();
    }
    return true;
}

static bool is_running(struct team_member *member)
{
    for (int i = 0; i < LOOKS; i++) {
        if (member->cuda->stream_query(member->stream) != CUDA_NOT_READY)
            return false;
        sched_yield();
    }
    return true;
}

static bool is_spoiled(const struct team_member *member)
{
    for (size_t i = 0; i < COUNT * sizeof(float); i++)
        if ((uint8_t)member->out_seen[i] != 0xee)
            return false;
    return true;
}

static int state_of(struct team_member *member)
{
    int state = -1;
    int code = member->nccl->async_error(member->comm, &state);

    return code ? code : state;
}

static int end_it(struct team_member *member)
{
    int code = member->nccl->revoke_comm(member->comm, 0);

    return code == NCCL_IN_PROGRESS ? team_settled(member) : code;
}

/* ---- a member that comes late ---- */

/* Rank 0 reduces first and waits for rank 1; then rank 1 is first. The early call is in progress
 * until the late member comes. */
static void play_late(struct team_member *member)
{
    if (member->rank == 0) {
        TEAM_CHECK(member, reduce(member) == NCCL_IN_PROGRESS);
        TEAM_CHECK(member, is_in_progress(member));
    }
    team_meet(member);
    TEAM_CHECK(member,
               team_ended(member, member->rank == 0 ? NCCL_IN_PROGRESS : reduce(member)) == 0);
    team_meet(member);
    if (member->rank == 1) {
        TEAM_CHECK(member, reduce(member) == NCCL_IN_PROGRESS);
        TEAM_CHECK(member, team_settled(member) == NCCL_OK);
        TEAM_CHECK(member, is_running(member));
    }
    team_meet(member);
    TEAM_CHECK(member, team_ended(member, member->rank == 1 ? NCCL_OK : reduce(member)) == 0);
}

TEAM_CASE(late_members_are_awaited, 2, play_late)

/* ---- revoke and abort ------------------------------------------------------------------------ */

/* Rank 0 reduces alone, so its kernel waits, and revokes: the kernel ends, its result is spoiled,
 * and later calls are refused. */
static void play_revoke(struct team_member *member)
{
    TEAM_CHECK(member, is_warm(member));
    team_meet(member);
    if (member->rank)
        return;
    TEAM_CHECK(member, reduce(member) == NCCL_IN_PROGRESS);
    TEAM_CHECK(member, team_settled(member) == NCCL_OK);
    TEAM_CHECK(member, is_running(member));
    TEAM_CHECK(member, end_it(member) == NCCL_OK);
    TEAM_CHECK(member, member->cuda->stream_query(member->stream) == CUDA_OK);
    TEAM_CHECK(member, is_spoiled(member));
    TEAM_CHECK(member, reduce(member) == NCCL_INVALID_USAGE);
    TEAM_CHECK(member, strstr(member->nccl->last_error(NULL), "revoked"));
    TEAM_CHECK(member, member->nccl->revoke_comm(member->comm, 0) == NCCL_INVALID_ARGUMENT);
}

TEAM_CASE(revoke_ends_a_kernel, 2, play_revoke)

static void play_revoke_early(struct team_member *member)
{
    if (member->rank)
        return;
    TEAM_CHECK(member, reduce(member) == NCCL_IN_PROGRESS);
    TEAM_CHECK(member, is_in_progress(member));
    TEAM_CHECK(member, end_it(member) == NCCL_OK);
    TEAM_CHECK(member, member->cuda->stream_sync(member->stream) == 0);
}

TEAM_CASE(revoke_ends_connecting, 2, play_revoke_early)

/* Rank 0 reduces alone and aborts: the stream becomes idle. With an argument the connections are
 * open before. */
static void play_abort(struct team_member *member)
{
    bool warm = member->arg != NULL;

    if (warm) {
        TEAM_CHECK(member, is_warm(member));
        team_meet(member);
    }
    if (member->rank)
        return;
    TEAM_CHECK(member, reduce(member) == NCCL_IN_PROGRESS);
    if (warm)
        TEAM_CHECK(member, team_settled(member) == NCCL_OK && is_running(member));
    TEAM_CHECK(member, team_abort(member) == NCCL_OK);
    TEAM_CHECK(member, member->cuda->stream_sync(member->stream) == 0);
}

TEST_FLAGS(abort_ends_everything, TEST_NO_TORTURE)
{
    team_run(t, 2, play_abort, NULL);
    if (!t->failed)
        team_run(t, 2, play_abort, t);
}

/* Other work is queued in the same stream before the reduction; abort waits for this work. */
static void play_abort_behind(struct team_member *member)
{
    if (member->rank)
        return;
    fake_gpu_faults("copy#1:slow=50");
    TEAM_CHECK(member,
               member->cuda->fill((cuda_address)(uintptr_t)member->in, 1, 10, member->stream) == 0);
    TEAM_CHECK(member, member->nccl->send(member->in, 10, NCCL_INT8, 1, member->comm,
                                          member->stream) == NCCL_IN_PROGRESS);
    TEAM_CHECK(member, team_settled(member) == NCCL_OK);
    TEAM_CHECK(member, team_abort(member) == NCCL_OK);
    TEAM_CHECK(member, member->in_seen[9] == 1);
    fake_gpu_faults(NULL);
}

TEAM_CASE(abort_waits_for_what_was_before, 2, play_abort_behind)

/* Two communicators wait in one stream: an abort of the first alone would wait for the second, so
 * both aborts are needed. */
static void play_abort_two(struct team_member *member)
{
    struct ncclComm *first = member->comm;
    struct ncclComm *second;
    struct nccl_id *id = member->arg;

    if (member->rank == 0)
        TEAM_CHECK(member, member->nccl->unique_id(id) == 0);
    team_meet(member);
    member->id = *id;
    TEAM_CHECK(member, team_init(member) == NCCL_IN_PROGRESS && team_settled(member) == NCCL_OK);
    second = member->comm;
    if (member->rank == 0) {
        member->comm = first;
        TEAM_CHECK(member, member->nccl->recv(member->in, 9, NCCL_INT8, 1, first, member->stream) ==
                               NCCL_IN_PROGRESS);
        TEAM_CHECK(member, team_settled(member) == NCCL_OK);
        member->comm = second;
        TEAM_CHECK(member, member->nccl->recv(member->in, 9, NCCL_INT8, 1, second,
                                              member->stream) == NCCL_IN_PROGRESS);
        TEAM_CHECK(member, team_settled(member) == NCCL_OK);
    }
    member->comm = NULL;
    TEAM_CHECK(member, member->nccl->group_start() == 0);
    TEAM_CHECK(member, member->nccl->comm_abort(second) == 0);
    TEAM_CHECK(member, member->nccl->comm_abort(first) == 0);
    TEAM_CHECK(member, member->nccl->group_end() == 0);
}

TEST_FLAGS(aborts_of_a_group_go_together, TEST_NO_TORTURE)
{
    struct nccl_id id;

    team_run(t, 2, play_abort_two, &id);
}

/* ---- faults while a communicator is made ---- */

static void play_init_error(struct team_member *member)
{
    if (member->rank == 0)
        fake_gpu_faults("init@1:error");
    team_meet(member);
    TEAM_CHECK(member, team_init(member) == NCCL_IN_PROGRESS);
    if (member->rank == 1)
        TEAM_CHECK(member, team_settled(member) == NCCL_SYSTEM_ERROR);
    else
        TEAM_CHECK(member, is_in_progress(member));
    team_meet(member);
    TEAM_CHECK(member, team_abort(member) == NCCL_OK);
    fake_gpu_faults(NULL);
}

TEST_FLAGS(making_fails_on_one_member, TEST_NO_TORTURE)
{
    team_run_unmade(t, 3, play_init_error, NULL);
}

static void play_init_hang(struct team_member *member)
{
    if (member->rank == 0)
        fake_gpu_faults("init@0:hang");
    team_meet(member);
    TEAM_CHECK(member, team_init(member) == NCCL_IN_PROGRESS);
    TEAM_CHECK(member, is_in_progress(member));
    team_meet(member);
    TEAM_CHECK(member, team_abort(member) == NCCL_OK);
    fake_gpu_faults(NULL);
}

TEST_FLAGS(making_hangs_until_abort, TEST_NO_TORTURE)
{
    team_run_unmade(t, 2, play_init_hang, NULL);
}

static void play_init_slow(struct team_member *member)
{
    int64_t before_us = clock_now_us();

    if (member->rank == 0)
        fake_gpu_faults("init#1@1:slow=50");
    team_meet(member);
    TEAM_CHECK(member, team_init(member) == NCCL_IN_PROGRESS);
    TEAM_CHECK(member, team_settled(member) == NCCL_OK);
    if (member->rank == 1)
        TEAM_CHECK(member, clock_now_us() - before_us >= 50000);
    TEAM_CHECK(member, is_warm(member));
    fake_gpu_faults(NULL);
}

TEST_FLAGS(making_is_slow, TEST_NO_TORTURE)
{
    team_run_unmade(t, 2, play_init_slow, NULL);
}

static void play_duplicate(struct team_member *member)
{
    TEAM_CHECK(member, team_init(member) == NCCL_IN_PROGRESS);
    TEAM_CHECK(member, team_settled(member) == NCCL_INVALID_USAGE);
    TEAM_CHECK(member, strstr(member->nccl->last_error(NULL), "Duplicate"));
}

TEST_FLAGS(two_members_on_one_device_are_refused, TEST_NO_TORTURE)
{
    setenv("CUDA_VISIBLE_DEVICES", "0,0", 1); /* two names of one device */
    team_run_unmade(t, 2, play_duplicate, NULL);
    unsetenv("CUDA_VISIBLE_DEVICES");
}

/* ---- faults in operations ---- */

/* Rank 0 gets an asynchronous error; its calls fail, but its kernel waits until the abort. The
 * other rank sees no error. */
static void play_remote_error(struct team_member *member)
{
    TEAM_CHECK(member, is_warm(member));
    team_meet(member);
    if (member->rank == 0)
        fake_gpu_faults("collective#1@0:error");
    team_meet(member);
    TEAM_CHECK(member, reduce(member) == NCCL_IN_PROGRESS);
    while (state_of(member) != (member->rank ? NCCL_OK : NCCL_REMOTE_ERROR))
        sched_yield();
    TEAM_CHECK(member, is_running(member)); /* the kernels of both ranks still run */
    if (member->rank == 0)
        TEAM_CHECK(member, reduce(member) == NCCL_REMOTE_ERROR);
    team_meet(member);
    TEAM_CHECK(member, team_abort(member) == NCCL_OK);
    TEAM_CHECK(member, member->cuda->stream_sync(member->stream) == 0 && is_spoiled(member));
    fake_gpu_faults(NULL);
}

TEAM_CASE(errors_come_while_a_kernel_waits, 2, play_remote_error)

/* The kernel of rank 0 hangs; revoke ends the kernels of both ranks. */
static void play_kernel_hangs(struct team_member *member)
{
    TEAM_CHECK(member, is_warm(member));
    team_meet(member);
    if (member->rank == 0)
        fake_gpu_faults("collective@1:hang");
    team_meet(member);
    TEAM_CHECK(member, reduce(member) == NCCL_IN_PROGRESS);
    TEAM_CHECK(member, team_settled(member) == NCCL_OK);
    TEAM_CHECK(member, is_running(member));
    team_meet(member);
    TEAM_CHECK(member, end_it(member) == NCCL_OK);
    TEAM_CHECK(member, member->cuda->stream_sync(member->stream) == 0);
    fake_gpu_faults(NULL);
}

TEAM_CASE(a_kernel_hangs_until_revoke, 2, play_kernel_hangs)

/* Two calls of rank 0 are refused, one alone and one in a group: nothing is queued, and the group
 * fails as a whole. */
static void play_fail(struct team_member *member)
{
    TEAM_CHECK(member, is_warm(member));
    team_meet(member);
    if (member->rank == 0)
        fake_gpu_faults("collective#2@0:fail collective#4@0:fail");
    team_meet(member);
    TEAM_CHECK(member, is_warm(member));
    if (member->rank)
        return;
    TEAM_CHECK(member, reduce(member) == NCCL_INTERNAL_ERROR);
    TEAM_CHECK(member, member->nccl->group_start() == 0);
    TEAM_CHECK(member, reduce(member) == NCCL_OK);
    TEAM_CHECK(member, reduce(member) == NCCL_INTERNAL_ERROR);
    TEAM_CHECK(member, member->nccl->group_end() == NCCL_INTERNAL_ERROR);
    /* nothing was queued in the stream */
    TEAM_CHECK(member, member->cuda->stream_sync(member->stream) == 0);
}

TEAM_CASE(calls_fail, 2, play_fail)

static void play_slow(struct team_member *member)
{
    int64_t before_us = clock_now_us();

    if (member->rank == 0)
        fake_gpu_faults("collective@0:slow=50");
    team_meet(member);
    TEAM_CHECK(member, is_warm(member));
    TEAM_CHECK(member, clock_now_us() - before_us >= 50000);
}

TEAM_CASE(kernels_are_slow, 2, play_slow)

static void lose(struct team_member *member)
{
    TEAM_CHECK(member, reduce(member) == NCCL_IN_PROGRESS);
    TEAM_CHECK(member, team_settled(member) == NCCL_OK);
    TEAM_CHECK(member, is_running(member));
    fake_gpu_faults("device:lost");
    TEAM_CHECK(member, member->cuda->stream_sync(member->stream) != 0);
    TEAM_CHECK(member, reduce(member) == NCCL_IN_PROGRESS);
    TEAM_CHECK(member, team_settled(member) == NCCL_CUDA_ERROR);
    TEAM_CHECK(member, team_abort(member) == NCCL_CUDA_ERROR);
}

static void play_lost(struct team_member *member)
{
    TEAM_CHECK(member, is_warm(member));
    team_meet(member);
    if (member->rank == 0) {
        lose(member);
        fake_gpu_faults(NULL);
    }
    team_meet(member); /* a process loses all its devices together */
}

TEAM_CASE(kernels_end_with_their_device, 2, play_lost)

/* ---- faults in ending ---- */

/* The first revoke fails and changes nothing; the second one takes 40 ms and ends the kernel. */
static void play_slow_end(struct team_member *member)
{
    int64_t before_us;

    TEAM_CHECK(member, is_warm(member));
    team_meet(member);
    if (member->rank)
        return;
    fake_gpu_faults("revoke#1:error revoke#2:slow=40 abort:slow=40");
    TEAM_CHECK(member, reduce(member) == NCCL_IN_PROGRESS);
    TEAM_CHECK(member, team_settled(member) == NCCL_OK);
    TEAM_CHECK(member, end_it(member) == NCCL_INTERNAL_ERROR);
    TEAM_CHECK(member, is_running(member));
    before_us = clock_now_us();
    TEAM_CHECK(member, end_it(member) == NCCL_OK);
    TEAM_CHECK(member, clock_now_us() - before_us >= 40000);
    TEAM_CHECK(member, member->cuda->stream_query(member->stream) == CUDA_OK);
}

TEAM_CASE(ends_are_slow, 2, play_slow_end)

/* The revoke hangs: it stays in progress and the kernel goes on. The abort ends both. */
static void play_revoke_hangs(struct team_member *member)
{
    TEAM_CHECK(member, is_warm(member));
    team_meet(member);
    if (member->rank)
        return;
    fake_gpu_faults("revoke:hang");
    TEAM_CHECK(member, reduce(member) == NCCL_IN_PROGRESS);
    TEAM_CHECK(member, team_settled(member) == NCCL_OK);
    TEAM_CHECK(member, member->nccl->revoke_comm(member->comm, 0) == NCCL_IN_PROGRESS);
    TEAM_CHECK(member, is_in_progress(member));
    TEAM_CHECK(member, is_running(member));
    TEAM_CHECK(member, team_abort(member) == NCCL_OK);
    TEAM_CHECK(member, member->cuda->stream_sync(member->stream) == 0);
}

TEAM_CASE(a_revoke_hangs_until_abort, 2, play_revoke_hangs)

/* A thread whose abort never returns; the process ends while the thread is in the abort. */
static void *abort_main(void *arg)
{
    (void)team_abort(arg);
    _exit(2);
}

static void play_abort_hangs(struct team_member *member)
{
    pthread_t thread;
    pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    pthread_cond_t never;

    fake_gpu_faults("abort:hang");
    TEAM_CHECK(member, reduce(member) == NCCL_IN_PROGRESS);
    TEAM_CHECK(member, thread_cond_init(&never) == 0);
    TEAM_CHECK(member, thread_start(&thread, 0, abort_main, member) == 0);
    pthread_mutex_lock(&lock);
    thread_cond_wait(&never, &lock, clock_now_us() + SHORT_US);
    _exit(0);
}

static void play_twice(struct team_member *member)
{
    TEAM_CHECK(member, is_warm(member));
    TEAM_CHECK(member, is_warm(member));
}

static void dies_in_kernel(struct test *t)
{
    fake_gpu_use(1);
    fake_gpu_faults("collective#2:die");
    team_run(t, 1, play_twice, NULL);
}

static void dies_in_init(struct test *t)
{
    fake_gpu_use(1);
    fake_gpu_faults("init:die");
    team_run(t, 1, play_abort, NULL);
}

static void abort_hangs(struct test *t)
{
    team_run(t, 1, play_abort_hangs, NULL);
}

static int status_of_child(void (*what)(struct test *t), struct test *t)
{
    pid_t child = fork();
    int status = -1;

    if (child == 0) {
        what(t);
        _exit(3);
    }
    return child > 0 && waitpid(child, &status, 0) == child ? status : -1;
}

TEST_FLAGS(processes_end_inside_nccl, TEST_NO_TORTURE)
{
    int status = status_of_child(dies_in_init, t);

    CHECK(t, WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    status = status_of_child(dies_in_kernel, t);
    CHECK(t, WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    status = status_of_child(abort_hangs, t);
    CHECK(t, WIFEXITED(status));
    CHECK_INT(t, WEXITSTATUS(status), ==, 0);
}

/* ---- shrinking ------------------------------------------------------------------------------- */

/* Rank 1 is gone while rank 0 and 2 wait in a kernel. They shrink the communicator without rank 1;
 * the kernel ends, and the child communicator reduces. */
static void play_shrink(struct team_member *member)
{
    struct nccl_config config = { .size = sizeof(config),
                                  .magic = NCCL_CONFIG_MAGIC,
                                  .version = NCCL_CONFIG_VERSION };
    struct ncclComm *parent = member->comm;
    int gone[] = { 1 };

    TEAM_CHECK(member, is_warm(member));
    team_meet(member);
    if (member->rank == 1)
        return;
    TEAM_CHECK(member, reduce(member) == NCCL_IN_PROGRESS);
    TEAM_CHECK(member, team_settled(member) == NCCL_OK); /* its kernel waits for rank 1 */
    TEAM_CHECK(member, member->nccl->comm_shrink(parent, gone, 1, &member->comm, &config, 1) ==
                           NCCL_IN_PROGRESS);
    TEAM_CHECK(member, member->cuda->stream_query(member->stream) == CUDA_OK);
    TEAM_CHECK(member, team_settled(member) == NCCL_OK);
    TEAM_CHECK(member, member->nccl->comm_abort(parent) == NCCL_OK);
    for (int i = 0; i < COUNT; i++)
        ((float *)(void *)member->in_seen)[i] = (float)(i + member->rank);
    TEAM_CHECK(member, is_warm(member));
    for (int i = 0; i < COUNT; i++)
        TEAM_CHECK(member, ((float *)(void *)member->out_seen)[i] == (float)(2 * i + 2));
}

TEAM_CASE(the_remaining_members_go_on, 3, play_shrink)

TEST_FLAGS(old_libraries_have_fewer_calls, TEST_NO_TORTURE)
{
    const struct nccl *nccl = NULL;

    fake_gpu_use(1);
    setenv("HVD_NCCL_LIBRARY", FAKE_OLD_NCCL, 1);
    CHECK_OK(t, nccl_open(&nccl, NULL));
    CHECK_INT(t, nccl->version, ==, 22105);
    CHECK(t, !nccl->revoke_comm && !nccl->comm_shrink && nccl->comm_abort);
}

/* ---- misuse ---------------------------------------------------------------------------------- */

static void use_before_ready(struct team_member *member)
{
    member->size = 2;
    if (team_init(member) == NCCL_IN_PROGRESS) /* the other member never comes */
        (void)reduce(member);
}

static void use_while_in_progress(struct team_member *member)
{
    if (member->rank == 0) {
        (void)reduce(member);
        (void)reduce(member);
    }
    team_meet(member);
}

static void queue_while_in_progress(struct team_member *member)
{
    if (member->rank == 0) {
        (void)reduce(member);
        (void)member->cuda->stream_sync(member->stream);
    }
    team_meet(member);
}

static void call_for_different_things(struct team_member *member)
{
    (void)team_ended(member,
                     member->nccl->allreduce(member->in, member->out, COUNT + (size_t)member->rank,
                                             NCCL_FLOAT32, NCCL_SUM, member->comm, member->stream));
}

static void send_more_than_is_received(struct team_member *member)
{
    const struct nccl *nccl = member->nccl;

    (void)team_ended(member,
                     member->rank
                         ? nccl->recv(member->in, 10, NCCL_INT8, 0, member->comm, member->stream)
                         : nccl->send(member->in, 11, NCCL_INT8, 1, member->comm, member->stream));
    team_meet(member);
}

static void use_host_memory(struct team_member *member)
{
    float host[COUNT] = { 0 };

    (void)member->nccl->allreduce(host, member->out, COUNT, NCCL_FLOAT32, NCCL_SUM, member->comm,
                                  member->stream);
}

static void use_overlapping_memory(struct team_member *member)
{
    (void)member->nccl->allreduce(member->in, member->in + 4, COUNT, NCCL_FLOAT32, NCCL_SUM,
                                  member->comm, member->stream);
}

static void use_after_abort(struct team_member *member)
{
    struct ncclComm *comm = member->comm;

    (void)team_abort(member);
    member->comm = comm;
    (void)reduce(member);
}

static void end_no_group(struct team_member *member)
{
    (void)member->nccl->group_end();
}

static void leave_group_open(struct team_member *member)
{
    (void)member->nccl->group_start();
}

static void poll_in_group(struct team_member *member)
{
    (void)member->nccl->group_start();
    (void)state_of(member);
}

static void block(struct team_member *member)
{
    struct nccl_config config = { .size = sizeof(config),
                                  .magic = NCCL_CONFIG_MAGIC,
                                  .version = NCCL_CONFIG_VERSION,
                                  .blocking = 1 };

    (void)member->nccl->comm_init(&member->comm, member->size, member->id, member->rank, &config);
}

static void take_a_rank_twice(struct team_member *member)
{
    member->rank = 0;
    (void)team_init(member);
    (void)team_settled(member);
}

static void revoke_unmade(struct team_member *member)
{
    member->size = 2;
    (void)team_init(member);
    (void)member->nccl->revoke_comm(member->comm, 0);
}

static void *abort_slowly(void *arg)
{
    (void)team_abort(arg);
    return NULL;
}

static void use_from_two_threads(struct team_member *member)
{
    struct team_member other = *member;
    pthread_t thread;

    fake_gpu_faults("abort:slow=20000");
    if (thread_start(&thread, 0, abort_slowly, &other))
        return;
    while (state_of(member) == NCCL_OK)
        sched_yield();
    pthread_join(thread, NULL);
}

TEST_FLAGS(misuse_of_communicators_is_told, TEST_NO_TORTURE)
{
    CHECK_PANICS(t, "ncclAllReduce on a communicator that is still in progress",
                 team_run_unmade(t, 1, use_before_ready, NULL));
    CHECK_PANICS(t, "ncclAllReduce on a communicator that is still in progress",
                 team_run(t, 2, use_while_in_progress, NULL));
    CHECK_PANICS(t, "while a collective is still being launched in it",
                 team_run(t, 2, queue_while_in_progress, NULL));
    CHECK_PANICS(t, "is no communicator", team_run(t, 1, use_after_abort, NULL));
    CHECK_PANICS(t, "that blocks", team_run_unmade(t, 1, block, NULL));
    CHECK_PANICS(t, "have rank 0", team_run_unmade(t, 2, take_a_rank_twice, NULL));
    CHECK_PANICS(t, "it can be aborted", team_run_unmade(t, 1, revoke_unmade, NULL));
    CHECK_PANICS(t, "another thread is in a call", team_run(t, 1, use_from_two_threads, NULL));
}

TEST_FLAGS(misuse_of_operations_is_told, TEST_NO_TORTURE)
{
    CHECK_PANICS(t, "make different calls", team_run(t, 2, call_for_different_things, NULL));
    CHECK_PANICS(t, "sends 11 bytes", team_run(t, 2, send_more_than_is_received, NULL));
    CHECK_PANICS(t, "is not device memory", team_run(t, 1, use_host_memory, NULL));
    CHECK_PANICS(t, "overlap", team_run(t, 1, use_overlapping_memory, NULL));
    CHECK_PANICS(t, "without a group", team_run(t, 1, end_no_group, NULL));
    CHECK_PANICS(t, "a thread ends in a group", team_run(t, 1, leave_group_open, NULL));
    CHECK_PANICS(t, "inside a group", team_run(t, 1, poll_in_group, NULL));
}
