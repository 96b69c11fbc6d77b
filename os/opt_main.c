/*
 * opt_main.c: the main function of hvd-hosts and hvd-audit, and the answers to --help and similar
 * options, which hvd-agent uses, too. --help works with any environment and any configuration file.
 */
#include "os/opt_main.h"

#include "base/buf.h"
#include "base/limits.h"
#include "base/opt_show.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* Prints the error on standard error. `status` is the exit code of the program; after the exit code
 * for a wrong command line, a second line names --help. */
int opt_complain(const struct opt_program *program, const struct hvd_err *err, int status)
{
    /* standard output is written first, so that both streams keep their order in one file */
    fflush(stdout);
    fprintf(stderr, "%s: %s\n", program->name, err->text);
    if (status == program->usage_exit)
        fprintf(stderr, "Try '%s --help'.\n", program->name);
    return status;
}

/* Checks that the output was written. A failure is an error of its own, unless the program has
 * failed before. */
static int opt_check_output(const struct opt_program *program, int status)
{
    struct hvd_err err;

    errno = 0;
    if (status || !(fflush(stdout) || ferror(stdout)))
        return status;
    /* Of an earlier write only the failure is known: errno is of another call by now. */
    err_set(&err, HVD_E_IO, "cannot write to standard output: %s",
            errno ? strerror(errno) : "an earlier write has failed");
    return opt_complain(program, &err, program->storage_exit);
}

/* Answers --help and similar options on standard output. true: the program ends with
 * *ret_status. */
bool opt_answer(const struct opt_program *program, const struct opt_set *set, int *ret_status)
{
    struct buf out;
    int rc = 0;

    buf_init(&out, LIMIT_CONFIG_TEXT_BYTES);
    if (program->general->help)
        rc = opt_show_help(set, program->usage, program->about, &out);
    else if (program->general->version)
        rc = buf_printf(&out, "%s %s\n", program->name, HVD_VERSION_TEXT);
    else if (program->general->list_options)
        rc = opt_show_names(set, &out);
    else if (program->general
                 ->print_config) /* the argument `true`: with the origin of each value */
        rc = opt_show_config(set, true, &out);
    else
        return false;
    fputs(buf_text(&out), stdout);
    buf_release(&out);
    *ret_status = opt_check_output(program, rc ? program->storage_exit : 0);
    return true;
}

/* Runs a whole program: reads its options, answers --help or runs it. Returns its exit code. */
int opt_main(const struct opt_program *program, int argc, char **argv)
{
    struct hvd_err err = { 0 };
    struct opt_set set;
    int status = 0;
    int rest;

    if (opt_init(&set, program->table, program->count, program->options)) {
        fprintf(stderr, "%s: no memory for the options; free memory on this host\n", program->name);
        return program->storage_exit;
    }
    if (program->read(&set, argc, argv, &rest, &err))
        status = opt_complain(program, &err, program->usage_exit);
    else if (!opt_answer(program, &set, &status))
        status = program->run(program, argv + rest);
    opt_release(&set);
    return opt_check_output(program, status);
}
