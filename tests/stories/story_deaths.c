/* Workers die, at every moment at which it is hard. */
#include "tests/stories/story.h"

static void four_workers(struct world *w)
{
    world_host(w, "a", 2);
    world_host(w, "b", 2);
    world_np(w, 4, 2, 4);
    world_train(w, 400);
}

static void a_third_host_comes(struct world *w)
{
    four_workers(w);
    world_host(w, "c", 0);
    world_np(w, 4, 2, 6);
    world_at(w, 9 * TIME_S, list_host("c", 2));
}

static void rank_0_is_killed(struct world *w)
{
    four_workers(w);
    world_at(w, 9 * TIME_S, kill_worker("a", 0));
    world_run(w);
    world_expect_rounds(w, "4 3 4");
    world_expect_exit(w, 0);
}

static void one_host_one_slot_dies(struct world *w)
{
    world_host(w, "a", 4);
    world_np(w, 4, 2, 4);
    world_train(w, 400);
    world_at(w, 9 * TIME_S, kill_worker("a", 2));
    world_run(w);
    world_expect_rounds(w, "4 3 4");
    world_expect_exit(w, 0);
}

static void dies_before_it_says_recovering(struct world *w)
{
    four_workers(w);
    world_at(w, 9 * TIME_S, kill_worker("b", 0));
    world_when(w, "round 1 is revoked", 0, kill_worker("a", 1));
    world_run(w);
    world_expect_rounds(w, "4 2 3 4");
    world_expect_exit(w, 0);
}

static void dies_after_it_has_recovered(struct world *w)
{
    four_workers(w);
    world_at(w, 8900 * TIME_MS, stall_worker("b", 1, 3 * TIME_S));
    world_at(w, 9 * TIME_S, kill_worker("b", 0));
    world_when(w, "has recovered (2 of 3)", TIME_MS, kill_worker("a", 1));
    world_run(w);
    world_expect_rounds(w, "4 2 3 4");
    world_expect_exit(w, 0);
}

static void dies_when_the_next_round_is_told(struct world *w)
{
    four_workers(w);
    world_at(w, 9 * TIME_S, kill_worker("b", 0));
    world_when(w, "round 2 (recovery)", 0, kill_worker("a", 1));
    world_run(w);
    world_expect_rounds(w, "4 3 2 3 4");
    world_expect_exit(w, 0);
}

static void dies_before_the_first_round(struct world *w)
{
    four_workers(w);
    world_at(w, 500 * TIME_MS, next_boot("b", BOOT_SLOW, 0, 0));
    world_at(w, 0, next_boot("b", BOOT_SLOW, 0, 2 * TIME_S));
    world_when(w, "a:0#1 is ready", 500 * TIME_MS, kill_worker("a", 0));
    world_run(w);
    world_expect_rounds(w, "4");
    world_expect_exit(w, 0);
}

static void dies_during_the_first_sync(struct world *w)
{
    four_workers(w);
    world_when(w, "round 1 (first)", 15 * TIME_MS, kill_worker("a", 0));
    world_run(w);
    world_expect_rounds(w, "4 3 4");
    world_expect_exit(w, 0);
}

static void nobody_has_committed_yet(struct world *w)
{
    four_workers(w);
    world_shape(w)->commit_every = 1000;
    world_at(w, 5 * TIME_S, kill_worker("a", 0));
    world_run(w);
    world_expect_told(w, "round 2 (recovery): size 3, from commit 1.0 held by 3");
    world_expect_rounds(w, "4 3 4");
    world_expect_exit(w, 0);
}

static void dies_while_the_next_round_is_prepared(struct world *w)
{
    a_third_host_comes(w);
    world_when(w, "round 2 is prepared", 2 * TIME_MS, kill_worker("a", 1));
    world_run(w);
    world_expect_rounds(w, "4 5 6");
    world_expect_exit(w, 0);
}

static void joiner_dies_while_it_is_prepared(struct world *w)
{
    a_third_host_comes(w);
    world_when(w, "round 2 is prepared", 2 * TIME_MS, kill_worker("c", 0));
    world_run(w);
    world_expect_rounds(w, "4 5 6");
    world_expect_exit(w, 0);
}

static void dies_between_its_check_and_the_switch(struct world *w)
{
    a_third_host_comes(w);
    world_when(w, "round 2 is prepared", 10 * TIME_MS, mute("b"));
    world_when(w, "round 2 is prepared", 200 * TIME_MS, kill_worker("a", 1));
    world_when(w, "round 2 is abandoned", TIME_S, heal("b"));
    world_run(w);
    world_expect_rounds(w, "4 5 6");
    world_expect_exit(w, 0);
}

static void dies_at_the_switch(struct world *w)
{
    a_third_host_comes(w);
    world_when(w, "round 2 (switch)", 0, kill_worker("a", 1));
    world_run(w);
    world_expect_rounds(w, "4 6 5 6");
    world_expect_exit(w, 0);
}

static void dies_while_the_joiners_sync(struct world *w)
{
    a_third_host_comes(w);
    world_when(w, "round 2 (switch)", 130 * TIME_MS, kill_worker("a", 1));
    world_run(w);
    world_expect_rounds(w, "4 6 5 6");
    world_expect_exit(w, 0);
}

static void joiner_dies_while_it_syncs(struct world *w)
{
    a_third_host_comes(w);
    world_when(w, "round 2 (switch)", 130 * TIME_MS, kill_worker("c", 1));
    world_run(w);
    world_expect_rounds(w, "4 6 5 6");
    world_expect_exit(w, 0);
}

static void every_worker_is_killed_at_once(struct world *w)
{
    four_workers(w);
    for (uint32_t slot = 0; slot < 2; slot++) {
        world_at(w, 9 * TIME_S, kill_worker("a", slot));
        world_at(w, 9 * TIME_S, kill_worker("b", slot));
    }
    world_run(w);
    world_expect_rounds(w, "4 3 4");
    world_expect_exit(w, 0);
}

static void the_old_die_before_the_newcomers_first_commit(struct world *w)
{
    a_third_host_comes(w);
    for (uint32_t slot = 0; slot < 2; slot++) {
        world_when(w, "round 2 (switch)", 130 * TIME_MS, kill_worker("a", slot));
        world_when(w, "round 2 (switch)", 130 * TIME_MS, kill_worker("b", slot));
    }
    world_run(w);
    world_expect_rounds(w, "4 6 2 4 6");
    world_expect_exit(w, 0);
}

/* In the middle of the step that commits: one survivor has it, the others have not. */
static void some_hold_a_newer_commit(struct world *w)
{
    four_workers(w);
    world_at(w, 9032600, kill_worker("b", 0));
    world_run(w);
    world_expect_told(w, "round 2 (recovery): size 3, from commit 1.11");
    world_expect_rounds(w, "4 3 4");
    world_expect_exit(w, 0);
}

static void the_last_holder_of_the_newer_commit_dies(struct world *w)
{
    four_workers(w);
    world_at(w, 9032600, kill_worker("b", 0));
    world_np(w, 4, 1, 4);
    world_when(w, "round 2 (recovery)", 0, power_off("a"));
    world_run(w);
    world_expect_rounds(w, "4 3 1 2");
    world_expect_exit(w, 0);
}

/* The joiners get the live state of the agreed check, and who dies then is resumed from it. */
static void switch_without_a_commit(struct world *w)
{
    a_third_host_comes(w);
    world_shape(w)->commit_every = 1000;
    world_when(w, "round 2: all 6 train", TIME_S, kill_worker("b", 0));
    world_run(w);
    world_expect_told(w, "round 3 (recovery): size 5, from commit 2.0 held by 5");
    world_expect_exit(w, 0);
}

/* Its loop never comes back from a call of the device's driver; a thread beside it says so. */
static void a_device_is_stuck(struct world *w)
{
    four_workers(w);
    world_at(w, 9 * TIME_S, useless_worker("b", 0));
    world_run(w);
    world_expect_told(w, "round 1 is revoked: b:0#3: of no more use: its device is stuck");
    world_expect_rounds(w, "4 3 4");
    world_expect_exit(w, 0);
}

/* What a dead peer has left undone on another's device is not undone. */
static void a_device_is_stuck_by_a_death(struct world *w)
{
    four_workers(w);
    world_at(w, 9 * TIME_S, kill_worker("b", 0));
    world_when(w, "round 1 is revoked", 10 * TIME_MS, useless_worker("a", 1));
    world_run(w);
    world_expect_rounds(w, "4 2 3 4");
    world_expect_told(w, "a:1#2: of no more use: its device is stuck");
    world_expect_exit(w, 0);
}

static void a_device_is_stuck_without_a_driver(struct world *w)
{
    four_workers(w);
    world_shape(w)->restart = (struct world_span){ 20 * TIME_S, 20 * TIME_S };
    world_at(w, 9 * TIME_S, kill_driver());
    world_at(w, 10 * TIME_S, useless_worker("b", 0));
    world_run(w);
    world_expect_told(w, "round 1 is revoked: b:0#3: of no more use: its device is stuck");
    world_expect_rounds(w, "4 3 4");
    world_expect_exit(w, 0);
}

/* It has told the others; nothing of it is durable yet. */
static void a_device_is_stuck_as_the_driver_dies(struct world *w)
{
    four_workers(w);
    world_at(w, 9 * TIME_S, useless_worker("b", 0));
    world_at(w, 8900 * TIME_MS, slow_disk(4 * TIME_S));
    world_when(w, "b:0#3: of no more use", 100 * TIME_MS, kill_driver());
    world_run(w);
    world_expect_rounds(w, "4 3 4");
    world_expect_exit(w, 0);
}

/* Whoever wakes up later hears of it too, and may do nothing any more. */
static void a_device_is_stuck_while_the_driver_sleeps(struct world *w)
{
    four_workers(w);
    world_at(w, 9 * TIME_S, freeze_driver());
    world_at(w, 9500 * TIME_MS, useless_worker("b", 0));
    world_at(w, 25 * TIME_S, start_driver());
    world_at(w, 30 * TIME_S, thaw_driver());
    world_run(w);
    world_expect_rounds(w, "4 3 4");
    world_expect_exit(w, 0);
}

/* It may not have ended the worker yet: that is ended with it. */
static void a_device_is_stuck_as_its_agent_dies(struct world *w)
{
    four_workers(w);
    world_at(w, 9 * TIME_S, useless_worker("b", 0));
    world_when(w, "b:0#3: of no more use", 0, kill_agent("b"));
    world_run(w);
    world_expect_rounds(w, "4 2 4");
    world_expect_exit(w, 0);
}

static void a_device_is_stuck_before_the_first_round(struct world *w)
{
    four_workers(w);
    world_at(w, 500 * TIME_MS, next_boot("b", BOOT_SLOW, 0, 0));
    world_at(w, 0, next_boot("b", BOOT_SLOW, 0, 2 * TIME_S));
    world_when(w, "a:0#1 is ready", 500 * TIME_MS, useless_worker("a", 0));
    world_run(w);
    world_expect_rounds(w, "4");
    world_expect_exit(w, 0);
}

STORIES(
    STORY(a_device_is_stuck, "a worker knows that it is of no more use: it is replaced at once"),
    STORY(a_device_is_stuck_by_a_death, "a second one does not get over the death of the first"),
    STORY(a_device_is_stuck_without_a_driver,
          "its agent ends it meanwhile, and says why when there is a driver again"),
    STORY(a_device_is_stuck_as_the_driver_dies,
          "it was not written down: the next driver is told again"),
    STORY(a_device_is_stuck_while_the_driver_sleeps,
          "the driver that takes over is told, and one that wakes up then does nothing"),
    STORY_ALONE(a_device_is_stuck_as_its_agent_dies, "all of its host are dead, and are replaced"),
    STORY(a_device_is_stuck_before_the_first_round, "in no round yet: nobody waits for it"),
    STORY(switch_without_a_commit, "a switch commits by itself: nobody goes back behind it"),
    STORY(some_hold_a_newer_commit, "survivors hold different commits: the newest wins"),
    STORY_ALONE(the_last_holder_of_the_newer_commit_dies,
                "the only holder of the newest commit dies too: the one before it wins"),
    STORY(rank_0_is_killed, "rank 0 is killed: it is a worker like any other"),
    STORY_ALONE(one_host_one_slot_dies,
                "one slot of the only host dies: the host is not barred for it"),
    STORY(dies_before_it_says_recovering, "a second one dies before it could say what it holds"),
    STORY(dies_after_it_has_recovered, "a second one dies while the others are still waited for"),
    STORY(dies_when_the_next_round_is_told, "a second one dies in the round that was to recover"),
    STORY(dies_before_the_first_round, "one dies while the first round is formed: it is replaced"),
    STORY(dies_during_the_first_sync,
          "the one whose state was to be everybody's dies: the next is"),
    STORY(nobody_has_committed_yet,
          "without a commit since, the state of the start is resumed from"),
    STORY(dies_while_the_next_round_is_prepared,
          "a member dies while joiners are connected: a recovery, and they are in it"),
    STORY(joiner_dies_while_it_is_prepared, "a joiner dies while it is connected: nobody stops"),
    STORY(dies_between_its_check_and_the_switch,
          "one dies after it has said where it is: the switch is off, a recovery follows"),
    STORY(dies_at_the_switch, "one dies when the switch has been agreed: nobody waits for it"),
    STORY(dies_while_the_joiners_sync, "a holder dies while the joiners fetch: the others serve"),
    STORY(joiner_dies_while_it_syncs, "a joiner dies while it fetches the state"),
    STORY(every_worker_is_killed_at_once, "everybody dies: their agents hold what was reached"),
    STORY(the_old_die_before_the_newcomers_first_commit,
          "all who have the state die: newcomers get it from the agents of the dead"))
