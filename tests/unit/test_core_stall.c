/*
 * test_core_stall.c: members that keep others waiting: warnings, verdicts.
 * Only a member that had every chance to come is blamed.
 */
#include "tests/lib/core_tape.h"

static struct core_tape tape;

#define SOON "config stall_warning=4s stall=20s\n" TAPE_RUNNING

/* Reports of one second are put together into one line, at most once in each warning time. */
TAPE_CASE(who_is_waited_for_is_named, SOON
          "stalled 1 5s 2,3 |\n"
          "stalled 4 5s 2,3 |\n"
          "wait 1s | a < EXAMINE\n"
          "    | b < EXAMINE\n"
          "    | ! round 1: 2 of 4 wait for rank 1 (a:1#2), rank 2 (b:0#3), for 5s in allreduce\n"
          "stalled 1 7s 2,3 |\n"
          "wait 1s |\n"
          "wait 3s |\n"
          "stalled 1 9s 2 |\n"
          "wait 1s | a < EXAMINE\n"
          "    | b < EXAMINE\n"
          "    | ! round 1: 2 of 4 wait for rank 1 (a:1#2), rank 2 (b:0#3), for 9s in allreduce\n")

TAPE_CASE(
    who_is_waited_for_too_long_is_killed, SOON
    "stalled 1 20s 2,3 round=7 |\n"
    "wait 2s |\n"
    "stalled 1 20s 99,2 |\n"
    "stalled 3 20s 99,2 |\n"
    "wait 1s | a < EXAMINE\n"
    "    | a,b < REVOKE 1 lost 2: a:1#2: the other members have waited for the worker for 20s "
    "in allreduce\n"
    "    | record ENDED 2 sig9\n"
    "    | bar a:1 (1): the other members have waited for the worker for 20s in allreduce\n"
    "    | a < KILL 2 in 0s: the other members have waited for the worker for 20s in allreduce\n"
    "stalled 1 20s 99,2,3 |\n"
    "wait 1s |\n")

/* Worker 1 waits for 2, 2 waits for 3, and 3 has sent nothing: the reports come in any order. */
TAPE_CASE(
    who_waits_himself_is_not_to_blame, SOON
    "stalled 1 20s 2 |\n"
    "stalled 4 20s 1 |\n"
    "stalled 2 12s 3 |\n"
    "wait 1s | b < EXAMINE\n"
    "    | a,b < REVOKE 1 lost 3: b:0#3: the other members have waited for the worker for 20s "
    "in allreduce\n"
    "    | record ENDED 3 sig9\n"
    "    | bar b:0 (1): the other members have waited for the worker for 20s in allreduce\n"
    "    | b < KILL 3 in 0s: the other members have waited for the worker for 20s in allreduce\n")

TAPE_CASE(
    who_has_come_on_does_not_wait, SOON
    "stalled 2 4s 3 |\n"
    "wait 1s | b < EXAMINE\n"
    "    | ! round 1: 1 of 4 wait for rank 2 (b:0#3), for 4s in allreduce\n"
    "wait 9s |\n"
    "stalled 1 20s 2 |\n"
    "wait 1s | a < EXAMINE\n"
    "    | a,b < REVOKE 1 lost 2: a:1#2: the other members have waited for the worker for 20s "
    "in allreduce\n"
    "    | record ENDED 2 sig9\n"
    "    | bar a:1 (1): the other members have waited for the worker for 20s in allreduce\n"
    "    | a < KILL 2 in 0s: the other members have waited for the worker for 20s in allreduce\n")

/* The same when the report of worker 4 is itself one for a verdict: only its own report is old
 * enough to blame any worker. */
TAPE_CASE(a_report_that_has_just_come_blames_no_worker,
          SOON "stalled 4 20s 4 in=step |\n"
               "wait 900ms |\n"
               "stalled 1 20s 2 |\n"
               "wait 100ms | a < EXAMINE\n"
               "    | b < EXAMINE\n"
               "    | a,b < REVOKE 1 lost 4: b:1#4: the worker has not moved for 20s in step\n"
               "    | record ENDED 4 sig9\n"
               "    | bar b:1 (1): the worker has not moved for 20s in step\n"
               "    | b < KILL 4 in 0s: the worker has not moved for 20s in step\n")

/* A worker repeats its report as often as the driver looks: the verdict is not put off by that. */
TAPE_CASE(
    a_wait_that_is_reported_again_and_again_is_judged, SOON
    "stalled 1 20s |\n"
    "wait 900ms |\n"
    "stalled 1 21s |\n"
    "wait 100ms | a,b < REVOKE 1: the members wait for workers that the reports do not name, for "
    "21s in allreduce\n")

/* Worker 4 has opened the time for reports, and 1 says at its end that it waits: worker 2 has time
 * to say that it waits itself. */
TAPE_CASE(
    a_report_is_given_time_after_each_other, SOON
    "stalled 4 15s 4 in=step |\n"
    "wait 900ms |\n"
    "stalled 1 20s 2 |\n"
    "wait 100ms | a < EXAMINE\n"
    "    | b < EXAMINE\n"
    "stalled 2 20s 4 |\n"
    "wait 1s | a,b < REVOKE 1 lost 4: b:1#4: the other members have waited for the worker for 20s "
    "in allreduce\n"
    "    | record ENDED 4 sig9\n"
    "    | bar b:1 (1): the other members have waited for the worker for 20s in allreduce\n"
    "    | b < KILL 4 in 0s: the other members have waited for the worker for 20s in allreduce\n")

TAPE_CASE(status_says_who_is_waited_for,
          SOON "stalled 1 5s 2 |\n"
               "wait 1s | a < EXAMINE\n"
               "    | ! round 1: 1 of 4 wait for rank 1 (a:1#2), for 5s in allreduce\n"
               "view | running term 1 round 1 from 1.0: 1,2,3,4, floor 1, resets 0; waits for rank "
               "1 (a:1#2), for 5s in allreduce\n"
               "    | a there: #1 in 0 member 0*, #2 in 1 member 1*, of 2\n"
               "    | b there: #3 in 0 member 2*, #4 in 1 member 3*, of 2\n"
               "wait 20s |\n"
               "view | running term 1 round 1 from 1.0: 1,2,3,4, floor 1, resets 0\n"
               "    | a there: #1 in 0 member 0*, #2 in 1 member 1*, of 2\n"
               "    | b there: #3 in 0 member 2*, #4 in 1 member 3*, of 2\n")

TAPE_CASE(a_stalled_worker_is_killed,
          SOON "stalled 3 19s 3 in=step |\n"
               "wait 1s | b < EXAMINE\n"
               "    | ! round 1: 1 of 4 do not move: rank 2 (b:0#3), for 19s in step\n"
               "wait 3s |\n"
               "stalled 3 23s 3 in=step |\n"
               "wait 1s | b < EXAMINE\n"
               "    | a,b < REVOKE 1 lost 3: b:0#3: the worker has not moved for 23s in step\n"
               "    | record ENDED 3 sig9\n"
               "    | bar b:0 (1): the worker has not moved for 23s in step\n"
               "    | b < KILL 3 in 0s: the worker has not moved for 23s in step\n")

#define B_IS_AWAY_AND_WAITED_FOR                                                       \
    SOON "wait 20s\n"                                                                  \
         "closed b\n"                                                                  \
         "stalled 1 20s 3 |\n"                                                         \
         "wait 1s | ! round 1: 1 of 4 wait for rank 2 (b:0#3), for 20s in allreduce\n" \
         "hello b #3:0 #4:1 | b < WELCOME_AGENT term 1\n"

/* The worker that is away may wait itself, and cannot report this. */
TAPE_CASE(
    an_unheard_worker_is_not_to_blame_yet, B_IS_AWAY_AND_WAITED_FOR
    "stalled 3 18s 2 |\n"
    "stalled 1 24s 3 |\n"
    "wait 1s | a,b < REVOKE 1 lost 2: a:1#2: the other members have waited for the worker for 24s "
    "in "
    "allreduce\n"
    "    | record ENDED 2 sig9\n"
    "    | bar a:1 (1): the other members have waited for the worker for 24s in allreduce\n"
    "    | a < KILL 2 in 0s: the other members have waited for the worker for 24s in allreduce\n")

TAPE_CASE(
    a_worker_that_came_back_says_that_it_waits, B_IS_AWAY_AND_WAITED_FOR
    "stalled 1 24s 3 |\n"
    "wait 3s |\n"
    "stalled 1 28s 3 |\n"
    "wait 4s | b < EXAMINE\n"
    "stalled 1 32s 3 |\n"
    "wait 1s | b < EXAMINE\n"
    "    | a,b < REVOKE 1 lost 3: b:0#3: the other members have waited for the worker for 32s "
    "in "
    "allreduce\n"
    "    | record ENDED 3 sig9\n"
    "    | bar b:0 (1): the other members have waited for the worker for 32s in allreduce\n"
    "    | b < KILL 3 in 0s: the other members have waited for the worker for 32s in allreduce\n")

TAPE_CASE(a_worker_not_told_of_a_check_is_not_to_blame,
          SOON "hosts a:2,b:1\n"
               "prepared 1-3\n"
               "at 1,2 3\n"
               "wait 17s\n"
               "stalled 1 17s in=check |\n"
               "closed b\n"
               "wait 4s | a < ABANDON 1 next 2: not all members came to a check in time\n"
               "    | record NUMBER 3\n"
               "    | a < PREPARE 3 after 1: 1,2,3\n"
               "hello b #3:0 #4:1 | b < WELCOME_AGENT term 1\n"
               "    | b < PREPARE 3 after 1: 1,2,3\n"
               "prepared 1-3\n"
               "at 1-4 9 | record ROUND 3 switch after 1 from 3.0 of 1,2,3 check 10: 1,2,3\n"
               "    | a,b < SWITCH_AT 1 next 3 check 10\n"
               "    | a,b < ROUND 3 switch after 1 from 3.0 of 1,2,3: 1,2,3\n")

TAPE_CASE(workers_that_wait_for_each_other_go_back,
          SOON "stalled 1 20s 2 |\n"
               "stalled 2 20s 1 |\n"
               "wait 1s | a,b < REVOKE 1: the members wait for each other, for 20s in allreduce\n")

/* A firewall is between two workers: neither is to blame, and the line names the two. */
TAPE_CASE(workers_that_wait_for_each_other_are_named, SOON
          "stalled 1 5s 3 in=connect |\n"
          "stalled 3 6s 2 in=connect |\n"
          "stalled 2 5s 3 in=connect |\n"
          "wait 1s | ! round 1: 3 of 4 wait for each other, for 6s in connect: b:0#3 for a:1#2\n")

TAPE_CASE(workers_that_wait_for_no_worker_go_back,
          SOON "stalled 1 20s |\n"
               "wait 1s | a,b < REVOKE 1: the members wait for "
               "workers that the reports do not name, for 20s in allreduce\n")

TAPE_CASE(who_did_not_stop_is_named, SOON "exited 4 exit1\n"
                                          "recovering 1 held=1.1\n"
                                          "wait 6s | a < EXAMINE\n"
                                          "    | b < EXAMINE\n"
                                          "    | ! round 1: after 6s 2 of 4 workers have still to "
                                          "stop for the recovery: rank 1 (a:1#2), rank 2 (b:0#3)\n"
                                          "recovering 2 held=1.1\n"
                                          "wait 6s | b < EXAMINE\n"
                                          "    | ! round 1: after 10s 1 of 4 workers have still to "
                                          "stop for the recovery: rank 2 (b:0#3)\n"
                                          "recovering 3 held=1.1\n"
                                          "entered 1-3\n")

/* No worker reports anything: none is to blame, and all members recover. */
TAPE_CASE(a_worker_that_does_not_begin_is_named,
          "config stall_warning=4s stall=20s\n" TAPE_LAUNCHED "ready 1-4\n"
          "entered 1,2,4\n"
          "wait 6s | b < EXAMINE\n"
          "    | ! round 1: after 6s 1 of 4 workers have still to begin to train: rank 2 (b:0#3)\n"
          "wait 15s | b < EXAMINE\n"
          "    | b < EXAMINE\n"
          "    | b < EXAMINE\n"
          "    | a,b < REVOKE 1: not all members began to train in time\n")

TAPE_CASE(a_worker_that_does_not_begin_is_killed_if_others_wait,
          "config stall_warning=4s stall=20s\n" TAPE_LAUNCHED "ready 1-4\n"
          "entered 1,2\n"
          "wait 17s\n"
          "stalled 4 17s in=state |\n"
          "wait 4s | a,b < REVOKE 1 lost 3: b:0#3: the worker did not begin to train in time\n"
          "    | record ENDED 3 sig9\n"
          "    | bar b:0 (1): the worker did not begin to train in time\n"
          "    | b < KILL 3 in 0s: the worker did not begin to train in time\n")

TAPE_CASE(a_worker_missing_at_a_check_is_named,
          SOON "hosts a:2,b:1\n"
               "prepared 1-3\n"
               "at 1,2 3\n"
               "wait 6s | b < EXAMINE\n"
               "    | ! round 1: after 6s 2 of 4 workers have still to come to a check: rank 2 "
               "(b:0#3), rank 3 (b:1#4)\n"
               "stalled 1 6s in=check |\n"
               "wait 2s |\n")

TAPE_CASE(a_worker_missing_at_an_awaited_check_is_killed,
          SOON "hosts a:2,b:1\n"
               "prepared 1-3\n"
               "at 1,2,4 3\n"
               "wait 17s\n"
               "stalled 1 17s in=check |\n"
               "wait 4s | b < EXAMINE\n"
               "    | a,b < ABANDON 1 next 2: b:0#3: the worker did not come to a check in "
               "time, and the other members wait at the check\n"
               "    | a,b < REVOKE 1 lost 3: b:0#3: the worker did not come to a check in time, "
               "and the other members wait at the check\n"
               "    | record ENDED 3 sig9\n"
               "    | bar b:0 (1): the worker did not come to a check in time, and the other "
               "members wait at the check\n"
               "    | b < KILL 3 in 0s: the worker did not come to a check in time, and the other "
               "members wait at the check\n")

/* A wait for a check that has been answered gives no worker the blame. */
TAPE_CASE(a_check_that_is_over_is_nobodys_fault, SOON "stalled 1 20s in=check |\n"
                                                      "wait 1s |\n")

/* Until the agreed check, the workers that leave are waited for, too. */
TAPE_CASE(on_the_way_to_a_switch_leavers_count,
          SOON "hosts a:2,b:1\n"
               "prepared 1-3\n"
               "at 1-4 3\n"
               "stalled 1 19s 4 round=1 |\n"
               "wait 1s | b < EXAMINE\n"
               "    | ! round 2: 1 of 3 wait for b:1#4, for 19s in allreduce\n"
               "entered 2\n"
               "stalled 2 19s 4 round=1 |\n")

TAPE_CASE(many_are_not_all_named,
          "config np=8 stall_warning=4s\n"
          "start\n"
          "hosts a:8\n"
          "hello a\n"
          "launched 1-8\n"
          "ready 1-8\n"
          "entered 1\n"
          "wait 6s | a < EXAMINE\n"
          "    | ! round 1: after 6s 7 of 8 workers have still to begin to train: rank 1 (a:1#2), "
          "rank 2 (a:2#3), rank 3 (a:3#4), rank 4 (a:4#5), rank 5 (a:5#6) and 2 more\n")
