/*
 * loop_actions.c: carries out the actions of the agent's core. Called by loop.c for each action of
 * a step, in order. Invariant: an action that fails at once becomes an event for the core, which
 * waits until all actions of the step are done. So the core sees no failure in the middle of a
 * step.
 */
#include "agent/io/loop_internal.h"
#include "agent/processes/worker_env.h"
#include "proto/codec.h"
#include "wire/tls.h"

#define ENV_BYTES (64 * 1024 * 1024) /* bytes; a LAUNCH cannot carry a larger environment */

/* Logs an action that failed; `what` names it. The failure concerns only one worker or connection,
 * and the agent goes on. If no memory is left the agent ends. */
static void actions_complain(struct agent_loop *loop, int rc, const char *what,
                             const struct hvd_err *err)
{
    if (rc == HVD_E_NOMEM)
        loop_give_up(loop, rc, what);
    else
        log_error(AGENT, "%s: %s", what, err->text);
}

/* Sends a message to a worker. A welcome takes another path, because it needs the address at which
 * this agent serves commits. */
static void actions_send_worker(struct agent_loop *loop, const struct agent_action *action)
{
    struct hvd_err err = { 0 };
    int rc = 0;

    if (action->msg->type == MSG_WELCOME_WORKER) {
        rc = loop_commits_welcome(loop, action->worker, action->msg, &err);
    } else {
        /* The bytes of a message that goes to several workers are kept, so it is encoded only
         * once. */
        if (loop->frame.msg != action->msg) {
            buf_clear(&loop->frame.bytes);
            rc = msg_encode(action->msg, &loop->frame.bytes, &err);
            loop->frame.msg = rc ? NULL : action->msg;
        }
        if (!rc) {
            rc = workers_link_send_frame(loop->workers, action->worker, loop->frame.bytes.data,
                                         loop->frame.bytes.length);
            if (rc)
                err_set(&err, rc, "%s", err_text(rc));
        }
    }
    if (!rc)
        return;
    /* A worker that misses a message would wait for ever: its connection is closed, and the core
     * gets WORKER_DOWN, because a drop by the agent itself causes no such event. */
    actions_complain(loop, rc, "a message to a worker cannot be sent", &err);
    workers_link_drop(loop->workers, action->worker);
    loop_put_off(loop,
                 &(struct agent_event){ .kind = AGENT_WORKER_DOWN, .worker = action->worker });
}

/* Takes the key of a REKEY, unless this agent has a later one. Without memory for the new key the
 * agent keeps its old key and sends no answer. The missing answer tells the driver that this agent
 * may still have only the old key. */
static void actions_take_key(struct agent_loop *loop, const struct msg *msg)
{
    const struct msg_bytes *key = &msg->u.rekey.key;
    uint64_t epoch = msg->u.rekey.epoch;

    if (key->length != HOST_KEY_BYTES) {
        log_warning(NET,
                    "the driver has sent a new key of %zu bytes, and a key has %d: the agent keeps "
                    "its old key; install the same version of hvd-elastic on both sides",
                    key->length, HOST_KEY_BYTES);
        return;
    }
    if (epoch > loop->config.epoch) {
        if (tls_dial_with(loop->config.tls, key->at)) {
            log_error(NET,
                      "no memory for the new key of this host: the agent keeps its old key and its "
                      "connection; if the connection breaks, the driver starts the agent anew with "
                      "the new key");
            return;
        }
        loop->config.epoch = epoch;
        log_info(NET, "the driver has sent a new key: the agent dials with it from now on");
    }
    loop_put_off(loop,
                 &(struct agent_event){ .kind = AGENT_KEY_TAKEN, .epoch = loop->config.epoch });
}

/* Carries out one action that the core has decided. A failure becomes an event for the core
 * (loop_put_off), or ends the agent. */
void loop_carry_out(struct agent_loop *loop, const struct agent_action *action)
{
    const struct worker_env_config config = { loop->config.socket->name, loop->config.core.job,
                                              loop->config.core.host, loop->config.env };
    const struct msg *msg = action->msg;
    const char *const *env;
    struct arena arena;
    struct hvd_err err = { 0 };
    int rc;

    switch (action->kind) {
    case AGENT_DO_DIAL:
        if (driver_link_dial(loop->driver, &err))
            loop_put_off(loop,
                         &(struct agent_event){ .kind = AGENT_DRIVER_DOWN, .text = err.text });
        break;
    case AGENT_DO_HANG_UP:
        log_info(NET, "the agent closes the connection to the driver at %s: %s",
                 driver_link_peer(loop->driver), action->text);
        driver_link_hang_up(loop->driver);
        break;
    case AGENT_DO_SEND_DRIVER:
        rc = driver_link_send(loop->driver, msg, &err);
        if (rc)
            actions_complain(loop, rc, "a message to the driver cannot be sent", &err);
        break;
    case AGENT_DO_SEND_WORKER: actions_send_worker(loop, action); break;
    case AGENT_DO_DROP:
        log_debug(WORKER, "the agent closes connection %u of a worker: %s", action->worker,
                  action->text);
        workers_link_drop(loop->workers, action->worker);
        break;
    case AGENT_DO_SPAWN:
        /* the entry comes first: children_spawn may report a failure at once */
        arena_init(&arena, ENV_BYTES);
        env = worker_env_make(&config, msg, &arena);
        if (!env || VEC_RESERVE(&loop->started, 1, UINT32_MAX)) {
            loop_give_up(loop, HVD_E_NOMEM, "the environment of a worker cannot be made");
        } else {
            loop->started.items[loop->started.count++] =
                (struct started){ .incarnation = msg->incarnation, .slot = msg->u.launch.slot };
            children_spawn(loop->children, msg, env);
        }
        arena_release(&arena);
        break;
    case AGENT_DO_TAKE_KEY: actions_take_key(loop, msg); break;
    case AGENT_DO_HOLD:
    case AGENT_DO_SAVE:
        if (checkpoint_thread_ask(loop->checkpoint, msg))
            loop_give_up(loop, HVD_E_NOMEM, "a request for a checkpoint cannot be kept");
        break;
    case AGENT_DO_RELEASE:
        checkpoint_thread_release(loop->checkpoint, msg->u.release.number);
        break;
    case AGENT_DO_TERM: children_term(loop->children, action->incarnation); break;
    case AGENT_DO_KILL: children_kill(loop->children, action->incarnation); break;
    case AGENT_DO_EXIT:
        if (action->code)
            log_warning(AGENT, "the agent ends: %s", action->text);
        else
            log_info(AGENT, "the agent ends: %s", action->text);
        loop_end(loop, action->code);
        break;
    case AGENT_DO_COUNT: PANIC("not an action");
    }
}
