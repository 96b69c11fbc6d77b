/*
 * stamp.c: reads moments of foreign texts, for notices, manifests and events.log. Invariant: a text
 * is read whole or refused, and neither the time zone nor the locale of the process counts.
 */
#include "base/stamp.h"

#include "base/time.h"

#include <string.h>

/* Returns the number of days from 1970-01-01 to a date. Years are counted from March on, so that
 * the leap day is the last day of a year: (153 * month + 2) / 5 is the number of days before a
 * month (March is 0), and 719468 the number of days from 0000-03-01 to 1970-01-01. */
static int64_t stamp_days(int64_t year, int64_t month, int64_t day)
{
    int64_t from_march = month > 2 ? year : year - 1;
    int64_t of_year = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1;

    return from_march * 365 + from_march / 4 - from_march / 100 + from_march / 400 + of_year -
           719468;
}

/* Takes exactly `digits` digits off the text; false: there are fewer. */
static bool stamp_number(struct span *text, size_t digits, int64_t *ret_number)
{
    int64_t number = 0;

    if (text->length < digits)
        return false;
    for (size_t i = 0; i < digits; i++) {
        if (text->at[i] < '0' || text->at[i] > '9')
            return false;
        number = number * 10 + (text->at[i] - '0');
    }
    *text = (struct span){ text->at + digits, text->length - digits };
    *ret_number = number;
    return true;
}

/* Takes one byte off the text if it is one of these; false: it is none of them. */
static bool stamp_byte(struct span *text, const char *one_of)
{
    if (!text->length || !*text->at || !strchr(one_of, *text->at))
        return false;
    *text = (struct span){ text->at + 1, text->length - 1 };
    return true;
}

/* Takes "18:29:47" off the text, as microseconds. */
static bool stamp_clock(struct span *text, int64_t *ret_us)
{
    int64_t hour, minute, second;

    if (!stamp_number(text, 2, &hour) || !stamp_byte(text, ":") ||
        !stamp_number(text, 2, &minute) || !stamp_byte(text, ":") ||
        !stamp_number(text, 2, &second) || hour > 23 || minute > 59 || second > 60)
        return false;
    *ret_us = hour * TIME_HOUR + minute * TIME_MIN + second * TIME_S;
    return true;
}

/* Reads a moment like "2026-11-21T09:30:01.25+01:00"; the whole text must be of that form. */
bool stamp_read(struct span text, int64_t *ret_wall_us)
{
    int64_t year, month, day, of_day, hours = 0, minutes = 0, digit;
    int64_t unit_us = TIME_S;
    bool west;

    if (!stamp_number(&text, 4, &year) || !stamp_byte(&text, "-") ||
        !stamp_number(&text, 2, &month) || !stamp_byte(&text, "-") ||
        !stamp_number(&text, 2, &day) || !stamp_byte(&text, "T ") || !stamp_clock(&text, &of_day) ||
        month < 1 || month > 12 || day < 1 || day > 31)
        return false;
    if (stamp_byte(&text, "."))
        while (stamp_number(&text, 1, &digit)) {
            unit_us /= 10;
            of_day += digit * unit_us;
        }
    west = text.length && *text.at == '-'; /* the offset is negative: local time is behind UTC */
    if (!stamp_byte(&text, "Z") &&
        (!stamp_byte(&text, "+-") || !stamp_number(&text, 2, &hours) || !stamp_byte(&text, ":") ||
         !stamp_number(&text, 2, &minutes) || hours > 23 || minutes > 59))
        return false;
    of_day -= (west ? -1 : 1) * (hours * TIME_HOUR + minutes * TIME_MIN);
    *ret_wall_us = stamp_days(year, month, day) * TIME_DAY + of_day;
    return !text.length;
}

/* Reads a date of HTTP, "Mon, 19 Sep 2016 18:29:47 GMT". The day of the week is not checked. */
bool stamp_read_http(struct span text, int64_t *ret_wall_us)
{
    static const char months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
    int64_t day, month = 0, year, of_day;

    if (text.length < 5 || memcmp(text.at + 3, ", ", 2) != 0)
        return false;
    text = (struct span){ text.at + 5, text.length - 5 }; /* after the day of the week */
    if (!stamp_number(&text, 2, &day) || !stamp_byte(&text, " ") || text.length < 3)
        return false;
    for (size_t i = 0; i < 12 && !month; i++)
        if (!memcmp(text.at, months + 3 * i, 3))
            month = (int64_t)i + 1;
    text = (struct span){ text.at + 3, text.length - 3 };
    if (!month || day < 1 || day > 31 || !stamp_byte(&text, " ") ||
        !stamp_number(&text, 4, &year) || !stamp_byte(&text, " ") || !stamp_clock(&text, &of_day) ||
        !span_is(text, " GMT"))
        return false;
    *ret_wall_us = stamp_days(year, month, day) * TIME_DAY + of_day;
    return true;
}
