/*
 * opt_show.h: what a program shows of its options: --help, --print-config, --list-options.
 *
 * opt_show_help, _config and _names append to out and return 0, HVD_E_NOMEM, or HVD_E_LIMIT past
 * its max; on failure out is as it was. Refused options are never shown.
 */
#ifndef BASE_OPT_SHOW_H
#define BASE_OPT_SHOW_H

#include "base/buf.h"
#include "base/opt.h"

/* "usage: ..." and the description, then the options by group with their bounds and defaults, all
 * of it 80 columns wide. */
int opt_show_help(const struct opt_set *set, const char *usage, const char *about,
                  struct buf *out) MUST_CHECK;

/* A config file that gives the values in force; options that are unset are commented out. Each line
 * ends in a comment that says where its value is from, if wanted. */
int opt_show_config(const struct opt_set *set, bool with_origins, struct buf *out) MUST_CHECK;

/* A line "name TAB group TAB default" for each option, for the check of the docs. */
int opt_show_names(const struct opt_set *set, struct buf *out) MUST_CHECK;

/* Visits the rows in the order in which they are shown: group after group, as their first rows
 * stand in the table, those for tests only last. Ends early with what visit returns unless 0. */
typedef int opt_show_fn(void *arg, const struct opt *row);
int opt_show_each(const struct opt_set *set, opt_show_fn *visit, void *arg);

/* The heading that the row stands under. */
const char *opt_show_group(const struct opt *row);

#endif
