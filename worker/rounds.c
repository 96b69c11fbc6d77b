/*
 * rounds.c: the collectives of the running round, from the entering of the round to its end; the
 * object that does the work is a struct coll of collectives/.
 *
 * The training loop enters, opens, settles and finishes rounds; the session's thread may cancel a
 * round at any moment; the watchdog calls rounds_look. Invariant: only the training loop replaces
 * the struct coll, and only when no thread has the ticket (the right to be inside a collective).
 * All other data is under the lock.
 */
#include "base/mem.h"
#include "collectives/channel.h"
#include "collectives/circle.h"
#include "collectives/revoke.h"
#include "worker/fusion.h"
#include "worker/persist.h"
#include "worker/rounds_groups.h"
#include "worker/rounds_internal.h"

#include <inttypes.h>
#include <string.h>

int rounds_create(const struct groups *groups, rounds_prepared_fn *prepared, void *arg,
                  struct rounds **ret_rounds, struct hvd_err *err)
{
    struct rounds *rounds = mem_zalloc(sizeof(*rounds));

    if (!rounds)
        return err_set(err, HVD_E_NOMEM,
                       "no memory for the collectives of this worker; free memory on this host");
    rounds->groups = groups;
    rounds->prepared = prepared;
    rounds->arg = arg;
    atomic_init(&rounds->ticket, TICKET_SHUT);
    if (requests_init(&rounds->requests)) {
        mem_free(rounds);
        return err_set(err, HVD_E_NOMEM,
                       "no memory for the collectives of this worker; free memory on this host");
    }
    news_init(&rounds->about);
    pthread_mutex_init(&rounds->lock, NULL);
    pthread_cond_init(&rounds->changed, NULL);
    *ret_rounds = rounds;
    return 0;
}

void rounds_use(struct rounds *rounds, struct gpu_use *gpu, struct timeline *timeline)
{
    rounds->gpu = gpu;
    rounds->timeline = timeline;
}

/* Sets the callback that connects this worker's agent to those that have the state, before the
 * worker joins a round. */
void rounds_use_reach(struct rounds *rounds, rounds_reach_fn *reach)
{
    rounds->reach = reach;
}

void rounds_use_fusion(struct rounds *rounds, size_t bytes)
{
    rounds->fusion_bytes = bytes;
}

/* ---- leaving --------------------------------------------------------------------------------- */

/* Waits until no thread is in a collective. If one is, the round's collectives are cancelled, so
 * that it returns. Otherwise they are not cancelled, because that would disturb peers that are
 * still in their last collective. The caller holds the lock, which is released during the wait. */
static void await_no_caller(struct rounds *rounds)
{
    if (rounds->coll && atomic_load(&rounds->ticket) & TICKET_TAKEN)
        coll_cancel(rounds->coll);
    ticket_await(rounds);
}

/* Called before the state is restored or the round is freed: ends the call of a thread that is
 * still in a collective, and waits until no work of the round on a GPU touches memory. If the GPU
 * does not end that work, the error is kept in `unsettled`, and no later round can begin. Work that
 * failed after its call had returned is a failure of the round. */
int rounds_settle(struct rounds *rounds, struct hvd_err *err)
{
    struct hvd_err why;
    struct coll *coll;
    int rc;

    if (!rounds->gpu || !atomic_load(&rounds->gpu->device))
        return 0;
    rounds_lock(rounds);
    await_no_caller(rounds);
    coll = rounds->coll;
    rounds_unlock(rounds);
    rc = coll && !rounds->unsettled.code ? coll_settle(coll, &why) : 0;
    /* HVD_E_REVOKED: work that was queued on the device failed after its call had returned */
    if (rc == HVD_E_REVOKED) {
        rounds_lock(rounds);
        if (!rounds->failed) {
            rounds->failed = HVD_E_REVOKED;
            (void)err_set(&rounds->why, HVD_E_REVOKED, "%s", why.text);
        }
        rounds_unlock(rounds);
    } else if (rc) {
        rounds->unsettled = why;
    }
    if (rounds->unsettled.code && err)
        *err = rounds->unsettled;
    return rounds->unsettled.code;
}

/* Leaves the round: forbids collectives, and frees them when no thread is inside. Returns the error
 * of rounds_settle (the GPU does not end its work): then no further round can begin. */
static int rounds_leave_now(struct rounds *rounds, struct hvd_err *err)
{
    struct coll *old;
    int rc;

    rounds_open(rounds, false /* no collectives any more */);
    rc = rounds_settle(rounds, err);
    rounds_lock(rounds);
    await_no_caller(rounds);
    old = rounds->coll;
    rounds->coll = NULL;
    rounds_unlock(rounds);
    coll_free(old);
    return rc;
}

/* Frees all: first the thread that connects rounds ends, then the round is left, and last the
 * thread of the requests ends. */
void rounds_free(struct rounds *rounds)
{
    if (!rounds)
        return;
    rounds_close(rounds);
    rounds_lock(rounds);
    prepare_give_up(rounds); /* a PREPARE may have come after rounds_close */
    rounds_unlock(rounds);
    (void)rounds_leave_now(rounds, NULL /* NULL: the error is not needed */);
    requests_close(rounds);
    requests_release(&rounds->requests);
    VEC_RELEASE(&rounds->transfers.queues);
    news_release(&rounds->about);
    roll_free(rounds->roll);
    pthread_cond_destroy(&rounds->changed);
    pthread_mutex_destroy(&rounds->lock);
    mem_free(rounds);
}

/* Cancels this round and all before it: running collectives, those that are being prepared, and
 * requests for a checkpoint, as the training may go back to an older commit. The session's thread
 * calls it. */
void rounds_cancel(struct rounds *rounds, uint64_t round)
{
    rounds_lock(rounds);
    if (round > rounds->cancelled)
        rounds->cancelled = round;
    if (rounds->next && rounds->next->round <= round)
        prepare_give_up(rounds);
    if (rounds->coll && rounds->round <= round)
        coll_cancel(rounds->coll);
    requests_cancel_persists(rounds, round);
    news_update(rounds);
    rounds_unlock(rounds);
}

/* Leaves the last round and enters the round of `order`. prepared true: the session knows that the
 * collectives of this round were connected while the last round went on. If they are gone
 * meanwhile, this function makes and connects new ones. */
int rounds_enter(struct rounds *rounds, const struct rounds_order *order, bool prepared,
                 struct hvd_err *err)
{
    uint64_t round = order->round;
    struct coll *coll = NULL;
    struct roll *roll = NULL;
    bool connected; /* false: the collectives of this round are made and connected here */
    int rc = rounds_leave_now(rounds, err);

    if (rc)
        return rc;
    rounds_lock(rounds);
    if (prepared)
        coll = prepare_take(rounds, round, &roll);
    connected = coll != NULL;
    rounds_unlock(rounds);
    if (!connected)
        rc = prepare_make(rounds, order, &coll, &roll, err);
    if (rc)
        return rc;

    /* from here on rounds_cancel finds these collectives; a cancel that came before is seen in
     * `cancelled` */
    rounds_lock(rounds);
    roll_free(rounds->roll);
    rounds->coll = coll;
    rounds->roll = roll;
    rounds->round = round;
    rounds->failed = 0;
    rounds->why.text[0] = '\0';
    rounds->news = 0;
    ticket_update(rounds);
    if (round <= rounds->cancelled)
        rc = err_set(err, HVD_E_REVOKED, "round %" PRIu64 " is revoked", round);
    rounds_unlock(rounds);
    if (!rc && !connected)
        rc = coll_connect(coll, ROUNDS_CONNECT_US, err);
    return rc;
}

/* ---- while train runs ------------------------------------------------------------------------ */

/* Allows the program's collectives when train begins (open true), and forbids them when train has
 * returned (open false); then pending requests are ended. */
void rounds_open(struct rounds *rounds, bool open)
{
    rounds_lock(rounds);
    rounds->open = open;
    ticket_update(rounds);
    if (open) {
        rounds->about.reason[0] = '\0';
        fusion_begin(&rounds->requests);
    } else {
        requests_drop(rounds, "train has returned before the request was done; call hvd_wait for "
                              "each request before train returns");
        transfers_end(rounds, "train has returned before the send or receive was done; call "
                              "hvd_wait for each request before train returns");
    }
    rounds_unlock(rounds);
}

/* Notes that a commit or a check has told train to return `news` (a code other than 0): with news
 * above 0 no collective is allowed until the next round. */
void rounds_tell(struct rounds *rounds, int news)
{
    rounds_lock(rounds);
    rounds->news = news;
    ticket_update(rounds);
    rounds_unlock(rounds);
}

/* Leaves a round that has ended well: waits until no GPU of another member uses memory of this
 * member, and tells the peers that this member makes no more calls, so that the peers do not count
 * the end of this process as a failure. */
void rounds_finish(struct rounds *rounds)
{
    struct coll *coll;

    rounds_lock(rounds);
    rounds->open = false;
    ticket_update(rounds);
    coll = rounds->coll;
    /* if a thread is still in a collective, this worker cannot leave the round normally */
    if (!coll || ticket_take(rounds, NULL))
        coll = NULL;
    rounds_unlock(rounds);
    if (!coll)
        return;
    coll_part(coll);
    coll_bye(coll);
    ticket_end(rounds, 0);
}

/* Takes the ticket for a call of the library, and returns the collectives of the round. inside
 * true: the call is allowed also before rounds_open. rounds_put gives the ticket back; `code` is
 * the result of the call, and a failure while train runs becomes the failure of the round, if it is
 * the first. */
int rounds_get(struct rounds *rounds, bool inside, struct coll **ret_coll, struct hvd_err *err)
{
    int rc;

    rounds_lock(rounds);
    rc = ticket_allow(rounds, inside, err);
    if (!rc)
        rc = ticket_take(rounds, err);
    if (!rc)
        *ret_coll = rounds->coll;
    rounds_unlock(rounds);
    return rc;
}

void rounds_put(struct rounds *rounds, int code)
{
    ticket_end(rounds, code);
}

/* ---- news of the round, and calls by which the program revokes it ---- */

/* Called by the session's thread: notes whether a change of the membership is coming, which
 * hvd_news tells the program. */
void rounds_watch(struct rounds *rounds, bool coming)
{
    rounds_lock(rounds);
    rounds->about.coming = coming;
    news_update(rounds);
    rounds_unlock(rounds);
}

int rounds_news(struct rounds *rounds)
{
    return atomic_load_explicit(&rounds->about.now, memory_order_relaxed);
}

int rounds_news_fd(struct rounds *rounds, struct hvd_err *err)
{
    int rc;

    rounds_lock(rounds);
    rc = news_open(&rounds->about, err);
    rounds_unlock(rounds);
    return rc;
}

/* Called for hvd_revoke: ends the round for all members, as a failure of this rank would. */
int rounds_revoke(struct rounds *rounds, const char *why, struct hvd_err *err)
{
    struct hvd_err why_revoked;
    int rc;

    rounds_lock(rounds);
    rc = ticket_allow(rounds, false /* the program calls, not the library */, err);
    if (!rc) {
        coll_revoke(rounds->coll, &why_revoked, why);
        ticket_note(rounds, HVD_E_REVOKED, &why_revoked);
        requests_cancel_persists(rounds, rounds->round);
    }
    rounds_unlock(rounds);
    /* HVD_E_REVOKED of ticket_allow: the round is over already, which is what the caller wants */
    return rc == HVD_E_REVOKED ? 0 : rc;
}

/* Called for hvd_fail: keeps the text with which the program says why train will fail. */
int rounds_keep_reason(struct rounds *rounds, const char *text, struct hvd_err *err)
{
    struct hvd_err line; /* err_set cuts the text, and makes one line without control characters */
    int rc = 0;

    (void)err_set(&line, 0, "%s", text);
    rounds_lock(rounds);
    if (rounds->open)
        memcpy(rounds->about.reason, line.text, sizeof(line.text));
    else
        rc = err_set(err, HVD_E_STATE,
                     "hvd_fail: train does not run; call hvd_fail before train returns");
    rounds_unlock(rounds);
    return rc;
}

/* Copies the reason that the program has given in this round by hvd_fail; false: it has given
 * none. */
bool rounds_reason(struct rounds *rounds, char text[ERR_TEXT_MAX])
{
    rounds_lock(rounds);
    memcpy(text, rounds->about.reason, ERR_TEXT_MAX);
    rounds_unlock(rounds);
    return text[0] != '\0';
}

/* ---- whether the round has failed, and why ----------------------------------------------------
 */

/* Returns the code of the round's first failure; 0: the round has not failed. */
int rounds_failed(struct rounds *rounds)
{
    return atomic_load_explicit(&rounds->failed, memory_order_relaxed);
}

/* Copies the first failure of the round: its code (0: the round has not failed) and its text. */
void rounds_why(struct rounds *rounds, struct hvd_err *ret_why)
{
    rounds_lock(rounds);
    (void)err_set(ret_why, rounds->failed, "%s", rounds->why.text);
    rounds_unlock(rounds);
}

/* Called before results in GPU memory become a commit. HVD_E_REVOKED: a collective was ended early,
 * so the results may be wrong and must not be committed; the round then counts as failed. */
int rounds_judge(void *rounds_at, struct hvd_err *err)
{
    struct rounds *rounds = rounds_at;
    struct hvd_err why;
    int rc = 0;

    rounds_lock(rounds);
    if (rounds->coll && !coll_is_whole(rounds->coll)) {
        rc = err_set(&why, HVD_E_REVOKED,
                     "round %" PRIu64 " was revoked before all its collectives had ended; "
                     "return HVD_E_REVOKED from train",
                     rounds->round);
        ticket_note(rounds, rc, &why);
        if (err)
            *err = why;
    }
    rounds_unlock(rounds);
    return rc;
}

uint64_t rounds_calls(struct rounds *rounds)
{
    return atomic_load_explicit(&rounds->calls, memory_order_relaxed);
}

/* Describes the collective in progress, for the watchdog; false: there is none. */
bool rounds_look(struct rounds *rounds, struct coll_wait *ret_wait)
{
    rounds_lock(rounds);
    ret_wait->operation = NULL;
    if (rounds->coll)
        coll_wait_look(rounds->coll, ret_wait);
    /* no collective is in progress, but a thread waits for a request: a send or receive may be */
    if (rounds->coll && !ret_wait->operation && rounds->requests.waiters)
        coll_transfer_look(rounds->coll, ret_wait);
    rounds_unlock(rounds);
    return ret_wait->operation != NULL;
}

/* true: the training thread waits for a checkpoint for which it has asked (persist.h). */
bool rounds_persist(struct rounds *rounds)
{
    return atomic_load(&rounds->requests.persisting) != 0;
}

/* Returns the number of ranks of a group (size true), or the index of this rank in it (size false;
 * -1: this rank is not in it). group NULL: all ranks of the round. */
int rounds_group(struct rounds *rounds, const hvd_group *group, bool size, struct hvd_err *err)
{
    const struct roll_opened *opened = NULL;
    size_t index = 0, part;
    int rc;

    rounds_lock(rounds);
    if (group && rounds->roll)
        opened = roll_find(rounds->roll, group, &part);
    if (group && !opened && !groups_find(rounds->groups, group, &index)) {
        rc = err_set(err, HVD_E_INVAL,
                     "the group is unknown: it was not created since hvd_init, and not opened in "
                     "this round; use a group that hvd_group_create has returned, or open the "
                     "group again in this round");
    } else if (!rounds->roll) {
        rc = err_set(
            err, HVD_E_STATE,
            "the size and rank in a group are asked before the first round; ask only in train");
    } else if (opened) {
        rc = size ? (int)opened->ranks.count : opened->ranks.count ? (int)opened->place : -1;
    } else if (!group) {
        rc = (int)(size ? rounds->roll->size : rounds->roll->rank);
    } else {
        const struct roll_group *in = &rounds->roll->groups[index];

        if (in->part)
            rc = (int)(size ? roll_size(rounds->roll, in->part) : in->place);
        else
            rc = size ? 0 : -1;
    }
    rounds_unlock(rounds);
    return rc;
}

/* ---- groups that are opened while train runs ----------------------------------------------------
 */

/* Takes the ticket for opening or closing a group; `what` is "opened" or "closed". If this rank has
 * started requests for which it has not waited, the call is refused, and the round ends: such a
 * request could run before the opening on this rank, and after it on another one. A request that is
 * done counts too if it was not waited for, because the moment when it is done differs from rank to
 * rank. */
static int group_begin(struct rounds *rounds, const char *what, struct hvd_err *err)
{
    size_t open;
    int rc;

    rounds_lock(rounds);
    rc = ticket_allow(rounds, false /* the program calls, not the library */, err);
    open = rc ? 0 : requests_open(&rounds->requests);
    if (!rc && open) {
        rc = err_set(err, HVD_E_BUSY,
                     "a group is %s while %zu requests of rank %u are open; call hvd_wait for each "
                     "request first",
                     what, open, rounds->roll->rank);
        (void)coll_refuse(rounds->coll, NULL, "%s", err->text);
        ticket_note(rounds, rc, err);
    } else if (!rc) {
        rc = ticket_take(rounds, err);
    }
    rounds_unlock(rounds);
    return rc;
}

/* Ends the round because of a mistake on this rank alone, and gives the ticket back: otherwise the
 * other ranks would wait for this rank. */
static int group_refuse(struct rounds *rounds, int rc, const struct hvd_err *err)
{
    (void)coll_refuse(rounds->coll, NULL, "%s", err->text);
    ticket_end(rounds, rc);
    return rc;
}

/* Opens a group in the running round. All members make this call, which is a collective: it fails
 * on all of them if their rules give different groups. */
int rounds_open_group(struct rounds *rounds, const struct group_rule *rule, hvd_group **ret_group,
                      struct hvd_err *err)
{
    struct coll_opening opening;
    const struct coll_call call = { .kind = COLL_OPEN, .opening = &opening };
    struct roll *roll;
    int rc = group_begin(rounds, "opened", err);

    if (rc)
        return rc;
    roll = rounds->roll;
    if (!ret_group)
        rc = err_set(err, HVD_E_INVAL,
                     "hvd_group_create: ret_group is NULL; pass a pointer that gets the group");
    else if (rule->belongs || !rule->listed)
        rc = roll_divide(roll, rule->belongs, rule->arg, &opening, err);
    else
        rc = roll_divide_ranks(roll, rule->ranks, rule->count, &opening, err);
    if (rc)
        return group_refuse(rounds, rc, err);
    rc = coll_run(rounds->coll, &call, err);
    if (rc) {
        roll_give_up(roll);
    } else {
        rounds_lock(rounds);
        roll_add(roll, ret_group);
        rounds_unlock(rounds);
    }
    ticket_end(rounds, rc);
    return rc;
}

/* Opens a group among its members alone: no other rank makes this call, so requests of this rank
 * may be pending. */
int rounds_open_apart(struct rounds *rounds, const int *ranks, size_t count, uint64_t tag,
                      hvd_group **ret_group, struct hvd_err *err)
{
    struct coll_ranks listed;
    int rc = requests_come(rounds, err);

    if (rc)
        return rc;
    if (!ret_group)
        rc = err_set(err, HVD_E_INVAL,
                     "hvd_group_open: ret_group is NULL; pass a place for the group");
    else
        rc = roll_gather(rounds->roll, ranks, count, &listed, err);
    if (rc) {
        (void)coll_refuse(rounds->coll, NULL, "%s", err->text);
    } else {
        rc = coll_open_group(rounds->coll, &listed, tag, err);
        if (rc)
            roll_give_up(rounds->roll);
    }
    if (!rc) {
        rounds_lock(rounds);
        roll_add(rounds->roll, ret_group);
        rounds_unlock(rounds);
    }
    requests_leave(rounds, rc, err);
    return rc;
}

/* Closes a group that was opened in this round. If all ranks have opened the group, all of them
 * make this call, and it is a collective; a group that its members alone have opened is closed by
 * each of them alone. */
int rounds_close_group(struct rounds *rounds, const hvd_group *group, struct hvd_err *err)
{
    struct coll_opening opening = { .group = 0 };
    const struct coll_call call = { .kind = COLL_CLOSE, .opening = &opening };
    const struct roll_opened *opened;
    size_t part = 0;
    bool closed;
    int rc = requests_come(rounds, err);

    if (rc)
        return rc;
    /* a group that its members alone have opened is closed on this rank, without a message */
    rounds_lock(rounds);
    closed = roll_find(rounds->roll, group, &part) && roll_is_apart(rounds->roll, part);
    if (closed)
        roll_close(rounds->roll, part);
    rounds_unlock(rounds);
    requests_leave(rounds, 0, err);
    if (closed)
        return 0;
    rc = group_begin(rounds, "closed", err);
    if (rc)
        return rc;
    opened = roll_find(rounds->roll, group, &part);
    if (!opened) {
        rc = err_set(err, HVD_E_INVAL,
                     "hvd_group_close: the group is not open; close a group once, in the round in "
                     "which train has opened the group");
        return group_refuse(rounds, rc, err);
    }
    opening.group = rounds->roll->part_count + opened->number;
    rc = coll_run(rounds->coll, &call, err);
    rounds_lock(rounds);
    roll_close(rounds->roll, part);
    rounds_unlock(rounds);
    ticket_end(rounds, rc);
    return rc;
}
