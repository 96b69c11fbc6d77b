/* What the reference shows of its driver alone; the same with real sessions behind it. */
#include "tests/stories/story.h"

static void two_by_two(struct world *w)
{
    world_host(w, "a", 2);
    world_host(w, "b", 2);
    world_np(w, 2, 2, 4);
    world_train(w, 200);
}

static void forever(struct world *w)
{
    world_shape(w)->config.blacklist.forever = true;
}

static void host_scope(struct world *w)
{
    world_shape(w)->config.blacklist.scope = SCOPE_HOST;
}

/* ---- ranks ---------------------------------------------------------------------------------- */

static void rank_and_size(struct world *w)
{
    two_by_two(w);
    world_np(w, 4, 4, 4);
    world_run(w);
    world_expect_rounds(w, "4");
    world_expect_told(w, "round 1: by rank a:0,1 b:0,1");
    world_expect_exit(w, 0);
}

static void host_fails_before_ready(struct world *w)
{
    two_by_two(w);
    world_at(w, 2 * TIME_S, exit_worker("b", 0, 1));
    world_at(w, 2 * TIME_S, exit_worker("b", 1, 1));
    world_run(w);
    world_expect_rounds(w, "2 3 4");
    world_expect_told(w, "round 1: by rank a:0,1");
    world_expect_exit(w, 0);
}

/* All that was launched has failed; but another host is still on its way. */
static void host_fails_before_others_come(struct world *w)
{
    two_by_two(w);
    world_at(w, 0, cut_off("a"));
    world_at(w, 2 * TIME_S, exit_worker("b", 0, 1));
    world_at(w, 2 * TIME_S, exit_worker("b", 1, 1));
    world_at(w, 4 * TIME_S, heal("a"));
    world_run(w);
    world_expect_rounds(w, "2 3 4");
    world_expect_exit(w, 0);
}

static void host_added_keeps_ranks(struct world *w)
{
    world_host(w, "a", 2);
    world_host(w, "b", 0);
    world_np(w, 2, 2, 4);
    world_train(w, 100);
    world_when(w, "round 1: all", TIME_S, list_host("b", 2));
    world_run(w);
    world_expect_rounds(w, "2 4");
    world_expect_told(w, "round 2: by rank a:0,1 b:0,1");
    world_expect_exit(w, 0);
}

/* They are listed in the order d c b, and b and c are older. */
static void old_hosts_first(struct world *w)
{
    world_host(w, "a", 1);
    world_host(w, "b", 1);
    world_host(w, "c", 1);
    world_host(w, "d", 0);
    world_np(w, 3, 2, 4);
    world_train(w, 100);
    world_at(w, 6 * TIME_S, unlist_host("a"));
    world_at(w, 6 * TIME_S, unlist_host("b"));
    world_at(w, 6 * TIME_S, unlist_host("c"));
    world_at(w, 6 * TIME_S, list_host("d", 1));
    world_at(w, 6 * TIME_S, list_host("c", 1));
    world_at(w, 6 * TIME_S, list_host("b", 1));
    world_run(w);
    world_expect_rounds(w, "3 2 3");
    world_expect_told(w, "round 3: by rank b:0 c:0 d:0");
    world_expect_exit(w, 0);
}

/* ---- who waits for whom --------------------------------------------------------------------- */

static void waits_for_np_slots(struct world *w)
{
    world_host(w, "a", 0);
    world_host(w, "b", 0);
    world_host(w, "c", 0);
    world_np(w, 16, 8, 16);
    world_train(w, 20);
    world_at(w, 3 * TIME_S, list_host("a", 4));
    world_at(w, 6 * TIME_S, list_host("b", 8));
    world_at(w, 9 * TIME_S, list_host("c", 4));
    world_run(w);
    world_expect_rounds(w, "16");
    world_expect_exit(w, 0);
}

static void one_host_is_enough(struct world *w)
{
    world_host(w, "a", 4);
    world_np(w, 4, 2, 4);
    world_train(w, 20);
    world_run(w);
    world_expect_rounds(w, "4");
    world_expect_exit(w, 0);
}

/* ---- failures ------------------------------------------------------------------------------- */

static void every_worker_fails_after_ready(struct world *w)
{
    two_by_two(w);
    world_np(w, 4, 2, 4);
    world_when(w, "b:1#4 is ready", 0, exit_worker("a", 0, 1));
    world_when(w, "b:1#4 is ready", 0, exit_worker("a", 1, 1));
    world_when(w, "b:1#4 is ready", 0, exit_worker("b", 0, 1));
    world_when(w, "b:1#4 is ready", 0, exit_worker("b", 1, 1));
    world_run(w);
    world_expect_told(w, "the first: a:0#1: exit code 1");
    world_expect_exit(w, 1);
}

static void every_worker_fails_before_ready(struct world *w)
{
    two_by_two(w);
    world_at(w, 2 * TIME_S, exit_worker("a", 0, 127));
    world_at(w, 2 * TIME_S, exit_worker("a", 1, 127));
    world_at(w, 2 * TIME_S, exit_worker("b", 0, 127));
    world_at(w, 2 * TIME_S, exit_worker("b", 1, 127));
    world_run(w);
    world_expect_rounds(w, "");
    world_expect_told(w, "every worker failed before it joined; the first: a:0#1: exit code 127");
    world_expect_exit(w, 1);
}

static void exit_0_alone_is_not_success(struct world *w)
{
    two_by_two(w);
    world_at(w, 6 * TIME_S, exit_worker("a", 0, 0));
    world_run(w);
    world_expect_rounds(w, "4 3 4");
    world_expect_told(w, "a:0#1: exit code 0 before its training had finished");
    world_expect_exit(w, 0);
}

static void host_scope_ends_the_others_on_the_host(struct world *w)
{
    two_by_two(w);
    host_scope(w);
    world_at(w, 6 * TIME_S, exit_worker("a", 0, 1));
    world_run(w);
    world_expect_rounds(w, "4 2 4");
    world_expect_told(w, "round 2: by rank b:0,1");
    world_expect_exit(w, 0);
}

static void barred_host_gets_nothing(struct world *w)
{
    two_by_two(w);
    world_host(w, "c", 0);
    host_scope(w);
    forever(w);
    world_at(w, 6 * TIME_S, exit_worker("a", 0, 1));
    world_when(w, "round 2: all", TIME_S, list_host("c", 1));
    world_when(w, "round 3: all", TIME_S, list_host("a", 4));
    world_run(w);
    world_expect_rounds(w, "4 2 3");
    world_expect_told(w, "round 3: by rank b:0,1 c:0");
    world_expect_exit(w, 0);
}

/* ---- discovery ------------------------------------------------------------------------------ */

static void news_of_hosts(struct world *w)
{
    world_host(w, "a", 2);
    world_host(w, "b", 0);
    world_np(w, 2, 2, 4);
    world_train(w, 60);
    world_at(w, 5 * TIME_S, list_host("b", 1));
    world_at(w, 7 * TIME_S, unlist_host("b"));
    world_run(w);
    world_expect_rounds(w, "2");
    world_expect_told(w, "round 1 is told: hosts +1 -0");
    world_expect_told(w, "round 1 is told: hosts +0 -1");
    world_expect_exit(w, 0);
}

/* The connections of the next round take three seconds: time enough for more news. */
static void news_during_a_change(struct world *w)
{
    world_host(w, "a", 2);
    world_host(w, "b", 0);
    world_host(w, "c", 0);
    world_np(w, 2, 2, 6);
    world_train(w, 200);
    world_shape(w)->connect = (struct world_span){ 3 * TIME_S, 3 * TIME_S };
    world_at(w, 7 * TIME_S, list_host("b", 2));
    world_when(w, "round 2 is prepared", TIME_S, list_host("c", 1));
    world_run(w);
    world_expect_rounds(w, "2 4 5");
    world_expect_told(w, "round 1 is told: hosts +1 -0");
    world_expect_exit(w, 0);
}

static void news_below_min(struct world *w)
{
    two_by_two(w);
    world_np(w, 4, 4, 4);
    world_train(w, 100);
    world_at(w, 5 * TIME_S, unlist_host("b"));
    world_at(w, 7 * TIME_S, list_host("a", 1));
    world_at(w, 9 * TIME_S, list_host("a", 2));
    world_run(w);
    world_expect_rounds(w, "4");
    world_expect_exit(w, 0);
}

static void first_discovery_fails(struct world *w)
{
    two_by_two(w);
    world_at(w, 0, discovery_fails());
    world_run(w);
    world_expect_rounds(w, "");
    world_expect_told(w, "the first discovery has failed: the script ended with code 1");
    world_expect_exit(w, 1);
}

static void later_discovery_fails(struct world *w)
{
    two_by_two(w);
    world_train(w, 60);
    for (int i = 0; i < 3; i++)
        world_at(w, 6 * TIME_S, discovery_fails());
    world_run(w);
    world_expect_rounds(w, "4");
    world_expect_told(w, "the hosts stay as they are: the script ended with code 1");
    world_expect_exit(w, 0);
}

STORIES(
    STORY(rank_and_size, "two hosts of two: ranks go host by host, and stay"),
    STORY_ALONE(host_fails_before_ready, "a host's workers fail while they boot: nobody waits"),
    STORY_ALONE(host_fails_before_others_come,
                "a host's workers fail while the agents of others start: those are waited for"),
    STORY_ALONE(host_added_keeps_ranks, "who was there keeps their rank when a host is added"),
    STORY(old_hosts_first,
          "discovery prints another order: old hosts keep theirs, new ones append"),
    STORY(waits_for_np_slots, "nothing, 4, 12, 16 slots: nothing is launched before there are -np"),
    STORY_ALONE(one_host_is_enough, "one host with -np slots is enough; the reference wants two"),
    STORY_ALONE(every_worker_fails_after_ready,
                "all fail as soon as they are ready: the job fails"),
    STORY_ALONE(every_worker_fails_before_ready, "the program cannot run: the job fails at once"),
    STORY(exit_0_alone_is_not_success, "exit 0 in the middle is a failure; the job goes on"),
    STORY(host_scope_ends_the_others_on_the_host, "--blacklist-scope host: the neighbours go too"),
    STORY_ALONE(barred_host_gets_nothing, "a barred host may grow: nothing is launched there"),
    STORY_ALONE(news_of_hosts, "workers are told of each change of the hosts once"),
    STORY_ALONE(news_during_a_change, "workers hear of a host while they change rounds"),
    STORY_ALONE(news_below_min, "too few slots are listed: who is there is kept until others come"),
    STORY_ALONE(first_discovery_fails, "the first discovery fails: the job ends with the reason"),
    STORY(later_discovery_fails, "later discoveries fail: nothing happens"))
