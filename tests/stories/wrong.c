/*
 * wrong.c: stories with a mistake (no such host, no such slot, an event that never comes). Each
 * mistake must be noticed: tests/CMakeLists.txt expects these programs to fail.
 */
#include "tests/stories/story.h"

static void two_hosts(struct world *w)
{
    world_host(w, "a", 2);
    world_host(w, "b", 2);
    story_job(w, 4, 2, 6, 100);
}

STORY(no_such_host, "there is no host c")
{
    two_hosts(w);
    world_at(w, 5 * TIME_S, power_off("c"));
    world_run(w);
}

STORY(no_such_slot, "a has two slots")
{
    two_hosts(w);
    world_at(w, 5 * TIME_S, kill_worker("a", 2));
    world_run(w);
}

STORY(never_said, "no line has this")
{
    two_hosts(w);
    world_when(w, "rond 1", 0, kill_worker("a", 1));
    world_run(w);
}
