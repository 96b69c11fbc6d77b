/*
 * live.c: makes the message for viewers of --page from the answers that operators get. page.c calls
 * it for --page; control.c for the verb "page"; and driver/cli/page.c itself for a job without a
 * driver. Invariant: the message is one line of JSON, so no text of the job can begin a second
 * message.
 */
#include "driver/control/live.h"

#include "base/limits.h"
#include "base/time.h"
#include "driver/control/commits.h"
#include "driver/control/event_facts.h"
#include "driver/control/json.h"
#include "driver/control/reports.h"
#include "os/clock.h"

#include <inttypes.h>

_Static_assert(LIMIT_WORKERS == 131072, "page.js has this number as EVERY_SLOT");

/* Shortens the hosts of the view to as many as a message may have. The first pass takes the hosts
 * that matter: those with a reason (`why`), those being drained, and listed ones without an agent;
 * the second pass takes the others. */
static int live_pick_hosts(struct core_view *view)
{
    size_t kept = 0, workers = 0;
    struct view_host *hosts;

    for (size_t i = 0; i < view->host_count; i++)
        workers += view->hosts[i].worker_count;
    if (view->host_count <= LIVE_HOSTS && workers <= LIVE_WORKERS)
        return 0;
    hosts = arena_alloc_array(&view->memory, LIVE_HOSTS, sizeof(*hosts));
    if (!hosts)
        return HVD_E_NOMEM;
    workers = 0;
    for (size_t pass = 0; pass < 2; pass++)
        for (size_t i = 0; i < view->host_count && kept < LIVE_HOSTS; i++) {
            const struct view_host *host = &view->hosts[i];
            bool matters =
                *host->why || host->draining || (host->listed && host->agent != AGENT_THERE);

            if (matters != !pass || workers + host->worker_count > LIVE_WORKERS)
                continue;
            hosts[kept++] = *host;
            workers += host->worker_count;
        }
    view->hosts = hosts;
    view->host_count = kept;
    return 0;
}

/* A function of tables.h that makes the answer to a request. */
typedef int live_table_fn(const struct core_view *, const struct table_facts *, bool, struct buf *);
/* Appends the answer to a request, which `table` makes as JSON, as the value of `name`. The newline
 * at the end of the answer is taken away. */
static int live_table(const struct core_view *view, const struct table_facts *facts,
                      const char *name, live_table_fn *table, struct buf *out)
{
    int rc = buf_printf(out, "\"%s\":", name);

    if (!rc)
        rc = table(view, facts, true /* as JSON */, out);
    if (!rc) {
        out->length--;
        rc = buf_append_text(out, ",");
    }
    return rc;
}

/* Called by events_each: writes one event. False ends the events: the message has no room. */
static bool live_on_event(void *arg, const struct event_line *line)
{
    struct json *json = arg;
    char moment[TIME_STAMP_MAX];

    json_open(json, NULL, '{');
    json_number(json, "number", line->number);
    json_text(json, "time", time_stamp(line->wall_us, moment));
    json_text(json, "severity", events_severity(line->level));
    json_text(json, "text", line->text);
    event_facts_json(line->facts, json);
    json_close(json, '}');
    return !json->rc;
}

/* Writes the message for viewers. `past`: the job has ended, so the time of the message is that of
 * its last sign. `heard`: the age of the checkpoint is known. After a failure `out` is cut back to
 * what it had before. */
int live_write(struct core_view *view, const struct table_facts *facts, const struct events *events,
               size_t most, struct buf *out)
{
    struct json json = { .out = out };
    size_t before = out->length, hosts = view->host_count, held = view->held_count;
    bool past = facts->ended && facts->silent_us != TIME_NEVER;
    int64_t gone_us = past ? facts->silent_us : 0, wall_us = clock_wall_us() - gone_us;
    struct table_facts then = *facts; /* ages are those at the time of the message */
    const struct view_checkpoint *checkpoint = &view->checkpoint;
    bool heard = !facts->orphan && checkpoint->commit && checkpoint->made_us != TIME_NEVER;
    char moment[TIME_STAMP_MAX], commit[COMMITS_NUMBER_MAX];
    int rc = buf_append_text(out, "{");

    then.now_us -= gone_us;
    facts = &then;
    if (!rc)
        /* Status counts all hosts, so it comes before live_pick_hosts. */
        rc = live_table(view, facts, "status", table_status, out);
    if (!rc)
        rc = live_pick_hosts(view);
    view->held_count = held < LIVE_HELD ? held : LIVE_HELD;
    if (!rc)
        rc = live_table(view, facts, "hosts", table_hosts, out);
    if (!rc)
        rc = live_table(view, facts, "changes", table_changes, out);
    if (!rc)
        rc = live_table(view, facts, "blacklist", table_blacklist, out);
    if (!rc)
        rc = buf_printf(out, "\"hosts_left_out\":%zu,\"blacklist_left_out\":%zu,\"now\":\"%s\",",
                        hosts - view->host_count, held - view->held_count,
                        time_stamp(wall_us, moment));
    if (!rc) {
        json_open(&json, "checkpoint", '{');
        if (checkpoint->commit)
            json_text(&json, "commit", commits_number(checkpoint->commit, commit));
        else
            json_null(&json, "commit");
        json_seconds(&json, "age_s", heard ? facts->now_us - checkpoint->made_us : TIME_NEVER);
        if (facts->checkpoint_dir)
            json_text(&json, "where", facts->checkpoint_dir);
        else
            json_null(&json, "where");
        json_close(&json, '}');
        reports_series_json(view, facts, &json);
        json_open(&json, "events", '[');
        if (events)
            events_each(events, most, live_on_event, &json);
        json_close(&json, ']');
        rc = json.rc ? json.rc : buf_append_text(out, "}");
    }
    if (rc && out->data) {
        out->length = before;
        out->data[before] = '\0';
    }
    return rc;
}
