/*
 * agent_input.c: writes the settings of an agent as the lines of a config file; the key of the
 * host is one of them. starter.c calls it, and the agent reads the lines from its standard input.
 * The names are those of agent/options.h.
 */
#include "driver/io/agent_input.h"

#include "base/time.h"
#include "wire/tls.h"

#include <inttypes.h>
#include <string.h>

/* Appends a setting with its value in quotes, in the form that opt_config reads. */
static int agent_input_text(struct buf *out, const char *name, const char *value)
{
    int rc = buf_printf(out, "%s = \"", name);

    for (; *value && !rc; value++) {
        unsigned char byte = (unsigned char)*value;

        if (byte == '"' || byte == '\\')
            rc = buf_printf(out, "\\%c", byte);
        else if (byte < 0x20 || byte >= 0x7f)
            rc = buf_printf(out, "\\x%02x", byte);
        else
            rc = buf_append(out, value, 1);
    }
    return rc ? rc : buf_append_text(out, "\"\n");
}

/* Appends a setting whose value is a duration; TIME_NEVER is written as "never". */
static int agent_input_time(struct buf *out, const char *name, int64_t us)
{
    char text[TIME_TEXT_MAX];

    return buf_printf(out, "%s = %s\n", name, us == TIME_NEVER ? "never" : time_format(us, text));
}

/* Writes all settings of one agent, one on each line. log_file or log_level NULL: the agent uses
 * its own default. */
int agent_input_write(const struct agent_input *input, struct buf *out)
{
    const struct core_config *core = input->core;
    /* driver-grace is how long an agent goes on without a driver. This value holds until the
     * driver's WELCOME_AGENT names another one. An agent that never reaches the driver has no
     * workers, so it need not wait longer than its start may take. */
    int64_t grace_us =
        core->driver_grace_us < core->agent_start_us ? core->driver_grace_us : core->agent_start_us;
    int rc = agent_input_text(out, "job", core->job);

    rc = rc ? rc : agent_input_text(out, "host", input->host);
    rc = rc ? rc : agent_input_text(out, "job-id", input->job_id);
    if (input->driver)
        rc = rc ? rc : agent_input_text(out, "drivers", input->driver);
    rc = rc ? rc : buf_append_text(out, "key = ");
    for (size_t i = 0; i < TLS_KEY_BYTES && !rc; i++)
        rc = buf_printf(out, "%02x", input->key[i]);
    rc = rc ? rc : buf_printf(out, "\nepoch = %" PRIu64 "\n", input->epoch);
    rc = rc ? rc : buf_printf(out, "min-np = %" PRIu32 "\n", core->min_np);
    rc = rc ? rc : buf_printf(out, "max-np = %" PRIu32 "\n", core->max_np);
    rc = rc ? rc : agent_input_time(out, "beat", core->beat_us);
    rc = rc ? rc : agent_input_time(out, "lease", core->lease_us);
    rc = rc ? rc : agent_input_time(out, "driver-grace", grace_us);
    rc = rc ? rc : agent_input_time(out, "kill-grace", core->kill_grace_us);
    rc = rc ? rc : agent_input_time(out, "stall-warning", input->stall_warning_us);
    rc = rc ? rc : agent_input_time(out, "stall-shutdown", input->stall_shutdown_us);
    if (input->preemption)
        rc = rc ? rc : agent_input_text(out, "preemption", input->preemption);
    for (char *const *entry = input->storage_env; entry && *entry && !rc; entry++)
        if (!strncmp(*entry, "AWS_", strlen("AWS_")) && strchr(*entry, '='))
            rc = agent_input_text(out, "storage-env", *entry);
    if (input->log_file)
        rc = rc ? rc : agent_input_text(out, "log-file", input->log_file);
    if (input->log_level)
        rc = rc ? rc : agent_input_text(out, "log-level", input->log_level);
    return rc;
}
