/*
 * agent_input.h: what an agent is told by its standard input when it is started: lines of
 * "name = value", as agent/options.h reads them. It holds the job's key.
 */
#ifndef DRIVER_IO_AGENT_INPUT_H
#define DRIVER_IO_AGENT_INPUT_H

#include "base/buf.h"
#include "driver/core/config.h"

struct agent_input {
    const struct core_config *core;
    const uint8_t *key; /* TLS_KEY_BYTES */
    const char *host;
    const char *driver; /* where it dials */
    int64_t stall_warning_us;
    int64_t stall_shutdown_us;
    const char *log_file; /* NULL: where its own machine keeps such things */
    const char *log_level;
};

/* Appends. 0, HVD_E_NOMEM, HVD_E_LIMIT. */
int agent_input_write(const struct agent_input *input, struct buf *out) MUST_CHECK;

#endif
