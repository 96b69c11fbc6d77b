/* Hosts come, go, flap and are asked to leave. */
#include "tests/stories/story.h"

static void four_workers(struct world *w)
{
    world_host(w, "a", 2);
    world_host(w, "b", 2);
    world_np(w, 4, 2, 4);
    world_train(w, 400);
}

static void removed_and_added_in_one_poll(struct world *w)
{
    four_workers(w);
    world_host(w, "c", 0);
    world_at(w, 9 * TIME_S, unlist_host("b"));
    world_at(w, 9 * TIME_S, list_host("c", 2));
    world_run(w);
    world_expect_rounds(w, "4 2 4");
    world_expect_exit(w, 0);
}

static void removed_and_added_again_between_polls(struct world *w)
{
    four_workers(w);
    world_at(w, 9100 * TIME_MS, unlist_host("b"));
    world_at(w, 9200 * TIME_MS, list_host("b", 2));
    world_run(w);
    world_expect_rounds(w, "4");
    world_expect_exit(w, 0);
}

static void added_while_below_min(struct world *w)
{
    four_workers(w);
    world_np(w, 4, 4, 4);
    world_host(w, "c", 0);
    world_at(w, 9 * TIME_S, unlist_host("b"));
    world_at(w, 15 * TIME_S, list_host("c", 2));
    world_run(w);
    world_expect_rounds(w, "4 4");
    world_expect_exit(w, 0);
}

static void newcomer_boots_for_60_s(struct world *w)
{
    four_workers(w);
    world_host(w, "c", 0);
    world_np(w, 4, 2, 5);
    world_train(w, 800);
    world_at(w, 8 * TIME_S, next_boot("c", BOOT_SLOW, 0, 57 * TIME_S));
    world_at(w, 9 * TIME_S, list_host("c", 1));
    world_run(w);
    world_expect_rounds(w, "4 5");
    world_expect_exit(w, 0);
}

static void newcomer_never_becomes_ready(struct world *w)
{
    four_workers(w);
    world_host(w, "c", 0);
    world_np(w, 4, 2, 5);
    world_shape(w)->config.start_timeout_us = 20 * TIME_S;
    world_at(w, 8 * TIME_S, next_boot("c", BOOT_SLOW, 0, TIME_HOUR));
    world_at(w, 9 * TIME_S, list_host("c", 1));
    world_run(w);
    world_expect_rounds(w, "4");
    world_expect_exit(w, 0);
}

static void newcomer_crashes_while_booting(struct world *w)
{
    four_workers(w);
    world_host(w, "c", 0);
    world_np(w, 4, 2, 6);
    world_at(w, 8 * TIME_S, next_boot("c", BOOT_SIGNAL, 11, 0));
    world_at(w, 9 * TIME_S, list_host("c", 2));
    world_run(w);
    world_expect_rounds(w, "4 5 6");
    world_expect_exit(w, 0);
}

static void newcomer_cannot_be_started(struct world *w)
{
    four_workers(w);
    world_host(w, "c", 0);
    world_np(w, 4, 2, 6);
    world_at(w, 8 * TIME_S, spawn_fails("c"));
    world_at(w, 9 * TIME_S, list_host("c", 2));
    world_run(w);
    world_expect_rounds(w, "4 5 6");
    world_expect_exit(w, 0);
}

static void newcomer_hosts_cannot_be_reached(struct world *w)
{
    four_workers(w);
    world_host(w, "c", 0);
    world_np(w, 4, 2, 6);
    world_at(w, 0, power_off("c"));
    world_at(w, 9 * TIME_S, list_host("c", 2));
    world_run(w);
    world_expect_rounds(w, "4");
    world_expect_exit(w, 0);
}

static void state_does_not_match(struct world *w)
{
    four_workers(w);
    world_host(w, "c", 0);
    world_np(w, 4, 2, 6);
    world_at(w, 8 * TIME_S, next_boot("c", BOOT_OTHER_STATE, 0, 0));
    world_at(w, 9 * TIME_S, list_host("c", 2));
    world_run(w);
    world_expect_told(w, "weights");
    world_expect_rounds(w, "4 5 6");
    world_expect_exit(w, 0);
}

static void late_hosts_do_not_time_out(struct world *w)
{
    world_host(w, "a", 2);
    world_host(w, "b", 0);
    world_np(w, 4, 2, 4);
    world_train(w, 200);
    world_shape(w)->config.start_timeout_us = 30 * TIME_S;
    world_at(w, 5 * TIME_MIN, list_host("b", 2));
    world_at(w, 5 * TIME_MIN, next_boot("b", BOOT_SLOW, 0, 25 * TIME_S));
    world_at(w, 60 * TIME_S, ask_status());
    world_run(w);
    world_expect_rounds(w, "4");
    world_expect_exit(w, 0);
}

static void every_host_replaced_one_by_one(struct world *w)
{
    four_workers(w);
    world_host(w, "c", 0);
    world_host(w, "d", 0);
    world_train(w, 600);
    world_at(w, 9 * TIME_S, list_host("c", 2));
    world_at(w, 9 * TIME_S, unlist_host("a"));
    world_at(w, 29 * TIME_S, list_host("d", 2));
    world_at(w, 29 * TIME_S, unlist_host("b"));
    world_run(w);
    world_expect_rounds(w, "4 2 4 2 4");
    world_expect_exit(w, 0);
}

static void every_host_replaced_at_once(struct world *w)
{
    four_workers(w);
    world_host(w, "c", 0);
    world_host(w, "d", 0);
    world_at(w, 9 * TIME_S, list_host("c", 2));
    world_at(w, 9 * TIME_S, list_host("d", 2));
    world_at(w, 9 * TIME_S, unlist_host("a"));
    world_at(w, 9 * TIME_S, unlist_host("b"));
    world_run(w);
    world_expect_rounds(w, "4 2 4 4");
    world_expect_exit(w, 0);
}

static void host_flaps_20_times(struct world *w)
{
    four_workers(w);
    world_host(w, "c", 0);
    world_np(w, 4, 2, 6);
    world_train(w, 800);
    for (int i = 0; i < 20; i++) {
        world_at(w, (9 + 2 * i) * TIME_S, list_host("c", 2));
        world_at(w, (10 + 2 * i) * TIME_S, unlist_host("c"));
    }
    world_run(w);
    world_expect_rounds(w, "4");
    world_expect_exit(w, 0);
}

static void member_host_flaps_20_times(struct world *w)
{
    four_workers(w);
    world_train(w, 800);
    for (int i = 0; i < 20; i++) {
        world_at(w, (9 + 2 * i) * TIME_S, unlist_host("b"));
        world_at(w, (10 + 2 * i) * TIME_S, list_host("b", 2));
    }
    world_run(w);
    world_expect_rounds(w, "4 2 4");
    world_expect_exit(w, 0);
}

/* Listed again, it needs an agent anew; that the first one has gone is held against nobody. */
static void unlisted_while_its_agent_starts(struct world *w)
{
    four_workers(w);
    world_host(w, "c", 0);
    world_np(w, 4, 2, 6);
    world_train(w, 200);
    world_shape(w)->ssh = (struct world_span){ 3 * TIME_S, 3 * TIME_S };
    world_when(w, "round 1: all", TIME_S, list_host("c", 2));
    world_when(w, "hosts: +c:2", TIME_S, unlist_host("c"));
    world_when(w, "c: an agent says hello", 0, list_host("c", 2));
    world_run(w);
    world_expect_rounds(w, "4 6");
    world_expect_exit(w, 0);
}

/* Nobody ran there, so no other was asked for when it died. */
static void its_agent_dies_while_it_is_not_listed(struct world *w)
{
    four_workers(w);
    world_np(w, 6, 2, 6);
    world_host(w, "c", 0);
    world_at(w, 2 * TIME_S, unlist_host("b"));
    world_at(w, 4 * TIME_S, kill_agent("b"));
    world_at(w, 5 * TIME_S, list_host("b", 2));
    world_at(w, 5 * TIME_S, list_host("c", 2));
    world_run(w);
    world_expect_rounds(w, "6");
    world_expect_exit(w, 0);
}

static void late_exit_of_a_former_worker(struct world *w)
{
    four_workers(w);
    world_at(w, 9 * TIME_S, unlist_host("b"));
    world_when(w, "round 2 (switch)", 50 * TIME_MS, mute("b"));
    world_at(w, 11 * TIME_S, list_host("b", 2));
    world_at(w, 16 * TIME_S, heal("b"));
    world_when(w, "b:0#5 is ready", 0, repeat_frames("b"));
    world_run(w);
    world_expect_rounds(w, "4 2 4");
    world_expect_exit(w, 0);
}

static void discovery_hangs_for_a_while(struct world *w)
{
    four_workers(w);
    world_at(w, 9 * TIME_S, discovery_hangs());
    world_at(w, 10 * TIME_S, discovery_hangs());
    world_run(w);
    world_expect_rounds(w, "4");
    world_expect_exit(w, 0);
}

static void discovery_prints_rubbish_for_a_while(struct world *w)
{
    four_workers(w);
    world_at(w, 9 * TIME_S, discovery_prints_rubbish());
    world_at(w, 10 * TIME_S, discovery_fails());
    world_run(w);
    world_expect_rounds(w, "4");
    world_expect_exit(w, 0);
}

static void sixty_four_workers(struct world *w)
{
    static const char *const names[] = { "h1", "h2", "h3", "h4", "h5", "h6", "h7", "h8" };

    for (size_t i = 0; i < ARRAY_SIZE(names); i++)
        world_host(w, names[i], 8);
    world_np(w, 64, 32, 64);
    world_train(w, 200);
    world_at(w, 9 * TIME_S, kill_worker("h3", 5));
    world_run(w);
    world_expect_rounds(w, "64 63");
    world_expect_exit(w, 0);
}

static void one_worker(struct world *w)
{
    world_host(w, "a", 1);
    world_host(w, "b", 0);
    world_np(w, 1, 1, 1);
    world_train(w, 300);
}

static void the_only_worker_is_drained(struct world *w)
{
    one_worker(w);
    world_at(w, 9 * TIME_S, list_host("b", 1));
    world_at(w, 11 * TIME_S, drain("a", DEED_WHOLE_HOST, TIME_NEVER));
    world_run(w);
    world_expect_rounds(w, "1 1");
    world_expect_exit(w, 0);
}

static void the_only_host_is_replaced(struct world *w)
{
    one_worker(w);
    world_at(w, 9 * TIME_S, list_host("b", 1));
    world_at(w, 9 * TIME_S, unlist_host("a"));
    world_run(w);
    world_expect_rounds(w, "1 1");
    world_expect_exit(w, 0);
}

static void the_newcomer_dies_in_the_handover(struct world *w)
{
    one_worker(w);
    world_at(w, 9 * TIME_S, list_host("b", 1));
    world_at(w, 11 * TIME_S, drain("a", DEED_WHOLE_HOST, TIME_NEVER));
    world_when(w, "a:0#1 has left", 0, kill_worker("b", 0));
    world_run(w);
    world_expect_rounds(w, "1 1 1");
    world_expect_exit(w, 0);
}

static void the_only_worker_dies_in_the_handover(struct world *w)
{
    one_worker(w);
    world_at(w, 9 * TIME_S, list_host("b", 1));
    world_at(w, 11 * TIME_S, drain("a", DEED_WHOLE_HOST, TIME_NEVER));
    world_when(w, "round 2 (switch)", 0, kill_worker("a", 0));
    world_run(w);
    world_expect_rounds(w, "1 1 1");
    world_expect_exit(w, 0);
}

static void the_driver_dies_in_the_handover(struct world *w)
{
    one_worker(w);
    world_at(w, 9 * TIME_S, list_host("b", 1));
    world_at(w, 11 * TIME_S, drain("a", DEED_WHOLE_HOST, TIME_NEVER));
    world_when(w, "round 2 (switch)", 5 * TIME_MS, kill_driver());
    world_run(w);
    world_expect_exit(w, 0);
}

static void all_die_and_start_elsewhere(struct world *w)
{
    world_host(w, "a", 1);
    world_host(w, "b", 1);
    world_host(w, "c", 0);
    world_np(w, 2, 2, 2);
    world_train(w, 300);
    world_at(w, 9 * TIME_S, kill_worker("a", 0));
    world_at(w, 9 * TIME_S, kill_worker("b", 0));
    world_at(w, 9 * TIME_S, unlist_host("a"));
    world_at(w, 9 * TIME_S, unlist_host("b"));
    world_at(w, 20 * TIME_S, list_host("c", 2));
    world_run(w);
    world_expect_rounds(w, "2 2");
    world_expect_exit(w, 0);
}

STORIES(
    STORY_ALONE(the_only_worker_is_drained, "one worker at most: its agent hands the state over"),
    STORY_ALONE(the_only_host_is_replaced,
                "the same with the only host; its agent ends afterwards"),
    STORY_ALONE(the_newcomer_dies_in_the_handover,
                "the agent still has the state for the next one"),
    STORY_ALONE(the_only_worker_dies_in_the_handover,
                "before the agreed check: its agent has the commit before"),
    STORY_ALONE(the_driver_dies_in_the_handover, "its successor goes on with it"),
    STORY_ALONE(all_die_and_start_elsewhere, "the state comes from the agents of those that died"),
    STORY_ALONE(removed_and_added_in_one_poll, "one host for another: nobody loses a step"),
    STORY(removed_and_added_again_between_polls, "what discovery does not see has not happened"),
    STORY(added_while_below_min,
          "a host without which there would be too few stays until its replacement is ready"),
    STORY(newcomer_boots_for_60_s, "a slow newcomer costs the others nothing"),
    STORY_ALONE(newcomer_never_becomes_ready, "a newcomer that does not come up is given up"),
    STORY(newcomer_crashes_while_booting, "one that crashes while booting is tried again later"),
    STORY(newcomer_cannot_be_started, "a program that is not there is the slot's failure"),
    STORY(newcomer_hosts_cannot_be_reached, "a host that cannot be reached is tried less and less"),
    STORY(state_does_not_match, "another model is turned away, by name, and the job goes on"),
    STORY(late_hosts_do_not_time_out, "the time to start counts from each launch, not the job's"),
    STORY_ALONE(every_host_replaced_one_by_one,
                "none of the first hosts is left, and no step is lost"),
    STORY_ALONE(every_host_replaced_at_once, "all at once: one stays to hand the state over"),
    STORY(host_flaps_20_times, "a host that comes and goes every second disturbs nobody"),
    STORY_ALONE(member_host_flaps_20_times, "a member's host goes and comes every second"),
    STORY(unlisted_while_its_agent_starts, "gone while its agent starts, then back: used at once"),
    STORY(its_agent_dies_while_it_is_not_listed,
          "gone, and its agent with it, then back: used at once"),
    STORY_ALONE(late_exit_of_a_former_worker,
                "an exit told late, and twice, is not held against the next one there"),
    STORY(discovery_hangs_for_a_while, "discovery hangs: the hosts stay as they are"),
    STORY(discovery_prints_rubbish_for_a_while, "discovery fails: the hosts stay as they are"),
    STORY(sixty_four_workers, "one of 64 dies: 63 go on"))
