/*
 * story_scaling.c: jobs that grow, shrink and move, like the reference's tests on a cluster with a
 * scheduler. docs/stories.md, "Conformance".
 */
#include "tests/stories/story.h"

static void one_slot_each(struct world *w, const char *names, unsigned listed)
{
    for (unsigned i = 0; names[i]; i++) {
        const char name[2] = { names[i], '\0' };

        world_host(w, name, i < listed ? 1 : 0);
    }
}

/* ---- nothing happens ------------------------------------------------------------------------ */

STORY(happy_run, "nothing happens: one round, from the beginning to the end")
{
    one_slot_each(w, "abcde", 5);
    story_job(w, 5, 5, 5, 100);
    story_ends(w, "5", 0);
}

STORY(spare_hosts_come_and_go, "hosts beyond --max-np come and go: no worker is disturbed")
{
    one_slot_each(w, "abcd", 2);
    story_job(w, 2, 2, 2, 100);
    world_at(w, 5 * TIME_S, list_host("c", 1));
    world_at(w, 7 * TIME_S, list_host("d", 1));
    world_at(w, 9 * TIME_S, unlist_host("c"));
    world_at(w, 11 * TIME_S, unlist_host("d"));
    story_ends(w, "2", 0);
}

/* ---- hosts move ----------------------------------------------------------------------------- */

STORY(hosts_roll_on, "one host goes as another comes: always two, and always one that knows")
{
    one_slot_each(w, "abcd", 2);
    story_job(w, 2, 2, 2, 150);
    world_when(w, "round 1: all", TIME_S, unlist_host("a"));
    world_when(w, "round 1: all", TIME_S, list_host("c", 1));
    world_when(w, "round 2: all", TIME_S, unlist_host("b"));
    world_when(w, "round 2: all", TIME_S, list_host("d", 1));
    story_ends(w, "2 2 2", 0);
    world_expect_told(w, "round 2: by rank b:0 c:0");
    world_expect_told(w, "round 3: by rank c:0 d:0");
}

STORY_ALONE(restarted_in_place,
            "a failed worker comes back in its slot; the survivor is rank 0 now")
{
    one_slot_each(w, "ab", 2);
    story_job(w, 2, 2, 2, 100);
    world_at(w, 7 * TIME_S, exit_worker("a", 0, 1));
    story_ends(w, "2 2", 0);
    world_expect_told(w, "a:0#3 is launched");
    world_expect_told(w, "round 2: by rank b:0 a:0");
}

/* The machines are taken away, and the last commit is lost with them. */
STORY_ALONE(nobody_left, "every machine is taken away: the job waits, then fails")
{
    one_slot_each(w, "ab", 2);
    story_job(w, 2, 1, 2, 100);
    world_shape(w)->config.elastic_timeout_us = TIME_MIN;
    world_at(w, 7 * TIME_S, power_off("a"));
    world_at(w, 7 * TIME_S, power_off("b"));
    world_at(w, 7 * TIME_S, unlist_host("a"));
    world_at(w, 7 * TIME_S, unlist_host("b"));
    story_ends(w, "2", 4);
}

/* ---- more and fewer ------------------------------------------------------------------------- */

STORY_ALONE(scales_up_1_2_3, "hosts are added one by one: no worker stops while they boot")
{
    one_slot_each(w, "abc", 1);
    story_job(w, 1, 1, 3, 150);
    world_when(w, "round 1: all", TIME_S, list_host("b", 1));
    world_when(w, "round 2: all", TIME_S, list_host("c", 1));
    story_ends(w, "1 2 3", 0);
    world_expect_told(w, "round 3: by rank a:0 b:0 c:0");
}

STORY_ALONE(scales_down_3_2_1, "hosts are taken off the list one by one: none goes back")
{
    one_slot_each(w, "abc", 3);
    story_job(w, 3, 1, 3, 100);
    world_when(w, "round 1: all", TIME_S, unlist_host("a"));
    world_when(w, "round 2: all", TIME_S, unlist_host("b"));
    story_ends(w, "3 2 1", 0);
    world_expect_told(w, "round 3: by rank c:0");
}

STORY_ALONE(fails_down_4_3_2, "workers fail one by one, barred forever: the others go on")
{
    one_slot_each(w, "abcd", 4);
    story_job(w, 4, 1, 4, 100);
    story_bar_forever(w);
    world_at(w, 6 * TIME_S, exit_worker("a", 0, 1));
    world_when(w, "round 2: all", TIME_S, exit_worker("b", 0, 1));
    story_ends(w, "4 3 2", 0);
    world_expect_told(w, "round 3: by rank c:0 d:0");
}

STORY(fails_and_returns_4_3_4, "a failed slot returns after its cooldown, with the last rank")
{
    one_slot_each(w, "abcd", 4);
    story_job(w, 4, 1, 4, 250);
    world_at(w, 6 * TIME_S, exit_worker("a", 0, 1));
    story_ends(w, "4 3 4", 0);
    world_expect_told(w, "round 3: by rank b:0 c:0 d:0 a:0");
}

STORY_ALONE(fails_and_stays_4_3, "--blacklist-forever: a failed slot does not return")
{
    one_slot_each(w, "abcd", 4);
    story_job(w, 4, 1, 4, 250);
    story_bar_forever(w);
    world_at(w, 6 * TIME_S, exit_worker("a", 0, 1));
    story_ends(w, "4 3", 0);
    world_expect_told(w, "barred until cleared");
}

/* The host from which the state is fetched leaves in a second change. */
STORY_ALONE(moves_from_one_host_to_the_next, "the only host is replaced by another")
{
    world_host(w, "a", 4);
    world_host(w, "b", 0);
    story_job(w, 4, 4, 4, 100);
    world_at(w, 6 * TIME_S, unlist_host("a"));
    world_at(w, 6 * TIME_S, list_host("b", 4));
    world_run(w);
    world_expect_told(w, "by rank b:0,1,2,3");
    world_expect_exit(w, 0);
}

/* In one discovery run the job shrinks from five slots to the two of one host; then it grows again.
 */
STORY_ALONE(hosts_removed_and_added_5_2_4, "two of three hosts go at once, and one comes back")
{
    world_host(w, "a", 2);
    world_host(w, "b", 2);
    world_host(w, "c", 1);
    story_job(w, 5, 1, 5, 120);
    world_at(w, 6 * TIME_S, unlist_host("a"));
    world_at(w, 6 * TIME_S, unlist_host("c"));
    world_when(w, "round 2: all", TIME_S, list_host("a", 2));
    story_ends(w, "5 2 4", 0);
    world_expect_told(w, "round 3: by rank b:0,1 a:0,1");
}

STORY(more_slots_than_max, "more slots than --max-np: the rest is left alone")
{
    world_host(w, "a", 2);
    world_host(w, "b", 4);
    story_job(w, 3, 1, 3, 100);
    world_at(w, 6 * TIME_S, list_host("a", 4));
    story_ends(w, "3", 0);
    world_expect_told(w, "round 1: by rank a:0,1 b:0");
}

/* A slot of the host is removed and comes back; workers in other slots of the host stay. */
STORY_ALONE(slots_of_a_host_change, "a host has one slot less, then one more")
{
    world_host(w, "a", 2);
    world_host(w, "b", 2);
    story_job(w, 4, 2, 4, 150);
    world_at(w, 6 * TIME_S, list_host("a", 1));
    world_when(w, "round 2: all", TIME_S, list_host("a", 2));
    story_ends(w, "4 3 4", 0);
    world_expect_told(w, "round 2: by rank a:0 b:0,1");
    world_expect_told(w, "round 3: by rank a:0 b:0,1 a:1");
}
