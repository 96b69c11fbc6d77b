/*
 * reports.c: shows what the program has reported. Called by tables.c, metrics.c, top.c and live.c
 * with a view; of a job without a driver the values are those of its journal. Invariant: a name has
 * no character that needs quoting (proto/report.h).
 */
#include "driver/control/reports.h"

#include "driver/control/commits.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define DIGITS_LEAST 6  /* the number of digits that is tried first */
#define DIGITS_MOST  17 /* enough digits for each double to be read back */

/* Returns the time from at_us until the view. */
static int64_t reports_age(const struct table_facts *facts, int64_t at_us)
{
    return facts->now_us > at_us ? facts->now_us - at_us : 0;
}

/* Writes a value with six digits, for operators. */
const char *reports_brief(double value, char text[REPORTS_NUMBER_MAX])
{
    if (!isfinite(value))
        return reports_number(value, text);
    snprintf(text, REPORTS_NUMBER_MAX, "%.*g", DIGITS_LEAST, value);
    return text;
}

/* Writes the shortest decimal number that reads back as the same double: more and more digits are
 * tried. */
const char *reports_number(double value, char text[REPORTS_NUMBER_MAX])
{
    if (isnan(value))
        snprintf(text, REPORTS_NUMBER_MAX, "NaN");
    else if (isinf(value))
        snprintf(text, REPORTS_NUMBER_MAX, value < 0 ? "-Infinity" : "Infinity");
    else
        for (int digits = DIGITS_LEAST; digits <= DIGITS_MOST; digits++) {
            snprintf(text, REPORTS_NUMBER_MAX, "%.*g", digits, value);
            if (strtod(text, NULL) == value)
                break;
        }
    return text;
}

/* Writes a value as a number; NaN and infinite values, which JSON does not have, as a text. */
void reports_number_json(struct json *json, const char *name, double value)
{
    char text[REPORTS_NUMBER_MAX];

    reports_number(value, text);
    if (isfinite(value))
        json_raw(json, name, text);
    else
        json_text(json, name, text);
}

/* Writes a commit as a text, or null if there was none. */
static void reports_commit_json(struct json *json, const char *name, uint64_t commit)
{
    char number[COMMITS_NUMBER_MAX];

    if (commit)
        json_text(json, name, commits_number(commit, number));
    else
        json_null(json, name);
}

/* Writes the lines of status: one for each name, with its newest value. Only the first has the word
 * "reported". */
int reports_lines(const struct core_view *view, const struct table_facts *facts, struct buf *out)
{
    const char *label = "reported";
    int rc = 0;

    for (size_t i = 0; i < view->reports.count && !rc; i++) {
        const struct view_report *report = &view->reports.items[i];
        char number[COMMITS_NUMBER_MAX], ago[TIME_TEXT_MAX], value[REPORTS_NUMBER_MAX];

        rc = buf_printf(out, "%-10s %s %s, %s ago at commit %s\n", label, report->name,
                        reports_brief(report->value, value),
                        time_brief(reports_age(facts, report->at_us), ago),
                        report->commit ? commits_number(report->commit, number) : "none");
        label = "";
    }
    return rc;
}

/* Writes the list "reported" of status: for each name the newest value, its round, its commit and
 * its age. */
void reports_json(const struct core_view *view, const struct table_facts *facts, struct json *json)
{
    json_open(json, "reported", '[');
    for (size_t i = 0; i < view->reports.count; i++) {
        const struct view_report *report = &view->reports.items[i];

        json_open(json, NULL, '{');
        json_text(json, "name", report->name);
        reports_number_json(json, "value", report->value);
        json_number(json, "round", report->round);
        reports_commit_json(json, "commit", report->commit);
        json_seconds(json, "age_s", reports_age(facts, report->at_us));
        json_close(json, '}');
    }
    json_close(json, ']');
}

/* Writes the list "series" of a message to viewers: for each name the points [age, value, commit]
 * over time. */
void reports_series_json(const struct core_view *view, const struct table_facts *facts,
                         struct json *json)
{
    json_open(json, "series", '[');
    for (size_t i = 0; i < view->reports.count; i++) {
        const struct view_report *report = &view->reports.items[i];

        json_open(json, NULL, '{');
        json_text(json, "name", report->name);
        json_open(json, "points", '[');
        for (size_t k = 0; k < report->point_count; k++) {
            json_open(json, NULL, '[');
            json_seconds(json, NULL, reports_age(facts, report->points[k].at_us));
            reports_number_json(json, NULL, report->points[k].value);
            reports_commit_json(json, NULL, report->points[k].commit);
            json_close(json, ']');
        }
        json_close(json, ']');
        json_close(json, '}');
    }
    json_close(json, ']');
}
