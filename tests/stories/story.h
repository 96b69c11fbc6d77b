/*
 * story.h: a program of stories: scripted worlds, shown as an operator would see them.
 * tests/world/world.h says how to write a story.
 *
 *     STORY(a_worker_dies, "one worker is killed; the others go on within a round trip")
 *     {
 *         story_four_workers(w, 400);
 *         world_at(w, 9 * TIME_S, kill_worker("b", 0));
 *         story_ends(w, "4 3 4", 0);
 *     }
 *
 *     story_NAME                  run all stories, and compare them with golden/
 *     story_NAME [--only] STORY...  run these
 *     story_NAME --list           list the stories, and what each of them shows
 *     story_NAME --show STORY...  print what happens; ./dev story STORY finds the program
 *     story_NAME --update [STORY...]  write golden/ anew; read the difference before you commit it
 *     story_NAME --torture [STORY...] run again with the k-th allocation of a step failing, for
 *                                  many k: that process dies, and the job must end in the same way
 */
#ifndef TESTS_STORIES_STORY_H
#define TESTS_STORIES_STORY_H

#include "tests/world/world.h"

struct story {
    const char *name;
    void (*tell)(struct world *world);
    const char *shows;
    bool counts_deaths;
};

/* A list of all stories of the program: the linker collects the entries of the section. */
#define STORY_ENTRY(function, shows, counts_deaths)                                               \
    static void function(struct world *w);                                                        \
    static const struct story function##_story = { #function, function, shows, counts_deaths };   \
    static const struct story *const function##_entry __attribute__((section("stories"), used)) = \
        &function##_story;                                                                        \
    static void function(struct world *w)

#define STORY(function, shows) STORY_ENTRY(function, shows, false)

/* A story whose end depends on the number of deaths; it is not run under torture. */
#define STORY_ALONE(function, shows) STORY_ENTRY(function, shows, true)

/* How many workers the job starts with, at least and at most has; and how many steps it trains. */
void story_job(struct world *w, uint32_t np, uint32_t min_np, uint32_t max_np, uint64_t steps);

/* Worlds for many stories. story_four_workers: hosts a and b with two slots each, four workers, at
 * least two, train this many steps. story_two_of_four: the job starts with two workers of at most
 * four. story_room_for_third_host: four workers of at most six, and host c is not listed.
 * story_third_host_comes: host c with two slots is listed after 9 s. */
void story_four_workers(struct world *w, uint64_t steps);
void story_two_of_four(struct world *w, uint64_t steps);
void story_room_for_third_host(struct world *w);
void story_third_host_comes(struct world *w);

/* A slot that has failed stays barred until an operator clears it. */
void story_bar_forever(struct world *w);

/* Runs the world, whose rounds must have these sizes, and whose driver must exit with this code. */
void story_ends(struct world *w, const char *sizes, int code);

#endif
