/* Nothing is heard: of a worker, of a host, of the network between them and the driver. */
#include "tests/stories/story.h"

static void four_workers(struct world *w)
{
    world_host(w, "a", 2);
    world_host(w, "b", 2);
    world_np(w, 4, 2, 4);
    world_train(w, 400);
}

static void worker_is_frozen(struct world *w)
{
    four_workers(w);
    world_at(w, 9 * TIME_S, freeze_worker("b", 0));
    world_run(w);
    world_expect_rounds(w, "4 3 4");
    world_expect_exit(w, 0);
}

static void frozen_worker_wakes_in_time(struct world *w)
{
    four_workers(w);
    world_at(w, 9 * TIME_S, freeze_worker("b", 0));
    world_at(w, 17 * TIME_S, thaw_worker("b", 0));
    world_run(w);
    world_expect_rounds(w, "4");
    world_expect_exit(w, 0);
}

static void host_is_black_holed(struct world *w)
{
    four_workers(w);
    world_at(w, 9 * TIME_S, cut_off("b"));
    world_run(w);
    world_expect_rounds(w, "4 2");
    world_expect_exit(w, 0);
}

static void partition_heals_in_time(struct world *w)
{
    four_workers(w);
    world_at(w, 9 * TIME_S, cut_off("b"));
    world_at(w, 16 * TIME_S, heal("b"));
    world_run(w);
    world_expect_rounds(w, "4");
    world_expect_exit(w, 0);
}

static void partition_heals_too_late(struct world *w)
{
    four_workers(w);
    world_at(w, 9 * TIME_S, cut_off("b"));
    world_at(w, 25 * TIME_S, heal("b"));
    world_run(w);
    world_expect_rounds(w, "4 2 4");
    world_expect_exit(w, 0);
}

static void nothing_gets_to_a_host(struct world *w)
{
    four_workers(w);
    world_at(w, 9 * TIME_S, deafen("b"));
    world_at(w, 40 * TIME_S, heal("b"));
    world_run(w);
    world_expect_rounds(w, "4 2 4");
    world_expect_exit(w, 0);
}

static void nothing_of_a_host_arrives(struct world *w)
{
    four_workers(w);
    world_at(w, 9 * TIME_S, mute("b"));
    world_at(w, 40 * TIME_S, heal("b"));
    world_run(w);
    world_expect_rounds(w, "4 2");
    world_expect_exit(w, 0);
}

static void connection_breaks(struct world *w)
{
    four_workers(w);
    world_at(w, 9 * TIME_S, break_link("b"));
    world_run(w);
    world_expect_rounds(w, "4");
    world_expect_exit(w, 0);
}

static void connection_breaks_as_one_dies(struct world *w)
{
    four_workers(w);
    world_at(w, 9 * TIME_S, break_link("a"));
    world_at(w, 9 * TIME_S, kill_worker("b", 0));
    world_run(w);
    world_expect_rounds(w, "4 3 4");
    world_expect_exit(w, 0);
}

static void every_frame_comes_twice(struct world *w)
{
    four_workers(w);
    world_at(w, 9 * TIME_S, kill_worker("b", 0));
    world_when(w, "round 2 (recovery)", 0, repeat_frames("a"));
    world_when(w, "round 2 (recovery)", 0, repeat_frames("b"));
    world_when(w, "round 3 (switch)", 0, repeat_frames("a"));
    world_when(w, "round 3 (switch)", 0, repeat_frames("b"));
    world_run(w);
    world_expect_rounds(w, "4 3 4");
    world_expect_exit(w, 0);
}

static void host_loses_power(struct world *w)
{
    four_workers(w);
    world_at(w, 9 * TIME_S, power_off("b"));
    world_at(w, 30 * TIME_S, power_on("b"));
    world_run(w);
    world_expect_rounds(w, "4 2 4");
    world_expect_exit(w, 0);
}

static void host_reboots_within_its_lease(struct world *w)
{
    four_workers(w);
    world_at(w, 9 * TIME_S, power_off("b"));
    world_at(w, 14 * TIME_S, power_on("b"));
    world_run(w);
    world_expect_rounds(w, "4 2 4");
    world_expect_exit(w, 0);
}

static void agent_is_killed(struct world *w)
{
    four_workers(w);
    world_at(w, 9 * TIME_S, kill_agent("b"));
    world_run(w);
    world_expect_rounds(w, "4 2 4");
    world_expect_exit(w, 0);
}

static void agent_is_frozen(struct world *w)
{
    four_workers(w);
    world_at(w, 9 * TIME_S, freeze_agent("b"));
    world_at(w, 25 * TIME_S, thaw_agent("b"));
    world_run(w);
    world_expect_rounds(w, "4 2 4");
    world_expect_exit(w, 0);
}

/* a loses what it had, and b's agent is all that is left: it comes back after its lease. */
static void the_last_holder_is_only_silent(struct world *w)
{
    four_workers(w);
    world_shape(w)->config.elastic_timeout_us = TIME_MIN;
    world_at(w, 9 * TIME_S, power_off("a"));
    world_at(w, 9 * TIME_S, freeze_agent("b"));
    world_at(w, 12 * TIME_S, power_on("a"));
    world_at(w, 40 * TIME_S, thaw_agent("b"));
    world_run(w);
    world_expect_exit(w, 0);
    world_expect_told(w, "last seen with it: b");
}

/* The same with a driver that dies meanwhile: the next one waits for those that were in the round.
 */
static void the_last_holder_is_silent_as_the_driver_dies(struct world *w)
{
    four_workers(w);
    world_shape(w)->config.elastic_timeout_us = TIME_MIN;
    world_at(w, 9 * TIME_S, power_off("a"));
    world_at(w, 9 * TIME_S, cut_off("b"));
    world_at(w, 10 * TIME_S, kill_driver());
    world_at(w, 12 * TIME_S, power_on("a"));
    world_at(w, 50 * TIME_S, heal("b"));
    world_run(w);
    world_expect_exit(w, 0);
    world_expect_rounds(w, "4 4");
}

static void somebody_waits_for_ever(struct world *w)
{
    four_workers(w);
    world_shape(w)->config.stall_warning_us = 20 * TIME_S;
    world_shape(w)->config.stall_us = TIME_MIN;
    world_at(w, 9 * TIME_S, stall_worker("b", 0, TIME_HOUR));
    world_run(w);
    world_expect_rounds(w, "4 3 4");
    world_expect_exit(w, 0);
}

static void a_survivor_does_not_stop(struct world *w)
{
    four_workers(w);
    world_shape(w)->config.stall_warning_us = 5 * TIME_S;
    world_shape(w)->config.stall_us = 20 * TIME_S;
    world_at(w, 8900 * TIME_MS, stall_worker("b", 1, TIME_HOUR));
    world_at(w, 9 * TIME_S, kill_worker("b", 0));
    world_run(w);
    world_expect_rounds(w, "4 3 4");
    world_expect_exit(w, 0);
}

static void a_member_does_not_come_to_the_switch(struct world *w)
{
    four_workers(w);
    world_host(w, "c", 0);
    world_np(w, 4, 2, 6);
    world_shape(w)->config.stall_warning_us = 5 * TIME_S;
    world_shape(w)->config.stall_us = 20 * TIME_S;
    world_at(w, 9 * TIME_S, list_host("c", 2));
    world_at(w, 13200 * TIME_MS, stall_worker("b", 1, TIME_HOUR));
    world_run(w);
    world_expect_rounds(w, "4 6 5 6");
    world_expect_exit(w, 0);
}

static void somebody_never_begins_to_train(struct world *w)
{
    four_workers(w);
    world_shape(w)->config.stall_warning_us = 5 * TIME_S;
    world_shape(w)->config.stall_us = 20 * TIME_S;
    world_when(w, "round 1 (first)", 0, freeze_worker("b", 1));
    world_run(w);
    world_expect_rounds(w, "4 3 4");
    world_expect_exit(w, 0);
}

static void stalls_count_soon(struct world *w)
{
    world_shape(w)->config.stall_warning_us = 5 * TIME_S;
    world_shape(w)->config.stall_us = 20 * TIME_S;
}

static void hangs_alone_in_its_round(struct world *w)
{
    world_host(w, "a", 1);
    world_np(w, 1, 1, 1);
    world_train(w, 200);
    stalls_count_soon(w);
    world_at(w, 9 * TIME_S, stall_worker("a", 0, TIME_HOUR));
    world_run(w);
    world_expect_rounds(w, "1 1");
    world_expect_exit(w, 0);
}

static void hangs_in_its_reset_callback(struct world *w)
{
    four_workers(w);
    stalls_count_soon(w);
    world_at(w, 9 * TIME_S, kill_worker("b", 0));
    world_at(w, 8 * TIME_S, hang_worker("a", 1, TIME_HOUR));
    world_run(w);
    world_expect_rounds(w, "4 3 3 4");
    world_expect_exit(w, 0);
}

static void never_makes_its_first_step(struct world *w)
{
    four_workers(w);
    stalls_count_soon(w);
    world_at(w, 3 * TIME_S, stall_worker("b", 1, TIME_HOUR));
    world_run(w);
    world_expect_rounds(w, "4 3 4");
    world_expect_exit(w, 0);
}

static void computes_for_a_long_time(struct world *w)
{
    four_workers(w);
    stalls_count_soon(w);
    world_shape(w)->config.stall_us = LIMIT_DURATION_US;
    world_at(w, 9 * TIME_S, stall_worker("b", 1, 22 * TIME_S));
    world_run(w);
    world_expect_rounds(w, "4");
    world_expect_exit(w, 0);
}

static void agent_dies_before_its_hello(struct world *w)
{
    four_workers(w);
    world_at(w, 402500, kill_agent("b"));
    world_run(w);
    world_expect_rounds(w, "4");
    world_expect_exit(w, 0);
}

/* The only host is really gone: that is believed when its agent would have ended its workers. */
static void the_only_host_is_gone(struct world *w)
{
    world_host(w, "a", 4);
    world_np(w, 4, 2, 4);
    world_train(w, 400);
    world_shape(w)->config.driver_grace_us = TIME_MIN;
    world_shape(w)->config.elastic_timeout_us = TIME_MIN;
    world_at(w, 9 * TIME_S, power_off("a"));
    world_at(w, 30 * TIME_S, ask_status());
    world_run(w);
    world_expect_rounds(w, "4");
    world_expect_exit(w, 4);
}

/* Both hosts of the job lose power; a spare one, when asked, shows that it is them. */
static void a_spare_host_tells_who_is_cut_off(struct world *w)
{
    four_workers(w);
    world_host(w, "c", 2);
    world_shape(w)->config.elastic_timeout_us = TIME_MIN;
    world_at(w, 9 * TIME_S, power_off("a"));
    world_at(w, 9 * TIME_S, power_off("b"));
    world_run(w);
    world_expect_rounds(w, "4");
    world_expect_exit(w, 1);
}

static void driver_is_cut_off_from_everybody(struct world *w)
{
    four_workers(w);
    world_at(w, 9 * TIME_S, cut_off("a"));
    world_at(w, 9 * TIME_S, cut_off("b"));
    world_at(w, 30 * TIME_S, heal("a"));
    world_at(w, 30 * TIME_S, heal("b"));
    world_run(w);
    world_expect_rounds(w, "4");
    world_expect_exit(w, 0);
}

STORIES(
    STORY_ALONE(the_only_host_is_gone, "the only host is silent, and stays so"),
    STORY_ALONE(a_spare_host_tells_who_is_cut_off,
                "both hosts fall silent, and a third can be reached"),
    STORY(driver_is_cut_off_from_everybody,
          "nobody at all is heard: it is the driver's network, and nobody is counted as dead"),
    STORY(agent_dies_before_its_hello,
          "an agent that was started and says nothing is not waited for"),
    STORY(worker_is_frozen, "a worker hangs: its agent kills it when its lease is over"),
    STORY(frozen_worker_wakes_in_time, "a worker that wakes up within its lease loses nothing"),
    STORY_ALONE(host_is_black_holed,
                "a host falls silent: after the lease the others go on without"),
    STORY(partition_heals_in_time, "a network that comes back within the lease costs its silence"),
    STORY_ALONE(partition_heals_too_late,
                "a host that comes back later has its old workers ended first"),
    STORY_ALONE(nothing_gets_to_a_host,
                "half of a connection is dead: the host cannot hear the driver"),
    STORY_ALONE(nothing_of_a_host_arrives,
                "half of a connection is dead: the driver cannot hear the host"),
    STORY(connection_breaks, "a connection breaks and is made again: nothing happens"),
    STORY(connection_breaks_as_one_dies,
          "the news of a death is lost with a connection: said again"),
    STORY(every_frame_comes_twice, "what is said twice counts once"),
    STORY_ALONE(host_loses_power, "a host goes dark, and comes back empty"),
    STORY_ALONE(host_reboots_within_its_lease, "a host is back, empty, before its lease is over"),
    STORY_ALONE(agent_is_killed, "an agent dies: its workers with it, the host is used again"),
    STORY_ALONE(agent_is_frozen, "an agent hangs longer than its lease: what it ran is ended"),
    STORY_ALONE(the_last_holder_is_only_silent,
                "all but a frozen agent have lost the state: it is waited for"),
    STORY_ALONE(the_last_holder_is_silent_as_the_driver_dies,
                "the same as the driver is replaced: nothing is given up"),
    STORY_ALONE(somebody_waits_for_ever, "the one that all others wait for is ended"),
    STORY_ALONE(a_survivor_does_not_stop,
                "a survivor that does not stop for the recovery is ended"),
    STORY_ALONE(a_member_does_not_come_to_the_switch,
                "nobody is blamed for not coming to a check, but for being waited for"),
    STORY_ALONE(hangs_alone_in_its_round, "one that hangs where nobody waits for it is ended"),
    STORY(hangs_in_its_reset_callback, "one that hangs between two rounds is named, and ended"),
    STORY(never_makes_its_first_step, "one that hangs before its first step is named, and ended"),
    STORY(computes_for_a_long_time,
          "who is waited for is named in each warning time; without a limit nobody is ended"),
    STORY(somebody_never_begins_to_train, "one that hangs when a round begins is ended"))
