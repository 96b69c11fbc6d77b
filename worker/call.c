#include "worker/call.h"

#include "collectives/reduce/reduce.h"
#include "gpu/device.h"

#include <stdio.h>

_Static_assert((int)HVD_ALLREDUCE == (int)COLL_ALLREDUCE &&
                   (int)HVD_BROADCAST == (int)COLL_BROADCAST &&
                   (int)HVD_ALLGATHER == (int)COLL_ALLGATHER &&
                   (int)HVD_REDUCESCATTER == (int)COLL_REDUCESCATTER &&
                   (int)HVD_ALLTOALL == (int)COLL_ALLTOALL &&
                   (int)HVD_BARRIER == (int)COLL_BARRIER && (int)HVD_JOIN == (int)COLL_JOIN,
               "the same collectives by the same numbers");
_Static_assert(sizeof(struct coll_piece) == sizeof(hvd_piece) &&
                   offsetof(struct coll_piece, out) == offsetof(hvd_piece, out) &&
                   offsetof(struct coll_piece, count) == offsetof(hvd_piece, count),
               "pieces are passed on as they are");

/* One call as it is read. */
struct reading {
    const hvd_call *call;
    const struct roll *roll;
    const char *name; /* of the collective */
    uint32_t place;   /* of this rank in the group */
    uint32_t size;    /* of the group */
    size_t bytes;     /* of a number */
    const char *seen; /* the first buffer whose memory was looked at; NULL: none yet */
    struct coll_call *into;
    struct hvd_err *err;
};

#define WRONG(reading, format, ...) \
    err_set((reading)->err, HVD_E_INVAL, "%s: " format, (reading)->name, __VA_ARGS__)

static bool has_type(hvd_kind kind)
{
    return kind != HVD_BARRIER && kind != HVD_JOIN;
}

static bool has_counts(hvd_kind kind)
{
    return kind == HVD_ALLGATHER || kind == HVD_REDUCESCATTER || kind == HVD_ALLTOALL;
}

static bool computes(hvd_kind kind)
{
    return kind == HVD_ALLREDUCE || kind == HVD_REDUCESCATTER;
}

/* ---- one thing after the other --------------------------------------------------------------- */

static int read_group(struct reading *reading, const struct groups *groups)
{
    const struct roll *roll = reading->roll;
    const hvd_group *group = reading->call->group;
    size_t index;

    reading->place = roll->rank;
    reading->size = roll->size;
    if (!group)
        return 0;
    if (!groups_find(groups, group, &index))
        return WRONG(reading, "%s",
                     "the group is none that was made since hvd_init; use what "
                     "hvd_group_create has given");
    if (!roll->groups[index].part)
        return WRONG(reading,
                     "rank %u is not in group %zu; let its members call alone, as "
                     "hvd_group_rank says",
                     roll->rank, index + 1);
    reading->into->group = roll->groups[index].part;
    reading->place = roll->groups[index].place;
    reading->size = roll_size(roll, reading->into->group);
    return 0;
}

static bool scales(double scale)
{
    return scale < 0 || scale > 1 || (scale > 0 && scale < 1) || scale != scale;
}

static int read_numbers(struct reading *reading)
{
    const hvd_call *call = reading->call;
    bool scaled = scales(call->prescale) || scales(call->postscale);

    reading->bytes = reduce_type_bytes(call->type);
    if (!reading->bytes)
        return WRONG(reading, "there is no type %d; use one of hvd_dtype", (int)call->type);
    if (computes(call->kind) && !reduce_knows(call->type, call->op))
        return WRONG(reading, "there is no op %d; use one of hvd_op", (int)call->op);
    if (scaled && !computes(call->kind))
        return WRONG(reading, "%s",
                     "nothing is computed, so nothing is scaled; leave prescale and postscale 0");
    if (scaled && !reduce_type_is_real(call->type))
        return WRONG(reading,
                     "%s cannot be scaled; leave prescale and postscale 0, or use a floating type",
                     reduce_type_name(call->type));
    return 0;
}

static int read_root(struct reading *reading)
{
    const struct roll *roll = reading->roll;
    int root = reading->call->root;

    if (root < 0 || (uint32_t)root >= roll->size)
        return WRONG(reading, "root %d is no rank of this round; use 0 to %u", root,
                     roll->size - 1);
    if (reading->call->in && reading->call->out && reading->call->in != reading->call->out)
        return WRONG(reading, "%s",
                     "in is not looked at; leave it NULL, and give the root's numbers in out");
    if (!roll_place(roll, reading->into->group, (uint32_t)root, &reading->into->root))
        return WRONG(reading, "root %d is not in the group; use one of its ranks", root);
    return 0;
}

/* ---- memory ---------------------------------------------------------------------------------- */

/* Of the sum of counts, or of each times count, in bytes. More than half of what can be addressed
 * cannot be there twice. */
static bool total_bytes(const struct reading *reading, const size_t *counts, size_t each,
                        size_t *ret_bytes)
{
    size_t left = SIZE_MAX / 2 / reading->bytes;
    size_t total = 0;

    if (!counts) {
        if (each > left / reading->size)
            return false;
        *ret_bytes = each * reading->size * reading->bytes;
        return true;
    }
    for (uint32_t i = 0; i < reading->size; i++) {
        if (counts[i] > left - total)
            return false;
        total += counts[i];
    }
    *ret_bytes = total * reading->bytes;
    return true;
}

static bool bytes_of(const struct reading *reading, size_t count, size_t *ret_bytes)
{
    if (count > SIZE_MAX / 2 / reading->bytes)
        return false;
    *ret_bytes = count * reading->bytes;
    return true;
}

/* How much lies at in and at out. */
static bool extent(const struct reading *reading, size_t *ret_in, size_t *ret_out)
{
    const hvd_call *call = reading->call;
    const size_t *counts = call->counts;

    switch (call->kind) {
    case HVD_BROADCAST: *ret_in = 0; return bytes_of(reading, call->count, ret_out);
    case HVD_ALLGATHER:
        return bytes_of(reading, call->count, ret_in) &&
               total_bytes(reading, counts, call->count, ret_out);
    case HVD_REDUCESCATTER:
        return bytes_of(reading, counts ? counts[reading->place] : call->count, ret_out) &&
               total_bytes(reading, counts, call->count, ret_in);
    case HVD_ALLTOALL:
        return total_bytes(reading, counts, call->count, ret_in) &&
               total_bytes(reading, call->out_counts, call->count, ret_out);
    default:
        return bytes_of(reading, call->count, ret_in) && bytes_of(reading, call->count, ret_out);
    }
}

/* What an allgather takes from its own place in the result is there already. */
static size_t own_place(const struct reading *reading)
{
    const hvd_call *call = reading->call;
    size_t before = 0;

    if (call->kind != HVD_ALLGATHER)
        return 0;
    if (!call->counts)
        return reading->place * call->count * reading->bytes;
    for (uint32_t i = 0; i < reading->place; i++)
        before += call->counts[i];
    return before * reading->bytes;
}

static bool apart(const void *in, size_t in_bytes, const void *out, size_t out_bytes)
{
    uintptr_t from = (uintptr_t)in;
    uintptr_t to = (uintptr_t)out;

    return !in_bytes || !out_bytes || (from < to ? to - from >= in_bytes : from - to >= out_bytes);
}

static void name_memory(const struct gpu_device *device, char text[GPU_NAME_MAX])
{
    if (device)
        snprintf(text, GPU_NAME_MAX, "GPU %d", device->ordinal);
    else
        snprintf(text, GPU_NAME_MAX, "the host");
}

/* All are in one memory. Called where CUDA is used at all. */
static int see(struct reading *reading, const char *name, const void *at)
{
    const struct gpu_device *device = gpu_device_of(at);
    char first[GPU_NAME_MAX];
    char second[GPU_NAME_MAX];

    if (!reading->seen) {
        reading->seen = name;
        reading->into->device = device;
    }
    if (device == reading->into->device)
        return 0;
    name_memory(reading->into->device, first);
    name_memory(device, second);
    return WRONG(reading, "%s is in the memory of %s and %s in that of %s; put them in the same",
                 reading->seen, first, name, second);
}

/* What holds nothing says something only where nothing else does. */
static int see_both(struct reading *reading, size_t in_bytes, size_t out_bytes)
{
    const hvd_call *call = reading->call;
    bool nothing = !in_bytes && !out_bytes;
    bool in = in_bytes || (nothing && call->in);
    bool out = out_bytes || (nothing && call->out);
    int rc = 0;

    if (!cuda_known())
        return 0;
    if (in)
        rc = see(reading, "in", call->in);
    return rc || !out ? rc : see(reading, "out", call->out);
}

static int read_memory(struct reading *reading)
{
    const hvd_call *call = reading->call;
    bool in_place = call->kind == HVD_ALLREDUCE || call->kind == HVD_ALLGATHER;
    size_t in_bytes = 0;
    size_t out_bytes = 0;

    if (!extent(reading, &in_bytes, &out_bytes))
        return WRONG(reading, "%zu numbers of %s are more than there can be memory for; correct %s",
                     call->count, reduce_type_name(call->type),
                     has_counts(call->kind) && call->counts ? "counts" : "count");
    if ((in_bytes && !call->in) || (out_bytes && !call->out))
        return WRONG(reading, "%s is NULL, and count is not 0; give memory for it",
                     in_bytes && !call->in ? "in" : "out");
    if (in_place && call->in == (const uint8_t *)call->out + own_place(reading))
        return see_both(reading, in_bytes, out_bytes);
    if (!apart(call->in, in_bytes, call->out, out_bytes))
        return WRONG(reading, "in and out overlap; %s",
                     in_place ? "let them be the same, or apart" : "let them be apart");
    return see_both(reading, in_bytes, out_bytes);
}

static int read_counts(struct reading *reading)
{
    const hvd_call *call = reading->call;
    bool own = call->kind == HVD_ALLGATHER || call->kind == HVD_REDUCESCATTER;

    if (own && call->counts && call->counts[reading->place] != call->count)
        return WRONG(reading,
                     "counts[%u] is %zu and count %zu; both are this rank's part, so make them "
                     "equal",
                     reading->place, call->counts[reading->place], call->count);
    if (call->kind == HVD_ALLTOALL && !call->counts != !call->out_counts)
        return WRONG(reading, "%s without %s; give both or none",
                     call->counts ? "counts" : "out_counts",
                     call->counts ? "out_counts" : "counts");
    return 0;
}

static int see_piece(struct reading *reading, const hvd_piece *piece)
{
    int rc = 0;

    if (!cuda_known() || !piece->count)
        return 0;
    rc = see(reading, "in of a piece", piece->in);
    return rc ? rc : see(reading, "out of one", piece->out);
}

static int read_piece(struct reading *reading, const hvd_piece *piece, size_t number)
{
    size_t bytes;

    if (!bytes_of(reading, piece->count, &bytes))
        return WRONG(reading,
                     "pieces[%zu]: %zu numbers of %s are more than there can be memory for; "
                     "correct its count",
                     number, piece->count, reduce_type_name(reading->call->type));
    if (bytes && (!piece->in || !piece->out))
        return WRONG(reading, "pieces[%zu]: %s is NULL, and its count is not 0; give memory for it",
                     number, piece->in ? "out" : "in");
    if (piece->in != piece->out && !apart(piece->in, bytes, piece->out, bytes))
        return WRONG(reading, "pieces[%zu]: in and out overlap; let them be the same, or apart",
                     number);
    return see_piece(reading, piece);
}

static int read_pieces(struct reading *reading)
{
    const hvd_call *call = reading->call;
    size_t left = SIZE_MAX / 2 / reading->bytes;
    int rc = 0;

    if (call->kind != HVD_ALLREDUCE)
        return WRONG(reading, "%s", "it takes no pieces; only an allreduce does");
    if (call->in || call->out || call->count)
        return WRONG(reading, "%s", "pieces beside in, out or count; give the one or the other");
    if (!call->pieces)
        return WRONG(reading, "pieces is NULL, and piece_count %zu; give as many as that",
                     call->piece_count);
    for (size_t i = 0; i < call->piece_count && !rc; i++) {
        rc = read_piece(reading, &call->pieces[i], i);
        if (!rc && call->pieces[i].count > left)
            rc = WRONG(reading, "%zu pieces are more than there can be memory for; correct them",
                       call->piece_count);
        if (!rc)
            left -= call->pieces[i].count;
    }
    return rc;
}

/* ---- the whole ------------------------------------------------------------------------------- */

static int read_buffers(struct reading *reading)
{
    const hvd_call *call = reading->call;
    int rc;

    if (call->pieces || call->piece_count)
        return read_pieces(reading);
    rc = read_counts(reading);
    return rc ? rc : read_memory(reading);
}

int call_read(const hvd_call *call, const struct groups *groups, const struct roll *roll,
              struct coll_call *ret_call, struct hvd_err *err)
{
    struct reading reading = { .call = call, .roll = roll, .into = ret_call, .err = err };
    int rc;

    if (!call)
        return err_set(err, HVD_E_INVAL, "the call is NULL; say what is to be done");
    if (call->kind < HVD_ALLREDUCE || call->kind > HVD_JOIN)
        return err_set(err, HVD_E_INVAL, "kind %d is no collective; use one of hvd_kind",
                       (int)call->kind);
    *ret_call = (struct coll_call){ .kind = (enum coll_kind)call->kind };
    reading.name = accord_kind_name((uint32_t)call->kind);
    rc = read_group(&reading, groups);
    if (rc || !has_type(call->kind)) {
        /* an int may be written as the unsigned that it is */
        ret_call->ret_last = call->kind == HVD_JOIN ? (uint32_t *)call->last : NULL;
        return rc;
    }
    rc = read_numbers(&reading);
    if (!rc && call->kind == HVD_BROADCAST)
        rc = read_root(&reading);
    if (!rc)
        rc = read_buffers(&reading);
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
    return rc;
}
