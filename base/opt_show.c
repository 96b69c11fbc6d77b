#include "base/opt_show.h"

#include "base/limits.h"
#include "base/opt_stage.h"
#include "base/opt_value.h"

#include <string.h>

#define HELP_WIDTH  80
#define HELP_COLUMN 30 /* where the texts begin */
#define TEST_GROUP  "for tests only"

const char *opt_show_group(const struct opt *row)
{
    return row->flags & OPT_TEST_ONLY ? TEST_GROUP : row->group;
}

static bool is_in_group(const struct opt *row, const char *group)
{
    return row->kind != OPT_REFUSED && !strcmp(opt_show_group(row), group);
}

static bool is_first_of_group(const struct opt_set *set, const struct opt *row)
{
    if (row->kind == OPT_REFUSED)
        return false;
    for (const struct opt *before = set->table; before < row; before++) {
        if (is_in_group(before, opt_show_group(row)))
            return false;
    }
    return true;
}

static int visit_group(const struct opt_set *set, const char *group, opt_show_fn *visit, void *arg)
{
    int rc = 0;

    for (size_t i = 0; !rc && i < set->count; i++) {
        if (is_in_group(&set->table[i], group))
            rc = visit(arg, &set->table[i]);
    }
    return rc;
}

int opt_show_each(const struct opt_set *set, opt_show_fn *visit, void *arg)
{
    int rc = 0;

    for (size_t i = 0; !rc && i < set->count; i++) {
        const struct opt *row = &set->table[i];

        if (!(row->flags & OPT_TEST_ONLY) && is_first_of_group(set, row))
            rc = visit_group(set, opt_show_group(row), visit, arg);
    }
    return rc ? rc : visit_group(set, TEST_GROUP, visit, arg);
}

static int begin_line(struct buf *out, size_t indent)
{
    return buf_printf(out, "\n%*s", (int)indent, "");
}

/* Words up to HELP_WIDTH, then a new line that begins at indent, which is where the first begins
 * too. A line break in the text is kept. */
static int wrap(struct buf *out, const char *text, size_t indent)
{
    size_t column = indent;
    int rc = 0;

    while (!rc && *text) {
        size_t length = strcspn(text, " \n");
        bool fresh = column == indent;

        if (text[0] == '\n' || (length && !fresh && column + 1 + length > HELP_WIDTH)) {
            rc = begin_line(out, indent);
            column = indent;
            fresh = true;
        }
        if (!rc && length) {
            rc = buf_printf(out, "%s%.*s", fresh ? "" : " ", (int)length, text);
            column += length + !fresh;
        }
        text += length;
        if (*text == ' ' || (*text == '\n' && !length))
            text++;
    }
    return rc ? rc : buf_append_text(out, "\n");
}

static bool has_opposite(const struct opt *row)
{
    return row->kind == OPT_FLAG && !(row->flags & OPT_ARGV_ONLY);
}

/* "  -v, --[no-]verbose" or "      --min-np, --min-num-proc N" */
static int show_names(struct buf *out, const struct opt *row)
{
    const char *dashes = has_opposite(row) ? "--[no-]" : "--";
    int rc = row->key ? buf_printf(out, "  -%c, ", row->key) : buf_append_text(out, "      ");

    if (!rc)
        rc = buf_printf(out, "%s%s", dashes, row->name);
    if (!rc && row->alias)
        rc = buf_printf(out, ", %s%s", dashes, row->alias);
    if (!rc && row->arg)
        rc = buf_printf(out, " %s", row->arg);
    return rc;
}

static const char *preset_text(const struct opt *row)
{
    if (row->preset)
        return row->preset;
    return has_opposite(row) ? "false" : "";
}

/* The help text, and in brackets what may be given and what holds if nothing is. */
static int describe(struct buf *text, const struct opt *row)
{
    const char *preset = preset_text(row);
    char bounds[OPT_BOUNDS_MAX];
    int rc = buf_append_text(text, row->help);

    opt_value_bounds(row, bounds);
    if (!rc && (bounds[0] || preset[0]))
        rc = buf_printf(text, " (%s%s%s%s)", bounds, bounds[0] && preset[0] ? "; " : "",
                        preset[0] ? "default: " : "", preset);
    return rc;
}

struct helper {
    struct buf *out;
    const char *group; /* of the row before */
};

static int show_row(void *arg, const struct opt *row)
{
    struct helper *helper = arg;
    struct buf text;
    size_t start;
    size_t width;
    int rc = 0;

    buf_init(&text, LIMIT_CONFIG_LINE_BYTES);
    if (!helper->group || strcmp(helper->group, opt_show_group(row)) != 0)
        rc = buf_printf(helper->out, "\n%s:\n", opt_show_group(row));
    helper->group = opt_show_group(row);
    start = helper->out->length;
    if (!rc)
        rc = show_names(helper->out, row);
    width = helper->out->length - start;
    if (!rc && width + 2 > HELP_COLUMN) {
        rc = buf_append_text(helper->out, "\n");
        width = 0;
    }
    if (!rc)
        rc = buf_printf(helper->out, "%*s", (int)(HELP_COLUMN - width), "");
    if (!rc)
        rc = describe(&text, row);
    if (!rc)
        rc = wrap(helper->out, buf_text(&text), HELP_COLUMN);
    buf_release(&text);
    return rc;
}

/* Appends to out what was put together in text, all or nothing, and releases text. */
static int hand_over(struct buf *text, int rc, struct buf *out)
{
    if (!rc)
        rc = buf_append(out, buf_text(text), text->length);
    buf_release(text);
    return rc;
}

int opt_show_help(const struct opt_set *set, const char *usage, const char *about, struct buf *out)
{
    struct buf text;
    struct helper helper = { .out = &text };
    int rc;

    buf_init(&text, out->max);
    rc = buf_printf(&text, "usage: %s\n\n", usage);
    if (!rc)
        rc = wrap(&text, about, 0);
    if (!rc)
        rc = opt_show_each(set, show_row, &helper);
    return hand_over(&text, rc, out);
}

struct printer {
    const struct opt_set *set;
    struct buf *out;
    bool with_origins;
    const char *group; /* of the row before */
};

static const char *origin_text(const struct opt_origin *origin)
{
    switch (origin->source) {
    case OPT_UNSET: return "unset";
    case OPT_DEFAULT: return "default";
    case OPT_COMMAND_LINE: return "command line";
    default: return origin->where;
    }
}

static int print_byte(struct buf *out, char byte, bool clean)
{
    if (byte == '"' || byte == '\\')
        return buf_printf(out, "\\%c", byte);
    if (byte == '\n' || byte == '\t')
        return buf_append_text(out, byte == '\n' ? "\\n" : "\\t");
    if ((byte >= 0 && byte < ' ') || byte == 0x7f || (byte < 0 && !clean))
        return buf_printf(out, "\\x%02x", (unsigned char)byte);
    return buf_append(out, &byte, 1);
}

static int print_text(struct buf *out, const char *text)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                "_-+./:,=@%";
    bool clean = text_is_clean(text, strlen(text));
    int rc;

    if (*text && !text[strspn(text, plain)])
        return buf_append_text(out, text);
    rc = buf_append_text(out, "\"");
    for (; !rc && *text; text++)
        rc = print_byte(out, *text, clean);
    return rc ? rc : buf_append_text(out, "\"");
}

static int print_end(struct printer *printer, const struct opt *row)
{
    if (!printer->with_origins)
        return buf_append_text(printer->out, "\n");
    return buf_printf(printer->out, " # %s\n",
                      origin_text(&printer->set->origins[row - printer->set->table]));
}

static int print_line(struct printer *printer, const struct opt *row, const char *text,
                      const void *field)
{
    int rc = buf_printf(printer->out, "%s = ", row->name);

    if (!rc)
        rc = text ? print_text(printer->out, text) : opt_value_write(row, field, printer->out);
    return rc ? rc : print_end(printer, row);
}

static int print_list(struct printer *printer, const struct opt *row, const struct opt_list *list)
{
    int rc = list->count ? 0 : print_line(printer, row, "", NULL);

    for (size_t i = 0; !rc && i < list->count; i++)
        rc = print_line(printer, row, list->items[i], NULL);
    return rc;
}

static int print_row(void *arg, const struct opt *row)
{
    struct printer *printer = arg;
    const void *field = (const char *)printer->set->config + row->offset;
    const char *group = opt_show_group(row);
    int rc = 0;

    if (row->flags & OPT_ARGV_ONLY)
        return 0;
    if (!printer->group || strcmp(printer->group, group) != 0)
        rc = buf_printf(printer->out, "%s# %s\n", printer->group ? "\n" : "", group);
    printer->group = group;
    if (rc)
        return rc;
    if (opt_source(printer->set, row->name) == OPT_UNSET) {
        rc = buf_printf(printer->out, "# %s =", row->name);
        return rc ? rc : print_end(printer, row);
    }
    if (row->kind == OPT_LIST)
        return print_list(printer, row, field);
    return print_line(printer, row, row->kind == OPT_TEXT ? *(char *const *)field : NULL, field);
}

int opt_show_config(const struct opt_set *set, bool with_origins, struct buf *out)
{
    struct buf text;
    struct printer printer = { .set = set, .out = &text, .with_origins = with_origins };

    buf_init(&text, out->max);
    return hand_over(&text, opt_show_each(set, print_row, &printer), out);
}

static int name_row(void *arg, const struct opt *row)
{
    return buf_printf(arg, "%s\t%s\t%s\n", row->name, opt_show_group(row), preset_text(row));
}

int opt_show_names(const struct opt_set *set, struct buf *out)
{
    struct buf text;

    buf_init(&text, out->max);
    return hand_over(&text, opt_show_each(set, name_row, &text), out);
}
