/*
 * test_core_cost.c: the cost of each change as the driver counts it.
 * A figure is only given for a change that this driver saw from its start.
 */
#include "tests/lib/core_tape.h"

static struct core_tape tape;

TAPE_CASE(
    the_first_round, TAPE_LAUNCHED
    "ready 1-4\n"
    "wait 1s\n"
    "entered 1 rebuild=3ms state=9ms step=1ms\n"
    "entered 2 rebuild=5ms state=2ms step=700ms\n"
    "entered 3\n"
    "entered 4 | ! round 1: all 4 train (first 1s: rebuild 5ms, state 9ms, first step 700ms)\n")

TAPE_CASE(a_recovery_counts_from_the_loss,
          TAPE_RUNNING "exited 4 exit1\n"
                       "wait 20ms\n"
                       "recovering 1-3 held=1.1\n"
                       "wait 300ms\n"
                       "entered 1-2 rebuild=11ms state=1ms step=9ms\n"
                       "entered 3 rebuild=9ms state=2ms step=12ms | ! round 2: all 3 train "
                       "(recovery 320ms: agree 20ms, rebuild 11ms, state 2ms, first step 12ms)\n")

/* No worker trains from the first loss to the end of the second recovery. */
TAPE_CASE(a_recovery_that_fails_counts,
          TAPE_RUNNING "exited 4 exit1\n"
                       "recovering 1-3 held=1.1\n"
                       "wait 1s\n"
                       "entered 1\n"
                       "exited 3 exit1\n"
                       "recovering 1-2 held=1.1\n"
                       "wait 500ms\n"
                       "entered 1 |\n"
                       "entered 2 | ! round 3: all 2 train "
                       "(recovery 1.5s: agree 1s, rebuild 0s, state 0s, first step 0s)\n")

/* They train on until the agreed check. */
TAPE_CASE(a_switch_costs_what_those_lose_who_stay,
          "config max_np=5\n" TAPE_RUNNING "hosts a:2,b:2,c:1\n"
          "hello c\n"
          "ready 5\n"
          "wait 50ms\n"
          "prepared 1-5\n"
          "at 1-4 3\n"
          "wait 10s\n"
          "entered 1-4 rebuild=1ms step=20ms\n"
          "entered 5 rebuild=10s state=15ms step=25ms | ! round 2: all 5 train "
          "(switch 21ms: agree 50ms beside it, rebuild 1ms, state 15ms, first step 20ms)\n")

/* A driver that was not there from the beginning cannot say it. */
TAPE_CASE(a_successor_does_not_report_the_cost,
          TAPE_LAUNCHED "ready 1-4\n"
                        "entered 1-3\n"
                        "kill\n"
                        "start\n"
                        "hosts a:2,b:2\n"
                        "hello a #1:0 #2:1\n"
                        "hello b #3:0 #4:1\n"
                        "entered 1-3\n"
                        "entered 4 | ! round 1: all 4 train\n")
