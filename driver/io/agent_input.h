/*
 * agent_input.h: the settings that an agent reads from its standard input when it is started: lines
 * of "name = value" (agent/options.h). The key of the host is one of them.
 */
#ifndef DRIVER_IO_AGENT_INPUT_H
#define DRIVER_IO_AGENT_INPUT_H

#include "base/buf.h"
#include "driver/core/config.h"

struct agent_input {
    const struct core_config *core; /* name of the job, sizes and intervals */
    const char *job_id;             /* the result of host_keys_job */
    const uint8_t *key;             /* the key of this host in this `epoch`, TLS_KEY_BYTES bytes */
    uint64_t epoch;
    const char *host;   /* the name of the host on which the agent is started */
    const char *driver; /* the address that the agent dials; NULL: `hvd-agent --join` adds it */
    int64_t stall_warning_us;
    int64_t stall_shutdown_us;
    const char *preemption; /* --preemption of the agent; NULL: the agent uses its default */
    const char *log_file;   /* NULL: the agent chooses a file on its machine */
    const char *log_level;
    /* The environment whose AWS_* variables the agent gets for its checkpoints; NULL: the
     * checkpoints are not in S3 */
    char *const *storage_env;
};

/* Appends the settings of an agent to out, one on each line. Returns 0, HVD_E_NOMEM or HVD_E_LIMIT.
 */
int agent_input_write(const struct agent_input *input, struct buf *out) MUST_CHECK;

#endif
