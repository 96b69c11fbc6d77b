#include "driver/io/body_inside.h"

#include "base/log.h"
#include "base/time.h"
#include "os/clock.h"

#include <string.h>

#define TRACE_LINES  256
#define LABELS_EVERY (100 * TIME_MS) /* in a storm of changes a label may be old for a moment */

/* What the core decides is the job's log: without the time that its lines begin with, as the log
 * has its own. */
static void on_line(void *arg, const char *line)
{
    struct body *body = arg;
    const char *text = strstr(line, "] ");

    text = text ? text + 2 : line;
    body->labels_old = true;
    events_add(body->events, text);
    log_info(JOB, "%s", text);
}

int body_words_create(struct body *body)
{
    int rc = trace_init(&body->trace, "core", TRACE_LINES);

    if (rc)
        return err_set(body->err, rc, "no memory for the trace");
    rc = events_create(body->config->folder, &body->events, body->err);
    if (!rc)
        rc = output_create(body->config->output, &body->output, body->err);
    if (!rc)
        trace_set_tap(&body->trace, on_line, body);
    return rc;
}

void body_words_free(struct body *body)
{
    output_free(body->output);
    if (body->trace.ring)
        trace_release(&body->trace);
    events_free(body->events);
}

static void look_up_labels(struct body *body, uint64_t incarnation)
{
    struct core_view view;
    int64_t now_us = clock_now_us();

    if (output_knows(body->output, incarnation) &&
        (!body->labels_old || now_us < time_add(body->labels_us, LABELS_EVERY)))
        return;
    body->labels_old = false;
    body->labels_us = now_us;
    core_view_init(&view);
    if (!core_view(body->core, &view)) {
        for (size_t i = 0; i < view.host_count; i++) {
            const struct view_host *host = &view.hosts[i];

            for (size_t j = 0; j < host->worker_count; j++)
                output_name(body->output, host->workers[j].incarnation, host->workers[j].rank,
                            host->name, host->workers[j].slot);
        }
    }
    core_view_release(&view);
}

void body_words_launched(struct body *body, const struct msg *launch)
{
    output_rank(body->output, launch->incarnation, launch->u.launch.rank);
}

void body_words_take(struct body *body, const struct msg *msg)
{
    switch (msg->type) {
    case MSG_OUTPUT:
        look_up_labels(body, msg->incarnation);
        output_take(body->output, msg->incarnation, &msg->u.output);
        break;
    case MSG_EXITED: output_end(body->output, msg->incarnation); break;
    default: break;
    }
}
