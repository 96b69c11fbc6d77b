#include "base/mem.h"
#include "bench/gpu/kernels.h"
#include "bench/gpu/questions.h"

#include <sys/mman.h>
#include <unistd.h>

#define MIB         ((size_t)1 << 20)
#define SMALL_BYTES ((size_t)16 << 10) /* of each of many pieces */
#define TRIALS      5

/* One large buffer on the device and one on the host; what is copied, in pieces of so many bytes.
 */
struct copy {
    struct member *member;
    cuda_address here, there; /* on the device */
    void *host;
    size_t bytes, piece;
};

typedef void copy_fn(struct copy *copy, size_t at, size_t bytes);

static void to_host(struct copy *copy, size_t at, size_t bytes)
{
    member_must_cuda(copy->member,
                     copy->member->cuda->to_host((char *)copy->host + at, copy->here + at, bytes,
                                                 copy->member->stream),
                     "a copy to the host");
}

static void to_device(struct copy *copy, size_t at, size_t bytes)
{
    member_must_cuda(copy->member,
                     copy->member->cuda->to_device(copy->here + at, (char *)copy->host + at, bytes,
                                                   copy->member->stream),
                     "a copy to the device");
}

static void on_device(struct copy *copy, size_t at, size_t bytes)
{
    member_must_cuda(copy->member,
                     copy->member->cuda->on_device(copy->there + at, copy->here + at, bytes,
                                                   copy->member->stream),
                     "a copy on the device");
}

/* The first time is not counted: pages may be new. */
static void measure(struct copy *copy, const char *name, copy_fn *one)
{
    struct member *member = copy->member;

    for (int i = 0; i <= TRIALS; i++) {
        int64_t start_us = now_us();
        double seconds;

        for (size_t at = 0; at < copy->bytes; at += copy->piece)
            one(copy, at, copy->piece < copy->bytes - at ? copy->piece : copy->bytes - at);
        member_must_cuda(member, member->cuda->stream_sync(member->stream), "a copy");
        seconds = (double)(now_us() - start_us) / 1e6;
        if (i)
            member_add(member, name, "GB/s", (double)copy->bytes / 1e9 / seconds);
    }
}

static void measure_both_ways(struct copy *copy, const char *what)
{
    char name[FIGURE_NAME_MAX];

    snprintf(name, sizeof(name), "device to host, %s", what);
    measure(copy, name, to_host);
    snprintf(name, sizeof(name), "host to device, %s", what);
    measure(copy, name, to_device);
}

static void copy_pinned(struct copy *copy)
{
    static const size_t pieces[] = { 1, 4, 16, 64 };
    const struct cuda *cuda = copy->member->cuda;
    char what[48];
    int64_t start_us = now_us();

    member_must_cuda(copy->member, cuda->host_alloc(&copy->host, copy->bytes, CUDA_PIN_PORTABLE),
                     "pinned memory");
    member_add(copy->member, "pinned memory, for each GiB", "ms",
               (double)(now_us() - start_us) / 1e3 * 1024 / ((double)copy->bytes / (double)MIB));
    for (size_t i = 0; i < ARRAY_SIZE(pieces); i++) {
        copy->piece = pieces[i] * MIB;
        snprintf(what, sizeof(what), "pinned, pieces of %zu MiB", pieces[i]);
        measure_both_ways(copy, what);
    }
    copy->piece = copy->bytes;
    measure_both_ways(copy, "pinned, in one piece");
    member_must_cuda(copy->member, cuda->host_free(copy->host), "pinned memory");
}

/* As commits lie: a file without a name, mapped and pinned. */
static void copy_file(struct copy *copy)
{
    struct member *member = copy->member;
    int fd = memfd_create("bench", MFD_CLOEXEC);
    int64_t start_us;

    if (fd < 0 || ftruncate(fd, (off_t)copy->bytes))
        member_fail(member, "a file without a name", "it cannot be made");
    copy->host = mmap(NULL, copy->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (copy->host == MAP_FAILED)
        member_fail(member, "a file without a name", "it cannot be mapped");
    copy->piece = 32 * MIB;
    measure_both_ways(copy, "a memfd as it is, pieces of 32 MiB");
    start_us = now_us();
    member_must_cuda(member, member->cuda->pin(copy->host, copy->bytes, CUDA_PIN_PORTABLE),
                     "pinning a memfd");
    member_add(member, "pinning a memfd whose pages are there, for each GiB", "ms",
               (double)(now_us() - start_us) / 1e3 * 1024 / ((double)copy->bytes / (double)MIB));
    measure_both_ways(copy, "a memfd that is pinned, pieces of 32 MiB");
    start_us = now_us();
    member_must_cuda(member, member->cuda->unpin(copy->host), "unpinning");
    member_add(member, "unpinning it, for each GiB", "ms",
               (double)(now_us() - start_us) / 1e3 * 1024 / ((double)copy->bytes / (double)MIB));
    munmap(copy->host, copy->bytes);
    close(fd);
}

static bool copy_each(struct member *member, const struct pieces *pieces)
{
    for (size_t i = 0; i < pieces->count; i++)
        member_must_cuda(member,
                         member->cuda->on_device(pieces->to + i * pieces->bytes, pieces->from[i],
                                                 pieces->bytes, member->stream),
                         "a small copy");
    return true;
}

static void measure_small(struct member *member, const struct pieces *pieces, const char *name,
                          bool (*gather)(struct member *member, const struct pieces *pieces))
{
    for (int i = 0; i <= TRIALS; i++) {
        int64_t start_us = now_us();

        if (!gather(member, pieces)) {
            figure_say(&member->page->figures, member->question, name, member->size,
                       "not to be had here");
            return;
        }
        member_must_cuda(member, member->cuda->stream_sync(member->stream), "small copies");
        if (i)
            member_add(member, name, "us", (double)(now_us() - start_us));
    }
}

/* Many pieces that lie apart: every second one of the large buffer. */
static void copy_small(struct copy *copy)
{
    struct member *member = copy->member;
    struct pieces pieces = { .bytes = SMALL_BYTES, .to = copy->there };
    char name[FIGURE_NAME_MAX];

    pieces.count = copy->bytes / SMALL_BYTES / 4 < 2048 ? copy->bytes / SMALL_BYTES / 4 : 2048;
    pieces.from_at = copy->there + copy->bytes / 2;
    pieces.from = mem_zalloc_array(pieces.count, sizeof(*pieces.from));
    if (!pieces.from)
        member_fail(member, "small copies", "out of memory");
    for (size_t i = 0; i < pieces.count; i++)
        pieces.from[i] = copy->here + 2 * i * SMALL_BYTES;
    member_must_cuda(member,
                     member->cuda->to_device(pieces.from_at, pieces.from,
                                             pieces.count * sizeof(*pieces.from), member->stream),
                     "where they are");
    member_must_cuda(member, member->cuda->stream_sync(member->stream), "where they are");
    snprintf(name, sizeof(name), "%zu pieces of 16 KiB on the device, a copy each", pieces.count);
    measure_small(member, &pieces, name, copy_each);
    snprintf(name, sizeof(name), "%zu pieces of 16 KiB, a batch of copies", pieces.count);
    measure_small(member, &pieces, name, kernels_batch);
    snprintf(name, sizeof(name), "%zu pieces of 16 KiB, one kernel", pieces.count);
    measure_small(member, &pieces, name, kernels_gather);
    mem_free(pieces.from);
}

static void copy_all(struct member *member)
{
    struct copy copy = { .member = member, .bytes = member->options->mib * MIB };

    member_must_cuda(member, member->cuda->memory_alloc(&copy.here, copy.bytes), "device memory");
    member_must_cuda(member, member->cuda->memory_alloc(&copy.there, copy.bytes), "device memory");
    copy_pinned(&copy);
    copy_file(&copy);
    copy.piece = copy.bytes;
    measure(&copy, "on the device (bytes copied: half of what memory moves)", on_device);
    copy_small(&copy);
}

void ask_copies(struct team *team)
{
    team->size = 1;
    team->live = copy_all;
    (void)team_run(team, "the end", TEAM_WAIT_S, NULL);
}
