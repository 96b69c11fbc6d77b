/*
 * fuzz_horovod.c: what was written for Horovod or mpirun. The first byte says how the rest is read:
 * 'v': variables, each ended by a NUL; 'm': parameters of -mca, each ended by a NUL; anything else:
 * a YAML file.
 *
 * Input that is refused leaves every option as it was, and the error says where. The values of
 * input that is taken can be printed, and the print is read back.
 */
#include "base/limits.h"
#include "base/mem.h"
#include "base/opt_show.h"
#include "base/panic.h"
#include "driver/horovod/mpirun.h"
#include "driver/horovod/variables.h"
#include "driver/horovod/yaml.h"
#include "driver/options.h"

#include <string.h>

#define TEXTS_MAX 96

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct program {
    struct driver_options options;
    struct hvd_err err;
    struct buf unused;
};

/* Copies the texts into separate blocks, so that the sanitizer sees a read past the end of one. */
static size_t split(char **texts, struct span all)
{
    struct span text;
    size_t count = 0;

    while (count < TEXTS_MAX && span_next(&all, '\0', &text))
        texts[count++] = mem_strndup(text.at, text.length);
    texts[count] = NULL;
    return count;
}

static int read_input(struct program *program, char kind, struct span text)
{
    struct opt_set *set = &program->options.set;
    char *texts[TEXTS_MAX + 1];
    struct opt_list mca = { .items = texts };
    struct mpirun_words words = { .mca = &mca };
    char *copy;
    int rc;

    if (kind != 'v' && kind != 'm') {
        copy = mem_alloc(text.length + 1);
        ASSERT(copy);
        memcpy(copy, text.at, text.length);
        (void)horovod_yaml_is((struct span){ copy, text.length });
        rc = horovod_yaml(set, "fuzz.yaml", (struct span){ copy, text.length }, &program->unused,
                          &program->err);
        ASSERT(!rc || !strncmp(program->err.text, "fuzz.yaml:", strlen("fuzz.yaml:")));
        mem_free(copy);
        return rc;
    }
    mca.count = split(texts, text);
    rc = kind == 'v' ? horovod_variables(set, texts, &program->unused, &program->err)
                     : horovod_mpirun(set, &words, &program->err);
    ASSERT(!rc || kind == 'm' || !strncmp(program->err.text, "HOROVOD_", strlen("HOROVOD_")));
    for (size_t i = 0; i < mca.count; i++)
        mem_free(texts[i]);
    return rc;
}

static void print(const struct program *program, bool with_origins, struct buf *out)
{
    buf_init(out, LIMIT_CONFIG_TEXT_BYTES);
    ASSERT(!opt_show_config(&program->options.set, with_origins, out));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct program program = { .err.code = 0 };
    struct program again = { .err.code = 0 };
    struct buf before;
    struct buf after;
    struct buf second;
    int rc;

    if (size == 0)
        return 0;
    buf_init(&program.unused, LIMIT_UNUSED_TEXT_BYTES);
    ASSERT(!options_init(&program.options) && !options_init(&again.options));
    print(&program, true, &before);
    rc = read_input(&program, (char)data[0], (struct span){ (const char *)data + 1, size - 1 });
    ASSERT(!rc == !program.err.text[0]);
    print(&program, true, &after);
    if (rc)
        ASSERT(!strcmp(buf_text(&before), buf_text(&after)));
    if (opt_config(&again.options.set, "again", buf_text(&after), after.length, &again.err))
        PANIC("%s", again.err.text);
    buf_release(&after);
    print(&program, false, &after);
    print(&again, false, &second);
    ASSERT(!strcmp(buf_text(&after), buf_text(&second)));
    buf_clear(&second);
    ASSERT(!opt_show_notes(&program.options.set, &second));
    buf_release(&before);
    buf_release(&after);
    buf_release(&second);
    buf_release(&program.unused);
    options_release(&program.options);
    options_release(&again.options);
    return 0;
}
