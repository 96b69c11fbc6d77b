/*
 * world_worker.c: a simulated worker process: its connection to its agent, its session, and its
 * life from the launch to the end that the agent sees.
 */
#include "base/mem.h"
#include "base/panic.h"
#include "proto/catalog.h"
#include "tests/lib/fault.h"
#include "tests/world/world_state.h"

#define SIGTERM_CODE 143
/* How long SIGKILL takes to end a worker that is stuck in a device call. */
#define STUCK_US (30 * TIME_S)

struct world_worker *world_worker_of(const struct world *world, uint64_t incarnation)
{
    for (size_t i = world->workers.count; i-- > 0;) {
        if (world->workers.items[i]->incarnation == incarnation)
            return world->workers.items[i];
    }
    return NULL;
}

struct world_worker *host_worker(const struct world *world, const struct world_host *host,
                                 uint32_t slot)
{
    for (size_t i = world->workers.count; i-- > 0;) {
        struct world_worker *worker = world->workers.items[i];

        if (worker->host == host && worker->slot == slot && worker->process.alive)
            return worker;
    }
    return NULL;
}

/* ---- between worker and agent ---------------------------------------------------------------- */

static int64_t in_order(struct world *world, int64_t *last_us)
{
    int64_t at_us = world->now_us + world_between(world, world->shape.local);

    if (at_us < *last_us)
        at_us = *last_us;
    *last_us = at_us;
    return at_us - world->now_us;
}

/* A message arrives at the agent; without a frame, the end of the connection. */
static void on_up(struct world *world, struct world_event *event)
{
    struct world_worker *worker = event->who;
    struct agent_event told = { .kind = AGENT_WORKER_MSG, .worker = worker->number };

    if (!process_takes(&worker->agent->process, event) || !worker->connected)
        return;
    if (event->frame) {
        told.msg = &event->frame->msg;
        told.pid = worker->pid;
    } else {
        told.kind = AGENT_WORKER_DOWN;
        worker->connected = false;
        worker->agent->workers.items[worker->number] = NULL;
    }
    agent_tell(world, worker->agent, &told);
}

static void send_up(struct world *world, struct world_worker *worker, const struct msg *msg)
{
    struct world_frame *frame = msg ? frame_make(msg, world->codec) : NULL;

    world_after(world, in_order(world, &worker->up_us), on_up, worker, frame, 0);
}

/* The agent's answer to HELLO: WELCOME begins the session; after any other message the worker
 * exits. */
static void greeted(struct world *world, struct world_worker *worker, const struct msg *msg)
{
    if (msg->type != MSG_WELCOME_WORKER) {
        world_mark(world, "worker %s:%u was not welcome", worker->host->name, worker->slot);
        worker_die(world, worker, ENDED_EXIT, 1);
        return;
    }
    worker->greeted = true;
    fault_hold(FAULT_ALLOC, false);
    worker->session =
        session_create(worker->incarnation, &msg->u.welcome_worker, world->now_us, NULL);
    fault_hold(FAULT_ALLOC, true);
    if (worker->session) {
        app_build(world, worker);
    } else {
        worker->blamed = true;
        worker_die(world, worker, ENDED_EXIT, 1);
    }
}

/* A message arrives at the worker; without a frame, the agent has closed the connection or is gone.
 */
static void on_down(struct world *world, struct world_event *event)
{
    struct world_worker *worker = event->who;
    struct session_event told = { .kind = SESSION_CLOSED };

    if (!process_takes(&worker->process, event))
        return;
    if (event->frame && !worker->greeted) {
        greeted(world, worker, &event->frame->msg);
        return;
    }
    if (event->frame)
        told = (struct session_event){ .kind = SESSION_MSG,
                                       .msg = &event->frame->msg,
                                       .counted = true,
                                       .check = worker->loop.checks };
    if (worker->session)
        worker_tell(world, worker, &told);
    else if (!event->frame)
        worker_die(world, worker, ENDED_EXIT, 1);
}

void worker_receive(struct world *world, struct world_worker *worker, const struct msg *msg)
{
    if (worker->process.alive)
        world_after(world, in_order(world, &worker->down_us), on_down, worker,
                    frame_make(msg, world->codec), 0);
}

void worker_disconnect(struct world *world, struct world_worker *worker)
{
    worker->agent->workers.items[worker->number] = NULL;
    worker->connected = false;
    world_after(world, in_order(world, &worker->down_us), on_down, worker, NULL, 0);
}

/* Connects the worker with its agent and sends HELLO; without an agent the worker exits. */
static void connect_agent(struct world *world, struct world_worker *worker)
{
    struct world_agent *agent = worker->agent;
    struct msg hello = { .type = MSG_HELLO_WORKER, .incarnation = worker->incarnation };
    uint32_t number = 0;

    if (!agent->process.alive) {
        worker_die(world, worker, ENDED_EXIT, 1);
        return;
    }
    while (number < agent->workers.count && agent->workers.items[number])
        number++;
    if (number == agent->workers.count)
        (void)WORLD_PUSH(&agent->workers);
    agent->workers.items[number] = worker;
    worker->number = number;
    worker->connected = true;
    hello.u.hello_worker =
        (struct msg_hello_worker){ .minor = PROTO_MINOR, .version = "0.1.0", .pid = worker->pid };
    send_up(world, worker, &hello);
}

/* ---- the worker's session -------------------------------------------------------------------- */

static void on_timer(struct world *world, struct world_event *event)
{
    struct world_worker *worker = event->who;
    struct session_event told = { .kind = SESSION_TIMER };

    if (!process_takes(&worker->process, event))
        return;
    worker->process.timer_us = TIME_NEVER;
    if (session_deadline(worker->session) <= world->now_us)
        worker_tell(world, worker, &told);
    else
        world_wake(world, &worker->process, session_deadline(worker->session), on_timer, worker);
}

void worker_tell(struct world *world, struct world_worker *worker, struct session_event *event)
{
    struct session_action_list *list = &worker->actions;
    int rc;

    ASSERT(worker->process.alive && worker->session && !list->count);
    event->now_us = world->now_us;
    fault_hold(FAULT_ALLOC, false);
    rc = session_step(worker->session, event, list);
    fault_hold(FAULT_ALLOC, true);
    if (rc) {
        session_action_list_clear(list);
        worker->blamed = true;
        worker_die(world, worker, ENDED_EXIT, 1);
        return;
    }
    for (size_t i = 0; i < list->count && worker->process.alive; i++) {
        if (list->items[i].kind == DO_SEND)
            send_up(world, worker, list->items[i].msg);
        else
            app_do(world, worker, &list->items[i]);
    }
    session_action_list_clear(list);
    if (worker->process.alive)
        world_wake(world, &worker->process, session_deadline(worker->session), on_timer, worker);
}

/* ---- the worker's process -------------------------------------------------------------------- */

static void on_spawned(struct world *world, struct world_event *event)
{
    struct world_worker *worker = event->who;
    struct agent_event told = { .kind = AGENT_SPAWNED,
                                .incarnation = worker->incarnation,
                                .pid = worker->pid };

    if (process_takes(&worker->agent->process, event))
        agent_tell(world, worker->agent, &told);
}

/* event->number is the incarnation. */
static void on_spawn_failed(struct world *world, struct world_event *event)
{
    struct world_agent *agent = event->who;
    struct agent_event told = { .kind = AGENT_SPAWN_FAILED,
                                .incarnation = event->number,
                                .code = HVD_E_NOTFOUND,
                                .text = "no such program" };

    if (process_takes(&agent->process, event))
        agent_tell(world, agent, &told);
}

static uint64_t newest_kept(const struct world_worker *worker)
{
    const struct world_kept *kept = &worker->agent->kept[worker->slot];

    return kept->count ? kept->items[0].commit : 0;
}

static void on_ended(struct world *world, struct world_event *event)
{
    struct world_worker *worker = event->who;
    struct agent_event told = { .kind = AGENT_ENDED,
                                .incarnation = worker->incarnation,
                                .ended = worker->ended,
                                .value = worker->value,
                                .witness = WITNESS_PIDFD,
                                .commit = newest_kept(worker) };

    if (!process_takes(&worker->agent->process, event))
        return;
    world_hold_look(world, worker->agent);
    if (worker->agent->process.alive)
        agent_tell(world, worker->agent, &told);
}

/* The process has booted: connects with its agent, or ends in the way that a command has chosen. */
static void on_booted(struct world *world, struct world_event *event)
{
    struct world_worker *worker = event->who;

    if (!process_takes(&worker->process, event))
        return;
    switch (worker->boot) {
    case BOOT_EXITS: worker_die(world, worker, ENDED_EXIT, worker->boot_value); break;
    case BOOT_SIGNAL: worker_die(world, worker, ENDED_SIGNAL, worker->boot_value); break;
    default:
        if (world->shape.plain)
            worker_die(world, worker, ENDED_EXIT, world->shape.plain_code);
        else
            connect_agent(world, worker);
    }
}

/* Starts the process of a LAUNCH; a spawn that a command makes fail is reported to the agent. */
void worker_spawn(struct world *world, struct world_agent *agent, const struct msg *launch)
{
    int64_t after_us = world_between(world, world->shape.spawn);
    struct world_worker *worker;
    struct world_host *host;

    if (agent->host->spawn_failures) {
        agent->host->spawn_failures--;
        agent->host->trouble_us = world->now_us;
        world_after(world, after_us, on_spawn_failed, agent, NULL, launch->incarnation);
        return;
    }
    host = agent->host;
    worker = world_alloc(sizeof(*worker));
    process_init(&worker->process);
    worker->host = host;
    worker->agent = agent;
    worker->incarnation = launch->incarnation;
    worker->pid = ++world->pid;
    worker->slot = launch->u.launch.slot;
    worker->born_us = world->now_us;
    worker->boot = host->boot;
    worker->boot_value = host->boot_value;
    worker->boot_us = host->boot_us;
    worker->blamed = host->boot != BOOT_USUAL;
    worker->loop.model.hash = world->shape.seed;
    session_action_list_init(&worker->actions);
    host->boot = BOOT_USUAL;
    host->boot_us = 0;
    check_spawn(world, worker);
    *WORLD_PUSH(&world->workers) = worker;
    worker->spawned_us = world->now_us + after_us;
    world_after(world, after_us, on_spawned, worker, NULL, 0);
    world_after(world, after_us + world_between(world, world->shape.boot) + worker->boot_us,
                on_booted, worker, NULL, 0);
}

/* Ends the process; its agent sees the end of the connection, and later the end of the process. */
void worker_die(struct world *world, struct world_worker *worker, enum msg_ended ended, int value)
{
    int64_t seen_us = world->now_us + world_between(world, world->shape.local);

    if (!worker->process.alive)
        return;
    process_end(&worker->process);
    worker->ended = ended;
    worker->value = value;
    worker->died_us = world->now_us;
    session_free(worker->session);
    worker->session = NULL;
    app_member_gone(world, worker);
    if (!worker->agent->process.alive)
        return;
    if (worker->connected)
        send_up(world, worker, NULL);
    if (world->shape.quirks && world_coin(world, 8))
        /* the agent sees the end of the socket before the end of the process */
        seen_us += 20 * TIME_MS;
    if (seen_us < worker->spawned_us)
        seen_us = worker->spawned_us;
    if (seen_us < worker->up_us)
        seen_us = worker->up_us; /* messages that the worker has sent arrive before its end */
    world_after(world, seen_us - world->now_us, on_ended, worker, NULL, 0);
}

static void on_terminated(struct world *world, struct world_event *event)
{
    struct world_worker *worker = event->who;

    if (process_takes(&worker->process, event))
        worker_die(world, worker, ENDED_EXIT, SIGTERM_CODE);
}

void worker_terminate(struct world *world, struct world_worker *worker)
{
    if (!worker->process.alive)
        return;
    worker->told_to_end = true;
    world_after(world, 5 * TIME_MS, on_terminated, worker, NULL, 0);
}

static void on_killed(struct world *world, struct world_event *event)
{
    worker_die(world, event->who, ENDED_SIGNAL, 9);
}

/* Kills the worker. For every second worker that is stuck in a device call the kernel waits for the
 * device, which takes time. */
void worker_kill(struct world *world, struct world_worker *worker)
{
    worker->told_to_end = true;
    if (world->shape.quirks && worker->loop.place == LOOP_STUCK && worker->incarnation % 2)
        world_after(world, STUCK_US, on_killed, worker, NULL, 0);
    else
        worker_die(world, worker, ENDED_SIGNAL, 9);
}

/* The agent is gone. The worker notices that its connection ends; at_once: the worker dies with the
 * agent's pid namespace. */
void worker_orphaned(struct world *world, struct world_worker *worker, bool at_once)
{
    if (at_once) {
        worker_die(world, worker, ENDED_SIGNAL, 9);
        return;
    }
    worker->connected = false;
    world_after(world, in_order(world, &worker->down_us), on_down, worker, NULL, 0);
    world_after(world, world->shape.config.lease_us / 2, on_killed, worker, NULL, 0);
}

void worker_release(struct world_worker *worker)
{
    process_end(&worker->process);
    session_free(worker->session);
    session_action_list_release(&worker->actions);
    mem_free(worker);
}
