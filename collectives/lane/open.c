#include "base/panic.h"
#include "collectives/lane/inside.h"

#include <string.h>

/*
 * Every operation begins with a message of one form around the row, which says what it is: when
 * all agree with the one before them, all agree. The tags of the messages that follow hold a sum
 * of it, so that those of another operation are never taken for ours: Gloo ends the process when a
 * message is longer than the memory it is for.
 *
 * Who has joined does not know what it is, and learns it from the one before: so in a second pass,
 * where a first one had to begin without anybody knowing.
 *
 *     not joined     says what it does at once. Hears JOIN: a second message follows, with what
 *                    those before it do
 *     joined         hears first. What somebody does, it says in its turn. JOIN: says JOIN, with
 *                    who was last of those so far; hears a second message, and says that too
 *     joined, and    cannot wait for the one before, as that may wait for us: says JOIN at once.
 *     first in the   What it hears then, it says as the second message: what somebody does, or,
 *     row            when JOIN has come back to it, who was last of all; then a second one comes
 *
 *     A does x, B has joined:   B,A,B   B ──JOIN──► A ──x──► B ──x──► B, which says x to A
 *     all have joined:          B,B,B   JOIN, JOIN, JOIN around; last, last, last around
 *
 * One that has said JOIN always says something else after it.
 */
#define OPENING_TAG 0

uint32_t lane_after(const struct lane *lane, uint32_t distance)
{
    return lane->ranks[(lane->index + distance) % lane->size];
}

uint32_t lane_before(const struct lane *lane, uint32_t distance)
{
    return lane->ranks[(lane->index + lane->size - distance) % lane->size];
}

uint32_t lane_power(const struct lane *lane)
{
    uint32_t power = 1;

    while (power <= lane->size / 2)
        power *= 2;
    return power;
}

static size_t add_partner(uint32_t partner, uint32_t *partners, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (partners[i] == partner)
            return count;
    }
    ASSERT(count < LANE_PARTNERS_MAX);
    partners[count] = partner;
    return count + 1;
}

size_t lane_partners(uint32_t index, uint32_t size, uint32_t ret_partners[LANE_PARTNERS_MAX])
{
    size_t count = 0;

    for (uint64_t distance = 1; distance < size; distance *= 2) {
        count = add_partner((uint32_t)((index + distance) % size), ret_partners, count);
        count = add_partner((uint32_t)((index + size - distance) % size), ret_partners, count);
    }
    return count;
}

uint32_t lane_take(struct lane *lane, uint32_t steps)
{
    uint32_t first = lane->steps;

    lane->steps += steps;
    return first;
}

/* Between two members the messages of one tag keep their order: a step may come again. */
uint64_t lane_tag(const struct lane *lane, uint32_t step)
{
    return (lane->key & ~UINT64_C(0xffff)) | (step % 0xffff + 1);
}

int lane_settle(struct lane *lane, int rc)
{
    int end = rc < 0 ? rc : traffic_await_all(lane->traffic);

    if (end)
        traffic_drop_all(lane->traffic);
    return end ? end : rc;
}

/* ---- what all do ---- */

static int say(struct lane *lane, const struct accord *accord)
{
    struct lane_opening *said = &lane->said;

    said->accord = *accord;
    return traffic_send(lane->traffic, lane_after(lane, 1), OPENING_TAG, said,
                        offsetof(struct lane_opening, first) + said->length);
}

static int say_again(struct lane *lane, const struct accord *accord)
{
    int rc = lane_settle(lane, 0); /* the memory is that of what was said first */

    return rc ? rc : say(lane, accord);
}

static int listen(struct lane *lane, size_t *ret_place)
{
    return traffic_receive(lane->traffic, lane_before(lane, 1), OPENING_TAG, &lane->heard,
                           sizeof(lane->heard), ret_place);
}

static int hear(struct lane *lane)
{
    size_t place;
    int rc = listen(lane, &place);

    return rc ? rc : traffic_await(lane->traffic, place);
}

static bool heard_join(const struct lane *lane)
{
    return lane->heard.accord.kind == COLL_JOIN;
}

static int open_at_once(struct lane *lane, const struct accord *ours)
{
    size_t place;
    int rc = listen(lane, &place);

    if (!rc)
        rc = say(lane, ours);
    return rc ? rc : traffic_await(lane->traffic, place);
}

static int open_working(struct lane *lane, const struct accord *ours)
{
    int rc = open_at_once(lane, ours);

    return !rc && heard_join(lane) ? hear(lane) : rc;
}

static int open_joined_first(struct lane *lane, const struct accord *ours)
{
    int rc = open_at_once(lane, ours);
    bool came_back;

    if (rc)
        return rc;
    came_back = heard_join(lane);
    rc = say_again(lane, &lane->heard.accord);
    return !rc && came_back ? hear(lane) : rc;
}

static struct accord later_of(const struct accord *ours, const struct accord *theirs)
{
    struct accord later = *ours;

    if (theirs->last_number < ours->last_number)
        return later;
    if (theirs->last_number > ours->last_number || theirs->last > ours->last) {
        later.last_number = theirs->last_number;
        later.last = theirs->last;
    }
    return later;
}

static int open_joined(struct lane *lane, const struct accord *ours)
{
    struct accord later;
    int rc = hear(lane);

    if (rc || !heard_join(lane))
        return rc ? rc : say(lane, &lane->heard.accord);
    later = later_of(ours, &lane->heard.accord);
    rc = say(lane, &later);
    if (!rc)
        rc = hear(lane);
    return rc ? rc : say_again(lane, &lane->heard.accord);
}

static int open_among_all(struct lane *lane, const struct accord *ours)
{
    if (ours->kind != COLL_JOIN)
        return open_working(lane, ours);
    return lane->index ? open_joined(lane, ours) : open_joined_first(lane, ours);
}

/* ---- opening and closing ---- */

int lane_open_with(struct lane *lane, const struct accord *ours, const void *first, size_t length,
                   struct accord *ret_theirs)
{
    bool joined = ours->kind == COLL_JOIN;
    int rc = 0;

    ASSERT(length <= LANE_FIRST_MAX && !(joined && first));
    lane->steps = 0;
    lane->said.takes_first = first != NULL;
    lane->said.length = (uint32_t)length;
    if (length)
        memcpy(lane->said.first, first, length);
    lane->heard.accord = *ours;
    lane->heard.takes_first = 0;
    if (lane->size > 1) {
        lane->traffic->link->ops->enter(lane->traffic->link);
        lane->opened = true;
        rc = open_among_all(lane, ours);
    }
    if (rc)
        return lane_settle(lane, rc);
    lane->key = accord_sum(joined ? &lane->heard.accord : ours);
    *ret_theirs = lane->heard.accord;
    return joined && heard_join(lane) ? HVD_DONE : 0;
}

int lane_open(struct lane *lane, const struct accord *ours, struct accord *ret_theirs)
{
    return lane_open_with(lane, ours, NULL, 0, ret_theirs);
}

int lane_close(struct lane *lane, int rc)
{
    if (!lane->opened)
        return rc;
    lane->opened = false;
    rc = lane_settle(lane, rc);
    lane->traffic->link->ops->leave(lane->traffic->link);
    return rc;
}
