/*
 * test_chaos_goodput.c: what a replay counts as useful, lost and possible: every moment of every
 * worker is counted once, in replays that were drawn by hand.
 */
#include "tests/chaos/replay.h"
#include "tests/chaos/replay_hosts.h"
#include "tests/lib/test.h"

#include <string.h>

/* A step takes 10. The second of two hosts goes at 65, in the middle of a step, and step 5 is made
 * again without it; at 120 another one comes, which trains from 140 on. */
static const char lines[] = "20 1 1 2\n30 1 2 2\n40 1 3 2\n50 1 4 2\n60 1 5 2\n"
                            "100 2 5 1\n110 2 6 1\n120 2 7 1\n130 2 8 1\n"
                            "150 3 9 2\n160 3 10 2\n";

static struct replay_change changes[] = {
    {.at_us = 0,   .hosts = 2,  .add = true},
    { .at_us = 65, .hosts = 1 },
    { .at_us = 120,  .hosts = 2, .add = true           },
};

static struct replay make(void)
{
    return (struct replay){ .began_us = 0,
                            .ended_us = 165,
                            .slots = 1,
                            .changes = changes,
                            .change_count = ARRAY_SIZE(changes) };
}

TEST(every_moment_is_counted_once)
{
    struct steps steps = { .fd = -1 };
    struct replay replay = make();

    CHECK_OK(t, steps_take(&steps, lines, strlen(lines), NULL));
    CHECK_OK(t, goodput_work_out(&replay, &steps));
    CHECK_INT(t, replay.usual_us, ==, 10);
    CHECK_INT(t, replay.available_us, ==, 130 + 55 + 90);
    CHECK_INT(t, replay.useful_us, ==, 3 * 20 + 10 + 3 * 10 + 2 * 20);
    CHECK_INT(t, replay.lost_again_us, ==, 20);
    CHECK_INT(t, replay.lost_pause_us, ==, 30 + 10);
    CHECK_INT(t, replay.lost_boot_us, ==, 40 + 5 + 10 + 10);
    CHECK_INT(t, replay.limit_us, ==, 275 - 65 - 5);
    CHECK_INT(t, replay.rounds, ==, 2);
    CHECK_INT(t, replay.steps, ==, 10);
    CHECK_INT(t, replay.repeated, ==, 1);
out:
    steps_close(&steps);
}

TEST(a_notice_prevents_losses)
{
    struct steps steps = { .fd = -1 };
    struct replay replay = make();

    replay.announced = true;
    CHECK_OK(t, steps_take(&steps, lines, strlen(lines), NULL));
    CHECK_OK(t, goodput_work_out(&replay, &steps));
    CHECK_INT(t, replay.limit_us, ==, 275 - 65);
out:
    steps_close(&steps);
}

TEST(without_a_step_nothing_was_useful)
{
    struct steps steps = { .fd = -1 };
    struct replay replay = make();

    CHECK_OK(t, goodput_work_out(&replay, &steps));
    CHECK_INT(t, replay.available_us, ==, 275);
    CHECK_INT(t, replay.useful_us, ==, 0);
    CHECK_INT(t, replay.lost_boot_us, ==, 275);
out:
    steps_close(&steps);
}

/* ---- hosts ----------------------------------------------------------------------------------- */

TEST(the_first_nodes_are_used)
{
    static struct chaos_plan plan = { .max_hosts = 2, .slots = 3 };
    static struct arena arena = { .plan = &plan };
    struct replay_hosts hosts;

    CHECK_OK(t, replay_hosts_init(&hosts, &arena, 4));
    for (uint32_t node = 0; node < 4; node++)
        replay_hosts_add(&hosts, node);
    CHECK_INT(t, replay_hosts_fill(&hosts), ==, 2);
    CHECK_INT(t, arena.host_count, ==, 2);
    CHECK_TEXT(t, arena.hosts[0].name, "127.0.0.1");
    CHECK_INT(t, arena.hosts[1].slots, ==, 3);
    CHECK(t, !replay_hosts_remove(&hosts, 2)); /* it has only waited */
    CHECK(t, replay_hosts_remove(&hosts, 0));
    CHECK(t, !replay_hosts_remove(&hosts, 0));
    CHECK_INT(t, replay_hosts_fill(&hosts), ==, 1);
    CHECK_TEXT(t, arena.hosts[0].name, "127.0.0.2");
    CHECK_TEXT(t, arena.hosts[1].name, "127.0.0.4");
    CHECK_INT(t, replay_hosts_fill(&hosts), ==, 0);
    CHECK(t, replay_hosts_used(&hosts, 3) && !replay_hosts_used(&hosts, 0));
out:
    replay_hosts_release(&hosts);
}

TEST(every_node_has_an_address)
{
    char address[ARENA_NAME];

    CHECK_TEXT(t, replay_hosts_address(0, address), "127.0.0.1");
    CHECK_TEXT(t, replay_hosts_address(249, address), "127.0.0.250");
    CHECK_TEXT(t, replay_hosts_address(250, address), "127.0.1.1");
    CHECK_TEXT(t, replay_hosts_address(4095, address), "127.0.16.96");
out:
    return;
}
