/*
 * fuzz_snapshot.c: any bytes in the parts of a snapshot that the other side can write: the header
 * and the checksums. A caller that opens the snapshot must refuse the snapshot or see its true
 * sizes; a reader or writer must stay inside the snapshot. The first byte chooses one of these two
 * tests.
 */
#include "base/panic.h"
#include "state/snapshot/snapshot_hold.h"
#include "state/sum.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define CHUNKS 3

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct snapshot_shape shape = { .manifest = 7,
                                             .replicated_bytes = 2 * STATE_CHUNK_BYTES,
                                             .bytes = CHUNKS * STATE_CHUNK_BYTES };

/* Writes bytes over the header page, and over each buffer's page of checksums. */
static void scribble(int fd, const uint8_t *data, size_t size)
{
    static const size_t places[] = { 0, 64, 4096, 2 * 4096 };
    size_t share = size / ARRAY_SIZE(places);

    for (size_t i = 0; i < ARRAY_SIZE(places); i++)
        ASSERT(pwrite(fd, data + i * share, share < 64 ? share : 64, (off_t)places[i]) >= 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct snapshot *snapshot = NULL;
    struct snapshot *other = NULL;
    struct hvd_err err = { 0 };
    int rc;
    uint64_t newest;
    const uint8_t *bytes;
    struct msg_held held[2];
    size_t count;

    if (size < 1 || snapshot_create(&shape, &snapshot, NULL))
        return 0;
    if (data[0] & 1)
        scribble(snapshot_fd(snapshot), data + 1, size - 1);
    rc = snapshot_open(dup(snapshot_fd(snapshot)), &shape, &other, &err);
    ASSERT(!rc || (rc == HVD_E_CORRUPT && err.text[0]));
    if (!rc)
        snapshot_free(other);
    scribble(snapshot_fd(snapshot), data + 1, size - 1);
    (void)snapshot_is_open(snapshot);
    newest = snapshot_newest(snapshot);
    bytes = snapshot_find(snapshot, newest);
    count = snapshot_held(snapshot, held);
    ASSERT((bytes != NULL) == (newest != 0));
    ASSERT(count <= 2 && (count > 0) == (newest != 0));
    ASSERT(!count || held[0].commit == newest);
    ASSERT(count < 2 || held[1].commit < held[0].commit);
    for (uint64_t i = 0; i <= CHUNKS; i++)
        (void)snapshot_chunk_sum(snapshot, newest, i);
    ASSERT(!bytes || bytes[0] == bytes[shape.bytes - 1]);
    snapshot_rename(snapshot, newest / 2);
    snapshot_begin(snapshot)[shape.bytes - 1] = 0;
    for (uint64_t i = 0; i < CHUNKS; i++)
        snapshot_set_sum(snapshot, i, snapshot_sum(snapshot, i));
    snapshot_end(snapshot, 5);
    ASSERT(snapshot_find(snapshot, 5));
    snapshot_hold(snapshot, newest);
    bytes = snapshot_hold_bytes(snapshot);
    ASSERT((bytes != NULL) == (snapshot_hold_commit(snapshot) != 0));
    ASSERT(!bytes || (snapshot_hold_stands(snapshot) && bytes[0] == bytes[shape.bytes - 1]));
    (void)snapshot_hold_sum(snapshot, newest);
    ASSERT(!bytes || snapshot_begin(snapshot) != bytes);
    (void)snapshot_take_back(snapshot);
    scribble(snapshot_fd(snapshot), data + 1, size - 1);
    (void)snapshot_is_open(snapshot);
    (void)snapshot_take_back(snapshot);
    snapshot_begin(snapshot)[shape.bytes - 1] = 0;
    (void)snapshot_hold_stands(snapshot);
    snapshot_hold_end(snapshot);
    snapshot_free(snapshot);
    return 0;
}
