/*
 * report.h: what a campaign or a replay is to be seen by: lines on a terminal, JSON for programs,
 * and a page with a plot, in one file without anything from elsewhere.
 */
#ifndef TESTS_CHAOS_REPORT_H
#define TESTS_CHAOS_REPORT_H

#include "tests/chaos/record.h"
#include "tests/chaos/replay.h"

struct buf;

/* One line for a fault, when it is over: number, name, deed, what it cost. */
void report_line(const struct record *record, size_t index, struct buf *out);

/* The end: for each kind of fault how many, pauses (median, p90, most), until whole, steps done
 * again, rounds; violations by name; what was skipped and why. */
int report_summary(const struct record *record, const struct steps *steps,
                   struct buf *out) MUST_CHECK;

int report_json(const struct record *record, const struct steps *steps, const char *path,
                struct hvd_err *err) MUST_CHECK;

/* World size over time with the faults on it, pauses, lost time by cause. */
int report_page(const struct record *record, const struct steps *steps, const char *path,
                struct hvd_err *err) MUST_CHECK;

/* The same of a replay, beside what was there and the model's limit. */
void report_replay(const struct replay *replay, const struct steps *steps, struct buf *out);
int report_replay_json(const struct replay *replay, const struct steps *steps, const char *path,
                       struct hvd_err *err) MUST_CHECK;
int report_replay_page(const struct replay *replay, const struct steps *steps, const char *path,
                       struct hvd_err *err) MUST_CHECK;

#endif
