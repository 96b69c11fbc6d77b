/*
 * state_checkpoint.c: reads the entries of a checkpoint by their names and makes a commit of them,
 * as the worker would have made it: equal bytes, and so equal checksums. Called by state_fetch.c
 * and state_progress.c. Invariant: bytes go into the snapshot under the lock and only until the
 * reading is cancelled; the disk is read without the lock.
 */
#include "agent/commits/state_checkpoint.h"

#include "base/mem.h"
#include "base/panic.h"
#include "os/thread.h"
#include "proto/entry_type.h"
#include "state/checkpoint/read.h"
#include "state/snapshot/custom.h"
#include "state/sum.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

struct reading {
    atomic_uint holders;            /* the fetch, and the thread while it runs */
    struct msg fetch;               /* a copy of the FETCH */
    int wake;                       /* eventfd that is written when the reading is over */
    struct shared_snapshot *shared; /* the worker's snapshot; the reading is a holder of it */
    uint8_t *into;                  /* the open buffer in that snapshot */

    pthread_mutex_t mutex; /* protects `cancelled`, the bytes of `into` and the result */
    bool cancelled;        /* no byte may be written into the snapshot any more */
    bool over;             /* the thread is done, and `result` is valid */
    struct reading_result result;

    /* only the thread of the reading uses the fields below */
    struct checkpoint_store *store;
    struct checkpoint_manifest manifest;
    struct checkpoint_reader *reader;
    struct read_entry *entries; /* the entries that are read, sorted by offset */
    size_t count;
    uint8_t *chunk;
};

/* An entry, and where its bytes are in the commit. */
struct read_entry {
    const struct msg_entry *entry;
    uint64_t used;   /* bytes in the commit, the length of a custom entry included */
    uint64_t length; /* bytes of the entry's value in the checkpoint */
};

/* Returns the folder of the checkpoint that is the source of a FETCH; NULL: the sources are
 * workers. The folder is an address that begins with "checkpoint=". */
const char *reading_folder(const struct msg_fetch *fetch)
{
    for (size_t i = 0; i < fetch->sources.count; i++) {
        const struct msg_texts *addresses = &fetch->sources.items[i].addresses;

        for (size_t k = 0; k < addresses->count; k++)
            if (!strncmp(addresses->items[k], CHECKPOINT_ADDRESS_KIND,
                         strlen(CHECKPOINT_ADDRESS_KIND)))
                return addresses->items[k] + strlen(CHECKPOINT_ADDRESS_KIND);
    }
    return NULL;
}

/* Makes a reading with the fetch as its only holder; the thread is started by reading_start. */
int reading_create(const struct msg *fetch, int wake, struct reading **ret_reading)
{
    struct reading *reading = mem_zalloc(sizeof(*reading));
    int rc = reading ? msg_copy(fetch, &reading->fetch) : HVD_E_NOMEM;

    if (rc) {
        mem_free(reading);
        return rc;
    }
    rc = pthread_mutex_init(&reading->mutex, NULL);
    ASSERT(rc == 0);
    atomic_init(&reading->holders, 1);
    checkpoint_manifest_init(&reading->manifest);
    reading->wake = dup(wake);
    if (reading->wake < 0) {
        reading_put_down(reading);
        return HVD_E_LIMIT;
    }
    *ret_reading = reading;
    return 0;
}

/* A holder uses the reading no longer: the last one, the fetch or the thread, frees it. */
void reading_put_down(struct reading *reading)
{
    if (!reading || atomic_fetch_sub(&reading->holders, 1) > 1)
        return;
    if (reading->wake >= 0)
        close(reading->wake);
    shared_snapshot_put_down(reading->shared);
    msg_release(&reading->fetch);
    pthread_mutex_destroy(&reading->mutex);
    mem_free(reading);
}

/* Forbids the thread to write into the snapshot. The thread may still hang in a read of the disk:
 * it notices the end before its next write. */
void reading_cancel(struct reading *reading)
{
    pthread_mutex_lock(&reading->mutex);
    reading->cancelled = true;
    pthread_mutex_unlock(&reading->mutex);
}

/* Asked by the thread of the fetch when it was woken: is the thread of the reading done? */
bool reading_is_over(struct reading *reading, struct reading_result *ret_result)
{
    bool over;

    pthread_mutex_lock(&reading->mutex);
    over = reading->over;
    if (over)
        *ret_result = reading->result;
    pthread_mutex_unlock(&reading->mutex);
    return over;
}

/* ---- the thread ------------------------------------------------------------------------------ */

/* Compares an entry that the worker has registered with the entry of that name in the checkpoint.
 * HVD_E_MISMATCH: there is none, or its kind, type or size is another one. */
static int reading_compare(const struct reading *reading, const struct msg_entry *ours,
                           struct hvd_err *err)
{
    const char *folder = reading_folder(&reading->fetch.u.fetch);
    int64_t index = checkpoint_entry_find(reading->reader, ours->name);
    const struct msg_entry *theirs;

    if (index < 0)
        return err_set(err, HVD_E_MISMATCH,
                       "the checkpoint %s has no entry \"%s\" (%" PRIu64
                       " bytes in this program); register the same entries as the program that "
                       "wrote the checkpoint",
                       folder, ours->name, ours->bytes);
    theirs = &reading->manifest.entries.items[index];
    if (theirs->kind != ours->kind || theirs->custom != ours->custom)
        return err_set(err, HVD_E_MISMATCH,
                       "entry \"%s\" is of another kind (replicated, per rank or custom) in the "
                       "checkpoint %s; register the entry with its old kind",
                       ours->name, folder);
    if (ours->type && theirs->type && ours->type != theirs->type)
        return err_set(
            err, HVD_E_MISMATCH,
            "entry \"%s\" consists of %s, and of %s in the checkpoint %s; register the entry with "
            "its old type",
            ours->name, entry_type_text(ours->type), entry_type_text(theirs->type), folder);
    if (!ours->custom && ours->bytes != theirs->bytes)
        return err_set(err, HVD_E_MISMATCH,
                       "entry \"%s\" has %" PRIu64 " bytes, and %" PRIu64
                       " bytes in the checkpoint %s; register the entry with its old size",
                       ours->name, ours->bytes, theirs->bytes, folder);
    return 0;
}

/* Compares two entries for qsort: the lower offset in the commit comes first. */
static int reading_by_offset(const void *one, const void *other)
{
    uint64_t left = ((const struct read_entry *)one)->entry->offset;
    uint64_t right = ((const struct read_entry *)other)->entry->offset;

    return (left > right) - (left < right);
}

/* Lists the entries to read, sorted by offset, and checks that each lies in the snapshot and fits
 * the checkpoint. Entries per rank are read only if the checkpoint was made by as many ranks as the
 * round has. */
static int reading_list(struct reading *reading, struct hvd_err *err)
{
    const struct msg_fetch *fetch = &reading->fetch.u.fetch;
    uint64_t most = snapshot_shape(shared_snapshot_of(reading->shared))->bytes;
    int rc = 0;

    reading->result.per_rank = reading->manifest.ranks == fetch->size;
    if (!reading->result.per_rank)
        snprintf(reading->result.text, sizeof(reading->result.text),
                 "the checkpoint was made by %" PRIu32 " ranks, and the round has %" PRIu32,
                 reading->manifest.ranks, fetch->size);
    reading->entries = mem_zalloc_array(fetch->entries.count, sizeof(*reading->entries));
    if (!reading->entries)
        return err_set(
            err, HVD_E_NOMEM,
            "no memory for the list of the %zu entries of the checkpoint; free memory on "
            "this host",
            fetch->entries.count);
    for (size_t i = 0; i < fetch->entries.count && !rc; i++) {
        const struct msg_entry *entry = &fetch->entries.items[i];
        struct read_entry *read = &reading->entries[reading->count];
        uint64_t begin = entry->custom ? CUSTOM_LENGTH_BYTES : 0;

        if (entry->kind != ENTRY_REPLICATED && !reading->result.per_rank)
            continue;
        if (entry->offset > most || begin > most - entry->offset ||
            entry->bytes > most - entry->offset - begin)
            return err_set(
                err, HVD_E_INVAL,
                "entry \"%s\" does not lie in the snapshot; libhvd and the agent must be of the "
                "same release",
                entry->name);
        rc = reading_compare(reading, entry, err);
        if (!rc)
            rc = checkpoint_entry_bytes(reading->reader, entry->name, fetch->rank, &read->length,
                                        err);
        if (!rc && read->length > entry->bytes)
            rc = err_set(err, HVD_E_MISMATCH,
                         "entry \"%s\" has room for %" PRIu64 " bytes, and %" PRIu64
                         " bytes in the checkpoint; register the entry with that much room",
                         entry->name, entry->bytes, read->length);
        /* an entry without bytes is not read: the next one takes its place in the list */
        read->entry = entry;
        read->used = begin + read->length;
        reading->count += read->used > 0;
    }
    if (!rc)
        qsort(reading->entries, reading->count, sizeof(*reading->entries), reading_by_offset);
    return rc;
}

/* Puts the chunk that was read into the snapshot, with its checksum. `empty`: no entry has bytes in
 * this chunk, so only the checksum SUM_NONE is set. HVD_E_REVOKED: the reading was cancelled. */
static int reading_put(struct reading *reading, uint64_t chunk, bool empty, struct hvd_err *err)
{
    struct snapshot *snapshot = shared_snapshot_of(reading->shared);
    uint64_t sum = empty ? SUM_NONE : sum_of(reading->chunk, STATE_CHUNK_BYTES);
    int rc = 0;

    pthread_mutex_lock(&reading->mutex);
    if (reading->cancelled) {
        rc = HVD_E_REVOKED;
    } else {
        snapshot_set_sum(snapshot, chunk, SUM_NONE);
        if (!empty && snapshot_take_room(snapshot, chunk))
            rc = err_set(err, HVD_E_NOMEM,
                         "this host has no memory left for the commit of a checkpoint; run fewer "
                         "workers on it");
        if (!empty && !rc) {
            memcpy(reading->into + chunk * STATE_CHUNK_BYTES, reading->chunk, STATE_CHUNK_BYTES);
            snapshot_set_sum(snapshot, chunk, sum);
        }
    }
    pthread_mutex_unlock(&reading->mutex);
    return rc;
}

/* Makes the commit chunk by chunk, as copy_commit makes it in a worker: bytes between entries are
 * zero, and a chunk without any bytes of entries has no checksum. */
static int reading_copy(struct reading *reading, struct hvd_err *err)
{
    const struct snapshot_shape *shape = snapshot_shape(shared_snapshot_of(reading->shared));
    uint64_t bytes = reading->result.per_rank ? shape->bytes : shape->replicated_bytes;
    size_t first = 0; /* all entries before this one end before the chunk */
    int rc = 0;

    for (uint64_t chunk = 0; chunk < bytes / STATE_CHUNK_BYTES && !rc; chunk++) {
        uint64_t from = chunk * STATE_CHUNK_BYTES;
        uint64_t to = from + STATE_CHUNK_BYTES;
        bool empty = true;

        memset(reading->chunk, 0, STATE_CHUNK_BYTES);
        for (size_t i = first; i < reading->count && !rc; i++) {
            const struct read_entry *read = &reading->entries[i];
            uint64_t offset = read->entry->offset;
            uint64_t head =
                read->used - read->length; /* bytes that say the length; 0: not custom */
            uint64_t begin, end;
            uint8_t *at;

            if (offset >= to)
                break;
            if (offset + read->used <= from) {
                first += i == first;
                continue;
            }
            empty = false;
            begin = offset < from ? from - offset : 0;
            end = offset + read->used > to ? to - offset : read->used;
            at = reading->chunk + (offset + begin - from);
            /* a custom entry has its length before its bytes, the lowest byte first */
            for (; begin < head && begin < end; begin++)
                *at++ = (uint8_t)(read->length >> 8 * begin);
            reading->result.bytes += end - begin;
            if (begin < end)
                rc = checkpoint_entry_read_at(reading->reader, read->entry->name,
                                              reading->fetch.u.fetch.rank, begin - head, at,
                                              end - begin, err);
        }
        if (!rc)
            rc = reading_put(reading, chunk, empty, err);
    }
    return rc;
}

/* The thread of a reading: opens the checkpoint and copies its entries into the snapshot. Then it
 * sets the result, wakes the thread of the fetch, and puts the reading down. */
static void *reading_main(void *arg)
{
    struct reading *reading = arg;
    const char *path = reading_folder(&reading->fetch.u.fetch), *folder;
    char where[LIMIT_PATH_BYTES + 1];
    struct hvd_err err = { 0 };
    int rc;

    reading->chunk = mem_alloc(STATE_CHUNK_BYTES);
    rc = reading->chunk ? checkpoint_folder_split(path, where, &folder, &err) : HVD_E_NOMEM;
    if (!rc)
        rc = checkpoint_store_open(where, &reading->store, &err);
    if (!rc)
        rc = checkpoint_load(reading->store, folder, &reading->manifest, &err);
    if (!rc)
        rc = checkpoint_reader_open(reading->store, &reading->manifest, &reading->reader, &err);
    if (!rc)
        rc = reading_list(reading, &err);
    if (!rc)
        rc = reading_copy(reading, &err);
    checkpoint_reader_close(reading->reader);
    checkpoint_manifest_release(&reading->manifest);
    checkpoint_store_close(reading->store);
    mem_free(reading->entries);
    mem_free(reading->chunk);

    pthread_mutex_lock(&reading->mutex);
    reading->over = true;
    reading->result.code = rc;
    if (rc)
        snprintf(reading->result.text, sizeof(reading->result.text), "%s",
                 err.text[0] ? err.text : err_text(rc));
    pthread_mutex_unlock(&reading->mutex);
    (void)eventfd_write(reading->wake, 1);
    reading_put_down(reading);
    return NULL;
}

/* Starts the thread of the reading, which becomes its second holder. */
int reading_start(struct reading *reading, struct shared_snapshot *snapshot, uint8_t *into)
{
    pthread_t thread;
    int rc;

    reading->shared = snapshot;
    reading->into = into;
    atomic_fetch_add(&reading->holders, 1);
    rc = thread_start(&thread, 0, reading_main, reading);
    if (rc)
        reading_put_down(reading);
    else
        pthread_detach(thread);
    return rc;
}
