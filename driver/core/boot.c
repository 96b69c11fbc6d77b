/*
 * boot.c: the first messages of a worker: LAUNCHED, LAUNCH_FAILED and READY. agents.c and hello.c
 * call it. A worker becomes READY once; after that only rounds change its state. A worker that has
 * said READY counts as joined for good, even if it is rejected for its manifest: every worker of a
 * job registers the same state (its manifest lists the entries), and the job goes on without a
 * worker that has another manifest.
 */
#include "driver/core/boot.h"

#include "base/mem.h"
#include "driver/core/elect.h"
#include "driver/core/loss.h"
#include "driver/core/roster.h"
#include "driver/core/slots.h"
#include "driver/core/step.h"
#include "driver/core/tell.h"
#include "proto/entry_type.h"

#include <inttypes.h>
#include <string.h>

#define MANIFEST_MEMORY_MAX ((size_t)64 << 20)

void boot_release_manifest(struct core *core)
{
    if (!core->manifest.first)
        return;
    arena_release(&core->manifest.first->memory);
    mem_free(core->manifest.first);
    core->manifest.first = NULL;
}

/* Returns a text for the operator that names the first entry in which the two lists differ. `ours`
 * is the manifest that counts for the job; it is empty if only its digest is known. `theirs` is the
 * manifest of the worker that has just said READY: "this worker" of the texts. */
static const char *boot_manifest_difference(struct core *core, const struct msg_entry_list *ours,
                                            const struct msg_entry_list *theirs)
{
    for (size_t i = 0; i < ours->count && i < theirs->count; i++) {
        const struct msg_entry *a = &ours->items[i];
        const struct msg_entry *b = &theirs->items[i];

        if (strcmp(a->name, b->name) != 0)
            return tell_text(core,
                             "the worker's state differs: entry %zu is \"%s\" on this worker, and "
                             "\"%s\" on other workers",
                             i + 1, b->name, a->name);
        if (a->kind != b->kind)
            return tell_text(core,
                             "the worker's state differs: entry \"%s\" is replicated on some "
                             "workers, and per rank on others",
                             a->name);
        if (a->bytes != b->bytes)
            return tell_text(core,
                             "the worker's state differs: entry \"%s\" has %" PRIu64
                             " bytes on this worker, and %" PRIu64 " bytes on other workers",
                             a->name, b->bytes, a->bytes);
        if (a->custom != b->custom)
            return tell_text(core,
                             "the worker's state differs: functions of the program save entry "
                             "\"%s\" on some workers only",
                             a->name);
        if (a->type != b->type)
            return tell_text(core,
                             "the worker's state differs: entry \"%s\" consists of %s on this "
                             "worker, and of %s on other workers",
                             a->name, entry_type_text(b->type), entry_type_text(a->type));
    }
    if (theirs->count > ours->count && ours->count)
        return tell_text(core,
                         "the worker's state differs: entry \"%s\" is missing on other workers",
                         theirs->items[ours->count].name);
    if (ours->count > theirs->count && theirs->count)
        return tell_text(
            core,
            "the worker's state differs: entry \"%s\" of other workers is missing on this worker",
            ours->items[theirs->count].name);
    return "the worker's state differs from the state of the other workers";
}

/* True: the entries of the state are known, with the offsets of their bytes in the state's memory.
 * A checkpoint can only be made then. The offsets of one kind of entry rise; if they do not, the
 * worker did not send them. */
bool boot_knows_entries(const struct core *core)
{
    const struct msg_entry_list *entries;
    uint64_t end[ENTRY_KIND_COUNT] = { 0 };

    if (!core->manifest.first)
        return false;
    entries = &core->manifest.first->entries;
    for (size_t i = 0; i < entries->count; i++) {
        /* A library of an earlier release sends no offsets: all are 0, so the second entry of a
         * kind begins before the end of the first. */
        if (entries->items[i].offset < end[entries->items[i].kind])
            return false;
        end[entries->items[i].kind] = entries->items[i].offset + entries->items[i].bytes;
    }
    return true;
}

/* Keeps a copy of the entries of the first manifest: the manifests of later workers are compared
 * with these entries, and a checkpoint lists them. If the copy exists already, nothing changes. */
static void boot_keep_entries(struct core *core, const struct msg_entry_list *entries)
{
    struct core_entries *first;
    struct msg_entry *items;

    if (core->manifest.first || !entries->count)
        return;
    first = core->manifest.first = mem_zalloc(sizeof(*first));
    if (!first) {
        core_fail(core);
        return;
    }
    arena_init(&first->memory, MANIFEST_MEMORY_MAX);
    items = arena_alloc_array(&first->memory, entries->count, sizeof(*items));
    for (size_t i = 0; items && i < entries->count; i++) {
        size_t length = strlen(entries->items[i].name) + 1;
        char *name = arena_alloc(&first->memory, length);

        if (!name) {
            core_fail(core);
            return;
        }
        memcpy(name, entries->items[i].name, length);
        items[i] = entries->items[i];
        items[i].name = name;
    }
    if (items)
        first->entries = (struct msg_entry_list){ items, entries->count };
    else
        core_fail(core);
}

/* Returns NULL, or the reason why the worker of this READY cannot take part. The first manifest
 * (the list of entries of the state) of the job counts; each later worker is compared with it by
 * its digest. */
static const char *boot_judge_manifest(struct core *core, const struct msg_ready *ready)
{
    const struct msg_entry_list none = { NULL, 0 }, *entries = &ready->entries;
    const struct core_entries *first = core->manifest.first;

    if (!core->manifest.known) {
        core->manifest.known = true;
        core->manifest.digest = ready->manifest;
    }
    if (core->manifest.digest != ready->manifest)
        return boot_manifest_difference(core, first ? &first->entries : &none, entries);
    boot_keep_entries(core, entries);
    return NULL;
}

/* Handles LAUNCHED: the process of the worker runs. A repetition, or a LAUNCHED after READY,
 * changes nothing. */
void boot_on_launched(struct core *core, struct worker *worker)
{
    const struct worker_limit limit = worker->limit;

    if (worker->state != WORKER_LAUNCHING)
        return;
    roster_move(core, worker, WORKER_BOOTING);
    /* roster_move has cleared the worker's time limit. But --start-timeout counts from the launch
     * to READY, so the limit is set again. */
    worker->limit = limit;
}

/* Handles LAUNCH_FAILED: the agent could not start the process of this worker. A worker that has
 * not said READY, or counts as dead (DOOMED), has ended now; for any other the message is wrong, as
 * it has a process. The code HVD_E_STATE says in any case that the agent is ending. */
void boot_on_launch_failed(struct core *core, struct worker *worker, const struct msg *msg)
{
    const struct msg_launch_failed *said = &msg->u.launch_failed;
    const struct ending ending = {
        .ended = ENDED_EXIT,
        /* an error code, which is negative: no process was started, so there is no exit code */
        .value = said->code ? said->code : HVD_E_INTERNAL,
        .text = tell_text(core, "the worker could not be started: %s", said->text),
        .excused = said->code == HVD_E_STATE,
    };

    /* PROTOCOL.md, LAUNCH: the code HVD_E_STATE says that the agent is ending. */
    worker->host->ending = worker->host->ending || ending.excused;
    if (worker->state <= WORKER_BOOTING || worker->state == WORKER_DOOMED)
        loss_ended(core, worker, &ending);
}

/* Handles READY: the worker has registered its state. The worker becomes READY, or is killed if its
 * manifest differs from the one that counts. */
void boot_on_ready(struct core *core, struct worker *worker, const struct msg *msg)
{
    const struct msg_ready *ready = &msg->u.ready;
    struct core_manifest *manifest = &core->manifest;
    struct worker *other;
    const char *mismatch;
    char name[WORKER_NAME_MAX];

    if (worker->state > WORKER_BOOTING || (worker->joined && msg->round)) {
        /* PROTOCOL.md, K4: this READY repeats an earlier one. A READY with a round is sent only for
         * its list of entries, from which a driver that has taken over learns the entries of the
         * state. */
        if (worker_is_alive(worker) && manifest->known && manifest->digest == ready->manifest)
            boot_keep_entries(core, &ready->entries);
        return;
    }
    if (!roster_keep_addresses(worker, &ready->addresses)) {
        core_fail(core);
        return;
    }
    if (!worker->joined) {
        struct journal_record *record = tell_record(core, JOURNAL_READY);

        record->incarnation = worker->incarnation;
        record->manifest = ready->manifest;
        record->addresses = worker->addresses;
    }
    worker->joined = true;
    loss_forget_boots(core);
    worker->host->slots[worker->slot].failed_boots = 0;
    elect_note(core, worker, &ready->held);
    roster_move(core, worker, WORKER_READY);
    if (!core->launch.anyone_joined)
        slots_first_joined(core);

    /* Before the first round the manifest that counts may be replaced, because the worker that came
     * first may be the one with the wrong state. `rivals` counts the workers in a row that came
     * with the same other manifest. If `rivals` is greater than the number of READY workers (this
     * worker is not counted: - 1), the manifest of the rivals counts from now on, and those READY
     * workers are killed. */
    if (!core->rounds.told && manifest->known && manifest->digest != ready->manifest) {
        manifest->rivals = manifest->rival == ready->manifest ? manifest->rivals + 1 : 1;
        manifest->rival = ready->manifest;
        if (manifest->rivals > core->roster.count[WORKER_READY] - 1) {
            boot_release_manifest(core);
            manifest->known = false;
            manifest->rivals = 0;
            for (size_t i = 0; (other = roster_next(core, &i));)
                if (other != worker && other->state == WORKER_READY)
                    loss_kill(core, other,
                              "the worker's state differs from the state of most workers; run the "
                              "same program on all hosts",
                              false /* not excused: the worker is to blame */,
                              core->config.kill_grace_us);
        }
    }
    mismatch = boot_judge_manifest(core, ready);
    if (mismatch)
        loss_kill(core, worker, tell_text(core, "%s; run the same program on all hosts", mismatch),
                  false /* not excused: the worker is to blame */, core->config.kill_grace_us);
    else
        CORE_DETAIL(core, FACTS(.kind = KIND_WORKER_READY, OF_WORKER(worker)), "%s is ready",
                    worker_name(worker, name));
}
