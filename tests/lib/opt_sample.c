/*
 * opt_sample.c: a table of options of every kind, with helpers that read it from words, variables
 * and a file, for the tests and the fuzzer of base/opt.
 */
#include "tests/lib/opt_sample.h"

#include "base/limits.h"
#include "base/panic.h"

#include <stdio.h>
#include <string.h>

#define WORDS_MAX 32

struct words {
    char text[512];
    char *at[WORDS_MAX + 1]; /* ends in NULL */
    int count;
};

static void split(struct words *words, const char *first, const char *text, char separator)
{
    char *rest = words->text;
    int length = snprintf(rest, sizeof(words->text), "%s%s", first, text);

    ASSERT(length < (int)sizeof(words->text));
    words->count = 0;
    while (rest && *words->text) {
        char *end = strchr(rest, separator);

        ASSERT(words->count < WORDS_MAX);
        words->at[words->count++] = rest;
        if (end)
            *end++ = '\0';
        rest = end;
    }
    words->at[words->count] = NULL;
}

int sample_init(struct sample_run *run)
{
    *run = (struct sample_run){ .rest = -1 };
    buf_init(&run->out, LIMIT_CONFIG_TEXT_BYTES);
    return opt_init(&run->set, sample_table, ARRAY_SIZE(sample_table), &run->config);
}

void sample_release(struct sample_run *run)
{
    buf_release(&run->out);
    opt_release(&run->set);
}

int sample_argv(struct sample_run *run, const char *words)
{
    struct words argv;

    split(&argv, *words ? "sample " : "sample", words, ' ');
    return opt_argv(&run->set, argv.count, argv.at, &run->rest, &run->err);
}

int sample_env(struct sample_run *run, const char *variables)
{
    struct words envp;

    split(&envp, "", variables, '|');
    return opt_env(&run->set, envp.at, &run->err);
}

int sample_config(struct sample_run *run, const char *text)
{
    return opt_config(&run->set, "job.conf", text, strlen(text), &run->err);
}
