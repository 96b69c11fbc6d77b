/*
 * judge.c: decides after each fault whether the job is whole again, and whether anything was lost,
 * wrong, leaked, or done without need. The judge knows the job only from /proc, from the steps and
 * from events.log, never from the product's code.
 */
#include "tests/chaos/judge.h"

#include "base/buf.h"
#include "base/time.h"
#include "os/clock.h"
#include "os/file.h"
#include "os/process.h"
#include "tests/chaos/arena_checkpoints.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>

#ifndef CHAOS_AUDIT /* the build defines its path */
#define CHAOS_AUDIT "hvd-audit"
#endif

#define LOOK_US      (50 * TIME_MS) /* time between two checks while no event comes */
#define SURE_LOOKS   2 /* when a second look begins, the driver has handled the first */
#define ANSWER_MAX   ((size_t)1 << 20)
#define FILES_SPARE  3 /* descriptors more than without faults: an operator may be asking */
#define OTHERS_SPARE 4 /* the script and its children, of this discovery run and of a late one */
#define SHOWN        200
#define LOG_MAX      ((size_t)256 << 20)
/* beside those that are kept: one that is being written, and one that is being removed */
#define CHECKPOINTS_MOST (ARENA_CHECKPOINTS + 2)

/* ---- helpers ---- */

/* Unix sockets whose name has the arena's folder. */
static uint64_t sockets_of(const struct arena *arena)
{
    FILE *file = fopen("/proc/net/unix", "re");
    char line[512];
    uint64_t count = 0;

    while (file && fgets(line, sizeof(line), file))
        count += strstr(line, arena->folder) != NULL;
    if (file)
        (void)fclose(file);
    return count;
}

static uint32_t most_files(const struct proc_scan *scan, enum proc_kind kind)
{
    uint32_t most = 0;

    for (uint32_t i = 0; i < scan->count; i++)
        if (scan->processes[i].kind == kind && scan->processes[i].files > most)
            most = scan->processes[i].files;
    return most;
}

static uint32_t most_memories(const struct proc_scan *scan)
{
    uint32_t most = 0;

    for (uint32_t i = 0; i < scan->count; i++)
        if (scan->processes[i].memories > most)
            most = scan->processes[i].memories;
    return most;
}

int judge_wrong(const struct chaos *chaos, struct hvd_err *err)
{
    char path[ARENA_PATH], line[SHOWN] = "";
    FILE *file = fopen(arena_path(&chaos->arena, "wrong", path), "re");

    if (!file)
        return errno == ENOENT ? 0 : err_set(err, HVD_E_IO, "%s: %s", path, strerror(errno));
    if (fgets(line, sizeof(line), file))
        line[strcspn(line, "\n")] = '\0';
    (void)fclose(file);
    return line[0] ? err_set(err, HVD_E_MISMATCH, "a trainer says: %s", line) : 0;
}

/* ---- is the job whole? ---- */

/* Counts processes that do not belong to a job. The driver's children (the script and its children)
 * are not counted. */
static uint32_t count_strangers(const struct proc_scan *scan)
{
    uint32_t count = 0;
    pid_t driver = 0;

    for (uint32_t i = 0; i < scan->count; i++)
        if (scan->processes[i].kind == PROC_DRIVER)
            driver = scan->processes[i].pid;
    for (uint32_t i = 0; i < scan->count; i++) {
        const struct proc_info *process = &scan->processes[i];

        count += process->kind == PROC_OTHER && process->parent != driver;
    }
    return count;
}

/* true: the processes are one driver and its parent, an agent and a supervisor for each host, and a
 * worker for each slot. */
static bool are_all_there(const struct chaos *chaos, struct hvd_err *err)
{
    const struct proc_scan *scan = &chaos->scan;
    uint32_t hosts = 0, whole = arena_whole(&chaos->arena);

    for (uint32_t i = 0; i < chaos->arena.host_count; i++)
        hosts += chaos->arena.hosts[i].listed;
    if (proc_scan_count(scan, PROC_FRONT) == 1 && proc_scan_count(scan, PROC_DRIVER) == 1 &&
        proc_scan_count(scan, PROC_AGENT) == hosts && proc_scan_count(scan, PROC_KEEPER) == hosts &&
        proc_scan_count(scan, PROC_WORKER) == whole && !count_strangers(scan))
        return true;
    err_set(err, HVD_E_TIMEOUT,
            "%" PRIu32 " drivers, %" PRIu32 " agents, %" PRIu32 " keepers, %" PRIu32
            " workers and %" PRIu32 " others run, where it should be 1, %" PRIu32 ", %" PRIu32
            ", %" PRIu32 " and 0",
            proc_scan_count(scan, PROC_DRIVER), proc_scan_count(scan, PROC_AGENT),
            proc_scan_count(scan, PROC_KEEPER), proc_scan_count(scan, PROC_WORKER),
            count_strangers(scan), hosts, hosts, whole);
    return false;
}

/* true: the job is whole (judge.h); false: *err says what is missing. */
static bool is_whole(struct chaos *chaos, int64_t since_us, struct hvd_err *err)
{
    const struct steps *steps = &chaos->steps;
    const struct step *last = steps->count ? &steps->list[steps->count - 1] : NULL;
    uint32_t whole = arena_whole(&chaos->arena), trainers;

    if (!last || last->at_us <= since_us) {
        err_set(err, HVD_E_TIMEOUT, "no step was done since");
        return false;
    }
    if (last->size != whole) {
        err_set(err, HVD_E_TIMEOUT, "%" PRIu32 " of %" PRIu32 " train", last->size, whole);
        return false;
    }
    trainers = arena_trainers(&chaos->arena);
    if (trainers != whole) {
        err_set(err, HVD_E_TIMEOUT, "the driver says that %" PRIu32 " of %" PRIu32 " train",
                trainers, whole);
        return false;
    }
    proc_scan_take(&chaos->scan, &chaos->arena);
    return are_all_there(chaos, err);
}

int judge_whole(struct judge *judge, struct chaos *chaos, int64_t since_us, int64_t deadline_us,
                struct hvd_err *err)
{
    if (chaos->lost_us) {
        const uint64_t kept[2] = { chaos->kept.round, chaos->kept.commit };

        log_check_lost(&judge->check, kept);
        judge->kept = chaos->kept;
        judge->lost_us = chaos->lost_us;
        chaos->lost_us = 0;
    }
    for (;;) {
        int64_t now_us;
        int rc = steps_read(&chaos->steps, err);

        if (!rc)
            rc = judge_wrong(chaos, err);
        if (rc)
            return rc;
        if (arena_driver_ended(&chaos->arena))
            return err_set(err, HVD_E_LOST, "the driver has ended by itself: status 0x%x",
                           (unsigned)chaos->arena.driver_status);
        if (is_whole(chaos, since_us, err))
            return 0;
        now_us = clock_now_us();
        if (now_us >= deadline_us) {
            /* The error text for a job that is not whole: an impossible event is reported rather
             * than a missing process. */
            struct hvd_err broken;

            if (log_check_read(&judge->check, &broken) == HVD_E_MISMATCH)
                err_set(err, HVD_E_TIMEOUT, "%s", broken.text);
            return HVD_E_TIMEOUT;
        }
        if (*chaos->arena.broken_off)
            return HVD_E_STATE;
        rc = steps_await(&chaos->steps, chaos->steps.count, now_us + LOOK_US, NULL);
        if (rc && rc != HVD_E_TIMEOUT)
            return err_set(err, rc, "%s: cannot be waited for", "steps");
    }
}

/* ---- is anything broken? ---- */

/* true: this step is the first one after all processes with commits were killed. Then it follows
 * the step of a checkpoint, and not the step before it. */
static bool is_after_loss(struct judge *judge, const struct step *step)
{
    bool is = judge->lost_us && step->at_us > judge->lost_us;

    if (is)
        judge->lost_us = 0;
    return is;
}

/* Checks the numbers of the new steps. Within a round, step follows step. A new round may begin
 * with the last step again, if only dead workers had committed it. If the dead worker was rank 0
 * and another member had the commit, no line was written for that step. Both may happen in each of
 * several rounds. A rank 0 that lives continues after its last line. */
static int follow_steps(struct judge *judge, const struct chaos *chaos, struct hvd_err *err)
{
    for (; judge->steps < chaos->steps.count; judge->steps++) {
        const struct step *step = &chaos->steps.list[judge->steps];
        uint64_t rounds = step->round - judge->round;
        bool first = !judge->steps;

        if (!first && step->at_us <= judge->step_us)
            continue; /* the line was checked before, or came late and moved other lines */
        if (!first && step->round < judge->round)
            return err_set(err, HVD_E_MISMATCH,
                           "step %" PRIu64 " of round %" PRIu64 " after one of round %" PRIu64,
                           step->number, step->round, judge->round);
        if (!first && !rounds && step->number != judge->step + 1)
            return err_set(err, HVD_E_MISMATCH,
                           "round %" PRIu64 ": step %" PRIu64 " after step %" PRIu64, step->round,
                           step->number, judge->step);
        if (is_after_loss(judge, step)) {
            if ((int64_t)step->number <= judge->kept.step)
                return err_set(err, HVD_E_MISMATCH,
                               "round %" PRIu64 " goes back to step %" PRIu64
                               ", and a checkpoint had step %" PRId64 ": work was lost",
                               step->round, step->number, judge->kept.step);
            if (step->number < judge->step)
                judge->step = step->number;
        }
        if (!first && rounds && step->number < judge->step)
            return err_set(err, HVD_E_MISMATCH,
                           "round %" PRIu64 " goes back to step %" PRIu64 ", behind %" PRIu64
                           ", which all of an earlier one had: work was lost",
                           step->round, step->number, judge->step);
        if (!first && rounds && step->number == judge->step &&
            log_check_same_first(&judge->check, judge->round, step->round))
            return err_set(err, HVD_E_MISMATCH,
                           "round %" PRIu64 " does step %" PRIu64
                           " again, and its rank 0 had committed it in round %" PRIu64
                           ": work was lost",
                           step->round, step->number, judge->round);
        if (!first && rounds && step->number > judge->step + 1 + rounds)
            return err_set(err, HVD_E_MISMATCH,
                           "round %" PRIu64 " goes on with step %" PRIu64 " after %" PRIu64
                           ": steps were left out",
                           step->round, step->number, judge->step);
        judge->step = step->number;
        judge->step_us = step->at_us;
        judge->round = step->round;
    }
    return 0;
}

static int compare_files(const struct chaos *chaos, enum proc_kind kind, const char *name,
                         uint32_t peace, struct hvd_err *err)
{
    uint32_t most = most_files(&chaos->scan, kind);

    if (most > peace + FILES_SPARE)
        return err_set(err, HVD_E_MISMATCH,
                       "%s: %" PRIu32 " descriptors are open, %" PRIu32 " in peace: a leak", name,
                       most, peace);
    return 0;
}

static int compare_memories(const struct judge *judge, const struct chaos *chaos,
                            struct hvd_err *err)
{
    uint32_t most = most_memories(&chaos->scan);

    if (most > judge->worker_memories + FILES_SPARE)
        return err_set(err, HVD_E_MISMATCH,
                       "%" PRIu32 " shared memories are mapped, %" PRIu32 " in peace: a leak", most,
                       judge->worker_memories);
    return 0;
}

static int compare_sockets(const struct judge *judge, const struct chaos *chaos,
                           struct hvd_err *err)
{
    uint64_t count = sockets_of(&chaos->arena);

    if (count > judge->sockets + 1) /* one more socket, because an operator may be asking */
        return err_set(err, HVD_E_MISMATCH, "%" PRIu64 " sockets of the job, %" PRIu64 " in peace",
                       count, judge->sockets);
    return 0;
}

enum leak {
    LEAK_FRONT_FILES,
    LEAK_DRIVER_FILES,
    LEAK_AGENT_FILES,
    LEAK_WORKER_FILES,
    LEAK_MEMORIES,
    LEAK_SOCKETS,
    LEAK_CHECKPOINTS,
    LEAK_CHILDREN,
    LEAK_COUNT
};

/* Compares what is open now with the numbers without faults; 0, or HVD_E_MISMATCH with the leak. */
static int find_leak(const struct judge *judge, const struct chaos *chaos, enum leak leak,
                     struct hvd_err *err)
{
    char path[ARENA_PATH];
    uint32_t checkpoints;
    int rc;

    switch (leak) {
    case LEAK_FRONT_FILES:
        return compare_files(chaos, PROC_FRONT, "the driver's parent", judge->front_files, err);
    case LEAK_DRIVER_FILES:
        return compare_files(chaos, PROC_DRIVER, "driver", judge->driver_files, err);
    case LEAK_AGENT_FILES:
        return compare_files(chaos, PROC_AGENT, "agent", judge->agent_files, err);
    case LEAK_WORKER_FILES:
        return compare_files(chaos, PROC_WORKER, "worker", judge->worker_files, err);
    case LEAK_MEMORIES: return compare_memories(judge, chaos, err);
    case LEAK_SOCKETS: return compare_sockets(judge, chaos, err);
    case LEAK_CHECKPOINTS:
        rc = arena_count_checkpoints(&chaos->arena, &checkpoints, err);
        if (!rc && checkpoints > CHECKPOINTS_MOST)
            rc = err_set(err, HVD_E_MISMATCH, "%s has %" PRIu32 " checkpoints: a leak",
                         arena_checkpoint_dir(&chaos->arena, path), checkpoints);
        return rc;
    default:
        for (uint32_t i = 0; i < chaos->scan.count; i++)
            if (chaos->scan.processes[i].unreaped)
                return err_set(err, HVD_E_MISMATCH,
                               "%" PRIu32
                               " children of %s (pid %d) have ended, and it does not wait "
                               "for them: a leak",
                               chaos->scan.processes[i].unreaped, chaos->scan.processes[i].name,
                               (int)chaos->scan.processes[i].pid);
        if (proc_scan_count(&chaos->scan, PROC_OTHER) > OTHERS_SPARE)
            return err_set(err, HVD_E_MISMATCH,
                           "%" PRIu32 " processes run that are no part of a job: a leak",
                           proc_scan_count(&chaos->scan, PROC_OTHER));
        return 0;
    }
}

/* Of several leaks, reports the one that was found at every look so far. */
static int find_leaks(const struct judge *judge, const struct chaos *chaos, bool always[LEAK_COUNT],
                      struct hvd_err *err)
{
    bool lasts = false;
    int rc = 0;

    for (unsigned leak = 0; leak < LEAK_COUNT; leak++) {
        struct hvd_err why = { .text = "" };
        int found = find_leak(judge, chaos, leak, &why);

        always[leak] = always[leak] && found;
        if (found && (!rc || (always[leak] && !lasts))) {
            rc = err_set(err, found, "%s", why.text);
            lasts = always[leak];
        }
    }
    return rc;
}

/* The newest round of which the events or the steps tell; the events may be a moment behind. */
static uint64_t newest_round(const struct judge *judge, const struct chaos *chaos)
{
    const struct steps *steps = &chaos->steps;
    uint64_t of_steps = steps->count ? steps->list[steps->count - 1].round : 0;

    return of_steps > judge->check.round ? of_steps : judge->check.round;
}

uint64_t judge_rounds_since(const struct judge *judge, const struct chaos *chaos)
{
    uint64_t newest = newest_round(judge, chaos);

    return newest > judge->rounds ? newest - judge->rounds : 0;
}

static bool had(const struct judge *judge, pid_t pid)
{
    for (uint32_t i = 0; i < judge->worker_count; i++)
        if (judge->workers[i] == pid)
            return true;
    return false;
}

/* HVD_E_MISMATCH: since the fault a round has begun or a worker was started. */
static int has_cost_nothing(const struct judge *judge, const struct chaos *chaos,
                            struct hvd_err *err)
{
    if (judge_rounds_since(judge, chaos))
        return err_set(err, HVD_E_MISMATCH,
                       "it should cost nothing, and round %" PRIu64 " was made",
                       newest_round(judge, chaos));
    for (uint32_t i = 0; i < chaos->scan.count; i++) {
        const struct proc_info *process = &chaos->scan.processes[i];

        if (process->kind == PROC_WORKER && !had(judge, process->pid))
            return err_set(err, HVD_E_MISMATCH,
                           "it should cost nothing, and worker #%" PRIu64 " was started",
                           process->incarnation);
    }
    return 0;
}

int judge_right(struct judge *judge, struct chaos *chaos, enum fault_cost cost, struct hvd_err *err)
{
    int rc = judge_wrong(chaos, err);

    if (!rc)
        rc = log_check_read(&judge->check, err);
    if (!rc)
        rc = follow_steps(judge, chaos, err);
    if (!rc && cost == FAULT_COSTS_NOTHING)
        rc = has_cost_nothing(judge, chaos, err);
    if (!rc) {
        /* Waits until nothing leaks: a descriptor that is open for a moment, for example of an ssh
         * that still starts an agent, is no leak. */
        const struct chaos_plan *plan = chaos->arena.plan;
        int64_t deadline_us = clock_now_us() + (plan->leak_us ? plan->leak_us : plan->patience_us);
        bool always[LEAK_COUNT];

        memset(always, true, sizeof(always));
        while ((rc = find_leaks(judge, chaos, always, err)) != 0 && clock_now_us() < deadline_us &&
               !*chaos->arena.broken_off) {
            (void)poll(NULL, 0, (int)(LOOK_US / TIME_MS));
            proc_scan_take(&chaos->scan, &chaos->arena);
        }
    }
    if (!rc) {
        /* Checks that the job's folder has only files that docs/operations.md names. */
        static const char *const known[] = {
            ".",    "..",      "job.db", "job.db-wal", "job.db-shm",   "job.db-journal", "command",
            "lock", "control", "agents", "events.log", "events.log.1", "claim",          "autopsies"
        };
        char path[ARENA_PATH];
        DIR *folder = opendir(arena_path(&chaos->arena, "job", path));
        struct dirent *entry;

        while (!rc && folder && (entry = readdir(folder))) {
            bool found = false;

            for (size_t i = 0; i < ARRAY_SIZE(known); i++)
                found |= !strcmp(entry->d_name, known[i]);
            if (!found)
                rc = err_set(err, HVD_E_MISMATCH, "the state directory has a file %s",
                             entry->d_name);
        }
        if (folder)
            closedir(folder);
    }
    return rc;
}

/* ---- before the first fault, and at the end ---- */

void judge_open(struct judge *judge, const struct chaos *chaos)
{
    char path[ARENA_PATH];

    memset(judge, 0, sizeof(*judge));
    log_check_init(&judge->check, arena_path(&chaos->arena, "job/events.log", path));
}

void judge_close(struct judge *judge)
{
    log_check_release(&judge->check);
}

/* Waits until the events name the round of the present steps; if they do not, events are not
 * judged. */
static int await_events(struct judge *judge, struct chaos *chaos, struct hvd_err *err)
{
    int64_t deadline_us = clock_now_us() + chaos->arena.plan->patience_us;
    int rc = log_check_read(&judge->check, err);

    while (!rc && judge->check.trained != judge->round && clock_now_us() < deadline_us &&
           !*chaos->arena.broken_off) {
        (void)poll(NULL, 0, (int)(LOOK_US / TIME_MS));
        rc = log_check_read(&judge->check, err);
    }
    if (!rc && judge->check.trained != judge->round)
        rc = err_set(err, HVD_E_MISMATCH,
                     "steps are done in round %" PRIu64 ", and the events say that round %" PRIu64
                     " trains",
                     judge->round, judge->check.trained);
    return rc;
}

int judge_settle(struct judge *judge, struct chaos *chaos, struct hvd_err *err)
{
    int rc;

    judge->front_files = most_files(&chaos->scan, PROC_FRONT);
    judge->driver_files = most_files(&chaos->scan, PROC_DRIVER);
    judge->agent_files = most_files(&chaos->scan, PROC_AGENT);
    judge->worker_files = most_files(&chaos->scan, PROC_WORKER);
    judge->worker_memories = most_memories(&chaos->scan);
    judge->sockets = sockets_of(&chaos->arena);
    rc = judge_right(judge, chaos, FAULT_COSTS_A_ROUND, err);
    return rc ? rc : await_events(judge, chaos, err);
}

int judge_rest(struct judge *judge, struct chaos *chaos, struct hvd_err *err)
{
    int64_t deadline_us = clock_now_us() + chaos->arena.plan->patience_us;
    uint64_t looks = arena_looks(&chaos->arena) + SURE_LOOKS;
    int rc = 0;

    while (!rc && (arena_looks(&chaos->arena) < looks || !arena_is_at_rest(&chaos->arena))) {
        if (clock_now_us() >= deadline_us)
            return err_set(err, HVD_E_TIMEOUT, "the driver does not come to rest, in peace");
        if (*chaos->arena.broken_off)
            return HVD_E_STATE;
        (void)poll(NULL, 0, (int)(LOOK_US / TIME_MS));
        rc = steps_read(&chaos->steps, err);
    }
    if (!rc)
        rc = judge_whole(judge, chaos, clock_now_us(), deadline_us, err);
    judge->settled = !rc;
    return rc ? rc : log_check_read(&judge->check, err);
}

void judge_look(struct judge *judge, struct chaos *chaos)
{
    char path[ARENA_PATH];
    struct stat log;

    proc_scan_take(&chaos->scan, &chaos->arena);
    judge->worker_count = 0;
    judge->rounds = newest_round(judge, chaos);
    for (uint32_t i = 0; i < chaos->scan.count; i++)
        if (chaos->scan.processes[i].kind == PROC_WORKER)
            judge->workers[judge->worker_count++] = chaos->scan.processes[i].pid;
    judge->logs[judge->log_count % JUDGE_LOGS].at_us = clock_now_us();
    judge->logs[judge->log_count++ % JUDGE_LOGS].length =
        stat(arena_path(&chaos->arena, "driver.log", path), &log) ? 0 : (uint64_t)log.st_size;
    blame_begin(&chaos->blame, judge->settled);
    judge->settled = false;
}

/* Where the lines begin that count for the present fault. A line that the driver says once a minute
 * may be as old as that. */
static uint64_t blame_from(const struct judge *judge, bool each_minute)
{
    uint32_t last = judge->log_count - 1, first = last;
    int64_t since_us = judge->logs[last % JUDGE_LOGS].at_us - TIME_MIN;

    while (each_minute && first > 0 && last - first < JUDGE_LOGS - 1 &&
           judge->logs[(first - 1) % JUDGE_LOGS].at_us > since_us)
        first--;
    return judge->logs[first % JUDGE_LOGS].length;
}

/* Checks the lines from `from` on, once. */
static int blame_look(const struct chaos *chaos, const struct fault *fault, uint64_t from,
                      uint32_t *ret_named, struct hvd_err *err)
{
    const struct arena *arena = &chaos->arena;
    bool in_etcd = arena->plan->store == PLAN_ETCD && fault->names_etcd;
    char path[ARENA_PATH], script[ARENA_PATH];
    const char *parts[ARENA_HOSTS + 2];
    struct buf log;
    size_t count = 0;
    int rc;

    buf_init(&log, LOG_MAX);
    rc = file_read(arena_path(arena, "driver.log", path), &log, err);
    if (!rc && fault->names)
        rc = blame_find(&chaos->blame, in_etcd ? fault->names_etcd : fault->names,
                        buf_text(&log) + from, ret_named, err);
    for (uint32_t i = 0; i < arena->host_count; i++)
        parts[count++] = arena->hosts[i].name;
    parts[count++] = arena_path(arena, "discover", script);
    parts[count++] = arena_checkpoint_dir(arena, path);
    if (!rc && fault->quiet)
        rc = blame_acquit(&chaos->blame, parts, count, buf_text(&log) + from, err);
    buf_release(&log);
    return rc;
}

int judge_blame(struct judge *judge, struct chaos *chaos, const struct fault *fault,
                uint32_t *ret_named, struct hvd_err *err)
{
    const struct chaos_plan *plan = chaos->arena.plan;
    int64_t deadline_us = clock_now_us() + (plan->leak_us ? plan->leak_us : plan->patience_us);
    uint64_t from = blame_from(judge, fault->names_each_minute);
    int rc;

    /* A line that is on its way is waited for. */
    while ((rc = blame_look(chaos, fault, from, ret_named, err)) == HVD_E_MISMATCH &&
           fault->names && clock_now_us() < deadline_us && !*chaos->arena.broken_off)
        (void)poll(NULL, 0, (int)(LOOK_US / TIME_MS));
    return rc;
}

/* Audits the sample logs with a program that shares no code with the sampler. */
static int audit(const struct arena *arena, struct hvd_err *err)
{
    char samples[ARENA_PATH], said[ARENA_PATH], last[SHOWN] = "";
    const char *const words[] = { CHAOS_AUDIT, "--epochs", "1",
                                  arena_path(arena, "samples", samples), NULL };
    struct process_spec spec = { .argv = words, .in = -1, .dies_with_us = SIGTERM };
    FILE *file = fopen(arena_path(arena, "audited", said), "w+e");
    int status = -1, rc;
    pid_t pid;

    if (!file)
        return err_set(err, HVD_E_IO, "%s: %s", said, strerror(errno));
    spec.out = spec.err = fileno(file);
    rc = process_spawn(&spec, &pid, err);
    while (!rc && waitpid(pid, &status, 0) < 0 && errno == EINTR)
        continue;
    rewind(file);
    while (!rc && status && fgets(last, sizeof(last), file) && !strstr(last, "WRONG"))
        continue;
    (void)fclose(file);
    last[strcspn(last, "\n")] = '\0';
    if (!rc && status)
        rc = err_set(err, HVD_E_MISMATCH, "the audit of the samples (%s): %s", said, last);
    return rc;
}

int judge_end(struct judge *judge, struct chaos *chaos, struct hvd_err *err)
{
    struct buf out;
    int rc = judge_right(judge, chaos, FAULT_COSTS_A_ROUND, err);
    int64_t deadline_us;

    if (!rc && !judge->check.missing)
        rc = await_events(judge, chaos, err);
    if (rc)
        return rc;
    if (!WIFEXITED(chaos->arena.driver_status) || WEXITSTATUS(chaos->arena.driver_status))
        return err_set(err, HVD_E_MISMATCH, "the job has not ended well: status 0x%x",
                       (unsigned)chaos->arena.driver_status);
    /* Waits until no process is left; the remote end of an ssh may outlive its agent for a moment.
     */
    deadline_us = clock_now_us() + chaos->arena.plan->patience_us;
    proc_scan_take(&chaos->scan, &chaos->arena);
    while (chaos->scan.count && clock_now_us() < deadline_us && !*chaos->arena.broken_off) {
        (void)poll(NULL, 0, (int)(LOOK_US / TIME_MS));
        proc_scan_take(&chaos->scan, &chaos->arena);
    }
    if (chaos->scan.count) {
        buf_init(&out, ANSWER_MAX);
        proc_scan_show(&chaos->scan, &out);
        err_set(err, HVD_E_MISMATCH, "%" PRIu32 " processes are left after the job: %.120s",
                chaos->scan.count, buf_text(&out));
        buf_release(&out);
        return HVD_E_MISMATCH;
    }
    if (sockets_of(&chaos->arena))
        return err_set(err, HVD_E_MISMATCH, "a socket is left after the job");
    return audit(&chaos->arena, err);
}
