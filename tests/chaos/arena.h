/*
 * arena.h: the job that is attacked: its folder, its hosts and their discovery script, its driver.
 *
 * Everything lies in one folder, and every process of it has CHAOS_ARENA=FOLDER in its environment,
 * so that what is left behind is found whoever its parent is. In the folder:
 *
 *     hosts         what the discovery script prints, when its mood is good
 *     mood          what the script does instead: see arena_mood
 *     discover      the script
 *     steps         what the trainers write: steps.h
 *     wrong         a line for each thing that a trainer has found wrong; empty, or a violation
 *     stop          when it is there the trainers come to their end
 *     samples/      their HVD_SAMPLE_LOG
 *     job/          the state directory
 *     driver.log    what the driver says
 */
#ifndef TESTS_CHAOS_ARENA_H
#define TESTS_CHAOS_ARENA_H

#include "base/err.h"
#include "tests/chaos/plan.h"

#include <sys/types.h>

#define ARENA_HOSTS 64
#define ARENA_PATH  192
#define ARENA_NAME  24

struct networks; /* its hosts' networks: networks.h */
struct weather;  /* what the driver's machine is told by its preloaded library: weather.h */

struct arena_host {
    char name[ARENA_NAME]; /* "127.0.0.3", or the address in its network */
    uint32_t slots;
    bool listed;
};

struct arena {
    const struct chaos_plan *plan;   /* borrowed */
    const char *const *options;      /* more of the driver's, which win; NULL: none. Borrowed */
    const volatile bool *broken_off; /* by Ctrl-C: whatever waits gives up */
    char folder[ARENA_PATH];
    struct arena_host hosts[ARENA_HOSTS];
    uint32_t host_count;
    struct networks *networks; /* NULL: the hosts are addresses of the loopback */
    pid_t driver;              /* 0: none runs */
    int driver_status;         /* of waitpid, of the last one that has ended */
    struct weather *weather;   /* mapped; the driver's process reads it */
};

/* All hosts are there and listed; nothing runs yet. In namespaces: sshd runs in each. */
int arena_open(struct arena *arena, const struct chaos_plan *plan, const volatile bool *broken_off,
               struct hvd_err *err) MUST_CHECK;

/* Ends every process of it, by its mark, and removes the folder unless it is to be kept. */
void arena_close(struct arena *arena, bool keep);

/* A driver is started: the first, or the successor of one that has died. The same command line. */
int arena_start(struct arena *arena, struct hvd_err *err) MUST_CHECK;

/* One more, which takes the job over from a driver that lives, and is the arena's from now on. The
 * former is the caller's to wait for. */
int arena_take_over(struct arena *arena, struct hvd_err *err) MUST_CHECK;

/* Has the driver ended? Then driver is 0 from now on, and driver_status says how. Never waits. */
bool arena_driver_ended(struct arena *arena);

/* Until it has: HVD_E_TIMEOUT. */
int arena_await_driver(struct arena *arena, int64_t deadline_us, struct hvd_err *err) MUST_CHECK;

/* "FOLDER/NAME" */
const char *arena_path(const struct arena *arena, const char *name, char path[ARENA_PATH]);

/* The hosts that are listed, written so that the script never sees half of them. */
int arena_list(struct arena *arena, struct hvd_err *err) MUST_CHECK;

/* What the script does from now on: print the hosts (NULL), "fail", "hang", "rubbish", "empty". */
int arena_mood(struct arena *arena, const char *mood, struct hvd_err *err) MUST_CHECK;

/* A verb of hvd-elastic for this job ("drain", "127.0.0.2"), what it prints in out (may be NULL);
 * its exit code, or a negative error. Ended after a bound. */
struct buf;
int arena_ask(struct arena *arena, const char *const *words, struct buf *out,
              struct hvd_err *err) MUST_CHECK;

/* Workers that there are when all that is listed trains. */
uint32_t arena_whole(const struct arena *arena);

#endif
