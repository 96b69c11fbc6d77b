/*
 * time.c: durations and moments as text. Called by options, log and tables. The value is always
 * int64_t in microseconds; a text that is not a whole number of microseconds is refused.
 */
#include "base/time.h"

#include "base/limits.h"
#include "base/text.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* The units of a duration, the largest first: in a duration of several units ("1h30m") each unit
 * must be smaller than the one before it. */
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

#define SCALE_MAX 1000000 /* 10 to the power of six decimals */

struct amount {
    /* the part before the point; not exact when it is more than LIMIT_DURATION_US */
    int64_t whole;
    int64_t fraction; /* the decimals, in units of 1/scale */
    /* 10 to the power of the number of decimals; more than SCALE_MAX: too many decimals, and
     * fraction is 0 */
    int64_t scale;
};

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Reads digits and perhaps decimals. Returns the position after them; NULL: there are no digits. */
static const char *read_amount(const char *at, struct amount *ret_amount)
{
    struct amount amount = { .scale = 1 };

    if (!is_digit(*at))
        return NULL;
    for (; is_digit(*at); at++) {
        /* time_parse refuses a longer time, so beyond the limit `whole` need not be exact */
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

/* Parses a duration: "never", a number of seconds, or numbers with units, the largest unit first
 * ("1h30m"). */
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
    text_quote(text, strlen(text), quoted);
    do {
        struct amount amount;
        const char *after = read_amount(at, &amount);
        size_t length;
        int64_t us;
        bool bare;
        int unit;

        if (!after)
            goto malformed;
        bare = *after == '\0';
        unit = bare ? 3 : -1; /* a number without a unit at the end of the text counts seconds */
        length = strcspn(after, "0123456789.");
        for (size_t i = 0; !bare && unit < 0 && i < ARRAY_SIZE(units); i++)
            if (strlen(units[i].name) == length && !strncmp(units[i].name, after, length))
                unit = (int)i;
        after += length;
        if (unit <= smallest || (bare && at != text) || (amount.scale > 1 && *after))
            goto malformed;
        us = units[unit].us;
        if (amount.whole > LIMIT_DURATION_US / us)
            goto too_long;
        if (amount.scale > SCALE_MAX)
            return err_set(err, HVD_E_INVAL, "%s: more than six decimals; write a smaller unit",
                           quoted);
        if (amount.fraction * us % amount.scale != 0)
            return err_set(err, HVD_E_INVAL, "%s: finer than a microsecond; write fewer decimals",
                           quoted);
        us = amount.whole * us + amount.fraction * us / amount.scale;
        if (us > LIMIT_DURATION_US - total)
            goto too_long;
        total += us;
        smallest = unit;
        at = after;
    } while (*at);
    *ret_us = total;
    return 0;

malformed:
    return err_set(err, HVD_E_INVAL,
                   "%s: not a duration; write seconds or a unit: 90, 1.5s, 250ms, 10m, 1h30m",
                   quoted);

too_long:
    return err_set(err, HVD_E_LIMIT, "%s: longer than ten years; write \"never\" instead", quoted);
}

/* Writes value / 10^decimals with its unit, and without zeros at the end: 12500 with 3 decimals is
 * "12.5". */
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

/* Writes a duration in the form that time_parse takes. Returns `text`. */
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

/* Adds two times that are not negative; a sum that does not fit is TIME_NEVER. */
int64_t time_add(int64_t a_us, int64_t b_us)
{
    return a_us > TIME_NEVER - b_us ? TIME_NEVER : a_us + b_us;
}

/* Writes a moment (microseconds since 1970) as "2026-01-31T12:00:00.000Z". Computes the date
 * without gmtime_r, which reads the machine's time zone file. The calculation counts in eras of 400
 * years, and in years that begin in March, so that the leap day is the last day of a year. */
const char *time_stamp(int64_t wall_us, char text[TIME_STAMP_MAX])
{
    int64_t into_day_us = (wall_us % TIME_DAY + TIME_DAY) % TIME_DAY;
    /* days since 0000-03-01, rounded down */
    int64_t day = wall_us / TIME_DAY - (wall_us % TIME_DAY < 0) + 719468;
    int64_t era = (day >= 0 ? day : day - 146096) / 146097;
    int64_t of_era = day - era * 146097;
    int64_t year = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
    int64_t of_year = of_era - (365 * year + year / 4 - year / 100);
    int64_t month = (5 * of_year + 2) / 153; /* month in [0, 11]; 0 is March */

    snprintf(text, TIME_STAMP_MAX, "%04" PRId64 "-%02d-%02dT%02d:%02d:%02d.%03dZ",
             year + era * 400 + (month >= 10), (int)(month < 10 ? month + 3 : month - 9),
             (int)(of_year - (153 * month + 2) / 5 + 1), (int)(into_day_us / TIME_HOUR),
             (int)(into_day_us / TIME_MIN % 60), (int)(into_day_us / TIME_S % 60),
             (int)(into_day_us / TIME_MS % 1000));
    return text;
}

/* Writes a duration with three significant digits, for tables: "31.4ms", "1.52s". */
const char *time_brief(int64_t us, char text[TIME_TEXT_MAX])
{
    int64_t unit_us = 1;

    /* `unit_us` becomes the power of ten, at most a second, that leaves three digits of `us` */
    while (us != TIME_NEVER && us / unit_us >= 1000 && unit_us < TIME_S)
        unit_us *= 10;
    return time_format(us - us % unit_us, text);
}
