/*
 * slots.c: launches workers into free slots and sends workers away from slots that are given up.
 * core.c calls it when a file has requested it (core_want_slots): after a change of hosts, agents,
 * workers or the blacklist. This file sends away only workers that are in no round; change.c
 * handles members that have to go.
 */
#include "driver/core/slots.h"

#include "driver/core/assign.h"
#include "driver/core/keys.h"
#include "driver/core/loss.h"
#include "driver/core/over.h"
#include "driver/core/places.h"
#include "driver/core/progress.h"
#include "driver/core/roster.h"
#include "driver/core/round.h"
#include "driver/core/step.h"
#include "driver/core/tell.h"

/* True: workers may be launched on this host: it is listed and offers slots, its agent is not
 * ending, and no drain of the host or blacklist entry forbids it. Single slots may be forbidden all
 * the same (slots_may_use). */
static bool slots_may_use_host(const struct core *core, const struct core_host *host)
{
    struct blacklist_verdict verdict =
        blacklist_verdict(&core->blacklist, host->name, BLACKLIST_WHOLE_HOST, core->now_us);

    return host->listed && host->listed_slots && !host->draining && !host->ending &&
           verdict.state == BLACKLIST_OK;
}

/* True: neither a drain nor the blacklist forbids a launch in this slot. A worker that is in the
 * slot does not matter. */
static bool slots_may_use(const struct core *core, const struct core_host *host, uint32_t slot)
{
    struct blacklist_verdict verdict =
        blacklist_verdict(&core->blacklist, host->name, slot, core->now_us);

    return !host->slots[slot].draining && verdict.state == BLACKLIST_OK;
}

/* True: the agent may keep for this slot a commit that the job can resume from. */
static bool slots_may_hold_commit(const struct core *core, const struct core_host *host,
                                  uint32_t slot)
{
    return host->slots[slot].commit >= core->rounds.resume_min_commit;
}

/* A choice of free slots for launches: on the listed hosts with an index from `from` to `to` - 1,
 * and at most `most` slots. */
struct slots_choice {
    size_t from, to, most;
    /* true: only slots for which the agent may keep a commit that the job can resume from */
    bool only_holders;
};

/* Writes the free slots of a choice to `list`, by host and slot; `list` NULL: the slots are only
 * counted. Returns their number. A slot in which a command has ended with 0 (`done`) is not
 * free. */
static size_t slots_list(const struct core *core, const struct slots_choice *choice,
                         struct assignment *list)
{
    size_t count = 0;

    for (size_t i = choice->from; i < choice->to && count < choice->most; i++) {
        const struct core_host *host = core->listing.list.items[i];

        if (host->agent != AGENT_THERE || !slots_may_use_host(core, host))
            continue;
        for (uint32_t k = 0; k < host->listed_slots && count < choice->most; k++) {
            const struct core_slot *slot = &host->slots[k];

            if (slot->worker || slot->done || !slots_may_use(core, host, k) ||
                (choice->only_holders && !slots_may_hold_commit(core, host, k)))
                continue;
            if (list)
                list[count] = (struct assignment){ .host = host->listing_index, .slot = k };
            count++;
        }
    }
    return count;
}

/* Sends LAUNCH to the worker's agent. `fresh`: the place (ranks and sizes) that was computed for
 * this launch. As long as no worker has joined, places.c may choose another one, because the ranks
 * of plain commands stay the same. */
static void slots_tell_launch(struct core *core, const struct worker *worker,
                              const struct place *fresh)
{
    struct msg *msg = tell_msg(core, MSG_LAUNCH, worker->incarnation, 0);
    const struct place *place = core->launch.anyone_joined ? fresh : places_of(core, worker, fresh);

    msg->u.launch = (struct msg_launch){
        .slot = worker->slot,
        .cwd = "", /* driver/io adds the folder, the command and the environment */
        .rank = place->rank,
        .size = place->size,
        .local_rank = place->local_rank,
        .local_size = place->local_size,
        .cross_rank = place->cross_rank,
        .cross_size = place->cross_size,
    };
    tell_host(core, worker->host, msg);
}

/* Sends LAUNCH again, because the first one may be lost. PROTOCOL.md, LAUNCH: an agent starts only
 * one process for an incarnation, so a second LAUNCH does no harm. The second LAUNCH tells the
 * worker the last rank of all; the rank matters only until a round gives the worker its rank. */
void slots_launch_again(struct core *core, const struct worker *worker)
{
    uint32_t size = (uint32_t)(core->roster.staying ? core->roster.staying : 1);
    const struct place place = { .rank = size - 1, .size = size, .local_size = 1, .cross_size = 1 };

    ASSERT(worker->state == WORKER_LAUNCHING);
    slots_tell_launch(core, worker, &place);
}

/* Launches workers in the slots of the choice. The slots are counted first and listed then, because
 * the list needs memory of its exact size. */
static void slots_launch(struct core *core, struct slots_choice choice)
{
    uint64_t known = core->roster.incarnations;
    size_t told = core->launch.anyone_joined ? 0 : core->launch.told.count;
    /* New ranks follow those of all workers that stay, and all that were told to commands. */
    uint32_t first = (uint32_t)(told > core->roster.staying ? told : core->roster.staying);
    size_t count = slots_list(core, &choice, NULL);
    struct assignment *list = count ? tell_alloc(core, count, sizeof(*list)) : NULL;
    struct worker *worker;
    char name[WORKER_NAME_MAX];

    if (!list)
        return;
    if (known + count >= LIMIT_INCARNATIONS) {
        over_fail(core, tell_text(core,
                                  "the job has launched %d workers, the most that a job can "
                                  "launch (LIMIT_INCARNATIONS); start the job anew",
                                  LIMIT_INCARNATIONS));
        return;
    }
    slots_list(core, &choice, list);
    /* false: the failed starts of a slot have ended the job */
    for (size_t i = 0; i < count; i++)
        if (!progress_on_launch(core, core->listing.list.items[list[i].host], list[i].slot))
            return;
    assign_places(list, count, first);
    for (size_t i = 0; i < count; i++) {
        worker = roster_add(core, known + 1 + i, core->listing.list.items[list[i].host],
                            list[i].slot, WORKER_LAUNCHING);
        if (!worker)
            return;
        if (!core->launch.anyone_joined)
            places_claim(core, worker);
    }
    for (size_t i = 0; i < count && !core->step.failed; i++) {
        struct journal_record *record = tell_record(core, JOURNAL_LAUNCH);

        worker = roster_worker(core, known + 1 + i);
        record->incarnation = worker->incarnation;
        record->host = tell_text(core, "%s", worker->host->name);
        record->slot = worker->slot;
        record->wall_us = core->wall_us;
        if (!core->launch.anyone_joined)
            record->value = (int32_t)worker->host->slots[worker->slot].place.rank + 1;
        worker_limit(core, worker, core->config.start_timeout_us,
                     "the worker did not call hvd_elastic_run within --start-timeout");
        CORE_DETAIL(core, FACTS(.kind = KIND_WORKER_LAUNCHED, OF_WORKER(worker)), "%s is launched",
                    worker_name(worker, name));
        slots_tell_launch(core, worker, &list[i].place);
    }
}

/* Returns how many more workers may be launched before the job has --max-np. A slot whose command
 * is done counts as one with a worker. */
static size_t slots_wanted(const struct core *core)
{
    size_t used = core->roster.staying + (size_t)core->roster.done_slots;

    return used < core->config.max_np ? core->config.max_np - used : 0;
}

/* True: the job has started and is not ending, so workers may be launched. */
static bool slots_may_launch(const struct core *core)
{
    return core->job >= JOB_GATHERING && core->job <= JOB_RECOVERING;
}

/* The agent of this host has just connected. If workers may be launched (`gate_open`: np slots have
 * been available once), the slots of this host get workers at once. If not, and the slots of all
 * connected hosts now are np or more, slots_reconcile is requested: it decides at the end of the
 * step whether the gate opens, and launches on all hosts in their order. */
void slots_open(struct core *core, const struct core_host *host)
{
    if (!slots_may_launch(core) || !host->listed)
        return;
    if (core->launch.gate_open)
        slots_launch(core, (struct slots_choice){ host->listing_index, host->listing_index + 1,
                                                  slots_wanted(core), false /* any slot */ });
    else if (core->roster.offered_slots >= core->config.np)
        core_want_slots(core);
}

/* Starts agents on as many hosts, in order, as are needed for max_np slots. Also starts agents on
 * hosts whose agent may keep a commit that no live worker has, and on all hosts while no agent is
 * heard. */
static void slots_start_agents(struct core *core)
{
    uint64_t slots = 0;

    for (size_t i = 0; i < core->listing.list.count; i++) {
        struct core_host *host = core->listing.list.items[i];
        bool wanted = slots < core->config.max_np || core->leases.alone;

        for (uint32_t k = 0; core->recovery.holder_missing && k < host->listed_slots; k++)
            wanted = wanted || slots_may_hold_commit(core, host, k);
        if (!wanted && !core->recovery.holder_missing)
            break;
        if (!wanted || !slots_may_use_host(core, host))
            continue;
        if (host->agent == AGENT_NONE && core->now_us < host->again_us) {
            /* no cooldown may end at again_us, so no other timer would start a step then */
            core_want_timer(core, host->again_us);
        } else if (host->agent == AGENT_NONE) {
            roster_move_agent(host, AGENT_STARTING);
            host->started_us = core->now_us;
            core_want_timer(core, time_add(core->now_us, core->config.agent_start_us));
            keys_start_agent(core, host);
        }
        if (host->agent != AGENT_THERE) {
            slots += host->listed_slots;
            continue;
        }
        for (uint32_t k = 0; k < host->listed_slots; k++)
            slots += host->slots[k].worker || slots_may_use(core, host, k);
    }
}

/* True: the first launch has to wait for agents. docs/stories.md, `two_of_six_slots`: in a job of a
 * fixed size (--max-np equals -np) the ranks follow the order of the listed hosts. So the first
 * launch waits for hosts whose agents are still starting; agents start only on hosts whose slots
 * are needed. A job that may grow does not wait. */
static bool slots_waits_for_agents(const struct core *core)
{
    if (core->config.max_np > core->config.np) /* the job may grow */
        return false;
    for (size_t i = 0; i < core->listing.list.count; i++)
        if (core->listing.list.items[i]->agent == AGENT_STARTING)
            return true;
    return false;
}

/* Tells a READY worker, which is in no round, to leave at once. */
static void slots_dismiss_ready(struct core *core, struct worker *worker, const char *why)
{
    ASSERT(worker->state == WORKER_READY);
    round_lost(core, worker, WORKER_READY, why);
    tell_drain(core, worker, 0 /* at once */, why);
    roster_move(core, worker, WORKER_LEAVING);
    worker_limit(core, worker, core->config.stall_us, "the worker was told to leave, but did not");
}

/* Makes the slots as the hosts and settings require: workers of slots that are given up leave,
 * agents are started, workers are launched, and agents of hosts that the job has left are told to
 * end. Called at the end of a step in which core_want_slots was called. */
void slots_reconcile(struct core *core)
{
    struct core_launch *launch = &core->launch;
    struct worker *worker;
    size_t np = core->config.np, all = core->listing.list.count;
    const struct slots_choice gate = { 0, all, np, false /* any slot */ };
    bool all_train;

    if (!slots_may_launch(core))
        return;
    if (roster_judge_slots(core))
        core_want_round(core);
    /* Workers that are in no round leave at once. Members leave through recovery.c and change.c. */
    for (size_t i = 0; core->roster.going && (worker = roster_next(core, &i));) {
        enum worker_state state = worker->state;

        if (!worker->has_to_go)
            continue;
        if (state == WORKER_LAUNCHING || state == WORKER_BOOTING)
            loss_kill(core, worker, "its slot is given up",
                      true /* excused: the worker is not to blame */, core->config.kill_grace_us);
        else if (state == WORKER_READY)
            slots_dismiss_ready(core, worker, "its slot is given up");
    }
    slots_start_agents(core);
    /* No worker holds resume_min_commit or a newer commit. So slots for which an agent may keep
     * such a commit get workers, even beyond --max-np. */
    if (core->recovery.holder_missing)
        slots_launch(core, (struct slots_choice){ 0, all, SIZE_MAX,
                                                  true /* only slots that may keep the commit */ });
    /* docs/stories.md, `waits_for_np_slots`: the first launch waits until np workers can be
     * launched together. */
    if (!launch->gate_open && core->roster.offered_slots >= np &&
        slots_list(core, &gate, NULL) + core->roster.staying >= np && !slots_waits_for_agents(core))
        launch->gate_open = true;
    if (launch->gate_open)
        slots_launch(core,
                     (struct slots_choice){ 0, all, slots_wanted(core), false /* any slot */ });
    /* While a round runs, READY workers beyond --max-np leave; the newest leave first. */
    for (size_t i = core->roster.workers.count;
         core->job == JOB_RUNNING && i-- > 0 && core->roster.staying > core->config.max_np;) {
        worker = core->roster.workers.items[i];
        if (worker && !worker->has_to_go && worker->state == WORKER_READY)
            slots_dismiss_ready(core, worker, "there are enough workers without this one");
    }
    /* A host that is no longer listed and has no worker goes back to the operator, so its agent is
     * ended. Until all members train the agent stays: it may keep the last commit, or the list may
     * be wrong. */
    all_train = core->job == JOB_RUNNING && round_all_entered(&core->current);
    for (size_t i = 0; all_train && i < core->roster.hosts.count; i++) {
        struct core_host *host = core->roster.hosts.items[i];

        if (host->listed || host->taken || host->agent != AGENT_THERE || host->ending)
            continue;
        host->ending = true;
        over_tell_stop(core, host);
    }
    over_check_job(core);
}

/* Called at the first READY of the job. A command that ended with 0 before it did not do its part
 * of the training, so its slot may be used again. */
void slots_first_joined(struct core *core)
{
    core->launch.anyone_joined = true;
    roster_clear_done(core);
    core_want_slots(core);
}
