#include "tests/stories/story.h"

#include "base/text.h"
#include "tests/lib/fault.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define TORTURE_RUNS 100 /* of each story, spread over the allocations that it makes */
#define GOLDEN_MAX   (4 * 1024 * 1024)

enum mode { MODE_RUN, MODE_ONLY, MODE_SHOW, MODE_UPDATE, MODE_TORTURE, MODE_COUNT };

static const char *const mode_words[MODE_COUNT] = { "", "--only", "--show", "--update",
                                                    "--torture" };

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

/* Borrowed until the next call; "" when there is none. */
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
        return "";
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
    bool same = updating ? write_golden(story, world_story(world))
                         : strcmp(read_golden(story), world_story(world)) == 0;

    if (mode == MODE_SHOW || wrong)
        printf("%s", world_story(world));
    printf("%s %s: %s\n", wrong || !same ? "FAILED" : "ok    ", story->name, story->shows);
    if (wrong)
        printf("    %s\n", wrong);
    else if (!same && updating)
        printf("    its golden text cannot be written\n");
    else if (!same)
        show_difference(read_golden(story), world_story(world));
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

static enum mode mode_of(const char *word)
{
    for (size_t i = 1; i < MODE_COUNT; i++)
        if (word && strcmp(word, mode_words[i]) == 0)
            return (enum mode)i;
    return MODE_RUN;
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

int story_main(int argc, char **argv, const struct story *stories, size_t count)
{
    enum mode mode = mode_of(argc > 1 ? argv[1] : NULL);
    int names = mode == MODE_RUN ? argc : 2;
    size_t ran = 0;
    bool ok = true;

    for (size_t i = 0; i < count; i++) {
        if (!is_wanted(&stories[i], argv + names, argc - names))
            continue;
        ran++;
        ok = do_one(&stories[i], mode) && ok;
    }
    if (!ran)
        fprintf(stderr, "%s: no such story; without arguments it runs them all\n", argv[0]);
    return ok && ran ? 0 : 1;
}
