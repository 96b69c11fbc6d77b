/*
 * opt.c: a set of options: checks the table and fills config with the defaults. Called by each
 * program once at its start. A table that contradicts itself panics, because it is a bug of the
 * program.
 */
#include "base/opt.h"

#include "base/mem.h"
#include "base/opt_stage.h"
#include "base/opt_value.h"
#include "base/panic.h"

#include <string.h>

/* Returns the place of the option's value in the program's config. */
static void *field_of(const struct opt_set *set, const struct opt *row)
{
    return (char *)set->config + row->offset;
}

static bool is_lower(char c)
{
    return c >= 'a' && c <= 'z';
}

/* true: the name is valid. Names that begin with "no-" are kept for negated flags. */
static bool is_name(const char *name)
{
    size_t length = strlen(name);

    for (size_t i = 0; i < length; i++) {
        if (!is_lower(name[i]) && !(i && ((name[i] >= '0' && name[i] <= '9') || name[i] == '-')))
            return false;
    }
    return length > 1 && length <= OPT_NAME_MAX && strncmp(name, "no-", 3) != 0;
}

/* Panics when `holds` is false: the row contradicts itself or another row of the table. `what` says
 * in which point. */
static void require(const struct opt *row, bool holds, const char *what)
{
    if (!holds)
        PANIC("option \"%s\": %s", row->name ? row->name : "?", what);
}

/* true: this is the option's name or its alias; a name that is NULL is neither. */
static bool is_called(const struct opt *row, const char *name)
{
    return name && (!strcmp(row->name, name) || (row->alias && !strcmp(row->alias, name)));
}

/* Prepares a set of options: checks the table of options and fills `config` with their defaults.
 * A table that contradicts itself is a bug of the program, and panics. */
int opt_init(struct opt_set *set, const struct opt *table, size_t count, void *config)
{
    struct opt_stage stage = { .staged = NULL };
    struct hvd_err err;
    int rc;

    for (size_t i = 0; i < count; i++) {
        const struct opt *row = &table[i];
        bool refused = row->kind == OPT_REFUSED;
        bool valueless = refused || row->kind == OPT_ACCEPTED;

        require(row, row->name && is_name(row->name), "not a name");
        require(row, !row->alias || is_name(row->alias), "the alias is not a name");
        require(row, !row->alias || strcmp(row->name, row->alias) != 0, "the alias is the name");
        require(row, !row->key || is_lower((char)(row->key | ' ')), "the key is not a letter");
        require(row, row->help && (refused || row->group), "no help or no group");
        require(row, row->arg || row->kind == OPT_FLAG || valueless, "no word for its value");
        require(row, !refused || !row->preset, "refused, but with a default");
        require(row, !valueless || !row->preset, "accepted, but with a default");
        require(row, refused || !(row->flags & (OPT_ON_HOLDS | OPT_OFF_HOLDS)),
                "holds, not refused");
        require(row, row->kind == OPT_LIST || !(row->flags & OPT_TWO_WORDS),
                "two words, but no list");
        require(row, !row->max || row->min <= row->max, "min is above max");
        require(row, (row->kind == OPT_CHOICE) == (row->choices != NULL),
                "choices and kind differ");
        for (size_t j = 0; j < i; j++)
            require(row,
                    !is_called(&table[j], row->name) && !is_called(&table[j], row->alias) &&
                        !(row->key && row->key == table[j].key),
                    "a name or key used twice");
    }
    *set = (struct opt_set){ .table = table, .count = count, .config = config };
    set->origins = mem_zalloc_array(count, sizeof(*set->origins));
    rc = set->origins ? opt_stage_init(&stage, set, OPT_DEFAULT, NULL) : HVD_E_NOMEM;
    /* Stages the defaults of the table; a flag without a default is false. */
    for (size_t i = 0; !rc && i < count; i++) {
        const char *preset =
            !table[i].preset && table[i].kind == OPT_FLAG ? "false" : table[i].preset;

        if (preset)
            rc = opt_stage_put(&stage, &table[i], preset, NULL, &err);
        require(&table[i], !rc || rc == HVD_E_NOMEM, rc ? err.text : "");
    }
    if (!rc) {
        /* `config` may hold anything until here. The loop clears `config` when nothing can fail any
         * more, so a failure leaves `config` unchanged. */
        for (size_t i = 0; i < count; i++)
            opt_value_clear(&table[i], field_of(set, &table[i]));
        opt_stage_commit(&stage);
    }
    opt_stage_release(&stage);
    if (rc) {
        mem_free(set->origins);
        *set = (struct opt_set){ .table = NULL };
    }
    return rc;
}

/* Frees the texts in `config`, and what is known about the origin of each value. `beaten` is a
 * value that does not count, because a source with precedence has given another one. */
void opt_release(struct opt_set *set)
{
    if (!set)
        return;
    for (size_t i = 0; i < set->count; i++) {
        opt_value_release(&set->table[i], field_of(set, &set->table[i]));
        opt_value_release(&set->table[i], &set->origins[i].beaten.field);
        mem_free(set->origins[i].where);
        mem_free(set->origins[i].beaten.where);
    }
    mem_free(set->origins);
    *set = (struct opt_set){ .table = NULL };
}

/* Takes values that the caller has read itself (not from the command line, a file or the
 * environment) as those of `source`. If one of them is wrong, none is taken. */
int opt_take(struct opt_set *set, enum opt_source source, const struct opt_given *given,
             size_t count, struct hvd_err *err)
{
    struct opt_stage stage;
    int rc = opt_stage_init(&stage, set, source, err);

    for (size_t i = 0; !rc && i < count; i++) {
        const struct opt *row = opt_find(set, given[i].option);

        ASSERT(row);
        rc = opt_stage_put(&stage, row, given[i].value, given[i].where, err);
        if (rc)
            err_prefix(err, rc, "%s%s%s", given[i].where, given[i].name ? ": " : "",
                       given[i].name ? given[i].name : "");
    }
    if (!rc)
        opt_stage_commit(&stage);
    opt_stage_release(&stage);
    return rc;
}

const struct opt *opt_find(const struct opt_set *set, const char *name)
{
    return opt_stage_find(set, (struct span){ name, strlen(name) });
}

/* true: the option is refused with this value. opt_value_read stores nothing for a refused option,
 * so it needs no field. */
bool opt_refuses(const struct opt *row, const char *value)
{
    return row->kind == OPT_REFUSED && opt_value_read(row, value, NULL, NULL) != 0;
}

/* Returns the kind of the source that has set the option. */
enum opt_source opt_source(const struct opt_set *set, const char *name)
{
    const struct opt *row = opt_find(set, name);

    ASSERT(row);
    return set->origins[row - set->table].source;
}

/* Returns what to call this option ("--np") in an error: the variable or line that has set it, or
 * else the option itself. */
const char *opt_place(const struct opt_set *set, const char *option)
{
    const struct opt *row = opt_find(set, option + strlen("--"));
    const char *where;

    ASSERT(row);
    where = set->origins[row - set->table].where;
    return where ? where : option;
}

/* Returns in words where the value of the option comes from. */
const char *opt_origin(const struct opt_set *set, const char *name)
{
    const struct opt *row = opt_find(set, name);
    const struct opt_origin *origin;

    ASSERT(row);
    origin = &set->origins[row - set->table];
    switch (origin->source) {
    case OPT_UNSET: return "no source";
    case OPT_DEFAULT: return "the default";
    case OPT_COMMAND_LINE: return "the command line";
    default: return origin->where;
    }
}

/* Takes the value of an option away, as if it had never been given. */
void opt_forget(struct opt_set *set, const char *name)
{
    const struct opt *row = opt_find(set, name);
    struct opt_origin *origin;

    ASSERT(row && !row->preset);
    origin = &set->origins[row - set->table];
    opt_value_release(row, field_of(set, row));
    opt_value_release(row, &origin->beaten.field);
    mem_free(origin->where);
    mem_free(origin->beaten.where);
    *origin = (struct opt_origin){ .source = OPT_UNSET };
}
