#include "driver/ask/tables.h"

#include "base/time.h"
#include "blacklist/record.h"
#include "driver/ask/json.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define COLUMNS_MAX   9
#define NUMBER_MAX    24
#define COMMIT_MAX    48
#define NOT_IN_ROUND  UINT32_MAX
#define NUMBER(text_) char text_[NUMBER_MAX]

/* All or nothing: what was put together in text goes to out, and text is released. */
static int hand_over(struct buf *text, int rc, struct buf *out)
{
    if (!rc)
        rc = buf_append(out, buf_text(text), text->length);
    buf_release(text);
    return rc;
}

/* Whole seconds, and of less than one milliseconds: nobody reads more. */
static const char *rough(int64_t us, char text[TIME_TEXT_MAX])
{
    if (us < 0)
        us = 0;
    if (us != TIME_NEVER)
        us -= us % (us < TIME_S ? TIME_MS : TIME_S);
    return time_format(us, text);
}

static int64_t since(const struct table_facts *facts, int64_t then_us)
{
    return then_us == TIME_NEVER ? TIME_NEVER : facts->now_us - then_us;
}

/* "3.1": the round it was made in, and its place there. */
static const char *commit_text(uint64_t commit, char text[COMMIT_MAX])
{
    snprintf(text, COMMIT_MAX, "%" PRIu64 ".%" PRIu64, commit >> 32, commit & UINT32_MAX);
    return text;
}

static const char *number(uint64_t value, char text[NUMBER_MAX])
{
    snprintf(text, NUMBER_MAX, "%" PRIu64, value);
    return text;
}

/* ---- columns: every row is visited twice, to measure and to print -----------------------------
 */

struct grid {
    const char *heads[COLUMNS_MAX]; /* ends in NULL unless it is full */
    size_t width[COLUMNS_MAX];
    struct buf *out; /* NULL: measuring */
    int rc;
};

static void grid_row(struct grid *grid, const char *const *cells)
{
    for (size_t i = 0; i < COLUMNS_MAX && grid->heads[i] && !grid->rc; i++) {
        bool last = i + 1 == COLUMNS_MAX || !grid->heads[i + 1];
        size_t length = strlen(cells[i]);

        if (!grid->out) {
            if (grid->width[i] < length)
                grid->width[i] = length;
        } else if (last) {
            grid->rc = buf_printf(grid->out, "%s\n", cells[i]);
        } else {
            grid->rc = buf_printf(grid->out, "%-*s  ", (int)grid->width[i], cells[i]);
        }
    }
}

typedef void grid_fill_fn(struct grid *grid, const struct core_view *view,
                          const struct table_facts *facts);

static int grid_show(struct grid *grid, grid_fill_fn *fill, const struct core_view *view,
                     const struct table_facts *facts, struct buf *out)
{
    grid_row(grid, grid->heads);
    fill(grid, view, facts);
    grid->out = out;
    grid_row(grid, grid->heads);
    fill(grid, view, facts);
    return grid->rc;
}

/* ---- status -----------------------------------------------------------------------------------
 */

struct totals {
    size_t workers[WORKER_STATE_COUNT];
    size_t listed, used, draining, agents;
};

static struct totals add_up(const struct core_view *view)
{
    struct totals totals = { .listed = 0 };

    for (size_t i = 0; i < view->host_count; i++) {
        const struct view_host *host = &view->hosts[i];

        totals.listed += host->listed;
        totals.used += host->worker_count > 0;
        totals.draining += host->draining;
        totals.agents += host->agent == AGENT_THERE;
        for (size_t k = 0; k < host->worker_count; k++)
            totals.workers[host->workers[k].state]++;
    }
    return totals;
}

static int status_of_round(const struct core_view *view, const struct table_facts *facts,
                           struct buf *out)
{
    char text[COMMIT_MAX];
    int rc;

    if (!view->round)
        rc = buf_append_text(out, "round      none yet\n");
    else
        rc = buf_printf(out, "round      %" PRIu64 ", size %zu, from commit %s; %u resets\n",
                        view->round, view->member_count, commit_text(view->commit, text),
                        view->resets);
    if (!rc && view->next)
        rc = buf_printf(out, "next       round %" PRIu64 "\n", view->next);
    if (!rc)
        rc = buf_printf(out, "wanted     %u to begin, at least %u, at most %u\n", facts->np,
                        facts->min_np, facts->max_np);
    return rc;
}

static int status_of_workers(const struct core_view *view, struct buf *out)
{
    struct totals totals = add_up(view);
    bool any = false;
    int rc = buf_append_text(out, "workers    ");

    for (size_t i = 0; !rc && i < WORKER_STATE_COUNT; i++) {
        if (!totals.workers[i])
            continue;
        rc = buf_printf(out, "%s%zu %s", any ? ", " : "", totals.workers[i],
                        worker_state_name((enum worker_state)i));
        any = true;
    }
    if (!rc)
        rc = buf_append_text(out, any ? "\n" : "none\n");
    if (!rc)
        rc = buf_printf(out, "hosts      %zu listed, %zu used, %zu drained, %zu agents\n",
                        totals.listed, totals.used, totals.draining, totals.agents);
    return rc;
}

static int status_for_people(const struct core_view *view, const struct table_facts *facts,
                             struct buf *out)
{
    char text[TIME_TEXT_MAX];
    int rc = buf_printf(out, "job        %s: %s\n", facts->job, job_state_name(view->job));

    if (!rc && *view->waiting_for)
        rc = buf_printf(out, "waits for  %s\n", view->waiting_for);
    if (!rc && !view->enough && view->short_since_us != TIME_NEVER)
        rc = buf_printf(out, "short      of workers for %s\n",
                        rough(since(facts, view->short_since_us), text));
    if (!rc)
        rc = status_of_round(view, facts, out);
    if (!rc)
        rc = status_of_workers(view, out);
    if (!rc)
        rc = buf_printf(out, "driver     pid %" PRIu64 ", term %" PRIu64 ", for %s\n", facts->pid,
                        view->term, rough(since(facts, facts->started_us), text));
    if (!rc)
        rc = buf_printf(out, "state      %s\n", facts->state_dir);
    return rc;
}

static int status_for_programs(const struct core_view *view, const struct table_facts *facts,
                               struct buf *out)
{
    struct json json = { .out = out };
    struct totals totals = add_up(view);
    char text[COMMIT_MAX];

    json_open(&json, NULL, '{');
    json_text(&json, "job", facts->job);
    json_text(&json, "state", job_state_name(view->job));
    json_text(&json, "waiting_for", view->waiting_for);
    json_number(&json, "round", view->round);
    json_number(&json, "next", view->next);
    json_number(&json, "size", view->member_count);
    json_text(&json, "commit", commit_text(view->commit, text));
    json_text(&json, "floor", commit_text(view->floor, text));
    json_number(&json, "resets", view->resets);
    json_bool(&json, "enough", view->enough);
    json_seconds(&json, "short_for_s", since(facts, view->short_since_us));
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
    json_open(&json, "driver", '{');
    json_number(&json, "pid", facts->pid);
    json_number(&json, "term", view->term);
    json_seconds(&json, "for_s", since(facts, facts->started_us));
    json_text(&json, "state_dir", facts->state_dir);
    json_close(&json, '}');
    json_close(&json, '}');
    return json.rc ? json.rc : buf_append_text(out, "\n");
}

int table_status(const struct core_view *view, const struct table_facts *facts, bool json,
                 struct buf *out)
{
    struct buf text;

    buf_init(&text, out->max);
    return hand_over(&text,
                     json ? status_for_programs(view, facts, &text)
                          : status_for_people(view, facts, &text),
                     out);
}

/* ---- hosts ------------------------------------------------------------------------------------
 */

static void fill_hosts(struct grid *grid, const struct core_view *view,
                       const struct table_facts *facts)
{
    (void)facts;
    for (size_t i = 0; i < view->host_count; i++) {
        const struct view_host *host = &view->hosts[i];
        NUMBER(slots);
        NUMBER(used);

        grid_row(grid, (const char *[]){ host->name, number(host->slots, slots),
                                         number(host->worker_count, used),
                                         agent_state_name(host->agent), host->why });
    }
}

static void fill_workers(struct grid *grid, const struct core_view *view,
                         const struct table_facts *facts)
{
    for (size_t i = 0; i < view->host_count; i++) {
        for (size_t k = 0; k < view->hosts[i].worker_count; k++) {
            const struct view_worker *worker = &view->hosts[i].workers[k];
            char place[BLACKLIST_KEY_TEXT_MAX];
            char for_text[TIME_TEXT_MAX];
            NUMBER(incarnation);
            NUMBER(rank);

            blacklist_key_format(view->hosts[i].name, worker->slot, place);
            number(worker->incarnation, incarnation);
            number(worker->rank, rank);
            rough(since(facts, worker->since_us), for_text);
            grid_row(grid, (const char *[]){ place, incarnation,
                                             worker->rank == NOT_IN_ROUND ? "-" : rank,
                                             worker_state_name(worker->state), for_text });
        }
    }
}

static int hosts_for_people(const struct core_view *view, const struct table_facts *facts,
                            struct buf *out)
{
    struct grid hosts = {
        .heads = {"HOST", "SLOTS", "USED", "AGENT", "WHY NOT MORE"}
    };
    struct grid workers = {
        .heads = {"WORKER", "NUMBER", "RANK", "STATE", "FOR"}
    };
    int rc = grid_show(&hosts, fill_hosts, view, facts, out);

    if (!rc)
        rc = buf_append_text(out, "\n");
    return rc ? rc : grid_show(&workers, fill_workers, view, facts, out);
}

static void worker_json(struct json *json, const struct view_worker *worker,
                        const struct table_facts *facts)
{
    json_open(json, NULL, '{');
    json_number(json, "slot", worker->slot);
    json_number(json, "incarnation", worker->incarnation);
    if (worker->rank == NOT_IN_ROUND)
        json_null(json, "rank");
    else
        json_number(json, "rank", worker->rank);
    json_text(json, "state", worker_state_name(worker->state));
    json_bool(json, "trains", worker->entered);
    json_seconds(json, "for_s", since(facts, worker->since_us));
    json_close(json, '}');
}

static int hosts_for_programs(const struct core_view *view, const struct table_facts *facts,
                              struct buf *out)
{
    struct json json = { .out = out };

    json_open(&json, NULL, '{');
    json_text(&json, "job", facts->job);
    json_open(&json, "hosts", '[');
    for (size_t i = 0; i < view->host_count; i++) {
        const struct view_host *host = &view->hosts[i];

        json_open(&json, NULL, '{');
        json_text(&json, "name", host->name);
        json_number(&json, "slots", host->slots);
        json_number(&json, "used", host->worker_count);
        json_bool(&json, "listed", host->listed);
        json_bool(&json, "draining", host->draining);
        json_text(&json, "agent", agent_state_name(host->agent));
        json_text(&json, "why", host->why);
        json_open(&json, "workers", '[');
        for (size_t k = 0; k < host->worker_count; k++)
            worker_json(&json, &host->workers[k], facts);
        json_close(&json, ']');
        json_close(&json, '}');
    }
    json_close(&json, ']');
    json_close(&json, '}');
    return json.rc ? json.rc : buf_append_text(out, "\n");
}

int table_hosts(const struct core_view *view, const struct table_facts *facts, bool json,
                struct buf *out)
{
    struct buf text;

    buf_init(&text, out->max);
    return hand_over(
        &text, json ? hosts_for_programs(view, facts, &text) : hosts_for_people(view, facts, &text),
        out);
}

/* ---- the blacklist ----------------------------------------------------------------------------
 */

static void fill_blacklist(struct grid *grid, const struct core_view *view,
                           const struct table_facts *facts)
{
    (void)facts;
    for (size_t i = 0; i < view->held_count; i++) {
        const struct view_held *held = &view->held[i];
        char place[BLACKLIST_KEY_TEXT_MAX];
        char left[TIME_TEXT_MAX];
        NUMBER(failures);

        blacklist_key_format(held->host, held->slot, place);
        number(held->failures, failures);
        rough(held->left_us, left);
        if (held->left_us == TIME_NEVER)
            snprintf(left, sizeof(left), "cleared");
        grid_row(grid,
                 (const char *[]){ place, failures, held->left_us ? left : "now", held->reason });
    }
}

static int blacklist_for_people(const struct core_view *view, const struct table_facts *facts,
                                struct buf *out)
{
    struct grid grid = {
        .heads = {"HOST[:SLOT]", "FAILURES", "USABLE IN", "LAST FAILURE"}
    };

    if (!view->held_count)
        return buf_append_text(out, "nothing is held against any host\n");
    return grid_show(&grid, fill_blacklist, view, facts, out);
}

static int blacklist_for_programs(const struct core_view *view, const struct table_facts *facts,
                                  struct buf *out)
{
    struct json json = { .out = out };

    json_open(&json, NULL, '{');
    json_text(&json, "job", facts->job);
    json_open(&json, "blacklist", '[');
    for (size_t i = 0; i < view->held_count; i++) {
        const struct view_held *held = &view->held[i];

        json_open(&json, NULL, '{');
        json_text(&json, "host", held->host);
        if (held->slot == BLACKLIST_WHOLE_HOST)
            json_null(&json, "slot");
        else
            json_number(&json, "slot", held->slot);
        json_number(&json, "failures", held->failures);
        json_bool(&json, "usable", held->left_us == 0);
        json_seconds(&json, "left_s", held->left_us); /* null: until it is cleared */
        json_text(&json, "reason", held->reason);
        json_close(&json, '}');
    }
    json_close(&json, ']');
    json_close(&json, '}');
    return json.rc ? json.rc : buf_append_text(out, "\n");
}

int table_blacklist(const struct core_view *view, const struct table_facts *facts, bool json,
                    struct buf *out)
{
    struct buf text;

    buf_init(&text, out->max);
    return hand_over(&text,
                     json ? blacklist_for_programs(view, facts, &text)
                          : blacklist_for_people(view, facts, &text),
                     out);
}

/* ---- what changes have cost -------------------------------------------------------------------
 */

static void fill_changes(struct grid *grid, const struct core_view *view,
                         const struct table_facts *facts)
{
    for (size_t i = 0; i < view->change_count; i++) {
        const struct view_change *change = &view->changes[i];
        char ago[TIME_TEXT_MAX], pause[TIME_TEXT_MAX], agree[TIME_TEXT_MAX];
        char rebuild[TIME_TEXT_MAX], state[TIME_TEXT_MAX], step[TIME_TEXT_MAX];
        char sizes[2 * NUMBER_MAX];
        NUMBER(round);

        snprintf(sizes, sizeof(sizes), "%u -> %u", change->from, change->to);
        grid_row(grid,
                 (const char *[]){
                     number(change->round, round), change_cause_name(change->cause), sizes,
                     rough(since(facts, change->ended_us), ago),
                     time_brief(change->pause_us, pause), time_brief(change->agree_us, agree),
                     time_brief(change->rebuild_us, rebuild), time_brief(change->state_us, state),
                     time_brief(change->first_step_us, step) });
    }
}

static int changes_for_people(const struct core_view *view, const struct table_facts *facts,
                              struct buf *out)
{
    struct grid grid = {
        .heads = {"ROUND", "CAUSE", "SIZE", "AGO", "PAUSE", "AGREE", "REBUILD", "STATE",
                  "FIRST STEP"}
    };

    if (!view->change_count)
        return buf_append_text(out, "there was no round in which all trained\n");
    return grid_show(&grid, fill_changes, view, facts, out);
}

static int changes_for_programs(const struct core_view *view, const struct table_facts *facts,
                                struct buf *out)
{
    struct json json = { .out = out };

    json_open(&json, NULL, '{');
    json_text(&json, "job", facts->job);
    json_open(&json, "changes", '[');
    for (size_t i = 0; i < view->change_count; i++) {
        const struct view_change *change = &view->changes[i];

        json_open(&json, NULL, '{');
        json_number(&json, "round", change->round);
        json_text(&json, "cause", change_cause_name(change->cause));
        json_number(&json, "from", change->from);
        json_number(&json, "to", change->to);
        json_seconds(&json, "ago_s", since(facts, change->ended_us));
        json_number(&json, "pause_us", (uint64_t)change->pause_us);
        json_number(&json, "agree_us", (uint64_t)change->agree_us);
        json_number(&json, "rebuild_us", (uint64_t)change->rebuild_us);
        json_number(&json, "state_us", (uint64_t)change->state_us);
        json_number(&json, "first_step_us", (uint64_t)change->first_step_us);
        json_close(&json, '}');
    }
    json_close(&json, ']');
    json_close(&json, '}');
    return json.rc ? json.rc : buf_append_text(out, "\n");
}

int table_changes(const struct core_view *view, const struct table_facts *facts, bool json,
                  struct buf *out)
{
    struct buf text;

    buf_init(&text, out->max);
    return hand_over(&text,
                     json ? changes_for_programs(view, facts, &text)
                          : changes_for_people(view, facts, &text),
                     out);
}

/* ---- events -----------------------------------------------------------------------------------
 */

int table_event(int64_t wall_us, const char *text, bool json, struct buf *out)
{
    char moment[TIME_STAMP_MAX];
    struct json line = { .out = NULL };
    struct buf whole;

    time_stamp(wall_us, moment);
    if (!json)
        return buf_printf(out, "%s %s\n", moment, text);
    buf_init(&whole, out->max);
    line.out = &whole;
    json_open(&line, NULL, '{');
    json_text(&line, "time", moment);
    json_text(&line, "text", text);
    json_close(&line, '}');
    return hand_over(&whole, line.rc ? line.rc : buf_append_text(&whole, "\n"), out);
}
