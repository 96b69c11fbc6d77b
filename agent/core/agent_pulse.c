/*
 * agent_pulse.c: the agent's heartbeat to the driver, and what it says of each worker: the newest
 * commit in the memory of its slot, and how long the worker has been silent. Called by agent.c with
 * each TIMER, and by agent_driver.c when a heartbeat is due. Invariant: a worker does nothing for
 * its pulse. The agent reads the commit in memory that it has anyway, so training is not slowed.
 */
#include "agent/core/agent_handlers.h"

void agent_pulse_note(struct agent *agent, const struct msg_kept_list *kept)
{
    for (size_t i = 0; kept && i < kept->count; i++) {
        const struct msg_kept *item = &kept->items[i];
        struct agent_worker *worker =
            item->slot < LIMIT_SLOTS_PER_HOST ? agent->slots[item->slot].worker : NULL;

        if (!worker || worker->pulse.commit == item->commit)
            continue;
        worker->pulse.commit = item->commit;
        worker->pulse.commit_us = agent->now_us;
    }
}

/* Sends the heartbeat. Many workers take several. */
void agent_pulse_beat(struct agent *agent)
{
    struct msg_pulse *pulses = NULL;
    size_t count = 0, from = 0;
    int64_t beat_us = agent->config.beat_us;

    agent->link.beat_by_us = time_add(time_add(agent->now_us, beat_us), beat_us);
    if (agent->alive)
        pulses = arena_alloc_array(&agent->list->memory, agent->alive, sizeof(*pulses));
    if (agent->alive && !pulses)
        agent->list->failed = true;
    for (size_t i = 0; pulses && i < agent->workers.count; i++) {
        const struct agent_worker *worker = agent->workers.items[i];
        const struct agent_pulse *pulse = &worker->pulse;

        if (worker->contact.connected && agent_worker_is_alive(worker))
            pulses[count++] = (struct msg_pulse){
                .incarnation = worker->incarnation,
                .commit = pulse->commit,
                .commit_us = pulse->commit ? agent->now_us - pulse->commit_us : 0,
                .silent_us = agent->now_us - pulse->heard_us,
            };
    }
    do {
        struct msg *msg = agent_msg(agent, MSG_BEAT, 0);
        size_t some = count - from < LIMIT_BEAT_PULSES ? count - from : LIMIT_BEAT_PULSES;

        msg->u.beat = (struct msg_beat){
            .sequence = ++agent->link.sequence,
            .answers = agent->link.heard,
            .pulses = {some ? pulses + from : NULL, some},
        };
        agent_link_send(agent, msg);
        from += some;
    } while (from < count);
}
