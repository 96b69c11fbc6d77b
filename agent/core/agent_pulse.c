/*
 * agent_pulse.c: the agent's heartbeat to the driver, and what it says of each worker: the newest
 * commit in the memory of its slot, how long the worker has been silent, and the values that it has
 * reported. Called by agent.c with each TIMER, and by agent_driver.c when a heartbeat is due.
 * Invariant: a worker does nothing for its pulse. The agent reads commits and reports in memory
 * that it has anyway, so training is not slowed.
 */
#include "agent/core/agent_handlers.h"

#include "proto/report.h"

#include <string.h>

/* Notes the newest commit of each living worker, with the time at which it was first seen. `kept`
 * lists the commits that the snapshots hold now; NULL: none. */
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

/* A driver has said welcome, and has no report of this worker yet: the next heartbeat sends all. */
void agent_pulse_forget_told(struct agent_worker *worker)
{
    memset(worker->pulse.told, 0, sizeof(worker->pulse.told));
}

/* true: the driver does not have this report of the worker yet. `worker` is NULL if the agent has
 * forgotten the worker: no news then. */
static bool agent_pulse_is_news(const struct agent_worker *worker, const struct report_seen *seen)
{
    return worker && worker->pulse.told[seen->slot] != seen->said;
}

/* Sends heartbeats with all `pulses` (what the agent knows of each worker), and with those of the
 * reports that the driver does not have yet; at least one heartbeat. Without a connection no report
 * is noted as told to the driver, because a later driver has to hear it. */
static void agent_pulse_send(struct agent *agent, const struct msg_pulse *pulses, size_t count,
                             const struct report_list *reports)
{
    struct msg_reported *news = NULL;
    size_t news_count = 0, from = 0, news_from = 0;

    if (reports && reports->count && agent_link_is_open(agent)) {
        news = arena_alloc_array(&agent->list->memory, reports->count, sizeof(*news));
        if (!news)
            agent->list->failed = true;
    }
    for (size_t i = 0; news && i < reports->count; i++) {
        const struct report_seen *seen = &reports->items[i];
        struct agent_worker *worker = agent_roster_find(agent, seen->incarnation);
        int64_t age_us = agent->now_us - seen->report.said_us;

        if (!agent_pulse_is_news(worker, seen))
            continue;
        worker->pulse.told[seen->slot] = seen->said;
        news[news_count++] = (struct msg_reported){
            .incarnation = seen->incarnation,
            .name = agent_text(agent, "%s", seen->report.name),
            .bits = seen->report.bits,
            .said = seen->said,
            .round = seen->report.round,
            .commit = seen->report.commit,
            /* the worker writes this memory, so its time is not trusted */
            .age_us = seen->report.said_us > 0 && age_us > 0 ? age_us : 0,
        };
    }
    do {
        struct msg *msg = agent_msg(agent, MSG_BEAT, 0);
        size_t some = count - from < LIMIT_BEAT_PULSES ? count - from : LIMIT_BEAT_PULSES;
        size_t some_news =
            news_count - news_from < LIMIT_REPORTS ? news_count - news_from : LIMIT_REPORTS;

        msg->u.beat = (struct msg_beat){
            .sequence = ++agent->link.sequence,
            .answers = agent->link.heard,
            .pulses = {some ? pulses + from : NULL,          some     },
            .reports = { some_news ? news + news_from : NULL, some_news},
        };
        agent_link_send(agent, msg);
        from += some;
        news_from += some_news;
    } while (from < count || news_from < news_count);
}

/* The heartbeat is due: sends the pulse of each connected worker and its new reports, in several
 * messages if there are many workers. */
void agent_pulse_beat(struct agent *agent, const struct report_list *reports)
{
    struct msg_pulse *pulses = NULL;
    size_t count = 0;
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
    agent_pulse_send(agent, pulses, count, reports);
}

/* A worker is about to end: sends its reports to the driver now, in a heartbeat without pulses, if
 * the driver does not have them. */
void agent_pulse_report(struct agent *agent, const struct report_list *reports)
{
    bool news = false;

    for (size_t i = 0; reports && i < reports->count; i++) {
        const struct report_seen *seen = &reports->items[i];
        const struct agent_worker *worker = agent_roster_find(agent, seen->incarnation);

        news |= agent_pulse_is_news(worker, seen);
    }
    if (news && agent_link_is_open(agent))
        agent_pulse_send(agent, NULL, 0, reports);
}
