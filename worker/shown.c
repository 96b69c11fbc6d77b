#include "worker/shown.h"

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

/* ---- life ------------------------------------------------------------------------------------ */

/* Standard error is the program's: a reader that is slow holds nobody up, one line is at stake. */
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

/* When the job began, by which its file is known. Who is alone is a job of its own. */
static int64_t began_us(bool alone)
{
    const char *text = getenv("HVD_TIMELINE_BEGAN");
    uint64_t began = 0;

    if (alone)
        return clock_wall_us();
    if (text && text_parse_u64((struct span){ text, strlen(text) }, 0, INT64_MAX,
                               "HVD_TIMELINE_BEGAN", &began, NULL))
        return 0;
    return (int64_t)began;
}

static void name_it(struct shown *shown, const struct msg_welcome_worker *welcome,
                    uint64_t incarnation)
{
    if (welcome)
        snprintf(shown->name, sizeof(shown->name), "%s slot %" PRIu32 " (incarnation %" PRIu64 ")",
                 welcome->host, welcome->slot, incarnation);
    else
        snprintf(shown->name, sizeof(shown->name), "alone (process %ld)", (long)getpid());
}

void shown_open(struct shown *shown, const struct msg_welcome_worker *welcome, uint64_t incarnation)
{
    const char *path = getenv("HVD_TIMELINE");
    struct timeline_options options = { .path = path,
                                        .job = welcome ? welcome->job : "alone",
                                        .process = welcome ? incarnation : (uint64_t)getpid(),
                                        .complain = complain };
    struct hvd_err err;
    char text[ERR_TEXT_MAX + SHOWN_NAME_MAX + 32];

    if (!path || !path[0])
        return;
    options.job_began_us = began_us(!welcome);
    name_it(shown, welcome, incarnation);
    if (timeline_open(&options, &shown->timeline, &err)) {
        snprintf(text, sizeof(text), "no timeline of %s: %s", shown->name, err.text);
        complain(NULL, text);
        return;
    }
    shown->change_us = shown->phase_us = clock_now_us();
    shown_round(shown, 0, &(struct place){ .rank = welcome ? welcome->rank : 0 });
    timeline_flush(shown->timeline);
}

void shown_close(struct shown *shown)
{
    timeline_close(shown->timeline);
    shown->timeline = NULL;
}

/* ---- changes --------------------------------------------------------------------------------- */

static int64_t later(int64_t one, int64_t other)
{
    return one > other ? one : other;
}

void shown_news(struct shown *shown)
{
    int64_t none = 0;

    if (shown->timeline)
        atomic_compare_exchange_strong(&shown->news_us, &none, clock_now_us());
}

void shown_phase(struct shown *shown, const char *name, int code)
{
    const struct timeline_arg args[] = {
        {.name = "ended", .text = err_name(code)}
    };
    int64_t now_us = timeline_now_us(shown->timeline);

    timeline_event(shown->timeline, &(struct timeline_event){ .lane = TIMELINE_CHANGES,
                                                              .name = name,
                                                              .begun_us = shown->phase_us,
                                                              .ended_us = now_us,
                                                              .args = args,
                                                              .arg_count = code ? 1 : 0 });
    shown->phase_us = now_us;
}

static const char *change_name(const struct shown *shown)
{
    if (shown->cause == CAUSE_FIRST)
        return "start";
    if (!shown->has_begun)
        return "join";
    return shown->cause == CAUSE_SWITCH ? "switch" : "recovery";
}

static void end_change(struct shown *shown)
{
    const struct timeline_arg args[] = {
        {.name = "round", .number = (int64_t)shown->round     },
        { .name = "size", .number = (int64_t)shown->place.size},
    };

    timeline_event(shown->timeline, &(struct timeline_event){ .lane = TIMELINE_CHANGES,
                                                              .name = change_name(shown),
                                                              .begun_us = shown->change_us,
                                                              .ended_us = shown->phase_us,
                                                              .args = args,
                                                              .arg_count = ARRAY_SIZE(args) });
    shown->free_us = shown->phase_us;
    shown->change_us = 0;
}

void shown_enters(struct shown *shown, enum msg_cause cause)
{
    shown->cause = cause;
    if (!shown->change_us)
        shown->change_us = shown->phase_us = timeline_now_us(shown->timeline);
    shown_phase(shown, shown->has_begun ? "agree" : "begin", 0);
}

void shown_stepped(struct shown *shown)
{
    if (!shown->timeline || shown->stepped)
        return;
    shown->stepped = true;
    shown_phase(shown, "first step", 0);
    end_change(shown);
    shown->has_begun = true;
}

/* ---- rounds ---------------------------------------------------------------------------------- */

void shown_round(struct shown *shown, uint64_t round, const struct place *place)
{
    char name[SHOWN_NAME_MAX + 32];

    shown->round = round;
    shown->place = *place;
    if (!shown->timeline)
        return;
    snprintf(name, sizeof(name), "rank %" PRIu32 ", %s", place->rank, shown->name);
    timeline_name(shown->timeline, name, place->rank);
}

/* What is heard from here on is of this round. */
void shown_trains(struct shown *shown)
{
    shown->stepped = false;
    shown->round_us = shown->phase_us;
    atomic_store(&shown->news_us, 0);
}

static void show_round(struct shown *shown, int code, int64_t now_us)
{
    const struct timeline_arg args[] = {
        {.name = "round",  .number = (int64_t)shown->round       },
        { .name = "size",  .number = (int64_t)shown->place.size  },
        { .name = "rank",  .number = (int64_t)shown->place.rank  },
        { .name = "ended", .text = code ? err_name(code) : "done"},
        { .name = "why",   .text = err_text(code)                },
    };
    char name[32];

    snprintf(name, sizeof(name), "round %" PRIu64, shown->round);
    timeline_event(shown->timeline,
                   &(struct timeline_event){ .lane = TIMELINE_ROUNDS,
                                             .name = name,
                                             .begun_us = shown->round_us,
                                             .ended_us = now_us,
                                             .args = args,
                                             .arg_count = ARRAY_SIZE(args) - (code ? 0 : 1) });
}

void shown_returned(struct shown *shown, int code)
{
    int64_t now_us = timeline_now_us(shown->timeline);
    int64_t news_us = atomic_load(&shown->news_us);
    bool over = code == 0 || code == HVD_DONE || code == HVD_LEFT;

    if (!shown->timeline)
        return;
    show_round(shown, code, now_us);
    if (!shown->stepped) /* still the same change: nobody has trained since */
        shown_phase(shown, "first step", code);
    else if (!over)
        shown->change_us = shown->phase_us = later(news_us ? news_us : now_us, shown->free_us);
    if (!shown->stepped && over)
        end_change(shown);
    timeline_flush(shown->timeline);
}

/* ---- commits --------------------------------------------------------------------------------- */

void shown_copy(struct shown *shown, const struct shown_copy *copy)
{
    const struct timeline_arg args[] = {
        {.name = "bytes",  .number = (int64_t)(copy->bytes & INT64_MAX)      },
        { .name = "ended", .text = copy->code ? err_name(copy->code) : "done"},
    };
    char name[64];

    if (!shown->timeline)
        return;
    snprintf(name, sizeof(name), "%s %" PRIu64 ".%" PRIu32, copy->what,
             COMMIT_ROUND_OF(copy->commit), COMMIT_PLACE_OF(copy->commit));
    timeline_event(shown->timeline, &(struct timeline_event){ .lane = TIMELINE_STATE,
                                                              .name = name,
                                                              .begun_us = copy->begun_us,
                                                              .ended_us = copy->ended_us,
                                                              .args = args,
                                                              .arg_count = ARRAY_SIZE(args) });
}
