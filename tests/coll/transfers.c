/*
 * transfers.c: random sends and receives between the members of a group, each compared with the
 * numbers that its sender has by the plain reference of numbers.c.
 *
 * Called by plan_run.c. Invariant: the transfers of a plan have one order, which all members know,
 * and each member makes its own in that order; so no two members wait for each other.
 */
#include "tests/coll/transfers.h"

#include "base/mem.h"
#include "collectives/channel.h"

#include <stdio.h>
#include <string.h>

#define TRANSFERS_MOST        24
#define TRANSFERS_GUARD_BYTES 64
#define TRANSFERS_GUARD       0x5b

struct transfer {
    uint32_t from, to; /* ranks of the round */
    size_t first, count;
    uint64_t tag;
};

static struct transfer transfer_of(const struct plan *plan, const uint32_t *ranks, uint32_t size,
                                   uint32_t number)
{
    uint64_t random = numbers_mix(numbers_mix(plan->numbers.key + 11, number), size);
    uint32_t from = (uint32_t)(random % size);
    uint32_t to = (from + 1 + (uint32_t)((random >> 16) % (size - 1))) % size;

    return (struct transfer){ .from = ranks[from],
                              .to = ranks[to],
                              .first = (random >> 32) % NUMBERS_PERIOD,
                              .count = random % 5 ? (random >> 20) % (plan->count + 1) : 0,
                              .tag = plan->tag ? plan->tag + number : 0 };
}

/* This member's end of the channel to or from a peer; opened by the first transfer of the round. */
static int transfer_channel(struct plan_run *run, uint32_t peer, bool sends,
                            struct coll_channel **ret_channel, struct hvd_err *err)
{
    struct coll_channel **channel = &run->channels[peer][sends];
    int rc = *channel ? 0 : coll_open_channel(run->coll, peer, sends, channel, err);

    *ret_channel = *channel;
    return rc;
}

static void transfer_says(struct plan_run *run, const struct transfer *transfer, const char *what)
{
    size_t length;

    if (run->wrong[0])
        return;
    plan_show(run->plan, run->batch, run->wrong);
    length = strlen(run->wrong);
    (void)snprintf(run->wrong + length, PLAN_RUN_WRONG_MAX - length,
                   "\n  %zu numbers from rank %u to rank %u: %s", transfer->count, transfer->from,
                   transfer->to, what);
}

/* Names the fault in the memory of a transfer that has been made. NULL: there is none. */
static const char *transfer_fault(const struct plan_run *run, const struct transfer *transfer,
                                  const uint8_t *block)
{
    const struct numbers *numbers = &run->plan->numbers;
    size_t bytes = numbers_bytes(numbers->type), length = transfer->count * bytes;
    const uint8_t *at = block + TRANSFERS_GUARD_BYTES;

    for (size_t i = 0; i < TRANSFERS_GUARD_BYTES; i++) {
        if (block[i] != TRANSFERS_GUARD || at[length + i] != TRANSFERS_GUARD)
            return "bytes beside the buffer have changed";
    }
    for (size_t i = 0; i < transfer->count; i++) {
        if (!numbers_same(numbers, transfer->from, transfer->first + i, at + i * bytes))
            return run->rank == transfer->from ? "the sender's numbers have changed"
                                               : "another number has come than was sent";
    }
    return NULL;
}

/* Makes one transfer, of which this member is an end. */
static int transfer_make(struct plan_run *run, const struct transfer *transfer)
{
    bool sends = run->rank == transfer->from;
    size_t length = transfer->count * numbers_bytes(run->plan->numbers.type);
    uint8_t *block = mem_alloc(length + 2 * TRANSFERS_GUARD_BYTES);
    uint8_t *at = block + TRANSFERS_GUARD_BYTES;
    struct coll_call call = { .kind = sends ? COLL_SEND : COLL_RECEIVE,
                              .type = run->plan->numbers.type,
                              .in = at,
                              .out = at,
                              .count = transfer->count,
                              .tag = transfer->tag };
    struct hvd_err err = { .text = "" };
    struct coll_channel *channel;
    const char *fault = NULL;
    int rc;

    memset(block, TRANSFERS_GUARD, length + 2 * TRANSFERS_GUARD_BYTES);
    if (sends)
        numbers_fill(&run->plan->numbers, run->rank, transfer->first, transfer->count, at);
    rc = transfer_channel(run, sends ? transfer->to : transfer->from, sends, &channel, &err);
    if (!rc)
        rc = coll_transfer(channel, &call, &err);
    if (rc)
        fault = err.text;
    else
        fault = transfer_fault(run, transfer, block);
    if (fault)
        transfer_says(run, transfer, fault);
    mem_free(block);
    return rc ? rc : fault != NULL;
}

int transfers_run(struct plan_run *run, const uint32_t *ranks, uint32_t size, uint32_t place)
{
    uint32_t count = size < 2 ? 0 : 1 + (uint32_t)(run->plan->numbers.key % TRANSFERS_MOST);
    int rc = 0;

    for (uint32_t i = 0; i < count && !rc; i++) {
        struct transfer transfer = transfer_of(run->plan, ranks, size, i);

        if (transfer.from == ranks[place] || transfer.to == ranks[place])
            rc = transfer_make(run, &transfer);
    }
    return rc;
}
