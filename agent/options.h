/*
 * options.h: what hvd-agent can be told, and its one table of options.
 *
 * A few words stand on its command line. What it is to do comes by standard input, as lines of
 * "name = value": the job's key is among it, and everybody can read a command line.
 */
#ifndef AGENT_OPTIONS_H
#define AGENT_OPTIONS_H

#include "base/opt.h"

#define AGENT_KEY_BYTES 32

struct agent_options {
    char *job;
    char *host;
    char *key; /* in hexadecimal digits, until agent_options_key */
    struct opt_list drivers;
    uint64_t agent;

    uint64_t min_np, max_np;
    int64_t beat_us, lease_us;
    int64_t driver_grace_us, redial_us;
    int64_t kill_grace_us, notice_us;
    int64_t stall_warning_us, stall_shutdown_us;

    char *log_file;
    char *log_level;

    bool from_stdin;
    bool foreground;
    bool list_options;
    bool help;
    bool version;
};

extern const struct opt agent_option_table[];
extern const size_t agent_option_count;

/* The words of the command line. HVD_E_INVAL for one that is none, or that belongs into the text.
 */
int agent_options_argv(struct opt_set *set, int argc, char *const *argv,
                       struct hvd_err *err) MUST_CHECK;

/* The text that stands on standard input. Reads it to its end, judges all of it, and wipes it. */
int agent_options_stdin(struct opt_set *set, struct hvd_err *err) MUST_CHECK;

/* The same for a text, which is left as it is. */
int agent_options_text(struct opt_set *set, const char *text, size_t length,
                       struct hvd_err *err) MUST_CHECK;

/* Moves the key out of the options, where it is wiped. Once, after the text has been judged. */
void agent_options_key(struct agent_options *options, uint8_t ret_key[AGENT_KEY_BYTES]);

#endif
