/*
 * figures.h: what has been measured, in memory that all processes of the benchmark share, so that a
 * figure is there also when who has made it is killed.
 */
#ifndef BENCH_GPU_FIGURES_H
#define BENCH_GPU_FIGURES_H

#include "base/base.h"

#include <stdatomic.h>
#include <stdio.h>

#define FIGURES_MAX      256
#define FIGURE_VALUES    256
#define FIGURE_NAME_MAX  72
#define FIGURE_SAID_MAX  200
#define FIGURE_QUESTIONS 16
#define FIGURE_UNIT_MAX  8

struct figure {
    char question[24];
    char name[FIGURE_NAME_MAX];
    char unit[FIGURE_UNIT_MAX];
    uint32_t ranks;
    uint32_t count;
    double values[FIGURE_VALUES]; /* those that are too many are left out */
    char said[FIGURE_SAID_MAX];   /* an answer in words, instead or besides */
};

struct figures {
    atomic_flag lock;
    uint32_t count;
    struct figure all[FIGURES_MAX];
};

/* One more value. Unit: "ms", "us", "GB/s", "%" or what it is. ranks 0: it has nothing to do with
 * them. */
void figure_add(struct figures *figures, const char *question, const char *name, uint32_t ranks,
                const char *unit, double value);

/* A later figure of the same name replaces the earlier one. */
void figure_say(struct figures *figures, const char *question, const char *name, uint32_t ranks,
                const char *format, ...) PRINTF_LIKE(5, 6);

/* Of one question: median, 10th and 90th percentile. */
void figures_table(struct figures *figures, const char *question, FILE *out);

/* All, as the elements of an array. */
void figures_json(struct figures *figures, FILE *out);

#endif
