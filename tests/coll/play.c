#include "tests/coll/play.h"

#include "base/mem.h"
#include "base/panic.h"
#include "collectives/shm/pool.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define GUARD_BYTES 64
#define GUARD       0xa7
#define ALL_JUDGE   20000 /* up to so many numbers are looked at by every member */

/* In one group. */
struct turn {
    struct player *player;
    const struct plan *plan;
    const uint32_t *ranks;
    uint32_t size, place;
    size_t group, bytes; /* of one number */
    struct plan_own own;
    struct coll_call call;
};

PRINTF_LIKE(2, 3)
static int wrong(struct turn *turn, const char *format, ...)
{
    char *text = turn->player->wrong;
    va_list args;
    int at;

    if (text[0])
        return 1;
    plan_show(turn->plan, turn->player->batch, text);
    at = (int)strlen(text);
    at += snprintf(text + at, PLAY_WRONG_MAX - (size_t)at,
                   "\n  rank %u in group %zu: ", turn->player->rank, turn->group);
    va_start(args, format);
    (void)vsnprintf(text + at, PLAY_WRONG_MAX - (size_t)at, format, args);
    va_end(args);
    return 1;
}

static int run(struct turn *turn)
{
    struct hvd_err err = { .text = "" };
    struct coll_call call = turn->call;
    int rc;

    if (turn->player->shelf)
        shelf_call(turn->player->shelf, &call);
    rc = coll_run(turn->player->coll, &call, &err);
    if (rc)
        (void)wrong(turn, "%s: %s", err_name(rc), err.text);
    return rc;
}

/* ---- buffers between guards ---- */

struct buffer {
    uint8_t *block, *at;
    size_t bytes, offset;
    bool pooled;
    struct shelf *shelf; /* NULL: it is memory of the host */
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

static void buffer_make(const struct turn *turn, struct buffer *buffer, size_t bytes, size_t offset)
{
    size_t all = bytes + offset + 2 * GUARD_BYTES;

    *buffer = (struct buffer){
        .bytes = bytes, .offset = offset, .pooled = turn->own.pooled, .shelf = turn->player->shelf
    };
    if (buffer->shelf)
        buffer->block = shelf_alloc(buffer->shelf, all);
    else
        buffer->block = buffer->pooled ? pool_alloc(all, NULL) : mem_alloc(all);
    ASSERT(buffer->block);
    memset(buffer->block, GUARD, all);
    buffer->at = buffer->block + GUARD_BYTES + offset;
}

static void buffer_free(struct buffer *buffer)
{
    if (buffer->shelf)
        shelf_free(buffer->shelf, buffer->block);
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

static int buffer_guarded(struct turn *turn, const struct buffer *buffer)
{
    if (!is_guard(buffer->block, GUARD_BYTES + buffer->offset))
        return wrong(turn, "bytes before a buffer have changed");
    if (!is_guard(buffer->at + buffer->bytes, GUARD_BYTES))
        return wrong(turn, "bytes after a buffer have changed");
    return 0;
}

/* It holds what is only read. */
static void buffer_seal(struct buffer *buffer)
{
    buffer->sum = sum_bytes(buffer->at, buffer->bytes);
}

static int buffer_sealed(struct turn *turn, const struct buffer *buffer)
{
    if (sum_bytes(buffer->at, buffer->bytes) != buffer->sum)
        return wrong(turn, "numbers have changed that are only to be read");
    return buffer_guarded(turn, buffer);
}

static void note(struct turn *turn, const void *at, size_t count)
{
    uint64_t *sum = &turn->player->sums[turn->group];

    *sum = numbers_mix(*sum, sum_bytes(at, count * turn->bytes)) | 1;
}

/* ---- looking at what has come out ---- */

static bool looks(const struct turn *turn, size_t count)
{
    return turn->player->judges || count <= ALL_JUDGE || !play_is_equal_on_all(turn->plan);
}

/* The same as a period before, where it has been looked at. */
static bool comes_again(const struct turn *turn, const uint8_t *at, size_t i)
{
    return i >= NUMBERS_PERIOD &&
           !memcmp(at + i * turn->bytes, at + (i - NUMBERS_PERIOD) * turn->bytes, turn->bytes);
}

static int check_reduced(struct turn *turn, const uint32_t *ranks, uint32_t count, uint64_t first,
                         const uint8_t *at, size_t numbers)
{
    const struct numbers *how = &turn->plan->numbers;

    for (size_t i = 0; i < numbers && looks(turn, numbers); i++) {
        char got[48], right[48];

        if (comes_again(turn, at, i) ||
            numbers_reduced(how, ranks, count, turn->size, first + i, at + i * turn->bytes))
            continue;
        numbers_show(how->type, at + i * turn->bytes, got);
        numbers_show_reduced(how, ranks, count, turn->size, first + i, right);
        return wrong(turn, "number %zu of %zu is %s, not %s", i, numbers, got, right);
    }
    return 0;
}

/* As that rank has put them there. */
static int check_same(struct turn *turn, uint32_t rank, uint64_t first, const uint8_t *at,
                      size_t numbers)
{
    for (size_t i = 0; i < numbers && looks(turn, numbers); i++) {
        char got[48];

        if (comes_again(turn, at, i) ||
            numbers_same(&turn->plan->numbers, rank, first + i, at + i * turn->bytes))
            continue;
        numbers_show(turn->plan->numbers.type, at + i * turn->bytes, got);
        return wrong(turn, "number %zu of %zu from rank %u is %s", i, numbers, rank, got);
    }
    return 0;
}

/* ---- each operation ---- */

static int play_allreduce(struct turn *turn)
{
    size_t count = turn->plan->count, bytes = count * turn->bytes;
    struct buffer in, out;
    int rc;

    buffer_make(turn, &in, bytes, turn->own.in_offset);
    buffer_make(turn, &out, bytes, turn->own.out_offset);
    numbers_fill(&turn->plan->numbers, turn->player->rank, 0, count,
                 turn->own.in_place ? out.at : in.at);
    buffer_seal(&in);
    turn->call.in = turn->own.in_place ? out.at : in.at;
    turn->call.out = out.at;
    rc = run(turn);
    if (!rc)
        rc = check_reduced(turn, turn->ranks, turn->size, 0, out.at, count);
    if (!rc)
        rc = buffer_sealed(turn, &in) || buffer_guarded(turn, &out);
    note(turn, out.at, count);
    buffer_free(&in);
    buffer_free(&out);
    return rc;
}

/* The numbers of all pieces are counted through. */
static int play_pieces(struct turn *turn)
{
    struct coll_piece pieces[PLAN_PIECES];
    struct buffer in[PLAN_PIECES], out[PLAN_PIECES];
    const struct plan *plan = turn->plan;
    size_t first = 0;
    int rc;

    for (size_t i = 0; i < plan->piece_count; i++) {
        bool in_place = (turn->own.in_place + i) % 2;

        buffer_make(turn, &in[i], plan->pieces[i] * turn->bytes, turn->own.in_offset);
        buffer_make(turn, &out[i], plan->pieces[i] * turn->bytes, turn->own.out_offset + i);
        pieces[i] =
            (struct coll_piece){ in_place ? out[i].at : in[i].at, out[i].at, plan->pieces[i] };
        numbers_fill(&plan->numbers, turn->player->rank, first, plan->pieces[i],
                     in_place ? out[i].at : in[i].at);
        buffer_seal(&in[i]);
        first += plan->pieces[i];
    }
    turn->call.count = 0;
    turn->call.pieces = pieces;
    turn->call.piece_count = plan->piece_count;
    rc = run(turn);
    turn->call.pieces = NULL;
    first = 0;
    for (size_t i = 0; i < plan->piece_count; first += plan->pieces[i++]) {
        if (!rc)
            rc = check_reduced(turn, turn->ranks, turn->size, first, out[i].at, plan->pieces[i]);
        if (!rc)
            rc = buffer_sealed(turn, &in[i]) || buffer_guarded(turn, &out[i]);
        note(turn, out[i].at, plan->pieces[i]);
        buffer_free(&in[i]);
        buffer_free(&out[i]);
    }
    return rc;
}

static int play_broadcast(struct turn *turn)
{
    uint32_t root = turn->plan->root % turn->size;
    struct buffer out;
    int rc;

    buffer_make(turn, &out, turn->plan->count * turn->bytes, turn->own.out_offset);
    if (turn->place == root)
        numbers_fill(&turn->plan->numbers, turn->ranks[root], 0, turn->plan->count, out.at);
    turn->call.root = root;
    turn->call.out = out.at;
    rc = run(turn);
    if (!rc)
        rc = check_same(turn, turn->ranks[root], 0, out.at, turn->plan->count);
    if (!rc)
        rc = buffer_guarded(turn, &out);
    note(turn, out.at, turn->plan->count);
    buffer_free(&out);
    return rc;
}

static size_t count_at(const struct turn *turn, uint32_t place)
{
    return turn->plan->form == PLAN_COUNTS ? turn->plan->counts[place] : turn->plan->count;
}

/* Of the numbers of those before this place. */
static size_t counts_before(const struct turn *turn, uint32_t place)
{
    size_t before = 0;

    for (uint32_t i = 0; i < place; i++)
        before += count_at(turn, i);
    return before;
}

static int play_allgather(struct turn *turn)
{
    size_t own = count_at(turn, turn->place), all = counts_before(turn, turn->size);
    struct buffer in, out;
    uint8_t *from;
    int rc;

    buffer_make(turn, &in, own * turn->bytes, turn->own.in_offset);
    buffer_make(turn, &out, all * turn->bytes, turn->own.out_offset);
    from = turn->own.in_place ? out.at + counts_before(turn, turn->place) * turn->bytes : in.at;
    numbers_fill(&turn->plan->numbers, turn->player->rank, 0, own, from);
    buffer_seal(&in);
    turn->call.in = from;
    turn->call.out = out.at;
    turn->call.count = own;
    turn->call.counts = turn->plan->form == PLAN_COUNTS ? turn->plan->counts : NULL;
    rc = run(turn);
    for (uint32_t i = 0; i < turn->size && !rc; i++)
        rc = check_same(turn, turn->ranks[i], 0, out.at + counts_before(turn, i) * turn->bytes,
                        count_at(turn, i));
    if (!rc)
        rc = buffer_sealed(turn, &in) || buffer_guarded(turn, &out);
    note(turn, out.at, all);
    buffer_free(&in);
    buffer_free(&out);
    return rc;
}

static int play_reducescatter(struct turn *turn)
{
    size_t own = count_at(turn, turn->place), all = counts_before(turn, turn->size);
    struct buffer in, out;
    int rc;

    buffer_make(turn, &in, all * turn->bytes, turn->own.in_offset);
    buffer_make(turn, &out, own * turn->bytes, turn->own.out_offset);
    numbers_fill(&turn->plan->numbers, turn->player->rank, 0, all, in.at);
    buffer_seal(&in);
    turn->call.in = in.at;
    turn->call.out = out.at;
    turn->call.count = own;
    turn->call.counts = turn->plan->form == PLAN_COUNTS ? turn->plan->counts : NULL;
    rc = run(turn);
    if (!rc)
        rc = check_reduced(turn, turn->ranks, turn->size, counts_before(turn, turn->place), out.at,
                           own);
    if (!rc)
        rc = buffer_sealed(turn, &in) || buffer_guarded(turn, &out);
    note(turn, out.at, own);
    buffer_free(&in);
    buffer_free(&out);
    return rc;
}

/* Numbers for one place are counted from a number of its own. */
static uint64_t first_for(uint32_t place)
{
    return (uint64_t)place << 32;
}

static int play_alltoall(struct turn *turn)
{
    size_t to[CREW_MAX], from[CREW_MAX], out_count = 0, in_count = 0, at = 0;
    struct buffer in, out;
    int rc;

    for (uint32_t i = 0; i < turn->size; i++) {
        in_count += to[i] = plan_between(turn->plan, turn->place, i);
        out_count += from[i] = plan_between(turn->plan, i, turn->place);
    }
    buffer_make(turn, &in, in_count * turn->bytes, turn->own.in_offset);
    buffer_make(turn, &out, out_count * turn->bytes, turn->own.out_offset);
    for (uint32_t i = 0; i < turn->size; at += to[i++])
        numbers_fill(&turn->plan->numbers, turn->player->rank, first_for(i), to[i],
                     in.at + at * turn->bytes);
    buffer_seal(&in);
    turn->call.in = in.at;
    turn->call.out = out.at;
    turn->call.count = turn->plan->form == PLAN_COUNTS ? 0 : turn->plan->count;
    turn->call.counts = turn->plan->form == PLAN_COUNTS ? to : NULL;
    turn->call.out_counts = turn->plan->form == PLAN_COUNTS ? from : NULL;
    rc = run(turn);
    at = 0;
    for (uint32_t i = 0; i < turn->size && !rc; at += from[i++])
        rc = check_same(turn, turn->ranks[i], first_for(turn->place), out.at + at * turn->bytes,
                        from[i]);
    if (!rc)
        rc = buffer_sealed(turn, &in) || buffer_guarded(turn, &out);
    note(turn, out.at, out_count);
    buffer_free(&in);
    buffer_free(&out);
    return rc;
}

static int play_barrier(struct turn *turn)
{
    atomic_uint *arrived =
        &turn->player->shared->arrived[turn->plan->number % BATCH_CASES][turn->group];
    int rc;

    atomic_fetch_add(arrived, 1);
    rc = run(turn);
    if (!rc && atomic_load(arrived) < turn->size)
        rc = wrong(turn, "it has left the barrier when %u of %u had come", atomic_load(arrived),
                   turn->size);
    return rc;
}

/* ---- join ---- */

/* The step-th of what is done by those who have not joined yet. */
static int before_join(struct turn *turn, unsigned step)
{
    uint32_t still[CREW_MAX], count = 0;
    struct plan plan = *turn->plan;
    struct turn one = *turn;
    struct buffer out;
    int rc;

    for (uint32_t i = 0; i < turn->size; i++) {
        if (turn->plan->before[turn->ranks[i]] > step)
            still[count++] = turn->ranks[i];
    }
    plan.numbers.key = numbers_mix(plan.numbers.key, step);
    one.plan = &plan;
    one.call.kind = step == 1 ? COLL_BARRIER : COLL_ALLREDUCE;
    if (step == 1)
        return run(&one);
    buffer_make(turn, &out, plan.count * turn->bytes, turn->own.out_offset);
    numbers_fill(&plan.numbers, turn->player->rank, 0, plan.count, out.at);
    one.call.in = one.call.out = out.at;
    rc = run(&one);
    if (!rc)
        rc = check_reduced(&one, still, count, 0, out.at, plan.count);
    if (!rc)
        rc = buffer_guarded(&one, &out);
    buffer_free(&out);
    return rc;
}

static int play_join(struct turn *turn)
{
    unsigned own = turn->plan->before[turn->player->rank], most = 0;
    uint32_t last = UINT32_MAX;
    int rc = 0;

    for (uint32_t i = 0; i < turn->size; i++) {
        unsigned before = turn->plan->before[turn->ranks[i]];

        most = before > most ? before : most;
    }
    for (unsigned step = 0; step < own && !rc; step++)
        rc = before_join(turn, step);
    if (rc)
        return rc;
    turn->call = (struct coll_call){ .kind = COLL_JOIN, .group = turn->group, .ret_last = &last };
    rc = run(turn);
    if (rc)
        return rc;
    if (last >= turn->player->batch->layout.size || turn->plan->before[last] != most)
        return wrong(turn, "rank %u was not the last to join", last);
    turn->player->sums[turn->group] = last + 1;
    return 0;
}

/* ---- any ---- */

static int play_kind(struct turn *turn)
{
    switch (turn->plan->kind) {
    case COLL_ALLREDUCE:
        return turn->plan->form == PLAN_OF_PIECES ? play_pieces(turn) : play_allreduce(turn);
    case COLL_BROADCAST: return play_broadcast(turn);
    case COLL_ALLGATHER: return play_allgather(turn);
    case COLL_REDUCESCATTER: return play_reducescatter(turn);
    case COLL_ALLTOALL: return play_alltoall(turn);
    case COLL_BARRIER: return play_barrier(turn);
    case COLL_JOIN: return play_join(turn);
    case COLL_END: break; /* nobody calls it */
    }
    return 1;
}

static int play_in(struct player *player, size_t group)
{
    const struct coll_ranks *ranks = &player->batch->groups[group];
    const struct plan *plan = player->plan;
    struct turn turn = {
        .player = player,
        .plan = plan,
        .ranks = ranks->items,
        .size = ranks->count,
        .group = group,
        .bytes = numbers_bytes(plan->numbers.type),
    };

    while (turn.place < ranks->count && ranks->items[turn.place] != player->rank)
        turn.place++;
    if (turn.place == ranks->count)
        return 0;
    plan_own(plan, player->batch, player->rank, &turn.own);
    for (volatile unsigned spin = 0; spin < turn.own.spins; spin++) {
    }
    turn.call = (struct coll_call){
        .kind = plan->kind,
        .group = group,
        .type = plan->numbers.type,
        .op = plan->numbers.op,
        .prescale = plan->numbers.prescale,
        .postscale = plan->numbers.postscale,
        .count = plan->count,
    };
    return play_kind(&turn);
}

int play(struct player *player)
{
    int rc = 0;

    memset(player->sums, 0, sizeof(player->sums));
    if (player->plan->group <= BATCH_GROUPS)
        return play_in(player, player->plan->group);
    for (size_t i = 0; i <= BATCH_GROUPS && !rc; i++)
        rc = play_in(player, i);
    return rc;
}

bool play_is_equal_on_all(const struct plan *plan)
{
    return plan->kind != COLL_REDUCESCATTER && plan->kind != COLL_ALLTOALL;
}
