/*
 * test_core_unusable.c: a worker that reports UNUSABLE at each moment of its life. The worker
 * counts as dead at once, and its end counts once.
 *
 * Each case is a tape: a text of the events that come in (a line) and of the actions that the
 * driver's core must answer with.
 */
#include "tests/lib/core_tape.h"

static struct core_tape tape;

/* for worker 2, which is a:1 */
#define REVOKED "a,b < REVOKE 1 lost 2: a:1#2: the worker cannot go on: its device is stuck\n"
#define WRITTEN "record ENDED 2 sig9\n"
#define CHARGED "    | bar a:1 (1): the worker cannot go on: its device is stuck\n"

/* ---- in each state -------------------------------------------------------------------------- */

/* UNUSABLE may come before the agent's message that the worker runs. */
TAPE_CASE(unusable_before_it_is_known_to_run, "config np=2\n"
                                              "start\n"
                                              "hosts a:2\n"
                                              "hello a\n"
                                              "unusable 2 | " WRITTEN CHARGED "launched 2 |\n"
                                              "ready 2 |\n"
                                              "exited 2 sig9 | a < FORGET 2\n")

/* No worker that trains is disturbed. */
TAPE_CASE(unusable_as_it_joins,
          TAPE_RUNNING "hosts a:2,b:2,c:1\n"
                       "hello c\n"
                       "ready 5 | record READY 5\n"
                       "    | record NUMBER 2\n"
                       "    | a,b,c < PREPARE 2 after 1: 1,2,3,4,5\n"
                       "prepared 1-4\n"
                       "unusable 5 | a,b,c < ABANDON 1 next 2: c:0#5: the worker cannot go on: "
                       "its device is stuck\n"
                       "    | record ENDED 5 sig9\n"
                       "    | bar c:0 (1): the worker cannot go on: its device is stuck\n"
                       "prepared 5 |\n")

TAPE_CASE(on_the_way_to_a_switch, TAPE_RUNNING
          "hosts a:2,b:1\n"
          "prepared 1-3\n"
          "at 1,3 7\n"
          "unusable 2 | a,b < ABANDON 1 next 2: a:1#2: the worker cannot go on: its device is "
          "stuck\n"
          "    | " REVOKED "    | " WRITTEN CHARGED "at 2 7 |\n"
          "entered 2 |\n")

/* The other members may not have passed the agreed check; the worker was to leave, so no slot is
 * charged. */
TAPE_CASE(unusable_as_it_leaves,
          TAPE_RUNNING "hosts a:2,b:1\n"
                       "prepared 1-3\n"
                       "at 1-4 7\n"
                       "unusable 4 | a,b < REVOKE 2 lost 4: b:1#4: the worker cannot go on: "
                       "its device is stuck\n"
                       "    | record ENDED 4 sig9\n"
                       "left 4 |\n")

TAPE_CASE(a_worker_that_has_left_is_unusable, TAPE_RUNNING "hosts a:2,b:1\n"
                                                           "prepared 1-3\n"
                                                           "at 1-4 7\n"
                                                           "left 4\n"
                                                           "unusable 4 | record ENDED 4 sig9\n"
                                                           "exited 4 sig9 | b < FORGET 4\n")

/* As after each other bad end of a finished worker: it may have had something left to do. */
TAPE_CASE(a_worker_that_has_finished_is_unusable,
          TAPE_RUNNING "finished 1-4\n"
                       "exited 1,3,4\n"
                       "unusable 2 | record ENDED 2 sig9\n"
                       "    | record OVER 1: the training has finished, but a worker failed: "
                       "a:1#2: the worker cannot go on: its device is stuck\n"
                       "    | a < STOP: the training has finished, but a worker failed: a:1#2: "
                       "the worker cannot go on: its device is stuck\n"
                       "    | b < STOP: the training has finished, but a worker failed: a:1#2: "
                       "the worker cannot go on: its device is stuck\n")

/* The other members cannot go on without this worker. */
TAPE_CASE(unusable_as_the_others_finish, TAPE_RUNNING "finished 1\n"
                                                      "unusable 2 | record ENDED 2 sig9\n"
                                                      "    | b < DONE 3\n"
                                                      "    | b < DONE 4\n")

/* ---- silence -------------------------------------------------------------------------------- */

/* Not even SIGKILL ends the process: its slot is not used, the other workers go on, and the job
 * ends without this process. */
TAPE_CASE(an_unusable_process_never_ends,
          "config beat=10s lease=1m discovery=1m\n" TAPE_RUNNING "unusable 2\n"
          "recovering 1,3,4 held=1.1\n"
          "entered 1,3,4\n"
          "wait 5m |\n"
          "worker 2 doomed |\n"
          "finished 1,3,4\n"
          "exited 1,3\n"
          "exited 4 | record ENDED 4 exit0\n"
          "    | record OVER 0: finished\n"
          "    | a < STOP: finished\n"
          "    | b < STOP: finished\n"
          "    | b < FORGET 4\n"
          "closed b |\n"
          "wait 2m | exit 0: finished\n")

/* The worker's end does not count a second time. */
TAPE_CASE(an_unusable_worker_then_a_silent_host,
          TAPE_RUNNING "unusable 2\n"
                       "silent a\n"
                       "wait 11s | close a: silent for longer than the lease\n"
                       "    | record ENDED 1 silent\n"
                       "    | bar a (1): silent for longer than the lease\n")

/* The next agent does not know the worker, and gets no blame for this. */
TAPE_CASE(an_unusable_worker_then_a_dead_agent,
          TAPE_RUNNING "unusable 2\n"
                       "closed a\n"
                       "hello a agent=8 | a < WELCOME_AGENT term 1\n"
                       "    | record ENDED 1 silent\n"
                       "    | a < FORGET 1\n"
                       "    | a < FORGET 2\n"
                       "    | bar a (1): the agent of this host has lost its workers\n")

/* ---- the driver dies ------------------------------------------------------------------------ */

/* The end was not in the journal, so it counts as new; but the slot was charged for this
 * incarnation already. */
TAPE_CASE(the_driver_dies_before_the_record_is_durable,
          TAPE_RUNNING "unusable 2\n"
                       "kill 1\n"
                       "start\n"
                       "hello a #1:0 #2:1=sig9 | a < WELCOME_AGENT term 2\n"
                       "    | a < ROUND 1 first after 0 from 1.0 of 1: 1,2,3,4\n"
                       "hello b #3:0 #4:1\n"
                       "unusable 2 | " REVOKED "    | " WRITTEN "exited 2 sig9 | a < FORGET 2\n")

/* The end is in the journal and the process still there: the slot is neither charged again nor
 * filled yet. */
TAPE_CASE(the_driver_dies_when_the_record_is_durable,
          TAPE_RUNNING "unusable 2\n"
                       "kill\n"
                       "start\n"
                       "hello a #1:0 #2:1 | a < WELCOME_AGENT term 2\n"
                       "    | a < KILL 2 in 0s: the worker was counted as dead\n"
                       "    | a < REVOKE 1: the round was revoked while the agent was away\n"
                       "unusable 2 |\n"
                       "hello b #3:0 #4:1\n"
                       "hosts a:2,b:2\n"
                       "recovering 1,3,4 held=1.1\n"
                       "wait 1m |\n"
                       "exited 2 sig9 | a < FORGET 2\n"
                       "    | record LAUNCH 5 a:1\n"
                       "    | a < LAUNCH 5 in 1 as 3/4 local 0/1 cross 0/1\n")

/* ---- late, and from other incarnations ---- */

/* The successor is in the slot. */
TAPE_CASE(unusable_is_reported_late, TAPE_RUNNING
          "exited 2 sig9\n"
          "recovering 1,3,4 held=1.1\n"
          "entered 1,3,4\n"
          "wait 30s\n"
          "worker 5 launching |\n"
          "unusable 2 | ! a: a message about worker #2 was dropped: that worker has ended\n"
          "worker 5 launching |\n"
          "unusable 3 from=a | ! a: a statement of this host's agent is refused: the agent sends "
          "UNUSABLE about worker #3, which runs on b\n")

/* UNUSABLE is about the process, so it counts in any round, also in one that is over. */
TAPE_CASE(unusable_in_a_round_that_is_over,
          TAPE_RUNNING "exited 4 exit1\n"
                       "recovering 1-3 held=1.1\n"
                       "entered 1-3\n"
                       "unusable 2 round=1 | a,b < REVOKE 2 lost 2: a:1#2: the worker cannot go "
                       "on: its device is stuck\n"
                       "    | " WRITTEN CHARGED)
