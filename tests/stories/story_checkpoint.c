/*
 * story_checkpoint.c: stories in which commits are written to --checkpoint-dir, in peace and while
 * processes die, and in which a job goes on from a checkpoint because no process has a newer
 * commit. docs/stories.md, "Checkpoints".
 */
#include "tests/stories/story.h"
#include "tests/world/world_lie.h"
#include "tests/world/world_saves.h"

/* Four workers on two hosts, and a checkpoint every 5 s. */
static void story_with_checkpoints(struct world *w, uint64_t steps)
{
    story_four_workers(w, steps);
    world_checkpoints(w, 5 * TIME_S, 0);
}

STORY(a_checkpoint_is_taken, "each agent writes its files; the manifest is last; no worker waits")
{
    story_with_checkpoints(w, 200);
    story_ends(w, "4", 0);
    world_expect_told(w, "is complete: 6 files");
}

STORY(checkpoints_by_commits, "every fourth commit, the agents wait for it")
{
    story_four_workers(w, 200);
    world_checkpoints(w, 0, 4);
    story_ends(w, "4", 0);
    world_expect_told(w, "checkpoint 1.4 is complete");
    world_expect_told(w, "checkpoint 1.8 is complete");
}

STORY(an_operator_wants_a_checkpoint, "it is taken at once")
{
    story_four_workers(w, 200);
    world_checkpoints(w, TIME_HOUR, 0);
    world_at(w, 10 * TIME_S, want_checkpoint());
    story_ends(w, "4", 0);
    world_expect_told(w, "is complete");
}

STORY(a_worker_wants_a_checkpoint, "rank 0 asks at each eighth commit, and no worker waits")
{
    story_four_workers(w, 200);
    world_checkpoints(w, TIME_HOUR, 0);
    world_persists(w, 8, false, false);
    story_ends(w, "4", 0);
    world_expect_told(w, "a:0#1 asks for a checkpoint of commit 1.8");
    world_expect_told(w, "a:0 is told of its checkpoint: complete");
}

STORY(all_workers_wait_for_a_checkpoint, "all ranks ask at once, and wait: one checkpoint")
{
    story_four_workers(w, 200);
    world_checkpoints(w, TIME_HOUR, 0);
    world_persists(w, 8, true, true);
    story_ends(w, "4", 0);
    world_expect_told(w, "checkpoint 1.8 is complete");
    world_expect_told(w, "b:1 is told of its checkpoint: complete");
}

STORY(driver_dies_before_it_answers_a_worker,
      "the agent repeats the request; the next driver answers it")
{
    story_four_workers(w, 400);
    world_checkpoints(w, TIME_HOUR, 0);
    world_persists(w, 8, false, true);
    world_when(w, "asks for a checkpoint of commit 1.8", TIME_MS, kill_driver());
    story_ends(w, "4", 0);
    world_expect_told(w, "checkpoint 1.8 is complete");
    world_expect_told(w, "a:0 is told of its checkpoint: complete");
}

STORY(members_change_while_a_worker_waits,
      "it stands still before the agreed check: its commit is written first")
{
    story_third_host_comes(w);
    world_checkpoints(w, TIME_HOUR, 0);
    world_shape(w)->commit_every = 1;
    world_persists(w, 98, true, true);
    story_ends(w, "4 6", 0);
    world_expect_told(w, "checkpoint 1.98 is complete");
}

STORY(a_member_dies_while_a_worker_waits,
      "the request ends with its round; the next one is answered")
{
    story_four_workers(w, 400);
    world_checkpoints(w, TIME_HOUR, 0);
    world_persists(w, 8, false, true);
    world_when(w, "asks for a checkpoint of commit 1.8", TIME_MS, kill_worker("b", 0));
    story_ends(w, "4 3 4", 0);
    world_expect_told(w, "a:0 is told of its checkpoint: complete");
}

STORY(a_worker_hears_that_the_disk_fails,
      "no checkpoint: the reason is told, and the training goes on")
{
    story_four_workers(w, 400);
    world_checkpoints(w, TIME_HOUR, 0);
    world_persists(w, 8, false, true);
    world_at(w, 6 * TIME_S, fail_store(10 * TIME_S));
    story_ends(w, "4", 0);
    world_expect_told(w, "a:0 is told of its checkpoint: no checkpoint could be made");
    world_expect_told(w, "a:0 is told of its checkpoint: complete");
}

STORY(a_member_dies_while_commits_are_held, "the attempt is given up, and begun again")
{
    story_four_workers(w, 400);
    world_checkpoints(w, 0, 4);
    world_at(w, 8350 * TIME_MS, kill_worker("b", 0));
    story_ends(w, "4 3 4", 0);
    world_expect_told(w, "a checkpoint is given up");
    world_expect_told(w, "is complete");
}

STORY_ALONE(an_agent_dies_while_files_are_written,
            "its files are not waited for; the next attempt has all")
{
    story_with_checkpoints(w, 400);
    world_when(w, "b holds commit", 3 * TIME_MS, kill_agent("b"));
    story_ends(w, "4 2 4", 0);
    world_expect_told(w, "a checkpoint is given up");
    world_expect_told(w, "is complete");
}

STORY(driver_is_killed_before_the_manifest, "files without a manifest count for nothing")
{
    story_with_checkpoints(w, 400);
    world_when(w, "the manifest of", TIME_MS, kill_driver());
    story_ends(w, "4", 0);
    world_expect_told(w, "is complete");
}

STORY(a_checkpoint_disk_fails_for_a_while, "the operator is told, and later attempts succeed")
{
    story_with_checkpoints(w, 400);
    world_at(w, 6 * TIME_S, fail_store(15 * TIME_S));
    story_ends(w, "4", 0);
    world_expect_told(w, "no checkpoint could be made");
    world_expect_told(w, "is complete");
}

STORY_ALONE(all_agents_die, "all agents and workers die: the job goes on from its checkpoint")
{
    story_with_checkpoints(w, 400);
    world_at(w, 20 * TIME_S, kill_all_agents());
    story_ends(w, "4 2 4", 0);
    world_expect_told(w, "the training goes on from /c/commit-");
}

STORY_ALONE(everything_dies, "the driver too: its successor goes on from the newest checkpoint")
{
    story_with_checkpoints(w, 400);
    world_at(w, 20 * TIME_S, kill_everything());
    story_ends(w, "4 2 4", 0);
    world_expect_told(w, "the training goes on from /c/commit-");
}

STORY_ALONE(a_newer_commit_comes_back, "its host is back within 30 s: nothing is lost")
{
    story_with_checkpoints(w, 400);
    world_shape(w)->config.lease_us = 3 * TIME_S;
    world_host(w, "c", 2);
    world_at(w, 12 * TIME_S, cut_off("b"));
    world_at(w, 12 * TIME_S, kill_agent("a"));
    world_at(w, 28 * TIME_S, heal("b"));
    world_run(w);
    world_expect_exit(w, 0);
}

STORY_ALONE(a_newer_commit_does_not_come_back, "after 30 s the job goes back to its checkpoint")
{
    story_with_checkpoints(w, 400);
    world_host(w, "c", 2);
    world_at(w, 12 * TIME_S, power_off("b"));
    world_at(w, 12 * TIME_S, kill_agent("a"));
    world_run(w);
    world_expect_exit(w, 0);
    world_expect_told(w, "the training goes on from /c/commit-");
}

STORY_ALONE(the_newest_checkpoint_is_damaged, "a worker finds it out: the one before is taken")
{
    story_with_checkpoints(w, 400);
    world_at(w, 20 * TIME_S, damage_checkpoint());
    world_at(w, 20 * TIME_S, kill_all_agents());
    story_ends(w, "4 2 2 4", 0);
    world_expect_told(w, "cannot be used");
}

STORY_ALONE(some_cannot_read_the_checkpoint, "one worker has read it: the others get it from there")
{
    story_with_checkpoints(w, 400);
    world_at(w, 20 * TIME_S, damage_checkpoint_for_some());
    world_at(w, 20 * TIME_S, kill_all_agents());
    story_ends(w, "4 2 2 4", 0);
    world_expect_told(w, "cannot be used");
}

STORY_ALONE(no_checkpoint_can_be_read, "the job ends, and does not begin anew in silence")
{
    story_with_checkpoints(w, 400);
    world_shape(w)->config.elastic_timeout_us = TIME_MIN;
    world_at(w, 20 * TIME_S, damage_every_checkpoint());
    world_at(w, 20 * TIME_S, kill_all_agents());
    story_ends(w, "4 2 2 2", 1);
}

STORY(a_job_begins_with_an_earlier_checkpoint, "its rounds have higher numbers than those before")
{
    story_with_checkpoints(w, 400);
    world_earlier(w, 7, 4, 150);
    story_ends(w, "4", 0);
    world_expect_told(w, "round 8 (first): size 4, from commit 7.4");
}

STORY(an_earlier_checkpoint_is_damaged,
      "a new job that can read no checkpoint ends with the reason")
{
    story_with_checkpoints(w, 400);
    world_earlier(w, 7, 4, 150);
    world_at(w, 0, damage_checkpoint());
    story_ends(w, "4", 1);
    world_expect_told(w, "no checkpoint in /c can be read");
}

/* Alone: without the record of round 8 a new driver waits for the workers of the dead host. */
STORY_ALONE(a_member_dies_before_an_earlier_checkpoint_is_read,
            "the next round begins with it, too")
{
    story_with_checkpoints(w, 400);
    world_earlier(w, 7, 4, 150);
    world_when(w, "round 8 (first)", 15 * TIME_MS, power_off("b"));
    world_run(w);
    world_expect_exit(w, 0);
    world_expect_told(w, "round 9 (recovery): size 2, from commit 7.4");
}

STORY(a_liar_holds_another_commit, "members seem to hold different commits: a later one is taken")
{
    story_four_workers(w, 400);
    world_checkpoints(w, 0, 4);
    world_at(w, 8350 * TIME_MS, lie("b", LIE_HOLDING));
    story_ends(w, "4", 0);
    world_expect_told(w, "is complete");
}

STORY_ALONE(a_liar_says_that_a_file_is_written, "a worker that reads it finds it out")
{
    story_with_checkpoints(w, 400);
    world_at(w, 12 * TIME_S, lie("b", LIE_SAVED));
    world_at(w, 17 * TIME_S, kill_all_agents());
    world_run(w);
    world_expect_exit(w, 0);
    world_expect_told(w, "cannot be used");
}
