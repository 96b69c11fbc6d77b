/*
 * rounds.h: the collectives of this process: those of the running round, and those of the next one,
 * which a thread of its own connects beside it.
 *
 * The loop enters rounds; the session's thread prepares, abandons and cancels them; any thread of
 * the program may be inside a collective, one at a time: it has the turn. While requests are
 * pending (requests.h) the turn is theirs.
 */
#ifndef WORKER_ROUNDS_H
#define WORKER_ROUNDS_H

#include "worker/groups.h"

struct rounds;

/* Says how a preparation has ended. From a thread of its own. */
typedef void rounds_prepared_fn(void *arg, uint64_t round, const struct hvd_err *outcome);

/* groups is borrowed as long as they live; NULL: none. */
int rounds_create(const struct groups *groups, rounds_prepared_fn *prepared, void *arg,
                  struct rounds **ret_rounds, struct hvd_err *err) MUST_CHECK;

/* Without one there are rounds of one worker only. Borrowed as long as they live. */
int rounds_use_engine(struct rounds *rounds, struct coll_engine *engine,
                      struct hvd_err *err) MUST_CHECK;

/* Without it there are no calls on memory of a GPU; likewise. */
struct gpu_use;
void rounds_use_gpu(struct rounds *rounds, struct gpu_use *gpu);

/* Where collectives are shown; likewise. */
void rounds_use_timeline(struct rounds *rounds, struct timeline *timeline);

/* From here on nothing is prepared, and `prepared` is not called by a thread of its own. */
void rounds_close(struct rounds *rounds);
void rounds_free(struct rounds *rounds); /* no hook is called; a collective in progress ends */

/* ---- by the session's thread; none of them waits --------------------------------------------- */

void rounds_prepare(struct rounds *rounds, uint64_t incarnation, const struct msg *prepare);
void rounds_abandon(struct rounds *rounds, uint64_t round);
void rounds_cancel(struct rounds *rounds, uint64_t round); /* this and all before it */

/* ---- by the loop ----------------------------------------------------------------------------- */

/* The round of before is over; this one's collectives are connected, if they were not prepared. */
int rounds_enter(struct rounds *rounds, uint64_t incarnation, uint64_t round,
                 const struct msg_member_list *members, bool prepared,
                 struct hvd_err *err) MUST_CHECK;

/* May the program use them? When it no longer may, what is pending has ended before this returns:
 * its memory is not touched any more. */
void rounds_open(struct rounds *rounds, bool open);

/* After that: nothing of the round moves in the memory of a GPU any more, and what is there may be
 * restored. Whoever is inside a collective of it still comes out first. HVD_E_TIMEOUT, HVD_E_IO:
 * this process is of no more use. */
int rounds_settle(struct rounds *rounds, struct hvd_err *err) MUST_CHECK;

/* This worker has finished, or goes on to the next round: whoever is still in this one is not
 * disturbed when its process ends. Waits for them if they need what it has on its GPU (coll_part).
 */
void rounds_finish(struct rounds *rounds);

/* Train has been told something that it is to return: until the next round it gets HVD_E_STATE from
 * every collective. */
void rounds_tell(struct rounds *rounds, int news);

/* With what the first collective of this round that failed has failed; 0: none has. */
int rounds_failed(struct rounds *rounds);
void rounds_why(struct rounds *rounds, struct hvd_err *ret_why); /* with its text */

/* Is what a device has done so far what it was told to do? HVD_E_REVOKED: a collective was ended
 * there before its end, though its call may have returned well. Any thread. */
int rounds_judge(struct rounds *rounds, struct hvd_err *err) MUST_CHECK;

/* ---- by whoever uses them -------------------------------------------------------------------- */

/* The collectives of the running round, until rounds_put. inside: by the library itself, between
 * rounds_enter and rounds_open. HVD_E_STATE, HVD_E_BUSY. */
int rounds_get(struct rounds *rounds, bool inside, struct coll **ret_coll,
               struct hvd_err *err) MUST_CHECK;
void rounds_put(struct rounds *rounds, int code); /* how it went */

/* hvd_group_size, or hvd_group_rank. */
int rounds_group(struct rounds *rounds, const hvd_group *group, bool size, struct hvd_err *err);

/* For the watchdog: how many collectives have ended. */
uint64_t rounds_calls(struct rounds *rounds);

/* For the watchdog. false: no collective is in progress. */
bool rounds_look(struct rounds *rounds, struct coll_wait *ret_wait);

#endif
