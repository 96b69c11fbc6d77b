#include "blacklist/numbers.h"

#include "base/panic.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

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
    } else if (at > 0) {
        memmove(item, item + 1, (at - 1) * sizeof(*item));
        item[at - 1] = number;
    }
}

bool numbers_had(const struct numbers *numbers, int64_t number)
{
    for (uint32_t i = 0; i < numbers->count; i++) {
        if (numbers->item[i] == number)
            return true;
    }
    return numbers->count == LIMIT_BLACKLIST_REMEMBERED && number < numbers->item[0];
}

uint32_t numbers_count_from(const struct numbers *numbers, int64_t least)
{
    uint32_t below = 0;

    while (below < numbers->count && numbers->item[below] < least)
        below++;
    return numbers->count - below;
}

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

int numbers_parse(struct span span, const char *what, struct numbers *ret_numbers,
                  struct hvd_err *err)
{
    struct numbers numbers = { .count = 0 };
    struct span part;

    if (span.length == 0)
        span.at = NULL;
    while (span_next(&span, ',', &part)) {
        uint64_t value;
        int rc = text_parse_u64(part, 0, INT64_MAX, what, &value, err);

        if (rc)
            return rc;
        if (numbers.count == LIMIT_BLACKLIST_REMEMBERED)
            return err_set(err, HVD_E_LIMIT, "%s: more than %d numbers", what,
                           LIMIT_BLACKLIST_REMEMBERED);
        numbers.item[numbers.count++] = (int64_t)value;
    }
    if (!numbers_are_valid(&numbers))
        return err_set(err, HVD_E_INVAL, "%s: the numbers do not rise", what);
    *ret_numbers = numbers;
    return 0;
}
