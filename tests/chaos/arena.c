/*
 * arena.c: starts and ends the arena, which is the job under attack: its driver, its folder, its
 * hosts. Every process of the job has CHAOS_ARENA in its environment, so proc_scan.c finds all of
 * them, and none is left at the end of a campaign.
 */
#include "tests/chaos/arena.h"

#include "base/buf.h"
#include "base/mem.h"
#include "base/time.h"
#include "os/clock.h"
#include "os/process.h"
#include "tests/chaos/arena_checkpoints.h"
#include "tests/chaos/arena_folder.h"
#include "tests/chaos/arena_s3.h"
#include "tests/chaos/arena_store.h"
#include "tests/chaos/disk_faults.h"
#include "tests/chaos/networks.h"
#include "tests/chaos/proc_scan.h"
#include "tests/chaos/slip.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef CHAOS_ELASTIC /* the build defines the paths of both programs */
#define CHAOS_ELASTIC             "hvd-elastic"
#define CHAOS_TRAINER             "chaos_trainer"
#define CHAOS_DISK_FAULTS_LIBRARY "libdisk_faults_preload.so"
#endif

#define WORDS_MAX           96
#define ENV_MAX             512
#define ENV_BYTES           (ARENA_PATH + 32)
#define ASK_US              (15 * TIME_S)
#define SLIP_BUCKET_PERCENT 50
#define STALL_US            (4 * TIME_S) /* from the lease to the end of a worker that others wait for */
#define ANSWER_BYTES        (4 * 1024 * 1024)
/* scans for processes that are left; each scan waits for the processes that it has killed */
#define END_PASSES 200
#define END_US     (10 * TIME_S)
#define LOG_LINE   512

/* ---- the driver's command line and environment ---- */

/* Options that suit an attack: a failure is noticed soon, and no slot is barred for long. The time
 * limits that no fault has to exceed are long, for a machine that is busy. */
static const char *const limits[] = {
    "--min-np",
    "1",
    "--max-np",
    "unlimited",
    "--discovery-interval",
    "100ms",
    "--discovery-timeout",
    "2s",
    "--beat",
    "100ms",
    "--agent-timeout",
    "30s",
    "--start-timeout",
    "1m",
    "--driver-grace",
    "1m",
    "--stall-warning",
    "2s",
    "--blacklist-cooldown-range",
    "20ms",
    "200ms",
    "--slot-restarts",
    "0",
    "--kill-grace",
    "2s",
    "--gather",
    "500ms",
};

struct words {
    const char *list[WORDS_MAX];
    size_t count;
    char np[16], step_ms[24], state_kib[24];
    char lease[TIME_TEXT_MAX], stall[TIME_TEXT_MAX], store_lease[TIME_TEXT_MAX];
    char state[ARENA_PATH], discover[ARENA_PATH];
    char checkpoints[ARENA_PATH], keep[16];
};

static void say(struct words *words, const char *word)
{
    if (words->count < WORDS_MAX - 1)
        words->list[words->count++] = word;
    words->list[words->count] = NULL;
}

static void say_number(struct words *words, char *text, size_t size, const char *name,
                       uint64_t value)
{
    snprintf(text, size, "%" PRIu64, value);
    say(words, name);
    say(words, text);
}

/* Builds the command line of a driver; how: NULL, "--takeover" or "--standby". All drivers of the
 * arena get the same command line, so a successor takes over. */
static void driver_words(const struct arena *arena, const char *how, struct words *words)
{
    words->count = 0;
    say(words, CHAOS_ELASTIC);
    if (how)
        say(words, how);
    if (arena->plan->store == PLAN_ETCD) {
        if (!how || strcmp(how, "--standby") != 0)
            say(words, "--job");
        say(words, "chaos");
        say(words, "--store");
        say(words, arena_store_url());
        say(words, "--store-lease");
        say(words, time_format(arena->plan->lease_us, words->store_lease));
    }
    say(words, "--state-dir");
    say(words, arena_path(arena, "job", words->state));
    if (how && !strcmp(how, "--standby")) /* it knows the rest from the store */
        return;
    say(words, "--host-discovery-script");
    say(words, arena_path(arena, "discover", words->discover));
    for (size_t i = 0; i < ARRAY_SIZE(limits); i++)
        say(words, limits[i]);
    say(words, "--lease");
    say(words, time_format(arena->plan->lease_us, words->lease));
    say(words, "--stall-shutdown");
    say(words, time_format(arena_stall_us(arena), words->stall));
    say_number(words, words->np, sizeof(words->np), "-np", arena->plan->hosts * arena->plan->slots);
    if (!arena->plan->trace) {
        say(words, "--checkpoint-interval");
        say(words, "500ms");
        say(words, "--checkpoint-dir");
        say(words, arena_checkpoint_dir(arena, words->checkpoints));
        say_number(words, words->keep, sizeof(words->keep), "--checkpoint-keep", ARENA_CHECKPOINTS);
    }
    if (arena->plan->slip == SLIP_NAMELESS) {
        say(words, "--log-level");
        say(words, "error");
    }
    for (size_t i = 0; arena->options && arena->options[i]; i++)
        say(words, arena->options[i]);
    if (arena->networks) {
        /* Adds the options with which agents are started on hosts that are namespaces. */
        const char *more[NETWORKS_WORDS];

        networks_words(arena->networks, more);
        for (size_t i = 0; more[i]; i++)
            say(words, more[i]);
    }
    say(words, "--");
    say(words, CHAOS_TRAINER);
    say_number(words, words->step_ms, sizeof(words->step_ms), "--step-ms", arena->plan->step_ms);
    say_number(words, words->state_kib, sizeof(words->state_kib), "--state-kib",
               arena->plan->state_kib);
    say(words, "--slip");
    say(words, slip_names[arena->plan->slip]);
}

struct environment {
    const char *list[ENV_MAX];
    size_t count;
    char own[16][ENV_BYTES];
    size_t own_count;
};

static void put(struct environment *env, const char *name, const char *value)
{
    char *text = env->own[env->own_count++];

    snprintf(text, ENV_BYTES, "%s=%s", name, value);
    env->list[env->count++] = text;
    env->list[env->count] = NULL;
}

static bool is_passed_on(const char *variable)
{
    static const char *const kept[] = { "HVD_", "HOROVOD_", "XDG_",        "CHAOS_",
                                        "AWS_", "HOME=",    "LD_PRELOAD=", "ASAN_OPTIONS=" };

    for (size_t i = 0; i < ARRAY_SIZE(kept); i++)
        if (!strncmp(variable, kept[i], strlen(kept[i])))
            return false;
    return true;
}

/* Builds the environment of the driver; the mark comes first, where a scan finds it soonest. */
static void environment_of(const struct arena *arena, struct environment *env)
{
    char path[ARENA_PATH];

    env->count = env->own_count = 0;
    put(env, "CHAOS_ARENA", arena->folder);
    put(env, "HVD_CHAOS_STEPS", arena_path(arena, "steps", path));
    put(env, "HVD_SAMPLE_LOG", arena_path(arena, "samples", path));
    put(env, "HOME", arena->folder);
    put(env, "HVD_TRACEABLE", "1"); /* so that a scan of processes finds driver and agents */
    if (arena->plan->checkpoints == PLAN_S3) {
        put(env, "AWS_ENDPOINT_URL", arena_s3_url());
        put(env, "AWS_ACCESS_KEY_ID", ARENA_S3_ID);
        put(env, "AWS_SECRET_ACCESS_KEY", ARENA_S3_SECRET);
        put(env, "AWS_EC2_METADATA_DISABLED", "true");
    }
    for (char **at = environ; *at && env->count < ENV_MAX - 2; at++)
        if (is_passed_on(*at))
            env->list[env->count++] = *at;
    env->list[env->count] = NULL;
}

/* ---- the driver --------------------------------------------------------------------------------
 */

static int open_log(const struct arena *arena, const char *name, struct hvd_err *err)
{
    char path[ARENA_PATH];
    int fd = open(arena_path(arena, name, path), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);

    return fd >= 0 ? fd : err_set(err, HVD_E_IO, "%s: %s", path, strerror(errno));
}

void arena_log(const struct arena *arena, const char *format, ...)
{
    char line[LOG_LINE];
    int log = open_log(arena, "driver.log", NULL);
    va_list args;
    int length;

    va_start(args, format);
    length = vsnprintf(line, sizeof(line) - 1, format, args);
    va_end(args);
    if (length > (int)sizeof(line) - 2)
        length = (int)sizeof(line) - 2;
    line[length++] = '\n';
    if (log < 0)
        return;
    if (write(log, line, (size_t)length) != length)
        perror("driver.log");
    close(log);
}

/* Starts a driver process, with its output in driver.log. */
static int start(struct arena *arena, const char *how, struct hvd_err *err)
{
    struct environment env;
    struct words words;
    char path[ARENA_PATH];
    struct process_spec spec = {
        .in = -1, .cwd = arena->folder, .group = true, .dies_with_us = SIGTERM
    };
    int log = open_log(arena, "driver.log", err);
    int rc;
    const char *asan;
    char options[ENV_BYTES - 16];

    if (log < 0)
        return log;
    driver_words(arena, how, &words);
    environment_of(arena, &env);
    put(&env, "CHAOS_DISK_FAULTS", arena_path(arena, "disk_faults", path));
    put(&env, "CHAOS_FOLDER_FAULTS", arena_path(arena, "folder_faults", path));
    put(&env, "LD_PRELOAD", CHAOS_DISK_FAULTS_LIBRARY);
    /* A sanitizer must be the first library that is loaded, so its library is put before ours. */
    asan = getenv("ASAN_OPTIONS");
    snprintf(options, sizeof(options), "%s%sverify_asan_link_order=0", asan ? asan : "",
             asan ? ":" : "");
    put(&env, "ASAN_OPTIONS", options);
    spec.argv = words.list;
    spec.envp = env.list;
    spec.out = spec.err = log;
    rc = process_spawn(&spec, &arena->driver, err);
    close(log);
    return rc;
}

int arena_start(struct arena *arena, struct hvd_err *err)
{
    return start(arena, NULL, err);
}

int arena_take_over(struct arena *arena, struct hvd_err *err)
{
    arena->former = arena->driver;
    return start(arena, "--takeover", err);
}

int arena_stand_by(struct arena *arena, struct hvd_err *err)
{
    arena->former = arena->driver;
    return start(arena, "--standby", err);
}

bool arena_driver_ended(struct arena *arena)
{
    int status;
    pid_t pid;

    if (!arena->driver)
        return true;
    do
        pid = waitpid(arena->driver, &status, WNOHANG);
    while (pid < 0 && errno == EINTR);
    if (pid == 0)
        return false;
    arena->driver_status = pid > 0 ? status : 0;
    arena->driver = 0;
    return true;
}

/* Waits until the process has ended or the deadline has passed; true: the process has ended. */
static bool await_end(pid_t pid, int64_t deadline_us)
{
    int fd = process_watch(pid);
    struct pollfd watch = { .fd = fd, .events = POLLIN };
    bool ended = fd < 0; /* fd < 0: the process is gone */

    while (!ended) {
        int64_t left_us = deadline_us - clock_now_us();

        if (left_us <= 0)
            break;
        ended = poll(&watch, 1, (int)(left_us / TIME_MS) + 1) > 0;
    }
    if (fd >= 0)
        close(fd);
    return ended;
}

int arena_await_driver(struct arena *arena, int64_t deadline_us, struct hvd_err *err)
{
    if (arena_driver_ended(arena))
        return 0;
    if (!await_end(arena->driver, deadline_us) || !arena_driver_ended(arena))
        return err_set(err, HVD_E_TIMEOUT, "the driver (pid %d) does not end", (int)arena->driver);
    return 0;
}

/* ---- questions ---------------------------------------------------------------------------------
 */

/* Appends the command's whole output to out (NULL: drops the output); 0, or an error. */
static int take_answer(int fd, struct buf *out, struct hvd_err *err)
{
    char part[4096];
    off_t at = 0;
    ssize_t got;

    while ((got = pread(fd, part, sizeof(part), at)) > 0) {
        at += got;
        if (out && buf_append(out, part, (size_t)got))
            return err_set(err, HVD_E_LIMIT, "an answer of more than %zu bytes", out->max);
    }
    return got < 0 ? err_set(err, HVD_E_IO, "an answer: %s", strerror(errno)) : 0;
}

/* Reaps the asked command, after a kill if it was too slow. Returns its exit code, or an error. */
static int exit_code_of(pid_t pid, bool in_time, const char *verb, struct hvd_err *err)
{
    int status = 0;

    if (!in_time)
        kill(pid, SIGKILL);
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        continue;
    if (!in_time)
        return err_set(err, HVD_E_TIMEOUT, "hvd-elastic %s: no answer within %" PRId64 " s", verb,
                       ASK_US / TIME_S);
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

/* Runs hvd-elastic with the words, its output in the file `answer`; returns the exit code, or an
 * error. */
static int ask(const struct arena *arena, const char *const *asked, int answer, struct hvd_err *err)
{
    struct environment env;
    struct words words = { .count = 0 };
    struct process_spec spec = { .in = -1, .cwd = arena->folder, .dies_with_us = SIGKILL };
    pid_t pid;
    int rc;

    say(&words, CHAOS_ELASTIC);
    for (size_t i = 0; asked[i]; i++)
        say(&words, asked[i]);
    say(&words, "--state-dir");
    say(&words, arena_path(arena, "job", words.state));
    environment_of(arena, &env);
    spec.argv = words.list;
    spec.envp = env.list;
    spec.out = answer;
    spec.err = open_log(arena, "ask.log", err);
    if (spec.err < 0)
        return spec.err;
    rc = process_spawn(&spec, &pid, err);
    close(spec.err);
    return rc ? rc : exit_code_of(pid, await_end(pid, clock_now_us() + ASK_US), asked[0], err);
}

int arena_ask(struct arena *arena, const char *const *words, struct buf *out, struct hvd_err *err)
{
    int answer = memfd_create("answer", MFD_CLOEXEC);
    int code, rc;

    if (answer < 0)
        return err_set(err, HVD_E_IO, "memfd_create: %s", strerror(errno));
    code = ask(arena, words, answer, err);
    rc = code < 0 ? code : take_answer(answer, out, err);
    close(answer);
    return rc ? rc : code;
}

uint32_t arena_trainers(struct arena *arena)
{
    static const char *const words[] = { "hosts", "--json", NULL };
    uint32_t trainers = 0;
    struct buf out;

    buf_init(&out, ANSWER_BYTES);
    if (!arena_ask(arena, words, &out, NULL))
        for (const char *at = buf_text(&out); (at = strstr(at, "\"trains\":true")); at++)
            trainers++;
    buf_release(&out);
    return trainers;
}

bool arena_is_at_rest(struct arena *arena)
{
    static const char *const words[] = { "status", "--json", NULL };
    struct buf out;
    bool rests;

    buf_init(&out, ANSWER_BYTES);
    rests = !arena_ask(arena, words, &out, NULL) && strstr(buf_text(&out), "\"state\":\"running\"");
    buf_release(&out);
    return rests;
}

uint64_t arena_looks(const struct arena *arena)
{
    char path[ARENA_PATH];
    struct stat looks;

    return stat(arena_path(arena, "looks", path), &looks) ? 0 : (uint64_t)looks.st_size;
}

/* ---- the arena ---------------------------------------------------------------------------------
 */

int arena_open(struct arena *arena, const struct chaos_plan *plan, const volatile bool *broken_off,
               struct hvd_err *err)
{
    char path[ARENA_PATH];
    int rc;

    *arena = (struct arena){ .plan = plan, .broken_off = broken_off };
    if (plan->hosts < 1 || plan->hosts > ARENA_HOSTS)
        return err_set(err, HVD_E_INVAL, "%" PRIu64 " hosts: there may be 1 to %d", plan->hosts,
                       ARENA_HOSTS);
    for (uint32_t i = 0; i < (uint32_t)arena->plan->hosts; i++) {
        struct arena_host *host = &arena->hosts[arena->host_count++];

        if (arena->plan->where == PLAN_NETWORKS)
            (void)networks_name(i + 1, host->name);
        else
            snprintf(host->name, sizeof(host->name), "127.0.0.%" PRIu32, i + 1);
        host->slots = (uint32_t)arena->plan->slots;
        host->listed = true;
    }
    rc = arena_folder_make(arena, err);
    if (!rc)
        rc = disk_faults_open(arena_path(arena, "disk_faults", path), &arena->disk_faults, err);
    if (!rc)
        rc = disk_faults_open(arena_path(arena, "folder_faults", path), &arena->folder_faults, err);
    if (!rc)
        (void)arena_path(arena, "checkpoints", arena->folder_faults->folder);
    if (!rc && plan->store == PLAN_ETCD)
        rc = arena_store_open(arena_path(arena, "etcd", path), err);
    if (!rc && plan->checkpoints == PLAN_S3)
        rc = arena_s3_open(err);
    if (!rc && plan->slip == SLIP_BUCKET)
        rc = arena_s3_fault("forget", SLIP_BUCKET_PERCENT, 1, err);
    if (!rc && plan->where == PLAN_NETWORKS) {
        arena->networks = mem_zalloc(sizeof(*arena->networks));
        rc = arena->networks ? networks_open(arena->networks, arena->folder, arena->host_count, err)
                             : err_set(err, HVD_E_NOMEM, "out of memory");
    }
    if (!rc)
        rc = arena_list(arena, err);
    return rc;
}

/* Kills all processes of the arena before it waits for any of them, so that few have time to start
 * others. */
static uint32_t end_all(const struct arena *arena, struct proc_scan *scan)
{
    int64_t deadline_us = clock_now_us() + END_US;
    uint32_t ended = 0;

    proc_scan_take(scan, arena);
    for (uint32_t i = 0; i < scan->count; i++)
        kill(scan->processes[i].pid, SIGKILL);
    for (uint32_t i = 0; i < scan->count; i++) {
        if (scan->processes[i].state != 'Z')
            ended++;
        (void)await_end(scan->processes[i].pid, deadline_us);
    }
    return ended;
}

void arena_close(struct arena *arena, bool keep)
{
    struct proc_scan *scan = mem_zalloc(sizeof(*scan));
    int status;

    if (arena->driver) {
        kill(arena->driver, SIGKILL);
        while (waitpid(arena->driver, &status, 0) < 0 && errno == EINTR)
            continue;
        arena->driver = 0;
    }
    for (int i = 0; scan && arena->folder[0] && i < END_PASSES && end_all(arena, scan); i++)
        continue;
    mem_free(scan);
    arena_store_close();
    arena_s3_close();
    if (arena->networks)
        networks_close(arena->networks);
    mem_free(arena->networks);
    arena->networks = NULL;
    disk_faults_close(arena->disk_faults);
    disk_faults_close(arena->folder_faults);
    arena->disk_faults = arena->folder_faults = NULL;
    if (arena->folder[0] && !keep)
        arena_folder_remove(arena);
    arena->folder[0] = '\0';
}

int64_t arena_stall_us(const struct arena *arena)
{
    return arena->plan->lease_us + STALL_US;
}

uint32_t arena_whole(const struct arena *arena)
{
    uint32_t workers = 0;

    for (uint32_t i = 0; i < arena->host_count; i++)
        if (arena->hosts[i].listed)
            workers += arena->hosts[i].slots;
    return workers;
}
