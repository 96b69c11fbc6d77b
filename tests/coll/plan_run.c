/*
 * plan_run.c: runs one member's part of a random collective, with guards around its buffers, and
 * compares each number of the result with the plain reference of numbers.c.
 */
#include "tests/coll/plan_run.h"

#include "base/mem.h"
#include "base/panic.h"
#include "collectives/shm/pool.h"
#include "tests/coll/transfers.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define GUARD_BYTES 64
#define GUARD       0xa7
#define ALL_JUDGE   20000 /* up to this many numbers every member checks all of them */

/* One operation, in one group. */
struct part {
    struct plan_run *run;
    const struct plan *plan;
    const uint32_t *ranks;
    uint32_t size, place;
    size_t group, bytes; /* group: index of the group; bytes: size of one number */
    struct plan_own own;
    struct coll_call call;
};

PRINTF_LIKE(2, 3)
/* Notes the first thing that is wrong for the report. Returns 1. */
static int wrong(struct part *part, const char *format, ...)
{
    char *text = part->run->wrong;
    va_list args;
    int at;

    if (text[0])
        return 1;
    plan_show(part->plan, part->run->batch, text);
    at = (int)strlen(text);
    at += snprintf(text + at, PLAN_RUN_WRONG_MAX - (size_t)at,
                   "\n  rank %u in group %zu: ", part->run->rank, part->group);
    va_start(args, format);
    (void)vsnprintf(text + at, PLAN_RUN_WRONG_MAX - (size_t)at, format, args);
    va_end(args);
    return 1;
}

static int run(struct part *part)
{
    struct hvd_err err = { .text = "" };
    struct coll_call call = part->call;
    int rc;

    if (part->run->device)
        device_buffers_call(part->run->device, &call);
    rc = coll_run(part->run->coll, &call, &err);
    if (rc)
        (void)wrong(part, "%s: %s", err_name(rc), err.text);
    return rc;
}

/* ---- buffers between guard pages --- */

struct buffer {
    uint8_t *block, *at;
    size_t bytes, offset;
    bool pooled;
    struct device_buffers *device; /* NULL: memory of the host */
    uint64_t sum;
};

static uint64_t sum_bytes(const uint8_t *bytes, size_t length)
{
    uint64_t sum = length, word;

    for (size_t i = 0; i < length; i += sizeof(word)) {
        word = 0;
        memcpy(&word, bytes + i, length - i < sizeof(word) ? length - i : sizeof(word));
        sum = numbers_mix(sum, word);
    }
    return sum;
}

/* Allocates a buffer with a guard on both sides, filled with GUARD. */
static void buffer_make(const struct part *part, struct buffer *buffer, size_t bytes, size_t offset)
{
    size_t all = bytes + offset + 2 * GUARD_BYTES;

    *buffer = (struct buffer){
        .bytes = bytes, .offset = offset, .pooled = part->own.pooled, .device = part->run->device
    };
    if (buffer->device)
        buffer->block = device_buffers_alloc(buffer->device, all);
    else
        buffer->block = buffer->pooled ? pool_alloc(all, NULL) : mem_alloc(all);
    ASSERT(buffer->block);
    memset(buffer->block, GUARD, all);
    buffer->at = buffer->block + GUARD_BYTES + offset;
}

static void buffer_free(struct buffer *buffer)
{
    if (buffer->device)
        device_buffers_free(buffer->device, buffer->block);
    else if (buffer->pooled)
        pool_free(buffer->block);
    else
        mem_free(buffer->block);
}

static bool is_guard(const uint8_t *bytes, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        if (bytes[i] != GUARD)
            return false;
    }
    return true;
}

static int buffer_guarded(struct part *part, const struct buffer *buffer)
{
    if (!is_guard(buffer->block, GUARD_BYTES + buffer->offset))
        return wrong(part, "bytes before a buffer have changed");
    if (!is_guard(buffer->at + buffer->bytes, GUARD_BYTES))
        return wrong(part, "bytes after a buffer have changed");
    return 0;
}

/* Remembers the contents of a buffer that the operation must not change. */
static void buffer_seal(struct buffer *buffer)
{
    buffer->sum = sum_bytes(buffer->at, buffer->bytes);
}

static int buffer_sealed(struct part *part, const struct buffer *buffer)
{
    if (sum_bytes(buffer->at, buffer->bytes) != buffer->sum)
        return wrong(part, "numbers have changed that are only to be read");
    return buffer_guarded(part, buffer);
}

static void note(struct part *part, const void *at, size_t count)
{
    uint64_t *sum = &part->run->sums[part->group];

    *sum = numbers_mix(*sum, sum_bytes(at, count * part->bytes)) | 1;
}

/* ---- checking results --- */

/* true: this member checks the numbers of a result. Of a long result that is equal on all members,
 * only one member does. */
static bool looks(const struct part *part, size_t count)
{
    return part->run->judges || count <= ALL_JUDGE || !plan_is_equal_on_all(part->plan);
}

/* true: the number equals that of a period before, which was checked. */
static bool comes_again(const struct part *part, const uint8_t *at, size_t i)
{
    return i >= NUMBERS_PERIOD &&
           !memcmp(at + i * part->bytes, at + (i - NUMBERS_PERIOD) * part->bytes, part->bytes);
}

/* Checks that the numbers are the reduction of those that these ranks have put in. first: index of
 * the first number in the operation. Returns 0, or 1 after it has noted the first wrong number. */
static int check_reduced(struct part *part, const uint32_t *ranks, uint32_t count, uint64_t first,
                         const uint8_t *at, size_t numbers)
{
    const struct numbers *how = &part->plan->numbers;

    for (size_t i = 0; i < numbers && looks(part, numbers); i++) {
        char got[48], right[48];

        if (comes_again(part, at, i) ||
            numbers_reduced(how, ranks, count, part->size, first + i, at + i * part->bytes))
            continue;
        numbers_show(how->type, at + i * part->bytes, got);
        numbers_show_reduced(how, ranks, count, part->size, first + i, right);
        return wrong(part, "number %zu of %zu is %s, not %s", i, numbers, got, right);
    }
    return 0;
}

/* Checks that the numbers are those that this rank has put in. */
static int check_same(struct part *part, uint32_t rank, uint64_t first, const uint8_t *at,
                      size_t numbers)
{
    for (size_t i = 0; i < numbers && looks(part, numbers); i++) {
        char got[48];

        if (comes_again(part, at, i) ||
            numbers_same(&part->plan->numbers, rank, first + i, at + i * part->bytes))
            continue;
        numbers_show(part->plan->numbers.type, at + i * part->bytes, got);
        return wrong(part, "number %zu of %zu from rank %u is %s", i, numbers, rank, got);
    }
    return 0;
}

/* ---- each kind of operation --- */

static int run_allreduce(struct part *part)
{
    size_t count = part->plan->count, bytes = count * part->bytes;
    struct buffer in, out;
    int rc;

    buffer_make(part, &in, bytes, part->own.in_offset);
    buffer_make(part, &out, bytes, part->own.out_offset);
    numbers_fill(&part->plan->numbers, part->run->rank, 0, count,
                 part->own.in_place ? out.at : in.at);
    buffer_seal(&in);
    part->call.in = part->own.in_place ? out.at : in.at;
    part->call.out = out.at;
    rc = run(part);
    if (!rc)
        rc = check_reduced(part, part->ranks, part->size, 0, out.at, count);
    if (!rc)
        rc = buffer_sealed(part, &in) || buffer_guarded(part, &out);
    note(part, out.at, count);
    buffer_free(&in);
    buffer_free(&out);
    return rc;
}

/* A call with pieces: their numbers are counted through all pieces. */
static int run_pieces(struct part *part)
{
    struct coll_piece pieces[PLAN_PIECES];
    struct buffer in[PLAN_PIECES], out[PLAN_PIECES];
    const struct plan *plan = part->plan;
    size_t first = 0;
    int rc;

    for (size_t i = 0; i < plan->piece_count; i++) {
        bool in_place = (part->own.in_place + i) % 2;

        buffer_make(part, &in[i], plan->pieces[i] * part->bytes, part->own.in_offset);
        buffer_make(part, &out[i], plan->pieces[i] * part->bytes, part->own.out_offset + i);
        pieces[i] =
            (struct coll_piece){ in_place ? out[i].at : in[i].at, out[i].at, plan->pieces[i] };
        numbers_fill(&plan->numbers, part->run->rank, first, plan->pieces[i],
                     in_place ? out[i].at : in[i].at);
        buffer_seal(&in[i]);
        first += plan->pieces[i];
    }
    part->call.count = 0;
    part->call.pieces = pieces;
    part->call.piece_count = plan->piece_count;
    rc = run(part);
    part->call.pieces = NULL;
    first = 0;
    for (size_t i = 0; i < plan->piece_count; first += plan->pieces[i++]) {
        if (!rc)
            rc = check_reduced(part, part->ranks, part->size, first, out[i].at, plan->pieces[i]);
        if (!rc)
            rc = buffer_sealed(part, &in[i]) || buffer_guarded(part, &out[i]);
        note(part, out[i].at, plan->pieces[i]);
        buffer_free(&in[i]);
        buffer_free(&out[i]);
    }
    return rc;
}

static int run_broadcast(struct part *part)
{
    uint32_t root = part->plan->root % part->size;
    struct buffer out;
    int rc;

    buffer_make(part, &out, part->plan->count * part->bytes, part->own.out_offset);
    if (part->place == root)
        numbers_fill(&part->plan->numbers, part->ranks[root], 0, part->plan->count, out.at);
    part->call.root = root;
    part->call.out = out.at;
    rc = run(part);
    if (!rc)
        rc = check_same(part, part->ranks[root], 0, out.at, part->plan->count);
    if (!rc)
        rc = buffer_guarded(part, &out);
    note(part, out.at, part->plan->count);
    buffer_free(&out);
    return rc;
}

static size_t count_at(const struct part *part, uint32_t place)
{
    return part->plan->form == PLAN_COUNTS ? part->plan->counts[place] : part->plan->count;
}

/* Numbers of all members before this place. */
static size_t counts_before(const struct part *part, uint32_t place)
{
    size_t before = 0;

    for (uint32_t i = 0; i < place; i++)
        before += count_at(part, i);
    return before;
}

static int run_allgather(struct part *part)
{
    size_t own = count_at(part, part->place), all = counts_before(part, part->size);
    struct buffer in, out;
    uint8_t *from;
    int rc;

    buffer_make(part, &in, own * part->bytes, part->own.in_offset);
    buffer_make(part, &out, all * part->bytes, part->own.out_offset);
    from = part->own.in_place ? out.at + counts_before(part, part->place) * part->bytes : in.at;
    numbers_fill(&part->plan->numbers, part->run->rank, 0, own, from);
    buffer_seal(&in);
    part->call.in = from;
    part->call.out = out.at;
    part->call.count = own;
    part->call.counts = part->plan->form == PLAN_COUNTS ? part->plan->counts : NULL;
    rc = run(part);
    for (uint32_t i = 0; i < part->size && !rc; i++)
        rc = check_same(part, part->ranks[i], 0, out.at + counts_before(part, i) * part->bytes,
                        count_at(part, i));
    if (!rc)
        rc = buffer_sealed(part, &in) || buffer_guarded(part, &out);
    note(part, out.at, all);
    buffer_free(&in);
    buffer_free(&out);
    return rc;
}

static int run_reducescatter(struct part *part)
{
    size_t own = count_at(part, part->place), all = counts_before(part, part->size);
    struct buffer in, out;
    int rc;

    buffer_make(part, &in, all * part->bytes, part->own.in_offset);
    buffer_make(part, &out, own * part->bytes, part->own.out_offset);
    numbers_fill(&part->plan->numbers, part->run->rank, 0, all, in.at);
    buffer_seal(&in);
    part->call.in = in.at;
    part->call.out = out.at;
    part->call.count = own;
    part->call.counts = part->plan->form == PLAN_COUNTS ? part->plan->counts : NULL;
    rc = run(part);
    if (!rc)
        rc = check_reduced(part, part->ranks, part->size, counts_before(part, part->place), out.at,
                           own);
    if (!rc)
        rc = buffer_sealed(part, &in) || buffer_guarded(part, &out);
    note(part, out.at, own);
    buffer_free(&in);
    buffer_free(&out);
    return rc;
}

/* A broadcast of several buffers: their numbers are counted through all of them. */
static int run_broadcast_pieces(struct part *part)
{
    uint32_t root = part->plan->root % part->size;
    struct coll_piece pieces[PLAN_PIECES];
    struct buffer out[PLAN_PIECES];
    const struct plan *plan = part->plan;
    size_t first = 0;
    int rc;

    for (size_t i = 0; i < plan->piece_count; first += plan->pieces[i++]) {
        buffer_make(part, &out[i], plan->pieces[i] * part->bytes, part->own.out_offset + i);
        pieces[i] = (struct coll_piece){ NULL, out[i].at, plan->pieces[i] };
        if (part->place == root)
            numbers_fill(&plan->numbers, part->ranks[root], first, plan->pieces[i], out[i].at);
    }
    part->call.root = root;
    part->call.count = 0;
    part->call.pieces = pieces;
    part->call.piece_count = plan->piece_count;
    rc = run(part);
    part->call.pieces = NULL;
    first = 0;
    for (size_t i = 0; i < plan->piece_count; first += plan->pieces[i++]) {
        if (!rc)
            rc = check_same(part, part->ranks[root], first, out[i].at, plan->pieces[i]);
        if (!rc)
            rc = buffer_guarded(part, &out[i]);
        note(part, out[i].at, plan->pieces[i]);
        buffer_free(&out[i]);
    }
    return rc;
}

/* Only the root gives memory for the result; it may be that of its numbers. */
static int run_reduce(struct part *part)
{
    uint32_t root = part->plan->root % part->size;
    bool is_root = part->place == root;
    size_t count = part->plan->count;
    struct buffer in, out;
    int rc;

    buffer_make(part, &in, count * part->bytes, part->own.in_offset);
    buffer_make(part, &out, is_root ? count * part->bytes : 0, part->own.out_offset);
    part->call.in = is_root && part->own.in_place ? out.at : in.at;
    part->call.out = is_root ? out.at : NULL;
    part->call.root = root;
    numbers_fill(&part->plan->numbers, part->run->rank, 0, count,
                 is_root && part->own.in_place ? out.at : in.at);
    buffer_seal(&in);
    rc = run(part);
    if (!rc && is_root)
        rc = check_reduced(part, part->ranks, part->size, 0, out.at, count);
    if (!rc)
        rc = buffer_sealed(part, &in) || buffer_guarded(part, &out);
    note(part, out.at, is_root ? count : 0);
    buffer_free(&in);
    buffer_free(&out);
    return rc;
}

static int run_gather(struct part *part)
{
    uint32_t root = part->plan->root % part->size;
    bool is_root = part->place == root;
    size_t own = count_at(part, part->place);
    size_t all = is_root ? counts_before(part, part->size) : 0;
    struct buffer in, out;
    int rc;

    buffer_make(part, &in, own * part->bytes, part->own.in_offset);
    buffer_make(part, &out, all * part->bytes, part->own.out_offset);
    numbers_fill(&part->plan->numbers, part->run->rank, 0, own, in.at);
    buffer_seal(&in);
    part->call.in = in.at;
    part->call.out = is_root ? out.at : NULL;
    part->call.root = root;
    part->call.count = own;
    part->call.counts = part->plan->form == PLAN_COUNTS ? part->plan->counts : NULL;
    rc = run(part);
    for (uint32_t i = 0; i < part->size && !rc && is_root; i++)
        rc = check_same(part, part->ranks[i], 0, out.at + counts_before(part, i) * part->bytes,
                        count_at(part, i));
    if (!rc)
        rc = buffer_sealed(part, &in) || buffer_guarded(part, &out);
    note(part, out.at, all);
    buffer_free(&in);
    buffer_free(&out);
    return rc;
}

static int run_scatter(struct part *part)
{
    uint32_t root = part->plan->root % part->size;
    bool is_root = part->place == root;
    size_t own = count_at(part, part->place);
    size_t all = is_root ? counts_before(part, part->size) : 0;
    struct buffer in, out;
    int rc;

    buffer_make(part, &in, all * part->bytes, part->own.in_offset);
    buffer_make(part, &out, own * part->bytes, part->own.out_offset);
    numbers_fill(&part->plan->numbers, part->ranks[root], 0, all, in.at);
    buffer_seal(&in);
    part->call.in = is_root ? in.at : NULL;
    part->call.out = out.at;
    part->call.root = root;
    part->call.count = own;
    part->call.counts = part->plan->form == PLAN_COUNTS ? part->plan->counts : NULL;
    rc = run(part);
    if (!rc)
        rc = check_same(part, part->ranks[root], counts_before(part, part->place), out.at, own);
    if (!rc)
        rc = buffer_sealed(part, &in) || buffer_guarded(part, &out);
    note(part, out.at, own);
    buffer_free(&in);
    buffer_free(&out);
    return rc;
}

/* The first number for this place, so that each place gets different numbers. */
static uint64_t first_for(uint32_t place)
{
    return (uint64_t)place << 32;
}

static int run_alltoall(struct part *part)
{
    size_t to[PROCESSES_MAX], from[PROCESSES_MAX], out_count = 0, in_count = 0, at = 0;
    struct buffer in, out;
    int rc;

    for (uint32_t i = 0; i < part->size; i++) {
        in_count += to[i] = plan_between(part->plan, part->place, i);
        out_count += from[i] = plan_between(part->plan, i, part->place);
    }
    buffer_make(part, &in, in_count * part->bytes, part->own.in_offset);
    buffer_make(part, &out, out_count * part->bytes, part->own.out_offset);
    for (uint32_t i = 0; i < part->size; at += to[i++])
        numbers_fill(&part->plan->numbers, part->run->rank, first_for(i), to[i],
                     in.at + at * part->bytes);
    buffer_seal(&in);
    part->call.in = in.at;
    part->call.out = out.at;
    part->call.count = part->plan->form == PLAN_COUNTS ? 0 : part->plan->count;
    part->call.counts = part->plan->form == PLAN_COUNTS ? to : NULL;
    part->call.out_counts = part->plan->form == PLAN_COUNTS ? from : NULL;
    rc = run(part);
    at = 0;
    for (uint32_t i = 0; i < part->size && !rc; at += from[i++])
        rc = check_same(part, part->ranks[i], first_for(part->place), out.at + at * part->bytes,
                        from[i]);
    if (!rc)
        rc = buffer_sealed(part, &in) || buffer_guarded(part, &out);
    note(part, out.at, out_count);
    buffer_free(&in);
    buffer_free(&out);
    return rc;
}

/* ---- operations whose sizes are not known beforehand --- */

struct receiver {
    struct part *part;
    struct buffer out;
    unsigned calls;
};

/* The library asks for memory when it knows the size. */
static void *receiver_memory(void *arg, size_t bytes)
{
    struct receiver *receiver = arg;
    const struct part *part = receiver->part;

    receiver->calls++;
    buffer_make(part, &receiver->out, bytes, part->own.out_offset);
    if (part->run->device)
        return device_buffers_address(part->run->device, receiver->out.at);
    return receiver->out.at;
}

/* The counts that came, and the numbers: at `at`, in the order of the members. */
static int check_received(struct part *part, const size_t *counts, const size_t *right,
                          const uint8_t *at)
{
    bool each = part->plan->kind == COLL_ALLTOALL_RAGGED;
    int rc = 0;

    for (uint32_t i = 0; i < part->size && !rc; i++) {
        if (counts[i] != right[i])
            return wrong(part, "%zu numbers from rank %u, not %zu", counts[i], part->ranks[i],
                         right[i]);
        rc = check_same(part, part->ranks[i], each ? first_for(part->place) : 0, at, right[i]);
        at += right[i] * part->bytes;
    }
    return rc;
}

/* Both ragged kinds; the result is in our memory (`in_place`: in the library's). */
static int run_ragged(struct part *part)
{
    bool each = part->plan->kind == COLL_ALLTOALL_RAGGED;
    bool lends = !part->own.in_place || part->run->device;
    size_t to[PROCESSES_MAX], right[PROCESSES_MAX], counts[PROCESSES_MAX] = { 0 };
    size_t out_count = 0, in_count = 0, at = 0;
    struct receiver receiver = { .part = part };
    struct coll_received received = { .memory = lends ? receiver_memory : NULL,
                                      .arg = &receiver,
                                      .counts = counts };
    const uint8_t *got;
    struct buffer in;
    int rc;

    for (uint32_t i = 0; i < part->size; i++) {
        to[i] = each ? plan_between(part->plan, part->place, i) : 0;
        right[i] = each ? plan_between(part->plan, i, part->place) : count_at(part, i);
        in_count += to[i];
        out_count += right[i];
    }
    in_count = each ? in_count : count_at(part, part->place);
    buffer_make(part, &in, in_count * part->bytes, part->own.in_offset);
    for (uint32_t i = 0; each && i < part->size; at += to[i++])
        numbers_fill(&part->plan->numbers, part->run->rank, first_for(i), to[i],
                     in.at + at * part->bytes);
    if (!each)
        numbers_fill(&part->plan->numbers, part->run->rank, 0, in_count, in.at);
    buffer_seal(&in);
    part->call.in = in.at;
    part->call.count = each ? 0 : in_count;
    part->call.counts = each ? to : NULL;
    part->call.received = &received;
    rc = run(part);
    if (!rc && receiver.calls != (lends && out_count))
        rc = wrong(part, "memory was asked for %u times", receiver.calls);
    if (!rc && !received.data != !out_count)
        rc = wrong(part, "%zu numbers came, and %s", out_count,
                   received.data ? "there is memory for them" : "no memory");
    got = receiver.calls ? receiver.out.at : received.data;
    if (!rc && out_count)
        rc = check_received(part, counts, right, got) || buffer_sealed(part, &in) ||
             (receiver.calls && buffer_guarded(part, &receiver.out));
    if (!rc)
        note(part, got, out_count);
    if (receiver.calls)
        buffer_free(&receiver.out);
    else if (!rc)
        pool_free(received.data);
    buffer_free(&in);
    return rc;
}

/* ---- barrier --- */

static int run_barrier(struct part *part)
{
    atomic_uint *arrived =
        &part->run->shared->arrived[part->plan->number % BATCH_CASES][part->group];
    int rc;

    atomic_fetch_add(arrived, 1);
    rc = run(part);
    if (!rc && atomic_load(arrived) < part->size)
        rc = wrong(part, "it has left the barrier when %u of %u had come", atomic_load(arrived),
                   part->size);
    return rc;
}

/* ---- join --- */

/* Runs operation number `step` of the members that have not joined yet. */
static int before_join(struct part *part, unsigned step)
{
    uint32_t still[PROCESSES_MAX], count = 0;
    struct plan plan = *part->plan;
    struct part one = *part;
    struct buffer out;
    int rc;

    for (uint32_t i = 0; i < part->size; i++) {
        if (part->plan->before[part->ranks[i]] > step)
            still[count++] = part->ranks[i];
    }
    plan.numbers.key = numbers_mix(plan.numbers.key, step);
    one.plan = &plan;
    one.call.kind = step == 1 ? COLL_BARRIER : COLL_ALLREDUCE;
    if (step == 1)
        return run(&one);
    buffer_make(part, &out, plan.count * part->bytes, part->own.out_offset);
    numbers_fill(&plan.numbers, part->run->rank, 0, plan.count, out.at);
    one.call.in = one.call.out = out.at;
    rc = run(&one);
    if (!rc)
        rc = check_reduced(&one, still, count, 0, out.at, plan.count);
    if (!rc)
        rc = buffer_guarded(&one, &out);
    buffer_free(&out);
    return rc;
}

/* Makes this member's calls before its join, joins, and checks which rank joined last. */
static int run_join(struct part *part)
{
    unsigned own = part->plan->before[part->run->rank], most = 0;
    uint32_t last = UINT32_MAX;
    int rc = 0;

    for (uint32_t i = 0; i < part->size; i++) {
        unsigned before = part->plan->before[part->ranks[i]];

        most = before > most ? before : most;
    }
    for (unsigned step = 0; step < own && !rc; step++)
        rc = before_join(part, step);
    if (rc)
        return rc;
    part->call = (struct coll_call){ .kind = COLL_JOIN,
                                     .group = part->run->groups[part->group],
                                     .ret_last = &last };
    rc = run(part);
    if (rc)
        return rc;
    if (last >= part->run->batch->layout.size || part->plan->before[last] != most)
        return wrong(part, "rank %u was not the last to join", last);
    part->run->sums[part->group] = last + 1;
    return 0;
}

/* ---- any kind --- */

static int run_kind(struct part *part)
{
    switch (part->plan->kind) {
    case COLL_ALLREDUCE:
        return part->plan->form == PLAN_OF_PIECES ? run_pieces(part) : run_allreduce(part);
    case COLL_BROADCAST:
        return part->plan->form == PLAN_OF_PIECES ? run_broadcast_pieces(part)
                                                  : run_broadcast(part);
    case COLL_REDUCE: return run_reduce(part);
    case COLL_GATHER: return run_gather(part);
    case COLL_SCATTER: return run_scatter(part);
    case COLL_ALLGATHER: return run_allgather(part);
    case COLL_REDUCESCATTER: return run_reducescatter(part);
    case COLL_ALLTOALL: return run_alltoall(part);
    case COLL_BARRIER: return run_barrier(part);
    case COLL_JOIN: return run_join(part);
    case COLL_ALLGATHER_RAGGED:
    case COLL_ALLTOALL_RAGGED: return run_ragged(part);
    case COLL_SEND: return transfers_run(part->run, part->ranks, part->size, part->place);
    case COLL_RECEIVE: /* the other end of a send */
    case COLL_OPEN:
    case COLL_CLOSE:
    case COLL_END: break; /* no plan has these four */
    }
    return 1;
}

/* Runs this member's part of the plan in one group; a rank outside the group does nothing. */
static int run_in(struct plan_run *run, size_t group)
{
    const struct coll_ranks *ranks = &run->batch->groups[group];
    const struct plan *plan = run->plan;
    struct part part = {
        .run = run,
        .plan = plan,
        .ranks = ranks->items,
        .size = ranks->count,
        .group = group,
        .bytes = numbers_bytes(plan->numbers.type),
    };

    while (part.place < ranks->count && ranks->items[part.place] != run->rank)
        part.place++;
    if (part.place == ranks->count)
        return 0;
    plan_own(plan, run->batch, run->rank, &part.own);
    for (volatile unsigned spin = 0; spin < part.own.spins; spin++) {
    }
    part.call = (struct coll_call){
        .kind = plan->kind,
        .group = run->groups[group],
        .type = plan->numbers.type,
        .op = plan->numbers.op,
        .prescale = plan->numbers.prescale,
        .postscale = plan->numbers.postscale,
        .tag = plan->tag,
        .count = plan->count,
    };
    return run_kind(&part);
}

int plan_run(struct plan_run *run)
{
    int rc = 0;

    memset(run->sums, 0, sizeof(run->sums));
    if (run->plan->group <= BATCH_GROUPS)
        return run_in(run, run->plan->group);
    for (size_t i = 0; i <= BATCH_GROUPS && !rc; i++)
        rc = run_in(run, i);
    return rc;
}

bool plan_is_equal_on_all(const struct plan *plan)
{
    return !coll_kind_is_rooted(plan->kind) && plan->kind != COLL_REDUCESCATTER &&
           plan->kind != COLL_ALLTOALL && plan->kind != COLL_ALLTOALL_RAGGED &&
           plan->kind != COLL_SEND;
}
