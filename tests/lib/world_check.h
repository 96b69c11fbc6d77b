/*
 * world_check.h: what must be true of every world, judged by the world's own truth and by what is
 * durable, never by what a core says of itself. A violation names its number:
 *
 *     1  all members of a round know the same members; one round at a time makes steps
 *     2  survivors keep the order of their ranks
 *     3  min_np to max_np members, np in the first round
 *     4  launches only where it is listed, connected, not draining, not barred, free; never twice
 *     5  a round resumes from the highest commit of its members, named with all its holders
 *     6  durable before visible; no term, round or incarnation is used twice
 *     7  members at the same step have the same history; who has finished made every step
 *     8  a failure is charged once, to the incarnation that failed, and never to one that had to go
 *     9  every process ends, and is recorded
 *    10  once the faults stop, the job finishes, or ends with a reason that holds
 *    11  a step makes a bounded number of actions
 *    12  what a core shows of itself is so
 *    13  whoever can be reached is told of a round, and of its end
 */
#ifndef TESTS_LIB_WORLD_CHECK_H
#define TESTS_LIB_WORLD_CHECK_H

#include "driver/core/core.h"
#include "tests/lib/world_app.h"
#include "tests/lib/world_deeds.h"

struct world_driver;
struct world_link;
struct world_host;

#define CHECK_ACTIONS_MAX 8192 /* of one step, with up to 64 workers */

/* What the journal says of one worker; and whether it was charged. */
struct world_fact {
    uint64_t incarnation;
    const struct journal_record *launch; /* NULL: not durable */
    const struct journal_record *ended;
    bool told;    /* a LAUNCH has left a driver */
    bool charged; /* durably */
};

struct world_commit {
    uint64_t commit;
    uint64_t checksum;
};

struct world_check {
    bool violated;
    char wrong[1024];
    struct VEC(struct world_fact) facts;
    struct VEC(const struct journal_record *) rounds; /* durable ROUNDs */
    struct VEC(struct world_commit) commits;
    uint64_t term;        /* the highest that is durable */
    uint64_t number;      /* of rounds: the highest that is durable */
    uint64_t told_term;   /* the highest that somebody was told */
    uint64_t told_number; /* of rounds, and by which driver */
    uint64_t told_number_term;
    uint64_t told_round;                  /* the highest whose ROUND was judged */
    uint64_t round_to_all, revoke_to_all; /* being told to everybody; 0: none */
    int64_t to_all_us;                    /* when the driver decided that, */
    const struct world_driver *to_all_by; /* and which it was */
    uint64_t entered_commit;              /* what the last ENTERED round began with */
    uint64_t progress;                    /* the highest round that has made a step */
    bool joined;                          /* a READY is durable */
    bool finished;                        /* a FINISHED is durable */
    bool over;
    bool state_lost;      /* when it was over, nobody held what it could have resumed from */
    uint64_t finish_hash; /* of those that finished; 0: none has */
};

void world_violate(struct world *world, const char *invariant, const char *format, ...)
    PRINTF_LIKE(3, 4);

/* What one core has been told, for judging what it does with it. */
struct world_told *told_create(struct world *world) MUST_CHECK;
void told_free(struct world_told *told);

void check_event(struct world *world, struct world_driver *driver, const struct event *event);
void check_actions(struct world *world, struct world_driver *driver,
                   const struct action_list *list);
/* A frame leaves the driver. False: it is lost, which is a bug that was planted. */
/* The driver has nothing more to say for now: a ROUND or REVOKE that it told was told to each
 * member that it can reach. */
void check_everybody_told(struct world *world, const struct world_driver *driver);

bool check_send(struct world *world, struct world_driver *driver, struct world_link *link,
                struct world_frame *frame);
void check_round_told(struct world *world, const struct msg *msg);
void check_durable(struct world *world, const struct journal_record *record);
void check_charged(struct world *world, const struct blacklist_change *change);
void check_view(struct world *world, const struct world_driver *driver,
                const struct core_view *view);
void check_exit(struct world *world, const struct world_driver *driver);
void check_end(struct world *world);

void check_spawn(struct world *world, const struct world_worker *worker);
void check_place(struct world *world, const struct world_worker *worker, enum world_place one,
                 enum world_place other, const char *action);
void check_enter(struct world *world, const struct world_worker *worker, const struct msg *msg);
void check_progress(struct world *world, const struct world_round *round);
void check_commit(struct world *world, const struct world_worker *worker, uint64_t commit);
void check_finish(struct world *world, const struct world_worker *worker);
void check_release(struct world_check *check);

struct world_fact *fact_of(struct world *world, uint64_t incarnation);
const struct journal_record *durable_round(const struct world *world, uint64_t number);

/* world_bugs.c: what a planted bug makes of a frame. False: nothing is left of it. */
void bug_up(struct world *world, struct world_host *host, struct msg *msg);
bool bug_down(struct world *world, struct msg *msg);

#endif
