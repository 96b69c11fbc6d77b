/*
 * story_etcd.c: stories of a job whose store is etcd: the driver's machine is lost, the driver
 * sleeps for longer than its lease, or does not reach etcd, and a standby drives. Training needs no
 * driver, so each story has one round and ends at the same step as without the fault.
 * docs/stories.md, "Takeover".
 */
#include "tests/stories/story.h"

static void four_workers_in_etcd(struct world *w, unsigned standbys)
{
    story_four_workers(w, 400);
    world_etcd(w, standbys, 2 * TIME_S);
}

STORY(driver_machine_is_lost, "a standby drives when the lease is over, and no worker restarts")
{
    four_workers_in_etcd(w, 1);
    world_at(w, 9 * TIME_S, kill_driver());
    story_ends(w, "4", 0);
    world_expect_told(w, "driver 2 starts");
}

STORY(driver_is_lost_with_its_write_under_way,
      "the death of a worker is written while etcd has no leader: a standby has it or sees it anew")
{
    four_workers_in_etcd(w, 1);
    world_at(w, 9 * TIME_S, lose_leader(3 * TIME_S));
    world_at(w, 9100 * TIME_MS, kill_worker("b", 0));
    world_at(w, 9300 * TIME_MS, kill_driver());
    story_ends(w, "4 3 4", 0);
}

STORY(owner_sleeps_and_wakes_up,
      "a driver that slept for longer than its lease says nothing, and ends")
{
    four_workers_in_etcd(w, 1);
    world_at(w, 9 * TIME_S, freeze_driver());
    world_at(w, 20 * TIME_S, thaw_driver());
    story_ends(w, "4", 0);
    world_expect_told(w, "driver 1 ends: the journal has another owner");
}

STORY(owner_sleeps_and_is_not_replaced, "without a standby it finds the job its own, and goes on")
{
    four_workers_in_etcd(w, 0);
    world_at(w, 9 * TIME_S, freeze_driver());
    world_at(w, 20 * TIME_S, thaw_driver());
    story_ends(w, "4", 0);
}

STORY(owner_is_on_the_side_of_the_minority,
      "of two standbys one drives; the owner says nothing more")
{
    four_workers_in_etcd(w, 2);
    world_at(w, 9 * TIME_S, cut_store(30 * TIME_S));
    story_ends(w, "4", 0);
    world_expect_told(w, "driver 2 starts");
}

STORY(etcd_is_full_for_a_while, "a driver that cannot write waits; a death costs the time of that")
{
    four_workers_in_etcd(w, 1);
    world_at(w, 9 * TIME_S, fail_disk(8 * TIME_S));
    world_at(w, 9100 * TIME_MS, kill_worker("b", 0));
    story_ends(w, "4 3 4", 0);
}

STORY(driver_is_lost_while_etcd_is_full, "a standby that cannot claim the job yet tries again")
{
    four_workers_in_etcd(w, 1);
    world_at(w, 9 * TIME_S, fail_disk(40 * TIME_S));
    world_at(w, 10 * TIME_S, kill_driver());
    story_ends(w, "4", 0);
    world_expect_told(w, "driver 2 starts");
}
