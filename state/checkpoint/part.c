/*
 * part.c: writes one file of a checkpoint out of memory, with the checksum of each chunk. Called by
 * the agent's thread for checkpoints, and where a program saves its state itself. Invariant: the
 * sums are those of the bytes that were handed to the storage, so a later read finds each change.
 */
#include "state/checkpoint/part_internal.h"

#include "base/mem.h"
#include "state/sum.h"

#include <inttypes.h>
#include <string.h>

/* A file on its way into the storage. */
struct part_writer {
    struct checkpoint_object *object;
    struct buf *sums;
    struct sum sum;    /* of the bytes of the chunk so far */
    size_t chunk_used; /* how many there are */
    part_stop_fn *stop;
    void *arg;
};

void part_init(struct part *part)
{
    *part = (struct part){ .commit = 0 };
    arena_init(&part->memory, 2 * (size_t)LIMIT_PART_HEADER_BYTES);
}

void part_release(struct part *part)
{
    if (!part)
        return;
    VEC_RELEASE(part);
    arena_release(&part->memory);
    part_init(part);
}

/* Appends the checksum of the chunk that is complete, and begins the next one. */
static int part_end_chunk(struct part_writer *writer)
{
    uint64_t sum = sum_end(&writer->sum);
    uint8_t bytes[8];

    for (size_t i = 0; i < 8; i++)
        bytes[i] = (uint8_t)(sum >> 8 * i);
    writer->chunk_used = 0;
    sum_begin(&writer->sum);
    return buf_append(writer->sums, bytes, sizeof(bytes));
}

static int part_put(struct part_writer *writer, const void *at, uint64_t bytes, struct hvd_err *err)
{
    const char *next = at;

    while (bytes > 0) {
        size_t room = STATE_CHUNK_BYTES - writer->chunk_used;
        size_t now = bytes < room ? (size_t)bytes : room;
        int rc;

        if (writer->stop && writer->stop(writer->arg))
            return err_set(err, HVD_E_REVOKED, "%s", "the checkpoint is no longer wanted");
        rc = checkpoint_store_write(writer->object, next, now, err);
        if (rc)
            return rc;
        sum_add(&writer->sum, next, now);
        writer->chunk_used += now;
        next += now;
        bytes -= now;
        if (writer->chunk_used == STATE_CHUNK_BYTES && part_end_chunk(writer))
            return err_set(err, HVD_E_NOMEM,
                           "no memory for the checksums of a checkpoint; free memory on this host");
    }
    return 0;
}

/* Writes the header, and the bytes of all entries in the order of the file. */
static int part_put_all(struct part_writer *writer, const struct buf *header,
                        const struct part *part, struct hvd_err *err)
{
    int rc = part_put(writer, header->data, header->length, err);
    const struct part_entry *entry;

    VEC_EACH (entry, part) {
        if (!rc)
            rc = part_put(writer, entry->at, entry->bytes, err);
    }
    if (!rc && writer->chunk_used > 0 && part_end_chunk(writer))
        rc = err_set(err, HVD_E_NOMEM,
                     "no memory for the checksums of a checkpoint; free memory on this host");
    return rc;
}

int part_write(struct checkpoint_store *storage, const char *name,
               const struct part_sources *sources, part_stop_fn *stop, void *arg,
               struct part_written *ret, struct hvd_err *err)
{
    struct part_written written;
    struct part_writer writer = { .sums = &written.sums, .stop = stop, .arg = arg };
    struct buf header;
    struct part part;
    int rc;

    buf_init(&header, LIMIT_PART_HEADER_BYTES);
    buf_init(&written.sums, LIMIT_SAVED_SUMS_BYTES);
    part_init(&part);
    rc = part_print(sources, &part, &header, err);
    if (rc) {
        err_prefix(err, rc, "%s/%s", checkpoint_store_where(storage), name);
        goto out;
    }
    written.bytes = part.header_bytes + part.data_bytes;
    if (written.bytes > LIMIT_SAVED_SUMS_BYTES / 8 * (uint64_t)STATE_CHUNK_BYTES) {
        rc = err_set(err, HVD_E_LIMIT,
                     "%s/%s: %" PRIu64 " bytes are more than one file of a checkpoint has "
                     "(LIMIT_SAVED_SUMS_BYTES); train with more workers",
                     checkpoint_store_where(storage), name, written.bytes);
        goto out;
    }
    rc = checkpoint_store_create(storage, name, written.bytes, &writer.object, err);
    if (rc)
        goto out;
    sum_begin(&writer.sum);
    rc = part_put_all(&writer, &header, &part, err);
    if (!rc)
        rc = checkpoint_store_finish(writer.object, err);
    else
        checkpoint_store_abandon(writer.object);
out:
    part_release(&part);
    buf_release(&header);
    if (rc)
        buf_release(&written.sums);
    else
        *ret = written;
    return rc;
}
