/*
 * metrics.c: writes the metrics of a job from a view of its core. scrapes.c and textfile.c call it.
 * A family is begun with its help, then its samples follow, each once. Invariant: a text that comes
 * from outside stands only in a label, where put_name escapes it.
 */
#include "driver/control/metrics.h"

#include "base/text.h"
#include "base/time.h"
#include "driver/control/commits.h"
#include "driver/control/reports.h"
#include "driver/control/summary.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define NAMED "hvd_elastic_"

enum family_kind { GAUGE, COUNTER, HISTOGRAM };

/* The text that is being made, and the family whose samples follow. */
struct metrics {
    struct buf *out;
    bool openmetrics;
    int rc; /* the code of the first call that failed */
    const char *name;
    enum family_kind kind;
};

const char *metrics_type(bool openmetrics)
{
    return openmetrics ? "application/openmetrics-text; version=1.0.0; charset=utf-8"
                       : "text/plain; version=0.0.4; charset=utf-8";
}

/* Begins a family. The name of a counter is given without "_total": OpenMetrics names the family
 * without it, the older format with it. */
static void put_family(struct metrics *own, enum family_kind kind, const char *name,
                       const char *unit, const char *help)
{
    static const char *const kinds[] = { "gauge", "counter", "histogram" };
    const char *total = kind == COUNTER && !own->openmetrics ? "_total" : "";

    own->name = name;
    own->kind = kind;
    if (!own->rc)
        own->rc = buf_printf(own->out, "# HELP " NAMED "%s%s %s\n# TYPE " NAMED "%s%s %s\n", name,
                             total, help, name, total, kinds[kind]);
    if (!own->rc && own->openmetrics && *unit)
        own->rc = buf_printf(own->out, "# UNIT " NAMED "%s %s\n", name, unit);
}

struct label {
    const char *name, *text; /* name NULL: there is no such label */
};

/* Begins a sample of the family: its name, a suffix, and its labels, NAME="TEXT". The value
 * follows. A byte that is not UTF-8, and a control character, becomes U+FFFD: such names are of no
 * use, and the text goes to terminals and pages. */
static void put_name(struct metrics *own, const char *suffix, struct label one, struct label other,
                     struct label last)
{
    const struct label labels[] = { one, other, last };
    const char *separator = "{";

    if (own->kind == COUNTER)
        suffix = "_total";
    if (!own->rc)
        own->rc = buf_printf(own->out, NAMED "%s%s", own->name, suffix);
    for (size_t i = 0; i < ARRAY_SIZE(labels); i++) {
        const char *text = labels[i].text;

        if (!labels[i].name)
            continue;
        if (!own->rc)
            own->rc = buf_printf(own->out, "%s%s=\"", separator, labels[i].name);
        for (size_t left = strlen(text), length; left && !own->rc; left -= length, text += length) {
            unsigned char byte = (unsigned char)*text;

            length = byte < 0x80;
            for (size_t k = 2; k <= 4 && k <= left && !length; k++)
                length = text_is_clean(text, k) ? k : 0;
            if (byte == '"' || byte == '\\')
                own->rc = buf_printf(own->out, "\\%c", byte);
            else if (length && byte >= ' ' && byte != 0x7f)
                own->rc = buf_append(own->out, text, length);
            else
                own->rc = buf_append_text(own->out, "\xef\xbf\xbd");
            length = length ? length : 1;
        }
        if (!own->rc)
            own->rc = buf_append_text(own->out, "\"");
        separator = ",";
    }
    if (!own->rc && *separator == ',')
        own->rc = buf_append_text(own->out, "}");
}

static const struct label none = { NULL, NULL };

static void put_count(struct metrics *own, struct label label, uint64_t value)
{
    put_name(own, "", label, none, none);
    if (!own->rc)
        own->rc = buf_printf(own->out, " %" PRIu64 "\n", value);
}

static void put_value(struct metrics *own, int64_t us)
{
    if (!own->rc)
        own->rc = buf_printf(own->out, " %" PRId64 ".%06" PRId64 "\n", us / TIME_S, us % TIME_S);
}

static void put_seconds(struct metrics *own, struct label label, int64_t us)
{
    put_name(own, "", label, none, none);
    put_value(own, us < 0 ? 0 : us);
}

/* A family with one sample. */
static void put_gauge(struct metrics *own, const char *name, const char *help, uint64_t value)
{
    put_family(own, GAUGE, name, "", help);
    put_count(own, none, value);
}

static void put_histogram(struct metrics *own, struct label cause, struct label phase,
                          const struct view_histogram *histogram)
{
    uint64_t count = 0;
    char bound[32];

    for (size_t i = 0; i <= PAUSE_BOUNDS; i++) {
        count += histogram->counts[i];
        if (i < PAUSE_BOUNDS)
            snprintf(bound, sizeof(bound), "%.10g%s", (double)pause_bounds_us[i] / TIME_S,
                     pause_bounds_us[i] % TIME_S ? "" : ".0");
        else
            snprintf(bound, sizeof(bound), "+Inf");
        put_name(own, "_bucket", cause, phase, (struct label){ "le", bound });
        if (!own->rc)
            own->rc = buf_printf(own->out, " %" PRIu64 "\n", count);
    }
    put_name(own, "_sum", cause, phase, none);
    put_value(own, histogram->sum_us);
    put_name(own, "_count", cause, phase, none);
    if (!own->rc)
        own->rc = buf_printf(own->out, " %" PRIu64 "\n", count);
}

/* ---- what is told --------------------------------------------------------------------------- */

static void metrics_job(struct metrics *own, const struct core_view *view,
                        const struct table_facts *facts)
{
    const struct view_checkpoint *checkpoint = &view->checkpoint;

    put_family(own, GAUGE, "job_info", "", "The name of the job, and the version of its driver.");
    put_name(own, "", (struct label){ "job_name", facts->job },
             (struct label){ "version", HVD_VERSION_TEXT }, none);
    if (!own->rc)
        own->rc = buf_append_text(own->out, " 1\n");
    put_family(own, GAUGE, "job_state", "", "1 for the state of the job, 0 for the others.");
    for (enum job_state state = JOB_NEW; state < JOB_STATE_COUNT; state++)
        put_count(own, (struct label){ "state", job_state_name(state) }, view->job == state);
    put_gauge(own, "driver_term", "How many drivers the job has had.", view->term);
    put_family(own, GAUGE, "driver_up_seconds", "seconds", "For how long this driver has run.");
    put_seconds(own, none, facts->now_us - facts->started_us);
    put_gauge(own, "round", "The number of the current round.", view->round);
    put_family(own, COUNTER, "rounds", "", "Rounds that have begun in the life of the job.");
    put_count(own, none, view->round ? (uint64_t)view->resets + 1 : 0);
    put_gauge(own, "world_size", "Members of the current round.", view->member_count);
    put_gauge(own, "enough_workers", "1: the job has all workers that it needs.", view->enough);
    put_family(own, GAUGE, "workers_bound", "", "The numbers of -np, --min-np and --max-np.");
    put_count(own, (struct label){ "bound", "np" }, facts->np);
    put_count(own, (struct label){ "bound", "min_np" }, facts->min_np);
    put_count(own, (struct label){ "bound", "max_np" }, facts->max_np);

    put_family(own, COUNTER, "notices", "", "Notices of machines that have ended, by result.");
    put_count(own, (struct label){ "result", "honoured" }, view->notices.honoured);
    put_count(own, (struct label){ "result", "missed" },
              view->notices.ended - view->notices.honoured);
    put_gauge(own, "notices_under_way", "Notices whose hosts still have workers.",
              view->notices.under_way);
    put_family(own, COUNTER, "checkpoints", "", "Checkpoints of this driver, by result.");
    put_count(own, (struct label){ "result", "written" }, checkpoint->written);
    put_count(own, (struct label){ "result", "failed" }, checkpoint->failed);
    put_family(own, GAUGE, "checkpoint_age_seconds", "seconds",
               "The age of the newest checkpoint that this driver has completed.");
    if (checkpoint->commit && checkpoint->made_us != TIME_NEVER)
        put_seconds(own, none, facts->now_us - checkpoint->made_us);
}

/* The progress of the members, by their heartbeats, and what the program has reported. Numbers that
 * are not known are left out. */
static void metrics_commits(struct metrics *own, const struct core_view *view,
                            const struct table_facts *facts)
{
    int64_t rate = commits_rate(view);
    uint64_t silent = 0, behind = 0;
    char number[REPORTS_NUMBER_MAX];

    for (size_t i = 0; i < view->host_count; i++)
        for (size_t k = 0; k < view->hosts[i].worker_count; k++) {
            silent += view->hosts[i].workers[k].silent;
            behind += view->hosts[i].workers[k].behind;
        }
    put_family(own, GAUGE, "newest_commit_age_seconds", "seconds",
               "The time since the newest commit of a member was first seen.");
    if (view->newest)
        put_seconds(own, none, facts->now_us - view->newest_us);
    put_family(own, GAUGE, "commits_per_second", "",
               "Commits in a second, of the last 10 to 20 s.");
    if (rate != TIME_NEVER) {
        put_name(own, "", none, none, none);
        put_value(own, rate);
    }
    put_family(own, GAUGE, "workers_lagging", "",
               "Workers that are not heard, and workers that lack commits of the others.");
    put_count(own, (struct label){ "how", "silent" }, silent);
    put_count(own, (struct label){ "how", "behind" }, behind);

    put_family(own, GAUGE, "reported", "", "The newest values that the program has reported.");
    for (size_t i = 0; i < view->reports.count; i++) {
        const struct view_report *report = &view->reports.items[i];

        put_name(own, "", (struct label){ "name", report->name }, none, none);
        if (!own->rc)
            own->rc = buf_printf(own->out, " %s\n",
                                 isinf(report->value) ? report->value < 0 ? "-Inf" : "+Inf"
                                                      : reports_number(report->value, number));
    }
    put_family(own, GAUGE, "reported_age_seconds", "seconds",
               "The time since these values were reported.");
    for (size_t i = 0; i < view->reports.count; i++)
        put_seconds(own, (struct label){ "name", view->reports.items[i].name },
                    facts->now_us - view->reports.items[i].at_us);
}

static void metrics_hosts(struct metrics *own, const struct core_view *view)
{
    const struct table_totals totals = table_totals(view);
    uint64_t barred = 0, cooling = 0;

    for (size_t i = 0; i < view->held_count; i++) {
        barred += view->held[i].left_us == TIME_NEVER;
        cooling += view->held[i].left_us > 0 && view->held[i].left_us != TIME_NEVER;
    }
    put_family(own, GAUGE, "workers", "", "Workers by their state.");
    for (enum worker_state state = WORKER_LAUNCHING; state < WORKER_STATE_COUNT; state++)
        put_count(own, (struct label){ "state", worker_state_name(state) }, totals.workers[state]);
    put_family(own, GAUGE, "hosts", "",
               "Hosts: listed by discovery, with workers, drained, with a connected agent.");
    put_count(own, (struct label){ "state", "listed" }, totals.listed);
    put_count(own, (struct label){ "state", "used" }, totals.used);
    put_count(own, (struct label){ "state", "drained" }, totals.draining);
    put_count(own, (struct label){ "state", "agent" }, totals.agents);
    put_gauge(own, "discovery_failures_in_a_row",
              "Discoveries that have failed since the last one that worked.",
              view->discovery.failures);
    put_gauge(own, "slots", "Slots of the listed hosts.", totals.slots);
    put_family(own, GAUGE, "blacklist", "",
               "Entries of the blacklist: that cool down, and that an operator must clear.");
    put_count(own, (struct label){ "state", "cooling" }, cooling);
    put_count(own, (struct label){ "state", "barred" }, barred);
    put_family(own, COUNTER, "worker_failures", "",
               "Failures of workers in the life of the job, by host; without a name: other hosts.");
    for (size_t i = 0; i < view->goodput.failure_count; i++)
        put_count(own, (struct label){ "host", view->goodput.failures[i].host },
                  view->goodput.failures[i].count);
}

int metrics_write(const struct core_view *view, const struct table_facts *facts, bool openmetrics,
                  struct buf *out)
{
    struct metrics own = { .out = out, .openmetrics = openmetrics };
    static const char *const phases[] = { NULL, "agree", "rebuild", "state", "first_step" };
    const struct goodput_part *sums = view->goodput.sums;
    size_t before = out->length;

    metrics_job(&own, view, facts);
    metrics_commits(&own, view, facts);
    metrics_hosts(&own, view);
    put_family(&own, GAUGE, "time_seconds", "seconds", "The life of the job by its use.");
    for (enum goodput_use use = GOODPUT_TRAINING; use < GOODPUT_COUNT; use++)
        put_seconds(&own, (struct label){ "use", goodput_use_name(use) }, sums[use].time_us);
    put_family(&own, GAUGE, "worker_time_seconds", "seconds",
               "The time of all workers by its use.");
    for (enum goodput_use use = GOODPUT_TRAINING; use < GOODPUT_COUNT; use++)
        put_seconds(&own, (struct label){ "use", goodput_use_name(use) }, sums[use].worker_us);
    put_family(&own, GAUGE, "goodput_ratio", "ratio",
               "The part of the time of all workers that was training.");
    put_name(&own, "", none, none, none);
    if (!own.rc)
        own.rc = buf_printf(out, " %.6f\n", goodput_ratio(&view->goodput));
    put_family(&own, HISTOGRAM, "pause_seconds", "seconds",
               "How long members did not train at changes under this driver, by cause.");
    for (enum msg_cause cause = CAUSE_FIRST; cause < CAUSE_COUNT; cause++)
        put_histogram(&own, (struct label){ "cause", change_cause_name(cause) }, none,
                      &view->pauses[cause][PAUSE_WHOLE]);
    put_family(&own, HISTOGRAM, "pause_phase_seconds", "seconds",
               "How long the phases of these changes took, by cause and phase.");
    for (enum msg_cause cause = CAUSE_FIRST; cause < CAUSE_COUNT; cause++)
        for (enum pause_phase phase = PAUSE_AGREE; phase < PAUSE_PHASE_COUNT; phase++)
            put_histogram(&own, (struct label){ "cause", change_cause_name(cause) },
                          (struct label){ "phase", phases[phase] }, &view->pauses[cause][phase]);
    if (!own.rc && openmetrics)
        own.rc = buf_append_text(out, "# EOF\n");
    if (own.rc && out->data) {
        out->length = before;
        out->data[before] = '\0';
    }
    return own.rc;
}
