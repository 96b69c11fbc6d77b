/*
 * reported.c: keeps the values that the program reports, for status, metrics, top and the page.
 * Called by agents.c with each heartbeat, by goodput.c at the end of each step, by replay.c and
 * compact.c, and by view.c. Invariants: a value never replaces one that was reported later,
 * whichever worker, connection or driver it comes through; and no message waits for the disk
 * because of a value.
 */
#include "driver/core/reported.h"

#include "base/hex.h"
#include "base/mem.h"
#include "driver/core/authority.h"
#include "driver/core/roster.h"
#include "driver/core/round.h"
#include "driver/core/step.h"
#include "driver/core/tell.h"
#include "proto/commit.h"
#include "proto/report.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* The newest values are written to the journal at most this often, with other records. */
#define RECORD_EVERY_US (10 * TIME_S)

/* A text of a REPORTED record has so many points at most, each as three hexadecimal numbers. */
#define POINT_TEXT_MAX (3 * 17)
#define POINTS_EACH    (LIMIT_TEXT_BYTES / POINT_TEXT_MAX)

/* A time of day or a gap in the journal is at most this long, so that sums of them are numbers. */
#define WALL_MAX_US (INT64_MAX / 4)

_Static_assert(LIMIT_REPORT_POINTS <= POINTS_EACH * LIMIT_ADDRESSES,
               "a record has room for a series");

/* Keeps a value in the series of its name: the last point is always the newest value. A series that
 * is full loses every second point, and from then on has a point in twice the time. So it spans the
 * life of the job, however long that is. */
static void reported_keep_point(struct core_report *report, struct view_point point)
{
    struct view_point *points = report->points;
    size_t count = report->point_count;

    if (count && points[count - 1].at_us > point.at_us)
        /* the values came from two hosts, whose clocks may differ: the series never goes back in
         * time */
        point.at_us = points[count - 1].at_us;
    /* The last point is too near to the one before it: the new point replaces it. */
    if (count >= 2 && point.at_us - points[count - 2].at_us < report->gap_us)
        count--;
    if (count == LIMIT_REPORT_POINTS) {
        for (size_t i = 0; i < count / 2; i++)
            points[i] = points[2 * i];
        count /= 2;
        report->gap_us = (points[count - 1].at_us - points[0].at_us) / (int64_t)(count - 1);
    }
    points[count++] = point;
    report->point_count = count;
}

/* Returns what is kept under this name, which is good; a new name is added. NULL: there is no room
 * for one more name, or no memory, and then the step fails. */
static struct core_report *reported_of(struct core *core, const char *name)
{
    struct core_reported *reported = &core->rounds.reported;
    struct core_report *report;

    for (size_t i = 0; i < reported->count; i++)
        if (!strcmp(reported->items[i]->name, name))
            return reported->items[i];
    if (reported->count == LIMIT_REPORTS)
        return NULL;
    report = mem_zalloc(sizeof(*report));
    if (!report) {
        core_fail(core);
        return NULL;
    }
    memcpy(report->name, name, strlen(name)); /* report_name_is_good has checked the length */
    reported->items[reported->count++] = report;
    return report;
}

/* True: a report is newer than the one that is kept. Of the same worker a report with a higher
 * number is newer; of another worker only a report of a later round is. */
static bool reported_is_newer(const struct core_report *report, uint64_t incarnation, uint64_t said,
                              uint64_t round)
{
    return report->incarnation == incarnation ? said > report->said : round > report->round;
}

/* Takes the values that the program has reported, from a heartbeat of this host's agent. In the
 * current round only rank 0's values count. A value counts only if it was reported after the one
 * that is kept under the same name. */
void reported_on_beat(struct core *core, struct core_host *host, const struct msg_beat *beat)
{
    for (size_t i = 0; i < beat->reports.count; i++) {
        const struct msg_reported *item = &beat->reports.items[i];
        const struct worker *worker;
        struct core_report *report;

        if (!authority_believes_beat(core, host, item->incarnation))
            continue;
        worker = roster_worker(core, item->incarnation);
        if (!report_name_is_good(item->name) || !item->round ||
            item->round > core->current.number || COMMIT_ROUND_OF(item->commit) > item->round)
            continue;
        /* In the current round only rank 0 speaks for the job. */
        if (item->round == core->current.number &&
            (!round_has(&core->current, worker) || worker->rank != 0))
            continue;
        report = reported_of(core, item->name);
        if (!report || !reported_is_newer(report, item->incarnation, item->said, item->round))
            continue;
        report->incarnation = item->incarnation;
        report->said = item->said;
        report->round = item->round;
        report->commit = item->commit;
        report->at_us = item->age_us < core->now_us ? core->now_us - item->age_us : 0;
        report->changed = true;
        reported_keep_point(report, (struct view_point){ report->at_us, report_value_of(item->bits),
                                                         item->commit });
    }
}

/* ---- the journal ---------------------------------------------------------------------------- */

/* Fills in the REPORTED record of the newest value. */
static void reported_record(const struct core_report *report, int64_t wall_us,
                            struct journal_record *record)
{
    record->text = report->name;
    record->incarnation = report->incarnation;
    record->manifest = report->said;
    record->round = report->round;
    record->commit = report->commit;
    record->check = report_bits_of(report->points[report->point_count - 1].value);
    record->wall_us = wall_us > 0 ? wall_us : 0;
}

/* Called at the end of each step. Values that have changed are written to the journal in a step
 * that writes other records anyway, so that no message waits for the disk because of a value.
 * goodput.c writes a record each minute at least, and the end of the job and of its workers has
 * records. */
void reported_look(struct core *core)
{
    struct core_reported *reported = &core->rounds.reported;
    bool due = core->job >= JOB_FINISHING || !reported->written_us ||
               core->now_us - reported->written_us >= RECORD_EVERY_US;

    if (due && core->out.records != reported->records_seen && core->wall_us > 0 &&
        core->job != JOB_OVER)
        for (size_t i = 0; i < reported->count; i++) {
            struct core_report *report = reported->items[i];

            if (!report->changed)
                continue;
            reported_record(report, core->wall_us - (core->now_us - report->at_us),
                            tell_record(core, JOURNAL_REPORTED));
            report->changed = false;
            reported->written_us = core->now_us;
        }
    reported->records_seen = core->out.records;
}

/* Fills in the record from which a shorter journal restores this name: the newest value, and the
 * texts of all values over time. False: no memory is left. Called before the start, when times are
 * times of day. */
bool reported_whole_record(const struct core_report *report, struct arena *memory,
                           struct journal_record *record)
{
    size_t texts = (report->point_count + POINTS_EACH - 1) / POINTS_EACH;
    const char **items = arena_alloc_array(memory, texts, sizeof(*items));

    for (size_t i = 0; items && i < texts; i++) {
        char *text = arena_alloc(memory, LIMIT_TEXT_BYTES + 1);
        size_t length = 0;

        if (!text)
            return false;
        for (size_t k = i * POINTS_EACH; k < report->point_count && k < (i + 1) * POINTS_EACH; k++)
            length += (size_t)snprintf(text + length, POINT_TEXT_MAX + 1,
                                       "%" PRIx64 " %" PRIx64 " %" PRIx64 " ",
                                       (uint64_t)report->points[k].at_us, report->points[k].commit,
                                       report_bits_of(report->points[k].value));
        items[i] = text;
    }
    reported_record(report, report->at_us, record);
    record->previous = (uint64_t)report->gap_us;
    record->addresses = (struct msg_texts){ items, texts };
    return items != NULL;
}

/* Reads the points of a REPORTED record into an empty series. False: they are no points that a
 * driver has written. */
static bool reported_read_points(struct core_report *report, const struct journal_record *record)
{
    for (size_t i = 0; i < record->addresses.count; i++)
        for (const char *at = record->addresses.items[i]; *at;) {
            int64_t last_us =
                report->point_count ? report->points[report->point_count - 1].at_us : 0;
            uint64_t numbers[3];

            for (size_t k = 0; k < ARRAY_SIZE(numbers); k++) {
                size_t digits = hex_number(at, &numbers[k]);

                if (!digits || at[digits] != ' ')
                    return false;
                at += digits + 1;
            }
            if (report->point_count == LIMIT_REPORT_POINTS || numbers[0] > WALL_MAX_US ||
                (int64_t)numbers[0] < last_us)
                return false;
            report->points[report->point_count++] =
                (struct view_point){ (int64_t)numbers[0], report_value_of(numbers[2]), numbers[1] };
        }
    return true;
}

/* Restores the value of a REPORTED record, and if the name is new also the values over time before
 * it. A record that was read before has no second effect. False: no driver can have written the
 * record. */
bool reported_replay(struct core *core, const struct journal_record *record)
{
    struct core_reported *reported = &core->rounds.reported;
    struct core_report *report;
    bool fresh;

    if (!report_name_is_good(record->text) || !record->incarnation || !record->round ||
        record->previous > WALL_MAX_US || record->wall_us > WALL_MAX_US)
        return false;
    report = reported_of(core, record->text);
    if (!report)
        return core->step.failed;
    fresh = !report->point_count;
    if (fresh && !reported_read_points(report, record)) {
        mem_free(reported->items[--reported->count]);
        return false;
    }
    if (!fresh && !reported_is_newer(report, record->incarnation, record->manifest, record->round))
        return true;
    report->incarnation = record->incarnation;
    report->said = record->manifest;
    report->round = record->round;
    report->commit = record->commit;
    report->at_us = record->wall_us;
    if (fresh && report->point_count)
        report->gap_us = (int64_t)record->previous; /* the last of the points is this value */
    else
        reported_keep_point(
            report,
            (struct view_point){ record->wall_us, report_value_of(record->check), record->commit });
    return true;
}

/* Called at the start of a driver: converts the times of day of the journal to the clock of this
 * machine. */
void reported_start(struct core *core)
{
    int64_t shift_us = core->now_us - core->wall_us;

    for (size_t i = 0; i < core->rounds.reported.count; i++) {
        struct core_report *report = core->rounds.reported.items[i];

        report->at_us += shift_us;
        for (size_t k = 0; k < report->point_count; k++)
            report->points[k].at_us += shift_us;
    }
}

/* Copies the names, their newest values and their series into the view, in the order in which the
 * names came first. */
void reported_view(const struct core *core, struct core_view *view)
{
    const struct core_reported *reported = &core->rounds.reported;
    struct view_report *items = arena_alloc_array(&view->memory, reported->count, sizeof(*items));

    for (size_t i = 0; items && i < reported->count; i++) {
        const struct core_report *report = reported->items[i];
        size_t bytes = report->point_count * sizeof(report->points[0]);
        struct view_point *points = arena_alloc(&view->memory, bytes);
        char *name = arena_alloc(&view->memory, sizeof(report->name));

        if (!points || !name)
            /* no memory is left: the arena remembers that, and core_view returns HVD_E_NOMEM */
            return;
        memcpy(points, report->points, bytes);
        memcpy(name, report->name, sizeof(report->name));
        items[i] = (struct view_report){ name,
                                         points[report->point_count - 1].value,
                                         report->round,
                                         report->commit,
                                         report->at_us,
                                         points,
                                         report->point_count };
    }
    view->reports.items = items;
    view->reports.count = items ? reported->count : 0;
}

void reported_release(struct core *core)
{
    for (size_t i = 0; i < core->rounds.reported.count; i++)
        mem_free(core->rounds.reported.items[i]);
    core->rounds.reported.count = 0;
}
