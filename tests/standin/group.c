/* group.c: the calls that put operations into streams, alone or in a group. */
#include "tests/standin/kernel.h"

#include "base/mem.h"

#include <string.h>

#define ABORTS_MAX 2048U /* more than the aborts in all groups of a round */

/* The open group of each thread. */
static _Thread_local struct {
    unsigned depth;
    int error; /* the code of the last call inside the group that failed; 0: none has failed */
    struct kernel *kernels;
    struct ncclComm *aborts[ABORTS_MAX];
    size_t abort_count;
} group;

static pthread_once_t key_once = PTHREAD_ONCE_INIT;
static pthread_key_t key; /* its destructor is called when a thread ends */

/* ---- groups ---------------------------------------------------------------------------------- */

static void thread_ends(void *depth)
{
    if (*(unsigned *)depth)
        standin_misuse("a thread ends in a group that it has not ended");
}

static void make_key(void)
{
    if (pthread_key_create(&key, thread_ends))
        standin_misuse("no key");
}

bool group_is_open(void)
{
    return group.depth > 0;
}

bool group_defer_abort(struct ncclComm *comm)
{
    if (!group_is_open())
        return false;
    for (struct kernel *one = group.kernels; one; one = one->next)
        if (one->comm == comm)
            standin_misuse("a communicator is aborted in the group in which it is used");
    if (group.abort_count == ABORTS_MAX)
        standin_misuse("more than %u aborts in one group", ABORTS_MAX);
    group.aborts[group.abort_count++] = comm;
    return true;
}

int nc_group_start(void)
{
    pthread_once(&key_once, make_key);
    pthread_setspecific(key, &group.depth);
    group.depth++;
    return NCCL_OK;
}

/* Launches the kernels of the group that ends; after an error it drops them. Returns a code. */
static int launch_all(int error)
{
    struct kernel *kernel = group.kernels;
    int code = kernel && !error ? NCCL_IN_PROGRESS : error;

    group.kernels = NULL;
    while (kernel) {
        struct kernel *next = kernel->next;

        if (error) {
            standin_release(kernel->comm->context, kernel->stream);
            kernel_free(kernel);
        } else {
            comm_launch(kernel);
        }
        kernel = next;
    }
    return code;
}

int nc_group_end(void)
{
    size_t aborts = group.abort_count;
    int error = group.error;

    if (!group.depth)
        standin_misuse("ncclGroupEnd without a group");
    if (--group.depth)
        return NCCL_OK;
    group.error = 0;
    group.abort_count = 0;
    comm_abort_all(group.aborts, aborts);
    return launch_all(error);
}

/* ---- checks of a call's arguments ---- */

static bool overlap(const char *one, size_t one_bytes, const char *other, size_t other_bytes)
{
    return one_bytes && other_bytes && one < other + other_bytes && other < one + one_bytes;
}

/* In-place calls must use the same elements for in and out; otherwise in and out must not overlap.
 */
static void check_place(const struct operation *operation, const struct ncclComm *comm,
                        const char *call)
{
    const char *in = operation->in;
    const char *out = operation->out;
    size_t share = operation->count * numbers_bytes(operation->type) * (size_t)comm->rank;

    if (operation->kind == ALLGATHER)
        out += share;
    if (operation->kind == REDUCESCATTER)
        in += share;
    if (in != out && overlap(operation->in, operation_in(operation, comm), operation->out,
                             operation_out(operation, comm)))
        standin_misuse("%s: what it reads and what it writes overlap", call);
}

static void resolve(struct operation *operation, struct ncclComm *comm, const char *call)
{
    int made = operation->op - COMM_OP_BASE;

    operation->reduction = (struct reduction){ .op = operation->op };
    if (operation->op >= NCCL_SUM && operation->op <= NCCL_AVERAGE)
        return;
    if (made < 0 || made >= COMM_OPS_MAX || !comm->ops[made].taken)
        standin_misuse("%s: operation %d, which was never made", call, operation->op);
    if (comm->ops[made].type != operation->type)
        standin_misuse("%s: operation %d was made for another type", call, operation->op);
    operation->reduction = comm->ops[made].reduction;
}

/* ---- one operation --------------------------------------------------------------------------- */

/* Returns the kernel of the open group on this communicator; makes one if there is none. */
static struct kernel *kernel_of(struct ncclComm *comm, struct CUstream_st *stream)
{
    struct kernel **link = &group.kernels;
    struct kernel *kernel;

    while (*link && (*link)->comm != comm)
        link = &(*link)->next;
    if (*link && (*link)->stream != stream)
        standin_misuse("one group uses a communicator in two streams");
    if (*link)
        return *link;
    kernel = mem_zalloc(sizeof(*kernel));
    if (!kernel)
        standin_misuse("no memory");
    kernel->comm = comm;
    kernel->stream = stream;
    kernel->last = &kernel->first;
    standin_hold(comm->context, stream);
    *link = kernel;
    return kernel;
}

/* Adds an operation to the open group. 0, or a code; misuse: wrong arguments. */
static int add(struct operation *operation, struct ncclComm *comm, struct CUstream_st *stream,
               const char *call)
{
    int code = comm_ready(comm, call);
    size_t in;
    size_t out;

    if (code)
        return code;
    /* Misuse, unless the type, the root and the buffers of the operation are valid. */
    in = operation_in(operation, comm);
    out = operation_out(operation, comm);
    if (!numbers_bytes(operation->type))
        standin_misuse("%s: type %d, which gpu/nccl.h does not name", call, operation->type);
    if (operation->root < 0 || operation->root >= comm->size)
        standin_misuse("%s: member %d of %d", call, operation->root, comm->size);
    if (in)
        (void)standin_range(comm->context, operation->in, in, call);
    if (out)
        (void)standin_range(comm->context, operation->out, out, call);
    check_place(operation, comm, call);
    resolve(operation, comm, call);
    operation->fault = standin_fault("collective", comm->rank, &operation->slow_us);
    if (operation->fault == STANDIN_FAIL)
        return comm_note(NCCL_INTERNAL_ERROR, "a fault of the stand-in in a call");
    if (operation->count) {
        struct kernel *kernel = kernel_of(comm, stream);
        struct operation *copy = mem_alloc(sizeof(*copy));

        if (!copy)
            standin_misuse("no memory");
        *copy = *operation;
        *kernel->last = copy;
        kernel->last = &copy->next;
    }
    return NCCL_OK;
}

static int enqueue(struct operation operation, struct ncclComm *comm, struct CUstream_st *stream,
                   const char *call)
{
    int code;

    comm_enter(comm, false, call);
    code = add(&operation, comm, stream, call);
    if (code && group_is_open())
        group.error = code;
    if (!code && !group_is_open())
        code = launch_all(0);
    comm_leave(comm, false);
    return code;
}

/* ---- the calls ------------------------------------------------------------------------------- */

int nc_allreduce(const void *in, void *out, size_t count, int type, int op, struct ncclComm *comm,
                 struct CUstream_st *stream)
{
    return enqueue(
        (struct operation){
            .kind = ALLREDUCE, .in = in, .out = out, .count = count, .type = type, .op = op },
        comm, stream, "ncclAllReduce");
}

int nc_broadcast(const void *in, void *out, size_t count, int type, int root, struct ncclComm *comm,
                 struct CUstream_st *stream)
{
    return enqueue(
        (struct operation){
            .kind = BROADCAST, .in = in, .out = out, .count = count, .type = type, .root = root },
        comm, stream, "ncclBroadcast");
}

int nc_reduce(const void *in, void *out, size_t count, int type, int op, int root,
              struct ncclComm *comm, struct CUstream_st *stream)
{
    return enqueue((struct operation){ .kind = REDUCE,
                                       .in = in,
                                       .out = out,
                                       .count = count,
                                       .type = type,
                                       .op = op,
                                       .root = root },
                   comm, stream, "ncclReduce");
}

int nc_allgather(const void *in, void *out, size_t count, int type, struct ncclComm *comm,
                 struct CUstream_st *stream)
{
    return enqueue(
        (struct operation){ .kind = ALLGATHER, .in = in, .out = out, .count = count, .type = type },
        comm, stream, "ncclAllGather");
}

int nc_reducescatter(const void *in, void *out, size_t count, int type, int op,
                     struct ncclComm *comm, struct CUstream_st *stream)
{
    return enqueue(
        (struct operation){
            .kind = REDUCESCATTER, .in = in, .out = out, .count = count, .type = type, .op = op },
        comm, stream, "ncclReduceScatter");
}

int nc_send(const void *in, size_t count, int type, int peer, struct ncclComm *comm,
            struct CUstream_st *stream)
{
    return enqueue(
        (struct operation){ .kind = SEND, .in = in, .count = count, .type = type, .root = peer },
        comm, stream, "ncclSend");
}

int nc_recv(void *out, size_t count, int type, int peer, struct ncclComm *comm,
            struct CUstream_st *stream)
{
    return enqueue(
        (struct operation){ .kind = RECV, .out = out, .count = count, .type = type, .root = peer },
        comm, stream, "ncclRecv");
}

/* ---- operators made by ncclRedOpCreatePreMulSum ---- */

int nc_make_scaled_sum(int *ret_op, void *scale, int type, int residence, struct ncclComm *comm)
{
    int code;
    int i = 0;

    comm_enter(comm, false, "ncclRedOpCreatePreMulSum");
    code = comm_ready(comm, "ncclRedOpCreatePreMulSum");
    if (!code) {
        if (residence != NCCL_SCALAR_ON_HOST || !numbers_bytes(type))
            standin_misuse("ncclRedOpCreatePreMulSum: residence %d, type %d", residence, type);
        while (i < COMM_OPS_MAX && comm->ops[i].taken)
            i++;
        if (i == COMM_OPS_MAX)
            standin_misuse("more than %d operations are made, and not destroyed", COMM_OPS_MAX);
        comm->ops[i].taken = true;
        comm->ops[i].type = type;
        numbers_scale(&comm->ops[i].reduction, type, scale);
        *ret_op = COMM_OP_BASE + i;
    }
    comm_leave(comm, false);
    return code;
}

int nc_free_op(int op, struct ncclComm *comm)
{
    comm_enter(comm, false, "ncclRedOpDestroy");
    if (op < COMM_OP_BASE || op >= COMM_OP_BASE + COMM_OPS_MAX ||
        !comm->ops[op - COMM_OP_BASE].taken)
        standin_misuse("ncclRedOpDestroy of operation %d, which was never made", op);
    comm->ops[op - COMM_OP_BASE].taken = false;
    comm_leave(comm, false);
    return NCCL_OK;
}
