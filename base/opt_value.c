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

int opt_value_fail(int code, struct hvd_err *err)
{
    return err_set(err, code, "%s", err_text(code));
}

static const char *shown(const char *text, char quoted[TEXT_QUOTE_MAX])
{
    return text_quote(text, strlen(text), quoted);
}

static int read_flag(const char *text, bool *field, struct hvd_err *err)
{
    static const char *const words[] = { "false", "true", "no", "yes", "off", "on", "0", "1" };
    char quoted[TEXT_QUOTE_MAX];

    for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
        if (!strcmp(text, words[i])) {
            *field = i % 2;
            return 0;
        }
    }
    return err_set(err, HVD_E_INVAL, "%s: must be true or false", shown(text, quoted));
}

static int64_t max_us(const struct opt *row)
{
    return row->max ? (int64_t)row->max : LIMIT_DURATION_US;
}

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
        return err_set(err, HVD_E_LIMIT, "%s: it has to end; write a duration",
                       shown(text, quoted));
    if (us != TIME_NEVER && (us < (int64_t)row->min || us > max_us(row)))
        return err_set(err, HVD_E_LIMIT, "%s: must be %s", shown(text, quoted),
                       opt_value_bounds(row, bounds));
    *field = us;
    return 0;
}

/* Cuts the first of two words off, at a blank or a comma. */
static struct span first_word(struct span *rest)
{
    struct span word = { rest->at, 0 };

    while (word.length < rest->length && !strchr(" \t,", rest->at[word.length]))
        word.length++;
    rest->at += word.length;
    rest->length -= word.length;
    *rest = span_trim(*rest);
    if (rest->length && rest->at[0] == ',')
        *rest = span_trim((struct span){ rest->at + 1, rest->length - 1 });
    return word;
}

static int read_range(const struct opt *row, const char *text, struct opt_range *field,
                      struct hvd_err *err)
{
    struct span high = span_trim((struct span){ text, strlen(text) });
    struct span low = first_word(&high);
    char words[2][TIME_TEXT_MAX];
    char quoted[TEXT_QUOTE_MAX];
    struct opt_range range = { 0 };
    int rc;

    if (!low.length || !high.length || low.length >= TIME_TEXT_MAX || high.length >= TIME_TEXT_MAX)
        return err_set(err, HVD_E_INVAL, "%s: must be two durations, such as \"10s 10m\"",
                       shown(text, quoted));
    snprintf(words[0], sizeof(words[0]), "%.*s", (int)low.length, low.at);
    snprintf(words[1], sizeof(words[1]), "%.*s", (int)high.length, high.at);
    rc = read_duration(row, words[0], &range.low_us, err);
    if (!rc)
        rc = read_duration(row, words[1], &range.high_us, err);
    if (rc)
        return rc;
    if (range.low_us > range.high_us)
        return err_set(err, HVD_E_INVAL, "%s: the first must not be longer than the second",
                       shown(text, quoted));
    *field = range;
    return 0;
}

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

static bool is_same_word(const char *a, const char *b)
{
    while (*a && lower(*a) == lower(*b)) {
        a++;
        b++;
    }
    return *a == *b;
}

static int read_choice(const struct opt *row, const char *text, unsigned *field,
                       struct hvd_err *err)
{
    char quoted[TEXT_QUOTE_MAX];
    char bounds[OPT_BOUNDS_MAX];

    for (unsigned i = 0; row->choices[i]; i++) {
        if (is_same_word(text, row->choices[i])) {
            *field = i;
            return 0;
        }
    }
    return err_set(err, HVD_E_INVAL, "%s: must be one of %s", shown(text, quoted),
                   opt_value_bounds(row, bounds));
}

static int copy_text(const struct opt *row, const char *text, char **ret_copy, struct hvd_err *err)
{
    size_t length = strlen(text);
    char quoted[TEXT_QUOTE_MAX];
    char *copy;

    if (length > LIMIT_OPTION_TEXT_BYTES)
        return err_set(err, HVD_E_LIMIT, "%s: longer than %d bytes", shown(text, quoted),
                       LIMIT_OPTION_TEXT_BYTES);
    if (length == 0 && row->min)
        return err_set(err, HVD_E_INVAL, "%s must not be empty", row->arg);
    copy = mem_strdup(text);
    if (!copy)
        return opt_value_fail(HVD_E_NOMEM, err);
    *ret_copy = copy;
    return 0;
}

static int read_text(const struct opt *row, const char *text, char **field, struct hvd_err *err)
{
    char *copy = NULL;
    int rc = copy_text(row, text, &copy, err);

    if (rc)
        return rc;
    mem_free(*field);
    *field = copy;
    return 0;
}

static void empty_list(struct opt_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        mem_free(list->items[i]);
    VEC_RELEASE(list);
}

static int read_item(const struct opt *row, const char *text, struct opt_list *field,
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
        return err_set(err, rc, "given more than %d times", LIMIT_OPTION_ITEMS);
    if (rc)
        return opt_value_fail(rc, err);
    rc = copy_text(row, text, &copy, err);
    if (rc)
        return rc;
    field->items[field->count++] = copy;
    return 0;
}

int opt_value_read(const struct opt *row, const char *text, void *field, struct hvd_err *err)
{
    struct span span = { text, strlen(text) };

    switch (row->kind) {
    case OPT_FLAG: return read_flag(text, field, err);
    case OPT_NUMBER:
        return text_parse_u64(span, row->min, row->max ? row->max : UINT64_MAX, row->arg, field,
                              err);
    case OPT_DURATION: return read_duration(row, text, field, err);
    case OPT_RANGE: return read_range(row, text, field, err);
    case OPT_TEXT: return read_text(row, text, field, err);
    case OPT_CHOICE: return read_choice(row, text, field, err);
    case OPT_LIST: return read_item(row, text, field, err);
    case OPT_REFUSED: break;
    }
    return err_set(err, HVD_E_UNSUPPORTED, "not supported here: %s", row->help);
}

int opt_value_write(const struct opt *row, const void *field, struct buf *out)
{
    char words[2][TIME_TEXT_MAX];

    switch (row->kind) {
    case OPT_FLAG: return buf_append_text(out, *(const bool *)field ? "true" : "false");
    case OPT_NUMBER: return buf_printf(out, "%" PRIu64, *(const uint64_t *)field);
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

static void number_bounds(const struct opt *row, char text[OPT_BOUNDS_MAX])
{
    if (row->max)
        snprintf(text, OPT_BOUNDS_MAX, "%" PRIu64 " to %" PRIu64, row->min, row->max);
    else if (row->min)
        snprintf(text, OPT_BOUNDS_MAX, "%" PRIu64 " or more", row->min);
}

static void duration_bounds(const struct opt *row, char text[OPT_BOUNDS_MAX])
{
    bool never = row->flags & OPT_NEVER;
    char words[2][TIME_TEXT_MAX];

    if (row->min || row->max)
        snprintf(text, OPT_BOUNDS_MAX, "%s to %s%s", time_format((int64_t)row->min, words[0]),
                 time_format(max_us(row), words[1]), never ? ", or never" : "");
    else if (never)
        snprintf(text, OPT_BOUNDS_MAX, "a duration, or never");
}

static void choice_bounds(const struct opt *row, char text[OPT_BOUNDS_MAX])
{
    size_t used = 0;

    for (size_t i = 0; row->choices[i] && used < OPT_BOUNDS_MAX; i++)
        used += (size_t)snprintf(text + used, OPT_BOUNDS_MAX - used, "%s%s", i ? ", " : "",
                                 row->choices[i]);
}

const char *opt_value_bounds(const struct opt *row, char text[OPT_BOUNDS_MAX])
{
    text[0] = '\0';
    switch (row->kind) {
    case OPT_NUMBER: number_bounds(row, text); break;
    case OPT_DURATION:
    case OPT_RANGE: duration_bounds(row, text); break;
    case OPT_CHOICE: choice_bounds(row, text); break;
    default: break;
    }
    return text;
}

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
    };

    return bytes[kind];
}

void opt_value_clear(const struct opt *row, void *field)
{
    memset(field, 0, field_bytes(row->kind));
}

void opt_value_move(const struct opt *row, void *to, void *from)
{
    memcpy(to, from, field_bytes(row->kind));
    opt_value_clear(row, from);
}

void opt_value_release(const struct opt *row, void *field)
{
    if (row->kind == OPT_TEXT)
        mem_free(*(char **)field);
    if (row->kind == OPT_LIST)
        empty_list(field);
    opt_value_clear(row, field);
}
