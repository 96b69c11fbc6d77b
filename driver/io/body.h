/*
 * body.h: the driver's loop: what happens outside becomes events of the core, and what the core
 * wants becomes deeds, in its order. Nothing in it waits: names are looked up, records written and
 * output printed by threads; scripts and starts of agents are children.
 */
#ifndef DRIVER_IO_BODY_H
#define DRIVER_IO_BODY_H

#include "driver/core/config.h"
#include "driver/hosts/discover.h"
#include "driver/hosts/launch.h"
#include "driver/io/job_env.h"
#include "driver/io/output.h"
#include "driver/journal/job_file.h"

/* All of it is borrowed as long as the body runs, the file is given. */
struct body_config {
    const struct core_config *core;
    const struct job_facts *facts;
    struct job_file *file;
    const char *folder; /* the job's */
    bool resumed;
    const struct discover_config *discover;
    const struct launch_config *launch;
    const struct output_config *output;
    const struct job_env *env;
    const char *network_interface; /* NULL: whatever reaches a host */
    uint16_t port;                 /* 0: that of the facts */
    int64_t stall_warning_us;      /* for workers */
    int64_t stall_shutdown_us;
    const char *agent_log_level; /* NULL: the agent's own default */
};

struct body_end {
    bool begun; /* agents may have been started */
    int code;   /* enum core_exit */
    int signal; /* that asked for the end; 0: none */
    char text[LIMIT_REASON_BYTES + 1];
};

/* 0 when the job has come to an end, or another driver has taken it over; otherwise this driver
 * cannot go on, and a successor can: the err says why. */
int body_run(const struct body_config *config, struct body_end *ret_end, struct hvd_err *err);

#endif
