#include "tests/chaos/judge.h"

#include "base/buf.h"
#include "base/time.h"
#include "os/clock.h"
#include "os/process.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#ifndef CHAOS_AUDIT /* the build says where it is */
#define CHAOS_AUDIT "hvd-audit"
#endif

#define LOOK_US      (50 * TIME_MS) /* between two looks while nothing is said */
#define SETTLE_US    (20 * TIME_S)  /* until what was open for a moment only is closed */
#define ANSWER_MAX   ((size_t)1 << 20)
#define FILES_SPARE  3 /* descriptors beside those in peace: somebody may be asking */
#define OTHERS_SPARE 4 /* the script and what it starts, now and in a look that comes late */
#define SHOWN        200

/* ---- small looks -------------------------------------------------------------------------------
 */

/* Unix sockets that have the arena's folder in their name. */
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

static uint32_t most_files(const struct sight *sight, enum sight_kind kind)
{
    uint32_t most = 0;

    for (uint32_t i = 0; i < sight->count; i++)
        if (sight->processes[i].kind == kind && sight->processes[i].files > most)
            most = sight->processes[i].files;
    return most;
}

static uint32_t most_memories(const struct sight *sight)
{
    uint32_t most = 0;

    for (uint32_t i = 0; i < sight->count; i++)
        if (sight->processes[i].memories > most)
            most = sight->processes[i].memories;
    return most;
}

/* What the trainers have found wrong themselves. */
static int read_wrong(struct chaos *chaos, struct hvd_err *err)
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

/* ---- whole -------------------------------------------------------------------------------------
 */

/* How many train, as the driver says it; -1: it does not answer. */
static int count_trainers(struct chaos *chaos)
{
    static const char *const words[] = { "hosts", "--json", NULL };
    struct buf out;
    int count = -1;

    buf_init(&out, ANSWER_MAX);
    if (!arena_ask(&chaos->arena, words, &out, NULL)) {
        count = 0;
        for (const char *at = buf_text(&out); (at = strstr(at, "\"trains\":true")); at++)
            count++;
    }
    buf_release(&out);
    return count;
}

/* The script and what it starts are the driver's; anything else that is no part of a job is one
 * too many. */
static uint32_t count_strangers(const struct sight *sight, pid_t driver)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < sight->count; i++) {
        const struct sight_process *process = &sight->processes[i];

        count += process->kind == SIGHT_OTHER && process->parent != driver;
    }
    return count;
}

static bool are_all_there(const struct chaos *chaos, struct hvd_err *err)
{
    const struct sight *sight = &chaos->sight;
    uint32_t hosts = 0, whole = arena_whole(&chaos->arena);

    for (uint32_t i = 0; i < chaos->arena.host_count; i++)
        hosts += chaos->arena.hosts[i].listed;
    if (sight_count(sight, SIGHT_DRIVER) == 1 && sight_count(sight, SIGHT_AGENT) == hosts &&
        sight_count(sight, SIGHT_KEEPER) == hosts && sight_count(sight, SIGHT_WORKER) == whole &&
        !count_strangers(sight, chaos->arena.driver))
        return true;
    err_set(err, HVD_E_TIMEOUT,
            "%" PRIu32 " drivers, %" PRIu32 " agents, %" PRIu32 " keepers, %" PRIu32
            " workers and %" PRIu32 " others run, where it should be 1, %" PRIu32 ", %" PRIu32
            ", %" PRIu32 " and 0",
            sight_count(sight, SIGHT_DRIVER), sight_count(sight, SIGHT_AGENT),
            sight_count(sight, SIGHT_KEEPER), sight_count(sight, SIGHT_WORKER),
            count_strangers(sight, chaos->arena.driver), hosts, hosts, whole);
    return false;
}

static bool is_whole(struct judge *judge, struct chaos *chaos, int64_t since_us,
                     struct hvd_err *err)
{
    const struct steps *steps = &chaos->steps;
    const struct step *last = steps->count ? &steps->list[steps->count - 1] : NULL;
    uint32_t whole = arena_whole(&chaos->arena);
    int trainers;

    (void)judge;
    if (!last || last->at_us <= since_us) {
        err_set(err, HVD_E_TIMEOUT, "no step was done since");
        return false;
    }
    if (last->size != whole) {
        err_set(err, HVD_E_TIMEOUT, "%" PRIu32 " of %" PRIu32 " train", last->size, whole);
        return false;
    }
    trainers = count_trainers(chaos);
    if (trainers != (int)whole) {
        err_set(err, HVD_E_TIMEOUT, "the driver says that %d of %" PRIu32 " train", trainers,
                whole);
        return false;
    }
    sight_take(&chaos->sight, &chaos->arena);
    return are_all_there(chaos, err);
}

/* What is broken says more than what is missing. */
static int why_it_hangs(struct judge *judge, struct hvd_err *err)
{
    struct hvd_err broken;

    if (annals_read(&judge->annals, &broken) == HVD_E_MISMATCH)
        err_set(err, HVD_E_TIMEOUT, "%s", broken.text);
    return HVD_E_TIMEOUT;
}

int judge_whole(struct judge *judge, struct chaos *chaos, int64_t since_us, int64_t deadline_us,
                struct hvd_err *err)
{
    for (;;) {
        int64_t now_us;
        int rc = steps_read(&chaos->steps, err);

        if (!rc)
            rc = read_wrong(chaos, err);
        if (rc)
            return rc;
        if (arena_driver_ended(&chaos->arena))
            return err_set(err, HVD_E_LOST, "the driver has ended by itself: status 0x%x",
                           (unsigned)chaos->arena.driver_status);
        if (is_whole(judge, chaos, since_us, err))
            return 0;
        now_us = clock_now_us();
        if (now_us >= deadline_us)
            return why_it_hangs(judge, err);
        if (*chaos->arena.broken_off)
            return HVD_E_STATE;
        rc = steps_await(&chaos->steps, chaos->steps.count, now_us + LOOK_US, NULL);
        if (rc && rc != HVD_E_TIMEOUT)
            return err_set(err, rc, "%s: cannot be waited for", "steps");
    }
}

/* ---- right -------------------------------------------------------------------------------------
 */

/* Within a round one follows the other. A new one may begin with the last step again, if only who
 * has died had committed it; and if that was rank 0, and somebody else had it too, nobody has
 * written its line. That may happen to each of several rounds. A rank 0 that is still there goes on
 * behind what it has written. */
static int follow_steps(struct judge *judge, const struct chaos *chaos, struct hvd_err *err)
{
    for (; judge->steps < chaos->steps.count; judge->steps++) {
        const struct step *step = &chaos->steps.list[judge->steps];
        uint64_t rounds = step->round - judge->round;
        bool first = !judge->steps;

        if (!first && step->at_us <= judge->step_us)
            continue; /* it was looked at, or came late and moved what was */
        if (!first && step->round < judge->round)
            return err_set(err, HVD_E_MISMATCH,
                           "step %" PRIu64 " of round %" PRIu64 " after one of round %" PRIu64,
                           step->number, step->round, judge->round);
        if (!first && !rounds && step->number != judge->step + 1)
            return err_set(err, HVD_E_MISMATCH,
                           "round %" PRIu64 ": step %" PRIu64 " after step %" PRIu64, step->round,
                           step->number, judge->step);
        if (!first && rounds && step->number < judge->step)
            return err_set(err, HVD_E_MISMATCH,
                           "round %" PRIu64 " goes back to step %" PRIu64 ", behind %" PRIu64
                           ", which all of an earlier one had: work was lost",
                           step->round, step->number, judge->step);
        if (!first && rounds && step->number == judge->step &&
            annals_same_first(&judge->annals, judge->round, step->round))
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

static int find_left_children(const struct sight *sight, struct hvd_err *err)
{
    for (uint32_t i = 0; i < sight->count; i++)
        if (sight->processes[i].unreaped)
            return err_set(err, HVD_E_MISMATCH,
                           "%" PRIu32 " children of %s (pid %d) have ended, and it does not wait "
                           "for them: a leak",
                           sight->processes[i].unreaped, sight->processes[i].name,
                           (int)sight->processes[i].pid);
    if (sight_count(sight, SIGHT_OTHER) > OTHERS_SPARE)
        return err_set(err, HVD_E_MISMATCH,
                       "%" PRIu32 " processes run that are no part of a job: a leak",
                       sight_count(sight, SIGHT_OTHER));
    return 0;
}

static int compare_files(const struct chaos *chaos, enum sight_kind kind, const char *name,
                         uint32_t peace, struct hvd_err *err)
{
    uint32_t most = most_files(&chaos->sight, kind);

    if (most > peace + FILES_SPARE)
        return err_set(err, HVD_E_MISMATCH,
                       "%s: %" PRIu32 " descriptors are open, %" PRIu32 " in peace: a leak", name,
                       most, peace);
    return 0;
}

static int compare_memories(const struct judge *judge, const struct chaos *chaos,
                            struct hvd_err *err)
{
    uint32_t most = most_memories(&chaos->sight);

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

    if (count > judge->sockets + 1) /* somebody may be asking */
        return err_set(err, HVD_E_MISMATCH, "%" PRIu64 " sockets of the job, %" PRIu64 " in peace",
                       count, judge->sockets);
    return 0;
}

enum leak {
    LEAK_DRIVER_FILES,
    LEAK_AGENT_FILES,
    LEAK_WORKER_FILES,
    LEAK_MEMORIES,
    LEAK_SOCKETS,
    LEAK_CHILDREN,
    LEAK_COUNT
};

static int find_leak(const struct judge *judge, const struct chaos *chaos, enum leak leak,
                     struct hvd_err *err)
{
    switch (leak) {
    case LEAK_DRIVER_FILES:
        return compare_files(chaos, SIGHT_DRIVER, "driver", judge->driver_files, err);
    case LEAK_AGENT_FILES:
        return compare_files(chaos, SIGHT_AGENT, "agent", judge->agent_files, err);
    case LEAK_WORKER_FILES:
        return compare_files(chaos, SIGHT_WORKER, "worker", judge->worker_files, err);
    case LEAK_MEMORIES: return compare_memories(judge, chaos, err);
    case LEAK_SOCKETS: return compare_sockets(judge, chaos, err);
    default: return find_left_children(&chaos->sight, err);
    }
}

/* Of several the one that was found in every look so far: it says more than what the last one found
 * beside it. */
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

/* What is open for a moment is none: an ssh that is still on its way to a host, say. */
static int await_no_leaks(const struct judge *judge, struct chaos *chaos, struct hvd_err *err)
{
    int64_t deadline_us = clock_now_us() + SETTLE_US;
    bool always[LEAK_COUNT];
    int rc;

    memset(always, true, sizeof(always));
    while ((rc = find_leaks(judge, chaos, always, err)) != 0 && clock_now_us() < deadline_us &&
           !*chaos->arena.broken_off) {
        (void)poll(NULL, 0, (int)(LOOK_US / TIME_MS));
        sight_take(&chaos->sight, &chaos->arena);
    }
    return rc;
}

/* Only what docs/operations.md names. */
static int find_strange_files(const struct arena *arena, struct hvd_err *err)
{
    static const char *const known[] = { ".",          "..",         "job.db",
                                         "job.db-wal", "job.db-shm", "job.db-journal",
                                         "command",    "lock",       "control",
                                         "agents",     "events.log", "events.log.1" };
    char path[ARENA_PATH];
    DIR *folder = opendir(arena_path(arena, "job", path));
    struct dirent *entry;
    int rc = 0;

    while (!rc && folder && (entry = readdir(folder))) {
        bool found = false;

        for (size_t i = 0; i < ARRAY_SIZE(known); i++)
            found |= !strcmp(entry->d_name, known[i]);
        if (!found)
            rc = err_set(err, HVD_E_MISMATCH, "the state directory has a file %s", entry->d_name);
    }
    if (folder)
        closedir(folder);
    return rc;
}

static bool had(const struct judge *judge, pid_t pid)
{
    for (uint32_t i = 0; i < judge->worker_count; i++)
        if (judge->workers[i] == pid)
            return true;
    return false;
}

static int has_cost_nothing(const struct judge *judge, const struct chaos *chaos,
                            struct hvd_err *err)
{
    if (judge->annals.round != judge->rounds)
        return err_set(err, HVD_E_MISMATCH,
                       "it should cost nothing, and round %" PRIu64 " was made",
                       judge->annals.round);
    for (uint32_t i = 0; i < chaos->sight.count; i++) {
        const struct sight_process *process = &chaos->sight.processes[i];

        if (process->kind == SIGHT_WORKER && !had(judge, process->pid))
            return err_set(err, HVD_E_MISMATCH,
                           "it should cost nothing, and worker #%" PRIu64 " was started",
                           process->incarnation);
    }
    return 0;
}

int judge_right(struct judge *judge, struct chaos *chaos, enum fault_cost cost, struct hvd_err *err)
{
    int rc = read_wrong(chaos, err);

    if (!rc)
        rc = annals_read(&judge->annals, err);
    if (!rc)
        rc = follow_steps(judge, chaos, err);
    if (!rc && cost == FAULT_COSTS_NOTHING)
        rc = has_cost_nothing(judge, chaos, err);
    if (!rc)
        rc = await_no_leaks(judge, chaos, err);
    if (!rc)
        rc = find_strange_files(&chaos->arena, err);
    return rc;
}

/* ---- before, and afterwards --------------------------------------------------------------------
 */

void judge_open(struct judge *judge, const struct chaos *chaos)
{
    char path[ARENA_PATH];

    memset(judge, 0, sizeof(*judge));
    annals_init(&judge->annals, arena_path(&chaos->arena, "job/events.log", path));
}

void judge_close(struct judge *judge)
{
    annals_release(&judge->annals);
}

/* Do the events say in which round the steps are done? Else nothing that they say is judged. */
static int await_events(struct judge *judge, struct chaos *chaos, struct hvd_err *err)
{
    int64_t deadline_us = clock_now_us() + SETTLE_US;
    int rc = annals_read(&judge->annals, err);

    while (!rc && judge->annals.trained != judge->round && clock_now_us() < deadline_us &&
           !*chaos->arena.broken_off) {
        (void)poll(NULL, 0, (int)(LOOK_US / TIME_MS));
        rc = annals_read(&judge->annals, err);
    }
    if (!rc && judge->annals.trained != judge->round)
        rc = err_set(err, HVD_E_MISMATCH,
                     "steps are done in round %" PRIu64 ", and the events say that round %" PRIu64
                     " trains",
                     judge->round, judge->annals.trained);
    return rc;
}

int judge_settle(struct judge *judge, struct chaos *chaos, struct hvd_err *err)
{
    int rc;

    judge->driver_files = most_files(&chaos->sight, SIGHT_DRIVER);
    judge->agent_files = most_files(&chaos->sight, SIGHT_AGENT);
    judge->worker_files = most_files(&chaos->sight, SIGHT_WORKER);
    judge->worker_memories = most_memories(&chaos->sight);
    judge->sockets = sockets_of(&chaos->arena);
    rc = judge_right(judge, chaos, FAULT_COSTS_A_ROUND, err);
    return rc ? rc : await_events(judge, chaos, err);
}

void judge_look(struct judge *judge, struct chaos *chaos)
{
    sight_take(&chaos->sight, &chaos->arena);
    judge->worker_count = 0;
    judge->rounds = judge->annals.round;
    for (uint32_t i = 0; i < chaos->sight.count; i++)
        if (chaos->sight.processes[i].kind == SIGHT_WORKER)
            judge->workers[judge->worker_count++] = chaos->sight.processes[i].pid;
}

/* By a program that shares no code with what deals the samples out. */
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

/* The far end of an ssh may outlive the agent that it has started, for a moment. */
static void await_nobody(struct chaos *chaos)
{
    int64_t deadline_us = clock_now_us() + SETTLE_US;

    sight_take(&chaos->sight, &chaos->arena);
    while (chaos->sight.count && clock_now_us() < deadline_us && !*chaos->arena.broken_off) {
        (void)poll(NULL, 0, (int)(LOOK_US / TIME_MS));
        sight_take(&chaos->sight, &chaos->arena);
    }
}

int judge_end(struct judge *judge, struct chaos *chaos, struct hvd_err *err)
{
    struct buf out;
    int rc = judge_right(judge, chaos, FAULT_COSTS_A_ROUND, err);

    if (!rc && !judge->annals.missing)
        rc = await_events(judge, chaos, err);
    if (rc)
        return rc;
    if (!WIFEXITED(chaos->arena.driver_status) || WEXITSTATUS(chaos->arena.driver_status))
        return err_set(err, HVD_E_MISMATCH, "the job has not ended well: status 0x%x",
                       (unsigned)chaos->arena.driver_status);
    await_nobody(chaos);
    if (chaos->sight.count) {
        buf_init(&out, ANSWER_MAX);
        sight_show(&chaos->sight, &out);
        err_set(err, HVD_E_MISMATCH, "%" PRIu32 " processes are left after the job: %.120s",
                chaos->sight.count, buf_text(&out));
        buf_release(&out);
        return HVD_E_MISMATCH;
    }
    if (sockets_of(&chaos->arena))
        return err_set(err, HVD_E_MISMATCH, "a socket is left after the job");
    return audit(&chaos->arena, err);
}
