/*
 * mpirun.h: words of mpirun's command lines: -bind-to, -map-by, -mca. Words that an option of
 * hvd-elastic can express set that option. Words that ask for what happens in any case have no
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

/* Sets the options that the words stand for, as options of the command line. HVD_E_UNSUPPORTED: a
 * word asks for a thing that hvd-elastic does not have; HVD_E_INVAL: the command line has both a
 * word and the option that the word stands for. */
int horovod_mpirun(struct opt_set *set, const struct mpirun_words *words,
                   struct hvd_err *err) MUST_CHECK;

#endif
