#include "base/mem.h"
#include "base/opt_stage.h"
#include "base/opt_value.h"
#include "base/time.h"

#include <getopt.h>
#include <stdio.h>
#include <string.h>

/*
 * getopt reports a long option as LONG_FIRST + 2 * row + 1 if negated, which is above every key. It
 * says '?' for all that is wrong, so what is wrong is found out again here, to be told in full.
 */
#define LONG_FIRST    256
#define LONGS_PER_ROW 4 /* name and alias, each negated too */

typedef char negated_name[OPT_NAME_MAX + sizeof("no-")];

struct command_line {
    struct opt_stage stage;
    int argc;
    char *const *argv;
    struct option *longs; /* ends in a row of zeroes */
    size_t long_count;
    negated_name *negated; /* what longs points to */
    char *keys;            /* as getopt wants them */
    struct hvd_err *err;
};

static bool is_negatable(const struct opt *row)
{
    return row->kind == OPT_REFUSED || (row->kind == OPT_FLAG && !(row->flags & OPT_ARGV_ONLY));
}

static int getopt_argument(const struct opt *row)
{
    if (row->kind == OPT_REFUSED)
        return optional_argument; /* so that it is refused, whatever it used to take */
    return row->kind == OPT_FLAG ? no_argument : required_argument;
}

static void add_long(struct command_line *line, const char *name, size_t row)
{
    const struct opt *opt = &line->stage.set->table[row];
    int code = LONG_FIRST + 2 * (int)row;

    line->longs[line->long_count] = (struct option){ name, getopt_argument(opt), NULL, code };
    line->long_count++;
    if (is_negatable(opt)) {
        char *negated = line->negated[line->long_count];

        snprintf(negated, sizeof(negated_name), "no-%s", name);
        line->longs[line->long_count] = (struct option){ negated, no_argument, NULL, code + 1 };
        line->long_count++;
    }
}

static void add_key(struct command_line *line, const struct opt *row)
{
    static const char *const colons[] = {
        [no_argument] = "", [required_argument] = ":", [optional_argument] = "::"
    };
    size_t used = strlen(line->keys);

    snprintf(line->keys + used, sizeof("k::"), "%c%s", row->key, colons[getopt_argument(row)]);
}

static int describe_table(struct command_line *line)
{
    const struct opt_set *set = line->stage.set;
    size_t longs = set->count * LONGS_PER_ROW;

    line->longs = mem_zalloc_array(longs + 1, sizeof(*line->longs));
    line->negated = mem_zalloc_array(longs, sizeof(*line->negated));
    line->keys = mem_zalloc(sizeof("+:") + set->count * strlen("k::"));
    if (!line->longs || !line->negated || !line->keys)
        return opt_value_fail(HVD_E_NOMEM, line->err);
    /* "+": stop at the first word that is no option, whatever the environment says of POSIX; ":":
     * tell a missing value apart. */
    memcpy(line->keys, "+:", sizeof("+:"));
    for (size_t i = 0; i < set->count; i++) {
        add_long(line, set->table[i].name, i);
        if (set->table[i].alias)
            add_long(line, set->table[i].alias, i);
        if (set->table[i].key)
            add_key(line, &set->table[i]);
    }
    return 0;
}

static const struct opt *row_of(const struct command_line *line, int code)
{
    const struct opt_set *set = line->stage.set;

    if (code >= LONG_FIRST)
        return &set->table[(code - LONG_FIRST) / 2];
    for (size_t i = 0; i < set->count; i++) {
        if (set->table[i].key == code)
            return &set->table[i];
    }
    return NULL;
}

/* What the user called it, without dashes and value. */
static struct span name_in(const char *word)
{
    struct span name;

    name.at = word + strspn(word, "-");
    name.length = strcspn(name.at, "=");
    return name;
}

#define MEANINGS_SHOWN 5
#define MEANINGS_MAX   (MEANINGS_SHOWN * (OPT_NAME_MAX + sizeof("--no-, ")) + sizeof(", ..."))

/* The names that begin so, as "--a, --b"; how many there are. */
static size_t list_meanings(const struct command_line *line, struct span name,
                            char text[MEANINGS_MAX])
{
    size_t found = 0;
    size_t used = 0;

    for (size_t i = 0; name.length && i < line->long_count; i++) {
        if (strncmp(line->longs[i].name, name.at, name.length) != 0)
            continue;
        if (found < MEANINGS_SHOWN)
            used += (size_t)snprintf(text + used, MEANINGS_MAX - used, "%s--%s", found ? ", " : "",
                                     line->longs[i].name);
        else if (found == MEANINGS_SHOWN)
            snprintf(text + used, MEANINGS_MAX - used, ", ...");
        found++;
    }
    return found;
}

static int refuse_unknown(const struct command_line *line, const char *word, struct span name,
                          int key)
{
    struct span plain = name;
    char quoted[TEXT_QUOTE_MAX];
    bool negated = name.length > 3 && !strncmp(name.at, "no-", 3);
    const char *nearest;

    if (negated)
        plain = (struct span){ name.at + 3, name.length - 3 };
    nearest = opt_stage_nearest(line->stage.set, plain);
    if (nearest && negated)
        negated = is_negatable(
            opt_stage_find(line->stage.set, (struct span){ nearest, strlen(nearest) }));
    text_quote(word, strlen(word), quoted);
    if (nearest)
        return err_set(line->err, HVD_E_INVAL, "%s: unknown option; did you mean --%s%s?", quoted,
                       negated ? "no-" : "", nearest);
    if (key && name.length > 1)
        return err_set(line->err, HVD_E_INVAL, "%s: unknown option \"-%c\"; see --help", quoted,
                       key);
    return err_set(line->err, HVD_E_INVAL, "%s: unknown option; see --help", quoted);
}

static int refuse_value(const struct command_line *line, const char *word, const struct opt *row)
{
    char quoted[TEXT_QUOTE_MAX];

    text_quote(word, strlen(word), quoted);
    if (is_negatable(row))
        return err_set(line->err, HVD_E_INVAL, "%s: takes no value; write --%s or --no-%s", quoted,
                       row->name, row->name);
    return err_set(line->err, HVD_E_INVAL, "%s: takes no value; write --%s", quoted, row->name);
}

/* getopt said '?' to this word; culprit is its optopt: the code of an option that takes no value,
 * an unknown key, or 0 for an unknown or ambiguous name. */
static int refuse_word(const struct command_line *line, const char *word, int culprit)
{
    struct span name = name_in(word);
    char quoted[TEXT_QUOTE_MAX];
    char meanings[MEANINGS_MAX];

    if (culprit >= LONG_FIRST)
        return refuse_value(line, word, row_of(line, culprit));
    if (!culprit && list_meanings(line, name, meanings) > 1)
        return err_set(line->err, HVD_E_INVAL, "%s: may mean %s; write more of it",
                       text_quote(word, strlen(word), quoted), meanings);
    return refuse_unknown(line, word, name, culprit);
}

/* The second word of a range is getopt's next one, unless both stand in the first. */
static int put_range(struct command_line *line, const struct opt *row, const char *low)
{
    char both[2 * TIME_TEXT_MAX];
    int length;

    if (low[strcspn(low, " \t,")])
        return opt_stage_put(&line->stage, row, low, NULL, line->err);
    if (optind >= line->argc)
        return err_set(line->err, HVD_E_INVAL, "takes two values; write --%s %s", row->name,
                       row->arg);
    length = snprintf(both, sizeof(both), "%s %s", low, line->argv[optind]);
    optind++;
    /* What is too long to be right is refused for the word that is missing then. */
    return opt_stage_put(&line->stage, row, length < (int)sizeof(both) ? both : low, NULL,
                         line->err);
}

static int take_option(struct command_line *line, const char *word, int code)
{
    const struct opt *row = row_of(line, code == ':' ? optopt : code);
    int rc;

    if (code == '?')
        return refuse_word(line, word, optopt);
    if (code == ':')
        return err_set(line->err, HVD_E_INVAL, "--%s: %s is missing; write --%s %s", row->name,
                       row->arg, row->name, row->arg);
    if (row->kind == OPT_RANGE) {
        rc = put_range(line, row, optarg);
    } else {
        const char *text = optarg ? optarg : "true";

        if (code >= LONG_FIRST && (code - LONG_FIRST) % 2)
            text = "false";
        rc = opt_stage_put(&line->stage, row, text, NULL, line->err);
    }
    return rc ? err_prefix(line->err, rc, "--%s", row->name) : 0;
}

static int read_words(struct command_line *line, int *ret_rest)
{
    optind = 0; /* glibc: begin anew, so that nothing is left of an earlier command line */
    opterr = 0;
    for (;;) {
        int at = optind ? optind : 1;
        int code = getopt_long_only(line->argc, line->argv, line->keys, line->longs, NULL);
        int rc;

        if (code == -1)
            break;
        rc = take_option(line, line->argv[at], code);
        if (rc)
            return rc;
    }
    *ret_rest = optind;
    return 0;
}

int opt_argv(struct opt_set *set, int argc, char *const *argv, int *ret_rest, struct hvd_err *err)
{
    struct command_line line = { .argc = argc, .argv = argv, .err = err };
    int rest = 0;
    int rc = opt_stage_init(&line.stage, set, OPT_COMMAND_LINE, err);

    if (!rc)
        rc = describe_table(&line);
    if (!rc)
        rc = read_words(&line, &rest);
    if (!rc) {
        opt_stage_commit(&line.stage);
        *ret_rest = rest;
    }
    mem_free(line.keys);
    mem_free(line.negated);
    mem_free(line.longs);
    opt_stage_release(&line.stage);
    return rc;
}
