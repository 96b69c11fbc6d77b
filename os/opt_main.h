/*
 * opt_main.h: the main function of a program whose options are a table of base/opt.h. It reads the
 * command line, answers --help and similar options, runs the program, and checks that the output
 * was written.
 */
#ifndef OS_OPT_MAIN_H
#define OS_OPT_MAIN_H

#include "base/opt.h"

/* The options that every program has. */
struct opt_general {
    bool help;
    bool version;
    bool list_options;
    bool print_config; /* only for programs that also read the environment or a config file */
};

/* The rows of these options in a table; `general` is the field of type struct opt_general in
 * `type`. A program that knows print_config adds its own row for it. */
#define OPT_GENERAL_ROWS(type, general, heading)                                                  \
    OPT(type, general.list_options, .name = "list-options", .flags = OPT_ARGV_ONLY,               \
        .group = (heading), .help = "list the options for other programs: name, group, default"), \
        OPT(type, general.help, .name = "help", .key = 'h', .flags = OPT_ARGV_ONLY,               \
            .group = (heading), .help = "show this, and end"),                                    \
        OPT(type, general.version, .name = "version", .flags = OPT_ARGV_ONLY, .group = (heading), \
            .help = "show the version, and end")

struct opt_program {
    const char *name;  /* the name of the program, such as "hvd-hosts" */
    const char *usage; /* how the program is called: "hvd-hosts [options] [FILE...]" */
    const char *about;
    const struct opt *table;
    size_t count;
    void *options;
    const struct opt_general *general; /* the general options, a field of `options` */
    int usage_exit;                    /* exit code after a wrong command line */
    /* exit code when the output could not be written, or no memory is left */
    int storage_exit;

    /* opt_argv, or a function that also reads the environment and a file. set->config is
     * `options`. */
    int (*read)(struct opt_set *set, int argc, char *const *argv, int *ret_rest,
                struct hvd_err *err);

    /* Runs the program; returns the exit code. words are the words after the options, and end in
     * NULL. */
    int (*run)(const struct opt_program *program, char **words);
};

/* Prints "PROGRAM: ERROR" to standard error; returns status. */
int opt_complain(const struct opt_program *program, const struct hvd_err *err, int status);

/* Answers --help and similar options; true: such an option was given and has been answered. */
bool opt_answer(const struct opt_program *program, const struct opt_set *set, int *ret_status);

/* Runs a whole program, from the command line to the check of its output. Returns its exit code. */
int opt_main(const struct opt_program *program, int argc, char **argv);

#endif
