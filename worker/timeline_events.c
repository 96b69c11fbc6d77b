/*
 * timeline_events.c: what the training loop of this worker does when, as events of the timeline.
 *
 * run.c, commit.c and sync.c call it. worker.c calls timeline_events_news on the session's thread,
 * and timeline_events_start on any thread of the program. Invariant: the phases of a change follow
 * each other without a gap, as each one begins where the phase before it has ended (phase_us).
 */
#include "worker/timeline_events.h"

#include "base/text.h"
#include "os/clock.h"
#include "proto/commit.h"

#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define COMPLAINT_MAX 1200

/* Records what the training thread does from now on, after `code` has ended what it did before. */
static void change_activity(struct timeline_events *events, const char *name, uint64_t round,
                            int code)
{
    timeline_end_activity(events->timeline, events->activity, code);
    events->activity = name ? timeline_begin_activity(events->timeline, name, round, 0, 0) : 0;
}

/* ---- life ------------------------------------------------------------------------------------ */

/* Writes one line to standard error. That stream belongs to the program: if its reader is slow, the
 * line is dropped, so that no thread waits. */
static void complain(void *arg, const char *text)
{
    struct pollfd out = { .fd = STDERR_FILENO, .events = POLLOUT };
    char line[COMPLAINT_MAX];
    int length = snprintf(line, sizeof(line), "hvd: %s\n", text);

    (void)arg;
    if (length < 0 || poll(&out, 1, 0) != 1)
        return;
    if ((size_t)length >= sizeof(line))
        length = (int)sizeof(line) - 1;
    if (write(STDERR_FILENO, line, (size_t)length) < 0)
        return;
}

/* Reads HVD_TIMELINE_BEGAN: the time when the job began, equal in the files of all its workers. */
static int64_t job_began_us(void)
{
    const char *text = getenv("HVD_TIMELINE_BEGAN");
    uint64_t began = 0;

    if (text)
        (void)text_parse_u64((struct span){ text, strlen(text) }, 0, INT64_MAX,
                             "HVD_TIMELINE_BEGAN", &began, NULL);
    return (int64_t)began;
}

/* Turns the timeline on: its events go to the file at `path`. */
int timeline_events_start(struct timeline_events *events, const char *path, struct hvd_err *err)
{
    const struct timeline_file file = { path, events->job, events->job_began_us };
    int rc = timeline_start(events->timeline, &file, err);

    timeline_flush(events->timeline);
    return rc;
}

/* Makes the timeline of this worker, and turns it on if HVD_TIMELINE names a file. welcome NULL:
 * the worker is alone. `ranges`: a running profiler is shown the same work as ranges. */
int timeline_events_open(struct timeline_events *events, const struct msg_welcome_worker *welcome,
                         uint64_t incarnation, bool ranges)
{
    const struct timeline_options options = { .process = welcome ? incarnation : (uint64_t)getpid(),
                                              .ranges = ranges,
                                              .recorder = events->recorder,
                                              .complain = complain };
    const char *path = getenv("HVD_TIMELINE");
    struct hvd_err err;
    char text[ERR_TEXT_MAX + TIMELINE_EVENTS_NAME_MAX + 32];
    int rc = timeline_create(&options, &events->timeline);

    if (rc)
        return rc;
    events->job = welcome ? welcome->job : "alone";
    events->job_began_us = welcome ? job_began_us() : clock_wall_us();
    if (welcome)
        snprintf(events->name, sizeof(events->name),
                 "%s slot %" PRIu32 " (incarnation %" PRIu64 ")", welcome->host, welcome->slot,
                 incarnation);
    else
        snprintf(events->name, sizeof(events->name), "alone (process %ld)", (long)getpid());
    events->change_us = events->phase_us = clock_now_us();
    change_activity(events, "begin", 0, 0);
    timeline_events_round(events, 0, &(struct place){ .rank = welcome ? welcome->rank : 0 });
    if (!path || !path[0])
        return 0;
    if (timeline_events_start(events, path, &err)) {
        snprintf(text, sizeof(text), "the timeline of %s is not written: %s", events->name,
                 err.text);
        complain(NULL, text);
    }
    return 0;
}

void timeline_events_close(struct timeline_events *events)
{
    timeline_free(events->timeline);
    events->timeline = NULL;
}

/* ---- changes --------------------------------------------------------------------------------- */

/* Notes when this worker has first heard that the round ends or is over: news_us keeps the first
 * time. */
void timeline_events_news(struct timeline_events *events)
{
    int64_t not_noted = 0;

    atomic_compare_exchange_strong(&events->news_us, &not_noted, clock_now_us());
}

/* Shows the phase that ends now as one event; it began when the phase before it ended. code: the
 * result of the phase. An error code is shown as the argument "ended" of the event; for code 0
 * the event has no argument. */
void timeline_events_phase(struct timeline_events *events, const char *name, int code)
{
    const struct timeline_arg args[] = {
        {.name = "ended", .text = err_name(code)}
    };
    int64_t now_us = clock_now_us();

    timeline_event(events->timeline, &(struct timeline_event){ .lane = TIMELINE_CHANGES,
                                                               .name = name,
                                                               .begun_us = events->phase_us,
                                                               .ended_us = now_us,
                                                               .args = args,
                                                               .arg_count = code ? 1 : 0 });
    events->phase_us = now_us;
}

/* Shows the change to this round as one event: a start, a join, a switch or a recovery. The change
 * ends with its last phase. */
static void end_change(struct timeline_events *events)
{
    const struct timeline_arg args[] = {
        {.name = "round", .number = (int64_t)events->round     },
        { .name = "size", .number = (int64_t)events->place.size},
    };
    const char *name = events->cause == CAUSE_SWITCH ? "switch" : "recovery";

    if (events->cause == CAUSE_FIRST)
        name = "start";
    else if (!events->has_begun)
        name = "join";
    timeline_event(events->timeline, &(struct timeline_event){ .lane = TIMELINE_CHANGES,
                                                               .name = name,
                                                               .begun_us = events->change_us,
                                                               .ended_us = events->phase_us,
                                                               .args = args,
                                                               .arg_count = ARRAY_SIZE(args) });
    events->free_us = events->phase_us;
    events->change_us = 0;
}

/* Notes that the loop enters a round, for this cause. The change to a new round may have begun
 * earlier: when news came, or when an earlier round was given up. In that case its first phase,
 * "agree", ends here. */
void timeline_events_enters(struct timeline_events *events, uint64_t round, enum msg_cause cause)
{
    events->cause = cause;
    if (!events->change_us)
        events->change_us = events->phase_us = clock_now_us();
    timeline_events_phase(events, events->has_begun ? "agree" : "begin", 0);
    change_activity(events, "connect", round, 0);
}

/* Ends the change to this round: its first step is done. Later calls in the round do nothing. */
void timeline_events_stepped(struct timeline_events *events)
{
    if (events->stepped)
        return;
    events->stepped = true;
    timeline_events_phase(events, "first step", 0);
    end_change(events);
    events->has_begun = true;
}

/* Notes the round and this worker's place in it; the timeline shows the worker under its new
 * rank. */
void timeline_events_round(struct timeline_events *events, uint64_t round,
                           const struct place *place)
{
    char name[TIMELINE_EVENTS_NAME_MAX + 32];

    events->round = round;
    events->place = *place;
    snprintf(name, sizeof(name), "rank %" PRIu32 ", %s", place->rank, events->name);
    timeline_name(events->timeline, name, place->rank);
    if (!round)
        return;
    recorder_set_place(events->recorder, round, place->rank, place->size);
    change_activity(events, "state", round, 0);
}

/* Notes that train is called: the round begins, and with it its first step. Forgets when the
 * last news came (news_us), because it was about the change that has led to this round. */
void timeline_events_trains(struct timeline_events *events)
{
    events->stepped = false;
    events->round_us = events->phase_us;
    change_activity(events, "train", events->round, 0);
    atomic_store(&events->news_us, 0);
    events->round_range =
        timeline_begin_range(events->timeline, 0, "round %" PRIu64, events->round);
    timeline_events_step(events, 1);
}

/* Ends the profiler's range of the step that was in progress, and begins that of the step with this
 * number; 0: no step begins. */
void timeline_events_step(struct timeline_events *events, uint64_t number)
{
    if (events->in_step)
        timeline_end_range(events->timeline, events->step_range);
    events->in_step = number > 0;
    recorder_set_step(events->recorder, number);
    if (number)
        events->step_range = timeline_begin_range(events->timeline, 0, "step %" PRIu64, number);
}

/* Shows the round that train has left with this code, and begins the next change: at the time when
 * the worker learned of it (news_us), or now. No change begins if the code ends this worker's part
 * in the job. */
void timeline_events_returned(struct timeline_events *events, int code)
{
    const struct timeline_arg args[] = {
        {.name = "round",  .number = (int64_t)events->round      },
        { .name = "size",  .number = (int64_t)events->place.size },
        { .name = "rank",  .number = (int64_t)events->place.rank },
        { .name = "ended", .text = code ? err_name(code) : "done"},
        { .name = "why",   .text = err_text(code)                },
    };
    int64_t now_us = clock_now_us();
    int64_t news_us = atomic_load(&events->news_us);
    int64_t begun_us = news_us ? news_us : now_us; /* when the next change begins */
    bool is_over = code == 0 || code == HVD_DONE || code == HVD_LEFT;
    char name[32];

    timeline_events_step(events, 0);
    change_activity(events, is_over ? NULL : "agree", 0, code);
    timeline_end_range(events->timeline, events->round_range);
    snprintf(name, sizeof(name), "round %" PRIu64, events->round);
    timeline_event(events->timeline,
                   &(struct timeline_event){ .lane = TIMELINE_ROUNDS,
                                             .name = name,
                                             .begun_us = events->round_us,
                                             .ended_us = now_us,
                                             .args = args,
                                             .arg_count = ARRAY_SIZE(args) - (code ? 0 : 1) });
    if (begun_us < events->free_us)
        begun_us = events->free_us;
    if (!events->stepped) /* no step was made in this round, so the change that led to it goes on */
        timeline_events_phase(events, "first step", code);
    else if (!is_over)
        events->change_us = events->phase_us = begun_us;
    if (!events->stepped && is_over)
        end_change(events);
    timeline_flush(events->timeline);
}

/* Shows a commit, restore or fetch that has ended, as one event with the name "WHAT
 * ROUND.NUMBER". */
void timeline_events_copy(struct timeline_events *events, const struct timeline_events_copy *copy)
{
    const struct timeline_arg args[] = {
        {.name = "bytes",  .number = (int64_t)(copy->bytes & INT64_MAX)      },
        { .name = "ended", .text = copy->code ? err_name(copy->code) : "done"},
    };
    char name[64];

    if (!timeline_is_on(events->timeline))
        return;
    snprintf(name, sizeof(name), "%s %" PRIu64 ".%" PRIu32, copy->what,
             COMMIT_ROUND_OF(copy->commit), COMMIT_PLACE_OF(copy->commit));
    timeline_event(events->timeline, &(struct timeline_event){ .lane = copy->lane,
                                                               .name = name,
                                                               .begun_us = copy->begun_us,
                                                               .ended_us = copy->ended_us,
                                                               .args = args,
                                                               .arg_count = ARRAY_SIZE(args) });
}

/* Notes when a copy of the state (a commit, restore or fetch) begins, and begins its range for a
 * profiler. */
void timeline_events_begin_copy(struct timeline_events *events, struct timeline_events_copy *copy)
{
    copy->begun_us = clock_now_us();
    copy->activity =
        timeline_begin_activity(events->timeline, copy->what, COMMIT_ROUND_OF(copy->commit),
                                COMMIT_PLACE_OF(copy->commit), copy->bytes);
    copy->range =
        timeline_begin_range(events->timeline, copy->bytes, "%s %" PRIu64 ".%" PRIu32, copy->what,
                             COMMIT_ROUND_OF(copy->commit), COMMIT_PLACE_OF(copy->commit));
}

void timeline_events_leave_copy(struct timeline_events *events,
                                const struct timeline_events_copy *copy, int code)
{
    timeline_end_range(events->timeline, copy->range);
    timeline_end_activity(events->timeline, copy->activity, code);
}

/* Ends the copy that timeline_events_begin_copy has begun, with this code, and shows it in the
 * timeline. */
void timeline_events_end_copy(struct timeline_events *events, struct timeline_events_copy *copy,
                              int code)
{
    timeline_events_leave_copy(events, copy, code);
    copy->code = code;
    copy->ended_us = clock_now_us();
    timeline_events_copy(events, copy);
}
