/*
 * replay_launch.c: starts the launcher that a replay measures, hvd-elastic or the user's command,
 * and ends it with all processes that it has started.
 */
#include "tests/chaos/replay.h"

#include "base/time.h"
#include "os/clock.h"
#include "os/process.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define ENV_MAX   1024
#define ENV_BYTES (ARENA_PATH + 32)
#define GRACE_US  (10 * TIME_S) /* from SIGTERM to SIGKILL, for another launcher */

/* Options of a user whose machines come and go all the time, beside those of every arena. The job
 * does not wait long for more workers, because more come soon. A host that is no longer listed and
 * has closed its connection gets two heartbeats of time. */
static const char *const options[] = { "-np", "1",      "--gather", "100ms", "--launch-parallel",
                                       "64",  "--beat", "50ms",     NULL };

struct environment {
    const char *list[ENV_MAX];
    char own[5][ENV_BYTES];
    size_t count, own_count;
};

static void put(struct environment *env, const char *name, const char *value)
{
    char *text = env->own[env->own_count++];

    snprintf(text, ENV_BYTES, "%s=%s", name, value);
    env->list[env->count++] = text;
}

int replay_launch(struct arena *arena, uint32_t max_np, struct hvd_err *err)
{
    if (arena->plan->command) {
        const char *const argv[] = { "/bin/sh", "-c", arena->plan->command, NULL };
        static struct environment env;
        struct process_spec spec = {
            .argv = argv, .envp = env.list, .in = -1, .cwd = arena->folder, .group = true
        };
        char path[ARENA_PATH];
        char number[16];
        int rc;

        env.count = env.own_count = 0;
        put(&env, "CHAOS_ARENA", arena->folder);
        put(&env, "HVD_CHAOS_STEPS", arena_path(arena, "steps", path));
        put(&env, "DISCOVERY", arena_path(arena, "discover", path));
        put(&env, "MIN_NP", "1");
        snprintf(number, sizeof(number), "%" PRIu32, max_np);
        put(&env, "MAX_NP", number);
        for (char **at = environ; *at && env.count < ENV_MAX - 1; at++)
            env.list[env.count++] = *at;
        env.list[env.count] = NULL;
        spec.out = open(arena_path(arena, "driver.log", path),
                        O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
        if (spec.out < 0)
            return err_set(err, HVD_E_IO, "%s: %s; check the disk", path, strerrordesc_np(errno));
        spec.err = spec.out;
        rc = process_spawn(&spec, &arena->driver, err);
        close(spec.out);
        return rc;
    }
    arena->options = options;
    return arena_start(arena, err);
}

/* Ends another launcher by SIGTERM, because it has no other interface. */
static int land_command(struct arena *arena, struct hvd_err *err)
{
    pid_t group = arena->driver;
    int rc;

    kill(-group, SIGTERM);
    rc = arena_await_driver(arena, clock_now_us() + GRACE_US, NULL);
    kill(-group, SIGKILL); /* kills what is left of its process group in any case */
    if (rc)
        rc = arena_await_driver(arena, clock_now_us() + GRACE_US, err);
    return rc;
}

static int land_ours(struct arena *arena, struct hvd_err *err)
{
    char path[ARENA_PATH];
    int fd = open(arena_path(arena, "stop", path), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    int status;
    int rc;

    if (fd < 0)
        return err_set(err, HVD_E_IO, "%s: %s; check the disk", path, strerrordesc_np(errno));
    close(fd);
    rc = arena_await_driver(arena, clock_now_us() + arena->plan->patience_us, err);
    if (rc == HVD_E_TIMEOUT)
        return err_set(err, rc,
                       "the job does not end: it hangs, or all that held its newest commit went "
                       "at once; see its driver.log");
    status = arena->driver_status;
    if (!rc && (!WIFEXITED(status) || WEXITSTATUS(status) != 0))
        rc = err_set(err, HVD_E_MISMATCH, "the job has ended with %s %d; see its driver.log",
                     WIFEXITED(status) ? "code" : "signal",
                     WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status));
    return rc;
}

int replay_land(struct arena *arena, struct hvd_err *err)
{
    return arena->plan->command ? land_command(arena, err) : land_ours(arena, err);
}
