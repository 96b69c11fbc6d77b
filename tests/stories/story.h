/*
 * story.h: the list of stories. A story is a function of 10 to 25 lines that scripts a world, runs
 * it and says what is expected (tests/lib/world.h shows one and explains the words). What was told
 * is compared with golden/NAME.txt; `stories --update NAME` writes that anew: read the difference
 * before you commit it.
 *
 * To add one: a line in STORIES, a function in the file whose subject it is, `--update`, and ctest
 * has story.NAME and story_torture.NAME. The latter runs it with the k-th allocation of a driver,
 * agent or session failing, for a sample of every k: that process dies, and all the same the job
 * must end as expected (world_expect_exit; the other expectations rest then).
 */
#ifndef TESTS_STORIES_STORY_H
#define TESTS_STORIES_STORY_H

#include "tests/lib/world.h"

#define STORIES(S)         \
    S(four_workers_finish) \
    S(a_worker_dies)       \
    S(a_host_joins)        \
    S(the_driver_dies)

#define STORY_DECLARE(name) void name(struct world *w);
STORIES(STORY_DECLARE)
#undef STORY_DECLARE

#endif
