/* device_host.c: a call on memory of a device whose numbers pass through the host, slice by slice:
 * while one is computed with, the next is on its way here and the one before on its way back. */
#include "base/limits.h"
#include "base/mem.h"
#include "collectives/device.h"
#include "collectives/pieces.h"
#include "collectives/reduce/reduce.h"

struct slices {
    struct passage *passage;
    const struct coll_call *call;
    uint32_t parts;           /* runs of numbers that travel together, one for each member, or 1 */
    size_t bytes;             /* of a number */
    size_t room, most, count; /* numbers of each part in one; of the largest part; slices */
    size_t *counts, *out_counts; /* of the one in hand; NULL: all parts are equal */
    struct pieces pieces;        /* ALLREDUCE */
};

/* ---- what there is to do --------------------------------------------------------------------- */

static size_t in_slice(const struct slices *slices, size_t count, size_t number)
{
    size_t from = number * slices->room;
    size_t left = count > from ? count - from : 0;

    return left < slices->room ? left : slices->room;
}

static size_t largest(const struct slices *slices)
{
    const struct coll_call *call = slices->call;
    size_t most = 0;

    if (call->kind == COLL_ALLREDUCE) {
        for (size_t i = 0; i < slices->pieces.count; i++)
            most += slices->pieces.items[i].count;
        return most;
    }
    if (!call->counts)
        return call->count;
    if (call->kind == COLL_ALLTOALL) /* what goes to whom each member knows of itself alone */
        return slices->passage->most;
    for (uint32_t i = 0; i < slices->parts; i++)
        most = call->counts[i] > most ? call->counts[i] : most;
    return most;
}

_Static_assert(STAGING_BYTES / sizeof(int64_t) >= LIMIT_WORKERS, "a slice has a number of each");

static int plan(struct slices *slices)
{
    const struct coll_call *call = slices->call;
    uint32_t size = slices->passage->group->group.size;

    slices->parts = call->kind == COLL_ALLREDUCE || call->kind == COLL_BROADCAST ? 1 : size;
    slices->bytes = reduce_type_bytes(call->type);
    slices->room = STAGING_BYTES / slices->bytes / slices->parts;
    if (call->kind == COLL_ALLREDUCE)
        pieces_init(&slices->pieces, call);
    if (call->counts) {
        slices->counts = mem_zalloc_array(size, sizeof(*slices->counts));
        slices->out_counts = mem_zalloc_array(size, sizeof(*slices->out_counts));
        if (!slices->counts || !slices->out_counts)
            return HVD_E_NOMEM;
    }
    slices->most = largest(slices);
    slices->count = (slices->most + slices->room - 1) / slices->room;
    return 0;
}

/* ---- to the host, and back ------------------------------------------------------------------- */

enum way_through { LOAD, STORE };

static int move(const struct slices *slices, enum way_through way, cuda_address device,
                uint8_t *host, size_t count)
{
    const struct passage *passage = slices->passage;
    size_t bytes = count * slices->bytes;

    if (!count)
        return 0;
    if (way == LOAD)
        return staging_load(passage->staging, device, host, bytes, passage->err);
    return staging_store(passage->staging, host, device, bytes, passage->err);
}

static int move_one(const struct slices *slices, enum way_through way, size_t number,
                    const void *device, uint8_t *host, size_t count)
{
    return move(slices, way, device_address(device) + number * slices->room * slices->bytes, host,
                in_slice(slices, count, number));
}

/* On the device they lie one after the other, and here what of them is in the slice: of the only
 * slice there is they do so on both sides. */
static int move_parts(const struct slices *slices, enum way_through way, size_t number,
                      const uint8_t *device, uint8_t *host, const size_t *counts)
{
    size_t total = 0;
    int rc = 0;

    for (uint32_t i = 0; i < slices->parts && !rc; i++) {
        size_t count = counts ? counts[i] : slices->call->count;

        if (slices->count > 1) {
            rc = move_one(slices, way, number, device + total * slices->bytes, host, count);
            host += in_slice(slices, count, number) * slices->bytes;
        }
        total += count;
    }
    return slices->count > 1 ? rc : move(slices, way, device_address(device), host, total);
}

static int move_pieces(struct slices *slices, enum way_through way, size_t number, uint8_t *host)
{
    struct pieces *pieces = &slices->pieces;
    struct cursor *cursor = way == LOAD ? &pieces->in : &pieces->out;
    size_t from = number * slices->room;
    size_t left = in_slice(slices, slices->most, number);
    int rc = 0;

    while (left && !rc) {
        size_t some = pieces_stretch(pieces, cursor, from, left);
        const struct coll_piece *piece = &pieces->items[cursor->piece];
        cuda_address device = device_address(way == LOAD ? piece->in : piece->out);

        rc = move(slices, way, device + (from - cursor->at) * slices->bytes, host, some);
        host += some * slices->bytes;
        from += some;
        left -= some;
    }
    return rc;
}

static bool is_root(const struct slices *slices)
{
    return slices->call->root == slices->passage->group->group.place;
}

/* Queued, and the slot's mark behind it: it comes after what was queued from this slot before. */
static int load(struct slices *slices, size_t number)
{
    const struct coll_call *call = slices->call;
    struct staging *staging = slices->passage->staging;
    size_t slot = number % STAGING_SLOTS;
    uint8_t *in = staging_in(staging, slot);
    int rc = 0;

    switch (call->kind) {
    case COLL_ALLREDUCE: rc = move_pieces(slices, LOAD, number, in); break;
    case COLL_BROADCAST:
        if (is_root(slices))
            rc = move_one(slices, LOAD, number, call->out, in, call->count);
        break;
    case COLL_ALLGATHER: rc = move_one(slices, LOAD, number, call->in, in, call->count); break;
    default: rc = move_parts(slices, LOAD, number, call->in, in, call->counts); break;
    }
    return rc ? rc : staging_mark(staging, slot, slices->passage->err);
}

static int store(struct slices *slices, size_t number)
{
    const struct coll_call *call = slices->call;
    struct staging *staging = slices->passage->staging;
    size_t slot = number % STAGING_SLOTS;
    uint8_t *out = staging_out(staging, slot);

    switch (call->kind) {
    case COLL_ALLREDUCE: return move_pieces(slices, STORE, number, staging_in(staging, slot));
    case COLL_BROADCAST:
        if (is_root(slices))
            return 0;
        return move_one(slices, STORE, number, call->out, staging_in(staging, slot), call->count);
    case COLL_REDUCESCATTER: return move_one(slices, STORE, number, call->out, out, call->count);
    case COLL_ALLTOALL: return move_parts(slices, STORE, number, call->out, out, call->out_counts);
    default: return move_parts(slices, STORE, number, call->out, out, call->counts);
    }
}

/* ---- on the host ----------------------------------------------------------------------------- */

static int compute(struct slices *slices, size_t number)
{
    const struct passage *passage = slices->passage;
    const struct coll_call *whole = slices->call;
    size_t slot = number % STAGING_SLOTS;
    struct coll_call call = { .kind = whole->kind,
                              .type = whole->type,
                              .op = whole->op,
                              .prescale = whole->prescale,
                              .postscale = whole->postscale,
                              .root = whole->root,
                              .in = staging_in(passage->staging, slot),
                              .out = staging_out(passage->staging, slot) };

    if (whole->kind == COLL_ALLREDUCE || whole->kind == COLL_BROADCAST)
        call.out = staging_in(passage->staging, slot);
    call.count = in_slice(slices, slices->parts == 1 ? slices->most : whole->count, number);
    if (slices->counts && slices->out_counts) {
        for (uint32_t i = 0; i < slices->parts; i++) {
            slices->counts[i] = in_slice(slices, whole->counts[i], number);
            if (whole->out_counts)
                slices->out_counts[i] = in_slice(slices, whole->out_counts[i], number);
        }
        call.counts = slices->counts;
        call.out_counts = whole->out_counts ? slices->out_counts : NULL;
    }
    return operation_inside(passage->coll, passage->group, &call);
}

static int pass_all(struct slices *slices)
{
    int rc = slices->count ? load(slices, 0) : 0;

    for (size_t i = 0; i < slices->count && !rc; i++) {
        if (i + 1 < slices->count)
            rc = load(slices, i + 1);
        if (!rc)
            rc = device_await(slices->passage, i % STAGING_SLOTS);
        if (!rc)
            rc = compute(slices, i);
        if (!rc)
            rc = store(slices, i);
    }
    return rc;
}

int device_by_host(struct passage *passage)
{
    struct slices slices = { .passage = passage, .call = passage->call };
    int rc = plan(&slices);

    if (!rc)
        rc = pass_all(&slices);
    mem_free(slices.counts);
    mem_free(slices.out_counts);
    return rc;
}
