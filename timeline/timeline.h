/*
 * timeline.h: writes what a worker did and when to a file for chrome://tracing and Perfetto. The
 * file has the trace event format: an array without its closing bracket, so that the file may end
 * after any line. All workers of a machine, or of machines that share a file system, write to one
 * file. A worker is a "process" in the file, and its lanes (enum timeline_lane) are "threads".
 *
 *     timeline_create ──► off ──timeline_start──► on ──timeline_stop──► off ... ──► timeline_free
 *
 * A timeline is turned on and off at any time, by any thread, while other threads add events. With
 * a NULL timeline, or one that is off, every other call does nothing. No event fails: an event that
 * cannot be written is left out, and the owner is told once. A thread that must never wait may not
 * call these functions: the file may be on a slow disk. Two events of one lane do not overlap, or
 * one lies inside the other.
 */
#ifndef TIMELINE_TIMELINE_H
#define TIMELINE_TIMELINE_H

#include "base/err.h"
#include "proto/recorder.h"

struct timeline;

#define TIMELINE_NAME_MAX 400 /* most bytes of the name of a process; a longer name is cut */

/* The lanes of a worker: the rows in which a viewer shows its events. */
enum timeline_lane {
    TIMELINE_ROUNDS = 1, /* the rounds of which this worker was a member */
    TIMELINE_CHANGES,    /* recoveries and switches, and the phases of each */
    TIMELINE_STATE,      /* commits and restores */
    TIMELINE_COPIER, /* commits of the copier thread; they may overlap those in TIMELINE_STATE */
    TIMELINE_COLLECTIVES, /* collective calls, each as one event */
    TIMELINE_PHASES,      /* phases of collectives */
};

/* A named argument of an event: `text`, or `number` when text is NULL. A long text is cut. */
struct timeline_arg {
    const char *name;
    const char *text;
    int64_t number;
};

/* An event, borrowed during the call. Its times are times of clock_now_us. */
struct timeline_event {
    enum timeline_lane lane;
    const char *name;
    int64_t begun_us, ended_us;
    const struct timeline_arg *args;
    size_t arg_count;
};

struct timeline_options {
    /* The worker's incarnation, which is never used again in the job; of a worker that is
     * alone its pid. */
    uint64_t process;
    bool ranges;               /* true: ranges are shown to a profiler, if one is running */
    struct recorder *recorder; /* borrowed; NULL: activities are not recorded */
    /* Called when events can no longer be written, once for each timeline_start, on the thread that
     * tried to write; and when a profiler cannot be used. May be NULL. */
    void (*complain)(void *arg, const char *text);
    void *arg;
};

/* Creates a timeline, which is off. HVD_E_NOMEM. */
int timeline_create(const struct timeline_options *options,
                    struct timeline **ret_timeline) MUST_CHECK;
/* writes all events and frees the timeline; no other thread may be in a call */
void timeline_free(struct timeline *timeline);

struct timeline_file {
    const char *path;
    const char *job;
    /* a time of the wall clock: equal for all workers of the job, higher for a later job */
    int64_t job_began_us;
};

/*
 * Turns the timeline on. A file of an earlier job is replaced; a file of this job is continued.
 * HVD_E_STATE: it is on already, or the file is the timeline of a later job; HVD_E_EXISTS: the file
 * is no timeline; HVD_E_NOMEM, and what a write may fail with: _IO, _DENIED, _NOTFOUND, _FULL ...
 */
int timeline_start(struct timeline *timeline, const struct timeline_file *file,
                   struct hvd_err *err) MUST_CHECK;

/* Writes all events and turns the timeline off. HVD_E_STATE: the timeline was off. Another code:
 * some events are missing in the file; the timeline is off then, too. */
int timeline_stop(struct timeline *timeline, struct hvd_err *err) MUST_CHECK;

/* true: the timeline is on, so events are written. */
bool timeline_is_on(const struct timeline *timeline);

/* Returns the present time, for an event; 0 while the timeline is off. */
int64_t timeline_now_us(const struct timeline *timeline);

/* Sets the name of this process; viewers sort processes by rank. The name is kept while the
 * timeline is off. */
void timeline_name(struct timeline *timeline, const char *name, uint32_t rank);

/* Adds an event. If it began before the timeline was turned on, its beginning is cut off. */
void timeline_event(struct timeline *timeline, const struct timeline_event *event);

/* Begin and end a range: something that a profiler (nvtx.h) shows while it goes on, whether the
 * timeline is on or off. Every range must be ended, on any thread; ranges may overlap. Without a
 * profiler, or without the option `ranges`, both functions do nothing. The text is cut after
 * TIMELINE_RANGE_MAX bytes. */
#define TIMELINE_RANGE_MAX 64
bool timeline_has_ranges(const struct timeline *timeline);
uint64_t timeline_begin_range(const struct timeline *timeline, uint64_t bytes, const char *format,
                              ...) PRINTF_LIKE(3, 4);
void timeline_end_range(const struct timeline *timeline, uint64_t range);

/* Begin and end an activity of proto/recorder.h, also of a timeline that is off. Neither waits. */
uint64_t timeline_begin_activity(const struct timeline *timeline, const char *name, uint64_t round,
                                 uint64_t number, uint64_t bytes);
void timeline_end_activity(const struct timeline *timeline, uint64_t activity, int code);

/* Writes the buffered events. Without this call an event is written when half of the buffer is
 * full, or when an event is added 200 ms after the oldest one. A killed worker loses the others. */
void timeline_flush(struct timeline *timeline);

#endif
