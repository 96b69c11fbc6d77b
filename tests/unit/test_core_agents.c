/*
 * test_core_agents.c: agents as the driver sees them: hello, refusal, lease (the time in which the
 * driver must hear from an agent), end. An agent that cannot belong to this job changes nothing in
 * the job.
 *
 * Each case is a tape: a text of the events that come in (a line) and of the actions that the
 * driver's core must answer with.
 */
#include "tests/lib/core_tape.h"

static struct core_tape tape;

TAPE_CASE(an_agent_of_another_job_is_refused,
          "start\n"
          "hello a job=x | a < REFUSED: the agent belongs to another job\n"
          "    | close a: the agent belongs to another job\n"
          "hello a job=x term=9 | a < REFUSED: the agent belongs to another job\n"
          "    | close a: the agent belongs to another job\n")

TAPE_CASE(an_agent_of_an_impossible_host_is_refused,
          "start\n"
          "hello a.-/ job=j | a.-/ < REFUSED: the agent's host name is not valid: \"a.-/\": \"/\" "
          "cannot be in a host "
          "name; use letters, digits, '.', '_' and '-'\n"
          "    | close a.-/: the agent's host name is not valid: \"a.-/\": \"/\" cannot be in a "
          "host name; use "
          "letters, digits, '.', '_' and '-'\n")

/* Both signs together, in any order, mean that the agent is gone: the driver does not wait for the
 * end of the lease, unless the agent connects again. */
TAPE_CASE(an_agent_that_hangs_up_and_is_unlisted_is_gone,
          TAPE_RUNNING "closed b | start b\n"
                       "hosts a:2 | a < HOSTS_UPDATED 1 +0 -1\n"
                       "    | record NUMBER 2\n"
                       "    | a < PREPARE 2 after 1: 1,2\n"
                       "wait 1s | a < ABANDON 1 next 2: b:0#3: the worker's host is gone\n"
                       "    | a < REVOKE 1 lost 3: b:0#3: the worker's host is gone\n"
                       "    | record ENDED 3 silent\n"
                       "    | record ENDED 4 silent\n")

TAPE_CASE(an_unlisted_agent_that_hangs_up_is_gone,
          TAPE_RUNNING "hosts a:2 | a,b < HOSTS_UPDATED 1 +0 -1\n"
                       "    | record NUMBER 2\n"
                       "    | a,b < PREPARE 2 after 1: 1,2\n"
                       "closed b | start b\n"
                       "wait 1999ms |\n"
                       "wait 1ms | a < ABANDON 1 next 2: b:0#3: the worker's host is gone\n"
                       "    | a < REVOKE 1 lost 3: b:0#3: the worker's host is gone\n"
                       "    | record ENDED 3 silent\n"
                       "    | record ENDED 4 silent\n")

TAPE_CASE(a_gone_host_delays_no_recovery, TAPE_RUNNING
          "hosts a:2\n"
          "closed b | start b\n"
          "recovering 1 held=1.1 | a < ABANDON 1 next 2: a:0#1: the worker's collectives failed\n"
          "    | a < REVOKE 1: a:0#1: the worker's collectives failed\n"
          "    | record ENDED 3 silent\n"
          "    | record ENDED 4 silent\n"
          "recovering 2 held=1.1 | record ROUND 3 recovery after 1 from 1.1 of 1,2: 1,2\n"
          "    | a < ROUND 3 recovery after 1 from 1.1 of 1,2: 1,2\n")

TAPE_CASE(a_host_that_goes_in_a_recovery_causes_no_delay,
          TAPE_RUNNING "recovering 1,2 held=1.1\n"
                       "hosts a:2\n"
                       "closed b | record ENDED 3 silent\n"
                       "    | record ENDED 4 silent\n"
                       "    | record ROUND 2 recovery after 1 from 1.1 of 1,2: 1,2\n"
                       "    | a < ROUND 2 recovery after 1 from 1.1 of 1,2: 1,2\n")

TAPE_CASE(
    reports_that_cannot_be_are_refused, TAPE_RUNNING
    "hello c #9:0 | c < REFUSED: the agent reports worker #9, which was never launched\n"
    "    | close c: the agent reports worker #9, which was never launched\n"
    "hello c #1:0 | c < REFUSED: the agent reports worker #1, which runs in another slot or on "
    "another host\n"
    "    | close c: the agent reports worker #1, which runs in another slot or on another host\n"
    "closed a\n"
    "hello a #1:1 | a < REFUSED: the agent reports worker #1, which runs in another slot or on "
    "another host\n"
    "    | close a: the agent reports worker #1, which runs in another slot or on another host\n"
    "hello a #0:1 | a < REFUSED: the agent reports worker #0, which was never launched\n"
    "    | close a: the agent reports worker #0, which was never launched\n")

/* Only the job's file says which driver owns the job: an agent that lies ends no driver. */
#define TERMS(term, ours)                                           \
    "the agent obeys term " term ", but this driver has term " ours \
    "; the job's file says which driver owns the job\n"
TAPE_CASE(a_higher_term_makes_the_driver_ask_the_file, TAPE_RUNNING
          "hello c term=2 | check owner\n"
          "    | c < REFUSED: " TERMS("2", "1") "    | close c: " TERMS(
              "2",
              "1") "hello c term=9223372036854775807 | check owner\n"
                   "    | c < REFUSED: " TERMS("9223372036854775807", "1") "    | close c: " TERMS(
                       "9223372036854775807",
                       "1") "hello c | c < "
                            "WELCOME_AGENT term 1\n"
                            "    | c < STOP: the job does not use this host\n"
                            "state running\n")

TAPE_CASE(anything_before_the_hello_is_dropped, "start\n"
                                                "hosts a:2\n"
                                                "hello a\n"
                                                "bye a |\n"
                                                "closed a\n"
                                                "hello b | b < WELCOME_AGENT term 1\n"
                                                "    | b < STOP: the job does not use this host\n")

/* Each BEAT has a number of its own, also when nothing else was sent since the last one. */
TAPE_CASE(the_beat_answers, "config np=1 min_np=1\n"
                            "start\n"
                            "hosts a:1\n"
                            "show\n"
                            "hello a | a < WELCOME_AGENT term 1\n"
                            "    | record LAUNCH 1 a:0\n"
                            "    | a < LAUNCH 1 in 0 as 0/1 local 0/1 cross 0/1\n"
                            "wait 1s | discover\n"
                            "    | a < BEAT 2\n"
                            "wait 1s | discover\n"
                            "    | a < BEAT 3\n")

TAPE_CASE(a_connection_that_breaks_is_no_death,
          TAPE_RUNNING "closed a | start a\n"
                       "wait 5s |\n"
                       "hello a #1:0 #2:1 | a < WELCOME_AGENT term 1\n"
                       "wait 9s |\n")

TAPE_CASE(silence_is_a_death, TAPE_RUNNING
          "silent b\n"
          "wait 9s |\n"
          "wait 2s | close b: silent for longer than the lease\n"
          "    | a < REVOKE 1 lost 3: b:0#3: the worker's host is silent\n"
          "    | record ENDED 3 silent\n"
          "    | record ENDED 4 silent\n"
          "    | bar b (1): silent for longer than the lease\n"
          "recovering 1,2 held=1.1 | record ROUND 2 recovery after 1 from 1.1 of 1,2: 1,2\n"
          "    | a < ROUND 2 recovery after 1 from 1.1 of 1,2: 1,2\n"
          "wait 30s | start b\n"
          "hello b agent=7 #3:0 #4:1=exit1 | b < WELCOME_AGENT term 1\n"
          "    | b < KILL 3 in 0s: the worker was counted as dead\n"
          "exited 3 sig9 | b < FORGET 3\n"
          "    | record LAUNCH 5 b:0\n"
          "    | b < LAUNCH 5 in 0 as 2/3 local 0/1 cross 0/1\n")

TAPE_CASE(silent_agents_come_back_one_by_one, TAPE_RUNNING "silent a\n"
                                                           "silent b\n"
                                                           "wait 9s |\n"
                                                           "beat a |\n"
                                                           "wait 2s |\n"
                                                           "beat b |\n"
                                                           "beat a |\n"
                                                           "wait 5s |\n")

TAPE_CASE(a_connection_that_does_not_come_back_is_a_death,
          TAPE_RUNNING "closed b\n"
                       "wait 11s | a < REVOKE 1 lost 3: b:0#3: the worker's host is silent\n"
                       "    | record ENDED 3 silent\n"
                       "    | record ENDED 4 silent\n"
                       "    | bar b (1): silent for longer than the lease\n")

TAPE_CASE(the_drivers_own_silence_is_nobodys_death, TAPE_RUNNING "jump 60s |\n"
                                                                 "wait 5s |\n")

/* The driver itself was stopped: it reads the agents' frames of that time first, and counts no
 * agent as late. */
TAPE_CASE(the_drivers_own_silence_makes_nobody_late,
          "config stall=20s\n" TAPE_RUNNING "recovering 1-3 held=1.1\n"
          "wait 15s |\n"
          "jump 60s |\n"
          "recovering 4 held=1.1 | record ROUND 2 recovery after 1 from 1.1 of 1,2,3,4: 1,2,3,4\n"
          "    | a,b < ROUND 2 recovery after 1 from 1.1 of 1,2,3,4: 1,2,3,4\n"
          "wait 15s |\n"
          "jump 60s |\n"
          "entered 1-4 | record ENTERED 2\n")

TAPE_CASE(an_agent_that_dials_again_is_believed,
          TAPE_RUNNING "hello a #1:0 #2:1 | close a: the agent of this host has dialled again\n"
                       "    | a < WELCOME_AGENT term 1\n")

/* The workers of that host count as dead, so that the others go on; the host is used again at once.
 */
TAPE_CASE(an_agent_that_strangers_keep_out_is_a_death_without_blame,
          TAPE_RUNNING "closed b\n"
                       "wait 5s |\n"
                       "crowd | ! strangers crowd the driver's port: a host whose agent cannot "
                       "connect meanwhile is not charged with a failure\n"
                       "wait 6s | a < REVOKE 1 lost 3: b:0#3: the worker's host is silent\n"
                       "    | record ENDED 3 silent\n"
                       "    | record ENDED 4 silent\n"
                       "    | start b\n")

/* Strangers do not matter to an agent that is connected. */
TAPE_CASE(a_crowd_excuses_no_silence,
          TAPE_RUNNING "silent b\n"
                       "wait 9s |\n"
                       "crowd |\n"
                       "wait 2s | close b: silent for longer than the lease\n"
                       "    | a < REVOKE 1 lost 3: b:0#3: the worker's host is silent\n"
                       "    | record ENDED 3 silent\n"
                       "    | record ENDED 4 silent\n"
                       "    | bar b (1): silent for longer than the lease\n")

/* All agents are silent at once: the driver's own machine may be cut off. */
TAPE_CASE(all_agents_are_silent,
          TAPE_RUNNING "silent a\n"
                       "silent b\n"
                       "wait 11s | close a: silent for longer than the lease\n"
                       "    | start a\n"
                       "    | close b: silent for longer than the lease\n"
                       "    | start b\n"
                       "wait 10s | start a\n"
                       "    | start b\n"
                       "hello a agent=7 #1:0 #2:1 | a < WELCOME_AGENT term 1\n"
                       "wait 5s |\n")

TAPE_CASE(a_new_agent_has_lost_the_workers,
          TAPE_RUNNING "closed b\n"
                       "hello b agent=8 | b < WELCOME_AGENT term 1\n"
                       "    | a,b < REVOKE 1 lost 3: b:0#3: the agent of this host was restarted, "
                       "and the worker is gone\n"
                       "    | record ENDED 3 silent\n"
                       "    | b < FORGET 3\n"
                       "    | record ENDED 4 silent\n"
                       "    | b < FORGET 4\n"
                       "    | bar b (1): the agent of this host has lost its workers\n")

TAPE_CASE(a_launch_that_was_lost_is_said_again,
          "config np=2\n"
          "start\n"
          "hosts a:2\n"
          "hello a\n"
          "launched 1\n"
          "closed a\n"
          "hello a #1:0 | a < WELCOME_AGENT term 1\n"
          "    | a < LAUNCH 2 in 1 as 1/2 local 1/2 cross 0/1\n")

TAPE_CASE(an_end_that_was_lost_is_said_again,
          TAPE_RUNNING "closed a\n"
                       "hello a #1:0 #2:1=exit3 | a < WELCOME_AGENT term 1\n"
                       "exited 2 exit3 | a,b < REVOKE 1 lost 2: a:1#2: exit code 3\n"
                       "    | record ENDED 2 exit3\n"
                       "    | bar a:1 (1): exit code 3\n"
                       "    | a < FORGET 2\n"
                       "exited 2 exit3 | a < FORGET 2\n")

TAPE_CASE(a_round_that_was_lost_is_said_again,
          TAPE_LAUNCHED "ready 1-3\n"
                        "closed a\n"
                        "ready 4\n"
                        "hello a #1:0 #2:1 | a < WELCOME_AGENT term 1\n"
                        "    | record ROUND 1 first after 0 from 1.0 of 1: 1,2,3,4\n"
                        "    | a,b < ROUND 1 first after 0 from 1.0 of 1: 1,2,3,4\n"
                        "entered 1-4 | record ENTERED 1\n")

TAPE_CASE(a_switch_that_was_lost_is_said_again, TAPE_RUNNING
          "hosts a:2,b:1\n"
          "prepared 1-3\n"
          "closed b\n"
          "hello b #3:0 #4:1 | b < WELCOME_AGENT term 1\n"
          "    | b < PREPARE 2 after 1: 1,2,3\n"
          "    | b < PENDING 1 next 2\n"
          "at 1-2 3\n"
          "at 3 3\n"
          "closed b\n"
          "closed a\n"
          "hello a #1:0 #2:1 | a < WELCOME_AGENT term 1\n"
          "    | a < PREPARE 2 after 1: 1,2,3\n"
          "    | a < PENDING 1 next 2\n"
          "at 4 4 from=a | ! a: a statement of this host's agent is refused: the agent "
          "sends NEXT_CHECK about worker #4, which runs on b\n"
          "hello b #3:0 #4:1 | b < WELCOME_AGENT term 1\n"
          "    | b < PREPARE 2 after 1: 1,2,3\n"
          "    | b < PENDING 1 next 2\n"
          "at 4 4\n"
          "closed b\n"
          "hello b #3:0 #4:1 | b < WELCOME_AGENT term 1\n"
          "    | b < PREPARE 2 after 1: 1,2,3\n"
          "    | b < SWITCH_AT 1 next 2 check 5\n"
          "    | b < ROUND 2 switch after 1 from 2.0 of 1,2,3: 1,2,3\n")

TAPE_CASE(an_abandoned_change_is_said_again, TAPE_RUNNING
          "hosts a:2,b:2,c:1\n"
          "hello c\n"
          "ready 5\n"
          "closed a\n"
          "exited 5 exit1 | b,c < ABANDON 1 next 2: c:0#5: exit code 1\n"
          "    | record ENDED 5 exit1\n"
          "    | bar c:0 (1): exit code 1\n"
          "    | c < FORGET 5\n"
          "hello a #1:0 #2:1 | a < WELCOME_AGENT term 1\n"
          "    | a < ABANDON 1 next 2: the round was abandoned while the agent was away\n")

TAPE_CASE(a_revoke_that_was_lost_is_said_again,
          TAPE_RUNNING "closed a\n"
                       "exited 4 exit1\n"
                       "hello a #1:0 #2:1 | a < WELCOME_AGENT term 1\n"
                       "    | a < REVOKE 1: the round was revoked while the agent was away\n"
                       "    | a < REVOKE 1: the round was revoked while the agent was away\n"
                       "recovering 1,2 held=1.1 | ! a:1#2 has recovered (2 of 3)\n")

TAPE_CASE(a_leaver_that_missed_the_drain_is_told_again,
          TAPE_RUNNING "hosts a:2,b:2,c:1\n"
                       "hello c\n"
                       "ready 5\n"
                       "closed c\n"
                       "hosts a:2,b:2\n"
                       "hello c #5:0 | c < WELCOME_AGENT term 1\n"
                       "    | c < ROUND 1 first after 0 from 1.0 of 1: 1,2,3,4\n"
                       "    | c < DRAIN 5: the worker has to leave\n"
                       "closed c\n"
                       "left 5 from=b\n"
                       "hello c #5:0 | c < WELCOME_AGENT term 1\n"
                       "    | c < ROUND 1 first after 0 from 1.0 of 1: 1,2,3,4\n"
                       "    | c < DRAIN 5: the worker has to leave\n")

TAPE_CASE(an_idle_agent_of_a_host_that_is_gone_is_stopped,
          TAPE_RUNNING "hello c | c < WELCOME_AGENT term 1\n"
                       "    | c < STOP: the job does not use this host\n")

TAPE_CASE(a_kill_that_was_lost_is_said_again,
          "config start_timeout=20s np=2\n"
          "start\n"
          "hosts a:2\n"
          "hello a\n"
          "launched 1,2\n"
          "ready 1\n"
          "wait 21s\n"
          "closed a\n"
          "hello a #1:0 #2:1 | a < WELCOME_AGENT term 1\n"
          "    | a < KILL 2 in 0s: the worker was counted as dead\n")

/* Frames on the old connection may be lost, so the driver gives the worker its whole time again and
 * repeats its messages. */
TAPE_CASE(whose_agent_has_dialled_again_has_its_time_anew,
          "config stall=8s\n" TAPE_RUNNING "recovering 1,2,3 held=1.1\n"
          "wait 5s |\n"
          "closed b\n"
          "wait 5s |\n"
          "hello b #3:0 #4:1 | b < WELCOME_AGENT term 1\n"
          "    | b < REVOKE 1: the round was revoked while the agent was away\n"
          "wait 7900ms |\n"
          "wait 200ms | record ENDED 4 sig9\n"
          "    | bar b:1 (1): the worker did not stop for the recovery\n"
          "    | b < KILL 4 in 5s: the worker did not stop for the recovery\n"
          "    | record ROUND 2 recovery after 1 from 1.1 of 1,2,3: 1,2,3\n"
          "    | a,b < ROUND 2 recovery after 1 from 1.1 of 1,2,3: 1,2,3\n")

TAPE_CASE(a_stop_that_was_lost_is_said_again,
          TAPE_RUNNING "closed a\n"
                       "stop me | record OVER 2: stopped by me\n"
                       "    | b < STOP: stopped by me\n"
                       "hello a #1:0 #2:1 | a < WELCOME_AGENT term 1\n"
                       "    | a < STOP: stopped by me\n"
                       "exited 1-4 sig15\n"
                       "closed a\n"
                       "closed b | exit 2: stopped by me\n")

/* The connection of `b` breaks before the agent has read the STOP: the workers of `b` still run. */
TAPE_CASE(a_stop_that_was_not_read_is_said_again,
          TAPE_RUNNING "stop me\n"
                       "exited 1,2 sig15\n"
                       "closed a | ! a: the agent of this host has ended as told\n"
                       "closed b | start b\n"
                       "state stopping\n"
                       "hello b #3:0 #4:1 | b < WELCOME_AGENT term 1\n"
                       "    | b < STOP: stopped by me\n"
                       "exited 3,4 sig15\n"
                       "closed b | exit 2: stopped by me\n")

TAPE_CASE(an_agent_that_does_not_come_back_for_the_stop_is_named,
          TAPE_RUNNING "stop me\n"
                       "exited 1,2 sig15\n"
                       "closed a\n"
                       "closed b\n"
                       "wait 11s | record ENDED 3 silent\n"
                       "    | record ENDED 4 silent\n"
                       "    | exit 2: stopped by me; hosts that could not be reached: 1 (b); "
                       "workers there end when their agent is heard again, and a running agent "
                       "ends them by itself within 10m10s\n")

TAPE_CASE(a_living_worker_that_counted_as_dead_is_killed,
          TAPE_RUNNING "silent b\n"
                       "wait 11s\n"
                       "recovering 1,2 held=1.1\n"
                       "hosts a:2\n"
                       "hosts a:2,b:2 | a < HOSTS_UPDATED 2 +1 -0\n"
                       "hello b agent=7 #3:0 #4:1 | b < WELCOME_AGENT term 1\n"
                       "    | b < KILL 3 in 0s: the worker was counted as dead\n"
                       "    | b < KILL 4 in 0s: the worker was counted as dead\n"
                       "exited 3 sig9 | b < FORGET 3\n")

/* ---- remarks ---- */

/* Several workers send the remark, in each round again: the operator sees the remark once. */
TAPE_CASE(a_remark_is_told_once,
          TAPE_RUNNING "remark 1 text=it_is_slow | ! round 1: a:0#1: it_is_slow\n"
                       "remark 1 text=it_is_slow |\n"
                       "remark 4 text=it_is_slow |\n"
                       "remark 4 text=and_wrong | ! round 1: b:1#4: and_wrong\n")

TAPE_CASE(a_remark_on_another_round_is_dropped,
          TAPE_RUNNING "remark 1 text=it_is_slow round=2 |\n"
                       "remark 1 text=it_is_slow | ! round 1: a:0#1: it_is_slow\n")
