/* What Elastic Horovod, the reference, shows with real processes; the same with ours. */
#include "tests/stories/story.h"

static void two_by_two(struct world *w)
{
    world_host(w, "a", 2);
    world_host(w, "b", 2);
    world_np(w, 2, 2, 4);
    world_train(w, 300);
}

/* ---- hosts come and go ---------------------------------------------------------------------- */

static void first_a_then_both_then_b(struct world *w, uint32_t slots)
{
    world_host(w, "a", slots);
    world_host(w, "b", 0);
    world_np(w, slots, slots, 4);
    world_train(w, 150);
    world_when(w, "round 1: all", TIME_S, list_host("b", slots));
    world_when(w, "round 2: all", TIME_S, unlist_host("a"));
}

static void hosts_added_and_removed(struct world *w)
{
    first_a_then_both_then_b(w, 2);
    world_run(w);
    world_expect_rounds(w, "2 4 2");
    world_expect_told(w, "round 3: by rank b:0,1");
    world_expect_exit(w, 0);
}

static void hosts_of_one_slot_added_and_removed(struct world *w)
{
    first_a_then_both_then_b(w, 1);
    world_run(w);
    world_expect_rounds(w, "1 2 1");
    world_expect_exit(w, 0);
}

/* ---- one worker fails ----------------------------------------------------------------------- */

static void one_worker_fails(struct world *w)
{
    two_by_two(w);
    world_at(w, 9 * TIME_S, exit_worker("a", 0, 1));
    world_run(w);
    world_expect_rounds(w, "4 3 4");
    world_expect_told(w, "round 2: by rank a:1 b:0,1");
    world_expect_told(w, "round 3: by rank a:1 b:0,1 a:0");
    world_expect_exit(w, 0);
}

static void one_worker_fails_host_scope(struct world *w)
{
    two_by_two(w);
    world_shape(w)->config.blacklist.scope = SCOPE_HOST;
    world_shape(w)->config.blacklist.forever = true;
    world_at(w, 9 * TIME_S, exit_worker("a", 0, 1));
    world_run(w);
    world_expect_rounds(w, "4 2");
    world_expect_told(w, "round 2: by rank b:0,1");
    world_expect_exit(w, 0);
}

static void fixed_hosts(struct world *w)
{
    two_by_two(w);
    world_train(w, 500);
    world_at(w, 9 * TIME_S, kill_worker("b", 1));
    world_when(w, "round 3: all", 0, exit_worker("a", 0, 1));
    world_run(w);
    world_expect_rounds(w, "4 3 4 3 4");
    world_expect_exit(w, 0);
}

/* The first failure costs one to two seconds, the second two. */
static void barred_slot_returns(struct world *w)
{
    two_by_two(w);
    world_shape(w)->config.blacklist.lower_us = TIME_S;
    world_shape(w)->config.blacklist.upper_us = 2 * TIME_S;
    world_at(w, 9 * TIME_S, exit_worker("b", 1, 1));
    world_when(w, "round 3: all", TIME_S, exit_worker("b", 1, 1));
    world_run(w);
    world_expect_rounds(w, "4 3 4 3 4");
    world_expect_told(w, "b:1 failed: cooling for 2s more after 2 failures");
    world_expect_exit(w, 0);
}

/* ---- everybody fails ------------------------------------------------------------------------ */

static void every_worker_fails(struct world *w)
{
    two_by_two(w);
    world_at(w, 9 * TIME_S, exit_worker("a", 0, 1));
    world_at(w, 9 * TIME_S, exit_worker("a", 1, 1));
    world_at(w, 9 * TIME_S, exit_worker("b", 0, 1));
    world_at(w, 9 * TIME_S, exit_worker("b", 1, 1));
    world_run(w);
    world_expect_rounds(w, "4");
    world_expect_told(w, "every worker of round 1 has failed; the first: a:0#1: exit code 1");
    world_expect_exit(w, 1);
}

static void every_host_barred(struct world *w)
{
    two_by_two(w);
    world_shape(w)->config.blacklist.scope = SCOPE_HOST;
    world_shape(w)->config.blacklist.forever = true;
    world_at(w, 9 * TIME_S, exit_worker("a", 0, 1));
    world_at(w, 9 * TIME_S, exit_worker("b", 0, 1));
    world_run(w);
    world_expect_rounds(w, "4");
    world_expect_exit(w, 1);
}

static void too_few_for_too_long(struct world *w)
{
    two_by_two(w);
    world_np(w, 4, 4, 4);
    world_shape(w)->config.elastic_timeout_us = TIME_S;
    world_at(w, 9 * TIME_S, exit_worker("a", 0, 1));
    world_run(w);
    world_expect_rounds(w, "4");
    world_expect_told(w, "only 3 of 4 workers");
    world_expect_exit(w, 4);
}

/* ---- how often the membership may change ---------------------------------------------------- */

static void reset_limit_of_one(struct world *w)
{
    first_a_then_both_then_b(w, 2);
    world_shape(w)->config.reset_limit = 1;
    world_run(w);
    world_expect_rounds(w, "2 4");
    world_expect_told(w, "more than --reset-limit 1 allows");
    world_expect_exit(w, 1);
}

static void reset_limit_of_two(struct world *w)
{
    first_a_then_both_then_b(w, 2);
    world_shape(w)->config.reset_limit = 2;
    world_run(w);
    world_expect_rounds(w, "2 4 2");
    world_expect_exit(w, 0);
}

STORIES(
    STORY_ALONE(hosts_added_and_removed,
                "a second host joins, then the first leaves: no step is lost"),
    STORY_ALONE(hosts_of_one_slot_added_and_removed, "the same with hosts of one slot"),
    STORY(one_worker_fails, "rank 0 exits with 1: its slot cools down, the others go on at once"),
    STORY_ALONE(one_worker_fails_host_scope,
                "--blacklist-scope host, forever: its host goes with it"),
    STORY(fixed_hosts, "the hosts never change: failed slots are filled again after a cooldown"),
    STORY(barred_slot_returns, "a slot fails twice: each time it is back after its cooldown"),
    STORY_ALONE(every_worker_fails, "all workers exit with 1: the job fails and names the first"),
    STORY_ALONE(every_host_barred, "a failure on every host, scope host, forever: fails at once"),
    STORY_ALONE(too_few_for_too_long, "fewer than --min-np for --elastic-timeout: the job fails"),
    STORY_ALONE(reset_limit_of_one, "one change more than --reset-limit: the job fails"),
    STORY_ALONE(reset_limit_of_two, "as many changes as --reset-limit: all is well"))
