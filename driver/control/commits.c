/*
 * commits.c: shows how far the members of a job are, as heartbeats say (driver/core/pace.h). Called
 * by tables.c, top.c and metrics.c with a view. Invariant: of a job without a driver nothing is
 * shown, because no process hears its workers.
 */
#include "driver/control/commits.h"

#include "base/time.h"
#include "blacklist/record.h"
#include "proto/commit.h"

#include <inttypes.h>
#include <stdio.h>

#define NAMES       3    /* the most workers that commits_names names */
#define A_MILLION_S 1e12 /* a million seconds, in microseconds */

/* Returns the time from then_us until the view was made. TIME_NEVER: it has not happened, or the
 * job has no driver, whose view would be of the past. */
static int64_t commits_since(const struct table_facts *facts, int64_t then_us)
{
    if (facts->orphan || then_us == TIME_NEVER)
        return TIME_NEVER;
    return facts->now_us > then_us ? facts->now_us - then_us : 0;
}

/* Writes a commit as ROUND.INDEX, "3.1". */
const char *commits_number(uint64_t commit, char text[COMMITS_NUMBER_MAX])
{
    snprintf(text, COMMITS_NUMBER_MAX, "%" PRIu64 ".%" PRIu32, COMMIT_ROUND_OF(commit),
             COMMIT_PLACE_OF(commit));
    return text;
}

/* Returns how many commits are made in a million seconds: view->commits were made in the last
 * view->commits_us. TIME_NEVER: not known. */
int64_t commits_rate(const struct core_view *view)
{
    if (view->commits_us <= 0 || !view->newest)
        return TIME_NEVER;
    return (int64_t)((double)view->commits * A_MILLION_S / (double)view->commits_us);
}

/* Writes the newest commit, its age, and how many commits are made in a second, for status and top.
 */
const char *commits_text(const struct core_view *view, const struct table_facts *facts,
                         char text[COMMITS_TEXT_MAX])
{
    char number[COMMITS_NUMBER_MAX], ago[TIME_TEXT_MAX], rate[48] = "";
    double in_a_second = (double)commits_rate(view) / (double)TIME_S;

    text[0] = '\0';
    if (!view->newest || facts->orphan)
        return text;
    if (view->commits_us > 0)
        snprintf(rate, sizeof(rate), "; %.*f a second", in_a_second < 10 ? 2 : 1, in_a_second);
    snprintf(text, COMMITS_TEXT_MAX, "newest %s, %s ago%s", commits_number(view->newest, number),
             time_brief(commits_since(facts, view->newest_us), ago), rate);
    return text;
}

/* Names workers as "a:0 (rank 3) for 5s at commit 2.7": slot, rank if it is a member, for how long
 * it was not heard (silent) or has made no commit (behind), and its newest commit. */
const char *commits_names(const struct core_view *view, const struct table_facts *facts,
                          bool silent, char text[COMMITS_NAMES_MAX])
{
    size_t count = 0, used = 0;

    text[0] = '\0';
    for (size_t i = 0; i < view->host_count && !facts->orphan; i++) {
        const struct view_host *host = &view->hosts[i];

        for (size_t k = 0; k < host->worker_count; k++) {
            const struct view_worker *worker = &host->workers[k];
            char key[BLACKLIST_KEY_TEXT_MAX], number[COMMITS_NUMBER_MAX], since[TIME_TEXT_MAX];
            bool named = silent ? worker->silent : worker->behind && !worker->silent;

            if (!named || count++ >= NAMES)
                continue;
            used +=
                (size_t)snprintf(text + used, COMMITS_NAMES_MAX - used, "%s%s", used ? ", " : "",
                                 blacklist_key_format(host->name, worker->slot, key));
            if (worker->rank != UINT32_MAX)
                used += (size_t)snprintf(text + used, COMMITS_NAMES_MAX - used,
                                         " (rank %" PRIu32 ")", worker->rank);
            used += (size_t)snprintf(
                text + used, COMMITS_NAMES_MAX - used, " for %s at commit %s",
                time_brief(commits_since(facts, silent ? worker->heard_us : worker->commit_us),
                           since),
                worker->commit ? commits_number(worker->commit, number) : "none");
        }
    }
    if (count > NAMES)
        snprintf(text + used, COMMITS_NAMES_MAX - used, ", and %zu more", count - NAMES);
    return text;
}

/* Writes the lines of status about commits and about workers that are silent or behind. A line
 * without contents is left out. */
int commits_lines(const struct core_view *view, const struct table_facts *facts, struct buf *out)
{
    char text[COMMITS_TEXT_MAX], names[COMMITS_NAMES_MAX];
    int rc = 0;

    if (*commits_text(view, facts, text))
        rc = buf_printf(out, "commits    %s\n", text);
    if (!rc && *commits_names(view, facts, true /* those that are silent */, names))
        rc = buf_printf(out, "silent     %s\n", names);
    if (!rc && *commits_names(view, facts, false /* those that are behind */, names))
        rc = buf_printf(out, "behind     %s\n", names);
    return rc;
}

/* Writes the cells HEARD, COMMIT and AGE of a worker in the table of the verb hosts. */
void commits_cells(const struct view_worker *worker, const struct table_facts *facts,
                   struct commits_cells *ret_cells)
{
    int64_t heard_us = commits_since(facts, worker->heard_us);
    int64_t age_us = commits_since(facts, worker->commit_us);

    *ret_cells = (struct commits_cells){ "-", "-", "-" };
    if (heard_us != TIME_NEVER)
        time_brief(heard_us, ret_cells->heard);
    if (!worker->commit || age_us == TIME_NEVER)
        return;
    commits_number(worker->commit, ret_cells->commit);
    time_brief(age_us, ret_cells->age);
}

/* Writes what heartbeats say of one worker, as fields of the open object of this worker. */
void commits_worker_json(const struct view_worker *worker, const struct table_facts *facts,
                         struct json *json)
{
    char number[COMMITS_NUMBER_MAX];

    json_seconds(json, "heard_s", commits_since(facts, worker->heard_us));
    if (worker->commit && !facts->orphan)
        json_text(json, "commit", commits_number(worker->commit, number));
    else
        json_null(json, "commit");
    json_seconds(json, "commit_age_s", commits_since(facts, worker->commit_us));
    json_bool(json, "silent", worker->silent && !facts->orphan);
    json_bool(json, "behind", worker->behind && !facts->orphan);
}

/* Writes the newest commit, the rate, and the list "lagging" of the workers that are silent or
 * behind, as fields of the open object of status. */
void commits_json(const struct core_view *view, const struct table_facts *facts, struct json *json)
{
    char key[BLACKLIST_KEY_TEXT_MAX], number[COMMITS_NUMBER_MAX];

    if (view->newest && !facts->orphan)
        json_text(json, "newest", commits_number(view->newest, number));
    else
        json_null(json, "newest");
    json_seconds(json, "newest_age_s", commits_since(facts, view->newest_us));
    json_seconds(json, "commits_per_s", facts->orphan ? TIME_NEVER : commits_rate(view));
    json_open(json, "lagging", '[');
    for (size_t i = 0; i < view->host_count && !facts->orphan; i++) {
        const struct view_host *host = &view->hosts[i];

        for (size_t k = 0; k < host->worker_count; k++) {
            const struct view_worker *worker = &host->workers[k];

            if (!worker->silent && !worker->behind)
                continue;
            json_open(json, NULL, '{');
            json_text(json, "worker", blacklist_key_format(host->name, worker->slot, key));
            json_number(json, "incarnation", worker->incarnation);
            if (worker->rank == UINT32_MAX)
                json_null(json, "rank");
            else
                json_number(json, "rank", worker->rank);
            commits_worker_json(worker, facts, json);
            json_close(json, '}');
        }
    }
    json_close(json, ']');
}
