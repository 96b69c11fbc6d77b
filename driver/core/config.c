/*
 * config.c: the defaults of a job's settings, and the rules between settings. The driver fills a
 * config from its options. A core is made only from a config that core_config_finish has accepted.
 */
#include "driver/core/config.h"

#include "base/time.h"

#include <inttypes.h>

/* Sets the default of each setting. The numbers of workers (np, min_np, max_np) stay 0 until the
 * caller sets them. */
void core_config_init(struct core_config *config)
{
    *config = (struct core_config){
        .reset_limit = CORE_NO_RESET_LIMIT,
        .progress_restarts = 3,
        .progress_restarts_job = 10,
        .beat_us = 1 * TIME_S,
        .lease_us = 10 * TIME_S,
        .driver_grace_us = 10 * TIME_MIN,
        .discovery.pause_us = 1 * TIME_S,
        .elastic_timeout_us = 10 * TIME_MIN,
        .agent_start_us = 1 * TIME_MIN,
        .start_timeout_us = 10 * TIME_MIN,
        .gather_us = 3 * TIME_S,
        .prepare_us = 30 * TIME_S,
        .stall_warning_us = 1 * TIME_MIN,
        .stall_us = 30 * TIME_MIN,
        .kill_grace_us = 5 * TIME_S,
        .seed = 1,
    };
    policy_init(&config->blacklist);
}

/* Checks the durations. Returns 0, HVD_E_INVAL or HVD_E_LIMIT; the error names the option. */
static int config_check_times(const struct core_config *config, struct hvd_err *err)
{
    const struct {
        const char *name;
        int64_t us;
    } times[] = {
        {"--beat",                config->beat_us           },
        { "--lease",              config->lease_us          },
        { "--driver-grace",       config->driver_grace_us   },
        { "--discovery-interval", config->discovery.pause_us},
        { "--elastic-timeout",    config->elastic_timeout_us},
        { "--agent-timeout",      config->agent_start_us    },
        { "--start-timeout",      config->start_timeout_us  },
        { "--prepare-timeout",    config->prepare_us        },
        { "--stall-warning",      config->stall_warning_us  },
        { "--stall-shutdown",     config->stall_us          },
    };

    for (size_t i = 0; i < ARRAY_SIZE(times); i++)
        if (times[i].us <= 0)
            return err_set(err, HVD_E_INVAL, "%s: the time must be longer than 0", times[i].name);
    if (config->beat_us > LIMIT_DURATION_US || config->kill_grace_us > LIMIT_DURATION_US)
        return err_set(err, HVD_E_LIMIT,
                       "%s: the time must be at most ten years (LIMIT_DURATION_US)",
                       config->beat_us > LIMIT_DURATION_US ? "--beat" : "--kill-grace");
    if (config->gather_us < 0 || config->kill_grace_us < 0)
        return err_set(err, HVD_E_INVAL, "%s: the time must not be negative",
                       config->gather_us < 0 ? "--gather" : "--kill-grace");
    if (config->lease_us < 2 * config->beat_us)
        return err_set(err, HVD_E_INVAL,
                       "--lease: must be at least twice as long as --beat; otherwise one late "
                       "heartbeat counts as a death");
    return 0;
}

/* Fills in the numbers of workers that follow from other settings, and checks all settings. After a
 * failure `config` is unchanged, and the error names the option. */
int core_config_finish(struct core_config *config, struct hvd_err *err)
{
    struct core_config finished = *config;
    int rc;

    if (!config->job || !*config->job)
        return err_set(err, HVD_E_INVAL, "--job: the job has no name; give one");
    if (!finished.min_np)
        finished.min_np = finished.np;
    if (!finished.np)
        finished.np = finished.min_np;
    if (!finished.max_np)
        finished.max_np = finished.np;
    if (!finished.np)
        return err_set(
            err, HVD_E_INVAL,
            "-np: missing; say with -np or --min-np how many workers the job starts with, or list "
            "hosts with -H or --hostfile");
    if (finished.min_np > finished.np)
        return err_set(err, HVD_E_INVAL,
                       "--min-np: %" PRIu32 " is more than -np, %" PRIu32
                       "; lower --min-np, or raise -np",
                       finished.min_np, finished.np);
    if (finished.np > finished.max_np)
        return err_set(err, HVD_E_INVAL,
                       "-np: %" PRIu32 " is more than --max-np, %" PRIu32
                       "; lower -np, or raise --max-np",
                       finished.np, finished.max_np);
    if (finished.max_np > LIMIT_WORKERS)
        return err_set(err, HVD_E_LIMIT,
                       "--max-np: %" PRIu32 " is more than %d (LIMIT_WORKERS); lower --max-np",
                       finished.max_np, LIMIT_WORKERS);
    rc = config_check_times(&finished, err);
    if (!rc)
        rc = policy_check(&finished.blacklist, err);
    if (!rc)
        *config = finished;
    return rc;
}
