/*
 * world_host.c: a simulated machine with an agent's core: its start, its end, a loss of power, and
 * the actions of the agent. To tell a core something is to give the core an event and carry out the
 * actions that follow.
 */
#include "tests/world/world_host.h"

#include "base/mem.h"
#include "base/panic.h"
#include "tests/lib/fault.h"
#include "tests/world/world_liar.h"
#include "tests/world/world_state.h"

#include <stdio.h>
#include <string.h>

#define SSH_TIMEOUT_US (5 * TIME_S)
#define REDIAL_US      (300 * TIME_MS)

bool host_reachable(const struct world_host *host)
{
    return host->up && !host->cut[END_DRIVER] && !host->cut[END_AGENT];
}

/* ---- the agent's process -------------------------------------------------------------------- */

static void on_key_taken(struct world *world, struct world_event *event)
{
    struct world_agent *agent = event->who;
    struct agent_event told = { .kind = AGENT_KEY_TAKEN, .epoch = event->number };

    if (process_takes(&agent->process, event))
        agent_tell(world, agent, &told);
}

static void take_key(struct world_agent *agent, uint64_t epoch)
{
    if (agent->epoch < epoch)
        agent->epoch = epoch;
}

/* Carries out one action of the agent's core. */
static void perform(struct world *world, struct world_agent *agent,
                    const struct agent_action *action)
{
    struct world_worker *worker = NULL;

    if (action->kind == AGENT_DO_SEND_WORKER || action->kind == AGENT_DO_DROP) {
        ASSERT(action->worker < agent->workers.count);
        worker = agent->workers.items[action->worker];
    } else if (action->kind == AGENT_DO_TERM || action->kind == AGENT_DO_KILL) {
        worker = world_worker_of(world, action->incarnation);
        if (worker && worker->agent != agent)
            worker = NULL;
    }
    switch (action->kind) {
    case AGENT_DO_DIAL: link_dial(world, agent); break;
    case AGENT_DO_HANG_UP:
        agent->dialling = 0;
        if (agent->link)
            link_close(world, agent->link, END_AGENT);
        break;
    case AGENT_DO_SEND_DRIVER:
        if (agent->link)
            link_send(world, agent->link, END_DRIVER, lie_instead(world, agent->host, action->msg));
        break;
    case AGENT_DO_SEND_WORKER:
        if (worker)
            worker_receive(world, worker, action->msg);
        break;
    case AGENT_DO_DROP:
        if (worker)
            worker_disconnect(world, worker);
        break;
    case AGENT_DO_SPAWN: worker_spawn(world, agent, action->msg); break;
    case AGENT_DO_TERM:
        if (worker)
            worker_terminate(world, worker);
        break;
    case AGENT_DO_KILL:
        if (worker)
            worker_kill(world, worker);
        break;
    case AGENT_DO_TAKE_KEY:
        take_key(agent, action->msg->u.rekey.epoch);
        world_after(world, 0, on_key_taken, agent, NULL, agent->epoch);
        break;
    case AGENT_DO_HOLD: world_hold(world, agent, action->msg); break;
    case AGENT_DO_SAVE: world_hold_save(world, agent, action->msg); break;
    case AGENT_DO_RELEASE: world_hold_end(agent, action->msg); break;
    case AGENT_DO_EXIT: agent_die(world, agent, false); break;
    default: PANIC("an agent's action of kind %d", action->kind);
    }
}

static void on_timer(struct world *world, struct world_event *event)
{
    struct world_agent *agent = event->who;
    struct agent_event told = { .kind = AGENT_TIMER };

    if (!process_takes(&agent->process, event))
        return;
    agent->process.timer_us = TIME_NEVER;
    if (agent_deadline(agent->core) <= world->now_us)
        agent_tell(world, agent, &told);
    else
        world_wake(world, &agent->process, agent_deadline(agent->core), on_timer, agent);
}

void agent_tell(struct world *world, struct world_agent *agent, struct agent_event *event)
{
    struct agent_action_list *list = &agent->actions;
    struct msg_kept items[WORLD_SLOTS_MAX];
    struct msg_kept_list kept = { items, 0 };
    char contact[40];
    int rc;

    ASSERT(agent->process.alive && !list->count);
    event->now_us = world->now_us;
    for (uint32_t slot = 0; slot < WORLD_SLOTS_MAX; slot++)
        if (agent->kept[slot].count)
            items[kept.count++] =
                (struct msg_kept){ .slot = slot, .commit = agent->kept[slot].items[0].commit };
    if (event->kind == AGENT_TIMER || event->kind == AGENT_DRIVER_UP)
        event->kept = &kept;
    if (event->kind == AGENT_DRIVER_UP) {
        snprintf(contact, sizeof(contact), "state=%s", agent->host->address);
        event->text = contact;
    }
    fault_hold(FAULT_ALLOC, false);
    rc = agent_step(agent->core, event, list);
    fault_hold(FAULT_ALLOC, true);
    if (rc) {
        agent_action_list_clear(list);
        world_mark(world, "the agent of %s ends: memory is out", agent->host->name);
        agent->host->trouble_us = world->now_us;
        agent_die(world, agent, false);
        return;
    }
    for (size_t i = 0; i < list->count && agent->process.alive; i++)
        perform(world, agent, &list->items[i]);
    agent_action_list_clear(list);
    if (agent->process.alive)
        world_wake(world, &agent->process, agent_deadline(agent->core), on_timer, agent);
}

/* Starts an agent on the host, which ends its predecessor, and dials the driver. */
void agent_begin(struct world *world, struct world_host *host)
{
    struct agent_event start = { .kind = AGENT_START };
    struct world_agent *agent = world_alloc(sizeof(*agent));
    const struct core_config *config;

    process_init(&agent->process);
    agent->host = host;
    agent->number = ++world->agent_id;
    agent_action_list_init(&agent->actions);
    *WORLD_PUSH(&world->agents) = agent;
    host->agent = agent;
    host->astray = false; /* the driver that started the agent has told it the address */
    config = &world->shape.config;
    agent->config = (struct agent_config){ .job = config->job,
                                           .host = host->name,
                                           .agent = host->agent->number,
                                           .cores = 8,
                                           .memory_bytes = (uint64_t)1 << 30,
                                           .min_np = config->min_np,
                                           .max_np = config->max_np,
                                           .beat_us = config->beat_us,
                                           .lease_us = config->lease_us,
                                           .driver_grace_us = config->driver_grace_us,
                                           .redial_first_us = REDIAL_US,
                                           .redial_us = REDIAL_US,
                                           .kill_grace_us = config->kill_grace_us,
                                           .stall_warning_us = config->stall_warning_us,
                                           .stall_shutdown_us = TIME_NEVER };
    fault_hold(FAULT_ALLOC, false);
    agent->core = agent_create(&agent->config, NULL);
    fault_hold(FAULT_ALLOC, true);
    if (agent->core)
        agent_tell(world, agent, &start);
    else
        agent_die(world, agent, false);
}

/* The agent dies. silently: its machine is gone too, so no peer gets a message. */
void agent_die(struct world *world, struct world_agent *agent, bool silently)
{
    if (!agent->process.alive)
        return;
    process_end(&agent->process);
    agent->dialling = 0;
    if (agent->link && silently) {
        agent->link->ends[END_AGENT].open = false;
        agent->link = NULL;
    } else if (agent->link) {
        link_close(world, agent->link, END_AGENT);
    }
    for (size_t i = 0; i < world->workers.count; i++) {
        struct world_worker *worker = world->workers.items[i];

        if (worker->agent == agent && worker->process.alive)
            worker_orphaned(world, worker, silently);
    }
    for (size_t i = 0; i < WORLD_SLOTS_MAX; i++)
        agent->kept[i].count = 0;
    agent_free(agent->core);
    agent->core = NULL;
}

void agent_release(struct world_agent *agent)
{
    process_end(&agent->process);
    agent_free(agent->core);
    agent_action_list_release(&agent->actions);
    VEC_RELEASE(&agent->workers);
    mem_free(agent);
}

/* ---- ssh ------------------------------------------------------------------------------------ */

/* The ssh command ends: an agent starts on the host with the number event->number, if the host can
 * be reached. The start brings the key that was the host's newest when the command began; an agent
 * that runs already gets that key. */
static void on_ssh(struct world *world, struct world_event *event)
{
    struct world_driver *driver = event->who;
    struct world_host *host = world->hosts.items[event->number % WORLD_HOSTS_MAX];
    struct event told = { .kind = EVENT_AGENT_FAILED,
                          .host = host->name,
                          .text = "ssh: connect: no route to host" };

    if (host_reachable(host)) {
        if (!host->agent || !host->agent->process.alive)
            agent_begin(world, host);
        take_key(host->agent, event->number / WORLD_HOSTS_MAX);
        return;
    }
    if (process_takes(&driver->process, event))
        driver_step(world, driver, &told);
}

void host_start_agent(struct world *world, struct world_driver *driver, const char *name)
{
    for (size_t i = 0; i < world->hosts.count; i++) {
        const struct world_host *host = world->hosts.items[i];

        if (strcmp(host->name, name) != 0)
            continue;
        world_after(
            world, host_reachable(host) ? world_between(world, world->shape.ssh) : SSH_TIMEOUT_US,
            on_ssh, driver, NULL, i + WORLD_HOSTS_MAX * driver_newest_key(driver, host->name));
        return;
    }
    world_violate(world, "4", "an agent is wanted on %s, which there is not", name);
}
