/*
 * test_core_takeover.c: a new driver takes a running job over from the journal. No worker restarts,
 * and no worker counts as late for a time in which its agent was away.
 *
 * Each case is a tape: a text of the events that come in (a line) and of the actions that the
 * driver's core must answer with.
 */
#include "tests/lib/core_tape.h"

static struct core_tape tape;

/* Training goes on: no agent is told again what the old driver has told the agent already. */
TAPE_CASE(a_new_driver_takes_over_a_running_job,
          TAPE_RUNNING "kill\n"
                       "start | record TERM 2\n"
                       "    | start a\n"
                       "    | start b\n"
                       "hello a #1:0 #2:1 | a < WELCOME_AGENT term 2\n"
                       "    | a < ROUND 1 first after 0 from 1.0 of 1: 1,2,3,4\n"
                       "hello b #3:0 #4:1 | b < WELCOME_AGENT term 2\n"
                       "    | b < ROUND 1 first after 0 from 1.0 of 1: 1,2,3,4\n"
                       "entered 1-4 | ! round 1: all 4 train\n"
                       "hosts a:2,b:2\n"
                       "view | running term 2 round 1 from 1.0: 1,2,3,4, floor 1, resets 0\n"
                       "    | a there: #1 in 0 member 0*, #2 in 1 member 1*, of 2\n"
                       "    | b there: #3 in 0 member 2*, #4 in 1 member 3*, of 2\n"
                       "wait 30s |\n")

/* The workers may have got the address of the new driver by ssh, so the driver waits for their
 * agent. */
TAPE_CASE(no_worker_is_late_before_its_agent_is_back,
          TAPE_RUNNING "config stall=5s agent_start=1m\n"
                       "kill\n"
                       "start | record TERM 2\n"
                       "    | start a\n"
                       "    | start b\n"
                       "hello a #1:0 #2:1 | a < WELCOME_AGENT term 2\n"
                       "    | a < ROUND 1 first after 0 from 1.0 of 1: 1,2,3,4\n"
                       "entered 1,2\n"
                       "wait 8s |\n"
                       "hello b #3:0 #4:1 | b < WELCOME_AGENT term 2\n"
                       "    | b < ROUND 1 first after 0 from 1.0 of 1: 1,2,3,4\n"
                       "entered 3,4 | ! round 1: all 4 train\n")

/* The agent is back, but its new worker had no time to report that the worker has begun. */
TAPE_CASE(no_worker_is_late_when_its_agent_is_just_back,
          TAPE_RUNNING "config stall=5s agent_start=1m\n"
                       "kill\n"
                       "start\n"
                       "hello a #1:0 #2:1\n"
                       "entered 1,2\n"
                       "wait 4900ms |\n"
                       "hello b #3:0 #4:1 | b < WELCOME_AGENT term 2\n"
                       "    | b < ROUND 1 first after 0 from 1.0 of 1: 1,2,3,4\n"
                       "wait 4800ms |\n"
                       "entered 3,4 | ! round 1: all 4 train\n")

#define TOLD_LATE_OF_A_REVOKE                                              \
    "config stall=5s agent_start=1m\n" TAPE_RUNNING "kill\n"               \
    "start\n"                                                              \
    "hello a #1:0 #2:1\n"                                                  \
    "recovering 1,2 held=1.1\n"                                            \
    "wait 20s |\n"                                                         \
    "hello b #3:0 #4:1 | b < WELCOME_AGENT term 2\n"                       \
    "    | b < REVOKE 1: the round was revoked while the agent was away\n" \
    "    | b < REVOKE 1: the round was revoked while the agent was away\n" \
    "recovering 3 held=1.1\n"                                              \
    "wait 4900ms |\n"

/* While the agent was away, no driver could tell its worker that the round is dead, nor hear that
 * the worker has stopped. */
TAPE_CASE(no_stop_is_late_before_the_agent_is_back, TOLD_LATE_OF_A_REVOKE
          "recovering 4 held=1.1 | record ROUND 2 recovery after 1 from 1.1 of 1,2,3,4: 1,2,3,4\n"
          "    | a,b < ROUND 2 recovery after 1 from 1.1 of 1,2,3,4: 1,2,3,4\n")

TAPE_CASE(a_worker_told_late_may_be_late,
          TOLD_LATE_OF_A_REVOKE "wait 200ms | record ENDED 4 sig9\n"
                                "    | bar b:1 (1): the worker did not stop for the recovery\n"
                                "    | b < KILL 4 in 5s: the worker did not stop for the recovery\n"
                                "    | record ROUND 2 recovery after 1 from 1.1 of 1,2,3: 1,2,3\n"
                                "    | a,b < ROUND 2 recovery after 1 from 1.1 of 1,2,3: 1,2,3\n")

TAPE_CASE(a_leaver_is_not_late_whose_agent_is_not_back_yet,
          "config stall=5s agent_start=1m\n" TAPE_RUNNING "hosts a:2,b:1\n"
          "prepared 1-3\n"
          "at 1-4 3\n"
          "kill\n"
          "start\n"
          "hello a #1:0 #2:1\n"
          "entered 1,2\n"
          "hosts a:2,b:1\n"
          "wait 20s |\n"
          "hello b #3:0 #4:1\n"
          "entered 3\n"
          "wait 4900ms |\n"
          "left 4 | ! b:1#4 has left\n"
          "wait 4900ms |\n"
          "closed b\n"
          "wait 5s |\n"
          "hello b #3:0 #4:1 | b < WELCOME_AGENT term 2\n"
          "wait 4900ms |\n"
          "wait 200ms | record ENDED 4 sig9\n"
          "    | b < KILL 4 in 5s: the worker has left, but its process has not ended\n")

TAPE_CASE(
    no_start_is_late_before_the_agent_is_back,
    "config start_timeout=20s agent_start=1m\n" TAPE_LAUNCHED "ready 1\n"
    "kill\n"
    "start\n"
    "hello a #1:0 #2:1\n"
    "ready 1,2\n"
    "hosts a:2,b:2\n"
    "wait 40s |\n"
    "hello b #3:0 #4:1 | b < WELCOME_AGENT term 2\n"
    "ready 3\n"
    "wait 19900ms |\n"
    "wait 200ms | record ENDED 4 sig9\n"
    "    | bar b:1 (1): the worker did not call hvd_elastic_run within --start-timeout\n"
    "    | b < KILL 4 in 5s: the worker did not call hvd_elastic_run within --start-timeout\n")

/* When the time to leave is over, the machine may be gone: the driver does not wait for the worker,
 * and counts the worker's end as no failure of any slot. */
TAPE_CASE(a_time_to_leave_is_over_whoever_is_heard,
          "config agent_start=1m\n" TAPE_RUNNING "drain b 20s\n"
          "kill\n"
          "start\n"
          "hello a #1:0 #2:1\n"
          "entered 1,2\n"
          "hosts a:2,b:2\n"
          "wait 21s | a < REVOKE 1 lost 3: b:0#3: the worker's time to leave is over\n"
          "    | record ENDED 3 sig9\n"
          "    | record ENDED 4 sig9\n"
          "recovering 1,2 held=1.1\n"
          "hello b #3:0 #4:1 | b < WELCOME_AGENT term 2\n"
          "    | b < KILL 3 in 0s: the worker was counted as dead\n"
          "    | b < KILL 4 in 0s: the worker was counted as dead\n")

TAPE_CASE(
    every_record_may_be_there_twice, TAPE_RUNNING
    "exited 4 exit1\n"
    "recovering 1-3 held=1.5\n"
    "entered 1-3\n"
    "drain b 1h\n"
    "kill 0 twice\n"
    "start | record TERM 2\n"
    "    | start a\n"
    "    | start b\n"
    "hello a #1:0 #2:1 | a < WELCOME_AGENT term 2\n"
    "    | a < ROUND 2 recovery after 1 from 1.5 of 1,2,3: 1,2,3\n"
    "    | a < ABANDON 2 next 3: the round was abandoned while the agent was away\n"
    "hello b #3:0 | b < WELCOME_AGENT term 2\n"
    "    | b < ROUND 2 recovery after 1 from 1.5 of 1,2,3: 1,2,3\n"
    "    | b < ABANDON 2 next 3: the round was abandoned while the agent was away\n"
    "view | running term 2 round 2 from 1.5: 1,2,3, floor 1, resets 1\n"
    "    | a there unlisted: #1 in 0 member 0, #2 in 1 member 1, of 0; discovery has not answered "
    "yet\n"
    "    | b there unlisted draining: #3 in 0 member 2, of 0; discovery has not answered yet\n")

/* The host of the only worker is drained, and the driver dies. */
#define DRAINED_AND_LOST              \
    "config np=1 min_np=1 max_np=1\n" \
    "start\n"                         \
    "hosts a:1\n"                     \
    "hello a\n"                       \
    "ready 1\n"                       \
    "entered 1\n"                     \
    "drain a 1h\n"                    \
    "kill\n"

/* The agent of a drained host keeps the newest commit, and no worker is left there that would tell
 * the new driver where it serves the commit. */
TAPE_CASE(an_agent_without_workers_serves_what_it_keeps,
          DRAINED_AND_LOST "start | record TERM 2\n"
                           "    | start a\n"
                           "hello a kept=0:1.5 serves=state=10.0.0.1:4001\n"
                           "hosts a:1,b:1\n"
                           "hello b\n"
                           "wait 1s\n"
                           "ready 2 | record READY 2\n"
                           "    | record ROUND 2 recovery after 1 from 1.5: 2\n"
                           "    | b < ROUND 2 recovery after 1 from 1.5 kept by a:0: 2\n")

/* An agent that names something else than an address is no source for the members. */
TAPE_CASE(an_agent_that_serves_at_no_address_is_no_source,
          DRAINED_AND_LOST "start\n"
                           "hello a kept=0:1.5 serves=state=somewhere\n"
                           "hosts a:1,b:1\n"
                           "hello b\n"
                           "wait 1s\n"
                           "ready 2 | record READY 2\n")

TAPE_CASE(workers_from_before_the_first_round_are_kept,
          TAPE_LAUNCHED "ready 1,2\n"
                        "kill\n"
                        "start | record TERM 2\n"
                        "    | start a\n"
                        "    | start b\n"
                        "hello a #1:0 #2:1 | a < WELCOME_AGENT term 2\n"
                        "hello b #3:0 #4:1\n"
                        "ready 1,2\n"
                        "hosts a:2,b:2 | ! hosts: +a:2 +b:2\n"
                        "ready 3,4 | record READY 3\n"
                        "    | record READY 4\n"
                        "    | record ROUND 1 first after 0 from 1.0 of 1: 1,2,3,4\n"
                        "    | a,b < ROUND 1 first after 0 from 1.0 of 1: 1,2,3,4\n")

TAPE_CASE(a_launch_that_was_never_told_bars_no_host, "config np=2\n"
                                                     "start\n"
                                                     "hosts a:2\n"
                                                     "hello a\n"
                                                     "kill\n"
                                                     "start | record TERM 2\n"
                                                     "    | start a\n"
                                                     "hello a #1:0 | a < WELCOME_AGENT term 2\n"
                                                     "    | record ENDED 2 silent\n"
                                                     "    | a < FORGET 2\n")

TAPE_CASE(a_launch_that_was_not_written_down_was_not_told, "config np=2\n"
                                                           "start\n"
                                                           "hosts a:2\n"
                                                           "hello a\n"
                                                           "kill 1\n"
                                                           "start\n"
                                                           "hello a | a < WELCOME_AGENT term 2\n"
                                                           "    | record ENDED 1 silent\n"
                                                           "    | a < FORGET 1\n"
                                                           "hosts a:2\n")

TAPE_CASE(a_death_while_there_was_no_driver, TAPE_RUNNING
          "kill\n"
          "start\n"
          "hello a #1:0 #2:1=exit1 | a < WELCOME_AGENT term 2\n"
          "    | a < ROUND 1 first after 0 from 1.0 of 1: 1,2,3,4\n"
          "exited 2 exit1 | a < REVOKE 1 lost 2: a:1#2: exit code 1\n"
          "    | record ENDED 2 exit1\n"
          "    | bar a:1 (1): exit code 1\n"
          "    | a < FORGET 2\n"
          "hello b #3:0 #4:1\n"
          "recovering 1,3,4 held=1.1 | record ROUND 2 recovery after 1 from 1.1 of 1,3,4: 1,3,4\n"
          "    | a,b < ROUND 2 recovery after 1 from 1.1 of 1,3,4: 1,3,4\n")

TAPE_CASE(a_death_that_was_recorded_revokes_again, TAPE_RUNNING
          "exited 4 exit1\n"
          "kill\n"
          "start | record TERM 2\n"
          "    | start a\n"
          "    | start b\n"
          "hello a #1:0 #2:1 | a < WELCOME_AGENT term 2\n"
          "    | a < REVOKE 1: the round was revoked while the agent was away\n"
          "    | a < REVOKE 1: the round was revoked while the agent was away\n"
          "hello b #3:0 | b < WELCOME_AGENT term 2\n"
          "    | b < REVOKE 1: the round was revoked while the agent was away\n"
          "recovering 1-3 held=1.1 | record ROUND 2 recovery after 1 from 1.1 of 1,2,3: 1,2,3\n"
          "    | a,b < ROUND 2 recovery after 1 from 1.1 of 1,2,3: 1,2,3\n")

TAPE_CASE(a_host_that_does_not_come_back_is_dead,
          TAPE_RUNNING "kill\n"
                       "start\n"
                       "hello a #1:0 #2:1\n"
                       "wait 61s | a < REVOKE 1 lost 3: b:0#3: the worker's host is silent\n"
                       "    | record ENDED 3 silent\n"
                       "    | record ENDED 4 silent\n"
                       "    | bar b (1): silent for longer than the lease\n")

#define HALF_IS_MET                    \
    TAPE_RUNNING "kill\n"              \
                 "start\n"             \
                 "hosts a:2,b:2\n"     \
                 "hello a #1:0 #2:1\n" \
                 "entered 1,2\n"

/* All workers that the new driver hears of train, so the new driver goes on with these workers; a
 * late agent gets the new address again. */
TAPE_CASE(a_host_that_does_not_come_back_is_waited_for,
          "config discovery=20s\n" HALF_IS_MET "wait 59s |\n"
          "wait 2s | start b\n"
          "wait 58s |\n"
          "wait 2s | start b\n"
          "hello b #3:0 #4:1 | b < WELCOME_AGENT term 2\n"
          "    | b < ROUND 1 first after 0 from 1.0 of 1: 1,2,3,4\n"
          "entered 3,4 | ! round 1: all 4 train\n")

TAPE_CASE(the_lease_counts_once_the_round_is_over,
          "config discovery=20s\n" HALF_IS_MET "wait 75s\n"
          "recovering 1 held=1.3 | a < REVOKE 1: a:0#1: the worker's collectives failed\n"
          "recovering 2 held=1.3\n"
          "wait 8s |\n"
          "wait 2s | record ENDED 3 silent\n"
          "    | record ENDED 4 silent\n"
          "    | bar b (1): silent for longer than the lease\n"
          "    | record ROUND 2 recovery after 1 from 1.3 of 1,2: 1,2\n"
          "    | a < ROUND 2 recovery after 1 from 1.3 of 1,2: 1,2\n")

TAPE_CASE(the_lease_counts_once_a_worker_waits,
          HALF_IS_MET "wait 75s\n"
                      "stalled 1 1m 3,4\n"
                      "wait 8s |\n"
                      "wait 4s | a < REVOKE 1 lost 3: b:0#3: the worker's host is silent\n"
                      "    | record ENDED 3 silent\n"
                      "    | record ENDED 4 silent\n"
                      "    | bar b (1): silent for longer than the lease\n")

TAPE_CASE(the_wait_ends_with_the_grace_of_an_agent,
          "config driver_grace=1m\n" HALF_IS_MET "wait 109s\n"
          "wait 2s | a < REVOKE 1 lost 3: b:0#3: the worker's host is silent\n"
          "    | record ENDED 3 silent\n"
          "    | record ENDED 4 silent\n"
          "    | bar b (1): silent for longer than the lease\n")

TAPE_CASE(a_worker_in_no_round_is_not_spared, "config np=2 min_np=1\n"
                                              "start\n"
                                              "hosts a:2,b:2\n"
                                              "hello a\n"
                                              "ready 1,2\n"
                                              "entered 1,2\n"
                                              "hello b\n"
                                              "kill\n"
                                              "start\n"
                                              "hosts a:2,b:2\n"
                                              "hello a #1:0 #2:1\n"
                                              "entered 1,2\n"
                                              "wait 61s | record ENDED 3 silent\n"
                                              "    | record ENDED 4 silent\n"
                                              "    | bar b (1): silent for longer than the lease\n")

TAPE_CASE(a_switch_that_was_recorded_is_told_again,
          TAPE_RUNNING "hosts a:2,b:1\n"
                       "prepared 1-3\n"
                       "at 1-4 7\n"
                       "kill\n"
                       "start | record TERM 2\n"
                       "    | start a\n"
                       "    | start b\n"
                       "hello a #1:0 #2:1 | a < WELCOME_AGENT term 2\n"
                       "    | a < PREPARE 2 after 1: 1,2,3\n"
                       "    | a < SWITCH_AT 1 next 2 check 8\n"
                       "    | a < ROUND 2 switch after 1 from 2.0 of 1,2,3: 1,2,3\n"
                       "hello b #3:0 #4:1 | b < WELCOME_AGENT term 2\n"
                       "    | b < PREPARE 2 after 1: 1,2,3\n"
                       "    | b < SWITCH_AT 1 next 2 check 8\n"
                       "    | b < ROUND 2 switch after 1 from 2.0 of 1,2,3: 1,2,3\n"
                       "entered 1-3 | record ENTERED 2\n"
                       "left 4 | ! b:1#4 has left\n")

TAPE_CASE(a_change_that_was_not_is_abandoned, TAPE_RUNNING
          "hosts a:2,b:1\n"
          "prepared 1-3\n"
          "kill\n"
          "start\n"
          "hello a #1:0 #2:1 | a < WELCOME_AGENT term 2\n"
          "    | a < ROUND 1 first after 0 from 1.0 of 1: 1,2,3,4\n"
          "    | a < ABANDON 1 next 2: the round was abandoned while the agent was away\n")

TAPE_CASE(a_finished_job_goes_on_ending,
          TAPE_RUNNING "finished 1,2\n"
                       "exited 2\n"
                       "kill 0 twice\n"
                       "start | record TERM 2\n"
                       "    | start a\n"
                       "    | start b\n"
                       "hello a #1:0 | a < WELCOME_AGENT term 2\n"
                       "hello b #3:0 #4:1 | b < WELCOME_AGENT term 2\n"
                       "finished 3,4\n"
                       "exited 1,3,4 | record ENDED 1 exit0\n"
                       "    | a < FORGET 1\n"
                       "    | record ENDED 3 exit0\n"
                       "    | b < FORGET 3\n"
                       "    | record ENDED 4 exit0\n"
                       "    | record OVER 0: finished\n"
                       "    | a < STOP: finished\n"
                       "    | b < STOP: finished\n"
                       "    | b < FORGET 4\n")

TAPE_CASE(a_death_after_the_first_finished_dismisses_the_others,
          TAPE_RUNNING "finished 1\n"
                       "exited 2 exit1\n"
                       "kill\n"
                       "start | record TERM 2\n"
                       "    | start a\n"
                       "    | start b\n"
                       "hello b #3:0 #4:1 | b < WELCOME_AGENT term 2\n"
                       "    | b < DONE 3\n"
                       "    | b < DONE 4\n")

TAPE_CASE(a_late_failure_is_not_forgotten,
          "config np=2\n"
          "start\n"
          "hosts a:2\n"
          "hello a\n"
          "ready 1,2\n"
          "finished 1,2\n"
          "exited 1 exit3\n"
          "kill\n"
          "start\n"
          "hello a #2:1\n"
          "exited 2 | record ENDED 2 exit0\n"
          "    | record OVER 1: the training has finished, but a worker failed: "
          "a:0#1: the worker did not end well after its training had finished\n"
          "    | a < STOP: the training has finished, but a worker failed: "
          "a:0#1: the worker did not end well after its training had finished\n"
          "    | a < FORGET 2\n")

TAPE_CASE(a_job_that_was_over_stays_over,
          TAPE_RUNNING "stop me\n"
                       "kill\n"
                       "start | record TERM 2\n"
                       "    | start a\n"
                       "    | start b\n"
                       "hello a #1:0 #2:1 | a < WELCOME_AGENT term 2\n"
                       "    | a < STOP: stopped by me\n"
                       "exited 1,2 | record ENDED 1 exit0\n"
                       "    | a < FORGET 1\n"
                       "    | record ENDED 2 exit0\n"
                       "    | a < FORGET 2\n"
                       "closed a | ! a: the agent of this host has ended as told\n"
                       "wait 21s | exit 2: stopped by me; hosts that could not be reached: 1 (b); "
                       "workers there end when their agent is heard again, and a running agent "
                       "ends them by itself within 10m10s\n")

TAPE_CASE(an_empty_job_that_was_over_ends_at_once,
          "config np=1 min_np=1\n"
          "start\n"
          "nohosts\n"
          "kill\n"
          "start | record TERM 2\n"
          "    | exit 1: the first discovery has failed: broken\n")

TAPE_CASE(
    drains_and_bars_outlive_the_driver,
    "config min_np=1\n" TAPE_RUNNING "exited 4 exit1\n"
    "recovering 1-3 held=1.1\n"
    "drain b:0 1h\n"
    "drain a never\n"
    "clear a\n"
    "drain a 10s\n"
    "kill\n"
    "start\n"
    "hosts a:2,b:2\n"
    "hello a #1:0 #2:1\n"
    "view | running term 2 round 2 from 1.1: 1,2,3, floor 1, resets 1\n"
    "    | a there draining: #1 in 0 member 0, #2 in 1 member 1, of 2; the host is being drained\n"
    "    | b away: #3 in 0 member 2, of 2; the connection to its agent is gone\n"
    "wait 10s | a < REVOKE 2 lost 1: a:0#1: the worker's time to leave is over\n"
    "    | record ENDED 1 sig9\n"
    "    | a < KILL 1 in 0s: the worker's time to leave is over\n"
    "    | record ENDED 2 sig9\n"
    "    | a < KILL 2 in 0s: the worker's time to leave is over\n")

/* Without an end of the notice, a later driver would drain the host again, should the host have
 * come back by then. */
TAPE_CASE(a_notice_of_a_host_that_is_gone_ends, TAPE_RUNNING "notice b 10s\n"
                                                             "prepared 1,2\n"
                                                             "at 1-4 3\n"
                                                             "left 3,4\n"
                                                             "exited 3,4\n"
                                                             "entered 1,2\n"
                                                             "kill\n"
                                                             "start\n"
                                                             "hello a #1:0 #2:1\n"
                                                             "entered 1,2\n"
                                                             "hosts a:2 | record DRAIN b ends\n")

/* The operator's drain lasts under the next driver, also while the host is not listed. */
TAPE_CASE(a_drain_of_a_host_that_is_gone_lasts, TAPE_RUNNING "drain b 10s\n"
                                                             "prepared 1,2\n"
                                                             "at 1-4 3\n"
                                                             "left 3,4\n"
                                                             "exited 3,4\n"
                                                             "entered 1,2\n"
                                                             "kill\n"
                                                             "start\n"
                                                             "hello a #1:0 #2:1\n"
                                                             "entered 1,2\n"
                                                             "hosts a:2 |\n"
                                                             "wait 1m\n"
                                                             "hosts a:2,b:2\n"
                                                             "wait 1m |\n"
                                                             "undrain b | record DRAIN b ends\n"
                                                             "    | reply HVD_OK\n"
                                                             "    | start b\n")

TAPE_CASE(a_leaver_that_hangs_is_killed_by_the_successor,
          "config stall=20s\n" TAPE_RUNNING "hosts a:2,b:1\n"
          "prepared 1-3\n"
          "at 1-4 3\n"
          "kill\n"
          "start\n"
          "hello a #1:0 #2:1\n"
          "hello b #3:0 #4:1\n"
          "entered 1-3\n"
          "hosts a:2,b:1\n"
          "wait 20s | record ENDED 4 sig9\n"
          "    | b < KILL 4 in 5s: the worker was told to leave, but did not\n")

TAPE_CASE(a_worker_that_does_not_begin_to_train_is_given_up,
          "config stall=20s\n" TAPE_LAUNCHED "ready 1-4\n"
          "kill\n"
          "start\n"
          "hello a #1:0 #2:1\n"
          "hello b #3:0 #4:1\n"
          "entered 1-3\n"
          "hosts a:2,b:2\n"
          "wait 20s | a,b < REVOKE 1: not all members began to train in time\n")

TAPE_CASE(agents_that_may_take_for_ever_are_not_dead_at_once,
          "config agent_start=never\n" TAPE_RUNNING "wait 1m\n"
          "kill\n"
          "start\n"
          "wait 1m |\n"
          "jump 1m |\n"
          "hello a #1:0 #2:1 | a < WELCOME_AGENT term 2\n"
          "    | a < ROUND 1 first after 0 from 1.0 of 1: 1,2,3,4\n")

/* Only the first manifest of a round counts, for the new driver too. */
TAPE_CASE(a_refused_manifest_is_not_handed_on,
          "config np=2 min_np=1\n"
          "start\n"
          "hosts a:3\n"
          "hello a\n"
          "ready 1\n"
          "ready 2 manifest=6\n"
          "kill\n"
          "start\n"
          "hello a #1:0 #3:2\n"
          "hosts a:3\n"
          "ready 1\n"
          "ready 3 | record READY 3\n"
          "    | record ROUND 1 first after 0 from 1.0 of 1: 1,3\n"
          "    | a < ROUND 1 first after 0 from 1.0 of 1: 1,3\n")

TAPE_CASE(commands_that_have_ended_stay_ended, "config np=2 min_np=1\n"
                                               "start\n"
                                               "hosts a:2\n"
                                               "hello a\n"
                                               "exited 1 exit0\n"
                                               "kill\n"
                                               "start\n"
                                               "hello a #2:1 | a < WELCOME_AGENT term 2\n"
                                               "hosts a:2 | ! hosts: +a:2\n"
                                               "exited 2 exit0 | record ENDED 2 exit0\n"
                                               "    | record OVER 0: every command ended with 0\n"
                                               "    | a < STOP: every command ended with 0\n"
                                               "    | a < FORGET 2\n")

TAPE_CASE(a_lower_max_np_sends_nobody_away, TAPE_RUNNING
          "config max_np=2 np=2\n"
          "kill\n"
          "start\n"
          "hello a #1:0 #2:1\n"
          "hello b #3:0 #4:1\n"
          "hosts a:2,b:2\n"
          "entered 1-4\n"
          "exited 4 exit1\n"
          "recovering 1-3 held=1.1 | record ROUND 2 recovery after 1 from 1.1 of 1,2,3: 1,2,3\n"
          "    | a,b < ROUND 2 recovery after 1 from 1.1 of 1,2,3: 1,2,3\n")

TAPE_CASE(old_hosts_keep_their_order, "config np=2 min_np=1\n"
                                      "start\n"
                                      "hosts b:1,a:1\n"
                                      "hello a\n"
                                      "hello b\n"
                                      "ready 1,2\n"
                                      "entered 1,2\n"
                                      "kill\n"
                                      "start\n"
                                      "hello a #2:0\n"
                                      "hello b #1:0\n"
                                      "hosts a:2,b:2 | record LAUNCH 3 b:1\n"
                                      "    | b < LAUNCH 3 in 1 as 2/4 local 0/1 cross 0/2\n"
                                      "    | record LAUNCH 4 a:1\n"
                                      "    | a < LAUNCH 4 in 1 as 3/4 local 0/1 cross 1/2\n")

TAPE_CASE(a_worker_whose_round_will_not_come_is_dismissed, TAPE_RUNNING
          "exited 4 exit1\n"
          "finished 1\n"
          "kill | ! blacklist: b:1 loaded: cooling for 12.3s more after 1 failure: exit code 1\n"
          "start | record TERM 2\n"
          "    | start a\n"
          "    | start b\n"
          "hello b #3:0 | b < WELCOME_AGENT term 2\n"
          "hello a #1:0 #2:1 | a < WELCOME_AGENT term 2\n"
          "recovering 2,3 held=1.1 | a < DONE 2\n"
          "    | b < DONE 3\n")

TAPE_CASE(a_recovery_has_two_takeovers, TAPE_RUNNING
          "exited 4 exit1\n"
          "recovering 1,2 held=1.3\n"
          "kill\n"
          "start\n"
          "hello a #1:0 #2:1\n"
          "exited 2 exit1 | record ENDED 2 exit1\n"
          "    | bar a:1 (1): exit code 1\n"
          "    | a < FORGET 2\n"
          "recovering 1 held=1.3 | ! a:0#1 has recovered (1 of 2)\n"
          "kill\n"
          "start | record TERM 3\n"
          "    | start a\n"
          "    | start b\n"
          "hello a #1:0 | a < WELCOME_AGENT term 3\n"
          "    | a < REVOKE 1: the round was revoked while the agent was away\n"
          "recovering 1 held=1.3 | ! a:0#1 has recovered (1 of 2)\n"
          "hello b #3:0 | b < WELCOME_AGENT term 3\n"
          "    | b < REVOKE 1: the round was revoked while the agent was away\n"
          "recovering 3 held=1.3 | record ROUND 2 recovery after 1 from 1.3 of 1,3: 1,3\n"
          "    | a,b < ROUND 2 recovery after 1 from 1.3 of 1,3: 1,3\n")

/* All workers that were there have failed, but other hosts may still come. */
TAPE_CASE(a_successor_waits_for_the_other_hosts,
          "config np=2\n"
          "start\n"
          "hosts a:2,b:2\n"
          "hello b\n"
          "exited 1,2 exit1\n"
          "kill\n"
          "start | record TERM 2\n"
          "hosts a:2,b:2 | start a\n"
          "    | start b\n"
          "hello b | b < WELCOME_AGENT term 2\n"
          "hello a | a < WELCOME_AGENT term 2\n"
          "    | record LAUNCH 3 a:0\n"
          "    | a < LAUNCH 3 in 0 as 0/2 local 0/2 cross 0/1\n"
          "    | record LAUNCH 4 a:1\n"
          "    | a < LAUNCH 4 in 1 as 1/2 local 1/2 cross 0/1\n")
