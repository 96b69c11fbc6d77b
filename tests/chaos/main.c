/*
 * chaos: runs a real job and strikes it with every fault, or replays a trace of machines that come
 * and go. Started by ./dev chaos; see docs/chaos.md.
 */
#include "base/buf.h"
#include "base/time.h"
#include "os/clock.h"
#include "tests/chaos/campaign.h"
#include "tests/chaos/networks.h"
#include "tests/chaos/report.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#define SKIPPED     77 /* the exit code that tells ctest that the campaign is not possible here */
#define SUMMARY_MAX ((size_t)1 << 20)
#define JSON_MAX    (256 * 1024 * 1024)

static volatile bool broken_off;

static void break_off(int number)
{
    (void)number;
    broken_off = true;
}

static void describe_machine(char *text, size_t size)
{
    struct utsname name;
    double load[1] = { 0 };

    if (uname(&name))
        memset(&name, 0, sizeof(name));
    (void)getloadavg(load, 1);
    (void)snprintf(text, size, "%ld processors, %.20s %.40s, load %.1f at the start",
                   sysconf(_SC_NPROCESSORS_ONLN), name.sysname, name.release, load[0]);
}

static void show(struct buf *text)
{
    fputs(buf_text(text), stdout);
    buf_release(text);
}

/* ---- a campaign ---- */

static int report_campaign(const struct chaos *chaos, const struct record *record,
                           struct hvd_err *err)
{
    struct buf text, json;
    int rc;

    buf_init(&text, SUMMARY_MAX);
    buf_init(&json, JSON_MAX);
    rc = report_summary(record, &chaos->steps, &text);
    rc = rc ? rc : report_json(record, &chaos->steps, &json);
    if (rc)
        err_set(err, rc, "the report could not be made");
    else
        rc = report_write(chaos->arena.plan->report, "report", &json, &text, err);
    show(&text);
    buf_release(&json);
    return rc;
}

/* Runs a campaign and reports the campaign; an error if the campaign failed, or found a
 * violation. */
static int attack(struct chaos *chaos, struct hvd_err *err)
{
    const struct chaos_plan *plan = chaos->arena.plan;
    struct record record;
    int rc, reported = 0;

    record_init(&record);
    record.seed = plan->seed;
    (void)snprintf(record.title, sizeof(record.title),
                   "%" PRIu64 " hosts x %" PRIu64 " workers%s, seed %" PRIu64, plan->hosts,
                   plan->slots, plan->where == PLAN_NETWORKS ? " in networks of their own" : "",
                   plan->seed);
    describe_machine(record.machine, sizeof(record.machine));
    printf("%s; %s\n", record.title, record.machine);
    fflush(stdout);
    rc = campaign_run(chaos, &record, err);
    record.broken_off = broken_off;
    if (record.fault_count)
        reported = report_campaign(chaos, &record, rc ? NULL : err);
    if (!rc)
        rc = reported;
    if (!rc && (record.violations || record.hangs))
        rc = err_set(err, HVD_E_MISMATCH,
                     "the job is not what it should be; --seed %" PRIu64 " strikes so again",
                     plan->seed);
    record_release(&record);
    return rc;
}

/* ---- a replay ---- */

static int replay(struct chaos *chaos, const struct trace *trace, struct hvd_err *err)
{
    const struct chaos_plan *plan = chaos->arena.plan;
    struct replay replay = { .title = "" };
    int rc;

    (void)snprintf(replay.title, sizeof(replay.title), "%.100s, %" PRIu64 " times as fast",
                   plan->trace, plan->speed);
    describe_machine(replay.machine, sizeof(replay.machine));
    rc = replay_run(&replay, &chaos->arena, trace, &chaos->steps, err);
    if (!rc) {
        struct buf text, json;

        buf_init(&text, SUMMARY_MAX);
        buf_init(&json, JSON_MAX);
        report_replay(&replay, &chaos->steps, &text);
        rc = report_replay_json(&replay, &chaos->steps, &json);
        if (rc)
            err_set(err, rc, "the report could not be made");
        else
            rc = report_write(chaos->arena.plan->report, "replay", &json, &text, err);
        show(&text);
        buf_release(&json);
    }
    if (!rc && replay.violations)
        rc = err_set(err, HVD_E_MISMATCH, "%s", replay.violation);
    replay_release(&replay);
    return rc;
}

/* ---- both ---- */

static int make_folder(const char *path, struct hvd_err *err)
{
    char part[ARENA_PATH];

    if (strlen(path) >= sizeof(part))
        return err_set(err, HVD_E_LIMIT, "--report %.40s...: too long a path", path);
    for (const char *end = path; *end; end++) {
        end += strcspn(end + 1, "/") + 1;
        (void)snprintf(part, sizeof(part), "%.*s", (int)(end - path), path);
        if (mkdir(part, 0777) && errno != EEXIST)
            return err_set(err, HVD_E_IO, "--report %s: %s", path, strerror(errno));
        if (!*end)
            break;
    }
    (void)snprintf(part, sizeof(part), "%s/.", path);
    if (access(part, W_OK | X_OK))
        return err_set(err, HVD_E_IO, "--report %s: %s; give another folder", path,
                       strerror(errno));
    return 0;
}

static int run(struct chaos *chaos, const struct chaos_plan *plan, const struct trace *trace,
               struct hvd_err *err)
{
    char path[ARENA_PATH];
    int rc = plan->where == PLAN_NETWORKS ? networks_enter(err) : 0;
    bool grief;
    bool keep;

    if (rc)
        return rc;
    rc = arena_open(&chaos->arena, plan, &broken_off, err);
    if (!rc)
        rc = steps_open(&chaos->steps, arena_path(&chaos->arena, "steps", path), err);
    if (!rc && plan->list) {
        campaign_list(chaos);
        steps_close(&chaos->steps);
    } else if (!rc) {
        rc = plan->trace ? replay(chaos, trace, err) : attack(chaos, err);
        steps_close(&chaos->steps);
    }
    /* Keeps the folder of a job that has failed; not of a job that was broken off, or has never
     * begun. */
    grief = rc && rc != HVD_E_STATE && rc != HVD_E_UNSUPPORTED;
    keep = !chaos->arena.plan->list && (chaos->arena.plan->keep || grief);
    if (keep)
        printf("kept: %s\n", chaos->arena.folder);
    arena_close(&chaos->arena, keep);
    return rc;
}

int main(int argc, char **argv)
{
    static struct chaos chaos; /* static: too large for a stack */
    struct chaos_plan plan;
    struct trace trace = { .count = 0 };
    struct hvd_err err = { .text = "" };
    int status = 0, rc = 0;
    struct sigaction action;
    struct sigaction before;

    if (!chaos_plan_read(&plan, argc, argv, &status)) {
        chaos_plan_release(&plan);
        return status;
    }
    if (!plan.seed)
        plan.seed = (uint64_t)clock_wall_us() % 1000000 + 1;
    rng_seed(&chaos.rng, plan.seed);
    chaos.arena.plan = &plan;
    /* Sets the handlers without SA_RESTART, so that a signal ends a wait. */
    action = (struct sigaction){ .sa_handler = break_off };
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGHUP, NULL, &before);
    if (before.sa_handler != SIG_IGN) /* SIG_IGN: the program runs under nohup */
        sigaction(SIGHUP, &action, NULL);
    action.sa_handler = SIG_IGN;
    sigaction(SIGPIPE, &action, NULL);
    /* Finds mistakes of the user that would else show only at the end, or after the job has
     * started. */
    status = plan.trace ? trace_load(&trace, plan.trace, &err) : campaign_check(&plan, &err);
    if (!status && !plan.list)
        status = make_folder(plan.report, &err);
    rc = status ? status : run(&chaos, &plan, &trace, &err);
    trace_release(&trace);
    if (broken_off)
        fprintf(stderr, "chaos: broken off; all of it has ended\n");
    else if (rc)
        fprintf(stderr, "chaos: %s\n", err.text[0] ? err.text : err_text(rc));
    chaos.arena.plan = NULL; /* the plan ends with this function */
    chaos_plan_release(&plan);
    if (broken_off)
        return 130;
    return status ? 2 : rc == HVD_E_UNSUPPORTED ? SKIPPED : rc ? 1 : 0;
}
