/*
 * ask_log.h: what happened to a job that has no driver, from the file that its drivers have left.
 */
#ifndef DRIVER_ASK_LOG_H
#define DRIVER_ASK_LOG_H

#include "base/err.h"

/* Prints the newest `lines` lines, as a driver would. HVD_E_NOTFOUND: there is no such file. */
int ask_log(const char *folder, uint64_t lines, bool json, struct hvd_err *err) MUST_CHECK;

#endif
