#include "base/limits.h"
#include "base/opt_stage.h"
#include "base/opt_value.h"

#include <stdio.h>
#include <string.h>

#define PLACE_MAX 4096 /* of "job.conf:3" */

struct reader {
    struct opt_stage stage;
    const char *path;
    size_t line;
    struct buf value;
    struct hvd_err *err;
};

static int hex_digit(char c)
{
    static const char digits[] = "0123456789abcdef";
    const char *found = strchr(digits, c | ' ');

    return found ? (int)(found - digits) : -1;
}

/* The byte that is meant after a backslash, and *text moved past it; or -1. Lines hold no NUL. */
static int read_escape(struct span *text)
{
    static const char names[] = "\"\\nt";
    static const char bytes[] = "\"\\\n\t";
    const char *found;
    size_t used = 1;
    int byte = -1;

    if (!text->length)
        return -1;
    found = strchr(names, text->at[0]);
    if (found) {
        byte = (unsigned char)bytes[found - names];
    } else if (text->at[0] == 'x' && text->length >= 3) {
        int high = hex_digit(text->at[1]);
        int low = hex_digit(text->at[2]);

        byte = high < 0 || low < 0 ? -1 : high * 16 + low;
        used = 3;
    }
    *text = (struct span){ text->at + used, text->length - used };
    return byte > 0 ? byte : -1; /* a NUL would end the value early */
}

/* What follows the value on its line. */
static bool is_comment(struct span rest)
{
    rest = span_trim(rest);
    return !rest.length || rest.at[0] == '#';
}

/* text begins after the opening quote. */
static int read_quoted(struct reader *reader, struct span text)
{
    char quoted[TEXT_QUOTE_MAX];
    int rc = 0;

    while (!rc && text.length && text.at[0] != '"') {
        char byte = text.at[0];

        text = (struct span){ text.at + 1, text.length - 1 };
        if (byte == '\\') {
            struct span escape = text;
            int escaped = read_escape(&text);

            if (escaped < 0)
                return err_set(reader->err, HVD_E_INVAL,
                               "%s: after a backslash come \\, \", n, t or x and two digits",
                               text_quote(escape.at, escape.length, quoted));
            byte = (char)escaped;
        }
        rc = buf_append(&reader->value, &byte, 1);
    }
    if (rc)
        return opt_value_fail(rc, reader->err);
    if (!text.length)
        return err_set(reader->err, HVD_E_INVAL, "the closing quote is missing");
    text = (struct span){ text.at + 1, text.length - 1 };
    if (!is_comment(text))
        return err_set(reader->err, HVD_E_INVAL, "%s: after the closing quote; begin it with #",
                       text_quote(text.at, text.length, quoted));
    return 0;
}

static int read_plain(struct reader *reader, struct span text)
{
    size_t length = 0;
    int rc;

    while (length < text.length &&
           !(text.at[length] == '#' && (!length || strchr(" \t", text.at[length - 1]))))
        length++;
    text = span_trim((struct span){ text.at, length });
    if (!text.length)
        return err_set(reader->err, HVD_E_INVAL, "no value; write \"\" for an empty one");
    rc = buf_append(&reader->value, text.at, text.length);
    return rc ? opt_value_fail(rc, reader->err) : 0;
}

static int refuse_name(struct reader *reader, struct span name)
{
    const char *nearest = opt_stage_nearest(reader->stage.set, name);
    char quoted[TEXT_QUOTE_MAX];

    text_quote(name.at, name.length, quoted);
    if (nearest)
        return err_set(reader->err, HVD_E_INVAL, "%s: unknown option; did you mean \"%s\"?", quoted,
                       nearest);
    return err_set(reader->err, HVD_E_INVAL, "%s: unknown option; see --help", quoted);
}

static int put_value(struct reader *reader, const struct opt *row)
{
    struct buf place;
    int rc;

    buf_init(&place, PLACE_MAX);
    rc = buf_printf(&place, "%s:%zu", reader->path, reader->line);
    if (rc)
        opt_value_fail(rc, reader->err);
    else
        rc = opt_stage_put(&reader->stage, row, buf_text(&reader->value), buf_text(&place),
                           reader->err);
    buf_release(&place);
    return rc;
}

static int read_assignment(struct reader *reader, struct span line)
{
    const char *equals = memchr(line.at, '=', line.length);
    char quoted[TEXT_QUOTE_MAX];
    const struct opt *row;
    struct span name;
    struct span text;
    int rc;

    if (!equals)
        return err_set(reader->err, HVD_E_INVAL, "%s: no \"=\"; write name = value",
                       text_quote(line.at, line.length, quoted));
    name = span_trim((struct span){ line.at, (size_t)(equals - line.at) });
    text = span_trim((struct span){ equals + 1, line.length - 1 - (size_t)(equals - line.at) });
    row = opt_stage_find(reader->stage.set, name);
    if (!row)
        return refuse_name(reader, name);
    buf_clear(&reader->value);
    if (text.length && text.at[0] == '"')
        rc = read_quoted(reader, (struct span){ text.at + 1, text.length - 1 });
    else
        rc = read_plain(reader, text);
    if (!rc)
        rc = put_value(reader, row);
    return rc ? err_prefix(reader->err, rc, "%s", row->name) : 0;
}

static int read_line(struct reader *reader, struct span line)
{
    char quoted[TEXT_QUOTE_MAX];

    if (line.length > LIMIT_CONFIG_LINE_BYTES)
        return err_set(reader->err, HVD_E_LIMIT, "longer than %d bytes", LIMIT_CONFIG_LINE_BYTES);
    line = span_trim(line);
    if (!text_is_clean(line.at, line.length))
        return err_set(reader->err, HVD_E_INVAL,
                       "%s: not UTF-8 text without control characters; write \\xNN in quotes",
                       text_quote(line.at, line.length, quoted));
    return is_comment(line) ? 0 : read_assignment(reader, line);
}

static int read_lines(struct reader *reader, struct span rest)
{
    struct span line;

    while (span_next(&rest, '\n', &line)) {
        int rc;

        reader->line++;
        rc = read_line(reader, line);
        if (rc)
            return err_prefix(reader->err, rc, "%s:%zu", reader->path, reader->line);
    }
    return 0;
}

/* How the path is shown in messages and comments, where foreign bytes do no harm then. */
static const char *show_path(const char *path, char quoted[TEXT_QUOTE_MAX])
{
    size_t length = strlen(path);

    if (length < PLACE_MAX / 2 && text_is_clean(path, length) && !strchr(path, '\n'))
        return path;
    return text_quote(path, length, quoted);
}

int opt_config(struct opt_set *set, const char *path, const char *text, size_t length,
               struct hvd_err *err)
{
    static const char mark[] = "\xef\xbb\xbf"; /* what some editors put before UTF-8 */
    char quoted[TEXT_QUOTE_MAX];
    struct reader reader = { .path = show_path(path, quoted), .err = err };
    struct span rest = { text, length };
    int rc;

    if (length > LIMIT_CONFIG_TEXT_BYTES)
        return err_set(err, HVD_E_LIMIT, "%s: longer than %d bytes", reader.path,
                       LIMIT_CONFIG_TEXT_BYTES);
    if (length >= strlen(mark) && !memcmp(text, mark, strlen(mark)))
        rest = (struct span){ text + strlen(mark), length - strlen(mark) };
    buf_init(&reader.value, LIMIT_CONFIG_LINE_BYTES);
    rc = opt_stage_init(&reader.stage, set, OPT_FILE, err);
    if (!rc)
        rc = read_lines(&reader, rest);
    if (!rc)
        opt_stage_commit(&reader.stage);
    opt_stage_release(&reader.stage);
    buf_release(&reader.value);
    return rc;
}
