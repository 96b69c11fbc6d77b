/* The stand-in of NCCL: how operations and communicators end that do not go well. */
#include "os/clock.h"
#include "os/thread.h"
#include "tests/lib/fake_gpu.h"
#include "tests/lib/nccl_crew.h"

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

static int reduce(struct crew_member *member)
{
    return member->nccl->allreduce(member->in, member->out, COUNT, NCCL_FLOAT32, NCCL_SUM,
                                   member->comm, member->stream);
}

/* All together, so that connections are there. */
static bool is_warm(struct crew_member *member)
{
    return crew_ended(member, reduce(member)) == 0;
}

static bool is_in_progress(struct crew_member *member)
{
    int state = -1;

    for (int i = 0; i < LOOKS; i++) {
        if (member->nccl->async_error(member->comm, &state) || state != NCCL_IN_PROGRESS)
            return false;
        sched_yield();
    }
    return true;
}

static bool is_running(struct crew_member *member)
{
    for (int i = 0; i < LOOKS; i++) {
        if (member->cuda->stream_query(member->stream) != CUDA_NOT_READY)
            return false;
        sched_yield();
    }
    return true;
}

static bool is_spoiled(const struct crew_member *member)
{
    for (size_t i = 0; i < COUNT * sizeof(float); i++)
        if ((uint8_t)member->out_seen[i] != 0xee)
            return false;
    return true;
}

static int state_of(struct crew_member *member)
{
    int state = -1;
    int code = member->nccl->async_error(member->comm, &state);

    return code ? code : state;
}

static int end_it(struct crew_member *member)
{
    int code = member->nccl->comm_revoke(member->comm, 0);

    return code == NCCL_IN_PROGRESS ? crew_settled(member) : code;
}

/* ---- who does not come is waited for -----------------------------------------------------------
 */

static void play_late(struct crew_member *member)
{
    if (member->rank == 0) {
        CREW_CHECK(member, reduce(member) == NCCL_IN_PROGRESS);
        CREW_CHECK(member, is_in_progress(member));
    }
    crew_meet(member);
    CREW_CHECK(member,
               crew_ended(member, member->rank == 0 ? NCCL_IN_PROGRESS : reduce(member)) == 0);
    crew_meet(member);
    if (member->rank == 1) {
        CREW_CHECK(member, reduce(member) == NCCL_IN_PROGRESS);
        CREW_CHECK(member, crew_settled(member) == NCCL_OK);
        CREW_CHECK(member, is_running(member));
    }
    crew_meet(member);
    CREW_CHECK(member, crew_ended(member, member->rank == 1 ? NCCL_OK : reduce(member)) == 0);
}

static void late_members_are_awaited(struct test *t)
{
    crew_run(t, 2, play_late, NULL);
}

/* ---- revoke and abort ------------------------------------------------------------------------ */

static void play_revoke(struct crew_member *member)
{
    CREW_CHECK(member, is_warm(member));
    crew_meet(member);
    if (member->rank)
        return;
    CREW_CHECK(member, reduce(member) == NCCL_IN_PROGRESS);
    CREW_CHECK(member, crew_settled(member) == NCCL_OK);
    CREW_CHECK(member, is_running(member));
    CREW_CHECK(member, end_it(member) == NCCL_OK);
    CREW_CHECK(member, member->cuda->stream_query(member->stream) == CUDA_OK);
    CREW_CHECK(member, is_spoiled(member));
    CREW_CHECK(member, reduce(member) == NCCL_INVALID_USAGE);
    CREW_CHECK(member, strstr(member->nccl->last_error(NULL), "revoked"));
    CREW_CHECK(member, member->nccl->comm_revoke(member->comm, 0) == NCCL_INVALID_ARGUMENT);
}

static void revoke_ends_a_kernel(struct test *t)
{
    crew_run(t, 2, play_revoke, NULL);
}

static void play_revoke_early(struct crew_member *member)
{
    if (member->rank)
        return;
    CREW_CHECK(member, reduce(member) == NCCL_IN_PROGRESS);
    CREW_CHECK(member, is_in_progress(member));
    CREW_CHECK(member, end_it(member) == NCCL_OK);
    CREW_CHECK(member, member->cuda->stream_sync(member->stream) == 0);
}

static void revoke_ends_connecting(struct test *t)
{
    crew_run(t, 2, play_revoke_early, NULL);
}

static void play_abort(struct crew_member *member)
{
    bool warm = member->arg != NULL;

    if (warm) {
        CREW_CHECK(member, is_warm(member));
        crew_meet(member);
    }
    if (member->rank)
        return;
    CREW_CHECK(member, reduce(member) == NCCL_IN_PROGRESS);
    if (warm)
        CREW_CHECK(member, crew_settled(member) == NCCL_OK && is_running(member));
    CREW_CHECK(member, crew_abort(member) == NCCL_OK);
    CREW_CHECK(member, member->cuda->stream_sync(member->stream) == 0);
}

static void abort_ends_everything(struct test *t)
{
    crew_run(t, 2, play_abort, NULL);
    if (!t->failed)
        crew_run(t, 2, play_abort, t);
}

/* What was queued before in the same stream comes first, and abort waits for it. */
static void play_abort_behind(struct crew_member *member)
{
    if (member->rank)
        return;
    fake_gpu_faults("copy#1:slow=50");
    CREW_CHECK(member,
               member->cuda->fill((cuda_address)(uintptr_t)member->in, 1, 10, member->stream) == 0);
    CREW_CHECK(member, member->nccl->send(member->in, 10, NCCL_INT8, 1, member->comm,
                                          member->stream) == NCCL_IN_PROGRESS);
    CREW_CHECK(member, crew_settled(member) == NCCL_OK);
    CREW_CHECK(member, crew_abort(member) == NCCL_OK);
    CREW_CHECK(member, member->in_seen[9] == 1);
    fake_gpu_faults(NULL);
}

static void abort_waits_for_what_was_before(struct test *t)
{
    crew_run(t, 2, play_abort_behind, NULL);
}

/* Two communicators of one stream: aborted one by one they would wait for each other. */
static void play_abort_two(struct crew_member *member)
{
    struct ncclComm *first = member->comm;
    struct ncclComm *second;
    struct nccl_id *id = member->arg;

    if (member->rank == 0)
        CREW_CHECK(member, member->nccl->unique_id(id) == 0);
    crew_meet(member);
    member->id = *id;
    CREW_CHECK(member, crew_init(member) == NCCL_IN_PROGRESS && crew_settled(member) == NCCL_OK);
    second = member->comm;
    if (member->rank == 0) {
        member->comm = first;
        CREW_CHECK(member, member->nccl->recv(member->in, 9, NCCL_INT8, 1, first, member->stream) ==
                               NCCL_IN_PROGRESS);
        CREW_CHECK(member, crew_settled(member) == NCCL_OK);
        member->comm = second;
        CREW_CHECK(member, member->nccl->recv(member->in, 9, NCCL_INT8, 1, second,
                                              member->stream) == NCCL_IN_PROGRESS);
        CREW_CHECK(member, crew_settled(member) == NCCL_OK);
    }
    member->comm = NULL;
    CREW_CHECK(member, member->nccl->group_start() == 0);
    CREW_CHECK(member, member->nccl->comm_abort(second) == 0);
    CREW_CHECK(member, member->nccl->comm_abort(first) == 0);
    CREW_CHECK(member, member->nccl->group_end() == 0);
}

static void aborts_of_a_group_go_together(struct test *t)
{
    struct nccl_id id;

    crew_run(t, 2, play_abort_two, &id);
}

/* ---- faults in making one ----------------------------------------------------------------------
 */

static void play_init_error(struct crew_member *member)
{
    if (member->rank == 0)
        fake_gpu_faults("init@1:error");
    crew_meet(member);
    CREW_CHECK(member, crew_init(member) == NCCL_IN_PROGRESS);
    if (member->rank == 1)
        CREW_CHECK(member, crew_settled(member) == NCCL_SYSTEM_ERROR);
    else
        CREW_CHECK(member, is_in_progress(member));
    crew_meet(member);
    CREW_CHECK(member, crew_abort(member) == NCCL_OK);
    fake_gpu_faults(NULL);
}

static void making_fails_on_one_member(struct test *t)
{
    crew_run_unmade(t, 3, play_init_error, NULL);
}

static void play_init_hang(struct crew_member *member)
{
    if (member->rank == 0)
        fake_gpu_faults("init@0:hang");
    crew_meet(member);
    CREW_CHECK(member, crew_init(member) == NCCL_IN_PROGRESS);
    CREW_CHECK(member, is_in_progress(member));
    crew_meet(member);
    CREW_CHECK(member, crew_abort(member) == NCCL_OK);
    fake_gpu_faults(NULL);
}

static void making_hangs_until_abort(struct test *t)
{
    crew_run_unmade(t, 2, play_init_hang, NULL);
}

static void play_init_slow(struct crew_member *member)
{
    int64_t before_us = clock_now_us();

    if (member->rank == 0)
        fake_gpu_faults("init#1@1:slow=50");
    crew_meet(member);
    CREW_CHECK(member, crew_init(member) == NCCL_IN_PROGRESS);
    CREW_CHECK(member, crew_settled(member) == NCCL_OK);
    if (member->rank == 1)
        CREW_CHECK(member, clock_now_us() - before_us >= 50000);
    CREW_CHECK(member, is_warm(member));
    fake_gpu_faults(NULL);
}

static void making_is_slow(struct test *t)
{
    crew_run_unmade(t, 2, play_init_slow, NULL);
}

static void play_duplicate(struct crew_member *member)
{
    CREW_CHECK(member, crew_init(member) == NCCL_IN_PROGRESS);
    CREW_CHECK(member, crew_settled(member) == NCCL_INVALID_USAGE);
    CREW_CHECK(member, strstr(member->nccl->last_error(NULL), "Duplicate"));
}

static void two_on_one_device_are_refused(struct test *t)
{
    setenv("CUDA_VISIBLE_DEVICES", "0,0", 1); /* two names of one */
    crew_run_unmade(t, 2, play_duplicate, NULL);
    unsetenv("CUDA_VISIBLE_DEVICES");
}

/* ---- faults in operations ----------------------------------------------------------------------
 */

static void play_remote_error(struct crew_member *member)
{
    CREW_CHECK(member, is_warm(member));
    crew_meet(member);
    if (member->rank == 0)
        fake_gpu_faults("collective#1@0:error");
    crew_meet(member);
    CREW_CHECK(member, reduce(member) == NCCL_IN_PROGRESS);
    while (state_of(member) != (member->rank ? NCCL_OK : NCCL_REMOTE_ERROR))
        sched_yield();
    CREW_CHECK(member, is_running(member)); /* both go on */
    if (member->rank == 0)
        CREW_CHECK(member, reduce(member) == NCCL_REMOTE_ERROR);
    crew_meet(member);
    CREW_CHECK(member, crew_abort(member) == NCCL_OK);
    CREW_CHECK(member, member->cuda->stream_sync(member->stream) == 0 && is_spoiled(member));
    fake_gpu_faults(NULL);
}

static void errors_come_while_a_kernel_waits(struct test *t)
{
    crew_run(t, 2, play_remote_error, NULL);
}

static void play_kernel_hangs(struct crew_member *member)
{
    CREW_CHECK(member, is_warm(member));
    crew_meet(member);
    if (member->rank == 0)
        fake_gpu_faults("collective@1:hang");
    crew_meet(member);
    CREW_CHECK(member, reduce(member) == NCCL_IN_PROGRESS);
    CREW_CHECK(member, crew_settled(member) == NCCL_OK);
    CREW_CHECK(member, is_running(member));
    crew_meet(member);
    CREW_CHECK(member, end_it(member) == NCCL_OK);
    CREW_CHECK(member, member->cuda->stream_sync(member->stream) == 0);
    fake_gpu_faults(NULL);
}

static void a_kernel_hangs_until_revoke(struct test *t)
{
    crew_run(t, 2, play_kernel_hangs, NULL);
}

static void play_fail(struct crew_member *member)
{
    CREW_CHECK(member, is_warm(member));
    crew_meet(member);
    if (member->rank == 0)
        fake_gpu_faults("collective#2@0:fail collective#4@0:fail");
    crew_meet(member);
    CREW_CHECK(member, is_warm(member));
    if (member->rank)
        return;
    CREW_CHECK(member, reduce(member) == NCCL_INTERNAL_ERROR);
    CREW_CHECK(member, member->nccl->group_start() == 0);
    CREW_CHECK(member, reduce(member) == NCCL_OK);
    CREW_CHECK(member, reduce(member) == NCCL_INTERNAL_ERROR);
    CREW_CHECK(member, member->nccl->group_end() == NCCL_INTERNAL_ERROR);
    CREW_CHECK(member, member->cuda->stream_sync(member->stream) == 0); /* nothing went there */
}

static void calls_fail(struct test *t)
{
    crew_run(t, 2, play_fail, NULL);
}

static void play_slow(struct crew_member *member)
{
    int64_t before_us = clock_now_us();

    if (member->rank == 0)
        fake_gpu_faults("collective@0:slow=50");
    crew_meet(member);
    CREW_CHECK(member, is_warm(member));
    CREW_CHECK(member, clock_now_us() - before_us >= 50000);
}

static void kernels_are_slow(struct test *t)
{
    crew_run(t, 2, play_slow, NULL);
}

static void lose(struct crew_member *member)
{
    CREW_CHECK(member, reduce(member) == NCCL_IN_PROGRESS);
    CREW_CHECK(member, crew_settled(member) == NCCL_OK);
    CREW_CHECK(member, is_running(member));
    fake_gpu_faults("device:lost");
    CREW_CHECK(member, member->cuda->stream_sync(member->stream) != 0);
    CREW_CHECK(member, reduce(member) == NCCL_IN_PROGRESS);
    CREW_CHECK(member, crew_settled(member) == NCCL_CUDA_ERROR);
    CREW_CHECK(member, crew_abort(member) == NCCL_CUDA_ERROR);
}

static void play_lost(struct crew_member *member)
{
    CREW_CHECK(member, is_warm(member));
    crew_meet(member);
    if (member->rank == 0) {
        lose(member);
        fake_gpu_faults(NULL);
    }
    crew_meet(member); /* all devices of a process are lost together */
}

static void kernels_end_with_their_device(struct test *t)
{
    crew_run(t, 2, play_lost, NULL);
}

/* ---- faults in ending --------------------------------------------------------------------------
 */

static void play_slow_end(struct crew_member *member)
{
    int64_t before_us;

    CREW_CHECK(member, is_warm(member));
    crew_meet(member);
    if (member->rank)
        return;
    fake_gpu_faults("revoke#1:error revoke#2:slow=40 abort:slow=40");
    CREW_CHECK(member, reduce(member) == NCCL_IN_PROGRESS);
    CREW_CHECK(member, crew_settled(member) == NCCL_OK);
    CREW_CHECK(member, end_it(member) == NCCL_INTERNAL_ERROR);
    CREW_CHECK(member, is_running(member));
    before_us = clock_now_us();
    CREW_CHECK(member, end_it(member) == NCCL_OK);
    CREW_CHECK(member, clock_now_us() - before_us >= 40000);
    CREW_CHECK(member, member->cuda->stream_query(member->stream) == CUDA_OK);
}

static void ends_are_slow(struct test *t)
{
    crew_run(t, 2, play_slow_end, NULL);
}

static void play_revoke_hangs(struct crew_member *member)
{
    CREW_CHECK(member, is_warm(member));
    crew_meet(member);
    if (member->rank)
        return;
    fake_gpu_faults("revoke:hang");
    CREW_CHECK(member, reduce(member) == NCCL_IN_PROGRESS);
    CREW_CHECK(member, crew_settled(member) == NCCL_OK);
    CREW_CHECK(member, member->nccl->comm_revoke(member->comm, 0) == NCCL_IN_PROGRESS);
    CREW_CHECK(member, is_in_progress(member));
    CREW_CHECK(member, is_running(member));
    CREW_CHECK(member, crew_abort(member) == NCCL_OK);
    CREW_CHECK(member, member->cuda->stream_sync(member->stream) == 0);
}

static void a_revoke_hangs_until_abort(struct test *t)
{
    crew_run(t, 2, play_revoke_hangs, NULL);
}

/* The abort never returns: the process ends without it. */
static void *abort_main(void *arg)
{
    (void)crew_abort(arg);
    _exit(2);
}

static void play_abort_hangs(struct crew_member *member)
{
    pthread_t thread;
    pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    pthread_cond_t never;

    fake_gpu_faults("abort:hang");
    CREW_CHECK(member, reduce(member) == NCCL_IN_PROGRESS);
    CREW_CHECK(member, thread_cond_init(&never) == 0);
    CREW_CHECK(member, thread_start(&thread, 0, abort_main, member) == 0);
    pthread_mutex_lock(&lock);
    thread_cond_wait(&never, &lock, clock_now_us() + SHORT_US);
    _exit(0);
}

static void play_twice(struct crew_member *member)
{
    CREW_CHECK(member, is_warm(member));
    CREW_CHECK(member, is_warm(member));
}

static void dies_in_kernel(struct test *t)
{
    fake_gpu_use(1);
    fake_gpu_faults("collective#2:die");
    crew_run(t, 1, play_twice, NULL);
}

static void dies_in_init(struct test *t)
{
    fake_gpu_use(1);
    fake_gpu_faults("init:die");
    crew_run(t, 1, play_abort, NULL);
}

static void abort_hangs(struct test *t)
{
    crew_run(t, 1, play_abort_hangs, NULL);
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

static void processes_end_in_it(struct test *t)
{
    int status = status_of_child(dies_in_init, t);

    CHECK(t, WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    status = status_of_child(dies_in_kernel, t);
    CHECK(t, WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    status = status_of_child(abort_hangs, t);
    CHECK(t, WIFEXITED(status));
    CHECK_INT(t, WEXITSTATUS(status), ==, 0);
out:
    return;
}

/* ---- shrinking ------------------------------------------------------------------------------- */

static void play_shrink(struct crew_member *member)
{
    struct nccl_config config = { .size = sizeof(config),
                                  .magic = NCCL_CONFIG_MAGIC,
                                  .version = NCCL_CONFIG_VERSION };
    struct ncclComm *parent = member->comm;
    int gone[] = { 1 };

    CREW_CHECK(member, is_warm(member));
    crew_meet(member);
    if (member->rank == 1)
        return;
    CREW_CHECK(member, reduce(member) == NCCL_IN_PROGRESS);
    CREW_CHECK(member, crew_settled(member) == NCCL_OK); /* it waits for the one that is gone */
    CREW_CHECK(member, member->nccl->comm_shrink(parent, gone, 1, &member->comm, &config, 1) ==
                           NCCL_IN_PROGRESS);
    CREW_CHECK(member, member->cuda->stream_query(member->stream) == CUDA_OK);
    CREW_CHECK(member, crew_settled(member) == NCCL_OK);
    CREW_CHECK(member, member->nccl->comm_abort(parent) == NCCL_OK);
    for (int i = 0; i < COUNT; i++)
        ((float *)(void *)member->in_seen)[i] = (float)(i + member->rank);
    CREW_CHECK(member, is_warm(member));
    for (int i = 0; i < COUNT; i++)
        CREW_CHECK(member, ((float *)(void *)member->out_seen)[i] == (float)(2 * i + 2));
}

static void who_is_left_goes_on(struct test *t)
{
    crew_run(t, 3, play_shrink, NULL);
}

static void old_ones_have_less(struct test *t)
{
    const struct nccl *nccl = NULL;

    fake_gpu_use(1);
    setenv("HVD_NCCL_LIBRARY", FAKE_OLD_NCCL, 1);
    CHECK_OK(t, nccl_open(&nccl, NULL));
    CHECK_INT(t, nccl->version, ==, 22105);
    CHECK(t, !nccl->comm_revoke && !nccl->comm_shrink && nccl->comm_abort);
out:
    return;
}

/* ---- misuse ---------------------------------------------------------------------------------- */

static void use_before_ready(struct crew_member *member)
{
    member->size = 2;
    if (crew_init(member) == NCCL_IN_PROGRESS) /* the other never comes */
        (void)reduce(member);
}

static void use_while_in_progress(struct crew_member *member)
{
    if (member->rank == 0) {
        (void)reduce(member);
        (void)reduce(member);
    }
    crew_meet(member);
}

static void queue_while_in_progress(struct crew_member *member)
{
    if (member->rank == 0) {
        (void)reduce(member);
        (void)member->cuda->stream_sync(member->stream);
    }
    crew_meet(member);
}

static void call_for_different_things(struct crew_member *member)
{
    (void)crew_ended(member,
                     member->nccl->allreduce(member->in, member->out, COUNT + (size_t)member->rank,
                                             NCCL_FLOAT32, NCCL_SUM, member->comm, member->stream));
}

static void send_more_than_is_received(struct crew_member *member)
{
    const struct nccl *nccl = member->nccl;

    (void)crew_ended(member,
                     member->rank
                         ? nccl->recv(member->in, 10, NCCL_INT8, 0, member->comm, member->stream)
                         : nccl->send(member->in, 11, NCCL_INT8, 1, member->comm, member->stream));
    crew_meet(member);
}

static void use_host_memory(struct crew_member *member)
{
    float host[COUNT] = { 0 };

    (void)member->nccl->allreduce(host, member->out, COUNT, NCCL_FLOAT32, NCCL_SUM, member->comm,
                                  member->stream);
}

static void use_overlapping_memory(struct crew_member *member)
{
    (void)member->nccl->allreduce(member->in, member->in + 4, COUNT, NCCL_FLOAT32, NCCL_SUM,
                                  member->comm, member->stream);
}

static void use_after_abort(struct crew_member *member)
{
    struct ncclComm *comm = member->comm;

    (void)crew_abort(member);
    member->comm = comm;
    (void)reduce(member);
}

static void end_no_group(struct crew_member *member)
{
    (void)member->nccl->group_end();
}

static void leave_group_open(struct crew_member *member)
{
    (void)member->nccl->group_start();
}

static void poll_in_group(struct crew_member *member)
{
    (void)member->nccl->group_start();
    (void)state_of(member);
}

static void block(struct crew_member *member)
{
    struct nccl_config config = { .size = sizeof(config),
                                  .magic = NCCL_CONFIG_MAGIC,
                                  .version = NCCL_CONFIG_VERSION,
                                  .blocking = 1 };

    (void)member->nccl->comm_init(&member->comm, member->size, member->id, member->rank, &config);
}

static void take_a_rank_twice(struct crew_member *member)
{
    member->rank = 0;
    (void)crew_init(member);
    (void)crew_settled(member);
}

static void revoke_unmade(struct crew_member *member)
{
    member->size = 2;
    (void)crew_init(member);
    (void)member->nccl->comm_revoke(member->comm, 0);
}

static void *abort_slowly(void *arg)
{
    (void)crew_abort(arg);
    return NULL;
}

static void use_from_two_threads(struct crew_member *member)
{
    struct crew_member other = *member;
    pthread_t thread;

    fake_gpu_faults("abort:slow=20000");
    if (thread_start(&thread, 0, abort_slowly, &other))
        return;
    while (state_of(member) == NCCL_OK)
        sched_yield();
    pthread_join(thread, NULL);
}

static void misuse_of_communicators_is_told(struct test *t)
{
    CHECK_PANICS(t, "ncclAllReduce on a communicator that is still in progress",
                 crew_run_unmade(t, 1, use_before_ready, NULL));
    CHECK_PANICS(t, "ncclAllReduce on a communicator that is still in progress",
                 crew_run(t, 2, use_while_in_progress, NULL));
    CHECK_PANICS(t, "while a collective is still being launched in it",
                 crew_run(t, 2, queue_while_in_progress, NULL));
    CHECK_PANICS(t, "is no communicator", crew_run(t, 1, use_after_abort, NULL));
    CHECK_PANICS(t, "that blocks", crew_run_unmade(t, 1, block, NULL));
    CHECK_PANICS(t, "have rank 0", crew_run_unmade(t, 2, take_a_rank_twice, NULL));
    CHECK_PANICS(t, "it can be aborted", crew_run_unmade(t, 1, revoke_unmade, NULL));
    CHECK_PANICS(t, "another thread is in a call", crew_run(t, 1, use_from_two_threads, NULL));
out:
    return;
}

static void misuse_of_operations_is_told(struct test *t)
{
    CHECK_PANICS(t, "make different calls", crew_run(t, 2, call_for_different_things, NULL));
    CHECK_PANICS(t, "sends 11 bytes", crew_run(t, 2, send_more_than_is_received, NULL));
    CHECK_PANICS(t, "is not device memory", crew_run(t, 1, use_host_memory, NULL));
    CHECK_PANICS(t, "overlap", crew_run(t, 1, use_overlapping_memory, NULL));
    CHECK_PANICS(t, "without a group", crew_run(t, 1, end_no_group, NULL));
    CHECK_PANICS(t, "a thread ends in a group", crew_run(t, 1, leave_group_open, NULL));
    CHECK_PANICS(t, "inside a group", crew_run(t, 1, poll_in_group, NULL));
out:
    return;
}

#define CASE_PLAIN(function) CASE_FLAGS(function, TEST_NO_TORTURE)

TESTS(CASE_PLAIN(late_members_are_awaited), CASE_PLAIN(revoke_ends_a_kernel),
      CASE_PLAIN(revoke_ends_connecting), CASE_PLAIN(abort_ends_everything),
      CASE_PLAIN(abort_waits_for_what_was_before), CASE_PLAIN(aborts_of_a_group_go_together),
      CASE_PLAIN(making_fails_on_one_member), CASE_PLAIN(making_hangs_until_abort),
      CASE_PLAIN(making_is_slow), CASE_PLAIN(two_on_one_device_are_refused),
      CASE_PLAIN(errors_come_while_a_kernel_waits), CASE_PLAIN(a_kernel_hangs_until_revoke),
      CASE_PLAIN(calls_fail), CASE_PLAIN(kernels_are_slow),
      CASE_PLAIN(kernels_end_with_their_device), CASE_PLAIN(ends_are_slow),
      CASE_PLAIN(a_revoke_hangs_until_abort), CASE_PLAIN(processes_end_in_it),
      CASE_PLAIN(who_is_left_goes_on), CASE_PLAIN(old_ones_have_less),
      CASE_PLAIN(misuse_of_communicators_is_told), CASE_PLAIN(misuse_of_operations_is_told))
