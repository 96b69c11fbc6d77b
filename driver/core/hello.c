/*
 * hello.c: handles HELLO_AGENT; agents.c calls it. The message comes from a new agent, from an
 * agent that lost its connection, or because the driver is new (PROTOCOL.md, Greeting). The workers
 * that the agent reports are compared with the table of workers. A difference is one of three: a
 * LAUNCH was lost, a worker has ended, or a worker that was counted as dead still runs. Then the
 * messages that the agent may have missed are sent again, as they stand now (section 7, "frames are
 * lost with a connection").
 */
#include "driver/core/hello.h"

#include "driver/core/authority.h"
#include "driver/core/boot.h"
#include "driver/core/checkpoint.h"
#include "driver/core/elect.h"
#include "driver/core/finish.h"
#include "driver/core/keys.h"
#include "driver/core/loss.h"
#include "driver/core/over.h"
#include "driver/core/roster.h"
#include "driver/core/round.h"
#include "driver/core/slots.h"
#include "driver/core/step.h"
#include "driver/core/tell.h"

#include <inttypes.h>
#include <string.h>

/* Returns what the hello reports of this worker; NULL: the hello does not name the worker. */
static const struct msg_slot_report *hello_find_report(const struct msg_hello_agent *hello,
                                                       uint64_t incarnation)
{
    for (size_t i = 0; i < hello->slots.count; i++)
        if (hello->slots.items[i].incarnation == incarnation)
            return &hello->slots.items[i];
    return NULL;
}

/*
 * Notes what the hello says of the agent: which start of the agent it is, which commits the agent
 * keeps, and where it serves them. The addresses of the host, which its workers have sent in READY,
 * stay valid only for the same start of the agent. `met`: this driver has heard an agent of the
 * host before. A driver that has taken over has not. Such a driver counts the agent as the same
 * start if a worker that said READY still runs on the host.
 */
static void hello_judge_agent(struct core *core, struct core_host *host,
                              const struct msg_hello_agent *hello, bool met)
{
    bool same = met && host->agent_id == hello->agent;
    const struct worker *worker;
    const char *absurd = NULL;

    /* After a takeover (!met) the driver knows no number of the agent: the workers that the hello
     * reports show whether it is the same start. */
    for (size_t slot = 0; !met && (worker = roster_next_on(host, &slot));)
        same = same || (worker->joined && hello_find_report(hello, worker->incarnation));
    if (!same)
        host->addresses.count = 0;
    /* After a takeover no worker may be left here that would say READY, and a drained host gets
     * none: then the hello alone says where the agent serves the commits that it keeps. */
    if (!host->addresses.count && hello->addresses.count) {
        authority_judge_contacts(core, host, &hello->addresses, &absurd);
        if (absurd)
            authority_refuse(core, host, absurd);
        else if (!roster_keep_contacts(host, &hello->addresses))
            core_fail(core);
    }
    if (host->agent_id == hello->agent)
        CORE_TRACE(
            core, FACTS(.kind = KIND_AGENT_BACK, .host = host->name, .size = hello->slots.count),
            "%s: the agent of this host is back with %zu workers", host->name, hello->slots.count);
    else
        CORE_DETAIL(
            core,
            FACTS(.kind = KIND_AGENT_CONNECTED, .host = host->name, .size = hello->slots.count),
            "%s: an agent of this host says hello with %zu workers", host->name,
            hello->slots.count);
    host->agent_id = hello->agent;

    /* The hello names all commits that the agent keeps; all other commits of this host are gone. */
    for (uint32_t slot = 0; slot < host->slot_count; slot++)
        host->slots[slot].commit = 0;
    for (size_t i = 0; i < hello->kept.count; i++) {
        const struct msg_kept *kept = &hello->kept.items[i];

        if (!elect_believes(core, kept->commit))
            authority_refuse(core, host,
                             "the agent keeps a commit of a round of which no agent was ever told");
        else if (roster_slots(core, host, kept->slot + 1))
            host->slots[kept->slot].commit = kept->commit;
    }
}

/* Compares the table of workers with the workers that the agent reports. `same_agent`: this is the
 * start of the agent that the driver knows. Then a LAUNCHING worker that is not reported has not
 * been launched: its LAUNCH is repeated. Any other worker that is not reported has ended. After
 * another start of the agent a LAUNCHING worker is not launched again, because the earlier agent
 * may have started it. `met` is false after a takeover: then a worker that never joined may not
 * have been launched at all, and the host is not to blame for its absence. */
static void hello_compare_workers(struct core *core, struct core_host *host,
                                  const struct msg_hello_agent *hello, bool same_agent, bool met)
{
    const struct ending gone = { .ended = ENDED_SILENT,
                                 .text =
                                     "the agent of this host was restarted, and the worker is gone",
                                 .excused = true,
                                 .of_host = !host->draining };
    struct worker *worker;
    bool blame = false;
    char name[WORKER_NAME_MAX];

    for (size_t slot = 0; (worker = roster_next_on(host, &slot));) {
        if (hello_find_report(hello, worker->incarnation))
            continue;
        if (same_agent && worker->state == WORKER_LAUNCHING) {
            slots_launch_again(core, worker);
            continue;
        }
        blame = blame || (worker_is_alive(worker) && (met || worker->joined));
        loss_ended(core, worker, &gone);
    }
    if (blame)
        loss_charge_host(core, host, "the agent of this host has lost its workers");

    for (size_t i = 0; i < hello->slots.count && !core->step.failed; i++) {
        const struct msg_slot_report *report = &hello->slots.items[i];

        worker = roster_worker(core, report->incarnation);
        if (report->ended != ENDED_NOT) {
            /* The report says that the worker has ended. If this driver knows the worker on this
             * host, the worker's last output and its EXITED follow the hello. If not, FORGET tells
             * the agent to drop what it keeps of the worker. */
            if (!worker || worker->host != host)
                tell_forget(core, host, report->incarnation);
            continue;
        }
        if (worker && worker->state != WORKER_DOOMED) {
            boot_on_launched(core, worker);
            continue;
        }
        /* This worker counts as dead, because of another host that also reported it. One of the two
         * agents lies, and a worker that counts as dead is killed on each host that reports it. */
        if (worker && worker->host != host) {
            /* tell_kill needs no more of a worker than its incarnation and its host. */
            struct worker here = { .incarnation = report->incarnation, .host = host };

            tell_kill(core, &here, 0 /* SIGKILL at once */, "the worker was counted as dead");
            continue;
        }
        /* PROTOCOL.md, section 7, "a host that was counted as dead comes back": its workers have
         * been replaced, so they are killed. */
        if (!worker && (report->slot >= host->slot_count || !host->slots[report->slot].worker))
            worker = roster_add(core, report->incarnation, host, report->slot, WORKER_DOOMED);
        if (!worker) /* no memory, or the slot has another worker, launched by this driver */
            continue;
        CORE_TRACE(core, FACTS(.kind = KIND_WORKER_KILLED, OF_WORKER(worker)),
                   "%s still runs, and is killed: this worker was counted as dead",
                   worker_name(worker, name));
        tell_kill(core, worker, 0 /* SIGKILL at once */, "the worker was counted as dead");
    }
}

/* Sends again to this host's agent what its workers may have missed of the rounds: the current
 * round and, if it began by a switch, the messages of that switch; then the next round, if a change
 * is under way, or ABANDON, if a change was abandoned. */
static void hello_resume_rounds(struct core *core, struct core_host *host)
{
    const struct round *current = &core->current, *next = &core->next;
    /* Each flag is true if some worker on this host: is a member of the current round and does not
     * train in it yet (`entering`); leaves by the switch to the current round, at the check that
     * the members have agreed on (`leaving`); is in the round that is being prepared (`joining`);
     * has a rank in the current round (`trained`). */
    bool entering = false, leaving = false, joining = false, trained = false;
    const struct worker *worker;

    for (size_t slot = 0; (worker = roster_next_on(host, &slot));) {
        entering |= worker->state == WORKER_MEMBER && !worker->entered;
        leaving |= worker->may_block_switch;
        joining |= worker->next_rank != RANK_NONE;
        trained |= worker->rank != RANK_NONE;
    }
    /* A leaving worker needs the current round and its SWITCH_AT too, because SWITCH_AT names the
     * check at which it leaves. */
    if (current->state != ROUND_REVOKED && (entering || leaving)) {
        if (current->cause == CAUSE_SWITCH) {
            tell_host(core, host, msg_of_prepare(core, current));
            tell_host(core, host, msg_of_switch(core));
        }
        tell_host(core, host, msg_of_round(core));
        if (entering)
            round_wait_enter(core);
    }
    if (next->number && (joining || trained))
        tell_host(core, host, msg_of_prepare(core, next));
    /* PENDING asks a worker that trains for its next call of hvd_state_check; a joiner makes none.
     */
    if (next->number && trained && core->job == JOB_PENDING)
        tell_host(core, host, msg_of_pending(core));
    /* rounds.told is the highest number that a round was prepared with. No round is being prepared
     * now, so the rounds after the current one, up to that number, were abandoned. */
    if (!next->number && trained && core->rounds.told > current->number)
        tell_host(core, host,
                  msg_of_abandon(core, "the round was abandoned while the agent was away"));
}

/* Sends again what the workers of this host may have missed while their agent had no connection.
 * A worker that got a message before is not harmed when the message comes twice. */
static void hello_resume(struct core *core, struct core_host *host)
{
    const struct worker *worker;
    struct msg *out;
    /* The list of hosts is known and lacks this host, and no worker runs here (`taken`). */
    bool unused = !host->listed && !host->taken && core->listing.discovered;
    /* The agent may keep the commit that the next round begins with, or that members of the current
     * round still fetch. */
    bool may_be_needed = core->rounds.resume_min_commit &&
                         (core->job == JOB_RECOVERING || !round_all_entered(&core->current));

    core_want_round(core); /* READY workers on this host may join a round now. */
    if (core->job >= JOB_STOPPING) {
        over_tell_stop(core, host);
        return;
    }
    if (core->job == JOB_FINISHING) {
        finish_resume(core, host);
        return;
    }
    /* Each revoked worker gets a REVOKE of its own: a worker whose ROUND was lost does not know
     * that it was a member. */
    for (size_t slot = 0; (worker = roster_next_on(host, &slot));) {
        if (worker->state != WORKER_REVOKED)
            continue;
        out = msg_of_revoke(core, NULL, "the round was revoked while the agent was away");
        out->incarnation = worker->incarnation;
        tell_host(core, host, out);
    }
    hello_resume_rounds(core, host);
    /* A leaving worker that still trains learns from a REVOKE, or from a ROUND that does not name
     * it, that it is no member. */
    for (size_t slot = 0; (worker = roster_next_on(host, &slot));) {
        if (worker->state != WORKER_LEAVING || worker->may_block_switch || worker->left)
            continue;
        out = core->current.state == ROUND_REVOKED
                  ? msg_of_revoke(core, NULL, "the worker has to leave")
                  : msg_of_round(core);
        out->incarnation = worker->incarnation;
        if (core->current.number) /* 0: no round has begun yet, and both messages name one */
            tell_host(core, host, out);
        tell_drain(core, worker, 0 /* at once */, "the worker has to leave");
    }
    if (unused && !may_be_needed) {
        host->ending = true;
        over_tell_stop(core, host); /* no worker runs on this host, and none will */
    }
}

/* Answers REFUSED over the connection `peer`, and closes the connection. `name`: the host whose key
 * the connection has proved. A refused agent is in no table; so `stranger` is made here to stand
 * for it, because tell_host needs a host that is connected (AGENT_THERE). */
static void hello_refuse(struct core *core, uint32_t peer, const char *name, const char *why)
{
    struct core_host *host = roster_find_host(core, name), stranger = { .agent = AGENT_THERE };
    struct msg *answer = tell_msg(core, MSG_REFUSED, 0, 0);

    stranger.peer = peer;
    if (host)
        authority_refuse(core, host, why);
    else
        CORE_WARN(core, FACTS(.kind = KIND_AGENT_REFUSED, .cause = why), "an agent is refused: %s",
                  why);
    answer->u.refused = (struct msg_refused){ .code = HVD_E_MISMATCH, .text = why };
    tell_host(core, &stranger, answer);
    tell_close(core, &stranger, why);
}

/* Handles HELLO_AGENT, the first message of a connection. A refused agent gets REFUSED. Otherwise
 * the connection replaces an older one of the host, and the agent gets WELCOME_AGENT and everything
 * that it may have missed. `met`: this driver has heard an agent of the host before. */
void hello_on_agent(struct core *core, const struct event *event)
{
    const struct msg *msg = event->msg;
    const struct msg_hello_agent *hello = &msg->u.hello_agent;
    const char *why = authority_judge_hello(core, event);
    struct core_host *host;
    bool same_agent, met;

    /* The agent names a higher term than this driver has. PROTOCOL.md, Greeting: only the job's
     * file says which driver owns the job. An agent may lie about its term, so the driver reads
     * that file and does not simply end. */
    if (!why && msg->term > core->term) {
        why = tell_text(core,
                        "the agent obeys term %" PRIu64 ", but this driver has term %" PRIu64
                        "; the job's file says which driver owns the job",
                        msg->term, core->term);
        tell_check_owner(core);
    }
    if (why) {
        hello_refuse(core, event->peer, event->host, why);
        return;
    }
    host = roster_host(core, hello->host);
    if (!host)
        return;
    if (host->agent == AGENT_THERE) {
        tell_close(core, host, "the agent of this host has dialled again");
        roster_disconnect(core, host);
        checkpoint_on_lost(core, host);
    }
    if (!roster_connect(core, host, event->peer))
        return;
    met = host->agent_id != 0;
    host->minor = hello->minor;
    /* A driver that has taken over counts any agent of the host as the same agent. */
    same_agent = !met || host->agent_id == hello->agent;
    hello_judge_agent(core, host, hello, met);
    /* The lease of the agent and the time limits of its workers count from now on. */
    core_want_timer(core, core->now_us);
    tell_host(core, host, tell_welcome(core));
    keys_greet(core, host, event->key_version);
    round_tell_state_key_again(core, host);
    checkpoint_greet(core, host);
    hello_compare_workers(core, host, hello, same_agent, met);
    hello_resume(core, host);
    slots_open(core, host);
}
