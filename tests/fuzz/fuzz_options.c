/*
 * fuzz_options.c: options from outside the program. The first byte says how the rest is read: 0:
 * words of a command line; 1: a config file; 2: variables, each ended by a NUL; otherwise all
 * three, separated by 0x1e.
 *
 * With any input, the present values can be printed, and reading the print gives the same print.
 */
#include "base/limits.h"
#include "base/mem.h"
#include "base/panic.h"
#include "base/text.h"
#include "tests/lib/opt_sample.h"

#include <stdlib.h>
#include <string.h>

#define WORDS_MAX 64

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct program {
    struct sample config;
    struct opt_set set;
    struct hvd_err err;
};

static void start(struct program *program)
{
    *program = (struct program){ .err.code = 0 };
    if (opt_init(&program->set, sample_table, ARRAY_SIZE(sample_table), &program->config))
        abort();
}

/* Copies the words into separate blocks, so that the sanitizer sees a read past the end of a word.
 */
static int take_words(char **words, const char *first, struct span text)
{
    struct span word;
    int count = 0;

    if (first)
        words[count++] = mem_strdup(first);
    while (count < WORDS_MAX && span_next(&text, '\0', &word))
        words[count++] = mem_strndup(word.at, word.length);
    words[count] = NULL;
    return count;
}

static int read_part(struct program *program, unsigned how, struct span text)
{
    int rc;

    program->err.text[0] = '\0';
    if (how == 0) {
        char *words[WORDS_MAX + 1];
        int count = take_words(words, "fuzz", text);
        int rest = -1;

        rc = opt_argv(&program->set, count, words, &rest, &program->err);
        ASSERT(rc ? rest == -1 : rest >= 1 && rest <= count);
        for (int i = 0; i < count; i++)
            mem_free(words[i]);
    } else if (how == 1) {
        rc = opt_config(&program->set, "fuzz.conf", text.at, text.length, &program->err);
    } else {
        char *words[WORDS_MAX + 1];
        int count = take_words(words, NULL, text);

        rc = opt_env(&program->set, words, &program->err);
        for (int i = 0; i < count; i++)
            mem_free(words[i]);
    }
    ASSERT(!rc == !program->err.text[0]);
    return rc;
}

/* false: the print is larger than a config file may be. */
static bool print(const struct program *program, bool with_origins, struct buf *out)
{
    int rc;

    buf_init(out, LIMIT_CONFIG_TEXT_BYTES);
    rc = opt_show_config(&program->set, with_origins, out);
    ASSERT(!rc || rc == HVD_E_LIMIT);
    return !rc;
}

static void check_print_reads_back(const struct program *program, bool with_origins)
{
    struct program again;
    struct buf plain;
    struct buf text;
    struct buf second = { .data = NULL };

    bool fits = print(program, with_origins, &text);

    fits = print(program, false, &plain) && fits;
    start(&again);
    if (fits) {
        if (opt_config(&again.set, "again", buf_text(&text), text.length, &again.err))
            PANIC("%s", again.err.text);
        ASSERT(print(&again, false, &second));
        ASSERT(!strcmp(buf_text(&second), buf_text(&plain)));
    }
    buf_release(&second);
    buf_release(&plain);
    buf_release(&text);
    opt_release(&again.set);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct program program;
    struct span text = { (const char *)data + 1, size - 1 };
    struct span part;

    if (size == 0)
        return 0;
    start(&program);
    if (data[0] < 3) {
        (void)read_part(&program, data[0], text);
    } else {
        for (unsigned how = 0; span_next(&text, 0x1e, &part); how++)
            (void)read_part(&program, how % 3, part);
    }
    check_print_reads_back(&program, false);
    check_print_reads_back(&program, true);
    opt_release(&program.set);
    return 0;
}
