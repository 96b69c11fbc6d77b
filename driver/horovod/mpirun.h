/*
 * mpirun.h: options of mpirun's command line: -bind-to, -map-by, -mca. If an option of hvd-elastic
 * says the same, that option is set. An option that asks for what happens in any case has no
 * effect. All others are refused with an error that says what to write instead.
 */
#ifndef DRIVER_HOROVOD_MPIRUN_H
#define DRIVER_HOROVOD_MPIRUN_H

#include "base/opt.h"

struct mpirun_words {
    const char *bind_to;        /* NULL: not given */
    const char *map_by;         /* NULL: not given */
    const struct opt_list *mca; /* the options -mca; each item is "NAME VALUE" */
};

/* Sets the options of hvd-elastic that `words` stand for, as if the command line had them.
 * HVD_E_UNSUPPORTED: a word asks for what hvd-elastic does not have. HVD_E_INVAL: the command line
 * also has the option that a word stands for. */
int horovod_mpirun(struct opt_set *set, const struct mpirun_words *words,
                   struct hvd_err *err) MUST_CHECK;

#endif
