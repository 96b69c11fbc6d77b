/*
 * test_core_held.c: a journal that cannot be written for a while: the orders of the core wait in
 * the driver, and no agent or worker is judged by a deadline for something that it was not told.
 * After the wait each deadline has its full length again.
 *
 * "full" in a tape: from now on actions wait. "room": they have been carried out.
 */
#include "tests/lib/core_tape.h"

static struct core_tape tape;

/* Each worker has the whole time after the wait. */
TAPE_CASE(no_worker_is_late_for_an_order_that_waits, "config stall=5s\n" TAPE_RUNNING "full\n"
                                                     "exited 4 exit1\n"
                                                     "wait 19s\n"
                                                     "room\n"
                                                     "wait 4s\n"
                                                     "recovering 1-3 held=1.1\n"
                                                     "entered 1-3\n"
                                                     "worker 1 member\n")

/* The time of a worker is not longer than it was. */
TAPE_CASE(a_worker_that_does_not_obey_is_late_after_the_wait,
          "config stall=5s\n" TAPE_RUNNING "full\n"
          "exited 4 exit1\n"
          "wait 19s\n"
          "room\n"
          "recovering 1,2 held=1.1\n"
          "wait 4s\n"
          "worker 3 revoked\n"
          "wait 2s\n"
          "worker 3 doomed\n")

/* A wait that is shorter than a heartbeat interval moves nothing. */
TAPE_CASE(a_short_wait_moves_no_deadline, "config stall=5s\n" TAPE_RUNNING "exited 4 exit1\n"
                                          "recovering 1,2 held=1.1\n"
                                          "wait 4s\n"
                                          "full\n"
                                          "wait 900ms |\n"
                                          "room\n"
                                          "worker 3 revoked\n"
                                          "wait 200ms\n"
                                          "worker 3 doomed\n")

/* The ROUND waits, so no member can begin to train. */
TAPE_CASE(no_member_begins_a_round_that_it_was_not_told,
          "config stall=5s\n" TAPE_RUNNING "exited 4 exit1\n"
          "full\n"
          "recovering 1-3 held=1.1\n"
          "wait 19s\n"
          "state running\n"
          "room\n"
          "wait 4s\n"
          "state running\n"
          "entered 1-3\n")

/* The PREPARE waits, so no member can connect. */
TAPE_CASE(no_change_is_abandoned_that_was_not_told,
          "config prepare=10s\n" TAPE_RUNNING "full\n"
          "hosts a:2,b:1\n"
          "wait 19s\n"
          "room\n"
          "wait 9s\n"
          "state preparing\n"
          "wait 2s | a,b < ABANDON 1 next 2: not all members were connected in time\n")

/* The order to start the agent waits. */
TAPE_CASE(no_host_is_charged_for_an_agent_that_was_not_started,
          "config np=2 agent_start=15s\n"
          "start\n"
          "full\n"
          "hosts a:2 | start a\n"
          "wait 1s | ! the journal has not been written for 1s: changes of the job wait for it, "
          "training goes on, and no worker is judged for what it was not told\n"
          "wait 29s |\n"
          "room\n"
          "wait 14s | ! the journal is written again after 31s: changes of the job go on\n"
          "wait 2s | bar a (1): the agent of this host did not say hello in time\n")

/* After a takeover an agent may dial only when it was told the address of this driver. */
TAPE_CASE(no_agent_is_dead_that_was_not_told_of_the_next_driver,
          "config agent_start=15s\n" TAPE_RUNNING "kill\n"
          "start\n"
          "full\n"
          "hosts a:2,b:2\n"
          "hello a #1:0 #2:1\n"
          "wait 60s\n"
          "worker 3 member\n"
          "room\n"
          "hello b #3:0 #4:1\n"
          "wait 20s |\n"
          "worker 3 member\n")

/* A driver that may tell nothing is silent, so agents hang up after a lease: no host is to blame.
 * An agent that is gone earlier has another reason. */
TAPE_CASE(an_agent_that_is_told_nothing_hangs_up,
          TAPE_RUNNING "full\n"
                       "exited 4 exit1\n"
                       "wait 2s\n"
                       "closed b | start b\n"
                       "    | ! b: the connection to its agent is gone: reset\n"
                       "wait 7s\n"
                       "closed a | start a\n"
                       "    | ! a: its agent has hung up, as it is told nothing while the journal "
                       "is not written\n")

/* An agent that has dialled again learns late of a recovery. */
TAPE_CASE(an_agent_that_is_back_is_told_late,
          "config stall=8s\n" TAPE_RUNNING "recovering 1,2,3 held=1.1\n"
          "closed b\n"
          "full\n"
          "hello b #3:0 #4:1\n"
          "wait 18s\n"
          "room\n"
          "wait 7s\n"
          "worker 4 revoked\n"
          "wait 2s\n"
          "worker 4 doomed\n")

/* No worker can be launched during the wait, so the job is not short of workers by its own fault.
 */
TAPE_CASE(a_shortage_does_not_count_while_no_worker_can_be_launched,
          "config np=2 elastic_timeout=10s\n"
          "start\n"
          "hosts a:1\n"
          "hello a\n"
          "wait 5s\n"
          "full\n"
          "wait 60s\n"
          "state gathering\n"
          "room\n"
          "wait 4s\n"
          "state gathering\n"
          "wait 2s\n"
          "state stopping\n")

/* A silent agent is dead also while the journal cannot be written: heartbeats wait for no record.
 */
TAPE_CASE(a_silent_agent_is_dead_all_the_same, TAPE_RUNNING "full\n"
                                                            "silent b\n"
                                                            "wait 9s\n"
                                                            "worker 3 member\n"
                                                            "wait 2s\n"
                                                            "worker 3 doomed\n")

/* A clock that stands still has no deadline that comes: a driver whose journal cannot be written
 * for 20 s wakes for heartbeats and leases, and not in each microsecond. */
TEST(a_clock_that_stands_still_wakes_no_driver)
{
    enum { FEW = 20, MANY = 300, WITHOUT_END = 10000 };
    int64_t until_us, deadline_us;
    int steps = 0;

    CHECK_OK(t, tape_init(&tape));
    CHECK_PLAY(t, &tape,
               "config np=2 elastic_timeout=1ms\n"
               "start\n"
               "hosts a:2\n"
               "hello a\n"
               "full\n"
               "wait 2s\n"
               "exited 1 exit1\n");
    until_us = tape.now_us + 20 * INT64_C(1000000);
    while (steps < WITHOUT_END && (deadline_us = core_deadline(tape.core)) <= until_us) {
        tape.now_us = deadline_us;
        CHECK_OK(t, tape_step(&tape, &(struct event){ .kind = EVENT_TIMER }));
        steps++;
    }
    CHECK(t, steps >= FEW && steps <= MANY);
    CHECK_PLAY(t, &tape, "state gathering\n");
out:
    tape_release(&tape);
}
