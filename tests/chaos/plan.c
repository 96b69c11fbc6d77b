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
static const char *const places[] = { "directory", "s3", NULL };

static const struct opt table[] = {
    PLAN(faults, .name = "faults", .arg = "N", .max = FAULTS_MAX, .min = 1, .preset = "100",
         .group = CAMPAIGN, .help = "the number of faults"),
    PLAN(duration_us, .name = "duration", .arg = "TIME", .preset = "0s", .group = CAMPAIGN,
         .help = "the time for which faults are made; with --faults the first of both limits "
                 "counts. In a replay: the length of the trace that is replayed. 0: no limit"),
    PLAN(seed, .name = "seed", .arg = "S", .preset = "0", .group = CAMPAIGN,
         .help = "the same seed makes the same faults in the same order; 0: a seed is chosen and "
                 "printed"),
    PLAN(only, .name = "only", .arg = "NAMES", .min = 1, .group = CAMPAIGN,
         .help = "only these faults, \"worker-kill,driver-kill\". Default: all faults that this "
                 "machine allows"),
    PLAN(patience_us, .name = "patience", .arg = "TIME", .min = TIME_S, .preset = "1m",
         .group = CAMPAIGN,
         .help = "a job that does not train with all its workers this long after a fault counts as "
                 "hanging"),
    PLAN(leak_us, .name = "leak-patience", .arg = "TIME", .preset = "0s", .group = CAMPAIGN,
         .help = "what is still open or running this long after a fault counts as a leak; 0: the "
                 "time of --patience"),
    PLAN(slip, .name = "slip", .arg = "KIND", .choices = slip_names, .preset = "none",
         .group = CAMPAIGN,
         .help =
             "after a change the trainers, or with bucket the server of S3, make this mistake on "
             "purpose; the campaign has to find the mistake"),
    PLAN(list, .name = "list", .flags = OPT_ARGV_ONLY, .group = CAMPAIGN,
         .help = "list the faults and exit"),

    PLAN(where, .name = "where", .arg = "PLACE", .choices = wheres, .preset = "loopback",
         .group = JOB,
         .help = "loopback: hosts are addresses of this machine; networks: hosts are network "
                 "namespaces, reached by ssh, as root"),
    PLAN(store, .name = "store", .arg = "STORE", .choices = stores, .preset = "file", .group = JOB,
         .help = "where the job is kept: in a file of the driver's machine, or in three servers of "
                 "etcd, with faults of their own"),
    PLAN(checkpoints, .name = "checkpoints", .arg = "PLACE", .choices = places,
         .preset = "directory", .group = JOB,
         .help = "where checkpoints are written: into a directory, or to a server of S3 on this "
                 "machine, with faults of its own"),
    PLAN(hosts, .name = "hosts", .arg = "N", .min = 2, .max = ARENA_HOSTS, .preset = "3",
         .group = JOB, .help = "hosts"),
    PLAN(slots, .name = "slots", .arg = "N", .min = 1, .max = 16, .preset = "2", .group = JOB,
         .help = "workers on each host; in a replay the default is 1"),
    PLAN(step_ms, .name = "step-ms", .arg = "MS", .max = STEP_MS, .preset = "4", .group = JOB,
         .help = "the time that a step computes; in a replay the default is 100"),
    PLAN(lease_us, .name = "lease", .arg = "TIME", .min = TIME_S, .preset = "1s", .group = JOB,
         .help =
             "a process that is silent for this time counts as dead; a worker that the others wait "
             "for gets 4s more. A machine with other work needs a longer lease"),
    PLAN(state_kib, .name = "state-kib", .arg = "KIB", .max = STATE_KIB, .preset = "64",
         .group = JOB, .help = "additional state of each worker, which is not verified"),

    PLAN(trace, .name = "trace", .arg = "FILE", .min = 1, .group = TRACE,
         .help = "instead of faults, replay the times at which machines came and went: lines of "
                 "\"MILLISECONDS,add|remove,NODE\""),
    PLAN(speed, .name = "speed", .arg = "X", .min = 1, .max = SPEED_MAX, .preset = "1",
         .group = TRACE, .help = "replay the trace this many times as fast as its clock"),
    PLAN(max_hosts, .name = "max-hosts", .arg = "N", .min = 1, .max = ARENA_HOSTS, .preset = "64",
         .group = TRACE, .help = "the most nodes of the trace that are used at the same time"),
    PLAN(notice_us, .name = "notice", .arg = "TIME", .preset = "0s", .group = TRACE,
         .help =
             "a node is drained this long before the node goes; 0: the node goes without notice"),
    PLAN(settle, .name = "settle", .group = TRACE,
         .help = "before each change, wait until the job trains on all nodes; later changes are "
                 "delayed by that time"),
    PLAN(command, .name = "command", .arg = "WORDS", .min = 1, .group = TRACE,
         .help = "a shell command that launches the training in place of hvd-elastic; its "
                 "environment has DISCOVERY, MIN_NP, MAX_NP and HVD_CHAOS_STEPS"),

    PLAN(report, .name = "report", .arg = "DIR", .min = 1, .preset = "build/chaos",
         .group = GENERAL,
         .help = "the folder for report.json and report.html; a replay writes replay.json and "
                 "replay.html"),
    PLAN(keep, .name = "keep", .group = GENERAL,
         .help = "keep the job's folder; the folder is always kept after a violation"),
    PLAN(help, .name = "help", .key = 'h', .flags = OPT_ARGV_ONLY, .group = GENERAL,
         .help = "show this help and exit"),
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
    if (plan->trace && plan->checkpoints != PLAN_DIRECTORY)
        return err_set(err, HVD_E_INVAL,
                       "--checkpoints s3: a replay writes no checkpoints; leave it out");
    if (plan->where != PLAN_LOOPBACK && plan->checkpoints != PLAN_DIRECTORY)
        return err_set(err, HVD_E_INVAL,
                       "--checkpoints s3: hosts in networks of their own do not reach the server; "
                       "leave --where networks out");
    if (plan->slip == SLIP_BUCKET && plan->checkpoints != PLAN_S3)
        return err_set(err, HVD_E_INVAL,
                       "--slip bucket: the checkpoints are in a directory; say --checkpoints s3");
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
            "Starts a real job and makes one fault after another. After each fault, chaos checks "
            "whether anything was lost and measures how long the training stood still.",
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
