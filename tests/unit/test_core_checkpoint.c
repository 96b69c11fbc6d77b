/*
 * test_core_checkpoint.c: when the driver takes checkpoints, and when a job goes on from one. Two
 * hosts with two workers each; the state has two replicated entries and one of each rank.
 */
#include "tests/lib/core_tape.h"
#include "tests/lib/test.h"

static struct core_tape tape;

#define BEGIN                                     \
    "start\n"                                     \
    "hosts a:1,b:1\n"                             \
    "hello a\n"                                   \
    "hello b\n"                                   \
    "launched 1-2\n"                              \
    "ready 1-2 entries=w:4096,v:4096,r:64:rank\n" \
    "entered 1-2\n"
#define JOB    "config np=2 min_np=1 dir=/c every=10s\n" BEGIN

#define HOLD_1 "a < HOLD try 1 at 1.0 slots 0\n    | b < HOLD try 1 at 1.0 slots 0\n"
#define HOLD_2 "a < HOLD try 2 at 1.0 slots 0\n    | b < HOLD try 2 at 1.0 slots 0\n"

#define SAVE_FILES                                                                         \
    "a < SAVE /c/commit-1.7/replicated-0001-of-0002.t1a1.safetensors of slot 0: w\n"       \
    "    | b < SAVE /c/commit-1.7/replicated-0002-of-0002.t1a1.safetensors of slot 0: v\n" \
    "    | a < SAVE /c/commit-1.7/rank-00000.t1a1.safetensors of slot 0: r\n"              \
    "    | b < SAVE /c/commit-1.7/rank-00001.t1a1.safetensors of slot 0: r\n"

#define COMPLETE                                                                      \
    "a,b < RELEASE try 1\n"                                                           \
    "    | complete commit-1.7 of 2 ranks: replicated-0001-of-0002.t1a1.safetensors " \
    "(1048576) replicated-0002-of-0002.t1a1.safetensors (2097152) "                   \
    "rank-00000.t1a1.safetensors (1048576) rank-00001.t1a1.safetensors (1048576)\n"

/* All members keep commit 1.7; all files but one are written. */
#define SAVING                                               \
    JOB "wait 10s\n"                                         \
        "holding a kept=0:1.7\n"                             \
        "holding b kept=0:1.7\n"                             \
        "saved a replicated-0001-of-0002.t1a1.safetensors\n" \
        "saved a rank-00000.t1a1.safetensors\n"              \
        "saved b replicated-0002-of-0002.t1a1.safetensors chunks=2\n"
#define LAST_FILE "saved b rank-00001.t1a1.safetensors"

TAPE_CASE(a_checkpoint_is_complete_when_all_files_are_durable,
          JOB "wait 10s | " HOLD_1 "holding a kept=0:1.7 |\n"
              "holding b kept=0:1.7 | " SAVE_FILES
              "saved a replicated-0001-of-0002.t1a1.safetensors |\n"
              "saved a rank-00000.t1a1.safetensors |\n"
              "saved b replicated-0002-of-0002.t1a1.safetensors chunks=2 |\n" LAST_FILE
              " | " COMPLETE "written 1.7 |\n"
              "wait 10s | " HOLD_2)

/* Members that commit often kept different commits: a later commit is asked for, with a growing
 * margin. */
TAPE_CASE(members_that_keep_different_commits_are_asked_for_a_later_one,
          JOB "wait 10s\n"
              "holding a kept=0:1.7\n"
              "holding b kept=0:1.8 | a < HOLD try 2 at 1.10 slots 0\n"
              "    | b < HOLD try 2 at 1.10 slots 0\n"
              "holding b kept=0:1.8 try=1 |\n"
              "holding a kept=0:1.10 try=2\n"
              "holding b kept=0:1.11 try=2 | a < HOLD try 3 at 1.15 slots 0\n"
              "    | b < HOLD try 3 at 1.15 slots 0\n")

/* With --checkpoint-interval 5c the agents wait for the fifth commit, so no time is lost. */
TAPE_CASE(commits_are_counted,
          "config np=1 min_np=1 dir=/c every=0s checkpoint_commits=5\n"
          "start\n"
          "hosts a:1\n"
          "hello a\n"
          "launched 1\n"
          "ready 1 entries=w:4096\n"
          "entered 1 | record ENTERED 1\n"
          "    | a < HOLD try 1 at 1.5 slots 0\n"
          "holding a kept=0:1.5 | a < SAVE "
          "/c/commit-1.5/replicated-0001-of-0001.t1a1.safetensors of slot 0: w\n"
          "saved a replicated-0001-of-0001.t1a1.safetensors | a < RELEASE try 1\n"
          "    | complete commit-1.5 of 1 ranks: replicated-0001-of-0001.t1a1.safetensors "
          "(1048576)\n"
          "written 1.5 | a < HOLD try 2 at 1.10 slots 0\n")

/* A member dies before all members kept a commit: the attempt begins again in the next round. */
TAPE_CASE(a_round_that_ends_ends_the_attempt,
          JOB "wait 10s\n"
              "exited 2 sig9 | a,b < REVOKE 1 lost 2: b:0#2: killed by signal 9 (SIGKILL)\n"
              "    | record ENDED 2 sig9\n"
              "    | bar b:0 (1): killed by signal 9 (SIGKILL)\n"
              "    | b < FORGET 2\n"
              "    | a,b < RELEASE try 1\n"
              "recovering 1 held=1.7\n"
              "holding a kept=0:1.7 |\n"
              "wait 10s\n"
              "entered 1 | record ENTERED 2\n"
              "    | a < HOLD try 2 at 2.0 slots 0\n")

/* A member that dies while files are written harms nothing: its agent keeps the commit. */
TAPE_CASE(a_death_while_files_are_written_harms_nothing,
          SAVING "exited 2 sig9\n" LAST_FILE " | " COMPLETE)

TAPE_CASE(an_agent_that_is_lost_ends_the_attempt, SAVING "closed b | a < RELEASE try 1\n"
                                                         "    | start b\n")

TAPE_CASE(an_agent_that_comes_back_is_told_what_is_over,
          SAVING "closed b\n"
                 "hello b #2:0 | b < WELCOME_AGENT term 1\n"
                 "    | b < RELEASE try 1\n"
                 "    | " HOLD_2)

/* The connections to all agents break during an attempt, since the driver's machine is cut off. No
 * agent is blamed for an answer that its connection has lost. */
TAPE_CASE(a_driver_that_is_cut_off_gives_the_attempt_up,
          JOB "wait 9s\n"
              "silent a\n"
              "silent b\n"
              "wait 9500ms | " HOLD_1 "wait 1s | close a: silent for longer than the lease\n"
              "    | b < RELEASE try 1\n"
              "    | start a\n"
              "    | close b: silent for longer than the lease\n"
              "    | start b\n"
              "hello a #1:0\n"
              "hello b #2:0 | b < WELCOME_AGENT term 1\n"
              "    | b < RELEASE try 1\n"
              "    | " HOLD_2)

/* A disk is full: the operator is told, and the next attempt comes after the interval. */
TAPE_CASE(a_file_that_cannot_be_written_fails_the_attempt,
          SAVING LAST_FILE " code=-7 text=full | a,b < RELEASE try 1\n" LAST_FILE " |\n"
                           "wait 10s | " HOLD_2)

TAPE_CASE(a_wrong_number_of_checksums_fails_the_attempt,
          SAVING LAST_FILE " chunks=0 | a,b < RELEASE try 1\n")

TAPE_CASE(a_manifest_that_cannot_be_written_fails_the_attempt,
          SAVING LAST_FILE "\n"
                           "written 0 code=-7 text=full | a,b < RELEASE try 1\n"
                           "wait 10s | " HOLD_2)

TAPE_CASE(an_agent_speaks_for_its_own_files,
          SAVING "saved a rank-00001.t1a1.safetensors |\n" LAST_FILE " | " COMPLETE)

TAPE_CASE(a_commit_that_was_not_asked_for_fails_the_attempt,
          JOB "wait 10s\n"
              "holding a kept=0:1.7\n"
              "holding b kept=0:0.7 | a,b < RELEASE try 1\n"
              "holding b kept=0:1.7 |\n"
              "wait 10s | " HOLD_2)

/* An agent that never says what it keeps holds no checkpoint up: each member has a commit of this
 * round, so the answer takes no longer than a stall. Its late answer counts for nothing. */
TAPE_CASE(an_agent_that_does_not_answer_fails_the_attempt,
          "config np=2 min_np=1 dir=/c every=10s stall=20s\n" BEGIN "wait 10s\n"
          "holding a kept=0:1.7\n"
          "wait 19s |\n"
          "wait 1s | a,b < RELEASE try 1\n"
          "holding b kept=0:1.7 |\n"
          "wait 1s | " HOLD_2)

/* A commit that is still to come may take any time; when one member has it, the others have it
 * soon. */
TAPE_CASE(a_commit_that_is_to_come_is_awaited_until_a_member_has_it,
          "config np=2 min_np=1 dir=/c every=0s checkpoint_commits=5 stall=20s\n" BEGIN
          "wait 1m |\n"
          "holding a kept=0:1.5 |\n"
          "wait 19s |\n"
          "wait 1s | a,b < RELEASE try 1\n")

/* After a recovery the newest commit is of the round before; a HOLD asks for one of this round. */
TAPE_CASE(a_commit_of_the_round_before_is_not_asked_for,
          JOB "exited 2 sig9\n"
              "recovering 1 held=1.9\n"
              "entered 1\n"
              "wait 10s | a < HOLD try 1 at 2.0 slots 0\n")

/* A member has finished before all have said what they keep: its file would be missing. */
TAPE_CASE(a_member_that_has_finished_ends_the_attempt,
          JOB "wait 10s\n"
              "holding a kept=0:1.7\n"
              "finished 1\n"
              "holding b kept=0:1.7 | a,b < RELEASE try 1\n")

/* The training stands still: a checkpoint that is complete is not written again. */
TAPE_CASE(a_commit_is_written_once,
          SAVING LAST_FILE "\n"
                           "written 1.7\n"
                           "wait 10s\n"
                           "holding a kept=0:1.7 try=2\n"
                           "holding b kept=0:1.7 try=2 | a,b < RELEASE try 2\n"
                           "wait 10s | a < HOLD try 3 at 1.0 slots 0\n"
                           "    | b < HOLD try 3 at 1.0 slots 0\n")

/* A driver that has taken over learns the entries of the state from a READY that is said again. */
TAPE_CASE(the_next_driver_takes_checkpoints, JOB "kill\n"
                                                 "start\n"
                                                 "hosts a:1,b:1\n"
                                                 "hello a #1:0\n"
                                                 "hello b #2:0\n"
                                                 "wait 10s\n"
                                                 "entered 1-2\n"
                                                 "wait 10s |\n"
                                                 "ready 1 entries=w:4096,v:4096,r:64:rank\n"
                                                 "wait 10s | a < HOLD try 1 at 1.0 slots 0\n"
                                                 "    | b < HOLD try 1 at 1.0 slots 0\n")

/* ---- a checkpoint that an operator asks for -------------------------------------------------- */

TAPE_CASE(an_operator_waits_for_a_checkpoint,
          JOB "checkpoint 1 wait=1 | " HOLD_1 "holding a kept=0:1.7\n"
              "holding b kept=0:1.7\n"
              "saved a replicated-0001-of-0002.t1a1.safetensors\n"
              "saved a rank-00000.t1a1.safetensors\n"
              "saved b replicated-0002-of-0002.t1a1.safetensors chunks=2\n" LAST_FILE "\n"
              "written 1.7 | reply HVD_OK: commit-1.7 is complete\n")

TAPE_CASE(
    an_operator_does_not_wait_for_a_checkpoint, JOB
    "checkpoint 1 | reply HVD_OK: a checkpoint is written when all workers train\n    | " HOLD_1)

/* The attempt that is under way has an older commit: the answer waits for the next one. */
TAPE_CASE(a_checkpoint_that_had_begun_before_does_not_answer,
          SAVING "wait 1s\n"
                 "checkpoint 1 wait=1 |\n" LAST_FILE "\n"
                 "written 1.7 | " HOLD_2 "holding a kept=0:1.7 try=2\n"
                 "holding b kept=0:1.7 try=2 | a,b < RELEASE try 2\n"
                 "    | reply HVD_OK: commit-1.7 is complete\n")

TAPE_CASE(an_operator_is_told_why_there_is_no_checkpoint,
          JOB "checkpoint 1 wait=1\n"
              "holding a code=-7 text=full | a,b < RELEASE try 1\n"
              "    | reply HVD_E_IO: no checkpoint could be made: a: full\n")

/* The round ends before all members kept a commit: the operator waits for the next round. */
TAPE_CASE(an_operator_waits_while_the_members_change, JOB "checkpoint 1 wait=1\n"
                                                          "exited 2 sig9\n"
                                                          "recovering 1 held=1.7\n"
                                                          "wait 10s\n"
                                                          "entered 1 | record ENTERED 2\n"
                                                          "    | a < HOLD try 2 at 2.0 slots 0\n")

TAPE_CASE(an_operator_waits_no_longer_than_the_job,
          SAVING "checkpoint 1 wait=1\n"
                 "stop me | record OVER 2: stopped by me\n"
                 "    | a < STOP: stopped by me\n"
                 "    | b < STOP: stopped by me\n"
                 "    | reply HVD_E_STATE: the job has come to its end\n"
                 "checkpoint 2 wait=1 | reply HVD_E_STATE: the job has come to its end\n")

TAPE_CASE(
    a_job_without_a_directory_writes_no_checkpoint,
    "config np=1 min_np=1\n"
    "start\n"
    "checkpoint 1 wait=1 | reply HVD_E_STATE: the job has no directory for checkpoints; start "
    "it with --checkpoint-dir DIR\n")

/* ---- a checkpoint that a worker asks for ----------------------------------------------------- */

#define HOLD_ASKED "a < HOLD try 1 at 1.7 slots 0\n    | b < HOLD try 1 at 1.7 slots 0\n"
#define SAVED_ASKED                                      \
    "holding a kept=0:1.7\n"                             \
    "holding b kept=0:1.7\n"                             \
    "saved a replicated-0001-of-0002.t1a1.safetensors\n" \
    "saved a rank-00000.t1a1.safetensors\n"              \
    "saved b replicated-0002-of-0002.t1a1.safetensors chunks=2\n" LAST_FILE "\n"
#define ANSWER_1 "a < PERSISTED 1 1.7\n"
#define ANSWER_2 "b < PERSISTED 2 1.7\n"

TAPE_CASE(a_worker_asks_for_a_checkpoint,
          JOB "persist 1 1.7 | " HOLD_ASKED SAVED_ASKED "written 1.7 | " ANSWER_1
              "persist 1 1.7 | " ANSWER_1 "persist 2 1.6 | " ANSWER_2)

/* All ranks ask in the same step, and each request comes twice: one checkpoint answers all. */
TAPE_CASE(all_ranks_ask_for_one_checkpoint,
          JOB "persist 1 1.7 | " HOLD_ASKED "persist 2 1.7 |\n"
              "persist 1 1.7 |\n"
              "holding a kept=0:1.7\n"
              "persist 2 1.7 |\n"
              "holding b kept=0:1.7\n"
              "persist 2 1.7 |\n"
              "saved a replicated-0001-of-0002.t1a1.safetensors\n"
              "saved a rank-00000.t1a1.safetensors\n"
              "saved b replicated-0002-of-0002.t1a1.safetensors chunks=2\n" LAST_FILE "\n"
              "persist 1 1.7 |\n"
              "written 1.7 | " ANSWER_1 "    | " ANSWER_2)

/* The attempt that is under way has an older commit: another one follows. */
TAPE_CASE(a_checkpoint_of_an_older_commit_does_not_answer,
          SAVING "persist 1 1.8 |\n" LAST_FILE "\n"
                 "written 1.7 | a < HOLD try 2 at 1.8 slots 0\n"
                 "    | b < HOLD try 2 at 1.8 slots 0\n")

/* The agents wait for a commit that is far ahead: the newest one is taken instead. */
TAPE_CASE(a_worker_does_not_wait_for_a_commit_that_is_far_ahead,
          "config np=2 min_np=1 dir=/c every=0s checkpoint_commits=100\n" BEGIN
          "persist 1 1.7 | a < HOLD try 2 at 1.7 slots 0\n"
          "    | b < HOLD try 2 at 1.7 slots 0\n")

/* The members may stand still until the checkpoint is complete: a commit that is still to come is
 * awaited for a limited time, and then the one that is there is taken. */
TAPE_CASE(members_that_stand_still_do_not_wait_for_ever,
          JOB "persist 1 1.7 | " HOLD_ASKED "holding a kept=0:1.7\n"
              "holding b kept=0:1.8 | a < HOLD try 2 at 1.10 slots 0\n"
              "    | b < HOLD try 2 at 1.10 slots 0\n"
              "wait 900ms |\n"
              "wait 100ms | a < HOLD try 3 at 1.7 slots 0\n"
              "    | b < HOLD try 3 at 1.7 slots 0\n"
              "holding a kept=0:1.8 try=3\n"
              "holding b kept=0:1.9 try=3 | a < HOLD try 4 at 1.13 slots 0\n"
              "    | b < HOLD try 4 at 1.13 slots 0\n"
              "wait 1900ms |\n"
              "wait 100ms | a < HOLD try 5 at 1.7 slots 0\n"
              "    | b < HOLD try 5 at 1.7 slots 0\n")

TAPE_CASE(a_worker_is_told_why_there_is_no_checkpoint,
          JOB "persist 1 1.7 | " HOLD_ASKED "holding a code=-7 text=full | a,b < RELEASE try 1\n"
              "    | a < PERSISTED 1 1.7 HVD_E_IO: no checkpoint could be made: a: full\n"
              "persist 1 1.7 | a < HOLD try 2 at 1.7 slots 0\n"
              "    | b < HOLD try 2 at 1.7 slots 0\n")

/* A commit that never comes: the attempt ends like any other whose agent does not answer. */
TAPE_CASE(
    a_commit_that_does_not_come_is_not_awaited_for_ever,
    "config np=2 min_np=1 dir=/c every=10s stall=20s\n" BEGIN
    "persist 1 1.900 | a < HOLD try 1 at 1.900 slots 0\n"
    "    | b < HOLD try 1 at 1.900 slots 0\n"
    "wait 19s |\n"
    "wait 1s | a,b < RELEASE try 1\n"
    "    | a < PERSISTED 1 1.900 HVD_E_IO: no checkpoint could be made: a: the agent of "
    "this host has not said in time which commits it keeps; kill the process hvd-agent on this "
    "host\n")

/* Agent b hangs in its disk: one file of two is missing. */
TAPE_CASE(
    a_file_that_is_not_written_names_its_host,
    "config np=2 min_np=1 dir=/c every=10s beat=1m lease=5m discovery=1m\n" BEGIN
    "persist 1 1.7 | " HOLD_ASKED "holding a kept=0:1.7\n"
    "holding b kept=0:1.7\n"
    "saved a replicated-0001-of-0002.t1a1.safetensors\n"
    "saved a rank-00000.t1a1.safetensors\n"
    "saved b replicated-0002-of-0002.t1a1.safetensors chunks=2\n"
    "wait 1799s |\n"
    "wait 1s | a,b < RELEASE try 1\n"
    "    | a < PERSISTED 1 1.7 HVD_E_IO: no checkpoint could be made: b: the agent of this host "
    "has not written its files of the checkpoint within 30 minutes (files that are missing, of all "
    "hosts: 1); check that --checkpoint-dir takes writes there\n")

TAPE_CASE(a_request_of_a_worker_without_a_directory_fails,
          "config np=2 min_np=1\n" BEGIN
          "persist 1 1.7 | a < PERSISTED 1 1.7 HVD_E_STATE: the job has no directory for "
          "checkpoints; start it with --checkpoint-dir DIR\n")

/* The worker that has asked dies: the checkpoint is made, and no process is told. */
TAPE_CASE(a_worker_that_has_asked_dies, SAVING "persist 2 1.7\n"
                                               "exited 2 sig9\n" LAST_FILE "\n"
                                               "written 1.7 |\n")

/* The round ends before all members kept the commit: the first commit of the next round will do. */
TAPE_CASE(a_worker_waits_while_the_members_change,
          JOB "persist 1 1.7\n"
              "exited 2 sig9\n"
              "recovering 1 held=1.7\n"
              "wait 10s\n"
              "entered 1 | record ENTERED 2\n"
              "    | a < HOLD try 2 at 2.0 slots 0\n"
              "holding a kept=0:2.0 try=2\n"
              "saved a replicated-0001-of-0001.t1a2.safetensors try=2\n"
              "saved a rank-00000.t1a2.safetensors try=2\n"
              "written 2.0 try=2 | a < PERSISTED 1 2.0\n")

/* The driver dies between the request and the answer: the agent says PERSIST again. Its successor
 * takes the checkpoint, or finds it. */
TAPE_CASE(the_next_driver_answers_a_worker, JOB "persist 1 1.7 | " HOLD_ASKED "kill\n"
                                                "start\n"
                                                "hosts a:1,b:1\n"
                                                "hello a #1:0\n"
                                                "hello b #2:0\n"
                                                "ready 1 entries=w:4096,v:4096,r:64:rank\n"
                                                "persist 1 1.7 |\n"
                                                "entered 1-2 | a < HOLD try 1 at 1.7 slots 0\n"
                                                "    | b < HOLD try 1 at 1.7 slots 0\n")

/* The driver dies after a switch was agreed on. Its successor has not seen the members train in the
 * round before, so a member that stands still there is told at once that its commit is not
 * written: otherwise no member would come into the running round. */
TAPE_CASE(the_next_driver_writes_no_commit_of_the_round_before,
          JOB "hosts a:1\n"
              "prepared 1\n"
              "at 1,2 7\n"
              "kill\n"
              "start\n"
              "hosts a:1\n"
              "hello a #1:0\n"
              "hello b #2:0\n"
              "persist 1 1.7 | a < PERSISTED 1 1.7 HVD_E_STATE: the driver was replaced while the "
              "members changed, and the new driver cannot write a commit of the round before; ask "
              "again in the next round\n")

#define PASSED                                                                                 \
    "HVD_E_IO: other members have gone on to the next round, and keep no commit of the round " \
    "before; ask again in the next round\n"

/* After a switch was agreed on, a member asks and stands still, and another member has gone on: the
 * commit is written no more. The member that asked is told at once, and so is one that asks later:
 * otherwise it would never come into the running round. */
TAPE_CASE(a_commit_of_a_round_that_members_have_left_is_not_awaited,
          JOB "hosts a:1,b:1,c:1\n"
              "hello c\n"
              "launched 3\n"
              "ready 3 entries=w:4096,v:4096,r:64:rank\n"
              "prepared 1-3\n"
              "at 1,2 7\n"
              "persist 1 1.7 | " HOLD_ASKED "holding b kept=0:2.0 | a < PERSISTED 1 1.7 " PASSED
              "    | a,b,c < RELEASE try 1\n"
              "persist 1 1.8 | a < PERSISTED 1 1.8 " PASSED)

/* A liar asks for a commit of a round of which no agent was told: the agent is not believed. */
TAPE_CASE(a_commit_of_no_round_is_not_asked_for, JOB "persist 1 9.1 |\n")

TAPE_CASE(a_worker_waits_no_longer_than_the_job,
          SAVING "persist 1 1.9 |\n"
                 "stop me | record OVER 2: stopped by me\n"
                 "    | a < STOP: stopped by me\n"
                 "    | b < STOP: stopped by me\n"
                 "    | a < PERSISTED 1 1.9 HVD_E_STATE: the job has come to its end\n")

/* ---- the last checkpoint --------------------------------------------------------------------- */

#define FILE_1 "saved a replicated-0001-of-0001.t1a1.safetensors"
#define FILE_2 "saved a replicated-0001-of-0001.t1a2.safetensors try=2"

/* A checkpoint that had begun before the stop does not count: its commit is older. */
TAPE_CASE(a_job_that_is_stopped_writes_its_state_first,
          "config np=1 min_np=1 dir=/c every=10s\n"
          "start\n"
          "hosts a:1\n"
          "hello a\n"
          "launched 1\n"
          "ready 1 entries=w:4096\n"
          "entered 1\n"
          "wait 10s\n"
          "holding a kept=0:1.7\n"
          "wait 1s\n"
          "stop me checkpoint=1 |\n" FILE_1 "\n"
          "written 1.7 | a < HOLD try 2 at 1.0 slots 0\n"
          "holding a kept=0:1.9 try=2\n" FILE_2 "\n"
          "state running\n"
          "written 1.9 try=2 | record OVER 2: stopped by me\n"
          "    | a < STOP: stopped by me\n")

/* The agents wait for the hundredth commit, which may be hours away: the newest one is taken. */
TAPE_CASE(a_job_that_is_stopped_does_not_wait_for_a_commit_that_is_far_ahead,
          "config np=1 min_np=1 dir=/c every=0s checkpoint_commits=100\n"
          "start\n"
          "hosts a:1\n"
          "hello a\n"
          "launched 1\n"
          "ready 1 entries=w:4096\n"
          "entered 1 | record ENTERED 1\n"
          "    | a < HOLD try 1 at 1.100 slots 0\n"
          "stop me checkpoint=1 | a < HOLD try 2 at 1.0 slots 0\n"
          "holding a kept=0:1.7 try=2\n" FILE_2 "\n"
          "written 1.7 try=2 | record OVER 2: stopped by me\n"
          "    | a < STOP: stopped by me\n")

TAPE_CASE(a_second_stop_ends_the_job_without_a_checkpoint,
          SAVING "stop me checkpoint=1 |\n"
                 "stop me checkpoint=1 | record OVER 2: stopped by me\n"
                 "    | a < STOP: stopped by me\n"
                 "    | b < STOP: stopped by me\n")

TAPE_CASE(a_job_that_cannot_write_a_last_checkpoint_ends,
          SAVING "stop me checkpoint=1\n" LAST_FILE " code=-7 text=full | a,b < RELEASE try 1\n"
                 "    | record OVER 2: stopped by me\n"
                 "    | a < STOP: stopped by me\n"
                 "    | b < STOP: stopped by me\n")

TAPE_CASE(a_job_that_is_stopped_in_a_recovery_does_not_wait_for_ever, JOB "wait 10s\n"
                                                                          "stop me checkpoint=1\n"
                                                                          "exited 2 sig9\n"
                                                                          "wait 29s\n"
                                                                          "state recovering\n"
                                                                          "wait 2s\n"
                                                                          "state stopping\n")

/* ---- the members are dead, and their agents keep their commits ------------------------------- */

#define SAVE_OLDER                                                                         \
    "a < SAVE /c/commit-1.7/replicated-0001-of-0002.t1a2.safetensors of slot 0: w\n"       \
    "    | b < SAVE /c/commit-1.7/replicated-0002-of-0002.t1a2.safetensors of slot 0: v\n" \
    "    | a < SAVE /c/commit-1.7/rank-00000.t1a2.safetensors of slot 0: r\n"              \
    "    | b < SAVE /c/commit-1.7/rank-00001.t1a2.safetensors of slot 0: r\n"

#define SAVED_OLDER                                            \
    "saved a replicated-0001-of-0002.t1a2.safetensors try=2\n" \
    "saved a rank-00000.t1a2.safetensors try=2\n"              \
    "saved b replicated-0002-of-0002.t1a2.safetensors try=2\n" \
    "saved b rank-00001.t1a2.safetensors try=2\n"

#define STOPPED                       \
    "record OVER 2: stopped by me\n"  \
    "    | a < STOP: stopped by me\n" \
    "    | b < STOP: stopped by me\n"

/* A signal ends all processes at once: one worker was a commit ahead. */
TAPE_CASE(the_last_commit_of_all_dead_members_is_written,
          JOB "exited 1 sig15\n"
              "exited 2 sig15\n"
              "stop me checkpoint=1 | " HOLD_1 "holding a kept=0:1.8\n"
              "holding b kept=0:1.7 | a < HOLD try 2 at 1.7 only slots 0\n"
              "    | b < HOLD try 2 at 1.7 only slots 0\n"
              "holding a kept=0:1.7 try=2\n"
              "holding b kept=0:1.7 try=2 | " SAVE_OLDER SAVED_OLDER "written 1.7 try=2 | " STOPPED)

/* The stop comes first, and the workers die while they are asked. */
TAPE_CASE(members_that_die_while_the_job_is_stopped_are_asked_again,
          JOB "stop me checkpoint=1 | " HOLD_1 "holding a kept=0:1.8\n"
              "exited 2 sig15\n"
              "state recovering\n"
              "holding b code=-9 text=ended |\n"
              "holding a kept=0:1.8 try=2\n"
              "holding b kept=0:1.7 try=2 | a < HOLD try 3 at 1.7 only slots 0\n"
              "    | b < HOLD try 3 at 1.7 only slots 0\n")

/* The commit that all have is in a checkpoint already: it is not written again. */
TAPE_CASE(dead_members_without_a_newer_commit_are_not_written,
          SAVING LAST_FILE "\n"
                           "written 1.7\n"
                           "exited 1 sig15\n"
                           "exited 2 sig15\n"
                           "stop me checkpoint=1\n"
                           "holding a kept=0:1.8 try=2\n"
                           "holding b kept=0:1.7 try=2 | a,b < RELEASE try 2\n"
                           "    | " STOPPED)

/* An agent has no such commit any more, or lies: the job ends with the checkpoint before. */
TAPE_CASE(a_commit_that_is_not_kept_ends_the_job_without,
          JOB "exited 1 sig15\n"
              "exited 2 sig15\n"
              "stop me checkpoint=1\n"
              "holding a kept=0:1.8\n"
              "holding b kept=0:1.7\n"
              "holding a code=-6 text=gone try=2 | a,b < RELEASE try 2\n"
              "    | " STOPPED)

/* A member that never trained in this round keeps no commit of it. */
TAPE_CASE(a_round_that_never_trained_is_not_written, JOB "exited 2 sig9\n"
                                                         "recovering 1 held=1.7\n"
                                                         "wait 10s\n"
                                                         "exited 1 sig15\n"
                                                         "stop me checkpoint=1 |\n"
                                                         "wait 31s\n"
                                                         "state stopping\n")

/* ---- all hosts are to leave ------------------------------------------------------------------ */

#define FILES_1                                          \
    "saved a replicated-0001-of-0002.t1a1.safetensors\n" \
    "saved a rank-00000.t1a1.safetensors\n"              \
    "saved b replicated-0002-of-0002.t1a1.safetensors\n" \
    "saved b rank-00001.t1a1.safetensors\n"

/* The first notice alone is a drain as any other. Then the newest commit is written at once, and
 * each later one, a second apart. */
TAPE_CASE(all_hosts_give_notice, "config np=2 min_np=2 dir=/c every=10s\n" BEGIN "notice a 30s\n"
                                 "notice b 30s | "
                                 "record DRAIN b until 31s\n    | " HOLD_1 "holding a kept=0:1.7\n"
                                 "holding b kept=0:1.7\n" FILES_1 "written 1.7\n"
                                 "wait 1s | a < HOLD try 2 at 1.8 slots 0\n"
                                 "    | b < HOLD try 2 at 1.8 slots 0\n"
                                 "wait 20s |\n")

/* The workers die before the machines do: what their agents keep is written once. */
TAPE_CASE(workers_of_leaving_hosts_die,
          JOB "notice a 30s\n"
              "notice b 30s\n"
              "exited 1 sig15\n"
              "holding a kept=0:1.7 |\n"
              "exited 2 sig15\n"
              "holding a kept=0:1.7 try=2\n"
              "holding b kept=0:1.7 try=2 | " SAVE_OLDER SAVED_OLDER "written 1.7 try=2 |\n"
              "wait 5s |\n")

/* ---- a job goes on from a checkpoint --------------------------------------------------------- */

/* A new job begins with the checkpoint, and its rounds have higher numbers than those before. */
TAPE_CASE(a_new_job_begins_with_the_newest_checkpoint,
          "config np=1 min_np=1 dir=/c every=10s from=7.4\n"
          "start\n"
          "hosts a:1\n"
          "hello a\n"
          "launched 1\n"
          "ready 1 | record READY 1\n"
          "    | record ROUND 8 first after 0 from 7.4: 1\n"
          "    | a < ROUND 8 first after 0 from 7.4 in checkpoint=/c/commit-7.4: 1\n"
          "entered 1 | record ENTERED 8\n"
          "exited 1 sig9 held=8.3\n"
          "wait 20s\n"
          "launched 2\n"
          "ready 2 held=8.3 | record READY 2\n"
          "    | record ROUND 9 recovery after 8 from 8.3 of 2: 2\n"
          "    | a < ROUND 9 recovery after 8 from 8.3 of 2: 2\n")

/* ---- a driver has taken over while the store of checkpoints was away ------------------------- */

#define AWAITED                                                             \
    "config np=1 min_np=1 dir=/c every=10s awaited=1 elastic_timeout=30s\n" \
    "start\n"                                                               \
    "hosts a:1\n"                                                           \
    "hello a\n"                                                             \
    "launched 1\n"

TAPE_CASE(a_round_without_a_commit_waits_for_the_store,
          AWAITED "ready 1 | record READY 1\n"
                  "wait 1m |\n"
                  "written 7.4 found=1 text=/c/commit-7.4 | "
                  "record ROUND 8 first after 0 from 7.4: 1\n"
                  "    | a < ROUND 8 first after 0 from 7.4 in checkpoint=/c/commit-7.4: 1\n")

TAPE_CASE(a_store_without_a_checkpoint_is_an_answer_too,
          AWAITED "ready 1 | record READY 1\n"
                  "written 0 found=1 code=-5 text=none | "
                  "record ROUND 1 first after 0 from 1.0 of 1: 1\n"
                  "    | a < ROUND 1 first after 0 from 1.0 of 1: 1\n")

TAPE_CASE(a_job_whose_store_is_of_another_job_now_goes_on,
          AWAITED "ready 1 | record READY 1\n"
                  "written 0 found=1 code=-10 text=taken | "
                  "record ROUND 1 first after 0 from 1.0 of 1: 1\n"
                  "    | a < ROUND 1 first after 0 from 1.0 of 1: 1\n")

/* A survivor has a commit, so the store is not needed. */
TAPE_CASE(a_round_with_the_commit_of_a_worker_waits_for_no_store,
          JOB "kill\n"
              "config np=2 min_np=1 dir=/c every=10s awaited=1\n"
              "start\n"
              "hosts a:1,b:1\n"
              "hello a #1:0\n"
              "hello b #2:0\n"
              "entered 1-2\n"
              "exited 2 sig9\n"
              "recovering 1 held=1.7 | record ROUND 2 recovery after 1 from 1.7 of 1: 1\n"
              "    | a < ROUND 2 recovery after 1 from 1.7 of 1: 1\n")

#define BEGUN                                          \
    "config np=1 min_np=1 dir=/c every=10s from=7.4\n" \
    "start\n"                                          \
    "hosts a:1\n"                                      \
    "hello a\n"                                        \
    "launched 1\n"                                     \
    "ready 1\n"                                        \
    "entered 1\n"

/* All agents are killed at once. Those that are started again keep nothing, so no newer commit can
 * come back: the job goes on at once. */
TAPE_CASE(a_job_whose_agents_are_all_gone_goes_on_from_its_checkpoint,
          BEGUN "closed a\n"
                "hello a agent=8\n"
                "wait 20s\n"
                "launched 2\n"
                "ready 2 | record READY 2\n"
                "    | record ROUND 9 recovery after 8 from 7.4: 2\n"
                "    | a < ROUND 9 recovery after 8 from 7.4 in checkpoint=/c/commit-7.4: 2\n")

/* The commit that the job trains from is newer than the checkpoint, and the host that has it may
 * come back: the job waits, and then goes on from the checkpoint. The next driver knows that. */
TAPE_CASE(a_host_with_a_newer_commit_is_waited_for, BEGUN
          "exited 1 sig9 held=8.3\n"
          "wait 20s\n"
          "launched 2\n"
          "ready 2 held=8.3\n"
          "entered 2\n"
          "hosts a:1,b:1\n"
          "hello b\n"
          "silent a\n"
          "wait 15s\n"
          "launched 3\n"
          "ready 3 | record READY 3\n"
          "wait 25s\n"
          "state recovering\n"
          "wait 10s\n"
          "view | running term 1 round 10 from 7.4: 3, floor 7, resets 2\n"
          "    | a starting: #2 in 0 doomed, of 1; the agent of the host has not said hello yet\n"
          "    | b there: #3 in 0 member 0, of 1\n"
          "kill\n"
          "start\n"
          "hosts a:1,b:1\n"
          "hello b #3:0\n"
          "view | running term 2 round 10 from 7.4: 3, floor 7, resets 2\n"
          "    | b there: #3 in 0 member 0, of 1\n"
          "    | a starting: of 1; the agent of the host has not said hello yet\n")

/* The host that has the newer commit has left the job, and its key is dead. Its agent cannot come
 * back, so the job goes on from the checkpoint at once. */
TAPE_CASE(a_host_that_has_left_is_not_waited_for,
          BEGUN "exited 1 sig9 held=8.3\n"
                "wait 20s\n"
                "launched 2\n"
                "ready 2 held=8.3\n"
                "entered 2\n"
                "hosts a:1,b:1\n"
                "hello b\n"
                "closed a\n"
                "hosts b:1\n"
                "wait 10s\n"
                "launched 3\n"
                "ready 3 | record READY 3\n"
                "    | record ROUND 10 recovery after 9 from 7.4: 3\n"
                "    | b < ROUND 10 recovery after 9 from 7.4 in checkpoint=/c/commit-7.4: 3\n")

/* The checkpoint is damaged: the driver looks for the one before it, and then the job goes on. */
TAPE_CASE(a_damaged_checkpoint_is_left_out,
          "config np=1 min_np=1 dir=/c every=10s from=7.4\n"
          "start\n"
          "hosts a:1\n"
          "hello a\n"
          "launched 1\n"
          "ready 1\n"
          "recovering 1 code=-11 text=sum\n"
          "wait 20s\n"
          "view | recovering term 1 round 8 from 7.4: 1, floor 0, resets 0; "
          "waits for 1 workers; 1 are ready\n"
          "    | a there: #1 in 0 recovered 0, of 1\n"
          "written 6.1 found=1 text=/c/commit-6.1 | record ROUND 9 recovery after 8 from 6.1: 1\n"
          "    | a < ROUND 9 recovery after 8 from 6.1 in checkpoint=/c/commit-6.1: 1\n")

/* Without any checkpoint that can be read the training is not begun anew in silence. */
TAPE_CASE(a_job_without_a_readable_checkpoint_fails,
          "config np=1 min_np=1 dir=/c every=10s from=7.4\n"
          "start\n"
          "hosts a:1\n"
          "hello a\n"
          "launched 1\n"
          "ready 1\n"
          "recovering 1 code=-11 text=sum\n"
          "written 0 found=1 text=none\n"
          "state stopping\n")

/* The driver dies before it has found that out: the next one does not begin anew either. */
TAPE_CASE(the_next_driver_does_not_begin_anew_without_a_checkpoint,
          "config np=1 min_np=1 dir=/c every=10s from=7.4\n"
          "start\n"
          "hosts a:1\n"
          "hello a\n"
          "launched 1\n"
          "ready 1\n"
          "recovering 1 code=-11 text=sum\n"
          "kill\n"
          "config np=1 min_np=1 dir=/c every=10s from=0.0\n"
          "start\n"
          "hosts a:1\n"
          "hello a #1:0\n"
          "recovering 1 code=-11 text=sum\n"
          "wait 20s\n"
          "view | recovering term 2 round 8 from 7.4: 1, floor 7, resets 0; waits for 1 workers; "
          "1 are ready\n"
          "    | a there: #1 in 0 recovered 0, of 1\n")

/* The only member dies before it has read the checkpoint, and another host is away that has a
 * worker: the next round begins with the checkpoint too. */
TAPE_CASE(a_recovery_before_the_first_step_begins_with_the_checkpoint,
          "config np=1 min_np=1 max_np=3 dir=/c every=10s from=7.4\n"
          "start\n"
          "hosts a:2,b:1\n"
          "hello a\n"
          "hello b\n"
          "launched 1-3\n"
          "ready 1\n"
          "wait 5s\n"
          "closed b\n"
          "exited 1 sig9\n"
          "ready 2 | record READY 2\n"
          "wait 5s | record ROUND 9 recovery after 8 from 7.4: 2\n"
          "    | a < ROUND 9 recovery after 8 from 7.4 in checkpoint=/c/commit-7.4: 2\n")

/* The program has another state than the one that wrote the checkpoint: to try again is no use. */
TAPE_CASE(a_checkpoint_of_another_state_ends_the_job,
          "config np=1 min_np=1 dir=/c every=10s from=7.4\n"
          "start\n"
          "hosts a:1\n"
          "hello a\n"
          "launched 1\n"
          "ready 1\n"
          "recovering 1 code=-16 text=size\n"
          "state stopping\n")
