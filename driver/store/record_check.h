/*
 * record_check.h: the rules that a record of the journal has to keep in every store.
 */
#ifndef DRIVER_STORE_RECORD_CHECK_H
#define DRIVER_STORE_RECORD_CHECK_H

#include "driver/core/journal.h"

/* Returns the reason why the record could not be read back; NULL: it could. */
const char *record_wrong(const struct journal_record *record);

#endif
