/*
 * opt_stage.h: the part that all sources of options share. The values of one source are staged,
 * which means held back until all of them have been found right. Only the opt_*.c files need this
 * header.
 */
#ifndef BASE_OPT_STAGE_H
#define BASE_OPT_STAGE_H

#include "base/opt.h"
#include "base/opt_value.h"
#include "base/text.h"

struct opt_origin {
    enum opt_source source;
    char *where; /* "job.conf:3" or "HVD_NP"; NULL for the other sources */
    /* The value of the highest source that was given but does not count. */
    struct opt_beaten {
        enum opt_source
            source; /* the source that gave the value; OPT_UNSET: there is no such value */
        char *where;
        union opt_field field;
    } beaten;
};

struct opt_stage {
    struct opt_set *set; /* the options that the stage is for; borrowed */
    enum opt_source source;
    struct opt_staged *staged; /* one entry per row of the table */
};

int opt_stage_init(struct opt_stage *stage, struct opt_set *set, enum opt_source source,
                   struct hvd_err *err) MUST_CHECK;
void opt_stage_release(struct opt_stage *stage);

/* Stages one value. When an option is given several times the last value counts, except for a list.
 * where is copied, and may be NULL. The error names the value; the caller puts the option's name
 * before it. */
int opt_stage_put(struct opt_stage *stage, const struct opt *row, const char *text,
                  const char *where, struct hvd_err *err) MUST_CHECK;

/* Moves every staged value into the config, unless a higher source has set that option. Of two
 * values that were given, the one that does not count is kept as origin->beaten. */
void opt_stage_commit(struct opt_stage *stage);

/* Returns the row of that name or alias; NULL when there is no such row. */
const struct opt *opt_stage_find(const struct opt_set *set, struct span name);

/* Returns the option name of which `name` may be a typing error, or NULL. Refused options are never
 * returned. */
const char *opt_stage_nearest(const struct opt_set *set, struct span name);

#endif
