/*
 * world_check.h: the invariants of every world. They are judged by what the world itself knows and
 * by what is durable, never by what a core says of itself. A violation names its number:
 *
 *     1  all members of a round know the same members; one round at a time makes steps
 *     2  survivors keep the order of their ranks
 *     3  min_np to max_np members, np in the first round
 *     4  launches only in a slot that is listed, connected, not draining, not barred, free; once
 *     5  a round resumes from the highest commit of its members, named with all its holders
 *     6  durable before visible; no term, round or incarnation is used twice
 *     7  members at the same step have the same history; a member that finishes made every step
 *     8  a failure is charged once, to the incarnation that failed, never to one told to leave
 *     9  every process ends, and is recorded
 *    10  once the faults stop, the job finishes, or ends with a reason that holds
 *    11  a step makes a bounded number of actions
 *    12  what a core shows of itself is true
 *    13  each member that can be reached is told of a round, and of its end
 *    14  a lie of an agent is not believed, and harms no other host
 *    15  complete checkpoints, and going back to one: world_store.c. 16  etcd: world_claim.h
 */
#ifndef TESTS_WORLD_WORLD_CHECK_H
#define TESTS_WORLD_WORLD_CHECK_H

#include "driver/core/core.h"
#include "tests/world/world_app.h"
#include "tests/world/world_commands.h"

struct world_driver;
struct world_link;
struct world_host;

#define CHECK_ACTIONS_MAX 8192 /* actions of one step, with up to 64 workers */

/* The journal's records of one worker, and whether a failure was charged to it. */
struct world_fact {
    uint64_t incarnation;
    const struct journal_record *launch; /* NULL: not durable */
    const struct journal_record *ended;
    bool meant;   /* true: a driver has decided on a LAUNCH, which it may say again */
    bool told;    /* true: a LAUNCH has left a driver */
    bool charged; /* true: the charge is durable */
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
    uint64_t term;      /* the highest term that is durable */
    uint64_t number;    /* the highest round number that is durable */
    uint64_t told_term; /* the highest term that a member was told */
    /* the highest round number that a member was told; the next field: the term of that driver */
    uint64_t told_number;
    uint64_t told_number_term;
    uint64_t told_round; /* the highest round whose ROUND was judged */
    /* the round that is being told to all members, or revoked at all members; 0: none */
    uint64_t round_to_all, revoke_to_all;
    int64_t to_all_us;                    /* when the driver decided on that ROUND or REVOKE */
    const struct world_driver *to_all_by; /* the driver that decided on that ROUND or REVOKE */
    uint64_t entered_commit;              /* the commit with which the last ENTERED round began */
    uint64_t progress;                    /* the highest round that has made a step */
    const struct world_link *liar;        /* a lie of this agent is before the driver; NULL: none */
    bool joined;                          /* true: a READY is durable */
    bool finished;                        /* true: a FINISHED is durable */
    bool held;                            /* true: the host that lies holds a round for ever */
    bool over;
    bool state_lost;      /* true: when the job was over, no host held a commit to resume from */
    uint64_t finish_hash; /* the hash of the members that finished; 0: none has */
};

void world_violate(struct world *world, const char *invariant, const char *format, ...)
    PRINTF_LIKE(3, 4);

/* The events that one core has been told; by these events the core's actions are judged. */
struct world_told *told_create(struct world *world) MUST_CHECK;
void told_free(struct world_told *told);

void check_event(struct world *world, struct world_driver *driver, const struct event *event);
void check_actions(struct world *world, struct world_driver *driver,
                   const struct action_list *list);
/* The driver has no more actions for now: each member that it can reach was told of a ROUND. */
void check_everybody_told(struct world *world, const struct world_driver *driver);

/* A frame leaves the driver. false: the frame is lost, by a planted bug. */
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

/* world_bugs.c: a planted bug may change a message on its way up or down. false: the message is
 * lost. */
void bug_up(struct world *world, struct world_host *host, struct msg *msg);
bool bug_down(struct world *world, struct msg *msg);
/* The same for a lie, which a planted bug lets come from the host that it is about. */
void bug_lie(struct world *world, struct event *event);

#endif
