/*
 * A machine that has too little: memory, descriptors, processors. A process that is limited (by
 * prlimit) to what it has at the moment gets no more when something happens that needs it; it may
 * end of that, and is replaced then. What it has started meanwhile was limited too.
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

#define LIMIT_LOW    (500 * TIME_MS)
#define LIMIT_HIGH   (1500 * TIME_MS)
#define STARVE_LOW   TIME_S
#define STARVE_HIGH  (2 * TIME_S)
#define LOOPS_MAX    16 /* beyond 8 cores they starve nobody, and should not */
#define PRESSURE_MAX (UINT64_C(1) << 30)
#define TABLE_BYTES  8192 /* of /proc/meminfo, /proc/PID/status */

/* ---- what a process has ------------------------------------------------------------------------
 */

/* "NAME:   NUMBER kB" of a table in /proc, in bytes; 0: it does not say. */
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

/* One more than the highest descriptor; 0: the process is gone. */
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

/* ---- limits ------------------------------------------------------------------------------------
 */

/* Only the soft one: so it can be lifted again without being root. */
static int limit(struct chaos *chaos, enum sight_kind kind, int resource)
{
    const struct sight_process *victim = sight_pick(&chaos->sight, kind, -1, &chaos->rng);
    uint64_t used = victim ? in_use(victim->pid, resource) : 0;
    struct rlimit old;

    chaos->lasts_us = strike_between(chaos, LIMIT_LOW, LIMIT_HIGH);
    if (!used || prlimit(victim->pid, (__rlimit_resource_t)resource, NULL, &old))
        return HVD_DONE;
    if (used < old.rlim_cur)
        old.rlim_cur = used;
    if (prlimit(victim->pid, (__rlimit_resource_t)resource, &old, NULL))
        return HVD_DONE;
    fault_note(chaos, victim);
    return 0;
}

/* Everybody's are ours, which all have inherited. Twice, for what is being started. */
static int lift(struct chaos *chaos)
{
    static const int resources[] = { RLIMIT_AS, RLIMIT_DATA, RLIMIT_NOFILE };
    struct sight *sight = mem_zalloc(sizeof(*sight));
    struct rlimit ours;

    if (!sight)
        return HVD_E_NOMEM;
    for (int pass = 0; pass < 2; pass++) {
        sight_take(sight, &chaos->arena);
        for (uint32_t i = 0; i < sight->count; i++)
            for (size_t k = 0; k < ARRAY_SIZE(resources); k++)
                if (!getrlimit((__rlimit_resource_t)resources[k], &ours))
                    (void)prlimit(sight->processes[i].pid, (__rlimit_resource_t)resources[k], &ours,
                                  NULL);
    }
    mem_free(sight);
    return 0;
}

static int lift_and_settle(struct chaos *chaos, struct hvd_err *err)
{
    int rc = lift(chaos);

    return rc ? err_set(err, rc, "the limits of processes: %s", err_text(rc))
              : strike_settle(chaos, err);
}

/* Of the two kinds of memory, by chance; then a worker dies, so that there is something to do. */
static int limit_memory(struct chaos *chaos, enum sight_kind kind)
{
    int resource = rng_below(&chaos->rng, 2) ? RLIMIT_AS : RLIMIT_DATA;
    int rc = limit(chaos, kind, resource);

    return rc ? rc : strike_kill(chaos, SIGHT_WORKER, -1);
}

static int memory_driver(struct chaos *chaos, struct hvd_err *err)
{
    (void)err;
    return limit_memory(chaos, SIGHT_DRIVER);
}

static int memory_agent(struct chaos *chaos, struct hvd_err *err)
{
    (void)err;
    return limit_memory(chaos, SIGHT_AGENT);
}

static int memory_worker(struct chaos *chaos, struct hvd_err *err)
{
    (void)err;
    return limit_memory(chaos, SIGHT_WORKER);
}

/* It can neither look for hosts nor take in whom it does not know yet; nobody has to notice. */
static int descriptors_driver(struct chaos *chaos, struct hvd_err *err)
{
    (void)err;
    return limit(chaos, SIGHT_DRIVER, RLIMIT_NOFILE);
}

static int descriptors_agent(struct chaos *chaos, struct hvd_err *err)
{
    int rc = limit(chaos, SIGHT_AGENT, RLIMIT_NOFILE);

    (void)err;
    return rc ? rc : strike_kill(chaos, SIGHT_WORKER, -1);
}

/* ---- neighbours --------------------------------------------------------------------------------
 */

/* Processes beside the job; they end with us. */
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

/* bytes 0: it takes only time. Where memory ends it is the first to go. */
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

static int neighbours_come(struct chaos *chaos, size_t count, uint64_t bytes, struct hvd_err *err)
{
    struct neighbours *neighbours = mem_zalloc(sizeof(*neighbours));
    int rc = 0;

    if (!neighbours)
        return err_set(err, HVD_E_NOMEM, "processes beside the job: %s", err_text(HVD_E_NOMEM));
    chaos->own = neighbours;
    chaos->lasts_us = strike_between(chaos, STARVE_LOW, STARVE_HIGH);
    for (size_t i = 0; i < count && !rc; i++)
        rc = add_neighbour(neighbours, bytes, err);
    if (rc)
        (void)neighbours_leave(chaos, NULL);
    return rc;
}

/* A quarter of what there is, and never so much that others on this machine would suffer. */
static int memory_pressure(struct chaos *chaos, struct hvd_err *err)
{
    uint64_t bytes = table_bytes("/proc/meminfo", "MemAvailable") / 4;

    if (bytes > PRESSURE_MAX)
        bytes = PRESSURE_MAX;
    if (bytes == 0)
        return HVD_DONE;
    fault_say(chaos, "%" PRIu64 " MiB", bytes >> 20);
    return neighbours_come(chaos, 1, bytes, err);
}

static int starve(struct chaos *chaos, struct hvd_err *err)
{
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    size_t count = cores < 1 ? 2 : (size_t)cores * 2;

    if (count > LOOPS_MAX)
        count = LOOPS_MAX;
    fault_say(chaos, "%zu busy loops", count);
    return neighbours_come(chaos, count, 0, err);
}

/* ---- the table ---------------------------------------------------------------------------------
 */

const struct fault machine_faults[] = {
    {"memory-driver",       "the driver gets no more memory, and a worker is killed",
     FAULT_COSTS_A_ROUND,                                                                                     2, NULL, memory_driver,     lift_and_settle },
    { "memory-agent",       "an agent gets no more memory, and a worker is killed",      FAULT_COSTS_A_ROUND,
     2,                                                                                                          NULL, memory_agent,      lift_and_settle },
    { "memory-worker",      "a worker gets no more memory, and another is killed",       FAULT_COSTS_A_ROUND,
     2,                                                                                                          NULL, memory_worker,     lift_and_settle },
    { "memory-pressure",    "a neighbour takes up to a quarter of the free memory",
     FAULT_COSTS_NOTHING,                                                                                     1, NULL, memory_pressure,   neighbours_leave},
    { "starve",             "two busy loops for each core",                              FAULT_COSTS_NOTHING, 1, NULL, starve,
     neighbours_leave                                                                                                                                     },
    { "descriptors-driver", "the driver gets no more descriptors",                       FAULT_COSTS_NOTHING, 2, NULL,
     descriptors_driver,                                                                                                                  lift_and_settle },
    { "descriptors-agent",  "an agent gets no more descriptors, and a worker is killed",
     FAULT_COSTS_A_ROUND,                                                                                     2, NULL, descriptors_agent, lift_and_settle },
};
const size_t machine_fault_count = ARRAY_SIZE(machine_faults);
