#include "state/snapshot/copy.h"

#include "base/mem.h"
#include "base/panic.h"
#include "state/snapshot/room.h"
#include "state/snapshot/spread.h"
#include "state/snapshot/stream.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define LENGTH_BYTES sizeof(uint64_t) /* before what a custom entry has written */

/* Of which there must be so many for each thread, that starting it does not cost more than it
 * brings. */
#define CHUNKS_PER_THREAD 4

#define CACHED_CHUNKS     4 /* what is no more than this may stay in the caches */

/* An entry where it lies. */
struct place {
    const struct manifest_entry *entry;
    const struct copy_part *part;
};

/* A part of the bytes of a commit that an entry has written. */
struct piece {
    const struct place *place;
    uint64_t from;
    uint64_t to;
};

struct job {
    const struct copy *copy;
    struct snapshot *writes; /* NULL: a restore */
    const struct snapshot *reads;
    uint64_t commit;
    uint8_t *target;       /* of a commit: the open buffer */
    const uint8_t *source; /* of both: where the bytes of the commit are */
    struct place *places;  /* those that are copied, by offset */
    size_t count;
    uint64_t first; /* chunks */
    uint64_t end;
    bool much;
};

/* ---- what lies where ------------------------------------------------------------------------- */

static bool is_in(const struct manifest_entry *entry, unsigned which)
{
    return which & 1U << entry->kind;
}

/* Replicated entries lie before those of a rank; within each kind the manifest's order is that of
 * the offsets. */
static void put_in_order(struct job *job, uint32_t kind)
{
    const struct copy *copy = job->copy;

    for (size_t i = 0; i < copy->manifest->count; i++) {
        const struct manifest_entry *entry = &copy->manifest->items[i];

        if (entry->kind == kind && is_in(entry, copy->which))
            job->places[job->count++] = (struct place){ entry, &copy->parts[i] };
    }
}

static int job_init(struct job *job, const struct copy *copy, const struct snapshot *snapshot)
{
    const struct manifest *manifest = copy->manifest;
    const struct snapshot_shape *shape = snapshot_shape(snapshot);

    ASSERT(manifest->sealed && shape->manifest == manifest->digest &&
           shape->bytes == manifest->bytes &&
           shape->replicated_bytes == manifest->replicated_bytes);
    *job = (struct job){ .copy = copy, .reads = snapshot };
    job->first = copy->which & COPY_REPLICATED ? 0 : manifest->replicated_bytes / STATE_CHUNK_BYTES;
    job->end = (copy->which & COPY_PER_RANK ? manifest->bytes : manifest->replicated_bytes) /
               STATE_CHUNK_BYTES;
    job->much = job->end - job->first > CACHED_CHUNKS;
    job->places = mem_zalloc_array(manifest->count, sizeof(*job->places));
    if (!job->places)
        return HVD_E_NOMEM;
    put_in_order(job, ENTRY_REPLICATED);
    put_in_order(job, ENTRY_PER_RANK);
    return 0;
}

static uint64_t length_at(const uint8_t *at)
{
    uint64_t length;

    memcpy(&length, at, sizeof(length));
    return length;
}

/* Where the bytes end that the entry has written. What a length says that is more than the room is
 * not followed. */
static uint64_t end_of(const struct job *job, const struct place *place)
{
    const struct manifest_entry *entry = place->entry;
    uint64_t length;

    if (!entry->custom)
        return entry->offset + entry->bytes;
    length = length_at(job->source + entry->offset);
    return entry->offset + LENGTH_BYTES + (length < entry->bytes ? length : entry->bytes);
}

/* The first place whose offset is beyond `offset`. */
static size_t place_after(const struct job *job, uint64_t offset)
{
    size_t low = 0;
    size_t high = job->count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (job->places[middle].entry->offset > offset)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

/* The next piece in the chunk at or after place *at, which moves on; false when there is none. */
static bool next_piece(const struct job *job, uint64_t chunk, size_t *at, struct piece *ret_piece)
{
    uint64_t from = chunk * STATE_CHUNK_BYTES;
    uint64_t to = from + STATE_CHUNK_BYTES;

    for (; *at < job->count; ++*at) {
        const struct place *place = &job->places[*at];
        uint64_t begin = place->entry->offset;
        uint64_t end;

        if (begin >= to)
            return false;
        end = end_of(job, place);
        if (end <= from || end == begin)
            continue;
        *ret_piece = (struct piece){ place, begin > from ? begin : from, end < to ? end : to };
        ++*at;
        return true;
    }
    return false;
}

/* The place that may reach into the chunk from before it, or begins with it. */
static size_t first_place(const struct job *job, uint64_t chunk)
{
    size_t after = place_after(job, chunk * STATE_CHUNK_BYTES);

    while (after > 0 && job->places[after - 1].entry->offset == chunk * STATE_CHUNK_BYTES)
        after--; /* those of no bytes share their offset with the next */
    return after > 0 ? after - 1 : 0;
}

static uint8_t *live(const struct piece *piece)
{
    return (uint8_t *)piece->place->part->at + (piece->from - piece->place->entry->offset);
}

/* The entry that a chunk is counted to. */
static const char *name_at(const struct job *job, uint64_t chunk)
{
    size_t at = first_place(job, chunk);
    struct piece piece;

    return next_piece(job, chunk, &at, &piece) ? piece.place->entry->name : "";
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
 * written is there already. */
static uint64_t fill_chunk(const struct job *job, uint64_t chunk, size_t at, struct piece piece)
{
    uint64_t done = chunk * STATE_CHUNK_BYTES;
    struct sum sum;

    sum_begin(&sum);
    do {
        uint8_t *to = job->target + piece.from;

        zero(job->target + done, piece.from - done, &sum);
        done = piece.to;
        if (piece.place->entry->custom)
            sum_add(&sum, to, piece.to - piece.from);
        else
            stream_copy(to, live(&piece), piece.to - piece.from, job->much, &sum);
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
    if (rc)
        return rc;
    snapshot_set_sum(job->writes, chunk, fill_chunk(job, chunk, at, piece));
    return 0;
}

/* What says something about the round, and news, are not a program's to say: whoever believed them
 * would try again for ever. */
static int own_code(int code)
{
    bool ours = code > 0 || code == HVD_E_REVOKED || code == HVD_E_LOST || code == HVD_E_TIMEOUT ||
                code == HVD_E_MISMATCH;

    return ours ? HVD_E_STATE : code;
}

static int save(const struct job *job, const struct place *place, struct hvd_err *err)
{
    const struct manifest_entry *entry = place->entry;
    uint8_t *at = job->target + entry->offset;
    uint64_t last = (entry->offset + LENGTH_BYTES + entry->bytes - 1) / STATE_CHUNK_BYTES;
    int64_t written;
    uint64_t length;

    for (uint64_t i = entry->offset / STATE_CHUNK_BYTES; i <= last; i++)
        snapshot_set_sum(job->writes, i, SUM_NONE);
    written = place->part->save(place->part->arg, at + LENGTH_BYTES, entry->bytes);
    if (written < INT32_MIN)
        written = HVD_E_INVAL;
    if (written < 0)
        return err_set(err, own_code((int)written),
                       "entry \"%s\": its save function has failed with %d (%s)", entry->name,
                       (int)written, err_text((int)written));
    length = (uint64_t)written;
    if (length > entry->bytes)
        return err_set(err, HVD_E_LIMIT,
                       "entry \"%s\": its save function says that it has written %" PRIu64
                       " bytes, but has room for %" PRIu64 "; give it more",
                       entry->name, length, entry->bytes);
    memcpy(at, &length, sizeof(length));
    return 0;
}

static int save_all(const struct job *job, struct hvd_err *err)
{
    for (size_t i = 0; i < job->count; i++) {
        int rc = job->places[i].entry->custom ? save(job, &job->places[i], err) : 0;

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

static int commit_all(struct job *job, struct hvd_err *err)
{
    uint64_t failed;
    int rc = save_all(job, err);

    if (!rc)
        rc = judge_room(job, err);
    if (rc)
        return rc;
    rc = spread_over(job, commit_chunk, &failed);
    if (rc)
        return err_set(err, rc,
                       "entry \"%s\": this machine has no memory left for a commit of %" PRIu64
                       " bytes; two commits are kept for each worker, run fewer of them here",
                       name_at(job, failed), job->copy->manifest->bytes);
    return 0;
}

int copy_commit(struct snapshot *snapshot, const struct copy *copy, struct hvd_err *err)
{
    struct job job;
    int rc = job_init(&job, copy, snapshot);

    if (rc)
        return err_set(err, rc, "no memory to prepare a commit");
    job.writes = snapshot;
    job.target = snapshot_begin(snapshot);
    job.source = job.target;
    rc = commit_all(&job, err);
    mem_free(job.places);
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
    uint64_t done = chunk * STATE_CHUNK_BYTES;
    struct sum sum;

    sum_begin(&sum);
    do {
        sum_gap(job, done, piece.from, &sum);
        done = piece.to;
        if (piece.place->entry->custom)
            sum_gap(job, piece.from, piece.to, &sum);
        else
            stream_copy(live(&piece), job->source + piece.from, piece.to - piece.from, job->much,
                        &sum);
    } while (next_piece(job, chunk, &at, &piece));
    sum_gap(job, done, (chunk + 1) * STATE_CHUNK_BYTES, &sum);
    return sum_end(&sum);
}

static int restore_chunk(void *job_at, uint64_t chunk)
{
    const struct job *job = job_at;
    size_t at = first_place(job, chunk);
    uint64_t sum = snapshot_chunk_sum(job->reads, job->commit, chunk);
    struct piece piece;

    if (!next_piece(job, chunk, &at, &piece))
        return 0;
    return sum != SUM_NONE && sum == empty_chunk(job, chunk, at, piece) ? 0 : HVD_E_CORRUPT;
}

static int load(const struct job *job, const struct place *place, struct hvd_err *err)
{
    const struct manifest_entry *entry = place->entry;
    const uint8_t *at = job->source + entry->offset;
    uint64_t length = length_at(at);
    int rc;

    if (length > entry->bytes)
        return err_set(err, HVD_E_CORRUPT,
                       "entry \"%s\" of the commit says that it has %" PRIu64
                       " bytes, but has room for %" PRIu64,
                       entry->name, length, entry->bytes);
    rc = place->part->load(place->part->arg, at + LENGTH_BYTES, length);
    if (rc)
        return err_set(err, own_code(rc), "entry \"%s\": its load function has failed with %d (%s)",
                       entry->name, rc, err_text(rc));
    return 0;
}

static int load_all(const struct job *job, struct hvd_err *err)
{
    for (size_t i = 0; i < job->count; i++) {
        int rc = job->places[i].entry->custom ? load(job, &job->places[i], err) : 0;

        if (rc)
            return rc;
    }
    return 0;
}

int copy_restore(const struct snapshot *snapshot, uint64_t commit, const struct copy *copy,
                 struct hvd_err *err)
{
    struct job job;
    uint64_t failed;
    int rc = job_init(&job, copy, snapshot);

    if (rc)
        return err_set(err, rc, "no memory to prepare a restore");
    job.commit = commit;
    job.source = snapshot_find(snapshot, commit);
    if (!job.source) {
        rc = err_set(err, HVD_E_NOTFOUND, "commit %" PRIu64 " is not here", commit);
    } else {
        rc = spread_over(&job, restore_chunk, &failed);
        if (rc)
            err_set(err, rc,
                    "entry \"%s\" of commit %" PRIu64 ": the checksum of chunk %" PRIu64
                    " is wrong; it was changed while it was committed, or memory has failed",
                    name_at(&job, failed), commit, failed);
        else
            rc = load_all(&job, err);
    }
    mem_free(job.places);
    return rc;
}
