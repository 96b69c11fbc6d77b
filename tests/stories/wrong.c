/* Stories with a slip, each of which must be noticed (see tests/CMakeLists.txt). */
#include "tests/stories/story.h"

static void two_hosts(struct world *w)
{
    world_host(w, "a", 2);
    world_host(w, "b", 2);
    world_np(w, 4, 2, 6);
    world_train(w, 100);
}

static void no_such_host(struct world *w)
{
    two_hosts(w);
    world_at(w, 5 * TIME_S, power_off("c"));
    world_run(w);
}

static void no_such_slot(struct world *w)
{
    two_hosts(w);
    world_at(w, 5 * TIME_S, kill_worker("a", 2));
    world_run(w);
}

static void never_said(struct world *w)
{
    two_hosts(w);
    world_when(w, "rond 1", 0, kill_worker("a", 1));
    world_run(w);
}

STORIES(STORY(no_such_host, "there is no host c"), STORY(no_such_slot, "a has two slots"),
        STORY(never_said, "no line has this"))
