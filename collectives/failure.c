/*
 * failure.c: the end of a round by a failure. Only the first failure counts, whichever thread finds
 * it. coll_fail wakes every thread of this host that waits in the round, and sends the reason to
 * all peers that this member has met. Every failure of collectives/ goes through coll_fail.
 *
 * On the member that caused the failure one call returns the failure's code. Every other call of
 * the round, here and on the other members, returns HVD_E_REVOKED. Exception: when the members make
 * different calls, or give counts that do not fit together, one call of every member returns
 * HVD_E_MISMATCH.
 */
#include "base/text.h"
#include "base/time.h"
#include "collectives/coll_internal.h"
#include "collectives/nccl/nccl_thread.h"
#include "collectives/revoke.h"
#include "os/clock.h"
#include "os/thread.h"

#include <inttypes.h>
#include <stdio.h>

bool coll_has_failed(const struct coll *coll)
{
    return atomic_load(&coll->failed);
}

/* Returns the circle number *index among the circles in which the owner thread works: that of the
 * round, then those of groups. NULL: there are fewer; *index is then a number among the circles of
 * channels. */
static struct coll_circle *circle_of_owner(struct coll *coll, size_t *index)
{
    if (!*index)
        return &coll->circle;
    for (size_t i = 0; i < coll->group_count; i++) {
        if (coll->groups[i].circle && !--*index)
            return coll->groups[i].circle;
    }
    --*index;
    return NULL;
}

/* Returns one of all circles of the round: that of the round, those of groups, those of channels
 * (coll_circle.h). */
struct coll_circle *coll_circle_at(struct coll *coll, size_t index)
{
    struct coll_circle *circle = circle_of_owner(coll, &index);

    if (circle)
        return circle;
    return index < coll->channel_count ? &coll->channels[index]->circle : NULL;
}

/* Looks whether another process of this host has failed a segment of this round (coll_internal.h).
 * Segments of channels are left out: their threads look themselves. */
int coll_segment_failure(struct coll *coll, uint32_t *ret_rank, struct hvd_err *ret_why)
{
    struct coll_circle *circle;
    int code = 0;

    for (size_t i = 0, at = 0; !code && (circle = circle_of_owner(coll, &at)) != NULL; at = ++i) {
        if (circle->segment)
            code = segment_failure(circle->segment, ret_rank, ret_why);
    }
    return code;
}

const char *coll_name(const struct coll *coll, uint32_t rank, char text[COLL_NAME_MAX])
{
    const struct coll_members *members = &coll->members;

    snprintf(text, COLL_NAME_MAX, "rank %u (#%" PRIu64 " on %s)", rank, members->incarnations[rank],
             members->names[members->hosts[rank]]);
    return text;
}

/* Records a failure of the round; only the first one counts (coll_internal.h). Then wakes every
 * thread that waits in the round, here and in the other processes of this host, and tells the
 * peers. Always returns `code`, also for a failure that comes too late to count. */
int coll_fail(struct coll *coll, int code, uint32_t rank, const char *format, ...)
{
    struct hvd_err told = { .text = "" };
    struct coll_circle *circle;
    uint32_t told_rank = rank;
    char why[ERR_TEXT_MAX];
    va_list args;

    va_start(args, format);
    text_line(why, sizeof(why), format, args);
    va_end(args);
    pthread_mutex_lock(&coll->mutex);
    if (coll_has_failed(coll)) {
        pthread_mutex_unlock(&coll->mutex);
        return code;
    }
    /* Another process of this host may have found a mismatch, and have written it to the segment.
     * That process may end at once, and this one may notice the end before the mismatch. Then the
     * mismatch is recorded, because it must be returned on all ranks. */
    if ((code == HVD_E_LOST || code == HVD_E_REVOKED) &&
        coll_segment_failure(coll, &told_rank, &told) == HVD_E_MISMATCH) {
        code = HVD_E_MISMATCH;
        rank = told_rank;
        snprintf(why, sizeof(why), "%s", told.text);
    }
    atomic_store(&coll->failed, true);
    (void)err_set(&coll->failure, code, "%s", why);
    /* Wake the threads that wait on this host: at a board, in a link, in NCCL. */
    for (size_t i = 0; (circle = coll_circle_at(coll, i)) != NULL; i++) {
        if (circle->segment)
            segment_fail(circle->segment, code, rank, coll->failure.text);
        if (circle->link)
            circle->link->ops->cancel(circle->link);
    }
    for (size_t i = 0; i < coll->group_count; i++) {
        struct comm *comm = atomic_load(&coll->groups[i].nccl.comm);
        struct link *mesh = coll->groups[i].mesh_link, *own = coll->groups[i].own_link;

        if (mesh)
            mesh->ops->cancel(mesh);
        if (own)
            own->ops->cancel(own);
        if (comm)
            comm_revoke(comm);
    }
    /* Tell the peers. A member that has called coll_bye tells them nothing: its end is no failure
     * for them any more. */
    for (size_t i = 0; !coll->finished && (circle = coll_circle_at(coll, i)) != NULL; i++) {
        if (circle->meeting)
            meet_tell(circle->meeting, code, rank, coll->failure.text);
    }
    pthread_cond_broadcast(&coll->changed);
    pthread_mutex_unlock(&coll->mutex);
    return code;
}

/* Ends the round because the worker wants it, as after a REVOKE of the driver (coll.h). */
void coll_cancel(struct coll *coll)
{
    coll_fail(coll, HVD_E_REVOKED, MEET_NOBODY, "round %" PRIu64 " was revoked", coll->round);
}

/* Ends the round because of an invalid call: this rank cannot take part in the operation, and the
 * other members would wait for ever. Returns the code for the caller. */
int coll_refuse(struct coll *coll, struct hvd_err *err, const char *format, ...)
{
    char why[ERR_TEXT_MAX];
    va_list args;

    va_start(args, format);
    text_line(why, sizeof(why), format, args);
    va_end(args);
    coll_fail(coll, HVD_E_INVAL, coll->rank, "rank %u: %s", coll->rank, why);
    return coll_failure(coll, err);
}

/* Ends the round because the program wants it, for all members (revoke.h). */
void coll_revoke(struct coll *coll, struct hvd_err *ret_told, const char *why)
{
    (void)err_set(ret_told, HVD_E_REVOKED, "rank %u has revoked the round: %s", coll->rank, why);
    coll_fail(coll, HVD_E_REVOKED, coll->rank, "%s", ret_told->text);
}

/* Returns the code with which a call must end, and its text (coll_internal.h); 0: the round has not
 * failed. */
int coll_failure(struct coll *coll, struct hvd_err *err)
{
    int code;

    if (!coll_has_failed(coll))
        return 0;
    pthread_mutex_lock(&coll->mutex);
    code = coll->failure.code;
    /* A failure that this member caused is returned once. Later calls, and calls after another
     * member's failure, return HVD_E_REVOKED. */
    if (coll->reported || code == HVD_E_LOST || code == HVD_E_TIMEOUT)
        code = HVD_E_REVOKED;
    coll->reported = true;
    (void)err_set(err, code, "%s", coll->failure.text);
    pthread_mutex_unlock(&coll->mutex);
    return code;
}

/* Waits until the round changes or fails, or until_us; a round that has failed is not waited for.
 */
void coll_pause_until(struct coll *coll, int64_t until_us)
{
    pthread_mutex_lock(&coll->mutex);
    if (!coll_has_failed(coll))
        (void)thread_cond_wait(&coll->changed, &coll->mutex, until_us);
    pthread_mutex_unlock(&coll->mutex);
}

/* How long to wait for a reason. A peer with a reason sends it over the control connection; its
 * link breaks at the same time, and the broken link may be noticed first. */
#define REASON_US TIME_S

/* Waits up to REASON_US until the round fails. Called when a connection broke: the peer may have
 * sent why it ends, and that message may not have arrived yet. */
void coll_await_reason(struct coll *coll)
{
    int64_t until_us = clock_now_us() + REASON_US;
    bool late = false;

    pthread_mutex_lock(&coll->mutex);
    while (!coll_has_failed(coll) && !late)
        late = thread_cond_wait(&coll->changed, &coll->mutex, until_us);
    pthread_mutex_unlock(&coll->mutex);
}

/* true: the link knows why its connection to this rank broke, and has written it to ret_text.
 * `link` may be NULL. */
static bool link_knows(struct link *link, uint32_t rank, char *ret_text, size_t size)
{
    return link && link->ops->why && link->ops->why(link, rank, ret_text, size);
}

/* Fails the round because the connection to this rank broke. why is NULL: the link knows no reason,
 * but a peer may send one. */
static int failure_of_link(struct coll *coll, uint32_t rank, const char *why)
{
    char name[COLL_NAME_MAX];

    if (why)
        return coll_fail(coll, HVD_E_LOST, rank, "%s", why);
    coll_await_reason(coll);
    return coll_fail(coll, HVD_E_LOST, rank, "the connection to %s broke",
                     coll_name(coll, rank, name));
}

/* Called when the connection to a rank broke: fails the round, with the best reason that can be
 * found. A link may know the reason; else a peer may send it; else the text says only that the
 * connection broke. */
int coll_lost(void *arg, uint32_t rank)
{
    struct coll *coll = arg;
    struct coll_circle *circle;
    char why[ERR_TEXT_MAX];
    bool known = false;

    for (size_t i = 0; i < coll->group_count && !known; i++)
        known = link_knows(coll->groups[i].mesh_link, rank, why, sizeof(why)) ||
                link_knows(coll->groups[i].own_link, rank, why, sizeof(why));
    for (size_t i = 0, at = 0; !known && (circle = circle_of_owner(coll, &at)) != NULL; at = ++i)
        known = link_knows(circle->link, rank, why, sizeof(why));
    return failure_of_link(coll, rank, known ? why : NULL);
}

/* Called when the connection of a channel to this rank broke: fails the round (traffic.h). */
int coll_channel_lost(void *arg, uint32_t rank)
{
    struct coll_channel *channel = arg;
    char why[ERR_TEXT_MAX];
    bool known = link_knows(channel->circle.link, rank, why, sizeof(why));

    return failure_of_link(channel->circle.coll, rank, known ? why : NULL);
}
