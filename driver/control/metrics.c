/*
 * metrics.c: writes the metrics of a job from a view of its core. scrapes.c and textfile.c call it.
 * The text has a family (one metric with its help) after the other, each followed by its samples.
 * Invariant: a text that comes from outside is only in a label, where put_name escapes it.
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

/* The text that is made, and the family whose samples are written now. */
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

/* Begins a family: writes its help, its type and its unit. `name` of a counter comes without
 * "_total": OpenMetrics names the family so, and the older format adds "_total". */
static void put_family(struct metrics *metrics, enum family_kind kind, const char *name,
                       const char *unit, const char *help)
{
    static const char *const kinds[] = { "gauge", "counter", "histogram" };
    const char *total = kind == COUNTER && !metrics->openmetrics ? "_total" : "";

    metrics->name = name;
    metrics->kind = kind;
    if (!metrics->rc)
        metrics->rc = buf_printf(metrics->out, "# HELP " NAMED "%s%s %s\n# TYPE " NAMED "%s%s %s\n",
                                 name, total, help, name, total, kinds[kind]);
    if (!metrics->rc && metrics->openmetrics && *unit)
        metrics->rc = buf_printf(metrics->out, "# UNIT " NAMED "%s %s\n", name, unit);
}

struct label {
    const char *name, *text; /* name NULL: the sample has no such label */
};

/* Begins a sample of the present family: writes its name with `suffix` (for a counter always
 * "_total"), and its labels, NAME="TEXT". The caller writes the value. A byte that is not UTF-8, or
 * a control character, becomes U+FFFD: it is of no use in a name, and the text goes to terminals
 * and pages. */
static void put_name(struct metrics *metrics, const char *suffix, struct label one,
                     struct label other, struct label last)
{
    const struct label labels[] = { one, other, last };
    const char *separator = "{";

    if (metrics->kind == COUNTER)
        suffix = "_total";
    if (!metrics->rc)
        metrics->rc = buf_printf(metrics->out, NAMED "%s%s", metrics->name, suffix);
    for (size_t i = 0; i < ARRAY_SIZE(labels); i++) {
        const char *text = labels[i].text;

        if (!labels[i].name)
            continue;
        if (!metrics->rc)
            metrics->rc = buf_printf(metrics->out, "%s%s=\"", separator, labels[i].name);
        for (size_t remaining = strlen(text), length; remaining && !metrics->rc;
             remaining -= length, text += length) {
            unsigned char byte = (unsigned char)*text;

            length = byte < 0x80;
            for (size_t k = 2; k <= 4 && k <= remaining && !length; k++)
                length = text_is_clean(text, k) ? k : 0;
            if (byte == '"' || byte == '\\')
                metrics->rc = buf_printf(metrics->out, "\\%c", byte);
            else if (length && byte >= ' ' && byte != 0x7f)
                metrics->rc = buf_append(metrics->out, text, length);
            else
                metrics->rc = buf_append_text(metrics->out, "\xef\xbf\xbd");
            length = length ? length : 1;
        }
        if (!metrics->rc)
            metrics->rc = buf_append_text(metrics->out, "\"");
        separator = ",";
    }
    if (!metrics->rc && *separator == ',')
        metrics->rc = buf_append_text(metrics->out, "}");
}

/* Stands for a label that a sample does not have. */
static const struct label none = { NULL, NULL };

/* Writes a sample whose value is a whole number. */
static void put_count(struct metrics *metrics, struct label label, uint64_t value)
{
    put_name(metrics, "", label, none, none);
    if (!metrics->rc)
        metrics->rc = buf_printf(metrics->out, " %" PRIu64 "\n", value);
}

/* Writes a value given in microseconds as seconds; it ends the sample that put_name has begun. */
static void put_value(struct metrics *metrics, int64_t us)
{
    if (!metrics->rc)
        metrics->rc =
            buf_printf(metrics->out, " %" PRId64 ".%06" PRId64 "\n", us / TIME_S, us % TIME_S);
}

/* Writes a sample whose value is a duration; a negative one becomes 0. */
static void put_seconds(struct metrics *metrics, struct label label, int64_t us)
{
    put_name(metrics, "", label, none, none);
    put_value(metrics, us < 0 ? 0 : us);
}

/* Writes a family of one sample, a whole number. */
static void put_gauge(struct metrics *metrics, const char *name, const char *help, uint64_t value)
{
    put_family(metrics, GAUGE, name, "", help);
    put_count(metrics, none, value);
}

/* Writes the samples of one histogram: for each bound how many pauses were at most as long, then
 * their sum and number. */
static void put_histogram(struct metrics *metrics, struct label cause, struct label phase,
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
        put_name(metrics, "_bucket", cause, phase, (struct label){ "le", bound });
        if (!metrics->rc)
            metrics->rc = buf_printf(metrics->out, " %" PRIu64 "\n", count);
    }
    put_name(metrics, "_sum", cause, phase, none);
    put_value(metrics, histogram->sum_us);
    put_name(metrics, "_count", cause, phase, none);
    if (!metrics->rc)
        metrics->rc = buf_printf(metrics->out, " %" PRIu64 "\n", count);
}

/* ---- what is told --------------------------------------------------------------------------- */

/* Writes the metrics of the job as a whole: its name, state, driver, round, size, notices and
 * checkpoints. */
static void metrics_job(struct metrics *metrics, const struct core_view *view,
                        const struct table_facts *facts)
{
    const struct view_checkpoint *checkpoint = &view->checkpoint;

    put_family(metrics, GAUGE, "job_info", "",
               "The name of the job, and the version of its driver.");
    put_name(metrics, "", (struct label){ "job_name", facts->job },
             (struct label){ "version", HVD_VERSION_TEXT }, none);
    if (!metrics->rc)
        metrics->rc = buf_append_text(metrics->out, " 1\n");
    put_family(metrics, GAUGE, "job_state", "", "1 for the state of the job, 0 for the others.");
    for (enum job_state state = JOB_NEW; state < JOB_STATE_COUNT; state++)
        put_count(metrics, (struct label){ "state", job_state_name(state) }, view->job == state);
    put_gauge(metrics, "driver_term", "How many drivers the job has had.", view->term);
    put_family(metrics, GAUGE, "driver_up_seconds", "seconds", "For how long this driver has run.");
    put_seconds(metrics, none, facts->now_us - facts->started_us);
    put_gauge(metrics, "round", "The number of the current round.", view->round);
    put_family(metrics, COUNTER, "rounds", "", "Rounds that have begun in the life of the job.");
    put_count(metrics, none, view->round ? (uint64_t)view->resets + 1 : 0);
    put_gauge(metrics, "world_size", "Members of the current round.", view->member_count);
    put_gauge(metrics, "enough_workers", "1: the job has all workers that it needs.",
              view->shortage.since_us == TIME_NEVER);
    put_family(metrics, GAUGE, "workers_bound", "", "The numbers of -np, --min-np and --max-np.");
    put_count(metrics, (struct label){ "bound", "np" }, facts->np);
    put_count(metrics, (struct label){ "bound", "min_np" }, facts->min_np);
    put_count(metrics, (struct label){ "bound", "max_np" }, facts->max_np);

    put_family(metrics, COUNTER, "notices", "", "Notices of machines that have ended, by result.");
    put_count(metrics, (struct label){ "result", "honoured" }, view->notices.honoured);
    put_count(metrics, (struct label){ "result", "missed" },
              view->notices.ended - view->notices.honoured);
    put_gauge(metrics, "notices_under_way", "Notices whose hosts still have workers.",
              view->notices.under_way);
    put_family(metrics, COUNTER, "checkpoints", "", "Checkpoints of this driver, by result.");
    put_count(metrics, (struct label){ "result", "written" }, checkpoint->written);
    put_count(metrics, (struct label){ "result", "failed" }, checkpoint->failed);
    put_family(metrics, GAUGE, "checkpoint_age_seconds", "seconds",
               "The age of the newest checkpoint that this driver has completed.");
    if (checkpoint->commit && checkpoint->made_us != TIME_NEVER)
        put_seconds(metrics, none, facts->now_us - checkpoint->made_us);
}

/* Writes the metrics of the members' progress, as their heartbeats tell it, and the values that the
 * program has reported. Values that are not known are left out. */
static void metrics_commits(struct metrics *metrics, const struct core_view *view,
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
    put_family(metrics, GAUGE, "newest_commit_age_seconds", "seconds",
               "The time since the newest commit of a member was first seen.");
    if (view->newest)
        put_seconds(metrics, none, facts->now_us - view->newest_us);
    put_family(metrics, GAUGE, "commits_per_second", "",
               "Commits in a second, of the last 10 to 20 s.");
    if (rate != TIME_NEVER) {
        put_name(metrics, "", none, none, none);
        put_value(metrics, rate);
    }
    put_family(metrics, GAUGE, "workers_lagging", "",
               "Workers that are not heard, and workers that lack commits of the others.");
    put_count(metrics, (struct label){ "how", "silent" }, silent);
    put_count(metrics, (struct label){ "how", "behind" }, behind);

    put_family(metrics, GAUGE, "reported", "", "The newest values that the program has reported.");
    for (size_t i = 0; i < view->reports.count; i++) {
        const struct view_report *report = &view->reports.items[i];

        put_name(metrics, "", (struct label){ "name", report->name }, none, none);
        if (!metrics->rc)
            metrics->rc = buf_printf(metrics->out, " %s\n",
                                     isinf(report->value) ? report->value < 0 ? "-Inf" : "+Inf"
                                                          : reports_number(report->value, number));
    }
    put_family(metrics, GAUGE, "reported_age_seconds", "seconds",
               "The time since these values were reported.");
    for (size_t i = 0; i < view->reports.count; i++)
        put_seconds(metrics, (struct label){ "name", view->reports.items[i].name },
                    facts->now_us - view->reports.items[i].at_us);
}

/* Writes the metrics of workers, hosts, discovery and the blacklist. */
static void metrics_hosts(struct metrics *metrics, const struct core_view *view)
{
    const struct table_totals totals = table_totals(view);
    uint64_t barred = 0, cooling = 0;

    for (size_t i = 0; i < view->held_count; i++) {
        barred += view->held[i].left_us == TIME_NEVER;
        cooling += view->held[i].left_us > 0 && view->held[i].left_us != TIME_NEVER;
    }
    put_family(metrics, GAUGE, "workers", "", "Workers by their state.");
    for (enum worker_state state = WORKER_LAUNCHING; state < WORKER_STATE_COUNT; state++)
        put_count(metrics, (struct label){ "state", worker_state_name(state) },
                  totals.workers[state]);
    put_family(metrics, GAUGE, "hosts", "",
               "Hosts: listed by discovery, with workers, drained, with a connected agent.");
    put_count(metrics, (struct label){ "state", "listed" }, totals.listed);
    put_count(metrics, (struct label){ "state", "used" }, totals.used);
    put_count(metrics, (struct label){ "state", "drained" }, totals.draining);
    put_count(metrics, (struct label){ "state", "agent" }, totals.agents);
    put_gauge(metrics, "discovery_failures_in_a_row",
              "Discoveries that have failed since the last one that worked.",
              view->discovery.failures);
    put_gauge(metrics, "slots", "Slots of the listed hosts.", totals.slots);
    put_family(metrics, GAUGE, "blacklist", "",
               "Entries of the blacklist: that cool down, and that an operator must clear.");
    put_count(metrics, (struct label){ "state", "cooling" }, cooling);
    put_count(metrics, (struct label){ "state", "barred" }, barred);
    put_family(metrics, COUNTER, "worker_failures", "",
               "Failures of workers in the life of the job, by host; without a name: other hosts.");
    for (size_t i = 0; i < view->goodput.failure_count; i++)
        put_count(metrics, (struct label){ "host", view->goodput.failures[i].host },
                  view->goodput.failures[i].count);
}

/* Writes all metrics of the job. After a failure `out` is cut back to what it had before. */
int metrics_write(const struct core_view *view, const struct table_facts *facts, bool openmetrics,
                  struct buf *out)
{
    struct metrics metrics = { .out = out, .openmetrics = openmetrics };
    static const char *const phases[] = {
        NULL, "detect", "agree", "rebuild", "state", "first_step"
    };
    const struct goodput_part *sums = view->goodput.sums;
    size_t before = out->length;

    metrics_job(&metrics, view, facts);
    metrics_commits(&metrics, view, facts);
    metrics_hosts(&metrics, view);
    put_family(&metrics, GAUGE, "time_seconds", "seconds", "The life of the job by its use.");
    for (enum goodput_use use = GOODPUT_TRAINING; use < GOODPUT_COUNT; use++)
        put_seconds(&metrics, (struct label){ "use", goodput_use_name(use) }, sums[use].time_us);
    put_family(&metrics, GAUGE, "worker_time_seconds", "seconds",
               "The time of all workers by its use.");
    for (enum goodput_use use = GOODPUT_TRAINING; use < GOODPUT_COUNT; use++)
        put_seconds(&metrics, (struct label){ "use", goodput_use_name(use) }, sums[use].worker_us);
    put_family(&metrics, GAUGE, "goodput_ratio", "ratio",
               "The part of the time of all workers that was training.");
    put_name(&metrics, "", none, none, none);
    if (!metrics.rc)
        metrics.rc = buf_printf(out, " %.6f\n", goodput_ratio(&view->goodput));
    put_family(&metrics, HISTOGRAM, "pause_seconds", "seconds",
               "How long members did not train at changes under this driver, by cause.");
    for (enum msg_cause cause = CAUSE_FIRST; cause < CAUSE_COUNT; cause++)
        put_histogram(&metrics, (struct label){ "cause", change_cause_name(cause) }, none,
                      &view->pauses[cause][PAUSE_WHOLE]);
    put_family(&metrics, HISTOGRAM, "pause_phase_seconds", "seconds",
               "How long the phases of these changes took, by cause and phase.");
    for (enum msg_cause cause = CAUSE_FIRST; cause < CAUSE_COUNT; cause++)
        for (enum pause_phase phase = PAUSE_DETECT; phase < PAUSE_PHASE_COUNT; phase++)
            put_histogram(&metrics, (struct label){ "cause", change_cause_name(cause) },
                          (struct label){ "phase", phases[phase] }, &view->pauses[cause][phase]);
    if (!metrics.rc && openmetrics)
        metrics.rc = buf_append_text(out, "# EOF\n");
    if (metrics.rc && out->data) {
        out->length = before;
        out->data[before] = '\0';
    }
    return metrics.rc;
}
