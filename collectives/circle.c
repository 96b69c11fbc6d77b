/*
 * circle.c: groups that their members alone open while the round runs; no other rank knows of them.
 * worker/ opens such a group (coll_open_group), which waits for no member; run.c connects the group
 * before its first operation. So members may open several groups in different orders: another
 * member can meet this one as soon as this one has opened the group.
 *
 * Invariant: a group is complete when coll->group_count shows it to other threads, and is not freed
 * before the round ends.
 */
#include "collectives/circle.h"

#include "base/limits.h"
#include "base/mem.h"
#include "base/time.h"
#include "collectives/dispatch.h"

#include <inttypes.h>

/* Makes the group of these ranks, and the circle in which its members meet (coll_circle.h). The
 * circle has a number and a roster of its own, by which the members find each other. */
int coll_circle_init(struct coll *coll, const struct coll_ranks *ranks, uint64_t salt,
                     struct coll_group *group, struct coll_circle *circle)
{
    int rc = group_init(&group->group, ranks->items, ranks->count, coll->members.hosts, coll->rank);

    if (rc)
        return rc;
    traffic_init(&group->mesh, coll_lost, coll);
    traffic_init(&group->own, coll_lost, coll);
    group->board_index = SIZE_MAX;
    /* A group with these ranks may exist already: the salt makes the two groups' hashes, and so
     * their fingerprints, differ. */
    group->group.hash = fingerprint_mix(group->group.hash + 1, salt);
    group->circle = circle;
    *circle = (struct coll_circle){
        .coll = coll,
        .group = group,
        .round = coll->round | MEET_OF_GROUP,
        .roster = fingerprint_mix(coll->members.hash, group->group.hash),
        .shown = &coll->traffic,
    };
    return coll_choose_group_partners(circle);
}

/* The round has failed: ends every wait in the link and the segment of this circle. */
void coll_circle_fail(struct coll_circle *circle)
{
    struct coll *coll = circle->coll;

    if (circle->link)
        circle->link->ops->cancel(circle->link);
    if (circle->segment)
        segment_fail(circle->segment, coll->failure.code, MEET_NOBODY, coll->failure.text);
}

/* Frees a circle and its group (coll_circle.h): nothing else refers to them. */
void coll_circle_drop(struct coll_circle *circle, struct coll_group *group)
{
    if (circle->link)
        circle->link->ops->free(circle->link);
    segment_free(circle->segment);
    VEC_RELEASE(&circle->partners);
    group_release(&group->group);
}

/* Makes the group that follows the groups which other threads can see (coll->group_count), with its
 * circle. */
static int circle_init(struct coll *coll, const struct coll_ranks *ranks, uint64_t tag,
                       struct coll_group *group)
{
    struct coll_circle *circle = mem_zalloc(sizeof(*circle));
    int rc = circle ? coll_circle_init(coll, ranks, tag, group, circle) : HVD_E_NOMEM;

    if (!group->circle) /* else the circle belongs to the group, and is freed with the round */
        mem_free(circle);
    if (rc)
        return rc;
    group->sources = mem_zalloc_array(group->group.local_count + 1, sizeof(*group->sources));
    return group->sources ? 0 : HVD_E_NOMEM;
}

/* Opens a group that its members alone open (circle.h). The group stays in the list of the round's
 * groups also when the call fails, because a failure ends the round, which frees all groups. */
int coll_open_group(struct coll *coll, const struct coll_ranks *ranks, uint64_t tag,
                    struct hvd_err *err)
{
    struct coll_group *group = &coll->groups[coll->group_count];
    struct hvd_err why = { .text = "" };
    struct coll_circle *circle;
    int rc = coll_failure(coll, err);

    if (rc)
        return rc;
    if (coll->group_count == coll->group_room) {
        coll_fail(coll, HVD_E_LIMIT, coll->rank,
                  "rank %u: more than LIMIT_OPENED (%d) groups were opened in this round; use an "
                  "open group again, or create groups before hvd_elastic_run",
                  coll->rank, LIMIT_OPENED);
        return coll_failure(coll, err);
    }
    rc = circle_init(coll, ranks, tag, group);
    for (size_t i = 0; i < coll->group_count && !rc; i++) {
        if (coll->groups[i].circle && coll->groups[i].circle->roster == group->circle->roster)
            rc = err_set(&why, HVD_E_EXISTS,
                         "the group of these %u ranks with tag %" PRIu64
                         " was opened in this round already; use that group, or give another tag",
                         ranks->count, tag);
    }
    if (!rc && group->group.size > 1)
        rc = coll_circle_make(group->circle, &why);
    /* Show the group to other threads. A failure of the round before this moment could not cancel
     * the link and the segment of the group's circle, so this thread cancels them. */
    circle = group->circle;
    pthread_mutex_lock(&coll->mutex);
    coll->group_count++;
    if (coll_has_failed(coll) && circle)
        coll_circle_fail(circle);
    pthread_mutex_unlock(&coll->mutex);
    if (!rc && group->group.size > 1)
        rc = coll_circle_join(group->circle, &why);
    if (!rc)
        return 0;
    coll_fail(coll, rc, coll->rank, "rank %u: a group cannot be opened: %s", coll->rank,
              why.text[0] ? why.text : "no memory for the group; free memory on this host");
    return coll_failure(coll, err);
}

/* Connects the circle of a group that its members alone have opened, before the group's first
 * operation; a second call changes nothing. The group's own operations then use the link of the
 * circle. */
int coll_connect_group(struct coll *coll, struct coll_group *group, struct hvd_err *err)
{
    struct coll_circle *circle = group->circle;
    int rc = 0;

    if (!circle || circle->connected)
        return 0;
    if (group->group.size > 1)
        rc = coll_circle_connect(circle, TIME_NEVER, err);
    circle->connected = true;
    group->own.link = circle->link;
    if (circle->link)
        group->own.segment_bytes = coll_segment_bytes(coll->engine);
    return rc;
}
