/*
 * opt_show.c: --help, --print-config, --list-options, and notes about the values that were given.
 * Called by the programs. Either the whole text is appended or no byte of it; refused options are
 * not shown.
 */
#include "base/opt_show.h"

#include "base/limits.h"
#include "base/opt_stage.h"
#include "base/opt_value.h"

#include <string.h>

#define HELP_WIDTH  80
#define HELP_COLUMN 30 /* column at which the help texts begin */
#define TEST_GROUP  "for tests only"

/* Returns the group under which --help shows the option. */
static const char *opt_show_group(const struct opt *row)
{
    return row->flags & OPT_TEST_ONLY ? TEST_GROUP : row->group;
}

/* true: the help shows the option in this group. A refused option is shown in none. */
static bool is_in_group(const struct opt *row, const char *group)
{
    return row->kind != OPT_REFUSED && !strcmp(opt_show_group(row), group);
}

/* Calls `visit` for each option of this group, in the order of the table, until a call fails. */
static int visit_group(const struct opt_set *set, const char *group, opt_show_fn *visit, void *arg)
{
    int rc = 0;

    for (size_t i = 0; !rc && i < set->count; i++) {
        if (is_in_group(&set->table[i], group))
            rc = visit(arg, &set->table[i]);
    }
    return rc;
}

/* Calls `visit` for each option, group by group: a group comes where the table first names it, the
 * options for tests come last. */
int opt_show_each(const struct opt_set *set, opt_show_fn *visit, void *arg)
{
    int rc = 0;

    for (size_t i = 0; !rc && i < set->count; i++) {
        const struct opt *row = &set->table[i];
        bool first = row->kind != OPT_REFUSED && !(row->flags & OPT_TEST_ONLY);

        for (size_t j = 0; first && j < i; j++)
            first = !is_in_group(&set->table[j], opt_show_group(row));
        if (first)
            rc = visit_group(set, opt_show_group(row), visit, arg);
    }
    return rc ? rc : visit_group(set, TEST_GROUP, visit, arg);
}

/* Appends a text, broken into lines of at most HELP_WIDTH columns. Each line begins at column
 * `indent`; the caller has filled the first line up to that column. A line break in the text is
 * kept. */
static int wrap(struct buf *out, const char *text, size_t indent)
{
    size_t column = indent;
    int rc = 0;

    while (!rc && *text) {
        size_t length = strcspn(text, " \n");
        bool fresh = column == indent;

        if (text[0] == '\n' || (length && !fresh && column + 1 + length > HELP_WIDTH)) {
            rc = buf_printf(out, "\n%*s", (int)indent, "");
            column = indent;
            fresh = true;
        }
        if (!rc && length) {
            rc = buf_printf(out, "%s%.*s", fresh ? "" : " ", (int)length, text);
            column += length + !fresh;
        }
        text += length;
        /* a line break right after a word is left for the next pass, which begins a new line */
        if (*text == ' ' || (*text == '\n' && !length))
            text++;
    }
    return rc ? rc : buf_append_text(out, "\n");
}

/* true: the help shows the option as --[no-]NAME. */
static bool has_opposite(const struct opt *row)
{
    return (row->kind == OPT_FLAG || (row->kind == OPT_ACCEPTED && !row->arg)) &&
           !(row->flags & OPT_ARGV_ONLY);
}

/* Returns the default value as the help shows it; "": the help shows none. */
static const char *preset_text(const struct opt *row)
{
    if (row->preset)
        return row->preset;
    return row->kind == OPT_FLAG && has_opposite(row) ? "false" : "";
}

struct help_writer {
    struct buf *out;
    const char *group; /* the group of the row that was shown last */
};

/* Appends the help of one option: a heading before the first one of a group, its names, then its
 * text at column HELP_COLUMN. */
static int help_show_row(void *arg, const struct opt *row)
{
    struct help_writer *helper = arg;
    const char *preset = preset_text(row);
    const char *dashes = has_opposite(row) ? "--[no-]" : "--";
    char bounds[OPT_BOUNDS_MAX];
    struct buf text;
    size_t start;
    size_t width;
    int rc = 0;

    buf_init(&text, LIMIT_CONFIG_LINE_BYTES);
    if (!helper->group || strcmp(helper->group, opt_show_group(row)) != 0)
        rc = buf_printf(helper->out, "\n%s:\n", opt_show_group(row));
    helper->group = opt_show_group(row);
    start = helper->out->length;
    /* Appends the names: "  -v, --[no-]verbose" or "      --min-np, --min-num-proc N". */
    if (!rc)
        rc = row->key ? buf_printf(helper->out, "  -%c, ", row->key)
                      : buf_append_text(helper->out, "      ");
    if (!rc)
        rc = buf_printf(helper->out, "%s%s%s%s%s%s%s", dashes, row->name, row->alias ? ", " : "",
                        row->alias ? dashes : "", row->alias ? row->alias : "", row->arg ? " " : "",
                        row->arg ? row->arg : "");
    width = helper->out->length - start;
    if (!rc && width + 2 > HELP_COLUMN) {
        rc = buf_append_text(helper->out, "\n");
        width = 0;
    }
    if (!rc)
        rc = buf_printf(helper->out, "%*s", (int)(HELP_COLUMN - width), "");
    /* Appends the help text, and in brackets the bounds and the default. */
    opt_value_bounds(row, bounds);
    if (!rc)
        rc = buf_append_text(&text, row->help);
    if (!rc && (bounds[0] || preset[0]))
        rc = buf_printf(&text, " (%s%s%s%s)", bounds, bounds[0] && preset[0] ? "; " : "",
                        preset[0] ? "default: " : "", preset);
    if (!rc)
        rc = wrap(helper->out, buf_text(&text), HELP_COLUMN);
    buf_release(&text);
    return rc;
}

/* Ends the building of a text: appends the text to out if rc is 0, and releases it. Returns rc or
 * the error of appending. */
static int hand_over(struct buf *text, int rc, struct buf *out)
{
    if (!rc)
        rc = buf_append(out, buf_text(text), text->length);
    buf_release(text);
    return rc;
}

/* Appends the text of --help. If memory or `out` is full, `out` is unchanged. */
int opt_show_help(const struct opt_set *set, const char *usage, const char *about, struct buf *out)
{
    struct buf text;
    struct help_writer helper = { .out = &text };
    int rc;

    buf_init(&text, out->max);
    rc = buf_printf(&text, "usage: %s\n\n", usage);
    if (!rc)
        rc = wrap(&text, about, 0 /* no indent */);
    if (!rc)
        rc = opt_show_each(set, help_show_row, &helper);
    return hand_over(&text, rc, out);
}

struct config_writer {
    const struct opt_set *set;
    struct buf *out;
    bool with_origins;
    const char *group; /* the group of the row that was shown last */
};

/* Appends a text as opt_config reads it: in quotes with escapes, unless it has plain characters
 * only. */
static int config_print_text(struct buf *out, const char *text)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                "_-+./:,=@%";
    bool clean = text_is_clean(text, strlen(text));
    int rc;

    if (*text && !text[strspn(text, plain)])
        return buf_append_text(out, text);
    rc = buf_append_text(out, "\"");
    for (; !rc && *text; text++) {
        if (*text == '"' || *text == '\\')
            rc = buf_printf(out, "\\%c", *text);
        else if (*text == '\n' || *text == '\t')
            rc = buf_append_text(out, *text == '\n' ? "\\n" : "\\t");
        else if ((*text >= 0 && *text < ' ') || *text == 0x7f || (*text < 0 && !clean))
            rc = buf_printf(out, "\\x%02x", (unsigned char)*text);
        else
            rc = buf_append(out, text, 1);
    }
    return rc ? rc : buf_append_text(out, "\"");
}

/* Appends a value, as a config file has it. The items of a list are separated by commas. */
static int show_value(struct buf *out, const struct opt *row, const void *field)
{
    const struct opt_list *list = field;
    int rc = 0;

    if (row->kind == OPT_ACCEPTED || row->kind == OPT_REFUSED)
        return 0;
    if (row->kind == OPT_TEXT)
        return config_print_text(out, *(char *const *)field);
    if (row->kind != OPT_LIST)
        return opt_value_write(row, field, out);
    for (size_t i = 0; !rc && i < list->count; i++) {
        rc = i ? buf_append_text(out, ", ") : 0;
        if (!rc)
            rc = config_print_text(out, list->items[i]);
    }
    return rc;
}

/* Returns the name of a source, for the output of --print-config and for notes. `where` names the
 * variable or the line of the file. */
static const char *source_text(enum opt_source source, const char *where)
{
    if (source == OPT_UNSET)
        return "unset";
    if (source == OPT_DEFAULT)
        return "default";
    return source == OPT_COMMAND_LINE ? "command line" : where;
}

/* Writes both values of an option that two sources have given: first the one that counts.
 * *ret_differ: a lower source has given another value. */
static int show_both(const struct opt_set *set, const struct opt *row, struct buf values[2],
                     bool *ret_differ)
{
    const struct opt_beaten *beaten = &set->origins[row - set->table].beaten;
    int rc = 0;

    *ret_differ = false;
    if (beaten->source == OPT_UNSET)
        return 0;
    rc = show_value(&values[0], row, (const char *)set->config + row->offset);
    if (!rc)
        rc = show_value(&values[1], row, &beaten->field);
    *ret_differ = !rc && strcmp(buf_text(&values[0]), buf_text(&values[1])) != 0;
    return rc;
}

/* Makes the two buffers of show_both. */
static void values_init(struct buf values[2])
{
    /* in quotes a byte of a value may take four (\xNN), so each value may be as long as a config
     * file */
    buf_init(&values[0], LIMIT_CONFIG_TEXT_BYTES);
    buf_init(&values[1], LIMIT_CONFIG_TEXT_BYTES);
}

static void values_release(struct buf values[2])
{
    buf_release(&values[0]);
    buf_release(&values[1]);
}

/* Ends a line of the config file, with a comment about the origin of the value if wanted. */
static int config_print_end(struct config_writer *printer, const struct opt *row)
{
    const struct opt_origin *origin = &printer->set->origins[row - printer->set->table];
    struct buf values[2];
    bool differ = false;
    int rc;

    if (!printer->with_origins)
        return buf_append_text(printer->out, "\n");
    values_init(values);
    rc = show_both(printer->set, row, values, &differ);
    values_release(values);
    if (!rc)
        rc = buf_printf(printer->out, " # %s", source_text(origin->source, origin->where));
    if (!rc && differ) /* a source of less weight (`beaten`) gives another value */
        rc = buf_printf(printer->out, ", not %s",
                        source_text(origin->beaten.source, origin->beaten.where));
    return rc ? rc : buf_append_text(printer->out, "\n");
}

/* Appends "NAME = VALUE" and the end of the line. `text` NULL: the value is taken from `field`. */
static int config_print_line(struct config_writer *printer, const struct opt *row, const char *text,
                             const void *field)
{
    int rc = buf_printf(printer->out, "%s = ", row->name);

    if (!rc)
        rc = text ? config_print_text(printer->out, text)
                  : opt_value_write(row, field, printer->out);
    return rc ? rc : config_print_end(printer, row);
}

/* Appends one option as config lines: a list gets one line for each item, an unset option a
 * commented line. An option that a config file may not have, or that changes nothing, is left
 * out. */
static int config_print_row(void *arg, const struct opt *row)
{
    struct config_writer *printer = arg;
    const void *field = (const char *)printer->set->config + row->offset;
    const char *group = opt_show_group(row);
    int rc = 0;

    if ((row->flags & OPT_ARGV_ONLY) || row->kind == OPT_ACCEPTED)
        return 0;
    if (!printer->group || strcmp(printer->group, group) != 0)
        rc = buf_printf(printer->out, "%s# %s\n", printer->group ? "\n" : "", group);
    printer->group = group;
    if (rc)
        return rc;
    if (opt_source(printer->set, row->name) == OPT_UNSET) {
        rc = buf_printf(printer->out, "# %s =", row->name);
        return rc ? rc : config_print_end(printer, row);
    }
    if (row->kind == OPT_LIST) {
        const struct opt_list *list = field;

        rc = list->count ? 0 : config_print_line(printer, row, "", NULL);
        for (size_t i = 0; !rc && i < list->count; i++)
            rc = config_print_line(printer, row, list->items[i], NULL);
        return rc;
    }
    return config_print_line(printer, row, row->kind == OPT_TEXT ? *(char *const *)field : NULL,
                             field);
}

/* Appends all options as a config file. `with_origins`: a comment says where each value comes
 * from. */
int opt_show_config(const struct opt_set *set, bool with_origins, struct buf *out)
{
    struct buf text;
    struct config_writer printer = { .set = set, .out = &text, .with_origins = with_origins };

    buf_init(&text, out->max);
    return hand_over(&text, opt_show_each(set, config_print_row, &printer), out);
}

struct note_writer {
    const struct opt_set *set;
    struct buf *out;
};

/* Appends a note if the operator should know something about this option: it changes nothing, or
 * two sources have given different values. */
static int note_row(void *arg, const struct opt *row)
{
    struct note_writer *writer = arg;
    const struct opt_origin *origin = &writer->set->origins[row - writer->set->table];
    const char *from = source_text(origin->source, origin->where);
    const char *other = source_text(origin->beaten.source, origin->beaten.where);
    const char *the = origin->source == OPT_COMMAND_LINE ? "the " : "";
    struct buf values[2];
    bool differ = false;
    int rc = 0;

    if (row->kind == OPT_ACCEPTED && origin->source > OPT_DEFAULT)
        return buf_printf(writer->out, "%s%s: changes nothing: %s\n", origin->where ? "" : "--",
                          origin->where ? origin->where : row->name, row->help);
    values_init(values);
    rc = show_both(writer->set, row, values, &differ);
    if (differ && (row->kind == OPT_LIST || (row->flags & OPT_SECRET)))
        rc = buf_printf(writer->out, "--%s: the value of %s%s counts, not that of %s\n", row->name,
                        the, from, other);
    else if (differ)
        rc = buf_printf(writer->out, "--%s: %s of %s%s counts, not %s of %s\n", row->name,
                        buf_text(&values[0]), the, from, buf_text(&values[1]), other);
    values_release(values);
    return rc;
}

/* Appends the notes about all options, one a line, for the operator. Many options have no note. */
int opt_show_notes(const struct opt_set *set, struct buf *out)
{
    struct buf text;
    struct note_writer writer = { .set = set, .out = &text };

    buf_init(&text, out->max);
    return hand_over(&text, opt_show_each(set, note_row, &writer), out);
}

/* Appends the line of one option for --list-options; `arg` is the buffer. */
static int name_row(void *arg, const struct opt *row)
{
    return buf_printf(arg, "%s\t%s\t%s\n", row->name, opt_show_group(row), preset_text(row));
}

/* Appends the lines of --list-options, from which a check of the docs learns all names of
 * options. */
int opt_show_names(const struct opt_set *set, struct buf *out)
{
    struct buf text;

    buf_init(&text, out->max);
    return hand_over(&text, opt_show_each(set, name_row, &text), out);
}
