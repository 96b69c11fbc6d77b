/*
 * story_pains.c: complaints of users of elastic training: hosts that are barred for ever, no choice
 * of who leaves, no reasons in logs. The letters in docs/stories.md, "Pains", are those of the list
 * of complaints.
 */
#include "tests/stories/story.h"

STORY(one_bad_slot, "one bad slot is used less and less, its neighbours as before")
{
    story_four_workers(w, 400);
    world_train(w, 1200);
    world_at(w, 9 * TIME_S, exit_worker("b", 0, 1));
    world_when(w, "round 3: all 4 train", TIME_S, exit_worker("b", 0, 1));
    world_when(w, "round 5: all 4 train", TIME_S, exit_worker("b", 0, 1));
    story_ends(w, "4 3 4 3 4 3 4", 0);
}

STORY_ALONE(cooldowns_as_documented, "the n-th failure costs min(U, L * 2^(n-1) + up to L)")
{
    story_four_workers(w, 400);
    world_train(w, 6000);
    world_shape(w)->boot = (struct world_span){ TIME_S, TIME_S };
    for (uint32_t i = 0; i < 6; i++) {
        static const char *const parts[] = {
            "round 1: all 4", "round 3: all 4", "round 5: all 4",
            "round 7: all 4", "round 9: all 4", "round 11: all 4"
        };

        world_when(w, parts[i], TIME_S, kill_worker("b", 0));
    }
    story_ends(w, "4 3 4 3 4 3 4 3 4 3 4 3", 0);
    world_expect_told(w, "6 failures");
}

STORY_ALONE(banned_for_ever_is_over,
            "barred until cleared, if that is wanted, and an operator clears")
{
    story_four_workers(w, 400);
    world_shape(w)->config.blacklist.forever = true;
    world_at(w, 9 * TIME_S, kill_worker("b", 0));
    world_at(w, 20 * TIME_S, ask_status());
    world_at(w, 25 * TIME_S, clear_slot("b", 0));
    story_ends(w, "4 3 4", 0);
}

STORY(failures_are_forgiven, "a slot that runs well for a while earns its failures back")
{
    story_four_workers(w, 400);
    world_train(w, 3000);
    world_shape(w)->config.blacklist.decay_us = 2 * TIME_MIN;
    world_at(w, 9 * TIME_S, kill_worker("b", 0));
    world_at(w, 4 * TIME_MIN, kill_worker("b", 0));
    story_ends(w, "4 3 4 3 4", 0);
}

STORY(why_a_host_is_not_used, "status says of each host why it is not used")
{
    story_four_workers(w, 400);
    world_host(w, "c", 2);
    world_host(w, "d", 2);
    world_host(w, "e", 2);
    world_np(w, 4, 2, 6);
    world_at(w, 0, power_off("c"));
    world_at(w, 9 * TIME_S, kill_worker("b", 0));
    world_at(w, 10 * TIME_S, drain("d", COMMAND_WHOLE_HOST, TIME_NEVER));
    world_at(w, 12 * TIME_S, ask_status());
    story_ends(w, "4 6 5 3 5 6", 0);
}

STORY(what_a_job_waits_for, "status says what is waited for")
{
    story_four_workers(w, 400);
    world_np(w, 4, 3, 4);
    world_at(w, 9 * TIME_S, kill_worker("a", 0));
    world_at(w, 9 * TIME_S, kill_worker("b", 0));
    world_at(w, 15 * TIME_S, ask_status());
    story_ends(w, "4 3 4", 0);
}

STORY_ALONE(drain_a_slot, "an operator chooses who leaves")
{
    story_four_workers(w, 400);
    world_at(w, 9 * TIME_S, drain("a", 1, TIME_MIN));
    world_at(w, 20 * TIME_S, ask_status());
    story_ends(w, "4 3", 0);
}

STORY_ALONE(drain_a_host_and_take_it_back, "a host is drained and taken back")
{
    story_four_workers(w, 400);
    world_at(w, 9 * TIME_S, drain("b", COMMAND_WHOLE_HOST, TIME_MIN));
    world_at(w, 20 * TIME_S, undrain("b", COMMAND_WHOLE_HOST));
    story_ends(w, "4 2 4", 0);
}

STORY(drain_what_is_not_there, "a drain of what there is not is answered, and nothing happens")
{
    story_four_workers(w, 400);
    world_at(w, 9 * TIME_S, drain("b", 7, TIME_MIN));
    story_ends(w, "4", 0);
}

STORY_ALONE(notice_with_a_deadline, "a host with notice leaves in order, and its end costs nothing")
{
    story_four_workers(w, 400);
    world_at(w, 9 * TIME_S, notice("b", 30 * TIME_S));
    world_at(w, 39 * TIME_S, power_off("b"));
    story_ends(w, "4 2", 0);
}

STORY_ALONE(notice_whose_deadline_passes,
            "when the time of a notice is over it is ended, and not blamed")
{
    story_four_workers(w, 400);
    world_np(w, 4, 4, 4);
    world_host(w, "c", 0);
    world_at(w, 9 * TIME_S, notice("b", 10 * TIME_S));
    world_at(w, 30 * TIME_S, list_host("c", 2));
    story_ends(w, "4 4", 0);
}

STORY_ALONE(one_host_cannot_start_anything,
            "a host that fails all it starts, at once and often, does not end the job")
{
    story_four_workers(w, 400);
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

/* A survivor is paused, and tells late that it has stopped. */
STORY_ALONE(a_slot_fails_while_a_member_stops,
            "a slot fails to start, often, before all survivors have stopped: the job goes on")
{
    story_four_workers(w, 400);
    world_np(w, 4, 1, 4);
    world_shape(w)->config.blacklist.lower_us = 0;
    world_shape(w)->config.blacklist.upper_us = 0;
    for (int i = 0; i < 10; i++)
        world_at(w, 8 * TIME_S, spawn_fails("b"));
    world_at(w, 9 * TIME_S, freeze_worker("a", 1));
    world_at(w, 9 * TIME_S, kill_worker("b", 0));
    world_at(w, 12 * TIME_S, thaw_worker("a", 1));
    world_run(w);
    world_expect_exit(w, 0);
}

/* The host gives notice and stays: it has only rebooted and is still in the host list, or the
 * provider has withdrawn the notice. */
STORY_ALONE(notice_that_does_not_come_true,
            "a machine that was to go and is still there after a minute is used again")
{
    story_four_workers(w, 400);
    world_at(w, 9 * TIME_S, notice("b", 10 * TIME_S));
    world_at(w, 12 * TIME_S, kill_driver());
    world_at(w, 13 * TIME_S, start_driver());
    world_train(w, 1200);
    story_ends(w, "4 2 4", 0);
}

STORY(drained_below_min, "a drained host that is needed stays until it is replaced")
{
    story_four_workers(w, 400);
    world_np(w, 4, 4, 4);
    world_host(w, "c", 0);
    world_at(w, 9 * TIME_S, drain("b", COMMAND_WHOLE_HOST, TIME_NEVER));
    world_at(w, 15 * TIME_S, list_host("c", 2));
    story_ends(w, "4 4", 0);
}

STORY_ALONE(drain_survives_the_driver, "the next driver knows what was drained")
{
    story_four_workers(w, 400);
    world_train(w, 600);
    world_at(w, 9 * TIME_S, drain("b", 1, 5 * TIME_MIN));
    world_at(w, 15 * TIME_S, kill_driver());
    world_at(w, 30 * TIME_S, ask_status());
    story_ends(w, "4 3", 0);
}

STORY_ALONE(a_drained_host_flaps, "a drain lasts until undrain, also while the host is not listed")
{
    story_four_workers(w, 400);
    world_train(w, 1200);
    world_at(w, 9 * TIME_S, drain("b", COMMAND_WHOLE_HOST, TIME_NEVER));
    world_at(w, 15 * TIME_S, unlist_host("b"));
    world_at(w, 18 * TIME_S, list_host("b", 2));
    world_at(w, 25 * TIME_S, unlist_host("b"));
    world_at(w, 26 * TIME_S, kill_driver());
    world_at(w, 30 * TIME_S, ask_status());
    world_at(w, 35 * TIME_S, list_host("b", 2));
    world_at(w, 45 * TIME_S, undrain("b", COMMAND_WHOLE_HOST));
    story_ends(w, "4 2 4", 0);
}

STORY_ALONE(mixed_members_are_told_the_same,
            "below min, members wait for joiners; all begin from one commit")
{
    story_four_workers(w, 400);
    world_np(w, 4, 4, 4);
    world_host(w, "c", 0);
    world_at(w, 9 * TIME_S, power_off("b"));
    world_at(w, 12 * TIME_S, list_host("c", 2));
    story_ends(w, "4 4", 0);
}
