#include "base/mem.h"
#include "base/opt_stage.h"
#include "base/opt_value.h"

#include <stdio.h>
#include <string.h>

#define VARIABLE_MAX (OPT_NAME_MAX + sizeof("HVD_"))

/* "HVD_MIN_NP" for "min-np" */
static void name_variable(const char *name, char variable[VARIABLE_MAX])
{
    snprintf(variable, VARIABLE_MAX, "HVD_%s", name);
    for (char *at = variable; *at; at++) {
        if (*at == '-')
            *at = '_';
        else if (*at >= 'a')
            *at = (char)(*at - 'a' + 'A');
    }
}

/* The first counts, as with getenv. */
static const char *value_in(char *const *envp, const char *variable)
{
    size_t length = strlen(variable);

    for (; *envp; envp++) {
        if (!strncmp(*envp, variable, length) && (*envp)[length] == '=')
            return *envp + length + 1;
    }
    return NULL;
}

static int put_item(struct opt_stage *stage, const struct opt *row, struct span item,
                    const char *variable, struct hvd_err *err)
{
    char *copy = mem_strndup(item.at, item.length);
    int rc =
        copy ? opt_stage_put(stage, row, copy, variable, err) : opt_value_fail(HVD_E_NOMEM, err);

    mem_free(copy);
    return rc;
}

/* Commas are for people; line breaks let an item have commas of its own. */
static int put_items(struct opt_stage *stage, const struct opt *row, const char *text,
                     const char *variable, struct hvd_err *err)
{
    struct span rest = { text, strlen(text) };
    char separator = strchr(text, '\n') ? '\n' : ',';
    struct span item;
    int rc = opt_stage_put(stage, row, "", variable, err); /* given, if only to be empty */

    while (!rc && span_next(&rest, separator, &item)) {
        item = span_trim(item);
        if (item.length)
            rc = put_item(stage, row, item, variable, err);
    }
    return rc;
}

static int put_variable(struct opt_stage *stage, const struct opt *row, const char *name,
                        char *const *envp, bool *ret_found, struct hvd_err *err)
{
    char variable[VARIABLE_MAX];
    const char *text;
    int rc;

    name_variable(name, variable);
    text = value_in(envp, variable);
    *ret_found = text != NULL;
    if (!text)
        return 0;
    rc = row->kind == OPT_LIST ? put_items(stage, row, text, variable, err)
                               : opt_stage_put(stage, row, text, variable, err);
    return rc ? err_prefix(err, rc, "%s", variable) : 0;
}

/*
 * A flag for the command line alone is passed over, not refused: images commonly say
 * HVD_VERSION=1.2 of themselves, and nobody means --version by it.
 */
static bool is_looked_for(const struct opt *row)
{
    if (row->flags & OPT_NO_ENV)
        return false;
    return row->kind != OPT_FLAG || !(row->flags & OPT_ARGV_ONLY);
}

int opt_env(struct opt_set *set, char *const *envp, struct hvd_err *err)
{
    struct opt_stage stage;
    int rc = opt_stage_init(&stage, set, OPT_ENVIRONMENT, err);

    for (size_t i = 0; !rc && i < set->count; i++) {
        const struct opt *row = &set->table[i];
        bool found;

        if (!is_looked_for(row))
            continue;
        rc = put_variable(&stage, row, row->name, envp, &found, err);
        if (!rc && !found && row->alias)
            rc = put_variable(&stage, row, row->alias, envp, &found, err);
    }
    if (!rc)
        opt_stage_commit(&stage);
    opt_stage_release(&stage);
    return rc;
}
