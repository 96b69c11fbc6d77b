/*
 * checkpoint.c: when a commit is written to --checkpoint-dir, and by which hosts. core.c asks at
 * the end of each step; agents.c brings the answers of agents; recovery.c asks for the newest
 * checkpoint. Invariant: ACTION_CHECKPOINT names only files that are durable, all of the same
 * commit, and together all entries of the state. An attempt that fails harms neither the training
 * nor an earlier checkpoint.
 */
#include "driver/core/checkpoint.h"

#include "driver/core/authority.h"
#include "driver/core/boot.h"
#include "driver/core/checkpoint_ask.h"
#include "driver/core/checkpoint_places.h"
#include "driver/core/over.h"
#include "driver/core/roster.h"
#include "driver/core/round.h"
#include "driver/core/step.h"
#include "driver/core/tell.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* The most memory of the driver for one attempt (the work for one checkpoint): the names of its
 * files and their checksums. */
#define CHECKPOINT_MEMORY_MAX ((size_t)256 << 20)
/* When members have kept different commits, the driver asks them for a later commit that no member
 * has made yet. It is this many commits after the newest commit that a member kept. The number
 * doubles with each attempt that came too late. */
#define CHECKPOINT_MARGIN_MIN 2
#define CHECKPOINT_MARGIN_MAX (1 << 20)
/* After this many attempts in a row in which members kept different commits, the driver counts the
 * attempt as failed and waits. */
#define CHECKPOINT_MISMATCHES_MAX 24
/* How long the driver waits after a failed attempt before it makes the next one. The wait doubles
 * with each failure in a row, up to CHECKPOINT_RETRY_MAX_US. */
#define CHECKPOINT_RETRY_US     TIME_S
#define CHECKPOINT_RETRY_MAX_US TIME_MIN
/* Agents that have not written their files after this time hang, or their disks do. An agent that
 * does not answer HOLD has the same time, or --stall-shutdown if that is shorter. */
#define CHECKPOINT_SAVE_US (30 * TIME_MIN)
/* While a worker or an operator waits for a checkpoint, the driver waits this long for a commit
 * that no member has made yet. The time doubles, five times at most, with each attempt that came
 * too late. */
#define CHECKPOINT_IMPATIENT_US TIME_S
/* While all hosts are to leave: the time from the beginning of one attempt to the beginning of the
 * next. */
#define CHECKPOINT_LEAVING_US TIME_S

/* Takes the newest checkpoint from the configuration. The numbers of the job's rounds begin after
 * those of the earlier jobs whose checkpoints lie in the same directory. */
void checkpoint_init(struct core *core)
{
    struct core_checkpoint *checkpoint = &core->checkpoint;
    const struct core_config *config = &core->config;
    const char *folder = config->checkpoint_from.folder;

    checkpoint->due_us = checkpoint->last_us = TIME_NEVER;
    checkpoint->answers_us = checkpoint->impatient_us = TIME_NEVER;
    core->costs.checkpoints.made_us = TIME_NEVER;
    checkpoint->newest = folder ? config->checkpoint_from.commit : 0;
    if (checkpoint->newest)
        snprintf(checkpoint->folder, sizeof(checkpoint->folder), "%s", folder);
    if (core->rounds.told < config->checkpoint_round)
        core->rounds.told = config->checkpoint_round;
    arena_init(&checkpoint->memory, CHECKPOINT_MEMORY_MAX);
}

void checkpoint_release(struct core *core)
{
    VEC_RELEASE(&core->checkpoint.places);
    VEC_RELEASE(&core->checkpoint.kept);
    VEC_RELEASE(&core->checkpoint.parts);
    VEC_RELEASE(&core->checkpoint.waiting.operators);
    arena_release(&core->checkpoint.memory);
}

/* ---- the end of an attempt ------------------------------------------------------------------ */

/* Sends RELEASE to every agent that knows checkpoints: the agents need not keep any commit for the
 * attempts so far. */
static void checkpoint_free_commits(struct core *core)
{
    struct msg *msg = tell_msg(core, MSG_RELEASE, 0, 0);

    msg->u.release = (struct msg_release){ .number = core->checkpoint.number };
    for (size_t i = 0; i < core->roster.hosts.count; i++)
        if (core->roster.hosts.items[i]->minor >= CHECKPOINT_MINOR)
            tell_host(core, core->roster.hosts.items[i], msg);
}

/* Sets the time of the next attempt: one --checkpoint-interval after the newest attempt began, and
 * after failures not before a wait (CHECKPOINT_RETRY_US). With an interval in commits (Nc)
 * checkpoint_us is 0, so the next attempt begins at once: the agents then wait for the N-th
 * commit. */
static void checkpoint_schedule(struct core *core)
{
    struct core_checkpoint *checkpoint = &core->checkpoint;
    int64_t retry_us = CHECKPOINT_RETRY_US;

    checkpoint->state = CHECKPOINT_IDLE;
    checkpoint->due_us = time_add(checkpoint->since_us, core->config.checkpoint_us);
    if (!checkpoint->failures)
        return;
    for (uint32_t i = 1; i < checkpoint->failures && retry_us < CHECKPOINT_RETRY_MAX_US; i++)
        retry_us *= 2;
    if (checkpoint->due_us < core->now_us + retry_us)
        checkpoint->due_us = core->now_us + retry_us;
}

/* Ends an attempt that has failed, for the reason `why`: the next attempt is planned, and the
 * operators and workers that wait get an error. */
static void checkpoint_fail(struct core *core, const char *why)
{
    struct core_checkpoint *checkpoint = &core->checkpoint;
    char text[TIME_TEXT_MAX];

    checkpoint->failures++;
    core->costs.checkpoints.failed++;
    checkpoint_free_commits(core);
    checkpoint_schedule(core);
    CORE_WARN(core,
              FACTS(.kind = KIND_CHECKPOINT_FAILED, .cause = why,
                    .left_us = checkpoint->due_us - core->now_us),
              "no checkpoint could be made: %s; the next attempt follows in %s", why,
              time_brief(checkpoint->due_us - core->now_us, text));
    checkpoint_answer(core, checkpoint->since_us, HVD_E_IO,
                      tell_text(core, "no checkpoint could be made: %s", why));
    /* A request has asked for a last checkpoint before the end of the job: the job ends without
     * it. */
    if (checkpoint->last_us != TIME_NEVER)
        checkpoint_stop(core, why);
}

/* Ends an attempt that has succeeded: the newest checkpoint has a state that is at least as new as
 * the state when the attempt began. The operators and workers that wait for it get their answer. */
static void checkpoint_succeed(struct core *core)
{
    struct core_checkpoint *checkpoint = &core->checkpoint;

    checkpoint->failures = 0;
    if (checkpoint->standing)
        checkpoint->stood = checkpoint->round;
    checkpoint_schedule(core);
    checkpoint_answer(core, checkpoint->since_us, 0,
                      tell_text(core, "commit-%" PRIu64 ".%" PRIu32 " is complete",
                                COMMIT_ROUND_OF(checkpoint->newest),
                                COMMIT_PLACE_OF(checkpoint->newest)));
    /* The end of the job was requested before this attempt began, so this was the last
     * checkpoint. */
    if (checkpoint->last_us <= checkpoint->since_us)
        checkpoint_stop(core, NULL /* it is complete */);
}

/* Ends the attempt early without counting it as a failure: another attempt begins when all members
 * train again. If an operator or worker waits for a checkpoint, that attempt does not wait for its
 * interval. */
static void checkpoint_give_up(struct core *core, const char *why)
{
    CORE_DETAIL(core, FACTS(.kind = KIND_CHECKPOINT_POSTPONED, .cause = why),
                "a checkpoint is given up, and begun again later: %s", why);
    checkpoint_free_commits(core);
    core->checkpoint.state = CHECKPOINT_IDLE;
    core->checkpoint.due_us = core->now_us;
    core->checkpoint.wanted |= checkpoint_is_awaited(core);
}

/* ---- IDLE to HOLDING ------------------------------------------------------------------------ */

/* Returns the round whose commits are written: normally the current round. The exception: a switch
 * was agreed on, and a member waits before the agreed check until its commit of the round before is
 * in a checkpoint (PERSIST). No member enters the current round until then, so the round before is
 * returned. */
static const struct round *checkpoint_round(const struct core *core)
{
    const struct round *current = &core->current, *last = &core->last;
    bool is_switching = last->number && current->cause == CAUSE_SWITCH &&
                        current->previous == last->number && !current->entered &&
                        core->checkpoint.passed != last->number;

    return is_switching && core->job == JOB_RUNNING && checkpoint_asked(core, last->number)
               ? last
               : current;
}

/* True: all members of the round whose commits are written (checkpoint_round) still train in that
 * round. */
static bool checkpoint_members_train(const struct core *core)
{
    return checkpoint_round(core) == &core->last ||
           (core->job >= JOB_RUNNING && core->job <= JOB_PENDING &&
            round_all_entered(&core->current));
}

/* Sets the deadline for the agents' answers to HOLD, if none is set. Called when each member has
 * the commit or will soon have it: a member that commits later than the others by --stall-shutdown
 * hangs, or its agent lies. */
static void checkpoint_await_answers(struct core *core)
{
    int64_t most_us = core->config.stall_us;

    if (core->checkpoint.answers_us != TIME_NEVER)
        return;
    if (most_us > CHECKPOINT_SAVE_US)
        most_us = CHECKPOINT_SAVE_US;
    core->checkpoint.answers_us = time_add(core->now_us, most_us);
}

/* Sends HOLD to the agents of all members: keep the newest commit if its number is `at` or higher,
 * otherwise the first commit from `at` on. `only`: no other commit than `at`. The answers (HOLDING)
 * are collected in checkpoint->kept. */
static void checkpoint_hold(struct core *core, uint64_t at, bool only)
{
    struct core_checkpoint *checkpoint = &core->checkpoint;
    size_t members = checkpoint->places.count;

    checkpoint->kept.count = 0;
    if (VEC_RESERVE(&checkpoint->kept, members, LIMIT_WORKERS)) {
        core_fail(core);
        return;
    }
    memset(checkpoint->kept.items, 0, members * sizeof(*checkpoint->kept.items));
    checkpoint->kept.count = checkpoint->missing = members;
    checkpoint->number = core->term << 32 | ++checkpoint->attempts;
    checkpoint->round = checkpoint_round(core)->number;
    checkpoint->at = at;
    checkpoint->only = only;
    checkpoint->state = CHECKPOINT_HOLDING;
    checkpoint->answers_us = checkpoint->impatient_us = TIME_NEVER;
    if (at == COMMIT_FIRST_OF(checkpoint->round) || at <= checkpoint->asked || only)
        /* each member has a commit that may be kept, or will have one soon */
        checkpoint_await_answers(core);
    for (size_t i = 0; i < core->roster.hosts.count; i++) {
        struct core_host *host = core->roster.hosts.items[i];
        struct msg *msg = tell_msg(core, MSG_HOLD, 0, checkpoint->round);
        uint64_t *slots = tell_alloc(core, host->slot_count, sizeof(*slots));
        size_t count = 0;

        for (uint32_t slot = 0; slots && slot < host->slot_count; slot++)
            if (host->slots[slot].trained_round == checkpoint->round)
                slots[count++] = slot;
        msg->u.hold = (struct msg_hold){
            .number = checkpoint->number, .at = at, .only = only, .slots = {slots, count}
        };
        if (count)
            tell_host(core, host, msg);
    }
}

/* Begins an attempt, if one is due and possible. Called by checkpoint_look while none runs.
 * Normally all members must train. A job that is to end, or whose hosts all leave (`urgent`), may
 * be recovering: then the attempt takes the commits that the agents keep, also those of dead
 * members (`standing`). */
static void checkpoint_begin(struct core *core)
{
    struct core_checkpoint *checkpoint = &core->checkpoint;
    const struct core_config *config = &core->config;
    bool urgent = checkpoint->last_us != TIME_NEVER || checkpoint->leaving;
    bool standing = urgent && core->job == JOB_RECOVERING;
    const struct round *round = checkpoint_round(core);
    uint64_t at = COMMIT_FIRST_OF(round->number);

    /* While the job recovers (`standing`) no member makes a commit, so after one success (`stood`
     * is the round) no further attempt is made. */
    if ((standing ? checkpoint->stood == core->current.number : !checkpoint_members_train(core)) ||
        !boot_knows_entries(core))
        return;
    /* The first interval begins when all members train for the first time. */
    if (checkpoint->due_us == TIME_NEVER)
        checkpoint->due_us = time_add(core->now_us, config->checkpoint_us);
    if (urgent && !checkpoint->failures &&
        checkpoint->due_us > time_add(checkpoint->since_us, CHECKPOINT_LEAVING_US))
        checkpoint->due_us = time_add(checkpoint->since_us, CHECKPOINT_LEAVING_US);
    if (checkpoint->due_us > core->now_us && !checkpoint->wanted) {
        core_want_timer(core, checkpoint->due_us);
        return;
    }
    if (!checkpoint_find_places(core, round))
        return;
    checkpoint->since_us = core->now_us;
    checkpoint->standing = standing;
    checkpoint->asked = checkpoint->wanted ? checkpoint_asked(core, round->number) : 0;
    /* `at` is the lowest commit that counts: here the first one of the round, because the members
     * of an earlier round were others. With an interval in commits it is the N-th commit after that
     * of the newest attempt, or after the begin of the round. While hosts leave, it is the first
     * commit that is not in a checkpoint. */
    if (checkpoint->asked > at && !standing)
        at = checkpoint->asked;
    else if (!checkpoint->wanted && !standing && checkpoint->leaving && checkpoint->newest >= at)
        at = checkpoint->newest + 1;
    else if (config->checkpoint_commits && !checkpoint->wanted && !urgent)
        at = (checkpoint->commit > at ? checkpoint->commit : at) + config->checkpoint_commits;
    checkpoint_hold(core, at, false /* or a later one */);
    checkpoint->wanted = false;
}

/* Called at the end of each step: moves the attempt on. Ends an attempt whose round is over, or
 * whose agents answer too late; begins an attempt if none runs and one is due. When the job is
 * finishing, no checkpoint is made any more, and those that wait are told that. */
void checkpoint_look(struct core *core)
{
    struct core_checkpoint *checkpoint = &core->checkpoint;
    bool leaving = checkpoint_all_leave(core);

    if (core->job >= JOB_FINISHING)
        checkpoint_answer(core, core->now_us, HVD_E_STATE, "the job has come to its end");
    if (!core->config.checkpoint_dir || core->job >= JOB_FINISHING)
        return;
    /* When all hosts with members have left, nothing is left of the state. So it is written at
     * once, and again for as long as it changes. */
    if (leaving && !checkpoint->leaving) {
        CORE_WARN(core, FACTS(.kind = KIND_CHECKPOINT_WANTED),
                  "all hosts with workers are to leave: the state is written to a "
                  "checkpoint until they have left");
        checkpoint_hurry(core);
    }
    checkpoint->leaving = leaving;
    if (checkpoint->state == CHECKPOINT_HOLDING &&
        (checkpoint->round != checkpoint_round(core)->number ||
         (core->job == JOB_RECOVERING && !checkpoint->standing)))
        checkpoint_give_up(core, "the round has ended");
    if (checkpoint->state == CHECKPOINT_HOLDING) {
        if (core->now_us >= checkpoint->answers_us)
            checkpoint_fail(core,
                            tell_text(core,
                                      "%s: the agent of this host has not said in time which "
                                      "commits it keeps; kill the process hvd-agent on this host",
                                      checkpoint_awaited_host(core)->name));
        else
            core_want_timer(core, checkpoint->answers_us);
    }
    /* Workers or operators wait, and the commit that was asked for has not been made in time: the
     * newest commit will do. */
    if (checkpoint->state == CHECKPOINT_HOLDING && checkpoint->impatient_us != TIME_NEVER) {
        uint64_t at = COMMIT_FIRST_OF(checkpoint->round);

        if (core->now_us >= checkpoint->impatient_us)
            checkpoint_hold(core, checkpoint->asked > at ? checkpoint->asked : at,
                            false /* or a later one */);
        else
            core_want_timer(core, checkpoint->impatient_us);
    }
    if (checkpoint->state == CHECKPOINT_SAVING) {
        if (core->now_us >= time_add(checkpoint->since_us, CHECKPOINT_SAVE_US))
            checkpoint_fail(
                core, tell_text(core,
                                "%s: the agent of this host has not written its files of the "
                                "checkpoint within 30 minutes (files that are missing, of all "
                                "hosts: %zu); check that --checkpoint-dir takes writes there",
                                checkpoint_awaited_host(core)->name, checkpoint->missing));
        else
            core_want_timer(core, time_add(checkpoint->since_us, CHECKPOINT_SAVE_US));
    }
    if (checkpoint->last_us != TIME_NEVER &&
        (checkpoint->state == CHECKPOINT_IDLE || checkpoint->state == CHECKPOINT_HOLDING)) {
        if (core->now_us >= time_add(checkpoint->last_us, CHECKPOINT_LAST_US)) {
            checkpoint_stop(core, "not all workers trained, or kept the same commit, within 30 s");
            return;
        }
        core_want_timer(core, time_add(checkpoint->last_us, CHECKPOINT_LAST_US));
    }
    if (checkpoint->state == CHECKPOINT_IDLE)
        checkpoint_begin(core);
}

/* ---- HOLDING to SAVING ---------------------------------------------------------------------- */

/* Adds a file to the checkpoint: the host of `place` writes it from the commit that it keeps for
 * the slot. `rank`: the file has the per-rank entries of this rank; -1: it has replicated
 * entries. */
static void checkpoint_add_part(struct core *core, const struct checkpoint_place *place,
                                const char *name, int64_t rank)
{
    struct core_checkpoint *checkpoint = &core->checkpoint;
    size_t bytes = strlen(name) + 1;
    char *copy = arena_alloc(&checkpoint->memory, bytes);

    if (!copy || VEC_RESERVE(&checkpoint->parts, 1, 2 * LIMIT_WORKERS)) {
        core_fail(core);
        return;
    }
    checkpoint->parts.items[checkpoint->parts.count++] = (struct checkpoint_part){
        .host = place->host,
        .file = {.name = memcpy(copy, name, bytes), .rank = rank, .slot = place->slot},
    };
}

/* Sends SAVE to the agent that writes the newest part (the file that checkpoint_add_part added
 * last). `first` and `count` are a range of the entries of the state. Of these the file gets the
 * entries of its kind: replicated ones, or per-rank ones if the file has a rank. */
static void checkpoint_tell_save(struct core *core, size_t first, size_t count)
{
    const struct core_checkpoint *checkpoint = &core->checkpoint;
    const struct checkpoint_part *part = &checkpoint->parts.items[checkpoint->parts.count - 1];
    const struct msg_entry_list *all = &core->manifest.first->entries;
    uint32_t kind = part->file.rank < 0 ? ENTRY_REPLICATED : ENTRY_PER_RANK;
    struct msg_entry *entries = tell_alloc(core, count, sizeof(*entries));
    struct msg *msg = tell_msg(core, MSG_SAVE, 0, 0);
    size_t chosen = 0, length = strlen(core->config.checkpoint_dir) + 64;
    char *folder = tell_alloc(core, length, 1);

    if (!entries || !folder)
        return;
    for (size_t i = first; i < first + count; i++)
        if (all->items[i].kind == kind)
            entries[chosen++] = all->items[i];
    snprintf(folder, length, "%s/commit-%" PRIu64 ".%" PRIu32, core->config.checkpoint_dir,
             COMMIT_ROUND_OF(checkpoint->commit), COMMIT_PLACE_OF(checkpoint->commit));
    msg->u.save = (struct msg_save){
        .number = checkpoint->number,
        .commit = checkpoint->commit,
        .slot = part->file.slot,
        .folder = folder,
        .name = part->file.name,
        .entries = {entries, chosen}
    };
    tell_host(core, part->host, msg);
}

/* Divides the replicated entries among the hosts of the members: each host writes a run of entries,
 * and the runs have about the same size. An entry is not cut, so a state with one large entry is
 * written by one host. */
static void checkpoint_save_replicated(struct core *core)
{
    const struct msg_entry_list *all = &core->manifest.first->entries;
    const struct checkpoint_place *place;
    uint64_t total = 0, share, written = 0;
    size_t hosts = 0, host = 0, next = 0;
    char name[96];

    for (size_t i = 0; i < all->count; i++)
        total += all->items[i].kind == ENTRY_REPLICATED ? all->items[i].bytes : 0;
    core->out.stamps++; /* a host with this stamp was counted before */
    VEC_EACH (place, &core->checkpoint.places) {
        hosts += place->host->stamp != core->out.stamps;
        place->host->stamp = core->out.stamps;
    }
    share = hosts ? total / hosts : total;
    core->out.stamps++;
    VEC_EACH (place, &core->checkpoint.places) {
        size_t first = next;
        bool any = false;

        if (next == all->count)
            break;
        if (place->host->stamp == core->out.stamps)
            continue; /* this host has got its part with its first member */
        place->host->stamp = core->out.stamps;
        host++;
        /* Host number `host` (from 1) writes on until its share is reached; the last host writes
         * all that is left. */
        while (next < all->count && (host == hosts || written < share * host)) {
            bool replicated = all->items[next].kind == ENTRY_REPLICATED;

            written += replicated ? all->items[next].bytes : 0;
            any |= replicated;
            next++;
        }
        if (!any)
            continue;
        snprintf(name, sizeof(name),
                 "replicated-%04zu-of-%04zu.t%" PRIu64 "a%" PRIu32 ".safetensors", host, hosts,
                 core->term, core->checkpoint.attempts);
        checkpoint_add_part(core, place, name, -1 /* replicated entries */);
        if (!core->step.failed)
            checkpoint_tell_save(core, first, next - first);
    }
}

/* All members keep the same commit: the agents are told which files to write. */
static void checkpoint_save(struct core *core)
{
    struct core_checkpoint *checkpoint = &core->checkpoint;
    const struct msg_entry_list *all = &core->manifest.first->entries;
    const struct checkpoint_place *places = checkpoint->places.items;
    bool per_rank = false;
    char name[96];

    arena_release(&checkpoint->memory);
    arena_init(&checkpoint->memory, CHECKPOINT_MEMORY_MAX);
    checkpoint->parts.count = 0;
    checkpoint->commit = checkpoint->kept.items[0];
    checkpoint->mismatches = 0;
    checkpoint->state = CHECKPOINT_SAVING;
    checkpoint_save_replicated(core);
    for (size_t i = 0; i < all->count; i++)
        per_rank |= all->items[i].kind == ENTRY_PER_RANK;
    for (size_t i = 0; per_rank && i < checkpoint->places.count; i++) {
        snprintf(name, sizeof(name), "rank-%05zu.t%" PRIu64 "a%" PRIu32 ".safetensors", i,
                 core->term, checkpoint->attempts);
        checkpoint_add_part(core, &places[i], name, (int64_t)i);
        if (!core->step.failed)
            checkpoint_tell_save(core, 0, all->count); /* from all entries, those per rank */
    }
    checkpoint->missing = checkpoint->parts.count;
    core_want_timer(core, time_add(checkpoint->since_us, CHECKPOINT_SAVE_US));
    if (!checkpoint->missing)
        checkpoint_fail(core, "the state has no entries");
}

/* All agents have answered HOLD: compares the commits that they keep. If all keep the same one, the
 * files are written. They keep different ones if a member had gone on before its HOLD came; then
 * all are asked for a commit that no member has made yet. */
static void checkpoint_compare(struct core *core)
{
    struct core_checkpoint *checkpoint = &core->checkpoint;
    uint64_t least = UINT64_MAX, most = 0, margin = CHECKPOINT_MARGIN_MIN;

    for (size_t i = 0; i < checkpoint->kept.count; i++) {
        uint64_t commit = checkpoint->kept.items[i];

        least = commit < least ? commit : least;
        most = commit > most ? commit : most;
    }
    if ((least == most || checkpoint->standing) && least <= checkpoint->newest) {
        /* The training has stood still since the newest checkpoint, which must not be overwritten:
         * a death in the middle would leave neither the old files nor the new ones. */
        checkpoint->commit = least;
        checkpoint->mismatches = 0;
        checkpoint_free_commits(core);
        checkpoint_succeed(core);
        return;
    }
    if (least == most) {
        checkpoint_save(core);
        return;
    }
    /* The members stand still, and some have made more commits than others. The last commit that
     * all members have made is the lowest of the newest ones; a member that was ahead still has
     * that commit. */
    if (checkpoint->standing && !checkpoint->only) {
        checkpoint_hold(core, least, true /* no other commit */);
        return;
    }
    if (checkpoint->standing || ++checkpoint->mismatches > CHECKPOINT_MISMATCHES_MAX) {
        checkpoint->mismatches = 0;
        checkpoint_fail(core, "members kept different commits again and again, although the driver "
                              "had said early which commit to keep; check that the connections to "
                              "the agents are not slow");
        return;
    }
    for (uint32_t i = 1; i < checkpoint->mismatches && margin < CHECKPOINT_MARGIN_MAX; i++)
        margin *= 2;
    checkpoint_hold(core, most + margin, false /* or a later one */);
    if (checkpoint_is_awaited(core)) /* members may stand still until the checkpoint is complete */
        checkpoint->impatient_us =
            core->now_us + (CHECKPOINT_IMPATIENT_US
                            << (checkpoint->mismatches < 6 ? checkpoint->mismatches - 1 : 5));
}

/* Handles HOLDING, the answer to HOLD: for each named slot the agent keeps the commit that it says,
 * or it cannot (a code other than 0). The last answer leads to checkpoint_compare. */
void checkpoint_on_holding(struct core *core, struct core_host *host, const struct msg *msg)
{
    struct core_checkpoint *checkpoint = &core->checkpoint;
    const struct msg_holding *said = &msg->u.holding;

    if (checkpoint->state != CHECKPOINT_HOLDING || said->number != checkpoint->number)
        return; /* PROTOCOL.md, K2: the attempt is over */
    if (said->code) {
        checkpoint_fail(core, tell_text(core, "%s: %s", host->name, said->text));
        return;
    }
    for (size_t i = 0; i < said->kept.count; i++) {
        const struct msg_kept *kept = &said->kept.items[i];
        const struct core_slot *slot =
            kept->slot < host->slot_count ? &host->slots[kept->slot] : NULL;

        /* the slot has no member of this round, or its answer has come before */
        if (!slot || slot->trained_round != checkpoint->round ||
            checkpoint->kept.items[slot->trained_rank])
            continue;
        if (checkpoint->round == core->last.number && kept->commit == core->current.commit) {
            /* this member has passed the agreed check: it keeps the commit of the current round */
            checkpoint->passed = checkpoint->round;
            checkpoint_refuse_passed(core);
            checkpoint_give_up(core, "the members go on to the next round");
            return;
        }
        if (COMMIT_ROUND_OF(kept->commit) != checkpoint->round || kept->commit < checkpoint->at) {
            authority_refuse(core, host,
                             "the agent keeps a commit that the driver did not ask for");
            checkpoint_fail(
                core,
                tell_text(core, "the agent of %s keeps a commit that the driver did not ask for",
                          host->name));
            return;
        }
        checkpoint->kept.items[slot->trained_rank] = kept->commit;
        checkpoint->missing--;
        /* one member has made such a commit, so the others will soon */
        checkpoint_await_answers(core);
    }
    /* A member that has finished meanwhile would have no file in the checkpoint. */
    if (!checkpoint->missing && !checkpoint->standing && !checkpoint_members_train(core))
        checkpoint_give_up(core, "a member does not train any more");
    else if (!checkpoint->missing)
        checkpoint_compare(core);
}

/* ---- SAVING to WRITING, and the end --------------------------------------------------------- */

/* All files are durable: the driver's writer makes the checkpoint complete. Agents need to keep the
 * commit no longer. */
static void checkpoint_write(struct core *core)
{
    struct core_checkpoint *checkpoint = &core->checkpoint;
    size_t count = checkpoint->parts.count;
    struct checkpoint_done *done = arena_alloc(&checkpoint->memory, sizeof(*done));
    struct saved_file *files = arena_alloc_array(&checkpoint->memory, count, sizeof(*files));
    char *folder = arena_alloc(&checkpoint->memory, 64);

    if (!done || !files || !folder) {
        core_fail(core);
        return;
    }
    for (size_t i = 0; i < count; i++)
        files[i] = checkpoint->parts.items[i].file;
    snprintf(folder, 64, "commit-%" PRIu64 ".%" PRIu32, COMMIT_ROUND_OF(checkpoint->commit),
             COMMIT_PLACE_OF(checkpoint->commit));
    *done = (struct checkpoint_done){ .number = checkpoint->number,
                                      .commit = checkpoint->commit,
                                      .ranks = (uint32_t)checkpoint->kept.count,
                                      .digest = core->manifest.digest,
                                      .entries = core->manifest.first->entries,
                                      .files = files,
                                      .file_count = count,
                                      .folder = folder };
    checkpoint->state = CHECKPOINT_WRITING;
    checkpoint_free_commits(core);
    tell_checkpoint(core, done);
}

/* Handles SAVED, the answer to SAVE: the agent's file is durable, or could not be written (a code
 * other than 0). After the last file the manifest is written. */
void checkpoint_on_saved(struct core *core, struct core_host *host, const struct msg *msg)
{
    struct core_checkpoint *checkpoint = &core->checkpoint;
    const struct msg_saved *said = &msg->u.saved;
    struct checkpoint_part *part;
    uint64_t chunks = said->bytes / STATE_CHUNK_BYTES + (said->bytes % STATE_CHUNK_BYTES != 0);
    uint8_t *sums;

    if (checkpoint->state != CHECKPOINT_SAVING || said->number != checkpoint->number)
        return; /* PROTOCOL.md, K2: the attempt is over */
    VEC_EACH (part, &checkpoint->parts) {
        /* a file that is saved already: the message has come twice */
        if (part->host != host || part->saved || strcmp(part->file.name, said->name) != 0)
            continue;
        if (said->code || said->sums.length != chunks * sizeof(uint64_t) || !chunks) {
            checkpoint_fail(
                core,
                tell_text(core, "%s: %s", host->name,
                          said->code ? said->text
                                     : "the agent of this host has sent a wrong number of "
                                       "checksums; install the same version of hvd-elastic there"));
            return;
        }
        sums = arena_alloc(&checkpoint->memory, said->sums.length);
        if (!sums) {
            checkpoint_fail(core,
                            "the checksums of the state need more than 256 MiB of the driver's "
                            "memory; commit a smaller state, or none to --checkpoint-dir");
            return;
        }
        memcpy(sums, said->sums.at, said->sums.length);
        part->file.bytes = said->bytes;
        part->file.sums = (struct msg_bytes){ sums, said->sums.length };
        part->saved = true;
        if (!--checkpoint->missing)
            checkpoint_write(core);
        return;
    }
}

/* Notes which complete checkpoint is the newest: the one that the event names, or none
 * (event->commit 0). */
static void checkpoint_set_newest(struct core *core, const struct event *event)
{
    core->checkpoint.newest = event->commit;
    core->costs.checkpoints.made_us = TIME_NEVER;
    snprintf(core->checkpoint.folder, sizeof(core->checkpoint.folder), "%s",
             event->commit ? event->text : "");
    core_want_round(core); /* a recovery may have waited to know the newest checkpoint */
}

/* Handles EVENT_CHECKPOINT: the manifest was written, so the checkpoint is complete; or it could
 * not be written; or a search for an older checkpoint has ended, or the store could be opened at
 * last (`ask` 0). */
void checkpoint_on_written(struct core *core, const struct event *event)
{
    struct core_checkpoint *checkpoint = &core->checkpoint;
    uint64_t bytes = 0;
    const struct checkpoint_part *part;
    char text[TIME_TEXT_MAX];

    if (!event->ask) {
        bool awaited = core->config.checkpoint_awaited;

        checkpoint->searching = core->config.checkpoint_awaited = false;
        if (awaited && core->rounds.told < COMMIT_ROUND_OF(event->commit))
            /* as checkpoint_init does: rounds get higher numbers than any that a checkpoint has */
            core->rounds.told = COMMIT_ROUND_OF(event->commit);
        checkpoint_set_newest(core, event);
        if (awaited && event->code && event->code != HVD_E_NOTFOUND)
            CORE_WARN(core, FACTS(.kind = KIND_CHECKPOINTS_MISSING, .cause = event->text),
                      "the job goes on without checkpoints: %s", event->text);
        else if (awaited)
            CORE_TRACE(core, FACTS(.kind = KIND_CHECKPOINTS_FOUND, .commit = event->commit),
                       "the store of checkpoints answers; the newest one is %" PRIu64 ".%" PRIu32,
                       COMMIT_ROUND_OF(event->commit), COMMIT_PLACE_OF(event->commit));
        if (!awaited && !event->commit && !core->rounds.resume_min_commit)
            over_fail(core, tell_text(core,
                                      "no checkpoint in %s can be read: %s; to begin anew, give "
                                      "another --checkpoint-dir",
                                      core->config.checkpoint_dir, event->text));
        return;
    }
    if (checkpoint->state != CHECKPOINT_WRITING || event->ask != checkpoint->number)
        return;
    if (event->code) {
        checkpoint_fail(core, event->text);
        return;
    }
    checkpoint_set_newest(core, event);
    core->costs.checkpoints.made_us = core->now_us;
    core->costs.checkpoints.written++;
    VEC_EACH (part, &checkpoint->parts)
        bytes += part->file.bytes;
    CORE_TRACE(core,
               FACTS(.kind = KIND_CHECKPOINT_COMPLETE, .commit = event->commit,
                     .took_us = core->now_us - checkpoint->since_us),
               "checkpoint %" PRIu64 ".%" PRIu32 " is complete: %zu files, %" PRIu64 " bytes, %s",
               COMMIT_ROUND_OF(event->commit), COMMIT_PLACE_OF(event->commit),
               checkpoint->parts.count, bytes,
               time_brief(core->now_us - checkpoint->since_us, text));
    checkpoint_succeed(core);
}

/* The connection to the agent of this host is gone. An attempt that still needs an answer or a file
 * of this agent is given up, and another attempt begins later. */
void checkpoint_on_lost(struct core *core, struct core_host *host)
{
    struct core_checkpoint *checkpoint = &core->checkpoint;
    const struct checkpoint_place *place;
    const struct checkpoint_part *part;

    if (core->job >= JOB_FINISHING)
        return; /* the job is ending, so agents end too: that is no loss */
    VEC_EACH (place, &checkpoint->places) {
        if (checkpoint->state == CHECKPOINT_HOLDING && place->host == host)
            checkpoint_give_up(core, tell_text(core, "the agent of %s is gone", host->name));
    }
    if (checkpoint->state != CHECKPOINT_SAVING)
        return;
    VEC_EACH (part, &checkpoint->parts)
        if (part->host == host && !part->saved) {
            checkpoint_give_up(core, tell_text(core, "the agent of %s is gone", host->name));
            return;
        }
}

/* The agent of this host has said hello. It may still keep commits for attempts that are over, so
 * it gets a RELEASE for all attempts before the running one. The running attempt needs nothing of
 * this agent: checkpoint_on_lost has given up an attempt that did. */
void checkpoint_greet(struct core *core, struct core_host *host)
{
    const struct core_checkpoint *checkpoint = &core->checkpoint;
    struct msg *msg;
    bool busy = checkpoint->state == CHECKPOINT_HOLDING || checkpoint->state == CHECKPOINT_SAVING;

    if (!core->config.checkpoint_dir || host->minor < CHECKPOINT_MINOR)
        return;
    msg = tell_msg(core, MSG_RELEASE, 0, 0);
    /* The number of an attempt begins with the term of its driver, so the first number of this
     * driver (term << 32) ends the attempts of all earlier drivers. */
    msg->u.release.number = busy ? checkpoint->number - 1 : checkpoint->number;
    if (!msg->u.release.number)
        msg->u.release.number = core->term << 32;
    tell_host(core, host, msg);
}

/* ---- a round that begins with a checkpoint -------------------------------------------------- */

/* A round could not begin with the newest checkpoint, because members could not read it (`why`). It
 * is not used any more; the driver looks for the newest one before it, and EVENT_CHECKPOINT brings
 * the result. */
void checkpoint_reject(struct core *core, const char *why)
{
    struct core_checkpoint *checkpoint = &core->checkpoint;

    CORE_WARN(core,
              FACTS(.kind = KIND_CHECKPOINT_DAMAGED, .commit = checkpoint->newest, .cause = why),
              "checkpoint %" PRIu64 ".%" PRIu32 " cannot be used: %s; the driver looks for "
              "the one before it",
              COMMIT_ROUND_OF(checkpoint->newest), COMMIT_PLACE_OF(checkpoint->newest), why);
    tell_checkpoint_reject(core, checkpoint->folder, checkpoint->newest);
    checkpoint->newest = 0;
    checkpoint->searching = true;
}
