/*
 * chaos: a real job, and to it everything that can happen to one; or a trace of machines that come
 * and go. ./dev chaos; docs/chaos.md.
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

#define SKIPPED     77 /* it cannot be done here: ctest is told so */
#define SUMMARY_MAX ((size_t)1 << 20)

static volatile bool broken_off;

static void break_off(int number)
{
    (void)number;
    broken_off = true;
}

/* Without SA_RESTART: whoever waits is to look. */
static void hear_signals(void)
{
    struct sigaction action = { .sa_handler = break_off };
    struct sigaction before;

    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGHUP, NULL, &before);
    if (before.sa_handler != SIG_IGN) /* nohup */
        sigaction(SIGHUP, &action, NULL);
    action.sa_handler = SIG_IGN;
    sigaction(SIGPIPE, &action, NULL);
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

static int report_path(const struct chaos_plan *plan, const char *name, char path[ARENA_PATH])
{
    int length = snprintf(path, ARENA_PATH, "%s/%s", plan->report, name);

    return length > 0 && length < ARENA_PATH ? 0 : HVD_E_LIMIT;
}

static void show(struct buf *text)
{
    fputs(buf_text(text), stdout);
    buf_release(text);
}

/* ---- a campaign --------------------------------------------------------------------------------
 */

static int report_campaign(const struct chaos *chaos, const struct record *record,
                           struct hvd_err *err)
{
    const struct chaos_plan *plan = chaos->arena.plan;
    char json[ARENA_PATH], page[ARENA_PATH];
    struct buf text;
    int rc;

    buf_init(&text, SUMMARY_MAX);
    rc = report_summary(record, &chaos->steps, &text);
    show(&text);
    if (rc || report_path(plan, "report.json", json) || report_path(plan, "report.html", page))
        return err_set(err, rc ? rc : HVD_E_LIMIT, "--report %s: too long a path", plan->report);
    rc = report_json(record, &chaos->steps, json, err);
    if (!rc)
        rc = report_page(record, &chaos->steps, page, err);
    if (!rc)
        printf("%s\n%s\n", json, page);
    return rc;
}

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

/* ---- a replay ----------------------------------------------------------------------------------
 */

static int report_trace(const struct chaos *chaos, const struct replay *replay, struct hvd_err *err)
{
    const struct chaos_plan *plan = chaos->arena.plan;
    char json[ARENA_PATH], page[ARENA_PATH];
    struct buf text;
    int rc;

    buf_init(&text, SUMMARY_MAX);
    report_replay(replay, &chaos->steps, &text);
    show(&text);
    if (report_path(plan, "replay.json", json) || report_path(plan, "replay.html", page))
        return err_set(err, HVD_E_LIMIT, "--report %s: too long a path", plan->report);
    rc = report_replay_json(replay, &chaos->steps, json, err);
    if (!rc)
        rc = report_replay_page(replay, &chaos->steps, page, err);
    if (!rc)
        printf("%s\n%s\n", json, page);
    return rc;
}

static int replay(struct chaos *chaos, const struct trace *trace, struct hvd_err *err)
{
    const struct chaos_plan *plan = chaos->arena.plan;
    struct replay replay = { .title = "" };
    int rc;

    (void)snprintf(replay.title, sizeof(replay.title), "%.100s, %" PRIu64 " times as fast",
                   plan->trace, plan->speed);
    describe_machine(replay.machine, sizeof(replay.machine));
    rc = replay_run(&replay, &chaos->arena, trace, &chaos->steps, err);
    if (!rc)
        rc = report_trace(chaos, &replay, err);
    if (!rc && replay.violations)
        rc = err_set(err, HVD_E_MISMATCH, "%s", replay.violation);
    replay_release(&replay);
    return rc;
}

/* ---- both --------------------------------------------------------------------------------------
 */

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

/* What would only be found out when it is all over, or with a job that is already there. */
static int check_before(const struct chaos_plan *plan, struct trace *trace, struct hvd_err *err)
{
    int rc = plan->trace ? trace_load(trace, plan->trace, err) : campaign_check(plan, err);

    if (!rc && !plan->list)
        rc = make_folder(plan->report, err);
    return rc;
}

/* A job that came to grief is kept to be looked at; not one that was broken off, or never begun. */
static void close_arena(struct arena *arena, int rc)
{
    bool grief = rc && rc != HVD_E_STATE && rc != HVD_E_UNSUPPORTED;
    bool keep = !arena->plan->list && (arena->plan->keep || grief);

    if (keep)
        printf("kept: %s\n", arena->folder);
    arena_close(arena, keep);
}

static int run(struct chaos *chaos, const struct chaos_plan *plan, const struct trace *trace,
               struct hvd_err *err)
{
    char path[ARENA_PATH];
    int rc = plan->where == PLAN_NETWORKS ? networks_enter(err) : 0;

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
    close_arena(&chaos->arena, rc);
    return rc;
}

int main(int argc, char **argv)
{
    static struct chaos chaos; /* too large for a stack */
    struct chaos_plan plan;
    struct trace trace = { .count = 0 };
    struct hvd_err err = { .text = "" };
    int status = 0, rc = 0;

    if (!chaos_plan_read(&plan, argc, argv, &status)) {
        chaos_plan_release(&plan);
        return status;
    }
    if (!plan.seed)
        plan.seed = (uint64_t)clock_wall_us() % 1000000 + 1;
    rng_seed(&chaos.rng, plan.seed);
    chaos.arena.plan = &plan;
    hear_signals();
    status = check_before(&plan, &trace, &err);
    rc = status ? status : run(&chaos, &plan, &trace, &err);
    trace_release(&trace);
    if (broken_off)
        fprintf(stderr, "chaos: broken off; all of it has ended\n");
    else if (rc)
        fprintf(stderr, "chaos: %s\n", err.text[0] ? err.text : err_text(rc));
    chaos.arena.plan = NULL; /* it ends here */
    chaos_plan_release(&plan);
    if (broken_off)
        return 130;
    return status ? 2 : rc == HVD_E_UNSUPPORTED ? SKIPPED : rc ? 1 : 0;
}
