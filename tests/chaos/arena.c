#include "tests/chaos/arena.h"

#include "base/buf.h"
#include "base/mem.h"
#include "base/time.h"
#include "os/clock.h"
#include "os/process.h"
#include "tests/chaos/arena_folder.h"
#include "tests/chaos/networks.h"
#include "tests/chaos/sight.h"
#include "tests/chaos/slip.h"
#include "tests/chaos/weather.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef CHAOS_ELASTIC /* the build says where they are */
#define CHAOS_ELASTIC         "hvd-elastic"
#define CHAOS_APPRENTICE      "apprentice"
#define CHAOS_WEATHER_LIBRARY "libweather_preload.so"
#endif

#define WORDS_MAX    96
#define ENV_MAX      512
#define ENV_BYTES    (ARENA_PATH + 32)
#define ASK_US       (15 * TIME_S)
#define ANSWER_BYTES (4 * 1024 * 1024)
#define END_PASSES   200 /* of looking for what is left; each waits for what it has killed */
#define END_US       (10 * TIME_S)

/* ---- what the driver is given ------------------------------------------------------------------
 */

/* Limits that suit an attack: what is silent for a second is dead, and nobody is barred for it. */
static const char *const limits[] = {
    "--min-np",
    "1",
    "--discovery-interval",
    "100ms",
    "--discovery-timeout",
    "2s",
    "--beat",
    "100ms",
    "--lease",
    "1s",
    "--agent-timeout",
    "5s",
    "--start-timeout",
    "20s",
    "--driver-grace",
    "20s",
    "--stall-warning",
    "2s",
    "--stall-shutdown",
    "5s",
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
    char state[ARENA_PATH], discover[ARENA_PATH];
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

/* How agents get to hosts that are namespaces. */
static void say_networks(const struct networks *networks, struct words *words)
{
    const char *more[NETWORKS_WORDS];

    networks_words(networks, more);
    for (size_t i = 0; more[i]; i++)
        say(words, more[i]);
}

/* The first driver and all its successors are given the same: so a successor takes over. */
static void driver_words(const struct arena *arena, bool takes_over, struct words *words)
{
    words->count = 0;
    say(words, CHAOS_ELASTIC);
    if (takes_over)
        say(words, "--takeover");
    say(words, "--state-dir");
    say(words, arena_path(arena, "job", words->state));
    say(words, "--host-discovery-script");
    say(words, arena_path(arena, "discover", words->discover));
    for (size_t i = 0; i < ARRAY_SIZE(limits); i++)
        say(words, limits[i]);
    say_number(words, words->np, sizeof(words->np), "-np", arena->plan->hosts * arena->plan->slots);
    for (size_t i = 0; arena->options && arena->options[i]; i++)
        say(words, arena->options[i]);
    if (arena->networks)
        say_networks(arena->networks, words);
    say(words, "--");
    say(words, CHAOS_APPRENTICE);
    say_number(words, words->step_ms, sizeof(words->step_ms), "--step-ms", arena->plan->step_ms);
    say_number(words, words->state_kib, sizeof(words->state_kib), "--state-kib",
               arena->plan->state_kib);
    say(words, "--slip");
    say(words, slip_names[arena->plan->slip]);
}

struct environment {
    const char *list[ENV_MAX];
    size_t count;
    char own[8][ENV_BYTES];
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
    static const char *const kept[] = { "HVD_",  "HOROVOD_",    "XDG_",         "CHAOS_",
                                        "HOME=", "LD_PRELOAD=", "ASAN_OPTIONS=" };

    for (size_t i = 0; i < ARRAY_SIZE(kept); i++)
        if (!strncmp(variable, kept[i], strlen(kept[i])))
            return false;
    return true;
}

/* A sanitizer wants to be the first library that is loaded; the weather is. */
static void put_sanitizer(struct environment *env)
{
    const char *asan = getenv("ASAN_OPTIONS");
    char options[ENV_BYTES - 16];

    snprintf(options, sizeof(options), "%s%sverify_asan_link_order=0", asan ? asan : "",
             asan ? ":" : "");
    put(env, "ASAN_OPTIONS", options);
}

/* The mark first, where it is found soonest. */
static void environment_of(const struct arena *arena, struct environment *env)
{
    char path[ARENA_PATH];

    env->count = env->own_count = 0;
    put(env, "CHAOS_ARENA", arena->folder);
    put(env, "HVD_CHAOS_STEPS", arena_path(arena, "steps", path));
    put(env, "HVD_SAMPLE_LOG", arena_path(arena, "samples", path));
    put(env, "HOME", arena->folder);
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

static int start(struct arena *arena, bool takes_over, struct hvd_err *err)
{
    struct environment env;
    struct words words;
    char path[ARENA_PATH];
    struct process_spec spec = {
        .in = -1, .cwd = arena->folder, .group = true, .dies_with_us = SIGTERM
    };
    int log = open_log(arena, "driver.log", err);
    int rc;

    if (log < 0)
        return log;
    driver_words(arena, takes_over, &words);
    environment_of(arena, &env);
    put(&env, "CHAOS_WEATHER", arena_path(arena, "weather", path));
    put(&env, "LD_PRELOAD", CHAOS_WEATHER_LIBRARY);
    put_sanitizer(&env);
    spec.argv = words.list;
    spec.envp = env.list;
    spec.out = spec.err = log;
    rc = process_spawn(&spec, &arena->driver, err);
    close(log);
    return rc;
}

int arena_start(struct arena *arena, struct hvd_err *err)
{
    return start(arena, false, err);
}

int arena_take_over(struct arena *arena, struct hvd_err *err)
{
    return start(arena, true, err);
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

static bool await_end(pid_t pid, int64_t deadline_us)
{
    int fd = process_watch(pid);
    struct pollfd watch = { .fd = fd, .events = POLLIN };
    bool ended = fd < 0; /* it is gone */

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

/* ---- the arena ---------------------------------------------------------------------------------
 */

static void name_hosts(struct arena *arena)
{
    for (uint32_t i = 0; i < (uint32_t)arena->plan->hosts; i++) {
        struct arena_host *host = &arena->hosts[arena->host_count++];

        if (arena->plan->where == PLAN_NETWORKS)
            (void)networks_name(i + 1, host->name);
        else
            snprintf(host->name, sizeof(host->name), "127.0.0.%" PRIu32, i + 1);
        host->slots = (uint32_t)arena->plan->slots;
        host->listed = true;
    }
}

static int open_networks(struct arena *arena, struct hvd_err *err)
{
    arena->networks = mem_zalloc(sizeof(*arena->networks));
    return arena->networks ? networks_open(arena->networks, arena->folder, arena->host_count, err)
                           : err_set(err, HVD_E_NOMEM, "out of memory");
}

int arena_open(struct arena *arena, const struct chaos_plan *plan, const volatile bool *broken_off,
               struct hvd_err *err)
{
    char path[ARENA_PATH];
    int rc;

    *arena = (struct arena){ .plan = plan, .broken_off = broken_off };
    if (plan->hosts < 1 || plan->hosts > ARENA_HOSTS)
        return err_set(err, HVD_E_INVAL, "%" PRIu64 " hosts: there may be 1 to %d", plan->hosts,
                       ARENA_HOSTS);
    name_hosts(arena);
    rc = arena_folder_make(arena, err);
    if (!rc)
        rc = weather_open(arena_path(arena, "weather", path), &arena->weather, err);
    if (!rc && plan->where == PLAN_NETWORKS)
        rc = open_networks(arena, err);
    if (!rc)
        rc = arena_list(arena, err);
    return rc;
}

/* All that there is is told to end first, and only then waited for: so few have the time to start
 * others. */
static uint32_t end_all(const struct arena *arena, struct sight *sight)
{
    int64_t deadline_us = clock_now_us() + END_US;
    uint32_t ended = 0;

    sight_take(sight, arena);
    for (uint32_t i = 0; i < sight->count; i++)
        kill(sight->processes[i].pid, SIGKILL);
    for (uint32_t i = 0; i < sight->count; i++) {
        if (sight->processes[i].state != 'Z')
            ended++;
        (void)await_end(sight->processes[i].pid, deadline_us);
    }
    return ended;
}

void arena_close(struct arena *arena, bool keep)
{
    struct sight *sight = mem_zalloc(sizeof(*sight));
    int status;

    if (arena->driver) {
        kill(arena->driver, SIGKILL);
        while (waitpid(arena->driver, &status, 0) < 0 && errno == EINTR)
            continue;
        arena->driver = 0;
    }
    for (int i = 0; sight && arena->folder[0] && i < END_PASSES && end_all(arena, sight); i++)
        continue;
    mem_free(sight);
    if (arena->networks)
        networks_close(arena->networks);
    mem_free(arena->networks);
    arena->networks = NULL;
    weather_close(arena->weather);
    arena->weather = NULL;
    if (arena->folder[0] && !keep)
        arena_folder_remove(arena);
    arena->folder[0] = '\0';
}

uint32_t arena_whole(const struct arena *arena)
{
    uint32_t workers = 0;

    for (uint32_t i = 0; i < arena->host_count; i++)
        if (arena->hosts[i].listed)
            workers += arena->hosts[i].slots;
    return workers;
}
