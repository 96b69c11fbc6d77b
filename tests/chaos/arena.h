/*
 * arena.h: the job under attack: its folder, its hosts with their discovery script, its driver.
 *
 * All files are in one folder. Every process of the job has CHAOS_ARENA=FOLDER in its environment,
 * so a process that was left behind is found, with any parent. In the folder:
 *
 *     hosts         what the discovery script prints when its mood is NULL
 *     mood          what the script does instead, see arena_mood
 *     discover      the script
 *     looks         one byte for each run of the script, see arena_looks
 *     steps         the lines that the trainers write, see steps.h
 *     wrong         one line for each error that a trainer has found; not empty: a violation
 *     stop          when this file exists, the trainers end
 *     samples/      the trainers' HVD_SAMPLE_LOG
 *     job/          the state directory
 *     checkpoints/  --checkpoint-dir; a replay has none. With --checkpoints s3 a copy of the bucket
 *     driver.log    the driver's log, with a line for each fault
 */
#ifndef TESTS_CHAOS_ARENA_H
#define TESTS_CHAOS_ARENA_H

#include "base/err.h"
#include "tests/chaos/plan.h"

#include <sys/types.h>

#define ARENA_HOSTS       64
#define ARENA_PATH        192
#define ARENA_NAME        24
#define ARENA_CHECKPOINTS 3 /* the newest ones, which the job keeps */

struct networks;    /* the networks of its hosts: networks.h */
struct disk_faults; /* the faults in the preloaded library: disk_faults.h */

struct arena_host {
    char name[ARENA_NAME]; /* "127.0.0.3", or the host's address in its network */
    uint32_t slots;
    bool listed;
};

struct arena {
    const struct chaos_plan *plan; /* borrowed */
    /* more options for the driver, which replace earlier ones; NULL: none. Borrowed */
    const char *const *options;
    const volatile bool *broken_off; /* set by Ctrl-C: every wait then gives up */
    char folder[ARENA_PATH];
    struct arena_host hosts[ARENA_HOSTS];
    uint32_t host_count;
    struct networks *networks; /* NULL: the hosts are addresses of the loopback */
    /* The process that the campaign has started: the parent of drivers. 0: none runs. */
    pid_t driver;
    int driver_status; /* the wait status of the last one that has ended */
    pid_t former;      /* the one that arena_take_over or arena_stand_by has left; 0: none */
    struct disk_faults *disk_faults, *folder_faults; /* of the driver; of checkpoints/ */
};

/* Makes the arena with all hosts listed; no driver runs yet. With networks, an sshd runs for each
 * host. */
int arena_open(struct arena *arena, const struct chaos_plan *plan, const volatile bool *broken_off,
               struct hvd_err *err) MUST_CHECK;

/* Ends every process of the arena; removes the folder unless keep is true. */
void arena_close(struct arena *arena, bool keep);

/* Starts a driver: the first one, or the successor of a dead one, with the same command line. */
int arena_start(struct arena *arena, struct hvd_err *err) MUST_CHECK;

/* Starts another driver, which takes the job over from a living one. The new driver is now the
 * arena's; the caller waits for the end of the old one, `former`. */
int arena_take_over(struct arena *arena, struct hvd_err *err) MUST_CHECK;

/* Starts a standby, which is now the arena's driver, and waits as long as `former` lives. */
int arena_stand_by(struct arena *arena, struct hvd_err *err) MUST_CHECK;

/* true: the driver has ended; driver is 0 from now on, and driver_status is its wait status. Never
 * waits. */
bool arena_driver_ended(struct arena *arena);

/* Waits until the driver has ended, or returns HVD_E_TIMEOUT. */
int arena_await_driver(struct arena *arena, int64_t deadline_us, struct hvd_err *err) MUST_CHECK;

/* "FOLDER/NAME" */
const char *arena_path(const struct arena *arena, const char *name, char path[ARENA_PATH]);

/* Appends a line to driver.log. */
PRINTF_LIKE(2, 3) void arena_log(const struct arena *arena, const char *format, ...);

/* Writes the listed hosts into the file `hosts`, in one step, so that the script reads the whole
 * list. */
int arena_list(struct arena *arena, struct hvd_err *err) MUST_CHECK;

/* Sets what the discovery script does from now on: print the hosts (NULL), "fail", "hang",
 * "rubbish", "empty". */
int arena_mood(struct arena *arena, const char *mood, struct hvd_err *err) MUST_CHECK;

/* Runs hvd-elastic with these words for this job ("drain", "127.0.0.2"). Its output goes to out
 * (may be NULL). Returns its exit code, or a negative error. The command is killed after a time
 * limit. */
struct buf;
int arena_ask(struct arena *arena, const char *const *words, struct buf *out,
              struct hvd_err *err) MUST_CHECK;

/* The number of workers that train, as the driver says; 0: also when the driver does not
 * answer. */
uint32_t arena_trainers(struct arena *arena);

/* The driver's --stall-shutdown. */
int64_t arena_stall_us(const struct arena *arena);

/* true: the driver says that its round trains, and no change of the membership is under way. */
bool arena_is_at_rest(struct arena *arena);

/* How often the discovery script has begun. A run reads the list after it was counted, and the next
 * run begins when the driver has handled the list. */
uint64_t arena_looks(const struct arena *arena);

/* The number of workers when every listed slot trains. */
uint32_t arena_whole(const struct arena *arena);

#endif
