#include "state/snapshot/snapshot.h"

#include "base/mem.h"
#include "base/panic.h"
#include "state/sum.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#define HEADER_MAGIC   UINT64_C(0x70616e7364766800) /* "\0hvdsnap" */
#define HEADER_VERSION 1
#define PAGE           4096
#define HUGE_PAGE      ((uint64_t)2 << 20) /* buffers begin on one: they may be made of them */
#define SEALS          (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)

#ifndef MADV_POPULATE_WRITE /* Linux 5.14 */
#define MADV_POPULATE_WRITE 23
#endif

/*
 * Who reads a commit while the other process writes needs this order, on both sides:
 *
 *     begin   commits[b] = 0          find      commits[b] is the one that is wanted
 *             (fence)                           copy bytes, look at sums
 *             bytes, sums                       (fence)
 *     end     (fence)                 find      commits[b] still is
 *             commits[b] = n
 *
 * Fences are sequentially consistent: those are also in order with the streaming stores, which
 * bypass the order of all other stores.
 */
struct header {
    uint64_t magic;
    uint32_t version;
    uint32_t chunk_bytes;
    struct snapshot_shape shape;
    _Alignas(64) _Atomic uint64_t commits[2];
};
_Static_assert(sizeof(struct header) <= PAGE, "the header is one page");

struct snapshot {
    int fd;
    struct snapshot_shape shape; /* what the header says was held against it once */
    uint8_t *base;
    uint64_t size;
    struct header *header;
    _Atomic uint64_t *sums[2];
    uint8_t *buffers[2];
    uint8_t *has_room[2]; /* per chunk: this process has made sure that it has memory */
    int open;             /* the buffer that is written by us; -1: none */
    bool stays_mapped;
};

/* Offsets in the file. */
struct layout {
    uint64_t sums[2];
    uint64_t buffers[2];
    uint64_t size;
};

static uint64_t round_up(uint64_t bytes, uint64_t multiple)
{
    return (bytes + multiple - 1) / multiple * multiple;
}

static uint64_t chunks_of(const struct snapshot_shape *shape)
{
    return shape->bytes / STATE_CHUNK_BYTES;
}

static struct layout layout_of(const struct snapshot_shape *shape)
{
    uint64_t sums_bytes = round_up(chunks_of(shape) * sizeof(uint64_t), PAGE);
    struct layout layout = {
        .sums = {PAGE, PAGE + sums_bytes}
    };

    if (shape->bytes) {
        layout.buffers[0] = round_up(layout.sums[1] + sums_bytes, HUGE_PAGE);
        layout.buffers[1] = round_up(layout.buffers[0] + shape->bytes, HUGE_PAGE);
    }
    layout.size = shape->bytes ? layout.buffers[1] + shape->bytes : PAGE;
    return layout;
}

static int judge_shape(const struct snapshot_shape *shape, struct hvd_err *err)
{
    if (shape->bytes > LIMIT_STATE_BYTES)
        return err_set(err, HVD_E_LIMIT,
                       "a state of %" PRIu64 " bytes; LIMIT_STATE_BYTES is %" PRIu64
                       ", split it over more workers",
                       shape->bytes, LIMIT_STATE_BYTES);
    if (shape->bytes % STATE_CHUNK_BYTES || shape->replicated_bytes % STATE_CHUNK_BYTES ||
        shape->replicated_bytes > shape->bytes)
        return err_set(err, HVD_E_INVAL,
                       "a state of %" PRIu64 " bytes, %" PRIu64
                       " of them replicated: not whole chunks, or not a part of it",
                       shape->bytes, shape->replicated_bytes);
    return 0;
}

/* ---- a new one ------------------------------------------------------------------------------- */

static int create_fd(int *ret_fd, struct hvd_err *err)
{
    int fd = memfd_create("hvd-snapshot", MFD_CLOEXEC | MFD_ALLOW_SEALING);

    if (fd < 0 && (errno == EMFILE || errno == ENFILE))
        return err_set(err, HVD_E_LIMIT,
                       "no descriptor is left for a snapshot; raise the limit of open files "
                       "(ulimit -n)");
    if (fd < 0)
        return err_set(err, errno == ENOMEM ? HVD_E_NOMEM : HVD_E_IO,
                       "the kernel gives no memory for a snapshot (memfd_create: %s)",
                       strerror(errno));
    *ret_fd = fd;
    return 0;
}

/* Growing a file past the limit is answered with a signal, so the limit is looked at before. */
static int set_size(int fd, uint64_t size, struct hvd_err *err)
{
    struct rlimit limit;

    if (!getrlimit(RLIMIT_FSIZE, &limit) && limit.rlim_cur != RLIM_INFINITY &&
        size > limit.rlim_cur)
        return err_set(err, HVD_E_LIMIT,
                       "a snapshot of %" PRIu64
                       " bytes, which is two commits, is larger than a file "
                       "may be here, %" PRIu64 "; raise the limit (ulimit -f) of the agent",
                       size, (uint64_t)limit.rlim_cur);
    if (ftruncate(fd, (off_t)size))
        return err_set(err, errno == EFBIG || errno == EINVAL ? HVD_E_LIMIT : HVD_E_NOMEM,
                       "the kernel gives no snapshot of %" PRIu64 " bytes, which is two commits "
                       "(ftruncate: %s)",
                       size, strerror(errno));
    return 0;
}

static int write_header(int fd, const struct snapshot_shape *shape, struct hvd_err *err)
{
    struct header header = {
        .magic = HEADER_MAGIC,
        .version = HEADER_VERSION,
        .chunk_bytes = STATE_CHUNK_BYTES,
        .shape = *shape,
    };

    if (pwrite(fd, &header, sizeof(header), 0) != (ssize_t)sizeof(header))
        return err_set(err, HVD_E_NOMEM, "no memory for the first page of a snapshot (%s)",
                       strerror(errno));
    if (fcntl(fd, F_ADD_SEALS, SEALS))
        return err_set(err, HVD_E_IO, "the size of a snapshot cannot be sealed (%s)",
                       strerror(errno));
    return 0;
}

int snapshot_create(const struct snapshot_shape *shape, struct snapshot **ret_snapshot,
                    struct hvd_err *err)
{
    int fd = -1;
    int rc = judge_shape(shape, err);

    if (rc)
        return rc;
    rc = create_fd(&fd, err);
    if (rc)
        return rc;
    rc = set_size(fd, layout_of(shape).size, err);
    if (!rc)
        rc = write_header(fd, shape, err);
    if (rc) {
        close(fd);
        return rc;
    }
    return snapshot_open(fd, shape, ret_snapshot, err);
}

/* ---- one that is there ----------------------------------------------------------------------- */

/* Its size must be sealed: else it could be cut while we look at it. */
static int judge_file(int fd, const struct snapshot_shape *shape, struct hvd_err *err)
{
    int seals = fcntl(fd, F_GET_SEALS);
    struct stat st;

    if (seals < 0 || (seals & (SEALS & ~F_SEAL_SEAL)) != (SEALS & ~F_SEAL_SEAL) || fstat(fd, &st))
        return err_set(err, HVD_E_CORRUPT,
                       "what should be a snapshot is none: its size is not "
                       "sealed");
    if ((uint64_t)st.st_size != layout_of(shape).size)
        return err_set(err, HVD_E_CORRUPT,
                       "a snapshot has %" PRIu64 " bytes, not the %" PRIu64 " of its state",
                       (uint64_t)st.st_size, layout_of(shape).size);
    return 0;
}

static int map(struct snapshot *snapshot, struct hvd_err *err)
{
    struct layout layout = layout_of(&snapshot->shape);
    void *base = mmap(NULL, layout.size, PROT_READ | PROT_WRITE, MAP_SHARED, snapshot->fd, 0);

    if (base == MAP_FAILED)
        return err_set(err, HVD_E_NOMEM,
                       "no room to map a snapshot of %" PRIu64
                       " bytes, which is two commits (%s); raise the limit of the address space "
                       "(ulimit -v)",
                       layout.size, strerror(errno));
    snapshot->base = base;
    snapshot->size = layout.size;
    snapshot->header = base;
    for (size_t i = 0; i < 2; i++) {
        snapshot->sums[i] = (_Atomic uint64_t *)(void *)(snapshot->base + layout.sums[i]);
        snapshot->buffers[i] = snapshot->base + layout.buffers[i];
    }
    /* All three are wishes: larger pages, and neither a core file nor a child that has a copy. */
    (void)madvise(base, layout.size, MADV_HUGEPAGE);
    (void)madvise(base, layout.size, MADV_DONTDUMP);
    (void)madvise(base, layout.size, MADV_DONTFORK);
    return 0;
}

static int judge_header(const struct snapshot *snapshot, struct hvd_err *err)
{
    const struct header *header = snapshot->header;

    if (header->magic != HEADER_MAGIC || header->version != HEADER_VERSION ||
        header->chunk_bytes != STATE_CHUNK_BYTES)
        return err_set(err, HVD_E_CORRUPT,
                       "what should be a snapshot is none, or of another "
                       "version; agent and worker must be of one release");
    if (header->shape.manifest != snapshot->shape.manifest ||
        header->shape.replicated_bytes != snapshot->shape.replicated_bytes ||
        header->shape.bytes != snapshot->shape.bytes)
        return err_set(err, HVD_E_CORRUPT, "a snapshot is one of another state");
    return 0;
}

static int set_up(struct snapshot *snapshot, struct hvd_err *err)
{
    int rc = judge_file(snapshot->fd, &snapshot->shape, err);
    size_t chunks = (size_t)chunks_of(&snapshot->shape);

    if (!rc)
        rc = map(snapshot, err);
    if (!rc)
        rc = judge_header(snapshot, err);
    if (rc)
        return rc;
    snapshot->has_room[0] = mem_zalloc_array(chunks, 2);
    if (!snapshot->has_room[0])
        return err_set(err, HVD_E_NOMEM, "no memory to look after a snapshot of %zu chunks",
                       chunks);
    snapshot->has_room[1] = snapshot->has_room[0] + chunks;
    return 0;
}

/* The descriptor is its, whatever comes of it. */
static struct snapshot *snapshot_of(int fd, const struct snapshot_shape *shape)
{
    struct snapshot *snapshot = mem_zalloc(sizeof(*snapshot));

    if (snapshot) {
        snapshot->fd = fd;
        snapshot->shape = *shape;
        snapshot->open = -1;
    } else if (fd >= 0) {
        close(fd);
    }
    return snapshot;
}

int snapshot_open(int fd, const struct snapshot_shape *shape, struct snapshot **ret_snapshot,
                  struct hvd_err *err)
{
    struct snapshot *snapshot = snapshot_of(fd, shape);
    int rc;

    if (!snapshot)
        return err_set(err, HVD_E_NOMEM, "no memory to open a snapshot");
    rc = judge_shape(shape, err);
    if (!rc)
        rc = set_up(snapshot, err);
    if (rc) {
        snapshot_free(snapshot);
        return rc;
    }
    *ret_snapshot = snapshot;
    return 0;
}

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

void snapshot_leave_mapped(struct snapshot *snapshot)
{
    snapshot->stays_mapped = true;
}

int snapshot_fd(const struct snapshot *snapshot)
{
    return snapshot->fd;
}

const struct snapshot_shape *snapshot_shape(const struct snapshot *snapshot)
{
    return &snapshot->shape;
}

/* ---- reading --------------------------------------------------------------------------------- */

static uint64_t commit_in(const struct snapshot *snapshot, size_t buffer)
{
    return atomic_load(&snapshot->header->commits[buffer]);
}

uint64_t snapshot_newest(const struct snapshot *snapshot)
{
    uint64_t first = commit_in(snapshot, 0);
    uint64_t second = commit_in(snapshot, 1);

    return first > second ? first : second;
}

/* -1: not here. What was read before is read before this. */
static int buffer_of(const struct snapshot *snapshot, uint64_t commit)
{
    atomic_thread_fence(memory_order_seq_cst);
    for (int i = 0; i < 2 && commit; i++)
        if (commit_in(snapshot, (size_t)i) == commit)
            return i;
    return -1;
}

const uint8_t *snapshot_find(const struct snapshot *snapshot, uint64_t commit)
{
    int buffer = buffer_of(snapshot, commit);

    return buffer < 0 ? NULL : snapshot->buffers[buffer];
}

uint64_t snapshot_chunk_sum(const struct snapshot *snapshot, uint64_t commit, uint64_t chunk)
{
    int buffer = buffer_of(snapshot, commit);
    uint64_t sum;

    if (buffer < 0 || chunk >= chunks_of(&snapshot->shape))
        return SUM_NONE;
    sum = atomic_load(&snapshot->sums[buffer][chunk]);
    return buffer_of(snapshot, commit) == buffer ? sum : SUM_NONE;
}

/* One sum of the sums of the replicated chunks. */
static uint64_t sum_of_replicated(const struct snapshot *snapshot, size_t buffer)
{
    uint64_t chunks = snapshot->shape.replicated_bytes / STATE_CHUNK_BYTES;
    uint64_t words[65] = { chunks }; /* the sum so far, and the next */
    size_t count = 1;

    for (uint64_t i = 0; i < chunks; i++) {
        words[count++] = atomic_load(&snapshot->sums[buffer][i]);
        if (count == ARRAY_SIZE(words)) {
            words[0] = sum_of(words, sizeof(words));
            count = 1;
        }
    }
    return sum_of(words, count * sizeof(words[0]));
}

/* 0, or 1 and what is in the buffer. It may be renamed meanwhile; one that is renamed all the time
 * is not looked at for ever. */
static size_t look_at(const struct snapshot *snapshot, size_t buffer, struct msg_held *ret_held)
{
    for (int i = 0; i < 3; i++) {
        uint64_t commit = commit_in(snapshot, buffer);
        uint64_t sum = commit ? sum_of_replicated(snapshot, buffer) : SUM_NONE;

        atomic_thread_fence(memory_order_seq_cst);
        if (commit_in(snapshot, buffer) == commit) {
            *ret_held = (struct msg_held){ .commit = commit, .checksum = sum };
            return commit != 0;
        }
    }
    return 0;
}

size_t snapshot_held(const struct snapshot *snapshot, struct msg_held ret_held[2])
{
    size_t count = look_at(snapshot, 0, &ret_held[0]);

    count += look_at(snapshot, 1, &ret_held[count]);
    if (count == 2 && ret_held[0].commit == ret_held[1].commit)
        return 1;
    if (count == 2 && ret_held[0].commit < ret_held[1].commit) {
        struct msg_held older = ret_held[0];

        ret_held[0] = ret_held[1];
        ret_held[1] = older;
    }
    return count;
}

/* ---- writing --------------------------------------------------------------------------------- */

uint8_t *snapshot_begin(struct snapshot *snapshot)
{
    size_t buffer = commit_in(snapshot, 0) > commit_in(snapshot, 1);

    snapshot->open = (int)buffer;
    atomic_store(&snapshot->header->commits[buffer], 0);
    atomic_thread_fence(memory_order_seq_cst);
    return snapshot->buffers[buffer];
}

static uint8_t *open_chunk(const struct snapshot *snapshot, uint64_t chunk)
{
    ASSERT(snapshot->open >= 0 && chunk < chunks_of(&snapshot->shape));
    return snapshot->buffers[snapshot->open] + chunk * STATE_CHUNK_BYTES;
}

bool snapshot_has_room(const struct snapshot *snapshot, uint64_t chunk)
{
    ASSERT(snapshot->open >= 0 && chunk < chunks_of(&snapshot->shape));
    return snapshot->has_room[snapshot->open][chunk];
}

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

int snapshot_take_room(struct snapshot *snapshot, uint64_t chunk)
{
    uint8_t *at = open_chunk(snapshot, chunk);
    uint8_t *has_room = &snapshot->has_room[snapshot->open][chunk];

    if (*has_room)
        return 0;
    /* A kernel that does not know this says EINVAL; then it is left to luck. */
    if (madvise(at, STATE_CHUNK_BYTES, MADV_POPULATE_WRITE) && errno != EINVAL)
        return HVD_E_NOMEM;
    *has_room = 1;
    return 0;
}

void snapshot_set_sum(struct snapshot *snapshot, uint64_t chunk, uint64_t sum)
{
    ASSERT(snapshot->open >= 0 && chunk < chunks_of(&snapshot->shape));
    atomic_thread_fence(memory_order_seq_cst); /* the bytes before their sum */
    atomic_store(&snapshot->sums[snapshot->open][chunk], sum);
    atomic_thread_fence(memory_order_seq_cst); /* no sum before other bytes */
}

uint64_t snapshot_sum(const struct snapshot *snapshot, uint64_t chunk)
{
    ASSERT(snapshot->open >= 0 && chunk < chunks_of(&snapshot->shape));
    return atomic_load(&snapshot->sums[snapshot->open][chunk]);
}

void snapshot_end(struct snapshot *snapshot, uint64_t commit)
{
    ASSERT(snapshot->open >= 0 && commit);
    atomic_thread_fence(memory_order_seq_cst);
    atomic_store(&snapshot->header->commits[snapshot->open], commit);
    snapshot->open = -1;
}

void snapshot_drop(struct snapshot *snapshot, uint64_t commit)
{
    int buffer = buffer_of(snapshot, commit);

    if (buffer >= 0)
        atomic_store(&snapshot->header->commits[buffer], 0);
}

void snapshot_rename(struct snapshot *snapshot, uint64_t commit)
{
    size_t buffer = commit_in(snapshot, 0) < commit_in(snapshot, 1);

    /* What stands there is not ours alone to write, so nothing of it may be asserted. */
    if (commit_in(snapshot, buffer) && commit > commit_in(snapshot, buffer))
        atomic_store(&snapshot->header->commits[buffer], commit);
}
