#include "tests/stories/story.h"

#include "base/text.h"
#include "tests/lib/fault.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define TORTURE_RUNS 100 /* of each story, spread over the allocations that it makes */
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

static const char *const mode_words[MODE_COUNT] = { "",          "--only", "--show", "--update",
                                                    "--torture", "--list", "--help" };

static struct world *run(const struct story *story, uint64_t torture)
{
    struct world_shape shape;
    struct world *world;

    world_shape_story(&shape);
    shape.torture = torture;
    world = world_create(&shape);
    story->tell(world);
    return world;
}

static void golden_path(const struct story *story, char *path, size_t size)
{
    snprintf(path, size, "%s/tests/stories/golden/%s.txt", HVD_SOURCE_DIR, story->name);
}

static bool write_golden(const struct story *story, const char *text)
{
    char path[512];
    FILE *file;
    bool written;

    golden_path(story, path, sizeof(path));
    file = fopen(path, "w");
    if (!file)
        return false;
    written = fprintf(file, "# %s\n%s", story->shows, text) > 0;
    return fclose(file) == 0 && written;
}

/* Borrowed until the next call; NULL when there is none. */
static const char *read_golden(const struct story *story)
{
    static char golden[GOLDEN_MAX];
    char path[512];
    FILE *file;
    size_t length;
    const char *end;

    golden_path(story, path, sizeof(path));
    file = fopen(path, "r");
    if (!file)
        return NULL;
    length = fread(golden, 1, sizeof(golden) - 1, file);
    fclose(file);
    golden[length] = '\0';
    end = strchr(golden, '\n');
    return golden[0] == '#' && end ? end + 1 : golden;
}

/* The first line in which the two differ. */
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

static bool check(const struct story *story, enum mode mode)
{
    struct world *world = run(story, 0);
    const char *wrong = world_wrong(world);
    bool updating = mode == MODE_UPDATE && !wrong;
    const char *golden = updating ? NULL : read_golden(story);
    bool same = updating ? write_golden(story, world_story(world))
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

/* A process dies at each of many places; what counts is the end alone. */
static bool torture(const struct story *story)
{
    struct world *world = run(story, UINT64_MAX); /* counts them, and fails none */
    uint64_t count = fault_count(FAULT_ALLOC);
    uint64_t step = count / TORTURE_RUNS + 1;
    int code = world_exit_code(world);
    bool ok = !world_wrong(world);
    unsigned runs = 0;

    world_free(world);
    for (uint64_t k = 1; ok && k <= count; k += step, runs++) {
        world = run(story, k);
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

static bool is_wanted(const struct story *story, char **names, int count)
{
    for (int i = 0; i < count; i++)
        if (strcmp(names[i], story->name) == 0)
            return true;
    return count == 0;
}

static bool do_one(const struct story *story, enum mode mode)
{
    if (mode != MODE_TORTURE)
        return check(story, mode);
    if (!story->counts_deaths)
        return torture(story);
    printf("skip   %s: its end depends on how many die\n", story->name);
    return true;
}

/* ---- what is asked for ---------------------------------------------------------------------- */

static void list(FILE *to, const struct story *stories, size_t count)
{
    for (size_t i = 0; i < count; i++)
        fprintf(to, "%s  %s\n", stories[i].name, stories[i].shows);
}

static void usage(FILE *to, const char *program)
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

/* MODE_COUNT: there is no such option. */
static enum mode mode_of(const char *word)
{
    size_t mode = 1;

    if (strncmp(word, "--", 2) != 0)
        return MODE_RUN;
    while (mode < MODE_COUNT && strcmp(word, mode_words[mode]) != 0)
        mode++;
    return (enum mode)mode;
}

static bool are_there(char **names, int named, const struct story *stories, size_t count)
{
    for (int i = 0; i < named; i++) {
        size_t k = 0;

        while (k < count && strcmp(names[i], stories[k].name) != 0)
            k++;
        if (k < count)
            continue;
        fprintf(stderr, "there is no story %s here; there are:\n", names[i]);
        list(stderr, stories, count);
        return false;
    }
    return true;
}

int story_main(int argc, char **argv, const struct story *stories, size_t count)
{
    enum mode mode = argc > 1 ? mode_of(argv[1]) : MODE_RUN;
    int before = argc > 1 && mode != MODE_RUN ? 2 : 1; /* words in front of the names */
    bool asks = mode == MODE_LIST || mode == MODE_HELP;
    bool ok = true;

    if (mode == MODE_COUNT || (asks && argc > before)) {
        fprintf(stderr, "%s: %s\n", argv[asks ? 2 : 1],
                asks ? "nothing may follow here" : "there is no such option");
        usage(stderr, argv[0]);
        list(stderr, stories, count);
        return 2;
    }
    if (mode == MODE_HELP)
        usage(stdout, argv[0]);
    if (mode == MODE_LIST)
        list(stdout, stories, count);
    if (asks)
        return 0;
    if (!are_there(argv + before, argc - before, stories, count))
        return 2;
    for (size_t i = 0; i < count; i++) {
        if (is_wanted(&stories[i], argv + before, argc - before))
            ok = do_one(&stories[i], mode) && ok;
    }
    return ok ? 0 : 1;
}
