/*
 * plot.h: pictures in a page: time from left to right, as SVG. All of a plot have the same width;
 * numbers are in its own units, which the page stretches.
 */
#ifndef TESTS_CHAOS_PLOT_H
#define TESTS_CHAOS_PLOT_H

#include "tests/chaos/page.h"
#include "tests/chaos/steps.h"

#define PLOT_WIDTH 1120
#define PLOT_LEFT  152 /* what is left of it is for names */
#define PLOT_RIGHT 1108

struct plot {
    struct page *page;
    int64_t from_us, until_us;
};

/* A part of it, from above to below. */
struct plot_area {
    double top, bottom;
};

/* How many there were from then on. */
struct level {
    int64_t at_us;
    uint32_t value;
};

struct levels {
    struct level *items;
    size_t count, capacity;
};

/* The sizes of the rounds, each from its first step on. */
int levels_of_steps(struct levels *levels, const struct steps *steps) MUST_CHECK;
int levels_add(struct levels *levels, int64_t at_us, uint32_t value) MUST_CHECK;
uint32_t levels_most(const struct levels *levels);
void levels_release(struct levels *levels);

void plot_open(const struct plot *plot, double height, const char *what);
void plot_close(const struct plot *plot);
double plot_x(const struct plot *plot, int64_t at_us);

/* Lines down to the bottom, and what time it is there. */
void plot_time_axis(const struct plot *plot, struct plot_area area);

/* Up to where a scale of counts goes. */
uint32_t plot_count_top(uint32_t most);

/* 0 to most, with its heading. */
void plot_count_axis(const struct plot *plot, struct plot_area area, uint32_t most,
                     const char *heading);
double plot_count_y(struct plot_area area, uint32_t most, double value);

/* A step line; where it would change too often to be seen, the mean, in a band from the least to
 * the most, if may_band. */
int plot_levels(const struct plot *plot, struct plot_area area, uint32_t most,
                const struct levels *levels, const char *class, bool may_band) MUST_CHECK;

/* Times from 1 ms, or less, up to so many times the tenfold. */
unsigned plot_decades(int64_t most_us);
double plot_log(int64_t us, unsigned decades); /* 0 to 1 */
void plot_log_axis(const struct plot *plot, struct plot_area area, unsigned decades,
                   const char *heading);
const char *plot_decade(unsigned decade); /* "1 ms", "10 ms" ... */

/* The hue of one of several kinds: neighbours differ the most. */
unsigned plot_hue(size_t kind);

#endif
