/*
 * remedy.h: the error code and the remedy for an errno about a file, so that all errors about files
 * use the same words.
 */
#ifndef OS_REMEDY_H
#define OS_REMEDY_H

#include "base/err.h"

/* Fills err: "PATH: WHAT: the system's text; the remedy". Returns the code: HVD_E_NOTFOUND,
 * HVD_E_DENIED, HVD_E_FULL, HVD_E_UNSUPPORTED, HVD_E_INVAL or HVD_E_IO. */
int remedy_set(struct hvd_err *err, const char *path, const char *what, int number);

#endif
