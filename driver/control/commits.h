/*
 * commits.h: how far the members of a job are, as text and as JSON: the newest commit, how many
 * commits are made in a second, and which workers are silent or behind. All of it comes from the
 * workers' heartbeats.
 */
#ifndef DRIVER_CONTROL_COMMITS_H
#define DRIVER_CONTROL_COMMITS_H

#include "base/time.h"
#include "driver/control/json.h"
#include "driver/control/tables.h"

/* Returns the rate of commits, measured over the last 10 to 20 s, as the number in a million
 * seconds. TIME_NEVER: not known, for example because the workers' pulses name no commit. */
int64_t commits_rate(const struct core_view *view);

/* Writes a commit as "3.1": the number of the round in which it was made, and its index among the
 * commits of that round. Returns `text`. */
#define COMMITS_NUMBER_MAX 48
const char *commits_number(uint64_t commit, char text[COMMITS_NUMBER_MAX]);

/* Writes "newest 3.7, 0.4s ago; 2.5 a second"; "" if no commit is known or the job has no driver.
 * Returns `text`. */
#define COMMITS_TEXT_MAX 128
const char *commits_text(const struct core_view *view, const struct table_facts *facts,
                         char text[COMMITS_TEXT_MAX]);

/* Writes the names of a few workers, and how many more there are. `silent` is true: the workers
 * that are silent (no heartbeat was heard for too long); false: those that are heard, but whose
 * newest commit is behind. "": there is none. Returns `text`. */
#define COMMITS_NAMES_MAX 1536
const char *commits_names(const struct core_view *view, const struct table_facts *facts,
                          bool silent, char text[COMMITS_NAMES_MAX]);

/* Writes what heartbeats say of a worker as three cells of a table: since when it was not heard,
 * its newest commit, and the age of that commit; "-": not known. */
struct commits_cells {
    char heard[TIME_TEXT_MAX], commit[COMMITS_NUMBER_MAX], age[TIME_TEXT_MAX];
};
void commits_cells(const struct view_worker *worker, const struct table_facts *facts,
                   struct commits_cells *ret_cells);

/* commits_lines writes the lines of the verb status. commits_worker_json writes fields into the
 * open object of a worker. commits_json writes fields into the open object of status, with all
 * workers that are silent or behind. For a job without a driver there are no lines, and the fields
 * are null. */
int commits_lines(const struct core_view *view, const struct table_facts *facts,
                  struct buf *out) MUST_CHECK;
void commits_worker_json(const struct view_worker *worker, const struct table_facts *facts,
                         struct json *json);
void commits_json(const struct core_view *view, const struct table_facts *facts, struct json *json);

#endif
