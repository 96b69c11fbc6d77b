/*
 * story_leaving.c: hosts come, go, flap and are asked to leave, by lists, drains and notices.
 * docs/stories.md, "Hosts and joiners".
 */
#include "tests/stories/story.h"

STORY_ALONE(removed_and_added_in_one_poll, "one host for another: no worker loses a step")
{
    story_four_workers(w, 400);
    world_host(w, "c", 0);
    world_at(w, 9 * TIME_S, unlist_host("b"));
    world_at(w, 9 * TIME_S, list_host("c", 2));
    story_ends(w, "4 2 4", 0);
}

STORY(removed_and_added_again_between_polls, "what discovery does not see has not happened")
{
    story_four_workers(w, 400);
    world_at(w, 9100 * TIME_MS, unlist_host("b"));
    world_at(w, 9200 * TIME_MS, list_host("b", 2));
    story_ends(w, "4", 0);
}

STORY(added_while_below_min,
      "a host without which there would be too few stays until its replacement is ready")
{
    story_four_workers(w, 400);
    world_np(w, 4, 4, 4);
    world_host(w, "c", 0);
    world_at(w, 9 * TIME_S, unlist_host("b"));
    world_at(w, 15 * TIME_S, list_host("c", 2));
    story_ends(w, "4 4", 0);
}

STORY(newcomer_boots_for_60_s, "a slow joiner costs the others nothing")
{
    story_four_workers(w, 400);
    world_host(w, "c", 0);
    story_job(w, 4, 2, 5, 800);
    world_at(w, 8 * TIME_S, next_boot("c", BOOT_SLOW, 0, 57 * TIME_S));
    world_at(w, 9 * TIME_S, list_host("c", 1));
    story_ends(w, "4 5", 0);
}

STORY_ALONE(newcomer_never_becomes_ready, "a joiner that does not come up is given up")
{
    story_four_workers(w, 400);
    world_host(w, "c", 0);
    world_np(w, 4, 2, 5);
    world_shape(w)->config.start_timeout_us = 20 * TIME_S;
    world_at(w, 8 * TIME_S, next_boot("c", BOOT_SLOW, 0, TIME_HOUR));
    world_at(w, 9 * TIME_S, list_host("c", 1));
    story_ends(w, "4", 0);
}

STORY(newcomer_crashes_while_booting, "one that crashes while booting is tried again later")
{
    story_room_for_third_host(w);
    world_at(w, 8 * TIME_S, next_boot("c", BOOT_SIGNAL, 11, 0));
    world_at(w, 9 * TIME_S, list_host("c", 2));
    story_ends(w, "4 5 6", 0);
}

STORY(newcomer_cannot_be_started, "a program that is not there is the slot's failure")
{
    story_room_for_third_host(w);
    world_at(w, 8 * TIME_S, spawn_fails("c"));
    world_at(w, 9 * TIME_S, list_host("c", 2));
    story_ends(w, "4 5 6", 0);
}

STORY(newcomer_hosts_cannot_be_reached, "a host that cannot be reached is tried less and less")
{
    story_room_for_third_host(w);
    world_at(w, 0, power_off("c"));
    world_at(w, 9 * TIME_S, list_host("c", 2));
    story_ends(w, "4", 0);
}

STORY(state_does_not_match, "another model is turned away, by name, and the job goes on")
{
    story_room_for_third_host(w);
    world_at(w, 8 * TIME_S, next_boot("c", BOOT_OTHER_STATE, 0, 0));
    world_at(w, 9 * TIME_S, list_host("c", 2));
    story_ends(w, "4 5 6", 0);
    world_expect_told(w, "weights");
}

STORY(late_hosts_do_not_time_out, "the time to start counts from each launch, not the job's")
{
    world_host(w, "a", 2);
    world_host(w, "b", 0);
    world_host(w, "c", 2);
    story_job(w, 4, 2, 6, 4000);
    world_shape(w)->config.start_timeout_us = 30 * TIME_S;
    world_at(w, 5 * TIME_MIN, list_host("b", 2));
    world_at(w, 5 * TIME_MIN, next_boot("b", BOOT_SLOW, 0, 25 * TIME_S));
    world_at(w, 60 * TIME_S, ask_status());
    story_ends(w, "4 5 6", 0);
}

STORY(first_hosts_come_too_late, "the first hosts are waited for, for --start-timeout")
{
    world_host(w, "a", 2);
    world_host(w, "b", 0);
    story_job(w, 4, 2, 4, 200);
    world_shape(w)->config.start_timeout_us = 30 * TIME_S;
    story_ends(w, "", 4);
    world_expect_told(w, "only 0 of 4 workers for longer than --start-timeout");
}

STORY_ALONE(every_host_replaced_one_by_one, "none of the first hosts is left, and no step is lost")
{
    story_four_workers(w, 400);
    world_host(w, "c", 0);
    world_host(w, "d", 0);
    world_train(w, 600);
    world_at(w, 9 * TIME_S, list_host("c", 2));
    world_at(w, 9 * TIME_S, unlist_host("a"));
    world_at(w, 29 * TIME_S, list_host("d", 2));
    world_at(w, 29 * TIME_S, unlist_host("b"));
    story_ends(w, "4 2 4 2 4", 0);
}

STORY_ALONE(every_host_replaced_at_once, "all at once: one stays to hand the state over")
{
    story_four_workers(w, 400);
    world_host(w, "c", 0);
    world_host(w, "d", 0);
    world_at(w, 9 * TIME_S, list_host("c", 2));
    world_at(w, 9 * TIME_S, list_host("d", 2));
    world_at(w, 9 * TIME_S, unlist_host("a"));
    world_at(w, 9 * TIME_S, unlist_host("b"));
    story_ends(w, "4 2 4 4", 0);
}

STORY(host_flaps_20_times, "a host that comes and goes every second disturbs no other")
{
    story_room_for_third_host(w);
    world_train(w, 800);
    for (int i = 0; i < 20; i++) {
        world_at(w, (9 + 2 * i) * TIME_S, list_host("c", 2));
        world_at(w, (10 + 2 * i) * TIME_S, unlist_host("c"));
    }
    story_ends(w, "4", 0);
}

STORY_ALONE(member_host_flaps_20_times, "a member's host goes and comes every second")
{
    story_four_workers(w, 400);
    world_train(w, 800);
    for (int i = 0; i < 20; i++) {
        world_at(w, (9 + 2 * i) * TIME_S, unlist_host("b"));
        world_at(w, (10 + 2 * i) * TIME_S, list_host("b", 2));
    }
    story_ends(w, "4 2 4", 0);
}

/* The key that its agent was started with is dead when the agent dials. The host is listed again,
 * and the next start hands the new key to this agent. No host is charged. */
STORY(unlisted_while_its_agent_starts, "gone while its agent starts, then back: used at once")
{
    story_room_for_third_host(w);
    world_train(w, 200);
    world_shape(w)->ssh = (struct world_span){ 3 * TIME_S, 3 * TIME_S };
    world_when(w, "round 1: all", TIME_S, list_host("c", 2));
    world_when(w, "hosts: +c:2", TIME_S, unlist_host("c"));
    world_when(w, "c: this host has left the job", 2 * TIME_S, list_host("c", 2));
    story_ends(w, "4 6", 0);
}

/* No worker runs on the host, so no other agent is started when its agent dies. */
STORY(its_agent_dies_while_it_is_not_listed, "gone, and its agent with it, then back: used at once")
{
    story_four_workers(w, 400);
    world_np(w, 6, 2, 6);
    world_host(w, "c", 0);
    world_at(w, 2 * TIME_S, unlist_host("b"));
    world_at(w, 4 * TIME_S, kill_agent("b"));
    world_at(w, 5 * TIME_S, list_host("b", 2));
    world_at(w, 5 * TIME_S, list_host("c", 2));
    story_ends(w, "6", 0);
}

STORY_ALONE(late_exit_of_a_former_worker,
            "an exit told late, and twice, is not held against the next one there")
{
    story_four_workers(w, 400);
    world_at(w, 9 * TIME_S, unlist_host("b"));
    world_when(w, "round 2 (switch)", 50 * TIME_MS, mute("b"));
    world_at(w, 11 * TIME_S, list_host("b", 2));
    world_at(w, 16 * TIME_S, heal("b"));
    world_when(w, "b:0#5 is ready", 0, repeat_frames("b"));
    story_ends(w, "4 2 4", 0);
}

STORY(discovery_hangs_for_a_while, "discovery hangs: the hosts stay as they are")
{
    story_four_workers(w, 400);
    world_at(w, 9 * TIME_S, discovery_hangs());
    world_at(w, 10 * TIME_S, discovery_hangs());
    story_ends(w, "4", 0);
}

STORY(discovery_prints_rubbish_for_a_while, "discovery fails: the hosts stay as they are")
{
    story_four_workers(w, 400);
    world_at(w, 9 * TIME_S, discovery_prints_rubbish());
    world_at(w, 10 * TIME_S, discovery_fails());
    story_ends(w, "4", 0);
}

STORY(sixty_four_workers, "one of 64 dies: 63 go on")
{
    static const char *const names[] = { "h1", "h2", "h3", "h4", "h5", "h6", "h7", "h8" };

    for (size_t i = 0; i < ARRAY_SIZE(names); i++)
        world_host(w, names[i], 8);
    story_job(w, 64, 32, 64, 200);
    world_at(w, 9 * TIME_S, kill_worker("h3", 5));
    story_ends(w, "64 63", 0);
}

static void one_worker(struct world *w)
{
    world_host(w, "a", 1);
    world_host(w, "b", 0);
    story_job(w, 1, 1, 1, 300);
}

STORY_ALONE(the_only_worker_is_drained, "one worker at most: its agent hands the state over")
{
    one_worker(w);
    world_at(w, 9 * TIME_S, list_host("b", 1));
    world_at(w, 11 * TIME_S, drain("a", COMMAND_WHOLE_HOST, TIME_NEVER));
    story_ends(w, "1 1", 0);
}

STORY_ALONE(the_only_host_is_replaced, "the same with the only host; its agent ends afterwards")
{
    one_worker(w);
    world_at(w, 9 * TIME_S, list_host("b", 1));
    world_at(w, 9 * TIME_S, unlist_host("a"));
    story_ends(w, "1 1", 0);
}

STORY_ALONE(the_newcomer_dies_in_the_handover, "the agent still has the state for the next one")
{
    one_worker(w);
    world_at(w, 9 * TIME_S, list_host("b", 1));
    world_at(w, 11 * TIME_S, drain("a", COMMAND_WHOLE_HOST, TIME_NEVER));
    world_when(w, "a:0#1 has left", 0, kill_worker("b", 0));
    story_ends(w, "1 1 1", 0);
}

STORY_ALONE(the_only_worker_dies_in_the_handover,
            "before the agreed check: its agent has the commit before")
{
    one_worker(w);
    world_at(w, 9 * TIME_S, list_host("b", 1));
    world_at(w, 11 * TIME_S, drain("a", COMMAND_WHOLE_HOST, TIME_NEVER));
    world_when(w, "round 2 (switch)", 0, kill_worker("a", 0));
    story_ends(w, "1 1 1", 0);
}

STORY_ALONE(the_driver_dies_in_the_handover, "its successor goes on with it")
{
    one_worker(w);
    world_at(w, 9 * TIME_S, list_host("b", 1));
    world_at(w, 11 * TIME_S, drain("a", COMMAND_WHOLE_HOST, TIME_NEVER));
    world_when(w, "round 2 (switch)", 5 * TIME_MS, kill_driver());
    world_run(w);
    world_expect_exit(w, 0);
}

STORY_ALONE(all_die_and_start_elsewhere, "the state comes from the agents of those that died")
{
    world_host(w, "a", 1);
    world_host(w, "b", 1);
    world_host(w, "c", 0);
    story_job(w, 2, 2, 2, 300);
    world_at(w, 9 * TIME_S, kill_worker("a", 0));
    world_at(w, 9 * TIME_S, kill_worker("b", 0));
    world_at(w, 9 * TIME_S, unlist_host("a"));
    world_at(w, 9 * TIME_S, unlist_host("b"));
    world_at(w, 20 * TIME_S, list_host("c", 2));
    story_ends(w, "2 2", 0);
}
