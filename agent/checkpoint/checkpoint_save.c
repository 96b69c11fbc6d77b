/*
 * checkpoint_save.c: writes one file of a checkpoint from the memory of a held commit, of which no
 * copy is made. Called by checkpoint_thread.c. Invariant: a SAVED without an error says that the
 * file is durable, and that all its bytes were compared with the checksums that the worker made
 * with the commit.
 */
#include "agent/checkpoint/checkpoint_internal.h"
#include "base/mem.h"
#include "os/clock.h"
#include "proto/commit.h"
#include "state/checkpoint/manifest.h"
#include "state/checkpoint/part.h"
#include "state/snapshot/custom.h"
#include "state/snapshot/snapshot_hold.h"
#include "state/sum.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* While a file is written, the thread pauses for commits of workers. All pauses of one file
 * together last at most give_way_us and GIVE_WAY_TIMES the time that was spent on the file itself.
 */
#define GIVE_WAY_TIMES 3

struct save {
    struct checkpoint_thread *thread;
    const struct msg_save *asked;
    const struct snapshot *snapshot;
    const uint8_t *bytes;                       /* the held commit */
    struct part_source *sources;                /* where the bytes of each entry are */
    struct checkpoint_store *storage;           /* the place of all checkpoints */
    char name[LIMIT_CHECKPOINT_NAME_BYTES + 1]; /* the file in `storage`: FOLDER/NAME */
    int64_t began_us;
    int64_t waited_us;           /* the pauses for workers that wrote commits */
    struct part_written written; /* length and checksums of the file */
};

/* Called before each chunk of the file (a part_stop_fn). First the thread pauses while a worker of
 * this host writes a commit: both would share the bandwidth of the memory, and the training waits
 * for the end of its commit. The pauses are limited (GIVE_WAY_TIMES), so that a program which does
 * little but commits gets its checkpoints, too. Returns true if the write must stop: the attempt is
 * over, or the snapshot holds the commit no longer. */
static bool save_should_stop(void *arg)
{
    struct save *save = arg;
    int64_t now_us = clock_now_us();
    int64_t worked_us = now_us - save->began_us - save->waited_us;
    int64_t most_us = save->thread->config.give_way_us + GIVE_WAY_TIMES * worked_us;

    checkpoint_give_way(save->thread, now_us + most_us - save->waited_us);
    save->waited_us += clock_now_us() - now_us;
    return !checkpoint_is_wanted(save->thread, save->asked->number) ||
           !snapshot_hold_stands(save->snapshot);
}

/* Finds the commit that the SAVE names among the held ones. HVD_E_STATE: its slot holds none for
 * this attempt, or another one. */
static int save_find(struct save *save, struct hvd_err *err)
{
    const struct checkpoint_task *held = save->thread->held;

    for (size_t i = 0; held && held->complete && i < held->slot_count; i++) {
        const struct held_slot *slot = &held->slots[i];

        if (held->msg.u.hold.number != save->asked->number || slot->slot != save->asked->slot)
            continue;
        if (slot->commit != save->asked->commit)
            return err_set(err, HVD_E_STATE,
                           "slot %u keeps commit %" PRIu64 ".%" PRIu32
                           ", and the driver asks for commit %" PRIu64 ".%" PRIu32
                           "; the driver and the agent must be of the same release",
                           slot->slot, COMMIT_ROUND_OF(slot->commit), COMMIT_PLACE_OF(slot->commit),
                           COMMIT_ROUND_OF(save->asked->commit),
                           COMMIT_PLACE_OF(save->asked->commit));
        save->snapshot = shared_snapshot_of(slot->shared);
        save->bytes = snapshot_hold_bytes(save->snapshot);
        return 0;
    }
    return err_set(err, HVD_E_STATE,
                   "slot %u keeps no commit for checkpoint %" PRIu64
                   "; the driver begins another checkpoint",
                   save->asked->slot, save->asked->number);
}

/* Finds the bytes of each entry in the held commit. The numbers in the message and in the snapshot
 * may be wrong, so they are checked: an entry must lie within the commit, and a custom entry must
 * not be longer than its room. */
static int save_find_entries(struct save *save, struct hvd_err *err)
{
    const struct msg_entry_list *entries = &save->asked->entries;
    uint64_t most = snapshot_shape(save->snapshot)->bytes;

    save->sources = mem_zalloc_array(entries->count, sizeof(*save->sources));
    if (!save->sources)
        return err_set(err, HVD_E_NOMEM,
                       "slot %u: no memory for the list of the %zu entries of the checkpoint; free "
                       "memory on this host",
                       save->asked->slot, entries->count);
    for (size_t i = 0; i < entries->count; i++) {
        const struct msg_entry *entry = &entries->items[i];
        uint64_t begin = entry->custom ? CUSTOM_LENGTH_BYTES : 0;
        uint64_t length = entry->bytes;

        if (entry->offset > most || begin > most - entry->offset ||
            entry->bytes > most - entry->offset - begin)
            return err_set(err, HVD_E_INVAL,
                           "entry \"%s\" does not lie in the commit; the driver and the agent must "
                           "be of the same release",
                           entry->name);
        if (entry->custom)
            length = custom_length(save->bytes + entry->offset);
        if (length > entry->bytes)
            return err_set(err, HVD_E_CORRUPT,
                           "entry \"%s\" has %" PRIu64
                           " bytes in the commit, but room for only %" PRIu64
                           "; the commit was damaged in memory: test the memory of this host",
                           entry->name, length, entry->bytes);
        save->sources[i] = (struct part_source){ .name = entry->name,
                                                 .at = save->bytes + entry->offset + begin,
                                                 .bytes = length,
                                                 .type = entry->type };
    }
    return 0;
}

/* Writes the file, and compares the checksums afterwards. A file with an error is removed. If it
 * cannot be removed it does no harm, because no manifest will name it. */
static int save_write(struct save *save, struct hvd_err *err)
{
    const struct part_sources sources = { .commit = save->asked->commit,
                                          .items = save->sources,
                                          .count = save->asked->entries.count };
    const struct msg_entry_list *entries = &save->asked->entries;
    uint64_t verified = UINT64_MAX; /* the chunk that was compared last */
    struct hvd_err ignored;
    int rc = part_write(save->storage, save->name, &sources, save_should_stop, save, &save->written,
                        err);

    if (rc)
        return rc;
    /* All chunks in which the entries lie are compared with the checksums of the commit after the
     * write, so that a fault of the memory during the write is found, too. */
    for (size_t i = 0; i < entries->count && !rc; i++) {
        uint64_t chunk = entries->items[i].offset / STATE_CHUNK_BYTES;
        uint64_t to =
            (uint64_t)((const uint8_t *)save->sources[i].at - save->bytes) + save->sources[i].bytes;

        for (; chunk * STATE_CHUNK_BYTES < to && !rc; chunk++) {
            if (chunk == verified)
                continue;
            if (save_should_stop(save))
                rc = HVD_E_REVOKED;
            else if (sum_of(save->bytes + chunk * STATE_CHUNK_BYTES, STATE_CHUNK_BYTES) !=
                     snapshot_hold_sum(save->snapshot, chunk))
                rc = err_set(err, HVD_E_CORRUPT,
                             "entry \"%s\": the checksum of chunk %" PRIu64
                             " is wrong: the program changed the entry during the commit, or "
                             "memory has failed; change the entry only between commits, or test "
                             "the memory",
                             entries->items[i].name, chunk);
            verified = chunk;
        }
    }
    /* the worker may have taken the memory back during the last read: then the bytes are wrong */
    if (!rc && !snapshot_hold_stands(save->snapshot))
        rc = HVD_E_REVOKED;
    if (rc)
        (void)!checkpoint_store_remove(save->storage, save->name, &ignored);
    return rc;
}

/* Carries out one SAVE, and answers it. HVD_E_REVOKED: its attempt ended during the write; the
 * driver ignores such an answer. */
void checkpoint_save_run(struct checkpoint_thread *thread, struct checkpoint_task *task)
{
    struct save save = { .thread = thread, .asked = &task->msg.u.save, .began_us = clock_now_us() };
    struct msg msg = { .type = MSG_SAVED, .round = task->msg.round };
    char where[LIMIT_PATH_BYTES + 1];
    struct hvd_err err = { 0 };
    const char *folder;
    int rc;

    rc = save_find(&save, &err);
    if (!rc)
        rc = save_find_entries(&save, &err);
    if (!rc)
        rc = checkpoint_folder_split(save.asked->folder, where, &folder, &err);
    if (!rc && (size_t)snprintf(save.name, sizeof(save.name), "%s/%s", folder, save.asked->name) >=
                   sizeof(save.name))
        rc = err_set(&err, HVD_E_LIMIT,
                     "%s: the name is longer than %d bytes (LIMIT_CHECKPOINT_NAME_BYTES); the "
                     "driver and the agent must be of the same release",
                     save.name, LIMIT_CHECKPOINT_NAME_BYTES);
    if (!rc)
        rc = thread->config.open(where, &save.storage, &err);
    if (!rc)
        rc = save_write(&save, &err);
    /* two causes of a stop: the attempt is over, or the worker has taken the memory back */
    if (rc == HVD_E_REVOKED && !snapshot_hold_stands(save.snapshot))
        rc = err_set(&err, HVD_E_NOMEM,
                     "slot %u: the worker needed the memory of the held commit; a checkpoint needs "
                     "memory for three commits of each worker, so run fewer workers on this host",
                     save.asked->slot);
    msg.u.saved = (struct msg_saved){
        .number = save.asked->number, .name = save.asked->name, .code = rc, .text = err.text
    };
    if (!rc) {
        msg.u.saved.bytes = save.written.bytes;
        msg.u.saved.sums =
            (struct msg_bytes){ (const uint8_t *)save.written.sums.data, save.written.sums.length };
    }
    checkpoint_answer(thread, task, &msg);
    buf_release(&save.written.sums);
    checkpoint_store_close(save.storage);
    mem_free(save.sources);
}
