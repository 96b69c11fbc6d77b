/*
 * faults_machine.c: a machine with too little memory, descriptors or processors. A process is
 * limited (prlimit) to what it uses at the moment, and gets no more when an event needs it. The
 * process may end because of that, and is then replaced. Children that it has started meanwhile
 * have the limit too.
 */
#include "base/buf.h"
#include "base/mem.h"
#include "base/text.h"
#include "base/time.h"
#include "os/file.h"
#include "tests/chaos/strike.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#ifdef __SANITIZE_ADDRESS__
#define WITH_ADDRESS_SANITIZER true
#elif defined(__has_feature)
#define WITH_ADDRESS_SANITIZER __has_feature(address_sanitizer)
#else
#define WITH_ADDRESS_SANITIZER false
#endif

#define LIFT_PASSES 2 /* looks at all processes in a row that find none with a limit */
#define LIMIT_LOW   (500 * TIME_MS)
#define LIMIT_HIGH  (1500 * TIME_MS)
#define STARVE_LOW  TIME_S
#define STARVE_HIGH (2 * TIME_S)
/* enough to starve a machine of 8 cores; a larger machine shall not be starved */
#define LOOPS_MAX    16
#define PRESSURE_MAX (UINT64_C(1) << 30)
#define TABLE_BYTES  8192 /* size of a table such as /proc/meminfo or /proc/PID/status */

/* ---- what a process uses ---- */

/* The number of a line "NAME:   NUMBER kB" of a table in /proc, in bytes; 0: there is no such line.
 */
static uint64_t table_bytes(const char *path, const char *name)
{
    const char *line;
    struct buf text;
    uint64_t kib = 0;

    buf_init(&text, TABLE_BYTES);
    if (!file_read(path, &text, NULL)) {
        line = strstr(buf_text(&text), name);
        if (line)
            kib = strtoull(line + strlen(name) + 1, NULL, 10);
    }
    buf_release(&text);
    return kib * 1024;
}

/* The highest descriptor of the process, plus 1; 0: the process is gone. */
static uint64_t descriptors_of(pid_t pid)
{
    char path[64];
    const struct dirent *entry;
    uint64_t most = 0;
    DIR *folder;

    snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
    folder = opendir(path);
    while (folder && (entry = readdir(folder)) != NULL) {
        uint64_t number = strtoull(entry->d_name, NULL, 10) + 1;

        if (number > most && entry->d_name[0] != '.')
            most = number;
    }
    if (folder)
        closedir(folder);
    return most;
}

static uint64_t in_use(pid_t pid, int resource)
{
    char path[64];

    if (resource == RLIMIT_NOFILE)
        return descriptors_of(pid);
    snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
    return table_bytes(path, resource == RLIMIT_AS ? "VmSize" : "VmData");
}

/* ---- limits ---- */

/* Limits a random process to what it uses. Only the soft limit is changed, so that it can be lifted
 * without root. *ret_host is the victim's host. */
static int limit(struct chaos *chaos, enum proc_kind kind, int resource, int *ret_host)
{
    const struct proc_info *victim = proc_scan_pick(&chaos->scan, kind, -1, &chaos->rng);
    uint64_t used = victim ? in_use(victim->pid, resource) : 0;
    struct rlimit old;

    /* The host of an agent without workers is not known, so the log could not be judged. */
    if (victim && kind == PROC_AGENT && victim->host < 0)
        return HVD_DONE;

    chaos->lasts_us = strike_time(chaos, LIMIT_LOW, LIMIT_HIGH);
    if (!used || prlimit(victim->pid, (__rlimit_resource_t)resource, NULL, &old))
        return HVD_DONE;
    if (used < old.rlim_cur)
        old.rlim_cur = used;
    if (prlimit(victim->pid, (__rlimit_resource_t)resource, &old, NULL))
        return HVD_DONE;
    fault_note_harmed(chaos, victim);
    *ret_host = victim->host;
    return 0;
}

/* Lifts the limit, if the process has one: only processes that were limited, or their children,
 * have less than this process. Returns whether it had one. */
static bool lift_limit(pid_t pid, int resource)
{
    struct rlimit ours, theirs;

    if (getrlimit((__rlimit_resource_t)resource, &ours) ||
        prlimit(pid, (__rlimit_resource_t)resource, NULL, &theirs) ||
        theirs.rlim_cur >= ours.rlim_cur)
        return false;
    /* the driver itself raises the limit of descriptors to the hard limit */
    theirs.rlim_cur = theirs.rlim_max;
    return prlimit(pid, (__rlimit_resource_t)resource, &theirs, NULL) == 0;
}

/* Lifts all limits, again and again until no process has one: a limited process may have started
 * others meanwhile. */
static int lift_limits(struct chaos *chaos, struct hvd_err *err)
{
    static const int resources[] = { RLIMIT_AS, RLIMIT_DATA, RLIMIT_NOFILE };
    struct proc_scan *scan = mem_zalloc(sizeof(*scan));

    if (!scan)
        return err_set(err, HVD_E_NOMEM, "the limits of processes: %s", err_text(HVD_E_NOMEM));
    for (int without = 0; without < LIFT_PASSES;) {
        bool lifted = false;

        proc_scan_take(scan, &chaos->arena);
        for (uint32_t i = 0; i < scan->count; i++)
            for (size_t k = 0; k < ARRAY_SIZE(resources); k++)
                lifted |= lift_limit(scan->processes[i].pid, resources[k]);
        without = lifted ? 0 : without + 1;
    }
    mem_free(scan);
    return 0;
}

/* Limits one of the two kinds of memory, by chance. Then kills a process whose replacement makes
 * the victim need more. */
static int limit_memory(struct chaos *chaos, enum proc_kind kind, enum proc_kind dies,
                        struct hvd_err *err)
{
    int resource = rng_below(&chaos->rng, 2) ? RLIMIT_AS : RLIMIT_DATA;
    int host = -1;
    int rc = limit(chaos, kind, resource, &host);

    fault_say(chaos, "%s", resource == RLIMIT_AS ? "addresses" : "data");
    if (kind == PROC_WORKER)
        host = strike_host(chaos, host);
    if (!rc)
        rc = strike_kill(chaos, dies, host);
    return strike_whole(chaos, rc, lift_limits, err);
}

/* A sanitizer has memory of its own; without memory it ends the process with its own exit code. */
static const char *no_sanitizer(const struct chaos *chaos)
{
    (void)chaos;
    return WITH_ADDRESS_SANITIZER ? "the driver is built with a sanitizer, which needs memory"
                                  : NULL;
}

FAULT(memory_driver, "memory-driver", .names = "{driver}; {worker}; {host}",
      .what = "the driver gets no more memory, and a worker or agent is killed", .weight = 2,
      .missing = no_sanitizer, .relent = lift_limits)
{
    enum proc_kind dies = rng_below(&chaos->rng, 2) ? PROC_WORKER : PROC_AGENT;

    return strike_driver_runs(chaos) ? limit_memory(chaos, PROC_DRIVER, dies, err) : HVD_DONE;
}

FAULT(memory_agent, "memory-agent", .names = "{worker}: killed by signal 9; {host}",
      .what = "an agent gets no more memory, and a worker is killed", .weight = 2,
      .relent = lift_limits)
{
    return limit_memory(chaos, PROC_AGENT, PROC_WORKER, err);
}

/* The limited worker has to connect again, with a new worker on another host. */
FAULT(memory_worker, "memory-worker", .names = "{worker}",
      .what = "a worker gets no more memory, and another is killed", .weight = 2,
      .relent = lift_limits)
{
    return limit_memory(chaos, PROC_WORKER, PROC_WORKER, err);
}

/* The driver can neither run discovery nor accept a new agent; no worker may notice. */
FAULT(descriptors_driver, "descriptors-driver",
      .quiet = "a failed discovery or checkpoint, of which the log tells, is made again",
      .what = "the driver gets no more descriptors", .cost = FAULT_COSTS_NOTHING, .weight = 2,
      .relent = lift_limits)
{
    char path[ARENA_PATH];
    int host = -1;

    fault_allow(chaos, BLAME_THING, arena_path(&chaos->arena, "discover", path));
    fault_allow(chaos, BLAME_THING, arena_path(&chaos->arena, "checkpoints", path));
    return strike_driver_runs(chaos) ? limit(chaos, PROC_DRIVER, RLIMIT_NOFILE, &host) : HVD_DONE;
}

FAULT(descriptors_agent, "descriptors-agent", .names = "{worker}: killed by signal 9; {host}",
      .what = "an agent gets no more descriptors, and a worker is killed", .weight = 2,
      .relent = lift_limits)
{
    int host = -1;
    int rc = limit(chaos, PROC_AGENT, RLIMIT_NOFILE, &host);

    if (!rc)
        rc = strike_kill(chaos, PROC_WORKER, host);
    return strike_whole(chaos, rc, lift_limits, err);
}

/* ---- processes beside the job ---- */

/* Processes beside the job, which end with this process. */
struct neighbours {
    pid_t pids[LOOPS_MAX];
    size_t count;
};

NORETURN static void take_memory(uint64_t bytes)
{
    char *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (memory == MAP_FAILED)
        _exit(1);
    for (;;)
        for (uint64_t at = 0; at < bytes; at += 4096)
            ((volatile char *)memory)[at]++;
}

NORETURN static void take_time(void)
{
    for (volatile uint64_t turns = 0;;)
        turns++;
}

/* Starts a process beside the job that uses this much memory; 0: only processor time. If memory
 * runs out, the kernel kills this process first. */
static int add_neighbour(struct neighbours *neighbours, uint64_t bytes, struct hvd_err *err)
{
    pid_t us = getpid();
    pid_t pid = fork();

    if (pid < 0)
        return err_set(err, HVD_E_LIMIT, "a process beside the job: %s", strerror(errno));
    if (pid == 0) {
        FILE *score;

        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != us)
            _exit(1);
        score = fopen("/proc/self/oom_score_adj", "w");
        if (score && fputs("1000", score) >= 0)
            (void)fflush(score);
        if (bytes)
            take_memory(bytes);
        take_time();
    }
    neighbours->pids[neighbours->count++] = pid;
    return 0;
}

static int neighbours_leave(struct chaos *chaos, struct hvd_err *err)
{
    struct neighbours *neighbours = chaos->own;

    (void)err;
    for (size_t i = 0; neighbours && i < neighbours->count; i++)
        kill(neighbours->pids[i], SIGKILL);
    for (size_t i = 0; neighbours && i < neighbours->count; i++)
        while (waitpid(neighbours->pids[i], NULL, 0) < 0 && errno == EINTR)
            continue;
    mem_free(neighbours);
    chaos->own = NULL;
    return 0;
}

/* Starts `count` processes beside the job, which neighbours_leave ends; 0, or an error. */
static int neighbours_come(struct chaos *chaos, size_t count, uint64_t bytes, struct hvd_err *err)
{
    struct neighbours *neighbours = mem_zalloc(sizeof(*neighbours));
    int rc = 0;

    if (!neighbours)
        return err_set(err, HVD_E_NOMEM, "processes beside the job: %s", err_text(HVD_E_NOMEM));
    chaos->own = neighbours;
    chaos->lasts_us = strike_time(chaos, STARVE_LOW, STARVE_HIGH);
    for (size_t i = 0; i < count && !rc; i++)
        rc = add_neighbour(neighbours, bytes, err);
    if (rc)
        (void)neighbours_leave(chaos, NULL);
    return rc;
}

/* Uses a quarter of the machine's memory, but not so much that other programs would suffer. */
FAULT(memory_pressure, "memory-pressure", .quiet = "the machine still has memory",
      .what = "a neighbour takes up to a quarter of the free memory", .cost = FAULT_COSTS_NOTHING,
      .weight = 1, .relent = neighbours_leave)
{
    uint64_t bytes = table_bytes("/proc/meminfo", "MemAvailable") / 4;

    if (bytes > PRESSURE_MAX)
        bytes = PRESSURE_MAX;
    if (bytes == 0)
        return HVD_DONE;
    fault_say(chaos, "%" PRIu64 " MiB", bytes >> 20);
    return neighbours_come(chaos, 1, bytes, err);
}

FAULT(starve, "starve", .quiet = "the job has its share of the processors",
      .what = "two busy loops for each core", .cost = FAULT_COSTS_NOTHING, .weight = 1,
      .relent = neighbours_leave)
{
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    size_t count = cores < 1 ? 2 : (size_t)cores * 2;

    if (count > LOOPS_MAX)
        count = LOOPS_MAX;
    fault_say(chaos, "%zu busy loops", count);
    return neighbours_come(chaos, count, 0, err);
}
