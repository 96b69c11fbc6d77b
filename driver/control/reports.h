/*
 * reports.h: shows what the program of a job has reported (hvd_report): values of floating point,
 * with their age and the newest commit of the time.
 */
#ifndef DRIVER_CONTROL_REPORTS_H
#define DRIVER_CONTROL_REPORTS_H

#include "base/time.h"
#include "driver/control/json.h"
#include "driver/control/tables.h"

/* Writes the shortest decimal number that reads back as the value; "NaN", "Infinity", "-Infinity".
 * Returns text. */
#define REPORTS_NUMBER_MAX 40
const char *reports_number(double value, char text[REPORTS_NUMBER_MAX]);

/* The same with six digits, for operators. */
const char *reports_brief(double value, char text[REPORTS_NUMBER_MAX]);

/* A number; a text, of those above, for a value that JSON has no number for. */
void reports_number_json(struct json *json, const char *name, double value);

/* Write the lines of status; the field "reported" of status, a list with the newest values; and a
 * field of a message to viewers, a list with the values of each name over time. An orphan has none.
 */
int reports_lines(const struct core_view *view, const struct table_facts *facts,
                  struct buf *out) MUST_CHECK;
void reports_json(const struct core_view *view, const struct table_facts *facts, struct json *json);
void reports_series_json(const struct core_view *view, const struct table_facts *facts,
                         struct json *json);

#endif
