#include "driver/io/agent_input.h"

#include "base/time.h"
#include "wire/tls.h"

#include <inttypes.h>

/* In quotes, as opt_config reads it. */
static int add_text(struct buf *out, const char *name, const char *value)
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

static int add_time(struct buf *out, const char *name, int64_t us)
{
    char text[TIME_TEXT_MAX];

    return buf_printf(out, "%s = %s\n", name, us == TIME_NEVER ? "never" : time_format(us, text));
}

static int add_key(struct buf *out, const uint8_t *key)
{
    int rc = buf_append_text(out, "key = ");

    for (size_t i = 0; i < TLS_KEY_BYTES && !rc; i++)
        rc = buf_printf(out, "%02x", key[i]);
    return rc ? rc : buf_append_text(out, "\n");
}

/* Until a driver's welcome says better: one that never gets through to us is not waited for any
 * longer than this, and has no workers. */
static int64_t grace_before_welcome(const struct core_config *core)
{
    return core->driver_grace_us < core->agent_start_us ? core->driver_grace_us
                                                        : core->agent_start_us;
}

int agent_input_write(const struct agent_input *input, struct buf *out)
{
    const struct core_config *core = input->core;
    int rc = add_text(out, "job", core->job);

    rc = rc ? rc : add_text(out, "host", input->host);
    rc = rc ? rc : add_text(out, "drivers", input->driver);
    rc = rc ? rc : add_key(out, input->key);
    rc = rc ? rc : buf_printf(out, "min-np = %" PRIu32 "\n", core->min_np);
    rc = rc ? rc : buf_printf(out, "max-np = %" PRIu32 "\n", core->max_np);
    rc = rc ? rc : add_time(out, "beat", core->beat_us);
    rc = rc ? rc : add_time(out, "lease", core->lease_us);
    rc = rc ? rc : add_time(out, "driver-grace", grace_before_welcome(core));
    rc = rc ? rc : add_time(out, "kill-grace", core->kill_grace_us);
    rc = rc ? rc : add_time(out, "stall-warning", input->stall_warning_us);
    rc = rc ? rc : add_time(out, "stall-shutdown", input->stall_shutdown_us);
    if (input->log_file)
        rc = rc ? rc : add_text(out, "log-file", input->log_file);
    if (input->log_level)
        rc = rc ? rc : add_text(out, "log-level", input->log_level);
    return rc;
}
