/*
 * test_core_start.c: the start of a job: conditions, launches, the first round. The first round
 * waits for np workers, later ones for min_np, and no round has more than max_np.
 *
 * Each case is a tape: a text of the events that come in (a line) and of the actions that the
 * driver's core must answer with.
 */
#include "tests/lib/core_tape.h"

static struct core_tape tape;

TAPE_CASE(a_driver_begins, "show\n"
                           "start | record TERM 1\n"
                           "    | discover\n"
                           "jump 0s |\n"
                           "hosts a:2,b:2,c:2 | start a\n"
                           "    | start b\n"
                           "    | start c\n"
                           "hello a | a < WELCOME_AGENT term 1\n"
                           "hello b | b < WELCOME_AGENT term 1\n"
                           "    | record LAUNCH 1 a:0\n"
                           "    | a < LAUNCH 1 in 0 as 0/4 local 0/2 cross 0/2\n"
                           "    | record LAUNCH 2 a:1\n"
                           "    | a < LAUNCH 2 in 1 as 1/4 local 1/2 cross 0/2\n"
                           "    | record LAUNCH 3 b:0\n"
                           "    | b < LAUNCH 3 in 0 as 2/4 local 0/2 cross 1/2\n"
                           "    | record LAUNCH 4 b:1\n"
                           "    | b < LAUNCH 4 in 1 as 3/4 local 1/2 cross 1/2\n")

TAPE_CASE(the_first_round_waits_for_np_slots,
          "config np=3\n"
          "start\n"
          "hosts a:1,b:1 | start a\n"
          "    | start b\n"
          "hello a | a < WELCOME_AGENT term 1\n"
          "hello b | b < WELCOME_AGENT term 1\n"
          "hosts a:1,b:1,c:1 | start c\n"
          "hello c | c < WELCOME_AGENT term 1\n"
          "    | record LAUNCH 1 a:0\n"
          "    | a < LAUNCH 1 in 0 as 0/3 local 0/1 cross 0/3\n"
          "    | record LAUNCH 2 b:0\n"
          "    | b < LAUNCH 2 in 0 as 1/3 local 0/1 cross 1/3\n"
          "    | record LAUNCH 3 c:0\n"
          "    | c < LAUNCH 3 in 0 as 2/3 local 0/1 cross 2/3\n")

TAPE_CASE(np_gates_the_first_round_and_min_np_later_ones,
          "config np=3 min_np=2\n"
          "start\n"
          "hosts a:3\n"
          "hello a\n"
          "launched 1-3\n"
          "ready 1,2 | record READY 1\n"
          "    | record READY 2\n"
          "ready 3 | record READY 3\n"
          "    | record ROUND 1 first after 0 from 1.0 of 1: 1,2,3\n"
          "    | a < ROUND 1 first after 0 from 1.0 of 1: 1,2,3\n"
          "entered 2 | record ENTERED 1\n"
          "entered 1,3\n"
          "exited 3 exit1 | a < REVOKE 1 lost 3: a:2#3: exit code 1\n"
          "    | record ENDED 3 exit1\n"
          "    | bar a:2 (1): exit code 1\n"
          "    | a < FORGET 3\n"
          "recovering 1 held=1.4 | ! a:0#1 has recovered (1 of 2)\n"
          "recovering 2 held=1.4 | record ROUND 2 recovery after 1 from 1.4 of 1,2: 1,2\n"
          "    | a < ROUND 2 recovery after 1 from 1.4 of 1,2: 1,2\n")

TAPE_CASE(max_np_caps_what_is_launched, "config np=2 min_np=1 max_np=3\n"
                                        "start\n"
                                        "hosts b:3,a:2,c:1\n"
                                        "hello b | b < WELCOME_AGENT term 1\n"
                                        "    | record LAUNCH 1 b:0\n"
                                        "    | b < LAUNCH 1 in 0 as 0/3 local 0/3 cross 0/1\n"
                                        "    | record LAUNCH 2 b:1\n"
                                        "    | b < LAUNCH 2 in 1 as 1/3 local 1/3 cross 0/1\n"
                                        "    | record LAUNCH 3 b:2\n"
                                        "    | b < LAUNCH 3 in 2 as 2/3 local 2/3 cross 0/1\n"
                                        "hello a\n"
                                        "hello c\n"
                                        "launched 1-3\n"
                                        "ready 1-3\n"
                                        "entered 1-3 | record ENTERED 1\n"
                                        "wait 5s |\n")

TAPE_CASE(hosts_are_filled_in_the_order_in_which_they_were_printed,
          "config np=5 min_np=1 max_np=5\n"
          "start\n"
          "hosts b:3,a:2,c:1\n"
          "hello a\n"
          "hello b | b < WELCOME_AGENT term 1\n"
          "    | record LAUNCH 1 b:0\n"
          "    | b < LAUNCH 1 in 0 as 0/5 local 0/3 cross 0/2\n"
          "    | record LAUNCH 2 b:1\n"
          "    | b < LAUNCH 2 in 1 as 1/5 local 1/3 cross 0/2\n"
          "    | record LAUNCH 3 b:2\n"
          "    | b < LAUNCH 3 in 2 as 2/5 local 2/3 cross 0/1\n"
          "    | record LAUNCH 4 a:0\n"
          "    | a < LAUNCH 4 in 0 as 3/5 local 0/2 cross 1/2\n"
          "    | record LAUNCH 5 a:1\n"
          "    | a < LAUNCH 5 in 1 as 4/5 local 1/2 cross 1/2\n"
          "state gathering |\n")

/* A fixed size: the ranks go by the list, whichever agent comes first. */
TAPE_CASE(a_job_of_a_fixed_size_waits_for_the_first_hosts,
          "config np=3 max_np=3\n"
          "start\n"
          "hosts a:2,b:4,c:4 | start a\n"
          "    | start b\n"
          "hello b | b < WELCOME_AGENT term 1\n"
          "hello a | a < WELCOME_AGENT term 1\n"
          "    | record LAUNCH 1 a:0\n"
          "    | a < LAUNCH 1 in 0 as 0/3 local 0/2 cross 0/2\n"
          "    | record LAUNCH 2 a:1\n"
          "    | a < LAUNCH 2 in 1 as 1/3 local 1/2 cross 0/1\n"
          "    | record LAUNCH 3 b:0\n"
          "    | b < LAUNCH 3 in 0 as 2/3 local 0/1 cross 1/2\n")

TAPE_CASE(a_first_host_that_cannot_be_reached_is_not_waited_for,
          "config np=2 max_np=2\n"
          "start\n"
          "hosts a:1,b:2,c:4\n"
          "hello b | b < WELCOME_AGENT term 1\n"
          "failed a x | bar a (1): broken\n"
          "    | record LAUNCH 1 b:0\n"
          "    | b < LAUNCH 1 in 0 as 0/2 local 0/2 cross 0/1\n"
          "    | record LAUNCH 2 b:1\n"
          "    | b < LAUNCH 2 in 1 as 1/2 local 1/2 cross 0/1\n")

TAPE_CASE(a_job_that_may_grow_does_not_wait_for_the_first_hosts,
          "config np=2 max_np=3\n"
          "start\n"
          "hosts a:2,b:4\n"
          "hello b | b < WELCOME_AGENT term 1\n"
          "    | record LAUNCH 1 b:0\n"
          "    | b < LAUNCH 1 in 0 as 0/3 local 0/3 cross 0/1\n"
          "    | record LAUNCH 2 b:1\n"
          "    | b < LAUNCH 2 in 1 as 1/3 local 1/3 cross 0/1\n"
          "    | record LAUNCH 3 b:2\n"
          "    | b < LAUNCH 3 in 2 as 2/3 local 2/3 cross 0/1\n")

/* Worker 1 dies, worker 3 starts on host c with rank 0, and all commands end. */
#define RANK_0_GOES_TO_C(term)                             \
    "exited 1 sig9 | record ENDED 1 sig9\n"                \
    "    | bar a:0 (1): killed by signal 9 (SIGKILL)\n"    \
    "    | a < FORGET 1\n"                                 \
    "    | start c\n"                                      \
    "hello c | c < WELCOME_AGENT term " term "\n"          \
    "    | record LAUNCH 3 c:0\n"                          \
    "    | c < LAUNCH 3 in 0 as 0/2 local 0/1 cross 1/2\n" \
    "exited 3 exit0 | record ENDED 3 exit0\n"              \
    "    | c < FORGET 3\n"                                 \
    "wait 30s |\n"                                         \
    "exited 2 exit0 | record ENDED 2 exit0\n"              \
    "    | record OVER 0: every command ended with 0\n"    \
    "    | a < STOP: every command ended with 0\n"         \
    "    | b < STOP: every command ended with 0\n"         \
    "    | c < STOP: every command ended with 0\n"         \
    "    | b < FORGET 2\n"

/* The rank of a command that has died goes to the one that is started for it. */
TAPE_CASE(a_command_in_another_slot_takes_the_rank_over, "config np=2 max_np=2\n"
                                                         "start\n"
                                                         "hosts a:1,b:1,c:1\n"
                                                         "hello a\n"
                                                         "hello b\n" RANK_0_GOES_TO_C("1"))

TAPE_CASE(a_successor_gives_the_same_ranks, "config np=2 max_np=2\n"
                                            "start\n"
                                            "hosts a:1,b:1,c:1\n"
                                            "hello a\n"
                                            "hello b\n"
                                            "kill\n"
                                            "start\n"
                                            "hosts a:1,b:1,c:1\n"
                                            "hello a #1:0\n"
                                            "hello b #2:0\n" RANK_0_GOES_TO_C("2"))

/* The core has forgotten a host that left the list, and its slot is new when it comes back. */
TAPE_CASE(a_successor_gives_the_same_ranks_on_a_host_that_came_back,
          "config np=2 max_np=2 cooldown=20s\n"
          "start\n"
          "hosts a:1,b:1\n"
          "hello a\n"
          "hello b\n"
          "exited 2 sig9\n"
          "closed b\n"
          "hosts a:1\n"
          "wait 12s\n"
          "exited 1 sig9\n"
          "hosts a:1,c:1\n"
          "hosts a:1,c:1,b:1\n"
          "hello b\n"
          "wait 15s | record LAUNCH 3 b:0\n"
          "    | b < LAUNCH 3 in 0 as 0/2 local 0/1 cross 0/1\n"
          "wait 15s | record LAUNCH 4 a:0\n"
          "    | a < LAUNCH 4 in 0 as 1/2 local 0/1 cross 0/2\n"
          "kill\n"
          "start\n"
          "hosts a:1,c:1,b:1\n"
          "hello a #4:0\n"
          "hello b #3:0\n"
          "exited 3 sig9 | record ENDED 3 sig9\n"
          "    | bar b:0 (2): killed by signal 9 (SIGKILL)\n"
          "    | b < FORGET 3\n"
          "wait 30s | record STUCK b:0 1 job 2 since 0.0\n"
          "    | record LAUNCH 5 b:0\n"
          "    | b < LAUNCH 5 in 0 as 0/2 local 0/1 cross 1/2\n")

TAPE_CASE(booting_workers_are_awaited_for_a_moment,
          "config np=2 gather=3s\n"
          "start\n"
          "hosts a:3\n"
          "hello a\n"
          "ready 1,2 | record READY 1\n"
          "    | record READY 2\n"
          "wait 2s |\n"
          "wait 1s | record ROUND 1 first after 0 from 1.0 of 1: 1,2\n"
          "    | a < ROUND 1 first after 0 from 1.0 of 1: 1,2\n")

TAPE_CASE(a_ready_that_comes_twice_changes_nothing, "config np=2\n"
                                                    "start\n"
                                                    "hosts a:2\n"
                                                    "hello a\n"
                                                    "ready 1 | record READY 1\n"
                                                    "ready 1 |\n"
                                                    "launched 1 |\n"
                                                    "output 1 |\n")

TAPE_CASE(an_exit_before_joining_is_charged_and_tried_again,
          "config np=2 min_np=1\n"
          "start\n"
          "hosts a:2\n"
          "hello a\n"
          "ready 1\n"
          "exited 2 exit3 | record ENDED 2 exit3\n"
          "    | bar a:1 (1): exit code 3\n"
          "    | a < FORGET 2\n"
          "exited 2 exit3 | a < FORGET 2\n"
          "wait 25s | record LAUNCH 3 a:1\n"
          "    | a < LAUNCH 3 in 1 as 1/2 local 0/1 cross 0/1\n")

/* A start that failed on b is not reported, because b is not used any more. */
TAPE_CASE(
    a_seat_that_is_left_is_no_hope,
    "config np=2 min_np=1 cooldown=0 progress_restarts=99\n"
    "start\n"
    "hosts a:1,b:1\n"
    "hello a\n"
    "hello b\n"
    "drain b never\n"
    "exited 2 sig15\n"
    "hosts a:1,b:1,c:1\n"
    "hello c\n"
    "exited 1,3 exit1\n"
    "exited 4,5 exit1\n"
    "exited 6,7 exit1\n"
    "exited 8,9 exit1\n"
    "exited 10,11 exit1\n"
    "view | stopping term 1 round 0: , floor 0, resets 0; waits for agents to end their workers\n"
    "    | a there: #12 in 0 launching, of 1\n"
    "    | b there draining: of 1; the host is drained until 'hvd-elastic undrain'\n"
    "    | c there: of 1\n")

TAPE_CASE(a_launch_that_fails_frees_the_seat,
          "config np=2\n"
          "start\n"
          "hosts a:2\n"
          "hello a\n"
          "launchfail 2 -10 | record ENDED 2 exit-10\n"
          "    | bar a:1 (1): the worker could not be started: no\n"
          "    | a < FORGET 2\n"
          "launchfail 2 -10 | ! a: a message about worker #2 was dropped: that worker has ended\n"
          "launchfail 1 -4 | record ENDED 1 exit-4\n"
          "    | a < FORGET 1\n")

/* The agent ends, as on a machine that shuts down, and falls silent. The host is used again when it
 * is back. */
TAPE_CASE(a_host_whose_agent_was_ending_is_used_again,
          "config np=2 min_np=2\n"
          "start\n"
          "hosts a:1,b:1\n"
          "hello a\n"
          "hello b\n"
          "launchfail 1 -4 | record ENDED 1 exit-4\n"
          "    | a < FORGET 1\n"
          "silent a\n"
          "wait 20s | close a: silent for longer than the lease\n"
          "    | bar a (1): silent for longer than the lease\n"
          "wait 30s | start a\n"
          "hello a | a < WELCOME_AGENT term 1\n"
          "    | record LAUNCH 3 a:0\n"
          "    | a < LAUNCH 3 in 0 as 0/2 local 0/1 cross 0/2\n")

TAPE_CASE(a_worker_that_joins_late_is_killed,
          "config np=2 start_timeout=20s\n"
          "start\n"
          "hosts a:2\n"
          "hello a\n"
          "launched 1,2\n"
          "ready 1\n"
          "wait 21s | record ENDED 2 sig9\n"
          "    | bar a:1 (1): the worker did not call hvd_elastic_run within --start-timeout\n"
          "    | a < KILL 2 in 5s: the worker did not call hvd_elastic_run within --start-timeout\n"
          "exited 2 sig15 | a < FORGET 2\n")

TAPE_CASE(
    the_job_fails_when_nobody_ever_joined,
    "config np=2\n"
    "start\n"
    "hosts a:2\n"
    "hello a\n"
    "exited 1 exit2 | record ENDED 1 exit2\n"
    "    | bar a:0 (1): exit code 2\n"
    "    | a < FORGET 1\n"
    "exited 2 exit2 | record ENDED 2 exit2\n"
    "    | bar a:1 (1): exit code 2\n"
    "    | record OVER 1: every worker failed before it joined; the first failure: a:0#1: exit "
    "code 2\n"
    "    | a < STOP: every worker failed before it joined; the first failure: a:0#1: exit code 2\n"
    "    | a < FORGET 2\n"
    "closed a | exit 1: every worker failed before it joined; the first failure: a:0#1: exit code "
    "2\n")

TAPE_CASE(the_first_discovery_must_succeed,
          "start\n"
          "nohosts | record OVER 1: the first discovery has failed: broken\n"
          "    | exit 1: the first discovery has failed: broken\n")

TAPE_CASE(later_failures_keep_the_last_good_set,
          "config np=2\n"
          "start\n"
          "hosts a:2\n"
          "nohosts |\n"
          "hosts a:2 |\n"
          "hello a | a < WELCOME_AGENT term 1\n"
          "    | record LAUNCH 1 a:0\n"
          "    | a < LAUNCH 1 in 0 as 0/2 local 0/2 cross 0/1\n"
          "    | record LAUNCH 2 a:1\n"
          "    | a < LAUNCH 2 in 1 as 1/2 local 1/2 cross 0/1\n")

TAPE_CASE(discovery_may_fail_before_a_host_is_used, "config np=2\n"
                                                    "start\n"
                                                    "failed a x |\n"
                                                    "hosts a:2\n"
                                                    "failed a x | bar a (1): broken\n"
                                                    "failed a x |\n"
                                                    "wait 30s | start a\n")

TAPE_CASE(a_host_that_has_left_the_list_is_not_charged, "config np=2\n"
                                                        "start\n"
                                                        "hosts a:2,b:2\n"
                                                        "hosts b:2\n"
                                                        "failed a x |\n"
                                                        "hosts a:2,b:2 | start a\n"
                                                        "failed a x | bar a (1): broken\n")

TAPE_CASE(an_agent_that_never_says_hello_charges_its_host,
          "config np=2 agent_start=15s\n"
          "start\n"
          "hosts a:2 | start a\n"
          "wait 15s | bar a (1): the agent of this host did not say hello in time\n")

TAPE_CASE(an_agent_that_strangers_keep_out_does_not_charge_its_host,
          "config np=2 agent_start=15s\n"
          "start\n"
          "hosts a:2 | start a\n"
          "wait 5s |\n"
          "crowd |\n"
          "wait 10s | start a\n"
          "wait 15s | bar a (1): the agent of this host did not say hello in time\n") /* the crowd
                                                                                         is over */

TAPE_CASE(a_crowd_before_an_agent_was_started_excuses_nothing,
          "config np=2 agent_start=15s\n"
          "start\n"
          "crowd |\n"
          "wait 1s |\n"
          "hosts a:2 | start a\n"
          "wait 15s | bar a (1): the agent of this host did not say hello in time\n")

TAPE_CASE(a_host_that_cannot_be_reached_is_not_tried_at_every_moment,
          "config np=2 cooldown=0 beat=1s\n"
          "start\n"
          "hosts a:2 | start a\n"
          "failed a x | bar a (1): broken\n"
          "wait 1s | start a\n"
          "failed a x | bar a (2): broken\n"
          "clear a | bar a (0): cleared by the operator\n"
          "    | reply HVD_OK\n"
          "    | start a\n")

TAPE_CASE(the_job_waits_for_workers_only_so_long,
          "config np=2 elastic_timeout=30s\n"
          "start\n"
          "hosts a:1\n"
          "wait 29s |\n"
          "wait 1s | record OVER 4: only 0 of 2 workers for longer than --elastic-timeout; slots "
          "that are listed: 1\n"
          "    | exit 4: only 0 of 2 workers for longer than --elastic-timeout; slots "
          "that are listed: 1\n")

TAPE_CASE(the_first_hosts_are_waited_for_no_longer_than_the_start_timeout,
          "config np=2 elastic_timeout=60s start_timeout=20s\n"
          "start\n"
          "hosts a:1\n"
          "wait 19s |\n"
          "wait 1s | record OVER 4: only 0 of 2 workers for longer than --start-timeout; slots "
          "that are listed: 1\n"
          "    | exit 4: only 0 of 2 workers for longer than --start-timeout; slots "
          "that are listed: 1\n")

TAPE_CASE(a_job_that_has_started_waits_for_the_elastic_timeout,
          "config np=2 elastic_timeout=60s start_timeout=20s\n"
          "start\n"
          "hosts a:1,b:1\n"
          "hello a\n"
          "hello b\n"
          "launched 1,2\n"
          "ready 1\n"
          "drain b never\n"
          "exited 2 sig15\n"
          "wait 50s |\n"
          "state gathering |\n")

TAPE_CASE(a_shortage_that_ends_gives_the_whole_time_back,
          "config np=2 elastic_timeout=60s\n"
          "start\n"
          "hosts a:2\n"
          "hello a\n"
          "ready 1,2\n"
          "entered 1,2\n"
          "hosts a:1\n"
          "exited 2 exit1\n"
          "recovering 1 held=1.1\n"
          "wait 40s\n"
          "hosts a:2 | record LAUNCH 3 a:1\n"
          "    | a < LAUNCH 3 in 1 as 1/2 local 0/1 cross 0/1\n"
          "ready 3\n"
          "entered 1,3\n"
          "hosts a:1\n"
          "exited 3 exit1\n"
          "recovering 1 held=2.1\n"
          "wait 40s\n"
          "state recovering |\n"
          "wait 30s | record OVER 4: only 1 of 2 workers for longer than --elastic-timeout; slots "
          "that are listed: 1\n"
          "    | a < STOP: only 1 of 2 workers for longer than --elastic-timeout; slots "
          "that are listed: 1\n")

/* No worker can be launched, and there is no host to wait for. */
TAPE_CASE(
    the_job_ends_when_every_slot_is_barred,
    "config np=1 min_np=1 forever=1\n"
    "start\n"
    "hosts a:2\n"
    "hello a\n"
    "ready 1,2\n"
    "entered 1,2\n"
    "exited 1 exit1\n"
    "exited 2 exit1 | record ENDED 2 exit1\n"
    "    | bar a:1 (1): exit code 1\n"
    "    | record OVER 1: every worker of round 1 has failed; the first failure: a:0#1: exit code "
    "1\n"
    "    | a < STOP: every worker of round 1 has failed; the first failure: a:0#1: exit code 1\n"
    "    | a < FORGET 2\n"
    "closed a\n")

TAPE_CASE(
    failures_before_joining_are_counted_across_drivers,
    "config np=2 min_np=2 forever=1\n"
    "start\n"
    "hosts a:2\n"
    "hello a\n"
    "exited 1 exit1\n"
    "kill\n"
    "start\n"
    "hosts a:2\n"
    "hello a #2:1=exit1 | a < WELCOME_AGENT term 2\n"
    "exited 2 exit1 | record ENDED 2 exit1\n"
    "    | bar a:1 (1): exit code 1\n"
    "    | record OVER 1: every worker failed before it joined; the first failure: a:1#2: exit "
    "code 1\n"
    "    | a < STOP: every worker failed before it joined; the first failure: a:1#2: exit code 1\n"
    "    | a < FORGET 2\n")

/* status shows for how long the job has too few workers: from the beginning of the shortage, not
 * from the last step of the core. */
TEST(a_shortage_counts_from_its_beginning)
{
    struct core_view view;
    int64_t began_us;

    core_view_init(&view);
    CHECK_OK(t, tape_init(&tape));
    CHECK_PLAY(t, &tape,
               "config np=2 min_np=2\nstart\nhosts a:2\nhello a\nready 1,2\n"
               "entered 1,2\nwait 20s\nhosts a:1\nexited 2 exit1\n");
    began_us = tape.now_us;
    CHECK_PLAY(t, &tape, "recovering 1 held=1.1\nwait 30s\nhosts a:1\nwait 5s\n");
    CHECK_OK(t, core_view(tape.core, &view));
    CHECK_INT(t, view.shortage.since_us, ==, began_us);
    CHECK_INT(t, view.shortage.fails_us, ==, began_us + tape.config.elastic_timeout_us);
    CHECK_PLAY(t, &tape, "hosts a:2\nready 3\nentered 1,3\n");
    CHECK_OK(t, core_view(tape.core, &view));
    CHECK_INT(t, view.shortage.since_us, ==, TIME_NEVER);
    CHECK_INT(t, view.shortage.fails_us, ==, TIME_NEVER);
out:
    core_view_release(&view);
    tape_release(&tape);
}
