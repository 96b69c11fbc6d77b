/*
 * numbers.c: short rising lists of numbers: the incarnations that an entry remembers, and the times
 * of its failures. A full list drops its lowest number, so each operation is bounded.
 */
#include "blacklist/numbers.h"

#include "base/panic.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Inserts a number at its place; equal numbers may stand side by side. A full list drops its lowest
 * number, and does not take a number that is lower than all of them. */
void numbers_add(struct numbers *numbers, int64_t number)
{
    int64_t *item = numbers->item;
    uint32_t at = numbers->count;

    while (at > 0 && item[at - 1] > number)
        at--;
    if (numbers->count < LIMIT_BLACKLIST_REMEMBERED) {
        memmove(item + at + 1, item + at, (numbers->count - at) * sizeof(*item));
        item[at] = number;
        numbers->count++;
    } else if (at > 0) { /* the list is full: its lowest number is dropped */
        memmove(item, item + 1, (at - 1) * sizeof(*item));
        item[at - 1] = number;
    }
}

/* True: the number was added at some time, or may have been. */
bool numbers_had(const struct numbers *numbers, int64_t number)
{
    for (uint32_t i = 0; i < numbers->count; i++) {
        if (numbers->item[i] == number)
            return true;
    }
    /* A full list has dropped lower numbers. A number below all numbers of the list may be one of
     * them, so the answer is true. */
    return numbers->count == LIMIT_BLACKLIST_REMEMBERED && number < numbers->item[0];
}

/* Returns how many numbers of the list are `least` or higher. */
uint32_t numbers_count_from(const struct numbers *numbers, int64_t least)
{
    uint32_t below = 0;

    while (below < numbers->count && numbers->item[below] < least)
        below++;
    return numbers->count - below;
}

/* True: the list is not too long, and its numbers are at least 0 and do not fall. */
bool numbers_are_valid(const struct numbers *numbers)
{
    if (numbers->count > LIMIT_BLACKLIST_REMEMBERED)
        return false;
    for (uint32_t i = 0; i < numbers->count; i++) {
        if (numbers->item[i] < (i > 0 ? numbers->item[i - 1] : 0))
            return false;
    }
    return true;
}

/* Writes the numbers with commas between them, "3,7,12"; numbers_parse reads them back. Returns
 * `text`. */
const char *numbers_format(const struct numbers *numbers, char text[NUMBERS_TEXT_MAX])
{
    size_t used = 0;

    ASSERT(numbers_are_valid(numbers));
    text[0] = '\0';
    for (uint32_t i = 0; i < numbers->count; i++)
        used += (size_t)snprintf(text + used, NUMBERS_TEXT_MAX - used, "%s%" PRId64, i ? "," : "",
                                 numbers->item[i]);
    return text;
}

/* Reads "3,7,12". `what` is the name of the list for errors. An empty text is an empty list. */
int numbers_parse(struct span span, const char *what, struct numbers *ret_numbers,
                  struct hvd_err *err)
{
    struct numbers numbers = { .count = 0 };
    struct span part;

    if (span.length == 0)
        /* an empty list: with a pointer that is not NULL span_next would return one empty number */
        span.at = NULL;
    while (span_next(&span, ',', &part)) {
        uint64_t value;
        int rc = text_parse_u64(part, 0, INT64_MAX, what, &value, err);

        if (rc)
            return rc;
        if (numbers.count == LIMIT_BLACKLIST_REMEMBERED)
            return err_set(err, HVD_E_LIMIT, "%s: there are more than %d numbers", what,
                           LIMIT_BLACKLIST_REMEMBERED);
        numbers.item[numbers.count++] = (int64_t)value;
    }
    if (!numbers_are_valid(&numbers))
        return err_set(err, HVD_E_INVAL, "%s: the numbers are not in rising order", what);
    *ret_numbers = numbers;
    return 0;
}
