#include "state/snapshot/copy.h"

#include "base/panic.h"
#include "state/snapshot/custom.h"
#include "state/snapshot/places.h"
#include "state/snapshot/room.h"
#include "state/snapshot/spread.h"
#include "state/snapshot/stream.h"

#include <inttypes.h>
#include <string.h>

/* Of which there must be so many for each thread, that starting it does not cost more than it
 * brings. */
#define CHUNKS_PER_THREAD 4

#define CACHED_CHUNKS     4 /* what is no more than this may stay in the caches */

#define PIECE_CHUNKS      (FERRY_PIECE_BYTES / STATE_CHUNK_BYTES)
#define PIN_CHUNKS        (FERRY_PIN_BYTES / STATE_CHUNK_BYTES)
_Static_assert(PIN_CHUNKS % PIECE_CHUNKS == 0, "no copy is in two pins");

struct job {
    const struct copy *copy;
    struct ferry *ferry;     /* NULL: none of it is on a device */
    struct snapshot *writes; /* NULL: a restore */
    const struct snapshot *reads;
    uint64_t commit;
    uint8_t *target;       /* of a commit: the open buffer */
    const uint8_t *source; /* of both: where the bytes of the commit are */
    struct places places;  /* those that are copied */
    uint64_t first;        /* chunks */
    uint64_t end;
    bool much;
};

static int job_init(struct job *job, const struct copy *copy, const struct snapshot *snapshot)
{
    const struct manifest *manifest = copy->manifest;
    const struct snapshot_shape *shape = snapshot_shape(snapshot);

    ASSERT(manifest->sealed && shape->manifest == manifest->digest &&
           shape->bytes == manifest->bytes &&
           shape->replicated_bytes == manifest->replicated_bytes);
    *job = (struct job){ .copy = copy, .ferry = copy->ferry, .reads = snapshot };
    job->first = copy->which & COPY_REPLICATED ? 0 : manifest->replicated_bytes / STATE_CHUNK_BYTES;
    job->end = (copy->which & COPY_PER_RANK ? manifest->bytes : manifest->replicated_bytes) /
               STATE_CHUNK_BYTES;
    job->much = job->end - job->first > CACHED_CHUNKS;
    return places_init(&job->places, copy, copy->which);
}

static void read_from(struct job *job, const uint8_t *bytes)
{
    job->source = bytes;
    job->places.bytes = bytes;
}

static uint64_t begin_of(uint64_t chunk)
{
    return chunk * STATE_CHUNK_BYTES;
}

static size_t first_place(const struct job *job, uint64_t chunk)
{
    return places_first(&job->places, begin_of(chunk));
}

static bool next_piece(const struct job *job, uint64_t chunk, size_t *at, struct piece *ret_piece)
{
    return places_next(&job->places, begin_of(chunk), begin_of(chunk + 1), at, ret_piece);
}

static bool is_on_device(const struct job *job, uint64_t chunk)
{
    return job->ferry && places_on_device(&job->places, begin_of(chunk), begin_of(chunk + 1));
}

/* The entry that a chunk is counted to. */
static const char *name_at(const struct job *job, uint64_t chunk)
{
    return places_name(&job->places, begin_of(chunk), begin_of(chunk + 1));
}

static int spread_over(struct job *job, spread_fn *work, uint64_t *ret_failed)
{
    uint64_t most = (job->end - job->first) / CHUNKS_PER_THREAD;
    unsigned threads = job->copy->threads;

    if (most <= 1)
        threads = 1;
    else if (threads > most || (threads == 0 && most < LIMIT_COPY_THREADS))
        threads = threads ? (unsigned)most : 0;
    return spread(job->first, job->end, threads, work, job, ret_failed);
}

/* ---- a commit -------------------------------------------------------------------------------- */

static void zero(uint8_t *at, uint64_t bytes, struct sum *sum)
{
    if (bytes == 0)
        return;
    memset(at, 0, bytes);
    sum_add(sum, at, bytes);
}

/* The bytes of the chunk are those of its pieces, and zero between them. What custom entries have
 * written, and what was on a device, is there already. */
static uint64_t fill_chunk(const struct job *job, uint64_t chunk, size_t at, struct piece piece)
{
    uint64_t done = chunk * STATE_CHUNK_BYTES;
    struct sum sum;

    sum_begin(&sum);
    do {
        uint8_t *to = job->target + piece.from;

        zero(job->target + done, piece.from - done, &sum);
        done = piece.to;
        if (piece.place->entry->custom || piece.place->part->on_device)
            sum_add(&sum, to, piece.to - piece.from);
        else
            stream_copy(to, piece_live(&piece), piece.to - piece.from, job->much, &sum);
    } while (next_piece(job, chunk, &at, &piece));
    zero(job->target + done, (chunk + 1) * STATE_CHUNK_BYTES - done, &sum);
    return sum_end(&sum);
}

static int commit_chunk(void *job_at, uint64_t chunk)
{
    struct job *job = job_at;
    size_t at = first_place(job, chunk);
    struct piece piece;
    int rc;

    snapshot_set_sum(job->writes, chunk, SUM_NONE);
    if (!next_piece(job, chunk, &at, &piece))
        return 0;
    rc = snapshot_take_room(job->writes, chunk);
    if (!rc && is_on_device(job, chunk))
        rc = ferry_landed(job->ferry, chunk / PIECE_CHUNKS);
    if (rc)
        return rc;
    snapshot_set_sum(job->writes, chunk, fill_chunk(job, chunk, at, piece));
    return 0;
}

static int save(const struct job *job, const struct place *place, struct hvd_err *err)
{
    const struct manifest_entry *entry = place->entry;
    uint64_t last = (entry->offset + CUSTOM_LENGTH_BYTES + entry->bytes - 1) / STATE_CHUNK_BYTES;

    for (uint64_t i = entry->offset / STATE_CHUNK_BYTES; i <= last; i++)
        snapshot_set_sum(job->writes, i, SUM_NONE);
    return custom_save(entry, place->part, job->target + entry->offset, err);
}

static int save_all(const struct job *job, struct hvd_err *err)
{
    for (size_t i = 0; i < job->places.count; i++) {
        const struct place *place = &job->places.items[i];
        int rc = place->entry->custom ? save(job, place, err) : 0;

        if (rc)
            return rc;
    }
    return 0;
}

/* What the entries have written, in whole chunks; 0 when all of it has memory already, as after the
 * first commits. */
static uint64_t needed_bytes(const struct job *job)
{
    uint64_t needed = 0;
    bool all = true;

    for (uint64_t i = job->first; i < job->end; i++) {
        size_t at = first_place(job, i);
        struct piece piece;

        if (next_piece(job, i, &at, &piece)) {
            needed += STATE_CHUNK_BYTES;
            all = all && snapshot_has_room(job->writes, i);
        }
    }
    return all ? 0 : needed;
}

static int judge_room(const struct job *job, struct hvd_err *err)
{
    uint64_t needed = needed_bytes(job);
    uint64_t there = needed ? snapshot_room(job->writes) : 0;
    uint64_t left = needed > there ? room_left() : UINT64_MAX;

    if (needed > there && needed - there > left)
        return err_set(err, HVD_E_NOMEM,
                       "this machine has %" PRIu64
                       " MiB of memory left, and a commit needs %" PRIu64
                       "; two commits are kept for each worker, run fewer of them here",
                       left >> 20, (needed - there) >> 20);
    return 0;
}

/* ---- from a device --------------------------------------------------------------------------- */

/* No bytes come under a sum that is not theirs, and none where there is no memory. */
static int prepare_chunk(void *job_at, uint64_t chunk)
{
    struct job *job = job_at;

    if (!is_on_device(job, chunk))
        return 0;
    snapshot_set_sum(job->writes, chunk, SUM_NONE);
    return snapshot_take_room(job->writes, chunk);
}

/* All that is ever copied between this buffer and a device: once, as it takes as long as many
 * copies. Each chunk is pinned whole, so that no page is in two ranges; and not too many at once.
 */
static int pin(const struct job *job, uint8_t *buffer)
{
    uint64_t chunks = job->copy->manifest->bytes / STATE_CHUNK_BYTES;
    uint64_t from = 0;
    struct places all;

    if (!ferry_meets(job->ferry, buffer))
        return 0;
    if (places_init(&all, job->copy, COPY_ALL))
        return HVD_E_NOMEM;
    all.bytes = buffer;
    for (uint64_t i = 0; i <= chunks; i++) {
        bool goes_on = i < chunks && places_on_device(&all, begin_of(i), begin_of(i + 1));

        if (goes_on && i % PIN_CHUNKS)
            continue;
        if (i > from)
            ferry_pin(job->ferry, buffer + begin_of(from), begin_of(i - from));
        from = goes_on ? i : i + 1;
    }
    places_release(&all);
    return 0;
}

static int queue_piece(void *job_at, uint64_t number)
{
    const struct job *job = job_at;
    uint64_t from = number * FERRY_PIECE_BYTES;
    size_t at = places_first(&job->places, from);
    struct piece piece;
    int rc = 0;

    while (!rc && places_next(&job->places, from, from + FERRY_PIECE_BYTES, &at, &piece)) {
        if (piece.place->part->on_device)
            rc = ferry_to_host(job->ferry, job->target + piece.from,
                               (cuda_address)(uintptr_t)piece_live(&piece), piece.to - piece.from);
    }
    return rc;
}

/* What the device has begins to come. */
static int bring(struct job *job, uint64_t *ret_failed)
{
    int rc = spread_over(job, prepare_chunk, ret_failed);

    if (!rc)
        rc = pin(job, job->target);
    if (!rc)
        rc = ferry_begin(job->ferry, job->first / PIECE_CHUNKS,
                         (job->end + PIECE_CHUNKS - 1) / PIECE_CHUNKS, queue_piece, job);
    return rc;
}

/* Nothing of the device's is under way any more. What it says is why something has failed. */
static int settle(const struct job *job, int rc, uint64_t failed, struct hvd_err *err)
{
    int settled = job->ferry ? ferry_settle(job->ferry, err) : 0;

    return settled && rc ? err_prefix(err, settled, "entry \"%s\"", name_at(job, failed)) : settled;
}

/* ---- a commit, the whole of it --------------------------------------------------------------- */

static int commit_chunks(struct job *job, struct hvd_err *err)
{
    uint64_t failed = job->first;
    int rc = job->ferry ? bring(job, &failed) : 0;
    int settled;

    if (!rc)
        rc = spread_over(job, commit_chunk, &failed);
    settled = settle(job, rc, failed, err);
    if (settled || !rc)
        return settled;
    return err_set(err, rc,
                   "entry \"%s\": this machine has no memory left for a commit of %" PRIu64
                   " bytes; two commits are kept for each worker, run fewer of them here",
                   name_at(job, failed), job->copy->manifest->bytes);
}

static int commit_all(struct job *job, struct hvd_err *err)
{
    int rc = save_all(job, err);

    if (!rc)
        rc = judge_room(job, err);
    return rc ? rc : commit_chunks(job, err);
}

int copy_commit(struct snapshot *snapshot, const struct copy *copy, struct hvd_err *err)
{
    struct job job;
    int rc = job_init(&job, copy, snapshot);

    if (rc)
        return err_set(err, rc, "no memory to prepare a commit");
    job.writes = snapshot;
    job.target = snapshot_begin(snapshot);
    read_from(&job, job.target);
    rc = commit_all(&job, err);
    places_release(&job.places);
    return rc;
}

/* ---- the way back ---------------------------------------------------------------------------- */

static void sum_gap(const struct job *job, uint64_t from, uint64_t to, struct sum *sum)
{
    if (to > from)
        sum_add(sum, job->source + from, to - from);
}

/* The checksum of what was copied: so there is no moment at which it could have changed. */
static uint64_t empty_chunk(const struct job *job, uint64_t chunk, size_t at, struct piece piece)
{
    uint64_t done = begin_of(chunk);
    struct sum sum;

    sum_begin(&sum);
    do {
        sum_gap(job, done, piece.from, &sum);
        done = piece.to;
        if (piece.place->entry->custom)
            sum_gap(job, piece.from, piece.to, &sum);
        else
            stream_copy(piece_live(&piece), job->source + piece.from, piece.to - piece.from,
                        job->much, &sum);
    } while (next_piece(job, chunk, &at, &piece));
    sum_gap(job, done, begin_of(chunk + 1), &sum);
    return sum_end(&sum);
}

/* A device is sent what has been looked at. */
static int send_chunk(const struct job *job, uint64_t chunk, size_t at, struct piece piece)
{
    int rc = 0;

    if (sum_of(job->source + begin_of(chunk), STATE_CHUNK_BYTES) !=
        snapshot_chunk_sum(job->reads, job->commit, chunk))
        return HVD_E_CORRUPT;
    do {
        const uint8_t *from = job->source + piece.from;
        uint64_t bytes = piece.to - piece.from;

        if (piece.place->part->on_device)
            rc = ferry_to_device(job->ferry, (cuda_address)(uintptr_t)piece_live(&piece), from,
                                 bytes);
        else if (!piece.place->entry->custom)
            memcpy(piece_live(&piece), from, bytes);
    } while (!rc && next_piece(job, chunk, &at, &piece));
    return rc;
}

static int restore_chunk(void *job_at, uint64_t chunk)
{
    const struct job *job = job_at;
    size_t at = first_place(job, chunk);
    uint64_t sum = snapshot_chunk_sum(job->reads, job->commit, chunk);
    struct piece piece;

    if (!next_piece(job, chunk, &at, &piece))
        return 0;
    if (sum == SUM_NONE)
        return HVD_E_CORRUPT;
    if (is_on_device(job, chunk))
        return send_chunk(job, chunk, at, piece);
    return sum == empty_chunk(job, chunk, at, piece) ? 0 : HVD_E_CORRUPT;
}

static int load_all(const struct job *job, struct hvd_err *err)
{
    for (size_t i = 0; i < job->places.count; i++) {
        const struct place *place = &job->places.items[i];
        int rc = 0;

        if (place->entry->custom)
            rc = custom_load(place->entry, place->part, job->source + place->entry->offset, err);
        if (rc)
            return rc;
    }
    return 0;
}

static int restore_chunks(struct job *job, struct hvd_err *err)
{
    uint64_t failed = job->first;
    int rc = job->ferry ? pin(job, (uint8_t *)(uintptr_t)job->source) : 0;
    int settled;

    if (rc)
        return err_set(err, rc, "no memory to prepare a restore");
    rc = spread_over(job, restore_chunk, &failed);
    settled = settle(job, rc, failed, err);
    if (settled || !rc)
        return settled;
    return err_set(err, rc,
                   "entry \"%s\" of commit %" PRIu64 ": the checksum of chunk %" PRIu64
                   " is wrong; it was changed while it was committed, or memory has failed",
                   name_at(job, failed), job->commit, failed);
}

int copy_restore(const struct snapshot *snapshot, uint64_t commit, const struct copy *copy,
                 struct hvd_err *err)
{
    struct job job;
    int rc = job_init(&job, copy, snapshot);

    if (rc)
        return err_set(err, rc, "no memory to prepare a restore");
    job.commit = commit;
    read_from(&job, snapshot_find(snapshot, commit));
    if (!job.source)
        rc = err_set(err, HVD_E_NOTFOUND, "commit %" PRIu64 " is not here", commit);
    if (!rc)
        rc = restore_chunks(&job, err);
    if (!rc)
        rc = load_all(&job, err);
    places_release(&job.places);
    return rc;
}
