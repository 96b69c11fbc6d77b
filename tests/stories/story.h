/*
 * story.h: a program of stories: scripted worlds, told as an operator would see them. How one is
 * written is said in tests/lib/world.h.
 *
 *     STORIES(STORY(a_worker_dies, "one worker is killed; the others go on within a round trip"),
 *             ...)
 *
 *     story_NAME                  run them all, compare with golden/
 *     story_NAME [--only] STORY...  these
 *     story_NAME --list           what there is, and what each shows
 *     story_NAME --show STORY...  print what happens; ./dev story STORY finds the program
 *     story_NAME --update [STORY...]  write golden/ anew; read the difference before you commit it
 *     story_NAME --torture [STORY...] again with the k-th allocation of a step failing, for many k:
 *                                 that process dies, and the job must come to the same end
 */
#ifndef TESTS_STORIES_STORY_H
#define TESTS_STORIES_STORY_H

#include "tests/lib/world.h"

struct story {
    const char *name;
    void (*tell)(struct world *world);
    const char *shows;
    bool counts_deaths;
};

#define STORY(function, shows)            \
    {                                     \
#function, function, shows, false \
    }

/* One whose end depends on how many die: not tortured. */
#define STORY_ALONE(function, shows)     \
    {                                    \
#function, function, shows, true \
    }

#define STORIES(...)                                                 \
    static const struct story stories[] = { __VA_ARGS__ };           \
    int main(int argc, char **argv)                                  \
    {                                                                \
        return story_main(argc, argv, stories, ARRAY_SIZE(stories)); \
    }

int story_main(int argc, char **argv, const struct story *stories, size_t count);

#endif
