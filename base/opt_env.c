/*
 * opt_env.c: the environment as a source of options: HVD_NAME for --name. Called by the programs.
 * Either all variables count or none; an error names the variable.
 */
#include "base/mem.h"
#include "base/opt_stage.h"
#include "base/opt_value.h"

#include <stdio.h>
#include <string.h>

#define VARIABLE_MAX (OPT_NAME_MAX + sizeof("HVD_"))

/* Stages the value of the variable for name, for example HVD_MIN_NP for "min-np". When envp has the
 * variable twice, the first one counts, as with getenv. */
static int env_put_variable(struct opt_stage *stage, const struct opt *row, const char *name,
                            char *const *envp, bool *ret_found, struct hvd_err *err)
{
    char variable[VARIABLE_MAX];
    const char *text = NULL;
    struct span rest, item;
    char separator, *copy;
    size_t length;
    int rc = 0;

    length = (size_t)snprintf(variable, VARIABLE_MAX, "HVD_%s", name);
    for (char *at = variable; *at; at++) {
        if (*at == '-')
            *at = '_';
        else if (*at >= 'a')
            *at = (char)(*at - 'a' + 'A');
    }
    for (; !text && *envp; envp++) {
        if (!strncmp(*envp, variable, length) && (*envp)[length] == '=')
            text = *envp + length + 1;
    }
    *ret_found = text != NULL;
    if (!text)
        return 0;
    /* An empty variable also sets the list: to an empty list, or to an error if the list may not
     * hold an empty text. */
    if (row->kind != OPT_LIST)
        rc = opt_stage_put(stage, row, text, variable, err);
    else if (!row->min || !text[strspn(text, " \t\n,")])
        rc = opt_stage_put(stage, row, "", variable, err);
    /* A list is split at line breaks, so that an item may hold commas; without a line break it is
     * split at commas. */
    separator = strchr(text, '\n') ? '\n' : ',';
    rest = (struct span){ text, strlen(text) };
    while (row->kind == OPT_LIST && !rc && span_next(&rest, separator, &item)) {
        item = span_trim(item);
        if (!item.length)
            continue;
        copy = mem_strndup(item.at, item.length);
        rc = copy ? opt_stage_put(stage, row, copy, variable, err)
                  : opt_value_fail(HVD_E_NOMEM, err);
        mem_free(copy);
    }
    return rc ? err_prefix(err, rc, "%s", variable) : 0;
}

/* Takes the values of all variables that belong to options. The alias counts only if the name's
 * variable is missing. */
int opt_env(struct opt_set *set, char *const *envp, struct hvd_err *err)
{
    struct opt_stage stage;
    int rc = opt_stage_init(&stage, set, OPT_ENVIRONMENT, err);

    for (size_t i = 0; !rc && i < set->count; i++) {
        const struct opt *row = &set->table[i];
        bool found;

        /* A flag that is allowed on the command line only is ignored here, not refused: container
         * images commonly set HVD_VERSION=1.2 for themselves, which does not mean --version. */
        if ((row->flags & OPT_NO_ENV) || (row->kind == OPT_FLAG && (row->flags & OPT_ARGV_ONLY)))
            continue;
        rc = env_put_variable(&stage, row, row->name, envp, &found, err);
        if (!rc && !found && row->alias)
            rc = env_put_variable(&stage, row, row->alias, envp, &found, err);
    }
    if (!rc)
        opt_stage_commit(&stage);
    opt_stage_release(&stage);
    return rc;
}
