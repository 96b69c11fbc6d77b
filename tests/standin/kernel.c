/* kernel.c: runs a launched operation in its stream: waits for all members, piece by piece. */
#include "tests/standin/kernel.h"

#include "base/mem.h"

#include <string.h>

#define GARBAGE      0xee /* fills the memory of an operation that was broken off */
#define HELD_STEP_US 1000 /* how often a held kernel looks whether the faults are cleared */

static size_t bytes_of(const struct operation *operation)
{
    return operation->count * numbers_bytes(operation->type);
}

size_t operation_in(const struct operation *operation, const struct ncclComm *comm)
{
    switch (operation->kind) {
    case BROADCAST: return comm->rank == operation->root ? bytes_of(operation) : 0;
    case REDUCESCATTER: return bytes_of(operation) * (size_t)comm->size;
    case RECV: return 0;
    default: return bytes_of(operation);
    }
}

size_t operation_out(const struct operation *operation, const struct ncclComm *comm)
{
    switch (operation->kind) {
    case REDUCE: return comm->rank == operation->root ? bytes_of(operation) : 0;
    case ALLGATHER: return bytes_of(operation) * (size_t)comm->size;
    case SEND: return 0;
    default: return bytes_of(operation);
    }
}

/* ---- one piece ------------------------------------------------------------------------------- */

static bool is_stopped(const struct ncclComm *comm)
{
    return comm_is_broken(comm) || comm_is_lost(comm);
}

typedef uint64_t progress_fn(struct meeting_member *member);

static uint64_t brought(struct meeting_member *member)
{
    return atomic_load(&member->brought);
}

static uint64_t taken(struct meeting_member *member)
{
    return atomic_load(&member->taken);
}

static bool await_all(const struct ncclComm *comm, progress_fn *progress, uint64_t piece)
{
    struct meeting *meeting = comm->meeting;

    for (;;) {
        uint32_t seen = meeting_see(meeting);
        int i = 0;

        if (is_stopped(comm))
            return false;
        while (i < comm->size && progress(&meeting->members[i]) >= piece)
            i++;
        if (i == comm->size)
            return true;
        meeting_wait(meeting, seen);
    }
}

/* Misuse, unless all members make the same call. */
static void compare(const struct ncclComm *comm)
{
    const struct meeting_call *mine = &comm->meeting->members[comm->rank].call;

    for (int i = 0; i < comm->size; i++) {
        const struct meeting_call *other = &comm->meeting->members[i].call;

        if (other->number != mine->number || other->kind != mine->kind ||
            other->count != mine->count || other->type != mine->type || other->op != mine->op ||
            other->root != mine->root)
            standin_misuse("members %d and %d make different calls: number %llu, kind %d, count "
                           "%llu, type %d; and number %llu, kind %d, count %llu, type %d",
                           comm->rank, i, (unsigned long long)mine->number, mine->kind,
                           (unsigned long long)mine->count, mine->type,
                           (unsigned long long)other->number, other->kind,
                           (unsigned long long)other->count, other->type);
    }
}

/* Every member brings a piece (which may be empty), and gets the pieces of all members. */
static bool bring(struct ncclComm *comm, const struct operation *operation, const void *from,
                  size_t bytes)
{
    struct meeting_member *self = &comm->meeting->members[comm->rank];
    uint64_t piece = ++comm->pieces;

    if (!await_all(comm, taken, piece - 1))
        return false;
    self->call = (struct meeting_call){ .number = comm->calls,
                                        .kind = (int)operation->kind,
                                        .count = operation->count,
                                        .type = operation->type,
                                        .op = operation->op,
                                        .root = operation->root };
    if (from)
        memcpy(self->piece, from, bytes);
    atomic_store(&self->brought, piece);
    meeting_ring(comm->meeting);
    if (!await_all(comm, brought, piece))
        return false;
    compare(comm);
    /* Waits for the pieces of all members. */
    if (operation->fault == STANDIN_LATE && comm_delay(comm, operation->slow_us))
        return false;
    while (operation->fault == STANDIN_HELD && standin_holds())
        if (comm_delay(comm, HELD_STEP_US))
            return false;
    for (int i = 0; i < comm->size; i++) {
        if (i != comm->rank && meeting_has_left(&comm->meeting->members[i])) {
            comm_delay(comm, COMM_EVER);
            return false;
        }
    }
    return true;
}

static void done(struct ncclComm *comm)
{
    atomic_store(&comm->meeting->members[comm->rank].taken, comm->pieces);
    meeting_ring(comm->meeting);
}

/* ---- the collectives: in and out point to the present piece ---- */

struct piece {
    const struct operation *operation;
    const char *in; /* NULL: this member brings nothing */
    char *out;      /* NULL: this member gets nothing */
    size_t count, bytes;
};

static void reduce_into(const struct ncclComm *comm, const struct piece *piece)
{
    const void *pieces[MEETING_MEMBERS];

    for (int i = 0; i < comm->size; i++)
        pieces[i] = comm->meeting->members[i].piece;
    numbers_reduce(&piece->operation->reduction, piece->operation->type, (unsigned)comm->size,
                   pieces, piece->out, piece->count);
}

/* Copies this member's result out of the pieces of all members. */
static void take(const struct ncclComm *comm, const struct piece *piece)
{
    const struct operation *operation = piece->operation;
    const struct meeting_member *members = comm->meeting->members;

    if (!piece->out) /* a reduction for another member */
        return;
    if (operation->kind == BROADCAST)
        memcpy(piece->out, members[operation->root].piece, piece->bytes);
    else if (operation->kind == ALLGATHER)
        for (int i = 0; i < comm->size; i++)
            memcpy(piece->out + (size_t)i * bytes_of(operation), members[i].piece, piece->bytes);
    else
        reduce_into(comm, piece);
}

/* Runs one piece of an operation on this member. false: the kernel was stopped. */
static bool run_piece(struct ncclComm *comm, const struct piece *piece)
{
    const struct operation *operation = piece->operation;
    if (operation->kind == REDUCESCATTER) {
        /* One piece for each member, one member after the other. */
        size_t whole = bytes_of(piece->operation);

        for (int i = 0; i < comm->size; i++) {
            if (!bring(comm, piece->operation, piece->in + (size_t)i * whole, piece->bytes))
                return false;
            if (i == comm->rank)
                reduce_into(comm, piece);
            done(comm);
        }
        return true;
    }
    if (!bring(comm, operation, piece->in, piece->bytes))
        return false;
    take(comm, piece);
    done(comm);
    return true;
}

static void *shadow(const struct ncclComm *comm, const void *at, size_t bytes)
{
    return bytes ? standin_range(comm->context, at, bytes, "a kernel") : NULL;
}

/* Runs an operation piece by piece. false: the kernel was stopped. */
static bool run_collective(struct ncclComm *comm, const struct operation *operation)
{
    const char *in = shadow(comm, operation->in, operation_in(operation, comm));
    char *out = shadow(comm, operation->out, operation_out(operation, comm));
    size_t size = numbers_bytes(operation->type);
    size_t most = MEETING_PIECE / size;

    comm->calls++;
    for (size_t at = 0; at < operation->count; at += most) {
        size_t count = operation->count - at < most ? operation->count - at : most;
        struct piece piece = { .operation = operation,
                               .in = in ? in + at * size : NULL,
                               .out = out ? out + at * size : NULL,
                               .count = count,
                               .bytes = count * size };

        if (!run_piece(comm, &piece))
            return false;
    }
    standin_count("collectives", 1);
    return true;
}

/* ---- all of a kernel ------------------------------------------------------------------------- */

/* Lets the fault of this operation happen. false: the operation was broken off in it. */
static bool suffer(struct ncclComm *comm, const struct operation *operation)
{
    switch (operation->fault) {
    case STANDIN_DIE: standin_die();
    case STANDIN_SLOW: return !comm_delay(comm, operation->slow_us);
    case STANDIN_ERROR:
        pthread_mutex_lock(&comm->lock);
        if (comm->state == NCCL_OK || comm->state == NCCL_IN_PROGRESS)
            comm->state = comm_note(NCCL_REMOTE_ERROR, "a fault of the stand-in: a peer is gone");
        pthread_mutex_unlock(&comm->lock);
        comm_delay(comm, COMM_EVER);
        return false;
    case STANDIN_HANG: comm_delay(comm, COMM_EVER); return false;
    default: return true;
    }
}

static bool run_all(struct ncclComm *comm, struct kernel *kernel)
{
    if (is_stopped(comm))
        return false;
    for (struct operation *one = kernel->first; one; one = one->next) {
        if (!suffer(comm, one))
            return false;
        if (one->kind != SEND && one->kind != RECV && !run_collective(comm, one))
            return false;
    }
    return pairs_run(comm, kernel->first);
}

void kernel_run(void *arg)
{
    struct kernel *kernel = arg;
    struct ncclComm *comm = kernel->comm;

    if (!run_all(comm, kernel)) {
        /* Overwrites the output, so that no reader finds the old bytes, or half of the result. */
        for (const struct operation *one = kernel->first; one && !comm_is_lost(comm);
             one = one->next) {
            size_t bytes = operation_out(one, comm);

            if (bytes)
                memset(shadow(comm, one->out, bytes), GARBAGE, bytes);
        }
    }
}

void kernel_ended(void *arg)
{
    struct kernel *kernel = arg;
    struct ncclComm *comm = kernel->comm;

    kernel_free(kernel);
    pthread_mutex_lock(&comm->lock);
    comm->running--;
    pthread_cond_broadcast(&comm->news);
    pthread_mutex_unlock(&comm->lock);
}

void kernel_free(struct kernel *kernel)
{
    while (kernel->first) {
        struct operation *operation = kernel->first;

        kernel->first = operation->next;
        mem_free(operation);
    }
    mem_free(kernel);
}
