/*
 * opt_value.c: reads one value from text into its field, and writes it back. Called by opt_stage.c
 * and opt_show.c. The kind of the row gives the type of the field; a text that is refused leaves
 * the field unchanged.
 */
#include "base/opt_value.h"

#include "base/limits.h"
#include "base/mem.h"
#include "base/panic.h"
#include "base/text.h"
#include "base/time.h"
#include "base/vec.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Fills the error with the text of the code, and returns the code. */
int opt_value_fail(int code, struct hvd_err *err)
{
    return err_set(err, code, "%s", err_text(code));
}

/* Quotes a value, for an error about it. */
static const char *opt_shown(const char *text, char quoted[TEXT_QUOTE_MAX])
{
    return text_quote(text, strlen(text), quoted);
}

/* Reads true or false. */
static int read_flag(const char *text, bool *field, struct hvd_err *err)
{
    static const char *const words[] = { "false", "true", "no", "yes", "off", "on", "0", "1" };
    char quoted[TEXT_QUOTE_MAX];

    for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
        if (!strcmp(text, words[i])) {
            /* words with an odd index mean true */
            *field = i % 2;
            return 0;
        }
    }
    return err_set(err, HVD_E_INVAL, "%s: must be true or false", opt_shown(text, quoted));
}

static const char size_suffixes[] = "KMGT";

/* Reads a number of bytes, with or without a suffix: "64K", "64KiB". The bounds of the option are
 * checked. */
static int read_size(const struct opt *row, const char *text, uint64_t *field, struct hvd_err *err)
{
    struct span digits = { text, strlen(text) };
    size_t length = digits.length;
    const char *suffix = NULL;
    unsigned shift = 0;
    uint64_t most = row->max ? row->max : UINT64_MAX;
    char quoted[TEXT_QUOTE_MAX], bounds[OPT_BOUNDS_MAX];
    uint64_t number = 0;
    int rc;

    /* Cuts the suffix off; each suffix stands for a power of two. */
    if (length > 3 && !memcmp(text + length - 2, "iB", 2))
        length -= 2;
    if (length > 1)
        suffix = memchr(size_suffixes, text[length - 1], sizeof(size_suffixes) - 1);
    if (suffix) {
        digits.length = length - 1;
        shift = 10 * (unsigned)(suffix - size_suffixes + 1);
    }
    rc = text_parse_u64(digits, 0, UINT64_MAX, row->arg, &number, err);
    if (rc)
        return rc;
    if (number > most >> shift || number << shift < row->min)
        return err_set(err, HVD_E_LIMIT, "%s: must be %s", opt_shown(text, quoted),
                       opt_value_bounds(row, bounds));
    *field = number << shift;
    return 0;
}

/* Writes the shortest text that means the same size. */
static const char *size_format(uint64_t bytes, char text[TIME_TEXT_MAX])
{
    size_t count = 0;

    for (; bytes && !(bytes % 1024) && count < sizeof(size_suffixes) - 1; count++)
        bytes /= 1024;
    if (count)
        snprintf(text, TIME_TEXT_MAX, "%" PRIu64 "%c", bytes, size_suffixes[count - 1]);
    else
        snprintf(text, TIME_TEXT_MAX, "%" PRIu64, bytes);
    return text;
}

/* Returns the longest duration that the option takes; a row without `max` takes every duration. */
static int64_t max_us(const struct opt *row)
{
    return row->max ? (int64_t)row->max : LIMIT_DURATION_US;
}

/* Reads a time. "never" is allowed only for options with OPT_NEVER. */
static int read_duration(const struct opt *row, const char *text, int64_t *field,
                         struct hvd_err *err)
{
    char quoted[TEXT_QUOTE_MAX];
    char bounds[OPT_BOUNDS_MAX];
    int64_t us;
    int rc = time_parse(text, &us, err);

    if (rc)
        return rc;
    if (us == TIME_NEVER && !(row->flags & OPT_NEVER))
        return err_set(err, HVD_E_LIMIT, "%s: this time may not be \"never\"; write a duration",
                       opt_shown(text, quoted));
    if (us != TIME_NEVER && (us < (int64_t)row->min || us > max_us(row)))
        return err_set(err, HVD_E_LIMIT, "%s: must be %s", opt_shown(text, quoted),
                       opt_value_bounds(row, bounds));
    *field = us;
    return 0;
}

/* Reads two durations, the shorter one first. */
static int opt_read_range(const struct opt *row, const char *text, struct opt_range *field,
                          struct hvd_err *err)
{
    struct span high = span_trim((struct span){ text, strlen(text) });
    struct span low = { high.at, 0 };
    char words[2][TIME_TEXT_MAX];
    char quoted[TEXT_QUOTE_MAX];
    struct opt_range range = { 0 };
    int rc;

    /* Cuts the text into two words, at a blank or a comma. */
    while (low.length < high.length && !strchr(" \t,", high.at[low.length]))
        low.length++;
    high = span_trim((struct span){ high.at + low.length, high.length - low.length });
    if (high.length && high.at[0] == ',')
        high = span_trim((struct span){ high.at + 1, high.length - 1 });
    if (!low.length || !high.length || low.length >= TIME_TEXT_MAX || high.length >= TIME_TEXT_MAX)
        return err_set(err, HVD_E_INVAL, "%s: must be two durations, such as \"10s 10m\"",
                       opt_shown(text, quoted));
    snprintf(words[0], sizeof(words[0]), "%.*s", (int)low.length, low.at);
    snprintf(words[1], sizeof(words[1]), "%.*s", (int)high.length, high.at);
    rc = read_duration(row, words[0], &range.low_us, err);
    if (!rc)
        rc = read_duration(row, words[1], &range.high_us, err);
    if (rc)
        return rc;
    if (range.low_us > range.high_us)
        return err_set(err, HVD_E_INVAL,
                       "%s: the first duration must not be longer than the second",
                       opt_shown(text, quoted));
    *field = range;
    return 0;
}

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

/* Reads one of the words of the option; upper and lower case are equal. *field: its index. */
static int read_choice(const struct opt *row, const char *text, unsigned *field,
                       struct hvd_err *err)
{
    char quoted[TEXT_QUOTE_MAX];
    char bounds[OPT_BOUNDS_MAX];

    for (unsigned i = 0; row->choices[i]; i++) {
        const char *a = text;
        const char *b = row->choices[i];

        for (; *a && lower(*a) == lower(*b); a++)
            b++;
        if (*a == *b) {
            *field = i;
            return 0;
        }
    }
    return err_set(err, HVD_E_INVAL, "%s: must be one of %s", opt_shown(text, quoted),
                   opt_value_bounds(row, bounds));
}

/* Checks the length of a text option and copies the text. */
static int opt_copy_text(const struct opt *row, const char *text, char **ret_copy,
                         struct hvd_err *err)
{
    size_t length = strlen(text);
    char quoted[TEXT_QUOTE_MAX];
    char *copy;

    if (length > LIMIT_OPTION_TEXT_BYTES)
        return err_set(err, HVD_E_LIMIT, "%s: the value is longer than %d bytes; shorten it",
                       opt_shown(text, quoted), LIMIT_OPTION_TEXT_BYTES);
    if (length == 0 && row->min)
        return err_set(err, HVD_E_INVAL, "%s must not be empty", row->arg);
    copy = mem_strdup(text);
    if (!copy)
        return opt_value_fail(HVD_E_NOMEM, err);
    *ret_copy = copy;
    return 0;
}

/* Frees a list with its items, and leaves an empty one. */
static void empty_list(struct opt_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        mem_free(list->items[i]);
    VEC_RELEASE(list);
}

/* Appends one item to a list. An empty text empties the list instead, unless the option wants items
 * that are not empty (`min`). */
static int read_list_item(const struct opt *row, const char *text, struct opt_list *field,
                          struct hvd_err *err)
{
    char *copy = NULL;
    int rc;

    if (!*text && row->min == 0) {
        empty_list(field);
        return 0;
    }
    rc = VEC_RESERVE(field, 1, LIMIT_OPTION_ITEMS);
    if (rc == HVD_E_LIMIT)
        return err_set(err, rc, "the option is given more than %d times; give it fewer times",
                       LIMIT_OPTION_ITEMS);
    if (rc)
        return opt_value_fail(rc, err);
    rc = opt_copy_text(row, text, &copy, err);
    if (rc)
        return rc;
    field->items[field->count++] = copy;
    return 0;
}

/* Reads the text of a value into the field of an option, by the option's kind. The field is
 * unchanged after an error. */
int opt_value_read(const struct opt *row, const char *text, void *field, struct hvd_err *err)
{
    struct span span = { text, strlen(text) };
    char *copy = NULL;
    bool on = false;
    int rc;

    switch (row->kind) {
    case OPT_FLAG: return read_flag(text, field, err);
    case OPT_NUMBER:
        if (row->flags & OPT_UNLIMITED && !strcmp(text, "unlimited")) {
            *(uint64_t *)field = UINT64_MAX;
            return 0;
        }
        if (row->flags & OPT_SIZE)
            return read_size(row, text, field, err);
        return text_parse_u64(span, row->min, row->max ? row->max : UINT64_MAX, row->arg, field,
                              err);
    case OPT_DURATION: return read_duration(row, text, field, err);
    case OPT_RANGE: return opt_read_range(row, text, field, err);
    case OPT_TEXT:
        rc = opt_copy_text(row, text, &copy, err);
        if (!rc) {
            mem_free(*(char **)field);
            *(char **)field = copy;
        }
        return rc;
    case OPT_CHOICE: return read_choice(row, text, field, err);
    case OPT_LIST: return read_list_item(row, text, field, err);
    case OPT_ACCEPTED: return 0;
    case OPT_REFUSED: break;
    }
    /* A refused option is accepted if its value asks only for what the program does anyway. */
    if ((row->flags & (OPT_ON_HOLDS | OPT_OFF_HOLDS)) && !read_flag(text, &on, NULL) &&
        (row->flags & (on ? OPT_ON_HOLDS : OPT_OFF_HOLDS)))
        return 0;
    return err_set(err, HVD_E_UNSUPPORTED, "not supported here: %s", row->help);
}

/* Appends a value as text, in the form that opt_value_read takes. Texts and lists are written by
 * opt_show.c. */
int opt_value_write(const struct opt *row, const void *field, struct buf *out)
{
    char words[2][TIME_TEXT_MAX];

    switch (row->kind) {
    case OPT_FLAG: return buf_append_text(out, *(const bool *)field ? "true" : "false");
    case OPT_NUMBER:
        if (row->flags & OPT_UNLIMITED && *(const uint64_t *)field == UINT64_MAX)
            return buf_append_text(out, "unlimited");
        if (row->flags & OPT_SIZE)
            return buf_append_text(out, size_format(*(const uint64_t *)field, words[0]));
        return buf_printf(out, "%" PRIu64, *(const uint64_t *)field);
    case OPT_DURATION: return buf_append_text(out, time_format(*(const int64_t *)field, words[0]));
    case OPT_RANGE: {
        const struct opt_range *range = field;

        return buf_printf(out, "%s %s", time_format(range->low_us, words[0]),
                          time_format(range->high_us, words[1]));
    }
    case OPT_CHOICE: return buf_append_text(out, row->choices[*(const unsigned *)field]);
    default: PANIC("option \"%s\" has no plain text", row->name);
    }
}

/* Writes in words which values the option takes, for help and errors; "": any value. */
const char *opt_value_bounds(const struct opt *row, char text[OPT_BOUNDS_MAX])
{
    bool never = row->flags & OPT_NEVER;
    char words[2][TIME_TEXT_MAX];
    size_t used = 0;

    text[0] = '\0';
    switch (row->kind) {
    case OPT_NUMBER:
        if (row->flags & OPT_SIZE)
            snprintf(text, OPT_BOUNDS_MAX, "%s to %s%s", size_format(row->min, words[0]),
                     size_format(row->max, words[1]),
                     row->flags & OPT_UNLIMITED ? ", or unlimited" : "");
        else if (row->max)
            snprintf(text, OPT_BOUNDS_MAX, "%" PRIu64 " to %" PRIu64 "%s", row->min, row->max,
                     row->flags & OPT_UNLIMITED ? ", or unlimited" : "");
        else if (row->min)
            snprintf(text, OPT_BOUNDS_MAX, "%" PRIu64 " or more", row->min);
        break;
    case OPT_DURATION:
    case OPT_RANGE:
        if (row->min || row->max)
            snprintf(text, OPT_BOUNDS_MAX, "%s to %s%s", time_format((int64_t)row->min, words[0]),
                     time_format(max_us(row), words[1]), never ? ", or never" : "");
        else if (never)
            snprintf(text, OPT_BOUNDS_MAX, "a duration, or never");
        break;
    case OPT_CHOICE:
        for (size_t i = 0; row->choices[i] && used < OPT_BOUNDS_MAX; i++)
            used += (size_t)snprintf(text + used, OPT_BOUNDS_MAX - used, "%s%s", i ? ", " : "",
                                     row->choices[i]);
        break;
    default: break;
    }
    return text;
}

/* Returns the size in bytes of a field of that kind. */
static size_t field_bytes(enum opt_kind kind)
{
    static const size_t bytes[] = {
        [OPT_FLAG] = sizeof(bool),
        [OPT_NUMBER] = sizeof(uint64_t),
        [OPT_DURATION] = sizeof(int64_t),
        [OPT_RANGE] = sizeof(struct opt_range),
        [OPT_TEXT] = sizeof(char *),
        [OPT_CHOICE] = sizeof(unsigned),
        [OPT_LIST] = sizeof(struct opt_list),
        [OPT_REFUSED] = 0,
        [OPT_ACCEPTED] = 0,
    };

    return bytes[kind];
}

/* Sets a field to all zeroes, which stands for an unset value. Frees nothing. */
void opt_value_clear(const struct opt *row, void *field)
{
    memset(field, 0, field_bytes(row->kind));
}

/* Moves a value with its memory from one field to another; `from` is unset then. */
void opt_value_move(const struct opt *row, void *to, void *from)
{
    memcpy(to, from, field_bytes(row->kind));
    opt_value_clear(row, from);
}

/* Frees a value's memory and clears the field. */
void opt_value_release(const struct opt *row, void *field)
{
    if (row->kind == OPT_TEXT)
        mem_free(*(char **)field);
    if (row->kind == OPT_LIST)
        empty_list(field);
    opt_value_clear(row, field);
}
