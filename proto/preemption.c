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

/* Reads one item of the list that --preemption is. `item`: up to the next comma; `rest`: from the
 * item to the end of the text, all of which a command takes, because it may have commas. */
static int preemption_item(struct span item, struct span rest, struct preemption *preemption,
                           struct hvd_err *err)
{
    char quoted[TEXT_QUOTE_MAX];
    struct span *value = NULL;
    struct span path = item;

    for (size_t i = 0; i < ARRAY_SIZE(preemption_names); i++) {
        if (span_is(item, preemption_names[i].name)) {
            preemption->givers |= preemption_names[i].giver;
            return 0;
        }
    }
    if (span_take(&path, "file:")) {
        preemption->file = path;
        value = &preemption->file;
    } else if (span_take(&rest, "command:")) {
        preemption->command = rest;
        value = &preemption->command;
    }
    text_quote(item.at, item.length, quoted);
    if (!value)
        return err_set(err, HVD_E_INVAL,
                       "%s: gives no notices; choose of auto, none, aws, gcp, azure, slurm, "
                       "file:PATH and command:CMD",
                       quoted);
    if (value->length >= LIMIT_PATH_BYTES)
        return err_set(err, HVD_E_LIMIT, "%s: longer than %d bytes (LIMIT_PATH_BYTES); shorten it",
                       quoted, LIMIT_PATH_BYTES - 1);
    if (!value->length)
        return err_set(err, HVD_E_INVAL, "%s: nothing follows the colon; give %s", quoted,
                       value == &preemption->file ? "the path of a file" : "a command");
    if (!text_is_clean(value->at, value->length))
        return err_set(err, HVD_E_INVAL, "%s: has control characters; remove them", quoted);
    if (value == &preemption->file && value->at[0] != '/')
        return err_set(err, HVD_E_INVAL,
                       "%s: is no absolute path, and agents have working directories of their own; "
                       "begin it with /",
                       quoted);
    return 0;
}

/* Reads the value of --preemption: "auto", "none" or a list. The loop ends at a command, which
 * takes the rest of the text. */
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
