/*
 * story_driver.c: the tests that the reference has for its driver alone, here with real sessions.
 * docs/stories.md, "Conformance".
 */
#include "tests/stories/story.h"

static void host_scope(struct world *w)
{
    world_shape(w)->config.blacklist.scope = SCOPE_HOST;
}

/* ---- ranks ---------------------------------------------------------------------------------- */

STORY(rank_and_size, "two hosts of two: ranks go host by host, and stay")
{
    story_two_of_four(w, 200);
    world_np(w, 4, 4, 4);
    story_ends(w, "4", 0);
    world_expect_told(w, "round 1: by rank a:0,1 b:0,1");
}

STORY_ALONE(host_fails_before_ready, "a host's workers fail while they boot: the others go on")
{
    story_two_of_four(w, 200);
    world_at(w, 2 * TIME_S, exit_worker("b", 0, 1));
    world_at(w, 2 * TIME_S, exit_worker("b", 1, 1));
    story_ends(w, "2 3 4", 0);
    world_expect_told(w, "round 1: by rank a:0,1");
}

/* Every worker that was launched has failed, but another host is about to join. */
STORY_ALONE(host_fails_before_others_come,
            "a host's workers fail while the agents of others start: those are waited for")
{
    story_two_of_four(w, 200);
    world_at(w, 0, cut_off("a"));
    world_at(w, 2 * TIME_S, exit_worker("b", 0, 1));
    world_at(w, 2 * TIME_S, exit_worker("b", 1, 1));
    world_at(w, 4 * TIME_S, heal("a"));
    story_ends(w, "2 3 4", 0);
}

STORY_ALONE(host_added_keeps_ranks, "who was there keeps their rank when a host is added")
{
    world_host(w, "a", 2);
    world_host(w, "b", 0);
    story_job(w, 2, 2, 4, 100);
    world_when(w, "round 1: all", TIME_S, list_host("b", 2));
    story_ends(w, "2 4", 0);
    world_expect_told(w, "round 2: by rank a:0,1 b:0,1");
}

/* Discovery lists the hosts in the order d c b; b and c have been listed for longer. */
STORY(old_hosts_first, "discovery prints another order: old hosts keep theirs, new ones append")
{
    world_host(w, "a", 1);
    world_host(w, "b", 1);
    world_host(w, "c", 1);
    world_host(w, "d", 0);
    story_job(w, 3, 2, 4, 100);
    world_at(w, 6 * TIME_S, unlist_host("a"));
    world_at(w, 6 * TIME_S, unlist_host("b"));
    world_at(w, 6 * TIME_S, unlist_host("c"));
    world_at(w, 6 * TIME_S, list_host("d", 1));
    world_at(w, 6 * TIME_S, list_host("c", 1));
    world_at(w, 6 * TIME_S, list_host("b", 1));
    story_ends(w, "3 2 3", 0);
    world_expect_told(w, "round 3: by rank b:0 c:0 d:0");
}

/* Discovery lists the hosts in the order a b, while the job still waits for slots. */
STORY(newest_order_before_the_start,
      "hosts come in another order than the list has: ranks follow the list")
{
    world_host(w, "a", 0);
    world_host(w, "b", 1);
    story_job(w, 2, 2, 2, 20);
    world_at(w, 3 * TIME_S, unlist_host("b"));
    world_at(w, 3 * TIME_S, list_host("a", 1));
    world_at(w, 3 * TIME_S, list_host("b", 1));
    story_ends(w, "2", 0);
    world_expect_told(w, "round 1: by rank a:0 b:0");
}

/* ---- which workers wait for which ----------------------------------------------------------- */

STORY(waits_for_np_slots, "nothing, 4, 12, 16 slots: nothing is launched before there are -np")
{
    world_host(w, "a", 0);
    world_host(w, "b", 0);
    world_host(w, "c", 0);
    story_job(w, 16, 8, 16, 20);
    world_at(w, 3 * TIME_S, list_host("a", 4));
    world_at(w, 6 * TIME_S, list_host("b", 8));
    world_at(w, 9 * TIME_S, list_host("c", 4));
    story_ends(w, "16", 0);
}

STORY_ALONE(one_host_is_enough, "one host with -np slots is enough; the reference wants two")
{
    world_host(w, "a", 4);
    story_job(w, 4, 2, 4, 20);
    story_ends(w, "4", 0);
}

/* ---- failures ------------------------------------------------------------------------------- */

STORY_ALONE(every_worker_fails_after_ready, "all fail as soon as they are ready: the job fails")
{
    story_two_of_four(w, 200);
    world_np(w, 4, 2, 4);
    world_when(w, "b:1#4 is ready", 0, exit_worker("a", 0, 1));
    world_when(w, "b:1#4 is ready", 0, exit_worker("a", 1, 1));
    world_when(w, "b:1#4 is ready", 0, exit_worker("b", 0, 1));
    world_when(w, "b:1#4 is ready", 0, exit_worker("b", 1, 1));
    world_run(w);
    world_expect_told(w, "the first failure: a:0#1: exit code 1");
    world_expect_exit(w, 1);
}

STORY_ALONE(every_worker_fails_before_ready, "the program cannot run: the job fails at once")
{
    story_two_of_four(w, 200);
    world_at(w, 2 * TIME_S, exit_worker("a", 0, 127));
    world_at(w, 2 * TIME_S, exit_worker("a", 1, 127));
    world_at(w, 2 * TIME_S, exit_worker("b", 0, 127));
    world_at(w, 2 * TIME_S, exit_worker("b", 1, 127));
    world_run(w);
    world_expect_rounds(w, "");
    world_expect_told(
        w, "every worker failed before it joined; the first failure: a:0#1: exit code 127");
    world_expect_exit(w, 1);
}

STORY(exit_0_alone_is_not_success, "exit 0 in the middle is a failure; the job goes on")
{
    story_two_of_four(w, 200);
    world_at(w, 6 * TIME_S, exit_worker("a", 0, 0));
    story_ends(w, "4 3 4", 0);
    world_expect_told(w, "a:0#1: exit code 0 before the worker's training had finished");
}

STORY(host_scope_ends_the_others_on_the_host, "--blacklist-scope host: the neighbours go too")
{
    story_two_of_four(w, 200);
    host_scope(w);
    world_at(w, 6 * TIME_S, exit_worker("a", 0, 1));
    story_ends(w, "4 2 4", 0);
    world_expect_told(w, "round 2: by rank b:0,1");
}

STORY_ALONE(barred_host_gets_nothing, "a barred host may grow: nothing is launched there")
{
    story_two_of_four(w, 200);
    world_host(w, "c", 0);
    host_scope(w);
    story_bar_forever(w);
    world_at(w, 6 * TIME_S, exit_worker("a", 0, 1));
    world_when(w, "round 2: all", TIME_S, list_host("c", 1));
    world_when(w, "round 3: all", TIME_S, list_host("a", 4));
    story_ends(w, "4 2 3", 0);
    world_expect_told(w, "round 3: by rank b:0,1 c:0");
}

/* ---- discovery ------------------------------------------------------------------------------ */

STORY_ALONE(news_of_hosts, "workers are told of each change of the hosts once")
{
    world_host(w, "a", 2);
    world_host(w, "b", 0);
    story_job(w, 2, 2, 4, 60);
    world_at(w, 5 * TIME_S, list_host("b", 1));
    world_at(w, 7 * TIME_S, unlist_host("b"));
    story_ends(w, "2", 0);
    world_expect_told(w, "round 1 is told that hosts have changed: +1 -0");
    world_expect_told(w, "round 1 is told that hosts have changed: +0 -1");
}

/* The connections of the next round take three seconds, so that more news can reach the driver
 * before the round begins. */
STORY_ALONE(news_during_a_change, "workers hear of a host while they change rounds")
{
    world_host(w, "a", 2);
    world_host(w, "b", 0);
    world_host(w, "c", 0);
    story_job(w, 2, 2, 6, 200);
    world_shape(w)->connect = (struct world_span){ 3 * TIME_S, 3 * TIME_S };
    world_at(w, 7 * TIME_S, list_host("b", 2));
    world_when(w, "round 2 is prepared", TIME_S, list_host("c", 1));
    story_ends(w, "2 4 5", 0);
    world_expect_told(w, "round 1 is told that hosts have changed: +1 -0");
}

STORY_ALONE(news_below_min, "too few slots are listed: who is there is kept until others come")
{
    story_two_of_four(w, 200);
    story_job(w, 4, 4, 4, 100);
    world_at(w, 5 * TIME_S, unlist_host("b"));
    world_at(w, 7 * TIME_S, list_host("a", 1));
    world_at(w, 9 * TIME_S, list_host("a", 2));
    story_ends(w, "4", 0);
}

STORY_ALONE(first_discovery_fails, "the first discovery fails: the job ends with the reason")
{
    story_two_of_four(w, 200);
    world_at(w, 0, discovery_fails());
    story_ends(w, "", 1);
    world_expect_told(w, "the first discovery has failed: the script ended with code 1");
}

STORY_ALONE(first_discovery_is_tried_again, "the first discovery fails, and may be tried again")
{
    story_two_of_four(w, 60);
    world_shape(w)->config.discovery.retry_first = true;
    for (int i = 0; i < 3; i++)
        world_at(w, 0, discovery_fails());
    story_ends(w, "4", 0);
    world_expect_told(w, "the first discovery has failed, and is tried again");
}

STORY_ALONE(first_discovery_fails_for_too_long, "tried again only while hosts are waited for")
{
    story_two_of_four(w, 60);
    world_shape(w)->config.discovery.retry_first = true;
    world_shape(w)->config.elastic_timeout_us = 5 * TIME_S;
    for (int i = 0; i < 6; i++)
        world_at(w, 0, discovery_fails());
    story_ends(w, "", 4);
    world_expect_told(w, "the discovery of hosts has failed: the script ended with code 1");
}

STORY(later_discovery_fails, "later discoveries fail: nothing happens")
{
    story_two_of_four(w, 200);
    world_train(w, 60);
    for (int i = 0; i < 3; i++)
        world_at(w, 6 * TIME_S, discovery_fails());
    story_ends(w, "4", 0);
    world_expect_told(w, "so the list of hosts does not change: the script ended with code 1");
}
