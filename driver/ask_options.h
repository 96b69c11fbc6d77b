/*
 * ask_options.h: what the questions of ask.h can be told, and their one table of options.
 */
#ifndef DRIVER_ASK_OPTIONS_H
#define DRIVER_ASK_OPTIONS_H

#include "base/opt.h"

struct ask_options {
    char *job;
    char *state_dir;
    bool json;
    bool follow;
    uint64_t lines;
    int64_t deadline_us;
    bool wait;
    bool help;
};

extern const struct opt ask_option_table[];
extern const size_t ask_option_count;

#endif
