/*
 * scholar_options.h: how long a scholar trains, when it fails, what it waits for.
 */
#ifndef TESTS_CONFORMANCE_SCHOLAR_OPTIONS_H
#define TESTS_CONFORMANCE_SCHOLAR_OPTIONS_H

#include "base/opt.h"

struct scholar_options {
    uint64_t epochs, batches, batch_ms;
    char *log;
    char *say;
    char *exits; /* what schedule.h reads */
    char *once;
    char *looks;
    char *changes; /* epochs, "0 1" */
    char *door;
    char *gates;
    uint64_t patience_s;
    bool help;

    /* What follows is not in the table. */
    const char *host, *incarnation;
    struct opt_set set;
};

/* True when there is something to train; else *ret_status is what to exit with. The options are to
 * be released either way. */
bool scholar_options_read(struct scholar_options *options, int argc, char **argv, int *ret_status);
void scholar_options_release(struct scholar_options *options);

#endif
