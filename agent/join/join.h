/*
 * join.h: `hvd-agent --join`: a process that makes its host a host of a job. It dials the driver
 * with a token, waits for a driver that does not run yet, connects again after a break, and ends
 * with the job. Over its connection the driver starts agents on this host, as it would by ssh
 * elsewhere.
 */
#ifndef AGENT_JOIN_JOIN_H
#define AGENT_JOIN_JOIN_H

#include "base/err.h"
#include "wire/token.h"

/* The exit statuses of `hvd-agent --join`. DONE: the job is over, or the host has left. LOST: no
 * driver in time, or an error. REFUSED: the driver does not accept the token or this version. */
enum join_exit { JOIN_DONE = 0, JOIN_LOST = 1, JOIN_REFUSED = 3 };

/* The settings of join_run; all texts are borrowed. */
struct join_config {
    const char *places; /* addresses of the driver, a list that join_places_check has accepted */
    const struct token *token;
    const char *name; /* name of this host in the job */
    uint32_t slots;
    bool address_given; /* `more` names the address at which other hosts reach this one */
    int64_t timeout_us; /* how long to wait for the first driver; TIME_NEVER: for ever */
    int64_t notice_us;  /* time from SIGTERM until the agent and its workers are ended */
    const char *more;   /* lines that are added to the settings of each agent; "": none */
};

/* Runs until the job is over, this host has left (SIGTERM), or no driver lets it in. Returns an
 * enum join_exit; the reason is in the log. */
int join_run(const struct join_config *config);

#endif
