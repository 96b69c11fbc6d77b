/*
 * opt_show.h: the output of --help, --print-config and --list-options.
 *
 * opt_show_help, _config, _notes and _names append to out and return 0, HVD_E_NOMEM, or HVD_E_LIMIT
 * past the maximum of out; on failure out is unchanged. Refused options are never shown.
 */
#ifndef BASE_OPT_SHOW_H
#define BASE_OPT_SHOW_H

#include "base/buf.h"
#include "base/opt.h"

/* Appends "usage: ..." and the description, then the options by group with their bounds and
 * defaults. No line is longer than 80 columns. */
int opt_show_help(const struct opt_set *set, const char *usage, const char *about,
                  struct buf *out) MUST_CHECK;

/* Appends a config file with the values in force. An option that is unset is commented out.
 * with_origins: each line ends in a comment that says where its value came from. */
int opt_show_config(const struct opt_set *set, bool with_origins, struct buf *out) MUST_CHECK;

/* Appends what the user should know about the values that were given, a line each: which of two
 * values of different sources counts ("--np: 4 of the command line counts, not 2 of HVD_NP"), and
 * why an accepted option changes nothing. Values of lists, and of an OPT_SECRET, are left out, as
 * they may be secret. */
int opt_show_notes(const struct opt_set *set, struct buf *out) MUST_CHECK;

/* Appends a line "name TAB group TAB default" for each option; the check of the docs reads these
 * lines. */
int opt_show_names(const struct opt_set *set, struct buf *out) MUST_CHECK;

/* Calls visit for each row in the order of the help: group after group, in the order of the groups'
 * first rows in the table; rows with OPT_TEST_ONLY come last. A result of visit that is not 0 ends
 * the calls and is returned. */
typedef int opt_show_fn(void *arg, const struct opt *row);
int opt_show_each(const struct opt_set *set, opt_show_fn *visit, void *arg);

#endif
