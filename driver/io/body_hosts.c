#include "driver/io/body_inside.h"

#include "base/log.h"
#include "base/mem.h"
#include "driver/io/agent_input.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

/* Agents that dial a port which is no longer ours would not come back by themselves. */
static void tell_everybody(struct body *body)
{
    struct core_view view;

    core_view_init(&view);
    if (!core_view(body->core, &view)) {
        for (size_t i = 0; i < view.host_count; i++) {
            if (view.hosts[i].agent != AGENT_NONE)
                body_hosts_start(body, view.hosts[i].name);
        }
    }
    core_view_release(&view);
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

static void on_reached(void *arg, const char *host, const struct reach_answer *answer,
                       const char *why)
{
    struct body *body = arg;
    const char *address;
    struct hvd_err err;
    bool moved = false;
    int rc;

    if (!answer) {
        start_failed(body, host, why);
        return;
    }
    rc = server_listen(body->server, answer->source, body->port, &address, &moved, &err);
    if (!rc)
        rc = launch(body, host, answer->local, address, &err);
    if (rc)
        start_failed(body, host, err.text);
    else if (moved)
        on_moved(body, address);
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
}

void body_hosts_start(struct body *body, const char *host)
{
    if (reach_ask(body->reach, host))
        start_failed(body, host, "no memory to look it up");
}

/* Its agents still dial where our predecessor listened; told again, they do so at once. */
void body_hosts_open(struct body *body)
{
    tell_everybody(body);
}
