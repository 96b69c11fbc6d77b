/*
 * starter.c: starts the agent of a host in three steps: finds where the host is, listens at the
 * address that its agent will dial, and runs the agent's program. The event loop calls it for
 * ACTION_START_AGENT and after a takeover.
 *
 * Hosts on the loopback of this machine wait while it is not known whether the job has other
 * machines too: for that the starter looks up another host of the list (the probe, starter.h). So a
 * host is in at most one of two lists: `wanted` while its own address is looked up, `held` while it
 * waits for the answer of the probe.
 */
#include "driver/io/starter.h"

#include "base/limits.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/time.h"
#include "base/vec.h"
#include "driver/io/agent_input.h"
#include "driver/launch/reach.h"
#include "driver/launch/route.h"
#include "os/clock.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The time after a takeover in which agents connect again, because they dial the former driver's
 * address. The agents that have not connected then must be told the new address. */
#define TELL_AFTER_US (2 * TIME_S)

#define S3_SCHEME     "s3://"

#define LOOPBACK_ONLY                                                                         \
    "the driver's machine is in this job by its loopback, which other machines cannot dial; " \
    "list it by its address, or use --network-interface"

/* A host on the loopback that waits for the answer of the probe. */
struct held_host {
    char *host;
    /* The loopback address that the agent dials if no other machine is found. */
    char source[REACH_ADDRESS_MAX];
};

struct starter {
    struct starter_parts parts;
    starter_event_fn *happened;
    void *arg;
    struct reach *reach;
    struct launcher *launcher;
    struct VEC(char *) wanted; /* hosts whose address is looked up before their agent is started */
    struct VEC(struct held_host) held; /* loopback hosts that wait for the probe */
    char *probe; /* the host that is looked up now, while `held` waits; NULL: none */
    /* The address at which other machines reach this one; "": not known. */
    char outward[REACH_ADDRESS_MAX];
    uint16_t port;      /* the port at which the driver listens; 0: any free one */
    bool listens;       /* the driver listens for hosts that join */
    bool busy;          /* the log says that the port for hosts that join is in use */
    int64_t tell_at_us; /* when agents that have not connected yet are told the address */
};

/* No agent could be started on the host: tells the event loop why (EVENT_AGENT_FAILED). */
static void starter_on_failed(void *arg, const char *host, const char *why)
{
    struct starter *starter = arg;
    size_t length = strlen(host);

    if (strncmp(why, host, length) == 0 && strncmp(why + length, ": ", 2) == 0)
        why += length + 2; /* the core adds the host's name itself */
    starter->happened(starter->arg,
                      &(struct event){ .kind = EVENT_AGENT_FAILED, .host = host, .text = why });
}

/* Returns the index of the host in `wanted`, or wanted.count if the host is not in the list. */
static size_t find_wanted(const struct starter *starter, const char *host)
{
    size_t i = 0;

    while (i < starter->wanted.count && strcmp(starter->wanted.items[i], host) != 0)
        i++;
    return i;
}

/* true: the start of this host's agent waits for the answer of the probe. */
static bool is_held(const struct starter *starter, const char *host)
{
    size_t i = 0;

    while (i < starter->held.count && strcmp(starter->held.items[i].host, host) != 0)
        i++;
    return i < starter->held.count;
}

/* Calls `visit` for each host whose agent is in one of the states. `states` has the bit 1 << S for
 * each enum agent_state S. */
static void each_host(struct starter *starter, unsigned states,
                      void (*visit)(struct starter *starter, const char *host))
{
    struct core_view view;

    core_view_init(&view);
    if (!core_view(starter->parts.core, &view)) {
        for (size_t i = 0; i < view.host_count; i++)
            if (states & 1u << view.hosts[i].agent)
                visit(starter, view.hosts[i].name);
    }
    core_view_release(&view);
}

/* Writes the settings of an agent for its standard input. Variables for S3 are among them only if
 * the job has checkpoints in S3. */
int starter_settings(const struct starter *starter, const char *host, const uint8_t *key,
                     uint64_t epoch, const char *driver, bool local, struct buf *out)
{
    const struct loop_config *config = starter->parts.config;
    const char *dir = config->core->checkpoint_dir, *from = config->core->checkpoint_from.folder;
    const bool needs_s3 = (dir && !strncmp(dir, S3_SCHEME, strlen(S3_SCHEME))) ||
                          (from && !strncmp(from, S3_SCHEME, strlen(S3_SCHEME)));
    char log_file[LIMIT_PATH_BYTES];
    const struct agent_input input = {
        .core = config->core,
        .job_id = host_keys_job(starter->parts.keys),
        .key = key,
        .epoch = epoch,
        .host = host,
        .driver = driver,
        .stall_warning_us = config->stall_warning_us,
        .stall_shutdown_us = config->stall_shutdown_us,
        .preemption = config->preemption,
        /* A remote agent chooses the folder of its log on its own machine. */
        .log_file = local ? log_file : NULL,
        .log_level = config->agent_log_level,
        .storage_env = needs_s3 ? environ : NULL,
    };

    snprintf(log_file, sizeof(log_file), "%s/agents/%s.log", config->folder, host);
    return agent_input_write(&input, out);
}

/* Listens at `source`, the address of this machine that the agent of the host dials. If `start` is
 * true, starts that agent; otherwise the agent runs already, or is not needed. `local`: the host is
 * this machine itself. */
static void listen_and_launch(struct starter *starter, const char *host, bool local,
                              const char *source, bool start)
{
    struct job_write write = { .port = 0 };
    uint8_t key[TLS_KEY_BYTES];
    uint64_t epoch = 0;
    const char *address;
    struct hvd_err err;
    struct buf text;
    bool moved = false;
    int rc = server_listen(starter->parts.server, source, starter->port, &address, &moved, &err);

    if (!rc && start && host_keys_newest(starter->parts.keys, host, key, &epoch))
        rc = err_set(&err, HVD_E_STATE, "the host has left the job, and has no key");
    if (!rc && start) {
        buf_init(&text, LIMIT_CONFIG_TEXT_BYTES);
        rc = starter_settings(starter, host, key, epoch, address, local, &text);
        if (rc == HVD_E_LIMIT) /* only the AWS_ variables can be so long */
            rc = err_set(&err, rc,
                         "the settings of this host's agent are longer than %d bytes "
                         "(LIMIT_CONFIG_TEXT_BYTES); shorten the AWS_ variables of the driver",
                         LIMIT_CONFIG_TEXT_BYTES);
        else if (rc)
            rc = err_set(&err, rc,
                         "the driver has no memory for the settings of this host's agent; free "
                         "memory on the driver's machine");
        else
            rc = launch_start(starter->launcher, host, local, buf_text(&text), &err);
        explicit_bzero(key, sizeof(key));
        buf_release(&text); /* wipes the text, which holds the key */
    }
    /* without `start` no one waits for this agent: the failure is not reported */
    if (rc && start)
        starter_on_failed(starter, host, err.text);
    if (rc || !moved)
        return;
    /* The port was in use, and the server has moved to another one. The new port is recorded,
     * because the next driver must listen at it, too. */
    write.port = starter->port = (uint16_t)strtoul(strrchr(address, ':') + 1, NULL, 10);
    if (!scribe_put(starter->parts.scribe, &write))
        log_warning(STORE, "no memory to record the new port; the next driver chooses another one");
    each_host(starter, 1u << AGENT_STARTING | 1u << AGENT_THERE | 1u << AGENT_AWAY, starter_start);
}

/* Starts the agent of a loopback host. The agent dials the loopback only if no other machine must
 * reach it. */
static void launch_loopback_host(struct starter *starter, const char *host, const char *source)
{
    if (starter->outward[0])
        log_info(NET,
                 "%s: the agent of this host connects to the driver at %s, an address that other "
                 "machines can reach, too",
                 host, starter->outward);
    listen_and_launch(starter, host, true /* this machine */,
                      starter->outward[0] ? starter->outward : source, true /* start its agent */);
}

/* Begins the next probe: looks up the first host behind that of the last probe, in the order of the
 * core's list, that is listed and may be another machine. false: there is none, and `probe` is
 * NULL. `passed`: the loop has passed the host of the last probe. */
static bool send_probe(struct starter *starter)
{
    char *before = starter->probe;
    struct core_view view;
    bool passed = !before;

    starter->probe = NULL;
    core_view_init(&view);
    if (!core_view(starter->parts.core, &view)) {
        for (size_t i = 0; i < view.host_count && !starter->probe; i++) {
            const struct view_host *host = &view.hosts[i];

            if (passed && host->listed && !route_names_loopback(host->name))
                starter->probe = mem_strdup(host->name);
            passed = passed || !strcmp(host->name, before);
        }
    }
    core_view_release(&view);
    mem_free(before);
    if (starter->probe && reach_ask(starter->reach, starter->probe)) {
        mem_free(starter->probe);
        starter->probe = NULL;
    }
    return starter->probe;
}

/* Empties the list `held`, and ends the probe for which its hosts have waited. */
static void release_held(struct starter *starter)
{
    while (starter->held.count)
        mem_free(starter->held.items[--starter->held.count].host);
    mem_free(starter->probe);
    starter->probe = NULL;
}

/* True: some agent tells other hosts a loopback address as its own, which an agent on another
 * machine could not dial. The agent is connected (server_has_loopback_peer), is being started
 * (STARTING), or was connected and may come back (AWAY). A host in `held` or `wanted` does not
 * count: its agent was not started yet, and can still be given another address. */
static bool has_loopback_agent(struct starter *starter)
{
    bool found = server_has_loopback_peer(starter->parts.server);
    struct core_view view;

    core_view_init(&view);
    if (!core_view(starter->parts.core, &view)) {
        for (size_t i = 0; i < view.host_count && !found; i++) {
            const char *host = view.hosts[i].name;

            found = (view.hosts[i].agent == AGENT_STARTING || view.hosts[i].agent == AGENT_AWAY) &&
                    route_names_loopback(host) && !is_held(starter, host) &&
                    find_wanted(starter, host) == starter->wanted.count;
        }
    }
    core_view_release(&view);
    return found;
}

/* Handles the answer of reach.h to the question where a host is; `answer` is NULL after a failure.
 * `start`: the host's agent is to be started; otherwise the question was a probe, or only served to
 * listen for an agent that runs. answer->inside: only this machine can dial the address. */
static void starter_on_reached(void *arg, const char *host, const struct reach_answer *answer,
                               const char *why)
{
    struct starter *starter = arg;
    size_t wanted = find_wanted(starter, host);
    bool start = wanted < starter->wanted.count;
    bool was_probe = starter->probe && !strcmp(starter->probe, host);
    struct held_host *held;
    bool probing;

    if (start) {
        mem_free(starter->wanted.items[wanted]);
        starter->wanted.items[wanted] = starter->wanted.items[--starter->wanted.count];
    }
    if (!answer) {
        if (start)
            starter_on_failed(starter, host, why);
    } else if (answer->inside && !start) {
        listen_and_launch(starter, host, true /* this machine */, answer->source,
                          false /* its agent runs already, or need not run */);
    } else if (answer->inside) {
        /* The host is held until the probe is answered, unless there is no host to probe. */
        probing = !starter->outward[0] && (starter->probe || send_probe(starter)) &&
                  !VEC_RESERVE(&starter->held, 1, LIMIT_HOSTS);
        held = probing ? &starter->held.items[starter->held.count] : NULL;
        if (held && (held->host = mem_strdup(host))) {
            snprintf(held->source, sizeof(held->source), "%s", answer->source);
            starter->held.count++;
        } else {
            launch_loopback_host(starter, host, answer->source);
        }
    } else if (!starter->outward[0] && start && !answer->local && has_loopback_agent(starter)) {
        /* this host is another machine, whose workers could not reach those of the loopback agent
         */
        starter_on_failed(starter, host, LOOPBACK_ONLY);
    } else {
        /* The host is another machine, or it is this machine with an address that other machines
         * can dial. */
        if (!starter->outward[0] && (!answer->local || starter->probe))
            snprintf(starter->outward, sizeof(starter->outward), "%s", answer->source);
        listen_and_launch(starter, host, answer->local, answer->source, start);
    }
    /* If the probed host is not another machine, the next host is probed. After the last probe the
     * held loopback hosts are started. */
    if (!was_probe || (!starter->outward[0] && send_probe(starter)))
        return;
    mem_free(starter->probe);
    starter->probe = NULL;
    for (size_t i = 0; i < starter->held.count; i++)
        launch_loopback_host(starter, starter->held.items[i].host, starter->held.items[i].source);
    release_held(starter);
}

/* The program that starts an agent has succeeded. The core learns of the agent by its HELLO_AGENT.
 */
static void starter_on_started(void *arg, const char *host)
{
    (void)arg;
    log_debug(LAUNCH, "%s: an agent runs on this host", host);
}

/* Makes a starter. Its port is that of --port, or else the one at which an earlier driver of the
 * job listened. */
int starter_create(const struct starter_parts *parts, starter_event_fn *happened, void *arg,
                   struct starter **ret_starter, struct hvd_err *err)
{
    static const struct launch_ops ops = { starter_on_started, starter_on_failed };
    const struct loop_config *config = parts->config;
    struct starter *starter = mem_zalloc(sizeof(*starter));
    int rc;

    if (!starter)
        return err_set(err, HVD_E_NOMEM,
                       "no memory for the starts of agents; free memory on this host");
    starter->parts = *parts;
    starter->happened = happened;
    starter->arg = arg;
    starter->port = config->port ? config->port : config->facts->port;
    starter->tell_at_us = TIME_NEVER;
    rc = reach_create(parts->base, config->network_interfaces, starter_on_reached, starter,
                      &starter->reach, err);
    if (!rc)
        rc = launch_create(parts->base, config->launch, &ops, starter, &starter->launcher, err);
    if (rc)
        starter_free(starter);
    else
        *ret_starter = starter;
    return rc;
}

void starter_free(struct starter *starter)
{
    if (!starter)
        return;
    launch_free(starter->launcher);
    reach_free(starter->reach);
    while (starter->wanted.count)
        mem_free(starter->wanted.items[--starter->wanted.count]);
    VEC_RELEASE(&starter->wanted);
    release_held(starter);
    VEC_RELEASE(&starter->held);
    mem_free(starter);
}

/* Starts an agent on the host: asks where the host is, and starter_on_reached does the rest. A host
 * in `held` waits for the probe, and its start goes on by itself. */
void starter_start(struct starter *starter, const char *host)
{
    bool wanted = find_wanted(starter, host) < starter->wanted.count;
    char *copy = NULL;

    if (is_held(starter, host))
        return;
    if (!wanted) {
        copy = VEC_RESERVE(&starter->wanted, 1, LIMIT_HOSTS) ? NULL : mem_strdup(host);
        if (copy)
            starter->wanted.items[starter->wanted.count++] = copy;
    }
    if ((!wanted && !copy) || reach_ask(starter->reach, host))
        starter_on_failed(starter, host, "no memory to look up the address of this host");
}

/* After a takeover: looks the host up, so that this driver listens at the address that the host's
 * agent dials. Without memory the agent is told the address later (starter_tick). */
static void listen_for_agent(struct starter *starter, const char *host)
{
    if (reach_ask(starter->reach, host))
        log_warning(LAUNCH,
                    "%s: no memory to look up the address of this host; the agent learns the "
                    "driver's address later",
                    host);
}

/* After a takeover: looks up the hosts of agents that may dial the former driver's address, so that
 * this driver listens there, too. starter_tick later tells the rest the new address. */
void starter_await_agents(struct starter *starter)
{
    int64_t patience_us = starter->parts.config->core->lease_us / 4;

    if (starter->parts.config->core->join)
        return; /* agents of hosts that join are told by those hosts' own processes */
    each_host(starter, 1u << AGENT_AWAY, listen_for_agent);
    starter->tell_at_us =
        time_add(clock_now_us(), patience_us < TELL_AFTER_US ? patience_us : TELL_AFTER_US);
}

/* Called at each timer event: some time after a takeover, starts the agents of all hosts whose
 * agents have not connected. An agent that still runs is told the driver's address by that start.
 */
void starter_tick(struct starter *starter)
{
    if (clock_now_us() < starter->tell_at_us)
        return;
    starter->tell_at_us = TIME_NEVER;
    each_host(starter, 1u << AGENT_AWAY, starter_start);
}

/* Listens for hosts that join, at --port, which must be free (no other port is taken: the hosts
 * know only this one). After a takeover the earlier driver may still use the port: then 0 is
 * returned, and the next timer event tries again. */
int starter_listen(struct starter *starter, struct hvd_err *err)
{
    const struct loop_config *config = starter->parts.config;
    const char *address;
    int rc;

    if (starter->listens)
        return 0;
    server_take_tokens(starter->parts.server);
    rc = server_listen(starter->parts.server, config->listen, config->port, &address,
                       NULL /* no other port may be taken */, err);
    starter->listens = !rc;
    if (rc != HVD_E_BUSY || !config->resumed)
        return rc;
    if (!starter->busy)
        log_warning(
            NET, "%s; the earlier driver of the job may still use the port; the driver tries again",
            err->text);
    starter->busy = true;
    return 0;
}
