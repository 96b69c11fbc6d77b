#include "driver/io/body_inside.h"

#include "base/limits.h"
#include "os/clock.h"

#include <signal.h>
#include <stdio.h>
#include <unistd.h>

static int show(void *arg, struct core_view *ret_view, struct table_facts *ret_facts)
{
    struct body *body = arg;
    const struct core_config *core = body->config->core;
    int rc = core_view(body->core, ret_view);

    *ret_facts = (struct table_facts){
        .job = core->job,
        .state_dir = body->config->folder,
        .pid = (uint64_t)getpid(),
        .np = core->np,
        .min_np = core->min_np,
        .max_np = core->max_np,
        .now_us = clock_now_us(),
        .started_us = body->started_us,
    };
    return rc;
}

/* Before the term is on disk the core takes no step, and after its last word no more. */
static void act(void *arg, const struct event *event)
{
    struct body *body = arg;
    struct event mine = *event;

    if (event->kind == EVENT_STOP)
        body_stop(body, SIGTERM, event->text);
    else if (!body->open)
        control_reply(body->control, event->ask, HVD_E_BUSY, "the driver has not begun yet");
    else if (body->last_words)
        control_reply(body->control, event->ask, HVD_E_STATE, "the job has come to its end");
    else
        body_step(body, &mine);
}

int body_ask_create(struct body *body)
{
    static const struct control_ops ops = { show, act };
    char path[LIMIT_PATH_BYTES];

    snprintf(path, sizeof(path), "%s/control", body->config->folder);
    unlink(path); /* the job is ours: who still listens there has been replaced */
    return control_create(body->base, path, body->events, &ops, body, &body->control, body->err);
}

void body_ask_free(struct body *body)
{
    control_free(body->control);
}
