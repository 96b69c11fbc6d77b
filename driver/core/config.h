/*
 * config.h: the settings of a job, as the core needs them.
 */
#ifndef DRIVER_CORE_CONFIG_H
#define DRIVER_CORE_CONFIG_H

#include "base/limits.h"
#include "blacklist/policy.h"

#define CORE_NO_RESET_LIMIT    UINT32_MAX
#define CORE_NO_PROGRESS_LIMIT UINT32_MAX

/* Which hosts the job has: those of discovery; those that have joined (`hvd-agent --join`); or
 * those of discovery that have joined. */
enum core_join { JOIN_NO, JOIN_ALONE, JOIN_LISTED };

struct core_config {
    const char *job;     /* the name of the job; borrowed while the core lives */
    const char *journal; /* a file or a URL, for the log; borrowed; NULL: not known */
    uint32_t np;         /* the first round begins with at least this many workers */
    uint32_t min_np;     /* no later round has fewer members */
    uint32_t max_np;     /* no round has more members */
    /* the most rounds after the first one; one more round would fail the job */
    uint32_t reset_limit;
    /* The most failures between which there is no newer commit: of one slot (progress_restarts),
     * and of the whole job (progress_restarts_job). One more failure fails the job. */
    uint32_t progress_restarts;
    uint32_t progress_restarts_job;
    struct policy blacklist;

    int64_t beat_us;         /* the heartbeat interval of the driver and the agents */
    int64_t lease_us;        /* an agent with a longer silence counts as dead */
    int64_t driver_grace_us; /* how long workers train on without a driver */
    enum core_join join;
    bool join_token; /* --token-file: the job gets a token as soon as the driver listens */
    struct {
        int64_t pause_us; /* the time from the end of one discovery to the next */
        /* True: if the first discovery of a new job fails, the driver tries again as long as the
         * job waits for its hosts. False: the job fails. */
        bool retry_first;
    } discovery;
    int64_t elastic_timeout_us; /* how long the job may have too few workers before it fails */
    int64_t agent_start_us;     /* the longest time from the start of an agent to its hello */
    int64_t start_timeout_us;   /* the longest time from the launch of a worker to its READY */
    /* How long READY workers wait, before a round begins, for workers that are still starting. */
    int64_t gather_us;
    int64_t prepare_us; /* the longest time for making the connections of the next round */
    /* a worker's wait of this length is logged, with the workers for which it waits */
    int64_t stall_warning_us;
    int64_t stall_us;      /* a worker that others wait for is ended after a wait of this length */
    int64_t kill_grace_us; /* the time between SIGTERM and SIGKILL */
    /* Where checkpoints are written, a directory or "s3://..."; borrowed; NULL: nowhere. */
    const char *checkpoint_dir;
    /* The interval between two checkpoints: a time, or a number of commits. The other field is 0.
     * Both are 0 only if `checkpoint_dir` is NULL. */
    int64_t checkpoint_us;
    uint32_t checkpoint_commits;
    /* The checkpoint from which the job may begin. */
    struct {
        const char *folder; /* borrowed; NULL: there is none */
        uint64_t commit;
    } checkpoint_from;
    /* It is not known yet which checkpoint is the newest, or whether there is one. An
     * EVENT_CHECKPOINT says it later, and makes this field false. Only for a job that had a round.
     */
    bool checkpoint_awaited;
    /* The rounds of this job get numbers higher than this one, because checkpoints of an earlier
     * job, named by their rounds, may lie in the same directory. */
    uint64_t checkpoint_round;
    uint64_t seed; /* the seed of the random jitter of cooldowns */
};

/* Sets the defaults. The caller sets `job` and `np`. A `min_np` or `max_np` of 0 means the value of
 * `np`; a `max_np` of LIMIT_WORKERS means no limit. */
void core_config_init(struct core_config *config);

/* Fills in the settings that follow from other settings, and checks all of them. Returns 0,
 * HVD_E_INVAL or HVD_E_LIMIT; the error names the option. */
int core_config_finish(struct core_config *config, struct hvd_err *err);

#endif
