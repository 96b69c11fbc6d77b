/*
 * tables.c: the answers to "status", "hosts", "changes", "blacklist", "tokens" and "events", each
 * as a table for operators and as one line of JSON for programs. control.c calls it. The names in
 * the JSON stay as they are, because programs read them. The widths of columns follow from the rows
 * alone, so the same view always gives the same text.
 */
#include "driver/control/tables.h"

#include "base/limits.h"
#include "base/panic.h"
#include "base/time.h"
#include "blacklist/record.h"
#include "driver/control/commits.h"
#include "driver/control/event_facts.h"
#include "driver/control/events.h"
#include "driver/control/json.h"
#include "driver/control/reports.h"
#include "driver/control/summary.h"
#include "proto/commit.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define GRID_COLUMNS_MAX 10
/* the rank of a worker that is not a member of the round */
#define NOT_IN_ROUND     UINT32_MAX
#define TABLE_NUMBER_MAX 24
#define HOST_WHY_MAX     560

/* Called at the end of each table. If rc is a failure, `out` is cut back to the length `before`.
 * Returns rc. */
static int table_end(struct buf *out, size_t before, int rc)
{
    if (rc && out->data) {
        out->length = before;
        out->data[before] = '\0';
    }
    return rc;
}

/* Writes one kind of table. */
typedef int show_fn(const struct core_view *view, const struct table_facts *facts, struct buf *out);
/* Writes a table with the function `show`; after a failure `out` is unchanged. */
static int table_show(const struct core_view *view, const struct table_facts *facts, show_fn *show,
                      struct buf *out)
{
    size_t before = out->length;

    return table_end(out, before, show(view, facts, out));
}

/* Returns the time from then_us until the view was made; TIME_NEVER if then_us is TIME_NEVER. */
static int64_t table_since(const struct table_facts *facts, int64_t then_us)
{
    return then_us == TIME_NEVER ? TIME_NEVER : facts->now_us - then_us;
}

/* Returns the time from the view until then_us; TIME_NEVER if then_us is TIME_NEVER. */
static int64_t table_until(const struct table_facts *facts, int64_t then_us)
{
    return then_us == TIME_NEVER ? TIME_NEVER : then_us - facts->now_us;
}

/* Writes a duration as operators read it: whole seconds, or milliseconds below one second. */
static const char *table_time(int64_t us, char text[TIME_TEXT_MAX])
{
    if (us < 0)
        us = 0;
    /* More digits are of no use, because time goes on while the operator reads the value. */
    if (us != TIME_NEVER)
        us -= us % (us < TIME_S ? TIME_MS : TIME_S);
    return time_format(us, text);
}

/* Writes a number as the text of a cell. */
static const char *table_number(uint64_t value, char text[TABLE_NUMBER_MAX])
{
    snprintf(text, TABLE_NUMBER_MAX, "%" PRIu64, value);
    return text;
}

/* Writes the beginning of {"job":JOB,"NAME":[ ... ]}, to which the caller adds the rows. */
static void table_json_begin(struct json *json, const struct table_facts *facts, const char *name)
{
    json_open(json, NULL, '{');
    json_text(json, "job", facts->job);
    json_open(json, name, '[');
}

/* Writes the end that belongs to table_json_begin, and a newline. */
static int table_json_end(struct json *json)
{
    json_close(json, ']');
    return json_end(json);
}

/*
 * A table whose columns are as wide as their widest cell.
 *
 *     grid_init(&grid, heads, ARRAY_SIZE(heads));
 *     grid_row(&grid, (const char *[]){ "a", "2" });    for each row; the cells are copied
 *     rc = grid_show(&grid, rc, out);                   frees the grid; prints only if rc is 0
 */
struct grid {
    size_t columns;
    size_t rows; /* the number of rows, the row of heads included */
    size_t width[GRID_COLUMNS_MAX];
    struct buf cells; /* the texts of all cells, row by row, each with its NUL */
    int rc;
};

/* Adds a row with grid->columns cells, which are copied, and widens the columns as needed. After a
 * failure (grid->rc) the grid keeps the code, and grid_show prints nothing. */
static void grid_row(struct grid *grid, const char *const *cells)
{
    for (size_t i = 0; i < grid->columns && !grid->rc; i++) {
        size_t length = strlen(cells[i]);

        if (grid->width[i] < length)
            grid->width[i] = length;
        grid->rc = buf_append(&grid->cells, cells[i], length + 1);
    }
    grid->rows++;
}

/* Begins a grid with its first row, the heads of the columns. */
static void grid_init(struct grid *grid, const char *const *heads, size_t columns)
{
    ASSERT(columns <= GRID_COLUMNS_MAX);
    *grid = (struct grid){ .columns = columns };
    buf_init(&grid->cells, LIMIT_ANSWER_BYTES);
    grid_row(grid, heads);
}

/* Appends all rows to `out`, and frees the grid. `rc`: if it is not 0, the caller has failed, and
 * nothing is appended. Returns the first failure, or 0. */
static int grid_show(struct grid *grid, int rc, struct buf *out)
{
    const char *cell = buf_text(&grid->cells);

    rc = grid->rc ? grid->rc : rc;
    for (size_t i = 0; i < grid->rows * grid->columns && !rc; i++) {
        size_t column = i % grid->columns;

        /* The last column is not padded, so lines do not end in blanks. */
        if (column + 1 == grid->columns)
            rc = buf_printf(out, "%s\n", cell);
        else
            rc = buf_printf(out, "%-*s  ", (int)grid->width[column], cell);
        cell += strlen(cell) + 1;
    }
    buf_release(&grid->cells);
    return rc;
}

/* Counts the hosts, agents and workers of the view. A host is counted for each fact that is true of
 * it: listed by discovery, used by workers, being drained, with an agent. */
struct table_totals table_totals(const struct core_view *view)
{
    struct table_totals totals = { .listed = 0 };

    for (size_t i = 0; i < view->host_count; i++) {
        const struct view_host *host = &view->hosts[i];

        totals.listed += host->listed;
        totals.slots += host->listed ? host->slots : 0;
        totals.used += host->worker_count > 0;
        totals.draining += host->draining;
        totals.agents += host->agent == AGENT_THERE;
        for (size_t k = 0; k < host->worker_count; k++)
            totals.workers[host->workers[k].state]++;
    }
    return totals;
}

const char *table_kept(const struct core_view *view, const struct table_facts *facts,
                       char text[TABLE_KEPT_MAX])
{
    *text = '\0';
    if (view->shortage.kept && !facts->orphan && !facts->ended)
        snprintf(text, TABLE_KEPT_MAX,
                 "%zu worker%s that must leave stay%s for now, as fewer than --min-np %u would be "
                 "left",
                 view->shortage.kept, view->shortage.kept == 1 ? "" : "s",
                 view->shortage.kept == 1 ? "s" : "", facts->min_np);
    return text;
}

/* Writes the line about notices, the messages that a machine will go away. */
static int status_notices(const struct core_view *view, struct buf *out)
{
    const struct view_notices *notices = &view->notices;
    char lead[TIME_TEXT_MAX], margin[TIME_TEXT_MAX];

    return buf_printf(
        out,
        "notices    %" PRIu32 " of %" PRIu32 " honoured, %" PRIu32 " under way; least lead %s, "
        "least margin %s\n",
        notices->honoured, notices->ended, view->notices.under_way,
        table_time(notices->least_lead_us, lead), table_time(notices->least_margin_us, margin));
}

/* Writes the line about discovery: when it last answered, and its failures. There is no line for a
 * job without a driver, or before the first question. A fixed list of hosts has the line, too. */
static int status_discovery(const struct core_view *view, const struct table_facts *facts,
                            struct buf *out)
{
    const struct view_discovery *health = &view->discovery;
    char worked[TIME_TEXT_MAX], failed[TIME_TEXT_MAX], asked[TIME_TEXT_MAX];
    int64_t asked_us = table_since(facts, health->asked_us);
    int rc;

    if (facts->orphan || (health->worked_us == TIME_NEVER && health->failed_us == TIME_NEVER &&
                          health->asked_us == TIME_NEVER))
        return 0;
    rc = buf_append_text(out, "discovery  ");
    if (!rc && health->worked_us == TIME_NEVER)
        rc = buf_append_text(out, "no answer yet");
    else if (!rc)
        rc = buf_printf(out, "last answer %s ago",
                        table_time(table_since(facts, health->worked_us), worked));
    if (!rc && health->asked_us != TIME_NEVER && asked_us >= TIME_S)
        rc = buf_printf(out, "; asked for %s", table_time(asked_us, asked));
    if (!rc && health->failures)
        rc = buf_printf(out, "; failed %" PRIu32 " times in a row, last %s ago: %s",
                        health->failures, table_time(table_since(facts, health->failed_us), failed),
                        health->failure);
    else if (!rc && health->failed_us != TIME_NEVER)
        rc = buf_printf(out, "; discovery works again, and failed last %s ago: %s",
                        table_time(table_since(facts, health->failed_us), failed), health->failure);
    return rc ? rc : buf_append_text(out, "\n");
}

/* Writes the object "discovery"; for a job without a driver its times are null. */
static void discovery_json(const struct core_view *view, const struct table_facts *facts,
                           struct json *json)
{
    static const struct view_discovery unknown = { TIME_NEVER, TIME_NEVER, TIME_NEVER, 0, "" };
    const struct view_discovery *health = facts->orphan ? &unknown : &view->discovery;

    json_open(json, "discovery", '{');
    json_seconds(json, "worked_s", table_since(facts, health->worked_us));
    json_seconds(json, "failed_s", table_since(facts, health->failed_us));
    json_seconds(json, "asked_s", table_since(facts, health->asked_us));
    json_number(json, "failures", health->failures);
    json_text(json, "failure", health->failure);
    json_close(json, '}');
}

/* Returns the state of the job in a word. */
static const char *status_state(const struct core_view *view, const struct table_facts *facts)
{
    return facts->ended ? "ended" : facts->orphan ? "orphaned" : job_state_name(view->job);
}

/* Writes who drives the job, or did; and for a job that has lost its driver how to go on. */
static int status_driver(const struct core_view *view, const struct table_facts *facts,
                         struct buf *out)
{
    char time[TIME_TEXT_MAX];

    if (facts->ended)
        return buf_printf(out, "driver     the last one, of term %" PRIu64 "\n", view->term);
    if (facts->orphan && facts->store)
        return buf_printf(out,
                          "driver     none lives; the last one, of term %" PRIu64 ", was %s\n"
                          "to resume  hvd-elastic --resume %s --store %s\n"
                          "to end     hvd-elastic stop %s --store %s\n",
                          view->term, facts->last, facts->job, facts->store, facts->job,
                          facts->store);
    if (facts->orphan)
        return buf_printf(out,
                          "driver     none lives on this machine; the last one, of term %" PRIu64
                          ", wrote its last line %s ago\n"
                          "to resume  hvd-elastic --resume %s --state-dir %s\n"
                          "to end     hvd-elastic stop --state-dir %s\n",
                          view->term, table_time(facts->silent_us, time), facts->job,
                          facts->state_dir, facts->state_dir);
    return buf_printf(out, "driver     pid %" PRIu64 ", term %" PRIu64 ", running for %s\n",
                      facts->pid, view->term,
                      table_time(table_since(facts, facts->started_us), time));
}

/* Writes the answer to "status" for operators: a line for each fact about the job. */
static int status_text(const struct core_view *view, const struct table_facts *facts,
                       struct buf *out)
{
    struct table_totals totals = table_totals(view);
    const char *separator = "";
    char commit[COMMITS_NUMBER_MAX], time[TIME_TEXT_MAX], fails[TIME_TEXT_MAX], most[32],
        kept[TABLE_KEPT_MAX];
    int rc = buf_printf(out, "job        %s: %s", facts->job, status_state(view, facts));

    /* The state of the job and its round. */
    if (!rc && facts->ended)
        rc = buf_printf(out, ", %s (exit code %d)", facts->ended, (int)facts->ended_code);
    if (!rc)
        rc = buf_append_text(out, "\n");
    if (!rc && *view->waiting_for && !facts->orphan)
        rc = buf_printf(out, "waits for  %s\n", view->waiting_for);
    if (!rc && !facts->orphan && view->shortage.since_us != TIME_NEVER)
        rc =
            buf_printf(out,
                       "too few    workers for %s; the job needs at least %u, and fails in %s "
                       "without them\n",
                       table_time(table_since(facts, view->shortage.since_us), time), facts->min_np,
                       table_time(table_until(facts, view->shortage.fails_us), fails));
    if (!rc && *table_kept(view, facts, kept))
        rc = buf_printf(out, "leaving    %s\n", kept);
    if (!rc && !view->round)
        rc = buf_append_text(out, "round      none yet\n");
    else if (!rc)
        rc = buf_printf(out, "round      %" PRIu64 ", size %zu, from commit %s; %u resets\n",
                        view->round, view->member_count, commits_number(view->commit, commit),
                        view->resets);
    if (!rc && view->next)
        rc = buf_printf(out, "next       round %" PRIu64 "\n", view->next);
    rc = rc ? rc : commits_lines(view, facts, out);
    rc = rc ? rc : reports_lines(view, facts, out);
    snprintf(most, sizeof(most), "uses at most %u", facts->max_np);
    if (!rc)
        rc = buf_printf(out,
                        "size       begins with %u workers, needs at least %u, %s\n"
                        "workers    ",
                        facts->np, facts->min_np,
                        facts->max_np < LIMIT_WORKERS ? most : "uses every slot");

    /* The workers by state, the hosts and the driver. */
    for (size_t i = 0; !rc && i < WORKER_STATE_COUNT; i++) {
        if (!totals.workers[i])
            continue;
        rc = buf_printf(out, "%s%zu %s", separator, totals.workers[i],
                        worker_state_name((enum worker_state)i));
        separator = ", ";
    }
    if (!rc)
        rc = buf_printf(out, "%s\nhosts      %zu listed, %zu used, %zu drained, %zu agents\n",
                        *separator ? "" : "none", totals.listed, totals.used, totals.draining,
                        totals.agents);
    if (!rc)
        rc = status_discovery(view, facts, out);
    if (!rc && view->notices.ended + view->notices.under_way)
        rc = status_notices(view, out);
    if (!rc)
        rc = goodput_line(&view->goodput, out);
    rc = rc ? rc : status_driver(view, facts, out);
    return rc ? rc : buf_printf(out, "state      %s\n", facts->state_dir);
}

/* Writes the answer to "status" for programs: one JSON object. "floor" is the commit below which no
 * round may resume. */
static int status_json(const struct core_view *view, const struct table_facts *facts,
                       struct buf *out)
{
    struct json json = { .out = out };
    struct table_totals totals = table_totals(view);
    char text[COMMITS_NUMBER_MAX];

    json_open(&json, NULL, '{');
    json_text(&json, "job", facts->job);
    json_text(&json, "state", status_state(view, facts));
    if (facts->ended)
        json_number(&json, "exit_code", (uint64_t)facts->ended_code);
    else
        json_null(&json, "exit_code");
    json_text(&json, "waiting_for", view->waiting_for);
    json_number(&json, "round", view->round);
    json_number(&json, "next", view->next);
    json_number(&json, "size", view->member_count);
    json_text(&json, "commit", commits_number(view->commit, text));
    json_text(&json, "floor", commits_number(view->resume_min_commit, text));
    commits_json(view, facts, &json);
    reports_json(view, facts, &json);
    json_number(&json, "kept", view->shortage.kept);
    json_number(&json, "resets", view->resets);
    json_bool(&json, "enough", view->shortage.since_us == TIME_NEVER);
    json_seconds(&json, "short_for_s", table_since(facts, view->shortage.since_us));
    json_seconds(&json, "fails_in_s", table_until(facts, view->shortage.fails_us));
    json_number(&json, "np", facts->np);
    json_number(&json, "min_np", facts->min_np);
    json_number(&json, "max_np", facts->max_np);
    json_open(&json, "workers", '{');
    for (size_t i = 0; i < WORKER_STATE_COUNT; i++)
        json_number(&json, worker_state_name((enum worker_state)i), totals.workers[i]);
    json_close(&json, '}');
    json_open(&json, "hosts", '{');
    json_number(&json, "listed", totals.listed);
    json_number(&json, "used", totals.used);
    json_number(&json, "draining", totals.draining);
    json_number(&json, "agents", totals.agents);
    json_close(&json, '}');
    json_open(&json, "notices", '{');
    json_number(&json, "ended", view->notices.ended);
    json_number(&json, "honoured", view->notices.honoured);
    json_number(&json, "under_way", view->notices.under_way);
    json_seconds(&json, "least_lead_s", view->notices.least_lead_us);
    json_seconds(&json, "least_margin_s", view->notices.least_margin_us);
    json_close(&json, '}');
    discovery_json(view, facts, &json);
    goodput_json(&view->goodput, &json);
    json_open(&json, "driver", '{');
    if (facts->orphan)
        json_null(&json, "pid");
    else
        json_number(&json, "pid", facts->pid);
    json_number(&json, "term", view->term);
    json_seconds(&json, "for_s",
                 facts->orphan ? TIME_NEVER : table_since(facts, facts->started_us));
    json_seconds(&json, "silent_s", facts->orphan ? facts->silent_us : TIME_NEVER);
    json_text(&json, "state_dir", facts->state_dir);
    json_close(&json, '}');
    return json_end(&json);
}

int table_status(const struct core_view *view, const struct table_facts *facts, bool json,
                 struct buf *out)
{
    return table_show(view, facts, json ? status_json : status_text, out);
}

/* Writes the answer to "hosts" for operators: a row for each host, also without workers; then a row
 * for each worker, in the same order. */
static int hosts_text(const struct core_view *view, const struct table_facts *facts,
                      struct buf *out)
{
    static const char *const host_heads[] = { "HOST",  "SLOTS", "USED",
                                              "AGENT", "HEARD", "WHY NOT MORE" };
    static const char *const worker_heads[] = { "WORKER", "NUMBER", "RANK",   "STATE",
                                                "FOR",    "HEARD",  "COMMIT", "AGE" };
    struct grid hosts, workers;
    char time[TIME_TEXT_MAX], kept[TABLE_KEPT_MAX];
    int rc = 0;

    grid_init(&hosts, host_heads, ARRAY_SIZE(host_heads));
    grid_init(&workers, worker_heads, ARRAY_SIZE(worker_heads));
    for (size_t i = 0; i < view->host_count; i++) {
        const struct view_host *host = &view->hosts[i];
        char slots[TABLE_NUMBER_MAX], used[TABLE_NUMBER_MAX], heard[TIME_TEXT_MAX];
        char left[TIME_TEXT_MAX], timed[HOST_WHY_MAX];
        const char *why = host->why;
        bool known = !facts->orphan && host->heard_us != TIME_NEVER;

        if (host->draining && host->listed && host->worker_count && host->drain_us != TIME_NEVER &&
            !facts->orphan) {
            snprintf(timed, sizeof(timed), "%s; %s left", host->why,
                     table_time(table_until(facts, host->drain_us), left));
            why = timed;
        }
        grid_row(&hosts,
                 (const char *[]){
                     host->name, table_number(host->slots, slots),
                     table_number(host->worker_count, used), agent_state_name(host->agent),
                     known ? table_time(table_since(facts, host->heard_us), heard) : "-", why });
        for (size_t k = 0; k < host->worker_count; k++) {
            const struct view_worker *worker = &host->workers[k];
            char slot[BLACKLIST_KEY_TEXT_MAX], since[TIME_TEXT_MAX];
            char incarnation[TABLE_NUMBER_MAX], rank[TABLE_NUMBER_MAX];
            struct commits_cells cells;

            table_number(worker->rank, rank);
            commits_cells(worker, facts, &cells);
            grid_row(
                &workers,
                (const char *[]){
                    blacklist_key_format(host->name, worker->slot, slot),
                    table_number(worker->incarnation, incarnation),
                    worker->rank == NOT_IN_ROUND ? "-" : rank, worker_state_name(worker->state),
                    facts->orphan ? "-" : table_time(table_since(facts, worker->since_us), since),
                    cells.heard, cells.commit, cells.age });
        }
    }
    if (facts->orphan && facts->store)
        rc = buf_printf(out,
                        "no driver of this job lives; this is what the last one (%s) had written "
                        "down\n\n",
                        facts->last);
    else if (!facts->orphan && view->discovery.failures)
        rc = status_discovery(view, facts, out);
    else if (facts->orphan)
        rc = buf_printf(out,
                        "no driver of this job lives on this machine; the last one wrote its last "
                        "line %s ago, and this is what it had written down\n\n",
                        table_time(facts->silent_us, time));
    rc = grid_show(&hosts, rc, out);
    if (!rc && *table_kept(view, facts, kept))
        rc = buf_printf(out, "\n%s\n", kept);
    if (!rc)
        rc = buf_append_text(out, "\n");
    return grid_show(&workers, rc, out);
}

/* Writes the answer to "hosts" for programs: each host has the list of its workers. */
static int hosts_json(const struct core_view *view, const struct table_facts *facts,
                      struct buf *out)
{
    struct json json = { .out = out };

    table_json_begin(&json, facts, "hosts");
    for (size_t i = 0; i < view->host_count; i++) {
        const struct view_host *host = &view->hosts[i];

        json_open(&json, NULL, '{');
        json_text(&json, "name", host->name);
        json_number(&json, "slots", host->slots);
        json_number(&json, "used", host->worker_count);
        json_bool(&json, "listed", host->listed);
        json_bool(&json, "draining", host->draining);
        json_seconds(&json, "drain_left_s",
                     host->draining && !facts->orphan ? table_until(facts, host->drain_us)
                                                      : TIME_NEVER);
        json_text(&json, "agent", agent_state_name(host->agent));
        json_seconds(&json, "heard_s",
                     facts->orphan ? TIME_NEVER : table_since(facts, host->heard_us));
        json_text(&json, "why", host->why);
        json_open(&json, "workers", '[');
        for (size_t k = 0; k < host->worker_count; k++) {
            const struct view_worker *worker = &host->workers[k];

            json_open(&json, NULL, '{');
            json_number(&json, "slot", worker->slot);
            json_number(&json, "incarnation", worker->incarnation);
            if (worker->rank == NOT_IN_ROUND)
                json_null(&json, "rank");
            else
                json_number(&json, "rank", worker->rank);
            json_text(&json, "state", worker_state_name(worker->state));
            json_bool(&json, "trains", worker->entered);
            json_seconds(&json, "for_s",
                         facts->orphan ? TIME_NEVER : table_since(facts, worker->since_us));
            json_bool(&json, "draining", worker->draining);
            json_seconds(&json, "drain_left_s",
                         worker->draining && !facts->orphan ? table_until(facts, worker->drain_us)
                                                            : TIME_NEVER);
            commits_worker_json(worker, facts, &json);
            json_close(&json, '}');
        }
        json_close(&json, ']');
        json_close(&json, '}');
    }
    json_close(&json, ']');
    discovery_json(view, facts, &json);
    json_bool(&json, "orphaned", facts->orphan);
    return json_end(&json);
}

int table_hosts(const struct core_view *view, const struct table_facts *facts, bool json,
                struct buf *out)
{
    return table_show(view, facts, json ? hosts_json : hosts_text, out);
}

/* Makes the answer to "changes": what each change of the membership has cost. In the table
 * durations are rounded, "1.52s", because a rough value is enough for an operator. In the JSON they
 * are in microseconds, as the core has measured them; for a change of the cause CAUSE_COUNT they
 * are 0, as no driver has measured it. */
int table_changes(const struct core_view *view, const struct table_facts *facts, bool json,
                  struct buf *out)
{
    static const char *const heads[] = { "ROUND",  "CAUSE", "SIZE",    "AGO",   "PAUSE",
                                         "DETECT", "AGREE", "REBUILD", "STATE", "FIRST STEP" };
    struct json rows = { .out = out };
    struct grid grid;
    size_t before = out->length;

    if (!json && !view->change_count)
        return buf_append_text(out, "there was no round yet in which all members trained\n");
    if (json)
        table_json_begin(&rows, facts, "changes");
    else
        grid_init(&grid, heads, ARRAY_SIZE(heads));
    for (size_t i = 0; i < view->change_count; i++) {
        const struct view_change *change = &view->changes[i];
        const char *cause = change_cause_name(change->cause);
        int64_t ago_us = table_since(facts, change->ended_us);
        char round[TABLE_NUMBER_MAX], sizes[2 * TABLE_NUMBER_MAX];
        char ago[TIME_TEXT_MAX], pause[TIME_TEXT_MAX], agree[TIME_TEXT_MAX];
        char rebuild[TIME_TEXT_MAX], state[TIME_TEXT_MAX], step[TIME_TEXT_MAX];
        char detect[TIME_TEXT_MAX];

        if (json) {
            json_open(&rows, NULL, '{');
            json_number(&rows, "round", change->round);
            json_text(&rows, "cause", cause);
            json_number(&rows, "from", change->from);
            json_number(&rows, "to", change->to);
            json_seconds(&rows, "ago_s", ago_us);
            json_number(&rows, "pause_us", (uint64_t)change->pause_us);
            json_number(&rows, "detect_us", (uint64_t)change->detect_us);
            json_number(&rows, "agree_us", (uint64_t)change->agree_us);
            json_number(&rows, "rebuild_us", (uint64_t)change->rebuild_us);
            json_number(&rows, "state_us", (uint64_t)change->state_us);
            json_number(&rows, "first_step_us", (uint64_t)change->first_step_us);
            json_close(&rows, '}');
            continue;
        }
        snprintf(sizes, sizeof(sizes), "%u -> %u", change->from, change->to);
        if (change->cause == CAUSE_COUNT)
            grid_row(&grid,
                     (const char *[]){ table_number(change->round, round), cause, sizes,
                                       table_time(ago_us, ago), "-", "-", "-", "-", "-", "-" });
        else
            grid_row(
                &grid,
                (const char *[]){
                    table_number(change->round, round), cause, sizes, table_time(ago_us, ago),
                    time_brief(change->pause_us, pause), time_brief(change->detect_us, detect),
                    time_brief(change->agree_us, agree), time_brief(change->rebuild_us, rebuild),
                    time_brief(change->state_us, state), time_brief(change->first_step_us, step) });
    }
    return table_end(out, before, json ? table_json_end(&rows) : grid_show(&grid, 0, out));
}

/* Makes the answer to "blacklist": a row for each host or slot with failures. held->left_us is 0:
 * it may be used now; TIME_NEVER: an operator must clear it first. */
int table_blacklist(const struct core_view *view, const struct table_facts *facts, bool json,
                    struct buf *out)
{
    static const char *const heads[] = { "HOST[:SLOT]", "FAILURES", "USABLE IN", "LAST FAILURE" };
    struct json rows = { .out = out };
    struct grid grid;
    size_t before = out->length;

    if (!json && !view->held_count)
        return buf_append_text(out, "no failure is counted against any host\n");
    if (json)
        table_json_begin(&rows, facts, "blacklist");
    else
        grid_init(&grid, heads, ARRAY_SIZE(heads));
    for (size_t i = 0; i < view->held_count; i++) {
        const struct view_held *held = &view->held[i];
        char slot[BLACKLIST_KEY_TEXT_MAX], failures[TABLE_NUMBER_MAX], time[TIME_TEXT_MAX];
        const char *usable_in = table_time(held->left_us, time);

        if (json) {
            json_open(&rows, NULL, '{');
            json_text(&rows, "host", held->host);
            if (held->slot == BLACKLIST_WHOLE_HOST)
                json_null(&rows, "slot");
            else
                json_number(&rows, "slot", held->slot);
            json_number(&rows, "failures", held->failures);
            json_bool(&rows, "usable", held->left_us == 0);
            /* null: not usable until an operator clears it. */
            json_seconds(&rows, "left_s", held->left_us);
            json_text(&rows, "reason", held->reason);
            json_close(&rows, '}');
            continue;
        }
        if (held->left_us == 0)
            usable_in = "now";
        else if (held->left_us == TIME_NEVER)
            usable_in = "cleared";
        grid_row(&grid, (const char *[]){ blacklist_key_format(held->host, held->slot, slot),
                                          table_number(held->failures, failures), usable_in,
                                          held->reason });
    }
    return table_end(out, before, json ? table_json_end(&rows) : grid_show(&grid, 0, out));
}

/* Makes the answer to "token list": a row for each token with which hosts may join. */
int table_tokens(const struct core_view *view, const struct table_facts *facts, bool json,
                 struct buf *out)
{
    static const char *const heads[] = { "TOKEN", "STATE", "HOST", "HOSTS", "OF", "LEFT" };
    struct json rows = { .out = out };
    struct grid grid;
    size_t before = out->length;

    if (!json && !view->tokens.count)
        return buf_append_text(out, "the job has no tokens\n");
    if (json)
        table_json_begin(&rows, facts, "tokens");
    else
        grid_init(&grid, heads, ARRAY_SIZE(heads));
    for (size_t i = 0; i < view->tokens.count; i++) {
        const struct view_token *token = &view->tokens.items[i];
        char uses[TABLE_NUMBER_MAX], used[TABLE_NUMBER_MAX], time[TIME_TEXT_MAX];
        const char *state = token->revoked                              ? "revoked"
                            : !token->left_us                           ? "expired"
                            : token->uses && token->used >= token->uses ? "used up"
                                                                        : "good";
        const char *left = token->revoked                 ? "-"
                           : token->left_us == TIME_NEVER ? "always"
                                                          : table_time(token->left_us, time);

        if (json) {
            json_open(&rows, NULL, '{');
            json_text(&rows, "token", token->id);
            json_text(&rows, "state", state);
            json_text(&rows, "host", token->host);
            json_number(&rows, "used", token->used);
            json_number(&rows, "uses", token->uses); /* 0: any number of hosts may use the token */
            json_seconds(&rows, "left_s", token->left_us);
            json_close(&rows, '}');
            continue;
        }
        grid_row(&grid,
                 (const char *[]){ token->id, state, *token->host ? token->host : "any",
                                   token->uses ? table_number(token->used, used) : "-",
                                   token->uses ? table_number(token->uses, uses) : "any", left });
    }
    return table_end(out, before, json ? table_json_end(&rows) : grid_show(&grid, 0, out));
}

/* Makes one line of the answer to "events": the time and the text as they are, or a JSON object
 * with all facts. */
int table_event(const char *moment, enum trace_level level, const char *text, const char *facts,
                bool json, struct buf *out)
{
    struct json line = { .out = out };
    size_t before = out->length;

    if (!json)
        return buf_printf(out, "%s %s%s\n", moment, events_mark(level), text);
    json_open(&line, NULL, '{');
    json_text(&line, "time", moment);
    json_text(&line, "severity", events_severity(level));
    json_text(&line, "text", text);
    event_facts_json(facts, &line);
    return table_end(out, before, json_end(&line));
}
