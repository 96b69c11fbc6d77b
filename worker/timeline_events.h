/*
 * timeline_events.h: what the training loop of this worker does when, in the timeline
 * (docs/timeline.md): its rounds, its commits, and each change from one round to the next, cut into
 * phases that follow each other without a gap:
 *
 *     _returned ──agree──► _enters ──connect──► ──state──► _trains ──first step──► _stepped
 *
 * Each phase is ended by timeline_events_phase. A round that is given up on the way begins them
 * again. The phases are noted also while the timeline is off, so that it may be turned on in the
 * middle of a round. All but timeline_events_news and _start are for the training loop: they may
 * wait for a disk.
 */
#ifndef WORKER_TIMELINE_EVENTS_H
#define WORKER_TIMELINE_EVENTS_H

#include "proto/msg.h"
#include "proto/place.h"
#include "timeline/timeline.h"

#include <stdatomic.h>

#define TIMELINE_EVENTS_NAME_MAX 320 /* room for the name of a host, and numbers */

struct timeline_events {
    struct timeline *timeline; /* off, unless HVD_TIMELINE or the program has turned it on */
    const char *job;
    int64_t job_began_us;                /* when the job began; equal in all workers of the job */
    char name[TIMELINE_EVENTS_NAME_MAX]; /* the name of the worker, without its rank */
    /* when this worker learned that the round would end; 0: it has not learned of an end */
    _Atomic int64_t news_us;

    uint64_t round;
    struct place place;
    int64_t round_us;  /* when training began in this round */
    int64_t change_us; /* when the change to the next round began; 0: no change is in progress */
    int64_t phase_us;  /* when the present phase began */
    int64_t free_us;   /* when the last change that the timeline shows ended; the next one may not
                          begin before */
    enum msg_cause cause;
    bool stepped; /* true: a step was made in this round */
    /* The numbers of the profiler's ranges: the range of the round, and the range of the step in
     * it. */
    uint64_t round_range, step_range;
    struct recorder *recorder; /* in the page of this worker; NULL: this worker has none */
    uint64_t activity; /* what the training thread is doing between two rounds, or the round */
    bool in_step;      /* true: the range step_range has not ended */
    /* a step was made in this round or an earlier one: the worker is no joiner any more */
    bool has_begun;
};

/* Makes the timeline, and turns it on if HVD_TIMELINE names a file. If the file cannot be written,
 * a line on standard error says so. welcome NULL: this worker is alone; otherwise *welcome must
 * live as long as the events. ranges true: a running profiler is shown rounds, steps, commits and
 * collectives while they go on. The caller has set `recorder`. Fails with HVD_E_NOMEM. */
int timeline_events_open(struct timeline_events *events, const struct msg_welcome_worker *welcome,
                         uint64_t incarnation, bool ranges) MUST_CHECK;
void timeline_events_close(struct timeline_events *events);

/* Turns the timeline on, and writes at once what is known of this worker. Returns the codes of
 * timeline_start. Any thread may make this call, which may wait for a disk. */
int timeline_events_start(struct timeline_events *events, const char *path,
                          struct hvd_err *err) MUST_CHECK;

/* Notes the time at which this worker learns that the round is over, or about to end. Only the
 * first call in a round counts. Any thread may make this call, which never waits. */
void timeline_events_news(struct timeline_events *events);

/* ---- called by the training loop ---- */

void timeline_events_enters(struct timeline_events *events, uint64_t round, enum msg_cause cause);
void timeline_events_phase(struct timeline_events *events, const char *name,
                           int code); /* ends the phase; code: its result, 0: no error */
void timeline_events_round(struct timeline_events *events, uint64_t round,
                           const struct place *place);
void timeline_events_trains(struct timeline_events *events);
void timeline_events_stepped(struct timeline_events *events);
void timeline_events_returned(struct timeline_events *events, int code);

/* Ends the step that was in progress, and begins step `number` of the round, counted from 1;
 * number 0: no step begins. */
void timeline_events_step(struct timeline_events *events, uint64_t number);

/* A copy of the state that the timeline shows: a commit, a restore or a fetch. */
struct timeline_events_copy {
    enum timeline_lane lane;
    const char *what;
    uint64_t commit, bytes;
    int code;
    int64_t begun_us, ended_us;
    uint64_t range, activity;
};
/* Shows a copy that has ended in the timeline. */
void timeline_events_copy(struct timeline_events *events, const struct timeline_events_copy *copy);
/* timeline_events_begin_copy: the copy begins now. timeline_events_end_copy: the copy has ended
 * now with this code, and the timeline shows it. timeline_events_leave_copy: the call of the
 * program ends now, and the copy goes on beside the training; it is shown later. */
void timeline_events_begin_copy(struct timeline_events *events, struct timeline_events_copy *copy);
void timeline_events_end_copy(struct timeline_events *events, struct timeline_events_copy *copy,
                              int code);
void timeline_events_leave_copy(struct timeline_events *events,
                                const struct timeline_events_copy *copy, int code);

#endif
