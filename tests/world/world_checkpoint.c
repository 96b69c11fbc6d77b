/*
 * world_checkpoint.c: what a simulated agent does for a checkpoint: it holds commits, and writes
 * files that have a size and a checksum, but no bytes. Called by world_host.c for the actions of
 * the agent's core, and where a slot gets a commit or loses its worker.
 */
#include "base/panic.h"
#include "proto/commit.h"
#include "tests/world/world_state.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define HEADER_BYTES 100

/* A HOLDING or SAVED is ready: the agent's core gets it. */
static void on_checkpoint_result(struct world *world, struct world_event *event)
{
    struct world_agent *agent = event->who;
    struct agent_event told = { .kind = AGENT_CHECKPOINT_RESULT, .msg = &event->frame->msg };

    if (process_takes(&agent->process, event))
        agent_tell(world, agent, &told);
}

/* Answers a HOLD: with the commits of all slots, or with the code and the text why not. */
static void hold_answer(struct world *world, struct world_agent *agent, int code, const char *text)
{
    struct world_hold *hold = &agent->hold;
    struct msg_kept kept[WORLD_SLOTS_MAX];
    struct msg msg = { .type = MSG_HOLDING, .round = hold->round };

    for (size_t i = 0; i < hold->count; i++)
        kept[i] = (struct msg_kept){ .slot = hold->slots[i], .commit = hold->commits[i] };
    msg.u.holding = (struct msg_holding){
        .number = hold->number, .code = code, .text = text, .kept = {kept, code ? 0 : hold->count}
    };
    if (!code && hold->count)
        world_mark(world, "%s holds commit %" PRIu64 ".%" PRIu32 " for a checkpoint",
                   agent->host->name, COMMIT_ROUND_OF(hold->commits[0]),
                   COMMIT_PLACE_OF(hold->commits[0]));
    hold->answered = true;
    world_after(world, world_between(world, world->shape.local), on_checkpoint_result, agent,
                frame_make(&msg, world->codec), 0);
}

/* Holds the commits that are there. Answers the HOLD when all are, or when one cannot come. */
void world_hold_look(struct world *world, struct world_agent *agent)
{
    struct world_hold *hold = &agent->hold;
    size_t missing = 0;

    if (!hold->number || hold->answered)
        return;
    for (size_t i = 0; i < hold->count; i++) {
        const struct world_kept *kept = &agent->kept[hold->slots[i]];

        for (size_t k = 0; !hold->commits[i] && k < (hold->only ? kept->count : 1); k++) {
            if (!kept->count || kept->items[k].commit < hold->at ||
                (hold->only && kept->items[k].commit != hold->at))
                continue;
            hold->commits[i] = kept->items[k].commit;
            hold->models[i] = kept->items[k].model;
        }
        if (hold->commits[i])
            continue;
        if (hold->only) {
            hold_answer(world, agent, HVD_E_NOTFOUND, "the commit is not kept any more");
            return;
        }
        missing++;
        if (!host_worker(world, agent->host, hold->slots[i])) {
            hold_answer(world, agent, HVD_E_LOST, "the worker has ended before its commit");
            return;
        }
    }
    if (!missing)
        hold_answer(world, agent, 0, "");
}

void world_hold(struct world *world, struct world_agent *agent, const struct msg *msg)
{
    struct world_hold *hold = &agent->hold;

    if (hold->number != msg->u.hold.number) {
        *hold = (struct world_hold){ .number = msg->u.hold.number,
                                     .round = msg->round,
                                     .at = msg->u.hold.at,
                                     .only = msg->u.hold.only };
        for (size_t i = 0; i < msg->u.hold.slots.count; i++) {
            ASSERT(msg->u.hold.slots.items[i] < WORLD_SLOTS_MAX && i < WORLD_SLOTS_MAX);
            hold->slots[hold->count++] = (uint32_t)msg->u.hold.slots.items[i];
        }
    } else if (hold->answered && hold->count && hold->commits[hold->count - 1]) {
        hold_answer(world, agent, 0, "");
    }
    world_hold_look(world, agent);
}

/* A file is durable, before its agent says so: event->number is the file. */
static void on_saved(struct world *world, struct world_event *event)
{
    struct world_agent *agent = event->who;

    if (!process_takes(&agent->process, event))
        return;
    if (!event->frame->msg.u.saved.code)
        store_set_durable(world, event->number);
    on_checkpoint_result(world, event);
}

/* The file that a SAVE asks for, with the commit that the agent holds for the slot, into *ret_file.
 * false: the agent does not hold this commit. */
static bool hold_file(const struct world *world, const struct world_agent *agent,
                      const struct msg_save *save, struct store_file *ret_file)
{
    const struct world_hold *hold = &agent->hold;
    bool found = false;

    *ret_file =
        (struct store_file){ .host = agent->host, .slot = save->slot, .commit = save->commit };
    snprintf(ret_file->name, sizeof(ret_file->name), "%s", save->name);
    for (size_t i = 0; i < save->entries.count; i++)
        for (unsigned k = 0; k < STORE_ENTRIES; k++)
            if (!strcmp(save->entries.items[i].name, store_entries[k].name))
                ret_file->entries |= 1u << k;
    for (size_t i = 0; i < hold->count && hold->number == save->number; i++) {
        if (hold->slots[i] != save->slot || hold->commits[i] != save->commit || !save->commit)
            continue;
        ret_file->model = world->shape.bug == BUG_MIXED_COMMITS
                              ? agent->kept[save->slot].items[0].model
                              : hold->models[i];
        found = true;
    }
    return found;
}

/* Writes one file, after those before it. */
void world_hold_save(struct world *world, struct world_agent *agent, const struct msg *msg)
{
    const struct msg_save *save = &msg->u.save;
    struct world_hold *hold = &agent->hold;
    int64_t at_us = world->now_us + world_between(world, world->shape.disk);
    struct msg saved = { .type = MSG_SAVED, .round = msg->round };
    struct store_file file;
    bool held = hold_file(world, agent, save, &file);
    uint64_t sum = model_checksum(file.model);

    if (at_us < hold->saved_us)
        at_us = hold->saved_us;
    hold->saved_us = at_us;
    saved.u.saved = (struct msg_saved){ .number = save->number, .name = save->name, .text = "" };
    if (!held) {
        saved.u.saved.code = HVD_E_STATE;
        saved.u.saved.text = "it is not held";
    } else if (world->now_us < world->store.fails_until_us) {
        saved.u.saved.code = HVD_E_IO;
        saved.u.saved.text = "the disk is full";
    } else {
        saved.u.saved.bytes = HEADER_BYTES;
        saved.u.saved.sums = (struct msg_bytes){ (const uint8_t *)&sum, sizeof(sum) };
    }
    for (size_t i = 0; i < save->entries.count; i++)
        saved.u.saved.bytes += save->entries.items[i].bytes;
    if (agent->host->forges || world->shape.bug == BUG_EARLY_MANIFEST) {
        /* The file is never written, but the driver is told that it is. */
        agent->host->forges = false;
        (void)store_write_file(world, &file);
        world_after(world, 0, on_checkpoint_result, agent, frame_make(&saved, world->codec), 0);
        return;
    }
    world_after(world, at_us - world->now_us, on_saved, agent, frame_make(&saved, world->codec),
                store_write_file(world, &file));
}

void world_hold_end(struct world_agent *agent, const struct msg *msg)
{
    if (msg->u.release.number >= agent->hold.number)
        agent->hold = (struct world_hold){ 0 };
}
