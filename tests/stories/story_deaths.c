/*
 * story_deaths.c: workers die at the hardest moments: before, in and after a recovery, a switch, a
 * fetch; and devices that do not recover. docs/stories.md, "A worker dies", "Hard cases".
 */
#include "tests/stories/story.h"

STORY(rank_0_is_killed, "rank 0 is killed: it is a worker like any other")
{
    story_four_workers(w, 400);
    world_at(w, 9 * TIME_S, kill_worker("a", 0));
    story_ends(w, "4 3 4", 0);
}

STORY_ALONE(one_host_one_slot_dies, "one slot of the only host dies: the host is not barred for it")
{
    world_host(w, "a", 4);
    story_job(w, 4, 2, 4, 400);
    world_at(w, 9 * TIME_S, kill_worker("a", 2));
    story_ends(w, "4 3 4", 0);
}

STORY(dies_before_it_says_recovering, "a second one dies before it could say what it holds")
{
    story_four_workers(w, 400);
    world_at(w, 9 * TIME_S, kill_worker("b", 0));
    world_when(w, "round 1 is revoked", 0, kill_worker("a", 1));
    story_ends(w, "4 2 3 4", 0);
}

STORY(dies_after_it_has_recovered, "a second one dies while the others are still waited for")
{
    story_four_workers(w, 400);
    world_at(w, 8900 * TIME_MS, stall_worker("b", 1, 3 * TIME_S));
    world_at(w, 9 * TIME_S, kill_worker("b", 0));
    world_when(w, "has recovered (2 of 3)", TIME_MS, kill_worker("a", 1));
    story_ends(w, "4 2 3 4", 0);
}

STORY(dies_when_the_next_round_is_told, "a second one dies in the round that was to recover")
{
    story_four_workers(w, 400);
    world_at(w, 9 * TIME_S, kill_worker("b", 0));
    world_when(w, "round 2 (recovery)", 0, kill_worker("a", 1));
    story_ends(w, "4 3 2 3 4", 0);
}

STORY(dies_before_the_first_round, "one dies while the first round is formed: it is replaced")
{
    story_four_workers(w, 400);
    world_at(w, 500 * TIME_MS, next_boot("b", BOOT_SLOW, 0, 0));
    world_at(w, 0, next_boot("b", BOOT_SLOW, 0, 2 * TIME_S));
    world_when(w, "a:0#1 is ready", 500 * TIME_MS, kill_worker("a", 0));
    story_ends(w, "4", 0);
}

STORY(dies_during_the_first_sync, "the one whose state all were to get dies: the next is")
{
    story_four_workers(w, 400);
    world_when(w, "round 1 (first)", 15 * TIME_MS, kill_worker("a", 0));
    story_ends(w, "4 3 4", 0);
}

STORY(nobody_has_committed_yet, "without a commit since, the state of the start is resumed from")
{
    story_four_workers(w, 400);
    world_shape(w)->commit_every = 1000;
    world_at(w, 5 * TIME_S, kill_worker("a", 0));
    story_ends(w, "4 3 4", 0);
    world_expect_told(w, "round 2 (recovery): size 3, from commit 1.0 held by 3");
}

STORY(dies_while_the_next_round_is_prepared,
      "a member dies while joiners are connected: a recovery, and they are in it")
{
    story_third_host_comes(w);
    world_when(w, "round 2 is prepared", 2 * TIME_MS, kill_worker("a", 1));
    story_ends(w, "4 5 6", 0);
}

STORY(joiner_dies_while_it_is_prepared, "a joiner dies while it is connected: no member stops")
{
    story_third_host_comes(w);
    world_when(w, "round 2 is prepared", 2 * TIME_MS, kill_worker("c", 0));
    story_ends(w, "4 5 6", 0);
}

STORY(dies_between_its_check_and_the_switch,
      "one dies after it has said where it is: the switch is off, a recovery follows")
{
    story_third_host_comes(w);
    world_when(w, "round 2 is prepared", 10 * TIME_MS, mute("b"));
    world_when(w, "round 2 is prepared", 200 * TIME_MS, kill_worker("a", 1));
    world_when(w, "round 2 is abandoned", TIME_S, heal("b"));
    story_ends(w, "4 5 6", 0);
}

STORY(dies_at_the_switch, "one dies when the switch has been agreed: none waits for it")
{
    story_third_host_comes(w);
    world_when(w, "round 2 (switch)", 0, kill_worker("a", 1));
    story_ends(w, "4 6 5 6", 0);
}

STORY(dies_while_the_joiners_sync, "a holder dies while the joiners fetch: the others serve")
{
    story_third_host_comes(w);
    world_when(w, "round 2 (switch)", 130 * TIME_MS, kill_worker("a", 1));
    story_ends(w, "4 6 5 6", 0);
}

STORY(joiner_dies_while_it_syncs, "a joiner dies while it fetches the state")
{
    story_third_host_comes(w);
    world_when(w, "round 2 (switch)", 130 * TIME_MS, kill_worker("c", 1));
    story_ends(w, "4 6 5 6", 0);
}

STORY(every_worker_is_killed_at_once, "all workers die: their agents hold the last commit")
{
    story_four_workers(w, 400);
    for (uint32_t slot = 0; slot < 2; slot++) {
        world_at(w, 9 * TIME_S, kill_worker("a", slot));
        world_at(w, 9 * TIME_S, kill_worker("b", slot));
    }
    story_ends(w, "4 3 4", 0);
}

STORY(the_old_die_before_the_newcomers_first_commit,
      "all who have the state die: joiners get it from the agents of the dead")
{
    story_third_host_comes(w);
    for (uint32_t slot = 0; slot < 2; slot++) {
        world_when(w, "round 2 (switch)", 130 * TIME_MS, kill_worker("a", slot));
        world_when(w, "round 2 (switch)", 130 * TIME_MS, kill_worker("b", slot));
    }
    story_ends(w, "4 6 2 4 6", 0);
}

/* A worker dies in the middle of the step that commits: one survivor has the commit, the others do
 * not. */
STORY(some_hold_a_newer_commit, "survivors hold different commits: the newest wins")
{
    story_four_workers(w, 400);
    world_at(w, 9034600, kill_worker("b", 0));
    story_ends(w, "4 3 4", 0);
    world_expect_told(w, "round 2 (recovery): size 3, from commit 1.11");
}

STORY_ALONE(the_last_holder_of_the_newer_commit_dies,
            "the only holder of the newest commit dies too: the one before it wins")
{
    story_four_workers(w, 400);
    world_at(w, 9034600, kill_worker("b", 0));
    world_np(w, 4, 1, 4);
    world_when(w, "round 2 (recovery)", 0, power_off("a"));
    story_ends(w, "4 3 1 2", 0);
}

/* Joiners get the live state of the agreed check. A worker that dies later makes the round resume
 * from that state. */
STORY(switch_without_a_commit, "a switch commits by itself: no worker goes back behind it")
{
    story_third_host_comes(w);
    world_shape(w)->commit_every = 1000;
    world_when(w, "round 2: all 6 train", TIME_S, kill_worker("b", 0));
    world_run(w);
    world_expect_told(w, "round 3 (recovery): size 5, from commit 2.0 held by 5");
    world_expect_exit(w, 0);
}

/* A worker's training loop never returns from a call of the device's driver; the worker's session
 * reports that. */
STORY(a_device_is_stuck, "a worker knows that it is of no more use: it is replaced at once")
{
    story_four_workers(w, 400);
    world_at(w, 9 * TIME_S, unusable_worker("b", 0));
    story_ends(w, "4 3 4", 0);
    world_expect_told(w, "b:0#3: the worker cannot go on: its device is stuck");
}

/* Work on a device that waits for a dead peer never ends. */
STORY(a_device_is_stuck_by_a_death, "a second one does not get over the death of the first")
{
    story_four_workers(w, 400);
    world_at(w, 9 * TIME_S, kill_worker("b", 0));
    world_when(w, "round 1 is revoked", 10 * TIME_MS, unusable_worker("a", 1));
    story_ends(w, "4 2 3 4", 0);
    world_expect_told(w, "a:1#2: the worker cannot go on: its device is stuck");
}

STORY(a_device_is_stuck_without_a_driver,
      "its agent ends it meanwhile, and says why when there is a driver again")
{
    story_four_workers(w, 400);
    world_shape(w)->restart = (struct world_span){ 20 * TIME_S, 20 * TIME_S };
    world_at(w, 9 * TIME_S, kill_driver());
    world_at(w, 10 * TIME_S, unusable_worker("b", 0));
    story_ends(w, "4 3 4", 0);
    world_expect_told(w, "b:0#3: the worker cannot go on: its device is stuck");
}

/* The stuck worker has told the other workers; no record of that is durable yet when the driver
 * dies. */
STORY(a_device_is_stuck_as_the_driver_dies,
      "it was not written down: the next driver is told again")
{
    story_four_workers(w, 400);
    world_at(w, 9 * TIME_S, unusable_worker("b", 0));
    world_at(w, 8900 * TIME_MS, slow_disk(4 * TIME_S));
    world_when(w, "b:0#3: the worker cannot go on", 100 * TIME_MS, kill_driver());
    story_ends(w, "4 3 4", 0);
}

/* A driver that slept learns of the stuck worker too, but it has been replaced and must do nothing.
 */
STORY(a_device_is_stuck_while_the_driver_sleeps,
      "the driver that takes over is told, and one that wakes up then does nothing")
{
    story_four_workers(w, 400);
    world_at(w, 9 * TIME_S, freeze_driver());
    world_at(w, 9500 * TIME_MS, unusable_worker("b", 0));
    world_at(w, 25 * TIME_S, start_driver());
    world_at(w, 30 * TIME_S, thaw_driver());
    story_ends(w, "4 3 4", 0);
}

/* The agent may die before it has ended the stuck worker: the worker then ends with its agent. */
STORY_ALONE(a_device_is_stuck_as_its_agent_dies, "all of its host are dead, and are replaced")
{
    story_four_workers(w, 400);
    world_at(w, 9 * TIME_S, unusable_worker("b", 0));
    world_when(w, "b:0#3: the worker cannot go on", 0, kill_agent("b"));
    story_ends(w, "4 2 4", 0);
}

STORY(a_device_is_stuck_before_the_first_round, "in no round yet: no worker waits for it")
{
    story_four_workers(w, 400);
    world_at(w, 500 * TIME_MS, next_boot("b", BOOT_SLOW, 0, 0));
    world_at(w, 0, next_boot("b", BOOT_SLOW, 0, 2 * TIME_S));
    world_when(w, "a:0#1 is ready", 500 * TIME_MS, unusable_worker("a", 0));
    story_ends(w, "4", 0);
}
