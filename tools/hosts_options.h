/*
 * hosts_options.h: what hvd-hosts can be told, and its one table of options.
 */
#ifndef TOOLS_HOSTS_OPTIONS_H
#define TOOLS_HOSTS_OPTIONS_H

#include "base/opt.h"

struct hosts_options {
    char *hosts;
    uint64_t slots_per_host;

    char *blacklist;
    struct opt_list fail;
    struct opt_list clear;
    char *reason;
    bool history;

    struct opt_range cooldown;
    bool forever;
    unsigned scope;
    uint64_t restarts;
    int64_t restarts_window_us;

    char *config_file;
    bool print_config;
    bool list_options;
    bool help;
    bool version;
};

extern const struct opt hosts_option_table[];
extern const size_t hosts_option_count;

#endif
