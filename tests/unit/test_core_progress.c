/*
 * test_core_progress.c: failures without progress in between end the job: of members without a
 * newer commit, of workers before they join, and of plain commands. A commit is newer if its
 * contents are; the counts are those of the job, whichever driver it has.
 */
#include "tests/lib/core_tape.h"
#include "tests/lib/test.h"

static struct core_tape tape;

#define ALONE                                                        \
    "config np=1 min_np=1 max_np=1 cooldown=0 progress_restarts=2\n" \
    "start\nhosts a:1\nhello a\nlaunched 1\nready 1 held=\nentered 1\n"

#define THE_THIRD_FAILURE_ENDS_THE_JOB                                                             \
    "exited 3 exit3 held=1.4 | a < REVOKE 3 lost 3: a:0#3: exit code 3\n"                          \
    "    | record ENDED 3 exit3\n"                                                                 \
    "    | bar a:0 (3): exit code 3\n"                                                             \
    "    | a < FORGET 3\n"                                                                         \
    "    | record LAUNCH 4 a:0\n"                                                                  \
    "    | a < LAUNCH 4 in 0 as 0/1 local 0/1 cross 0/1\n"                                         \
    "    | record STUCK a:0 3 job 3 since 1.4\n"                                                   \
    "    | record OVER 1: a:0 has failed 3 times without a newer commit in between, more than "    \
    "--progress-restarts 2 allows: the training makes no progress; the last: a:0#3: exit code 3\n" \
    "    | a < STOP: a:0 has failed 3 times without a newer commit in between, more than "         \
    "--progress-restarts 2 allows: the training makes no progress; the last: a:0#3: exit code 3\n"

/* The worker of the slot dies at the same step again and again. */
TAPE_CASE(a_slot_that_makes_no_progress_ends_the_job,
          ALONE "exited 1 exit3 held=1.4\n"
                "ready 2 held=1.4/7 | record READY 2\n"
                "    | record ROUND 2 recovery after 1 from 1.4 of 2: 2\n"
                "    | a < ROUND 2 recovery after 1 from 1.4 of 2: 2\n"
                "entered 2\n"
                "exited 2 exit3 held=1.4 | a < REVOKE 2 lost 2: a:0#2: exit code 3\n"
                "    | record ENDED 2 exit3\n"
                "    | bar a:0 (2): exit code 3\n"
                "    | a < FORGET 2\n"
                "    | record LAUNCH 3 a:0\n"
                "    | a < LAUNCH 3 in 0 as 0/1 local 0/1 cross 0/1\n"
                "    | record STUCK a:0 2 job 2 since 1.4\n"
                "ready 3 held=1.4/7\n"
                "entered 3\n" THE_THIRD_FAILURE_ENDS_THE_JOB)

/* Each time it has come further. */
TAPE_CASE(a_slot_that_makes_progress_never_does,
          ALONE "exited 1 exit3 held=1.100\n"
                "ready 2 held=1.100/1\nentered 2\n"
                "exited 2 exit3 held=2.100\n"
                "ready 3 held=2.100/2\nentered 3\n"
                "exited 3 exit3 held=3.100\n"
                "ready 4 held=3.100/3\nentered 4\n"
                "exited 4 exit3 held=4.100\n"
                "ready 5 held=4.100/4\nentered 5\n"
                "exited 5 exit3 held=5.100\n"
                "show\n"
                "ready 6 held=5.100/5 | record READY 6\n"
                "    | record STUCK a:0 1 job 1 since 5.100\n"
                "    | record ROUND 6 recovery after 5 from 5.100 of 6: 6\n"
                "    | a < ROUND 6 recovery after 5 from 5.100 of 6: 6\n")

/* A loop that commits before its first step: the numbers grow, the contents do not. */
TAPE_CASE(
    the_same_contents_are_no_progress, ALONE
    "exited 1 exit3 held=1.4\n"
    "ready 2 held=1.4/7\nentered 2\n"
    "exited 2 exit3 held=2.1\n"
    "ready 3 held=2.1/7 | record READY 3\n"
    "    | record STUCK a:0 2 job 2 since 1.4\n"
    "    | record ROUND 3 recovery after 2 from 2.1 of 3: 3\n"
    "    | a < ROUND 3 recovery after 2 from 2.1 of 3: 3\n"
    "entered 3\n"
    "exited 3 exit3 held=3.1\n"
    "ready 4 held=3.1/7 | record READY 4\n"
    "    | record STUCK a:0 3 job 3 since 1.4\n"
    "    | record OVER 1: a:0 has failed 3 times without a newer commit in between, more than "
    "--progress-restarts 2 allows: the training makes no progress; the last: a:0#3: exit code 3\n"
    "    | a < STOP: a:0 has failed 3 times without a newer commit in between, more than "
    "--progress-restarts 2 allows: the training makes no progress; the last: a:0#3: exit code 3\n")

/* Failures all over the job: no slot has many, and the job makes no progress. */
TAPE_CASE(failures_of_many_slots_are_those_of_the_job,
          "config np=4 min_np=1 progress_restarts_job=2\n" TAPE_LAUNCHED "ready 1-4\nentered 1-4\n"
          "exited 4 exit1\nrecovering 1-3 held=1.4/7\nentered 1-3\n"
          "exited 3 exit1\nrecovering 1,2 held=1.4/7\nentered 1,2\n"
          "exited 2 exit1\n"
          "recovering 1 held=1.4/7 | record STUCK a:1 1 job 3 since 1.4\n"
          "    | record OVER 1: 3 rounds in a row ended by a failure without a newer commit in "
          "between, more than --progress-restarts-job 2 allows: the training makes no progress; "
          "the last: a:1#2: exit code 1\n"
          "    | a < STOP: 3 rounds in a row ended by a failure without a newer commit in between, "
          "more than --progress-restarts-job 2 allows: the training makes no progress; the last: "
          "a:1#2: exit code 1\n"
          "    | b < STOP: 3 rounds in a row ended by a failure without a newer commit in between, "
          "more than --progress-restarts-job 2 allows: the training makes no progress; the last: "
          "a:1#2: exit code 1\n")

/* The survivors have come further: that is progress of the job, so the slot begins anew. */
TAPE_CASE(progress_of_the_survivors_counts,
          "config np=2 min_np=1 cooldown=0 progress_restarts=1\n"
          "start\nhosts a:2\nhello a\nlaunched 1,2\nready 1,2\nentered 1,2\n"
          "exited 2 exit1\nrecovering 1 held=1.4/1\nentered 1\n"
          "launched 3\nready 3\nprepared 1,3\nat 1 50\nentered 1,3\n"
          "exited 3 exit1\n"
          "show\n"
          "recovering 1 held=3.9/2 | record STUCK a:1 1 job 1 since 3.9\n"
          "    | record ROUND 4 recovery after 3 from 3.9 of 1: 1\n"
          "    | a < ROUND 4 recovery after 3 from 3.9 of 1: 1\n")

/* Both workers of a host die in one round: one failure of the job, one of each slot. */
TAPE_CASE(workers_that_die_together_are_one_failure_of_the_job,
          "config np=4 min_np=2\n" TAPE_LAUNCHED "ready 1-4\nentered 1-4\n"
          "exited 3,4 sig9\n"
          "show\n"
          "recovering 1,2 held=1.4/7 | record STUCK b:0 1 job 1 since 1.4\n"
          "    | record STUCK b:1 1 job 1 since 1.4\n"
          "    | record ROUND 2 recovery after 1 from 1.4 of 1,2: 1,2\n"
          "    | a < ROUND 2 recovery after 1 from 1.4 of 1,2: 1,2\n")

/* A host that is lost with all its workers is one failure of the job and of no slot. */
TAPE_CASE(a_lost_host_is_one_failure_of_the_job,
          TAPE_RUNNING "silent b\n"
                       "wait 11s\n"
                       "show\n"
                       "recovering 1,2 held=1.4/7 | record STUCK 0 job 1 since 1.4\n"
                       "    | record ROUND 2 recovery after 1 from 1.4 of 1,2: 1,2\n"
                       "    | a < ROUND 2 recovery after 1 from 1.4 of 1,2: 1,2\n")

/* A machine that goes by a notice costs no failure, also when its agent is restarted before the
 * end. */
TAPE_CASE(a_drained_host_that_is_lost_is_no_failure, TAPE_RUNNING
          "notice b 30s\n"
          "hello b agent=2\n"
          "show\n"
          "recovering 1,2 held=1.4/7 | record ROUND 3 recovery after 1 from 1.4 of 1,2: 1,2\n"
          "    | a < ROUND 3 recovery after 1 from 1.4 of 1,2: 1,2\n")

/* ---- starts --------------------------------------------------------------------------------- */

/* The other trains: a joiner that fails holds no worker up. */
TAPE_CASE(a_joiner_that_fails_is_not_counted,
          "config np=1 min_np=1 max_np=2 progress_restarts=1 cooldown=0\n"
          "start\nhosts a:2\nhello a\nlaunched 1,2\nready 1\nwait 3s\nentered 1\n"
          "exited 2 exit1\nexited 3 exit1\nexited 4 exit1\n"
          "state running |\n")

/* Two plain commands; the second has ended well. */
#define COMMANDS_OF(settings)                      \
    "config np=2 min_np=2 max_np=2 " settings "\n" \
    "start\nhosts a:2\nhello a\nlaunched 1,2\nexited 2 exit0\n"
#define COMMANDS(settings) COMMANDS_OF("lease=10s " settings)

/* For commands that run for many minutes. Torture runs a case once for each of its allocations, and
 * so for each heartbeat and each look at the hosts. */
#define COMMANDS_FOR_LONG(settings) COMMANDS_OF("beat=20s lease=2m discovery=1m " settings)

#define OVER_AFTER(culprit, count, last)                                                    \
    "    | record OVER 1: " culprit " has failed " count                                    \
    " times without a run of 10m or a success in between, more than --progress-restarts 2 " \
    "allows: the command makes no progress; the last: " last "\n"                           \
    "    | a < STOP: " culprit " has failed " count                                         \
    " times without a run of 10m or a success in between, more than --progress-restarts 2 " \
    "allows: the command makes no progress; the last: " last "\n"

/* The slot is used again at once, so each failure counts at once. */
TAPE_CASE(
    a_command_that_always_fails_ends_the_job,
    COMMANDS(
        "cooldown=0 progress_restarts=2") "show\n"
                                          "exited 1 exit1 | record ENDED 1 exit1\n"
                                          "    | bar a:0 (1): exit code 1\n"
                                          "    | a < FORGET 1\n"
                                          "    | record STUCK a:0 1 job 1 since 0.1\n"
                                          "    | record LAUNCH 3 a:0\n"
                                          "    | a < LAUNCH 3 in 0 as 0/2 local 0/2 cross 0/1\n"
                                          "exited 3 sig11 | record ENDED 3 sig11\n"
                                          "    | bar a:0 (2): killed by signal 11 (SIGSEGV)\n"
                                          "    | a < FORGET 3\n"
                                          "    | record STUCK a:0 2 job 2 since 0.1\n"
                                          "    | record LAUNCH 4 a:0\n"
                                          "    | a < LAUNCH 4 in 0 as 0/2 local 0/2 cross 0/1\n"
                                          "launchfail 4 -10 | record ENDED 4 exit-10\n"
                                          "    | bar a:0 (3): the worker could not be started: "
                                          "no\n"
                                          "    | a < FORGET 4\n"
                                          "    | record STUCK a:0 3 job 3 since 0.1\n" OVER_AFTER(
                                              "a:0", "3",
                                              "a:0#4: the worker could not be started: no"))

/* A failure sets the host aside, and the driver kills the other command: so no command fails in all
 * slots, and only the commands that failed by themselves count. */
TAPE_CASE(
    a_command_that_always_fails_ends_the_job_with_scope_host,
    "config np=2 min_np=2 max_np=2 cooldown=0 progress_restarts=2 scope=host\n"
    "start\nhosts a:2\nhello a\nlaunched 1,2\n"
    "exited 1 exit1\nexited 2 sig15\n"
    "exited 3 exit1\nexited 4 sig15\n"
    "exited 5 exit1 | record ENDED 5 exit1\n"
    "    | bar a (3): slot 0: exit code 1\n"
    "    | record ENDED 6 sig9\n"
    "    | a < KILL 6 in 5s: the worker's host is set aside, because another worker failed there\n"
    "    | a < FORGET 5\n"
    "    | record STUCK a:0 3 job 3 since 0.0\n" OVER_AFTER("a:0", "3", "a:0#5: exit code 1"))

TAPE_CASE(a_success_of_another_command_is_progress,
          "config np=3 min_np=3 max_np=3 cooldown=0 progress_restarts=2\n"
          "start\nhosts a:3\nhello a\nlaunched 1-3\n"
          "exited 1 exit1\nexited 4 exit1\n"
          "exited 2 exit0\n"
          "show\n"
          "exited 5 exit1 | record ENDED 5 exit1\n"
          "    | bar a:0 (3): exit code 1\n"
          "    | a < FORGET 5\n"
          "    | record STUCK a:0 1 job 1 since 0.1\n"
          "    | record LAUNCH 6 a:0\n"
          "    | a < LAUNCH 6 in 0 as 0/3 local 0/3 cross 0/1\n")

/* The count begins anew. */
TAPE_CASE(
    a_long_run_of_a_command_is_progress,
    COMMANDS_FOR_LONG(
        "cooldown=0 progress_restarts=2") "exited 1 exit1\nexited 3 exit1\nlaunched 4\nwait 600s\n"
                                          "show\n"
                                          "exited 4 exit1 | record ENDED 4 exit1\n"
                                          "    | bar a:0 (3): exit code 1\n"
                                          "    | a < FORGET 4\n"
                                          "    | record STUCK a:0 1 job 1 since 0.2\n"
                                          "    | record LAUNCH 5 a:0\n"
                                          "    | a < LAUNCH 5 in 0 as 0/2 local 0/2 cross 0/1\n")

/* The slot is not used again for long: then a failure counts when its host has lived on. */
TAPE_CASE(a_failure_counts_when_its_host_lives_on,
          COMMANDS("cooldown=60s") "exited 1 exit1\nwait 61s\nlaunched 3\n"
                                   "exited 3 exit1\n"
                                   "wait 9s |\n"
                                   "wait 3s | record STUCK a:0 2 job 2 since 0.1\n")

/* A machine that goes ends its processes first. Then the machine is the cause, not the command. */
TAPE_CASE(
    a_failure_is_not_counted_if_its_host_falls_silent,
    COMMANDS(
        "cooldown=60s") "hosts a:2,b:3\nhello b\nexited 1 sig15\nsilent a\nwait 12s\nlaunched 3\n"
                        "exited 3 exit1\nwait 12s\nlaunched 4\n"
                        "exited 4 exit1\n"
                        "wait 12s | record STUCK b:1 1 job 2 since 0.1\n")

TAPE_CASE(a_failure_is_not_counted_if_its_host_leaves_the_list,
          COMMANDS("cooldown=60s") "exited 1 sig15\nhosts b:3\nhello b\nwait 12s\nlaunched "
                                   "3,4\nexited 3 exit0\n"
                                   "exited 4 exit1\nwait 12s\nlaunched 5\n"
                                   "exited 5 exit1\n"
                                   "wait 12s | record STUCK b:2 1 job 2 since 0.2\n")

TAPE_CASE(a_failure_is_not_counted_if_its_host_is_drained,
          COMMANDS("cooldown=60s") "exited 1 sig15\nnotice a 30s\nhosts a:2,b:3\nhello b\nwait "
                                   "12s\nlaunched 3\n"
                                   "exited 3 exit1\nwait 12s\nlaunched 4\n"
                                   "exited 4 exit1\n"
                                   "wait 12s | record STUCK b:1 1 job 2 since 0.1\n")

/* Workers of one launch that fail together are one failure of the job. */
TAPE_CASE(commands_that_fail_together_are_one_failure_of_the_job,
          "config np=3 min_np=3 max_np=3 cooldown=0\n"
          "start\nhosts a:3\nhello a\nlaunched 1-3\nexited 3 exit0\n"
          "exited 1 exit1\n"
          "exited 2 exit1\n"
          "exited 5 exit1 | record ENDED 5 exit1\n"
          "    | bar a:1 (2): exit code 1\n"
          "    | a < FORGET 5\n"
          "    | record STUCK a:1 2 job 2 since 0.1\n"
          "    | record LAUNCH 6 a:1\n"
          "    | a < LAUNCH 6 in 1 as 1/3 local 1/3 cross 0/1\n")

/* The command fails in another slot each time. */
TAPE_CASE(
    failures_of_a_command_in_many_slots_are_those_of_the_job,
    "config np=2 min_np=2 max_np=2 cooldown=10m progress_restarts_job=2 lease=10s\n"
    "start\nhosts a:5\nhello a\nlaunched 1,2\nexited 2 exit0\n"
    "exited 1 exit1\nexited 3 exit1\nexited 4 exit1\nexited 5 exit1\n"
    "wait 12s | record STUCK a:2 1 job 2 since 0.1\n"
    "    | record STUCK a:3 1 job 3 since 0.1\n"
    "    | record OVER 1: 3 starts in a row ended by a failure without a run of 10m or a success "
    "in "
    "between, more than --progress-restarts-job 2 allows: the command makes no progress; the last: "
    "a:4#5: exit code 1\n"
    "    | a < STOP: 3 starts in a row ended by a failure without a run of 10m or a success in "
    "between, more than --progress-restarts-job 2 allows: the command makes no progress; the last: "
    "a:4#5: exit code 1\n")

/* A member has died, the survivor is too few, and no worker that replaces the member joins. */
TAPE_CASE(
    workers_that_do_not_join_end_a_job_that_stands,
    "config np=2 min_np=2 max_np=2 cooldown=0 progress_restarts=2\n"
    "start\nhosts a:2\nhello a\nlaunched 1,2\nready 1,2\nentered 1,2\n"
    "exited 2 exit1\nrecovering 1 held=1.4/7\n"
    "exited 3 exit1 | record ENDED 3 exit1\n"
    "    | bar a:1 (2): exit code 1\n"
    "    | a < FORGET 3\n"
    "    | record STUCK a:1 2 job 2 since 1.4\n"
    "    | record LAUNCH 4 a:1\n"
    "    | a < LAUNCH 4 in 1 as 1/2 local 0/1 cross 0/1\n"
    "exited 4 exit1 | record ENDED 4 exit1\n"
    "    | bar a:1 (3): exit code 1\n"
    "    | a < FORGET 4\n"
    "    | record STUCK a:1 3 job 3 since 1.4\n"
    "    | record OVER 1: a:1 has failed 3 times without a newer commit in between, more than "
    "--progress-restarts 2 allows: the training makes no progress; the last: a:1#4: exit code 1\n"
    "    | a < STOP: a:1 has failed 3 times without a newer commit in between, more than "
    "--progress-restarts 2 allows: the training makes no progress; the last: a:1#4: exit code 1\n")

/* Whether the last commit was a newer one is told by the next worker only, and none joins. */
TAPE_CASE(workers_that_do_not_join_end_a_job_whose_commit_is_not_known,
          ALONE "exited 1 exit3 held=1.4\n"
                "exited 2 exit1\nexited 3 exit1\n"
                "exited 4 exit1 | record ENDED 4 exit1\n"
                "    | bar a:0 (4): exit code 1\n"
                "    | a < FORGET 4\n"
                "    | record OVER 1: a:0 has failed 3 times without a newer commit in between, "
                "more than --progress-restarts 2 allows: the training makes no progress; the last: "
                "a:0#4: exit code 1\n"
                "    | a < STOP: a:0 has failed 3 times without a newer commit in between, more "
                "than --progress-restarts 2 allows: the training makes no progress; the last: "
                "a:0#4: exit code 1\n")

/* A worker that boots on another host may still join: the job waits for it, but not for ever. */
TAPE_CASE(starts_end_no_job_while_another_may_join,
          "config np=2 min_np=2 max_np=2 cooldown=0 progress_restarts=2 start_timeout=60s\n"
          "start\nhosts a:1,b:1\nhello a\nhello b\nlaunched 1,2\n"
          "exited 1 exit1\nexited 3 exit1\nexited 4 exit1\nexited 5 exit1\n"
          "state gathering |\n"
          "launched 6\nwait 60s\n"
          "exited 6 exit1\n"
          "state stopping |\n")

/* The driver has killed it, and its host is lost: neither is a failure of the worker. */
TAPE_CASE(
    workers_that_did_not_end_by_themselves_are_not_counted,
    "config np=2 min_np=2 max_np=2 cooldown=0 progress_restarts=1 start_timeout=20s lease=10s\n"
    "start\nhosts a:2\nhello a\nlaunched 1,2\nready 1\n"
    "wait 21s\nexited 2 sig9\nlaunched 3\nwait 21s\nexited 3 sig9\nlaunched 4\nwait 21s\n"
    "exited 4 sig9\nlaunched 5\n"
    "state gathering |\n"
    "silent a\nwait 12s\nhello a agent=2\n"
    "state gathering |\n")

/* ---- takeover ------------------------------------------------------------------------------- */

TAPE_CASE(a_successor_goes_on_counting,
          ALONE "exited 1 exit3 held=1.4\n"
                "ready 2 held=1.4/7\nentered 2\n"
                "exited 2 exit3 held=1.4\n"
                "kill\n"
                "start\nhosts a:1\nhello a #3:0 kept=0:1.4\n"
                "ready 3 held=1.4/7\nentered 3\n" THE_THIRD_FAILURE_ENDS_THE_JOB)

/* The driver dies before it has judged the failure: its successor does, when it knows the commits.
 */
TAPE_CASE(a_failure_that_was_not_judged_is_not_lost,
          "config np=2 min_np=1 cooldown=0 progress_restarts_job=1\n"
          "start\nhosts a:2\nhello a\nlaunched 1,2\nready 1,2\nentered 1,2\n"
          "exited 2 exit1\nrecovering 1 held=1.4/7\nentered 1\nready 3\nstate preparing |\n"
          "prepared 1,3\nat 1 50\nentered 1,3\n"
          "exited 3 exit1\n"
          "kill\n"
          "start\nhosts a:2\nhello a #1:0\n"
          "recovering 1 held=3.0/7 | record STUCK a:1 2 job 2 since 1.4\n"
          "    | record OVER 1: 2 rounds in a row ended by a failure without a newer commit in "
          "between, more than --progress-restarts-job 1 allows: the training makes no progress; "
          "the last: a:1#3: the worker failed under an earlier driver\n"
          "    | a < STOP: 2 rounds in a row ended by a failure without a newer commit in between, "
          "more than --progress-restarts-job 1 allows: the training makes no progress; the last: "
          "a:1#3: the worker failed under an earlier driver\n")

/* The driver dies between the records of two slots that failed together: its successor counts the
 * slot that is missing, and the failure of the job no second time. */
TAPE_CASE(a_slot_whose_count_is_missing_is_counted,
          "config np=4 min_np=2\n" TAPE_LAUNCHED "ready 1-4\nentered 1-4\n"
          "exited 3,4 sig9\n"
          "recovering 1,2 held=1.4/7\n"
          "kill 2\n"
          "start\nhosts a:2,b:2\nhello a #1:0 #2:1\n"
          "show\n"
          "recovering 1,2 held=1.4/7 | record STUCK b:1 1 job 1 since 1.4\n"
          "    | record ROUND 2 recovery after 1 from 1.4 of 1,2: 1,2\n"
          "    | a < ROUND 2 recovery after 1 from 1.4 of 1,2: 1,2\n")

TAPE_CASE(a_count_that_is_there_twice_counts_once,
          ALONE "exited 1 exit3 held=1.4\n"
                "ready 2 held=1.4/7\nentered 2\n"
                "kill 0 twice\n"
                "start\nhosts a:1\nhello a #2:0\n"
                "exited 2 exit3 held=1.4 | a < REVOKE 2 lost 2: a:0#2: exit code 3\n"
                "    | record ENDED 2 exit3\n"
                "    | bar a:0 (2): exit code 3\n"
                "    | a < FORGET 2\n"
                "    | record LAUNCH 3 a:0\n"
                "    | a < LAUNCH 3 in 0 as 0/1 local 0/1 cross 0/1\n"
                "    | record STUCK a:0 2 job 2 since 1.4\n")

/* A worker has committed, which only its agent knows when the driver dies. */
TAPE_CASE(a_successor_believes_newer_commits,
          ALONE "exited 1 exit3 held=1.4\n"
                "ready 2 held=1.4/7\nentered 2\n"
                "exited 2 exit3 held=1.4\n"
                "ready 3 held=1.4/7\nentered 3\n"
                "kill\n"
                "start\nhosts a:1\nhello a #3:0=exit3\n"
                "exited 3 exit3 held=3.9\n"
                "show\n"
                "ready 4 held=3.9/8 | record READY 4\n"
                "    | record STUCK a:0 1 job 1 since 3.9\n"
                "    | record ROUND 4 recovery after 3 from 3.9 of 4: 4\n"
                "    | a < ROUND 4 recovery after 3 from 3.9 of 4: 4\n")

/* ---- takeover of starts --------------------------------------------------------------------- */

TAPE_CASE(
    a_successor_goes_on_counting_starts,
    COMMANDS(
        "cooldown=0 progress_restarts=2") "exited 1 exit1\nexited 3 exit1\n"
                                          "kill\n"
                                          "start\nhosts a:2\nhello a #4:0\n"
                                          "exited 4 exit1 | record ENDED 4 exit1\n"
                                          "    | bar a:0 (3): exit code 1\n"
                                          "    | a < FORGET 4\n"
                                          "    | record STUCK a:0 3 job 3 since 0.1\n" OVER_AFTER(
                                              "a:0", "3", "a:0#4: exit code 1"))

/* Each driver dies before it has counted. */
TAPE_CASE(
    a_start_that_was_not_counted_is_not_lost,
    COMMANDS(
        "cooldown=20s") "exited 1 exit1\n"
                        "kill\nstart\nhosts a:2\nhello a\nwait 21s\nlaunched 3\nexited 3 exit1\n"
                        "kill\nstart\nhosts a:2\nhello a\n"
                        "wait 21s | record STUCK a:0 2 job 2 since 0.1\n"
                        "    | record LAUNCH 4 a:0\n"
                        "    | a < LAUNCH 4 in 0 as 0/2 local 0/2 cross 0/1\n")

/* The count is durable, and the launch after it is not. */
TAPE_CASE(a_start_that_was_counted_is_not_counted_again,
          COMMANDS("cooldown=0") "exited 1 exit1\n"
                                 "kill 1\nstart\nhosts a:2\n"
                                 "hello a | a < WELCOME_AGENT term 2\n"
                                 "    | record LAUNCH 3 a:0\n"
                                 "    | a < LAUNCH 3 in 0 as 0/2 local 0/2 cross 0/1\n")

/* It ran for more than ten minutes, under two drivers. */
TAPE_CASE(
    a_successor_knows_how_long_a_command_has_run,
    COMMANDS_FOR_LONG(
        "cooldown=0 progress_restarts=2") "exited 1 exit1\nexited 3 exit1\nlaunched 4\nwait 6m\n"
                                          "kill\nstart\nhosts a:2\nhello a #4:0\nwait 5m\n"
                                          "show\n"
                                          "exited 4 exit1 | record ENDED 4 exit1\n"
                                          "    | bar a:0 (3): exit code 1\n"
                                          "    | a < FORGET 4\n"
                                          "    | record STUCK a:0 1 job 1 since 0.2\n"
                                          "    | record LAUNCH 5 a:0\n"
                                          "    | a < LAUNCH 5 in 0 as 0/2 local 0/2 cross 0/1\n")

TAPE_CASE(a_successor_knows_of_a_success,
          "config np=3 min_np=3 max_np=3 cooldown=0 progress_restarts=2\n"
          "start\nhosts a:3\nhello a\nlaunched 1-3\n"
          "exited 1 exit1\nexited 4 exit1\n"
          "exited 2 exit0\n"
          "kill\nstart\nhosts a:3\nhello a #5:0 #3:2\n"
          "show\n"
          "exited 5 exit1 | record ENDED 5 exit1\n"
          "    | bar a:0 (3): exit code 1\n"
          "    | a < FORGET 5\n"
          "    | record STUCK a:0 1 job 1 since 0.1\n"
          "    | record LAUNCH 6 a:0\n"
          "    | a < LAUNCH 6 in 0 as 0/3 local 0/3 cross 0/1\n")

/* The long run is in the journal, the count after it is not. */
TAPE_CASE(
    a_successor_knows_of_a_long_run,
    COMMANDS_FOR_LONG(
        "cooldown=20s progress_restarts=2") "exited 1 exit1\nwait 21s\nlaunched 3\nexited 3 "
                                            "exit1\nwait 21s\nlaunched 4\nwait 11m\n"
                                            "exited 4 exit1\n"
                                            "kill\nstart\nhosts a:2\nhello a\nwait "
                                            "21s\nlaunched 5\n"
                                            "exited 5 exit1\n"
                                            "wait 21s | record STUCK a:0 2 job 2 since 0.2\n"
                                            "    | record LAUNCH 6 a:0\n"
                                            "    | a < LAUNCH 6 in 0 as 0/2 local 0/2 cross 0/1\n")
