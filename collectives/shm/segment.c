#include "collectives/shm/segment.h"

#include "base/limits.h"
#include "base/mem.h"
#include "base/panic.h"
#include "collectives/shm/cores.h"
#include "collectives/shm/inside.h"
#include "os/clock.h"

#include <sched.h>
#include <string.h>

#define PAGE_BYTES 4096
#define TOLD_US    2000 /* a text that is being written is there by then, or never */

static size_t block_count(uint32_t seats)
{
    return 2 + 2 * (size_t)seats;
}

static size_t in_pages(size_t bytes)
{
    return (bytes + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES;
}

/* FNV-1a, a word at a time: what two sides have been told differently shows. */
static uint64_t sum_of_boards(const struct segment_spec *spec)
{
    uint64_t sum = UINT64_C(14695981039346656037);

    for (size_t i = 0; i < spec->board_count; i++) {
        sum = (sum ^ spec->boards[i].count) * UINT64_C(1099511628211);
        for (uint32_t k = 0; k < spec->boards[i].count; k++)
            sum = (sum ^ (spec->boards[i].places[k] + UINT64_C(1))) * UINT64_C(1099511628211);
    }
    return sum;
}

static int check_spec(const struct segment_spec *spec, struct hvd_err *err)
{
    ASSERT(spec->place < spec->count);
    for (size_t i = 0; i < spec->board_count; i++) {
        const struct segment_board *board = &spec->boards[i];

        ASSERT(board->count >= 1 && board->count <= spec->count);
        for (uint32_t k = 0; k < board->count; k++)
            ASSERT(board->places[k] < spec->count &&
                   (k == 0 || board->places[k - 1] < board->places[k]));
    }
    if (spec->count > LIMIT_SLOTS_PER_HOST)
        return err_set(err, HVD_E_LIMIT, "%u members on a host are more than LIMIT_SLOTS_PER_HOST",
                       spec->count);
    return 0;
}

/* Where the seats, and the blocks behind them, begin and end. */
struct layout {
    size_t seat_count, blocks_at, bytes;
};

static void lay_out(const struct segment_spec *spec, struct layout *ret_layout)
{
    struct layout layout = { 0 };

    for (size_t i = 0; i < spec->board_count; i++)
        layout.seat_count += spec->boards[i].count;
    layout.blocks_at =
        in_pages(sizeof(struct segment_head) + layout.seat_count * sizeof(struct seat));
    layout.bytes = layout.blocks_at;
    for (size_t i = 0; i < spec->board_count; i++)
        layout.bytes += in_pages(block_count(spec->boards[i].count) * BOARD_BLOCK_BYTES);
    *ret_layout = layout;
}

static void board_init(struct board *board, struct segment *segment,
                       const struct segment_board *spec, uint32_t place)
{
    board->segment = segment;
    board->count = spec->count;
    for (uint32_t i = 0; i < spec->count; i++) {
        if (spec->places[i] == place) {
            board->seat = i;
            board->present = true;
        }
    }
}

/* Without its memory. NULL: out of memory. */
static struct segment *prepared(const struct segment_spec *spec)
{
    struct segment *segment;

    segment = mem_zalloc(sizeof(*segment) + spec->board_count * sizeof(struct board));
    if (!segment)
        return NULL;
    segment->memory.fd = -1;
    segment->board_count = spec->board_count;
    for (size_t i = 0; i < spec->board_count; i++)
        board_init(&segment->boards[i], segment, &spec->boards[i], spec->place);
    return segment;
}

static void bind(struct segment *segment, const struct layout *layout)
{
    uint8_t *at = segment->memory.at;
    uint8_t *blocks = at + layout->blocks_at;
    uint32_t cores = cores_usable();

    segment->head = (void *)at;
    segment->seats = (void *)(at + sizeof(struct segment_head));
    segment->seat_count = layout->seat_count;
    for (size_t i = 0, seat = 0; i < segment->board_count; i++) {
        struct board *board = &segment->boards[i];

        board->seats = &segment->seats[seat];
        board->blocks = blocks;
        board->give_us = BOARD_GIVE_US;
        board->doze_us = BOARD_DOZE_US;
        board->crowded = board->count > cores;
        seat += board->count;
        blocks += in_pages(block_count(board->count) * BOARD_BLOCK_BYTES);
    }
}

int segment_create(const struct segment_spec *spec, struct segment **ret_segment,
                   struct hvd_err *err)
{
    struct segment *segment;
    struct layout layout;
    int rc = check_spec(spec, err);

    if (rc)
        return rc;
    segment = prepared(spec);
    if (!segment)
        return err_set(err, HVD_E_NOMEM, "shared memory: out of memory");
    lay_out(spec, &layout);
    rc = memory_create("hvd-round", layout.bytes, &segment->memory, &segment->place, err);
    if (rc) {
        segment_free(segment);
        return rc;
    }
    bind(segment, &layout);
    segment->head->magic = SEGMENT_MAGIC;
    segment->head->version = SEGMENT_VERSION;
    segment->head->round = spec->round;
    segment->head->roster = spec->roster;
    segment->head->boards = sum_of_boards(spec);
    segment->head->count = spec->count;
    *ret_segment = segment;
    return 0;
}

/* A segment as it should be, for the process that we have been told of. */
static int check_head(const struct segment *segment, const struct segment_spec *spec,
                      const struct layout *layout, struct hvd_err *err)
{
    const struct segment_head *head = (const void *)segment->memory.at;
    int pid = segment->place.pid;

    if (segment->memory.bytes < sizeof(*head) || head->magic != SEGMENT_MAGIC)
        return err_set(err, HVD_E_PROTO, "process %d: its shared memory is none of a round", pid);
    if (head->version != SEGMENT_VERSION)
        return err_set(err, HVD_E_VERSION,
                       "process %d: its shared memory has version %llu, ours %d; let all workers "
                       "run the same program",
                       pid, (unsigned long long)head->version, SEGMENT_VERSION);
    if (head->round != spec->round)
        return err_set(err, HVD_E_MISMATCH,
                       "process %d: its shared memory is of round %llu, not %llu", pid,
                       (unsigned long long)head->round, (unsigned long long)spec->round);
    if (head->roster != spec->roster || head->count != spec->count ||
        head->boards != sum_of_boards(spec) || segment->memory.bytes != layout->bytes)
        return err_set(
            err, HVD_E_MISMATCH,
            "process %d: its shared memory is for other members or process sets; let all "
            "workers make the same ones",
            pid);
    return 0;
}

int segment_open(const struct segment_spec *spec, const uint8_t locator[SEGMENT_LOCATOR_BYTES],
                 struct segment **ret_segment, struct hvd_err *err)
{
    struct segment *segment;
    struct layout layout;
    int rc = check_spec(spec, err);

    if (rc)
        return rc;
    segment = prepared(spec);
    if (!segment)
        return err_set(err, HVD_E_NOMEM, "shared memory: out of memory");
    lay_out(spec, &layout);
    memcpy(&segment->place, locator, sizeof(segment->place));
    rc = memory_open(&segment->place, true, &segment->memory, err);
    if (!rc)
        rc = check_head(segment, spec, &layout, err);
    if (rc) {
        segment_free(segment);
        return rc;
    }
    bind(segment, &layout);
    *ret_segment = segment;
    return 0;
}

void segment_locate(const struct segment *segment, uint8_t ret_locator[SEGMENT_LOCATOR_BYTES])
{
    _Static_assert(sizeof(segment->place) <= SEGMENT_LOCATOR_BYTES, "a locator holds a place");
    memset(ret_locator, 0, SEGMENT_LOCATOR_BYTES);
    memcpy(ret_locator, &segment->place, sizeof(segment->place));
}

void segment_free(struct segment *segment)
{
    if (!segment)
        return;
    memory_release(&segment->memory);
    mem_free(segment);
}

struct board *segment_board(struct segment *segment, size_t index)
{
    ASSERT(index < segment->board_count);
    return segment->boards[index].present ? &segment->boards[index] : NULL;
}

/*
 * Everybody who comes rings all bells, not only the first: that one may have been killed before it
 * did.
 */
void segment_fail(struct segment *segment, int code, uint32_t rank, const char *why)
{
    struct segment_failure *failure = &segment->head->failure;
    uint64_t free = 0, claim = (uint64_t)(uint32_t)code << 32 | rank;

    ASSERT(code < 0);
    if (atomic_compare_exchange_strong(&failure->claim, &free, claim)) {
        size_t length = why ? strnlen(why, ERR_TEXT_MAX - 1) : 0;

        if (length)
            memcpy(failure->why, why, length);
        failure->why[length] = '\0';
        atomic_store(&failure->told, 1);
    }
    for (size_t i = 0; i < segment->seat_count; i++)
        seat_ring(&segment->seats[i]);
}

void segment_leave(struct segment *segment)
{
    atomic_store(&segment->left, true);
    for (size_t i = 0; i < segment->seat_count; i++)
        seat_ring(&segment->seats[i]);
}

static bool is_told(const struct segment_failure *failure)
{
    int64_t until_us;

    if (atomic_load(&failure->told))
        return true;
    until_us = clock_now_us() + TOLD_US;
    while (!atomic_load(&failure->told)) {
        if (clock_now_us() > until_us)
            return false;
        (void)sched_yield();
    }
    return true;
}

int segment_failure(const struct segment *segment, uint32_t *ret_rank, struct hvd_err *ret_why)
{
    const struct segment_failure *failure = &segment->head->failure;
    uint64_t claim = atomic_load(&failure->claim);
    char why[ERR_TEXT_MAX];
    int code = (int)(uint32_t)(claim >> 32);

    if (!claim)
        return 0;
    if (ret_rank)
        *ret_rank = (uint32_t)claim;
    if (!is_told(failure))
        return err_set(ret_why, code,
                       "a process of this host has failed the round, and was gone "
                       "before it could say why");
    memcpy(why, failure->why, sizeof(why));
    why[sizeof(why) - 1] = '\0';
    return err_set(ret_why, code, "%s", why[0] ? why : err_text(code));
}
