/* body_deeds.c: what the agent's mind has decided, carried out. */
#include "agent/io/body_state.h"
#include "agent/io/worker_env.h"
#include "proto/codec.h"

#define ENV_BYTES (64 * 1024 * 1024) /* a LAUNCH cannot carry more */

/* ---- the end --------------------------------------------------------------------------------- */

static void end(struct body *body, int code)
{
    if (body->over)
        return;
    body->over = true;
    body->code = code;
    event_base_loopbreak(body->base);
}

void body_give_up(struct body *body, int code, const char *what)
{
    if (!body->over)
        log_error(AGENT, "%s: %s; the agent ends, and its workers with it", what, err_text(code));
    end(body, code);
}

/* A deed that failed in a way that concerns only what it was done for. */
static void complain(struct body *body, int rc, const char *what, const struct hvd_err *err)
{
    if (rc == HVD_E_NOMEM)
        body_give_up(body, rc, what);
    else
        log_error(AGENT, "%s: %s", what, err->text);
}

/* ---- actions --------------------------------------------------------------------------------- */

void body_put_off(struct body *body, const struct agent_event *event)
{
    int rc = body_queue_put(&body->queue, event);

    if (rc)
        body_give_up(body, rc, "an event");
}

static void do_dial(struct body *body)
{
    struct hvd_err err;

    if (driver_link_dial(body->driver, &err))
        body_put_off(body, &(struct agent_event){ .kind = AGENT_DRIVER_DOWN, .text = err.text });
}

static void do_send_driver(struct body *body, const struct msg *msg)
{
    struct hvd_err err = { 0 };
    int rc = driver_link_send(body->driver, msg, &err);

    if (rc)
        complain(body, rc, "a message to the driver", &err);
}

/* Encodes what is said to several workers once. */
static int send_same(struct body *body, const struct agent_action *action, struct hvd_err *err)
{
    int rc = 0;

    if (body->encoded != action->msg) {
        buf_clear(&body->frame);
        body->encoded = NULL;
        rc = msg_encode(action->msg, &body->frame, err);
        if (rc)
            return rc;
        body->encoded = action->msg;
    }
    rc = workers_link_send_frame(body->workers, action->worker, body->frame.data,
                                 body->frame.length);
    return rc ? err_set(err, rc, "worker: %s", err_text(rc)) : 0;
}

static void do_send_worker(struct body *body, const struct agent_action *action)
{
    struct hvd_err err = { 0 };
    int rc;

    if (action->msg->type == MSG_WELCOME_WORKER)
        rc = body_commits_welcome(body, action->worker, action->msg, &err);
    else
        rc = send_same(body, action, &err);
    if (!rc)
        return;
    complain(body, rc, "a message to a worker", &err);
    workers_link_drop(body->workers, action->worker);
    body_put_off(body,
                 &(struct agent_event){ .kind = AGENT_WORKER_DOWN, .worker = action->worker });
}

static void do_spawn(struct body *body, const struct msg *launch)
{
    const struct worker_env_config config = {
        .socket = body->socket,
        .job = body->config.mind.job,
        .host = body->config.mind.host,
        .own = body->config.env,
    };
    const char *const *env;
    struct arena arena;

    arena_init(&arena, ENV_BYTES);
    env = worker_env_make(&config, launch, &arena);
    if (!env || VEC_RESERVE(&body->started, 1, UINT32_MAX)) {
        body_give_up(body, HVD_E_NOMEM, "the environment of a worker");
    } else {
        body->started.items[body->started.count++] =
            (struct started){ .incarnation = launch->incarnation, .slot = launch->u.launch.slot };
        children_spawn(body->children, launch, env);
    }
    arena_release(&arena);
}

static void do_exit(struct body *body, int code, const char *why)
{
    if (code)
        log_warning(AGENT, "ends: %s", why);
    else
        log_info(AGENT, "ends: %s", why);
    end(body, code);
}

void body_carry_out(struct body *body, const struct agent_action *action)
{
    switch (action->kind) {
    case AGENT_DO_DIAL: do_dial(body); break;
    case AGENT_DO_HANG_UP:
        log_info(NET, "driver %s: hung up: %s", driver_link_peer(body->driver), action->text);
        driver_link_hang_up(body->driver);
        break;
    case AGENT_DO_SEND_DRIVER: do_send_driver(body, action->msg); break;
    case AGENT_DO_SEND_WORKER: do_send_worker(body, action); break;
    case AGENT_DO_DROP:
        log_debug(WORKER, "connection %u: closed: %s", action->worker, action->text);
        workers_link_drop(body->workers, action->worker);
        break;
    case AGENT_DO_SPAWN: do_spawn(body, action->msg); break;
    case AGENT_DO_TERM: children_term(body->children, action->incarnation); break;
    case AGENT_DO_KILL: children_kill(body->children, action->incarnation); break;
    case AGENT_DO_EXIT: do_exit(body, action->code, action->text); break;
    case AGENT_DO_COUNT: PANIC("not an action");
    }
}
