/*
 * opt_config.c: a config file as a source of options, lines of "name = value". Called by programs
 * with --config-file. Either the whole file counts or no line of it; an error names file, line and
 * option.
 */
#include "base/hex.h"
#include "base/limits.h"
#include "base/opt_stage.h"

#include <stdio.h>
#include <string.h>

#define PLACE_MAX 4096 /* longest place, such as "job.conf:3", in bytes */

struct config_reader {
    struct opt_stage stage;
    const char *path;
    size_t line;
    struct buf value;
    struct hvd_err *err;
};

/* Returns the byte for the escape after a backslash, and moves *text past the escape; -1: it is no
 * valid escape. A line of a config file has no NUL, which strchr would find. */
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
    return byte > 0 ? byte : -1; /* \x00 is refused, because a NUL would end the value early */
}

/* true: the rest of the line, after the value, is a comment or empty. */
static bool is_comment(struct span rest)
{
    rest = span_trim(rest);
    return !rest.length || rest.at[0] == '#';
}

/* Reads a value in quotes; `text` begins after the opening quote. */
static int read_quoted(struct config_reader *reader, struct span text)
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
                               "%s: unknown escape; after a backslash write \\, \", n, t or xNN",
                               text_quote(escape.at, escape.length, quoted));
            byte = (char)escaped;
        }
        rc = buf_append(&reader->value, &byte, 1);
    }
    if (rc)
        return opt_value_fail(rc, reader->err);
    if (!text.length)
        return err_set(reader->err, HVD_E_INVAL, "the closing quote is missing; add it");
    text = (struct span){ text.at + 1, text.length - 1 };
    if (!is_comment(text))
        return err_set(reader->err, HVD_E_INVAL,
                       "%s: only a comment may follow the closing quote; begin it with #",
                       text_quote(text.at, text.length, quoted));
    return 0;
}

/* Reads one line "name = value" and stages the value. */
static int config_read_assignment(struct config_reader *reader, struct span line)
{
    const char *equals = memchr(line.at, '=', line.length);
    char quoted[TEXT_QUOTE_MAX];
    const struct opt *row;
    struct span name;
    struct span text;
    size_t length = 0;
    int rc;

    if (!equals)
        return err_set(reader->err, HVD_E_INVAL, "%s: no \"=\"; write name = value",
                       text_quote(line.at, line.length, quoted));
    name = span_trim((struct span){ line.at, (size_t)(equals - line.at) });
    text = span_trim((struct span){ equals + 1, line.length - 1 - (size_t)(equals - line.at) });
    row = opt_stage_find(reader->stage.set, name);
    if (!row) {
        const char *nearest = opt_stage_nearest(reader->stage.set, name);

        text_quote(name.at, name.length, quoted);
        if (nearest)
            return err_set(reader->err, HVD_E_INVAL, "%s: unknown option; did you mean \"%s\"?",
                           quoted, nearest);
        return err_set(reader->err, HVD_E_INVAL, "%s: unknown option; see --help", quoted);
    }
    buf_clear(&reader->value);
    if (text.length && text.at[0] == '"') {
        rc = read_quoted(reader, (struct span){ text.at + 1, text.length - 1 });
    } else {
        /* A value without quotes ends at a comment or at the end of the line. */
        while (length < text.length &&
               !(text.at[length] == '#' && (!length || strchr(" \t", text.at[length - 1]))))
            length++;
        text = span_trim((struct span){ text.at, length });
        rc = text.length ? buf_append(&reader->value, text.at, text.length) : 0;
        if (rc)
            opt_value_fail(rc, reader->err);
        else if (!text.length)
            rc = err_set(reader->err, HVD_E_INVAL, "no value; write \"\" for an empty one");
    }
    if (!rc) {
        struct buf place;

        buf_init(&place, PLACE_MAX);
        rc = buf_printf(&place, "%s:%zu", reader->path, reader->line);
        rc = rc ? opt_value_fail(rc, reader->err)
                : opt_stage_put(&reader->stage, row, buf_text(&reader->value), buf_text(&place),
                                reader->err);
        buf_release(&place);
    }
    return rc ? err_prefix(reader->err, rc, "%s", row->name) : 0;
}

/* Reads the text of a config file, line by line. `path` is for error texts only. If a line is
 * wrong, no value is taken. */
int opt_config(struct opt_set *set, const char *path, const char *text, size_t length,
               struct hvd_err *err)
{
    static const char mark[] =
        "\xef\xbb\xbf"; /* the byte order mark, which some editors put before UTF-8 */
    char quoted[TEXT_QUOTE_MAX], shown[TEXT_QUOTE_MAX];
    struct config_reader reader = { .path = path, .err = err };
    struct span rest = { text, length };
    struct span line;
    size_t path_length = strlen(path);
    int rc;

    /* The path is shown in error texts and comments, so a path with foreign bytes is quoted. */
    if (path_length >= PLACE_MAX / 2 || !text_is_clean(path, path_length) || strchr(path, '\n'))
        reader.path = text_quote(path, path_length, quoted);
    if (length > LIMIT_CONFIG_TEXT_BYTES)
        return err_set(err, HVD_E_LIMIT, "%s: the file is longer than %d bytes; shorten it",
                       reader.path, LIMIT_CONFIG_TEXT_BYTES);
    if (length >= strlen(mark) && !memcmp(text, mark, strlen(mark)))
        rest = (struct span){ text + strlen(mark), length - strlen(mark) };
    buf_init(&reader.value, LIMIT_CONFIG_LINE_BYTES);
    rc = opt_stage_init(&reader.stage, set, OPT_FILE, err);
    while (!rc && span_next(&rest, '\n', &line)) {
        reader.line++;
        if (line.length > LIMIT_CONFIG_LINE_BYTES) {
            rc = err_set(err, HVD_E_LIMIT, "the line is longer than %d bytes; shorten it",
                         LIMIT_CONFIG_LINE_BYTES);
        } else {
            line = span_trim(line);
            if (!text_is_clean(line.at, line.length))
                rc = err_set(err, HVD_E_INVAL,
                             "%s: not UTF-8 text without control characters; write \\xNN in quotes",
                             text_quote(line.at, line.length, shown));
            else if (!is_comment(line))
                rc = config_read_assignment(&reader, line);
        }
        if (rc)
            err_prefix(err, rc, "%s:%zu", reader.path, reader.line);
    }
    if (!rc)
        opt_stage_commit(&reader.stage);
    opt_stage_release(&reader.stage);
    buf_release(&reader.value);
    return rc;
}
