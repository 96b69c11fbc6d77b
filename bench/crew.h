/*
 * crew.h: processes that do together what their parent says, a turn at a time, and between turns
 * sleep: several crews, of several engines, take turns in one run, so that whatever else the
 * machine does falls on all alike.
 *
 *     parent    crew_fork ──► crew_turn, again and again ──► crew_end
 *     member    crew_next ──► crew_gate, the work ──► crew_done ──► crew_next, until it is false
 *
 * What they share is a file without a name, so that a program that was started by somebody else
 * (mpirun) can be a member too. Whoever finds that something is wrong says so and ends; the others
 * end with their parent.
 */
#ifndef BENCH_CREW_H
#define BENCH_CREW_H

#include "base/err.h"

#include <stdatomic.h>
#include <sys/types.h>

#define CREW_MAX         32
#define CREW_CONTACT_MAX 128
#define CREW_FIGURES     4

struct crew_order { /* what they mean is between the parent and its members */
    uint32_t work;  /* 0: go home */
    uint32_t times;
    uint64_t bytes, seed;
};

struct crew_member {
    _Atomic uint32_t done; /* the last turn that it has ended */
    uint64_t incarnation;
    char contact[CREW_CONTACT_MAX];
    int64_t figures[CREW_FIGURES]; /* of its last turn */
};

struct crew_board { /* shared */
    uint32_t size;
    int32_t parent;
    _Atomic uint32_t turn, done; /* which turn it is; grows with each member that has ended one */
    _Atomic uint32_t gate, arrived;
    struct crew_order order;
    struct crew_member members[CREW_MAX];
};

struct crew_seat { /* a member's place */
    struct crew_board *board;
    uint32_t rank, size;
    uint32_t turn; /* the last that it has seen */
};

typedef void crew_live_fn(struct crew_seat *seat, const void *arg);

struct crew { /* the parent's */
    const char *name;
    struct crew_board *board;
    int fd;
    pid_t pids[CREW_MAX]; /* of an executed crew the first alone */
    uint32_t size;
    crew_live_fn *live;
    const void *arg;
};

/* ---- the parent ---- */

/* Members are processes forked from here, which live and then exit. All is borrowed. */
void crew_fork(struct crew *crew, const char *name, uint32_t size, crew_live_fn *live,
               const void *arg);

/* A member of this rank in the place of one that is gone. */
void crew_fork_one(struct crew *crew, uint32_t rank);

/* Members come from a command: the words, then the path for crew_sit. The last word is NULL. */
void crew_execute(struct crew *crew, const char *name, uint32_t size, const char *const *words);

/* A turn of all, until the last has ended it. */
void crew_turn(struct crew *crew, const struct crew_order *order);

/* The same in two halves; nobody is missed who is absent. False: not all the others have ended it
 * by then. */
void crew_begin(struct crew *crew, const struct crew_order *order);
bool crew_ended(struct crew *crew, uint32_t absent_rank, int64_t deadline_us);

int64_t crew_most(const struct crew *crew, size_t figure); /* of all members */

void crew_end(struct crew *crew);  /* they go home */
void crew_kill(struct crew *crew); /* they are killed, those that are stopped too */

/* ---- a member ---- */

void crew_sit(struct crew_seat *seat, const char *path, uint32_t rank); /* of an executed crew */
bool crew_next(struct crew_seat *seat, struct crew_order *ret_order);   /* false: go home */
void crew_gate(struct crew_seat *seat); /* until everybody is here */
void crew_done(struct crew_seat *seat);

/* ---- both ---- */

/* Both say what is wrong, and end the process; the second only if something is. */
NORETURN void crew_fail(int rc, const char *what, const struct hvd_err *err);
void crew_must(int rc, const char *what, const struct hvd_err *err);

/* As long as *word is value, or about a tenth of a second. */
void crew_sleep(_Atomic uint32_t *word, uint32_t value);
void crew_wake(_Atomic uint32_t *word);

#endif
