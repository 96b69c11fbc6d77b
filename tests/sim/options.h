/*
 * options.h: what the simulator is asked for.
 */
#ifndef TESTS_SIM_OPTIONS_H
#define TESTS_SIM_OPTIONS_H

#include "tests/lib/world.h"

#define SIM_JOBS_MAX 64

struct sim_options {
    uint64_t worlds;
    uint64_t seed;
    unsigned jobs;
    unsigned faults;
    enum world_bug bug;
    bool verbose;
    bool replay;
    bool oom;
    bool keep; /* go on after a violation */
};

/* -1: go on; else the program ends with this code, and why has been said. */
int sim_options_read(int argc, char **argv, struct sim_options *ret_options);

/* How the world with this seed is made once more, as somebody would type it. */
void sim_options_again(const struct sim_options *options, uint64_t seed, char *line, size_t size);

#endif
