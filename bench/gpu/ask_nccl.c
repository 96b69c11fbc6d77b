#include "bench/gpu/kernels.h"
#include "bench/gpu/nccl_work.h"
#include "bench/gpu/questions.h"

#define STUCK_US     50000 /* until a kernel that waits for ever certainly does */
#define STUCK_COUNT  MEMBER_NUMBERS
#define SPIN_MS      1000
#define NEVER_ENDS_S 10
#define COST_S       40 /* for each number of ranks; then it is not repeated any more */

/* ---- several ranks on one device ------------------------------------------------------------- */

static void meet_once(struct member *member)
{
    struct ncclComm *comm = work_comm(member, member->size, "the first communicator of a process");

    work_verify(member, comm, member->size);
    member_gate(member);
    member_add(member, "its abort, when nothing runs", "ms", work_abort(member, comm));
}

void ask_hosts(struct team *team)
{
    bool shared = team->page->found.devices < team->size;

    team->live = meet_once;
    figure_say(&team->page->figures, team->question, "sums are right", team->size, "%s%s",
               team_run(team, "the end", TEAM_WAIT_S, NULL) ? "yes" : "NO",
               shared ? ", several ranks on one device, each a host of its own"
                      : ", a device for each rank");
}

void ask_duplicate(struct team *team)
{
    bool together;

    team->live = meet_once;
    team->size = team->page->found.devices + 1;
    if (team->size > TEAM_MAX)
        return;
    team->as_it_is = true;
    together = team_run(team, "the end", TEAM_WAIT_S, NULL);
    figure_say(&team->page->figures, team->question, "NCCL takes them", team->size, "%s",
               together ? "yes" : "no");
}

/* ---- what a new round costs ------------------------------------------------------------------ */

/* The last member does not come, and the others' kernels wait for it. */
static void get_stuck(struct member *member, struct ncclComm *comm)
{
    work_verify(member, comm, member->size);
    member_gate(member);
    if (member->rank + 1 < member->size)
        work_allreduce(member, comm, STUCK_COUNT, member->stream);
    nap_us(STUCK_US);
    member_gate(member);
}

static bool survives(const struct member *member)
{
    return member->rank + 1 < member->size;
}

static void revoke_once(struct member *member)
{
    struct ncclComm *comm = work_comm(member, member->size, "");
    int64_t start_us;

    get_stuck(member, comm);
    start_us = now_us();
    member_must_nccl(member, member->nccl->revoke_comm(comm, 0), "a revoke");
    if (survives(member))
        member_add(member, "revoke: the call", "ms", (double)(now_us() - start_us) / 1e3);
    if (!work_done(member, member->stream, NEVER_ENDS_S))
        member_fail(member, "a revoke", "the kernel does not end");
    if (survives(member))
        member_add(member, "revoke: until the user's stream is free", "ms",
                   (double)(now_us() - start_us) / 1e3);
    member_must_nccl(member, work_settle(member, comm), "a revoke");
    if (survives(member))
        member_add(member, "revoke: until NCCL says that it is done", "ms",
                   (double)(now_us() - start_us) / 1e3);
    member_gate(member);
    member_add(member, "abort of what has been revoked", "ms", work_abort(member, comm));
}

static void abort_once(struct member *member)
{
    struct ncclComm *comm = work_comm(member, member->size, "");
    double ms;

    get_stuck(member, comm);
    ms = work_abort(member, comm);
    if (survives(member))
        member_add(member, "abort, with a kernel that waits for ever", "ms", ms);
    member_gate(member);
}

/* The last one is left out. */
static void shrink_once(struct member *member)
{
    struct ncclComm *comm = work_comm(member, member->size, "");
    struct ncclComm *smaller = NULL;
    struct nccl_config config = { sizeof(config), NCCL_CONFIG_MAGIC, NCCL_CONFIG_VERSION, 0 };
    int gone = (int)member->size - 1;
    int64_t start_us;

    get_stuck(member, comm);
    if (survives(member)) {
        start_us = now_us();
        member_must_nccl(member, member->nccl->comm_shrink(comm, &gone, 1, &smaller, &config, 1),
                         "a shrink");
        member_must_nccl(member, work_settle(member, comm), "a shrink");
        if (!smaller)
            member_fail(member, "a shrink", "there is no new communicator");
        member_must_nccl(member, work_settle(member, smaller), "a shrink");
        member_add(member, "shrink, with a kernel that waits for ever, until ready", "ms",
                   (double)(now_us() - start_us) / 1e3);
        work_verify(member, smaller, member->size - 1);
    }
    member_gate(member); /* what one has brought to a sum may not have been taken by another yet */
    if (smaller)
        work_abort(member, smaller);
    work_abort(member, comm);
    member_gate(member);
}

/* Our replacement of a shrink: a revoke, and a fresh communicator for the survivors. */
static void renew_once(struct member *member)
{
    struct ncclComm *comm = work_comm(member, member->size, "");
    struct ncclComm *smaller;
    int64_t start_us;

    get_stuck(member, comm);
    start_us = now_us();
    if (member->nccl->revoke_comm) {
        member_must_nccl(member, member->nccl->revoke_comm(comm, 0), "a revoke");
        member_must_nccl(member, work_settle(member, comm), "a revoke");
    } else {
        work_abort(member, comm);
    }
    smaller = work_comm(member, member->size - 1, "");
    if (smaller) {
        member_add(member, "revoke and a fresh one instead of it, until ready", "ms",
                   (double)(now_us() - start_us) / 1e3);
        work_verify(member, smaller, member->size - 1);
    }
    member_gate(member);
    if (smaller)
        work_abort(member, smaller);
    if (member->nccl->revoke_comm)
        work_abort(member, comm);
    member_gate(member);
}

/* A communicator, the first allreduces on it, and its end. */
static void meet(struct member *member, const char *name, const char *first)
{
    struct ncclComm *comm = work_comm(member, member->size, name);
    int64_t start_us;

    member_gate(member);
    start_us = now_us();
    work_verify(member, comm, member->size);
    member_add(member, first, "ms", (double)(now_us() - start_us) / 1e3);
    member_gate(member);
    work_abort(member, comm);
}

static void pay(struct member *member)
{
    int64_t until_us = now_us() + COST_S * INT64_C(1000000);

    member_gate(member);
    meet(member, "the first communicator of a process (cold)", "its first allreduces (cold)");
    for (uint32_t i = 0; i < member->options->times && !atomic_load(&member->page->enough); i++) {
        meet(member, "another communicator (warm)", "its first allreduces (warm)");
        abort_once(member);
        if (member->nccl->revoke_comm)
            revoke_once(member);
        if (member->size > 2)
            renew_once(member);
        if (member->size > 2 && member->nccl->comm_shrink)
            shrink_once(member);
        if (now_us() > until_us)
            atomic_store(&member->page->enough, 1);
        member_gate(member);
    }
}

void ask_cost(struct team *team)
{
    team->live = pay;
    for (team->size = 2; team->size <= team->options->ranks_most; team->size++)
        (void)team_run(team, "the end", TEAM_WAIT_S + COST_S, NULL);
}

/* ---- what an abort waits for ----------------------------------------------------------------- */

static void await_spin(struct member *member, const char *name, int64_t start_us)
{
    member_add(member, name, "ms", (double)(now_us() - start_us) / 1e3);
    if (!work_done(member, member->stream, TEAM_WAIT_S))
        member_fail(member, name, "the user's kernel does not end");
    member_gate(member);
}

/* As we do it: a stream of our own, which waits for an event of the user's. */
static struct CUstream_st *stream_behind(struct member *member)
{
    const struct cuda *cuda = member->cuda;
    struct CUstream_st *own = NULL;
    struct CUevent_st *event = NULL;

    member_must_cuda(member, cuda->stream_create(&own, CUDA_STREAM_NON_BLOCKING, 0), "a stream");
    member_must_cuda(member, cuda->event_create(&event, CUDA_EVENT_UNTIMED), "an event");
    member_must_cuda(member, cuda->event_record(event, member->stream), "an event");
    member_must_cuda(member, cuda->stream_wait(own, event, 0), "an event");
    return own;
}

static void be_busy(struct member *member)
{
    struct ncclComm *comm;
    int64_t start_us;

    for (int way = 0; way < 4; way++) {
        bool own = way >= 2;
        bool revoke = way % 2;

        if (revoke && !member->nccl->revoke_comm)
            continue;
        comm = work_comm(member, member->size, "");
        work_verify(member, comm, member->size);
        member_gate(member);
        kernels_spin(member, member->stream, SPIN_MS);
        work_allreduce(member, comm, STUCK_COUNT, own ? stream_behind(member) : member->stream);
        start_us = now_us();
        if (revoke)
            member_must_nccl(member, member->nccl->revoke_comm(comm, 0), "a revoke");
        if (revoke)
            member_must_nccl(member, work_settle(member, comm), "a revoke");
        else
            work_abort(member, comm);
        await_spin(member,
                   own      ? revoke ? "revoke, own stream behind the kernel, until done"
                                     : "abort, own stream behind the kernel"
                   : revoke ? "revoke, in the kernel's stream, until done"
                            : "abort, in the kernel's stream",
                   start_us);
        if (revoke)
            work_abort(member, comm);
    }
}

void ask_busy(struct team *team)
{
    team->live = be_busy;
    figure_say(&team->page->figures, team->question, "the user's kernel", team->size,
               "%d ms from about when the abort begins", SPIN_MS);
    (void)team_run(team, "the end", TEAM_WAIT_S, NULL);
}

/* ---- two communicators ----------------------------------------------------------------------- */

/* The first member's kernels of both wait for ever, in one stream, and so one behind the other. */
static void hold_two(struct member *member, struct ncclComm *comms[2])
{
    for (int i = 0; i < 2; i++) {
        comms[i] = work_comm(member, member->size, "");
        work_verify(member, comms[i], member->size);
    }
    member_gate(member);
    if (survives(member))
        for (int i = 0; i < 2; i++)
            work_allreduce(member, comms[i], STUCK_COUNT, member->stream);
    nap_us(STUCK_US);
    member_gate(member);
}

static void abort_each(struct member *member, int first, const char *name)
{
    struct ncclComm *comms[2];
    double ms;

    hold_two(member, comms);
    ms = work_abort(member, comms[first]);
    ms += work_abort(member, comms[!first]);
    if (survives(member))
        member_add(member, name, "ms", ms);
}

static void abort_in_order(struct member *member)
{
    abort_each(member, 0, "aborts one by one, in the order of their kernels");
}

static void abort_against_order(struct member *member)
{
    abort_each(member, 1, "aborts one by one, the later kernel's first");
}

static void abort_together(struct member *member)
{
    struct ncclComm *comms[2];
    int64_t start_us;

    hold_two(member, comms);
    start_us = now_us();
    member_must_nccl(member, member->nccl->group_start(), "a group");
    member_must_nccl(member, member->nccl->comm_abort(comms[1]), "an abort");
    member_must_nccl(member, member->nccl->comm_abort(comms[0]), "an abort");
    member_must_nccl(member, member->nccl->group_end(), "a group");
    if (survives(member))
        member_add(member, "aborts in a group, the later kernel's first", "ms",
                   (double)(now_us() - start_us) / 1e3);
    /* of communicators that do not block it may go on in the background */
    if (!work_done(member, member->stream, NEVER_ENDS_S))
        member_fail(member, "aborts in a group", "the kernels do not end");
    if (survives(member))
        member_add(member, "aborts in a group: until the stream is free", "ms",
                   (double)(now_us() - start_us) / 1e3);
}

void ask_two(struct team *team)
{
    static const struct {
        member_fn *live;
        const char *name;
    } ways[] = {
        {abort_in_order,       "one by one, in order"           },
        { abort_against_order, "one by one, the later one first"},
        { abort_together,      "in a group"                     },
    };

    team->size = 2;
    for (size_t i = 0; i < ARRAY_SIZE(ways); i++) {
        team->live = ways[i].live;
        (void)team_run(team, ways[i].name, NEVER_ENDS_S + 5, NULL);
    }
}
