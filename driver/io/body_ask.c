#include "base/limits.h"
#include "driver/io/body_inside.h"
#include "os/clock.h"

#include <signal.h>
#include <stdio.h>
#include <unistd.h>

static int on_view(void *arg, struct core_view *ret_view, struct table_facts *ret_facts)
{
    const struct body *body = arg;
    const struct core_config *core = body->config->core;

    *ret_facts = (struct table_facts){ .job = core->job,
                                       .state_dir = body->config->folder,
                                       .pid = (uint64_t)getpid(),
                                       .np = core->np,
                                       .min_np = core->min_np,
                                       .max_np = core->max_np,
                                       .now_us = clock_now_us(),
                                       .started_us = body->started_us };
    return core_view(body->core, ret_view);
}

/* Before the term is on disk the core takes no step; a driver at its end takes no more. */
static void on_act(void *arg, const struct event *event)
{
    struct body *body = arg;
    struct event asked = *event;

    if (event->kind == EVENT_STOP)
        body_stop(body, SIGTERM, event->text);
    else if (body->open && !body->last_words)
        body_step(body, &asked);
    else
        control_reply(body->control, event->ask, HVD_E_STATE,
                      body->open ? "the job has come to its end"
                                 : "the driver is just starting; ask again");
}

int body_ask_create(struct body *body)
{
    static const struct control_ops ops = { on_view, on_act };
    char path[LIMIT_PATH_BYTES];

    snprintf(path, sizeof(path), "%s/control", body->config->folder);
    return control_create(body->base, path, body->events, &ops, body, &body->control, body->err);
}

void body_ask_free(struct body *body)
{
    control_free(body->control);
    body->control = NULL;
}
