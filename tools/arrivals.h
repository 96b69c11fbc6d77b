/*
 * arrivals.h: reads the lines of a job's timelines (docs/timeline.md), and says which worker was
 * the last to come to each collective. A call counts when it is done and when the files hold the
 * calls of all members of its group.
 *
 *     arrivals_line, for every line of all files ──► arrivals_judge ──► the results
 */
#ifndef TOOLS_ARRIVALS_H
#define TOOLS_ARRIVALS_H

#include "base/arena.h"
#include "base/names.h"
#include "base/text.h"
#include "base/vec.h"

/* The fields of one line of a timeline that this tool needs. Texts are as in the file, with
 * escapes. */
struct arrivals_event {
    struct span phase, category, name;
    /* "pid": the incarnation of the worker; of a worker that is alone its pid */
    uint64_t process;
    uint64_t began_us, lasted_us;
    /* The arguments of the event ("args"); those of a collective: its number, round, group, the
     * lowest rank of its group, and the number of members. */
    struct span text;  /* in an event that gives a name: that name */
    struct span ended; /* "done", or the name of the error with which the call ended */
    uint64_t number, round, group, lowest_rank, members;
};

/* Parses a line without its newline, strictly. 0: *ret_event is the event; HVD_DONE: the line has
 * no event; HVD_E_INVAL: the err says what is wrong with the line. */
int arrivals_read(struct span line, struct arrivals_event *ret_event,
                  struct hvd_err *err) MUST_CHECK;

struct arrivals_worker {
    uint64_t process;  /* the "pid" of the worker's events */
    const char *name;  /* the newest name of the worker */
    uint64_t last;     /* number of calls to which this worker came last */
    uint64_t alone_us; /* in those calls together: how long all others waited for this worker */
    uint64_t most_us;  /* the longest wait of all others for this worker */
};

/* A collective call of one worker. Its operation is known by round, group, lowest rank of the
 * group, and number in the group. */
struct arrivals_call {
    uint64_t round, group, lowest_rank, number, began_us, ended_us, members;
    uint32_t worker; /* the index of the worker in `workers` */
    bool needs_all;  /* true: no member ends its call before all members have made theirs */
};

struct arrivals {
    struct arena memory;
    struct names names;
    struct VEC(struct arrivals_worker) workers; /* sorted by alone_us after arrivals_judge */
    struct VEC(struct arrivals_call) calls;
    uint64_t job; /* when the job began; 0: no line has told it yet */

    /* the results of arrivals_judge */
    uint64_t compared, partial; /* calls with the lines of all members; of only some members */
    uint64_t spread_us; /* sum, over all calls, of the time from the first member to the last */
    struct {
        uint64_t us, round, number;
    } worst;           /* the call with the largest spread */
    uint64_t clock_us; /* the clocks of the machines differ by at least this time */
};

void arrivals_init(struct arrivals *arrivals);
void arrivals_release(struct arrivals *arrivals);

/* Reads one line. HVD_E_INVAL: the line is not of a timeline, or is of another job's timeline;
 * HVD_E_NOMEM; HVD_E_LIMIT: too many calls or workers. */
int arrivals_line(struct arrivals *arrivals, struct span line, struct hvd_err *err) MUST_CHECK;
/* Computes the results from all lines. HVD_E_INVAL: a call of a worker was read twice, for example
 * because a file was named twice. */
int arrivals_judge(struct arrivals *arrivals, struct hvd_err *err) MUST_CHECK;

#endif
