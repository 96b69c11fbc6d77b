/* The driver dies, sleeps, or cannot write; another takes over. */
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

static void driver_is_killed(struct world *w)
{
    four_workers(w);
    world_at(w, 9 * TIME_S, kill_driver());
    world_run(w);
    world_expect_rounds(w, "4");
    world_expect_exit(w, 0);
}

static void driver_is_killed_before_the_first_round(struct world *w)
{
    four_workers(w);
    world_at(w, 1 * TIME_S, kill_driver());
    world_run(w);
    world_expect_rounds(w, "4");
    world_expect_exit(w, 0);
}

static void driver_is_killed_as_the_first_round_begins(struct world *w)
{
    four_workers(w);
    world_when(w, "round 1 (first)", 500, kill_driver());
    world_run(w);
    world_expect_rounds(w, "4");
    world_expect_exit(w, 0);
}

static void driver_is_killed_while_a_round_is_prepared(struct world *w)
{
    a_third_host_comes(w);
    world_when(w, "round 2 is prepared", 5 * TIME_MS, kill_driver());
    world_run(w);
    world_expect_rounds(w, "4 6");
    world_expect_exit(w, 0);
}

static void driver_is_killed_while_it_asks_for_the_check(struct world *w)
{
    a_third_host_comes(w);
    world_when(w, "round 2 is prepared", 30 * TIME_MS, kill_driver());
    world_run(w);
    world_expect_rounds(w, "4 6");
    world_expect_exit(w, 0);
}

static void driver_is_killed_before_the_switch_is_durable(struct world *w)
{
    a_third_host_comes(w);
    world_when(w, "round 2 is prepared", 20 * TIME_MS, slow_disk(4 * TIME_S));
    world_when(w, "round 2 (switch)", 500 * TIME_MS, kill_driver());
    world_run(w);
    world_expect_rounds(w, "4 6");
    world_expect_exit(w, 0);
}

static void driver_is_killed_in_the_middle_of_a_switch(struct world *w)
{
    a_third_host_comes(w);
    world_when(w, "round 2 (switch)", 0, kill_driver_after(2));
    world_run(w);
    world_expect_rounds(w, "4 6");
    world_expect_exit(w, 0);
}

static void driver_is_killed_after_the_revoke(struct world *w)
{
    four_workers(w);
    world_at(w, 9 * TIME_S, kill_worker("b", 0));
    world_when(w, "round 1 is revoked", TIME_MS, kill_driver());
    world_run(w);
    world_expect_rounds(w, "4 3 4");
    world_expect_exit(w, 0);
}

static void driver_is_killed_as_the_recovery_is_told(struct world *w)
{
    four_workers(w);
    world_at(w, 9 * TIME_S, kill_worker("b", 0));
    world_when(w, "round 2 (recovery)", 0, kill_driver_after(1));
    world_run(w);
    world_expect_rounds(w, "4 3 4");
    world_expect_exit(w, 0);
}

static void driver_is_killed_before_the_recovery_is_durable(struct world *w)
{
    four_workers(w);
    world_at(w, 9 * TIME_S, kill_worker("b", 0));
    world_when(w, "blacklist: b:0 failed", 20 * TIME_MS, slow_disk(4 * TIME_S));
    world_when(w, "round 2 (recovery)", 100 * TIME_MS, kill_driver());
    world_run(w);
    world_expect_rounds(w, "4 3 4");
    world_expect_exit(w, 0);
}

static void a_worker_dies_without_a_driver(struct world *w)
{
    four_workers(w);
    world_at(w, 9 * TIME_S, kill_driver());
    world_when(w, "driver 1 ends", 200 * TIME_MS, kill_worker("b", 0));
    world_run(w);
    world_expect_rounds(w, "4 3 4");
    world_expect_exit(w, 0);
}

static void a_host_dies_without_a_driver(struct world *w)
{
    four_workers(w);
    world_at(w, 9 * TIME_S, kill_driver());
    world_when(w, "driver 1 ends", 200 * TIME_MS, power_off("b"));
    world_run(w);
    world_expect_rounds(w, "4 2");
    world_expect_exit(w, 0);
}

/* Another driver begins at another address, of which the agents are told one after the other. */
static void a_driver_moves(struct world *w, const char *const *hosts, size_t count)
{
    world_at(w, 9 * TIME_S, kill_driver());
    for (size_t i = 0; i < count; i++)
        world_when(w, "driver 1 ends", 0, lead_astray(hosts[i]));
}

static void agents_learn_late_of_the_next_driver(struct world *w)
{
    const char *const hosts[] = { "a", "b", "c" };

    four_workers(w);
    world_host(w, "c", 2);
    world_np(w, 6, 2, 6);
    world_train(w, 1600);
    a_driver_moves(w, hosts, ARRAY_SIZE(hosts));
    world_at(w, 85 * TIME_S, heal("a"));
    world_at(w, 125 * TIME_S, heal("b"));
    world_at(w, 150 * TIME_S, heal("c"));
    world_run(w);
    world_expect_rounds(w, "6");
    world_expect_exit(w, 0);
}

/* From then on it has the time of a lease. */
static void a_host_that_is_late_is_missed(struct world *w)
{
    const char *const hosts[] = { "b" };

    four_workers(w);
    world_np(w, 4, 1, 4);
    world_train(w, 2000);
    a_driver_moves(w, hosts, ARRAY_SIZE(hosts));
    world_at(w, 95 * TIME_S, kill_worker("a", 0));
    world_at(w, 140 * TIME_S, heal("b"));
    world_run(w);
    world_expect_rounds(w, "4 1 2 4");
    world_expect_exit(w, 0);
}

/* Nobody sees its death; the others say that they wait for it. */
static void a_host_dies_that_is_late(struct world *w)
{
    const char *const hosts[] = { "b" };

    four_workers(w);
    world_train(w, 1200);
    a_driver_moves(w, hosts, ARRAY_SIZE(hosts));
    world_at(w, 95 * TIME_S, power_off("b"));
    world_run(w);
    world_expect_rounds(w, "4 2");
    world_expect_exit(w, 0);
}

/* Its workers cannot be told that the round is dead; from when they are they have their time. */
static void a_host_that_is_late_is_told_late_of_a_death(struct world *w)
{
    const char *const hosts[] = { "b" };

    four_workers(w);
    world_shape(w)->config.stall_us = 10 * TIME_S;
    a_driver_moves(w, hosts, ARRAY_SIZE(hosts));
    world_at(w, 15 * TIME_S, kill_worker("a", 0));
    world_at(w, 40 * TIME_S, heal("b"));
    world_run(w);
    world_expect_rounds(w, "4 4");
    world_expect_exit(w, 0);
}

static void the_training_ends_without_a_driver(struct world *w)
{
    four_workers(w);
    world_shape(w)->restart = (struct world_span){ 10 * TIME_S, 10 * TIME_S };
    world_at(w, 40 * TIME_S, kill_driver());
    world_run(w);
    world_expect_rounds(w, "4");
    world_expect_exit(w, 0);
}

static void driver_is_killed_while_the_job_finishes(struct world *w)
{
    four_workers(w);
    world_when(w, "a:0#1 has finished", 0, kill_driver_after(1));
    world_run(w);
    world_expect_rounds(w, "4");
    world_expect_exit(w, 0);
}

static void driver_is_gone_for_too_long(struct world *w)
{
    four_workers(w);
    world_shape(w)->restart = (struct world_span){ TIME_NEVER, TIME_NEVER };
    world_shape(w)->config.driver_grace_us = 20 * TIME_S;
    world_shape(w)->config.elastic_timeout_us = TIME_MIN;
    world_train(w, 4000);
    world_at(w, 9 * TIME_S, kill_driver());
    world_at(w, 50 * TIME_S, start_driver());
    world_run(w);
    world_expect_rounds(w, "4");
    world_expect_exit(w, 1);
}

static void old_driver_wakes_up(struct world *w)
{
    four_workers(w);
    world_at(w, 9 * TIME_S, freeze_driver());
    world_at(w, 25 * TIME_S, start_driver());
    world_at(w, 30 * TIME_S, thaw_driver());
    world_run(w);
    world_expect_rounds(w, "4");
    world_expect_exit(w, 0);
}

static void driver_sleeps_and_wakes_alone(struct world *w)
{
    four_workers(w);
    world_at(w, 9 * TIME_S, freeze_driver());
    world_at(w, 29 * TIME_S, thaw_driver());
    world_run(w);
    world_expect_rounds(w, "4");
    world_expect_exit(w, 0);
}

static void driver_is_killed_again_and_again(struct world *w)
{
    four_workers(w);
    for (int i = 0; i < 15; i++)
        world_at(w, (2 + 2 * i) * TIME_S, kill_driver());
    world_run(w);
    world_expect_rounds(w, "4");
    world_expect_exit(w, 0);
}

static void slow_disk_delays_the_round_not_the_revoke(struct world *w)
{
    four_workers(w);
    world_at(w, 9 * TIME_S, slow_disk(8 * TIME_S));
    world_at(w, 9100 * TIME_MS, kill_worker("b", 0));
    world_run(w);
    world_expect_rounds(w, "4 3 4");
    world_expect_exit(w, 0);
}

static void disk_fails_for_a_while(struct world *w)
{
    four_workers(w);
    world_at(w, 9 * TIME_S, fail_disk(15 * TIME_S));
    world_at(w, 9100 * TIME_MS, kill_worker("b", 0));
    world_run(w);
    world_expect_rounds(w, "4 3 4");
    world_expect_exit(w, 0);
}

static void disk_fails_for_longer(struct world *w)
{
    four_workers(w);
    world_at(w, 9 * TIME_S, fail_disk(40 * TIME_S));
    world_at(w, 9100 * TIME_MS, kill_worker("b", 0));
    world_run(w);
    world_expect_rounds(w, "4 3 4");
    world_expect_exit(w, 0);
}

STORIES(
    STORY(driver_is_killed, "the driver dies: training goes on, another takes over"),
    STORY(driver_is_killed_before_the_first_round, "it dies while workers boot: nothing restarts"),
    STORY(driver_is_killed_as_the_first_round_begins, "it dies as it tells the first round"),
    STORY(driver_is_killed_while_a_round_is_prepared, "it dies before the next round is connected"),
    STORY(driver_is_killed_while_it_asks_for_the_check,
          "it dies when some have said where they are"),
    STORY(driver_is_killed_before_the_switch_is_durable,
          "it dies with the switch not written down"),
    STORY(driver_is_killed_in_the_middle_of_a_switch, "it dies when some know of the switch"),
    STORY(driver_is_killed_after_the_revoke, "it dies with the round dead, and no next one"),
    STORY(driver_is_killed_as_the_recovery_is_told, "it dies when some know of the new round"),
    STORY(driver_is_killed_before_the_recovery_is_durable,
          "it dies with the new round not written down: nobody has heard of it"),
    STORY(a_worker_dies_without_a_driver, "a death that nobody is there to hear is not forgotten"),
    STORY_ALONE(a_host_dies_without_a_driver,
                "a host that does not come back to the next driver is dead"),
    STORY(agents_learn_late_of_the_next_driver,
          "all train on: nobody is dead who only has not come to the next driver yet"),
    STORY_ALONE(a_host_that_is_late_is_missed,
                "who has not come to the next driver is waited for until a death, and a lease"),
    STORY_ALONE(a_host_dies_that_is_late,
                "who has not come to the next driver is dead when others have waited for it"),
    STORY(a_host_that_is_late_is_told_late_of_a_death,
          "who could not be told of a recovery is not late to stop for it"),
    STORY(the_training_ends_without_a_driver,
          "the end of the training is kept for the next driver"),
    STORY(driver_is_killed_while_the_job_finishes, "it dies between the first and the last finish"),
    STORY_ALONE(driver_is_gone_for_too_long,
                "without a driver for longer than the grace, all is ended"),
    STORY(old_driver_wakes_up, "a driver that slept while another took over obeys"),
    STORY(driver_sleeps_and_wakes_alone,
          "a driver that slept does not blame those it did not hear"),
    STORY(driver_is_killed_again_and_again, "15 drivers die: the workers never stop"),
    STORY(slow_disk_delays_the_round_not_the_revoke,
          "with a slow disk everybody learns of a death at once, and of the next round later"),
    STORY(disk_fails_for_a_while, "a disk that fails and comes back costs time"),
    STORY(disk_fails_for_longer, "a driver that cannot write gives up, and another begins"))
