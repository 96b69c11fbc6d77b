/*
 * device_host.c: a call on memory of a GPU that goes through the host, slice by slice:
 *
 *     GPU ──load──► staging in ──► an operation on the host ──► staging out ──store──► GPU
 *
 * While the operation on one slice runs, the next slice is copied to the host and the previous
 * slice is copied back to the GPU. device.c calls this file. Each slice is a whole operation, so
 * all members cut the numbers into the same slices.
 */
#include "base/limits.h"
#include "base/mem.h"
#include "base/time.h"
#include "collectives/device.h"
#include "collectives/pieces.h"
#include "collectives/reduce/reduce.h"
#include "os/clock.h"

#include <sched.h>

struct slices { /* how the numbers of a call are cut; a part: the numbers of one member */
    struct passage *passage;
    uint32_t parts; /* how many parts are cut: one for each member, or 1 */
    size_t bytes;   /* bytes of one number */
    /* room: how many numbers of each part a slice has; most: numbers of the largest part; count:
     * how many slices there are */
    size_t room, most, count;
    size_t *counts, *out_counts; /* counts of the current slice; NULL: all parts are equal */
    struct pieces pieces;        /* used by ALLREDUCE and BROADCAST */
};

/* The driver takes an address in device memory as a number. */
static cuda_address device_address(const void *at)
{
    return (cuda_address)(uintptr_t)at;
}

/* Returns how many numbers of a part with `count` numbers are in slice `number`. */
static size_t in_slice(const struct slices *slices, size_t count, size_t number)
{
    size_t from = number * slices->room;
    size_t left = count > from ? count - from : 0;

    return left < slices->room ? left : slices->room;
}

enum direction { LOAD, STORE }; /* to the host, to the device */

/* Queues the copy of `count` numbers between an address on the device and one in host memory. LOAD:
 * to the host; STORE: to the device. */
static int move(const struct slices *slices, enum direction direction, cuda_address device,
                uint8_t *host, size_t count)
{
    const struct passage *passage = slices->passage;
    size_t bytes = count * slices->bytes;

    if (!count)
        return 0;
    if (direction == LOAD)
        return staging_load(passage->staging, device, host, bytes, passage->err);
    return staging_store(passage->staging, host, device, bytes, passage->err);
}

/* Copies those numbers of one part that are in slice `number`. `count`: how many the part has. */
static int move_part(const struct slices *slices, enum direction direction, size_t number,
                     const void *device, uint8_t *host, size_t count)
{
    return move(slices, direction, device_address(device) + number * slices->room * slices->bytes,
                host, in_slice(slices, count, number));
}

/* Queues the copies of slice `number` of an allreduce or a broadcast, which may have several
 * buffers. In host memory the slice is one run; on the device it may be in several buffers. */
static int move_pieces(struct slices *slices, enum direction direction, size_t number,
                       uint8_t *host)
{
    struct pieces *pieces = &slices->pieces;
    struct cursor *cursor = direction == LOAD ? &pieces->in : &pieces->out;
    size_t from = number * slices->room;
    size_t left = in_slice(slices, slices->most, number);
    int rc = 0;

    while (left && !rc) {
        size_t some = pieces_stretch(pieces, cursor, from, left);
        const struct coll_piece *piece = &pieces->items[cursor->piece];
        cuda_address device =
            device_address(direction == LOAD && piece->in ? piece->in : piece->out);

        rc = move(slices, direction, device + (from - cursor->at) * slices->bytes, host, some);
        host += some * slices->bytes;
        from += some;
        left -= some;
    }
    return rc;
}

/* Queues the copies of a slice to the host (LOAD), or of its result to the device (STORE). An
 * allreduce and a broadcast are done in place: in host memory the result is where the input was. */
static int move_slice(struct slices *slices, enum direction direction, size_t number)
{
    const struct passage *passage = slices->passage;
    const struct coll_call *call = passage->call;
    size_t slot = number % STAGING_SLOTS;
    bool load = direction == LOAD, is_root = call->root == passage->group->group.place;
    uint8_t *in = staging_in(passage->staging, slot);
    uint8_t *host = load ? in : staging_out(passage->staging, slot);
    const uint8_t *device = load ? call->in : call->out;
    const size_t *counts = load || call->kind != COLL_ALLTOALL ? call->counts : call->out_counts;
    size_t total = 0;
    int rc = 0;

    if (call->kind == COLL_ALLREDUCE) {
        rc = move_pieces(slices, direction, number, in);
    } else if (call->kind == COLL_BROADCAST) {
        /* LOAD: the root alone has numbers; STORE: the other members need them */
        if (is_root == load)
            rc = move_pieces(slices, direction, number, in);
    } else if (call->kind == (load ? COLL_ALLGATHER : COLL_REDUCESCATTER)) {
        rc = move_part(slices, direction, number, device, host, call->count);
    } else {
        /* On the device each part follows as a whole after the part before it. Host memory has only
         * the numbers of this slice, part after part, so each part needs a copy of its own. If
         * there is only one slice, both layouts are equal, and one copy moves all parts. */
        for (uint32_t i = 0; i < slices->parts && !rc; i++) {
            size_t count = counts ? counts[i] : call->count;

            if (slices->count > 1) {
                rc = move_part(slices, direction, number, device + total * slices->bytes, host,
                               count);
                host += in_slice(slices, count, number) * slices->bytes;
            }
            total += count;
        }
        if (slices->count <= 1)
            rc = move(slices, direction, device_address(device), host, total);
    }
    if (rc || !load)
        return rc;
    /* The slot's mark, an event in the GPU's queue after these copies: when it is reached, all
     * copies of this slot are done. */
    return staging_mark(passage->staging, slot, passage->err);
}

/* Runs the operation on the host for slice `number`, from the slot's input to the slot's output.
 * The call's counts of the members become counts of this slice. */
static int compute_slice(struct slices *slices, size_t number)
{
    const struct passage *passage = slices->passage;
    const struct coll_call *whole = slices->passage->call;
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

/* How a thread waits for the device: it asks without pauses for SPIN_US, then with pauses that grow
 * from PAUSE_LEAST_US to PAUSE_MOST_US. */
#define SPIN_US        50
#define PAUSE_LEAST_US 20
#define PAUSE_MOST_US  TIME_MS

/* Waits until the GPU has done the copies before the mark of this staging slot (staging.h). A mark
 * is an event in the stream of copies. The wait spins for SPIN_US, and then sleeps longer after
 * each look. HVD_E_REVOKED: the round has failed. */
static int await_mark(struct passage *passage, size_t slot)
{
    int64_t since_us = clock_now_us();
    int64_t pause_us = PAUSE_LEAST_US / 2;
    int rc;

    while ((rc = staging_look(passage->staging, slot, passage->err)) == HVD_E_BUSY) {
        int64_t now_us = clock_now_us();

        if (now_us - since_us < SPIN_US) {
            sched_yield();
        } else {
            pause_us = pause_us * 2 < PAUSE_MOST_US ? pause_us * 2 : PAUSE_MOST_US;
            coll_pause_until(passage->coll, now_us + pause_us);
        }
        if (coll_has_failed(passage->coll))
            return HVD_E_REVOKED;
    }
    return rc;
}

_Static_assert(STAGING_BYTES / sizeof(int64_t) >= LIMIT_WORKERS,
               "a slice has room for a number of each member");

/* Takes all slices of the call through the host: while the operation on one slice runs, the next
 * slice is copied. On return the copies of the last results to the device may still be queued. */
static int pass_slices(struct passage *passage)
{
    const struct coll_call *call = passage->call;
    struct slices slices = { .passage = passage };
    struct timeline *timeline = passage->coll->timeline;
    uint32_t size = passage->group->group.size;
    int rc = 0;

    slices.parts = call->kind == COLL_ALLREDUCE || call->kind == COLL_BROADCAST ? 1 : size;
    slices.bytes = reduce_type_bytes(call->type);
    slices.room = STAGING_BYTES / slices.bytes / slices.parts;
    if (call->counts) {
        slices.counts = mem_zalloc_array(size, sizeof(*slices.counts));
        slices.out_counts = mem_zalloc_array(size, sizeof(*slices.out_counts));
        rc = slices.counts && slices.out_counts ? 0 : HVD_E_NOMEM;
    }
    /* The largest part of any member determines the number of slices, which is then equal on all.
     */
    if (call->kind == COLL_ALLREDUCE || call->kind == COLL_BROADCAST) {
        pieces_init(&slices.pieces, call);
        for (size_t i = 0; i < slices.pieces.count; i++)
            slices.most += slices.pieces.items[i].count;
    } else if (!call->counts) {
        slices.most = call->count;
    } else if (call->kind == COLL_ALLTOALL) {
        slices.most = passage->most; /* device.c has computed the largest count of all members */
    } else {
        for (uint32_t i = 0; i < slices.parts; i++)
            slices.most = call->counts[i] > slices.most ? call->counts[i] : slices.most;
    }
    slices.count = (slices.most + slices.room - 1) / slices.room;
    if (!rc && slices.count)
        rc = move_slice(&slices, LOAD, 0 /* the first slice */);
    for (size_t i = 0; i < slices.count && !rc; i++) {
        if (i + 1 < slices.count)
            rc = move_slice(&slices, LOAD, i + 1);
        if (!rc) {
            int64_t begun_us = timeline_now_us(timeline);

            rc = await_mark(passage, i % STAGING_SLOTS);
            timeline_phase(timeline, "wait for data", 0, begun_us, timeline_now_us(timeline));
        }
        if (!rc)
            rc = compute_slice(&slices, i);
        if (!rc)
            rc = move_slice(&slices, STORE, i);
    }
    mem_free(slices.counts);
    mem_free(slices.out_counts);
    return rc;
}

/* Queues the copy of a member that is alone: from its input to its output, unless they are the
 * same. */
static int copy_on_device(struct passage *passage, const void *from, void *to, size_t count)
{
    if (!count || from == to)
        return 0;
    return staging_copy(passage->staging, device_address(from), device_address(to),
                        count * reduce_type_bytes(passage->call->type), passage->err);
}

/* Runs a call through the host, in the order of the program's CUDA stream: after the work that
 * the program has queued there, and before its later work. A streamed call returns while its
 * last copies are still queued. Any other call waits for them: it sets the mark of slot 0, an event
 * after all copies, and waits for that event. */
int device_by_host(struct passage *passage)
{
    const struct coll_call *call = passage->call;
    bool alone = passage->group->group.size == 1 && call->prescale == 0 && call->postscale == 0;
    int rc = coll_staging(passage->coll, call->device, &passage->staging, passage->err);

    if (!rc)
        rc = gpu_enter(call->device, passage->err);
    if (rc)
        return rc;
    rc = staging_after(passage->staging, call->stream, passage->err);
    if (!rc && !alone)
        rc = pass_slices(passage);
    /* If the member is alone in the group, its input is the result, unless it has to be scaled. */
    if (!rc && alone && call->kind != COLL_BROADCAST && !call->pieces)
        rc = copy_on_device(passage, call->in, call->out,
                            call->counts ? call->counts[0] : call->count);
    for (size_t i = 0;
         alone && call->pieces && call->kind == COLL_ALLREDUCE && i < call->piece_count && !rc; i++)
        rc =
            copy_on_device(passage, call->pieces[i].in, call->pieces[i].out, call->pieces[i].count);
    if (!rc && call->streamed) {
        rc = staging_before(passage->staging, call->stream, passage->err);
    } else if (!rc) {
        rc = staging_mark(passage->staging, 0 /* the first slot */, passage->err);
        if (!rc) {
            int64_t begun_us = timeline_now_us(passage->coll->timeline);

            rc = await_mark(passage, 0);
            timeline_phase(passage->coll->timeline, "copy to the device", 0, begun_us,
                           timeline_now_us(passage->coll->timeline));
        }
    }
    gpu_leave(call->device);
    return rc;
}
