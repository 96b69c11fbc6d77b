/*
 * test_core_loss.c: workers that die, and the slot that gets the blame. Each end counts once, for
 * the right slot or for none.
 *
 * Each case is a tape: a text of the events that come in (a line) and of the actions that the
 * driver's core must answer with.
 */
#include "tests/lib/core_tape.h"

static struct core_tape tape;

/* The other workers hear of the death before it is on disk; the slot cools down and gets a new
 * worker. */
TAPE_CASE(a_failure_is_charged_to_its_slot, TAPE_RUNNING
          "exited 2 sig11 | a,b < REVOKE 1 lost 2: a:1#2: killed by signal 11 (SIGSEGV)\n"
          "    | record ENDED 2 sig11\n"
          "    | bar a:1 (1): killed by signal 11 (SIGSEGV)\n"
          "    | a < FORGET 2\n"
          "recovering 1,3,4 held=1.1\n"
          "wait 22s | record LAUNCH 5 a:1\n"
          "    | a < LAUNCH 5 in 1 as 3/4 local 0/1 cross 0/1\n")

/* A code of 0 is a failure once a worker has joined. */
TAPE_CASE(exit_0_before_the_end_is_a_failure,
          TAPE_RUNNING "exited 2 | a,b < REVOKE 1 lost 2: a:1#2: exit code 0 before the worker's "
                       "training had finished\n"
                       "    | record ENDED 2 exit0\n"
                       "    | bar a:1 (1): exit code 0 before the worker's training had finished\n"
                       "    | a < FORGET 2\n")

/* The agent ends the unusable worker by itself; the slot is free after that. */
TAPE_CASE(
    an_unusable_worker_is_dead_at_once, TAPE_RUNNING
    "unusable 2 | a,b < REVOKE 1 lost 2: a:1#2: the worker cannot go on: its device is stuck\n"
    "    | record ENDED 2 sig9\n"
    "    | bar a:1 (1): the worker cannot go on: its device is stuck\n"
    "unusable 2 |\n"
    "recovering 2 held=1.1 |\n"
    "recovering 1,3,4 held=1.1\n"
    "exited 2 sig9 | a < FORGET 2\n"
    "unusable 2 | ! a: a message about worker #2 was dropped: that worker has ended\n"
    "wait 22s | record LAUNCH 5 a:1\n"
    "    | a < LAUNCH 5 in 1 as 3/4 local 0/1 cross 0/1\n")

/* A worker that has left its round, or has never been in one, may also report that it is
 * unusable. */
TAPE_CASE(an_unusable_worker_may_be_in_no_round,
          TAPE_LAUNCHED "ready 1,2\n"
                        "unusable 2 | record ENDED 2 sig9\n"
                        "    | bar a:1 (1): the worker cannot go on: its device is stuck\n")

TAPE_CASE(an_end_counts_once,
          TAPE_RUNNING "exited 2 exit1 | a,b < REVOKE 1 lost 2: a:1#2: exit code 1\n"
                       "    | record ENDED 2 exit1\n"
                       "    | bar a:1 (1): exit code 1\n"
                       "    | a < FORGET 2\n"
                       "exited 2 exit1 | a < FORGET 2\n"
                       "exited 99 exit1 |\n"
                       "exited 1 running |\n"
                       "exited 3 exit1 from=a |\n")

TAPE_CASE(no_agent_speaks_for_workers_of_another_host, TAPE_RUNNING
          "finished 3 from=a | ! a: a statement of this host's agent is refused: the agent "
          "sends FINISHED about worker #3, which runs on b\n"
          "left 3 from=a | ! a: a statement of this host's agent is refused: the agent "
          "sends LEFT about worker #3, which runs on b\n"
          "output 99 from=a | ! a: a statement of this host's agent is refused: the agent "
          "sends OUTPUT about worker #99, which was never launched\n")

TAPE_CASE(a_round_has_two_deaths, TAPE_RUNNING
          "exited 3,4 sig9 | a,b < REVOKE 1 lost 3: b:0#3: killed by signal 9 (SIGKILL)\n"
          "    | record ENDED 3 sig9\n"
          "    | bar b:0 (1): killed by signal 9 (SIGKILL)\n"
          "    | b < FORGET 3\n"
          "    | record ENDED 4 sig9\n"
          "    | bar b:1 (1): killed by signal 9 (SIGKILL)\n"
          "    | b < FORGET 4\n"
          "recovering 1 held=1.1 | ! a:0#1 has recovered (1 of 2)\n"
          "recovering 2 held=1.1 | record ROUND 2 recovery after 1 from 1.1 of 1,2: 1,2\n"
          "    | a < ROUND 2 recovery after 1 from 1.1 of 1,2: 1,2\n")

TAPE_CASE(a_failure_on_a_host_that_goes_is_not_charged,
          TAPE_RUNNING "hosts a:2,b:1\n"
                       "exited 4 exit1 | a,b < ABANDON 1 next 2: b:1#4: exit code 1\n"
                       "    | a,b < REVOKE 1 lost 4: b:1#4: exit code 1\n"
                       "    | record ENDED 4 exit1\n"
                       "    | b < FORGET 4\n")

TAPE_CASE(
    scope_host_takes_the_whole_host_out,
    "config scope=host min_np=1\n" TAPE_RUNNING
    "exited 3 exit1 | a,b < REVOKE 1 lost 3: b:0#3: exit code 1\n"
    "    | record ENDED 3 exit1\n"
    "    | bar b (1): slot 0: exit code 1\n"
    "    | record ENDED 4 sig9\n"
    "    | b < KILL 4 in 5s: the worker's host is set aside, because another worker failed there\n"
    "    | b < FORGET 3\n"
    "recovering 1,2 held=1.1 | record ROUND 2 recovery after 1 from 1.1 of 1,2: 1,2\n"
    "    | a < ROUND 2 recovery after 1 from 1.1 of 1,2: 1,2\n"
    "exited 4 sig15 | b < FORGET 4\n")

TAPE_CASE(scope_slot_leaves_healthy_workers_alone,
          "config min_np=1\n" TAPE_RUNNING "exited 3 exit1\n"
          "recovering 1,2,4 held=1.1 | record ROUND 2 recovery after 1 from 1.1 of 1,2,4: 1,2,4\n"
          "    | a,b < ROUND 2 recovery after 1 from 1.1 of 1,2,4: 1,2,4\n")

TAPE_CASE(the_cooldown_ends_and_the_slot_is_used_again,
          "config np=2 min_np=1\n"
          "start\n"
          "hosts a:2\n"
          "hello a\n"
          "ready 1,2\n"
          "entered 1,2\n"
          "exited 2 exit1\n"
          "recovering 1 held=1.1\n"
          "entered 1\n"
          "wait 9s |\n"
          "wait 12s | record LAUNCH 3 a:1\n"
          "    | a < LAUNCH 3 in 1 as 1/2 local 0/1 cross 0/1\n")

TAPE_CASE(an_operator_forgives_a_slot, "config np=2 min_np=1 forever=1\n"
                                       "start\n"
                                       "hosts a:2\n"
                                       "hello a\n"
                                       "ready 1,2\n"
                                       "entered 1,2\n"
                                       "exited 2 exit1\n"
                                       "recovering 1 held=1.1\n"
                                       "clear a:1 | bar a:1 (0): cleared by the operator\n"
                                       "    | reply HVD_OK\n"
                                       "    | record LAUNCH 3 a:1\n"
                                       "    | a < LAUNCH 3 in 1 as 1/2 local 0/1 cross 0/1\n"
                                       "clear a:1 | bar a:1 (0): cleared by the operator\n"
                                       "    | reply HVD_OK\n"
                                       "clear b | reply HVD_E_NOTFOUND: \"b\": this host is not "
                                       "on the blacklist; run 'hvd-elastic blacklist' to list "
                                       "those that are\n"
                                       "clear a:9 | reply HVD_E_NOTFOUND: \"a:9\": this slot is "
                                       "not on the blacklist; run 'hvd-elastic blacklist' to list "
                                       "those that are\n")

TAPE_CASE(an_operator_forgives_a_host, "config np=2\n"
                                       "start\n"
                                       "hosts a:2\n"
                                       "failed a x\n"
                                       "clear a | bar a (0): cleared by the operator\n"
                                       "    | reply HVD_OK\n"
                                       "    | start a\n")

TAPE_CASE(forgiving_a_host_forgives_its_slots,
          "config np=2 min_np=1 forever=1\n"
          "start\n"
          "hosts a:2,b:1\n"
          "hello a\n"
          "hello b\n"
          "ready 1-3\n"
          "entered 1-3\n"
          "exited 2 exit1\n"
          "exited 3 exit1\n"
          "recovering 1 held=1.1\n"
          "entered 1\n"
          "held | a:1 (1, never): exit code 1\n"
          "    | b:0 (1, never): exit code 1\n"
          "clear a | bar a:1 (0): cleared by the operator\n"
          "    | reply HVD_OK\n"
          "    | record LAUNCH 4 a:1\n"
          "    | a < LAUNCH 4 in 1 as 1/2 local 0/1 cross 0/1\n"
          "held | b:0 (1, never): exit code 1\n")

TAPE_CASE(workers_with_another_state_are_turned_away,
          "config np=2 min_np=1\n"
          "start\n"
          "hosts a:3\n"
          "hello a\n"
          "ready 1 entries=w:8,b:4 | record READY 1\n"
          "ready 2 manifest=6 entries=w:8,b:5 | record READY 2\n"
          "    | record ENDED 2 sig9\n"
          "    | bar a:1 (1): the worker's state differs: entry \"b\" has 5 bytes on this worker, "
          "and 4 bytes on other workers; "
          "run the same program on all hosts\n"
          "    | a < KILL 2 in 5s: the worker's state differs: entry \"b\" has 5 bytes on this "
          "worker, and 4 bytes on other workers; run the same program on all hosts\n"
          "ready 3 manifest=7 entries=w:8,c:4 | record READY 3\n"
          "    | record ENDED 3 sig9\n"
          "    | bar a:2 (1): the worker's state differs: entry 2 is \"c\" on this worker, and "
          "\"b\" on other workers; run "
          "the same program on all hosts\n"
          "    | a < KILL 3 in 5s: the worker's state differs: entry 2 is \"c\" on this worker, "
          "and \"b\" on other workers; run the same program on all hosts\n")

TAPE_CASE(
    workers_with_other_types_are_turned_away,
    "config np=2 min_np=1\n"
    "start\n"
    "hosts a:4\n"
    "hello a\n"
    "ready 1 entries=w:8:7,b:4 | record READY 1\n"
    "ready 2 manifest=6 entries=w:8:8,b:4 | record READY 2\n"
    "    | record ENDED 2 sig9\n"
    "    | bar a:1 (1): the worker's state differs: entry \"w\" consists of float64 on this "
    "worker, and of float32 on other workers; run the same program on all hosts\n"
    "    | a < KILL 2 in 5s: the worker's state differs: entry \"w\" consists of float64 on this "
    "worker, and of float32 on other workers; run the same program on all hosts\n"
    "ready 3 manifest=7 entries=w:8:64,b:4 | record READY 3\n"
    "    | record ENDED 3 sig9\n"
    "    | bar a:2 (1): the worker's state differs: entry \"w\" consists of an unknown type on "
    "this worker, and of float32 on other workers; run the same program on all hosts\n"
    "    | a < KILL 3 in 5s: the worker's state differs: entry \"w\" consists of an unknown type "
    "on this worker, and of float32 on other workers; run the same program on all hosts\n"
    "ready 4 manifest=8 entries=w:8:7,b:4! | record READY 4\n"
    "    | record ENDED 4 sig9\n"
    "    | bar a:3 (1): the worker's state differs: functions of the program save entry \"b\" on "
    "some "
    "workers "
    "only; run the same program on all hosts\n"
    "    | a < KILL 4 in 5s: the worker's state differs: functions of the program save entry \"b\" "
    "on some "
    "workers only; run the same program on all hosts\n")

TAPE_CASE(a_worker_with_more_entries_is_turned_away,
          "config np=2 min_np=1\n"
          "start\n"
          "hosts a:4\n"
          "hello a\n"
          "ready 1 entries=w:8\n"
          "ready 2 manifest=6 entries=w:8,b:5 | record READY 2\n"
          "    | record ENDED 2 sig9\n"
          "    | bar a:1 (1): the worker's state differs: entry \"b\" is missing on other workers; "
          "run the "
          "same program on all hosts\n"
          "    | a < KILL 2 in 5s: the worker's state differs: entry \"b\" is missing on other "
          "workers; run "
          "the same program on all hosts\n"
          "ready 3 manifest=7 | record READY 3\n"
          "    | record ENDED 3 sig9\n"
          "    | bar a:2 (1): the worker's state differs from the state of the other workers; run "
          "the same program on "
          "all hosts\n"
          "    | a < KILL 3 in 5s: the worker's state differs from the state of the other workers; "
          "run the same program "
          "on all hosts\n"
          "ready 4 manifest=5 entries=w:8 | record READY 4\n"
          "    | record ROUND 1 first after 0 from 1.0 of 1: 1,4\n"
          "    | a < ROUND 1 first after 0 from 1.0 of 1: 1,4\n")

TAPE_CASE(the_first_worker_may_be_the_different_worker,
          "config np=3 min_np=1\n"
          "start\n"
          "hosts a:4\n"
          "hello a\n"
          "ready 1 entries=W:8\n"
          "ready 2 manifest=6 entries=w:8 | record READY 2\n"
          "    | record ENDED 2 sig9\n"
          "    | bar a:1 (1): the worker's state differs: entry 1 is \"w\" on this worker, and "
          "\"W\" on other workers; run the "
          "same program on all hosts\n"
          "    | a < KILL 2 in 5s: the worker's state differs: entry 1 is \"w\" on this worker, "
          "and \"W\" on other workers; run "
          "the same program on all hosts\n"
          "ready 3 manifest=6 entries=w:8 | record READY 3\n"
          "    | record ENDED 1 sig9\n"
          "    | bar a:0 (1): the worker's state differs from the state of most workers; run the "
          "same program on all hosts\n"
          "    | a < KILL 1 in 5s: the worker's state differs from the state of most workers; run "
          "the same program on all "
          "hosts\n"
          "ready 4 manifest=6 entries=w:8 | record READY 4\n")

TAPE_CASE(the_first_entries_may_come_later,
          "config np=2 min_np=1\n"
          "start\n"
          "hosts a:3\n"
          "hello a\n"
          "ready 1\n"
          "ready 2 manifest=6 entries=w:8 | record READY 2\n"
          "    | record ENDED 2 sig9\n"
          "    | bar a:1 (1): the worker's state differs from the state of the other workers; run "
          "the same program on "
          "all hosts\n"
          "    | a < KILL 2 in 5s: the worker's state differs from the state of the other workers; "
          "run the same program "
          "on all hosts\n"
          "ready 3 entries=w:8 | record READY 3\n"
          "    | record ROUND 1 first after 0 from 1.0 of 1: 1,3\n"
          "    | a < ROUND 1 first after 0 from 1.0 of 1: 1,3\n")

/* A shell command never joins a round: its exit code is all that the driver gets. */
TAPE_CASE(commands_that_end_with_0_are_the_job, "config np=2 min_np=1\n"
                                                "start\n"
                                                "hosts a:2\n"
                                                "hello a\n"
                                                "launched 1,2\n"
                                                "exited 1 exit0 | record ENDED 1 exit0\n"
                                                "    | a < FORGET 1\n"
                                                "wait 5s |\n"
                                                "exited 2 exit0 | record ENDED 2 exit0\n"
                                                "    | record OVER 0: every command ended with 0\n"
                                                "    | a < STOP: every command ended with 0\n"
                                                "    | a < FORGET 2\n"
                                                "closed a\n")

TAPE_CASE(a_command_that_fails_is_tried_again,
          "config np=2 min_np=1\n"
          "start\n"
          "hosts a:2\n"
          "hello a\n"
          "launched 1,2\n"
          "exited 1 exit0\n"
          "exited 2 exit1 | record ENDED 2 exit1\n"
          "    | bar a:1 (1): exit code 1\n"
          "    | a < FORGET 2\n"
          "wait 20s | record LAUNCH 3 a:1\n"
          "    | a < LAUNCH 3 in 1 as 1/2 local 1/2 cross 0/1\n"
          "exited 3 exit0 | record ENDED 3 exit0\n"
          "    | record OVER 0: every command ended with 0\n"
          "    | a < STOP: every command ended with 0\n"
          "    | a < FORGET 3\n")

/* The command's work is the part of its rank, and the commands of the other ranks have ended
 * well. */
TAPE_CASE(a_command_is_tried_again_as_the_same_rank,
          "config np=3 min_np=1\n"
          "start\n"
          "hosts a:2,b:1\n"
          "hello a\n"
          "hello b\n"
          "exited 1,3 exit0\n"
          "exited 2 exit7\n"
          "wait 20s | record LAUNCH 4 a:1\n"
          "    | a < LAUNCH 4 in 1 as 1/3 local 1/2 cross 0/1\n")

TAPE_CASE(a_program_that_cannot_be_started_is_not_tried_again,
          "config np=1 min_np=1\n"
          "start\n"
          "hosts a:1\n"
          "hello a\n"
          "launchfail 1 -5 | record ENDED 1 exit-5\n"
          "    | bar a:0 (1): the worker could not be started: no\n"
          "    | record OVER 1: every worker failed before it joined; the first failure: a:0#1: "
          "the worker could not be started: no\n"
          "    | a < STOP: every worker failed before it joined; the first failure: a:0#1: the "
          "worker could not be started: no\n"
          "    | a < FORGET 1\n")

TAPE_CASE(once_somebody_joins_commands_start_again,
          "config np=2 min_np=1\n"
          "start\n"
          "hosts a:2\n"
          "hello a\n"
          "exited 1 exit0\n"
          "ready 2 | record READY 2\n"
          "    | record LAUNCH 3 a:0\n"
          "    | a < LAUNCH 3 in 0 as 1/2 local 0/1 cross 0/1\n")

TAPE_CASE(a_host_that_goes_takes_its_ended_commands_along,
          "config np=2 min_np=1 max_np=2\n"
          "start\n"
          "hosts a:1,b:1,c:1\n"
          "hello a\n"
          "hello b\n"
          "exited 1 exit0\n"
          "hosts b:1,c:1 | start c\n"
          "hello c\n"
          "exited 2 exit0\n"
          "exited 3 exit0 | record ENDED 3 exit0\n"
          "    | record OVER 0: every command ended with 0\n"
          "    | a < STOP: every command ended with 0\n"
          "    | b < STOP: every command ended with 0\n"
          "    | c < STOP: every command ended with 0\n"
          "    | c < FORGET 3\n")

TAPE_CASE(an_agent_that_ends_is_not_asked_again_and_again,
          "config np=2 min_np=1\n"
          "start\n"
          "hosts a:2\n"
          "hello a\n"
          "launchfail 1 -4 | record ENDED 1 exit-4\n"
          "    | a < FORGET 1\n"
          "launchfail 2 -4 | record ENDED 2 exit-4\n"
          "    | a < FORGET 2\n"
          "wait 3s |\n"
          "closed a\n"
          "hello a agent=8 | a < WELCOME_AGENT term 1\n"
          "    | record LAUNCH 3 a:0\n"
          "    | a < LAUNCH 3 in 0 as 0/2 local 0/2 cross 0/1\n"
          "    | record LAUNCH 4 a:1\n"
          "    | a < LAUNCH 4 in 1 as 1/2 local 1/2 cross 0/1\n")
