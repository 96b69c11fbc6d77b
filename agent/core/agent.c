#include "agent/core/agent.h"

#include "agent/core/agent_state.h"
#include "base/mem.h"

static void check_life(const void *owner, unsigned state)
{
    const struct agent *agent = owner;

    if (state == LIFE_ALONE)
        ASSERT(!agent_driver_is_open(agent));
    if (state == LIFE_SERVING)
        ASSERT(agent_driver_is_open(agent) && agent->grace_at_us == TIME_NEVER);
    if (state == LIFE_OVER)
        ASSERT(agent->alive == 0);
}

static const struct sm_state life_states[LIFE_COUNT] = {
    [LIFE_NEW] = {"new",      SM_BIT(LIFE_ALONE),                         SM_INITIAL},
    [LIFE_ALONE] = { "alone",   SM_BIT(LIFE_SERVING) | SM_BIT(LIFE_ENDING), 0         },
    [LIFE_SERVING] = { "serving", SM_BIT(LIFE_ALONE) | SM_BIT(LIFE_ENDING),   0         },
    [LIFE_ENDING] = { "ending",  SM_BIT(LIFE_OVER),                          0         },
    [LIFE_OVER] = { "over",    0,                                          SM_FINAL  },
};

static const struct sm_type life_type = { "agent", life_states, LIFE_COUNT, check_life };

static const struct sm_state driver_states[DRIVER_COUNT] = {
    [DRIVER_DOWN] = {"down",      SM_BIT(DRIVER_DIALLING),                       SM_INITIAL},
    [DRIVER_DIALLING] = { "dialling", SM_BIT(DRIVER_GREETING) | SM_BIT(DRIVER_DOWN), 0         },
    [DRIVER_GREETING] = { "greeting", SM_BIT(DRIVER_OPEN) | SM_BIT(DRIVER_DOWN),     0         },
    [DRIVER_OPEN] = { "open",     SM_BIT(DRIVER_DOWN),                           0         },
};

static const struct sm_type driver_type = { "driver", driver_states, DRIVER_COUNT, NULL };

struct agent *agent_create(const struct agent_config *config, struct trace *trace)
{
    struct agent *agent = mem_zalloc(sizeof(*agent));

    ASSERT(config->job && config->host);
    ASSERT(config->beat_us > 0 && config->lease_us > 0 && config->redial_us > 0);
    ASSERT(config->driver_grace_us >= 0 && config->kill_grace_us >= 0);
    if (!agent)
        return NULL;
    agent->config = *config;
    agent->trace = trace;
    agent->link_at_us = TIME_NEVER;
    agent->beat_at_us = TIME_NEVER;
    agent->grace_at_us = TIME_NEVER;
    agent->wake_at_us = TIME_NEVER;
    sm_init(&agent->life, &life_type, LIFE_NEW, agent, trace);
    sm_init(&agent->driver, &driver_type, DRIVER_DOWN, agent, trace);
    return agent;
}

void agent_free(struct agent *agent)
{
    if (!agent)
        return;
    agent_roster_release(agent);
    mem_free(agent);
}

static int64_t earliest(int64_t a_us, int64_t b_us)
{
    return a_us < b_us ? a_us : b_us;
}

int64_t agent_deadline(const struct agent *agent)
{
    if (agent->life.state == LIFE_OVER)
        return TIME_NEVER;
    return earliest(earliest(agent->link_at_us, agent->beat_at_us),
                    earliest(agent->grace_at_us, agent->wake_at_us));
}

bool agent_is_ending(const struct agent *agent)
{
    return agent->life.state == LIFE_ENDING || agent->life.state == LIFE_OVER;
}

bool agent_is_unmet(const struct agent *agent)
{
    return agent->life.state == LIFE_ALONE && !agent->term;
}

void agent_first_driver(struct agent *agent)
{
    int64_t patience_us = earliest(agent->config.driver_grace_us, LIMIT_FIRST_DRIVER_US);

    agent->grace_at_us = time_add(agent->now_us, patience_us);
}

static void start(struct agent *agent)
{
    sm_move(&agent->life, LIFE_ALONE, agent->now_us, "started");
    agent_first_driver(agent);
    agent_driver_dial(agent);
}

/* A deadline that is seen much too late was slept through by this process itself (a stopped
 * machine): who was silent meanwhile may have spoken, and is given a new lease. */
static void forgive_silence(struct agent *agent, int64_t late_us)
{
    trace_add(agent->trace, agent->now_us, "agent: slept for %lld us: all leases begin anew",
              (long long)late_us);
    if (agent_driver_is_open(agent))
        agent->link_at_us = time_add(agent->now_us, agent->config.lease_us);
    for (size_t i = 0; i < agent->workers.count; i++) {
        struct agent_worker *worker = agent->workers.items[i];

        if (worker->silent_at_us < TIME_NEVER)
            worker->silent_at_us = time_add(agent->now_us, worker->lease_us);
    }
}

static void wake_workers(struct agent *agent)
{
    if (agent->now_us < agent->wake_at_us)
        return;
    agent->wake_at_us = TIME_NEVER;
    for (size_t i = 0; i < agent->workers.count; i++) {
        struct agent_worker *worker = agent->workers.items[i];

        agent_worker_timer(agent, worker);
        agent_process_timer(agent, worker);
        agent_wake_at(agent, worker->silent_at_us);
    }
}

static void timer(struct agent *agent)
{
    int64_t deadline_us = agent_deadline(agent);

    if (agent->now_us > deadline_us && agent->now_us - deadline_us >= agent->config.lease_us / 2)
        forgive_silence(agent, agent->now_us - deadline_us);
    wake_workers(agent);
    agent_driver_timer(agent);
}

static void dispatch(struct agent *agent, const struct agent_event *event)
{
    switch (event->kind) {
    case AGENT_START: break; /* twice: it has started */
    case AGENT_TIMER: timer(agent); break;
    case AGENT_DRIVER_UP: agent_driver_up(agent, event->kept); break;
    case AGENT_DRIVER_DOWN: agent_driver_down(agent, event->text); break;
    case AGENT_DRIVER_MSG: agent_driver_msg(agent, event->msg); break;
    case AGENT_WORKER_MSG: agent_worker_msg(agent, event->worker, event->msg); break;
    case AGENT_WORKER_DOWN: agent_worker_down(agent, event->worker); break;
    case AGENT_SPAWNED: agent_process_spawned(agent, event->incarnation, event->pid); break;
    case AGENT_SPAWN_FAILED: agent_process_spawn_failed(agent, event); break;
    case AGENT_ENDED: agent_process_ended(agent, event); break;
    case AGENT_OUTPUT: agent_output_take(agent, event); break;
    case AGENT_NOTICE: agent_driver_notice(agent, event->left_us, event->text); break;
    case AGENT_DRIVER_MOVED: agent_driver_moved(agent, event->text); break;
    case AGENT_STOP:
        agent_end(agent, agent->config.kill_grace_us, HVD_OK,
                  agent_text(agent, "%s", event->text ? event->text : "stopped"));
        break;
    case AGENT_EVENT_COUNT: PANIC("not an event");
    }
}

int agent_step(struct agent *agent, const struct agent_event *event, struct agent_action_list *list)
{
    size_t before = list->count;

    ASSERT(event->now_us >= agent->now_us && event->now_us >= 0);
    ASSERT(!list->failed);
    agent->now_us = event->now_us;
    agent->list = list;
    if (agent->life.state == LIFE_NEW && event->kind == AGENT_START)
        start(agent);
    else if (agent->life.state != LIFE_NEW && agent->life.state != LIFE_OVER)
        dispatch(agent, event);
    agent->list = NULL;
    if (list->failed)
        list->count = before;
    return list->failed ? HVD_E_NOMEM : 0;
}
