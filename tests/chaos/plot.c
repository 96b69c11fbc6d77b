#include "tests/chaos/plot.h"

#include "base/mem.h"
#include "base/time.h"
#include "base/vec.h"

#include <math.h>

#define LEVELS_MAX  (16 * 1024 * 1024)
#define LINE_MOST   400 /* changes that a line of this width can show */
#define COLUMNS     490 /* of a band */
#define TICKS       9   /* at most, of time */
#define FIRST_US    INT64_C(1000)
#define DECADES_MAX 9

/* ---- levels ---------------------------------------------------------------------------------- */

int levels_add(struct levels *levels, int64_t at_us, uint32_t value)
{
    int rc = vec_reserve(&levels->items, &levels->capacity, levels->count, 1, LEVELS_MAX,
                         sizeof(*levels->items));

    if (!rc)
        levels->items[levels->count++] = (struct level){ .at_us = at_us, .value = value };
    return rc;
}

int levels_of_steps(struct levels *levels, const struct steps *steps)
{
    int rc = 0;

    for (size_t i = 0; !rc && i < steps->count; i++) {
        const struct step *step = &steps->list[i];
        const struct level *last = levels->count ? &levels->items[levels->count - 1] : NULL;

        if (!last || (step->size != last->value && step->at_us >= last->at_us))
            rc = levels_add(levels, step->at_us, step->size);
    }
    return rc;
}

uint32_t levels_most(const struct levels *levels)
{
    uint32_t most = 0;

    for (size_t i = 0; i < levels->count; i++)
        if (levels->items[i].value > most)
            most = levels->items[i].value;
    return most;
}

void levels_release(struct levels *levels)
{
    mem_free(levels->items);
    *levels = (struct levels){ .items = NULL };
}

/* ---- where things are ------------------------------------------------------------------------ */

static double span_us(const struct plot *plot)
{
    return plot->until_us > plot->from_us ? (double)(plot->until_us - plot->from_us) : 1;
}

double plot_x(const struct plot *plot, int64_t at_us)
{
    double share = (double)(at_us - plot->from_us) / span_us(plot);

    return PLOT_LEFT + (PLOT_RIGHT - PLOT_LEFT) * fmin(fmax(share, 0), 1);
}

double plot_count_y(struct plot_area area, uint32_t most, double value)
{
    return area.bottom - (area.bottom - area.top) * value / (most ? most : 1);
}

unsigned plot_decades(int64_t most_us)
{
    unsigned decades = 3;

    for (int64_t us = 1000 * FIRST_US; us < most_us && decades < DECADES_MAX; us *= 10)
        decades++;
    return decades;
}

double plot_log(int64_t us, unsigned decades)
{
    return us <= FIRST_US ? 0 : fmin(log10((double)us / (double)FIRST_US) / decades, 1);
}

const char *plot_decade(unsigned decade)
{
    static const char *const texts[DECADES_MAX + 1] = { "1 ms",   "10 ms", "100 ms", "1 s",
                                                        "10 s",   "100 s", "1000 s", "10^4 s",
                                                        "10^5 s", "10^6 s" };

    return texts[decade <= DECADES_MAX ? decade : DECADES_MAX];
}

unsigned plot_hue(size_t kind)
{
    return (unsigned)((215 + kind * 137) % 360);
}

/* ---- axes ------------------------------------------------------------------------------------ */

void plot_open(const struct plot *plot, double height, const char *what)
{
    page_put(plot->page,
             "<div class=\"wide\"><svg class=\"plot\" viewBox=\"0 0 %d %.0f\" role=\"img\" "
             "aria-label=\"%s\">\n",
             PLOT_WIDTH, height, what);
}

void plot_close(const struct plot *plot)
{
    page_put(plot->page, "</svg></div>\n");
}

/* A distance of ticks that people count in. */
static int64_t tick_us(int64_t span)
{
    static const int64_t nice[] = { 1,   2,   5,    10,   15,   30,    60,    120,  300,
                                    600, 900, 1800, 3600, 7200, 14400, 28800, 86400 };

    for (size_t i = 0; i < ARRAY_SIZE(nice); i++)
        if (span / (nice[i] * TIME_S) <= TICKS)
            return nice[i] * TIME_S;
    return span / TICKS;
}

void plot_time_axis(const struct plot *plot, struct plot_area area)
{
    int64_t span = plot->until_us - plot->from_us;
    int64_t every = tick_us(span);
    char text[TIME_TEXT_MAX];

    for (int64_t at = 0; at <= span; at += every) {
        double x = plot_x(plot, plot->from_us + at);

        page_put(plot->page,
                 "<path class=\"grid\" d=\"M%.1f %.1fV%.1f\"/>"
                 "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\">%s</text>\n",
                 x, area.top, area.bottom, x, area.bottom + 16, at ? time_format(at, text) : "0");
    }
}

static uint32_t count_tick(uint32_t most)
{
    return most > 40 ? 10 : most > 16 ? 5 : most > 8 ? 2 : 1;
}

uint32_t plot_count_top(uint32_t most)
{
    uint32_t every = count_tick(most);

    return (most + every - 1) / every * every;
}

void plot_count_axis(const struct plot *plot, struct plot_area area, uint32_t most,
                     const char *heading)
{
    uint32_t every = count_tick(most);

    for (uint32_t value = 0; value <= most; value += every) {
        double y = plot_count_y(area, most, value);

        page_put(plot->page,
                 "<path class=\"grid\" d=\"M%d %.1fH%d\"/>"
                 "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%u</text>\n",
                 PLOT_LEFT, y, PLOT_RIGHT, PLOT_LEFT - 8, y + 4, value);
    }
    page_put(plot->page, "<text class=\"name\" x=\"0\" y=\"%.1f\">%s</text>\n", area.top + 4,
             heading);
}

void plot_log_axis(const struct plot *plot, struct plot_area area, unsigned decades,
                   const char *heading)
{
    for (unsigned i = 0; i <= decades; i++) {
        double y = area.bottom - (area.bottom - area.top) * i / decades;

        page_put(plot->page,
                 "<path class=\"grid\" d=\"M%d %.1fH%d\"/>"
                 "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%s</text>\n",
                 PLOT_LEFT, y, PLOT_RIGHT, PLOT_LEFT - 8, y + 4, plot_decade(i));
    }
    page_put(plot->page, "<text class=\"name\" x=\"0\" y=\"%.1f\">%s</text>\n", area.top + 4,
             heading);
}

/* ---- levels, shown --------------------------------------------------------------------------- */

static void step_line(const struct plot *plot, struct plot_area area, uint32_t most,
                      const struct levels *levels, const char *class)
{
    page_put(plot->page, "<path class=\"%s\" d=\"", class);
    for (size_t i = 0; i < levels->count; i++) {
        double x = plot_x(plot, levels->items[i].at_us);
        double y = plot_count_y(area, most, levels->items[i].value);

        if (i == 0)
            page_put(plot->page, "M%.1f %.1f", x, y);
        else
            page_put(plot->page, "H%.1fV%.1f", x, y);
    }
    page_put(plot->page, "H%d\"/>\n", PLOT_RIGHT);
}

struct column {
    uint32_t least, most;
    double sum, weight;
};

static void note(struct column *column, uint32_t value, double weight)
{
    if (column->weight <= 0 || value < column->least)
        column->least = value;
    if (column->weight <= 0 || value > column->most)
        column->most = value;
    column->sum += value * weight;
    column->weight += weight;
}

/* Each level into the columns that it lies in. */
static void fill_columns(const struct plot *plot, const struct levels *levels,
                         struct column *columns)
{
    double width = span_us(plot) / COLUMNS;

    for (size_t i = 0; i < levels->count; i++) {
        int64_t until = i + 1 < levels->count ? levels->items[i + 1].at_us : plot->until_us;
        double from_us = (double)(levels->items[i].at_us - plot->from_us);
        double until_us = (double)(until - plot->from_us);

        for (size_t at = from_us > 0 ? (size_t)(from_us / width) : 0;
             at < COLUMNS && (double)at * width < until_us; at++) {
            double begin = fmax(from_us, (double)at * width);
            double end = fmin(until_us, (double)(at + 1) * width);

            if (end > begin)
                note(&columns[at], levels->items[i].value, end - begin);
        }
    }
}

static double column_x(size_t index)
{
    return PLOT_LEFT + (double)(PLOT_RIGHT - PLOT_LEFT) * (double)index / COLUMNS;
}

static void band(const struct plot *plot, struct plot_area area, uint32_t most,
                 const struct column *columns)
{
    page_put(plot->page, "<path class=\"band\" d=\"M%d %.1f", PLOT_LEFT, area.bottom);
    for (size_t i = 0; i < COLUMNS; i++)
        page_put(plot->page, "V%.1fH%.1f", plot_count_y(area, most, columns[i].most),
                 column_x(i + 1));
    for (size_t i = COLUMNS; i-- > 0;)
        page_put(plot->page, "V%.1fH%.1f", plot_count_y(area, most, columns[i].least), column_x(i));
    page_put(plot->page, "Z\"/>\n<path class=\"size\" d=\"");
    for (size_t i = 0; i < COLUMNS; i++)
        page_put(plot->page, "%s%.1f %.1f", i ? "L" : "M", column_x(i) + 1,
                 plot_count_y(area, most,
                              columns[i].weight > 0 ? columns[i].sum / columns[i].weight : 0));
    page_put(plot->page, "\"/>\n");
}

int plot_levels(const struct plot *plot, struct plot_area area, uint32_t most,
                const struct levels *levels, const char *class, bool may_band)
{
    struct column *columns;

    if (!may_band || levels->count <= LINE_MOST) {
        if (levels->count > 0)
            step_line(plot, area, most, levels, class);
        return 0;
    }
    columns = mem_zalloc_array(COLUMNS, sizeof(*columns));
    if (!columns)
        return HVD_E_NOMEM;
    fill_columns(plot, levels, columns);
    band(plot, area, most, columns);
    mem_free(columns);
    return 0;
}
