/*
 * opt.h: one table of options, from which everything about them follows: the command line, the
 * config file, the HVD_* variables, and (opt_show.h) what is shown of them.
 *
 *     static const struct opt table[] = {
 *         OPT(struct options, np, .name = "np", .alias = "num-proc", .arg = "N", .min = 1,
 *             .max = LIMIT_WORKERS, .group = "job", .help = "workers to start with"),
 *         OPT_REFUSE(.name = "mpi", .help = "there is no MPI here; leave it out"),
 *     };
 *
 *     rc = opt_init(&set, table, ARRAY_SIZE(table), &options);
 *     then opt_argv, opt_config, opt_env, in any order; options holds the outcome
 *     opt_release(&set);
 *
 * An option is --name on the command line, name in the config file and HVD_NAME (upper case, "_"
 * for "-") in the environment; so is its alias. The highest source that gives a value wins,
 *
 *     default < config file < environment < command line
 *
 * in whatever order they are read: the command line comes first, to say which config file to read.
 * Of each source either everything is taken or, when something in it is wrong, nothing.
 */
#ifndef BASE_OPT_H
#define BASE_OPT_H

#include "base/err.h"

#define OPT_NAME_MAX 40

/* What a value is, and the type of the field that holds it when it is unset. */
enum opt_kind {
    OPT_FLAG,     /* bool, false: --name, --no-name; true or false */
    OPT_NUMBER,   /* uint64_t, 0 */
    OPT_DURATION, /* int64_t in microseconds, 0: see base/time.h */
    OPT_RANGE,    /* struct opt_range, 0 0: two durations, as two words or "10s,10m", rising */
    OPT_TEXT,     /* char *, NULL */
    OPT_CHOICE,   /* unsigned or an enum, 0: the index of a word of choices, in any case */
    OPT_LIST,     /* struct opt_list, empty: each mention appends a text, "" empties it */
    OPT_REFUSED   /* no field: known from elsewhere; an error whose reason is the help text */
};

struct opt_range {
    int64_t low_us;
    int64_t high_us;
};

struct opt_list {
    char **items;
    size_t count;
    size_t capacity;
};

#define OPT_ARGV_ONLY 0x1u /* neither in the config file nor in the environment: --help */
#define OPT_TEST_ONLY 0x2u /* shown in a group of its own at the end of the help */
#define OPT_NEVER     0x4u /* a duration may be "never" */
#define OPT_NO_ENV    0x8u /* its variable would be one that means something else */

struct opt {
    const char *name;
    const char *alias; /* a second name, or NULL */
    char key;          /* -k, or 0 */
    enum opt_kind kind;
    unsigned flags;     /* of those above */
    const char *arg;    /* what the help calls the value: "N", "FILE", "LOW HIGH" */
    const char *preset; /* the default as text; NULL: unset, a flag false */
    uint64_t min;       /* of a number or duration; min > 0: no empty text, also in a list */
    uint64_t max;       /* 0: as far as the kind goes */
    const char *const *choices; /* ends in NULL */
    size_t offset;
    const char *group;
    const char *help;
};

/* A row. The kind follows from the type of the field, so the two cannot disagree. */
/* clang-format off */
#define OPT(type, field, ...)                                                      \
    { .kind = _Generic(((type *)NULL)->field,                                      \
                       bool: OPT_FLAG, uint64_t: OPT_NUMBER,                       \
                       int64_t: OPT_DURATION, struct opt_range: OPT_RANGE,         \
                       char *: OPT_TEXT, unsigned: OPT_CHOICE,                     \
                       struct opt_list: OPT_LIST),                                 \
      .offset = offsetof(type, field), __VA_ARGS__ }
#define OPT_REFUSE(...) { .kind = OPT_REFUSED, __VA_ARGS__ }
/* clang-format on */

/* Where a value came from, lowest first. */
enum opt_source { OPT_UNSET, OPT_DEFAULT, OPT_FILE, OPT_ENVIRONMENT, OPT_COMMAND_LINE };

struct opt_set {
    const struct opt *table;
    size_t count;
    void *config;
    struct opt_origin *origins; /* one per row */
};

/* Fills config with the defaults. table and config are borrowed until opt_release, which frees the
 * texts in config. Panics on a table that contradicts itself. 0 or HVD_E_NOMEM; config is then as
 * it was, and the set may be released. */
int opt_init(struct opt_set *set, const struct opt *table, size_t count, void *config) MUST_CHECK;
void opt_release(struct opt_set *set);

/* Reads up to the first word that is no option, or past "--"; *ret_rest is the index of the next
 * word. -name is as good as --name, and so is a beginning of it that no other name has. Uses
 * getopt: one thread at a time. */
int opt_argv(struct opt_set *set, int argc, char *const *argv, int *ret_rest,
             struct hvd_err *err) MUST_CHECK;

/* Reads lines of "name = value". "#" at the start of a line or after a blank begins a comment. A
 * value may stand in double quotes, with \" \\ \n \t and \xNN. path is for messages. */
int opt_config(struct opt_set *set, const char *path, const char *text, size_t length,
               struct hvd_err *err) MUST_CHECK;

/* Looks for the table's variables in envp, which ends in NULL. A list is split at line breaks or,
 * where there is none, at commas. */
int opt_env(struct opt_set *set, char *const *envp, struct hvd_err *err) MUST_CHECK;

/* Who set the option of that name, which is in the table. */
enum opt_source opt_source(const struct opt_set *set, const char *name);

#endif
