#include "driver/core/config.h"

#include "base/time.h"

#include <inttypes.h>

void core_config_init(struct core_config *config)
{
    *config = (struct core_config){
        .reset_limit = CORE_NO_RESET_LIMIT,
        .beat_us = 1 * TIME_S,
        .lease_us = 10 * TIME_S,
        .driver_grace_us = 10 * TIME_MIN,
        .discovery_us = 1 * TIME_S,
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

static int check_counts(struct core_config *config, struct hvd_err *err)
{
    if (!config->min_np)
        config->min_np = config->np;
    if (!config->np)
        config->np = config->min_np;
    if (!config->max_np)
        config->max_np = LIMIT_WORKERS;
    if (!config->np)
        return err_set(err, HVD_E_INVAL,
                       "-np: how many workers the job starts with is not said; "
                       "give -np or --min-np");
    if (config->min_np > config->np)
        return err_set(err, HVD_E_INVAL,
                       "--min-np: %" PRIu32 " is more than -np, %" PRIu32
                       "; the first round must be one that is allowed",
                       config->min_np, config->np);
    if (config->np > config->max_np)
        return err_set(err, HVD_E_INVAL, "-np: %" PRIu32 " is more than --max-np, %" PRIu32,
                       config->np, config->max_np);
    if (config->max_np > LIMIT_WORKERS)
        return err_set(err, HVD_E_LIMIT, "--max-np: %" PRIu32 " is more than LIMIT_WORKERS, %d",
                       config->max_np, LIMIT_WORKERS);
    return 0;
}

static int check_times(const struct core_config *config, struct hvd_err *err)
{
    const struct {
        const char *name;
        int64_t us;
    } times[] = {
        {"--beat",                config->beat_us           },
        { "--lease",              config->lease_us          },
        { "--driver-grace",       config->driver_grace_us   },
        { "--discovery-interval", config->discovery_us      },
        { "--elastic-timeout",    config->elastic_timeout_us},
        { "--agent-timeout",      config->agent_start_us    },
        { "--start-timeout",      config->start_timeout_us  },
        { "--prepare-timeout",    config->prepare_us        },
        { "--stall-warning",      config->stall_warning_us  },
        { "--stall-shutdown",     config->stall_us          },
    };

    for (size_t i = 0; i < ARRAY_SIZE(times); i++)
        if (times[i].us <= 0)
            return err_set(err, HVD_E_INVAL, "%s: it must be longer than nothing", times[i].name);
    if (config->beat_us > LIMIT_DURATION_US || config->kill_grace_us > LIMIT_DURATION_US)
        return err_set(err, HVD_E_LIMIT,
                       "--beat, --kill-grace: longer than LIMIT_DURATION_US, ten years");
    if (config->gather_us < 0 || config->kill_grace_us < 0)
        return err_set(err, HVD_E_INVAL, "--gather, --kill-grace: a time cannot be negative");
    if (config->lease_us < 2 * config->beat_us)
        return err_set(err, HVD_E_INVAL,
                       "--lease: it must be at least twice as long as --beat, or one late beat "
                       "is taken for a death");
    return 0;
}

int core_config_finish(struct core_config *config, struct hvd_err *err)
{
    struct core_config finished = *config;
    int rc;

    if (!config->job || !*config->job)
        return err_set(err, HVD_E_INVAL, "the job has no name");
    rc = check_counts(&finished, err);
    if (!rc)
        rc = check_times(&finished, err);
    if (!rc)
        rc = policy_check(&finished.blacklist, err);
    if (!rc)
        *config = finished;
    return rc;
}
