/*
 * variables.h: reads the HOROVOD_* variables into the options that correspond to them. An option
 * that is given in any other way (the command line, HVD_*, a config file) counts more than such a
 * variable.
 */
#ifndef DRIVER_HOROVOD_VARIABLES_H
#define DRIVER_HOROVOD_VARIABLES_H

#include "base/buf.h"
#include "base/opt.h"

/* Reads the variables of envp, which ends in NULL, into the options of set. Units are converted.
 * The names of variables that have no effect are appended to *unused, separated by ", ". A variable
 * that is empty counts as not set. Fails with HVD_E_INVAL or another code; the error names the
 * variable. */
int horovod_variables(struct opt_set *set, char *const *envp, struct buf *unused,
                      struct hvd_err *err) MUST_CHECK;

#endif
