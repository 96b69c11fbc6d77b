/*
 * options.h: the command line of hvd-elastic as it runs a job: what can be said, read and checked.
 * docs/cli.md is the same for people.
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
#include "driver/core/config.h"
#include "driver/hosts/discover.h"

enum { OPTIONS_USAGE_EXIT = 2, OPTIONS_STORAGE_EXIT = 4 };

struct driver_options {
    uint64_t np, min_np, max_np; /* 0: not said */
    uint64_t reset_limit;        /* CORE_NO_RESET_LIMIT when not said */
    char *job;
    char *state_dir;
    char *resume;
    bool takeover;

    char *hosts;
    char *hostfile;
    char *discovery_script;
    char *discovery_watch;
    uint64_t slots_per_host;
    int64_t discovery_interval_us;
    int64_t discovery_timeout_us;

    int64_t elastic_timeout_us, start_timeout_us, agent_timeout_us, prepare_timeout_us;
    int64_t gather_us;
    int64_t beat_us;
    int64_t lease_us;
    int64_t driver_grace_us;
    int64_t kill_grace_us;
    bool stall_check;
    int64_t stall_warning_us;  /* TIME_NEVER: none */
    int64_t stall_shutdown_us; /* TIME_NEVER: none */

    struct opt_range cooldown;
    bool blacklist_forever;
    unsigned blacklist_scope; /* enum scope */
    int64_t blacklist_decay_us;
    uint64_t slot_restarts;
    int64_t slot_restarts_window_us;

    uint64_t ssh_port; /* 0: ssh's choice */
    char *ssh_identity_file;
    struct opt_list ssh_args; /* each may be several words */
    char *agent_path;
    uint64_t launch_parallel;
    char *network_interface;
    uint64_t port;           /* where agents dial; 0: any */
    struct opt_list env;     /* NAME or NAME=VALUE */
    bool gloo;               /* changes nothing */
    unsigned cpu_operations; /* of options_operations */
    bool fixed_order;
    uint64_t fusion_threshold_mb;
    unsigned gpu_operations; /* of options_gpu_operations */
    int64_t gpu_timeout_us;
    unsigned commit_to; /* of options_commit_to */

    char *output_dir;
    char *timeline;
    bool prefix_timestamp;
    char *log_level;
    bool verbose;
    bool log_with_timestamp, log_without_timestamp;

    char *config_file;
    bool print_config;
    bool list_options;
    bool check_build;
    bool help;
    bool version;

    /* What follows is not in the table. */
    struct opt_set set;
    char *const *command; /* what stands after the options, ends in NULL; borrowed from argv */
    bool log_timestamps;
    char default_hosts[32]; /* when no hosts are said: "localhost:4" */
};

/* 0 or HVD_E_NOMEM; it may be released then. It must not move. */
int options_init(struct driver_options *options) MUST_CHECK;
void options_release(struct driver_options *options);

/* argv[0] is the program. Reads the config file too, checks what can be checked without touching
 * the world, and sets the levels of the log (log.h). After --help and its like it checks nothing.
 * Once for each options_init. */
int options_read(struct driver_options *options, int argc, char *const *argv, char *const *envp,
                 struct hvd_err *err) MUST_CHECK;

/* Options that an earlier driver of the job has left in a text, as options_save makes it: they
 * count as a config file that stands below the one that was read. Checked again. */
int options_load(struct driver_options *options, const char *path, const char *text, size_t length,
                 struct hvd_err *err) MUST_CHECK;
int options_save(const struct driver_options *options, struct buf *out) MUST_CHECK;

/* --help, --version, --check-build, --list-options, --print-config: true when it was asked for, and
 * has been answered on standard output. */
bool options_answer(const struct driver_options *options, int *ret_status);

/* One line on standard error, and where help is. Returns OPTIONS_USAGE_EXIT. */
int options_complain(const struct hvd_err *err);

/* Borrows from options and job. What may be "never" is ten years, which adds up without care. */
int options_to_core(const struct driver_options *options, const char *job, uint64_t seed,
                    struct core_config *ret_config, struct hvd_err *err) MUST_CHECK;

/* Where hosts come from; without any word of it localhost with as many slots as -np. Borrows. */
void options_to_discover(const struct driver_options *options, struct discover_config *ret_config);

#endif
