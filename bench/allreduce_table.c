#include "bench/allreduce_table.h"

#include <stdio.h>
#include <stdlib.h>

#define WIDTH 18
#define CELL  32

static const struct {
    const char *name, *title;
} engines[ALLREDUCE_ENGINES] = {
    [ALLREDUCE_OURS] = {"ours",    "ours"           },
    [ALLREDUCE_ALLOC] = { "alloc",  "ours, hvd_alloc"},
    [ALLREDUCE_HOSTS] = { "hosts",  "ours"           },
    [ALLREDUCE_GLOO] = { "gloo",   "ours over Gloo" },
    [ALLREDUCE_OWN] = { "own",    "ours over TCP"  },
    [ALLREDUCE_RING] = { "ring",   "Gloo ring"      },
    [ALLREDUCE_BCUBE] = { "bcube",  "Gloo bcube"     },
    [ALLREDUCE_VADER] = { "vader",  "MPI vader"      },
    [ALLREDUCE_TCP] = { "tcp",    "MPI tcp"        },
    [ALLREDUCE_COPY] = { "copy",   "memcpy, one"    },
    [ALLREDUCE_COPIES] = { "copies", "memcpy, all"    },
};

/* Which of them stand beside each other. MPI tcp, Gloo and the link know nothing of hosts. */
#define END ALLREDUCE_ENGINES
static const enum allreduce_engine one_host[] = { ALLREDUCE_OURS,
                                                  ALLREDUCE_ALLOC,
                                                  ALLREDUCE_GLOO,
                                                  ALLREDUCE_OWN,
                                                  ALLREDUCE_RING,
                                                  ALLREDUCE_BCUBE,
                                                  ALLREDUCE_VADER,
                                                  ALLREDUCE_TCP,
                                                  ALLREDUCE_COPY,
                                                  ALLREDUCE_COPIES,
                                                  END };
static const enum allreduce_engine two_hosts[] = { ALLREDUCE_HOSTS,
                                                   ALLREDUCE_GLOO,
                                                   ALLREDUCE_OWN,
                                                   ALLREDUCE_RING,
                                                   ALLREDUCE_BCUBE,
                                                   ALLREDUCE_TCP,
                                                   END };

const char *allreduce_engine_name(enum allreduce_engine engine)
{
    return engines[engine].name;
}

static int by_time(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;

    return (a > b) - (a < b);
}

static void sort_all(struct allreduce_table *table)
{
    for (size_t engine = 0; engine < ALLREDUCE_ENGINES; engine++) {
        for (size_t i = 0; i < table->size_count; i++) {
            struct allreduce_cell *cell = &table->cells[engine][i];

            qsort(cell->us, cell->count, sizeof(cell->us[0]), by_time);
        }
    }
}

static double at(const struct allreduce_cell *cell, size_t percent)
{
    return cell->count ? cell->us[((cell->count - 1) * percent + 50) / 100] : 0;
}

/* The least of the medians; 0: none of them was measured. */
static double best(const struct allreduce_table *table, size_t size,
                   const enum allreduce_engine *those)
{
    double least = 0;

    for (; *those != END; those++) {
        double median = at(&table->cells[*those][size], 50);

        if (median > 0 && (least <= 0 || median < least))
            least = median;
    }
    return least;
}

/* ---- rows ---- */

static void put(const char *text, bool markdown)
{
    if (markdown)
        printf(" %s |", text);
    else
        printf("%*s", WIDTH, text);
}

static void put_size(size_t bytes, bool markdown)
{
    char text[CELL];

    if (bytes >= 1 << 20)
        (void)snprintf(text, sizeof(text), "%zu MiB", bytes >> 20);
    else
        (void)snprintf(text, sizeof(text), "%zu KiB", bytes >> 10);
    if (markdown)
        printf("| %s |", text);
    else
        printf("  %-9s", text);
}

/* Three digits that say something. */
static int digits(double us)
{
    return us < 10 ? 2 : us < 100 ? 1 : 0;
}

static void put_time(const struct allreduce_cell *cell, bool markdown)
{
    double low = at(cell, 10), median = at(cell, 50), high = at(cell, 90);
    char text[CELL];

    if (markdown)
        (void)snprintf(text, sizeof(text), "%.*f (%.*f-%.*f)", digits(median), median, digits(low),
                       low, digits(high), high);
    else
        (void)snprintf(text, sizeof(text), "%.*f", digits(median), median);
    put(text, markdown);
}

static void put_spread(const struct allreduce_cell *cell)
{
    double low = at(cell, 10), high = at(cell, 90);
    char text[CELL];

    (void)snprintf(text, sizeof(text), "%.*f-%.*f", digits(low), low, digits(high), high);
    put(text, false);
}

static void put_heads(const char *const *heads, size_t count, bool markdown)
{
    printf(markdown ? "| |" : "  %-9s", "");
    for (size_t i = 0; i < count; i++)
        put(heads[i], markdown);
    printf("\n");
    if (!markdown)
        return;
    printf("|---|");
    for (size_t i = 0; i < count; i++)
        printf("---|");
    printf("\n");
}

static void show_times(const struct allreduce_table *table, const enum allreduce_engine *those,
                       bool markdown)
{
    const char *heads[ALLREDUCE_ENGINES];
    enum allreduce_engine shown[ALLREDUCE_ENGINES];
    size_t count = 0;

    for (; *those != END; those++) {
        if (table->has[*those]) {
            heads[count] = engines[*those].title;
            shown[count++] = *those;
        }
    }
    put_heads(heads, count, markdown);
    for (size_t i = 0; i < table->size_count; i++) {
        put_size(table->bytes[i], markdown);
        for (size_t k = 0; k < count; k++)
            put_time(&table->cells[shown[k]][i], markdown);
        printf(markdown ? "\n" : "\n  %-9s", "");
        for (size_t k = 0; k < count && !markdown; k++)
            put_spread(&table->cells[shown[k]][i]);
        printf(markdown ? "" : "\n");
    }
}

/* ---- ratios ---- */

struct ratio {
    const char *title;
    enum allreduce_engine above[3], below[3]; /* of each the best; up to END */
    bool percent;
};

static void put_ratio(const struct allreduce_table *table, size_t size, const struct ratio *ratio,
                      bool markdown)
{
    double above = best(table, size, ratio->above), below = best(table, size, ratio->below);
    char text[CELL];

    if (ratio->percent)
        (void)snprintf(text, sizeof(text), "%.0f %%", 100 * above / below);
    else
        (void)snprintf(text, sizeof(text), "%.*f", digits(above / below), above / below);
    put(text, markdown);
}

static void show_ratios(const struct allreduce_table *table, const struct ratio *ratios,
                        size_t count, bool markdown)
{
    const char *heads[ALLREDUCE_ENGINES];
    const struct ratio *shown[ALLREDUCE_ENGINES];
    size_t kept = 0;

    for (size_t k = 0; k < count; k++) {
        if (best(table, 0, ratios[k].above) <= 0 || best(table, 0, ratios[k].below) <= 0)
            continue;
        heads[kept] = ratios[k].title;
        shown[kept++] = &ratios[k];
    }
    if (!kept)
        return;
    printf("\nHow many times as long as ours the others take; the share of memcpy's speed\n%s",
           markdown ? "\n" : "");
    put_heads(heads, kept, markdown);
    for (size_t i = 0; i < table->size_count; i++) {
        put_size(table->bytes[i], markdown);
        for (size_t k = 0; k < kept; k++)
            put_ratio(table, i, shown[k], markdown);
        printf("\n");
    }
}

static const struct ratio within[] = {
    {"MPI",             { ALLREDUCE_VADER, ALLREDUCE_TCP, END },  { ALLREDUCE_OURS, END },  false},
    { "Gloo",           { ALLREDUCE_RING, ALLREDUCE_BCUBE, END }, { ALLREDUCE_OURS, END },  false},
    { "hvd_alloc: MPI", { ALLREDUCE_VADER, ALLREDUCE_TCP, END },  { ALLREDUCE_ALLOC, END }, false},
    { "of memcpy, one", { ALLREDUCE_COPY, END },                  { ALLREDUCE_OURS, END },  true },
    { "of memcpy, all", { ALLREDUCE_COPIES, END },                { ALLREDUCE_OURS, END },  true },
};

static const struct ratio between[] = {
    {"Gloo",               { ALLREDUCE_RING, ALLREDUCE_BCUBE, END }, { ALLREDUCE_HOSTS, END }, false},
    { "MPI tcp",           { ALLREDUCE_TCP, END },                   { ALLREDUCE_HOSTS, END }, false},
    { "over Gloo: Gloo",   { ALLREDUCE_RING, ALLREDUCE_BCUBE, END }, { ALLREDUCE_GLOO, END },  false},
    { "over TCP: Gloo",    { ALLREDUCE_RING, ALLREDUCE_BCUBE, END }, { ALLREDUCE_OWN, END },   false},
    { "over TCP: MPI tcp", { ALLREDUCE_TCP, END },                   { ALLREDUCE_OWN, END },   false},
};

void allreduce_table_show(struct allreduce_table *table, bool markdown)
{
    const char *mark = markdown ? "### " : "";

    sort_all(table);
    printf("\n%s%u ranks on one host: microseconds\n\n", mark, table->ranks);
    show_times(table, one_host, markdown);
    show_ratios(table, within, ARRAY_SIZE(within), markdown);
    printf("\n%s%u ranks on two hosts (both this machine): microseconds\n\n", mark, table->ranks);
    show_times(table, two_hosts, markdown);
    show_ratios(table, between, ARRAY_SIZE(between), markdown);
    (void)fflush(stdout);
}
