/*
 * preemption.c: reads the value of --preemption. Called by the options of driver and agent, and by
 * the agent's watch for notices. Invariant: a value that the driver takes is taken by the agent
 * too, so a wrong one is an error before any agent is started.
 */
#include "proto/preemption.h"

#include "base/limits.h"

#include <string.h>

static const struct {
    const char *name;
    enum preemption_giver giver;
} preemption_names[] = {
    {"aws",    PREEMPTION_AWS  },
    { "gcp",   PREEMPTION_GCP  },
    { "azure", PREEMPTION_AZURE},
    { "slurm", PREEMPTION_SLURM},
};

/* Takes the rest of an item that begins with `prefix`; false: the item begins otherwise. */
static bool preemption_after(struct span item, const char *prefix, struct span *ret_rest)
{
    size_t length = strlen(prefix);

    if (item.length < length || memcmp(item.at, prefix, length) != 0)
        return false;
    *ret_rest = (struct span){ item.at + length, item.length - length };
    return true;
}

/* Reads one item of the list. `rest`: from the item to the end of the text; a command takes it. */
static int preemption_item(struct span item, struct span rest, struct preemption *preemption,
                           struct hvd_err *err)
{
    char quoted[TEXT_QUOTE_MAX];
    struct span *taken = NULL;

    for (size_t i = 0; i < ARRAY_SIZE(preemption_names); i++) {
        if (span_is(item, preemption_names[i].name)) {
            preemption->givers |= preemption_names[i].giver;
            return 0;
        }
    }
    if (preemption_after(item, "file:", &preemption->file))
        taken = &preemption->file;
    else if (preemption_after(rest, "command:", &preemption->command))
        taken = &preemption->command;
    text_quote(item.at, item.length, quoted);
    if (!taken)
        return err_set(err, HVD_E_INVAL,
                       "%s: gives no notices; choose of auto, none, aws, gcp, azure, slurm, "
                       "file:PATH and command:CMD",
                       quoted);
    if (taken->length >= LIMIT_PATH_BYTES)
        return err_set(err, HVD_E_LIMIT, "%s: longer than %d bytes (LIMIT_PATH_BYTES); shorten it",
                       quoted, LIMIT_PATH_BYTES - 1);
    if (!taken->length || !text_is_clean(taken->at, taken->length))
        return err_set(err, HVD_E_INVAL,
                       "%s: names nothing, or has control characters; write what follows the colon",
                       quoted);
    if (taken == &preemption->file && taken->at[0] != '/')
        return err_set(err, HVD_E_INVAL,
                       "%s: is no absolute path, and agents have working directories of their own; "
                       "begin it with /",
                       quoted);
    return 0;
}

int preemption_parse(const char *text, struct preemption *ret_preemption, struct hvd_err *err)
{
    struct preemption read = { .givers = 0 };
    struct span rest = { text, strlen(text) };
    struct span item, left;
    int rc = 0;

    read.automatic = !strcmp(text, "auto");
    if (!read.automatic && strcmp(text, "none") != 0) {
        for (left = rest; !rc && !read.command.length && span_next(&rest, ',', &item); left = rest)
            rc = preemption_item(item, left, &read, err);
    }
    if (!rc)
        *ret_preemption = read;
    return rc;
}
