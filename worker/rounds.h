/*
 * rounds.h: the connections and collective calls of this process in the running round. While the
 * running round goes on, a separate thread already connects the next round. The training loop
 * enters rounds. The session's thread (the thread that talks to the agent) prepares, abandons and
 * cancels rounds. Any thread of the program may call a collective, but only one thread at a time:
 * the thread that has the ticket. While started requests (requests.h) are pending, no thread of the
 * program can take the ticket.
 */
#ifndef WORKER_ROUNDS_H
#define WORKER_ROUNDS_H

#include "base/time.h"
#include "worker/groups.h"

/* Time limit for connecting a round. All members are ready when a round begins: a member that
 * cannot be reached in this time is behind a firewall, or gone. */
#define ROUNDS_CONNECT_US TIME_MIN

struct rounds;

/* A callback that tells the session how the preparation of a round has ended; outcome->code 0: the
 * round is connected. The connecting thread calls it; rounds_prepare does if there is no memory for
 * the round. */
typedef void rounds_prepared_fn(void *arg, uint64_t round, const struct hvd_err *outcome);

/* Creates the struct rounds of this process, in no round yet. groups stays the caller's; NULL:
 * there are no groups. `prepared` is called with `arg`. */
int rounds_create(const struct groups *groups, rounds_prepared_fn *prepared, void *arg,
                  struct rounds **ret_rounds, struct hvd_err *err) MUST_CHECK;

/* Sets the engine, which has what all rounds share (the address for peers, the settings), and must
 * outlive the rounds. Without an engine only rounds of one worker are possible. */
int rounds_use_engine(struct rounds *rounds, struct coll_engine *engine,
                      struct hvd_err *err) MUST_CHECK;

/* Sets the GPU, without which calls on GPU memory are not possible, and the timeline that shows
 * collectives (may be NULL). Both must live as long as the rounds. */
struct gpu_use;
void rounds_use(struct rounds *rounds, struct gpu_use *gpu, struct timeline *timeline);

/* Sets the fusion threshold: small requests are fused up to this many bytes (fusion.h). 0, the
 * value after rounds_create: no requests are fused. The value must be equal on all members. */
void rounds_use_fusion(struct rounds *rounds, size_t bytes);

/* After this call no round is prepared, and the connecting thread does not call `prepared`. */
void rounds_close(struct rounds *rounds);
/* Ends a collective in progress and frees the struct with all that it has; calls no callback. */
void rounds_free(struct rounds *rounds);

/* ---- called by the session's thread; none of these functions waits ---- */

void rounds_prepare(struct rounds *rounds, uint64_t incarnation, const struct msg *prepare);
/* gives up the preparation of this round, and of any round before it */
void rounds_abandon(struct rounds *rounds, uint64_t round);
/* cancels this round and all earlier rounds */
void rounds_cancel(struct rounds *rounds, uint64_t round);

/* ---- called by the training loop ---- */

/* A round as its ROUND or PREPARE message describes it. The data must be valid during the call. */
struct rounds_order {
    uint64_t incarnation; /* the incarnation of this worker */
    uint64_t round;
    const struct msg_member_list *members;
    struct msg_bytes secret; /* the secret of the round; a round of one member needs none */
};

/* Leaves the last round and enters this one. prepared true: the collectives that were connected
 * while the last round went on are used, if they still exist; otherwise the function makes and
 * connects them. */
int rounds_enter(struct rounds *rounds, const struct rounds_order *order, bool prepared,
                 struct hvd_err *err) MUST_CHECK;

/* Allows (open true) or forbids (open false) collectives of the program. After a call with false
 * all pending requests have ended, and the library does not touch their memory any more. */
void rounds_open(struct rounds *rounds, bool open);

/* Ends the call of a thread that is still in a collective, and waits until no work of the round
 * touches GPU memory any more: then entries of the state that are in GPU memory can be restored.
 * HVD_E_TIMEOUT, HVD_E_IO: the GPU does not end its work, so this process can never train again. */
int rounds_settle(struct rounds *rounds, struct hvd_err *err) MUST_CHECK;

/* Leaves the round normally, because this worker has finished or goes on to the next round:
 * members that are still in the round are not disturbed when this process ends. Waits for
 * members whose GPU still reads or writes memory of this worker's GPU (coll_part). */
void rounds_finish(struct rounds *rounds);

/* Notes that train was told to return the code `news`. A code above 0: until the next round every
 * collective returns HVD_E_STATE. */
void rounds_tell(struct rounds *rounds, int news);

/* rounds_failed returns the code of the round's first failure; 0: the round has not failed.
 * rounds_why also returns the text of that failure. */
int rounds_failed(struct rounds *rounds);
void rounds_why(struct rounds *rounds, struct hvd_err *ret_why);

/* A copier_judge_fn, for any thread: says whether the results that are in GPU memory now may become
 * a commit. HVD_E_REVOKED: a collective was ended early, although its call may have returned 0. */
int rounds_judge(void *rounds, struct hvd_err *err) MUST_CHECK;

/* ---- called for each collective of the program ---- */

/* Takes the ticket and returns the collectives of the running round, valid until rounds_put.
 * `inside` is true for the library's own calls, before rounds_open. HVD_E_STATE: no call is allowed
 * now; HVD_E_REVOKED: the round has failed; HVD_E_BUSY: another thread has the ticket. */
int rounds_get(struct rounds *rounds, bool inside, struct coll **ret_coll,
               struct hvd_err *err) MUST_CHECK;
/* gives the ticket back; code is the result of the call that was made with it */
void rounds_put(struct rounds *rounds, int code);

/* Answers hvd_group_size (size is true) or hvd_group_rank (size is false). */
int rounds_group(struct rounds *rounds, const hvd_group *group, bool size, struct hvd_err *err);

/* ---- called by the watchdog ---- */

uint64_t rounds_calls(struct rounds *rounds); /* number of collectives that have ended */
/* Describes the collective in progress. Returns false if there is none. */
bool rounds_look(struct rounds *rounds, struct coll_wait *ret_wait);

#endif
