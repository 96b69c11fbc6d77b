/*
 * worker_options.c: reads the options of a program that trains in a test. Each program has its own
 * table; --help, refusals and the choice of the process that misbehaves are the same for all
 * programs.
 */
#include "tests/workers/worker_options.h"

#include "base/opt_show.h"
#include "base/text.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define HELP_BYTES 65536

static int show_help(const struct worker_options *options, const struct opt_set *set)
{
    char usage[64];
    struct buf out;
    int rc;

    buf_init(&out, HELP_BYTES);
    snprintf(usage, sizeof(usage), "%s [options]", options->program);
    rc = opt_show_help(set, usage, options->about, &out);
    fputs(buf_text(&out), stdout);
    buf_release(&out);
    return rc ? 2 : 0;
}

bool worker_options_read(const struct worker_options *options, struct opt_set *set, int argc,
                         char **argv, int *ret_status)
{
    struct hvd_err err;
    int rest = 0;
    int rc = opt_init(set, options->table, options->count, options->into);

    *ret_status = 2;
    if (rc)
        return false;
    rc = opt_argv(set, argc, argv, &rest, &err);
    if (!rc && rest < argc)
        rc = err_set(&err, HVD_E_INVAL, "%s: %s takes options only", argv[rest], options->program);
    if (rc) {
        fprintf(stderr, "%s: %s\n", options->program, err.text);
        return false;
    }
    if (*options->help)
        *ret_status = show_help(options, set);
    return !*options->help;
}

bool worker_is_chosen(uint64_t rank, const char *once)
{
    const char *text = getenv("HVD_RANK");
    uint64_t mine = 0;
    int fd;

    if (rank != UINT64_MAX && (!text ||
                               text_parse_u64((struct span){ text, strlen(text) }, 0, INT32_MAX,
                                              "HVD_RANK", &mine, NULL) ||
                               mine != rank))
        return false;
    if (!once)
        return true;
    fd = open(once, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0)
        return false;
    close(fd);
    return true;
}
