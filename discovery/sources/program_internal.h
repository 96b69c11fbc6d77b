/*
 * program_internal.h: the program of a source: a script that is run for each answer (script.c), or
 * one that goes on running (watch.c).
 */
#ifndef DISCOVERY_SOURCES_PROGRAM_INTERNAL_H
#define DISCOVERY_SOURCES_PROGRAM_INTERNAL_H

#include "discovery/sources/script_log.h"
#include "discovery/sources/source_internal.h"
#include "os/command/command.h"

/* The data of a source's program. discoverer->state of script.c is this struct; that of watch.c
 * begins with it, so both can be used as a struct program. */
struct program {
    struct discoverer *discoverer;
    const char *argv[2];
    struct command_spec spec;
    struct command *run; /* NULL: not running */
    struct script_log log;
};

/* Takes the path of the program from config.value, and checks that the file is executable. */
int program_open(struct discoverer *discoverer, struct hvd_err *err) MUST_CHECK;

/* Kills the program if it still runs, and frees `run`. */
void program_stop(struct discoverer *discoverer);

/* Sets err for a run that has failed. The text says how the run ended, what to do (`remedy`), and
 * what the program printed on its standard error. */
void program_blame(const struct program *program, const struct command_end *end, const char *remedy,
                   struct hvd_err *err);

#endif
