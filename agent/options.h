/*
 * options.h: the options of hvd-agent, and their one table.
 *
 * Few options are given on the command line. The rest comes by standard input, as lines of "name =
 * value", because every user of the host can read a command line and one of these options is the
 * host's key.
 */
#ifndef AGENT_OPTIONS_H
#define AGENT_OPTIONS_H

#include "base/buf.h"
#include "os/opt_main.h"

#define AGENT_KEY_BYTES 32

struct agent_options {
    char *job;
    char *job_id; /* NULL: the job's id is made from the key */
    char *host;
    uint64_t epoch;              /* number of the key; a later key has a higher one */
    char *key;                   /* hexadecimal digits; wiped by agent_options_key */
    struct opt_list drivers;     /* addresses of the driver, ADDRESS:PORT */
    struct opt_list storage_env; /* variables AWS_* of the driver; wiped by storage_env_take */
    uint64_t agent;              /* number of this start of an agent; 0: draw a random one */
    char *address; /* the address at which other hosts reach this one; NULL: the agent finds it */

    uint64_t min_np, max_np;
    int64_t beat_us, lease_us;
    int64_t driver_grace_us, redial_us;
    int64_t kill_grace_us, notice_us;
    char *preemption;
    struct {
        int64_t warning_us, shutdown_us;
    } stall; /* of --stall-warning and --stall-shutdown */

    char *log_file;
    char *log_level;

    char *join, *token_file, *name; /* --join, --token-file, --name; NULL: not given */
    uint64_t slots;
    int64_t join_timeout_us;

    bool healthy;    /* --healthy: ask the agents of this host how they are */
    bool from_stdin; /* --stdin: read the settings from standard input, and start an agent */
    bool foreground; /* --foreground: the agent has no supervisor, and logs to standard error */
    struct opt_general general;
};

extern const struct opt agent_option_table[];
extern const size_t agent_option_count;

/* Reads the command line. HVD_E_INVAL: a word is no option, or is an option that is allowed on
 * standard input only. */
int agent_options_argv(struct opt_set *set, int argc, char *const *argv,
                       struct hvd_err *err) MUST_CHECK;

/* Reads standard input to its end, checks all of its options, and wipes the text. */
int agent_options_stdin(struct opt_set *set, struct hvd_err *err) MUST_CHECK;

/* Checks the options of a text in memory, as agent_options_stdin does. The text is not wiped. */
int agent_options_text(struct opt_set *set, const char *text, size_t length,
                       struct hvd_err *err) MUST_CHECK;

/* Checks the options of `hvd-agent --join`; `name` is the host name of this machine. */
int agent_options_join(const struct agent_options *options, const char *name,
                       struct hvd_err *err) MUST_CHECK;

/* Appends the options of the command line that each agent of this host gets. 0 or HVD_E_NOMEM. */
int agent_options_pass_on(const struct opt_set *set, struct buf *out) MUST_CHECK;

/* Moves the key out of the options, and wipes the key in the options. Called once, after the
 * options were read without error. */
void agent_options_key(struct agent_options *options, uint8_t ret_key[AGENT_KEY_BYTES]);

#endif
