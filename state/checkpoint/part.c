/*
 * part.c: writes one file of a checkpoint out of memory, with the checksum of each chunk. Called by
 * the agent's thread for checkpoints, and by worker/save.c for a program that saves its state
 * itself. Invariant: the sums are those of the bytes that were handed to the storage, so a later
 * read detects each change of the file.
 */
#include "state/checkpoint/part_internal.h"

#include "base/mem.h"
#include "state/sum.h"

#include <inttypes.h>
#include <string.h>

/* A file that is being written to the storage. */
struct part_writer {
    struct checkpoint_object *object;
    struct buf *sums;   /* the checksums of the chunks that are complete */
    struct sum sum;     /* the checksum of the chunk's bytes so far */
    size_t chunk_used;  /* bytes of the chunk so far */
    part_stop_fn *stop; /* asks the caller whether to stop; may be NULL */
    void *arg;
};

/* Appends the checksum of the chunk that is complete, the lowest byte first, and begins the next
 * chunk. */
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

/* Writes the next bytes of the file, and adds them to the checksums of their chunks. Before each
 * piece the caller may stop the write: HVD_E_REVOKED. */
static int part_put(struct part_writer *writer, const void *at, uint64_t bytes, struct hvd_err *err)
{
    const char *next = at;

    while (bytes > 0) {
        size_t room = STATE_CHUNK_BYTES - writer->chunk_used;
        size_t now = bytes < room ? (size_t)bytes : room;
        int rc;

        if (writer->stop && writer->stop(writer->arg))
            return err_set(err, HVD_E_REVOKED, "%s",
                           "the driver has given up this checkpoint while this host wrote its "
                           "part; nothing is to be done: the driver begins another checkpoint");
        /* The checksum is computed first, because that maps the pages into this process. A write to
         * a file does not always map them: then Linux writes up to the first missing page, clears
         * the rest of a large folio and begins again, which costs far more than the copy. */
        sum_add(&writer->sum, next, now);
        rc = checkpoint_store_write(writer->object, next, now, err);
        if (rc)
            return rc;
        writer->chunk_used += now;
        next += now;
        bytes -= now;
        if (writer->chunk_used == STATE_CHUNK_BYTES && part_end_chunk(writer))
            return err_set(err, HVD_E_NOMEM,
                           "no memory for the checksums of a checkpoint; free memory on this host");
    }
    return 0;
}

/* Writes one file of a checkpoint: the header, then the bytes of the entries. *ret gets its size
 * and checksums. */
int part_write(struct checkpoint_store *storage, const char *name,
               const struct part_sources *sources, part_stop_fn *stop, void *arg,
               struct part_written *ret, struct hvd_err *err)
{
    struct part_written written;
    struct part_writer writer = { .sums = &written.sums, .stop = stop, .arg = arg };
    struct buf header;
    struct part part;
    int rc;
    const struct part_entry *entry;

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
                     "%s/%s: %" PRIu64
                     " bytes are more than one file of a checkpoint can have, because its "
                     "checksums fill more than 15 MiB (LIMIT_SAVED_SUMS_BYTES); register large "
                     "entries per rank, and train with more workers",
                     checkpoint_store_where(storage), name, written.bytes);
        goto out;
    }
    rc = checkpoint_store_create(storage, name, written.bytes, &writer.object, err);
    if (rc)
        goto out;
    sum_begin(&writer.sum);
    rc = part_put(&writer, header.data, header.length, err);
    VEC_EACH (entry, &part) {
        if (!rc)
            rc = part_put(&writer, entry->at, entry->bytes, err);
    }
    if (!rc && writer.chunk_used > 0 && part_end_chunk(&writer))
        rc = err_set(err, HVD_E_NOMEM,
                     "no memory for the checksums of a checkpoint; free memory on this host");
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
