/*
 * test_core_recovery.c: after a failure the job goes on from a commit: from which commit, and with
 * which members. The newest commit that any live process holds wins.
 *
 * Each case is a tape: a text of the events that come in (a line) and of the actions that the
 * driver's core must answer with.
 */
#include "tests/lib/core_tape.h"

static struct core_tape tape;

/* All survivors report the commit that they hold; the highest commit wins, and its holders serve
 * the commit to new workers. */
TAPE_CASE(a_death_revokes_and_the_survivors_go_on, TAPE_RUNNING
          "exited 3 sig9 | a,b < REVOKE 1 lost 3: b:0#3: killed by signal 9 (SIGKILL)\n"
          "    | record ENDED 3 sig9\n"
          "    | bar b:0 (1): killed by signal 9 (SIGKILL)\n"
          "    | b < FORGET 3\n"
          "recovering 1 held=1.4,1.5 | ! a:0#1 has recovered (1 of 3)\n"
          "recovering 2 held=1.5 | ! a:1#2 has recovered (2 of 3)\n"
          "recovering 4 held=1.4 | record ROUND 2 recovery after 1 from 1.5 of 1,2: 1,2,4\n"
          "    | a,b < ROUND 2 recovery after 1 from 1.5 of 1,2: 1,2,4\n"
          "entered 1,2,4 | record ENTERED 2\n")

TAPE_CASE(a_worker_without_a_commit_resumes_from_the_oldest,
          "config np=2\n"
          "start\n"
          "hosts a:2\n"
          "hello a\n"
          "ready 1,2\n"
          "exited 2 exit1 | a < REVOKE 1 lost 2: a:1#2: exit code 1\n"
          "    | record ENDED 2 exit1\n"
          "    | bar a:1 (1): exit code 1\n"
          "    | a < FORGET 2\n"
          "recovering 1\n"
          "wait 20s\n"
          "ready 3 | record READY 3\n"
          "    | record ROUND 2 recovery after 1 from 2.0 of 1: 1,3\n"
          "    | a < ROUND 2 recovery after 1 from 2.0 of 1: 1,3\n")

TAPE_CASE(a_holder_with_another_checksum_is_none, TAPE_RUNNING
          "exited 4 exit1\n"
          "recovering 1 held=1.5/7\n"
          "recovering 2 held=1.5/8\n"
          "recovering 3 held=1.5/7 | record ROUND 2 recovery after 1 from 1.5 of 1,3: 1,2,3\n"
          "    | a,b < ROUND 2 recovery after 1 from 1.5 of 1,3: 1,2,3\n")

TAPE_CASE(of_two_different_commits_one_wins, TAPE_RUNNING
          "exited 3,4 exit1\n"
          "recovering 1 held=1.5/7\n"
          "recovering 2 held=1.5/8 | record ROUND 2 recovery after 1 from 1.5 of 1: 1,2\n"
          "    | a < ROUND 2 recovery after 1 from 1.5 of 1: 1,2\n")

TAPE_CASE(when_the_last_holder_dies_the_commit_before_it_wins, TAPE_RUNNING
          "exited 4 exit1\n"
          "recovering 1 held=1.4,1.5\n"
          "recovering 2 held=1.4\n"
          "exited 1 exit1 | record ENDED 1 exit1\n"
          "    | bar a:0 (1): exit code 1\n"
          "    | a < FORGET 1\n"
          "recovering 3 held=1.4 | record ROUND 2 recovery after 1 from 1.4 of 2,3: 2,3\n"
          "    | a,b < ROUND 2 recovery after 1 from 1.4 of 2,3: 2,3\n")

/* The job has trained from commit 2.0; a worker that holds only commit 1.x must not lead the job
 * back. */
TAPE_CASE(
    the_resumed_commit_is_not_given_up,
    "config np=3 min_np=2 elastic_timeout=60s\n"
    "start\n"
    "hosts a:2,b:1\n"
    "hello a\n"
    "hello b\n"
    "ready 1,2,3\n"
    "entered 1-3\n"
    "exited 3 exit1\n"
    "recovering 1,2 held=1.7\n"
    "entered 1\n"
    "exited 2 sig9\n"
    "exited 1 sig9 | record ENDED 1 sig9\n"
    "    | bar a:0 (1): killed by signal 9 (SIGKILL)\n"
    "    | a < FORGET 1\n"
    "    | record STUCK a:0 1 job 2 since 1.7\n"
    "    | record STUCK a:1 1 job 2 since 1.7\n"
    "wait 20s\n"
    "ready 4,5,6 held=1.3 | record READY 4\n"
    "    | record READY 5\n"
    "    | record READY 6\n"
    "view | recovering term 1 round 2 from 1.7: 1,2, floor 1, resets 1, short; waits for a host "
    "that keeps the last commit\n"
    "    | a there: #6 in 0 ready, #5 in 1 ready, of 2\n"
    "    | b there: #4 in 0 ready, of 1\n"
    "wait 70s | record OVER 1: every holder of commit 1.7 is gone, and no such host came back "
    "within --elastic-timeout: the training state is lost; start the job anew, with "
    "--checkpoint-dir to keep later commits on disk\n"
    "    | a < STOP: every holder of commit 1.7 is gone, and no such host came back within "
    "--elastic-timeout: the training state is lost; start the job anew, with --checkpoint-dir to "
    "keep later commits on disk\n"
    "    | b < STOP: every holder of commit 1.7 is gone, and no such host came back within "
    "--elastic-timeout: the training state is lost; start the job anew, with --checkpoint-dir to "
    "keep later commits on disk\n"
    "    | exit 1: every holder of commit 1.7 is gone, and no such host came back within "
    "--elastic-timeout: the training state is lost; start the job anew, with --checkpoint-dir to "
    "keep later commits on disk\n")

/* The worker in slot 0 holds the commit at which the worker before it died. The round has gone on
 * without that slot, so the newest commit is the one that the agent keeps for slot 1, and the job
 * has made progress. */
TAPE_CASE(a_kept_commit_wins_over_an_older_one_of_a_new_worker,
          "config np=2 min_np=1\n"
          "start\n"
          "hosts a:2\n"
          "hello a\n"
          "ready 1,2\n"
          "entered 1,2\n"
          "exited 1 exit1 held=1.10\n"
          "recovering 2 held=1.10\n"
          "entered 2\n"
          "wait 20s\n"
          "ready 3 held=1.10\n"
          "exited 2 exit1 held=2.10 | a < ABANDON 2 next 3: a:1#2: exit code 1\n"
          "    | a < REVOKE 2 lost 2: a:1#2: exit code 1\n"
          "    | record ENDED 2 exit1\n"
          "    | bar a:1 (1): exit code 1\n"
          "    | a < FORGET 2\n"
          "    | record ROUND 4 recovery after 2 from 2.10: 3\n"
          "    | a < ROUND 4 recovery after 2 from 2.10 kept by a:1: 3\n")

/* A host that was away holds an old commit, and its worker has not trained in round 2: the member
 * that has trained is dead, and its agent keeps what it has made. */
TAPE_CASE(a_kept_commit_wins_over_an_older_one_of_a_joiner,
          "config np=1 min_np=1 max_np=2\n"
          "start\n"
          "hosts a:1\n"
          "hello a\n"
          "ready 1\n"
          "entered 1\n"
          "hosts a:1,b:1\n"
          "hello b kept=0:1.3\n"
          "ready 2 held=1.3\n"
          "prepared 1,2\n"
          "at 1 5\n"
          "exited 1 exit1 held=1.7\n"
          "recovering 2 held=1.3 | record ROUND 3 recovery after 2 from 1.7: 2\n"
          "    | b < ROUND 3 recovery after 2 from 1.7 kept by a:0: 2\n")

/* The worker that does not stop for the recovery may have made the newest commit, so the job waits
 * for the end of its process, but not for ever. */
#define UNSTOPPED                                                   \
    "config np=3 min_np=1 stall=20s gather=100ms\n"                 \
    "start\n"                                                       \
    "hosts a:3\n"                                                   \
    "hello a\n"                                                     \
    "ready 1-3\n"                                                   \
    "entered 1-3\n"                                                 \
    "exited 1 exit1 held=1.10\n"                                    \
    "recovering 2,3 held=1.10\n"                                    \
    "entered 2,3\n"                                                 \
    "exited 3 exit1 held=2.5\n"                                     \
    "wait 15s\n"                                                    \
    "ready 4 held=1.10\n"                                           \
    "wait 6s | record ENDED 2 sig9\n"                               \
    "    | bar a:1 (1): the worker did not stop for the recovery\n" \
    "    | a < KILL 2 in 5s: the worker did not stop for the recovery\n"

TAPE_CASE(the_end_of_a_dead_worker_is_awaited_when_no_member_is_left,
          UNSTOPPED "exited 2 sig9 held=2.90 | a < FORGET 2\n"
                    "    | record ROUND 3 recovery after 2 from 2.90: 4\n"
                    "    | a < ROUND 3 recovery after 2 from 2.90 kept by a:1: 4\n")

TAPE_CASE(the_end_of_a_dead_worker_is_not_awaited_for_ever,
          UNSTOPPED "wait 30s |\n"
                    "wait 5s | record ROUND 3 recovery after 2 from 2.5: 4\n"
                    "    | a < ROUND 3 recovery after 2 from 2.5 kept by a:2: 4\n")

TAPE_CASE(a_death_while_recovering_gives_just_the_next_round, TAPE_RUNNING
          "exited 4 exit1\n"
          "recovering 1 held=1.4\n"
          "exited 2 exit1 | record ENDED 2 exit1\n"
          "    | bar a:1 (1): exit code 1\n"
          "    | a < FORGET 2\n"
          "recovering 3 held=1.4 | record ROUND 2 recovery after 1 from 1.4 of 1,3: 1,3\n"
          "    | a,b < ROUND 2 recovery after 1 from 1.4 of 1,3: 1,3\n"
          "exited 3 exit1 | a,b < REVOKE 2 lost 3: b:0#3: exit code 1\n"
          "    | record ENDED 3 exit1\n"
          "    | bar b:0 (1): exit code 1\n"
          "    | b < FORGET 3\n"
          "recovering 1 held=1.4 | record STUCK b:0 1 job 2 since 1.4\n")

TAPE_CASE(a_recovery_takes_along_who_is_ready,
          "config np=2 min_np=2\n"
          "start\n"
          "hosts a:3\n"
          "hello a\n"
          "ready 1,2\n"
          "wait 3s\n"
          "entered 1,2\n"
          "ready 3\n"
          "state preparing |\n"
          "exited 1 exit1 | a < ABANDON 1 next 2: a:0#1: exit code 1\n"
          "    | a < REVOKE 1 lost 1: a:0#1: exit code 1\n"
          "    | record ENDED 1 exit1\n"
          "    | bar a:0 (1): exit code 1\n"
          "    | a < FORGET 1\n"
          "recovering 2 held=1.2 | record ROUND 3 recovery after 1 from 1.2 of 2: 2,3\n"
          "    | a < ROUND 3 recovery after 1 from 1.2 of 2: 2,3\n")

TAPE_CASE(collectives_that_fail_by_themselves_revoke_the_round, TAPE_RUNNING
          "recovering 2 held=1.2 | a,b < REVOKE 1: a:1#2: the worker's collectives failed\n"
          "recovering 2 held=1.2 |\n"
          "recovering 1,3 held=1.2 | ! b:0#3 has recovered (3 of 4)\n"
          "recovering 4 held=1.2 | record ROUND 2 recovery after 1 from 1.2 of 1,2,3,4: 1,2,3,4\n"
          "    | a,b < ROUND 2 recovery after 1 from 1.2 of 1,2,3,4: 1,2,3,4\n")

TAPE_CASE(a_recovering_of_another_round_is_stale, TAPE_RUNNING
          "exited 4 exit1\n"
          "recovering 1 round=7 |\n"
          "recovering 1,2,3 held=1.2 | record ROUND 2 recovery after 1 from 1.2 of 1,2,3: 1,2,3\n"
          "    | a,b < ROUND 2 recovery after 1 from 1.2 of 1,2,3: 1,2,3\n"
          "recovering 1 round=1 |\n")

TAPE_CASE(a_worker_that_does_not_stop_for_the_recovery_is_killed,
          "config stall=20s\n" TAPE_RUNNING "exited 4 exit1\n"
          "recovering 1,2 held=1.2\n"
          "wait 21s | record LAUNCH 5 b:1\n"
          "    | b < LAUNCH 5 in 1 as 3/4 local 0/1 cross 0/1\n"
          "    | record ENDED 3 sig9\n"
          "    | bar b:0 (1): the worker did not stop for the recovery\n"
          "    | b < KILL 3 in 5s: the worker did not stop for the recovery\n"
          "    | record ROUND 2 recovery after 1 from 1.2 of 1,2: 1,2\n"
          "    | a < ROUND 2 recovery after 1 from 1.2 of 1,2: 1,2\n"
          "exited 3 sig9 | b < FORGET 3\n")

TAPE_CASE(rounds_that_come_to_nothing_wait_longer_and_longer,
          "config np=4 min_np=1\n" TAPE_LAUNCHED "ready 1-4\n"
          "exited 4 exit1\n"
          "recovering 1-3\n"
          "exited 3 exit1 | a,b < REVOKE 2 lost 3: b:0#3: exit code 1\n"
          "    | record ENDED 3 exit1\n"
          "    | bar b:0 (1): exit code 1\n"
          "    | b < FORGET 3\n"
          "recovering 1,2 | record STUCK b:0 1 job 2 since 0.0\n"
          "wait 100ms | record ROUND 3 recovery after 2 from 3.0 of 1: 1,2\n"
          "    | a < ROUND 3 recovery after 2 from 3.0 of 1: 1,2\n"
          "exited 2 exit1 | a < REVOKE 3 lost 2: a:1#2: exit code 1\n"
          "    | record ENDED 2 exit1\n"
          "    | bar a:1 (1): exit code 1\n"
          "    | a < FORGET 2\n"
          "recovering 1 | record STUCK a:1 1 job 3 since 0.0\n"
          "wait 100ms |\n"
          "wait 100ms | record ROUND 4 recovery after 3 from 4.0 of 1: 1\n"
          "    | a < ROUND 4 recovery after 3 from 4.0 of 1: 1\n")

/* There are workers enough, but the network between them is broken: the job ends after some
 * rounds. */
TAPE_CASE(rounds_in_vain_end_the_job,
          "config np=1 min_np=1 max_np=1 elastic_timeout=20s\n"
          "start\n"
          "hosts a:1\n"
          "hello a\n"
          "ready 1\n"
          "recovering 1\n"
          "recovering 1\n"
          "wait 100ms\n"
          "recovering 1\n"
          "wait 200ms\n"
          "recovering 1\n"
          "wait 400ms\n"
          "recovering 1 | a < REVOKE 5: a:0#1: the worker's collectives failed\n"
          "wait 5s\n"
          "recovering 1\n"
          "wait 9s\n"
          "wait 6s | record OVER 1: 6 rounds in a row have made no progress for longer than "
          "--elastic-timeout; check that the workers can reach each other\n"
          "    | a < STOP: 6 rounds in a row have made no progress for longer than "
          "--elastic-timeout; check that the workers can reach each other\n")

/* The operator needs the name of the operation: all members have joined the operation, but the
 * operation does not end. */
TAPE_CASE(rounds_in_vain_say_what_they_waited_for,
          "config np=1 min_np=1 max_np=1 elastic_timeout=20s stall_warning=4s stall=20s\n"
          "start\n"
          "hosts a:1\n"
          "hello a\n"
          "ready 1\n"
          "recovering 1\n"
          "recovering 1\n"
          "wait 100ms\n"
          "recovering 1\n"
          "wait 200ms\n"
          "recovering 1\n"
          "wait 400ms\n"
          "stalled 1 4s - in=allreduce_by_NCCL\n"
          "wait 1s | ! round 5: 1 of 1 wait for workers that the reports do not name, for 4s in "
          "allreduce_by_NCCL\n"
          "recovering 1 | a < REVOKE 5: a:0#1: the worker's collectives failed\n"
          "wait 5s\n"
          "wait 14s\n"
          "wait 1s | record OVER 1: "
          "5 rounds in a row have made no progress for longer than "
          "--elastic-timeout: the last waited for workers that the reports do not name, for 4s in "
          "allreduce_by_NCCL; check that the workers can reach each other\n"
          "    | a < STOP: "
          "5 rounds in a row have made no progress for longer than "
          "--elastic-timeout: the last waited for workers that the reports do not name, for 4s in "
          "allreduce_by_NCCL; check that the workers can reach each other\n")

#define ALL_TRAIN "entered 1,2\n"
#define TWO                  \
    "config np=2 min_np=1\n" \
    "start\n"                \
    "hosts a:2\n"            \
    "hello a\n"              \
    "ready 1,2\n" ALL_TRAIN
#define MISMATCH "code=-16 text=on_rank_0_a_sum,_on_rank_1_a_barrier"
#define BY_MISMATCH                                                                          \
    "5 rounds in a row ended without a new commit, because the ranks made different calls: " \
    "on_rank_0_a_sum,_on_rank_1_a_barrier"

/* All members begin and each round ends in the same mismatch: the driver does not try for ever, and
 * its last text tells the user what to do. */
TAPE_CASE(a_program_that_does_not_match_is_not_tried_for_ever,
          TWO "recovering 2 " MISMATCH "\n"
              "recovering 1 held=1.0 | record ROUND 2 recovery after 1 from 1.0 of 1: 1,2\n"
              "    | a < ROUND 2 recovery after 1 from 1.0 of 1: 1,2\n" ALL_TRAIN
              "recovering 2 " MISMATCH "\n"
              "recovering 1 held=1.0\n"
              "wait 100ms\n" ALL_TRAIN "recovering 2 " MISMATCH "\n"
              "recovering 1 held=1.0\n"
              "wait 200ms\n" ALL_TRAIN "recovering 2 " MISMATCH "\n"
              "recovering 1 held=1.0\n"
              "wait 400ms\n" ALL_TRAIN "recovering 2 " MISMATCH "\n"
              "recovering 1 held=1.0 | record OVER 1: " BY_MISMATCH "\n"
              "    | a < STOP: " BY_MISMATCH "\n")

#define AGAIN(held) "recovering 2 " MISMATCH "\nrecovering 1 held=" held

/* A worker that is killed before it reports the mismatch counts as dead, and the round does not
 * count as a mismatch. */
TAPE_CASE(
    a_death_is_no_mismatch,
    TWO AGAIN("1.0") "\n" ALL_TRAIN AGAIN(
        "1.0") "\n"
               "wait 100ms\n" ALL_TRAIN AGAIN(
                   "1.0") "\n"
                          "wait 200ms\n" ALL_TRAIN AGAIN(
                              "1.0") "\n"
                                     "wait 400ms\n" ALL_TRAIN "recovering 1 held=1.0 " MISMATCH "\n"
                                     "exited 2 sig9 | record ENDED 2 sig9\n"
                                     "    | bar a:1 (1): killed by signal 9 (SIGKILL)\n"
                                     "    | a < FORGET 2\n"
                                     "    | record ROUND 6 recovery after 5 from 1.0 of 1: 1\n"
                                     "    | a < ROUND 6 recovery after 5 from 1.0 of 1: 1\n")

/* The driver believes a worker that blames itself: this worker is replaced, and the others train
 * without it. */
TAPE_CASE(a_worker_that_holds_all_up_is_ended, TAPE_RUNNING
          "recovering 3 code=-1 text=out_of_memory\n"
          "recovering 1,2,4 held=1.2\n"
          "recovering 3 code=-1 text=out_of_memory\n"
          "recovering 1,2,4 held=1.2\n"
          "wait 100ms\n"
          "recovering 3 code=-1 text=out_of_memory | a,b < REVOKE 3: b:0#3: out_of_memory\n"
          "    | record ENDED 3 sig9\n"
          "    | bar b:0 (1): 3 rounds in a row failed because of this worker: out_of_memory\n"
          "    | b < KILL 3 in 5s: 3 rounds in a row failed because of this worker: out_of_memory\n"
          "recovering 1,2 held=1.2\n"
          "recovering 4 held=1.2 | record ROUND 4 recovery after 3 from 1.2 of 1,2,4: 1,2,4\n"
          "    | a,b < ROUND 4 recovery after 3 from 1.2 of 1,2,4: 1,2,4\n")

/* While the program makes progress, its worker is not made to wait. A commit of the same contents
 * under a new number is no progress. */
TAPE_CASE(
    what_is_committed_is_weighed,
    TWO AGAIN("1.1/5") "\n" ALL_TRAIN AGAIN("2.1/6") "\n" ALL_TRAIN AGAIN(
        "3.1/7 | record ROUND 4 recovery after 3 from 3.1 of 1: 1,2\n"
        "    | a < ROUND 4 recovery after 3 from 3.1 of 1: 1,2\n")
        ALL_TRAIN AGAIN("4.1/7 | record ROUND 5 recovery after 4 from 4.1 of 1: 1,2\n"
                        "    | a < ROUND 5 recovery after 4 from 4.1 of 1: 1,2\n")
            ALL_TRAIN AGAIN(
                "5.1/7 | ! a:0#1 has recovered (2 of 2)\n") "wait 100ms | record ROUND 6 recovery "
                                                            "after 5 from 5.1 of 1: 1,2\n"
                                                            "    | a < ROUND 6 recovery after 5 "
                                                            "from 5.1 of 1: 1,2\n")

/* A worker that trained for longer than the longest wait starts again at once. */
TAPE_CASE(a_worker_that_trained_long_does_not_wait,
          TWO AGAIN("1.0") "\n" ALL_TRAIN AGAIN(
              "1.0") "\n"
                     "wait 100ms\n" ALL_TRAIN "wait 9s\n"
                     "wait 1s\n" AGAIN("1.0 | record ROUND 4 recovery after 3 from 1.0 of 1: 1,2\n"
                                       "    | a < ROUND 4 recovery after 3 from 1.0 of 1: 1,2\n"))

/* One survivor has no state yet, and the number of workers is at its maximum: the workers that hold
 * the state are taken first. */
TAPE_CASE(a_holder_of_the_commit_is_taken_first,
          "config np=1 min_np=1 max_np=2\n"
          "start\n"
          "hosts a:1\n"
          "hello a\n"
          "ready 1\n"
          "entered 1\n"
          "hosts b:2,a:1\n"
          "hello b\n"
          "ready 2\n"
          "prepared 1,2\n"
          "at 1 4\n"
          "exited 1 sig9\n"
          "hello a agent=9 kept=0:1.0\n"
          "recovering 2\n"
          "ready 3\n"
          "wait 20s\n"
          "ready 4 held=1.0 | record READY 4\n"
          "    | record ROUND 3 recovery after 2 from 1.0 of 4: 2,4\n"
          "    | b,a < ROUND 3 recovery after 2 from 1.0 of 4: 2,4\n"
          "    | b < DRAIN 3: there are enough workers without this one\n")

/* A commit of a round that never was is damaged or invented. */
TAPE_CASE(a_commit_of_a_round_to_come_is_not_believed, TAPE_RUNNING
          "exited 3 sig9\n"
          "recovering 1 held=1.4\n"
          "recovering 2 held=9.0,1.4\n"
          "recovering 4 held=1.4 | record ROUND 2 recovery after 1 from 1.4 of 1,2,4: 1,2,4\n"
          "    | a,b < ROUND 2 recovery after 1 from 1.4 of 1,2,4: 1,2,4\n")

/* Only the next change waits after a change without effect; a recovery begins at once. */
TAPE_CASE(a_recovery_does_not_wait_for_a_failed_change,
          "config np=4 min_np=1\n" TAPE_RUNNING "hosts a:2,b:2,c:1\n"
          "hello c\n"
          "launched 5\n"
          "ready 5 | record READY 5\n"
          "    | record NUMBER 2\n"
          "    | a,b,c < PREPARE 2 after 1: 1,2,3,4,5\n"
          "prepared 5 -7 | a,b,c < ABANDON 1 next 2: c:0#5 cannot connect: no route\n"
          "exited 4 exit1 | a,b < REVOKE 1 lost 4: b:1#4: exit code 1\n"
          "    | record ENDED 4 exit1\n"
          "    | bar b:1 (1): exit code 1\n"
          "    | b < FORGET 4\n"
          "recovering 1,2 held=1.2\n"
          "recovering 3 held=1.2 | record ROUND 3 recovery after 1 from 1.2 of 1,2,3: 1,2,3,5\n"
          "    | a,b,c < ROUND 3 recovery after 1 from 1.2 of 1,2,3: 1,2,3,5\n")

TAPE_CASE(too_few_survivors_wait_for_others,
          "config np=4 min_np=4\n" TAPE_RUNNING "exited 4 exit1\n"
          "recovering 1-3 held=1.2 | ! waiting for workers: 3 of --min-np 4; the job fails in 10m\n"
          "view | recovering term 1 round 1 from 1.0: 1,2,3,4, floor 1, resets 0, short; waits for "
          "4 workers; 3 are ready\n"
          "    | a there: #1 in 0 recovered 0*, #2 in 1 recovered 1*, of 2\n"
          "    | b there: #3 in 0 recovered 2*, of 2; slot 1: cooling for 12.3s more after 1 "
          "failure: exit code 1\n"
          "wait 25s | record LAUNCH 5 b:1\n"
          "    | b < LAUNCH 5 in 1 as 3/4 local 0/1 cross 0/1\n"
          "ready 5 | record READY 5\n"
          "    | record ROUND 2 recovery after 1 from 1.2 of 1,2,3: 1,2,3,5\n"
          "    | a,b < ROUND 2 recovery after 1 from 1.2 of 1,2,3: 1,2,3,5\n")

TAPE_CASE(a_draining_worker_joins_the_recovery_and_leaves_later,
          "config np=4 min_np=1\n" TAPE_RUNNING "hosts a:2 | a,b < HOSTS_UPDATED 1 +0 -1\n"
          "    | record NUMBER 2\n"
          "    | a,b < PREPARE 2 after 1: 1,2\n"
          "exited 1 exit1 | a,b < ABANDON 1 next 2: a:0#1: exit code 1\n"
          "    | a,b < REVOKE 1 lost 1: a:0#1: exit code 1\n"
          "    | record ENDED 1 exit1\n"
          "    | bar a:0 (1): exit code 1\n"
          "    | a < FORGET 1\n"
          "recovering 2,3,4 held=1.1 | record ROUND 3 recovery after 1 from 1.1 of 2,3,4: 2,3,4\n"
          "    | a,b < ROUND 3 recovery after 1 from 1.1 of 2,3,4: 2,3,4\n"
          "entered 2,3,4 | record ENTERED 3\n"
          "    | record NUMBER 4\n"
          "    | a,b < PREPARE 4 after 3: 2\n")

TAPE_CASE(the_reset_limit_ends_the_job,
          "config np=4 min_np=1 reset_limit=1\n" TAPE_RUNNING "exited 4 exit1\n"
          "recovering 1-3 held=1.1\n"
          "entered 1-3\n"
          "exited 3 exit1\n"
          "recovering 1,2 held=2.1 | record OVER 1: change 2 of the membership is one more than "
          "--reset-limit 1 allows; raise --reset-limit, or leave it out\n"
          "    | a < STOP: change 2 of the membership is one more than --reset-limit 1 allows; "
          "raise --reset-limit, or leave it out\n"
          "    | b < STOP: change 2 of the membership is one more than --reset-limit 1 allows; "
          "raise --reset-limit, or leave it out\n")

TAPE_CASE(
    when_all_fail_by_themselves_the_job_fails,
    "config np=2\n"
    "start\n"
    "hosts a:2\n"
    "hello a\n"
    "ready 1,2\n"
    "entered 1,2\n"
    "exited 1 exit1 | a < REVOKE 1 lost 1: a:0#1: exit code 1\n"
    "    | record ENDED 1 exit1\n"
    "    | bar a:0 (1): exit code 1\n"
    "    | a < FORGET 1\n"
    "exited 2 exit1 | record ENDED 2 exit1\n"
    "    | bar a:1 (1): exit code 1\n"
    "    | record OVER 1: every worker of round 1 has failed; the first failure: a:0#1: exit code "
    "1\n"
    "    | a < STOP: every worker of round 1 has failed; the first failure: a:0#1: exit code 1\n"
    "    | a < FORGET 2\n")

TAPE_CASE(a_round_that_does_not_begin_to_train_is_revoked,
          "config np=2 stall=30s\n"
          "start\n"
          "hosts a:2\n"
          "hello a\n"
          "ready 1,2\n"
          "entered 1\n"
          "wait 30s | a < REVOKE 1: not all members began to train in time\n"
          "recovering 1,2 held=1.0 | record ROUND 2 recovery after 1 from 1.0 of 1,2: 1,2\n"
          "    | a < ROUND 2 recovery after 1 from 1.0 of 1,2: 1,2\n")

/* Only a host whose agent keeps the newest commit of the job can bring the commit back; other hosts
 * make room for this host. */
TAPE_CASE(
    a_host_that_kept_the_commit_is_waited_for,
    "config np=2 min_np=1 max_np=2 driver_grace=10s\n"
    "start\n"
    "hosts a:1,b:1\n"
    "hello a\n"
    "hello b\n"
    "ready 1,2\n"
    "entered 1,2\n"
    "closed a\n"
    "closed b\n"
    "wait 11s | record ENDED 1 silent\n"
    "    | bar a (1): silent for longer than the lease\n"
    "    | record ENDED 2 silent\n"
    "    | bar b (1): silent for longer than the lease\n"
    "wait 30s | start a\n"
    "    | start b\n"
    "hosts a:1,b:1,c:2 | ! hosts: +c:2\n"
    "wait 2s |\n"
    "hello c | c < WELCOME_AGENT term 1\n"
    "    | record LAUNCH 3 c:0\n"
    "    | c < LAUNCH 3 in 0 as 0/2 local 0/2 cross 0/1\n"
    "    | record LAUNCH 4 c:1\n"
    "    | c < LAUNCH 4 in 1 as 1/2 local 1/2 cross 0/1\n"
    "wait 20s |\n"
    "ready 3,4 | record READY 3\n"
    "    | record READY 4\n"
    "view | recovering term 1 round 1 from 1.0: 1,2, floor 1, resets 0, short; waits for a host "
    "that keeps the last commit\n"
    "    | a starting: #1 in 0 doomed 0*, of 1; the agent of the host has not said hello yet\n"
    "    | b starting: #2 in 0 doomed 1*, of 1; the agent of the host has not said hello yet\n"
    "    | c there: #3 in 0 ready, #4 in 1 ready, of 2\n"
    "hello b agent=8 kept=0:1.5 | b < WELCOME_AGENT term 1\n"
    "    | b < FORGET 2\n"
    "    | record LAUNCH 5 b:0\n"
    "    | b < LAUNCH 5 in 0 as 2/3 local 0/1 cross 0/1\n"
    "wait 10s |\n"
    "ready 5 held=1.5 | record READY 5\n"
    "    | record ROUND 2 recovery after 1 from 1.5 of 5: 5,3\n"
    "    | b,c < ROUND 2 recovery after 1 from 1.5 of 5: 5,3\n"
    "    | c < DRAIN 4: there are enough workers without this one\n"
    "view | running term 1 round 2 from 1.5: 5,3, floor 1, resets 1\n"
    "    | a starting: #1 in 0 doomed, of 1; the agent of the host has not said hello yet\n"
    "    | b there: #5 in 0 member 0, of 1\n"
    "    | c there: #3 in 0 member 1, #4 in 1 leaving, of 2\n"
    "wait 20s | bar a (2): the agent of this host did not say hello in time\n")

/* No live worker holds the commit, but the agents of dead workers keep and serve it. */
TAPE_CASE(agents_of_the_dead_serve_what_they_keep,
          "config np=2 min_np=1 max_np=2\n"
          "start\n"
          "hosts a:1,b:1\n"
          "hello a\n"
          "hello b\n"
          "ready 1,2\n"
          "entered 1,2\n"
          "exited 1 sig9\n"
          "exited 2 sig9\n"
          "hosts c:2\n"
          "hello c\n"
          "ready 3\n"
          "ready 4 | record READY 4\n"
          "    | record ROUND 2 recovery after 1 from 1.0: 3,4\n"
          "    | c < ROUND 2 recovery after 1 from 1.0 kept by a:0,b:0: 3,4\n"
          "closed a\n"
          "hello a kept=0:1.0 | a < WELCOME_AGENT term 1\n"
          "entered 3 |\n"
          "entered 4 | a < STOP: the job does not use this host\n"
          "    | b < STOP: the job does not use this host\n")

/* The workers of a and b have died. Those of c have to fetch commit 1.5 of the agent of a. */
#define KEPT_ELSEWHERE                \
    "config np=2 min_np=1 max_np=2\n" \
    "start\n"                         \
    "hosts a:1,b:1\n"                 \
    "hello a\n"                       \
    "hello b\n"                       \
    "ready 1,2\n"                     \
    "entered 1,2\n"                   \
    "exited 1 sig9 held=1.5\n"        \
    "exited 2 sig9 held=1.4\n"        \
    "hosts c:2\n"                     \
    "hello c\n"                       \
    "ready 3,4\n"
#define NOT_FETCHED "recovering 3 code=-17 text=no_source_is_left\nrecovering 4\n"

/* A network that is broken for seconds does not cost the commit. */
TAPE_CASE(a_commit_that_is_out_of_reach_is_asked_for_again, KEPT_ELSEWHERE NOT_FETCHED NOT_FETCHED
          "wait 1s\n" NOT_FETCHED "wait 1s\n" NOT_FETCHED
          "wait 1s | record ROUND 6 recovery after 5 from 1.5: 3,4\n"
          "    | c < ROUND 6 recovery after 5 from 1.5 kept by a:0: 3,4\n")

/* A commit that no worker could fetch for a minute may be a lie: the job goes on from the next one.
 */
TAPE_CASE(a_commit_that_stays_out_of_reach_is_given_up, KEPT_ELSEWHERE NOT_FETCHED NOT_FETCHED
          "wait 30s\n" NOT_FETCHED "wait 31s\n" NOT_FETCHED
          "wait 1s | record ROUND 6 recovery after 5 from 1.4: 3,4\n"
          "    | c < ROUND 6 recovery after 5 from 1.4 kept by b:0: 3,4\n")

/* The job that has no other commit to go on from asks for the last one until it can be fetched. */
TAPE_CASE(the_only_commit_is_not_given_up,
          "config np=1 min_np=1 max_np=1\n"
          "start\n"
          "hosts a:1\n"
          "hello a\n"
          "ready 1\n"
          "entered 1\n"
          "exited 1 sig9 held=1.5\n"
          "hosts c:1\n"
          "hello c\n"
          "ready 2\n"
          "recovering 2 code=-17 text=no_source_is_left\n"
          "recovering 2 code=-17 text=no_source_is_left\n"
          "wait 30s\n"
          "recovering 2 code=-17 text=no_source_is_left\n"
          "wait 31s\n"
          "recovering 2 code=-17 text=no_source_is_left\n"
          "wait 1s | record ROUND 6 recovery after 5 from 1.5: 2\n"
          "    | c < ROUND 6 recovery after 5 from 1.5 kept by a:0: 2\n")

/* Workers of one host hold the newest commit. A network that is broken for seconds costs neither
 * this commit nor these workers. */
TAPE_CASE(a_holder_that_is_out_of_reach_is_asked_again,
          "config np=2 min_np=2 max_np=2\n"
          "start\n"
          "hosts a:1,b:1\n"
          "hello a\n"
          "hello b\n"
          "ready 1,2\n"
          "entered 1,2\n"
          "recovering 2 code=-17 text=lost held=1.4\n"
          "recovering 1 held=1.4,1.5\n"
          "recovering 2 code=-17 text=lost held=1.4\n"
          "recovering 1 held=1.4,1.5\n"
          "wait 1s\n"
          "recovering 2 code=-17 text=lost held=1.4\n"
          "recovering 1 held=1.4,1.5\n"
          "wait 1s\n"
          "recovering 2 code=-17 text=lost held=1.4\n"
          "recovering 1 held=1.4,1.5\n"
          "wait 1s | record ROUND 5 recovery after 4 from 1.5 of 1: 1,2\n"
          "    | a,b < ROUND 5 recovery after 4 from 1.5 of 1: 1,2\n")

/* The sole survivor has the only commit: it is not ended because a new worker cannot reach it. */
TAPE_CASE(the_only_holder_is_not_ended, "config np=2 min_np=2 max_np=2\n"
                                        "start\n"
                                        "hosts a:1,b:1\n"
                                        "hello a\n"
                                        "hello b\n"
                                        "ready 1,2\n"
                                        "entered 1,2\n"
                                        "exited 2 sig9\n"
                                        "recovering 1 held=1.5\n"
                                        "wait 20s\n"
                                        "ready 3\n"
                                        "recovering 3 code=-17 text=lost\n"
                                        "recovering 1 held=1.5\n"
                                        "wait 30s\n"
                                        "recovering 3 code=-17 text=lost\n"
                                        "recovering 1 held=1.5\n"
                                        "wait 31s\n"
                                        "recovering 3 code=-17 text=lost\n"
                                        "recovering 1 held=1.5\n"
                                        "wait 20s\n"
                                        "recovering 3 code=-17 text=lost\n"
                                        "recovering 1 held=1.5\n"
                                        "wait 20s | record ROUND 6 recovery after 5 from 1.5 of 1: "
                                        "1,3\n"
                                        "    | a,b < ROUND 6 recovery after 5 from 1.5 of 1: 1,3\n")

TAPE_CASE(an_agent_that_was_started_again_serves_nothing, "config np=1 min_np=1 max_np=1\n"
                                                          "start\n"
                                                          "hosts a:1\n"
                                                          "hello a\n"
                                                          "ready 1\n"
                                                          "entered 1\n"
                                                          "exited 1 sig9\n"
                                                          "hosts b:1\n"
                                                          "hello b\n"
                                                          "hello a agent=9 kept=0:1.0\n"
                                                          "ready 2 | record READY 2\n"
                                                          "wait 1s |\n")

TAPE_CASE(the_only_member_hands_its_state_over,
          "config np=1 min_np=1 max_np=1\n"
          "start\n"
          "hosts a:1\n"
          "hello a\n"
          "ready 1\n"
          "entered 1\n"
          "hosts b:1\n"
          "hello b\n"
          "ready 2 | record READY 2\n"
          "    | record NUMBER 2\n"
          "    | b,a < PREPARE 2 after 1: 2\n"
          "prepared 2\n"
          "at 1 7 | record ROUND 2 switch after 1 from 2.0 check 8: 2\n"
          "    | a < SWITCH_AT 1 next 2 check 8\n"
          "    | b < ROUND 2 switch after 1 from 2.0 kept by a:0: 2\n"
          "left 1 |\n"
          "entered 2 | record ENTERED 2\n"
          "exited 1 | record ENDED 1 exit0\n"
          "    | a < FORGET 1\n"
          "    | a < STOP: the job does not use this host\n")
