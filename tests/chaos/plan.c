/*
 * plan.c: reads the command line of ./dev chaos and checks that its options fit together, for a
 * campaign and for a replay.
 */
#include "tests/chaos/plan.h"

#include "base/opt_show.h"
#include "base/time.h"
#include "tests/chaos/arena.h"
#include "tests/chaos/slip.h"

#include <stdio.h>

#define FAULTS_MAX UINT64_C(100000000)
#define STEP_MS    UINT64_C(10000)
#define STATE_KIB  (UINT64_C(4) << 20)
#define SPEED_MAX  UINT64_C(100000)

#define CAMPAIGN   "campaign"
#define JOB        "job"
#define TRACE      "replay of a trace"
#define GENERAL    "general"
#define PLAN(...)  OPT(struct chaos_plan, __VA_ARGS__)

static const char *const wheres[] = { "loopback", "networks", NULL };
static const char *const stores[] = { "file", "etcd", NULL };

static const struct opt table[] = {
    PLAN(faults, .name = "faults", .arg = "N", .max = FAULTS_MAX, .min = 1, .preset = "100",
         .group = CAMPAIGN, .help = "strike so often"),
    PLAN(duration_us, .name = "duration", .arg = "TIME", .preset = "0s", .group = CAMPAIGN,
         .help = "strike for so long; with --faults: whichever ends first. Of a replay: only so "
                 "much of the trace. 0: no bound"),
    PLAN(seed, .name = "seed", .arg = "S", .preset = "0", .group = CAMPAIGN,
         .help = "the same seed strikes in the same order; 0: one is made up, and said"),
    PLAN(only, .name = "only", .arg = "NAMES", .min = 1, .group = CAMPAIGN,
         .help = "only these faults, \"worker-kill,driver-kill\"; all that can be done here when "
                 "it is not said"),
    PLAN(patience_us, .name = "patience", .arg = "TIME", .min = TIME_S, .preset = "1m",
         .group = CAMPAIGN,
         .help = "a job that does not train with all its workers so long after a fault hangs"),
    PLAN(slip, .name = "slip", .arg = "KIND", .choices = slip_names, .preset = "none",
         .group = CAMPAIGN,
         .help =
             "the trainers do something wrong on purpose, once there was a change; the campaign "
             "has to find it"),
    PLAN(list, .name = "list", .flags = OPT_ARGV_ONLY, .group = CAMPAIGN,
         .help = "list the faults, and end"),

    PLAN(where, .name = "where", .arg = "PLACE", .choices = wheres, .preset = "loopback",
         .group = JOB,
         .help = "loopback: hosts are addresses of this machine; networks: hosts are network "
                 "namespaces, reached by ssh, as root"),
    PLAN(store, .name = "store", .arg = "STORE", .choices = stores, .preset = "file", .group = JOB,
         .help = "where the job is kept: in a file of the driver's machine, or in three servers of "
                 "etcd, with faults of their own"),
    PLAN(hosts, .name = "hosts", .arg = "N", .min = 2, .max = ARENA_HOSTS, .preset = "3",
         .group = JOB, .help = "hosts"),
    PLAN(slots, .name = "slots", .arg = "N", .min = 1, .max = 16, .preset = "2", .group = JOB,
         .help = "workers on each; of a replay 1 when it is not said"),
    PLAN(step_ms, .name = "step-ms", .arg = "MS", .max = STEP_MS, .preset = "4", .group = JOB,
         .help = "how long a step computes; of a replay 100 when it is not said"),
    PLAN(lease_us, .name = "lease", .arg = "TIME", .min = TIME_S, .preset = "1s", .group = JOB,
         .help =
             "a process that is silent for so long counts as dead, and one that the others wait "
             "4s longer for; a machine that does other work as well needs more"),
    PLAN(state_kib, .name = "state-kib", .arg = "KIB", .max = STATE_KIB, .preset = "64",
         .group = JOB, .help = "state of each worker beside what is verified"),

    PLAN(trace, .name = "trace", .arg = "FILE", .min = 1, .group = TRACE,
         .help = "replay when machines were there, instead of faults: lines of "
                 "\"MILLISECONDS,add|remove,NODE\""),
    PLAN(speed, .name = "speed", .arg = "X", .min = 1, .max = SPEED_MAX, .preset = "1",
         .group = TRACE, .help = "so many times as fast as it was"),
    PLAN(max_hosts, .name = "max-hosts", .arg = "N", .min = 1, .max = ARENA_HOSTS, .preset = "64",
         .group = TRACE, .help = "of the nodes that are there at a time use so many"),
    PLAN(notice_us, .name = "notice", .arg = "TIME", .preset = "0s", .group = TRACE,
         .help = "a node is drained for so long before it goes; 0: it goes without a word"),
    PLAN(settle, .name = "settle", .group = TRACE,
         .help = "a change waits until the job trains on all nodes that are there, and later "
                 "changes are later by that time"),
    PLAN(command, .name = "command", .arg = "WORDS", .min = 1, .group = TRACE,
         .help = "a shell command that launches and trains, instead of hvd-elastic; it finds "
                 "DISCOVERY, MIN_NP, MAX_NP and HVD_CHAOS_STEPS in its environment"),

    PLAN(report, .name = "report", .arg = "DIR", .min = 1, .preset = "build/chaos",
         .group = GENERAL,
         .help = "where report.json and report.html are written; of a replay replay.json and "
                 "replay.html"),
    PLAN(keep, .name = "keep", .group = GENERAL,
         .help = "keep the job's folder; after a violation it is kept anyway"),
    PLAN(help, .name = "help", .key = 'h', .flags = OPT_ARGV_ONLY, .group = GENERAL,
         .help = "show this, and end"),
};

static int check(const struct chaos_plan *plan, struct hvd_err *err)
{
    if (plan->command && !plan->trace)
        return err_set(err, HVD_E_INVAL,
                       "--command: only a trace is replayed to other launchers; "
                       "say --trace FILE too");
    if (plan->trace && plan->where != PLAN_LOOPBACK)
        return err_set(err, HVD_E_INVAL,
                       "--where networks: a trace is replayed on loopback hosts; "
                       "leave it out");
    if (plan->trace && plan->store != PLAN_FILE)
        return err_set(err, HVD_E_INVAL,
                       "--store etcd: a trace is replayed to a job in a file; leave it out");
    if (plan->trace && plan->only)
        return err_set(err, HVD_E_INVAL,
                       "--only: a replay has no faults but those of its trace; leave it out");
    if (plan->command && plan->notice_us)
        return err_set(err, HVD_E_INVAL,
                       "--notice: only hvd-elastic is told that a host will go; "
                       "leave it out with --command");
    return 0;
}

bool chaos_plan_read(struct chaos_plan *plan, int argc, char **argv, int *ret_status)
{
    struct hvd_err err = { .text = "" };
    int rest = 0;
    int rc = opt_init(&plan->set, table, ARRAY_SIZE(table), plan);

    *ret_status = 2;
    if (rc)
        return false;
    rc = opt_argv(&plan->set, argc, argv, &rest, &err);
    if (!rc && rest < argc)
        rc = err_set(&err, HVD_E_INVAL, "%s: chaos takes options only; see --help", argv[rest]);
    if (!rc)
        rc = check(plan, &err);
    if (rc) {
        fprintf(stderr, "chaos: %s\n", err.text);
        return false;
    }
    if (plan->help) {
        struct buf out;

        buf_init(&out, 65536);
        rc = opt_show_help(
            &plan->set, "chaos [options]",
            "Does everything to a real job that can happen to one, and looks after each "
            "fault whether anything was lost and how long it stood still.",
            &out);
        fputs(buf_text(&out), stdout);
        buf_release(&out);
        *ret_status = rc ? 2 : 0;
        return false;
    }
    /* The defaults of a replay: one worker for each host, and many hosts, most of them idle. */
    if (plan->trace) {
        if (opt_source(&plan->set, "slots") == OPT_DEFAULT)
            plan->slots = 1;
        if (opt_source(&plan->set, "step-ms") == OPT_DEFAULT)
            plan->step_ms = 100;
    }
    /* With a duration, the default number of faults is no limit. */
    if (plan->duration_us && opt_source(&plan->set, "faults") == OPT_DEFAULT)
        plan->faults = FAULTS_MAX;
    return true;
}

void chaos_plan_release(struct chaos_plan *plan)
{
    opt_release(&plan->set);
}
