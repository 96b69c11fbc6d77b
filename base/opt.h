/*
 * opt.h: one table of options, from which everything about them follows: the command line, the
 * config file, the HVD_* variables, and (opt_show.h) what is shown of them.
 *
 *     static const struct opt table[] = {
 *         OPT(struct options, np, .name = "np", .alias = "num-proc", .arg = "N", .min = 1,
 *             .max = LIMIT_WORKERS, .group = "job", .help = "workers to start with"),
 *         OPT_REFUSE(.name = "mpi", .help = "there is no MPI here; leave it out"),
 *         OPT_ACCEPT(.name = "tune", .group = "job", .help = "tuning happens by itself"),
 *     };
 *
 *     rc = opt_init(&set, table, ARRAY_SIZE(table), &options);
 *     then opt_argv, opt_config, opt_env, opt_take, in any order; options holds the outcome
 *     opt_release(&set);
 *
 * An option is --name on the command line, name in the config file and HVD_NAME (upper case, "_"
 * for "-") in the environment; so is its alias. The highest source that gives a value wins,
 *
 *     default < another program's variables < config file < environment < command line
 *
 * in any order of reading: the command line comes first, to say which config file to read.
 * Of each source either everything is taken or, when something in it is wrong, nothing.
 */
#ifndef BASE_OPT_H
#define BASE_OPT_H

#include "base/err.h"
#include "base/opt_table.h"

/* The source of a value, the lowest priority first. */
enum opt_source {
    OPT_UNSET,
    OPT_DEFAULT,
    OPT_FOREIGN, /* a variable that was set for another program */
    OPT_FILE,
    OPT_ENVIRONMENT,
    OPT_COMMAND_LINE
};

struct opt_set {
    const struct opt *table;
    size_t count;
    void *config;
    struct opt_origin *origins; /* one entry per row of the table */
};

/* Fills config with the defaults. table and config are borrowed until opt_release, which frees the
 * texts in config. Panics when the table contradicts itself. 0 or HVD_E_NOMEM; after HVD_E_NOMEM
 * config is unchanged, and the set may be released. */
int opt_init(struct opt_set *set, const struct opt *table, size_t count, void *config) MUST_CHECK;
void opt_release(struct opt_set *set);

/* Reads the command line up to the first word that is no option, or past "--". *ret_rest is the
 * index of the next word. -name counts as --name, and so does an unambiguous beginning of the name.
 * Uses getopt: only one thread at a time may call it. */
int opt_argv(struct opt_set *set, int argc, char *const *argv, int *ret_rest,
             struct hvd_err *err) MUST_CHECK;

/* Reads lines of "name = value". "#" at the start of a line or after a blank begins a comment. A
 * value may stand in double quotes, with \" \\ \n \t and \xNN. path is only for error texts. */
int opt_config(struct opt_set *set, const char *path, const char *text, size_t length,
               struct hvd_err *err) MUST_CHECK;

/* Looks for the table's variables in envp, which ends in NULL. A list is split at line breaks; a
 * text without line breaks is split at commas. */
int opt_env(struct opt_set *set, char *const *envp, struct hvd_err *err) MUST_CHECK;

/* A value that the caller has read from a source of its own. */
struct opt_given {
    const char *option; /* the name of the option, as its row has it */
    const char *value;
    const char *where; /* the origin, "job.yaml:3" or "HOROVOD_TIMELINE"; errors begin with it */
    /* the option's name in that source, for errors; NULL: `where` names the option already */
    const char *name;
};

/* Takes values as those of one source: all of them or none. All texts are copied. */
int opt_take(struct opt_set *set, enum opt_source source, const struct opt_given *given,
             size_t count, struct hvd_err *err) MUST_CHECK;

/* Returns the row of that name or alias; NULL: there is no such option. */
const struct opt *opt_find(const struct opt_set *set, const char *name);

/* true: the option is refused with this value. A refused option may still be given with a value
 * that asks only for what the program does anyway (OPT_ON_HOLDS, OPT_OFF_HOLDS). */
bool opt_refuses(const struct opt *row, const char *value);

/* Returns the source that has set the option. name must be in the table. */
enum opt_source opt_source(const struct opt_set *set, const char *name);
/* Returns what to call the option in an error: the place that has set it, "HVD_NP" or "job.conf:3",
 * or else `option`, which is "--np". Borrowed until the option is set again. */
const char *opt_place(const struct opt_set *set, const char *option);
/* Returns where the value of the option comes from, for a sentence: "the command line", "HVD_NP",
 * "job.conf:3", "the default" or "no source". Borrowed like opt_place. */
const char *opt_origin(const struct opt_set *set, const char *name);

/* Makes the option as if it had never been given: removes its value, and what is known of the
 * sources of the value. Only for an option without a default. */
void opt_forget(struct opt_set *set, const char *name);

#endif
