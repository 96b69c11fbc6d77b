/*
 * story_reference.c: the tests that Elastic Horovod, the reference, runs with real processes, here
 * as stories. docs/stories.md, "Conformance".
 */
#include "tests/stories/story.h"

/* ---- hosts come and go ---------------------------------------------------------------------- */

static void first_a_then_both_then_b(struct world *w, uint32_t slots)
{
    world_host(w, "a", slots);
    world_host(w, "b", 0);
    story_job(w, slots, slots, 4, 150);
    world_when(w, "round 1: all", TIME_S, list_host("b", slots));
    world_when(w, "round 2: all", TIME_S, unlist_host("a"));
}

STORY_ALONE(hosts_added_and_removed, "a second host joins, then the first leaves: no step is lost")
{
    first_a_then_both_then_b(w, 2);
    story_ends(w, "2 4 2", 0);
    world_expect_told(w, "round 3: by rank b:0,1");
}

STORY_ALONE(hosts_of_one_slot_added_and_removed, "the same with hosts of one slot")
{
    first_a_then_both_then_b(w, 1);
    story_ends(w, "1 2 1", 0);
}

/* ---- one worker fails ----------------------------------------------------------------------- */

STORY(one_worker_fails, "rank 0 exits with 1: its slot cools down, the others go on at once")
{
    story_two_of_four(w, 300);
    world_at(w, 9 * TIME_S, exit_worker("a", 0, 1));
    story_ends(w, "4 3 4", 0);
    world_expect_told(w, "round 2: by rank a:1 b:0,1");
    world_expect_told(w, "round 3: by rank a:1 b:0,1 a:0");
}

STORY_ALONE(one_worker_fails_host_scope, "--blacklist-scope host, forever: its host goes with it")
{
    story_two_of_four(w, 300);
    world_shape(w)->config.blacklist.scope = SCOPE_HOST;
    world_shape(w)->config.blacklist.forever = true;
    world_at(w, 9 * TIME_S, exit_worker("a", 0, 1));
    story_ends(w, "4 2", 0);
    world_expect_told(w, "round 2: by rank b:0,1");
}

STORY(fixed_hosts, "the hosts never change: failed slots are filled again after a cooldown")
{
    story_two_of_four(w, 300);
    world_train(w, 500);
    world_at(w, 9 * TIME_S, kill_worker("b", 1));
    world_when(w, "round 3: all", 0, exit_worker("a", 0, 1));
    story_ends(w, "4 3 4 3 4", 0);
}

/* The first failure bars a slot for one to two seconds, the second for two. */
STORY(barred_slot_returns, "a slot fails twice: each time it is back after its cooldown")
{
    story_two_of_four(w, 300);
    world_shape(w)->config.blacklist.lower_us = TIME_S;
    world_shape(w)->config.blacklist.upper_us = 2 * TIME_S;
    world_at(w, 9 * TIME_S, exit_worker("b", 1, 1));
    world_when(w, "round 3: all", TIME_S, exit_worker("b", 1, 1));
    story_ends(w, "4 3 4 3 4", 0);
    world_expect_told(w, "b:1 failed: cooling for 2s more after 2 failures");
}

/* ---- all workers fail ----------------------------------------------------------------------- */

STORY_ALONE(every_worker_fails, "all workers exit with 1: the job fails and names the first")
{
    story_two_of_four(w, 300);
    world_at(w, 9 * TIME_S, exit_worker("a", 0, 1));
    world_at(w, 9 * TIME_S, exit_worker("a", 1, 1));
    world_at(w, 9 * TIME_S, exit_worker("b", 0, 1));
    world_at(w, 9 * TIME_S, exit_worker("b", 1, 1));
    world_run(w);
    world_expect_rounds(w, "4");
    world_expect_told(w,
                      "every worker of round 1 has failed; the first failure: a:0#1: exit code 1");
    world_expect_exit(w, 1);
}

STORY_ALONE(every_host_barred, "a failure on every host, scope host, forever: fails at once")
{
    story_two_of_four(w, 300);
    world_shape(w)->config.blacklist.scope = SCOPE_HOST;
    world_shape(w)->config.blacklist.forever = true;
    world_at(w, 9 * TIME_S, exit_worker("a", 0, 1));
    world_at(w, 9 * TIME_S, exit_worker("b", 0, 1));
    story_ends(w, "4", 1);
}

STORY_ALONE(too_few_for_too_long, "fewer than --min-np for --elastic-timeout: the job fails")
{
    story_two_of_four(w, 300);
    world_np(w, 4, 4, 4);
    world_shape(w)->config.elastic_timeout_us = TIME_S;
    world_at(w, 9 * TIME_S, exit_worker("a", 0, 1));
    story_ends(w, "4", 4);
    world_expect_told(w, "only 3 of 4 workers");
}

/* ---- how often the membership may change ---------------------------------------------------- */

STORY_ALONE(reset_limit_of_one, "one change more than --reset-limit: the job fails")
{
    first_a_then_both_then_b(w, 2);
    world_shape(w)->config.reset_limit = 1;
    story_ends(w, "2 4", 1);
    world_expect_told(w, "more than --reset-limit 1 allows");
}

STORY_ALONE(reset_limit_of_two, "as many changes as --reset-limit: all is well")
{
    first_a_then_both_then_b(w, 2);
    world_shape(w)->config.reset_limit = 2;
    story_ends(w, "2 4 2", 0);
}
