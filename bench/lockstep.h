/*
 * lockstep.h: processes that all run the same order of their parent, and sleep between two orders.
 * Several sets of processes, of several engines, take turns in one run, so that other load of the
 * machine falls on all of them alike.
 *
 *     parent    lockstep_fork ──► lockstep_round, again and again ──► lockstep_end
 *     member    lockstep_next ──► lockstep_gate, the work ──► lockstep_done ──► lockstep_next,
 * until it is false
 *
 * Parent and members share a file without a name, so that a program that another launcher (mpirun)
 * has started can be a member too. A process that finds a mistake names it and ends; the others end
 * with their parent.
 */
#ifndef BENCH_LOCKSTEP_H
#define BENCH_LOCKSTEP_H

#include "base/err.h"

#include <stdatomic.h>
#include <sys/types.h>

#define LOCKSTEP_MAX         32
#define LOCKSTEP_CONTACT_MAX 128
#define LOCKSTEP_FIGURES     4

struct lockstep_order { /* parent and members agree on the meaning */
    uint32_t work;      /* 0: end */
    uint32_t times;
    uint64_t bytes, seed;
};

struct lockstep_member {
    _Atomic uint32_t done; /* the last round that this member has ended */
    uint64_t incarnation;
    char contact[LOCKSTEP_CONTACT_MAX];
    int64_t figures[LOCKSTEP_FIGURES]; /* of its last round */
};

struct lockstep_board { /* shared */
    uint32_t size;
    int32_t parent;
    _Atomic uint32_t turn, done; /* the number of the round; the members that have ended it */
    _Atomic uint32_t gate, arrived;
    struct lockstep_order order;
    struct lockstep_member members[LOCKSTEP_MAX];
};

struct lockstep_self { /* a member, as it sees the set */
    struct lockstep_board *board;
    uint32_t rank, size;
    uint32_t turn; /* the last round that it has seen */
};

typedef void lockstep_live_fn(struct lockstep_self *seat, const void *arg);

struct lockstep { /* the parent's side */
    const char *name;
    struct lockstep_board *board;
    int fd;
    pid_t pids[LOCKSTEP_MAX]; /* of an executed set only the first */
    uint32_t size;
    lockstep_live_fn *live;
    const void *arg;
};

/* ---- the parent ---- */

/* Forks the members, which run `live` and then exit. All pointers are borrowed. */
void lockstep_fork(struct lockstep *set, const char *name, uint32_t size, lockstep_live_fn *live,
                   const void *arg);

/* Forks a member of this rank again, after its predecessor has ended. */
void lockstep_fork_one(struct lockstep *set, uint32_t rank);

/* Starts the members by a command: the words, then the path for lockstep_sit. The last word is
 * NULL. */
void lockstep_execute(struct lockstep *set, const char *name, uint32_t size,
                      const char *const *words);

/* One round of all members, until the last has ended it. */
void lockstep_round(struct lockstep *set, const struct lockstep_order *order);

/* The same in two halves. An absent rank is not waited for. False: a member has not ended the round
 * by the deadline. */
void lockstep_begin(struct lockstep *set, const struct lockstep_order *order);
bool lockstep_ended(struct lockstep *set, uint32_t absent_rank, int64_t deadline_us);

int64_t lockstep_most(const struct lockstep *set, size_t figure); /* of all members */

void lockstep_end(struct lockstep *set);  /* the members end */
void lockstep_kill(struct lockstep *set); /* the members are killed, stopped ones too */

/* ---- a member ---- */

void lockstep_sit(struct lockstep_self *seat, const char *path,
                  uint32_t rank); /* of an executed set */
bool lockstep_next(struct lockstep_self *seat, struct lockstep_order *ret_order); /* false: end */
void lockstep_gate(struct lockstep_self *seat); /* until all members are here */
void lockstep_done(struct lockstep_self *seat);

/* ---- both ---- */

/* Both name the failure and end the process; lockstep_must only after a failure (rc is not 0). */
NORETURN void lockstep_fail(int rc, const char *what, const struct hvd_err *err);
void lockstep_must(int rc, const char *what, const struct hvd_err *err);

/* Sleeps while *word is value, for about a tenth of a second at most. */
void lockstep_sleep(_Atomic uint32_t *word, uint32_t value);
void lockstep_wake(_Atomic uint32_t *word);

#endif
