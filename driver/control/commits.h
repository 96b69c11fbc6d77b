/*
 * commits.h: how far the members of a job are, in words and in JSON: the newest commit, how many
 * are made in a second, and which workers are silent or behind. All of it is what heartbeats say.
 */
#ifndef DRIVER_CONTROL_COMMITS_H
#define DRIVER_CONTROL_COMMITS_H

#include "base/time.h"
#include "driver/control/json.h"
#include "driver/control/tables.h"

/* Returns the commits in a million seconds of the last 10 to 20 s; TIME_NEVER: not known, as of
 * workers whose pulses say no commit. */
int64_t commits_rate(const struct core_view *view);

/* Writes a commit as "3.1": the number of the round in which it was made, and its index among the
 * commits of that round. */
#define COMMITS_NUMBER_MAX 48
const char *commits_number(uint64_t commit, char text[COMMITS_NUMBER_MAX]);

/* Writes "newest 3.7, 0.4s ago; 2.5 a second"; "" if no commit is known. */
#define COMMITS_TEXT_MAX 128
const char *commits_text(const struct core_view *view, const struct table_facts *facts,
                         char text[COMMITS_TEXT_MAX]);

/* Writes which workers are silent, or, of those that are heard, which are behind: a few names, and
 * how many more there are. "": none is. */
#define COMMITS_NAMES_MAX 1536
const char *commits_names(const struct core_view *view, const struct table_facts *facts,
                          bool silent, char text[COMMITS_NAMES_MAX]);

/* Writes what is known of a worker as cells of a table; "-": nothing is. */
struct commits_cells {
    char heard[TIME_TEXT_MAX], commit[COMMITS_NUMBER_MAX], age[TIME_TEXT_MAX];
};
void commits_cells(const struct view_worker *worker, const struct table_facts *facts,
                   struct commits_cells *ret_cells);

/* Write the lines of status; fields of the object of a worker that is open; and fields of the
 * object of status, with all workers that are silent or behind. An orphan has no lines, and null.
 */
int commits_lines(const struct core_view *view, const struct table_facts *facts,
                  struct buf *out) MUST_CHECK;
void commits_worker_json(const struct view_worker *worker, const struct table_facts *facts,
                         struct json *json);
void commits_json(const struct core_view *view, const struct table_facts *facts, struct json *json);

#endif
