#include "driver/io/body_inside.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/time.h"
#include "driver/hosts/route.h"
#include "driver/io/agent_input.h"
#include "os/clock.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* An agent that dials our predecessor's address has come back by then, or has to learn ours. */
#define TELL_AFTER_US (2 * TIME_S)

#define INSIDE_ONLY                                                                           \
    "the driver's machine is in this job by its loopback, which other machines cannot dial; " \
    "list it by its address, or use --network-interface"

static void start_failed(struct body *body, const char *host, const char *why)
{
    struct event event = { .kind = EVENT_AGENT_FAILED, .host = host, .text = why };

    if (strncmp(why, host, strlen(host)) == 0 && strncmp(why + strlen(host), ": ", 2) == 0)
        event.text = why + strlen(host) + 2; /* the core names the host itself */
    body_step(body, &event);
}

/* Where a local agent says what only it knows; "" when that has no place. */
static const char *log_path(const struct body *body, const char *host, bool local,
                            char path[LIMIT_PATH_BYTES])
{
    if (!local)
        return NULL;
    snprintf(path, LIMIT_PATH_BYTES, "%s/agents/%s.log", body->config->folder, host);
    return path;
}

static int launch(struct body *body, const char *host, bool local, const char *address,
                  struct hvd_err *err)
{
    char path[LIMIT_PATH_BYTES];
    const struct agent_input input = {
        .core = body->config->core,
        .key = body->config->facts->key,
        .host = host,
        .driver = address,
        .stall_warning_us = body->config->stall_warning_us,
        .stall_shutdown_us = body->config->stall_shutdown_us,
        .log_file = log_path(body, host, local, path),
        .log_level = body->config->agent_log_level,
    };
    struct buf text;
    int rc;

    buf_init(&text, LIMIT_CONFIG_TEXT_BYTES);
    rc = agent_input_write(&input, &text);
    if (rc)
        rc = err_set(err, rc, "no memory for what it must know");
    else
        rc = launch_start(body->launcher, host, local, buf_text(&text), err);
    if (text.data)
        explicit_bzero(text.data, text.length);
    buf_release(&text);
    return rc;
}

/* ---- whom to start -------------------------------------------------------------------------- */

/* Where it stands among those that are to be started once they are found; count: it does not. */
static size_t find_wanted(const struct body *body, const char *host)
{
    size_t i = 0;

    while (i < body->wanted.count && strcmp(body->wanted.items[i], host) != 0)
        i++;
    return i;
}

static bool add_wanted(struct body *body, const char *host)
{
    char *copy;

    if (find_wanted(body, host) < body->wanted.count)
        return true;
    copy = VEC_RESERVE(&body->wanted, 1, LIMIT_HOSTS) ? NULL : mem_strdup(host);
    if (copy)
        body->wanted.items[body->wanted.count++] = copy;
    return copy != NULL;
}

/* True: it was among them, and is no more. */
static bool take_wanted(struct body *body, const char *host)
{
    size_t i = find_wanted(body, host);

    if (i == body->wanted.count)
        return false;
    mem_free(body->wanted.items[i]);
    body->wanted.items[i] = body->wanted.items[--body->wanted.count];
    return true;
}

/* Calls for each host that has an agent in one of the states. */
static void each_host(struct body *body, unsigned states,
                      void (*visit)(struct body *body, const char *host))
{
    struct core_view view;

    core_view_init(&view);
    if (!core_view(body->core, &view)) {
        for (size_t i = 0; i < view.host_count; i++) {
            if (states & 1u << view.hosts[i].agent)
                visit(body, view.hosts[i].name);
        }
    }
    core_view_release(&view);
}

/* ---- what becomes of it --------------------------------------------------------------------- */

/* Agents that dial a port which is no longer ours would not come back by themselves. */
static void tell_everybody(struct body *body)
{
    each_host(body, 1u << AGENT_STARTING | 1u << AGENT_THERE | 1u << AGENT_AWAY, body_hosts_start);
}

static void on_moved(struct body *body, const char *address)
{
    const struct job_write write = { .port =
                                         (uint16_t)strtoul(strrchr(address, ':') + 1, NULL, 10) };

    body->port = write.port;
    if (!scribe_put(body->scribe, &write))
        log_warning(STORE, "the new port could not be written down: a successor will find it out");
    tell_everybody(body);
}

/* Listens where its agent is to dial, and starts it if that is wanted. */
static void arrange(struct body *body, const char *host, bool local, const char *source, bool start)
{
    const char *address;
    struct hvd_err err;
    bool moved = false;
    int rc = server_listen(body->server, source, body->port, &address, &moved, &err);

    if (!rc && start)
        rc = launch(body, host, local, address, &err);
    if (rc && start)
        start_failed(body, host, err.text);
    else if (!rc && moved)
        on_moved(body, address);
}

/* ---- this machine, by its loopback, beside others -------------------------------------------- */

/*
 * An agent says of itself, and of its workers, the address from which it dials us: one that dials
 * by the loopback is found by nobody on another machine. That is right as long as all hosts are
 * this machine. So before a loopback host is started, one of the other hosts that are listed is
 * looked up (the scout), and the address on the way to that one is dialled instead. If other
 * machines are listed only later, they are not used.
 */
struct reached {
    char *host;
    char source[REACH_ADDRESS_MAX];
};

static void free_reached(struct reached *reached)
{
    mem_free(reached->host);
    mem_free(reached);
}

/* The next one that may be another machine. False: there is none. */
static bool send_scout(struct body *body)
{
    char *before = body->scout;
    struct core_view view;
    bool passed = !before;

    body->scout = NULL;
    core_view_init(&view);
    if (!core_view(body->core, &view)) {
        for (size_t i = 0; i < view.host_count && !body->scout; i++) {
            const struct view_host *host = &view.hosts[i];

            if (passed && host->listed && !route_names_loopback(host->name))
                body->scout = mem_strdup(host->name);
            passed = passed || !strcmp(host->name, before);
        }
    }
    core_view_release(&view);
    mem_free(before);
    if (body->scout && reach_ask(body->reach, body->scout)) {
        mem_free(body->scout);
        body->scout = NULL;
    }
    return body->scout;
}

/* True: it is started when the scout has been answered. */
static bool hold(struct body *body, const char *host, const char *source)
{
    struct reached *reached;

    if (body->outward[0] || (!body->scout && !send_scout(body)))
        return false;
    reached = VEC_RESERVE(&body->held, 1, LIMIT_HOSTS) ? NULL : mem_zalloc(sizeof(*reached));
    if (reached)
        reached->host = mem_strdup(host);
    if (!reached || !reached->host) {
        mem_free(reached);
        return false;
    }
    snprintf(reached->source, sizeof(reached->source), "%s", source);
    body->held.items[body->held.count++] = reached;
    return true;
}

static const char *inside_or_outward(struct body *body, const char *host, const char *source)
{
    if (!body->outward[0])
        return source;
    log_info(NET, "%s: dials %s, where other machines reach it too", host, body->outward);
    return body->outward;
}

/* If it was no other machine, the next one is asked. */
static void scout_is_back(struct body *body)
{
    if (!body->outward[0] && send_scout(body))
        return;
    mem_free(body->scout);
    body->scout = NULL;
    for (size_t i = 0; i < body->held.count; i++) {
        struct reached *reached = body->held.items[i];

        arrange(body, reached->host, true, inside_or_outward(body, reached->host, reached->source),
                true);
    }
    while (body->held.count)
        free_reached(body->held.items[--body->held.count]);
}

static void free_held(struct body *body)
{
    while (body->held.count)
        free_reached(body->held.items[--body->held.count]);
    VEC_RELEASE(&body->held);
    mem_free(body->scout);
    body->scout = NULL;
}

static bool is_held(const struct body *body, const char *host)
{
    size_t i = 0;

    while (i < body->held.count && strcmp(body->held.items[i]->host, host) != 0)
        i++;
    return i < body->held.count;
}

static bool is_to_be_started(const struct body *body, const char *host)
{
    return is_held(body, host) || find_wanted(body, host) < body->wanted.count;
}

/* Agents are there, or on their way, that say of themselves what only this machine can use. */
static bool has_inside(struct body *body)
{
    bool found = server_has_inside(body->server);
    struct core_view view;

    core_view_init(&view);
    if (!core_view(body->core, &view)) {
        for (size_t i = 0; i < view.host_count && !found; i++)
            found = (view.hosts[i].agent == AGENT_STARTING || view.hosts[i].agent == AGENT_AWAY) &&
                    route_names_loopback(view.hosts[i].name) &&
                    !is_to_be_started(body, view.hosts[i].name);
    }
    core_view_release(&view);
    return found;
}

/* Another machine, or this one by an address that others know. False: it cannot be used. */
static bool go_outward(struct body *body, const char *host, const struct reach_answer *answer,
                       bool start)
{
    if (!body->outward[0] && start && !answer->local && has_inside(body)) {
        start_failed(body, host, INSIDE_ONLY);
        return false;
    }
    if (!body->outward[0] && (!answer->local || body->scout))
        snprintf(body->outward, sizeof(body->outward), "%s", answer->source);
    return true;
}

static void on_reached(void *arg, const char *host, const struct reach_answer *answer,
                       const char *why)
{
    struct body *body = arg;
    bool start = take_wanted(body, host);
    bool was_scout = body->scout && !strcmp(body->scout, host);

    if (!answer && start)
        start_failed(body, host, why);
    else if (answer && !answer->inside && go_outward(body, host, answer, start))
        arrange(body, host, answer->local, answer->source, start);
    else if (answer && answer->inside && !(start && hold(body, host, answer->source)))
        arrange(body, host, true,
                start ? inside_or_outward(body, host, answer->source) : answer->source, start);
    if (was_scout)
        scout_is_back(body);
}

static void on_started(void *arg, const char *host)
{
    (void)arg;
    log_debug(LAUNCH, "%s: an agent runs there", host);
}

static void on_failed(void *arg, const char *host, const char *why)
{
    start_failed(arg, host, why);
}

int body_hosts_create(struct body *body)
{
    static const struct launch_ops ops = { on_started, on_failed };
    int rc = reach_create(body->base, body->config->network_interface, on_reached, body,
                          &body->reach, body->err);

    return rc ? rc
              : launch_create(body->base, body->config->launch, &ops, body, &body->launcher,
                              body->err);
}

void body_hosts_free(struct body *body)
{
    launch_free(body->launcher);
    reach_free(body->reach);
    while (body->wanted.count)
        mem_free(body->wanted.items[--body->wanted.count]);
    VEC_RELEASE(&body->wanted);
    free_held(body);
}

void body_hosts_start(struct body *body, const char *host)
{
    if (is_held(body, host))
        return;
    if (!add_wanted(body, host) || reach_ask(body->reach, host))
        start_failed(body, host, "no memory to look it up");
}

/* Its agent dials where our predecessor listened. */
static void listen_for(struct body *body, const char *host)
{
    if (reach_ask(body->reach, host))
        log_warning(LAUNCH, "%s: no memory to look it up; its agent is told later", host);
}

void body_hosts_open(struct body *body)
{
    int64_t patience_us = body->config->core->lease_us / 4;

    each_host(body, 1u << AGENT_AWAY, listen_for);
    body->tell_at_us =
        time_add(clock_now_us(), patience_us < TELL_AFTER_US ? patience_us : TELL_AFTER_US);
}

void body_hosts_look(struct body *body)
{
    if (clock_now_us() < body->tell_at_us)
        return;
    body->tell_at_us = TIME_NEVER;
    each_host(body, 1u << AGENT_AWAY, body_hosts_start);
}
