/*
 * ask_options.h: the questions of ask.h, what they can be told, and their one table of options.
 */
#ifndef DRIVER_ASK_OPTIONS_H
#define DRIVER_ASK_OPTIONS_H

#include "base/opt.h"

struct ask_verb {
    const char *name;
    const char *words; /* as the usage line has them */
    const char *about;
};

#define ASK_VERBS 8
extern const struct ask_verb ask_verbs[ASK_VERBS];

/* The question that the word was meant to be, if it is a slip; or NULL. */
const char *ask_nearest_verb(const char *word);

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
