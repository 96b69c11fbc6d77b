/*
 * records.h: comparing what a store was given with what it gives back.
 */
#ifndef TESTS_LIB_RECORDS_H
#define TESTS_LIB_RECORDS_H

#include "blacklist/record.h"

bool records_same(const struct blacklist_record *a, const struct blacklist_record *b);
bool events_same(const struct blacklist_event *a, const struct blacklist_event *b);

/* A record and its event that differ, in every field, for each number. */
void records_make(uint32_t number, const char *host, uint32_t slot,
                  struct blacklist_record *ret_record, struct blacklist_event *ret_event);

#endif
