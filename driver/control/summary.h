/*
 * summary.h: what became of a job, in a few lines for its end; and the words for goodput, which
 * status has too.
 */
#ifndef DRIVER_CONTROL_SUMMARY_H
#define DRIVER_CONTROL_SUMMARY_H

#include "driver/control/json.h"
#include "driver/control/tables.h"

/* Appends lines, each with its newline. After a failure `out` may have some of them. */
int summary_write(const struct core_view *view, const struct table_facts *facts,
                  struct buf *out) MUST_CHECK;

/* The part of the time of all workers that was training, 0 to 1. */
double goodput_ratio(const struct view_goodput *goodput);

/* Writes this part, "93.1%". Rounds down: 100% means all of it. */
#define GOODPUT_PART_MAX 16
const char *goodput_part(const struct view_goodput *goodput, char text[GOODPUT_PART_MAX]);

/* Write the time of workers that was not training, by cause, and a newline; the line of status, if
 * any time was counted; and all sums, with the
 * failures by host, as fields of the object that is open. */
int goodput_causes(const struct view_goodput *goodput, struct buf *out) MUST_CHECK;
int goodput_line(const struct view_goodput *goodput, struct buf *out) MUST_CHECK;
void goodput_json(const struct view_goodput *goodput, struct json *json);

/* The use in words: "waiting for workers". */
const char *goodput_words(enum goodput_use use);

#endif
