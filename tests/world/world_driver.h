/*
 * world_driver.h: a driver process, with a driver's core in it. Two drivers may run at once.
 */
#ifndef TESTS_WORLD_WORLD_DRIVER_H
#define TESTS_WORLD_WORLD_DRIVER_H

#include "base/trace.h"
#include "driver/core/core.h"
#include "tests/world/world_commands.h"
#include "tests/world/world_disk.h"
#include "tests/world/world_queue.h"

struct store_checkpoint;
struct world_claim;
struct world_told; /* world_check.h: the events that a driver's core has been told */

/* A key that a driver accepts, by its host and epoch. */
struct world_key {
    char host[COMMAND_HOST_MAX];
    uint64_t epoch;
};

struct world_driver {
    struct world_process process;
    struct world *world;
    uint32_t number; /* 1: the first driver of this job */
    uint64_t term;   /* 0: the driver has not begun a term */
    struct core *core;
    struct core *shadow;
    struct trace trace;
    struct trace *tracing; /* NULL: no trace */
    struct action_list actions;
    struct world_executor queue;
    /* the connections by peer number; NULL: the number is free */
    struct VEC(struct world_link *) peers;
    struct VEC(struct world_key) keys;
    struct world_told *told;
    /* the newest checkpoint that the driver was told; NULL: there is none */
    const struct store_checkpoint *checkpoint;
    struct world_claim *claim; /* its store in etcd; NULL: its store is a file */
    uint64_t steps;
    bool stepping;
    bool begun;            /* true: its first record, the term, is durable */
    unsigned last_actions; /* the driver dies after this many more actions; 0: it does not */
};

void driver_start(struct world *world);
/* A client has claimed and read the job in etcd: its driver begins. */
void driver_begin(struct world *world, struct world_claim *claim);
/* The driver exits with this code and text, which are durable. */
void driver_over(struct world *world, struct world_driver *driver, const char *text, int code);
void driver_step(struct world *world, struct world_driver *driver, struct event *event);
/* The driver dies. A successor of the newest driver starts after shape.restart. */
void driver_die(struct world *world, struct world_driver *driver, const char *why);
void driver_release(struct world_driver *driver);

/* Performs an action, whose earlier records are durable. The frame is borrowed. */
void driver_perform(struct world *world, struct world_driver *driver,
                    const struct world_queued *action);
uint32_t driver_accept(struct world_driver *driver, struct world_link *link);
/* True: an agent of the host gets past the handshake with the key of this epoch. */
bool driver_accepts(const struct world_driver *driver, const char *host, uint64_t epoch);
/* Returns the epoch of the newest key of the host; 0: it has none. */
uint64_t driver_newest_key(const struct world_driver *driver, const char *host);
bool driver_newest(const struct world_driver *driver);

#endif
