#include "base/time.h"

#include "base/limits.h"
#include "base/text.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Largest first: a compound's units must fall. */
static const struct {
    const char *name;
    int64_t us;
} units[] = {
    {"d",   TIME_DAY },
    { "h",  TIME_HOUR},
    { "m",  TIME_MIN },
    { "s",  TIME_S   },
    { "ms", TIME_MS  },
    { "us", 1        },
};

#define SCALE_MAX 1000000 /* six decimals */

struct amount {
    int64_t whole;    /* past LIMIT_DURATION_US, no more than that is known of it */
    int64_t fraction; /* in units of 1/scale */
    int64_t scale;    /* past SCALE_MAX: too many decimals, and no fraction */
};

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Digits and perhaps decimals; NULL when there are none. */
static const char *read_amount(const char *at, struct amount *ret_amount)
{
    struct amount amount = { .scale = 1 };

    if (!is_digit(*at))
        return NULL;
    for (; is_digit(*at); at++) {
        if (amount.whole <= LIMIT_DURATION_US)
            amount.whole = amount.whole * 10 + (*at - '0');
    }
    if (*at == '.') {
        at++;
        if (!is_digit(*at))
            return NULL;
        for (; is_digit(*at); at++) {
            if (amount.scale > SCALE_MAX)
                continue;
            amount.fraction = amount.fraction * 10 + (*at - '0');
            amount.scale *= 10;
        }
    }
    *ret_amount = amount;
    return at;
}

/* The unit that starts here, or -1; a bare number at the end of the text counts seconds. */
static int read_unit(const char **at)
{
    size_t length = strcspn(*at, "0123456789.");

    if (**at == '\0')
        return 3;
    for (size_t i = 0; i < ARRAY_SIZE(units); i++) {
        if (strlen(units[i].name) == length && !strncmp(units[i].name, *at, length)) {
            *at += length;
            return (int)i;
        }
    }
    return -1;
}

/* Adds so many units to *total_us, or says why not; `text` is the whole duration. */
static int add_amount(const struct amount *amount, int64_t unit_us, const char *text,
                      int64_t *total_us, struct hvd_err *err)
{
    char quoted[TEXT_QUOTE_MAX];
    int64_t us;

    text_quote(text, strlen(text), quoted);
    if (amount->whole > LIMIT_DURATION_US / unit_us)
        goto too_long;
    if (amount->scale > SCALE_MAX)
        return err_set(err, HVD_E_INVAL, "%s: more than six decimals; write a smaller unit",
                       quoted);
    if (amount->fraction * unit_us % amount->scale != 0)
        return err_set(err, HVD_E_INVAL, "%s: finer than a microsecond; write fewer decimals",
                       quoted);
    us = amount->whole * unit_us + amount->fraction * unit_us / amount->scale;
    if (us > LIMIT_DURATION_US - *total_us)
        goto too_long;
    *total_us += us;
    return 0;

too_long:
    return err_set(err, HVD_E_LIMIT, "%s: longer than ten years; write \"never\" instead", quoted);
}

int time_parse(const char *text, int64_t *ret_us, struct hvd_err *err)
{
    char quoted[TEXT_QUOTE_MAX];
    const char *at = text;
    int64_t total = 0;
    int smallest = -1;

    if (!strcmp(text, "never")) {
        *ret_us = TIME_NEVER;
        return 0;
    }
    do {
        struct amount amount;
        const char *after = read_amount(at, &amount);
        bool bare;
        int unit;
        int rc;

        if (!after)
            goto malformed;
        bare = *after == '\0';
        unit = read_unit(&after);
        if (unit <= smallest || (bare && at != text) || (amount.scale > 1 && *after))
            goto malformed;
        rc = add_amount(&amount, units[unit].us, text, &total, err);
        if (rc)
            return rc;
        smallest = unit;
        at = after;
    } while (*at);
    *ret_us = total;
    return 0;

malformed:
    return err_set(err, HVD_E_INVAL,
                   "%s: not a duration; write seconds or a unit: 90, 1.5s, 250ms, 10m, 1h30m",
                   text_quote(text, strlen(text), quoted));
}

/* "12.5" without trailing zeros: value in units of 10^-decimals. */
static int format_decimal(char *out, size_t size, int64_t value, int decimals, const char *unit)
{
    int64_t scale = 1;

    for (int i = 0; i < decimals; i++)
        scale *= 10;
    if (value % scale == 0)
        return snprintf(out, size, "%" PRId64 "%s", value / scale, unit);
    while (value % 10 == 0) {
        value /= 10;
        scale /= 10;
        decimals--;
    }
    return snprintf(out, size, "%" PRId64 ".%0*" PRId64 "%s", value / scale, decimals,
                    value % scale, unit);
}

const char *time_format(int64_t us, char text[TIME_TEXT_MAX])
{
    size_t used = 0;

    if (us == TIME_NEVER) {
        snprintf(text, TIME_TEXT_MAX, "never");
        return text;
    }
    if (us < 0) {
        used = (size_t)snprintf(text, TIME_TEXT_MAX, "-");
        us = us == INT64_MIN ? INT64_MAX : -us;
    }
    if (us < TIME_MS && us > 0) {
        snprintf(text + used, TIME_TEXT_MAX - used, "%" PRId64 "us", us);
        return text;
    }
    if (us < TIME_S && us > 0) {
        format_decimal(text + used, TIME_TEXT_MAX - used, us, 3, "ms");
        return text;
    }
    for (size_t i = 0; i < 3; i++) {
        if (us >= units[i].us)
            used += (size_t)snprintf(text + used, TIME_TEXT_MAX - used, "%" PRId64 "%s",
                                     us / units[i].us, units[i].name);
        us %= units[i].us;
    }
    if (us > 0 || used == 0)
        format_decimal(text + used, TIME_TEXT_MAX - used, us, 6, "s");
    return text;
}

int64_t time_add(int64_t a_us, int64_t b_us)
{
    return a_us > TIME_NEVER - b_us ? TIME_NEVER : a_us + b_us;
}
