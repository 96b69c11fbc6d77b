/*
 * story_takeover.c: stories in which the driver dies, is suspended or cannot write, and a second
 * driver takes over. Training needs no driver, so each story ends at the same step as without the
 * fault. docs/stories.md, "Takeover".
 */
#include "tests/stories/story.h"

STORY(driver_is_killed, "the driver dies: training goes on, another takes over")
{
    story_four_workers(w, 400);
    world_at(w, 9 * TIME_S, kill_driver());
    story_ends(w, "4", 0);
}

STORY(the_time_of_workers_is_counted, "a worker and then the driver die: no second is forgotten")
{
    story_four_workers(w, 400);
    world_shape(w)->tells_goodput = true;
    world_at(w, 9 * TIME_S, kill_worker("b", 0));
    world_when(w, "round 2: all", 2 * TIME_S, kill_driver());
    story_ends(w, "4 3 4", 0);
    world_expect_told(w, "workers of b have failed 1 times");
}

STORY(driver_is_killed_before_the_first_round, "it dies while workers boot: nothing restarts")
{
    story_four_workers(w, 400);
    world_at(w, 1 * TIME_S, kill_driver());
    story_ends(w, "4", 0);
}

STORY(driver_is_killed_as_the_first_round_begins, "it dies as it tells the first round")
{
    story_four_workers(w, 400);
    world_when(w, "round 1 (first)", 500, kill_driver());
    story_ends(w, "4", 0);
}

STORY(driver_is_killed_while_a_round_is_prepared, "it dies before the next round is connected")
{
    story_third_host_comes(w);
    world_when(w, "round 2 is prepared", 5 * TIME_MS, kill_driver());
    story_ends(w, "4 6", 0);
}

STORY(driver_is_killed_while_it_asks_for_the_check, "it dies when some have said where they are")
{
    story_third_host_comes(w);
    world_when(w, "round 2 is prepared", 30 * TIME_MS, kill_driver());
    story_ends(w, "4 6", 0);
}

STORY(driver_is_killed_before_the_switch_is_durable, "it dies with the switch not written down")
{
    story_third_host_comes(w);
    world_when(w, "round 2 is prepared", 20 * TIME_MS, slow_disk(4 * TIME_S));
    world_when(w, "round 2 (switch)", 500 * TIME_MS, kill_driver());
    story_ends(w, "4 6", 0);
}

STORY(driver_is_killed_in_the_middle_of_a_switch, "it dies when some know of the switch")
{
    story_third_host_comes(w);
    world_when(w, "round 2 (switch)", 0, kill_driver_after(2));
    story_ends(w, "4 6", 0);
}

STORY(driver_is_killed_after_the_revoke, "it dies with the round dead, and no next one")
{
    story_four_workers(w, 400);
    world_at(w, 9 * TIME_S, kill_worker("b", 0));
    world_when(w, "round 1 is revoked", TIME_MS, kill_driver());
    story_ends(w, "4 3 4", 0);
}

STORY(driver_is_killed_as_the_recovery_is_told, "it dies when some know of the new round")
{
    story_four_workers(w, 400);
    world_at(w, 9 * TIME_S, kill_worker("b", 0));
    world_when(w, "round 2 (recovery)", 0, kill_driver_after(1));
    story_ends(w, "4 3 4", 0);
}

STORY(driver_is_killed_before_the_recovery_is_durable,
      "it dies with the new round not written down: no worker has heard of it")
{
    story_four_workers(w, 400);
    world_at(w, 9 * TIME_S, kill_worker("b", 0));
    world_when(w, "blacklist: b:0 failed", 20 * TIME_MS, slow_disk(4 * TIME_S));
    world_when(w, "round 2 (recovery)", 100 * TIME_MS, kill_driver());
    story_ends(w, "4 3 4", 0);
}

STORY(a_worker_dies_without_a_driver, "a death while there is no driver is not forgotten")
{
    story_four_workers(w, 400);
    world_at(w, 9 * TIME_S, kill_driver());
    world_when(w, "driver 1 ends", 200 * TIME_MS, kill_worker("b", 0));
    story_ends(w, "4 3 4", 0);
}

STORY_ALONE(a_host_dies_without_a_driver,
            "a host that does not come back to the next driver is dead")
{
    story_four_workers(w, 400);
    world_at(w, 9 * TIME_S, kill_driver());
    world_when(w, "driver 1 ends", 200 * TIME_MS, power_off("b"));
    story_ends(w, "4 2", 0);
}

/* Another driver starts at another address, and the agents are told the address one after the
 * other. */
static void a_driver_moves(struct world *w, const char *const *hosts, size_t count)
{
    world_at(w, 9 * TIME_S, kill_driver());
    for (size_t i = 0; i < count; i++)
        world_when(w, "driver 1 ends", 0, lead_astray(hosts[i]));
}

STORY(agents_learn_late_of_the_next_driver,
      "all train on: an agent that only has not come to the next driver yet is not dead")
{
    const char *const hosts[] = { "a", "b", "c" };

    story_four_workers(w, 400);
    world_host(w, "c", 2);
    story_job(w, 6, 2, 6, 1600);
    a_driver_moves(w, hosts, ARRAY_SIZE(hosts));
    world_at(w, 85 * TIME_S, heal("a"));
    world_at(w, 125 * TIME_S, heal("b"));
    world_at(w, 150 * TIME_S, heal("c"));
    story_ends(w, "6", 0);
}

/* From the takeover on the host has the time of one lease to reach the new driver. */
STORY_ALONE(a_host_that_is_late_is_missed,
            "who has not come to the next driver is waited for until a death, and a lease")
{
    const char *const hosts[] = { "b" };

    story_four_workers(w, 400);
    story_job(w, 4, 1, 4, 2000);
    a_driver_moves(w, hosts, ARRAY_SIZE(hosts));
    world_at(w, 95 * TIME_S, kill_worker("a", 0));
    world_at(w, 140 * TIME_S, heal("b"));
    story_ends(w, "4 1 2 4", 0);
}

/* A host dies that has not reached the new driver yet. No driver sees that; the other workers
 * report that they wait. */
STORY_ALONE(a_host_dies_that_is_late,
            "who has not come to the next driver is dead when others have waited for it")
{
    const char *const hosts[] = { "b" };

    story_four_workers(w, 400);
    world_train(w, 1200);
    a_driver_moves(w, hosts, ARRAY_SIZE(hosts));
    world_at(w, 95 * TIME_S, power_off("b"));
    story_ends(w, "4 2", 0);
}

/* The new driver does not reach this host yet, so it cannot tell the workers there that the round
 * is dead. The time after which a worker that others wait for is ended (stall_us) begins for these
 * workers when they hear of it. */
STORY(a_host_that_is_late_is_told_late_of_a_death,
      "who could not be told of a recovery is not late to stop for it")
{
    const char *const hosts[] = { "b" };

    story_four_workers(w, 400);
    world_shape(w)->config.stall_us = 10 * TIME_S;
    a_driver_moves(w, hosts, ARRAY_SIZE(hosts));
    world_at(w, 15 * TIME_S, kill_worker("a", 0));
    world_at(w, 40 * TIME_S, heal("b"));
    story_ends(w, "4 4", 0);
}

STORY(the_training_ends_without_a_driver, "the end of the training is kept for the next driver")
{
    story_four_workers(w, 400);
    world_shape(w)->restart = (struct world_span){ 10 * TIME_S, 10 * TIME_S };
    world_at(w, 40 * TIME_S, kill_driver());
    story_ends(w, "4", 0);
}

STORY(driver_is_killed_while_the_job_finishes, "it dies between the first and the last finish")
{
    story_four_workers(w, 400);
    world_when(w, "a:0#1 has finished", 0, kill_driver_after(1));
    story_ends(w, "4", 0);
}

STORY_ALONE(an_orphan_is_stopped, "a job without a driver is taken over only to be ended")
{
    story_four_workers(w, 400);
    world_shape(w)->restart = (struct world_span){ TIME_NEVER, TIME_NEVER };
    world_shape(w)->config.driver_grace_us = TIME_MIN;
    world_train(w, 4000);
    world_at(w, 9 * TIME_S, kill_driver());
    world_at(w, 12 * TIME_S, power_off("b"));
    world_at(w, 20 * TIME_S, start_driver());
    world_when(w, "driver 2 starts", 0, stop_job(""));
    story_ends(w, "4", 2);
    world_expect_told(w, "hosts that could not be reached: 1 (b)");
}

STORY_ALONE(driver_is_gone_for_too_long, "without a driver for longer than the grace, all is ended")
{
    story_four_workers(w, 400);
    world_shape(w)->restart = (struct world_span){ TIME_NEVER, TIME_NEVER };
    world_shape(w)->config.driver_grace_us = 20 * TIME_S;
    world_shape(w)->config.elastic_timeout_us = TIME_MIN;
    world_train(w, 4000);
    world_at(w, 9 * TIME_S, kill_driver());
    world_at(w, 50 * TIME_S, start_driver());
    story_ends(w, "4", 1);
}

STORY(old_driver_wakes_up, "a driver that slept while another took over obeys")
{
    story_four_workers(w, 400);
    world_at(w, 9 * TIME_S, freeze_driver());
    world_at(w, 25 * TIME_S, start_driver());
    world_at(w, 30 * TIME_S, thaw_driver());
    story_ends(w, "4", 0);
}

STORY(driver_sleeps_and_wakes_alone, "a driver that slept does not blame those it did not hear")
{
    story_four_workers(w, 400);
    world_at(w, 9 * TIME_S, freeze_driver());
    world_at(w, 29 * TIME_S, thaw_driver());
    story_ends(w, "4", 0);
}

STORY(driver_is_killed_again_and_again, "15 drivers die: the workers never stop")
{
    story_four_workers(w, 400);
    for (int i = 0; i < 15; i++)
        world_at(w, (2 + 2 * i) * TIME_S, kill_driver());
    story_ends(w, "4", 0);
}

STORY(slow_disk_delays_the_round_not_the_revoke,
      "with a slow disk all learn of a death at once, and of the next round later")
{
    story_four_workers(w, 400);
    world_at(w, 9 * TIME_S, slow_disk(8 * TIME_S));
    world_at(w, 9100 * TIME_MS, kill_worker("b", 0));
    story_ends(w, "4 3 4", 0);
}

STORY(disk_fails_for_a_while, "a disk that fails and comes back costs time")
{
    story_four_workers(w, 400);
    world_at(w, 9 * TIME_S, fail_disk(15 * TIME_S));
    world_at(w, 9100 * TIME_MS, kill_worker("b", 0));
    story_ends(w, "4 3 4", 0);
}

/* The records of the first death cannot be written, so the ROUND waits behind them, and the REVOKE
 * of the second death behind the ROUND. The wait is three times as long as --stall-shutdown. */
STORY(orders_wait_for_the_disk, "no worker is late for an order that is still in the driver")
{
    story_four_workers(w, 400);
    world_shape(w)->config.stall_us = 5 * TIME_S;
    world_shape(w)->config.prepare_us = 5 * TIME_S;
    world_at(w, 9 * TIME_S, fail_disk(15 * TIME_S));
    world_at(w, 9100 * TIME_MS, kill_worker("b", 0));
    world_at(w, 10 * TIME_S, kill_worker("b", 1));
    story_ends(w, "4 3 2 3 4", 0);
    world_expect_told(w, "the journal is written again");
}

/* The PREPARE of a change waits. */
STORY(a_change_waits_for_the_disk, "a change that no member was told of is not given up")
{
    story_third_host_comes(w);
    world_shape(w)->config.prepare_us = 5 * TIME_S;
    world_when(w, "c:1#6 is ready", 0, fail_disk(15 * TIME_S));
    story_ends(w, "4 6", 0);
}

STORY(disk_fails_for_longer, "a driver that cannot write gives up, and another begins")
{
    story_four_workers(w, 400);
    world_at(w, 9 * TIME_S, fail_disk(40 * TIME_S));
    world_at(w, 9100 * TIME_MS, kill_worker("b", 0));
    story_ends(w, "4 3 4", 0);
}
