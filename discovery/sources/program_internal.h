/*
 * program_internal.h: the program of a source: a script that is run for each answer (script.c), or
 * one that goes on running (watch.c).
 */
#ifndef DISCOVERY_SOURCES_PROGRAM_INTERNAL_H
#define DISCOVERY_SOURCES_PROGRAM_INTERNAL_H

#include "discovery/sources/script_log.h"
#include "discovery/sources/source_internal.h"
#include "os/command/command.h"

/* The data of a running program. It is the whole state of the source, or the first member of that
 * state. */
struct program {
    struct discoverer *discoverer;
    const char *argv[2];
    struct command_spec spec;
    struct command *run; /* NULL: not running */
    struct script_log log;
};

/* Takes the path from config.value and checks that it is executable. */
int program_open(struct discoverer *discoverer, struct hvd_err *err) MUST_CHECK;

/* Kills the program if it still runs, and frees the run. */
void program_stop(struct discoverer *discoverer);

/* Sets err for a run that has failed. The text says how the run ended, what to do (`remedy`), and
 * what the program printed on its standard error. */
void program_blame(const struct program *program, const struct command_end *end, const char *remedy,
                   struct hvd_err *err);

#endif
