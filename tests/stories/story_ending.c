/*
 * story_ending.c: stories about the end of a job: the job finishes, is stopped, fails, or its
 * workers are plain commands. docs/stories.md, "How a job ends".
 */
#include "tests/stories/story.h"

STORY(exits_0_early, "exit 0 is not success: only who says so has finished")
{
    story_four_workers(w, 60);
    world_train(w, 400);
    world_at(w, 9 * TIME_S, exit_worker("b", 0, 0));
    story_ends(w, "4 3 4", 0);
    world_expect_told(w, "exit code 0 before the worker's training had finished");
}

STORY(boots_and_exits_0, "one exits with 0 while booting, and others join: it is tried again")
{
    story_four_workers(w, 60);
    world_at(w, 0, next_boot("b", BOOT_EXITS, 0, 0));
    story_ends(w, "4", 0);
}

STORY_ALONE(some_have_finished_one_dies,
            "one dies in the last step: who finished has finished, the others are let go")
{
    story_four_workers(w, 60);
    world_at(w, 9539500, kill_worker("b", 0));
    story_ends(w, "4", 0);
}

STORY_ALONE(hangs_as_the_others_finish, "one that does not end is ended")
{
    story_four_workers(w, 60);
    world_at(w, 9540 * TIME_MS, freeze_worker("b", 1));
    story_ends(w, "4", 0);
}

STORY(a_host_joins_as_the_job_finishes, "joiners are sent home when the job finishes")
{
    story_four_workers(w, 60);
    world_host(w, "c", 0);
    world_np(w, 4, 2, 6);
    world_at(w, 6500 * TIME_MS, list_host("c", 2));
    story_ends(w, "4", 0);
}

STORY_ALONE(nothing_is_left_behind, "a worker that hangs is ended with the job")
{
    story_four_workers(w, 60);
    world_train(w, 400);
    world_at(w, 8 * TIME_S, freeze_worker("a", 1));
    world_at(w, 9 * TIME_S, stop_job(""));
    story_ends(w, "4", 2);
}

STORY_ALONE(ctrl_c, "an operator stops the job: all workers are ended")
{
    story_four_workers(w, 60);
    world_at(w, 6 * TIME_S, stop_job(""));
    story_ends(w, "4", 2);
}

STORY_ALONE(ctrl_c_while_workers_boot, "the same while workers boot")
{
    story_four_workers(w, 60);
    world_at(w, 1 * TIME_S, stop_job(""));
    story_ends(w, "", 2);
}

STORY_ALONE(ctrl_c_with_a_host_cut_off, "a host that cannot be told ends its workers by itself")
{
    story_four_workers(w, 60);
    world_train(w, 400);
    world_shape(w)->config.driver_grace_us = TIME_MIN;
    world_at(w, 8 * TIME_S, cut_off("b"));
    world_at(w, 9 * TIME_S, stop_job(""));
    story_ends(w, "4", 2);
}

STORY_ALONE(driver_is_killed_while_it_stops, "the next driver goes on stopping")
{
    story_four_workers(w, 60);
    world_train(w, 400);
    world_at(w, 9 * TIME_S, kill_driver_after(1));
    world_at(w, 9 * TIME_S, stop_job(""));
    story_ends(w, "4", 2);
}

STORY(plain_command, "a command that knows nothing of us is judged by its exit code")
{
    story_four_workers(w, 60);
    world_shape(w)->plain = true;
    story_ends(w, "", 0);
}

STORY(plain_command_fails, "all of them fail: the job does")
{
    story_four_workers(w, 60);
    world_shape(w)->plain = true;
    world_shape(w)->plain_code = 3;
    story_ends(w, "", 1);
}

STORY(one_plain_command_is_killed, "one of them is killed: it is started again")
{
    story_four_workers(w, 60);
    world_shape(w)->plain = true;
    world_at(w, 1 * TIME_S, kill_worker("b", 0));
    story_ends(w, "", 0);
}

STORY(two_of_six_slots, "-np 2 of six slots: two commands, ranks 0 and 1, on the first host")
{
    world_np(w, 2, 2, 2);
    world_host(w, "a", 2);
    world_host(w, "b", 2);
    world_host(w, "c", 2);
    world_shape(w)->plain = true;
    story_ends(w, "", 0);
}

STORY(a_command_moves_with_its_rank,
      "a command that is killed is started elsewhere, as the same rank")
{
    world_np(w, 2, 2, 2);
    world_host(w, "a", 2);
    world_host(w, "b", 2);
    world_shape(w)->plain = true;
    world_at(w, 1 * TIME_S, kill_worker("a", 0));
    story_ends(w, "", 0);
}

/* A worker in slot b:0 exits in each round, so long after all have begun to train. */
static void dies_in_rounds(struct world *w, int64_t after_us, unsigned rounds)
{
    static const char *const parts[] = {
        "round 1: all 4", "round 2: all 4", "round 3: all 4",
        "round 4: all 4", "round 5: all 4", "round 6: all 4",
    };

    story_four_workers(w, 400);
    world_np(w, 4, 4, 4);
    for (unsigned i = 0; i < rounds; i++)
        world_when(w, parts[i], after_us, exit_worker("b", 0, 1));
}

STORY_ALONE(dies_without_progress,
            "a slot dies again and again before the next commit: the job ends")
{
    dies_in_rounds(w, 200 * TIME_MS, 4);
    story_ends(w, "4 4 4 4", 1);
    world_expect_told(w, "b:0 has failed 4 times without a newer commit in between");
}

STORY(dies_with_progress, "the same with commits in between: it is started again each time")
{
    dies_in_rounds(w, 2 * TIME_S, 6);
    world_train(w, 400);
    story_ends(w, "4 4 4 4 4 4 4", 0);
}

STORY_ALONE(dies_without_progress_under_two_drivers,
            "the driver dies in between: its successor counts on")
{
    dies_in_rounds(w, 200 * TIME_MS, 4);
    world_when(w, "round 3: all 4", 100 * TIME_MS, kill_driver_after(1));
    story_ends(w, "4 4 4 4", 1);
    world_expect_told(w, "b:0 has failed 4 times without a newer commit in between");
}

STORY_ALONE(a_host_dies_without_progress,
            "a host dies again and again: one failure of the job each time")
{
    story_four_workers(w, 400);
    world_np(w, 4, 4, 4);
    world_shape(w)->config.progress_restarts_job = 2;
    world_shape(w)->config.blacklist.lower_us = TIME_S;
    world_when(w, "round 1: all 4", 200 * TIME_MS, power_off("b"));
    world_when(w, "round 1: all 4", 2 * TIME_S, power_on("b"));
    world_when(w, "round 2: all 4", 200 * TIME_MS, power_off("b"));
    world_when(w, "round 2: all 4", 2 * TIME_S, power_on("b"));
    world_when(w, "round 3: all 4", 200 * TIME_MS, power_off("b"));
    world_when(w, "round 3: all 4", 2 * TIME_S, power_on("b"));
    story_ends(w, "4 4 4", 1);
    world_expect_told(w, "3 rounds in a row ended by a failure without a newer commit in between");
}

STORY(commands_end_far_apart,
      "a command runs on for longer than --elastic-timeout after another has ended")
{
    world_np(w, 2, 2, 2);
    world_host(w, "a", 2);
    world_shape(w)->plain = true;
    world_at(w, 0, next_boot("a", BOOT_SLOW, 0, 15 * TIME_MIN));
    story_ends(w, "", 0);
}

STORY_ALONE(a_command_always_fails, "one command fails again and again: the job ends")
{
    world_np(w, 2, 2, 2);
    world_host(w, "a", 2);
    world_shape(w)->plain = true;
    world_shape(w)->plain_code = 3;
    world_at(w, 0, next_boot("a", BOOT_EXITS, 0, 0));
    story_ends(w, "", 1);
    world_expect_told(w, "a:1 has failed 4 times without a run of 10m or a success in between");
}

STORY_ALONE(a_command_always_fails_with_its_host,
            "each failure sets the host aside, so no slot fails alone: the job ends")
{
    story_four_workers(w, 60);
    world_shape(w)->plain = true;
    world_shape(w)->plain_code = 3;
    world_shape(w)->config.blacklist.scope = SCOPE_HOST;
    story_ends(w, "", 1);
    world_expect_told(w, "the command makes no progress");
}

STORY(spot_hosts_take_their_command_along,
      "machines that go end their processes first: no failure of the command")
{
    static const char *const hosts[] = { "a", "b", "c", "d", "e", "f" };

    world_np(w, 1, 1, 1);
    world_shape(w)->config.progress_restarts_job = 2;
    for (size_t i = 0; i < ARRAY_SIZE(hosts); i++)
        world_host(w, hosts[i], 1);
    world_shape(w)->plain = true;
    world_shape(w)->boot = (struct world_span){ TIME_MIN, TIME_MIN };
    for (size_t i = 0; i + 1 < ARRAY_SIZE(hosts); i++) {
        world_at(w, (int64_t)(30 + 30 * i) * TIME_S, kill_worker(hosts[i], 0));
        world_at(w, (int64_t)(30 + 30 * i) * TIME_S + 100 * TIME_MS, power_off(hosts[i]));
    }
    story_ends(w, "", 0);
}

STORY_ALONE(no_worker_starts_for_a_member,
            "a member dies, and no other starts for it: the job ends")
{
    story_four_workers(w, 400);
    world_np(w, 4, 4, 4);
    for (unsigned i = 0; i < 8; i++)
        world_when(w, "round 1: all 4", TIME_S, spawn_fails("b"));
    world_when(w, "round 1: all 4", 2 * TIME_S, exit_worker("b", 0, 1));
    story_ends(w, "4", 1);
    world_expect_told(w, "b:0 has failed 4 times without a newer commit in between");
}

STORY_ALONE(the_state_is_lost, "no host has the state any more: the job says so and fails")
{
    story_four_workers(w, 60);
    world_train(w, 400);
    world_shape(w)->config.elastic_timeout_us = TIME_MIN;
    world_at(w, 9 * TIME_S, power_off("a"));
    world_at(w, 9 * TIME_S, power_off("b"));
    world_at(w, 12 * TIME_S, power_on("a"));
    world_at(w, 12 * TIME_S, power_on("b"));
    world_at(w, 60 * TIME_S, ask_status());
    story_ends(w, "4", 1);
}
