/*
 * reported.c: keeps the values that the program reports, for status, metrics, top and the page.
 * Called by agents.c with each heartbeat, and by view.c. Invariant: a value never replaces one that
 * was reported later, whichever worker, connection or driver it comes through.
 */
#include "driver/core/reported.h"

#include "base/mem.h"
#include "driver/core/authority.h"
#include "driver/core/roster.h"
#include "driver/core/round.h"
#include "driver/core/step.h"
#include "proto/commit.h"
#include "proto/report.h"

#include <string.h>

/* Keeps a value in the series of its name: the last point is always the newest value. A series that
 * is full loses every second point, and from then on has a point in twice the time. So it spans the
 * life of this driver, however long that is. */
static void reported_keep_point(struct core_report *report, int64_t at_us, double value)
{
    struct view_point *points = report->points;
    size_t count = report->point_count;

    if (count && points[count - 1].at_us > at_us)
        /* the values came from two hosts, whose clocks may differ: the series never goes back in
         * time */
        at_us = points[count - 1].at_us;
    /* The last point is too near to the one before it: the new point replaces it. */
    if (count >= 2 && at_us - points[count - 2].at_us < report->gap_us)
        count--;
    if (count == LIMIT_REPORT_POINTS) {
        for (size_t i = 0; i < count / 2; i++)
            points[i] = points[2 * i];
        count /= 2;
        report->gap_us = (points[count - 1].at_us - points[0].at_us) / (int64_t)(count - 1);
    }
    points[count++] = (struct view_point){ at_us, value };
    report->point_count = count;
}

/* Takes the values that the program has reported, from a heartbeat of this host's agent. In the
 * current round only rank 0's values count. A value counts only if it was reported after the one
 * that is kept under the same name. */
void reported_on_beat(struct core *core, struct core_host *host, const struct msg_beat *beat)
{
    struct core_reported *reported = &core->rounds.reported;

    for (size_t i = 0; i < beat->reports.count; i++) {
        const struct msg_reported *item = &beat->reports.items[i];
        const struct worker *worker;
        struct core_report *report;
        size_t at = 0;

        if (!authority_believes_beat(core, host, item->incarnation))
            continue;
        worker = roster_worker(core, item->incarnation);
        if (!report_name_is_good(item->name) || item->round > core->current.number ||
            COMMIT_ROUND_OF(item->commit) > item->round)
            continue;
        /* In the current round only rank 0 speaks for the job. */
        if (item->round == core->current.number &&
            (!round_has(&core->current, worker) || worker->rank != 0))
            continue;

        while (at < reported->count && strcmp(reported->items[at]->name, item->name) != 0)
            at++;
        if (at == LIMIT_REPORTS) /* there is no room for one more name */
            continue;
        if (at == reported->count) {
            report = mem_zalloc(sizeof(*report));
            if (!report) {
                core_fail(core);
                return;
            }
            /* report_name_is_good has checked the length */
            memcpy(report->name, item->name, strlen(item->name));
            reported->items[reported->count++] = report;
        }
        report = reported->items[at];
        /* Of the same worker a report with a higher number is newer; of another worker only a
         * report of a later round is. */
        if (report->incarnation == worker->incarnation ? item->said <= report->said
                                                       : item->round <= report->round)
            continue;
        report->incarnation = worker->incarnation;
        report->said = item->said;
        report->round = item->round;
        report->commit = item->commit;
        report->at_us = item->age_us < core->now_us ? core->now_us - item->age_us : 0;
        reported_keep_point(report, report->at_us, report_value_of(item->bits));
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
