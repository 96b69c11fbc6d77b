/*
 * open.c: the beginning (opening) and the end of every operation on a lane; called by opening.c of
 * the group. At the opening each member sends a message with its fingerprint to the next member of
 * the row, and compares the fingerprint that it receives with its own.
 *
 * The tags of all later messages contain a hash of the fingerprint. Gloo needs that: it ends the
 * process when a message is longer than the memory of the receive with the same tag.
 *
 * A member that has joined (hvd_join) does not know which operation the other members run. It sends
 * JOIN instead, and learns the operation from the member before it in the row. A member may have to
 * send JOIN before it has learnt the operation; then a second message with the operation follows:
 *
 *     runs an        sends its operation at once. If it receives JOIN, it receives once more: then
 *     operation      the operation of a member before it in the row
 *     has joined     receives first. If it receives an operation, it sends that operation. If it
 *                    receives JOIN, it sends JOIN, with the rank that joined last of those so far;
 *                    then it receives a second message, and sends that too
 *     has joined,    must not wait for the member before it, which may wait for this one. Sends
 *     first in the   JOIN at once. Then it sends on what it receives: an operation, or, if JOIN has
 *     row            gone round, the rank that joined last of all; then it receives once more
 *
 *     A runs x; B and C joined:   row B, A, C   B ──JOIN──► A ──x──► C ──x──► B ──x──► A
 *     all have joined:            JOIN goes around the row; then the rank that joined last does
 *
 * A member that has sent JOIN always sends a second message. A member that has joined takes part in
 * the end of a round (COLL_END) as in a barrier.
 */
#include "base/panic.h"
#include "collectives/lane/lane_internal.h"

#include <string.h>

#define OPENING_TAG 0 /* of all opening messages, whose operation is not known yet */

/* The rank of the member `distance` places after this member in the row, which is a circle. */
uint32_t lane_after(const struct lane *lane, uint32_t distance)
{
    return lane->ranks[(lane->index + distance) % lane->size];
}

/* The rank of the member `distance` places before this member in the row, which is a circle. */
uint32_t lane_before(const struct lane *lane, uint32_t distance)
{
    return lane->ranks[(lane->index + lane->size - distance) % lane->size];
}

/* Returns the largest power of two that is not greater than the size of the lane. */
uint32_t lane_power(const struct lane *lane)
{
    uint32_t power = 1;

    while (power <= lane->size / 2)
        power *= 2;
    return power;
}

/* Adds an index to the list unless the list has it; in a small lane the members at two distances
 * may be the same. Returns the new length of the list. */
static size_t partners_add(uint32_t partner, uint32_t *partners, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (partners[i] == partner)
            return count;
    }
    ASSERT(count < LANE_PARTNERS_MAX);
    partners[count] = partner;
    return count + 1;
}

/* Lists the members to which a member of a lane needs links (lane.h): those at distance 1, 2, 4,
 * ... after it and before it. */
size_t lane_partners(uint32_t index, uint32_t size, uint32_t ret_partners[LANE_PARTNERS_MAX])
{
    size_t count = 0;

    for (uint64_t distance = 1; distance < size; distance *= 2) {
        count = partners_add((uint32_t)((index + distance) % size), ret_partners, count);
        count = partners_add((uint32_t)((index + size - distance) % size), ret_partners, count);
    }
    return count;
}

/* Reserves step numbers: all steps of an operation have different ones, also those of the
 * algorithms that an operation calls one after another. Returns the first. */
uint32_t lane_take(struct lane *lane, uint32_t steps)
{
    uint32_t first = lane->steps;

    lane->steps += steps;
    return first;
}

/* Returns the tag of the messages of a step: the hash of the operation and the step's number. Tags
 * repeat after 65535 steps. That is safe: two messages with the same tag between the same two
 * members arrive in the order in which they were sent. */
uint64_t lane_tag(const struct lane *lane, uint32_t step)
{
    return (lane->key & ~UINT64_C(0xffff)) | (step % 0xffff + 1);
}

/* Ends all messages that this member has begun (lane_internal.h). `rc` is the caller's result so
 * far; HVD_DONE, which is positive, is not an error, so then it waits for the messages too. */
int lane_settle(struct lane *lane, int rc)
{
    int end = rc < 0 ? rc : traffic_await_all(lane->traffic);

    if (end)
        traffic_drop_all(lane->traffic);
    return end ? end : rc;
}

/* Sends our opening message to the next member of the row; of `first` only the bytes that are used.
 */
static int opening_say(struct lane *lane, const struct fingerprint *fingerprint)
{
    struct lane_opening *said = &lane->said;

    said->fingerprint = *fingerprint;
    return traffic_send(lane->traffic, lane_after(lane, 1), OPENING_TAG, said,
                        offsetof(struct lane_opening, first) + said->length);
}

/* Sends our second opening message, with the operation that we have learnt: the first one said only
 * that this member has joined (JOIN). */
static int opening_say_again(struct lane *lane, const struct fingerprint *fingerprint)
{
    /* wait, because the link may still send the first message from `said` */
    int rc = lane_settle(lane, 0 /* no failure so far */);

    return rc ? rc : opening_say(lane, fingerprint);
}

/* Receives the opening message of the member before us in the row. If `say` is not NULL, sends
 * `say` to the next member after the receive has begun and before it waits. */
static int opening_hear(struct lane *lane, const struct fingerprint *say)
{
    size_t index;
    int rc = traffic_receive(lane->traffic, lane_before(lane, 1), OPENING_TAG, &lane->heard,
                             sizeof(lane->heard), &index);

    if (!rc && say)
        rc = opening_say(lane, say);
    return rc ? rc : traffic_await(lane->traffic, index);
}

/* true: the member before us in the row has said that it has joined (hvd_join). */
static bool heard_join(const struct lane *lane)
{
    return lane->heard.fingerprint.kind == COLL_JOIN;
}

/* Opens an operation (lane.h): each member sends its fingerprint to the next member of the row;
 * the table at the top of this file has the order. `joined`: this member has called hvd_join, so
 * it does not know the operation yet. `again`: the member before us has sent JOIN, so that member
 * sends a second message. */
int lane_open_with(struct lane *lane, const struct fingerprint *ours, const void *first,
                   size_t length, struct fingerprint *ret_theirs)
{
    const struct fingerprint *theirs = &lane->heard.fingerprint;
    bool joined = ours->kind == COLL_JOIN, again;
    int rc = 0;

    ASSERT(length <= LANE_FIRST_MAX && !(joined && first));
    lane->steps = 0;
    lane->said.takes_first = first != NULL;
    lane->said.length = (uint32_t)length;
    if (length)
        memcpy(lane->said.first, first, length);
    lane->heard.fingerprint = *ours;
    lane->heard.takes_first = 0;
    if (lane->size > 1) {
        lane->traffic->link->ops->enter(lane->traffic->link);
        lane->opened = true;
        if (joined && lane->index) {
            /* A member that has joined and is not the first in the row: see the table in the
             * comment at the top of this file. */
            rc = opening_hear(lane, NULL);
            if (!rc && !heard_join(lane)) {
                rc = opening_say(lane, theirs);
            } else if (!rc) {
                /* Send on the rank of the member that joined later: this member, or the one named
                 * in the received message. If both joined before the same operation, the higher
                 * rank counts as the later one. */
                struct fingerprint later = *ours;

                if (theirs->last_number > ours->last_number ||
                    (theirs->last_number == ours->last_number && theirs->last > ours->last)) {
                    later.last_number = theirs->last_number;
                    later.last = theirs->last;
                }
                rc = opening_say(lane, &later);
                /* The second message of the member before us has the operation, or the rank that
                 * joined last of all. It is sent on. */
                if (!rc)
                    rc = opening_hear(lane, NULL);
                if (!rc)
                    rc = opening_say_again(lane, theirs);
            }
        } else {
            /* This member runs an operation, or it has joined and is the first in the row. It sends
             * its own opening at once. */
            rc = opening_hear(lane, ours);
            again = heard_join(lane);
            if (!rc && joined)
                rc = opening_say_again(lane, theirs);
            if (!rc && again)
                rc = opening_hear(lane, NULL);
        }
    }
    if (rc)
        return lane_settle(lane, rc);
    lane->key = fingerprint_hash(joined ? theirs : ours);
    *ret_theirs = *theirs;
    return joined && heard_join(lane) ? HVD_DONE : 0;
}

/* Opens an operation whose opening message carries no first step (lane.h): NULL, 0. */
int lane_open(struct lane *lane, const struct fingerprint *ours, struct fingerprint *ret_theirs)
{
    return lane_open_with(lane, ours, NULL, 0, ret_theirs);
}

/* Called when a member of this host has ended (COLL_END) and another member of this host calls
 * an operation, which can never run then. Sends the next member of the row a COLL_END (lane.h).
 * Waits for no answer, and ignores a failure, because the round ends anyway. */
void lane_open_ended(struct lane *lane, const struct fingerprint *ours)
{
    struct fingerprint said = *ours;

    if (lane->size == 1)
        return;
    lane->said.takes_first = 0;
    lane->said.length = 0;
    lane->traffic->link->ops->enter(lane->traffic->link);
    lane->opened = true;
    said.kind = COLL_END;
    /* Operations count from 1. The number 0 makes this COLL_END differ from the fingerprint of
     * every other member, so the next member notices it. */
    said.number = 0;
    (void)opening_say(lane, &said);
}

/* Closes the operation (lane.h). Without an opening, or in a lane of one member, there is nothing
 * to close. Between `enter` and `leave` the link moves its messages on this thread. */
int lane_close(struct lane *lane, int rc)
{
    if (!lane->opened)
        return rc;
    lane->opened = false;
    rc = lane_settle(lane, rc);
    lane->traffic->link->ops->leave(lane->traffic->link);
    return rc;
}
