/*
 * coll_circle.h: a circle: members that meet, and what they make for their operations, a link and a
 * segment. The members are those of the round, or of a group that they alone have opened
 * (circle.c).
 *
 *     coll_circle_make ──► coll_circle_join ──► coll_circle_connect
 *      link, segment        tells the partners    waits for the partners
 */
#ifndef COLLECTIVES_COLL_CIRCLE_H
#define COLLECTIVES_COLL_CIRCLE_H

#include "base/vec.h"
#include "collectives/link/link.h"
#include "collectives/meet/meet.h"
#include "collectives/shm/segment.h"

struct coll;
struct coll_group;
struct coll_ranks;
struct traffic;

/* A member that this member connects with, and the reasons for the connection. */
struct coll_partner {
    uint32_t rank;
    bool linked;          /* true: a link to the partner is needed */
    bool leads;           /* true: the partner has created the segment of our host */
    bool met, connecting; /* met: its address has come; connecting: our link connects to it */
    uint8_t address[MEET_ADDRESS_MAX]; /* what the partner has sent when it was met */
    size_t address_length;
};

struct coll_partners VEC(struct coll_partner);

struct coll_circle {
    struct coll *coll;
    struct coll_group *group; /* NULL: the circle of the round */
    uint64_t round, roster;   /* by these two numbers the members find each other (meet_spec) */
    struct coll_partners partners;
    uint8_t locator[SEGMENT_LOCATOR_BYTES]; /* where our segment is, if we made it */
    /* true: coll_circle_connect has succeeded. Only the owner thread uses this field; in the circle
     * of a channel, only the channel's thread */
    bool connected;
    struct traffic *shown; /* its `awaited` and `progress` show for whom this member waits */

    /* protected by the round's mutex */
    struct link *link; /* NULL: no link is needed, or it is not created yet */
    struct segment *segment;
    struct meet_round *meeting;
};

/* ---- circle.c ---- */

/* Makes the group of these ranks, and prepares its circle. salt: makes groups of equal ranks
 * differ. After a failure too, coll_circle_drop frees what was made. HVD_E_NOMEM. */
int coll_circle_init(struct coll *coll, const struct coll_ranks *ranks, uint64_t salt,
                     struct coll_group *group, struct coll_circle *circle) MUST_CHECK;
/* Ends every wait in the circle, because the round has failed. The caller has the mutex. */
void coll_circle_fail(struct coll_circle *circle);
/* Frees a circle whose members have not begun to meet, and its group. */
void coll_circle_drop(struct coll_circle *circle, struct coll_group *group);

/* ---- connect.c: for the owner thread, or for the thread that opens a group ---- */

/* Makes the link of the circle, and creates the circle's segment if this member is the first on its
 * host. */
int coll_circle_make(struct coll_circle *circle, struct hvd_err *err) MUST_CHECK;
/* Begins to meet the partners, and tells them where the link and the segment are. Waits for no
 * partner. */
int coll_circle_join(struct coll_circle *circle, struct hvd_err *err) MUST_CHECK;
/* Waits until all partners have joined too, opens what they have made, and connects the link. */
int coll_circle_connect(struct coll_circle *circle, int64_t deadline_us,
                        struct hvd_err *err) MUST_CHECK;
/* ---- other files ---- */

/* In failure.c. Returns the circle number `index` of the round, counted from 0: first that of all
 * members, then those of groups, then those of channels. NULL: the round has no circle with this
 * number. The caller has the mutex, or no other thread opens a channel. */
struct coll_circle *coll_circle_at(struct coll *coll, size_t index);
/* In coll.c. Notes that meet has left one circle of a round that is being freed; the reaper frees
 * the round after the last one. Any thread. */
void coll_circle_left(struct coll *coll);
/* In partners.c. Chooses the partners of a group's circle, and prepares the group's lane. */
int coll_choose_group_partners(struct coll_circle *circle) MUST_CHECK; /* HVD_E_NOMEM */
/* In circle.c. Connects the circle of a group that its members alone have opened; the first
 * operation of the group calls this. Does nothing for any other group, or the second time. */
int coll_connect_group(struct coll *coll, struct coll_group *group, struct hvd_err *err) MUST_CHECK;

#endif
