/*
 * reports.h: shows what the program of a job has reported (hvd_report): floating point values, with
 * their age and the newest commit at the time of the report.
 */
#ifndef DRIVER_CONTROL_REPORTS_H
#define DRIVER_CONTROL_REPORTS_H

#include "base/time.h"
#include "driver/control/json.h"
#include "driver/control/tables.h"

/* Writes the shortest decimal number that reads back as the value, or "NaN", "Infinity",
 * "-Infinity". Returns `text`. */
#define REPORTS_NUMBER_MAX 40
const char *reports_number(double value, char text[REPORTS_NUMBER_MAX]);

/* Writes the value with six digits, for operators. Returns `text`. */
const char *reports_brief(double value, char text[REPORTS_NUMBER_MAX]);

/* Writes the value as a number of JSON. NaN and infinite values, for which JSON has no number,
 * become the texts of reports_number. */
void reports_number_json(struct json *json, const char *name, double value);

/* reports_lines writes the lines of the verb status. reports_json writes the field "reported" of
 * status, a list with the newest values. reports_series_json writes the field "series" of a message
 * to viewers, a list with the values of each name over time. */
int reports_lines(const struct core_view *view, const struct table_facts *facts,
                  struct buf *out) MUST_CHECK;
void reports_json(const struct core_view *view, const struct table_facts *facts, struct json *json);
void reports_series_json(const struct core_view *view, const struct table_facts *facts,
                         struct json *json);

#endif
