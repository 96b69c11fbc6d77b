/*
 * join.c: chooses joiners, which are new members, for change.c and recovery.c. Joiners are taken in
 * the order of the listed hosts: docs/stories.md, `old_hosts_first`. The field next_rank of a
 * joiner is set only while the choice is made.
 */
#include "driver/core/join.h"

#include "driver/core/over.h"
#include "driver/core/roster.h"
#include "driver/core/round.h"
#include "driver/core/tell.h"

#include <inttypes.h>

/* True: the worker holds a commit from which a round may still begin (resume_min_commit or a newer
 * one). */
static bool join_holds_min_commit(const struct core *core, const struct worker *worker)
{
    for (size_t i = 0; i < worker->held_count; i++)
        if (worker->held[i].commit >= core->rounds.resume_min_commit)
            return true;
    return false;
}

/* Appends READY workers to core->next until it has --max-np members. `only_holders`: only workers
 * that hold resume_min_commit or a newer commit. */
static void join_add(struct core *core, bool only_holders)
{
    for (size_t i = 0; i < core->listing.list.count; i++) {
        struct core_host *host = core->listing.list.items[i];

        if (host->agent != AGENT_THERE)
            /* A member whose agent is not connected would keep the other members waiting. */
            continue;
        for (uint32_t slot = 0; slot < host->listed_slots && host->taken; slot++) {
            struct worker *worker = host->slots[slot].worker;

            if (core->next.members.count >= core->config.max_np)
                return;
            if (worker && worker->state == WORKER_READY && !worker->has_to_go &&
                worker->next_rank == RANK_NONE &&
                (!only_holders || join_holds_min_commit(core, worker)) &&
                round_add(core, &core->next, worker->incarnation))
                worker->next_rank = (uint32_t)core->next.members.count - 1;
        }
    }
}

/* Appends READY workers to core->next, up to --max-np members. During the choice `next_rank` marks
 * the chosen workers, so that the second pass of join_add takes no worker twice; the last loop
 * removes these marks. */
void join_add_joiners(struct core *core)
{
    struct round *next = &core->next;
    size_t first = next->members.count;
    bool lacks_holder = core->rounds.resume_min_commit && core->job == JOB_RECOVERING;

    for (size_t i = 0; lacks_holder && i < first; i++)
        lacks_holder = !join_holds_min_commit(core, roster_worker(core, next->members.items[i]));
    /* There may be more READY workers than the round can have members. If no survivor holds
     * resume_min_commit or a newer commit, joiners that hold it are taken first. */
    if (lacks_holder)
        join_add(core, true /* only holders of a commit to resume from */);
    join_add(core, false /* any worker */);
    for (size_t i = first; i < next->members.count; i++)
        roster_worker(core, next->members.items[i])->next_rank = RANK_NONE;
}

/* True: --reset-limit allows one more round. False: it does not, and the job was ended with this
 * error. The first round of a job (rounds.told is 0) is always allowed. */
bool join_allowed(struct core *core)
{
    if (!core->rounds.told || core->config.reset_limit == CORE_NO_RESET_LIMIT ||
        core->rounds.resets < core->config.reset_limit)
        return true;
    over_fail(core, tell_text(core,
                              "change %" PRIu32
                              " of the membership is one more than --reset-limit %" PRIu32
                              " allows; raise --reset-limit, or leave it out",
                              core->rounds.resets + 1, core->config.reset_limit));
    return false;
}
