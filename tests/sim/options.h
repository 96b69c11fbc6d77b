/*
 * options.h: the options of the simulator.
 */
#ifndef TESTS_SIM_OPTIONS_H
#define TESTS_SIM_OPTIONS_H

#include "tests/world/world.h"

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
    bool etcd; /* true: the store of all drivers is etcd */
    bool keep; /* true: continue after a violation */
};

/* Reads the command line. Returns -1: the program continues; otherwise the code with which the
 * program must end, and the reason was printed. */
int sim_options_read(int argc, char **argv, struct sim_options *ret_options);

/* Writes the command line that runs the world with this seed again. */
void sim_options_again(const struct sim_options *options, uint64_t seed, char *line, size_t size);

#endif
