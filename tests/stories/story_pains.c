/* What users of elastic training complain of: bars for ever, no choice who leaves, no reasons. */
#include "tests/stories/story.h"

static void four_workers(struct world *w)
{
    world_host(w, "a", 2);
    world_host(w, "b", 2);
    world_np(w, 4, 2, 4);
    world_train(w, 400);
}

static void one_bad_slot(struct world *w)
{
    four_workers(w);
    world_train(w, 1200);
    world_at(w, 9 * TIME_S, exit_worker("b", 0, 1));
    world_when(w, "round 3: all 4 train", TIME_S, exit_worker("b", 0, 1));
    world_when(w, "round 5: all 4 train", TIME_S, exit_worker("b", 0, 1));
    world_run(w);
    world_expect_rounds(w, "4 3 4 3 4 3 4");
    world_expect_exit(w, 0);
}

static void cooldowns_as_documented(struct world *w)
{
    four_workers(w);
    world_train(w, 6000);
    world_shape(w)->boot = (struct world_span){ TIME_S, TIME_S };
    for (uint32_t i = 0; i < 6; i++) {
        static const char *const parts[] = {
            "round 1: all 4", "round 3: all 4", "round 5: all 4",
            "round 7: all 4", "round 9: all 4", "round 11: all 4"
        };

        world_when(w, parts[i], TIME_S, kill_worker("b", 0));
    }
    world_run(w);
    world_expect_told(w, "6 failures");
    world_expect_rounds(w, "4 3 4 3 4 3 4 3 4 3 4 3");
    world_expect_exit(w, 0);
}

static void banned_for_ever_is_over(struct world *w)
{
    four_workers(w);
    world_shape(w)->config.blacklist.forever = true;
    world_at(w, 9 * TIME_S, kill_worker("b", 0));
    world_at(w, 20 * TIME_S, ask_status());
    world_at(w, 25 * TIME_S, clear_slot("b", 0));
    world_run(w);
    world_expect_rounds(w, "4 3 4");
    world_expect_exit(w, 0);
}

static void failures_are_forgiven(struct world *w)
{
    four_workers(w);
    world_train(w, 3000);
    world_shape(w)->config.blacklist.decay_us = 2 * TIME_MIN;
    world_at(w, 9 * TIME_S, kill_worker("b", 0));
    world_at(w, 4 * TIME_MIN, kill_worker("b", 0));
    world_run(w);
    world_expect_rounds(w, "4 3 4 3 4");
    world_expect_exit(w, 0);
}

static void why_a_host_is_not_used(struct world *w)
{
    four_workers(w);
    world_host(w, "c", 2);
    world_host(w, "d", 2);
    world_host(w, "e", 2);
    world_np(w, 4, 2, 6);
    world_at(w, 0, power_off("c"));
    world_at(w, 9 * TIME_S, kill_worker("b", 0));
    world_at(w, 10 * TIME_S, drain("d", DEED_WHOLE_HOST, TIME_NEVER));
    world_at(w, 12 * TIME_S, ask_status());
    world_run(w);
    world_expect_rounds(w, "4 6 5 3 5 6");
    world_expect_exit(w, 0);
}

static void what_a_job_waits_for(struct world *w)
{
    four_workers(w);
    world_np(w, 4, 3, 4);
    world_at(w, 9 * TIME_S, kill_worker("a", 0));
    world_at(w, 9 * TIME_S, kill_worker("b", 0));
    world_at(w, 15 * TIME_S, ask_status());
    world_run(w);
    world_expect_rounds(w, "4 3 4");
    world_expect_exit(w, 0);
}

static void drain_a_slot(struct world *w)
{
    four_workers(w);
    world_at(w, 9 * TIME_S, drain("a", 1, TIME_MIN));
    world_at(w, 20 * TIME_S, ask_status());
    world_run(w);
    world_expect_rounds(w, "4 3");
    world_expect_exit(w, 0);
}

static void drain_a_host_and_take_it_back(struct world *w)
{
    four_workers(w);
    world_at(w, 9 * TIME_S, drain("b", DEED_WHOLE_HOST, TIME_MIN));
    world_at(w, 20 * TIME_S, undrain("b", DEED_WHOLE_HOST));
    world_run(w);
    world_expect_rounds(w, "4 2 4");
    world_expect_exit(w, 0);
}

static void drain_what_is_not_there(struct world *w)
{
    four_workers(w);
    world_at(w, 9 * TIME_S, drain("b", 7, TIME_MIN));
    world_run(w);
    world_expect_rounds(w, "4");
    world_expect_exit(w, 0);
}

static void notice_with_a_deadline(struct world *w)
{
    four_workers(w);
    world_at(w, 9 * TIME_S, notice("b", 30 * TIME_S));
    world_at(w, 39 * TIME_S, power_off("b"));
    world_run(w);
    world_expect_rounds(w, "4 2");
    world_expect_exit(w, 0);
}

static void notice_whose_deadline_passes(struct world *w)
{
    four_workers(w);
    world_np(w, 4, 4, 4);
    world_host(w, "c", 0);
    world_at(w, 9 * TIME_S, notice("b", 10 * TIME_S));
    world_at(w, 30 * TIME_S, list_host("c", 2));
    world_run(w);
    world_expect_rounds(w, "4 4");
    world_expect_exit(w, 0);
}

static void one_host_cannot_start_anything(struct world *w)
{
    four_workers(w);
    world_np(w, 4, 1, 4);
    world_shape(w)->config.blacklist.lower_us = 0;
    world_shape(w)->config.blacklist.upper_us = 0;
    for (int i = 0; i < 40; i++)
        world_at(w, 8 * TIME_S, spawn_fails("a"));
    for (uint32_t slot = 0; slot < 2; slot++) {
        world_at(w, 9 * TIME_S, kill_worker("a", slot));
        world_at(w, 9 * TIME_S, kill_worker("b", slot));
    }
    world_run(w);
    world_expect_exit(w, 0);
}

/* As when a system shuts down that stays in a list of hosts, or the provider changes its mind. */
static void notice_that_does_not_come_true(struct world *w)
{
    four_workers(w);
    world_at(w, 9 * TIME_S, notice("b", 10 * TIME_S));
    world_at(w, 12 * TIME_S, kill_driver());
    world_at(w, 13 * TIME_S, start_driver());
    world_train(w, 1200);
    world_run(w);
    world_expect_rounds(w, "4 2 4");
    world_expect_exit(w, 0);
}

static void drained_below_min(struct world *w)
{
    four_workers(w);
    world_np(w, 4, 4, 4);
    world_host(w, "c", 0);
    world_at(w, 9 * TIME_S, drain("b", DEED_WHOLE_HOST, TIME_NEVER));
    world_at(w, 15 * TIME_S, list_host("c", 2));
    world_run(w);
    world_expect_rounds(w, "4 4");
    world_expect_exit(w, 0);
}

static void drain_survives_the_driver(struct world *w)
{
    four_workers(w);
    world_train(w, 600);
    world_at(w, 9 * TIME_S, drain("b", 1, 5 * TIME_MIN));
    world_at(w, 15 * TIME_S, kill_driver());
    world_at(w, 30 * TIME_S, ask_status());
    world_run(w);
    world_expect_rounds(w, "4 3");
    world_expect_exit(w, 0);
}

static void mixed_members_are_told_the_same(struct world *w)
{
    four_workers(w);
    world_np(w, 4, 4, 4);
    world_host(w, "c", 0);
    world_at(w, 9 * TIME_S, power_off("b"));
    world_at(w, 12 * TIME_S, list_host("c", 2));
    world_run(w);
    world_expect_rounds(w, "4 4");
    world_expect_exit(w, 0);
}

STORIES(STORY(one_bad_slot, "one bad slot is used less and less, its neighbours as before"),
        STORY_ALONE(cooldowns_as_documented,
                    "the n-th failure costs min(U, L * 2^(n-1) + up to L)"),
        STORY_ALONE(banned_for_ever_is_over,
                    "barred until cleared, if that is wanted, and an operator clears"),
        STORY(failures_are_forgiven, "a slot that runs well for a while earns its failures back"),
        STORY(why_a_host_is_not_used, "status says of each host why it is not used"),
        STORY(what_a_job_waits_for, "status says what is waited for"),
        STORY_ALONE(drain_a_slot, "an operator chooses who leaves"),
        STORY_ALONE(drain_a_host_and_take_it_back, "a host is drained and taken back"),
        STORY(drain_what_is_not_there,
              "a drain of what there is not is answered, and nothing happens"),
        STORY_ALONE(notice_with_a_deadline,
                    "a host with notice leaves in order, and its end costs nothing"),
        STORY_ALONE(notice_whose_deadline_passes,
                    "when the time of a notice is over it is ended, and not blamed"),
        STORY_ALONE(one_host_cannot_start_anything,
                    "a host that fails all it starts, at once and often, does not end the job"),
        STORY_ALONE(notice_that_does_not_come_true,
                    "a machine that was to go and is still there after a minute is used again"),
        STORY(drained_below_min, "a drained host that is needed stays until it is replaced"),
        STORY_ALONE(drain_survives_the_driver, "the next driver knows what was drained"),
        STORY_ALONE(mixed_members_are_told_the_same,
                    "below min, members wait for newcomers; all begin from one commit"))
