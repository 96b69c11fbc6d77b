/*
 * bench_gpu: how a GPU and NCCL behave when a process dies, and the cost of that: the questions of
 * docs/gpu.md, asked of the machine that the program runs on. Without a GPU it says so, and exits
 * with 77.
 *
 *     bench_gpu [--json FILE] [--times N] [--ranks N] [--mib N] [QUESTION...]
 *
 * It needs the CUDA driver and NCCL, which are found at run time, and nothing else of this tree but
 * gpu/ and base/: bench/gpu/run builds it with a C compiler alone. bench_gpu_job measures hvd's own
 * commits and collectives on the device.
 *
 * With HVD_CUDA_LIBRARY and HVD_NCCL_LIBRARY it runs on the stand-in of tests/ as well. That shows
 * that it works; its figures then mean nothing, and it says so.
 */
#include "bench/gpu/questions.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SKIPPED 77

static const struct question {
    const char *name, *text;
    ask_fn *ask;
    bool nccl;
} questions[] = {
    {"hosts",   "several ranks on one device",                       ask_hosts,     true },
    { "plain",  "the same, none being a host of its own",            ask_duplicate, true },
    { "cost",   "what a new round costs, one member being stuck",    ask_cost,      true },
    { "killed", "SIGKILL of one: which others notice, and when",     ask_killed,    true },
    { "frozen", "SIGSTOP of one: does any other notice",             ask_frozen,    true },
    { "copies", "copies between device and host, and on the device", ask_copies,    false},
    { "busy",   "an abort while the user's stream holds a kernel",   ask_busy,      true },
    { "two",    "two communicators on a device",                     ask_two,       true },
};

static int usage(void)
{
    fprintf(stderr,
            "usage: bench_gpu [--json FILE] [--times N] [--ranks N] [--mib N] [QUESTION...]\n"
            "--times: repetitions (5). --ranks: at most so many (4). --mib: of the copies\n"
            "(1024). Questions, all if none is named:\n");
    for (size_t i = 0; i < ARRAY_SIZE(questions); i++)
        fprintf(stderr, "  %-8s %s\n", questions[i].name, questions[i].text);
    return 2;
}

struct words {
    const char *json;
    bool asked[ARRAY_SIZE(questions)], any;
};

static bool read_count(const char *text, uint32_t most, uint32_t *ret_count)
{
    char *end;
    unsigned long value = strtoul(text, &end, 10);

    if (end == text || *end || value == 0 || value > most)
        return false;
    *ret_count = (uint32_t)value;
    return true;
}

static bool read_question(const char *name, struct words *words)
{
    for (size_t i = 0; i < ARRAY_SIZE(questions); i++)
        if (!strcmp(questions[i].name, name))
            return words->asked[i] = words->any = true;
    return false;
}

static bool read_words(int argc, char **argv, struct options *options, struct words *words)
{
    for (int i = 1; i < argc; i++) {
        const char *value = argv[i + 1];
        bool good;

        if (argv[i][0] != '-') {
            if (!read_question(argv[i], words))
                return false;
            continue;
        }
        if (!value)
            return false;
        if (!strcmp(argv[i], "--json"))
            good = (words->json = value) != NULL;
        else if (!strcmp(argv[i], "--times"))
            good = read_count(value, 20, &options->times);
        else if (!strcmp(argv[i], "--ranks"))
            good = read_count(value, TEAM_MAX, &options->ranks_most);
        else
            good = !strcmp(argv[i], "--mib") && read_count(value, 65536, &options->mib);
        if (!good)
            return false;
        i++;
    }
    return true;
}

static const char *version_text(const struct team_found *found, char text[NCCL_VERSION_TEXT_MAX])
{
    if (found->nccl)
        nccl_version_text(found->nccl_version, text);
    else
        snprintf(text, NCCL_VERSION_TEXT_MAX, "none");
    return text;
}

static void show_found(const struct team_found *found)
{
    char version[NCCL_VERSION_TEXT_MAX];

    printf("%u x %s, CUDA driver %d.%d, NCCL %s\n", found->devices, found->device,
           found->cuda_version / 1000, found->cuda_version % 1000 / 10,
           version_text(found, version));
    if (!found->nccl)
        printf("without NCCL nothing but copies can be asked: %s\n", found->why);
    if (found->standin)
        printf("THE STAND-IN: there is no GPU here. It is shown that the questions can be asked;\n"
               "the figures mean nothing.\n");
}

static bool write_json(const char *path, struct team_page *page)
{
    const struct team_found *found = &page->found;
    char version[NCCL_VERSION_TEXT_MAX];
    FILE *file = fopen(path, "w");

    if (!file) {
        perror(path);
        return false;
    }
    fprintf(
        file,
        "{\"standin\": %s, \"device\": \"%s\", \"devices\": %u, \"cuda\": %d, \"nccl\": \"%s\",\n"
        " \"figures\": [\n",
        found->standin ? "true" : "false", found->device, found->devices, found->cuda_version,
        version_text(found, version));
    figures_json(&page->figures, file);
    fputs(" ]}\n", file);
    return fclose(file) == 0;
}

static void ask_all(struct team_page *page, const struct options *options,
                    const struct words *words)
{
    for (size_t i = 0; i < ARRAY_SIZE(questions); i++) {
        const struct question *question = &questions[i];
        struct team team = { .page = page,
                             .options = options,
                             .question = question->name,
                             .size = options->ranks_most < 3 ? 2 : 3 };
        int64_t start_us = now_us();

        if (words->any && !words->asked[i])
            continue;
        printf("\n%s: %s\n", question->name, question->text);
        if (question->nccl && !page->found.nccl) {
            printf("  left out: no NCCL\n");
            continue;
        }
        question->ask(&team);
        figures_table(&page->figures, question->name, stdout);
        printf("  (%.1f s)\n", (double)(now_us() - start_us) / 1e6);
    }
}

int main(int argc, char **argv)
{
    struct options options = { .times = 5, .ranks_most = 4, .mib = 1024 };
    struct words words = { .json = NULL };
    struct team_page *page;

    setvbuf(stdout, NULL, _IOLBF, 0);
    if (!read_words(argc, argv, &options, &words))
        return usage();
    page = team_page_create();
    team_look(page);
    if (!page->found.devices) {
        printf("skipped: no GPU: %s\n", page->found.why);
        return SKIPPED;
    }
    show_found(&page->found);
    if (page->found.standin) {
        options.times = 1;
        options.mib = 16;
    }
    ask_all(page, &options, &words);
    return words.json && !write_json(words.json, page) ? 1 : 0;
}
