/*
 * numbers.h: a short list of numbers, rising, with its text. When it is full the lowest gives way:
 * it remembers the latest incarnations, or the times of the latest failures.
 */
#ifndef BLACKLIST_NUMBERS_H
#define BLACKLIST_NUMBERS_H

#include "base/limits.h"
#include "base/text.h"

/* 19 digits and a comma for each, and the NUL. */
#define NUMBERS_TEXT_MAX (LIMIT_BLACKLIST_REMEMBERED * 20 + 1)

struct numbers {
    uint32_t count;
    int64_t item[LIMIT_BLACKLIST_REMEMBERED];
};

/* Puts the number in its place, beside its equals. A number below all of a full list is lost. */
void numbers_add(struct numbers *numbers, int64_t number);

/* True when it may have been put before: it is there, or below all of a full list. */
bool numbers_had(const struct numbers *numbers, int64_t number);

/* How many are at least that high. */
uint32_t numbers_count_from(const struct numbers *numbers, int64_t least);

/* No more than fit, none negative, rising. */
bool numbers_are_valid(const struct numbers *numbers);

/* "3,17,17", "" when there are none. Returns text. Only for a valid list. */
const char *numbers_format(const struct numbers *numbers, char text[NUMBERS_TEXT_MAX]);
int numbers_parse(struct span span, const char *what, struct numbers *ret_numbers,
                  struct hvd_err *err);

#endif
