/* Workers die and hosts join while a job trains. */
#include "tests/stories/story.h"

static void four_workers(struct world *w)
{
    world_host(w, "a", 2);
    world_host(w, "b", 2);
    world_np(w, 4, 2, 4);
    world_train(w, 400);
}

static void one_worker_is_killed(struct world *w)
{
    four_workers(w);
    world_at(w, 9 * TIME_S, kill_worker("b", 0));
    world_run(w);
    world_expect_rounds(w, "4 3 4");
    world_expect_exit(w, 0);
}

static void a_host_joins(struct world *w)
{
    four_workers(w);
    world_host(w, "c", 0);
    world_np(w, 4, 2, 8);
    world_at(w, 9 * TIME_S, list_host("c", 2));
    world_run(w);
    world_expect_rounds(w, "4 6");
    world_expect_exit(w, 0);
}

/* The one that ./dev demo shows. */
static void a_week_in_two_minutes(struct world *w)
{
    world_host(w, "a", 2);
    world_host(w, "b", 2);
    world_host(w, "c", 0);
    world_np(w, 4, 2, 6);
    world_train(w, 700);
    world_at(w, 10 * TIME_S, kill_worker("b", 0));
    world_at(w, 20 * TIME_S, list_host("c", 2));
    world_at(w, 40 * TIME_S, kill_driver());
    world_at(w, 50 * TIME_S, cut_off("a"));
    world_at(w, 70 * TIME_S, heal("a"));
    world_run(w);
    world_expect_exit(w, 0);
}

STORIES(STORY(one_worker_is_killed, "one worker is killed: one slot is lost, and comes back"),
        STORY(a_host_joins, "a host joins: nobody stops while it boots"),
        STORY_ALONE(a_week_in_two_minutes,
                    "a worker is killed, a host joins, the driver is killed, a host goes silent"))
