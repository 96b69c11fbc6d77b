/*
 * Each fault of the stand-ins that a hand can meet, at each moment: it ends in a communicator that
 * has settled and a new one that works, with nothing left behind; or the device is said to be
 * stuck. Never in a hang. Each in a process of its own, as what is stuck stays.
 *
 * Not here: faults of copies, allocations and pinning, which the hand does not make.
 */
#include "collectives/nccl/hand_inside.h"
#include "os/clock.h"
#include "tests/lib/fake_gpu.h"
#include "tests/lib/hand_crew.h"
#include "tests/lib/heap.h"
#include "tests/lib/test.h"

#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define MEMBERS  3U
#define SHORT_US 200000 /* what goes well is over; what does not is revoked by then */
#define BOUND_US 300000 /* of what may be stuck */
#define HANG_S   60

enum moment { STARTING, BESIDE, IDLE, IN_CALL, BETWEEN, SETTLING, FREEING, CLOSING, MOMENTS };
static const char *const moments[] = { "starting",
                                       "another one starting beside it",
                                       "idle",
                                       "in a call",
                                       "between two calls",
                                       "settling",
                                       "freeing",
                                       "closing" };

/* What a row may end in, and how its process says so. */
enum ending { RECOVERED = 0, STUCK = 2, WRONG = 1 };

struct row {
    const char *fault;
    enum moment moment;
    bool may_stick;
};

static struct hand_crew crew;
static uint32_t members;
static struct comm *beside[HAND_CREW_MAX]; /* another communicator of the same hands */
static void *numbers[HAND_CREW_MAX];
static struct CUstream_st *streams[HAND_CREW_MAX];

/* ---- members ---- */

static int prepare(uint32_t rank)
{
    const double one = 1;
    int rc = hand_crew_alloc(&crew, rank, sizeof(one), &numbers[rank]);

    if (!rc)
        rc = hand_crew_put(&crew, rank, numbers[rank], &one, sizeof(one));
    if (!rc)
        rc = gpu_enter(crew.devices[rank], NULL);
    if (rc)
        return rc;
    rc = crew.cuda->stream_create(&streams[rank], CUDA_STREAM_NON_BLOCKING, 0);
    gpu_leave(crew.devices[rank]);
    return rc;
}

static int open_all(int64_t bound_us, uint32_t size)
{
    int rc = hand_crew_open(&crew, size, bound_us);

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

    return comm_run(crew.comms[rank], &call, streams[rank], streamed, &crew.err[rank]);
}

static void act_once(struct hand_crew *all, uint32_t rank)
{
    all->rc[rank] = greatest(rank, false);
}

static void act_streamed(struct hand_crew *all, uint32_t rank)
{
    all->rc[rank] = greatest(rank, true);
}

/* Streamed, waited for, and not streamed. */
static void act_thrice(struct hand_crew *all, uint32_t rank)
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

/* As a round: somebody sees that it takes too long, and revokes it. */
static void run(hand_act_fn *act)
{
    hand_crew_start(&crew, act);
    if (!hand_crew_await_until(&crew, clock_now_us() + SHORT_US))
        hand_crew_revoke(&crew);
    hand_crew_await(&crew);
}

static bool all_well(void)
{
    for (uint32_t i = 0; i < members; i++)
        if (crew.rc[i])
            return false;
    return true;
}

static bool make_warm(void)
{
    if (hand_crew_make(&crew))
        return false;
    hand_crew_run(&crew, act_once);
    return all_well();
}

/* The first one waits for the others in a kernel. */
static void first_alone(void)
{
    crew.away[1] = crew.away[2] = true;
    hand_crew_run(&crew, act_streamed);
    crew.away[0] = true;
    crew.away[1] = crew.away[2] = false;
}

/* ---- moments ---- */

static void at_starting(const char *fault)
{
    bool ready = true;

    fake_gpu_faults(fault);
    if (hand_crew_begin(&crew))
        return;
    for (uint32_t i = 0; i < members; i++)
        ready = comm_await(crew.comms[i], clock_now_us() + SHORT_US) == COMM_READY && ready;
    if (ready)
        run(act_thrice);
}

static void swap(void)
{
    for (uint32_t i = 0; i < members; i++) {
        struct comm *other = beside[i];

        beside[i] = crew.comms[i];
        crew.comms[i] = other;
    }
}

/* The first one works on, whatever becomes of the other. */
static void at_beside(const char *fault)
{
    swap();
    fake_gpu_faults(fault);
    if (!hand_crew_begin(&crew))
        for (uint32_t i = 0; i < members; i++)
            (void)comm_await(crew.comms[i], clock_now_us() + SHORT_US);
    swap();
    run(act_thrice);
}

static void at_work(const char *fault, enum moment moment)
{
    if (moment == IN_CALL)
        first_alone();
    if (moment == BETWEEN)
        hand_crew_run(&crew, act_streamed);
    fake_gpu_faults(fault);
    run(moment == IDLE ? act_thrice : act_streamed);
    memset(crew.away, 0, sizeof(crew.away));
}

static void at_end(const char *fault, enum moment moment)
{
    first_alone();
    memset(crew.away, 0, sizeof(crew.away));
    fake_gpu_faults(fault);
    if (moment != SETTLING)
        hand_crew_part(&crew);
}

/* ---- what it comes to ---- */

static bool any_stuck(void)
{
    bool any = false;

    for (uint32_t i = 0; i < members; i++)
        any = any || atomic_load(&crew.seats[i].stuck);
    return any;
}

static enum ending wrong(const char *what)
{
    fprintf(stderr, "%s\n", what);
    for (uint32_t i = 0; i < members; i++)
        fprintf(stderr, "  member %u: %s: %s\n", i, err_name(crew.rc[i]), crew.err[i].text);
    return WRONG;
}

/* Told once, and told to whoever waits. */
static enum ending settle_these(void)
{
    enum ending ending = RECOVERED;

    for (uint32_t i = 0; i < members; i++) {
        int rc = crew.comms[i] ? comm_settle(crew.comms[i], &crew.err[i]) : 0;

        if (rc && rc != HVD_E_TIMEOUT)
            return wrong("settling comes to something else");
        if (rc && atomic_load(&crew.seats[i].stuck) != 1)
            return wrong("settling gives up before it is told");
        if (rc)
            ending = STUCK;
    }
    return ending;
}

static enum ending settle_all(void)
{
    enum ending these, others;

    hand_crew_revoke(&crew);
    swap();
    hand_crew_revoke(&crew);
    others = settle_these();
    swap();
    these = settle_these();
    return these == RECOVERED ? others : these;
}

static void part(void)
{
    hand_crew_part(&crew);
    swap();
    hand_crew_part(&crew);
}

static bool is_left(void)
{
    return fake_gpu_live("communicators") != 0;
}

static enum ending make_another(void)
{
    int64_t until_us = clock_now_us() + HAND_CREW_LONG_US;

    part();
    while (is_left() && !any_stuck() && clock_now_us() < until_us)
        sched_yield();
    fake_gpu_faults(NULL);
    if (any_stuck())
        return STUCK;
    if (is_left())
        return wrong("what was freed is not given back");
    memset(crew.rc, 0, sizeof(crew.rc));
    if (!make_warm())
        return wrong("a new communicator does not work");
    hand_crew_run(&crew, act_thrice);
    return all_well() ? RECOVERED : wrong("a new communicator works only once");
}

static enum ending close_all(void)
{
    part();
    hand_crew_close(&crew);
    for (uint32_t i = 0; i < members; i++)
        if (atomic_load(&crew.seats[i].stuck) > 1)
            return wrong("it is told twice");
    if (any_stuck())
        return STUCK;
    for (uint32_t i = 0; i < members; i++) {
        hand_crew_free(&crew, i, numbers[i]);
        if (crew.cuda->stream_destroy(streams[i]))
            return wrong("a stream of the test");
    }
    if (is_left() || fake_gpu_live("events") || fake_gpu_live("streams") || fake_gpu_live("memory"))
        return wrong("something is left on a device");
    return heap_blocks() ? wrong("memory is left") : RECOVERED;
}

static enum ending play(const struct row *row)
{
    enum ending ending;

    if (open_all(row->may_stick ? BOUND_US : 0, MEMBERS))
        return wrong("it cannot be opened");
    if (row->moment == STARTING)
        at_starting(row->fault);
    else if (!make_warm())
        return wrong("it cannot be made");
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
            hand_crew_use_old();
        _exit((int)play_row(row));
    }
    return child;
}

static enum ending await(pid_t child)
{
    int status;

    if (waitpid(child, &status, 0) != child)
        abort();
    if (WIFSIGNALED(status))
        fprintf(stderr, "%s\n", WTERMSIG(status) == SIGALRM ? "it hangs" : "it is killed");
    return WIFEXITED(status) ? (enum ending)WEXITSTATUS(status) : WRONG;
}

static enum ending play_apart(const char *fault, play_fn *play_row)
{
    const struct row row = { .fault = fault };

    return await(start(&row, false, play_row));
}

/* All moments at the same time. sticks: at one of them at least it is told. */
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
        test_fail(t, __FILE__, __LINE__, "%s: it is never stuck", fault);
}

static void in_starting(struct test *t)
{
    check_fault(t, "init:slow=50", false, false);
    check_fault(t, "init@1:error", false, false);
    check_fault(t, "init@1:hang", false, false);
}

static void in_a_collective(struct test *t)
{
    check_fault(t, "collective@1:slow=50", false, false);
    check_fault(t, "collective@1:error", false, false);
    check_fault(t, "collective@1:hang", false, false);
    check_fault(t, "collective@1:fail", false, false);
}

static void in_revoking(struct test *t)
{
    check_fault(t, "revoke:slow=50", false, false);
    check_fault(t, "revoke@1:error", false, false);
    check_fault(t, "revoke@1:slow=5000", true, false);
    check_fault(t, "revoke@1:hang", true, false);
}

static void in_aborting(struct test *t)
{
    check_fault(t, "abort:slow=50", false, false);
    check_fault(t, "abort@1:slow=5000", true, false);
    check_fault(t, "abort@1:hang", true, false);
    check_fault(t, "revoke@1:error abort@1:hang", true, false);
}

static void in_the_driver(struct test *t)
{
    check_fault(t, "event:fail", false, false);
    check_fault(t, "event#1:fail", false, false);
    check_fault(t, "event#4:fail", false, false);
    check_fault(t, "device:lost", true, false);
}

/* Where there is no revoke, the aborter does what it would. */
static void of_an_old_library(struct test *t)
{
    check_fault(t, "init@1:error", false, true);
    check_fault(t, "collective@1:error", false, true);
    check_fault(t, "collective@1:hang", false, true);
    check_fault(t, "abort:slow=50", false, true);
    check_fault(t, "abort@1:hang", true, true);
}

/* ---- a member that is killed: a process ---- */

/* The members of both processes have the first device, so they say that they are two hosts. */
static int begin_one(struct nccl_id *id, uint32_t rank)
{
    const struct comm_spec spec = { .id = *id, .rank = rank, .size = 2 };

    return comm_begin(crew.hands[0], &spec, &crew.comms[0], &crew.err[0]);
}

static void act_of_two(struct hand_crew *all, uint32_t rank)
{
    bool ready = comm_await(all->comms[rank], clock_now_us() + HAND_CREW_LONG_US) == COMM_READY;

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
    hand_crew_run(&crew, act_of_two);
    _exit(WRONG); /* it was to be killed */
}

static enum ending outlive(pid_t peer, int to)
{
    enum ending ending;
    struct nccl_id id;
    int status;

    if (open_all(0, 1) || comm_make_id(crew.hands[0], &id, &crew.err[0]) || begin_one(&id, 0) ||
        write(to, &id, sizeof(id)) != sizeof(id))
        return wrong("it cannot be begun");
    hand_crew_start(&crew, act_of_two);
    if (waitpid(peer, &status, 0) != peer || !WIFSIGNALED(status))
        return wrong("the other one was not killed");
    hand_crew_revoke(&crew);
    hand_crew_await(&crew);
    if (!crew.rc[0])
        return wrong("a call with a dead one comes to something");
    ending = settle_all();
    if (ending == RECOVERED)
        ending = make_another();
    return ending == RECOVERED ? close_all() : WRONG;
}

/* Both are children of this one, so that neither has a library yet. */
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

static void a_member_is_killed(struct test *t)
{
    CHECK_INT(t, play_apart("init:die", play_killed), ==, RECOVERED);
    CHECK_INT(t, play_apart("collective:die", play_killed), ==, RECOVERED);
out:
    return;
}

/* ---- who is told what ---- */

/* The one with the fault learns of it behind a call that has returned; the others wait for it. */
static void act_learn(struct hand_crew *all, uint32_t rank)
{
    int rc = greatest(rank, true);

    if (!rc)
        rc = comm_settle(all->comms[rank], &all->err[rank]);
    if (!rc && rank == 1)
        rc = greatest(rank, true);
    all->rc[rank] = rc;
}

static enum ending play_learn(const struct row *row)
{
    struct hvd_err why = { .code = 0 };

    if (open_all(0, MEMBERS) || !make_warm())
        return wrong("it cannot be made");
    fake_gpu_faults(row->fault);
    hand_crew_run(&crew, act_learn);
    if (crew.rc[1] != HVD_E_LOST)
        return wrong("a lost peer is something else");
    if (comm_look(crew.comms[1], &why) != COMM_FAILED || why.code != HVD_E_LOST ||
        !strstr(why.text, "a peer is gone"))
        return wrong("what it looks like is something else");
    if (comm_look(crew.comms[0], &why) != COMM_FAILED || why.code != HVD_E_REVOKED)
        return wrong("the others look like something else");
    if (greatest(1, true) != HVD_E_REVOKED)
        return wrong("later calls come to something else");
    return close_all();
}

static void a_lost_peer_is_told(struct test *t)
{
    CHECK_INT(t, play_apart("collective@1:error", play_learn), ==, RECOVERED);
out:
    return;
}

/* ---- what the stand-in does not do ---- */

static struct nccl ours, theirs;

/* From here on the hand of this member calls ours instead. */
static void change_nccl(uint32_t rank, const struct nccl *changed)
{
    struct hand *hand = crew.hands[rank];

    pthread_mutex_lock(&hand->mutex);
    theirs = ours = *hand->nccl;
    if (changed->async_error)
        ours.async_error = changed->async_error;
    if (changed->group_start)
        ours.group_start = changed->group_start;
    hand->nccl = &ours;
    pthread_mutex_unlock(&hand->mutex);
}

static int say_lost(struct ncclComm *comm, int *ret_code)
{
    int code = theirs.async_error(comm, ret_code);

    if (*ret_code == NCCL_OK)
        *ret_code = NCCL_REMOTE_ERROR;
    return code;
}

/* A proxy that has lost its peer says so after a revoke, too: that has worked all the same, and the
 * communicator stays until it is freed. */
static enum ending play_lost_for_ever(const struct row *row)
{
    (void)row;
    if (open_all(0, MEMBERS) || !make_warm())
        return wrong("it cannot be made");
    first_alone();
    change_nccl(0, &(const struct nccl){ .async_error = say_lost });
    if (settle_all() != RECOVERED)
        return wrong("it does not settle");
    if (fake_gpu_live("communicators") != MEMBERS)
        return wrong("it is aborted already");
    return close_all();
}

static void a_peer_is_lost_for_ever(struct test *t)
{
    CHECK_INT(t, play_apart(NULL, play_lost_for_ever), ==, RECOVERED);
out:
    return;
}

static int hang(void)
{
    while (pause()) /* it always comes to this */
        ;
    return 0;
}

/* Nothing that the hand could do any more: others see it. */
static enum ending play_hang(const struct row *row)
{
    (void)row;
    if (open_all(BOUND_US, 1) || !make_warm())
        return wrong("it cannot be made");
    change_nccl(0, &(const struct nccl){ .group_start = hang });
    run(act_once);
    if (crew.rc[0] != HVD_E_REVOKED)
        return wrong("a call that hangs comes to something");
    return settle_all() == STUCK ? close_all() : WRONG;
}

static void a_call_hangs(struct test *t)
{
    CHECK_INT(t, play_apart(NULL, play_hang), ==, STUCK);
out:
    return;
}

static struct cuda slow;
static const struct cuda *quick;
static atomic_bool hangs;

static int query(struct CUevent_st *event)
{
    return atomic_load(&hangs) ? hang() : quick->event_query(event);
}

/* Before there is a communicator: what the hand works with is its own from then on. */
static void make_slow(struct hand *hand)
{
    pthread_mutex_lock(&hand->mutex);
    quick = hand->cuda;
    slow = *quick;
    slow.event_query = query;
    hand->cuda = &slow;
    pthread_mutex_unlock(&hand->mutex);
}

/* Some other thread is in a call of the driver that waits for the device and keeps out the hand:
 * it is the program's, so nobody comes to settle anything. */
static enum ending play_hang_unseen(const struct row *row)
{
    int64_t until_us;

    (void)row;
    if (open_all(BOUND_US, MEMBERS))
        return wrong("it cannot be opened");
    make_slow(crew.hands[0]);
    if (!make_warm())
        return wrong("it cannot be made");
    first_alone();
    atomic_store(&hangs, true);
    comm_revoke(crew.comms[0]);
    until_us = clock_now_us() + HAND_CREW_LONG_US;
    while (!any_stuck() && clock_now_us() < until_us)
        sched_yield();
    if (!any_stuck())
        return wrong("nobody sees it");
    return close_all();
}

static void a_call_hangs_and_nobody_settles(struct test *t)
{
    CHECK_INT(t, play_apart(NULL, play_hang_unseen), ==, STUCK);
out:
    return;
}

/* ---- no hand ---- */

static enum ending play_no_stream(const struct row *row)
{
    struct hand *hand = NULL;
    struct hand_options options = { .bound_us = BOUND_US };

    fake_gpu_use(1);
    if (gpu_device_get(0, &options.device, NULL))
        return wrong("no device");
    fake_gpu_faults(row->fault);
    return hand_open(&options, &hand, NULL) == HVD_E_IO && !heap_blocks() ? RECOVERED : WRONG;
}

static void has_no_stream(struct test *t)
{
    CHECK_INT(t, play_apart("stream:fail", play_no_stream), ==, RECOVERED);
    CHECK_INT(t, play_apart("device:lost", play_no_stream), ==, RECOVERED);
out:
    return;
}

/* ---- a device that is not to be had at first ---- */

static atomic_bool may_enter;
static pthread_t opener;

static int push_later(struct CUctx_st *context)
{
    if (!pthread_equal(pthread_self(), opener) && !atomic_load(&may_enter))
        return CUDA_OUT_OF_MEMORY;
    return crew.cuda->context_push(context);
}

static enum comm_state state_of_another(void)
{
    enum comm_state state = COMM_FAILED;
    struct comm_spec spec = { .size = 1 };
    struct comm *comm = NULL;

    if (!comm_make_id(crew.hands[0], &spec.id, &crew.err[0]) &&
        !comm_begin(crew.hands[0], &spec, &comm, &crew.err[0]))
        state = comm_await(comm, clock_now_us() + HAND_CREW_LONG_US);
    comm_free(comm);
    return state;
}

/* Its threads cannot enter the device: no communicator is made, least of all on another one. */
static enum ending play_late(const struct row *row)
{
    static struct gpu_device device;
    static struct cuda cuda;
    struct hand_options options = { .device = &device, .bound_us = HAND_CREW_LONG_US };

    (void)row;
    if (hand_crew_open(&crew, 0, 0) || gpu_device_get(0, &crew.devices[0], &crew.err[0]))
        return wrong("no device");
    opener = pthread_self();
    device = *crew.devices[0];
    cuda = *crew.cuda;
    cuda.context_push = push_later;
    device.cuda = &cuda;
    if (hand_open(&options, &crew.hands[0], &crew.err[0]))
        return wrong("no hand");
    if (state_of_another() != COMM_FAILED)
        return wrong("it is made without its device");
    atomic_store(&may_enter, true);
    if (state_of_another() != COMM_READY)
        return wrong("it is not made with its device");
    hand_close(crew.hands[0]);
    return RECOVERED;
}

static void a_device_is_late(struct test *t)
{
    CHECK_INT(t, play_apart(NULL, play_late), ==, RECOVERED);
out:
    return;
}

TESTS(CASE_FLAGS(a_lost_peer_is_told, TEST_NO_TORTURE), CASE_FLAGS(in_starting, TEST_NO_TORTURE),
      CASE_FLAGS(in_a_collective, TEST_NO_TORTURE), CASE_FLAGS(in_revoking, TEST_NO_TORTURE),
      CASE_FLAGS(in_aborting, TEST_NO_TORTURE), CASE_FLAGS(in_the_driver, TEST_NO_TORTURE),
      CASE_FLAGS(of_an_old_library, TEST_NO_TORTURE),
      CASE_FLAGS(a_peer_is_lost_for_ever, TEST_NO_TORTURE),
      CASE_FLAGS(a_call_hangs, TEST_NO_TORTURE),
      CASE_FLAGS(a_call_hangs_and_nobody_settles, TEST_NO_TORTURE),
      CASE_FLAGS(a_member_is_killed, TEST_NO_TORTURE),
      CASE_FLAGS(a_device_is_late, TEST_NO_TORTURE), CASE_FLAGS(has_no_stream, TEST_NO_TORTURE))
