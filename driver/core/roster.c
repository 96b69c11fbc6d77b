/*
 * roster.c: the tables of hosts and workers, and the totals over them. All files of the core read
 * the tables. A worker's state changes only through roster_move, so the totals (count, staying,
 * going) are right at any moment. Nothing is freed during a step: actions of the step may point at
 * the names and addresses of removed workers and hosts.
 */
#include "driver/core/roster.h"

#include "base/mem.h"
#include "driver/core/moves.h"
#include "driver/core/step.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Writes "a:1#7" into `text`: host, slot and incarnation of the worker, as logs name it. Returns
 * `text`. */
const char *worker_name(const struct worker *worker, char text[WORKER_NAME_MAX])
{
    snprintf(text, WORKER_NAME_MAX, "%s:%" PRIu32 "#%" PRIu64, worker->host->name, worker->slot,
             worker->incarnation);
    return text;
}

/* ---- hosts and their slots ------------------------------------------------------------------ */

/* Returns the host of this name; NULL: the table has no such host. */
struct core_host *roster_find_host(const struct core *core, const char *name)
{
    uint32_t index = names_find(&core->roster.by_name, name, strlen(name));

    return index == NAMES_NONE ? NULL : core->roster.hosts.items[index];
}

/* Frees a host and its slots. The cast drops the const of the addresses, which are one block of
 * memory. */
static void roster_free_host(struct core_host *host)
{
    if (!host)
        return;
    mem_free((void *)(uintptr_t)host->addresses.items);
    mem_free(host->slots);
    mem_free(host->name);
    mem_free(host);
}

/* Returns the host of this name; a new name gets an entry in the table. NULL: no memory is left,
 * and the core has failed. */
struct core_host *roster_host(struct core *core, const char *name)
{
    struct core_host *host = roster_find_host(core, name);

    if (host)
        return host;
    host = mem_zalloc(sizeof(*host));
    if (host)
        host->name = mem_strdup(name);
    if (!host || !host->name || VEC_RESERVE(&core->roster.hosts, 1, SIZE_MAX / sizeof(host)) ||
        names_put(&core->roster.by_name, host->name, strlen(host->name),
                  (uint32_t)core->roster.hosts.count)) {
        roster_free_host(host);
        core_fail(core);
        return NULL;
    }
    core->roster.hosts.items[core->roster.hosts.count++] = host;
    return host;
}

/* Makes sure that the host has the slots 0 to `count` - 1; the number of slots never becomes
 * smaller. False: no memory is left, and the core has failed. */
bool roster_slots(struct core *core, struct core_host *host, uint32_t count)
{
    struct core_slot *slots;

    ASSERT(count <= LIMIT_SLOTS_PER_HOST);
    if (count <= host->slot_count)
        return true;
    slots = mem_resize(host->slots, count * sizeof(*slots));
    if (!slots) {
        core_fail(core);
        return false;
    }
    memset(slots + host->slot_count, 0, (count - host->slot_count) * sizeof(*slots));
    host->slots = slots;
    host->slot_count = count;
    return true;
}

/* Notes that the host's agent keeps this commit for the slot, if it is newer than the one that is
 * known. */
void slot_note_commit(struct core_slot *slot, uint64_t commit)
{
    if (slot->commit < commit)
        slot->commit = commit;
}

/* A new list of hosts is about to be taken over: the totals over listed hosts begin at 0, and
 * roster_list_host adds each host to them. */
void roster_relist(struct core *core)
{
    core->roster.offered_slots = core->roster.done_slots = 0;
}

/* Discovery lists this host, at index `index` of the list, with `slots` slots. Adds the slots
 * to the totals, which roster_relist has set to 0. */
void roster_list_host(struct core *core, struct core_host *host, uint32_t index, uint32_t slots)
{
    host->listed = true;
    host->listed_slots = slots;
    host->listing_index = index;
    for (uint32_t i = 0; i < slots; i++)
        core->roster.done_slots += host->slots[i].done;
    if (host->agent == AGENT_THERE)
        core->roster.offered_slots += slots;
}

/* Discovery does not list this host any more. Commands that have ended with 0 there are forgotten,
 * so its slots count as unused if it is listed again. */
void roster_unlist_host(struct core_host *host)
{
    host->listed = false;
    host->listed_slots = 0;
    for (uint32_t i = 0; i < host->slot_count; i++)
        host->slots[i].done = false;
}

/* A command has ended with 0 in this worker's slot: no other command is launched there. The total
 * done_slots counts only slots that are listed. */
void roster_mark_done(struct core *core, const struct worker *worker)
{
    worker->host->slots[worker->slot].done = true;
    core->roster.done_slots += worker->slot < worker->host->listed_slots;
}

/* A worker of the job has joined: slots in which a command has ended with 0 may be used again. */
void roster_clear_done(struct core *core)
{
    for (size_t i = 0; i < core->roster.hosts.count; i++)
        for (uint32_t slot = 0; slot < core->roster.hosts.items[i]->slot_count; slot++)
            core->roster.hosts.items[i]->slots[slot].done = false;
    core->roster.done_slots = 0;
}

/* True: an operator has drained the host or one of its slots. A notice of the machine does not
 * count. */
bool roster_is_drained(const struct core_host *host)
{
    bool drained = host->draining && !host->notice.given;

    for (uint32_t slot = 0; slot < host->slot_count && !drained; slot++)
        drained = host->slots[slot].draining;
    return drained;
}

/* True: the host stays in the table, because the job uses it, a process there may still come back,
 * or an operator has drained it. */
static bool roster_is_needed(const struct core_host *host)
{
    return host->listed || host->taken || host->join.here || host->agent == AGENT_THERE ||
           host->agent == AGENT_AWAY || roster_is_drained(host);
}

/* Removes DOOMED workers of hosts that are not listed and have no agent. No agent will report the
 * ends of these workers, so they count as ended now. */
void roster_remove_unheard(struct core *core)
{
    for (size_t i = 0; i < core->roster.hosts.count; i++) {
        struct core_host *host = core->roster.hosts.items[i];
        bool may_report = host->listed || host->agent == AGENT_THERE || host->agent == AGENT_AWAY;
        struct worker *worker;

        for (size_t slot = 0; !may_report && (worker = roster_next_on(host, &slot));)
            if (worker->state == WORKER_DOOMED)
                roster_remove(core, worker);
    }
}

/* Drops hosts that are not listed and have neither a worker, an agent nor a drain. A dropped host
 * is freed by roster_bury in the next step, because actions of this step may point at it. */
void roster_sweep(struct core *core)
{
    size_t kept = 0;

    for (size_t i = 0; i < core->roster.hosts.count; i++)
        kept += roster_is_needed(core->roster.hosts.items[i]);
    if (kept == core->roster.hosts.count)
        return;

    /* by_name refers to hosts by their index, so by_name is made again together with the list of
     * hosts. */
    names_release(&core->roster.by_name);
    names_init(&core->roster.by_name);
    kept = 0;
    for (size_t i = 0; i < core->roster.hosts.count; i++) {
        struct core_host *host = core->roster.hosts.items[i];

        if (!roster_is_needed(host)) {
            host->next_gone = core->roster.gone_hosts;
            core->roster.gone_hosts = host;
            continue;
        }
        core->roster.hosts.items[kept] = host;
        if (names_put(&core->roster.by_name, host->name, strlen(host->name), (uint32_t)kept))
            core_fail(core);
        kept++;
    }
    core->roster.hosts.count = kept;
}

/* ---- agents: their connections -------------------------------------------------------------- */

/* Returns the host whose agent has the connection `peer`; NULL: no agent that has said hello has
 * it. */
struct core_host *roster_peer(const struct core *core, uint32_t peer)
{
    return peer < core->roster.peers.count ? core->roster.peers.items[peer] : NULL;
}

/* Moves the host's agent to another state; the table in moves.c must have the move. */
void roster_move_agent(struct core_host *host, enum agent_state to)
{
    machine_check(&agent_machine, host->agent, to);
    host->agent = to;
    host->ending = host->ending && to != AGENT_NONE; /* the next agent was not told to end */
}

/* The agent of the host now has the connection `peer`, a number that no other host has. `back_us`
 * notes that the agent was away. False: no memory is left, and the core has failed. */
bool roster_connect(struct core *core, struct core_host *host, uint32_t peer)
{
    size_t more = peer < core->roster.peers.count ? 0 : peer + 1 - core->roster.peers.count;

    ASSERT(!roster_peer(core, peer));
    if (VEC_RESERVE(&core->roster.peers, more, LIMIT_PEERS)) {
        core_fail(core);
        return false;
    }
    while (core->roster.peers.count <= peer)
        core->roster.peers.items[core->roster.peers.count++] = NULL;
    core->roster.peers.items[peer] = host;
    if (host->agent == AGENT_AWAY)
        host->back_us = core->now_us;
    host->peer = peer;
    roster_move_agent(host, AGENT_THERE);
    host->heard_us = core->now_us;
    host->sequence_heard = 0;
    host->ending = false;
    host->hung_up_us = 0;
    if (host->listed)
        core->roster.offered_slots += host->listed_slots;
    return true;
}

/* The connection of the host's agent is gone: the peer number of the connection is free again, and
 * the agent is AWAY until its lease is over. */
void roster_disconnect(struct core *core, struct core_host *host)
{
    ASSERT(roster_peer(core, host->peer) == host);
    core->roster.peers.items[host->peer] = NULL;
    roster_move_agent(host, AGENT_AWAY);
    if (host->listed)
        core->roster.offered_slots -= host->listed_slots;
}

/* ---- workers -------------------------------------------------------------------------------- */

/* Returns the worker with this incarnation; NULL: it has ended, or was never launched. */
struct worker *roster_worker(const struct core *core, uint64_t incarnation)
{
    return incarnation < core->roster.workers.count ? core->roster.workers.items[incarnation]
                                                    : NULL;
}

/* Visits all workers, one for each call; *index is 0 before the first call. NULL: there are no
 * more. */
struct worker *roster_next(const struct core *core, size_t *index)
{
    while (*index < core->roster.workers.count) {
        struct worker *worker = core->roster.workers.items[(*index)++];

        if (worker)
            return worker;
    }
    return NULL;
}

/* Visits the members of the round by rank, one for each call, and skips members that have ended.
 * *index is 0 before the first call. NULL: there are no more. */
struct worker *roster_next_member(const struct core *core, const struct round *round, size_t *index)
{
    struct worker *worker = NULL;

    while (!worker && *index < round->members.count)
        worker = roster_worker(core, round->members.items[(*index)++]);
    return worker;
}

/* Visits the workers on the host by slot, one for each call; *slot is 0 before the first call.
 * NULL: there are no more. */
struct worker *roster_next_on(const struct core_host *host, size_t *slot)
{
    struct worker *worker = NULL;

    while (!worker && *slot < host->slot_count)
        worker = host->slots[(*slot)++].worker;
    return worker;
}

/* True: the worker of this slot has to leave, because the slot or its host is drained, or discovery
 * does not list the slot any more. Before the first discovery the driver does not know which slots
 * are listed. */
static bool roster_is_given_up(const struct core *core, const struct core_host *host, uint32_t slot)
{
    return (core->listing.discovered && slot >= host->listed_slots) || host->draining ||
           host->slots[slot].draining;
}

/* Adds the worker to the totals if `in` is true; otherwise subtracts it. */
static void roster_count_worker(struct core *core, const struct worker *worker, bool in)
{
    size_t one = in ? 1 : (size_t)-1;

    core->roster.count[worker->state] += one;
    if (!worker_is_alive(worker))
        return;
    if (worker->has_to_go)
        core->roster.going += one;
    else
        core->roster.staying += one;
}

/* True: the worker is a member, or may still become one. False: it leaves, has finished, counts as
 * dead, or has ended. */
bool worker_is_alive(const struct worker *worker)
{
    return worker->state <= WORKER_RECOVERED;
}

/* Puts a new worker into a free slot, and counts it in the totals. NULL: no memory is left, and the
 * core has failed. */
struct worker *roster_add(struct core *core, uint64_t incarnation, struct core_host *host,
                          uint32_t slot, enum worker_state state)
{
    size_t known = core->roster.workers.count;
    struct worker *worker = NULL;

    ASSERT(!roster_worker(core, incarnation));
    /* The table has an entry for each incarnation, because incarnations are given in order. */
    if (!VEC_RESERVE(&core->roster.workers,
                     incarnation < known ? 0 : (size_t)(incarnation + 1 - known),
                     LIMIT_INCARNATIONS)) {
        while (core->roster.workers.count <= incarnation)
            core->roster.workers.items[core->roster.workers.count++] = NULL;
        if (roster_slots(core, host, slot + 1))
            worker = mem_zalloc(sizeof(*worker));
    }
    if (!worker) {
        core_fail(core);
        return NULL;
    }
    ASSERT(!host->slots[slot].worker);
    *worker = (struct worker){
        .incarnation = incarnation,
        .host = host,
        .slot = slot,
        .state = state,
        .since_us = core->now_us,
        .launched_us = core->now_us,
        .limit = {.in_us = TIME_NEVER     },
        .pulse = { .heard_us = TIME_NEVER, .behind_us = TIME_NEVER },
        .rank = state == WORKER_MEMBER ? 0 : RANK_NONE,
        .next_rank = RANK_NONE,
        .has_to_go = roster_is_given_up(core, host, slot)
    };
    host->slots[slot].worker = worker;
    host->taken++;
    core->roster.workers.items[incarnation] = worker;
    if (core->roster.incarnations < incarnation)
        core->roster.incarnations = incarnation;
    roster_count_worker(core, worker, true /* into the totals */);
    return worker;
}

/* Moves the worker to another state, which must be a move of the table in moves.c, and counts it
 * again in the totals. The worker's time limit ends with its old state. */
void roster_move(struct core *core, struct worker *worker, enum worker_state to)
{
    ASSERT(roster_worker(core, worker->incarnation) == worker);
    machine_check(&worker_machine, worker->state, to);
    roster_count_worker(core, worker, false /* out of the totals */);
    worker->state = to;
    roster_count_worker(core, worker, true /* into the totals */);
    ASSERT(to == WORKER_ENDED || worker->host->slots[worker->slot].worker == worker);
    ASSERT(to != WORKER_MEMBER || worker->rank != RANK_NONE);
    ASSERT(to != WORKER_READY || worker->joined);
    worker->since_us = core->now_us;
    worker->limit.in_us = TIME_NEVER;
    core_want_round(core);
}

/* Sets the state that the journal says, without a check of the move; only before the start. */
void roster_restore(struct core *core, struct worker *worker, enum worker_state state)
{
    ASSERT(core->job == JOB_NEW);
    roster_count_worker(core, worker, false /* out of the totals */);
    worker->state = state;
    roster_count_worker(core, worker, true /* into the totals */);
}

/* Replaces *kept by a copy of the texts in one block of memory: the array of pointers, then the
 * texts. False: no memory is left, and *kept is as before. */
static bool roster_keep_texts(struct msg_texts *kept, const struct msg_texts *texts)
{
    size_t bytes = texts->count * sizeof(char *);
    const char **items;
    char *end;

    for (size_t i = 0; i < texts->count; i++)
        bytes += strlen(texts->items[i]) + 1;
    items = mem_alloc(bytes);
    if (!items)
        return false;
    end = (char *)(items + texts->count);
    for (size_t i = 0; i < texts->count; i++) {
        size_t length = strlen(texts->items[i]) + 1;

        items[i] = memcpy(end, texts->items[i], length);
        end += length;
    }
    mem_free((void *)(uintptr_t)kept->items);
    *kept = (struct msg_texts){ items, texts->count };
    return true;
}

/* Keeps copies of the addresses of a READY: for the worker, and for its host, which needs them
 * after the worker's end. False: no memory is left. */
bool roster_keep_addresses(struct worker *worker, const struct msg_texts *addresses)
{
    return roster_keep_texts(&worker->addresses, addresses) &&
           roster_keep_contacts(worker->host, addresses);
}

/* Keeps copies of the addresses that a hello or a READY of the host has named. */
bool roster_keep_contacts(struct core_host *host, const struct msg_texts *addresses)
{
    return roster_keep_texts(&host->addresses, addresses);
}

/* Frees a worker. The cast drops the const of the addresses, which are one block of memory. */
static void roster_free_worker(struct worker *worker)
{
    mem_free((void *)(uintptr_t)worker->addresses.items);
    mem_free(worker->failure.text);
    mem_free(worker);
}

/* The worker has ended: takes it out of its slot, the table and the totals. The memory lives until
 * roster_bury, because actions of this step may point at it. */
void roster_remove(struct core *core, struct worker *worker)
{
    struct core_host *host = worker->host;

    ASSERT(host->slots[worker->slot].worker == worker);
    roster_count_worker(core, worker, false /* out of the totals */);
    host->slots[worker->slot].worker = NULL;
    host->taken--;
    core->roster.workers.items[worker->incarnation] = NULL;
    worker->next_gone = core->roster.gone_workers;
    core->roster.gone_workers = worker;
    core_want_slots(core);
    core_want_round(core);
}

/* Frees the workers and hosts that the last step removed. The actions of that step, which may have
 * pointed at them, are done. */
void roster_bury(struct core *core)
{
    while (core->roster.gone_workers) {
        struct worker *worker = core->roster.gone_workers;

        core->roster.gone_workers = worker->next_gone;
        roster_free_worker(worker);
    }
    while (core->roster.gone_hosts) {
        struct core_host *host = core->roster.gone_hosts;

        core->roster.gone_hosts = host->next_gone;
        roster_free_host(host);
    }
}

/* Works out again which workers have to give up their slot (`has_to_go`). True: that has changed
 * for a worker that is alive, so a round may have to change. */
bool roster_judge_slots(struct core *core)
{
    bool changed = false;
    struct worker *worker;

    for (size_t i = 0; (worker = roster_next(core, &i));) {
        bool given_up = roster_is_given_up(core, worker->host, worker->slot);

        if (given_up == worker->has_to_go)
            continue;
        roster_count_worker(core, worker, false /* out of the totals */);
        worker->has_to_go = given_up;
        roster_count_worker(core, worker, true /* into the totals */);
        changed = changed || worker_is_alive(worker);
    }
    return changed;
}

void roster_release(struct core *core)
{
    struct worker *worker;

    roster_bury(core);
    for (size_t i = 0; (worker = roster_next(core, &i));)
        roster_free_worker(worker);
    for (size_t i = 0; i < core->roster.hosts.count; i++)
        roster_free_host(core->roster.hosts.items[i]);
    VEC_RELEASE(&core->roster.workers);
    VEC_RELEASE(&core->roster.hosts);
    VEC_RELEASE(&core->listing.list);
    VEC_RELEASE(&core->roster.peers);
    names_release(&core->roster.by_name);
    hosts_release(&core->listing.hosts);
}
