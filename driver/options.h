/*
 * options.h: the options of hvd-elastic as the driver of a job: read, checked, handed on.
 * docs/cli.md describes them for the operator.
 *
 *     rc = options_init(&options);
 *     rc = options_read(&options, argc, argv, environ, &err);    on failure options_complain(&err)
 *     if (options_answer(&options, &status)) ...                 --help and its like
 *     rc = options_to_core(&options, job, seed, &config, &err);
 */
#ifndef DRIVER_OPTIONS_H
#define DRIVER_OPTIONS_H

#include "base/buf.h"
#include "base/opt.h"
#include "discovery/sources/discover.h"
#include "driver/control/event_filter.h"
#include "driver/core/config.h"
#include "driver/option_words.h"
#include "driver/store/etcd_store.h"

enum { OPTIONS_USAGE_EXIT = 2, OPTIONS_STORAGE_EXIT = 4 };

struct driver_options {
    uint64_t np, min_np, max_np; /* 0: not given; max_np UINT64_MAX: no limit */
    uint64_t reset_limit;        /* CORE_NO_RESET_LIMIT: no limit */
    uint64_t progress_restarts,
        progress_restarts_job; /* UINT64_MAX: no limit; progress_restarts_job 0: not given */
    char *job, *state_dir, *resume, *preemption;
    bool takeover, restart, detach, store_insecure;
    char *standby, *store, *store_ca, *store_cert, *store_key, *store_user, *store_password_file;
    int64_t store_lease_us;

    char *hosts_from[DISCOVER_KINDS]; /* the option of each kind of source; at most one is given */
    uint64_t slots_per_host;
    int64_t discovery_interval_us, discovery_timeout_us;
    bool discovery_retry_first;
    unsigned discovery; /* an index in options_discovery */
    char *token_file, *listen, *metrics, *metrics_textfile, *page, *on_event, *on_event_filter;
    bool page_control;

    int64_t elastic_timeout_us, start_timeout_us, agent_timeout_us, prepare_timeout_us;
    int64_t gather_us, beat_us, lease_us, driver_grace_us, kill_grace_us;
    unsigned stop; /* one of OPTIONS_STOP_... */
    bool stall_check;
    int64_t stall_warning_us;  /* TIME_NEVER: no warnings */
    int64_t stall_shutdown_us; /* TIME_NEVER: no worker is ended */

    /* NULL: not given. checkpoint_interval is a time, or a number of commits: "100c". */
    char *checkpoint_dir, *checkpoint_command, *checkpoint_interval, *from_checkpoint;
    uint64_t checkpoint_keep;

    struct opt_range cooldown;
    bool blacklist_forever;
    unsigned blacklist_scope; /* an enum scope */
    int64_t blacklist_decay_us;
    uint64_t slot_restarts;
    int64_t slot_restarts_window_us;

    uint64_t ssh_port; /* 0: the port that ssh is configured with */
    char *ssh_identity_file;
    struct opt_list ssh_args;    /* each item may have several words */
    char *launcher, *agent_path; /* launcher: "ssh", or the words of another command */
    uint64_t launch_parallel;
    unsigned ssh_host_keys;             /* an index into options_host_keys */
    struct opt_list network_interfaces; /* the items; `interfaces` has them as one text */
    uint64_t port;                      /* the port that agents dial; 0: any free port */
    struct opt_list env, env_secret;    /* each text is NAME; `env` also allows NAME=VALUE */
    struct opt_list exports;            /* like `env`, but a variable need not exist */
    bool gloo, allow_run_as_root;       /* accepted for compatibility; have no effect */
    char *bind_to, *map_by;             /* words of mpirun, which horovod_mpirun reads */
    struct opt_list mca;
    unsigned cpu_operations; /* an index into options_operations */
    unsigned data_security;  /* an index into options_data_security */
    bool fixed_order, torch_env;
    uint64_t fusion_threshold_mb;
    char *thread_affinity;   /* "3" or "0,8"; NULL: not given */
    unsigned gpu_operations; /* an index into options_gpu_operations */
    int64_t gpu_timeout_us, on_event_timeout_us;
    struct event_filter event_filter;      /* on_event_filter, parsed */
    unsigned commit_to, log_time, colours; /* indices in options_commit_to and so on */

    char *autotune_log_file;
    char *output_dir, *on_event_url, *on_event_url_header_file, *on_event_url_ca;
    uint64_t output_limit;
    char *timeline;
    bool disable_nvtx_ranges;
    bool prefix_timestamp;
    char *log_level;
    bool verbose;
    bool log_with_timestamp, log_without_timestamp;

    char *config_file;
    bool print_config, list_options, check_build, help, version;

    /* The fields below have no row in option_table.c. */
    struct opt_set set;
    /* The words after the options, borrowed from argv; the last one is NULL. */
    char *const *command;
    bool log_timestamps;
    struct buf interfaces; /* "eth0,eth1" or "^lo"; empty: any interface */
    /* The names of variables and of keys in the config file that have no effect. */
    struct buf unused_variables, unused_keys;
    struct buf host_notes;  /* a line for the log for each source of hosts that is not used */
    char default_hosts[32]; /* "localhost:4": the hosts if no option names any */
};

/* Returns 0 or HVD_E_NOMEM; after both options_release may be called. The struct must not move. */
int options_init(struct driver_options *options) MUST_CHECK;
void options_release(struct driver_options *options);

/* Reads the command line (argv[0] is the program), the environment and the config file, checks all
 * values against each other, and sets the levels of the log (log.h). After --help and similar
 * options nothing is checked. The function may be called once after each options_init. */
int options_read(struct driver_options *options, int argc, char *const *argv, char *const *envp,
                 struct hvd_err *err) MUST_CHECK;

/* Adds the options of a former driver of the job; `text` comes from options_save. Values that were
 * given before this call count more than those in `text`. All options are checked again. */
int options_load(struct driver_options *options, const char *path, const char *text, size_t length,
                 struct hvd_err *err) MUST_CHECK;
int options_save(const struct driver_options *options, struct buf *out) MUST_CHECK;

/* Answers --help, --version, --check-build, --list-options and --print-config on standard output.
 * True: one of these options was given, and the program ends with *ret_status. */
bool options_answer(const struct driver_options *options, int *ret_status);

/* Prints the error, and that --help helps. Returns OPTIONS_USAGE_EXIT. */
int options_complain(const struct hvd_err *err);

/* Makes the core's settings. The config borrows from options and job. A time of "never" becomes ten
 * years, so that sums do not overflow. */
int options_to_core(const struct driver_options *options, const char *job, uint64_t seed,
                    struct core_config *ret_config, struct hvd_err *err) MUST_CHECK;

/* Makes the settings of the store in etcd, borrowed from options; false: --store is not given. */
bool options_to_store(const struct driver_options *options, struct etcd_store_config *ret_config);

/* Makes the settings of the discovery source. Without an option for hosts the source is localhost
 * with as many slots as -np. The config borrows from options. */
void options_to_discover(const struct driver_options *options, struct discover_config *ret_config);

extern const struct opt driver_option_table[];
extern const size_t driver_option_count;

#endif
