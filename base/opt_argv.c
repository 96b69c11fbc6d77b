/*
 * opt_argv.c: the command line as a source of options. Called by the programs. getopt_long_only
 * gives the usual rules (abbreviations, negation, "--"); the error texts are made here.
 */
#include "base/arena.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/opt_stage.h"

#include <getopt.h>
#include <stdio.h>
#include <string.h>

/*
 * getopt reports a long option as LONG_FIRST + 2 * row, plus 1 if it is negated; each such number
 * is above every short key. getopt returns '?' for every mistake, so argv_refuse_word finds out
 * which mistake it was and names it in full.
 */
#define LONG_FIRST    256
#define LONGS_PER_ROW 4 /* name and alias, and the negation of each */

typedef char negated_name[OPT_NAME_MAX + sizeof("no-")];

struct command_line {
    struct opt_stage stage;
    int argc;
    char *const *argv;
    char **words;         /* argv as getopt reads it; see argv_dashed */
    struct arena copies;  /* memory of its words that are not those of argv */
    struct option *longs; /* the table for getopt; ends in a row of zeroes */
    size_t long_count;
    negated_name *negated; /* memory of the names to which longs points */
    char *keys;            /* the short options, in the form that getopt wants */
    struct hvd_err *err;
};

/* true: the command line takes --no-NAME of this option, too. */
static bool is_negatable(const struct opt *row)
{
    return row->kind == OPT_REFUSED || (row->kind == OPT_ACCEPTED && !row->arg) ||
           (row->kind == OPT_FLAG && !(row->flags & OPT_ARGV_ONLY));
}

/* Returns whether an option takes a value, in the form that getopt_long wants. */
static int getopt_argument(const struct opt *row)
{
    if (row->kind == OPT_REFUSED)
        return optional_argument; /* a refused option gets its reason, with a value and without */
    return row->kind == OPT_FLAG || !row->arg ? no_argument : required_argument;
}

/* Adds a name to the table for getopt; for a flag also its negation. */
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

/* Returns the option for a code of getopt: for a long option the code of add_long, for a short
 * option its letter. NULL: the code is of no option. */
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

#define MEANINGS_SHOWN 5
#define MEANINGS_MAX   (MEANINGS_SHOWN * (OPT_NAME_MAX + sizeof("--no-, ")) + sizeof(", ..."))

/* Refuses a word for which getopt returned '?'. culprit is getopt's optopt: the code of an option
 * that takes no value, an unknown key, or 0 for an unknown or ambiguous name. */
static int argv_refuse_word(const struct command_line *line, const char *word, int culprit)
{
    const char *bare = word + strspn(word, "-");
    struct span name = { bare, strcspn(bare, "=") };
    struct span plain = name;
    bool negated = name.length > 3 && !strncmp(name.at, "no-", 3);
    char quoted[TEXT_QUOTE_MAX], meanings[MEANINGS_MAX];
    size_t found = 0, used = 0;
    const char *nearest;

    text_quote(word, strlen(word), quoted);
    if (culprit >= LONG_FIRST) {
        const struct opt *row = row_of(line, culprit);

        if (is_negatable(row))
            return err_set(line->err, HVD_E_INVAL, "%s: takes no value; write --%s or --no-%s",
                           quoted, row->name, row->name);
        return err_set(line->err, HVD_E_INVAL, "%s: takes no value; write --%s", quoted, row->name);
    }
    /* An ambiguous name: lists the options that begin with the name, as "--a, --b". */
    for (size_t i = 0; !culprit && name.length && i < line->long_count; i++) {
        if (strncmp(line->longs[i].name, name.at, name.length) != 0)
            continue;
        if (found < MEANINGS_SHOWN)
            used += (size_t)snprintf(meanings + used, MEANINGS_MAX - used, "%s--%s",
                                     found ? ", " : "", line->longs[i].name);
        else if (found == MEANINGS_SHOWN)
            snprintf(meanings + used, MEANINGS_MAX - used, ", ...");
        found++;
    }
    if (found > 1)
        return err_set(line->err, HVD_E_INVAL,
                       "%s: may mean %s; write the whole name of the option", quoted, meanings);
    /* An unknown option: proposes the nearest known name, negated if the word is negated. */
    if (negated)
        plain = (struct span){ name.at + 3, name.length - 3 };
    nearest = opt_stage_nearest(line->stage.set, plain);
    if (nearest && negated)
        negated = is_negatable(
            opt_stage_find(line->stage.set, (struct span){ nearest, strlen(nearest) }));
    if (nearest)
        return err_set(line->err, HVD_E_INVAL, "%s: unknown option; did you mean --%s%s?", quoted,
                       negated ? "no-" : "", nearest);
    if (culprit && name.length > 1)
        return err_set(line->err, HVD_E_INVAL, "%s: unknown option \"-%c\"; see --help", quoted,
                       culprit);
    return err_set(line->err, HVD_E_INVAL, "%s: unknown option; see --help", quoted);
}

/* Takes the option for which getopt returned `code` when it read `word`. ':': the value of an
 * option is missing; '?': the word is wrong in another way. An option without a value is a flag,
 * and means "true". */
static int argv_take_option(struct command_line *line, const char *word, int code)
{
    const struct opt *row = row_of(line, code == ':' ? optopt : code);
    bool is_negated = code >= LONG_FIRST && (code - LONG_FIRST) % 2;
    const char *text = is_negated ? "false" : optarg ? optarg : "true";
    struct buf both;
    int rc;

    if (code == '?')
        return argv_refuse_word(line, word, optopt);
    if (code == ':')
        return err_set(line->err, HVD_E_INVAL, "--%s: %s is missing; write --%s %s", row->name,
                       row->arg, row->name, row->arg);
    if ((row->kind == OPT_RANGE || (row->flags & OPT_TWO_WORDS)) &&
        !text[strcspn(text, row->kind == OPT_RANGE ? " \t," : " \t")]) {
        /* The second word of a range, or of an item of two words, is getopt's next word, because
         * the first word does not hold both. */
        if (optind >= line->argc) {
            rc = err_set(line->err, HVD_E_INVAL, "this option takes two values; write --%s %s",
                         row->name, row->arg);
        } else {
            buf_init(&both, (size_t)2 * LIMIT_OPTION_TEXT_BYTES);
            rc = buf_printf(&both, "%s %s", text, line->argv[optind]);
            if (rc)
                opt_value_fail(rc, line->err);
            else
                rc = opt_stage_put(&line->stage, row, buf_text(&both), NULL, line->err);
            optind++;
            buf_release(&both);
        }
    } else {
        rc = opt_stage_put(&line->stage, row, text, NULL, line->err);
    }
    return rc ? err_prefix(line->err, rc, "--%s%s", is_negated ? "no-" : "", row->name) : 0;
}

/* Returns the word as getopt is to read it: an option whose name is typed with underscores, as
 * torchrun has them, gets its dashes. A value that looks like that stays as it is, unless it is the
 * name of an option. NULL: no memory is left. */
static char *argv_dashed(struct command_line *line, char *word)
{
    size_t length = strcspn(word, "="), size = strlen(word) + 1;
    char *copy;

    if (strncmp(word, "--", 2) != 0 || !memchr(word, '_', length))
        return word;
    copy = arena_alloc(&line->copies, size);
    if (!copy)
        return NULL;
    memcpy(copy, word, size);
    for (size_t i = 0; i < length; i++)
        copy[i] = copy[i] == '_' ? '-' : copy[i];
    for (size_t i = 0; i < line->long_count; i++)
        if (strlen(line->longs[i].name) == length - 2 &&
            !memcmp(line->longs[i].name, copy + 2, length - 2))
            return copy;
    return word;
}

/* Reads the command line. *ret_rest: index of the first word that is no option. If a word is wrong,
 * no value is taken. */
int opt_argv(struct opt_set *set, int argc, char *const *argv, int *ret_rest, struct hvd_err *err)
{
    struct command_line line = { .argc = argc, .argv = argv, .err = err };
    size_t longs = set->count * LONGS_PER_ROW;
    int rc = opt_stage_init(&line.stage, set, OPT_COMMAND_LINE, err);

    arena_init(&line.copies, SIZE_MAX);
    /* Makes getopt's tables of long and short options from the option table. "+": stop at the first
     * word that is no option, even with POSIXLY_CORRECT unset. ":": report a missing value apart
     * from an unknown option. */
    if (!rc) {
        line.longs = mem_zalloc_array(longs + 1, sizeof(*line.longs));
        line.negated = mem_zalloc_array(longs, sizeof(*line.negated));
        line.keys = mem_zalloc(sizeof("+:") + set->count * strlen("k::"));
        line.words = mem_zalloc_array((size_t)argc + 1, sizeof(*line.words));
        if (line.longs && line.negated && line.keys && line.words) {
            memcpy(line.keys, "+:", sizeof("+:"));
        } else {
            rc = HVD_E_NOMEM;
            opt_value_fail(rc, err);
        }
    }
    for (size_t i = 0; !rc && i < set->count; i++) {
        const struct opt *row = &set->table[i];
        int argument = getopt_argument(row);

        add_long(&line, row->name, i);
        if (row->alias)
            add_long(&line, row->alias, i);
        if (row->key)
            snprintf(line.keys + strlen(line.keys), sizeof("k::"), "%c%s", row->key,
                     argument == required_argument   ? ":"
                     : argument == optional_argument ? "::"
                                                     : "");
    }
    for (int i = 0; !rc && i < argc; i++) {
        line.words[i] = argv_dashed(&line, argv[i]);
        if (!line.words[i]) {
            rc = HVD_E_NOMEM;
            opt_value_fail(rc, err);
        }
    }
    /* in glibc the value 0 makes getopt forget an earlier command line */
    optind = 0;
    opterr = 0;
    while (!rc) {
        /* index of the word that getopt reads now; a fresh getopt begins at 1 */
        int word = optind ? optind : 1;
        int code = getopt_long_only(argc, line.words, line.keys, line.longs, NULL);

        if (code == -1)
            break;
        rc = argv_take_option(&line, argv[word], code);
    }
    if (!rc) {
        opt_stage_commit(&line.stage);
        *ret_rest = optind;
    }
    arena_release(&line.copies);
    mem_free(line.words);
    mem_free(line.keys);
    mem_free(line.negated);
    mem_free(line.longs);
    opt_stage_release(&line.stage);
    return rc;
}
