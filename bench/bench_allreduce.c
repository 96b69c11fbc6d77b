/*
 * bench_allreduce: an allreduce of ours beside Gloo's, Open MPI's, and memcpy of as many bytes.
 *
 * Each engine has a set of processes. For each size the sets take turns, pass after pass, while
 * all the others sleep; a sample is a loop of as many allreduces as fill SAMPLE_US, and counts with
 * its slowest member's time. Before it is timed, each engine shows that its sums are right.
 */
#include "base/mem.h"
#include "base/opt_show.h"
#include "base/text.h"
#include "bench/allreduce_table.h"
#include "bench/allreduce_work.h"
#include "bench/coll_member.h"
#include "bench/load.h"
#include "bench/plain_gloo.h"
#include "collectives/shm/pool.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SAMPLE_US   INT64_C(30000)
#define TIMES_MAX   20000
#define TIMES_MIN   2
#define LOOKS       3
#define SMALL_BYTES ((size_t)256 << 10)
#define RANKS_MAX   16

struct options {
    char *only, *sizes, *ranks;
    uint64_t passes;
    bool markdown, help;
};

static const struct opt table[] = {
    OPT(struct options, only, .name = "only", .arg = "ENGINES", .group = "what is measured",
        .help = "some of ours,alloc,hosts,gloo,own,ring,bcube,vader,tcp,copy,copies"),
    OPT(struct options, sizes, .name = "sizes", .arg = "KIB", .group = "what is measured",
        .preset = "4,16,64,256,1024,4096,16384,65536", .help = "how many KiB, with commas"),
    OPT(struct options, ranks, .name = "ranks", .arg = "N", .group = "what is measured",
        .preset = "2,4", .help = "how many processes, with commas"),
    OPT(struct options, passes, .name = "passes", .arg = "N", .group = "what is measured",
        .preset = "11", .min = 1, .max = ALLREDUCE_PASSES_MAX, .help = "samples of each"),
    OPT(struct options, markdown, .name = "markdown", .group = "how it is shown",
        .help = "tables for a page"),
    OPT(struct options, help, .name = "help", .key = 'h', .flags = OPT_ARGV_ONLY,
        .group = "how it is shown", .help = "show this"),
};

/* ---- engines ---- */

static float *numbers_of(bool shared)
{
    struct hvd_err err = { .text = "out of memory" };
    float *numbers = shared ? pool_alloc(ALLREDUCE_MAX, &err) : mem_zalloc(ALLREDUCE_MAX);

    if (!numbers)
        lockstep_fail(HVD_E_NOMEM, "a buffer", &err);
    return numbers;
}

struct ours {
    struct coll_member_place place;
    bool alloc;
};

static void our_allreduce(void *engine, void *numbers, size_t count)
{
    struct hvd_err err = { .text = "" };
    const struct coll_call call = { .kind = COLL_ALLREDUCE,
                                    .type = HVD_FLOAT32,
                                    .op = HVD_SUM,
                                    .in = numbers,
                                    .out = numbers,
                                    .count = count };

    lockstep_must(coll_run(engine, &call, &err), "allreduce", &err);
}

static void live_ours(struct lockstep_self *seat, const void *arg)
{
    const struct ours *ours = arg;
    float *numbers = numbers_of(ours->alloc);
    struct coll_member member;
    struct coll *coll;

    coll_member_open(&member, seat, &ours->place);
    coll_member_meet(&member);
    coll = coll_member_round(&member, 1);
    coll_member_connect(coll);
    allreduce_work(seat, our_allreduce, coll, numbers);
    coll_bye(coll);
    coll_free(coll);
    coll_member_close(&member);
    if (ours->alloc)
        pool_free(numbers);
    else
        mem_free(numbers);
}

struct gloo_member {
    struct plain_gloo *gloo;
    bool bcube;
};

static void gloo_allreduce(void *engine, void *numbers, size_t count)
{
    const struct gloo_member *member = engine;

    plain_gloo_allreduce(member->gloo, member->bcube, numbers, count);
}

struct gloo {
    struct plain_gloo_store *store;
    bool bcube;
};

static void live_gloo(struct lockstep_self *seat, const void *arg)
{
    const struct gloo *gloo = arg;
    struct plain_gloo_device *device = plain_gloo_device_open();
    struct gloo_member member = {
        plain_gloo_connect(device, gloo->store, 1, seat->rank, seat->size), gloo->bcube
    };
    float *numbers = numbers_of(false);

    allreduce_work(seat, gloo_allreduce, &member, numbers);
    lockstep_gate(seat); /* closing waits for the others' answers */
    plain_gloo_free(member.gloo);
    plain_gloo_device_close(device);
    mem_free(numbers);
}

struct copier {
    bool idle;
    float *copy;
};

static void copy_bytes(void *engine, void *numbers, size_t count)
{
    const struct copier *copier = engine;

    if (!copier->idle)
        memcpy(copier->copy, numbers, count * sizeof(float));
}

static void live_copier(struct lockstep_self *seat, const void *arg)
{
    const bool *all = arg;
    struct copier copier = { !*all && seat->rank > 0, numbers_of(false) };
    float *numbers = numbers_of(false);

    memset(copier.copy, 1, ALLREDUCE_MAX);
    allreduce_work(seat, copy_bytes, &copier, numbers);
    mem_free(copier.copy);
    mem_free(numbers);
}

#ifdef BENCH_MPI_PEER
static void start_mpi(struct lockstep *set, const char *name, const char *transport, uint32_t ranks)
{
    char count[16];
    const char *const words[] = { BENCH_MPI_EXEC,
                                  "--allow-run-as-root",
                                  "--oversubscribe",
                                  "--bind-to",
                                  "none",
                                  "--mca",
                                  "pml",
                                  "ob1",
                                  "--mca",
                                  "btl",
                                  transport,
                                  "-np",
                                  count,
                                  BENCH_MPI_PEER,
                                  NULL };

    (void)snprintf(count, sizeof(count), "%u", ranks);
    lockstep_execute(set, name, ranks, words);
}
#define WITHOUT_MPI ""
#else
static void start_mpi(struct lockstep *set, const char *name, const char *transport, uint32_t ranks)
{
    (void)set, (void)name, (void)transport, (void)ranks;
}
#define WITHOUT_MPI "Open MPI: not installed (apt install openmpi-bin libopenmpi-dev)\n"
#endif

static void start(struct lockstep *set, enum allreduce_engine engine, uint32_t ranks,
                  struct plain_gloo_store *const stores[2])
{
    static const struct ours ours[] = {
        [ALLREDUCE_OURS] = {{ .hosts = 1 },                                         false},
        [ALLREDUCE_ALLOC] = { { .hosts = 1 },                                        true },
        [ALLREDUCE_HOSTS] = { { .hosts = 2 },                                        false},
        [ALLREDUCE_GLOO] = { { .hosts = 1, .carrier = COLL_BY_GLOO, .flat = true }, false},
        [ALLREDUCE_OWN] = { { .hosts = 1, .carrier = COLL_BY_TCP, .flat = true },  false},
    };
    static struct gloo gloo[2];
    static const bool all[] = { false, true };
    const char *name = allreduce_engine_name(engine);

    switch (engine) {
    case ALLREDUCE_OURS:
    case ALLREDUCE_ALLOC:
    case ALLREDUCE_HOSTS:
    case ALLREDUCE_GLOO:
    case ALLREDUCE_OWN: lockstep_fork(set, name, ranks, live_ours, &ours[engine]); break;
    case ALLREDUCE_RING:
    case ALLREDUCE_BCUBE:
        gloo[engine == ALLREDUCE_BCUBE] =
            (struct gloo){ stores[engine == ALLREDUCE_BCUBE], engine == ALLREDUCE_BCUBE };
        lockstep_fork(set, name, ranks, live_gloo, &gloo[engine == ALLREDUCE_BCUBE]);
        break;
    case ALLREDUCE_VADER: start_mpi(set, name, "self,vader", ranks); break;
    case ALLREDUCE_TCP: start_mpi(set, name, "self,tcp", ranks); break;
    default: lockstep_fork(set, name, ranks, live_copier, &all[engine == ALLREDUCE_COPIES]); break;
    }
}

/* ---- measuring ---- */

static double sample_us(struct lockstep *set, size_t bytes, uint32_t times)
{
    const struct lockstep_order order = { ALLREDUCE_TIME, times, bytes, 0 };

    lockstep_round(set, &order);
    return (double)lockstep_most(set, 0) / times;
}

static uint32_t times_for(double us)
{
    double times = us > 0 ? (double)SAMPLE_US / us : TIMES_MAX;

    return times > TIMES_MAX ? TIMES_MAX : times < TIMES_MIN ? TIMES_MIN : (uint32_t)times;
}

/* The least of some looks: a loop that was too short would be all that a disturbed one leaves. */
static double least_us(struct lockstep *set, size_t bytes, uint32_t times)
{
    double least = sample_us(set, bytes, times);

    for (int i = 1; i < LOOKS; i++) {
        double us = sample_us(set, bytes, times);

        least = us < least ? us : least;
    }
    return least;
}

/* How often it is to be done for a sample. */
static uint32_t prepared(struct lockstep *set, enum allreduce_engine engine, size_t bytes)
{
    const struct lockstep_order order = { ALLREDUCE_CHECK, 1, bytes, 0 };
    uint32_t few;

    if (engine < ALLREDUCE_COPY)
        lockstep_round(set, &order);
    few = times_for(LOOKS * least_us(set, bytes, bytes <= SMALL_BYTES ? 10 : 1));
    return times_for(least_us(set, bytes, few));
}

static void measure(struct allreduce_table *results, struct lockstep sets[ALLREDUCE_ENGINES],
                    size_t size, size_t passes)
{
    uint32_t times[ALLREDUCE_ENGINES] = { 0 };

    for (size_t engine = 0; engine < ALLREDUCE_ENGINES; engine++) {
        if (results->has[engine])
            times[engine] =
                prepared(&sets[engine], (enum allreduce_engine)engine, results->bytes[size]);
    }
    for (size_t pass = 0; pass < passes; pass++) {
        for (size_t i = 0; i < ALLREDUCE_ENGINES; i++) {
            size_t engine = (i + pass) % ALLREDUCE_ENGINES; /* each comes after each */
            struct allreduce_cell *cell = &results->cells[engine][size];

            if (results->has[engine])
                cell->us[cell->count++] =
                    sample_us(&sets[engine], results->bytes[size], times[engine]);
        }
    }
}

static void measure_all(struct allreduce_table *results, size_t passes, bool markdown)
{
    struct plain_gloo_store *stores[2] = { plain_gloo_store_create(), plain_gloo_store_create() };
    struct lockstep sets[ALLREDUCE_ENGINES];

    for (size_t engine = 0; engine < ALLREDUCE_ENGINES; engine++) {
        if (results->has[engine])
            start(&sets[engine], (enum allreduce_engine)engine, results->ranks, stores);
    }
    for (size_t size = 0; size < results->size_count; size++)
        measure(results, sets, size, passes);
    for (size_t engine = 0; engine < ALLREDUCE_ENGINES; engine++) {
        if (results->has[engine])
            lockstep_end(&sets[engine]);
    }
    allreduce_table_show(results, markdown);
    for (size_t i = 0; i < ARRAY_SIZE(stores); i++)
        plain_gloo_store_free(stores[i]);
}

/* ---- what is wanted ---- */

static struct span span_of(const char *text)
{
    return (struct span){ text, strlen(text) };
}

static bool wanted(const char *only, const char *name)
{
    struct span rest, part;

    if (!only)
        return true;
    rest = span_of(only);
    while (span_next(&rest, ',', &part)) {
        if (span_is(part, name))
            return true;
    }
    return false;
}

static int read_sizes(const char *text, struct allreduce_table *results, struct hvd_err *err)
{
    struct span rest = span_of(text), part;
    uint64_t kib;

    results->size_count = 0;
    while (span_next(&rest, ',', &part)) {
        int rc = text_parse_u64(part, 1, ALLREDUCE_MAX >> 10, "a size", &kib, err);

        if (rc)
            return rc;
        if (results->size_count == ALLREDUCE_SIZES_MAX)
            return err_set(err, HVD_E_LIMIT, "more than %d sizes", ALLREDUCE_SIZES_MAX);
        results->bytes[results->size_count++] = kib << 10;
    }
    return 0;
}

static int run(const struct options *options, struct hvd_err *err)
{
    static struct allreduce_table results;
    struct span rest = span_of(options->ranks), part;
    struct load before;
    uint64_t ranks;

    load_look(&before);

    printf("An allreduce in place, sum of float32: the median of %u samples, %s it where 80 %% of "
           "them lie.\n" WITHOUT_MPI,
           (unsigned)options->passes, options->markdown ? "beside" : "below");
    while (span_next(&rest, ',', &part)) {
        int rc = text_parse_u64(part, 2, RANKS_MAX, "a number of ranks", &ranks, err);

        results = (struct allreduce_table){ .ranks = (uint32_t)ranks };
        if (!rc)
            rc = read_sizes(options->sizes, &results, err);
        if (rc)
            return rc;
        for (size_t i = 0; i < ALLREDUCE_ENGINES; i++)
            results.has[i] = wanted(options->only, allreduce_engine_name((enum allreduce_engine)i));
        if (*WITHOUT_MPI)
            results.has[ALLREDUCE_VADER] = results.has[ALLREDUCE_TCP] = false;
        measure_all(&results, options->passes, options->markdown);
    }
    printf("\nOther programs used %d %% of the processors meanwhile.\n", load_of_others(&before));
    return 0;
}

static int show_help(const struct opt_set *set)
{
    struct buf out;
    int rc;

    buf_init(&out, 65536);
    rc = opt_show_help(set, "usage: bench_allreduce [options]", "An allreduce beside its peers.",
                       &out);
    if (!rc)
        (void)fputs(buf_text(&out), stdout);
    buf_release(&out);
    return rc;
}

int main(int argc, char **argv)
{
    struct options options;
    struct opt_set set;
    struct hvd_err err = { .text = "" };
    int rest, rc;

    if (opt_init(&set, table, ARRAY_SIZE(table), &options))
        return 1;
    rc = opt_argv(&set, argc, argv, &rest, &err);
    if (!rc && options.help)
        rc = show_help(&set);
    else if (!rc)
        rc = run(&options, &err);
    opt_release(&set);
    if (rc)
        (void)fprintf(stderr, "bench_allreduce: %s\n", err.text);
    return rc ? 1 : 0;
}
