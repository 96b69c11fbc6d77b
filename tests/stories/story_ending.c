/* How a job ends. */
#include "tests/stories/story.h"

static void four_workers(struct world *w)
{
    world_host(w, "a", 2);
    world_host(w, "b", 2);
    world_np(w, 4, 2, 4);
    world_train(w, 60);
}

static void exits_0_early(struct world *w)
{
    four_workers(w);
    world_train(w, 400);
    world_at(w, 9 * TIME_S, exit_worker("b", 0, 0));
    world_run(w);
    world_expect_told(w, "exit code 0 before its training had finished");
    world_expect_rounds(w, "4 3 4");
    world_expect_exit(w, 0);
}

static void boots_and_exits_0(struct world *w)
{
    four_workers(w);
    world_at(w, 0, next_boot("b", BOOT_EXITS, 0, 0));
    world_run(w);
    world_expect_rounds(w, "4");
    world_expect_exit(w, 0);
}

static void some_have_finished_one_dies(struct world *w)
{
    four_workers(w);
    world_at(w, 9537500, kill_worker("b", 0));
    world_run(w);
    world_expect_rounds(w, "4");
    world_expect_exit(w, 0);
}

static void hangs_as_the_others_finish(struct world *w)
{
    four_workers(w);
    world_at(w, 9538 * TIME_MS, freeze_worker("b", 1));
    world_run(w);
    world_expect_rounds(w, "4");
    world_expect_exit(w, 0);
}

static void a_host_joins_as_the_job_finishes(struct world *w)
{
    four_workers(w);
    world_host(w, "c", 0);
    world_np(w, 4, 2, 6);
    world_at(w, 6500 * TIME_MS, list_host("c", 2));
    world_run(w);
    world_expect_rounds(w, "4");
    world_expect_exit(w, 0);
}

static void nothing_is_left_behind(struct world *w)
{
    four_workers(w);
    world_train(w, 400);
    world_at(w, 8 * TIME_S, freeze_worker("a", 1));
    world_at(w, 9 * TIME_S, stop_job(""));
    world_run(w);
    world_expect_rounds(w, "4");
    world_expect_exit(w, 2);
}

static void ctrl_c(struct world *w)
{
    four_workers(w);
    world_at(w, 6 * TIME_S, stop_job(""));
    world_run(w);
    world_expect_rounds(w, "4");
    world_expect_exit(w, 2);
}

static void ctrl_c_while_workers_boot(struct world *w)
{
    four_workers(w);
    world_at(w, 1 * TIME_S, stop_job(""));
    world_run(w);
    world_expect_rounds(w, "");
    world_expect_exit(w, 2);
}

static void ctrl_c_with_a_host_cut_off(struct world *w)
{
    four_workers(w);
    world_train(w, 400);
    world_shape(w)->config.driver_grace_us = TIME_MIN;
    world_at(w, 8 * TIME_S, cut_off("b"));
    world_at(w, 9 * TIME_S, stop_job(""));
    world_run(w);
    world_expect_rounds(w, "4");
    world_expect_exit(w, 2);
}

static void driver_is_killed_while_it_stops(struct world *w)
{
    four_workers(w);
    world_train(w, 400);
    world_at(w, 9 * TIME_S, kill_driver_after(1));
    world_at(w, 9 * TIME_S, stop_job(""));
    world_run(w);
    world_expect_rounds(w, "4");
    world_expect_exit(w, 2);
}

static void plain_command(struct world *w)
{
    four_workers(w);
    world_shape(w)->plain = true;
    world_run(w);
    world_expect_rounds(w, "");
    world_expect_exit(w, 0);
}

static void plain_command_fails(struct world *w)
{
    four_workers(w);
    world_shape(w)->plain = true;
    world_shape(w)->plain_code = 3;
    world_run(w);
    world_expect_rounds(w, "");
    world_expect_exit(w, 1);
}

static void one_plain_command_is_killed(struct world *w)
{
    four_workers(w);
    world_shape(w)->plain = true;
    world_at(w, 1 * TIME_S, kill_worker("b", 0));
    world_run(w);
    world_expect_rounds(w, "");
    world_expect_exit(w, 0);
}

static void the_state_is_lost(struct world *w)
{
    four_workers(w);
    world_train(w, 400);
    world_shape(w)->config.elastic_timeout_us = TIME_MIN;
    world_at(w, 9 * TIME_S, power_off("a"));
    world_at(w, 9 * TIME_S, power_off("b"));
    world_at(w, 12 * TIME_S, power_on("a"));
    world_at(w, 12 * TIME_S, power_on("b"));
    world_at(w, 60 * TIME_S, ask_status());
    world_run(w);
    world_expect_rounds(w, "4");
    world_expect_exit(w, 1);
}

STORIES(STORY(exits_0_early, "exit 0 is not success: only who says so has finished"),
        STORY(boots_and_exits_0,
              "one exits with 0 while booting, and others join: it is tried again"),
        STORY_ALONE(some_have_finished_one_dies,
                    "one dies in the last step: who finished has finished, the others are let go"),
        STORY_ALONE(hangs_as_the_others_finish, "one that does not end is ended"),
        STORY(a_host_joins_as_the_job_finishes, "newcomers are sent home when the job finishes"),
        STORY_ALONE(nothing_is_left_behind, "a worker that hangs is ended with the job"),
        STORY_ALONE(ctrl_c, "an operator stops the job: everybody is ended"),
        STORY_ALONE(ctrl_c_while_workers_boot, "the same while workers boot"),
        STORY_ALONE(ctrl_c_with_a_host_cut_off,
                    "a host that cannot be told ends its workers by itself"),
        STORY_ALONE(driver_is_killed_while_it_stops, "the next driver goes on stopping"),
        STORY(plain_command, "a command that knows nothing of us is judged by its exit code"),
        STORY(plain_command_fails, "all of them fail: the job does"),
        STORY(one_plain_command_is_killed, "one of them is killed: it is started again"),
        STORY_ALONE(the_state_is_lost, "nobody has the state any more: the job says so and fails"))
