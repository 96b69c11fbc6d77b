/*
 * summary.h: what became of a job, in a few lines for its end; and the goodput (the part of the
 * workers' time that was training) in words, which status also shows.
 */
#ifndef DRIVER_CONTROL_SUMMARY_H
#define DRIVER_CONTROL_SUMMARY_H

#include "driver/control/json.h"
#include "driver/control/tables.h"

/* Appends the lines for the end of a job, each with its newline. After a failure `out` may have
 * some of them. */
int summary_write(const struct core_view *view, const struct table_facts *facts,
                  struct buf *out) MUST_CHECK;

/* Returns the part of the time of all workers that was training, 0 to 1. */
double goodput_ratio(const struct view_goodput *goodput);

/* Writes goodput_ratio as "93.1%", rounded down: 100.0% means all of the time. Returns `text`. */
#define GOODPUT_PART_MAX 16
const char *goodput_part(const struct view_goodput *goodput, char text[GOODPUT_PART_MAX]);

/* goodput_causes writes the time of workers that was not training, by cause, and a newline.
 * goodput_line writes the line of the verb status, if any time was counted. goodput_json writes all
 * sums, and the failures by host, as fields of the open object. */
int goodput_causes(const struct view_goodput *goodput, struct buf *out) MUST_CHECK;
int goodput_line(const struct view_goodput *goodput, struct buf *out) MUST_CHECK;
void goodput_json(const struct view_goodput *goodput, struct json *json);

/* Returns a use of time in words: "waiting for workers". */
const char *goodput_words(enum goodput_use use);

#endif
