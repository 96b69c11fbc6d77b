/*
 * timeline.h: what a worker did when, in a file that chrome://tracing and Perfetto show: the trace
 * event format, as an array whose closing bracket is left out, so that it may end at any line.
 *
 * All workers of a machine, or of machines that share a file system, write to one file. A worker is
 * a "process" in it, with the lanes below. A NULL timeline takes everything and does nothing, for
 * the price of a branch. Nothing here fails: what cannot be written is left out, and said once.
 *
 * For any thread but one that must never wait: the file may be on a slow disk. Of one lane the
 * events do not overlap, or one lies in the other.
 */
#ifndef TIMELINE_TIMELINE_H
#define TIMELINE_TIMELINE_H

#include "base/err.h"

struct timeline;

enum timeline_lane {
    TIMELINE_ROUNDS = 1,
    TIMELINE_CHANGES, /* recoveries and switches, and the phases of each */
    TIMELINE_STATE,   /* commits and restores */
    TIMELINE_COLLECTIVES,
    TIMELINE_PHASES, /* of collectives */
};

/* A text, or a number where text is NULL. Of a long text the beginning is shown. */
struct timeline_arg {
    const char *name;
    const char *text;
    int64_t number;
};

/* Times are by clock_now_us. Borrowed during the call, as all that is handed in here. */
struct timeline_event {
    enum timeline_lane lane;
    const char *name;
    int64_t begun_us, ended_us;
    const struct timeline_arg *args;
    size_t arg_count;
};

struct timeline_options {
    const char *path;
    const char *job;
    int64_t
        job_began_us; /* by the wall clock: one number for all of a job, higher for a later one */
    uint64_t process; /* which is not used again in the job: the incarnation */
    /* Says once that nothing more is written; any thread that writes. Or NULL. */
    void (*complain)(void *arg, const char *text);
    void *arg;
};

/*
 * The file is made, or replaced when it is a timeline of an earlier job; of this job it is gone on
 * with. HVD_E_EXISTS: it is no timeline; HVD_E_STATE: it is one of a later job; HVD_E_NOMEM;
 * HVD_E_IO, HVD_E_DENIED, HVD_E_NOTFOUND, HVD_E_FULL.
 */
int timeline_open(const struct timeline_options *options, struct timeline **ret_timeline,
                  struct hvd_err *err) MUST_CHECK;
void timeline_close(
    struct timeline *timeline); /* what is to be written is; no other thread is in */

/* The clock, for what is handed in; 0 without a timeline, when nobody looks at it. */
int64_t timeline_now_us(const struct timeline *timeline);

/* ---- by way of the wrappers below ------------------------------------------------------------ */

void timeline_put_name(struct timeline *timeline, const char *name, uint32_t rank);
void timeline_put_event(struct timeline *timeline, const struct timeline_event *event);
void timeline_put_mark(struct timeline *timeline, const struct timeline_event *event);
void timeline_put_phase(struct timeline *timeline, const char *name, uint64_t bytes,
                        int64_t begun_us, int64_t ended_us);
void timeline_put_out(struct timeline *timeline);

/* ---- what is shown --------------------------------------------------------------------------- */

/* What this process is called from now on, and that it is shown at its rank. */
static inline void timeline_name(struct timeline *timeline, const char *name, uint32_t rank)
{
    if (timeline)
        timeline_put_name(timeline, name, rank);
}

/* From begun_us to ended_us. */
static inline void timeline_event(struct timeline *timeline, const struct timeline_event *event)
{
    if (timeline)
        timeline_put_event(timeline, event);
}

/* At begun_us. */
static inline void timeline_mark(struct timeline *timeline, const struct timeline_event *event)
{
    if (timeline)
        timeline_put_mark(timeline, event);
}

/* A part of a collective: "copy in", "reduce", "between hosts", "copy out". bytes 0: not shown. */
static inline void timeline_phase(struct timeline *timeline, const char *name, uint64_t bytes,
                                  int64_t begun_us, int64_t ended_us)
{
    if (timeline)
        timeline_put_phase(timeline, name, bytes, begun_us, ended_us);
}

/* Writes what is there. Else it is written when half of the buffer is full, or the first event in
 * it is 200 ms old at the next one: so much a worker that is killed takes with it. */
static inline void timeline_flush(struct timeline *timeline)
{
    if (timeline)
        timeline_put_out(timeline);
}

#endif
