#include "base/opt.h"

#include "base/mem.h"
#include "base/opt_stage.h"
#include "base/opt_value.h"
#include "base/panic.h"

#include <string.h>

static void *field_of(const struct opt_set *set, const struct opt *row)
{
    return (char *)set->config + row->offset;
}

static bool is_lower(char c)
{
    return c >= 'a' && c <= 'z';
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* "no-" is left to the flags, so that no name can collide with a negated one. */
static bool is_name(const char *name)
{
    size_t length = strlen(name);

    for (size_t i = 0; i < length; i++) {
        if (!is_lower(name[i]) && !(i && (is_digit(name[i]) || name[i] == '-')))
            return false;
    }
    return length > 1 && length <= OPT_NAME_MAX && strncmp(name, "no-", 3) != 0;
}

static void require(const struct opt *row, bool holds, const char *what)
{
    if (!holds)
        PANIC("option \"%s\": %s", row->name ? row->name : "?", what);
}

static void check_row(const struct opt *row)
{
    bool refused = row->kind == OPT_REFUSED;

    require(row, row->name && is_name(row->name), "not a name");
    require(row, !row->alias || is_name(row->alias), "the alias is not a name");
    require(row, !row->alias || strcmp(row->name, row->alias) != 0, "the alias is the name");
    require(row, !row->key || is_lower((char)(row->key | ' ')), "the key is not a letter");
    require(row, row->help && (refused || row->group), "no help or no group");
    require(row, row->arg || row->kind == OPT_FLAG || refused, "no word for its value");
    require(row, !refused || !row->preset, "refused, but with a default");
    require(row, !row->max || row->min <= row->max, "min is above max");
    require(row, (row->kind == OPT_CHOICE) == (row->choices != NULL), "choices and kind differ");
}

static bool is_called(const struct opt *row, const char *name)
{
    return name && (!strcmp(row->name, name) || (row->alias && !strcmp(row->alias, name)));
}

static void check_table(const struct opt *table, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        check_row(&table[i]);
        for (size_t j = 0; j < i; j++)
            require(&table[i],
                    !is_called(&table[j], table[i].name) && !is_called(&table[j], table[i].alias) &&
                        !(table[i].key && table[i].key == table[j].key),
                    "a name or key used twice");
    }
}

static int stage_defaults(struct opt_stage *stage, const struct opt *table, size_t count)
{
    struct hvd_err err;

    for (size_t i = 0; i < count; i++) {
        const char *preset = table[i].preset;
        int rc;

        if (!preset && table[i].kind == OPT_FLAG)
            preset = "false";
        if (!preset)
            continue;
        rc = opt_stage_put(stage, &table[i], preset, NULL, &err);
        if (rc == HVD_E_NOMEM)
            return rc;
        require(&table[i], !rc, rc ? err.text : "");
    }
    return 0;
}

int opt_init(struct opt_set *set, const struct opt *table, size_t count, void *config)
{
    struct opt_stage stage = { .staged = NULL };
    int rc;

    check_table(table, count);
    *set = (struct opt_set){ .table = table, .count = count, .config = config };
    set->origins = mem_zalloc_array(count, sizeof(*set->origins));
    rc = set->origins ? opt_stage_init(&stage, set, OPT_DEFAULT, NULL) : HVD_E_NOMEM;
    if (!rc)
        rc = stage_defaults(&stage, table, count);
    if (!rc) {
        /* Only now, so that a failure leaves config alone. */
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

void opt_release(struct opt_set *set)
{
    if (!set)
        return;
    for (size_t i = 0; i < set->count; i++) {
        opt_value_release(&set->table[i], field_of(set, &set->table[i]));
        mem_free(set->origins[i].where);
    }
    mem_free(set->origins);
    *set = (struct opt_set){ .table = NULL };
}

enum opt_source opt_source(const struct opt_set *set, const char *name)
{
    const struct opt *row = opt_stage_find(set, (struct span){ name, strlen(name) });

    ASSERT(row);
    return set->origins[row - set->table].source;
}
