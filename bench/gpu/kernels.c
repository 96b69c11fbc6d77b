#include "bench/gpu/kernels.h"

#include "base/mem.h"
#include "gpu/library.h"

/* A driver that is some years old compiles this too. gather: block b copies piece b. */
static const char ptx[] =
    ".version 6.4\n"
    ".target sm_75\n"
    ".address_size 64\n"
    ".visible .entry spin(.param .u64 for_ns)\n"
    "{\n"
    "  .reg .pred %more;\n"
    "  .reg .b64 %begin, %now, %ns;\n"
    "  ld.param.u64 %ns, [for_ns];\n"
    "  mov.u64 %begin, %globaltimer;\n"
    "again:\n"
    "  mov.u64 %now, %globaltimer;\n"
    "  sub.s64 %now, %now, %begin;\n"
    "  setp.lt.u64 %more, %now, %ns;\n"
    "  @%more bra again;\n"
    "  ret;\n"
    "}\n"
    ".visible .entry gather(.param .u64 to, .param .u64 pieces, .param .u64 bytes)\n"
    "{\n"
    "  .reg .pred %more;\n"
    "  .reg .b32 %block, %thread, %threads, %a, %b, %c, %d;\n"
    "  .reg .b64 %out, %in, %size, %at, %step, %x, %y;\n"
    "  ld.param.u64 %out, [to];\n"
    "  ld.param.u64 %in, [pieces];\n"
    "  ld.param.u64 %size, [bytes];\n"
    "  mov.u32 %block, %ctaid.x;\n"
    "  mov.u32 %thread, %tid.x;\n"
    "  mov.u32 %threads, %ntid.x;\n"
    "  mul.wide.u32 %x, %block, 8;\n"
    "  add.s64 %in, %in, %x;\n"
    "  ld.global.u64 %in, [%in];\n"
    "  cvt.u64.u32 %x, %block;\n"
    "  mul.lo.s64 %x, %x, %size;\n"
    "  add.s64 %out, %out, %x;\n"
    "  mul.wide.u32 %at, %thread, 16;\n"
    "  mul.wide.u32 %step, %threads, 16;\n"
    "  setp.ge.u64 %more, %at, %size;\n"
    "  @%more bra done;\n"
    "next:\n"
    "  add.s64 %x, %in, %at;\n"
    "  add.s64 %y, %out, %at;\n"
    "  ld.global.v4.u32 {%a, %b, %c, %d}, [%x];\n"
    "  st.global.v4.u32 [%y], {%a, %b, %c, %d};\n"
    "  add.s64 %at, %at, %step;\n"
    "  setp.lt.u64 %more, %at, %size;\n"
    "  @%more bra next;\n"
    "done:\n"
    "  ret;\n"
    "}\n";

#define THREADS   256
#define FILLS_MAX 4096

struct CUmod_st;
struct CUfunc_st;

struct copy_attributes { /* CUmemcpyAttributes */
    int order;
    int from_kind, from_id;
    int to_kind, to_id;
    unsigned flags;
};
#define ORDER_OF_STREAM 1

static struct more {
    int (*init)(unsigned flags);
    int (*load)(struct CUmod_st **ret_module, const void *image);
    int (*function)(struct CUfunc_st **ret_function, struct CUmod_st *module, const char *name);
    int (*launch)(struct CUfunc_st *function, unsigned x, unsigned y, unsigned z, unsigned threads,
                  unsigned threads_y, unsigned threads_z, unsigned shared_bytes,
                  struct CUstream_st *stream, void **parameters, void **more);
    int (*batch)(const cuda_address *to, const cuda_address *from, const size_t *sizes,
                 size_t count, const struct copy_attributes *attributes, const size_t *first,
                 size_t attribute_count, struct CUstream_st *stream);
} more;

static struct CUfunc_st *spin, *gather; /* NULL: not to be had */

static void find_more(void)
{
    static const struct library_call calls[] = {
        {"cuInit",                 offsetof(struct more, init),     false},
        { "cuModuleLoadData",      offsetof(struct more, load),     true },
        { "cuModuleGetFunction",   offsetof(struct more, function), true },
        { "cuLaunchKernel",        offsetof(struct more, launch),   true },
        { "cuMemcpyBatchAsync_v2", offsetof(struct more, batch),    true },
    };
    static const struct library_spec spec = { "CUDA", "libcuda.so.1", "HVD_CUDA_LIBRARY", calls,
                                              ARRAY_SIZE(calls) };
    struct CUmod_st *module = NULL;

    if (more.init || library_find(&spec, false, &more, NULL))
        return;
    if (!more.load || !more.function || !more.launch || more.load(&module, ptx))
        return;
    if (more.function(&spin, module, "spin"))
        spin = NULL;
    if (more.function(&gather, module, "gather"))
        gather = NULL;
}

/* Where there are no kernels: as many fills as take that long. */
static void fill_for(struct member *member, struct CUstream_st *stream, uint32_t ms)
{
    cuda_address at = (cuda_address)(uintptr_t)member->data;
    size_t bytes = MEMBER_NUMBERS * sizeof(float);
    int64_t start_us = now_us();
    int64_t count;

    member_must_cuda(member, member->cuda->fill(at, 0, bytes, stream), "a fill");
    member_must_cuda(member, member->cuda->stream_sync(stream), "a fill");
    count = ms * INT64_C(1000) / (now_us() - start_us + 1);
    for (int64_t i = 0; i < count && i < FILLS_MAX; i++)
        member_must_cuda(member, member->cuda->fill(at, 0, bytes, stream), "a fill");
}

void kernels_spin(struct member *member, struct CUstream_st *stream, uint32_t ms)
{
    uint64_t ns = ms * UINT64_C(1000000);
    void *parameters[] = { &ns };

    find_more();
    if (spin)
        member_must_cuda(member, more.launch(spin, 1, 1, 1, 1, 1, 1, 0, stream, parameters, NULL),
                         "a kernel");
    else
        fill_for(member, stream, ms);
}

bool kernels_gather(struct member *member, const struct pieces *pieces)
{
    uint64_t bytes = pieces->bytes;
    cuda_address to = pieces->to;
    cuda_address from = pieces->from_at;
    void *parameters[] = { &to, &from, &bytes };

    find_more();
    if (!gather)
        return false;
    member_must_cuda(member,
                     more.launch(gather, (unsigned)pieces->count, 1, 1, THREADS, 1, 1, 0,
                                 member->stream, parameters, NULL),
                     "a kernel");
    return true;
}

bool kernels_batch(struct member *member, const struct pieces *pieces)
{
    static const struct copy_attributes attributes = { .order = ORDER_OF_STREAM };
    static const size_t first = 0;
    cuda_address *to = mem_zalloc_array(pieces->count, sizeof(*to));
    size_t *sizes = mem_zalloc_array(pieces->count, sizeof(*sizes));
    bool there;

    find_more();
    there = more.batch && to && sizes;
    for (size_t i = 0; there && i < pieces->count; i++) {
        to[i] = pieces->to + i * pieces->bytes;
        sizes[i] = pieces->bytes;
    }
    if (there)
        member_must_cuda(member,
                         more.batch(to, pieces->from, sizes, pieces->count, &attributes, &first, 1,
                                    member->stream),
                         "a batch of copies");
    mem_free(to);
    mem_free(sizes);
    return there;
}
