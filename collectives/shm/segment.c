/*
 * segment.c: the memory that the members of a round on one host share: created by one of them,
 * opened by the others, failed by any of them at any time (connect.c, failure.c). The layout
 * follows from the spec alone, so every member computes the same layout and checks it.
 *
 * Invariant: the first failure is written as one atomic word (`claim`) and stays, and every process
 * that fails the segment wakes all members.
 */
#include "collectives/shm/segment.h"

#include "base/limits.h"
#include "base/mem.h"
#include "base/panic.h"
#include "base/text.h"
#include "collectives/shm/segment_internal.h"
#include "os/clock.h"

#include <fcntl.h>
#include <sched.h>
#include <string.h>
#include <unistd.h>

#define PAGE_BYTES 4096
/* How long segment_failure waits until the text of a failure is complete. A text that is not
 * complete after this time never will be, because the process that wrote it has died. */
#define TOLD_US 2000

/* The bytes, rounded up to whole pages. */
static size_t in_pages(size_t bytes)
{
    return (bytes + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES;
}

/* Returns how many bytes of the segment hold the data of a board with this number of members
 * (board.h). These are two results, which all members write together, and two stages of each
 * member, where the member puts its own numbers: one for even and one for odd chunks. */
static size_t board_bytes(uint32_t members)
{
    return in_pages((2 + 2 * (size_t)members) * BOARD_BLOCK_BYTES);
}

/* Returns a hash of the members of all boards (FNV-1a, one word at a time). Members compare it: if
 * it differs, two processes have different specs. */
static uint64_t hash_boards(const struct segment_spec *spec)
{
    uint64_t hash = UINT64_C(14695981039346656037);

    for (size_t i = 0; i < spec->board_count; i++) {
        hash = (hash ^ spec->boards[i].count) * UINT64_C(1099511628211);
        for (uint32_t k = 0; k < spec->boards[i].count; k++)
            hash = (hash ^ (spec->boards[i].places[k] + UINT64_C(1))) * UINT64_C(1099511628211);
    }
    return hash;
}

/* How the memory is laid out: the number of members at all boards, the offset of the blocks
 * (results and stages), and the size of the segment. */
struct layout {
    size_t member_count, blocks_at, bytes;
};

/* Makes a struct segment that has no shared memory yet, and computes the layout of that memory.
 * `present` of a board is set if this process is a member there; `local` is then its index at that
 * board. */
static int prepare(const struct segment_spec *spec, struct layout *ret_layout,
                   struct segment **ret_segment, struct hvd_err *err)
{
    struct layout layout = { 0 };
    struct segment *segment;

    ASSERT(spec->place < spec->count);
    if (spec->count > LIMIT_SLOTS_PER_HOST)
        return err_set(err, HVD_E_LIMIT,
                       "a host has %u members, more than %d (LIMIT_SLOTS_PER_HOST); run fewer "
                       "workers on this host",
                       spec->count, LIMIT_SLOTS_PER_HOST);
    segment = mem_zalloc(sizeof(*segment) + spec->board_count * sizeof(struct board));
    if (!segment)
        return err_set(
            err, HVD_E_NOMEM,
            "no memory for the table of a segment of shared memory; free memory on this host");
    segment->memory.fd = -1;
    segment->board_count = spec->board_count;
    for (size_t i = 0; i < spec->board_count; i++) {
        const struct segment_board *members = &spec->boards[i];
        struct board *board = &segment->boards[i];

        ASSERT(members->count >= 1 && members->count <= spec->count);
        board->segment = segment;
        board->count = members->count;
        for (uint32_t k = 0; k < members->count; k++) {
            ASSERT(members->places[k] < spec->count &&
                   (k == 0 || members->places[k - 1] < members->places[k]));
            if (members->places[k] == spec->place) {
                board->local = k;
                board->present = true;
            }
        }
        layout.member_count += members->count;
        layout.bytes += board_bytes(members->count);
    }
    layout.blocks_at =
        in_pages(sizeof(struct segment_head) + layout.member_count * sizeof(struct board_member));
    layout.bytes += layout.blocks_at;
    *ret_layout = layout;
    *ret_segment = segment;
    return 0;
}

/* Returns how many threads of this process may run at the same time, by its CPU affinity and the
 * CPU quota of its container. At least 1. */
static uint32_t segment_usable_cores(void)
{
    int fd = open("/sys/fs/cgroup/cpu.max", O_RDONLY | O_CLOEXEC);
    uint64_t allowed, period;
    ssize_t length = -1;
    struct span rest, part;
    uint32_t cores = 1;
    char text[64];
    cpu_set_t set;
    long online;

    if (!sched_getaffinity(0, sizeof(set), &set)) {
        cores = (uint32_t)CPU_COUNT(&set);
    } else { /* the machine has more cores than a cpu_set_t holds */
        online = sysconf(_SC_NPROCESSORS_ONLN);
        cores = online > 0 ? (uint32_t)online : 1;
    }
    /* The quota: "max 100000" or "150000 100000", microseconds in each period. */
    if (fd >= 0) {
        length = read(fd, text, sizeof(text));
        close(fd);
    }
    rest = span_trim((struct span){ text, length > 0 ? (size_t)length : 0 });
    if (span_next(&rest, ' ', &part) &&
        !text_parse_u64(part, 0, INT64_MAX, "the quota", &allowed, NULL) &&
        !text_parse_u64(rest, 1, INT64_MAX, "its period", &period, NULL) &&
        allowed / period < cores)
        cores = (uint32_t)(allowed / period);
    return cores ? cores : 1;
}

/* Sets the pointers into the shared memory, after it was mapped. Members of a board that has more
 * members than this process has cores do not spin (`crowded`). */
static void bind_memory(struct segment *segment, const struct layout *layout)
{
    uint8_t *at = segment->memory.at;
    uint8_t *blocks = at + layout->blocks_at;
    uint32_t cores = segment_usable_cores();

    segment->head = (void *)at;
    segment->members = (void *)(at + sizeof(struct segment_head));
    segment->member_count = layout->member_count;
    for (size_t i = 0, first = 0; i < segment->board_count; i++) {
        struct board *board = &segment->boards[i];

        board->members = &segment->members[first];
        board->blocks = blocks;
        board->give_us = BOARD_GIVE_US;
        board->doze_us = BOARD_DOZE_US;
        board->crowded = board->count > cores;
        first += board->count;
        blocks += board_bytes(board->count);
    }
}

/* Creates the segment: called by the process with index 0 of this host (segment.h). It writes the
 * head, which segment_open compares in the other processes. */
int segment_create(const struct segment_spec *spec, struct segment **ret_segment,
                   struct hvd_err *err)
{
    struct segment *segment = NULL;
    struct layout layout = { 0 };
    int rc = prepare(spec, &layout, &segment, err);

    if (rc)
        return rc;
    rc = memory_create("hvd-round", layout.bytes, &segment->memory, &segment->place, err);
    if (rc) {
        segment_free(segment);
        return rc;
    }
    bind_memory(segment, &layout);
    segment->head->magic = SEGMENT_MAGIC;
    segment->head->version = SEGMENT_VERSION;
    segment->head->round = spec->round;
    segment->head->roster = spec->roster;
    segment->head->boards = hash_boards(spec);
    segment->head->count = spec->count;
    *ret_segment = segment;
    return 0;
}

/* Opens the segment that another process of this host has created, and checks its head. `locator`:
 * where the segment is, as segment_locate of that process has written it. */
int segment_open(const struct segment_spec *spec, const uint8_t locator[SEGMENT_LOCATOR_BYTES],
                 struct segment **ret_segment, struct hvd_err *err)
{
    const struct segment_head *head;
    struct segment *segment = NULL;
    struct layout layout = { 0 };
    int pid;
    int rc = prepare(spec, &layout, &segment, err);

    if (!segment)
        return rc;
    memcpy(&segment->place, locator, sizeof(segment->place));
    /* true: the memory is mapped for reading and writing */
    rc = memory_open(&segment->place, true, &segment->memory, err);
    /* Checks that the segment is of this process's round, with the same members and groups. */
    head = (const void *)segment->memory.at;
    pid = segment->place.pid;
    if (!rc && (segment->memory.bytes < sizeof(*head) || head->magic != SEGMENT_MAGIC))
        rc = err_set(err, HVD_E_PROTO,
                     "process %d: the shared memory of this process is not that of a round of "
                     "hvd-elastic; let all workers run the same program",
                     pid);
    else if (!rc && head->version != SEGMENT_VERSION)
        rc = err_set(err, HVD_E_VERSION,
                     "process %d: the shared memory has version %llu, but this process uses "
                     "version %d; let all workers run the same program",
                     pid, (unsigned long long)head->version, SEGMENT_VERSION);
    else if (!rc && head->round != spec->round)
        rc = err_set(
            err, HVD_E_MISMATCH,
            "process %d: the shared memory is of round %llu, not of round %llu, so this round "
            "fails and a new round begins; if this happens again, report a bug of hvd-elastic",
            pid, (unsigned long long)head->round, (unsigned long long)spec->round);
    else if (!rc && (head->roster != spec->roster || head->count != spec->count ||
                     head->boards != hash_boards(spec) || segment->memory.bytes != layout.bytes))
        rc = err_set(err, HVD_E_MISMATCH,
                     "process %d: the shared memory is for other members or groups; let all "
                     "workers create the same groups",
                     pid);
    if (rc) {
        segment_free(segment);
        return rc;
    }
    bind_memory(segment, &layout);
    *ret_segment = segment;
    return 0;
}

/* Writes the place of the memory, for segment_open in the other processes; the rest is zeros. */
void segment_locate(const struct segment *segment, uint8_t ret_locator[SEGMENT_LOCATOR_BYTES])
{
    _Static_assert(sizeof(segment->place) <= SEGMENT_LOCATOR_BYTES, "a locator holds a place");
    memset(ret_locator, 0, SEGMENT_LOCATOR_BYTES);
    memcpy(ret_locator, &segment->place, sizeof(segment->place));
}

/* Unmaps the segment in this process; NULL is allowed. Its memory goes with the last process. */
void segment_free(struct segment *segment)
{
    if (!segment)
        return;
    memory_release(&segment->memory);
    mem_free(segment);
}

/* Returns the board with this index in the spec; NULL: this process is not a member at that board.
 */
struct board *segment_board(struct segment *segment, size_t index)
{
    ASSERT(index < segment->board_count);
    return segment->boards[index].present ? &segment->boards[index] : NULL;
}

/* Fails the segment (segment.h). `claim` holds the code and the rank in one word; 0 means that the
 * segment has not failed, so only the first claim succeeds. Each process that fails the segment
 * wakes all members, not only the first process to fail it: that one may have been killed before it
 * woke them. */
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
    for (size_t i = 0; i < segment->member_count; i++)
        board_ring(&segment->members[i]);
}

/* Fails the segment for this process alone, and wakes its own threads: the other processes' members
 * wake up too, see no failure, and sleep again. */
void segment_leave(struct segment *segment)
{
    atomic_store(&segment->left, true);
    for (size_t i = 0; i < segment->member_count; i++)
        board_ring(&segment->members[i]);
}

/* Returns the code of the segment's failure, its rank and its text (segment.h). 0: the segment has
 * not failed. */
int segment_failure(const struct segment *segment, uint32_t *ret_rank, struct hvd_err *ret_why)
{
    const struct segment_failure *failure = &segment->head->failure;
    uint64_t claim = atomic_load(&failure->claim);
    int code = (int)(uint32_t)(claim >> 32);
    char why[ERR_TEXT_MAX];
    int64_t until_us = 0;

    if (!claim)
        return 0;
    if (ret_rank)
        *ret_rank = (uint32_t)claim;
    /* The text is written after `claim`, so it may not be complete yet: wait for it, at most
     * TOLD_US. */
    while (!atomic_load(&failure->told)) {
        if (!until_us)
            until_us = clock_now_us() + TOLD_US;
        if (clock_now_us() > until_us)
            return err_set(
                ret_why, code,
                "a process of this host has failed in this round, and has ended before it wrote "
                "the reason; look at the output of that process, or at the log of the driver");
        (void)sched_yield();
    }
    memcpy(why, failure->why, sizeof(why));
    why[sizeof(why) - 1] = '\0';
    return err_set(ret_why, code, "%s", why[0] ? why : err_text(code));
}
