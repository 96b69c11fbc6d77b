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

#ifdef __SANITIZE_ADDRESS__
#define WITH_ADDRESS_SANITIZER true
#elif defined(__has_feature)
#define WITH_ADDRESS_SANITIZER __has_feature(address_sanitizer)
#else
#define WITH_ADDRESS_SANITIZER false
#endif

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

/* Only the soft one: so it can be lifted again without being root. *ret_host is the victim's. */
static int limit(struct chaos *chaos, enum sight_kind kind, int resource, int *ret_host)
{
    const struct sight_process *victim = sight_pick(&chaos->sight, kind, -1, &chaos->rng);
    uint64_t used = victim ? in_use(victim->pid, resource) : 0;
    struct rlimit old;

    chaos->lasts_us = strike_time(chaos, LIMIT_LOW, LIMIT_HIGH);
    if (!used || prlimit(victim->pid, (__rlimit_resource_t)resource, NULL, &old))
        return HVD_DONE;
    if (used < old.rlim_cur)
        old.rlim_cur = used;
    if (prlimit(victim->pid, (__rlimit_resource_t)resource, &old, NULL))
        return HVD_DONE;
    fault_note(chaos, victim);
    *ret_host = victim->host;
    return 0;
}

/* Nobody has less than we have ourselves unless it was limited, or started by who was. */
static void lift_limit(pid_t pid, int resource)
{
    struct rlimit ours, theirs;

    if (getrlimit((__rlimit_resource_t)resource, &ours) ||
        prlimit(pid, (__rlimit_resource_t)resource, NULL, &theirs) ||
        theirs.rlim_cur >= ours.rlim_cur)
        return;
    theirs.rlim_cur = theirs.rlim_max; /* where the driver has put that of descriptors */
    (void)prlimit(pid, (__rlimit_resource_t)resource, &theirs, NULL);
}

/* Twice, for what is being started. */
static int lift_limits(struct chaos *chaos, struct hvd_err *err)
{
    static const int resources[] = { RLIMIT_AS, RLIMIT_DATA, RLIMIT_NOFILE };
    struct sight *sight = mem_zalloc(sizeof(*sight));

    if (!sight)
        return err_set(err, HVD_E_NOMEM, "the limits of processes: %s", err_text(HVD_E_NOMEM));
    for (int pass = 0; pass < 2; pass++) {
        sight_take(sight, &chaos->arena);
        for (uint32_t i = 0; i < sight->count; i++)
            for (size_t k = 0; k < ARRAY_SIZE(resources); k++)
                lift_limit(sight->processes[i].pid, resources[k]);
    }
    mem_free(sight);
    return 0;
}

static int lift_and_settle(struct chaos *chaos, struct hvd_err *err)
{
    int rc = lift_limits(chaos, err);

    return rc ? rc : strike_settle(chaos, err);
}

/* Of the two kinds of memory, by chance. Then one dies that concerns the victim. */
static int limit_memory(struct chaos *chaos, enum sight_kind kind, enum sight_kind dies,
                        struct hvd_err *err)
{
    int resource = rng_below(&chaos->rng, 2) ? RLIMIT_AS : RLIMIT_DATA;
    int host = -1;
    int rc = limit(chaos, kind, resource, &host);

    fault_say(chaos, "%s", resource == RLIMIT_AS ? "addresses" : "data");
    if (kind == SIGHT_WORKER)
        host = strike_host(chaos, host);
    if (!rc)
        rc = strike_kill(chaos, dies, host);
    return strike_whole(chaos, rc, lift_limits, err);
}

static int memory_driver(struct chaos *chaos, struct hvd_err *err)
{
    enum sight_kind dies = rng_below(&chaos->rng, 2) ? SIGHT_WORKER : SIGHT_AGENT;

    return strike_driver_runs(chaos) ? limit_memory(chaos, SIGHT_DRIVER, dies, err) : HVD_DONE;
}

static int memory_agent(struct chaos *chaos, struct hvd_err *err)
{
    return limit_memory(chaos, SIGHT_AGENT, SIGHT_WORKER, err);
}

/* It has to connect anew, with one that comes on another host. */
static int memory_worker(struct chaos *chaos, struct hvd_err *err)
{
    return limit_memory(chaos, SIGHT_WORKER, SIGHT_WORKER, err);
}

/* It can neither look for hosts nor take in whom it does not know yet; nobody has to notice. */
static int descriptors_driver(struct chaos *chaos, struct hvd_err *err)
{
    int host = -1;

    (void)err;
    return strike_driver_runs(chaos) ? limit(chaos, SIGHT_DRIVER, RLIMIT_NOFILE, &host) : HVD_DONE;
}

static int descriptors_agent(struct chaos *chaos, struct hvd_err *err)
{
    int host = -1;
    int rc = limit(chaos, SIGHT_AGENT, RLIMIT_NOFILE, &host);

    if (!rc)
        rc = strike_kill(chaos, SIGHT_WORKER, host);
    return strike_whole(chaos, rc, lift_limits, err);
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
    chaos->lasts_us = strike_time(chaos, STARVE_LOW, STARVE_HIGH);
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

/* It has memory of its own, and what gets none of that is ended by it, with a code of its own. */
static const char *no_sanitizer(const struct chaos *chaos)
{
    (void)chaos;
    return WITH_ADDRESS_SANITIZER ? "the driver is built with a sanitizer, which needs memory"
                                  : NULL;
}

/* ---- the table ---------------------------------------------------------------------------------
 */

/* clang-format off */
#define ROW(title, ...) { .name = (title), __VA_ARGS__ }
/* clang-format on */

const struct fault machine_faults[] = {
    ROW("memory-driver", .what = "the driver gets no more memory, and a worker or agent is killed",
        .weight = 2, .missing = no_sanitizer, .strike = memory_driver, .relent = lift_and_settle),
    ROW("memory-agent", .what = "an agent gets no more memory, and a worker is killed", .weight = 2,
        .strike = memory_agent, .relent = lift_and_settle),
    ROW("memory-worker", .what = "a worker gets no more memory, and another is killed", .weight = 2,
        .strike = memory_worker, .relent = lift_and_settle),
    ROW("memory-pressure", .what = "a neighbour takes up to a quarter of the free memory",
        .cost = FAULT_COSTS_NOTHING, .weight = 1, .strike = memory_pressure,
        .relent = neighbours_leave),
    ROW("starve", .what = "two busy loops for each core", .cost = FAULT_COSTS_NOTHING, .weight = 1,
        .strike = starve, .relent = neighbours_leave),
    ROW("descriptors-driver", .what = "the driver gets no more descriptors",
        .cost = FAULT_COSTS_NOTHING, .weight = 2, .strike = descriptors_driver,
        .relent = lift_and_settle),
    ROW("descriptors-agent", .what = "an agent gets no more descriptors, and a worker is killed",
        .weight = 2, .strike = descriptors_agent, .relent = lift_and_settle),
};
const size_t machine_fault_count = ARRAY_SIZE(machine_faults);
