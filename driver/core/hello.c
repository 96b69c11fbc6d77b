#include "driver/core/hello.h"

#include "driver/core/agents.h"
#include "driver/core/clock.h"
#include "driver/core/elect.h"
#include "driver/core/finish.h"
#include "driver/core/loss.h"
#include "driver/core/roster.h"
#include "driver/core/seats.h"
#include "driver/core/tell.h"
#include "proto/catalog.h"

#include <inttypes.h>
#include <string.h>

/* Why this agent cannot be one of ours; NULL when it can. */
static const char *judge(struct core *core, const struct msg_hello_agent *hello)
{
    struct hvd_err err;

    if (strcmp(hello->job, core->config.job) != 0)
        return "it belongs to another job";
    if (host_name_check(hello->host, strlen(hello->host), &err))
        return tell_text(core, "its host's name: %s", err.text);
    if (!hello->agent)
        return "it does not say which start of the agent it is";
    for (size_t i = 0; i < hello->slots.count; i++) {
        const struct msg_slot_report *report = &hello->slots.items[i];
        const struct worker *worker = roster_worker(core, report->incarnation);

        if (!report->incarnation || report->incarnation > core->incarnations)
            return tell_text(core, "it reports worker #%" PRIu64 ", which was never launched",
                             report->incarnation);
        if (worker &&
            (strcmp(worker->host->name, hello->host) != 0 || worker->slot != report->slot))
            return tell_text(core, "it reports worker #%" PRIu64 ", which runs elsewhere",
                             report->incarnation);
    }
    return NULL;
}

static void refuse(struct core *core, uint32_t peer, const char *why)
{
    struct core_host nobody = { .agent = AGENT_THERE, .peer = peer };
    struct msg *msg = tell_msg(core, MSG_REFUSED, 0, 0);

    CORE_TRACE(core, "an agent is refused: %s", why);
    msg->u.refused = (struct msg_refused){ .code = HVD_E_MISMATCH, .text = why };
    tell_host(core, &nobody, msg);
    tell_close(core, &nobody, why);
}

static void welcome(struct core *core, struct core_host *host)
{
    struct msg *msg = tell_msg(core, MSG_WELCOME_AGENT, 0, 0);

    msg->u.welcome_agent = (struct msg_welcome_agent){
        .minor = PROTO_MINOR,
        .version = HVD_VERSION_TEXT,
        .beat_us = core->config.beat_us,
        .lease_us = core->config.lease_us,
        .driver_grace_us = core->config.driver_grace_us,
    };
    tell_host(core, host, msg);
}

static const struct msg_slot_report *find_report(const struct msg_hello_agent *hello,
                                                 uint64_t incarnation)
{
    for (size_t i = 0; i < hello->slots.count; i++)
        if (hello->slots.items[i].incarnation == incarnation)
            return &hello->slots.items[i];
    return NULL;
}

/* Workers that the agent says nothing of. Of the same agent, a LAUNCH has not reached it; any other
 * worker is gone. Another agent may have started it, so that it is not launched again. To a driver
 * that has taken over (not met) it may never have been told: then nobody is to blame. */
static void judge_missing(struct core *core, struct core_host *host,
                          const struct msg_hello_agent *hello, bool same_agent, bool met)
{
    const struct ending gone = { .ended = ENDED_SILENT,
                                 .text = "its agent was restarted, and it is gone",
                                 .excused = true };
    bool blame = false;

    for (uint32_t slot = 0; slot < host->seat_count; slot++) {
        struct worker *worker = host->seats[slot].worker;

        if (!worker || find_report(hello, worker->incarnation))
            continue;
        if (same_agent && worker_state(worker) == WORKER_LAUNCHING) {
            seats_launch_again(core, worker);
            continue;
        }
        blame = blame || (worker_is_alive(worker) && (met || worker->joined));
        loss_ended(core, worker, &gone);
    }
    if (blame)
        loss_charge_host(core, host, "its agent has lost its workers");
}

static void kill_doomed(struct core *core, const struct worker *worker)
{
    char name[WORKER_NAME_MAX];

    CORE_TRACE(core, "%s still runs, and is killed: it was counted as dead",
               worker_name(worker, name));
    tell_kill(core, worker, 0, "it was counted as dead");
}

/* A worker that was counted as dead, and is not. It has been replaced, so it has to end. */
static void adopt_doomed(struct core *core, struct core_host *host,
                         const struct msg_slot_report *report)
{
    struct worker *worker = NULL;

    if (report->slot >= host->seat_count || !host->seats[report->slot].worker)
        worker = roster_add(core, report->incarnation, host, report->slot, WORKER_DOOMED);
    if (worker)
        kill_doomed(core, worker);
}

/* Of a known one that has ended nothing is said here: its last words follow, and then its EXITED.
 */
static void judge_report(struct core *core, struct core_host *host,
                         const struct msg_slot_report *report)
{
    struct worker *worker = roster_worker(core, report->incarnation);

    if (report->ended != ENDED_NOT && !worker)
        tell_forget(core, host, report->incarnation);
    else if (report->ended != ENDED_NOT)
        return;
    else if (!worker)
        adopt_doomed(core, host, report);
    else if (worker_state(worker) == WORKER_DOOMED)
        kill_doomed(core, worker);
    else
        seats_on_launched(core, worker);
}

/* Where workers have said that their agent serves commits: true of this start of it only. To a
 * driver that has taken over it is the same if a worker still runs there that said so. */
static void judge_addresses(struct core_host *host, const struct msg_hello_agent *hello, bool met)
{
    bool same = met && host->agent_id == hello->agent;

    for (uint32_t slot = 0; slot < host->seat_count && !met; slot++) {
        const struct worker *worker = host->seats[slot].worker;

        same = same || (worker && worker->joined && find_report(hello, worker->incarnation));
    }
    if (!same)
        host->addresses.count = 0;
}

/* What an earlier agent kept is gone with it. */
static void note_kept(struct core *core, struct core_host *host,
                      const struct msg_hello_agent *hello)
{
    for (uint32_t slot = 0; slot < host->seat_count; slot++)
        host->seats[slot].commit = 0;
    for (size_t i = 0; i < hello->kept.count; i++) {
        const struct msg_kept *kept = &hello->kept.items[i];

        if (elect_believes(core, kept->commit) && roster_seats(core, host, kept->slot + 1))
            host->seats[kept->slot].commit = kept->commit;
    }
}

void hello_on_agent(struct core *core, uint32_t peer, const struct msg *msg)
{
    const struct msg_hello_agent *hello = &msg->u.hello_agent;
    const char *why = judge(core, hello);
    struct core_host *host;
    bool same_agent, met;

    if (msg->term > core->term && !strcmp(hello->job, core->config.job)) {
        finish_replaced(core, hello->host, msg->term);
        return;
    }
    if (why) {
        refuse(core, peer, why);
        return;
    }
    host = roster_host(core, hello->host);
    if (!host)
        return;
    if (host->agent == AGENT_THERE) {
        tell_close(core, host, "its agent has dialled again");
        roster_disconnect(core, host);
    }
    if (!roster_connect(core, host, peer))
        return;
    met = host->agent_id != 0;
    /* To a driver that has taken over, whoever is there is the same. */
    same_agent = !host->agent_id || host->agent_id == hello->agent;
    judge_addresses(host, hello, met);
    CORE_TRACE(core, "%s: %s with %zu workers", host->name,
               host->agent_id == hello->agent ? "its agent is back" : "an agent says hello",
               hello->slots.count);
    host->agent_id = hello->agent;
    clock_want(core, core->now_us); /* from now on its lease runs, and the limits of its workers */
    welcome(core, host);
    note_kept(core, host, hello);
    judge_missing(core, host, hello, same_agent, met);
    for (size_t i = 0; i < hello->slots.count && !core->broken; i++)
        judge_report(core, host, &hello->slots.items[i]);
    agents_resume(core, host);
    seats_open(core, host);
}
