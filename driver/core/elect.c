/*
 * elect.c: the election of the commit that a round begins with. recovery.c asks for it; READY,
 * RECOVERING and EXITED bring the commits. A holder is a member that has the commit. Two things are
 * never believed: a commit of a round of which no agent was told, and a holder whose checksum
 * differs from that of most holders.
 */
#include "driver/core/elect.h"

#include "driver/core/roster.h"
#include "driver/core/step.h"
#include "driver/core/tell.h"

#include <stdio.h>
#include <string.h>

/* True: the commit may exist, because some agent may have been told its round. False: it comes from
 * a damaged snapshot, or from an agent that invents commits; the caller ignores it. */
bool elect_believes(const struct core *core, uint64_t commit)
{
    return COMMIT_ROUND_OF(commit) <= core->rounds.told;
}

/* Notes the commits that a worker holds. Its agent keeps the same commits for the worker's slot,
 * because no other process writes there. */
void elect_note(const struct core *core, struct worker *worker, const struct msg_held_list *held)
{
    struct core_slot *slot = &worker->host->slots[worker->slot];

    ASSERT(held->count <= LIMIT_COMMITS_HELD);
    worker->held_count = 0;
    slot->commit = 0;
    for (size_t i = 0; i < held->count; i++) {
        if (!elect_believes(core, held->items[i].commit))
            continue;
        worker->held[worker->held_count++] = held->items[i];
        slot_note_commit(slot, held->items[i].commit);
    }
}

/* Returns the worker's copy of this commit; NULL: the worker does not hold the commit. */
static const struct msg_held *elect_find(const struct worker *worker, uint64_t commit)
{
    for (size_t i = 0; i < worker->held_count; i++)
        if (worker->held[i].commit == commit)
            return &worker->held[i];
    return NULL;
}

/* True: the worker holds the elected commit with the elected checksum. */
static bool elect_is_holder(const struct worker *worker, const struct election *election)
{
    const struct msg_held *held = elect_find(worker, election->commit);

    return held && held->checksum == election->checksum;
}

/* Returns the highest commit that a member of the round holds, the checksum that most of its
 * holders have, and how many members hold it with that checksum. `commit` 0: no member holds any
 * commit. */
struct election elect(const struct core *core, const struct round *round)
{
    struct election election = { .commit = 0 };
    const struct worker *worker;
    size_t votes = 0;

    /* PROTOCOL.md, Rounds: a higher number is a newer state. */
    for (size_t i = 0; (worker = roster_next_member(core, round, &i));)
        for (size_t k = 0; k < worker->held_count; k++)
            if (worker->held[k].commit > election.commit)
                election.commit = worker->held[k].commit;
    if (!election.commit)
        return election;

    /* Finds the checksum that most holders have, by the majority vote of Boyer and Moore, which
     * needs no memory. Without a majority the vote finds the checksum of some holder. */
    for (size_t i = 0; (worker = roster_next_member(core, round, &i));) {
        const struct msg_held *held = elect_find(worker, election.commit);

        if (!held)
            continue;
        if (!votes)
            election.checksum = held->checksum;
        if (held->checksum == election.checksum)
            votes++;
        else
            votes--;
    }
    for (size_t i = 0; (worker = roster_next_member(core, round, &i));)
        election.holders += elect_is_holder(worker, &election);
    return election;
}

/* Writes the members that hold the elected commit to round->holders, by rank. */
void elect_holders(struct core *core, struct round *round, const struct election *election)
{
    size_t count = election->commit ? election->holders : 1;
    const struct worker *worker;

    ASSERT(round->members.count > 0 && count > 0);
    round->holders.count = 0;
    if (VEC_RESERVE(&round->holders, count, LIMIT_WORKERS)) {
        core_fail(core);
        return;
    }
    /* PROTOCOL.md, Rounds: when no member holds a commit, the oldest member is the only holder, and
     * its live state becomes the first commit of the round. */
    if (!election->commit)
        round->holders.items[round->holders.count++] = round->members.items[0];
    for (size_t i = 0; election->commit && (worker = roster_next_member(core, round, &i));)
        if (elect_is_holder(worker, election))
            round->holders.items[round->holders.count++] = worker->incarnation;
}

/* True: a live member of `round` holds a commit of the newest round in which all members trained. A
 * worker that was started anew in the slot of a member holds the commits of that member. A driver
 * that has taken over has seen no round train, and counts the members of the current one. */
static bool has_trained_member(const struct core *core, const struct round *round)
{
    uint64_t trained = core->rounds.trained;
    const struct worker *worker;

    for (size_t i = 0; (worker = roster_next_member(core, round, &i));) {
        const struct core_slot *slot = &worker->host->slots[worker->slot];

        if (worker_is_alive(worker) && slot->commit &&
            (trained ? slot->trained_round >= trained : round == &core->current))
            return true;
    }
    return false;
}

bool elect_has_survivor(const struct core *core)
{
    return has_trained_member(core, &core->current) || has_trained_member(core, &core->next);
}

/* True: the agent of this host is connected and can serve commits. */
static bool can_serve(const struct core_host *host)
{
    return host->agent == AGENT_THERE && host->addresses.count;
}

/* True: a worker is in this slot, and the driver does not know yet which commit it has made last.
 * The worker was READY once, so it may have made commits. Now it is a member, leaving, finished or
 * dead, and its EXITED, which names its last commit, has not come. */
static bool is_end_unknown(const struct core_slot *slot)
{
    return slot->worker && slot->worker->joined && slot->worker->state > WORKER_READY;
}

/* How long the EXITED of a killed worker is awaited after its --kill-grace, because there are
 * processes that the kernel does not end. */
#define END_AWAITED_US (30 * TIME_S)

/* The moment up to which this EXITED is awaited: that of a dead worker that has made commits, from
 * an agent that is connected. 0: it is not awaited. */
static int64_t end_awaited_us(const struct core *core, const struct core_slot *slot)
{
    const struct worker *worker = slot->worker;
    int64_t limit_us = time_add(core->config.kill_grace_us, END_AWAITED_US);

    if (!slot->commit || !is_end_unknown(slot) || worker->state != WORKER_DOOMED ||
        !can_serve(worker->host))
        return 0;
    return time_add(worker->since_us, limit_us);
}

bool elect_awaits_end(struct core *core)
{
    const struct worker *worker;

    for (size_t i = 0; (worker = roster_next(core, &i));) {
        int64_t until_us = end_awaited_us(core, &worker->host->slots[worker->slot]);

        if (core->now_us < until_us) {
            core_want_timer(core, until_us);
            return true;
        }
    }
    return false;
}

/* Returns the newest commit that connected agents keep for slots whose workers are gone; the commit
 * `except` is left out (0: none). 0: the job can resume from no such commit, or the EXITED of a
 * dead worker is still to come, which may name a newer one. */
uint64_t elect_kept(const struct core *core, uint64_t except)
{
    uint64_t commit = 0;

    for (size_t i = 0; i < core->roster.hosts.count; i++) {
        const struct core_host *host = core->roster.hosts.items[i];

        for (uint32_t k = 0; k < host->slot_count && can_serve(host); k++) {
            const struct core_slot *slot = &host->slots[k];

            if (core->now_us < end_awaited_us(core, slot))
                return 0;
            if (commit < slot->commit && slot->commit != except && !is_end_unknown(slot))
                commit = slot->commit;
        }
    }
    return commit < core->rounds.resume_min_commit ? 0 : commit;
}

/* The most sources that a ROUND names; a worker fetches the commit from all of them at once. */
#define SOURCES_MAX 64

/* Lists the agents from which members can fetch this commit, for a ROUND in which no member holds
 * the commit. When no agent has it either, its checkpoint is the source. */
struct msg_source_list elect_sources(struct core *core, uint64_t commit)
{
    struct msg_source *sources = tell_alloc(core, SOURCES_MAX, sizeof(*sources));
    const char **addresses;
    size_t count = 0, length;
    char *address;

    for (size_t i = 0; i < core->roster.hosts.count && sources; i++) {
        const struct core_host *host = core->roster.hosts.items[i];

        for (uint32_t k = 0; k < host->slot_count && can_serve(host); k++) {
            const struct core_slot *slot = &host->slots[k];
            bool leaves = slot->worker && slot->worker->may_block_switch;

            /* A worker that leaves at the switch holds the commit of the switch, or is about to
             * hold it. */
            if ((leaves || (slot->commit == commit && !is_end_unknown(slot))) &&
                count < SOURCES_MAX)
                sources[count++] = (struct msg_source){
                    .incarnation = slot->worker ? slot->worker->incarnation : 0,
                    .host = host->name,
                    .slot = k,
                    .addresses = host->addresses,
                };
        }
    }
    if (count || commit != core->checkpoint.newest)
        return (struct msg_source_list){ sources, count };
    /* No agent has the commit: the source is the checkpoint, whose address is its folder. */
    length = strlen(core->checkpoint.folder) + sizeof("checkpoint=");
    sources = tell_alloc(core, 1, sizeof(*sources));
    addresses = tell_alloc(core, 1, sizeof(*addresses));
    address = tell_alloc(core, length, 1);
    if (!sources || !addresses || !address)
        return (struct msg_source_list){ NULL, 0 };
    snprintf(address, length, "checkpoint=%s", core->checkpoint.folder);
    addresses[0] = address;
    *sources = (struct msg_source){
        .host = "", .addresses = {addresses, 1}
    };
    return (struct msg_source_list){ sources, 1 };
}
