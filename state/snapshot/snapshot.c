/*
 * snapshot.c: the memory that holds a worker's newest commits.
 *
 * The agent creates a snapshot and serves commits from it; the worker maps the snapshot and writes
 * commits (copy.c). Both processes map the same file, and either may die on any line. Invariant:
 * while the number of a buffer is not 0, its bytes and sums are those of the commit with this
 * number.
 */
#include "state/snapshot/snapshot_internal.h"

#include "base/mem.h"
#include "base/panic.h"
#include "state/manifest.h"
#include "state/sum.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#define HEADER_MAGIC UINT64_C(0x70616e7364766800) /* the bytes "\0hvdsnap" */
/* the version of this file's layout; both processes must know the same one */
#define HEADER_VERSION 2
#define HUGE_PAGE      ((uint64_t)2 << 20) /* alignment of a buffer, for huge pages */
/* the size of the file can never change */
#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)

/* The most buffers that snapshot_begin tries. It then writes into the last one, even if the agent
 * holds it. An honest agent holds a commit in the chosen buffer at most once or twice in a row. */
#define BEGIN_TRIES 8

#ifndef MADV_POPULATE_WRITE /* Linux has it since 5.14 */
#define MADV_POPULATE_WRITE 23
#endif

/* Offsets of the tables and buffers in the file. */
struct layout {
    uint64_t sums[SNAPSHOT_BUFFERS];
    uint64_t buffers[SNAPSHOT_BUFFERS];
    uint64_t size;
};

/* Returns the number of chunks of one commit. */
static uint64_t chunks_of(const struct snapshot_shape *shape)
{
    return shape->bytes / STATE_CHUNK_BYTES;
}

/* Computes where the tables and buffers are in the file. A state without bytes has only the
 * header. */
static struct layout layout_of(const struct snapshot_shape *shape)
{
    uint64_t sums_bytes = manifest_round_up(chunks_of(shape) * sizeof(uint64_t), SNAPSHOT_PAGE);
    uint64_t end = SNAPSHOT_PAGE;
    struct layout layout = { .size = SNAPSHOT_PAGE };

    for (size_t i = 0; i < SNAPSHOT_BUFFERS; i++) {
        layout.sums[i] = end;
        end += sums_bytes;
    }
    for (size_t i = 0; i < SNAPSHOT_BUFFERS && shape->bytes; i++) {
        layout.buffers[i] = manifest_round_up(end, HUGE_PAGE);
        layout.size = end = layout.buffers[i] + shape->bytes;
    }
    return layout;
}

/* Checks the sizes of a state: they may come from another process. */
static int check_shape(const struct snapshot_shape *shape, struct hvd_err *err)
{
    if (shape->bytes > LIMIT_STATE_BYTES)
        return err_set(err, HVD_E_LIMIT,
                       "the worker's state has %" PRIu64 " bytes, but at most %" PRIu64
                       " are possible (LIMIT_STATE_BYTES); register large entries per rank, so "
                       "that each worker keeps only its part",
                       shape->bytes, LIMIT_STATE_BYTES);
    if (shape->bytes % STATE_CHUNK_BYTES || shape->replicated_bytes % STATE_CHUNK_BYTES ||
        shape->replicated_bytes > shape->bytes)
        return err_set(err, HVD_E_INVAL,
                       "the worker's state has %" PRIu64 " bytes, %" PRIu64
                       " of them replicated, which are no multiples of a chunk, or more than all; "
                       "install the same release of the agent and of libhvd",
                       shape->bytes, shape->replicated_bytes);
    return 0;
}

/* Creates the file of a snapshot, without commits, and maps it. Called by the agent, and by a
 * worker that is alone. */
int snapshot_create(const struct snapshot_shape *shape, struct snapshot **ret_snapshot,
                    struct hvd_err *err)
{
    const struct header header = {
        .magic = HEADER_MAGIC,
        .version = HEADER_VERSION,
        .chunk_bytes = STATE_CHUNK_BYTES,
        .shape = *shape,
    };
    uint64_t size = layout_of(shape).size;
    struct rlimit limit;
    int rc = check_shape(shape, err);
    int fd;

    if (rc)
        return rc;
    fd = memfd_create("hvd-snapshot", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0 && (errno == EMFILE || errno == ENFILE))
        return err_set(
            err, HVD_E_LIMIT,
            "the agent has no file descriptor left for a snapshot; raise the limit of open files "
            "(ulimit -n)");
    if (fd < 0)
        return err_set(err, errno == ENOMEM ? HVD_E_NOMEM : HVD_E_IO,
                       "the kernel gives no memory for a snapshot (memfd_create: %s); free memory "
                       "on this host",
                       strerror(errno));
    /* The limit is checked first: the kernel would send a signal when a file grows past it. */
    if (!getrlimit(RLIMIT_FSIZE, &limit) && limit.rlim_cur != RLIM_INFINITY &&
        size > limit.rlim_cur)
        rc = err_set(
            err, HVD_E_LIMIT,
            "a snapshot of %" PRIu64 " bytes, the size of three commits, is larger than the "
            "limit for files of the agent, %" PRIu64 " bytes; raise this limit (ulimit -f)",
            size, (uint64_t)limit.rlim_cur);
    else if (ftruncate(fd, (off_t)size))
        rc =
            err_set(err, errno == EFBIG || errno == EINVAL ? HVD_E_LIMIT : HVD_E_NOMEM,
                    "the kernel refuses a snapshot of %" PRIu64 " bytes, the size of three commits "
                    "(ftruncate: %s); run fewer workers on this machine",
                    size, strerror(errno));
    if (!rc && pwrite(fd, &header, sizeof(header), 0) != (ssize_t)sizeof(header))
        rc = err_set(err, HVD_E_NOMEM,
                     "no memory for the first page of a snapshot (%s); free memory on this host",
                     strerror(errno));
    if (!rc && fcntl(fd, F_ADD_SEALS, SEALS))
        rc = err_set(
            err, HVD_E_IO,
            "the size of a snapshot cannot be sealed (%s): this host can keep no commits; run "
            "the workers on a kernel with memfd and its seals",
            strerror(errno));
    if (rc) {
        close(fd);
        return rc;
    }
    return snapshot_open(fd, shape, ret_snapshot, err);
}

/* ---- opening --------------------------------------------------------------------------------- */

/* Checks the file, maps it, and checks its header. The size must be sealed: otherwise the other
 * process could cut the file while this process reads it. */
static int map_snapshot(struct snapshot *snapshot, struct hvd_err *err)
{
    struct layout layout = layout_of(&snapshot->shape);
    int seals = fcntl(snapshot->fd, F_GET_SEALS);
    const struct header *header;
    struct stat st;
    void *base;

    if (seals < 0 || (seals & (SEALS & ~F_SEAL_SEAL)) != (SEALS & ~F_SEAL_SEAL) ||
        fstat(snapshot->fd, &st))
        return err_set(
            err, HVD_E_CORRUPT,
            "the descriptor does not belong to a snapshot, because the size of the file is not "
            "sealed; the agent and libhvd must be of the same release");
    if ((uint64_t)st.st_size != layout.size)
        return err_set(err, HVD_E_CORRUPT,
                       "the snapshot has %" PRIu64 " bytes, but the state needs %" PRIu64
                       "; the agent and libhvd must be of the same release",
                       (uint64_t)st.st_size, layout.size);
    base = mmap(NULL, layout.size, PROT_READ | PROT_WRITE, MAP_SHARED, snapshot->fd, 0);
    if (base == MAP_FAILED)
        return err_set(
            err, HVD_E_NOMEM,
            "this process has no room to map a snapshot of %" PRIu64
            " bytes, the size of three commits (%s); raise the limit of the address space "
            "(ulimit -v)",
            layout.size, strerror(errno));
    snapshot->base = base;
    snapshot->size = layout.size;
    snapshot->header = base;
    for (size_t i = 0; i < SNAPSHOT_BUFFERS; i++) {
        snapshot->sums[i] = (_Atomic uint64_t *)(void *)(snapshot->base + layout.sums[i]);
        snapshot->buffers[i] = snapshot->base + layout.buffers[i];
    }
    /* Hints to the kernel, whose failure does not matter: use large pages; leave the memory out of
     * core files and forked children. */
    (void)madvise(base, layout.size, MADV_HUGEPAGE);
    (void)madvise(base, layout.size, MADV_DONTDUMP);
    (void)madvise(base, layout.size, MADV_DONTFORK);
    header = base;
    if (header->magic != HEADER_MAGIC || header->version != HEADER_VERSION ||
        header->chunk_bytes != STATE_CHUNK_BYTES)
        return err_set(err, HVD_E_CORRUPT,
                       "the descriptor does not belong to a snapshot, or the snapshot has another "
                       "version; the agent and libhvd must be of the same release");
    if (header->shape.manifest != snapshot->shape.manifest ||
        header->shape.replicated_bytes != snapshot->shape.replicated_bytes ||
        header->shape.bytes != snapshot->shape.bytes)
        return err_set(err, HVD_E_CORRUPT,
                       "the snapshot of this slot was made for other entries or sizes than this "
                       "worker has registered; register the same entries with the same sizes at "
                       "each start of the program");
    return 0;
}

/* Maps the snapshot with this descriptor, and takes the descriptor over, also on failure. */
int snapshot_open(int fd, const struct snapshot_shape *shape, struct snapshot **ret_snapshot,
                  struct hvd_err *err)
{
    struct snapshot *snapshot = mem_zalloc(sizeof(*snapshot));
    size_t chunks = (size_t)chunks_of(shape);
    int rc;

    if (!snapshot) {
        if (fd >= 0)
            close(fd);
        return err_set(err, HVD_E_NOMEM, "no memory to open a snapshot; free memory on this host");
    }
    snapshot->fd = fd;
    snapshot->shape = *shape;
    snapshot->open = -1;
    rc = check_shape(shape, err);
    if (!rc)
        rc = map_snapshot(snapshot, err);
    if (!rc) {
        snapshot->has_room[0] = mem_zalloc_array(chunks, SNAPSHOT_BUFFERS);
        for (size_t i = 1; snapshot->has_room[0] && i < SNAPSHOT_BUFFERS; i++)
            snapshot->has_room[i] = snapshot->has_room[i - 1] + chunks;
        if (!snapshot->has_room[0])
            rc = err_set(
                err, HVD_E_NOMEM,
                "no memory for the table of a snapshot with %zu chunks; free memory on this host",
                chunks);
    }
    if (rc) {
        snapshot_free(snapshot);
        return rc;
    }
    *ret_snapshot = snapshot;
    return 0;
}

/* Unmaps the snapshot and closes its descriptor. In a job the commits live on in the mapping of the
 * agent. stays_mapped: a device may still write to the memory. */
void snapshot_free(struct snapshot *snapshot)
{
    if (!snapshot)
        return;
    if (snapshot->base && !snapshot->stays_mapped)
        munmap(snapshot->base, snapshot->size);
    if (snapshot->fd >= 0)
        close(snapshot->fd);
    mem_free(snapshot->has_room[0]);
    mem_free(snapshot);
}

/* Makes snapshot_free leave the memory mapped, because a device may still write to it. */
void snapshot_leave_mapped(struct snapshot *snapshot)
{
    snapshot->stays_mapped = true;
}

/* Returns the descriptor of the memory, which the agent passes to the worker; borrowed. */
int snapshot_fd(const struct snapshot *snapshot)
{
    return snapshot->fd;
}

const struct snapshot_shape *snapshot_shape(const struct snapshot *snapshot)
{
    return &snapshot->shape;
}

/* ---- reading --------------------------------------------------------------------------------- */

/* Returns the number of the newest commit; 0: there is none. */
uint64_t snapshot_newest(const struct snapshot *snapshot)
{
    return commit_in(snapshot, newest_buffer(snapshot));
}

/* Returns the index of the buffer that holds the commit; -1: no buffer does. The fence makes sure
 * that the numbers are read after all earlier reads. */
static int buffer_of(const struct snapshot *snapshot, uint64_t commit)
{
    atomic_thread_fence(memory_order_seq_cst);
    for (int i = 0; i < SNAPSHOT_BUFFERS && commit; i++)
        if (commit_in(snapshot, (size_t)i) == commit)
            return i;
    return -1;
}

/* Returns the bytes of a commit; NULL: the snapshot does not hold it. The writer may overwrite them
 * at any time, so a reader calls this function again after it has read. */
const uint8_t *snapshot_find(const struct snapshot *snapshot, uint64_t commit)
{
    int buffer = buffer_of(snapshot, commit);

    return buffer < 0 ? NULL : snapshot->buffers[buffer];
}

/* Returns the checksum of a chunk of this commit. SUM_NONE: the chunk was never written, or the
 * snapshot does not hold the commit, also when the writer took its buffer during this call. */
uint64_t snapshot_chunk_sum(const struct snapshot *snapshot, uint64_t commit, uint64_t chunk)
{
    int buffer = buffer_of(snapshot, commit);
    uint64_t sum;

    if (buffer < 0 || chunk >= chunks_of(&snapshot->shape))
        return SUM_NONE;
    sum = atomic_load(&snapshot->sums[buffer][chunk]);
    return buffer_of(snapshot, commit) == buffer ? sum : SUM_NONE;
}

/* Looks at the commit in one buffer. Returns 1, and in *ret_held the commit's number and the
 * checksum of its replicated chunks; or 0: the buffer holds no commit. The worker may give the
 * commit another number meanwhile, so the function tries three times. */
static size_t look_at_buffer(const struct snapshot *snapshot, size_t buffer,
                             struct msg_held *ret_held)
{
    for (int i = 0; i < 3; i++) {
        uint64_t commit = commit_in(snapshot, buffer);
        uint64_t chunks = snapshot->shape.replicated_bytes / STATE_CHUNK_BYTES;
        /* the checksum so far, and the checksums of up to 64 chunks */
        uint64_t words[65] = { chunks };
        uint64_t sum = SUM_NONE;
        size_t count = 1;

        /* Computes the checksum of the checksums of all replicated chunks. */
        for (uint64_t k = 0; commit && k < chunks; k++) {
            words[count++] = atomic_load(&snapshot->sums[buffer][k]);
            if (count == ARRAY_SIZE(words)) {
                words[0] = sum_of(words, sizeof(words));
                count = 1;
            }
        }
        if (commit)
            sum = sum_of(words, count * sizeof(words[0]));
        atomic_thread_fence(memory_order_seq_cst);
        if (commit_in(snapshot, buffer) == commit) {
            *ret_held = (struct msg_held){ .commit = commit, .checksum = sum };
            return commit != 0;
        }
    }
    return 0;
}

/* Lists the two newest commits of the snapshot, the newest first, and returns their number. A third
 * commit is one that was held for a checkpoint: no recovery needs it. */
size_t snapshot_held(const struct snapshot *snapshot, struct msg_held ret_held[2])
{
    struct msg_held newest = { 0 };
    struct msg_held second = { 0 };

    for (size_t i = 0; i < SNAPSHOT_BUFFERS; i++) {
        struct msg_held found;

        if (!look_at_buffer(snapshot, i, &found) || found.commit == newest.commit)
            continue;
        if (found.commit > newest.commit) {
            second = newest;
            newest = found;
        } else if (found.commit > second.commit) {
            second = found;
        }
    }
    ret_held[0] = newest;
    ret_held[1] = second;
    return (size_t)(newest.commit != 0) + (second.commit != 0);
}

/* ---- writing --------------------------------------------------------------------------------- */

/* Chooses the buffer for a new commit. A buffer that was opened and has no commit since is opened
 * again: a fetch has written the replicated part into it. Otherwise the first buffer is chosen that
 * has neither the newest commit nor a held one. So without a hold two buffers are used. */
static size_t buffer_to_write(const struct snapshot *snapshot)
{
    size_t newest = newest_buffer(snapshot);
    uint32_t held = atomic_load(&snapshot->header->held);
    uint32_t opened = atomic_load(&snapshot->header->opened);
    size_t buffer = 0;

    if (opened >= 1 && opened <= SNAPSHOT_BUFFERS && opened != held &&
        !commit_in(snapshot, opened - 1))
        return opened - 1;
    while (buffer + 1 < SNAPSHOT_BUFFERS &&
           (buffer + 1 == held || (buffer == newest && commit_in(snapshot, newest))))
        buffer++;
    return buffer;
}

/* Opens a buffer for a new commit. The number of the commit that the buffer holds becomes 0 before
 * the first byte is written. If the agent has begun to hold that commit at the same moment, its
 * number is put back, and another buffer is opened. */
uint8_t *snapshot_begin(struct snapshot *snapshot)
{
    struct header *header = snapshot->header;
    size_t buffer = buffer_to_write(snapshot);

    for (int tries = 1;; tries++) {
        uint64_t commit = commit_in(snapshot, buffer);

        atomic_store(&header->commits[buffer], 0);
        atomic_thread_fence(memory_order_seq_cst);
        if (atomic_load(&header->held) != buffer + 1 || tries == BEGIN_TRIES)
            break;
        atomic_store(&header->commits[buffer], commit);
        buffer = buffer_to_write(snapshot);
    }
    atomic_store(&header->opened, (uint32_t)buffer + 1);
    snapshot->open = (int)buffer;
    return snapshot->buffers[buffer];
}

/* true: this process has made sure that the chunk of the open buffer has memory. */
bool snapshot_has_room(const struct snapshot *snapshot, uint64_t chunk)
{
    ASSERT(snapshot->open >= 0 && chunk < chunks_of(&snapshot->shape));
    return snapshot->has_room[snapshot->open][chunk];
}

/* Returns how many bytes of the open buffer have memory already: those that are no hole in the
 * file. */
uint64_t snapshot_room(const struct snapshot *snapshot)
{
    off_t at = snapshot->buffers[snapshot->open] - snapshot->base;
    off_t end = at + (off_t)snapshot->shape.bytes;
    uint64_t room = 0;

    while (at < end) {
        off_t data = lseek(snapshot->fd, at, SEEK_DATA);
        off_t hole = data < 0 ? -1 : lseek(snapshot->fd, data, SEEK_HOLE);

        if (hole < 0 || data >= end)
            break;
        at = hole < end ? hole : end;
        room += (uint64_t)(at - data);
    }
    return room;
}

/* Gets memory for a chunk of the open buffer, before the first write to the chunk. HVD_E_NOMEM. */
int snapshot_take_room(struct snapshot *snapshot, uint64_t chunk)
{
    uint8_t *has_room;

    ASSERT(snapshot->open >= 0 && chunk < chunks_of(&snapshot->shape));
    has_room = &snapshot->has_room[snapshot->open][chunk];
    if (*has_room)
        return 0;
    /* A kernel that does not know MADV_POPULATE_WRITE returns EINVAL: then a lack of memory causes
     * a signal at the first write. */
    if (madvise(snapshot->buffers[snapshot->open] + chunk * STATE_CHUNK_BYTES, STATE_CHUNK_BYTES,
                MADV_POPULATE_WRITE) &&
        errno != EINVAL)
        return HVD_E_NOMEM;
    *has_room = 1;
    return 0;
}

/* Sets the checksum of a chunk of the open buffer. SUM_NONE before its bytes change, the checksum
 * after: a reader never sees a checksum with bytes that it does not belong to. */
void snapshot_set_sum(struct snapshot *snapshot, uint64_t chunk, uint64_t sum)
{
    ASSERT(snapshot->open >= 0 && chunk < chunks_of(&snapshot->shape));
    atomic_thread_fence(memory_order_seq_cst); /* the bytes are written before their checksum */
    atomic_store(&snapshot->sums[snapshot->open][chunk], sum);
    atomic_thread_fence(memory_order_seq_cst); /* the checksum is written before other bytes */
}

/* Returns the checksum of a chunk of the open buffer. */
uint64_t snapshot_sum(const struct snapshot *snapshot, uint64_t chunk)
{
    ASSERT(snapshot->open >= 0 && chunk < chunks_of(&snapshot->shape));
    return atomic_load(&snapshot->sums[snapshot->open][chunk]);
}

/* Ends the writing of a commit: the open buffer now holds it under this number. If the agent waits
 * for it, it is held. */
void snapshot_end(struct snapshot *snapshot, uint64_t commit)
{
    ASSERT(snapshot->open >= 0 && commit);
    atomic_thread_fence(memory_order_seq_cst);
    atomic_store(&snapshot->header->commits[snapshot->open], commit);
    snapshot_offer(snapshot, (size_t)snapshot->open, commit);
    snapshot->open = -1;
}

/* Forgets a commit; without such a commit nothing happens. */
void snapshot_drop(struct snapshot *snapshot, uint64_t commit)
{
    int buffer = buffer_of(snapshot, commit);

    if (buffer >= 0)
        atomic_store(&snapshot->header->commits[buffer], 0);
}

/* Gives the newest commit a higher number. Called at a switch: the commit that was made just before
 * is also the first commit of the next round. */
void snapshot_rename(struct snapshot *snapshot, uint64_t commit)
{
    size_t buffer = newest_buffer(snapshot);

    /* The agent may write commit numbers too, so a wrong number is no bug of this process. */
    if (!commit_in(snapshot, buffer) || commit <= commit_in(snapshot, buffer))
        return;
    atomic_store(&snapshot->header->commits[buffer], commit);
    snapshot_offer(snapshot, buffer, commit);
}
