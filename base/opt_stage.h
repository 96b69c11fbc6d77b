/*
 * opt_stage.h: what the sources have in common. What one says is staged, held back until all of it
 * has been found right. Only the opt_*.c files need this.
 */
#ifndef BASE_OPT_STAGE_H
#define BASE_OPT_STAGE_H

#include "base/opt.h"
#include "base/text.h"

struct opt_origin {
    enum opt_source source;
    char *where; /* "job.conf:3" or "HVD_NP"; NULL for the other sources */
};

struct opt_stage {
    struct opt_set *set; /* borrowed */
    enum opt_source source;
    struct opt_staged *staged; /* one per row */
};

int opt_stage_init(struct opt_stage *stage, struct opt_set *set, enum opt_source source,
                   struct hvd_err *err) MUST_CHECK;
void opt_stage_release(struct opt_stage *stage);

/* Of several the last counts, except in a list. where is copied, and may be NULL. The error names
 * the value; the caller puts the option's name before it. */
int opt_stage_put(struct opt_stage *stage, const struct opt *row, const char *text,
                  const char *where, struct hvd_err *err) MUST_CHECK;

/* Moves every value to the config that no higher source has set. */
void opt_stage_commit(struct opt_stage *stage);

/* The row of that name or alias; NULL when there is none. */
const struct opt *opt_stage_find(const struct opt_set *set, struct span name);

/* The name that this may be a slip of, or NULL. Never a refused one. */
const char *opt_stage_nearest(const struct opt_set *set, struct span name);

#endif
