/* Jobs that grow, shrink and move: what the reference shows on a cluster that schedules it. */
#include "tests/stories/story.h"

static void one_slot_each(struct world *w, const char *names, unsigned listed)
{
    for (unsigned i = 0; names[i]; i++) {
        const char name[2] = { names[i], '\0' };

        world_host(w, name, i < listed ? 1 : 0);
    }
}

static void forever(struct world *w)
{
    world_shape(w)->config.blacklist.forever = true;
}

/* ---- nothing happens ------------------------------------------------------------------------ */

static void happy_run(struct world *w)
{
    one_slot_each(w, "abcde", 5);
    world_np(w, 5, 5, 5);
    world_train(w, 100);
    world_run(w);
    world_expect_rounds(w, "5");
    world_expect_exit(w, 0);
}

static void spare_hosts_come_and_go(struct world *w)
{
    one_slot_each(w, "abcd", 2);
    world_np(w, 2, 2, 2);
    world_train(w, 100);
    world_at(w, 5 * TIME_S, list_host("c", 1));
    world_at(w, 7 * TIME_S, list_host("d", 1));
    world_at(w, 9 * TIME_S, unlist_host("c"));
    world_at(w, 11 * TIME_S, unlist_host("d"));
    world_run(w);
    world_expect_rounds(w, "2");
    world_expect_exit(w, 0);
}

/* ---- hosts move ----------------------------------------------------------------------------- */

static void hosts_roll_on(struct world *w)
{
    one_slot_each(w, "abcd", 2);
    world_np(w, 2, 2, 2);
    world_train(w, 150);
    world_when(w, "round 1: all", TIME_S, unlist_host("a"));
    world_when(w, "round 1: all", TIME_S, list_host("c", 1));
    world_when(w, "round 2: all", TIME_S, unlist_host("b"));
    world_when(w, "round 2: all", TIME_S, list_host("d", 1));
    world_run(w);
    world_expect_rounds(w, "2 2 2");
    world_expect_told(w, "round 2: by rank b:0 c:0");
    world_expect_told(w, "round 3: by rank c:0 d:0");
    world_expect_exit(w, 0);
}

static void restarted_in_place(struct world *w)
{
    one_slot_each(w, "ab", 2);
    world_np(w, 2, 2, 2);
    world_train(w, 100);
    world_at(w, 7 * TIME_S, exit_worker("a", 0, 1));
    world_run(w);
    world_expect_rounds(w, "2 2");
    world_expect_told(w, "a:0#3 is launched");
    world_expect_told(w, "round 2: by rank b:0 a:0");
    world_expect_exit(w, 0);
}

/* Their machines are taken away, and with them the last commit. */
static void nobody_left(struct world *w)
{
    one_slot_each(w, "ab", 2);
    world_np(w, 2, 1, 2);
    world_train(w, 100);
    world_shape(w)->config.elastic_timeout_us = TIME_MIN;
    world_at(w, 7 * TIME_S, power_off("a"));
    world_at(w, 7 * TIME_S, power_off("b"));
    world_at(w, 7 * TIME_S, unlist_host("a"));
    world_at(w, 7 * TIME_S, unlist_host("b"));
    world_run(w);
    world_expect_rounds(w, "2");
    world_expect_exit(w, 4);
}

/* ---- more and fewer ------------------------------------------------------------------------- */

static void scales_up_1_2_3(struct world *w)
{
    one_slot_each(w, "abc", 1);
    world_np(w, 1, 1, 3);
    world_train(w, 150);
    world_when(w, "round 1: all", TIME_S, list_host("b", 1));
    world_when(w, "round 2: all", TIME_S, list_host("c", 1));
    world_run(w);
    world_expect_rounds(w, "1 2 3");
    world_expect_told(w, "round 3: by rank a:0 b:0 c:0");
    world_expect_exit(w, 0);
}

static void scales_down_3_2_1(struct world *w)
{
    one_slot_each(w, "abc", 3);
    world_np(w, 3, 1, 3);
    world_train(w, 100);
    world_when(w, "round 1: all", TIME_S, unlist_host("a"));
    world_when(w, "round 2: all", TIME_S, unlist_host("b"));
    world_run(w);
    world_expect_rounds(w, "3 2 1");
    world_expect_told(w, "round 3: by rank c:0");
    world_expect_exit(w, 0);
}

static void fails_down_4_3_2(struct world *w)
{
    one_slot_each(w, "abcd", 4);
    world_np(w, 4, 1, 4);
    world_train(w, 100);
    forever(w);
    world_at(w, 6 * TIME_S, exit_worker("a", 0, 1));
    world_when(w, "round 2: all", TIME_S, exit_worker("b", 0, 1));
    world_run(w);
    world_expect_rounds(w, "4 3 2");
    world_expect_told(w, "round 3: by rank c:0 d:0");
    world_expect_exit(w, 0);
}

static void fails_and_returns_4_3_4(struct world *w)
{
    one_slot_each(w, "abcd", 4);
    world_np(w, 4, 1, 4);
    world_train(w, 250);
    world_at(w, 6 * TIME_S, exit_worker("a", 0, 1));
    world_run(w);
    world_expect_rounds(w, "4 3 4");
    world_expect_told(w, "round 3: by rank b:0 c:0 d:0 a:0");
    world_expect_exit(w, 0);
}

static void fails_and_stays_4_3(struct world *w)
{
    one_slot_each(w, "abcd", 4);
    world_np(w, 4, 1, 4);
    world_train(w, 250);
    forever(w);
    world_at(w, 6 * TIME_S, exit_worker("a", 0, 1));
    world_run(w);
    world_expect_rounds(w, "4 3");
    world_expect_told(w, "barred until cleared");
    world_expect_exit(w, 0);
}

/* The one that hands the state over leaves with a second change. */
static void moves_from_one_host_to_the_next(struct world *w)
{
    world_host(w, "a", 4);
    world_host(w, "b", 0);
    world_np(w, 4, 4, 4);
    world_train(w, 100);
    world_at(w, 6 * TIME_S, unlist_host("a"));
    world_at(w, 6 * TIME_S, list_host("b", 4));
    world_run(w);
    world_expect_told(w, "by rank b:0,1,2,3");
    world_expect_exit(w, 0);
}

/* Five are reduced to the two of one host, in one poll, and grow again. */
static void hosts_removed_and_added_5_2_4(struct world *w)
{
    world_host(w, "a", 2);
    world_host(w, "b", 2);
    world_host(w, "c", 1);
    world_np(w, 5, 1, 5);
    world_train(w, 120);
    world_at(w, 6 * TIME_S, unlist_host("a"));
    world_at(w, 6 * TIME_S, unlist_host("c"));
    world_when(w, "round 2: all", TIME_S, list_host("a", 2));
    world_run(w);
    world_expect_rounds(w, "5 2 4");
    world_expect_told(w, "round 3: by rank b:0,1 a:0,1");
    world_expect_exit(w, 0);
}

static void more_slots_than_max(struct world *w)
{
    world_host(w, "a", 2);
    world_host(w, "b", 4);
    world_np(w, 3, 1, 3);
    world_train(w, 100);
    world_at(w, 6 * TIME_S, list_host("a", 4));
    world_run(w);
    world_expect_rounds(w, "3");
    world_expect_told(w, "round 1: by rank a:0,1 b:0");
    world_expect_exit(w, 0);
}

/* One slot of the host is given up and comes back: the others on it stay where they are. */
static void slots_of_a_host_change(struct world *w)
{
    world_host(w, "a", 2);
    world_host(w, "b", 2);
    world_np(w, 4, 2, 4);
    world_train(w, 150);
    world_at(w, 6 * TIME_S, list_host("a", 1));
    world_when(w, "round 2: all", TIME_S, list_host("a", 2));
    world_run(w);
    world_expect_rounds(w, "4 3 4");
    world_expect_told(w, "round 2: by rank a:0 b:0,1");
    world_expect_told(w, "round 3: by rank a:0 b:0,1 a:1");
    world_expect_exit(w, 0);
}

STORIES(
    STORY(happy_run, "nothing happens: one round, from the beginning to the end"),
    STORY(spare_hosts_come_and_go, "hosts beyond --max-np come and go: nobody is disturbed"),
    STORY(hosts_roll_on, "one host goes as another comes: always two, and always one that knows"),
    STORY_ALONE(restarted_in_place,
                "a failed worker comes back in its slot; the survivor is rank 0 now"),
    STORY_ALONE(nobody_left, "every machine is taken away: the job waits, then fails"),
    STORY_ALONE(scales_up_1_2_3, "hosts are added one by one: nobody stops while they boot"),
    STORY_ALONE(scales_down_3_2_1, "hosts are taken off the list one by one: nobody goes back"),
    STORY_ALONE(fails_down_4_3_2, "workers fail one by one, barred forever: the others go on"),
    STORY(fails_and_returns_4_3_4, "a failed slot returns after its cooldown, with the last rank"),
    STORY_ALONE(fails_and_stays_4_3, "--blacklist-forever: a failed slot does not return"),
    STORY_ALONE(moves_from_one_host_to_the_next, "the only host is replaced by another"),
    STORY_ALONE(hosts_removed_and_added_5_2_4, "two of three hosts go at once, and one comes back"),
    STORY(more_slots_than_max, "more slots than --max-np: the rest is left alone"),
    STORY_ALONE(slots_of_a_host_change, "a host has one slot less, then one more"))
