#include "driver/io/body_inside.h"

#include "base/log.h"
#include "base/panic.h"
#include "base/time.h"
#include "os/clock.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

#define OWNER_LOOK_US (2 * TIME_S)

static const int signals[] = { SIGINT, SIGTERM, SIGHUP, SIGUSR1, 0 };

void body_fail(struct body *body, int code)
{
    if (body->failed)
        return;
    body->failed = code;
    alarms_end(body->base);
}

/* ---- from the core --------------------------------------------------------------------------- */

static void set_end(struct body *body, int code, const char *text)
{
    body->end->code = code;
    snprintf(body->end->text, sizeof(body->end->text), "%.*s", LIMIT_REASON_BYTES,
             text ? text : "");
}

/* The last action. That the job has ended is written down, or the next driver would begin anew to
 * end it. */
static void leave(struct body *body, const struct queued *item)
{
    const struct job_write ended = { .ended = true,
                                     .code = item->code,
                                     .text = item->text ? item->text : "" };

    set_end(body, item->code, item->text);
    if (item->code == CORE_REPLACED) {
        alarms_end(body->base);
        return;
    }
    body->last_words = scribe_put(body->scribe, &ended);
    if (!body->last_words)
        body_fail(body, err_set(body->err, HVD_E_NOMEM, "no memory for the last record"));
}

static void perform(struct body *body, const struct queued *item)
{
    switch (item->kind) {
    case ACTION_SEND:
        if (item->peer &&
            peer_send(item->peer, item->type, item->frame->bytes.data, item->frame->bytes.length))
            body_fail(body, err_set(body->err, HVD_E_NOMEM, "no memory for a message"));
        break;
    case ACTION_CLOSE:
        if (item->peer)
            peer_close(item->peer);
        break;
    case ACTION_START_AGENT: body_hosts_start(body, item->text); break;
    case ACTION_DISCOVER: discover_ask(body->discoverer); break;
    case ACTION_REPLY:
        control_reply(body->control, item->ask, item->code, item->text ? item->text : "");
        break;
    case ACTION_EXIT: leave(body, item); break;
    case ACTION_RECORD:
    case ACTION_BLACKLIST:
    case ACTION_COUNT: PANIC("an action of kind %d in the queue", (int)item->kind);
    }
}

static void perform_all(struct body *body)
{
    struct queued *item;

    if (body->performing)
        return;
    body->performing = true;
    while (!body->failed && (item = queue_next(&body->queue, body->durable))) {
        perform(body, item);
        queued_free(item);
    }
    body->performing = false;
}

static void fill_launch(void *arg, const struct msg *launch, struct msg *ret_whole)
{
    struct body *body = arg;

    job_env_fill(body->config->env, launch, ret_whole);
    body_words_launched(body, launch);
}

/* ---- to the core ----------------------------------------------------------------------------- */

void body_step(struct body *body, struct event *event)
{
    int rc;

    if (body->failed || body->last_words)
        return;
    ASSERT(!body->stepping);
    body->stepping = true;
    event->now_us = clock_now_us();
    event->wall_us = clock_wall_us();
    rc = core_step(body->core, event, &body->actions);
    body->stepping = false;
    if (rc)
        err_set(body->err, rc, "memory is out");
    else
        rc = queue_take(&body->queue, &body->actions, fill_launch, body, body->err);
    action_list_clear(&body->actions);
    if (rc) {
        body_fail(body, rc);
        return;
    }
    perform_all(body);
    if (body->open)
        alarms_arm(body->alarms, core_deadline(body->core));
}

static void on_timer(void *arg)
{
    struct event event = { .kind = EVENT_TIMER };

    body_hosts_look(arg); /* beats make the timer go off often enough */
    body_step(arg, &event);
}

/* Asked for by a signal, an answer may come before anything may happen; the core asks again. */
static void discovered(struct body *body, struct event *event)
{
    if (body->open)
        body_step(body, event);
}

static void on_hosts(void *arg, const struct hosts *hosts)
{
    struct event event = { .kind = EVENT_HOSTS, .hosts = hosts };

    discovered(arg, &event);
}

static void on_hosts_failed(void *arg, const char *why)
{
    struct event event = { .kind = EVENT_HOSTS_FAILED, .text = why };

    discovered(arg, &event);
}

static void on_peer_msg(void *arg, uint32_t number, const struct msg *msg)
{
    struct event event = { .kind = EVENT_MSG, .peer = number, .msg = msg };

    body_words_take(arg, msg);
    body_step(arg, &event);
}

static void on_peer_closed(void *arg, uint32_t number, const char *why)
{
    struct event event = { .kind = EVENT_CLOSED, .peer = number, .text = why };

    body_step(arg, &event);
}

/* ---- signals, and the scribe ----------------------------------------------------------------- */

static const char *signal_text(int signal)
{
    switch (signal) {
    case SIGINT: return "Ctrl-C";
    case SIGTERM: return "SIGTERM";
    default: return "SIGHUP";
    }
}

static void stop(struct body *body, int signal, const char *who)
{
    struct event event = { .kind = EVENT_STOP, .text = who };

    if (!body->end->signal)
        log_info(JOB, "%s: the workers are being ended; again: at once", who);
    body->end->signal = signal;
    body_step(body, &event);
}

/* Before the term is on disk nothing has been told to anybody. */
static void stop_early(struct body *body, int signal)
{
    if (!body->stop_asked) {
        body->stop_asked = signal;
        return;
    }
    body->end->signal = signal;
    set_end(body, CORE_REPLACED, "given up before it had begun");
    alarms_end(body->base);
}

static void on_signal(void *arg, int signal)
{
    struct body *body = arg;

    if (signal == SIGUSR1)
        discover_ask(body->discoverer);
    else
        body_stop(body, signal, signal_text(signal));
}

void body_stop(struct body *body, int signal, const char *who)
{
    if (body->open)
        stop(body, signal, who);
    else
        stop_early(body, signal);
}

/* The first record is on disk: agents may come, and time may pass. */
static void begin(struct body *body)
{
    body->open = true;
    body->end->begun = true;
    alarms_arm(body->alarms, core_deadline(body->core));
    if (body->config->resumed)
        body_hosts_open(body);
    if (body->stop_asked)
        stop(body, body->stop_asked, signal_text(body->stop_asked));
}

/* What the scribe cannot write, nobody may be told. */
static void on_scribe_failed(struct body *body, int code)
{
    if (code == HVD_E_LOST) {
        set_end(body, CORE_REPLACED, body->err->text);
        alarms_end(body->base);
        return;
    }
    body_fail(body, code);
}

static void on_scribe(void *arg)
{
    struct body *body = arg;
    int rc = scribe_look(body->scribe, &body->durable, body->err);

    if (rc) {
        on_scribe_failed(body, rc);
        return;
    }
    if (body->last_words && body->durable >= body->last_words) {
        alarms_end(body->base);
        return;
    }
    perform_all(body);
    if (!body->open && body->queue.first && body->durable >= body->queue.first)
        begin(body);
}

/* ---- life ------------------------------------------------------------------------------------ */

static int replay_record(void *arg, const struct journal_record *record, struct hvd_err *err)
{
    struct body *body = arg;

    return core_replay(body->core, record, err);
}

static int replay_blacklist(void *arg, const struct blacklist_record *record, struct hvd_err *err)
{
    struct body *body = arg;

    return core_replay_blacklist(body->core, record, clock_now_us(), clock_wall_us(), err);
}

static int make_core(struct body *body)
{
    struct job_file *file = body->config->file;
    int rc;

    body->core = core_create(body->config->core, &body->trace);
    if (!body->core)
        return err_set(body->err, HVD_E_NOMEM, "no memory for the job");
    rc = job_file_replay(file, replay_record, body, body->err);
    if (!rc)
        rc = job_file_blacklist(file, replay_blacklist, body, body->err);
    return rc;
}

static int make_parts(struct body *body)
{
    static const struct discover_ops discover_ops = { on_hosts, on_hosts_failed };
    static const struct server_ops server_ops = { on_peer_msg, on_peer_closed };
    static const struct alarm_ops alarm_ops = { on_timer, on_signal, on_scribe };
    const struct body_config *config = body->config;
    int rc = tls_create(config->facts->job, config->facts->key, &body->tls, body->err);

    if (!rc)
        rc = server_create(body->base, body->tls, &server_ops, body, &body->server);
    if (!rc)
        rc = discover_create(body->base, config->discover, &discover_ops, body, &body->discoverer,
                             body->err);
    if (!rc)
        rc = body_hosts_create(body);
    if (!rc)
        rc = body_ask_create(body);
    if (!rc)
        rc = alarms_create(body->base, signals, scribe_fd(body->scribe), &alarm_ops, body,
                           &body->alarms, body->err);
    return rc;
}

static int run(struct body *body)
{
    struct event start = { .kind = EVENT_START };
    int rc = body_words_create(body);

    if (!rc)
        rc = make_core(body);
    if (rc) {
        job_file_close(body->config->file);
        return rc;
    }
    rc = scribe_start(body->config->file, OWNER_LOOK_US, &body->scribe, body->err);
    if (!rc)
        rc = make_parts(body);
    if (rc)
        return rc;
    queue_init(&body->queue, body->scribe, body->server);
    body_step(body, &start);
    rc = body->failed ? body->failed : alarms_run(body->base, body->err);
    queue_release(&body->queue);
    return body->failed ? body->failed : rc;
}

/* From the outside in: nothing calls into what is gone. */
static int end(struct body *body, int rc)
{
    struct hvd_err err;
    int scribe_rc;

    alarms_free(body->alarms);
    body_ask_free(body);
    discover_free(body->discoverer);
    body_hosts_free(body);
    server_free(body->server);
    (void)alarms_run(body->base, NULL); /* until what was said last is out: CONN_LINGER_US */
    tls_free(body->tls);
    scribe_rc = body->scribe ? scribe_stop(body->scribe, &err) : 0;
    if (!rc && scribe_rc && body->end->code != CORE_REPLACED) {
        rc = scribe_rc;
        *body->err = err;
    }
    core_free(body->core);
    body_words_free(body);
    action_list_release(&body->actions);
    alarms_base_free(body->base);
    return rc;
}

int body_run(const struct body_config *config, struct body_end *ret_end, struct hvd_err *err)
{
    struct body body = { .config = config, .end = ret_end, .err = err };

    *ret_end = (struct body_end){ .code = CORE_FAILED };
    body.port = config->port ? config->port : config->facts->port;
    body.started_us = clock_now_us();
    body.tell_at_us = TIME_NEVER;
    action_list_init(&body.actions);
    body.base = alarms_base_create();
    if (!body.base) {
        job_file_close(config->file);
        return err_set(err, HVD_E_NOMEM, "no memory for the loop");
    }
    return end(&body, run(&body));
}
