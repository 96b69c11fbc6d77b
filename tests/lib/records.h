/*
 * records.h: makes blacklist records, and compares what a store was given with what it returns.
 */
#ifndef TESTS_LIB_RECORDS_H
#define TESTS_LIB_RECORDS_H

#include "blacklist/record.h"

bool records_same(const struct blacklist_record *a, const struct blacklist_record *b);

/* Makes a record and its event; every field depends on number, so two numbers differ in every
 * field. */
void records_make(uint32_t number, const char *host, uint32_t slot,
                  struct blacklist_record *ret_record, struct blacklist_event *ret_event);

#endif
