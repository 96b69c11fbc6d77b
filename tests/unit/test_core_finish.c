/*
 * test_core_finish.c: the end of a job: success, failure, stop.
 * The first FINISHED closes the membership, and the exit code follows from what the members
 * reported.
 */
#include "tests/lib/core_tape.h"

static struct core_tape tape;

/* train returned 0 on every member, and every process ended with 0. */
TAPE_CASE(a_job_ends_well, TAPE_RUNNING "finished 1 | record FINISHED 1\n"
                                        "finished 1 |\n"
                                        "finished 2-4 | record FINISHED 2\n"
                                        "    | record FINISHED 3\n"
                                        "    | record FINISHED 4\n"
                                        "exited 1-4 | record ENDED 1 exit0\n"
                                        "    | a < FORGET 1\n"
                                        "    | record ENDED 2 exit0\n"
                                        "    | a < FORGET 2\n"
                                        "    | record ENDED 3 exit0\n"
                                        "    | b < FORGET 3\n"
                                        "    | record ENDED 4 exit0\n"
                                        "    | record OVER 0: finished\n"
                                        "    | a < STOP: finished\n"
                                        "    | b < STOP: finished\n"
                                        "    | b < FORGET 4\n"
                                        "closed a | ! a: the agent of this host has ended as told\n"
                                        "closed b | exit 0: finished\n")

TAPE_CASE(a_worker_inside_when_a_member_dies_is_dismissed,
          TAPE_RUNNING "finished 1 | record FINISHED 1\n"
                       "exited 3 sig9 | record ENDED 3 sig9\n"
                       "    | a < DONE 2\n"
                       "    | b < DONE 4\n"
                       "    | b < FORGET 3\n"
                       "exited 1,2 | record ENDED 1 exit0\n"
                       "    | a < FORGET 1\n"
                       "    | record ENDED 2 exit0\n"
                       "    | a < FORGET 2\n"
                       "exited 4 | record ENDED 4 exit0\n"
                       "    | record OVER 0: finished; 3 of 4 workers did not reach the end\n"
                       "    | a < STOP: finished; 3 of 4 workers did not reach the end\n"
                       "    | b < STOP: finished; 3 of 4 workers did not reach the end\n"
                       "    | b < FORGET 4\n")

TAPE_CASE(who_fails_after_it_has_finished_fails_the_job,
          TAPE_RUNNING "finished 1-4\n"
                       "exited 1 exit3 | record ENDED 1 exit3\n"
                       "    | a < FORGET 1\n"
                       "exited 2 sig9 | record ENDED 2 sig9\n"
                       "    | a < FORGET 2\n"
                       "exited 3,4 | record ENDED 3 exit0\n"
                       "    | b < FORGET 3\n"
                       "    | record ENDED 4 exit0\n"
                       "    | record OVER 1: the training has finished, but a worker failed: "
                       "a:0#1: exit code 3\n"
                       "    | a < STOP: the training has finished, but a worker failed: a:0#1: "
                       "exit code 3\n"
                       "    | b < STOP: the training has finished, but a worker failed: a:0#1: "
                       "exit code 3\n"
                       "    | b < FORGET 4\n")

TAPE_CASE(the_first_finished_closes_the_membership,
          TAPE_RUNNING "hosts a:2,b:2,c:2\n"
                       "hello c\n"
                       "launched 5\n"
                       "ready 5\n"
                       "finished 2 | record FINISHED 2\n"
                       "    | c < DONE 5\n"
                       "    | record ENDED 6 sig9\n"
                       "    | c < KILL 6 in 5s: the job is finishing\n"
                       "hosts a:2,b:2,c:2,d:1 | ! hosts: +d:1\n"
                       "ready 6 |\n"
                       "exited 6 sig15 | c < FORGET 6\n")

TAPE_CASE(a_finish_in_a_recovery_leaves_the_others_done,
          TAPE_RUNNING "exited 4 exit1\n"
                       "finished 1 | record FINISHED 1\n"
                       "    | a < DONE 2\n"
                       "    | b < DONE 3\n"
                       "recovering 2 held=1.1 | a < DONE 2\n"
                       "exited 1,2,3 | record ENDED 1 exit0\n"
                       "    | a < FORGET 1\n"
                       "    | record ENDED 2 exit0\n"
                       "    | a < FORGET 2\n"
                       "    | record ENDED 3 exit0\n"
                       "    | record OVER 0: finished; 2 of 3 workers did not reach the end\n"
                       "    | a < STOP: finished; 2 of 3 workers did not reach the end\n"
                       "    | b < STOP: finished; 2 of 3 workers did not reach the end\n"
                       "    | b < FORGET 3\n")

TAPE_CASE(collectives_that_fail_after_the_first_has_finished,
          TAPE_RUNNING "finished 1\n"
                       "recovering 2 held=1.1 | a < DONE 2\n")

TAPE_CASE(an_error_of_train_is_judged_by_the_exit, TAPE_RUNNING
          "finished 2 3 | ! a:1#2: the worker's training returned 3: diverged\n"
          "exited 2 exit3 | a,b < REVOKE 1 lost 2: a:1#2: exit code 3, the worker's training "
          "returned 3: diverged\n"
          "    | record ENDED 2 exit3\n"
          "    | bar a:1 (1): exit code 3, the worker's training returned 3: diverged\n"
          "    | a < FORGET 2\n")

TAPE_CASE(
    an_exception_is_named, TAPE_RUNNING
    "finished 2 -20 text=OSError | ! a:1#2: the worker's program raised an exception: OSError\n"
    "finished 3 -20 text=OSError | ! b:0#3: the worker's program raised an exception, as that "
    "of a:1#2\n")

/* Such a worker has finished; its exit code decides about the job. A second message changes
 * nothing. */
TAPE_CASE(a_program_that_fails_after_its_training_says_why,
          TAPE_RUNNING "finished 1 0 text=OSError | record FINISHED 1\n"
                       "finished 1 0 text=OSError |\n"
                       "finished 2-4\n"
                       "exited 2-4\n"
                       "exited 1 exit1 | record ENDED 1 exit1\n"
                       "    | record OVER 1: the training has finished, but a worker failed: "
                       "a:0#1: exit code 1, the worker's program failed after its training: "
                       "OSError\n"
                       "    | a < STOP: the training has finished, but a worker failed: a:0#1: "
                       "exit code 1, the worker's program failed after its training: OSError\n"
                       "    | b < STOP: the training has finished, but a worker failed: a:0#1: "
                       "exit code 1, the worker's program failed after its training: OSError\n"
                       "    | a < FORGET 1\n")

TAPE_CASE(an_exception_before_others_finish_fails_the_job,
          TAPE_RUNNING "finished 1 -20 text=OSError |\n"
                       "finished 2 | record FINISHED 2\n"
                       "    | record FINISHED 1\n"
                       "finished 3,4\n"
                       "exited 2-4\n"
                       "exited 1 exit1 | record ENDED 1 exit1\n"
                       "    | record OVER 1: the training has finished, but a worker failed: "
                       "a:0#1: exit code 1, the worker's program raised an exception: OSError\n"
                       "    | a < STOP: the training has finished, but a worker failed: a:0#1: "
                       "exit code 1, the worker's program raised an exception: OSError\n"
                       "    | b < STOP: the training has finished, but a worker failed: a:0#1: "
                       "exit code 1, the worker's program raised an exception: OSError\n"
                       "    | a < FORGET 1\n")

TAPE_CASE(an_exception_when_others_have_finished_fails_the_job,
          TAPE_RUNNING "finished 2-4\n"
                       "finished 1 -20 text=OSError | record FINISHED 1\n"
                       "exited 2-4\n"
                       "exited 1 exit1 | record ENDED 1 exit1\n"
                       "    | record OVER 1: the training has finished, but a worker failed: "
                       "a:0#1: exit code 1, the worker's program raised an exception: OSError\n"
                       "    | a < STOP: the training has finished, but a worker failed: a:0#1: "
                       "exit code 1, the worker's program raised an exception: OSError\n"
                       "    | b < STOP: the training has finished, but a worker failed: a:0#1: "
                       "exit code 1, the worker's program raised an exception: OSError\n"
                       "    | a < FORGET 1\n")

TAPE_CASE(a_finished_that_cannot_be_is_dropped, TAPE_LAUNCHED "finished 1 |\n"
                                                              "ready 1\n"
                                                              "finished 1 |\n")

/* The worker may have finished, but the driver cannot have heard of this yet. */
TAPE_CASE(whose_agent_is_not_back_yet_is_not_killed_at_the_end,
          "config stall=20s agent_start=1m\n" TAPE_RUNNING "finished 1\n"
          "exited 1\n"
          "kill\n"
          "start\n"
          "hello a #2:1\n"
          "wait 11s | a < DONE 2\n"
          "wait 20s | record ENDED 2 sig9\n"
          "    | a < KILL 2 in 5s: the job is done, but the worker has not ended\n"
          "wait 20s |\n"
          "hello b #3:0 #4:1=exit0 | b < WELCOME_AGENT term 2\n"
          "    | b < DONE 3\n"
          "    | b < DONE 4\n"
          "finished 3,4 | record FINISHED 3\n"
          "    | record FINISHED 4\n"
          "exited 3,4 | record ENDED 3 exit0\n"
          "    | b < FORGET 3\n"
          "    | record ENDED 4 exit0\n"
          "    | record OVER 0: finished; 1 of 4 workers did not reach the end\n"
          "    | a < STOP: finished; 1 of 4 workers did not reach the end\n"
          "    | b < STOP: finished; 1 of 4 workers did not reach the end\n"
          "    | b < FORGET 4\n")

TAPE_CASE(an_endless_worker_is_dismissed_then_killed,
          "config stall=30s\n" TAPE_RUNNING "finished 1\n"
          "exited 1\n"
          "wait 30s | a < DONE 2\n"
          "    | b < DONE 3\n"
          "    | b < DONE 4\n"
          "wait 31s | record ENDED 2 sig9\n"
          "    | a < KILL 2 in 5s: the job is done, but the worker has not ended\n"
          "    | record ENDED 3 sig9\n"
          "    | b < KILL 3 in 5s: the job is done, but the worker has not ended\n"
          "    | record ENDED 4 sig9\n"
          "    | record OVER 0: finished; 3 of 4 workers did not reach the end\n"
          "    | a < STOP: finished; 3 of 4 workers did not reach the end\n"
          "    | b < STOP: finished; 3 of 4 workers did not reach the end\n"
          "    | b < KILL 4 in 5s: the job is done, but the worker has not ended\n"
          "exited 2-4 sig15 | a < FORGET 2\n"
          "    | b < FORGET 3\n"
          "    | b < FORGET 4\n")

TAPE_CASE(a_dismissal_that_was_lost_is_said_again,
          TAPE_RUNNING "finished 1\n"
                       "closed b\n"
                       "exited 2 exit1 | record ENDED 2 exit1\n"
                       "    | a < FORGET 2\n"
                       "hello b #3:0 #4:1 | b < WELCOME_AGENT term 1\n"
                       "    | b < DONE 3\n"
                       "    | b < DONE 4\n")

TAPE_CASE(a_joiner_that_comes_back_is_dismissed,
          TAPE_RUNNING "hosts a:2,b:2,c:1\n"
                       "hello c\n"
                       "ready 5\n"
                       "closed c\n"
                       "finished 1 | record FINISHED 1\n"
                       "    | a,b < ABANDON 1 next 2: the job is finishing\n"
                       "hello c #5:0 | c < WELCOME_AGENT term 1\n"
                       "    | c < DONE 5\n")

TAPE_CASE(an_operator_ends_the_job,
          TAPE_RUNNING "stop me | record OVER 2: stopped by me\n"
                       "    | a < STOP: stopped by me\n"
                       "    | b < STOP: stopped by me\n"
                       "exited 1 sig15 | record ENDED 1 sig15\n"
                       "    | a < FORGET 1\n"
                       "drain a 5s | record DRAIN a until 6s\n"
                       "    | reply HVD_OK\n"
                       "exited 2-4 sig15\n"
                       "closed a | ! a: the agent of this host has ended as told\n"
                       "closed b | exit 2: stopped by me\n")

TAPE_CASE(an_operator_who_asks_twice_does_not_want_to_wait,
          TAPE_RUNNING "stop me\n"
                       "stop me | a < STOP now: stopped by me\n"
                       "    | b < STOP now: stopped by me\n"
                       "wait 9s |\n"
                       "wait 1s | exit 2: stopped by me\n")

TAPE_CASE(agents_that_do_not_end_are_not_waited_for,
          TAPE_RUNNING "stop me\n"
                       "wait 19s |\n"
                       "wait 1s | exit 2: stopped by me\n")

TAPE_CASE(a_host_that_dies_while_the_job_stops_is_not_charged,
          TAPE_RUNNING "stop me\n"
                       "silent b\n"
                       "exited 1,2 sig15\n"
                       "closed a\n"
                       "wait 11s | close b: silent for longer than the lease\n"
                       "    | record ENDED 3 silent\n"
                       "    | record ENDED 4 silent\n"
                       "    | exit 2: stopped by me; hosts that could not be reached: 1 (b); "
                       "workers there end when their agent is heard again, and a running agent "
                       "ends them by itself within 10m10s\n")

/* A grace of "never" is ten years: these workers do not end by themselves. */
TAPE_CASE(workers_that_wait_forever_are_not_said_to_end,
          "config driver_grace=87600h\n" TAPE_RUNNING "stop me\n"
          "silent b\n"
          "exited 1,2 sig15\n"
          "closed a\n"
          "wait 11s | close b: silent for longer than the lease\n"
          "    | record ENDED 3 silent\n"
          "    | record ENDED 4 silent\n"
          "    | exit 2: stopped by me; hosts that could not be reached: 1 (b); "
          "workers there end when their agent is heard again, as --driver-grace is never\n")

TAPE_CASE(an_idle_host_that_dies_while_the_job_stops_is_not_waited_for,
          "config kill_grace=1h\n"
          "start\n"
          "hosts a:1,b:1\n"
          "hello a\nhello b\n"
          "stop me\n"
          "silent b\n"
          "closed a\n"
          "wait 11s | close b: silent for longer than the lease\n"
          "    | exit 2: stopped by me\n")

/* The remaining time does not fall below 0; the sanitizer would report this. */
TAPE_CASE(a_job_that_is_short_while_its_driver_sleeps, "config np=2 elastic_timeout=10s\n"
                                                       "start\n"
                                                       "hosts a:1\n"
                                                       "hello a\n"
                                                       "jump 1m\n"
                                                       "state stopping\n"
                                                       "wait 30s | exit 4: only 0 of 2 workers for "
                                                       "longer than --elastic-timeout; slots "
                                                       "that are listed: 1\n")

TAPE_CASE(a_finished_worker_that_is_drained_does_not_fail_the_job,
          TAPE_RUNNING "finished 1-4\n"
                       "notice b 5s\n"
                       "wait 5s |\n"
                       "exited 1-4 | record ENDED 1 exit0\n"
                       "    | a < FORGET 1\n"
                       "    | record ENDED 2 exit0\n"
                       "    | a < FORGET 2\n"
                       "    | record ENDED 3 exit0\n"
                       "    | b < FORGET 3\n"
                       "    | record ENDED 4 exit0\n"
                       "    | record OVER 0: finished\n"
                       "    | a < STOP: finished\n"
                       "    | b < STOP: finished\n"
                       "    | b < FORGET 4\n")

TAPE_CASE(a_host_that_dies_after_the_end_is_mentioned, TAPE_RUNNING
          "finished 1-4\n"
          "exited 1,2\n"
          "silent b\n"
          "wait 11s | close b: silent for longer than the lease\n"
          "    | record ENDED 3 silent\n"
          "    | record ENDED 4 silent\n"
          "    | record OVER 0: finished; the driver has not seen how 2 workers ended\n"
          "    | a < STOP: finished; the driver has not seen how 2 workers ended\n")

/* ---- which deaths are ordered ---------------------------------------------------------------- */

/* A drained worker and the workers of a job that is stopped end by order. The first FINISHED orders
 * nothing: a worker that dies then has failed. */
TEST(a_worker_that_dies_as_the_training_finishes_has_no_order)
{
    CHECK_OK(t, tape_init(&tape));
    CHECK_PLAY(t, &tape, TAPE_RUNNING "drain a:1 9s\n");
    CHECK(t, !core_ends_by_order(tape.core, 1));
    CHECK(t, core_ends_by_order(tape.core, 2));
    CHECK(t, !core_ends_by_order(tape.core, 99));
    CHECK_PLAY(t, &tape, "finished 3\n");
    CHECK(t, !core_ends_by_order(tape.core, 1));
    CHECK_PLAY(t, &tape, "stop me\n");
    CHECK(t, core_ends_by_order(tape.core, 1));
out:
    tape_release(&tape);
}

/* ---- agents that were not told of the end ---------------------------------------------------- */

/* Host b is silent, and is counted as dead; only its agent may still run. It waits for a driver for
 * the lease and the grace: later there is no agent left to tell. */
TEST(agents_that_were_not_heard_at_the_end_are_known)
{
    struct core_missing missing;
    size_t at = 0;

    CHECK_OK(t, tape_init(&tape));
    CHECK_PLAY(t, &tape, TAPE_RUNNING "silent b\nwait 11s\nstop me\n");
    CHECK(t, core_missing(tape.core, tape.now_us, &at, &missing));
    CHECK_TEXT(t, missing.host, "b");
    CHECK_INT(t, missing.term, ==, 1);
    CHECK(t, !core_missing(tape.core, tape.now_us, &at, &missing));
    at = 0;
    CHECK(t, !core_missing(tape.core, missing.until_us, &at, &missing));
    /* The agent comes back in time: it is not missing. */
    CHECK_PLAY(t, &tape, "hello b\n");
    at = 0;
    CHECK(t, !core_missing(tape.core, tape.now_us, &at, &missing));
out:
    tape_release(&tape);
}
