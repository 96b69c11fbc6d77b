/*
 * loop.c: creates, runs and frees the parts of the driver's event loop, turns their callbacks into
 * events of the core, and carries out the actions of each step. driver/run.c calls loop_run once.
 * Every event reaches the core through loop_step. Until the first record, the TERM, is durable the
 * loop is not open: only the event EVENT_START reaches the core.
 */
#include "driver/io/loop.h"

#include "base/log.h"
#include "base/panic.h"
#include "base/time.h"
#include "driver/control/control.h"
#include "driver/core/core.h"
#include "driver/front/front_link.h"
#include "driver/io/alarms.h"
#include "driver/io/checkpoints.h"
#include "driver/io/farewell.h"
#include "driver/io/host_keys.h"
#include "driver/io/parent.h"
#include "driver/io/queue.h"
#include "driver/io/shown.h"
#include "driver/io/starter.h"
#include "driver/store/store_core.h"
#include "os/clock.h"
#include "os/file.h"
#include "wire/address.h"

#include <event2/event.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

_Static_assert(STATE_KEY_BYTES == HOST_KEY_BYTES, "struct loop has one buffer for both");

/* how many lines of the core's trace are kept in memory, for the text of a panic */
#define TRACE_LINES 256
/* While the core changes, the labels of the workers' output are made again at most once in this
 * time. */
#define LABELS_EVERY (100 * TIME_MS)

struct loop {
    const struct loop_config *config;
    struct loop_end *end;
    struct hvd_err *err;
    int failed; /* 0: the driver can go on; otherwise the error code */

    struct event_base *base;
    struct alarms *alarms;
    struct parent *parent;
    struct checkpoints *checkpoints;
    struct tls *tls;
    struct host_keys *keys;
    struct server *server;
    struct scribe *scribe;
    struct discoverer *discoverer;
    struct starter *starter;
    struct output *output;
    struct control *control;
    struct events *events;

    struct core *core;
    struct trace trace;
    struct action_list actions; /* the actions that core_step returns */
    struct queue queue;
    /* The number of the newest record that is on disk with all records before it. */
    uint64_t durable;
    /* The number of the record of the job's end: the loop ends once that record is durable; 0:
     * there is no such record yet. */
    uint64_t last_record;
    bool open;        /* the TERM record is durable, so events may come */
    bool stepping;    /* core_step is running */
    bool performing;  /* an action is being carried out */
    int early_signal; /* a signal that came before the loop was open; 0: no signal */

    /* The additions to the message that is being encoded: the key of a STATE_KEY or REKEY, the
     * secret of a ROUND or PREPARE, the addresses of standbys in a BEAT, the settings in a
     * START. */
    struct {
        uint8_t key[HOST_KEY_BYTES];
        uint8_t round[LIMIT_ROUND_SECRET_BYTES];
        struct buf settings;
        struct store_peers standbys;
        const char *standby_texts[STORE_PEERS_MAX];
    } added;
    struct shown shown; /* metrics, page, hooks: what shows the job to the outside */
    /* The labels of the workers' output. `stale`: the core has changed since the labels were made.
     * `made_us`: when they were made. */
    struct {
        bool stale;
        int64_t made_us;
    } labels;
};

/* Each line of the core's trace becomes an event (for `hvd-elastic events`) and a line of the log.
 * The line begins with a time in brackets, which is cut off, because both add their own. */
static void loop_on_trace(void *arg, const char *line, enum trace_level level,
                          const struct facts *facts)
{
    static const enum log_level levels[] = { LOG_ERROR, LOG_WARNING, LOG_INFO, LOG_DEBUG };
    struct loop *loop = arg;
    const char *text = strstr(line, "] ");

    text = text ? text + 2 : line;
    loop->labels.stale = true;
    events_add(loop->events, level, facts, text);
    log_line(LOG_JOB, levels[level], "%s", text);
}

/* ---- steps of the core and their actions ---------------------------------------------------- */

/* The driver cannot go on: ends the event loop. The first code counts; the caller has set the text
 * in loop->err. */
static void loop_fail(struct loop *loop, int code)
{
    if (loop->failed)
        return;
    loop->failed = code;
    event_base_loopbreak(loop->base);
}

/* The driver cannot go on, because there is no memory for `what`. */
static void loop_lacks_memory(struct loop *loop, const char *what)
{
    loop_fail(loop,
              err_set(loop->err, HVD_E_NOMEM, "no memory for %s; free memory on this host", what));
}

/* Notes why the driver ends, for the caller of loop_run. `code`: an enum core_exit. */
static void loop_set_end(struct loop *loop, int code, const char *text)
{
    loop->end->code = code;
    snprintf(loop->end->text, sizeof(loop->end->text), "%.*s", LIMIT_REASON_BYTES,
             text ? text : "");
}

/* true: no other driver can have claimed the job. A driver that was stopped for longer than the
 * lease of its store, or that does not reach the store, carries out no action. The scribe (the
 * thread that writes the journal) asks the store at once whether the job is still this driver's,
 * and its answer leads to loop_on_scribe. */
static bool loop_holds_job(const struct loop *loop)
{
    return clock_now_us() < scribe_held_until(loop->scribe);
}

/* Carries out an action about the secrets by which agents and joining hosts prove who they are.
 * From now on a token is accepted (ACTION_TOKEN), or the key of a host with the version
 * item->number is accepted (item->code is not 0) or refused (0). */
static void loop_take_key(struct loop *loop, const struct queued *item)
{
    int rc = 0;

    if (item->kind == ACTION_TOKEN)
        rc = host_keys_accept_token(loop->keys, item->text);
    else if (item->code)
        rc = host_keys_admit(loop->keys, item->text, item->number);
    else
        host_keys_end(loop->keys, item->text, item->number);
    if (rc)
        loop_lacks_memory(loop, "the key of a host");
}

/* Answers an operator, at the control socket or at the page. */
static void loop_reply(struct loop *loop, uint64_t ask, int code, const char *text)
{
    if (ask & PAGE_ASK)
        page_reply(loop->shown.page, ask, code, text);
    else
        control_reply(loop->control, ask, code, text);
}

/* Carries out the actions whose records are durable, in their order. Called after each step,
 * whenever records have become durable, and when a lease that was over is renewed. */
static void loop_perform(struct loop *loop)
{
    struct job_write ended = { .ended = true };
    struct queued *item;

    /* An action below has led to another step of the core, which has called this function again.
     * The outer call also carries out the actions of that step. */
    if (loop->performing)
        return;
    loop->performing = true;
    while (!loop->failed && loop_holds_job(loop) &&
           (item = queue_next(&loop->queue, loop->durable))) {
        const char *text = item->text ? item->text : "";

        switch (item->kind) {
        case ACTION_SEND:
            if (item->peer && peer_send(item->peer, item->type, item->frame->bytes.data,
                                        item->frame->bytes.length))
                loop_lacks_memory(loop, "a message to an agent");
            break;
        case ACTION_CLOSE:
            if (item->peer)
                peer_close(item->peer);
            break;
        case ACTION_KEY:
        case ACTION_TOKEN: loop_take_key(loop, item); break;
        case ACTION_START_AGENT: starter_start(loop->starter, item->text); break;
        case ACTION_DISCOVER:
            if (!loop->config->stop)
                discover_ask(loop->discoverer);
            break;
        case ACTION_CHECK_OWNER: scribe_check(loop->scribe); break;
        case ACTION_CHECKPOINT:
            if (checkpoints_complete(loop->checkpoints, item->checkpoint))
                loop_lacks_memory(loop, "a checkpoint");
            break;
        case ACTION_CHECKPOINT_REJECT:
            if (checkpoints_reject(loop->checkpoints, item->number))
                loop_lacks_memory(loop, "a checkpoint");
            break;
        case ACTION_REPLY: loop_reply(loop, item->ask, item->code, text); break;
        case ACTION_REKEYING: control_rekeying(loop->control, text, item->code); break;
        case ACTION_EXIT: /* this is always the last action */
            loop_set_end(loop, item->code, text);
            /* Another driver has taken over and owns the job's file: no record is written. */
            if (item->code == CORE_REPLACED) {
                event_base_loopbreak(loop->base);
                break;
            }
            /* The end of the job is recorded: without the record the next driver would go on with
             * the job. The loop ends when the record is durable (loop_on_scribe). */
            ended.code = item->code;
            ended.text = text;
            loop->last_record = scribe_put(loop->scribe, &ended);
            if (!loop->last_record)
                loop_lacks_memory(loop, "the last record of the journal");
            break;
        case ACTION_RECORD:
        case ACTION_BLACKLIST:
        case ACTION_COUNT: PANIC("an action of kind %d in the queue", (int)item->kind);
        }
        queued_free(item);
    }
    loop->performing = false;
}

/* Adds to a START the settings of the agent that it starts. The process that gets the START,
 * `hvd-agent --join` on the host, adds the address by which it has reached this driver (so NULL
 * here). */
static int loop_add_settings(struct loop *loop, const struct action *action, struct msg *ret_whole)
{
    struct buf *text = &loop->added.settings;
    uint64_t epoch = action->msg->u.start.epoch;
    int rc = host_keys_derive(loop->config->facts->key, action->host, epoch, loop->added.key);

    buf_release(text);
    buf_init(text, LIMIT_CONFIG_TEXT_BYTES);
    if (!rc)
        rc = starter_settings(loop->starter, action->host, loop->added.key, epoch, NULL,
                              false /* the agent is on another machine */, text);
    ret_whole->u.start.settings =
        (struct msg_bytes){ (const uint8_t *)buf_text(text), text->length };
    return rc;
}

/* Adds to a message the parts that the core does not know: the addresses of standbys to a
 * heartbeat, the command and the environment to a LAUNCH, the key to a STATE_KEY and a REKEY, and
 * the secret to a ROUND and a PREPARE for hosts that have a member of that round. */
static int complete_msg(void *arg, const struct action *action, struct msg *ret_whole)
{
    struct loop *loop = arg;
    const struct msg *msg = action->msg;
    const struct msg_bytes secret = { loop->added.round, sizeof(loop->added.round) };
    struct address address;
    size_t count = 0;
    int rc = 0;

    if (msg->type == MSG_BEAT) {
        /* A text in the store that is no address is left out: the store is foreign input, and an
         * agent would refuse the whole message. */
        scribe_peers(loop->scribe, &loop->added.standbys);
        for (size_t i = 0; i < loop->added.standbys.count; i++)
            if (!address_parse(loop->added.standbys.address[i], &address, NULL))
                loop->added.standby_texts[count++] = loop->added.standbys.address[i];
        ret_whole->u.beat.standbys = (struct msg_texts){ loop->added.standby_texts, count };
    } else if (msg->type == MSG_LAUNCH) {
        job_env_fill(loop->config->env, msg, ret_whole);
        output_rank(loop->output, msg->incarnation, msg->u.launch.rank);
    } else if (msg->type == MSG_ROUND && action->secret) {
        rc = host_keys_round(loop->keys, msg->round, loop->added.round);
        ret_whole->u.round.secret = secret;
    } else if (msg->type == MSG_PREPARE && action->secret) {
        rc = host_keys_round(loop->keys, msg->round, loop->added.round);
        ret_whole->u.prepare.secret = secret;
    } else if (msg->type == MSG_START) {
        rc = loop_add_settings(loop, action, ret_whole);
    } else if (msg->type == MSG_STATE_KEY) {
        rc = host_keys_state(loop->keys, msg->round, loop->added.key);
        ret_whole->u.state_key.key = (struct msg_bytes){ loop->added.key, STATE_KEY_BYTES };
    } else if (msg->type == MSG_REKEY) {
        rc = host_keys_derive(loop->config->facts->key, action->host, msg->u.rekey.epoch,
                              loop->added.key);
        ret_whole->u.rekey.key = (struct msg_bytes){ loop->added.key, HOST_KEY_BYTES };
    }
    return rc;
}

/* Makes one step of the core for the event, puts its actions into the queue, and carries out those
 * that need not wait. After a failure, or when the end of the job is being recorded, events are
 * ignored. */
static void loop_step(struct loop *loop, struct event *event)
{
    int rc;

    if (loop->failed || loop->last_record)
        return;
    ASSERT(!loop->stepping);
    loop->stepping = true;
    event->now_us = clock_now_us();
    event->wall_us = clock_wall_us();
    /* A driver that does not hold the job carries out no action, so all actions wait (durable 0).
     */
    event->held_us =
        queue_held_us(&loop->queue, loop_holds_job(loop) ? loop->durable : 0, event->now_us);
    rc = core_step(loop->core, event, &loop->actions);
    loop->stepping = false;
    if (rc)
        err_set(loop->err, rc, "no memory for a step of the driver; free memory on this host");
    else
        rc = queue_take(&loop->queue, &loop->actions, event->now_us, complete_msg, loop, loop->err);
    action_list_clear(&loop->actions);
    if (rc) {
        loop_fail(loop, rc);
        return;
    }
    loop_perform(loop);
    if (loop->open)
        alarms_arm(loop->alarms, core_deadline(loop->core));
}

/* The job is to end, because of a signal or of "hvd-elastic stop" (then `signal` is SIGTERM). `who`
 * names the cause in words. `checkpoint`: the job first writes a checkpoint, if it has a directory
 * for them. */
static void loop_stop(struct loop *loop, int signal, const char *who, bool checkpoint)
{
    struct event event = { .kind = EVENT_STOP, .text = who, .code = checkpoint };

    /* Before the TERM record is durable no agent knows this driver. A first signal waits until it
     * is durable, and a second signal ends the driver at once. */
    if (!loop->open && !loop->early_signal) {
        loop->early_signal = signal;
        return;
    }
    if (!loop->open) {
        loop->end->signal = signal;
        loop_set_end(loop, CORE_REPLACED, "stopped before the driver had begun");
        event_base_loopbreak(loop->base);
        return;
    }
    if (!loop->end->signal && (!checkpoint || !loop->config->core->checkpoint_dir))
        log_info(JOB, "%s: the workers get SIGTERM, and end; a second stop kills them at once",
                 who);
    loop->end->signal = signal;
    loop_step(loop, &event);
}

/* Makes a view of the core, and the facts about the job, for an answer to an operator or a scrape.
 */
static int loop_control_view(void *arg, struct core_view *ret_view, struct table_facts *ret_facts)
{
    const struct loop *loop = arg;

    return shown_view(loop->core, loop->config, loop->shown.started_us, ret_view, ret_facts);
}

/* Returns, for /healthz, the reason why the driver does not do its work; NULL: the driver works. */
static const char *loop_trouble(void *arg)
{
    const struct loop *loop = arg;

    if (!loop->open)
        return "the driver has not begun yet";
    if (!loop_holds_job(loop))
        return "the driver does not know whether the job is still its own";
    if (queue_held_us(&loop->queue, loop->durable, clock_now_us()) >= loop->config->core->lease_us)
        return "the journal is not written";
    return NULL;
}

/* Hands an operator's event to the core, or refuses it while the core cannot take it. loop_step
 * adds the time to its event, so it gets a copy. */
static void loop_control_act(void *arg, const struct event *event)
{
    struct loop *loop = arg;
    struct event own = *event;

    if (event->kind == EVENT_STOP)
        loop_stop(loop, SIGTERM, event->text, event->code);
    else if (!loop->open)
        loop_reply(loop, event->ask, HVD_E_BUSY, "the driver has not begun yet; ask again");
    else if (loop->last_record)
        loop_reply(loop, event->ask, HVD_E_STATE, "the job has come to its end");
    else
        loop_step(loop, &own);
}

/* ---- what happens outside ------------------------------------------------------------------- */

/* Listens for hosts that join, if the job takes such hosts. While the former driver still has the
 * port, each timer event tries again. `first`: the call when the loop opens, at which the token of
 * --token-file becomes a token of the job. */
static void loop_await_joins(struct loop *loop, bool first)
{
    struct event event = {
        .kind = EVENT_TOKEN, .code = TOKEN_MADE, .left_us = TIME_NEVER, .text = loop->config->token
    };
    struct hvd_err err;
    int rc = loop->config->core->join ? starter_listen(loop->starter, &err) : 0;

    if (rc)
        loop_fail(loop, err_set(loop->err, rc, "%s", err.text));
    else if (first && loop->config->core->join && loop->config->token)
        loop_step(loop, &event);
}

/* The core's next deadline has come. */
static void loop_on_timer(void *arg)
{
    struct loop *loop = arg;
    struct event event = { .kind = EVENT_TIMER };

    /* The timer also goes off for heartbeats, so these two calls come often enough. */
    starter_tick(loop->starter);
    loop_await_joins(loop, false /* not the first call */);
    loop_step(loop, &event);
}

/* Gives the discovered hosts to the core. SIGUSR1 may start a discovery before the loop is open.
 * The result of that discovery is dropped, and the core asks again. */
static void loop_on_hosts(void *arg, const struct hosts *hosts)
{
    struct loop *loop = arg;
    struct event event = { .kind = EVENT_HOSTS, .hosts = hosts };

    if (loop->open)
        loop_step(loop, &event);
}

/* Discovery has failed: the core keeps the hosts that it knows. */
static void loop_on_hosts_failed(void *arg, const char *why)
{
    struct loop *loop = arg;
    struct event event = { .kind = EVENT_HOSTS_FAILED, .text = why };

    if (loop->open)
        loop_step(loop, &event);
}

/* Gives the core an event that another part of the driver has made. */
static void loop_on_event(void *arg, struct event *event)
{
    loop_step(arg, event);
}

/* A line for the log about checkpoints. code 0: an old one was removed, which is no warning. */
static void loop_on_checkpoint_note(void *arg, int code, const char *text)
{
    struct loop *loop = arg;

    if (!code) {
        log_debug(STATE, "%s", text);
        return;
    }
    events_add(loop->events, TRACE_WARNING, FACTS(.kind = KIND_CHECKPOINT_FAILED, .cause = text),
               text);
    log_warning(STATE, "%s", text);
}

/* Called for a message of the agent with the connection `number`: takes the output and the
 * autopsies of workers, and gives the message to the core. `speaks`: the message is about a worker
 * on the agent's own host. */
static void loop_on_peer_msg(void *arg, uint32_t number, const struct msg *msg)
{
    struct loop *loop = arg;
    const struct tls_peer *proved = server_proved(loop->server, number);
    struct event event = { .kind = EVENT_MSG,
                           .peer = number,
                           .host = proved->name,
                           .key_version = proved->number,
                           .text = server_seen(loop->server, number),
                           .msg = msg };
    int64_t now_us = clock_now_us();
    /* The output of a worker that does not run on the agent's host is neither shown nor kept. */
    bool speaks = core_speaks_for(loop->core, number, msg->incarnation);

    /* A label has rank, host and slot, which change with each round. The labels are made again from
     * a view of the core if this worker has none, or if the core has changed something since. */
    if (msg->type == MSG_OUTPUT && speaks &&
        (!output_knows(loop->output, msg->incarnation) ||
         (loop->labels.stale && now_us >= time_add(loop->labels.made_us, LABELS_EVERY)))) {
        loop->labels.stale = false;
        loop->labels.made_us = now_us;
        shown_label(loop->core, loop->output);
    }
    if (msg->type == MSG_OUTPUT && speaks)
        output_take(loop->output, msg->incarnation, &msg->u.output);
    if (msg->type == MSG_AUTOPSY && speaks)
        autopsies_take(loop->shown.autopsies, proved->name, msg,
                       core_ends_by_order(loop->core, msg->incarnation));
    if (msg->type == MSG_EXITED && speaks)
        output_end(loop->output, msg->incarnation);
    loop_step(loop, &event);
}

/* Names a stop signal for the log and for the reason of the job's end. */
static const char *signal_text(int signal)
{
    return signal == SIGINT ? "Ctrl-C" : "SIGTERM";
}

/* Writes a line to the log and to the events. */
PRINTF_LIKE(3, 4)
static void loop_say(struct loop *loop, enum facts_kind kind, const char *format, ...)
{
    char text[TRACE_LINE_MAX];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    events_add(loop->events, TRACE_INFO, FACTS(.kind = kind), text);
    log_info(JOB, "%s", text);
}

/* The terminal of the driver is gone (SIGHUP): the driver goes on. Standard streams that lead to
 * the terminal are given up after the log line, which then also reaches a standard error that is a
 * file. */
static void loop_on_hangup(void *arg)
{
    struct loop *loop = arg;

    loop_say(loop, KIND_TERMINAL_LOST,
             "the terminal is gone, and the job goes on without it; look at it with: hvd-elastic "
             "status --state-dir %s; the output of workers is %s",
             loop->config->folder,
             loop->config->output->folder ? "in the folder of --output-filename"
                                          : "kept nowhere without --output-filename");
    file_leave_terminal();
}

/* A signal has come to the driver: SIGUSR1 asks for discovery, the others stop the job or hang up.
 */
static void loop_on_signal(void *arg, int signal)
{
    struct loop *loop = arg;

    if (signal == SIGUSR1)
        discover_ask(loop->discoverer);
    else
        parent_own_signal(loop->parent, signal);
}

/* The user asks for the end of the job, by a signal to the driver or to its parent: with a
 * checkpoint first (true). */
static void loop_on_parent_stop(void *arg, int signal)
{
    struct loop *loop = arg;

    loop_stop(loop, signal, signal_text(signal), true /* after a checkpoint */);
}

/* The parent has got SIGUSR1: hosts are to be discovered now. */
static void loop_on_parent_look(void *arg)
{
    struct loop *loop = arg;

    discover_ask(loop->discoverer);
}

/* The driver's parent process has ended. With --detach alone that is expected, as soon as the
 * driver runs; a parent that would start the next driver (`restarts`) should have stayed. */
static void loop_on_parent_lost(void *arg)
{
    struct loop *loop = arg;

    if (loop->config->order->restarts)
        loop_say(loop, KIND_DRIVER_ORPHANED,
                 "the process that has started this driver is gone; the driver goes on, and "
                 "no process starts the next one");
}

/* The scribe (the thread that writes the journal) has news: records have become durable, or no
 * record can be written any more. The first time that the TERM record is durable, the loop opens.
 */
static void loop_on_scribe(void *arg)
{
    const struct front_msg runs = { .kind = FRONT_RUNS };
    struct loop *loop = arg;
    int rc = scribe_look(loop->scribe, &loop->durable, loop->err);

    if (rc == HVD_E_LOST) { /* another driver has claimed the job: this driver ends */
        loop_set_end(loop, CORE_REPLACED, loop->err->text);
        event_base_loopbreak(loop->base);
        return;
    }
    if (rc) { /* the driver ends: no agent may be told a decision that is not on disk */
        loop_fail(loop, rc);
        return;
    }
    if (loop->last_record && loop->durable >= loop->last_record) {
        event_base_loopbreak(loop->base);
        return;
    }
    loop_perform(loop);
    /* The loop is open already, or the first record (queue.first) is not durable yet. */
    if (loop->open || !loop->queue.first || loop->durable < loop->queue.first)
        return;
    /* The first record is durable: from now on agents may connect, and the timer runs. */
    loop->open = true;
    loop->end->begun = true;
    if (loop->config->order->detach)
        file_leave_streams();
    front_link_send(loop->config->order->link, &runs);
    alarms_arm(loop->alarms, core_deadline(loop->core));
    loop_await_joins(loop, true /* the first call */);
    if (loop->config->resumed)
        starter_await_agents(loop->starter);
    if (loop->config->stop)
        loop_stop(loop, SIGTERM, "hvd-elastic stop", !loop->config->stop_now);
    if (loop->early_signal)
        loop_stop(loop, loop->early_signal, signal_text(loop->early_signal),
                  true /* after a checkpoint */);
}

/* Creates all parts that cause events, in this order, because later parts use earlier ones. After a
 * failure loop_run frees those that were made. */
static int loop_create_parts(struct loop *loop)
{
    /* A SIGHUP that is ignored (nohup) stays ignored. */
    const int signals[] = { SIGINT, SIGTERM, SIGUSR1, front_ignores_hangup() ? 0 : SIGHUP, 0 };
    static const struct parent_ops parent_ops = { loop_on_parent_stop, loop_on_hangup,
                                                  loop_on_parent_look, loop_on_parent_lost };
    static const struct discover_ops discover_ops = { loop_on_hosts, loop_on_hosts_failed };
    static const struct server_ops server_ops = { loop_on_peer_msg, loop_on_event };
    static const struct control_ops control_ops = { loop_control_view, loop_control_act };
    static const struct scrapes_ops scrapes_ops = { loop_control_view, loop_trouble,
                                                    loop_control_act };
    static const struct checkpoints_ops checkpoints_ops = { loop_on_event,
                                                            loop_on_checkpoint_note };
    static const struct alarm_ops alarm_ops = { loop_on_timer, loop_on_signal, loop_on_scribe };
    const struct loop_config *config = loop->config;
    char path[LIMIT_PATH_BYTES];
    /* without a name and a key of its own: host_keys.c lets it accept the keys of hosts */
    int rc = tls_create("", NULL, &loop->tls, loop->err);

    if (!rc && (rc = host_keys_create(config->facts->key, loop->tls, &loop->keys)))
        err_set(loop->err, rc, "no memory for the keys of hosts; free memory on this host");
    if (!rc)
        rc = server_create(loop->base, loop->tls, &server_ops, loop, &loop->server);
    if (!rc)
        rc = discover_create(loop->base, config->discover, &discover_ops, loop, &loop->discoverer,
                             loop->err);
    if (!rc) {
        const struct starter_parts parts = { .base = loop->base,
                                             .config = config,
                                             .core = loop->core,
                                             .keys = loop->keys,
                                             .server = loop->server,
                                             .scribe = loop->scribe };

        rc = starter_create(&parts, loop_on_event, loop, &loop->starter, loop->err);
    }
    if (!rc) {
        /* Removes the socket of a former driver. A driver that still listens on it has been
         * replaced. */
        snprintf(path, sizeof(path), "%s/control", config->folder);
        unlink(path);
        rc = control_create(loop->base, path, loop->events, &control_ops, loop, &loop->control,
                            loop->err);
    }
    if (!rc)
        rc = shown_serve(&loop->shown, loop->base, config, loop->events, &scrapes_ops, loop,
                         loop->err);
    if (!rc)
        rc = checkpoints_create(loop->base, config->catalog, config->facts->job, &checkpoints_ops,
                                loop, &loop->checkpoints, loop->err);
    if (!rc)
        rc = parent_create(loop->base, config->order->link, &parent_ops, loop, &loop->parent,
                           loop->err);
    if (!rc)
        rc = alarms_create(loop->base, signals, scribe_fd(loop->scribe), &alarm_ops, loop,
                           &loop->alarms, loop->err);
    return rc;
}

/* Runs the job: reads the journal, creates the parts, and runs the event loop until the end. The
 * store belongs to this function until scribe_start takes it. */
static int loop_drive(struct loop *loop)
{
    struct store *store = loop->config->store;
    uint64_t records = 0; /* number of records in the journal that earlier drivers have left */
    struct event start = { .kind = EVENT_START };
    char text[TRACE_LINE_MAX];
    int rc = trace_init(&loop->trace, "core", TRACE_LINES);

    if (rc)
        err_set(loop->err, rc, "no memory for the trace of the driver; free memory on this host");
    if (!rc)
        rc =
            events_create(loop->config->folder, loop->config->facts->job, &loop->events, loop->err);
    if (!rc)
        rc = output_create(loop->config->output, &loop->output, loop->err);
    if (!rc && loop->config->order->former) {
        snprintf(text, sizeof(text), "%s; a new driver takes the job over (pid %d)",
                 loop->config->order->former, (int)getpid());
        /* the log has the line already */
        events_add(loop->events, TRACE_WARNING,
                   FACTS(.kind = KIND_DRIVER_FOLLOWS, .cause = loop->config->order->former), text);
    }
    if (!rc)
        trace_set_tap(&loop->trace, loop_on_trace, loop);
    /* Brings the core to the state in which earlier drivers have left it. Then the scribe, the
     * thread that writes the journal, takes the store over. */
    if (!rc && !(loop->core = core_create(loop->config->core, &loop->trace)))
        rc = err_set(loop->err, HVD_E_NOMEM,
                     "no memory for the state of the job; free memory on this host");
    if (!rc)
        rc = store_replay_core(store, loop->core, &records, loop->err);
    if (!rc)
        rc = store_blacklist_core(store, loop->core, loop->err);
    if (rc) {
        store_close(store);
        return rc;
    }
    rc = scribe_start(store, store->check_us, &loop->scribe, loop->err);
    if (!rc)
        rc = loop_create_parts(loop);
    if (rc)
        return rc;
    scribe_compact(loop->scribe, loop->config->core, records);
    /* The first step writes the TERM. Everything else waits until the TERM is durable. */
    queue_init(&loop->queue, loop->scribe, loop->server);
    loop_step(loop, &start);
    if (!loop->failed && event_base_dispatch(loop->base) < 0)
        rc = err_set(loop->err, HVD_E_IO,
                     "the driver's event loop has failed; take the job over with --resume");
    queue_release(&loop->queue);
    return loop->failed ? loop->failed : rc;
}

/* Runs the driver until the job has ended or cannot go on. *ret_end says how the job ended; a
 * return other than 0 is a failure of this driver alone, whose job may go on under another
 * driver. */
int loop_run(const struct loop_config *config, struct loop_end *ret_end, struct hvd_err *err)
{
    struct loop loop = { .config = config, .end = ret_end, .err = err };
    struct table_facts facts;
    struct core_view view;
    struct hvd_err scribe_err;
    int scribe_rc;
    int rc;

    *ret_end = (struct loop_end){ .code = CORE_FAILED };
    buf_init(&ret_end->summary, LIMIT_CONFIG_TEXT_BYTES);
    loop.shown.started_us = clock_now_us();
    action_list_init(&loop.actions);
    buf_init(&loop.added.settings, LIMIT_CONFIG_TEXT_BYTES);
    loop.base = event_base_new();
    if (!loop.base) {
        store_close(config->store);
        return err_set(err, HVD_E_NOMEM,
                       "no memory for the driver's event loop; free memory on this host");
    }
    rc = loop_drive(&loop);
    core_view_init(&view);
    if (!rc && loop.last_record && !loop_control_view(&loop, &view, &facts))
        shown_sum_up(&view, &facts, loop.events, &ret_end->summary);
    core_view_release(&view);
    if (!rc && loop.last_record)
        ret_end->farewell = farewell_create(loop.core, config->facts, loop.server, clock_now_us());

    /* The parts that make callbacks are freed first, so no callback reaches a freed part. */
    alarms_free(loop.alarms);
    parent_free(loop.parent);
    checkpoints_free(loop.checkpoints);
    control_free(loop.control);
    shown_end(&loop.shown, !rc && loop.last_record);
    discover_free(loop.discoverer);
    starter_free(loop.starter);
    server_free(loop.server);
    /* This call returns when the last messages are sent, at the latest after CONN_LINGER_US, and
     * --on-event was told the last events, at the latest after LIMIT_OUTPUT_LINGER_US. shown_free
     * waits until the same time for --on-event-url. */
    (void)event_base_dispatch(loop.base);
    shown_free(&loop.shown);
    buf_release(&loop.added.settings); /* wipes the text, which has a key */
    explicit_bzero(loop.added.key, sizeof(loop.added.key));
    explicit_bzero(loop.added.round, sizeof(loop.added.round));
    host_keys_free(loop.keys);
    tls_free(loop.tls);
    /* After a takeover (CORE_REPLACED) the scribe (the thread that writes the journal) has failed
     * as well, which is no new failure. */
    scribe_rc = loop.scribe ? scribe_stop(loop.scribe, &scribe_err) : 0;
    if (!rc && scribe_rc && ret_end->code != CORE_REPLACED) {
        rc = scribe_rc;
        *err = scribe_err;
    }
    core_free(loop.core);
    output_free(loop.output);
    if (loop.trace.ring)
        trace_release(&loop.trace);
    events_free(loop.events);
    action_list_release(&loop.actions);
    event_base_free(loop.base);
    return rc;
}
