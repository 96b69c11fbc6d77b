#include "bench/gpu/figures.h"

#include <sched.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

static void copy_text(char *to, size_t room, const char *from)
{
    snprintf(to, room, "%s", from);
}

/* Held for some instructions; no process is killed while it measures. */
static void enter(struct figures *figures)
{
    while (atomic_flag_test_and_set(&figures->lock))
        sched_yield();
}

static void leave(struct figures *figures)
{
    atomic_flag_clear(&figures->lock);
}

/* That one, or a new one; NULL: there are too many. */
static struct figure *find(struct figures *figures, const char *question, const char *name,
                           uint32_t ranks)
{
    struct figure *figure;

    for (uint32_t i = 0; i < figures->count; i++) {
        figure = &figures->all[i];
        if (figure->ranks == ranks && !strcmp(figure->question, question) &&
            !strcmp(figure->name, name))
            return figure;
    }
    if (figures->count == FIGURES_MAX)
        return NULL;
    figure = &figures->all[figures->count++];
    copy_text(figure->question, sizeof(figure->question), question);
    copy_text(figure->name, sizeof(figure->name), name);
    figure->ranks = ranks;
    return figure;
}

void figure_add(struct figures *figures, const char *question, const char *name, uint32_t ranks,
                const char *unit, double value)
{
    struct figure *figure;

    enter(figures);
    figure = find(figures, question, name, ranks);
    if (figure && figure->count < FIGURE_VALUES) {
        copy_text(figure->unit, sizeof(figure->unit), unit);
        figure->values[figure->count++] = value;
    }
    leave(figures);
}

void figure_say(struct figures *figures, const char *question, const char *name, uint32_t ranks,
                const char *format, ...)
{
    char said[FIGURE_SAID_MAX];
    struct figure *figure;
    va_list args;

    va_start(args, format);
    vsnprintf(said, sizeof(said), format, args);
    va_end(args);
    enter(figures);
    figure = find(figures, question, name, ranks);
    if (figure)
        copy_text(figure->said, sizeof(figure->said), said);
    leave(figures);
}

/* ---- shown ----------------------------------------------------------------------------------- */

static int by_size(const void *left, const void *right)
{
    double difference = *(const double *)left - *(const double *)right;

    return difference < 0 ? -1 : difference > 0;
}

/* The values are sorted. */
static double percentile(const struct figure *figure, size_t percent)
{
    return figure->values[(figure->count - 1) * percent / 100];
}

static void table_line(struct figure *figure, FILE *out)
{
    char ranks[16] = "";

    if (figure->ranks)
        snprintf(ranks, sizeof(ranks), "%u", figure->ranks);
    fprintf(out, "  %-58s %5s", figure->name, ranks);
    if (figure->count) {
        qsort(figure->values, figure->count, sizeof(figure->values[0]), by_size);
        fprintf(out, " %10.3f %-5s %10.3f %10.3f %5u", percentile(figure, 50), figure->unit,
                percentile(figure, 10), percentile(figure, 90), figure->count);
    }
    if (figure->said[0])
        fprintf(out, "%s%s", figure->count ? "  " : " ", figure->said);
    fputc('\n', out);
}

void figures_table(struct figures *figures, const char *question, FILE *out)
{
    bool first = true;

    for (uint32_t i = 0; i < figures->count; i++) {
        if (strcmp(figures->all[i].question, question) != 0)
            continue;
        if (first)
            fprintf(out, "  %-58s %5s %10s %-5s %10s %10s %5s\n", "", "ranks", "median", "", "10%",
                    "90%", "of");
        first = false;
        table_line(&figures->all[i], out);
    }
}

static void json_text(const char *text, FILE *out)
{
    fputc('"', out);
    for (; *text; text++) {
        if (*text == '"' || *text == '\\')
            fputc('\\', out);
        if ((unsigned char)*text >= ' ')
            fputc(*text, out);
    }
    fputc('"', out);
}

void figures_json(struct figures *figures, FILE *out)
{
    for (uint32_t i = 0; i < figures->count; i++) {
        struct figure *figure = &figures->all[i];

        fprintf(out, "%s    {\"question\": ", i ? ",\n" : "");
        json_text(figure->question, out);
        fputs(", \"name\": ", out);
        json_text(figure->name, out);
        fprintf(out, ", \"ranks\": %u, \"count\": %u", figure->ranks, figure->count);
        if (figure->count) {
            qsort(figure->values, figure->count, sizeof(figure->values[0]), by_size);
            fprintf(out, ", \"unit\": \"%s\", \"median\": %.6g, \"low\": %.6g, \"high\": %.6g",
                    figure->unit, percentile(figure, 50), percentile(figure, 10),
                    percentile(figure, 90));
        }
        if (figure->said[0]) {
            fputs(", \"said\": ", out);
            json_text(figure->said, out);
        }
        fputc('}', out);
    }
    fputc('\n', out);
}
