/*
 * channel.c: sends and receives between two members, beside the operations of the round. worker/
 * calls it from a thread of its own for each channel.
 *
 * A transfer begins as an operation does: the two members compare fingerprints, so that a message
 * is never received as another one. Invariant: a channel touches nothing of the round that belongs
 * to the thread of the operations; what both use is atomic, or under the round's mutex.
 */
#include "collectives/channel.h"

#include "base/limits.h"
#include "base/mem.h"
#include "base/time.h"
#include "collectives/operation.h"
#include "collectives/reduce/reduce.h"

#include <inttypes.h>
#include <string.h>

#define CHUNK_BYTES ((size_t)256 * 1024) /* how many bytes a step of the board publishes */

/* Opens this member's end of a channel: a group of this rank and `peer`, with a circle of its own
 * (the connections of one group, coll_circle.h). The call does not wait for the peer; the first
 * coll_transfer connects the circle. The salt makes the group differ from that of the other
 * direction, and from a group that the program opens with the same two ranks. A failure of the
 * round fails the circle of each channel in coll->channels. If the round has failed before the
 * channel is in this list, the call fails the circle itself. A channel of the list is freed with
 * the round, also when this call returns an error. */
int coll_open_channel(struct coll *coll, uint32_t peer, bool sends,
                      struct coll_channel **ret_channel, struct hvd_err *err)
{
    const uint32_t pair[] = { coll->rank < peer ? coll->rank : peer,
                              coll->rank < peer ? peer : coll->rank };
    const struct coll_ranks ranks = { pair, 2 };
    uint64_t salt = fingerprint_mix(COLL_SEND, sends ? coll->rank : peer);
    struct coll_channel *channel = mem_zalloc(sizeof(*channel));
    struct hvd_err why = { .text = "" };
    int rc = HVD_E_NOMEM;

    if (channel) {
        channel->peer = peer;
        channel->sends = sends;
        rc = coll_circle_init(coll, &ranks, salt, &channel->group, &channel->circle);
        channel->group.own.lost = coll_channel_lost;
        channel->group.own.arg = channel;
        channel->circle.shown = &channel->group.own;
    }
    if (!rc)
        rc = coll_circle_make(&channel->circle, &why);
    if (!rc) {
        pthread_mutex_lock(&coll->mutex);
        if (coll->channel_count == LIMIT_CHANNELS)
            rc = err_set(&why, HVD_E_LIMIT,
                         "more than %d channels (LIMIT_CHANNELS) to and from other ranks were used "
                         "in this round; send to fewer ranks, or use an alltoall",
                         LIMIT_CHANNELS);
        else
            coll->channels[coll->channel_count++] = channel;
        if (!rc && coll_has_failed(coll))
            coll_circle_fail(&channel->circle);
        pthread_mutex_unlock(&coll->mutex);
    }
    if (rc && channel) {
        coll_circle_drop(&channel->circle, &channel->group);
        mem_free(channel);
    }
    if (!rc)
        rc = coll_circle_join(&channel->circle, &why);
    if (!rc) {
        *ret_channel = channel;
        return 0;
    }
    coll_fail(coll, rc, coll->rank, "rank %u: a channel to rank %u cannot be opened: %s",
              coll->rank, peer,
              why.text[0] ? why.text : "no memory for the channel; free memory on this host");
    return coll_failure(coll, err);
}

/* Compares the fingerprints of the two ends of a transfer. HVD_E_MISMATCH: the fingerprints differ,
 * and the round has failed. */
static int channel_compare(struct coll *coll, const struct fingerprint *ours,
                           const struct fingerprint *theirs)
{
    char own[FINGERPRINT_TEXT_MAX], other[FINGERPRINT_TEXT_MAX];

    if (fingerprint_same(ours, theirs))
        return 0;
    fingerprint_describe(ours, own);
    fingerprint_describe(theirs, other);
    return coll_fail(coll, HVD_E_MISMATCH, theirs->rank,
                     "on rank %u %s, on rank %u %s; give the n-th send of one rank to another, and "
                     "the n-th receive there, the same count, type and tag",
                     theirs->rank, other, ours->rank, own);
}

/* Moves the numbers over the board that the two members share. Each step publishes the next chunk
 * on the sender's stage; the receiver copies it while the sender writes the chunk after it. */
static int channel_over_board(struct coll_channel *channel, const struct operation *operation,
                              size_t bytes)
{
    struct coll_group *group = &channel->group;
    struct board *board = group->board;
    uint32_t own = board_local(board), sender = channel->sends ? own : 1 - own;
    const uint8_t *in = operation->call->in;
    uint8_t *out = operation->call->out;
    size_t at = 0;
    int rc = 0;

    memcpy(board_opening(board, own, operation->turn), &operation->fingerprint,
           sizeof(operation->fingerprint));
    do {
        uint8_t *stage = board_stage(board, sender, group->turn);
        size_t length = bytes - at < CHUNK_BYTES ? bytes - at : CHUNK_BYTES;

        if (channel->sends && length)
            memcpy(stage, in + at, length);
        rc = board_step(board);
        if (!rc && at == 0)
            rc = channel_compare(
                operation->coll, &operation->fingerprint,
                (const struct fingerprint *)board_opening(board, 1 - own, operation->turn));
        if (!rc && !channel->sends && length)
            memcpy(out + at, stage, length);
        at += length;
        group->turn++;
        /* + 1: a transfer of no bytes makes progress too */
        atomic_fetch_add_explicit(&channel->progress, length + 1, memory_order_relaxed);
    } while (!rc && at < bytes);
    return rc;
}

/* Moves the numbers over the link between the two members, which are on two hosts. */
static int channel_over_link(struct coll_channel *channel, const struct operation *operation,
                             size_t bytes)
{
    struct lane *lane = &channel->group.lane;
    struct fingerprint theirs;
    int rc = lane_open(lane, &operation->fingerprint, &theirs);

    if (!rc)
        rc = channel_compare(operation->coll, &operation->fingerprint, &theirs);
    /* All segments have the same tag: they arrive in the order in which they were sent. */
    for (size_t i = 0; i < traffic_segments(lane->traffic, bytes) && !rc; i++) {
        size_t at = i * lane->traffic->segment_bytes, index;
        size_t length = traffic_segment(lane->traffic, bytes, i);
        uint64_t tag = lane->key | 1; /* openings have the tag 0 */

        rc = channel->sends ? traffic_send(lane->traffic, channel->peer, tag,
                                           (const uint8_t *)operation->call->in + at, length)
                            : traffic_receive(lane->traffic, channel->peer, tag,
                                              (uint8_t *)operation->call->out + at, length, &index);
    }
    return lane_close(lane, rc);
}

/* Makes one transfer over the channel (channel.h); the first one connects the channel. After a
 * failure the reason may be in the segment of the channel: a process of this host that has failed
 * before has written it there. */
int coll_transfer(struct coll_channel *channel, const struct coll_call *call, struct hvd_err *err)
{
    struct coll_circle *circle = &channel->circle;
    struct coll *coll = circle->coll;
    struct coll_call shown = *call;
    struct hvd_err why = { .text = "" }, told = { .text = "" };
    struct operation operation;
    size_t bytes = call->count * reduce_type_bytes(call->type);
    uint32_t rank = MEET_NOBODY;
    int rc = coll_failure(coll, err), code = 0;

    if (rc)
        return rc;
    /* a send and its receive are one operation: both ends have the same fingerprint */
    shown.kind = COLL_SEND;
    shown.root = channel->sends ? coll->rank : channel->peer;
    operation = operation_make(coll, &channel->group, &shown);
    atomic_store(&channel->number, channel->group.number);
    atomic_store(&channel->operation, channel->sends ? "send" : "receive");
    if (!circle->connected) {
        rc = coll_circle_connect(circle, TIME_NEVER, &why);
        channel->group.own.link = circle->link;
        channel->group.own.segment_bytes = coll_segment_bytes(coll->engine);
    }
    if (!rc)
        rc = channel->group.board ? channel_over_board(channel, &operation, bytes)
                                  : channel_over_link(channel, &operation, bytes);
    atomic_store(&channel->operation, NULL);
    if (!rc)
        return 0;
    if (rc == HVD_E_REVOKED && circle->segment)
        code = segment_failure(circle->segment, &rank, &told);
    if (code)
        coll_fail(coll, code == HVD_E_MISMATCH ? code : HVD_E_LOST, rank, "%s", told.text);
    coll_fail(coll, rc, coll->rank, "rank %u: %s", coll->rank,
              why.text[0] ? why.text : err_text(rc));
    return coll_failure(coll, err);
}

/* Describes the first transfer in progress for a thread that watches (coll_wait_look); the member
 * at its other end is the one for which it waits. ret_wait->operation is NULL: there is none. */
void coll_transfer_look(struct coll *coll, struct coll_wait *ret_wait)
{
    size_t count;

    pthread_mutex_lock(&coll->mutex);
    count = coll->channel_count;
    pthread_mutex_unlock(&coll->mutex);
    memset(ret_wait, 0, sizeof(*ret_wait));
    for (size_t i = 0; i < count && !ret_wait->operation; i++) {
        struct coll_channel *channel = coll->channels[i];

        ret_wait->operation = atomic_load(&channel->operation);
        ret_wait->round = coll->round;
        ret_wait->number = atomic_load(&channel->number);
        ret_wait->progress =
            atomic_load(&channel->progress) + atomic_load(&channel->group.own.progress);
        ret_wait->missing[0] = coll->members.incarnations[channel->peer];
        ret_wait->missing_count = 1;
    }
}
