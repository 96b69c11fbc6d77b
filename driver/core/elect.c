#include "driver/core/elect.h"

#include "driver/core/roster.h"
#include "driver/core/tell.h"
#include "proto/commit.h"

/* Of a round that there has not been yet: a damaged snapshot, or an agent that makes things up. */
bool elect_believes(const struct core *core, uint64_t commit)
{
    return COMMIT_ROUND_OF(commit) <= core->rounds;
}

/* What its agent keeps for the slot is just that: nobody else writes there. */
void elect_note(const struct core *core, struct worker *worker, const struct msg_held_list *held)
{
    struct seat *seat = &worker->host->seats[worker->slot];

    ASSERT(held->count <= LIMIT_COMMITS_HELD);
    worker->held_count = 0;
    seat->commit = 0;
    for (size_t i = 0; i < held->count; i++) {
        if (!elect_believes(core, held->items[i].commit))
            continue;
        worker->held[worker->held_count++] = held->items[i];
        seat_note_commit(seat, held->items[i].commit);
    }
}

static const struct msg_held *find(const struct worker *worker, uint64_t commit)
{
    for (size_t i = 0; i < worker->held_count; i++)
        if (worker->held[i].commit == commit)
            return &worker->held[i];
    return NULL;
}

static uint64_t highest(const struct core *core, const struct round *round)
{
    uint64_t commit = 0;

    for (size_t i = 0; i < round->members.count; i++) {
        const struct worker *worker = roster_worker(core, round->members.items[i]);

        ASSERT(worker);
        for (size_t k = 0; k < worker->held_count; k++)
            if (worker->held[k].commit > commit)
                commit = worker->held[k].commit;
    }
    return commit;
}

/* The checksum that most holders agree on, by the vote that needs no memory; among several without
 * a majority, that of the last one standing. */
static uint64_t majority(const struct core *core, const struct round *round, uint64_t commit)
{
    uint64_t checksum = 0;
    size_t votes = 0;

    for (size_t i = 0; i < round->members.count; i++) {
        const struct msg_held *held = find(roster_worker(core, round->members.items[i]), commit);

        if (!held)
            continue;
        if (!votes)
            checksum = held->checksum;
        if (held->checksum == checksum)
            votes++;
        else
            votes--;
    }
    return checksum;
}

static bool is_holder(const struct worker *worker, const struct election *election)
{
    const struct msg_held *held = find(worker, election->commit);

    return held && held->checksum == election->checksum;
}

static bool can_serve(const struct core_host *host)
{
    return host->agent == AGENT_THERE && host->addresses.count;
}

/* Counted as dead, and its agent has not told its end: what it has committed is not known yet. */
static bool is_untold(const struct seat *seat)
{
    return seat->worker && seat->worker->joined && worker_state(seat->worker) > WORKER_READY;
}

uint64_t elect_kept(const struct core *core)
{
    uint64_t commit = 0;

    for (size_t i = 0; i < core->hosts.count; i++) {
        const struct core_host *host = core->hosts.items[i];

        for (uint32_t slot = 0; slot < host->seat_count && can_serve(host); slot++) {
            const struct seat *seat = &host->seats[slot];

            if (is_untold(seat) && worker_state(seat->worker) == WORKER_DOOMED)
                return 0; /* it will be told soon, and may be newer */
            if (commit < seat->commit && !is_untold(seat))
                commit = seat->commit;
        }
    }
    return commit < core->floor ? 0 : commit;
}

/* Who leaves at the switch that makes it has it, or will. */
static bool keeps(const struct seat *seat, uint64_t commit)
{
    return (seat->worker && seat->worker->tied) || (seat->commit == commit && !is_untold(seat));
}

#define SOURCES_MAX 64 /* that are named: it is fetched from all of them at once */

struct msg_source_list elect_sources(struct core *core, uint64_t commit)
{
    struct msg_source *sources = tell_alloc(core, SOURCES_MAX, sizeof(*sources));
    size_t count = 0;

    for (size_t i = 0; i < core->hosts.count && sources; i++) {
        const struct core_host *host = core->hosts.items[i];

        for (uint32_t slot = 0; slot < host->seat_count && can_serve(host); slot++) {
            const struct seat *seat = &host->seats[slot];

            if (keeps(seat, commit) && count < SOURCES_MAX)
                sources[count++] = (struct msg_source){
                    .incarnation = seat->worker ? seat->worker->incarnation : 0,
                    .host = host->name,
                    .slot = slot,
                    .addresses = host->addresses,
                };
        }
    }
    return (struct msg_source_list){ sources, count };
}

struct election elect(const struct core *core, const struct round *round)
{
    struct election election = { .commit = highest(core, round) };

    if (!election.commit)
        return election;
    election.checksum = majority(core, round, election.commit);
    for (size_t i = 0; i < round->members.count; i++)
        election.holders += is_holder(roster_worker(core, round->members.items[i]), &election);
    return election;
}

void elect_holders(struct core *core, struct round *round, const struct election *election)
{
    size_t count = election->commit ? election->holders : 1;

    ASSERT(round->members.count > 0 && count > 0);
    round->holders.count = 0;
    if (VEC_RESERVE(&round->holders, count, LIMIT_WORKERS)) {
        core->broken = true;
        return;
    }
    if (!election->commit)
        round->holders.items[round->holders.count++] = round->members.items[0];
    for (size_t i = 0; i < round->members.count && election->commit; i++)
        if (is_holder(roster_worker(core, round->members.items[i]), election))
            round->holders.items[round->holders.count++] = round->members.items[i];
}
