/*
 * report.h: the reports of a campaign or a replay: lines on a terminal, JSON for programs, and a
 * page with plots, in one file that loads nothing.
 */
#ifndef TESTS_CHAOS_REPORT_H
#define TESTS_CHAOS_REPORT_H

#include "tests/chaos/record.h"
#include "tests/chaos/replay.h"

struct buf;

/* Appends one line for a fault that is over: number, name, victims, cost. */
void report_line(const struct record *record, size_t index, struct buf *out);

/* The summary at the end: for each kind of fault the count, the pauses (median, p90, longest), the
 * time until whole, repeated steps, rounds; then violations by name, and the faults that were
 * skipped, with the reason. */
int report_summary(const struct record *record, const struct steps *steps,
                   struct buf *out) MUST_CHECK;

/* The JSON for programs and for page.html, which plots the world size with the faults, the pauses,
 * and the lost time by cause. */
int report_json(const struct record *record, const struct steps *steps, struct buf *out) MUST_CHECK;

/* The summary of a replay, with the available time and the limit of the model. */
void report_replay(const struct replay *replay, const struct steps *steps, struct buf *out);
int report_replay_json(const struct replay *replay, const struct steps *steps,
                       struct buf *out) MUST_CHECK;

/* Writes FOLDER/NAME.json, and FOLDER/NAME.html: page.html with the JSON in it. Both paths, one a
 * line, are appended to said, which may be NULL. */
int report_write(const char *folder, const char *name, const struct buf *json, struct buf *said,
                 struct hvd_err *err) MUST_CHECK;

#endif
