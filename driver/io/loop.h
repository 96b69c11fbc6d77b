/*
 * loop.h: the driver's event loop. Everything that happens outside becomes an event of the core,
 * and the loop carries out the actions of the core in their order. The loop never waits: threads
 * look up names, write records and print output; scripts and starts of agents are child processes.
 */
#ifndef DRIVER_IO_LOOP_H
#define DRIVER_IO_LOOP_H

#include "base/buf.h"
#include "discovery/sources/discover.h"
#include "driver/core/config.h"
#include "driver/front/front.h"
#include "driver/io/job_env.h"
#include "driver/io/output.h"
#include "driver/launch/launch.h"
#include "driver/store/store.h"

struct address;
struct catalog;
struct event_hook_config;

/* The settings of the loop. All pointers are borrowed while the loop runs, except `store`, which
 * the loop closes. */
struct loop_config {
    const struct core_config *core;
    const struct job_facts *facts;
    struct store *store;
    const char *folder; /* the folder of the job */
    bool resumed;       /* this driver takes a job over that another driver has begun */
    /* The job is ended as soon as this driver has taken it over. stop_now: without a checkpoint. */
    bool stop, stop_now;
    const struct discover_config *discover;
    const struct launch_config *launch;
    const struct output_config *output;
    const struct job_env *env;
    struct catalog *catalog;                  /* NULL: the job has no checkpoints */
    const struct front_order *order;          /* the order of the driver's parent (driver/front) */
    const char *network_interfaces;           /* "eth0,eth1" or "^lo"; NULL: any interface */
    uint16_t port;                            /* --port; 0: the port of an earlier driver (facts) */
    const char *listen;                       /* address where hosts that join dial, with `port` */
    const struct address *metrics;            /* where --metrics are served; NULL: nowhere */
    const char *metrics_textfile;             /* the file of --metrics-textfile; NULL: none */
    const struct address *page;               /* where --page is served; NULL: nowhere */
    bool page_control;                        /* the page may also change the job */
    const struct event_hook_config *on_event; /* --on-event and --on-event-url */
    const char *token;                        /* "ID KEY": hosts may join with it; NULL: none */
    int64_t stall_warning_us; /* the agents pass both stall_ times on to their workers */
    int64_t stall_shutdown_us;
    const char *preemption; /* sources of notices of agents (proto/preemption.h); NULL: default */
    const char *agent_log_level; /* log level of agents; NULL: their own default */
};

struct farewell;

struct loop_end {
    bool begun; /* the driver may have started agents */
    int code;   /* why the job has ended: an enum core_exit */
    int signal; /* the signal that asked for the end; 0: no signal */
    char text[LIMIT_REASON_BYTES + 1];
    struct buf summary; /* what became of the job, line by line; the caller releases it */
    /* the agents that were not told of the end of the job; the caller frees it; NULL: none */
    struct farewell *farewell;
};

/* Runs the loop. Returns 0 when the job has ended, or when another driver has taken it over. Any
 * other result is an error code: this driver cannot go on, but the next driver of the job can; err
 * says why. */
int loop_run(const struct loop_config *config, struct loop_end *ret_end, struct hvd_err *err);

#endif
