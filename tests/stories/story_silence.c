/*
 * story_silence.c: silent workers, hosts, and networks between hosts and the driver; and workers
 * that keep other workers waiting. docs/stories.md, "Something is silent", "Pains".
 */
#include "tests/stories/story.h"

STORY(worker_is_frozen, "a worker hangs: its agent kills it when its lease is over")
{
    story_four_workers(w, 400);
    world_at(w, 9 * TIME_S, freeze_worker("b", 0));
    story_ends(w, "4 3 4", 0);
}

STORY(frozen_worker_wakes_in_time, "a worker that wakes up within its lease loses nothing")
{
    story_four_workers(w, 400);
    world_at(w, 9 * TIME_S, freeze_worker("b", 0));
    world_at(w, 17 * TIME_S, thaw_worker("b", 0));
    story_ends(w, "4", 0);
}

STORY_ALONE(host_is_black_holed, "a host falls silent: after the lease the others go on without")
{
    story_four_workers(w, 400);
    world_at(w, 9 * TIME_S, cut_off("b"));
    story_ends(w, "4 2", 0);
}

STORY(partition_heals_in_time, "a network that comes back within the lease costs its silence")
{
    story_four_workers(w, 400);
    world_at(w, 9 * TIME_S, cut_off("b"));
    world_at(w, 16 * TIME_S, heal("b"));
    story_ends(w, "4", 0);
}

STORY_ALONE(partition_heals_too_late,
            "a host that comes back later has its old workers ended first")
{
    story_four_workers(w, 400);
    world_at(w, 9 * TIME_S, cut_off("b"));
    world_at(w, 25 * TIME_S, heal("b"));
    story_ends(w, "4 2 4", 0);
}

STORY_ALONE(nothing_gets_to_a_host, "half of a connection is dead: the host cannot hear the driver")
{
    story_four_workers(w, 400);
    world_at(w, 9 * TIME_S, deafen("b"));
    world_at(w, 40 * TIME_S, heal("b"));
    story_ends(w, "4 2 4", 0);
}

STORY_ALONE(nothing_of_a_host_arrives,
            "half of a connection is dead: the driver cannot hear the host")
{
    story_four_workers(w, 400);
    world_at(w, 9 * TIME_S, mute("b"));
    world_at(w, 40 * TIME_S, heal("b"));
    story_ends(w, "4 2", 0);
}

STORY(connection_breaks, "a connection breaks and is made again: nothing happens")
{
    story_four_workers(w, 400);
    world_at(w, 9 * TIME_S, break_link("b"));
    story_ends(w, "4", 0);
}

STORY(connection_breaks_as_one_dies, "the news of a death is lost with a connection: said again")
{
    story_four_workers(w, 400);
    world_at(w, 9 * TIME_S, break_link("a"));
    world_at(w, 9 * TIME_S, kill_worker("b", 0));
    story_ends(w, "4 3 4", 0);
}

STORY(every_frame_comes_twice, "what is said twice counts once")
{
    story_four_workers(w, 400);
    world_at(w, 9 * TIME_S, kill_worker("b", 0));
    world_when(w, "round 2 (recovery)", 0, repeat_frames("a"));
    world_when(w, "round 2 (recovery)", 0, repeat_frames("b"));
    world_when(w, "round 3 (switch)", 0, repeat_frames("a"));
    world_when(w, "round 3 (switch)", 0, repeat_frames("b"));
    story_ends(w, "4 3 4", 0);
}

STORY_ALONE(host_loses_power, "a host goes dark, and comes back empty")
{
    story_four_workers(w, 400);
    world_at(w, 9 * TIME_S, power_off("b"));
    world_at(w, 30 * TIME_S, power_on("b"));
    story_ends(w, "4 2 4", 0);
}

STORY_ALONE(host_reboots_within_its_lease, "a host is back, empty, before its lease is over")
{
    story_four_workers(w, 400);
    world_at(w, 9 * TIME_S, power_off("b"));
    world_at(w, 14 * TIME_S, power_on("b"));
    story_ends(w, "4 2 4", 0);
}

STORY_ALONE(agent_is_killed, "an agent dies: its workers with it, the host is used again")
{
    story_four_workers(w, 400);
    world_at(w, 9 * TIME_S, kill_agent("b"));
    story_ends(w, "4 2 4", 0);
}

STORY_ALONE(agent_is_frozen, "an agent hangs longer than its lease: what it ran is ended")
{
    story_four_workers(w, 400);
    world_at(w, 9 * TIME_S, freeze_agent("b"));
    world_at(w, 25 * TIME_S, thaw_agent("b"));
    story_ends(w, "4 2 4", 0);
}

/* Host a loses its commits, and the agent of host b is the only holder: this agent comes back after
 * its lease has ended. */
STORY_ALONE(the_last_holder_is_only_silent,
            "all but a frozen agent have lost the state: it is waited for")
{
    story_four_workers(w, 400);
    world_shape(w)->config.elastic_timeout_us = TIME_MIN;
    world_at(w, 9 * TIME_S, power_off("a"));
    world_at(w, 9 * TIME_S, freeze_agent("b"));
    world_at(w, 12 * TIME_S, power_on("a"));
    world_at(w, 40 * TIME_S, thaw_agent("b"));
    world_run(w);
    world_expect_exit(w, 0);
    world_expect_told(w, "hosts that were last seen with this commit: b");
}

/* The story above, with a driver that dies meanwhile: the next driver waits for the workers that
 * were in the round. */
STORY_ALONE(the_last_holder_is_silent_as_the_driver_dies,
            "the same as the driver is replaced: nothing is given up")
{
    story_four_workers(w, 400);
    world_shape(w)->config.elastic_timeout_us = TIME_MIN;
    world_at(w, 9 * TIME_S, power_off("a"));
    world_at(w, 9 * TIME_S, cut_off("b"));
    world_at(w, 10 * TIME_S, kill_driver());
    world_at(w, 12 * TIME_S, power_on("a"));
    world_at(w, 50 * TIME_S, heal("b"));
    story_ends(w, "4 4", 0);
}

STORY_ALONE(somebody_waits_for_ever, "the one that all others wait for is ended")
{
    story_four_workers(w, 400);
    world_shape(w)->config.stall_warning_us = 20 * TIME_S;
    world_shape(w)->config.stall_us = TIME_MIN;
    world_at(w, 9 * TIME_S, stall_worker("b", 0, TIME_HOUR));
    story_ends(w, "4 3 4", 0);
}

STORY_ALONE(a_survivor_does_not_stop, "a survivor that does not stop for the recovery is ended")
{
    story_four_workers(w, 400);
    world_shape(w)->config.stall_warning_us = 5 * TIME_S;
    world_shape(w)->config.stall_us = 20 * TIME_S;
    world_at(w, 8900 * TIME_MS, stall_worker("b", 1, TIME_HOUR));
    world_at(w, 9 * TIME_S, kill_worker("b", 0));
    story_ends(w, "4 3 4", 0);
}

STORY_ALONE(a_member_does_not_come_to_the_switch,
            "no worker is blamed for not coming to a check, but for being waited for")
{
    story_room_for_third_host(w);
    world_shape(w)->config.stall_warning_us = 5 * TIME_S;
    world_shape(w)->config.stall_us = 20 * TIME_S;
    world_at(w, 9 * TIME_S, list_host("c", 2));
    world_at(w, 13200 * TIME_MS, stall_worker("b", 1, TIME_HOUR));
    story_ends(w, "4 6 5 6", 0);
}

STORY(somebody_never_begins_to_train, "one that hangs when a round begins is ended")
{
    story_four_workers(w, 400);
    world_shape(w)->config.stall_warning_us = 5 * TIME_S;
    world_shape(w)->config.stall_us = 20 * TIME_S;
    world_when(w, "round 1 (first)", 0, freeze_worker("b", 1));
    story_ends(w, "4 3 4", 0);
}

static void stalls_count_soon(struct world *w)
{
    world_shape(w)->config.stall_warning_us = 5 * TIME_S;
    world_shape(w)->config.stall_us = 20 * TIME_S;
}

STORY_ALONE(hangs_alone_in_its_round, "one that hangs where no other waits for it is ended")
{
    world_host(w, "a", 1);
    story_job(w, 1, 1, 1, 200);
    stalls_count_soon(w);
    world_at(w, 9 * TIME_S, stall_worker("a", 0, TIME_HOUR));
    story_ends(w, "1 1", 0);
}

STORY(hangs_in_its_reset_callback, "one that hangs between two rounds is named, and ended")
{
    story_four_workers(w, 400);
    stalls_count_soon(w);
    world_at(w, 9 * TIME_S, kill_worker("b", 0));
    world_at(w, 8 * TIME_S, hang_worker("a", 1, TIME_HOUR));
    story_ends(w, "4 3 3 4", 0);
}

STORY(never_makes_its_first_step, "one that hangs before its first step is named, and ended")
{
    story_four_workers(w, 400);
    stalls_count_soon(w);
    world_at(w, 3 * TIME_S, stall_worker("b", 1, TIME_HOUR));
    story_ends(w, "4 3 4", 0);
}

STORY(computes_for_a_long_time,
      "the one that is waited for is named in each warning time; without a limit it is not ended")
{
    story_four_workers(w, 400);
    stalls_count_soon(w);
    world_shape(w)->config.stall_us = LIMIT_DURATION_US;
    world_at(w, 9 * TIME_S, stall_worker("b", 1, 22 * TIME_S));
    story_ends(w, "4", 0);
}

STORY(agent_dies_before_its_hello, "an agent that was started and says nothing is not waited for")
{
    story_four_workers(w, 400);
    world_at(w, 404500, kill_agent("b"));
    story_ends(w, "4", 0);
}

STORY(strangers_keep_an_agent_out, "an agent cannot say hello while strangers crowd the port")
{
    story_four_workers(w, 400);
    world_at(w, 404500, kill_agent("b"));
    world_at(w, 2 * TIME_S, crowd_port());
    world_at(w, 3 * TIME_S, crowd_port());
    story_ends(w, "4", 0);
}

/* The only host is really gone. The driver assumes that when the host's agent would have ended its
 * workers. */
STORY_ALONE(the_only_host_is_gone, "the only host is silent, and stays so")
{
    world_host(w, "a", 4);
    story_job(w, 4, 2, 4, 400);
    world_shape(w)->config.driver_grace_us = TIME_MIN;
    world_shape(w)->config.elastic_timeout_us = TIME_MIN;
    world_at(w, 9 * TIME_S, power_off("a"));
    world_at(w, 30 * TIME_S, ask_status());
    story_ends(w, "4", 4);
}

/* Both hosts of the job lose power. A spare host that answers shows that those hosts are cut off,
 * and not the driver. */
STORY_ALONE(a_spare_host_tells_who_is_cut_off, "both hosts fall silent, and a third can be reached")
{
    story_four_workers(w, 400);
    world_host(w, "c", 2);
    world_shape(w)->config.elastic_timeout_us = TIME_MIN;
    world_at(w, 9 * TIME_S, power_off("a"));
    world_at(w, 9 * TIME_S, power_off("b"));
    story_ends(w, "4", 1);
}

STORY(driver_is_cut_off_from_everybody,
      "no agent is heard: it is the driver's network, and no host is counted as dead")
{
    story_four_workers(w, 400);
    world_at(w, 9 * TIME_S, cut_off("a"));
    world_at(w, 9 * TIME_S, cut_off("b"));
    world_at(w, 30 * TIME_S, heal("a"));
    world_at(w, 30 * TIME_S, heal("b"));
    story_ends(w, "4", 0);
}
