/*
 * places.c: the ranks of commands before any worker has joined. slots.c claims a rank at each
 * launch and writes it into the LAUNCH record, and replay.c restores it from there, so a successor
 * gives the same ranks. Invariant: a rank belongs to at most one live worker; a job whose --max-np
 * equals -np tells no rank of -np or more.
 */
#include "driver/core/places.h"

#include "driver/core/roster.h"
#include "driver/core/step.h"

#define PLACES_DONE \
    UINT64_MAX /* instead of an incarnation: the command of this rank ended with 0 */

void places_release(struct core *core)
{
    VEC_RELEASE(&core->launch.told);
}

/* Returns how many ranks were told: the ranks 0 to this number - 1. */
static uint32_t places_count(const struct core *core)
{
    return (uint32_t)core->launch.told.count;
}

/* True: no worker that is alive was told this rank. */
static bool places_is_vacant(const struct core *core, uint32_t rank)
{
    uint64_t incarnation = core->launch.told.items[rank];
    const struct worker *worker;

    if (incarnation == PLACES_DONE)
        return false;
    worker = roster_worker(core, incarnation);
    return !worker || !worker_is_alive(worker);
}

/* Counts the slots of a host that have a rank, among its first `most` slots. A slot whose rank was
 * given to a worker in another slot does not count. */
static uint32_t places_on(const struct core *core, const struct core_host *host, uint32_t most)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < host->slot_count && i < most; i++) {
        const struct core_slot *slot = &host->slots[i];
        uint64_t owner = slot->told ? core->launch.told.items[slot->place.rank] : 0;

        count +=
            owner == PLACES_DONE ? slot->done : slot->worker && owner == slot->worker->incarnation;
    }
    return count;
}

/* Notes that this worker was told `rank`; called at a launch, and by replay.c for launches of
 * earlier drivers. New ranks are told in order, so a rank is at most the number of ranks told
 * before. False: there can be no such rank. */
bool places_restore(struct core *core, const struct worker *worker, uint32_t rank)
{
    struct core_slot *slot = &worker->host->slots[worker->slot];

    if (rank > places_count(core))
        return false;
    if (rank == places_count(core)) {
        if (VEC_RESERVE(&core->launch.told, 1, LIMIT_WORKERS)) {
            core_fail(core);
            return true;
        }
        core->launch.told.count++;
    }
    core->launch.told.items[rank] = worker->incarnation;
    if (!slot->told || slot->place.rank != rank)
        slot->place = (struct place){ .rank = rank };
    slot->told = true;
    return true;
}

/* Chooses the rank of a worker that is launched before any worker has joined: the rank that its
 * slot had, else the lowest vacant rank, else a new rank, else the rank of a command that is done
 * (`done`; its value `count` means that none is done). */
void places_claim(struct core *core, const struct worker *worker)
{
    const struct core_slot *slot = &worker->host->slots[worker->slot];
    uint32_t count = places_count(core), done = count, rank = 0;
    bool found = false;

    /* The rank that was told in this slot before is used again, if no other worker has it. */
    if (slot->told && (core->launch.told.items[slot->place.rank] == worker->incarnation ||
                       places_is_vacant(core, slot->place.rank))) {
        rank = slot->place.rank;
        found = true;
    }
    /* Finds the lowest vacant rank. If as many other workers live as ranks were told, no rank is
     * vacant, and the search is skipped; `staying` counts this worker too. */
    while (!found && count > core->roster.staying - 1 && rank < count) {
        found = places_is_vacant(core, rank);
        if (!found && core->launch.told.items[rank] == PLACES_DONE && done == count)
            done = rank;
        rank += !found;
    }
    /* If no rank is vacant and --max-np allows no further one, the rank of a command that has ended
     * with 0 is told again. The host of that command is no longer listed: otherwise no worker would
     * be missing. */
    if (!found)
        rank = count < core->config.max_np ? count : done;
    (void)places_restore(core, worker, rank);
}

/* Returns the place (ranks and sizes) that LAUNCH tells a worker with a rank. A slot whose worker
 * was told a place keeps that place. `fresh`: the place that was computed for a new rank; if the
 * worker has another rank, its place is computed here. */
const struct place *places_of(const struct core *core, const struct worker *worker,
                              const struct place *fresh)
{
    struct place *place = &worker->host->slots[worker->slot].place;
    bool grows = core->config.max_np > core->config.np;
    bool before = true;

    if (place->size)
        return place;
    if (place->rank == fresh->rank)
        *place = *fresh;
    if (place->size < places_count(core))
        place->size = places_count(core);
    if (!grows || place->size < core->config.np)
        place->size = core->config.np;
    if (place->rank == fresh->rank)
        return place;
    place->local_rank = places_on(core, worker->host, worker->slot);
    place->local_size = places_on(core, worker->host, UINT32_MAX);
    for (size_t i = 0; i < core->listing.list.count; i++) {
        const struct core_host *host = core->listing.list.items[i];

        before = before && host != worker->host;
        if (places_on(core, host, UINT32_MAX) <= place->local_rank)
            continue;
        place->cross_rank += before;
        place->cross_size++;
    }
    return place;
}

/* The command of this worker has ended with 0: its rank is marked as done, and is not vacant for
 * another command. */
void places_note_done(struct core *core, const struct worker *worker)
{
    const struct core_slot *slot = &worker->host->slots[worker->slot];

    if (slot->told && core->launch.told.items[slot->place.rank] == worker->incarnation)
        core->launch.told.items[slot->place.rank] = PLACES_DONE;
}
