#include "driver/core/agents.h"
#include "driver/core/change.h"
#include "driver/core/finish.h"
#include "driver/core/roster.h"
#include "driver/core/round.h"
#include "driver/core/tell.h"

/* What the workers of a host may have to be told again. */
struct needs {
    bool member; /* one that is in the round, and may not have entered it */
    bool next;   /* one that is in the round that is being prepared */
    bool tied;   /* one that leaves at the agreed check */
    bool any;    /* one that was in a round */
};

static struct needs needs_of(const struct core_host *host)
{
    struct needs needs = { 0 };

    for (uint32_t slot = 0; slot < host->seat_count; slot++) {
        const struct worker *worker = host->seats[slot].worker;

        if (!worker)
            continue;
        needs.member |= worker_state(worker) == WORKER_MEMBER && !worker->entered;
        needs.next |= worker->next_rank != RANK_NONE;
        needs.tied |= worker->tied;
        needs.any |= worker->rank != RANK_NONE;
    }
    return needs;
}

static void resume_round(struct core *core, struct core_host *host, const struct needs *needs)
{
    if (core->current.revoked || (!needs->member && !needs->tied))
        return;
    if (core->current.cause == CAUSE_SWITCH) {
        tell_host(core, host, change_prepare_msg(core, &core->current));
        tell_host(core, host, change_switch_msg(core));
    }
    tell_host(core, host, round_msg(core));
    if (needs->member)
        round_wait_again(core);
}

static void resume_change(struct core *core, struct core_host *host, const struct needs *needs)
{
    if (!core->next.number) {
        if (needs->any && core->rounds > core->current.number)
            tell_host(core, host, change_abandon_msg(core, "it was abandoned while you were away"));
        return;
    }
    if (needs->next || needs->any)
        tell_host(core, host, change_prepare_msg(core, &core->next));
    if (needs->any && job_state(core) == JOB_PENDING)
        tell_host(core, host, change_pending_msg(core));
}

/* By name: one whose ROUND was lost does not know that it was a member. */
static void resume_revoked(struct core *core, struct core_host *host)
{
    for (uint32_t slot = 0; slot < host->seat_count; slot++) {
        const struct worker *worker = host->seats[slot].worker;
        struct msg *msg;

        if (!worker || worker_state(worker) != WORKER_REVOKED)
            continue;
        msg = round_revoke_msg(core, NULL, "it was revoked while you were away");
        msg->incarnation = worker->incarnation;
        tell_host(core, host, msg);
    }
}

/* One that still trains learns from a REVOKE, or from a ROUND without it, that it is out. */
static void resume_leaver(struct core *core, const struct worker *worker)
{
    struct msg *msg =
        core->current.revoked ? round_revoke_msg(core, NULL, "it has to go") : round_msg(core);

    msg->incarnation = worker->incarnation;
    if (core->current.number)
        tell_host(core, worker->host, msg);
    tell_drain(core, worker, 0, "it has to go");
}

static void resume_leavers(struct core *core, struct core_host *host)
{
    for (uint32_t slot = 0; slot < host->seat_count; slot++) {
        const struct worker *worker = host->seats[slot].worker;

        if (worker && worker_state(worker) == WORKER_LEAVING && !worker->tied && !worker->left)
            resume_leaver(core, worker);
    }
}

/* It may keep what the next round begins with, or what this one is about to get. */
static bool may_be_needed(const struct core *core)
{
    return core->floor && (job_state(core) == JOB_RECOVERING ||
                           core->current.entered < core->current.members.count);
}

void agents_resume(struct core *core, struct core_host *host)
{
    struct needs needs = needs_of(host);

    core->look_at_rounds = true; /* a joiner there can be told again */
    if (job_state(core) >= JOB_STOPPING) {
        finish_tell_stop(core, host);
        return;
    }
    if (job_state(core) == JOB_FINISHING) {
        finish_resume(core, host);
        return;
    }
    resume_revoked(core, host);
    resume_round(core, host, &needs);
    resume_change(core, host, &needs);
    resume_leavers(core, host);
    if (!host->listed && !host->taken && core->discovered && !may_be_needed(core)) {
        host->ending = true;
        finish_tell_stop(core, host); /* nothing runs there, and nothing will */
    }
}
