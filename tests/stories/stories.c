/*
 * stories.c: stories [--update | --torture] NAME...; without a name: all. See story.h.
 */
#include "tests/stories/story.h"

#include "base/buf.h"
#include "tests/lib/fault.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define PATH_MAX_BYTES 512
#define GOLDEN_MAX     (4u * 1024 * 1024)
#define SAMPLE         400 /* values of k in one torture */
#define RUN_S          60

struct story {
    const char *name;
    void (*tell)(struct world *w);
};

static const struct story stories[] = {
#define STORY_ROW(name) { #name, name },
    STORIES(STORY_ROW)
#undef STORY_ROW
};

enum mode { MODE_COMPARE, MODE_UPDATE, MODE_TORTURE };

static const char *golden_path(const struct story *story, char path[PATH_MAX_BYTES])
{
    snprintf(path, PATH_MAX_BYTES, "%s/tests/stories/golden/%s.txt", HVD_SOURCE_DIR, story->name);
    return path;
}

static struct world *tell(const struct story *story, uint64_t torture)
{
    struct world_shape shape;
    struct world *world;

    world_shape_story(&shape);
    shape.torture = torture;
    world = world_create(&shape);
    alarm(RUN_S);
    story->tell(world);
    alarm(0);
    return world;
}

/* ---- golden files --------------------------------------------------------------------------- */

static bool read_golden(const char *path, struct buf *text)
{
    FILE *file = fopen(path, "r");
    char part[4096];
    size_t got;

    if (!file)
        return false;
    while ((got = fread(part, 1, sizeof(part), file)) > 0) {
        if (buf_append(text, part, got))
            break;
    }
    fclose(file);
    return true;
}

static bool write_golden(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    bool good;

    if (!file)
        return false;
    good = fputs(text, file) >= 0;
    return fclose(file) == 0 && good;
}

/* The first line that differs, from both. */
static void show_difference(const char *path, const char *expected, const char *told)
{
    int line = 1;

    while (*expected && *told) {
        size_t expects = strcspn(expected, "\n");
        size_t tells = strcspn(told, "\n");

        if (expects != tells || memcmp(expected, told, tells) != 0)
            break;
        expected += expects + (expected[expects] != '\0');
        told += tells + (told[tells] != '\0');
        line++;
    }
    fprintf(stderr, "%s:%d: expected\n  %.*s\nbut it went\n  %.*s\n", path, line,
            (int)strcspn(expected, "\n"), expected, (int)strcspn(told, "\n"), told);
}

static bool compare(const struct story *story, const struct world *world)
{
    char path[PATH_MAX_BYTES];
    struct buf golden;
    bool same;

    buf_init(&golden, GOLDEN_MAX);
    if (!read_golden(golden_path(story, path), &golden))
        fprintf(stderr, "%s: %s\n", path, strerror(errno));
    same = !strcmp(buf_text(&golden), world_story(world));
    if (!same)
        show_difference(path, buf_text(&golden), world_story(world));
    buf_release(&golden);
    return same;
}

static bool run(const struct story *story, enum mode mode)
{
    struct world *world = tell(story, 0);
    const char *wrong = world_wrong(world);
    char path[PATH_MAX_BYTES];
    bool good = !wrong;

    if (wrong)
        fprintf(stderr, "%s%s: %s\n", world_story(world), story->name, wrong);
    if (mode == MODE_UPDATE)
        good = write_golden(golden_path(story, path), world_story(world)) && good;
    else
        good = compare(story, world) && good;
    world_free(world);
    return good;
}

/* ---- torture -------------------------------------------------------------------------------- */

static bool run_with_fault(const struct story *story, uint64_t k)
{
    struct world *world = tell(story, k);
    const char *wrong = world_wrong(world);

    if (wrong)
        fprintf(stderr, "%s%s: with allocation %" PRIu64 " failing: %s\n", world_story(world),
                story->name, k, wrong);
    world_free(world);
    return !wrong;
}

static bool torture(const struct story *story)
{
    struct world *world = tell(story, UINT64_MAX);
    uint64_t count = fault_count(FAULT_ALLOC);
    uint64_t step = count / SAMPLE + 1;
    bool good = true;

    world_free(world);
    for (uint64_t k = 1; good && k <= count; k += step)
        good = run_with_fault(story, k);
    printf("%s: %" PRIu64 " allocations, every %" PRIu64 ". failed\n", story->name, count, step);
    return good;
}

static const struct story *find(const char *name)
{
    for (size_t i = 0; i < ARRAY_SIZE(stories); i++) {
        if (!strcmp(stories[i].name, name))
            return &stories[i];
    }
    fprintf(stderr, "stories: there is none called %s; they are listed in story.h\n", name);
    return NULL;
}

static bool one(const struct story *story, enum mode mode)
{
    return mode == MODE_TORTURE ? torture(story) : run(story, mode);
}

int main(int argc, char **argv)
{
    enum mode mode = MODE_COMPARE;
    bool good = true;
    int at = 1;

    if (argc > 1 && !strcmp(argv[1], "--update"))
        mode = MODE_UPDATE;
    else if (argc > 1 && !strcmp(argv[1], "--torture"))
        mode = MODE_TORTURE;
    at += mode != MODE_COMPARE;
    if (at == argc) {
        for (size_t i = 0; i < ARRAY_SIZE(stories); i++)
            good = one(&stories[i], mode) && good;
    }
    for (; at < argc; at++) {
        const struct story *story = find(argv[at]);

        good = story && one(story, mode) && good;
    }
    return good ? 0 : 1;
}
