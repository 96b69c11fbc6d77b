/*
 * call.c: checks one struct hvd_call of the program, and translates it into the struct coll_call
 * that collectives/ runs.
 *
 * Called by requests.c for each collective. Invariant: a call that passes has buffers for every
 * byte that the collective will read or write, all in one memory (the host's or one GPU's), which
 * do not overlap where they must not. Each error names the collective first and the remedy last.
 */
#include "worker/call.h"

#include "base/limits.h"
#include "collectives/reduce/reduce.h"
#include "gpu/device.h"

#include <inttypes.h>
#include <stdio.h>

#define BUFFER_NAME_MAX 40 /* "out of pieces[18446744073709551615]" with its NUL */

_Static_assert((int)HVD_ALLREDUCE == (int)COLL_ALLREDUCE &&
                   (int)HVD_BROADCAST == (int)COLL_BROADCAST &&
                   (int)HVD_ALLGATHER == (int)COLL_ALLGATHER &&
                   (int)HVD_REDUCESCATTER == (int)COLL_REDUCESCATTER &&
                   (int)HVD_ALLTOALL == (int)COLL_ALLTOALL &&
                   (int)HVD_BARRIER == (int)COLL_BARRIER && (int)HVD_JOIN == (int)COLL_JOIN &&
                   (int)HVD_ALLGATHER_RAGGED == (int)COLL_ALLGATHER_RAGGED &&
                   (int)HVD_ALLTOALL_RAGGED == (int)COLL_ALLTOALL_RAGGED,
               "the same collectives by the same numbers");
_Static_assert((int)COLL_GATHER - (int)COLL_REDUCE == (int)HVD_GATHER - (int)HVD_REDUCE &&
                   (int)COLL_SCATTER - (int)COLL_REDUCE == (int)HVD_SCATTER - (int)HVD_REDUCE &&
                   (int)COLL_SEND - (int)COLL_REDUCE == (int)HVD_SEND - (int)HVD_REDUCE &&
                   (int)COLL_RECEIVE - (int)COLL_REDUCE == (int)HVD_RECV - (int)HVD_REDUCE,
               "these in the same order");
_Static_assert(sizeof(struct coll_piece) == sizeof(hvd_piece) &&
                   offsetof(struct coll_piece, out) == offsetof(hvd_piece, out) &&
                   offsetof(struct coll_piece, count) == offsetof(hvd_piece, count),
               "pieces are passed on as they are");

_Static_assert(sizeof(struct coll_received) == sizeof(hvd_received) &&
                   offsetof(struct coll_received, arg) == offsetof(hvd_received, arg) &&
                   offsetof(struct coll_received, counts) == offsetof(hvd_received, counts) &&
                   offsetof(struct coll_received, data) == offsetof(hvd_received, data),
               "the memory of a ragged result is passed on as it is");

/* The call that call_read checks, and all that it has found out about it so far. */
struct reading {
    const hvd_call *call;
    const struct roll *roll;
    const char *name; /* name of the collective */
    uint32_t place;   /* index of this rank in the group */
    uint32_t size;    /* size of the group */
    size_t bytes;     /* bytes of one element */
    /* name of the first buffer whose memory (host or GPU) was looked at; empty: none yet */
    char seen[BUFFER_NAME_MAX];
    struct coll_call *into; /* the translated call */
    struct hvd_err *err;
};

#define WRONG(reading, format, ...) \
    err_set((reading)->err, HVD_E_INVAL, "%s: " format, (reading)->name, __VA_ARGS__)

/* true: the collective may have `counts`: how much each member gives or gets. */
static bool has_counts(hvd_kind kind)
{
    return kind == HVD_ALLGATHER || kind == HVD_REDUCESCATTER || kind == HVD_ALLTOALL ||
           kind == HVD_ALLTOALL_RAGGED || kind == HVD_GATHER || kind == HVD_SCATTER;
}

/* From HVD_REDUCE on the kinds of hvd.h have other numbers than the kinds of collectives/. This is
 * the difference. */
#define ROOTED_APART ((int)COLL_REDUCE - (int)HVD_REDUCE)

/* true: a collective to or from one member, the root; a broadcast counts separately. */
static bool is_rooted(hvd_kind kind)
{
    return kind >= HVD_REDUCE && kind <= HVD_SCATTER;
}

bool call_is_transfer(const hvd_call *call)
{
    return call && (call->kind == HVD_SEND || call->kind == HVD_RECV);
}

/* true: a collective in which each rank decides how much it gives, so that the others learn the
 * counts from it. */
static bool is_ragged(hvd_kind kind)
{
    return kind == HVD_ALLGATHER_RAGGED || kind == HVD_ALLTOALL_RAGGED;
}

/* true: the collective combines numbers, so it has an op, and may have scales. */
static bool computes(hvd_kind kind)
{
    return kind == HVD_ALLREDUCE || kind == HVD_REDUCESCATTER || kind == HVD_REDUCE;
}

/* ---- group, type, op, root ------------------------------------------------------------------- */

/* Finds the group of the call. A group is divided into parts, and collectives/ knows a part by its
 * number. This function finds the number of the part to which this rank belongs, the size of the
 * part, and the index of this rank in it. A call without a group (NULL) is for all ranks. */
static int read_group(struct reading *reading, const struct groups *groups)
{
    const struct roll *roll = reading->roll;
    const hvd_group *group = reading->call->group;
    const struct roll_opened *opened;
    size_t index, part = 0;

    reading->place = roll->rank;
    reading->size = roll->size;
    if (!group)
        return 0;
    opened = roll_find(roll, group, &part);
    if (opened && !opened->ranks.count)
        return WRONG(reading,
                     "rank %u is not a member of the group that was opened as number %zu; make "
                     "this call only on the members of the group, which hvd_group_rank shows",
                     roll->rank, part - roll->part_count);
    if (opened) {
        reading->into->group = part;
        reading->place = opened->place;
        reading->size = opened->ranks.count;
        return 0;
    }
    if (!groups_find(groups, group, &index))
        return WRONG(reading, "%s",
                     "the group is unknown: it was not created since hvd_init, and not opened in "
                     "this round; use a group that hvd_group_create has returned, or open the "
                     "group again in this round");
    if (!roll->groups[index].part)
        return WRONG(reading,
                     "rank %u is not a member of group %zu; make this call only on the members of "
                     "the group, which hvd_group_rank shows",
                     roll->rank, index + 1);
    reading->into->group = roll->groups[index].part;
    reading->place = roll->groups[index].place;
    reading->size = roll_size(roll, reading->into->group);
    return 0;
}

/* Returns true if the call asks for scaling by this value, or if the value is a NaN. 0 means that
 * no scale was given, and 1 changes no number. */
static bool scales(double scale)
{
    return scale < 0 || scale > 1 || (scale > 0 && scale < 1) || scale != scale;
}

/* Checks the type, the op (such as HVD_SUM), the scales and the root of a call. A collective that
 * computes nothing may have no scales; a scale of 0 means "not given". In a send or receive `root`
 * is the other side. The rest of the collectives have no root: for them the function returns 0
 * before it looks at the root. The root is translated from a rank of the round to an index in the
 * group. */
static int read_numbers(struct reading *reading)
{
    const hvd_call *call = reading->call;
    const struct roll *roll = reading->roll;
    bool scaled = scales(call->prescale) || scales(call->postscale);

    reading->bytes = reduce_type_bytes(call->type);
    if (!reading->bytes)
        return WRONG(reading, "there is no type %d; use one of hvd_dtype", (int)call->type);
    if (computes(call->kind) && !reduce_is_op(call->op))
        return WRONG(reading, "there is no op %d; use one of hvd_op", (int)call->op);
    if (computes(call->kind) && !reduce_knows(call->type, call->op))
        return WRONG(reading, "%s does not have the op %s; use %s", reduce_type_name(call->type),
                     reduce_op_name(call->op),
                     call->type == HVD_BOOL ? "HVD_AND, HVD_OR or HVD_XOR"
                                            : "an integer type or HVD_BOOL");
    if (scaled && !computes(call->kind))
        return WRONG(reading, "%s",
                     "this collective computes nothing that could be scaled; leave prescale and "
                     "postscale 0");
    if (scaled && !reduce_type_is_real(call->type))
        return WRONG(reading,
                     "%s cannot be scaled; leave prescale and postscale 0, or use a floating type",
                     reduce_type_name(call->type));
    if (call->kind != HVD_BROADCAST && !is_rooted(call->kind) && !call_is_transfer(call))
        return 0;
    if (call->root < 0 || (uint32_t)call->root >= roll->size)
        return WRONG(reading, "root %d is no rank of this round; use 0 to %u", call->root,
                     roll->size - 1);
    if (call->kind == HVD_BROADCAST && call->in && call->out && call->in != call->out)
        return WRONG(reading, "%s",
                     "the buffer \"in\" is set, and a broadcast does not read it; leave \"in\" "
                     "NULL, and put the root's numbers into \"out\"");
    if (!roll_place(roll, reading->into->group, (uint32_t)call->root, &reading->into->root))
        return WRONG(reading, "root %d is not a member of the group; use the rank of a member",
                     call->root);
    if (call_is_transfer(call) && (uint32_t)call->root == roll->rank)
        return WRONG(reading, "root %d is this rank; name the rank of the other side in root",
                     call->root);
    return 0;
}

/* ---- memory ---------------------------------------------------------------------------------- */

/* Computes the bytes of a buffer that has counts[i] elements for each member i or, with counts
 * NULL, `each` elements for each. false: that is more than half of the address space, so `in` and
 * `out` cannot both exist. */
static bool total_bytes(const struct reading *reading, const size_t *counts, size_t each,
                        size_t *ret_bytes)
{
    size_t most = SIZE_MAX / 2 / reading->bytes;
    size_t total = 0;

    if (!counts) {
        if (each > most / reading->size)
            return false;
        *ret_bytes = each * reading->size * reading->bytes;
        return true;
    }
    for (uint32_t i = 0; i < reading->size; i++) {
        if (counts[i] > most - total)
            return false;
        total += counts[i];
    }
    *ret_bytes = total * reading->bytes;
    return true;
}

/* Computes the bytes of `count` elements. false: they are more than half of the address space. */
static bool call_bytes_of(const struct reading *reading, size_t count, size_t *ret_bytes)
{
    if (count > SIZE_MAX / 2 / reading->bytes)
        return false;
    *ret_bytes = count * reading->bytes;
    return true;
}

/* true: the two pieces of memory have no byte in common. An empty piece has none. */
bool call_are_apart(const void *left, size_t left_bytes, const void *right, size_t right_bytes)
{
    uintptr_t a = (uintptr_t)left;
    uintptr_t b = (uintptr_t)right;

    return !left_bytes || !right_bytes || (a < b ? b - a >= left_bytes : a - b >= right_bytes);
}

/* Writes in words where memory is, for errors: "GPU 0" or "the host" (device NULL). */
static void name_memory(const struct gpu_device *device, char text[GPU_NAME_MAX])
{
    if (device)
        snprintf(text, GPU_NAME_MAX, "GPU %d", device->ordinal);
    else
        snprintf(text, GPU_NAME_MAX, "the host");
}

/* Checks that a buffer is in the same memory (host, or one device) as the call's other buffers.
 * Called only in a process that uses CUDA. */
static int check_memory(struct reading *reading, const char *name, const void *at)
{
    const struct gpu_device *device = gpu_device_of(at);
    char first[GPU_NAME_MAX];
    char second[GPU_NAME_MAX];

    if (!*reading->seen) {
        snprintf(reading->seen, sizeof(reading->seen), "%s", name);
        reading->into->device = device;
    }
    if (device == reading->into->device)
        return 0;
    name_memory(reading->into->device, first);
    name_memory(device, second);
    return WRONG(
        reading,
        "%s is in the memory of %s, and %s in the memory of %s; put both in the same memory",
        reading->seen, first, name, second);
}

/* Checks in which memory (host or GPU) `in` and `out` lie. The address of an empty buffer says
 * little, so it counts only when both buffers are empty: an empty call must go the same way (host
 * or GPU) as the calls of the other ranks. */
static int check_both_memories(struct reading *reading, size_t in_bytes, size_t out_bytes)
{
    const hvd_call *call = reading->call;
    bool empty = !in_bytes && !out_bytes;
    bool in = in_bytes || (empty && call->in);
    bool out = out_bytes || (empty && call->out);
    int rc = 0;

    if (!cuda_known())
        return 0;
    if (in)
        rc = check_memory(reading, "in", call->in);
    return rc || !out ? rc : check_memory(reading, "out", call->out);
}

/* Checks `counts`, `in` and `out` of a call that has neither pieces nor a ragged result: whether
 * the buffers are there, have a possible size, and do not overlap. */
static int read_memory(struct reading *reading)
{
    const hvd_call *call = reading->call;
    const size_t *counts = call->counts;
    /* the address in `out` that `in` may have although the buffers then overlap */
    const uint8_t *own = call->out;
    bool in_place =
        call->kind == HVD_ALLREDUCE || call->kind == HVD_ALLGATHER || call->kind == HVD_REDUCE;
    bool own_count = has_counts(call->kind) && call->kind != HVD_ALLTOALL;
    bool is_root = reading->place == reading->into->root;
    size_t in_bytes = 0;
    size_t out_bytes = 0;
    bool fits; /* false: a buffer would be larger than memory can be */

    if (own_count && call->counts && call->counts[reading->place] != call->count)
        return WRONG(
            reading,
            "counts[%u] is %zu, but count is %zu; both are this rank's part, so make them equal",
            reading->place, call->counts[reading->place], call->count);
    if (call->kind == HVD_ALLTOALL && !call->counts != !call->out_counts)
        return WRONG(reading, "%s is given without %s; give both or none",
                     call->counts ? "counts" : "out_counts",
                     call->counts ? "out_counts" : "counts");
    if (call->kind == HVD_SCATTER && !is_root)
        fits = true;
    else if (call->kind == HVD_REDUCESCATTER || call->kind == HVD_ALLTOALL ||
             call->kind == HVD_SCATTER)
        fits = total_bytes(reading, counts, call->count, &in_bytes);
    else /* a broadcast does not read `in`, so in_bytes stays 0 */
        fits = call->kind == HVD_BROADCAST || call_bytes_of(reading, call->count, &in_bytes);
    if ((call->kind == HVD_REDUCE || call->kind == HVD_GATHER) && !is_root)
        out_bytes = 0;
    else if (call->kind == HVD_ALLGATHER || call->kind == HVD_GATHER)
        fits = fits && total_bytes(reading, counts, call->count, &out_bytes);
    else if (call->kind == HVD_ALLTOALL)
        fits = fits && total_bytes(reading, call->out_counts, call->count, &out_bytes);
    else
        fits = fits &&
               call_bytes_of(reading, own_count && counts ? counts[reading->place] : call->count,
                             &out_bytes);
    if (!fits)
        return WRONG(reading,
                     "%zu numbers of %s are more than memory can hold; correct the argument %s",
                     call->count, reduce_type_name(call->type),
                     has_counts(call->kind) && call->counts ? "counts" : "count");
    if ((in_bytes && !call->in) || (out_bytes && !call->out))
        return WRONG(
            reading,
            "the buffer \"%s\" is NULL, and its count is not 0; give memory for this buffer",
            in_bytes && !call->in ? "in" : "out");
    if (call->kind == HVD_ALLGATHER) /* `in` may be this rank's own part of the result in `out` */
        for (uint32_t i = 0; i < reading->place && own; i++)
            own += (call->counts ? call->counts[i] : call->count) * reading->bytes;
    if (in_place && call->in == own)
        return check_both_memories(reading, in_bytes, out_bytes);
    if (!call_are_apart(call->in, in_bytes, call->out, out_bytes))
        return WRONG(reading, "the buffers \"in\" and \"out\" overlap; %s",
                     in_place ? "pass the same buffer twice, or two separate buffers"
                              : "pass two separate buffers");
    return check_both_memories(reading, in_bytes, out_bytes);
}

/* Checks a ragged call, in which each rank decides how much it gives. The result will lie in the
 * same kind of memory as `in` (host or GPU), so the memory of `in` is looked at even when `in` is
 * empty. */
static int read_ragged(struct reading *reading)
{
    const hvd_call *call = reading->call;
    /* true: `counts` says how much goes to each rank; false: `count` goes to all */
    bool to_each = call->kind == HVD_ALLTOALL_RAGGED;
    size_t most = LIMIT_RAGGED_BYTES / reading->bytes;
    size_t sum = 0;
    int rc = 0;

    if (call->out || call->out_counts)
        return WRONG(reading,
                     "%s is not NULL; leave %s NULL, because the result of this collective goes to "
                     "\"received\"",
                     call->out ? "out" : "out_counts", call->out ? "out" : "out_counts");
    if (!call->received || !call->received->counts)
        return WRONG(reading, "%s is NULL; pass memory for the result of the call",
                     call->received ? "received.counts, the memory for the received counts,"
                                    : "received, the memory for the result (ret_out),");
    if (!call->counts == to_each)
        return WRONG(reading, "counts is %s; %s", to_each ? "NULL" : "not NULL",
                     to_each ? "pass how many numbers go to each rank"
                             : "pass in count how many numbers this rank gives, and no counts");
    for (uint32_t i = 0; i < (to_each ? reading->size : 1); i++) {
        size_t count = to_each ? call->counts[i] : call->count;

        if (count > most - sum)
            return err_set(reading->err, HVD_E_LIMIT,
                           "%s: rank %u gives more than %" PRIu64
                           " bytes (LIMIT_RAGGED_BYTES) of %s; correct the %s of this rank, or "
                           "give less in one call",
                           reading->name, reading->roll->rank, LIMIT_RAGGED_BYTES,
                           reduce_type_name(call->type), to_each ? "counts" : "count");
        sum += count;
    }
    if (sum && !call->in)
        return WRONG(
            reading, "%s",
            "the buffer \"in\" is NULL, and its count is not 0; give memory for this buffer");
    if (cuda_known() && call->in)
        rc = check_memory(reading, "in", call->in);
    if (!rc && reading->into->device && !call->received->memory)
        rc = WRONG(reading, "%s",
                   "the buffer \"in\" is in the memory of a GPU, and received.memory is NULL; pass "
                   "in received.memory a function that allocates the result on that GPU");
    reading->into->received = (struct coll_received *)call->received;
    return rc;
}

/* Checks a send or a receive, which has one buffer, in host memory. Its root is the rank to which
 * the numbers go, or from which they come. The channels of a round know ranks of the round, not
 * indices in a group, so the root stays a rank. */
static int read_transfer(struct reading *reading)
{
    const hvd_call *call = reading->call;
    bool sends = call->kind == HVD_SEND;
    const void *at = sends ? call->in : call->out;
    size_t bytes;
    int rc = 0;

    if (call->pieces || call->piece_count)
        return WRONG(reading, "%s", "pieces is set; use in or out, and count");
    if (!call_bytes_of(reading, call->count, &bytes))
        return WRONG(reading,
                     "%zu numbers of %s are more than memory can hold; correct the argument count",
                     call->count, reduce_type_name(call->type));
    if (bytes && !at)
        return WRONG(
            reading,
            "the buffer \"%s\" is NULL, and its count is not 0; give memory for this buffer",
            sends ? "in" : "out");
    if (cuda_known() && bytes)
        rc = check_memory(reading, sends ? "in" : "out", at);
    if (!rc && reading->into->device)
        rc = WRONG(reading, "%s",
                   "the buffer is in the memory of a GPU; copy it to host memory, and give that");
    reading->into->root = (uint32_t)call->root;
    return rc;
}

/* Checks each piece (one of several buffers of one call) as if it were a call of its own, and that
 * all pieces together are not larger than memory can be. */
static int read_pieces(struct reading *reading)
{
    const hvd_call *call = reading->call;
    size_t remaining = SIZE_MAX / 2 / reading->bytes;
    size_t bytes;
    int rc = 0;

    if (call->kind != HVD_ALLREDUCE && call->kind != HVD_BROADCAST)
        return WRONG(reading, "%s",
                     "pieces is set, but only an allreduce and a broadcast take pieces; use in, "
                     "out and count");
    if (call->in || call->out || call->count)
        return WRONG(
            reading, "%s",
            "pieces and also in, out or count are set; set only pieces, or only in, out and count");
    if (!call->pieces)
        return WRONG(
            reading,
            "pieces is NULL, and piece_count is %zu; pass as many pieces as piece_count says",
            call->piece_count);
    for (size_t i = 0; i < call->piece_count && !rc; i++) {
        hvd_piece piece_read = call->pieces[i];
        const hvd_piece *piece = &piece_read;

        if (call->kind == HVD_BROADCAST && piece->in && piece->in != piece->out)
            return WRONG(reading,
                         "pieces[%zu]: the buffer \"in\" is set, and a broadcast does not read it; "
                         "leave \"in\" NULL",
                         i);
        if (call->kind == HVD_BROADCAST)
            piece_read.in = piece_read.out;
        if (!call_bytes_of(reading, piece->count, &bytes))
            return WRONG(reading,
                         "pieces[%zu]: %zu numbers of %s are more than memory can hold; correct "
                         "the count of this piece",
                         i, piece->count, reduce_type_name(call->type));
        if (bytes && (!piece->in || !piece->out))
            return WRONG(reading,
                         "pieces[%zu]: the buffer \"%s\" is NULL, and its count is not 0; give "
                         "memory for this buffer",
                         i, piece->in || call->kind == HVD_BROADCAST ? "out" : "in");
        if (piece->in != piece->out && !call_are_apart(piece->in, bytes, piece->out, bytes))
            return WRONG(reading,
                         "pieces[%zu]: the buffers \"in\" and \"out\" overlap; pass the same "
                         "buffer twice, or two separate buffers",
                         i);
        if (cuda_known() && piece->count) {
            char name[BUFFER_NAME_MAX];

            snprintf(name, sizeof(name), "in of pieces[%zu]", i);
            rc = check_memory(reading, name, piece->in);
            snprintf(name, sizeof(name), "out of pieces[%zu]", i);
            if (!rc)
                rc = check_memory(reading, name, piece->out);
        }
        if (!rc && piece->count > remaining)
            rc = WRONG(reading,
                       "the counts of %zu pieces together are more than memory can hold; correct "
                       "the counts",
                       call->piece_count);
        if (!rc)
            remaining -= piece->count;
    }
    return rc;
}

/* Checks a call of the program, and translates it to a struct coll_call. After an error *ret_call
 * is not complete. */
int call_read(const hvd_call *call, const struct groups *groups, const struct roll *roll,
              struct coll_call *ret_call, struct hvd_err *err)
{
    struct reading reading = { .call = call, .roll = roll, .into = ret_call, .err = err };
    int rc;

    if (!call)
        return err_set(err, HVD_E_INVAL, "the call is NULL; pass a struct hvd_call");
    if (call->kind < HVD_ALLREDUCE || (call->kind > HVD_JOIN && !is_ragged(call->kind) &&
                                       !is_rooted(call->kind) && !call_is_transfer(call)))
        return err_set(err, HVD_E_INVAL, "kind %d is no collective; use one of hvd_kind",
                       (int)call->kind);
    *ret_call = (struct coll_call){
        .kind = (enum coll_kind)((int)call->kind + (call->kind >= HVD_REDUCE ? ROOTED_APART : 0)),
        .tag = call->tag
    };
    reading.name = coll_kind_name((uint32_t)ret_call->kind);
    rc = read_group(&reading, groups);
    if (rc || call->kind == HVD_BARRIER || call->kind == HVD_JOIN) {
        /* `last` is the program's int; the rank is written to it through a pointer to unsigned,
         * which C allows */
        ret_call->ret_last = call->kind == HVD_JOIN ? (uint32_t *)call->last : NULL;
        return rc;
    }
    rc = read_numbers(&reading);
    if (!rc && call_is_transfer(call)) {
        rc = read_transfer(&reading);
    } else if (!rc && (call->pieces || call->piece_count)) {
        rc = read_pieces(&reading);
    } else if (!rc && is_ragged(call->kind)) {
        rc = read_ragged(&reading);
    } else if (!rc) {
        rc = read_memory(&reading);
    }
    ret_call->type = call->type;
    ret_call->op = call->op;
    ret_call->prescale = call->prescale;
    ret_call->postscale = call->postscale;
    ret_call->in = call->kind == HVD_BROADCAST ? NULL : call->in;
    ret_call->out = call->out;
    ret_call->count = call->count;
    ret_call->counts = has_counts(call->kind) ? call->counts : NULL;
    ret_call->out_counts = call->kind == HVD_ALLTOALL ? call->out_counts : NULL;
    ret_call->pieces = (const struct coll_piece *)call->pieces;
    ret_call->piece_count = call->piece_count;
    ret_call->by_host = call->by_host != 0;
    return rc;
}
