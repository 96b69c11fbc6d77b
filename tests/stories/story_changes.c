/*
 * story_changes.c: workers die and hosts join while a job trains: recoveries and switches, one
 * after the other. docs/stories.md, "One worker fails", "Hosts and joiners".
 */
#include "tests/stories/story.h"

STORY(one_worker_is_killed, "one worker is killed: one slot is lost, and comes back")
{
    story_four_workers(w, 400);
    world_at(w, 9 * TIME_S, kill_worker("b", 0));
    story_ends(w, "4 3 4", 0);
}

STORY(a_host_joins, "a host joins: no worker stops while it boots")
{
    story_four_workers(w, 400);
    world_host(w, "c", 0);
    world_np(w, 4, 2, 8);
    world_at(w, 9 * TIME_S, list_host("c", 2));
    story_ends(w, "4 6", 0);
}

/* The story that ./dev demo shows. */
STORY_ALONE(a_week_in_two_minutes,
            "a worker is killed, a host joins, the driver is killed, a host goes silent")
{
    world_host(w, "a", 2);
    world_host(w, "b", 2);
    world_host(w, "c", 0);
    story_job(w, 4, 2, 6, 700);
    world_at(w, 10 * TIME_S, kill_worker("b", 0));
    world_at(w, 20 * TIME_S, list_host("c", 2));
    world_at(w, 40 * TIME_S, kill_driver());
    world_at(w, 50 * TIME_S, cut_off("a"));
    world_at(w, 70 * TIME_S, heal("a"));
    world_run(w);
    world_expect_exit(w, 0);
}
