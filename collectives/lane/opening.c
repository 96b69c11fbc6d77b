#include "base/panic.h"
#include "collectives/operation.h"
#include "collectives/reduce/reduce.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define OPENING_TAG 0

/* Every operation begins with a message of one form around the ring, which says what it is: when
 * all agree with the one before them, all agree. The tags of the messages that follow hold a sum
 * of it, so that those of another operation are never taken for ours: Gloo ends the process when a
 * message is longer than the memory it is for. */

static const char *const kinds[] = {
    [COLL_ALLREDUCE] = "allreduce",
    [COLL_BROADCAST] = "broadcast",
    [COLL_ALLGATHER] = "allgather",
    [COLL_BARRIER] = "barrier",
};

const char *coll_kind_name(uint32_t kind)
{
    return kind && kind < ARRAY_SIZE(kinds) ? kinds[kind] : "?";
}

static uint64_t fingerprint_of(const struct coll_call *call)
{
    const uint64_t parts[] = { call->number, call->kind, call->type,
                               call->op,     call->root, call->count };
    uint64_t sum = 0;

    for (size_t i = 0; i < ARRAY_SIZE(parts); i++) {
        sum = (sum ^ parts[i]) * UINT64_C(0x9e3779b97f4a7c15);
        sum ^= sum >> 29;
    }
    return sum;
}

uint64_t coll_tag(const struct coll *coll, size_t step)
{
    return (coll->fingerprint & ~UINT64_C(0xffff)) | (step + 1) % 0xffff;
}

/* "operation 7: allreduce (sum) of 10 float32" */
static void describe(const struct coll_call *call, char *text, size_t size)
{
    int at = snprintf(text, size, "operation %" PRIu64 " is %s", call->number,
                      coll_kind_name(call->kind));

    if (call->kind == COLL_BARRIER || at < 0 || (size_t)at >= size)
        return;
    if (call->kind == COLL_ALLREDUCE)
        (void)snprintf(text + at, size - (size_t)at, " (%s) of %" PRIu64 " %s",
                       reduce_op_name((hvd_op)call->op), call->count,
                       reduce_type_name((hvd_dtype)call->type));
    else if (call->kind == COLL_BROADCAST)
        (void)snprintf(text + at, size - (size_t)at, " of %" PRIu64 " %s from rank %u", call->count,
                       reduce_type_name((hvd_dtype)call->type), call->root);
    else
        (void)snprintf(text + at, size - (size_t)at, " of %s with counts of sum %" PRIx64,
                       reduce_type_name((hvd_dtype)call->type), call->count);
}

static int mismatch(struct coll *coll, uint32_t rank)
{
    char ours[128], theirs[128];

    describe(&coll->call, ours, sizeof(ours));
    describe(&coll->heard.call, theirs, sizeof(theirs));
    return coll_fail(coll, HVD_E_MISMATCH, rank,
                     "on rank %u %s, on rank %u %s; all ranks must make the same calls in the "
                     "same order",
                     rank, theirs, coll->rank, ours);
}

int coll_begin(struct coll *coll, const struct coll_call *call, struct hvd_err *err)
{
    int rc = coll_failure(coll, err);

    if (rc)
        return rc;
    if (coll->size > 1 && !coll->link)
        return err_set(err, HVD_E_STATE, "the round is not connected");
    coll->call = *call;
    coll->call.number = atomic_load(&coll->number) + 1;
    coll->fingerprint = fingerprint_of(&coll->call);
    atomic_store(&coll->number, coll->call.number);
    atomic_store(&coll->operation, coll_kind_name(call->kind));
    if (coll->link)
        coll->link->ops->enter(coll->link);
    return 0;
}

int coll_open_with(struct coll *coll, const void *payload, size_t length, const void **ret_payload)
{
    uint32_t after = (coll->rank + 1) % coll->size;
    uint32_t before = (coll->rank + coll->size - 1) % coll->size;
    size_t place;
    int rc;

    ASSERT(length <= OPENING_MAX);
    coll->said.call = coll->call;
    if (length)
        memcpy(coll->said.payload, payload, length);
    rc = coll_receive(coll, before, OPENING_TAG, &coll->heard, sizeof(coll->heard), &place);
    if (!rc)
        rc = coll_send(coll, after, OPENING_TAG, &coll->said,
                       offsetof(struct coll_opening, payload) + length);
    if (!rc)
        rc = coll_await(coll, place);
    if (rc)
        return rc;
    if (memcmp(&coll->heard.call, &coll->call, sizeof(coll->call)) != 0)
        return mismatch(coll, before);
    if (ret_payload)
        *ret_payload = coll->heard.payload;
    return 0;
}

int coll_end(struct coll *coll, int rc, struct hvd_err *err)
{
    if (!rc && coll->link)
        rc = coll_await_all(coll);
    if (coll->link) {
        coll_drop_all(coll);
        coll->link->ops->leave(coll->link);
    }
    atomic_store(&coll->operation, NULL);
    if (!rc)
        return 0;
    coll_fail(coll, rc, coll->rank, "rank %u: %s", coll->rank, err_text(rc)); /* if it is new */
    return coll_failure(coll, err);
}
