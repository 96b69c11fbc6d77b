/*
 * agent.c: the agent's core from outside: created, stepped with one event at a time, asked for its
 * next deadline. Called by the event loop (agent/io/loop.c) and by the simulated world. Invariant:
 * a step that runs out of memory adds no action, and the agent must not be used after it.
 */
#include "agent/core/agent.h"

#include "agent/core/agent_handlers.h"
#include "base/mem.h"

#include <inttypes.h>

/* Makes an agent that has not begun (LIFE_NEW) and has no deadline; NULL: no memory is left. */
struct agent *agent_create(const struct agent_config *config, struct trace *trace)
{
    struct agent *agent = mem_zalloc(sizeof(*agent));

    ASSERT(config->job && config->host);
    ASSERT(config->beat_us > 0 && config->lease_us > 0 && config->redial_us > 0);
    ASSERT(config->redial_first_us > 0 && config->redial_first_us <= config->redial_us);
    ASSERT(config->driver_grace_us >= 0 && config->kill_grace_us >= 0);
    if (!agent)
        return NULL;
    agent->config = *config;
    agent->trace = trace;
    agent->link.due_us = TIME_NEVER;
    agent->link.beat_at_us = TIME_NEVER;
    /* before the first welcome, each wait between two dials is the longest one */
    agent->link.redial_us = config->redial_us;
    agent->grace_at_us = TIME_NEVER;
    agent->wake_at_us = TIME_NEVER;
    sm_init(&agent->life, &agent_life_machine, LIFE_NEW, agent, trace);
    sm_init(&agent->driver, &agent_link_machine, DRIVER_DOWN, agent, trace);
    return agent;
}

void agent_free(struct agent *agent)
{
    if (!agent)
        return;
    agent_roster_release(agent);
    mem_free(agent);
}

/* Returns the time of the next TIMER event: the event loop sends TIMER then, or later when the
 * machine is busy. */
int64_t agent_deadline(const struct agent *agent)
{
    const int64_t deadlines_us[] = { agent->link.due_us, agent->link.beat_at_us, agent->grace_at_us,
                                     agent->wake_at_us };
    int64_t earliest_us = TIME_NEVER;

    for (size_t i = 0; agent->life.state != LIFE_OVER && i < ARRAY_SIZE(deadlines_us); i++) {
        if (deadlines_us[i] < earliest_us)
            earliest_us = deadlines_us[i];
    }
    return earliest_us;
}

bool agent_is_ending(const struct agent *agent)
{
    return agent->life.state == LIFE_ENDING || agent->life.state == LIFE_OVER;
}

/* Handles TIMER: deadlines of workers, signals that have become due, and deadlines of the driver's
 * connection. */
static void agent_timer(struct agent *agent, const struct report_list *reports)
{
    int64_t deadline_us = agent_deadline(agent);
    int64_t late_us = agent->now_us > deadline_us ? agent->now_us - deadline_us : 0;

    /* A deadline that is seen very late means that this process did not run, for example on a
     * stopped machine. A peer that looks silent may have sent messages meanwhile, so every lease
     * begins anew. */
    if (late_us > 0 && late_us >= agent->config.lease_us / 2) {
        trace_add(agent->trace, agent->now_us,
                  "agent: slept for %" PRId64 " us: all leases begin anew", late_us);
        if (agent_link_is_open(agent))
            agent_link_renew(agent);
        for (size_t i = 0; i < agent->workers.count; i++) {
            struct agent_contact *contact = &agent->workers.items[i]->contact;

            if (contact->silent_at_us < TIME_NEVER)
                contact->silent_at_us = time_add(agent->now_us, contact->lease_us);
        }
    }
    if (agent->now_us >= agent->wake_at_us) {
        agent->wake_at_us = TIME_NEVER;
        for (size_t i = 0; i < agent->workers.count; i++) {
            struct agent_worker *worker = agent->workers.items[i];

            agent_worker_timer(agent, worker);
            agent_process_signal(agent, worker);
            agent_wake_at(agent, worker->contact.silent_at_us);
        }
    }
    agent_driver_timer(agent, reports);
}

/* Handles one event: passes each kind to the file that handles it. An event before START or after
 * the last action, EXIT, is ignored. When no memory is left, the list keeps none of this event's
 * actions, and HVD_E_NOMEM is returned. */
int agent_step(struct agent *agent, const struct agent_event *event, struct agent_action_list *list)
{
    size_t before = list->count;
    struct agent_worker *worker;

    ASSERT(event->now_us >= agent->now_us && event->now_us >= 0);
    ASSERT(!list->failed);
    agent->now_us = event->now_us;
    if (agent->life.state == LIFE_OVER ||
        (agent->life.state == LIFE_NEW && event->kind != AGENT_START))
        return 0;
    agent->list = list;
    switch (event->kind) {
    case AGENT_START:
        if (agent->life.state == LIFE_NEW) { /* a second START is ignored */
            sm_move(&agent->life, LIFE_ALONE, agent->now_us, "started");
            agent_link_await_first(agent);
            agent_link_dial(agent);
        }
        break;
    case AGENT_TIMER:
        agent_pulse_note(agent, event->kept);
        agent_timer(agent, event->reports);
        break;
    case AGENT_DRIVER_UP: agent_driver_up(agent, event->kept, event->text); break;
    case AGENT_DRIVER_DOWN: agent_driver_down(agent, event->text); break;
    case AGENT_REPORTS: agent_pulse_report(agent, event->reports); break;
    case AGENT_DRIVER_MSG: agent_driver_msg(agent, event->msg); break;
    case AGENT_WORKER_MSG: agent_worker_msg(agent, event->worker, event->msg); break;
    case AGENT_WORKER_DOWN: agent_worker_down(agent, event->worker); break;
    case AGENT_SPAWNED: agent_process_spawned(agent, event->incarnation, event->pid); break;
    case AGENT_SPAWN_FAILED: agent_process_spawn_failed(agent, event); break;
    case AGENT_ENDED: agent_process_ended(agent, event); break;
    case AGENT_EXAMINED:
        worker = agent_roster_find(agent, event->incarnation);
        if (worker && agent_worker_is_alive(worker))
            agent_autopsy_of_living(agent, worker, event->remains);
        break;
    case AGENT_OUTPUT:
        worker = agent_roster_find(agent, event->incarnation);
        if (worker)
            agent_output_take(agent, worker, event->stream, event->data);
        else
            trace_add(agent->trace, agent->now_us,
                      "worker: output of %" PRIu64 ", forgotten: dropped", event->incarnation);
        break;
    case AGENT_NOTICE: agent_driver_notice(agent, event->left_us, event->text); break;
    case AGENT_KEY_TAKEN: agent_driver_key_taken(agent, event->epoch); break;
    case AGENT_CHECKPOINT_RESULT: agent_checkpoint_result(agent, event->msg); break;
    case AGENT_DRIVER_MOVED: agent_driver_moved(agent, event->text); break;
    case AGENT_STOP:
        agent_end(agent, agent->config.kill_grace_us, HVD_OK,
                  agent_text(agent, "%s", event->text ? event->text : "stopped"));
        break;
    case AGENT_EVENT_COUNT: PANIC("not an event");
    }
    agent->list = NULL;
    if (list->failed)
        list->count = before;
    return list->failed ? HVD_E_NOMEM : 0;
}
