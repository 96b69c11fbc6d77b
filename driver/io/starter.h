/*
 * starter.h: gets an agent running on a host. It finds out where the host is, listens at the
 * address that the agent is going to dial, and starts the agent (driver/launch/launch.h).
 *
 * The address that an agent dials has a second use: the agent and its workers tell other hosts
 * their own address on the same network interface. An agent that dials over the loopback can
 * therefore be reached from this machine only, which is right only if all hosts are this machine.
 * So before an agent is started on a host with a loopback name, another listed host is looked up
 * (the probe). If the probe finds another machine, the agent dials the address of this machine on
 * the route to that machine. If other machines are listed only later, they are not used, and the
 * failure says why.
 */
#ifndef DRIVER_IO_STARTER_H
#define DRIVER_IO_STARTER_H

#include "driver/core/core.h"
#include "driver/io/host_keys.h"
#include "driver/io/loop.h"
#include "driver/io/server.h"
#include "driver/journal/scribe.h"

struct starter;

/* The other parts of the event loop that a starter uses; borrowed while the starter lives. */
struct starter_parts {
    struct event_base *base;
    const struct loop_config *config;
    const struct core *core; /* core_view says which hosts are listed */
    const struct host_keys *keys;
    struct server *server;
    struct scribe *scribe; /* records a new port of the job */
};

/* Called with the EVENT_AGENT_FAILED of a host on which no agent could be started, from the event
 * loop or from inside starter_start. The callback may add the time to the event. */
typedef void starter_event_fn(void *arg, struct event *event);

int starter_create(const struct starter_parts *parts, starter_event_fn *happened, void *arg,
                   struct starter **ret_starter, struct hvd_err *err) MUST_CHECK;
/* Appends the settings of an agent, which the agent reads when it is started, to `out`. `driver`:
 * the address that the agent dials; NULL: `hvd-agent --join` adds it. `local`: the agent runs on
 * this machine. 0, HVD_E_NOMEM or HVD_E_LIMIT. */
int starter_settings(const struct starter *starter, const char *host, const uint8_t *key,
                     uint64_t epoch, const char *driver, bool local, struct buf *out) MUST_CHECK;
void starter_free(struct starter *starter);

/* Starts an agent on the host. If an agent of the job already runs there, that agent is told the
 * address to dial. */
void starter_start(struct starter *starter, const char *host);

/* Listens for hosts that join, unless the starter does so already. After a takeover the former
 * driver may still have the port: then 0 is returned, too, and a later call tries again. */
int starter_listen(struct starter *starter, struct hvd_err *err) MUST_CHECK;

/* After a takeover: listens at the addresses that the agents of the former driver dial. */
void starter_await_agents(struct starter *starter);
/* Called at each timer event. Some time after a takeover this function starts the agents of all
 * hosts whose agents have not connected to this driver. An agent that still runs is told the new
 * address by this start. */
void starter_tick(struct starter *starter);

#endif
