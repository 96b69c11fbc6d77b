/*
 * opt_stage.c: collects the values of one source (command line, config file or environment) and
 * makes them count only when all are right; until then they are staged. Called by opt_argv.c,
 * opt_config.c and opt_env.c. opt_stage_commit cannot fail; it leaves an option as it is if a
 * source with precedence has set it.
 */
#include "base/opt_stage.h"

#include "base/mem.h"
#include "base/opt_value.h"

#include <stdio.h>

struct opt_staged {
    bool given;
    char *where;
    union opt_field field;
};

/* Begins an empty stage for the values of `source`. */
int opt_stage_init(struct opt_stage *stage, struct opt_set *set, enum opt_source source,
                   struct hvd_err *err)
{
    struct opt_staged *staged = mem_zalloc_array(set->count, sizeof(*staged));

    *stage = (struct opt_stage){ .set = set, .source = source, .staged = staged };
    return staged ? 0 : opt_value_fail(HVD_E_NOMEM, err);
}

/* Frees values that were staged and not committed. */
void opt_stage_release(struct opt_stage *stage)
{
    if (!stage->staged)
        return;
    for (size_t i = 0; i < stage->set->count; i++) {
        mem_free(stage->staged[i].where);
        opt_value_release(&stage->set->table[i], &stage->staged[i].field);
    }
    mem_free(stage->staged);
    stage->staged = NULL;
}

/* Reads a value and stages it: it counts only after opt_stage_commit. `where` is its origin, for
 * errors; NULL: the command line or a default. A repeated option replaces its value; a list
 * grows. */
int opt_stage_put(struct opt_stage *stage, const struct opt *row, const char *text,
                  const char *where, struct hvd_err *err)
{
    struct opt_staged *staged = &stage->staged[row - stage->set->table];
    char *copy = NULL;
    int rc;

    if ((row->flags & OPT_ARGV_ONLY) &&
        (stage->source == OPT_FILE || stage->source == OPT_ENVIRONMENT))
        return err_set(err, HVD_E_INVAL, "this option is allowed only on the command line, as --%s",
                       row->name);
    if (where) {
        copy = mem_strdup(where);
        if (!copy)
            return opt_value_fail(HVD_E_NOMEM, err);
    }
    rc = opt_value_read(row, text, &staged->field, err);
    if (rc) {
        mem_free(copy);
        return rc;
    }
    mem_free(staged->where);
    staged->where = copy;
    staged->given = true;
    return 0;
}

/* Keeps, for notes to the operator, a value that another source with precedence replaces
 * (`beaten`). The memory of `where` and of the field's value moves to *beaten. */
static void stage_keep_beaten(const struct opt *row, struct opt_beaten *beaten,
                              enum opt_source source, char **where, void *field)
{
    if (source < beaten->source)
        return;
    opt_value_release(row, &beaten->field);
    opt_value_move(row, &beaten->field, field);
    mem_free(beaten->where);
    beaten->where = *where;
    beaten->source = source;
    *where = NULL;
}

/* Makes all staged values count, except those of options that a source with precedence has set. Of
 * two values for one option, the one that does not count is kept (`beaten`), for notes to the
 * operator. */
void opt_stage_commit(struct opt_stage *stage)
{
    struct opt_set *set = stage->set;

    for (size_t i = 0; i < set->count; i++) {
        struct opt_staged *staged = &stage->staged[i];
        struct opt_origin *origin = &set->origins[i];
        void *field = (char *)set->config + set->table[i].offset;

        if (!staged->given)
            continue;
        if (stage->source < origin->source) {
            stage_keep_beaten(&set->table[i], &origin->beaten, stage->source, &staged->where,
                              &staged->field);
            continue;
        }
        if (origin->source > OPT_DEFAULT && origin->source < stage->source)
            stage_keep_beaten(&set->table[i], &origin->beaten, origin->source, &origin->where,
                              field);
        opt_value_release(&set->table[i], field);
        opt_value_move(&set->table[i], field, &staged->field);
        mem_free(origin->where);
        origin->source = stage->source;
        origin->where = staged->where;
        staged->where = NULL;
    }
}

/* Returns the option of this name or alias; NULL: none. */
const struct opt *opt_stage_find(const struct opt_set *set, struct span name)
{
    for (size_t i = 0; i < set->count; i++) {
        const struct opt *row = &set->table[i];

        if (span_is(name, row->name) || (row->alias && span_is(name, row->alias)))
            return row;
    }
    return NULL;
}

/* Returns the option name that the operator probably meant; NULL: no name is near enough. Refused
 * options are not proposed. */
const char *opt_stage_nearest(const struct opt_set *set, struct span name)
{
    const char *nearest = NULL;
    char text[OPT_NAME_MAX + 1];

    if (name.length > OPT_NAME_MAX)
        return NULL;
    snprintf(text, sizeof(text), "%.*s", (int)name.length, name.at);
    for (size_t i = 0; i < set->count; i++) {
        /* The nearest name so far is the first candidate, so of two equally near names the earlier
         * one is kept. */
        const char *rivals[] = { nearest, set->table[i].name, set->table[i].alias };
        size_t from = nearest ? 0 : 1;

        if (set->table[i].kind != OPT_REFUSED)
            nearest = text_nearest(text, rivals + from, (rivals[2] ? 3 : 2) - from);
    }
    return nearest;
}
