/*
 * comm.c: makes, shrinks, aborts and ends the communicators of the stand-in for NCCL. Each
 * communicator has a thread, which joins the other members and launches kernels.
 */
#include "tests/standin/kernel.h"

#include "base/mem.h"
#include "os/clock.h"
#include "os/thread.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define STEP_US 20000 /* how long a wait lasts before it checks its condition again */

static pthread_mutex_t all_lock = PTHREAD_MUTEX_INITIALIZER;
static struct ncclComm *all;

bool comm_is_known(const struct ncclComm *comm)
{
    const struct ncclComm *one;

    pthread_mutex_lock(&all_lock);
    for (one = all; one && one != comm; one = one->next)
        ;
    pthread_mutex_unlock(&all_lock);
    return one != NULL;
}

/* ---- waiting --------------------------------------------------------------------------------- */

bool comm_is_broken(const struct ncclComm *comm)
{
    int64_t at_us = atomic_load(&comm->break_at_us);

    return at_us != INT64_MAX && clock_now_us() >= at_us;
}

bool comm_is_lost(const struct ncclComm *comm)
{
    return standin_lost() || standin_losses() != comm->losses;
}

/* Sleeps until the time, or until the communicator changes. The caller holds the lock. */
static void nap(struct ncclComm *comm, int64_t until_us)
{
    int64_t soon_us = clock_now_us() + STEP_US;

    thread_cond_wait(&comm->news, &comm->lock, until_us < soon_us ? until_us : soon_us);
}

bool comm_delay(struct ncclComm *comm, int64_t us)
{
    int64_t until_us = clock_now_us() + us;

    pthread_mutex_lock(&comm->lock);
    while (!comm_is_broken(comm) && !comm_is_lost(comm) && clock_now_us() < until_us)
        nap(comm, until_us);
    pthread_mutex_unlock(&comm->lock);
    return comm_is_broken(comm);
}

static void break_at(struct ncclComm *comm, int64_t at_us)
{
    if (at_us < atomic_load(&comm->break_at_us))
        atomic_store(&comm->break_at_us, at_us);
    pthread_mutex_lock(&comm->lock);
    pthread_cond_broadcast(&comm->news);
    if (comm->meeting) {
        if (at_us != INT64_MAX)
            atomic_store(&comm->meeting->members[comm->rank].gone_us, at_us);
        meeting_ring(comm->meeting);
    }
    pthread_mutex_unlock(&comm->lock);
}

typedef bool member_fn(struct meeting_member *member);

/* Waits until the condition is true of all members. false: the communicator was broken before. */
static bool await_all(struct ncclComm *comm, member_fn *is_so)
{
    struct meeting *meeting = comm->meeting;

    for (;;) {
        uint32_t seen = meeting_see(meeting);
        int i = 0;

        while (i < comm->size && is_so(&meeting->members[i]))
            i++;
        if (i == comm->size)
            return true;
        if (comm_is_broken(comm))
            return false;
        meeting_wait(meeting, seen);
    }
}

/* ---- joining: the thread finds the other members --------------------------------------------- */

static bool is_here(struct meeting_member *member)
{
    return atomic_load(&member->joined) == 2;
}

static bool has_said_where(struct meeting_member *member)
{
    return atomic_load(&member->shrunk) != 0;
}

/* For a child: its first member makes the new id, and tells it to the others in the parent's
 * meeting. */
static bool find_id(struct ncclComm *comm)
{
    struct ncclComm *parent = comm->parent;
    struct meeting_member *first = &parent->meeting->members[comm->parent_first];

    if (parent->rank == comm->parent_first) {
        meeting_make(&first->shrunk_id);
        atomic_store(&first->shrunk, 1);
        meeting_ring(parent->meeting);
    }
    while (!has_said_where(first)) {
        uint32_t seen = meeting_see(parent->meeting);

        if (comm_is_broken(comm))
            return false;
        if (!has_said_where(first))
            meeting_wait(parent->meeting, seen);
    }
    comm->id = first->shrunk_id;
    return true;
}

/* Takes this member's place in the meeting. Misuse: the members' sizes or ranks do not fit. */
static void take_place(struct ncclComm *comm)
{
    struct meeting *meeting = comm->meeting;
    struct meeting_member *self = &meeting->members[comm->rank];
    uint32_t size = 0;
    uint32_t nobody = 0;
    const char *said;
    uint64_t sum;

    if (!atomic_compare_exchange_strong(&meeting->size, &size, (uint32_t)comm->size) &&
        size != (uint32_t)comm->size)
        standin_misuse("a communicator of %u members has one who says %d", size, comm->size);
    if (!atomic_compare_exchange_strong(&self->joined, &nobody, 1))
        standin_misuse("two members of a communicator have rank %d", comm->rank);
    self->uuid = standin_uuid(comm->context);
    /* The number of the host that a process claims to be on: a hash of NCCL_HOSTID, as in NCCL.
     * Without that variable all processes are on one host. */
    said = getenv("NCCL_HOSTID");
    sum = 0xcbf29ce484222325U;
    for (const char *at = said ? said : ""; *at; at++)
        sum = (sum ^ (uint8_t)*at) * 0x100000001b3U;
    self->host = sum;
    atomic_store(&self->joined, 2);
    atomic_fetch_add(&meeting->here, 1);
    meeting_ring(meeting);
}

/* As in NCCL, two members must not use one device, unless they claim to be on two hosts. */
static bool is_device_shared(const struct ncclComm *comm)
{
    const struct meeting_member *members = comm->meeting->members;

    for (int i = 0; i < comm->size; i++)
        for (int j = 0; j < i; j++)
            if (members[i].host == members[j].host &&
                memcmp(&members[i].uuid, &members[j].uuid, sizeof(members[i].uuid)) == 0)
                return true;
    return false;
}

/* Opens the meeting of the members, takes this member's place, and waits for all members. */
static int meet(struct ncclComm *comm)
{
    struct meeting *meeting;

    if (comm->parent && !find_id(comm))
        return comm_note(NCCL_INTERNAL_ERROR, "aborted while it was made");
    meeting = meeting_open(&comm->id);
    if (!meeting)
        return comm_note(NCCL_SYSTEM_ERROR, "the process that made the id cannot be reached");
    pthread_mutex_lock(&comm->lock);
    comm->meeting = meeting;
    pthread_mutex_unlock(&comm->lock);
    take_place(comm);
    if (!await_all(comm, is_here))
        return comm_note(NCCL_INTERNAL_ERROR, "aborted while it was made");
    if (is_device_shared(comm))
        return comm_note(NCCL_INVALID_USAGE, "Duplicate GPU detected");
    return NCCL_OK;
}

/* A job of the thread: joins the communicator, with the fault that was planned for that. */
static int join(struct ncclComm *comm)
{
    int code;

    if (comm->fault == STANDIN_DIE)
        standin_die();
    if (comm->fault == STANDIN_ERROR)
        return comm_note(NCCL_SYSTEM_ERROR, "a fault of the stand-in in making it");
    if (comm->fault == STANDIN_HANG)
        comm_delay(comm, COMM_EVER);
    code = meet(comm);
    if (comm->fault == STANDIN_SLOW)
        comm_delay(comm, comm->slow_us);
    return code;
}

/* ---- launching ------------------------------------------------------------------------------- */

static bool is_connected(struct meeting_member *member)
{
    return atomic_load(&member->connected) != 0;
}

/* Makes the connections when the first collective needs them. Until all members have done so, the
 * call is in progress on the host. */
static bool connect_all(struct ncclComm *comm, const struct kernel *kernel)
{
    const struct operation *one = kernel->first;

    while (one && (one->kind == SEND || one->kind == RECV))
        one = one->next;
    if (comm->connected || !one)
        return true;
    atomic_store(&comm->meeting->members[comm->rank].connected, 1);
    meeting_ring(comm->meeting);
    comm->connected = await_all(comm, is_connected);
    return comm->connected;
}

/* A job of the thread: makes the connections, and puts the kernel into its stream. */
static int launch(struct ncclComm *comm)
{
    struct kernel *kernel = comm->kernel;

    comm->kernel = NULL;
    if (!connect_all(comm, kernel) || comm_is_lost(comm)) {
        standin_release(comm->context, kernel->stream);
        kernel_free(kernel);
        return comm_is_lost(comm) ? comm_note(NCCL_CUDA_ERROR, "the device is lost") : NCCL_OK;
    }
    pthread_mutex_lock(&comm->lock);
    comm->running++;
    pthread_mutex_unlock(&comm->lock);
    standin_launch(comm->context, kernel->stream, kernel_run, kernel_ended, kernel);
    return NCCL_OK;
}

/* ---- the communicator's thread --------------------------------------------------------------- */

/* The communicator's thread: does the jobs (join, launch), ends revokes, and ends itself. */
static void *comm_main(void *arg)
{
    struct ncclComm *comm = arg;

    pthread_mutex_lock(&comm->lock);
    for (;;) {
        enum job job = comm->job;

        if (job) {
            int code;

            pthread_mutex_unlock(&comm->lock);
            code = job == JOB_JOIN ? join(comm) : launch(comm);
            pthread_mutex_lock(&comm->lock);
            if (comm->parent) {
                pthread_mutex_lock(&comm->parent->lock);
                comm->parent->children--;
                pthread_cond_broadcast(&comm->parent->news);
                pthread_mutex_unlock(&comm->parent->lock);
                comm->parent = NULL;
            }
            /* the job ends with this code */
            if (job == JOB_JOIN && !code)
                comm->ready = true;
            comm->job = JOB_NONE;
            if (comm->state == NCCL_IN_PROGRESS && !comm->revoking)
                comm->state = code;
            pthread_cond_broadcast(&comm->news);
        } else if (comm->revoking && !comm->running && comm_is_broken(comm)) {
            comm->revoking = false;
            comm->state = NCCL_OK;
        } else if (comm->ending) {
            break;
        } else if (comm->revoking) {
            nap(comm, INT64_MAX);
        } else {
            pthread_cond_wait(&comm->news, &comm->lock);
        }
    }
    pthread_mutex_unlock(&comm->lock);
    return NULL;
}

/* ---- making a communicator ------------------------------------------------------------------- */

/* Makes a communicator on the current device, without a thread; a wrong rank or size is misuse. */
static struct ncclComm *comm_new(int size, int rank)
{
    struct ncclComm *comm = mem_zalloc(sizeof(*comm));

    if (!comm || thread_cond_init(&comm->news) || pthread_mutex_init(&comm->lock, NULL))
        standin_misuse("no memory");
    if (size < 1 || size > (int)MEETING_MEMBERS || rank < 0 || rank >= size)
        standin_misuse("rank %d of %d; the stand-in takes up to %u", rank, size, MEETING_MEMBERS);
    if (group_is_open())
        standin_misuse("a communicator is made inside a group, which the stand-in does not do");
    comm->context = standin_current();
    if (!comm->context)
        standin_misuse("a communicator is made without a current device");
    comm->size = size;
    comm->rank = rank;
    comm->losses = standin_losses();
    atomic_init(&comm->break_at_us, INT64_MAX);
    comm->fault = standin_fault("init", rank, &comm->slow_us);
    return comm;
}

static void begin(struct ncclComm *comm)
{
    comm->job = JOB_JOIN;
    comm->state = NCCL_IN_PROGRESS;
    if (thread_start(&comm->thread, 0, comm_main, comm))
        standin_misuse("no thread for a communicator");
    pthread_mutex_lock(&all_lock);
    comm->next = all;
    all = comm;
    pthread_mutex_unlock(&all_lock);
    standin_count("communicators", 1);
}

static void check_config(const struct nccl_config *config)
{
    if (!config || config->magic != NCCL_CONFIG_MAGIC || config->size < sizeof(*config))
        standin_misuse("a communicator without a configuration that is one");
    if (config->blocking)
        standin_misuse("a communicator that blocks cannot be ended safely, and is not made here");
}

int nc_comm_init(struct ncclComm **ret_comm, int size, struct nccl_id id, int rank,
                 struct nccl_config *config)
{
    struct ncclComm *comm;

    check_config(config);
    comm = comm_new(size, rank);
    device_enter(comm->context, "ncclCommInitRankConfig");
    comm->id = id;
    begin(comm);
    *ret_comm = comm;
    device_leave(comm->context);
    return NCCL_IN_PROGRESS;
}

struct ncclComm *comm_make_child(struct ncclComm *parent, int first, int size, int rank,
                                 const struct nccl_config *config)
{
    struct ncclComm *comm;

    check_config(config);
    pthread_mutex_lock(&parent->lock);
    if (parent->state == NCCL_IN_PROGRESS || !parent->ready || parent->children)
        standin_misuse("a communicator is shrunk that is in progress, or was never made");
    parent->children++;
    pthread_mutex_unlock(&parent->lock);
    comm = comm_new(size, rank);
    comm->parent = parent;
    comm->parent_first = first;
    begin(comm);
    return comm;
}

/* ---- state, revoke, errors ------------------------------------------------------------------- */

int comm_ready(struct ncclComm *comm, const char *call)
{
    int code;

    pthread_mutex_lock(&comm->lock);
    if (comm->state == NCCL_IN_PROGRESS)
        standin_misuse("%s on a communicator that is still in progress", call);
    code = comm->state;
    if (!code && comm->revoked)
        code = comm_note(NCCL_INVALID_USAGE, "the communicator is revoked");
    pthread_mutex_unlock(&comm->lock);
    return code;
}

void comm_launch(struct kernel *kernel)
{
    struct ncclComm *comm = kernel->comm;

    pthread_mutex_lock(&comm->lock);
    comm->kernel = kernel;
    comm->job = JOB_LAUNCH;
    comm->state = NCCL_IN_PROGRESS;
    pthread_cond_broadcast(&comm->news);
    pthread_mutex_unlock(&comm->lock);
}

int nc_async_error(struct ncclComm *comm, int *ret_code)
{
    comm_enter(comm, false, "ncclCommGetAsyncError");
    if (group_is_open())
        standin_misuse("ncclCommGetAsyncError inside a group that is not ended");
    pthread_mutex_lock(&comm->lock);
    *ret_code = comm->state;
    pthread_mutex_unlock(&comm->lock);
    comm_leave(comm, false);
    return NCCL_OK;
}

#ifndef STANDIN_OLD_NCCL
/* Begins a revoke. It also ends a launch in progress, but not the making of a communicator. */
static int begin_revoke(struct ncclComm *comm)
{
    int64_t slow_us = 0;
    enum standin_what fault = standin_fault("revoke", comm->rank, &slow_us);
    bool again;

    if (fault == STANDIN_ERROR)
        return comm_note(NCCL_INTERNAL_ERROR, "a fault of the stand-in in revoking");
    pthread_mutex_lock(&comm->lock);
    if (comm->job == JOB_JOIN)
        standin_misuse("ncclCommRevoke of a communicator that is not made yet; it can be aborted");
    again = comm->revoked;
    if (!again) {
        comm->revoked = true;
        comm->revoking = true;
        comm->state = NCCL_IN_PROGRESS;
    }
    pthread_mutex_unlock(&comm->lock);
    if (again)
        return comm_note(NCCL_INVALID_ARGUMENT, "the communicator is revoked already");
    break_at(comm, fault == STANDIN_HANG ? INT64_MAX : clock_now_us() + slow_us);
    return NCCL_IN_PROGRESS;
}

int nc_revoke_comm(struct ncclComm *comm, int flags)
{
    int code;

    if (flags)
        return NCCL_INVALID_ARGUMENT;
    comm_enter(comm, false, "ncclCommRevoke");
    code = begin_revoke(comm);
    comm_leave(comm, false);
    return code;
}
#endif

/* ---- the end of a communicator --------------------------------------------------------------- */

/* Joins the thread, and frees a communicator that has ended. */
static void comm_free(struct ncclComm *comm)
{
    struct ncclComm **link = &all;

    pthread_join(comm->thread, NULL);
    pthread_mutex_lock(&all_lock);
    while (*link != comm)
        link = &(*link)->next;
    *link = comm->next;
    pthread_mutex_unlock(&all_lock);
    meeting_close(comm->meeting);
    pthread_cond_destroy(&comm->news);
    pthread_mutex_destroy(&comm->lock);
    mem_free(comm);
    standin_count("communicators", -1);
}

/* Begins an abort. The fault abort:hang ends nothing, and never returns. */
static void begin_abort(struct ncclComm *comm)
{
    int64_t slow_us = 0;
    enum standin_what fault = standin_fault("abort", comm->rank, &slow_us);

    if (fault == STANDIN_HANG)
        for (;;)
            pause();
    break_at(comm, clock_now_us() + slow_us);
}

/* Ends the communicator after all work that it has queued, and after all work queued before that.
 */
static void end(struct ncclComm *comm)
{
    pthread_mutex_lock(&comm->lock);
    while (comm->job || comm->running || comm->children || !comm_is_broken(comm))
        nap(comm, INT64_MAX);
    comm->ending = true;
    pthread_cond_broadcast(&comm->news);
    pthread_mutex_unlock(&comm->lock);
}

void comm_quiet(struct ncclComm *comm)
{
    break_at(comm, clock_now_us());
    pthread_mutex_lock(&comm->lock);
    while (comm->job || comm->running)
        nap(comm, INT64_MAX);
    pthread_mutex_unlock(&comm->lock);
}

void comm_abort_all(struct ncclComm **comms, size_t count)
{
    for (size_t i = 0; i < count; i++)
        begin_abort(comms[i]);
    for (size_t i = 0; i < count; i++) {
        end(comms[i]);
        comm_free(comms[i]);
    }
}

int nc_comm_abort(struct ncclComm *comm)
{
    comm_enter(comm, true, "ncclCommAbort");
    if (group_defer_abort(comm))
        comm_leave(comm, true);
    else
        comm_abort_all(&comm, 1);
    return standin_lost() ? NCCL_CUDA_ERROR : NCCL_OK;
}
