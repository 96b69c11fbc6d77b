/*
 * checkpoint_places.c: finds the slots of a round's members, dead or alive, for
 * checkpoint.c. Invariant: a slot counts for the newest round in which its worker trained, so no
 * commit of an older round is taken for one of this round.
 */
#include "driver/core/checkpoint_places.h"

#include "base/panic.h"
#include "driver/core/step.h"

#include <string.h>

/* Finds the slot of each member of the round, by rank, and fills core->checkpoint.places. False:
 * for some member there is no slot whose connected agent can keep its commit; then no attempt can
 * begin. */
bool checkpoint_find_places(struct core *core, const struct round *round)
{
    struct core_checkpoint *checkpoint = &core->checkpoint;
    size_t members = round->members.count, found = 0;

    checkpoint->places.count = 0;
    if (VEC_RESERVE(&checkpoint->places, members, LIMIT_WORKERS)) {
        core_fail(core);
        return false;
    }
    for (size_t i = 0; i < core->roster.hosts.count; i++) {
        struct core_host *host = core->roster.hosts.items[i];

        /* an agent that is away, or too old to know checkpoints, cannot write files */
        if (host->agent != AGENT_THERE || host->minor < CHECKPOINT_MINOR)
            continue;
        for (uint32_t slot = 0; slot < host->slot_count; slot++) {
            const struct core_slot *place = &host->slots[slot];

            if (place->trained_round != round->number || place->trained_rank >= members)
                continue;
            checkpoint->places.items[place->trained_rank] = (struct checkpoint_place){ host, slot };
            found++;
        }
    }
    if (!members || found != members)
        return false;
    checkpoint->places.count = members;
    return true;
}

/* Returns the first host for which the attempt still waits: for its answer to HOLD, or for a file.
 * Used in the text about an attempt that took too long. */
const struct core_host *checkpoint_awaited_host(const struct core *core)
{
    const struct core_checkpoint *checkpoint = &core->checkpoint;
    bool saving = checkpoint->state == CHECKPOINT_SAVING;
    size_t i = 0;

    ASSERT((saving || checkpoint->state == CHECKPOINT_HOLDING) && checkpoint->missing);
    while (saving ? checkpoint->parts.items[i].saved : checkpoint->kept.items[i] != 0)
        i++;
    return saving ? checkpoint->parts.items[i].host : checkpoint->places.items[i].host;
}

/* True: every host where a member of the current round trains, or has trained, will leave: it is
 * not listed any more, or is drained with a deadline. Then the state would be lost with the
 * hosts. */
bool checkpoint_all_leave(const struct core *core)
{
    bool any = false;

    for (size_t i = 0; i < core->roster.hosts.count; i++) {
        const struct core_host *host = core->roster.hosts.items[i];
        bool leaves = !host->listed || (host->draining && host->drain_us != TIME_NEVER);

        for (uint32_t slot = 0; slot < host->slot_count; slot++) {
            if (host->slots[slot].trained_round != core->current.number)
                continue;
            if (!leaves)
                return false;
            any = true;
        }
    }
    return any && core->current.number;
}
