/*
 * story.c: the main program of every story_NAME: runs scripted worlds and compares what an operator
 * would read with the golden texts. Each run of a story is the same to the byte, so a difference is
 * always a change of the driver, an agent or a worker. The first line of a golden text is the
 * story's title and is not compared.
 */
#include "tests/stories/story.h"

#include "base/text.h"
#include "tests/lib/fault.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Runs of each story, unless the variable STORY_TORTURE_RUNS has another number. The failing
 * allocations are spread over all that a run makes. */
#define TORTURE_RUNS 40
#define GOLDEN_MAX   (4 * 1024 * 1024)

enum mode {
    MODE_RUN,
    MODE_ONLY,
    MODE_SHOW,
    MODE_UPDATE,
    MODE_TORTURE,
    MODE_LIST,
    MODE_HELP,
    MODE_COUNT
};

/* The names that the linker gives to both ends of the section with the list of stories. */
extern const struct story *const first_story[] __asm__("__start_stories");
extern const struct story *const end_of_stories[] __asm__("__stop_stories");

static const char *const mode_words[MODE_COUNT] = { "",          "--only", "--show", "--update",
                                                    "--torture", "--list", "--help" };

/* Runs the story; torture: the number of the allocation that fails, 0: none. Returns the world,
 * which the caller frees. */
static struct world *story_run(const struct story *story, uint64_t torture)
{
    struct world_shape shape;
    struct world *world;

    world_shape_story(&shape);
    shape.torture = torture;
    world = world_create(&shape);
    story->tell(world);
    return world;
}

static void story_golden_path(const struct story *story, char *path, size_t size)
{
    snprintf(path, size, "%s/tests/stories/golden/%s.txt", HVD_SOURCE_DIR, story->name);
}

static bool story_write_golden(const struct story *story, const char *text)
{
    char path[512];
    FILE *file;
    bool written;

    story_golden_path(story, path, sizeof(path));
    file = fopen(path, "w");
    if (!file)
        return false;
    written = fprintf(file, "# %s\n%s", story->shows, text) > 0;
    return fclose(file) == 0 && written;
}

/* The story's golden text, borrowed until the next call; NULL: there is none. */
static const char *story_read_golden(const struct story *story)
{
    static char golden[GOLDEN_MAX];
    char path[512];
    FILE *file;
    size_t length;
    const char *end;

    story_golden_path(story, path, sizeof(path));
    file = fopen(path, "r");
    if (!file)
        return NULL;
    length = fread(golden, 1, sizeof(golden) - 1, file);
    fclose(file);
    golden[length] = '\0';
    end = strchr(golden, '\n');
    return golden[0] == '#' && end ? end + 1 : golden;
}

/* Prints the first line in which both texts differ. */
static void show_difference(const char *golden, const char *text)
{
    struct span left = { golden, strlen(golden) };
    struct span right = { text, strlen(text) };

    for (unsigned line = 1; left.length || right.length; line++) {
        struct span was = { "(nothing)", 9 };
        struct span is = { "(nothing)", 9 };

        span_next(&left, '\n', &was);
        span_next(&right, '\n', &is);
        if (was.length == is.length && memcmp(was.at, is.at, is.length) == 0)
            continue;
        printf("    line %u is\n        %.*s\n    and should be\n        %.*s\n", line,
               (int)is.length, is.at, (int)was.length, was.at);
        return;
    }
}

/* Runs the story and compares its text with the golden text, or writes or prints the text, as the
 * mode says. true: no violation, and no difference. */
static bool story_check(const struct story *story, enum mode mode)
{
    struct world *world = story_run(story, 0);
    const char *wrong = world_wrong(world);
    bool updating = mode == MODE_UPDATE && !wrong;
    const char *golden = updating ? NULL : story_read_golden(story);
    bool same = updating ? story_write_golden(story, world_story(world))
                         : golden && strcmp(golden, world_story(world)) == 0;

    if (mode == MODE_SHOW || wrong)
        printf("%s", world_story(world));
    printf("%s %s: %s\n", wrong || !same ? "FAILED" : "ok    ", story->name, story->shows);
    if (wrong)
        printf("    %s\n", wrong);
    else if (!same && updating)
        printf("    its golden text cannot be written\n");
    else if (!same && !golden)
        printf("    there is no golden text yet; --update %s writes it\n", story->name);
    else if (!same)
        show_difference(golden, world_story(world));
    world_free(world);
    return !wrong && same;
}

/* How often a story is run; a wrong STORY_TORTURE_RUNS ends the program. */
static uint64_t story_torture_runs(void)
{
    const char *asked = getenv("STORY_TORTURE_RUNS");
    uint64_t runs = TORTURE_RUNS;
    struct hvd_err err;

    if (asked && text_parse_u64((struct span){ asked, strlen(asked) }, 1, UINT32_MAX,
                                "STORY_TORTURE_RUNS", &runs, &err)) {
        fprintf(stderr, "%s\n", err.text);
        exit(2);
    }
    return runs;
}

/* Runs the story again and again, and kills a process at another allocation each time. Only the end
 * of the job is compared. */
static bool story_torture(const struct story *story)
{
    /* this run counts the allocations; none fails */
    struct world *world = story_run(story, UINT64_MAX);
    uint64_t count = fault_count(FAULT_ALLOC);
    uint64_t step = count / story_torture_runs() + 1;
    int code = world_exit_code(world);
    bool ok = !world_wrong(world);
    unsigned runs = 0;

    world_free(world);
    for (uint64_t k = 1; ok && k <= count; k += step, runs++) {
        world = story_run(story, k);
        ok = !world_wrong(world) && world_exit_code(world) == code;
        if (!ok)
            printf("%sFAILED %s: with allocation %" PRIu64 " failing it ends with %d, not %d: %s\n",
                   world_story(world), story->name, k, world_exit_code(world), code,
                   world_wrong(world) ? world_wrong(world) : world_exit_text(world));
        world_free(world);
    }
    if (ok)
        printf("ok     %s: the same end after %u deaths for want of memory\n", story->name, runs);
    return ok;
}

/* ---- worlds that many stories begin with ---------------------------------------------------- */

void story_job(struct world *w, uint32_t np, uint32_t min_np, uint32_t max_np, uint64_t steps)
{
    world_np(w, np, min_np, max_np);
    world_train(w, steps);
}

static void story_two_hosts(struct world *w, uint32_t np, uint64_t steps)
{
    world_host(w, "a", 2);
    world_host(w, "b", 2);
    story_job(w, np, 2, 4, steps);
}

void story_four_workers(struct world *w, uint64_t steps)
{
    story_two_hosts(w, 4, steps);
}

void story_two_of_four(struct world *w, uint64_t steps)
{
    story_two_hosts(w, 2, steps);
}

void story_room_for_third_host(struct world *w)
{
    story_four_workers(w, 400);
    world_host(w, "c", 0);
    world_np(w, 4, 2, 6);
}

void story_third_host_comes(struct world *w)
{
    story_room_for_third_host(w);
    world_at(w, 9 * TIME_S, list_host("c", 2));
}

void story_bar_forever(struct world *w)
{
    world_shape(w)->config.blacklist.forever = true;
}

void story_ends(struct world *w, const char *sizes, int code)
{
    world_run(w);
    world_expect_rounds(w, sizes);
    world_expect_exit(w, code);
}

/* ---- options -------------------------------------------------------------------------------- */

static void story_list(FILE *to)
{
    for (const struct story *const *story = first_story; story < end_of_stories; story++)
        fprintf(to, "%s  %s\n", (*story)->name, (*story)->shows);
}

static void story_usage(FILE *to, const char *program)
{
    fprintf(to,
            "usage: %s [--only|--show|--update|--torture] [STORY...]\n"
            "       %s --list|--help\n\n"
            "  --only     runs these, or all, and compares them with their golden texts\n"
            "  --show     says what happens\n"
            "  --update   writes the golden texts anew; read the difference before you commit it\n"
            "  --torture  again and again with an allocation that fails: that process dies\n"
            "  --list     the stories, and what they show\n",
            program, program);
}

/* The mode of this option; MODE_COUNT: there is no such option. */
static enum mode story_mode_of(const char *word)
{
    size_t mode = 1;

    if (strncmp(word, "--", 2) != 0)
        return MODE_RUN;
    while (mode < MODE_COUNT && strcmp(word, mode_words[mode]) != 0)
        mode++;
    return (enum mode)mode;
}

int main(int argc, char **argv)
{
    enum mode mode = argc > 1 ? story_mode_of(argv[1]) : MODE_RUN;
    /* number of words before the names of stories */
    int before = argc > 1 && mode != MODE_RUN ? 2 : 1;
    bool asks = mode == MODE_LIST || mode == MODE_HELP;
    bool ok = true;

    if (mode == MODE_COUNT || (asks && argc > before)) {
        fprintf(stderr, "%s: %s\n", argv[asks ? 2 : 1],
                asks ? "nothing may follow here" : "there is no such option");
        story_usage(stderr, argv[0]);
        story_list(stderr);
        return 2;
    }
    if (mode == MODE_HELP)
        story_usage(stdout, argv[0]);
    if (mode == MODE_LIST)
        story_list(stdout);
    if (asks)
        return 0;
    for (int i = before; i < argc; i++) {
        const struct story *const *story = first_story;

        while (story < end_of_stories && strcmp(argv[i], (*story)->name) != 0)
            story++;
        if (story < end_of_stories)
            continue;
        fprintf(stderr, "there is no story %s here; there are:\n", argv[i]);
        story_list(stderr);
        return 2;
    }
    for (const struct story *const *next = first_story; next < end_of_stories; next++) {
        const struct story *story = *next;
        bool wanted = argc == before;

        for (int k = before; k < argc; k++)
            wanted |= strcmp(argv[k], story->name) == 0;
        if (wanted && mode == MODE_TORTURE && story->counts_deaths)
            printf("skip   %s: its end depends on how many die\n", story->name);
        else if (wanted)
            ok &= mode == MODE_TORTURE ? story_torture(story) : story_check(story, mode);
    }
    return ok ? 0 : 1;
}
