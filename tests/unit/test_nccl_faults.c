/*
 * Each fault of the stand-ins (for NCCL and the driver of the GPU) that an NCCL thread can meet, at
 * each moment. In the end either the failed communicator is settled, a new one works and nothing is
 * left behind; or the device is reported as stuck. No fault may cause a hang. A row is one fault at
 * one moment; each row runs in a process of its own, because a stuck device stays stuck.
 *
 * Not here: faults of copies, allocations and pinning, which the NCCL thread does not make.
 */
#include "collectives/nccl/nccl_thread_internal.h"
#include "os/clock.h"
#include "tests/lib/comm_team.h"
#include "tests/lib/fake_gpu.h"
#include "tests/lib/fixture.h"
#include "tests/lib/heap.h"

#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define MEMBERS  3U
#define SHORT_US 200000 /* good calls are over then; calls that still run are revoked */
#define BOUND_US 300000 /* a call that takes longer is reported as stuck */
#define HANG_S   110

enum moment { STARTING, BESIDE, IDLE, IN_CALL, BETWEEN, SETTLING, FREEING, CLOSING, MOMENTS };
static const char *const moments[] = { "starting",
                                       "another one starting beside it",
                                       "idle",
                                       "in a call",
                                       "between two calls",
                                       "settling",
                                       "freeing",
                                       "closing" };

/* The outcomes of a row, and how its process reports them. */
enum ending { RECOVERED = 0, STUCK = 2, WRONG = 1 };

struct row {
    const char *fault;
    enum moment moment;
    bool may_stick;
};

static struct comm_team team;
static uint32_t members;
static struct comm *beside[COMM_TEAM_MAX]; /* another communicator of the same threads */
static void *numbers[COMM_TEAM_MAX];
static struct CUstream_st *streams[COMM_TEAM_MAX];

/* ---- members ---- */

/* Gives the member its buffer, with the number 1, and a stream on its device. */
static int prepare(uint32_t rank)
{
    const double one = 1;
    int rc = fake_gpu_alloc(rank, sizeof(one), &numbers[rank]);

    if (!rc)
        rc = comm_team_put(&team, rank, numbers[rank], &one, sizeof(one));
    if (!rc)
        rc = gpu_enter(team.devices[rank], NULL);
    if (rc)
        return rc;
    rc = team.cuda->stream_create(&streams[rank], CUDA_STREAM_NON_BLOCKING, 0);
    gpu_leave(team.devices[rank]);
    return rc;
}

static int open_all(int64_t bound_us, uint32_t size)
{
    int rc = comm_team_open(&team, size, bound_us);

    members = size;
    for (uint32_t i = 0; i < members && !rc; i++)
        rc = prepare(i);
    return rc;
}

static int greatest(uint32_t rank, bool streamed)
{
    const struct coll_call call = { .kind = COLL_ALLREDUCE,
                                    .type = HVD_FLOAT64,
                                    .op = HVD_MAX,
                                    .in = numbers[rank],
                                    .out = numbers[rank],
                                    .count = 1 };

    return comm_run(team.comms[rank], &call, streams[rank], streamed, &team.err[rank]);
}

static void act_once(struct comm_team *all, uint32_t rank)
{
    all->rc[rank] = greatest(rank, false);
}

static void act_streamed(struct comm_team *all, uint32_t rank)
{
    all->rc[rank] = greatest(rank, true);
}

/* Reduces three times: with a stream, with a stream and a wait, and without a stream. */
static void act_thrice(struct comm_team *all, uint32_t rank)
{
    int rc = greatest(rank, true);

    if (!rc)
        rc = comm_settle(all->comms[rank], &all->err[rank]);
    if (!rc)
        rc = greatest(rank, true);
    if (!rc)
        rc = greatest(rank, false);
    all->rc[rank] = rc;
}

/* Runs the act on all members, as a round does: the test revokes the communicators when the act
 * takes too long. */
static void run(comm_act_fn *act)
{
    comm_team_start(&team, act);
    if (!comm_team_await_until(&team, clock_now_us() + SHORT_US))
        comm_team_revoke(&team);
    comm_team_await(&team);
}

static bool all_well(void)
{
    for (uint32_t i = 0; i < members; i++)
        if (team.rc[i])
            return false;
    return true;
}

static bool make_warm(void)
{
    if (comm_team_make(&team))
        return false;
    comm_team_run(&team, act_once);
    return all_well();
}

/* The first member begins alone, so its kernel waits for the other members. */
static void first_alone(void)
{
    team.away[1] = team.away[2] = true;
    comm_team_run(&team, act_streamed);
    team.away[0] = true;
    team.away[1] = team.away[2] = false;
}

/* ---- moments ---- */

static void at_starting(const char *fault)
{
    bool ready = true;

    fake_gpu_faults(fault);
    if (comm_team_begin(&team))
        return;
    for (uint32_t i = 0; i < members; i++)
        ready = comm_await(team.comms[i], clock_now_us() + SHORT_US) == COMM_READY && ready;
    if (ready)
        run(act_thrice);
}

static void swap(void)
{
    for (uint32_t i = 0; i < members; i++) {
        struct comm *other = beside[i];

        beside[i] = team.comms[i];
        team.comms[i] = other;
    }
}

/* While the fault hits one communicator, the first member works with a second communicator, which
 * must not fail. */
static void at_beside(const char *fault)
{
    swap();
    fake_gpu_faults(fault);
    if (!comm_team_begin(&team))
        for (uint32_t i = 0; i < members; i++)
            (void)comm_await(team.comms[i], clock_now_us() + SHORT_US);
    swap();
    run(act_thrice);
}

static void at_work(const char *fault, enum moment moment)
{
    if (moment == IN_CALL)
        first_alone();
    if (moment == BETWEEN)
        comm_team_run(&team, act_streamed);
    fake_gpu_faults(fault);
    run(moment == IDLE ? act_thrice : act_streamed);
    memset(team.away, 0, sizeof(team.away));
}

static void at_end(const char *fault, enum moment moment)
{
    first_alone();
    memset(team.away, 0, sizeof(team.away));
    fake_gpu_faults(fault);
    if (moment != SETTLING)
        comm_team_part(&team);
}

/* ---- how a row ends ---- */

static bool any_stuck(void)
{
    bool any = false;

    for (uint32_t i = 0; i < members; i++)
        any = any || atomic_load(&team.stuck[i]);
    return any;
}

static enum ending wrong(const char *what)
{
    fprintf(stderr, "%s\n", what);
    for (uint32_t i = 0; i < members; i++)
        fprintf(stderr, "  member %u: %s: %s\n", i, err_name(team.rc[i]), team.err[i].text);
    return WRONG;
}

/* Settles the members' communicators. STUCK: one gave up after its time, and the callback that
 * reports a stuck device was called once. */
static enum ending settle_these(void)
{
    enum ending ending = RECOVERED;

    for (uint32_t i = 0; i < members; i++) {
        int rc = team.comms[i] ? comm_settle(team.comms[i], &team.err[i]) : 0;

        if (rc && rc != HVD_E_TIMEOUT)
            return wrong("settling fails with another code than a timeout");
        if (rc && atomic_load(&team.stuck[i]) != 1)
            return wrong("settling gives up before the callback is called");
        if (rc)
            ending = STUCK;
    }
    return ending;
}

static enum ending settle_all(void)
{
    enum ending these, others;

    comm_team_revoke(&team);
    swap();
    comm_team_revoke(&team);
    others = settle_these();
    swap();
    these = settle_these();
    return these == RECOVERED ? others : these;
}

static void part(void)
{
    comm_team_part(&team);
    swap();
    comm_team_part(&team);
}

static bool is_left(void)
{
    return fake_gpu_live("communicators") != 0;
}

/* Frees the failed communicators, makes new ones and reduces with them. STUCK: a device is stuck;
 * on a busy machine a call may take BOUND_US without a fault. */
static enum ending make_another(void)
{
    int64_t until_us = clock_now_us() + COMM_TEAM_LONG_US;

    part();
    while (is_left() && !any_stuck() && clock_now_us() < until_us)
        sched_yield();
    fake_gpu_faults(NULL);
    if (any_stuck())
        return STUCK;
    if (is_left())
        return wrong("freed communicators are still there");
    memset(team.rc, 0, sizeof(team.rc));
    if (!make_warm())
        return wrong("a new communicator does not work");
    comm_team_run(&team, act_thrice);
    return any_stuck() ? STUCK : all_well() ? RECOVERED : wrong("a new one works only once");
}

/* Closes the team. WRONG: a callback came twice, or objects or memory are left. */
static enum ending close_all(void)
{
    part();
    comm_team_close(&team);
    for (uint32_t i = 0; i < members; i++)
        if (atomic_load(&team.stuck[i]) > 1)
            return wrong("the callback is called twice");
    if (any_stuck())
        return STUCK;
    for (uint32_t i = 0; i < members; i++) {
        fake_gpu_free(i, numbers[i]);
        if (team.cuda->stream_destroy(streams[i]))
            return wrong("a stream cannot be destroyed");
    }
    if (is_left() || fake_gpu_live("events") || fake_gpu_live("streams") || fake_gpu_live("memory"))
        return wrong("objects are left on a device");
    return heap_blocks() ? wrong("memory is left") : RECOVERED;
}

/* Plays one row: makes the communicator, raises the fault at the row's moment, settles, makes a new
 * communicator and closes all. Returns the row's outcome. */
static enum ending play(const struct row *row)
{
    enum ending ending;

    if (open_all(row->may_stick ? BOUND_US : 0, MEMBERS))
        return wrong("the team cannot be opened");
    if (row->moment == STARTING)
        at_starting(row->fault);
    else if (!make_warm())
        return wrong("the communicator cannot be made");
    else if (row->moment == BESIDE)
        at_beside(row->fault);
    else if (row->moment <= BETWEEN)
        at_work(row->fault, row->moment);
    else
        at_end(row->fault, row->moment);
    if (row->moment == CLOSING)
        return close_all();
    ending = settle_all();
    if (ending == RECOVERED)
        ending = make_another();
    if (ending == WRONG)
        return WRONG;
    fake_gpu_faults(NULL);
    return close_all();
}

/* ---- the table ---- */

typedef enum ending play_fn(const struct row *row);

/* Ends the process. A stuck device keeps its threads for ever, and an abort at the same time may be
 * half done. Then _exit ends the process, because ThreadSanitizer would report threads that were
 * not joined. */
NORETURN static void end_process(enum ending ending)
{
    if (ending == STUCK)
        syscall(SYS_exit_group, (int)ending);
    _exit((int)ending);
}

/* Forks a process that plays the row, with the functions of an old NCCL if `old` is set. Returns
 * its pid. */
static pid_t start(const struct row *row, bool old, play_fn *play_row)
{
    pid_t child;

    fflush(NULL);
    child = fork();
    if (child < 0)
        abort();
    if (child == 0) {
        alarm(HANG_S);
        heap_use();
        if (old)
            comm_team_use_old();
        end_process(play_row(row));
    }
    return child;
}

static enum ending await(pid_t child)
{
    int status;

    if (waitpid(child, &status, 0) != child)
        abort();
    if (WIFSIGNALED(status))
        fprintf(stderr, "%s\n",
                WTERMSIG(status) == SIGALRM ? "the process hangs" : "the process is killed");
    return WIFEXITED(status) ? (enum ending)WEXITSTATUS(status) : WRONG;
}

static enum ending play_apart(const char *fault, play_fn *play_row)
{
    const struct row row = { .fault = fault };

    return await(start(&row, false, play_row));
}

/* Plays the fault at all moments, each in its own process, at the same time. sticks: the device
 * must be reported as stuck at one of the moments at least. */
static void check_fault(struct test *t, const char *fault, bool sticks, bool old)
{
    pid_t children[MOMENTS];
    unsigned stuck = 0;

    for (int moment = 0; moment < MOMENTS; moment++)
        children[moment] = start(&(const struct row){ .fault = fault,
                                                      .moment = (enum moment)moment,
                                                      .may_stick = sticks },
                                 old, play);
    for (int moment = 0; moment < MOMENTS; moment++) {
        enum ending ending = await(children[moment]);

        stuck += ending == STUCK;
        if (ending != RECOVERED && !(ending == STUCK && sticks))
            test_fail(t, __FILE__, __LINE__, "%s%s, %s: %s", fault, old ? " of an old one" : "",
                      moments[moment], ending == STUCK ? "stuck" : "see above");
    }
    if (!t->failed && sticks && !stuck)
        test_fail(t, __FILE__, __LINE__, "%s: the device is never stuck", fault);
}

TEST_FLAGS(faults_in_starting, TEST_NO_TORTURE)
{
    check_fault(t, "init:slow=50", false, false);
    check_fault(t, "init@1:error", false, false);
    check_fault(t, "init@1:hang", false, false);
}

TEST_FLAGS(faults_in_a_collective, TEST_NO_TORTURE)
{
    check_fault(t, "collective@1:slow=50", false, false);
    check_fault(t, "collective@1:error", false, false);
    check_fault(t, "collective@1:hang", false, false);
    check_fault(t, "collective@1:fail", false, false);
}

TEST_FLAGS(faults_in_revoking, TEST_NO_TORTURE)
{
    check_fault(t, "revoke:slow=50", false, false);
    check_fault(t, "revoke@1:error", false, false);
    check_fault(t, "revoke@1:slow=5000", true, false);
    check_fault(t, "revoke@1:hang", true, false);
}

TEST_FLAGS(faults_in_aborting, TEST_NO_TORTURE)
{
    check_fault(t, "abort:slow=50", false, false);
    check_fault(t, "abort@1:slow=5000", true, false);
    check_fault(t, "abort@1:hang", true, false);
    check_fault(t, "revoke@1:error abort@1:hang", true, false);
}

TEST_FLAGS(faults_in_the_driver, TEST_NO_TORTURE)
{
    check_fault(t, "event:fail", false, false);
    check_fault(t, "event#1:fail", false, false);
    check_fault(t, "event#4:fail", false, false);
    check_fault(t, "device:lost", true, false);
}

/* An old library has no revoke: the aborter does the work instead. */
TEST_FLAGS(faults_of_an_old_library, TEST_NO_TORTURE)
{
    check_fault(t, "init@1:error", false, true);
    check_fault(t, "collective@1:error", false, true);
    check_fault(t, "collective@1:hang", false, true);
    check_fault(t, "abort:slow=50", false, true);
    check_fault(t, "abort@1:hang", true, true);
}

/* ---- a member that is killed: a process ---- */

/* Begins to make a communicator of two processes. Both have the first device, so each claims to be
 * a host of its own. */
static int begin_one(struct nccl_id *id, uint32_t rank)
{
    const struct comm_spec spec = { .id = *id, .rank = rank, .size = 2 };

    return comm_begin(team.threads[0], &spec, &team.comms[0], &team.err[0]);
}

static void act_of_two(struct comm_team *all, uint32_t rank)
{
    bool ready = comm_await(all->comms[rank], clock_now_us() + COMM_TEAM_LONG_US) == COMM_READY;

    all->rc[rank] = ready ? greatest(rank, false) : HVD_E_LOST;
}

NORETURN static void be_killed(int from, const char *fault)
{
    struct nccl_id id;

    alarm(HANG_S);
    setenv("NCCL_HOSTID", "another", 1);
    if (open_all(0, 1) || read(from, &id, sizeof(id)) != sizeof(id))
        _exit(WRONG);
    fake_gpu_faults(fault);
    if (begin_one(&id, 1))
        _exit(WRONG);
    comm_team_run(&team, act_of_two);
    _exit(WRONG); /* the parent must have killed this process before */
}

/* Plays the member that stays: the peer gets the id through `to` and is killed. The call must fail,
 * and after the end of the communicator a new one must work. */
static enum ending outlive(pid_t peer, int to)
{
    enum ending ending;
    struct nccl_id id;
    int status;

    if (open_all(0, 1) || comm_make_id(team.threads[0], &id, &team.err[0]) || begin_one(&id, 0) ||
        write(to, &id, sizeof(id)) != sizeof(id))
        return wrong("the communicator cannot be begun");
    comm_team_start(&team, act_of_two);
    if (waitpid(peer, &status, 0) != peer || !WIFSIGNALED(status))
        return wrong("the peer was not killed");
    comm_team_revoke(&team);
    comm_team_await(&team);
    if (!team.rc[0])
        return wrong("a call with a dead member succeeds");
    ending = settle_all();
    if (ending == RECOVERED)
        ending = make_another();
    return ending == RECOVERED ? close_all() : WRONG;
}

/* Both members are child processes of the row's process, so that neither has loaded a library
 * yet. */
static enum ending play_killed(const struct row *row)
{
    int pipes[2];
    pid_t peer;

    if (pipe(pipes))
        return wrong("no pipe");
    peer = fork();
    if (peer < 0)
        return wrong("no process");
    if (peer == 0)
        be_killed(pipes[0], row->fault);
    return outlive(peer, pipes[1]);
}

TEST_FLAGS(a_member_is_killed, TEST_NO_TORTURE)
{
    CHECK_INT(t, play_apart("init:die", play_killed), ==, RECOVERED);
    CHECK_INT(t, play_apart("collective:die", play_killed), ==, RECOVERED);
}

/* ---- which member learns of which failure ---- */

/* The member with the fault has the failure in its next call, after a call that has returned; the
 * other members wait for that member. */
static void act_learn(struct comm_team *all, uint32_t rank)
{
    int rc = greatest(rank, true);

    if (!rc)
        rc = comm_settle(all->comms[rank], &all->err[rank]);
    if (!rc && rank == 1)
        rc = greatest(rank, true);
    all->rc[rank] = rc;
}

/* Member 1 loses its peer: member 1 reports HVD_E_LOST, the other member is revoked, and so is each
 * later call. */
static enum ending play_learn(const struct row *row)
{
    struct hvd_err why = { .code = 0 };

    if (open_all(0, MEMBERS) || !make_warm())
        return wrong("the communicator cannot be made");
    fake_gpu_faults(row->fault);
    comm_team_run(&team, act_learn);
    if (team.rc[1] != HVD_E_LOST)
        return wrong("the call does not report the lost peer");
    if (comm_look(team.comms[1], &why) != COMM_FAILED || why.code != HVD_E_LOST ||
        !strstr(why.text, "a peer is gone"))
        return wrong("the state does not report the lost peer");
    if (comm_look(team.comms[0], &why) != COMM_FAILED || why.code != HVD_E_REVOKED)
        return wrong("the other members are not revoked");
    if (greatest(1, true) != HVD_E_REVOKED)
        return wrong("a later call is not revoked");
    return close_all();
}

TEST_FLAGS(a_lost_peer_is_told, TEST_NO_TORTURE)
{
    CHECK_INT(t, play_apart("collective@1:error", play_learn), ==, RECOVERED);
}

/* ---- behaviour that the stand-in does not have ---- */

static struct nccl ours, theirs;

/* From here on this member's NCCL thread calls the functions of `changed` instead of the
 * stand-in's. The thread reads its table of functions without the lock while it is in a call, so
 * the end of that call is awaited. */
static void change_nccl(uint32_t rank, const struct nccl *changed)
{
    struct nccl_thread *thread = team.threads[rank];

    pthread_mutex_lock(&thread->mutex);
    while (thread->watch.inside_us || thread->watch.aborting_us)
        watchdog_wait(thread, clock_now_us() + 1000);
    theirs = ours = *thread->nccl;
    if (changed->async_error)
        ours.async_error = changed->async_error;
    if (changed->group_start)
        ours.group_start = changed->group_start;
    thread->nccl = &ours;
    pthread_mutex_unlock(&thread->mutex);
}

static int say_lost(struct ncclComm *comm, int *ret_code)
{
    int code = theirs.async_error(comm, ret_code);

    if (*ret_code == NCCL_OK)
        *ret_code = NCCL_REMOTE_ERROR;
    return code;
}

/* A proxy that has lost its peer reports this after a revoke, too. The revoke has worked all the
 * same, and the communicator stays until it is freed. */
static enum ending play_lost_for_ever(const struct row *row)
{
    (void)row;
    if (open_all(0, MEMBERS) || !make_warm())
        return wrong("the communicator cannot be made");
    first_alone();
    change_nccl(0, &(const struct nccl){ .async_error = say_lost });
    if (settle_all() != RECOVERED)
        return wrong("the communicators do not settle");
    if (fake_gpu_live("communicators") != MEMBERS)
        return wrong("a communicator is aborted already");
    return close_all();
}

TEST_FLAGS(a_lost_peer_stays_lost, TEST_NO_TORTURE)
{
    CHECK_INT(t, play_apart(NULL, play_lost_for_ever), ==, RECOVERED);
}

static atomic_bool hung; /* a call hangs */

static int hang(void)
{
    atomic_store(&hung, true);
    while (pause()) /* pause returns only after a signal, and always -1: this loop never ends */
        ;
    return 0;
}

/* The NCCL thread hangs in a call; another thread must report the device as stuck. */
static enum ending play_hang(const struct row *row)
{
    (void)row;
    if (open_all(BOUND_US, 1) || !make_warm())
        return wrong("the communicator cannot be made");
    change_nccl(0, &(const struct nccl){ .group_start = hang });
    comm_team_start(&team, act_once);
    while (!atomic_load(&hung)) /* a revoke before the call would settle the communicator */
        sched_yield();
    comm_team_revoke(&team);
    comm_team_await(&team);
    if (team.rc[0] != HVD_E_REVOKED)
        return wrong("a call that hangs is not revoked");
    return settle_all() == STUCK ? close_all() : WRONG;
}

TEST_FLAGS(a_call_hangs, TEST_NO_TORTURE)
{
    CHECK_INT(t, play_apart(NULL, play_hang), ==, STUCK);
}

static struct cuda slow;
static const struct cuda *quick;
static atomic_bool hangs; /* the next question about an event hangs */

static int query(struct CUevent_st *event)
{
    return atomic_load(&hangs) ? hang() : quick->event_query(event);
}

/* A thread of the program is in a driver call that waits for the device, and the NCCL thread must
 * wait for this call. The call is the program's, so no thread of the library comes to settle the
 * communicator. */
static enum ending play_hang_unseen(const struct row *row)
{
    int64_t until_us;

    (void)row;
    if (open_all(BOUND_US, MEMBERS))
        return wrong("the team cannot be opened");
    /* Before there is a communicator: later only the NCCL thread may use its table of calls. */
    pthread_mutex_lock(&team.threads[0]->mutex);
    quick = team.threads[0]->cuda;
    slow = *quick;
    slow.event_query = query;
    team.threads[0]->cuda = &slow;
    pthread_mutex_unlock(&team.threads[0]->mutex);
    if (!make_warm())
        return wrong("the communicator cannot be made");
    first_alone();
    atomic_store(&hangs, true);
    comm_revoke(team.comms[0]);
    until_us = clock_now_us() + COMM_TEAM_LONG_US;
    while (!any_stuck() && clock_now_us() < until_us)
        sched_yield();
    if (!any_stuck())
        return wrong("no thread sees that the device is stuck");
    return close_all();
}

TEST_FLAGS(a_call_hangs_and_no_thread_settles, TEST_NO_TORTURE)
{
    CHECK_INT(t, play_apart(NULL, play_hang_unseen), ==, STUCK);
}

/* ---- no NCCL thread ---- */

static enum ending play_no_stream(const struct row *row)
{
    struct nccl_thread *thread = NULL;
    struct nccl_thread_options options = { .bound_us = BOUND_US };

    fake_gpu_use(1);
    if (gpu_device_get(0, &options.device, NULL))
        return wrong("no device");
    fake_gpu_faults(row->fault);
    return nccl_thread_open(&options, &thread, NULL) == HVD_E_IO && !heap_blocks() ? RECOVERED
                                                                                   : WRONG;
}

TEST_FLAGS(a_thread_without_a_stream_is_not_opened, TEST_NO_TORTURE)
{
    CHECK_INT(t, play_apart("stream:fail", play_no_stream), ==, RECOVERED);
    CHECK_INT(t, play_apart("device:lost", play_no_stream), ==, RECOVERED);
}

/* ---- a device that cannot be used at first ---- */

static atomic_bool may_enter;
static pthread_t opener;

static int push_later(struct CUctx_st *context)
{
    if (!pthread_equal(pthread_self(), opener) && !atomic_load(&may_enter))
        return CUDA_OUT_OF_MEMORY;
    return team.cuda->context_push(context);
}

static enum comm_state state_of_another(void)
{
    enum comm_state state = COMM_FAILED;
    struct comm_spec spec = { .size = 1 };
    struct comm *comm = NULL;

    if (!comm_make_id(team.threads[0], &spec.id, &team.err[0]) &&
        !comm_begin(team.threads[0], &spec, &comm, &team.err[0]))
        state = comm_await(comm, clock_now_us() + COMM_TEAM_LONG_US);
    comm_free(comm);
    return state;
}

/* The member's threads cannot enter the device: no communicator is made, and none on another
 * device. */
static enum ending play_late(const struct row *row)
{
    static struct gpu_device device;
    static struct cuda cuda;
    struct nccl_thread_options options = { .device = &device, .bound_us = COMM_TEAM_LONG_US };

    (void)row;
    if (comm_team_open(&team, 0, 0) || gpu_device_get(0, &team.devices[0], &team.err[0]))
        return wrong("no device");
    opener = pthread_self();
    device = *team.devices[0];
    cuda = *team.cuda;
    cuda.context_push = push_later;
    device.cuda = &cuda;
    if (nccl_thread_open(&options, &team.threads[0], &team.err[0]))
        return wrong("no NCCL thread");
    if (state_of_another() != COMM_FAILED)
        return wrong("a communicator is made without its device");
    atomic_store(&may_enter, true);
    if (state_of_another() != COMM_READY)
        return wrong("no communicator is made with its device");
    nccl_thread_close(team.threads[0]);
    return RECOVERED;
}

TEST_FLAGS(a_device_is_late, TEST_NO_TORTURE)
{
    CHECK_INT(t, play_apart(NULL, play_late), ==, RECOVERED);
}
