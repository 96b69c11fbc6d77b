/*
 * numbers.h: a short list of rising numbers, and its text form. A full list drops its lowest
 * number, so the list holds the latest incarnations or the times of the latest failures.
 */
#ifndef BLACKLIST_NUMBERS_H
#define BLACKLIST_NUMBERS_H

#include "base/limits.h"
#include "base/text.h"

/* the most bytes of the text: 19 digits and a comma for each number, and the NUL */
#define NUMBERS_TEXT_MAX (LIMIT_BLACKLIST_REMEMBERED * 20 + 1)

struct numbers {
    uint32_t count;
    int64_t item[LIMIT_BLACKLIST_REMEMBERED];
};

/* Inserts the number, even if the list has an equal number. A number below all numbers of a full
 * list is not inserted. */
void numbers_add(struct numbers *numbers, int64_t number);

/* True: the number was inserted before, or may have been: it is in the list, or it is below all
 * numbers of a full list, which has dropped lower ones. */
bool numbers_had(const struct numbers *numbers, int64_t number);

/* Returns the count of numbers that are not below `least`. */
uint32_t numbers_count_from(const struct numbers *numbers, int64_t least);

/* True: the list has at most LIMIT_BLACKLIST_REMEMBERED numbers, none negative, in rising order. */
bool numbers_are_valid(const struct numbers *numbers);

/* Writes the numbers as "3,17,17", or "" for an empty list. Returns text. The list must be valid
 * (numbers_are_valid). */
const char *numbers_format(const struct numbers *numbers, char text[NUMBERS_TEXT_MAX]);
int numbers_parse(struct span span, const char *what, struct numbers *ret_numbers,
                  struct hvd_err *err);

#endif
