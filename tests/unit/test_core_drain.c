/*
 * test_core_drain.c: drains by the operator and notices of preemption (a host will be taken away),
 * with and without deadlines. A drained worker leaves in order, and its end counts as no failure.
 *
 * Each case is a tape: a text of the events that come in (a line) and of the actions that the
 * driver's core must answer with.
 */
#include "tests/lib/core_tape.h"

#include <stdio.h>
#include <string.h>

static struct core_tape tape;

/* No step is lost: the next round begins by the usual switch, without a joiner. */
TAPE_CASE(a_drained_slot_is_left_in_order,
          TAPE_RUNNING "drain b:1 9s | record DRAIN b:1 until 10s\n"
                       "    | reply HVD_OK\n"
                       "    | record NUMBER 2\n"
                       "    | a,b < PREPARE 2 after 1: 1,2,3\n"
                       "prepared 1-3\n"
                       "at 1-4 3 | record ROUND 2 switch after 1 from 2.0 of 1,2,3 check 4: 1,2,3\n"
                       "    | a,b < SWITCH_AT 1 next 2 check 4\n"
                       "    | a,b < ROUND 2 switch after 1 from 2.0 of 1,2,3: 1,2,3\n"
                       "left 4\n"
                       "exited 4 | record ENDED 4 exit0\n"
                       "    | b < FORGET 4\n"
                       "entered 1-3 | record ENTERED 2\n"
                       "wait 9s |\n"
                       "undrain b:1 | record DRAIN b:1 ends\n"
                       "    | reply HVD_OK\n"
                       "    | record LAUNCH 5 b:1\n"
                       "    | b < LAUNCH 5 in 1 as 3/4 local 0/1 cross 0/1\n")

TAPE_CASE(a_drained_host_is_not_launched_on, "config np=2\n"
                                             "start\n"
                                             "hosts a:2,b:2\n"
                                             "drain a 5s | record DRAIN a until 6s\n"
                                             "    | reply HVD_OK\n"
                                             "hello b | b < WELCOME_AGENT term 1\n"
                                             "    | record LAUNCH 1 b:0\n"
                                             "    | b < LAUNCH 1 in 0 as 0/2 local 0/2 cross 0/1\n"
                                             "    | record LAUNCH 2 b:1\n"
                                             "    | b < LAUNCH 2 in 1 as 1/2 local 1/2 cross 0/1\n"
                                             "undrain a | record DRAIN a ends\n"
                                             "    | reply HVD_OK\n")

TAPE_CASE(a_worker_past_the_deadline_is_killed, TAPE_RUNNING
          "drain b:1 5s | record DRAIN b:1 until 6s\n"
          "    | reply HVD_OK\n"
          "    | record NUMBER 2\n"
          "    | a,b < PREPARE 2 after 1: 1,2,3\n"
          "wait 5s | a,b < ABANDON 1 next 2: b:1#4: the worker's time to leave is over\n"
          "    | a,b < REVOKE 1 lost 4: b:1#4: the worker's time to leave is over\n"
          "    | record ENDED 4 sig9\n"
          "    | b < KILL 4 in 0s: the worker's time to leave is over\n"
          "recovering 1-3 held=1.1 | record ROUND 3 recovery after 1 from 1.1 of 1,2,3: 1,2,3\n"
          "    | a,b < ROUND 3 recovery after 1 from 1.1 of 1,2,3: 1,2,3\n"
          "exited 4 sig9 | b < FORGET 4\n")

TAPE_CASE(the_sooner_of_two_drains_counts, TAPE_RUNNING
          "drain b 1h\n"
          "drain b:1 5s | record DRAIN b:1 until 6s\n"
          "    | reply HVD_OK\n"
          "wait 5s | a,b < ABANDON 1 next 2: b:1#4: the worker's time to leave is over\n"
          "    | a,b < REVOKE 1 lost 4: b:1#4: the worker's time to leave is over\n"
          "    | record ENDED 4 sig9\n"
          "    | b < KILL 4 in 0s: the worker's time to leave is over\n")

TAPE_CASE(a_drain_without_a_deadline_waits,
          "config min_np=4\n" TAPE_RUNNING "drain b:1 never | record DRAIN b:1 until never\n"
          "    | reply HVD_OK\n"
          "wait 20s |\n"
          "view | running term 1 round 1 from 1.0: 1,2,3,4, floor 1, resets 0\n"
          "    | a there: #1 in 0 member 0*, #2 in 1 member 1*, of 2\n"
          "    | b there: #3 in 0 member 2*, #4 in 1 member 3*, of 2; slot 1 is being "
          "drained\n")

TAPE_CASE(the_time_that_a_drained_slot_has_left_is_shown,
          "config min_np=4\n" TAPE_RUNNING "drain b:1 20s | record DRAIN b:1 until 21s\n"
          "    | reply HVD_OK\n"
          "wait 5s |\n"
          "view | running term 1 round 1 from 1.0: 1,2,3,4, floor 1, resets 0\n"
          "    | a there: #1 in 0 member 0*, #2 in 1 member 1*, of 2\n"
          "    | b there: #3 in 0 member 2*, #4 in 1 member 3*, of 2; slot 1 is being "
          "drained; 15s left\n")

TAPE_CASE(a_preemption_notice_drains_the_host,
          TAPE_RUNNING "notice b 30s | record DRAIN b until 31s\n"
                       "    | record NUMBER 2\n"
                       "    | a,b < PREPARE 2 after 1: 1,2\n"
                       "notice b 30s |\n"
                       "notice b 20s | record DRAIN b until 21s\n"
                       "notice b 40s |\n")

TAPE_CASE(a_notice_does_not_undo_a_drain,
          TAPE_RUNNING "drain b never\n"
                       "notice b 20s | record DRAIN b until 21s\n"
                       "prepared 1,2\n"
                       "at 1-4 3\n"
                       "entered 1,2\n"
                       "left 3,4\n"
                       "exited 3,4\n"
                       "wait 20s\n"
                       "wait 70s\n"
                       "view | running term 1 round 2 from 2.0: 1,2, floor 2, resets 1\n"
                       "    | a there: #1 in 0 member 0*, #2 in 1 member 1*, of 2\n"
                       "    | b there draining: of 2; the host is drained until 'hvd-elastic "
                       "undrain'\n")

/* The last worker ends before the deadline: the notice is honoured. The next one is too late. */
TAPE_CASE(notices_are_counted, TAPE_RUNNING
          "notice b 30s | record DRAIN b until 31s\n"
          "    | record NUMBER 2\n"
          "    | a,b < PREPARE 2 after 1: 1,2\n"
          "prepared 1,2\n"
          "at 1-4 3\n"
          "left 3,4\n"
          "exited 3 | record ENDED 3 exit0\n"
          "    | b < FORGET 3\n"
          "exited 4 | record ENDED 4 exit0\n"
          "    | b < FORGET 4\n"
          "    | record NOTICE b 1 of 1\n"
          "entered 1,2\n"
          "view | running term 1 round 2 from 2.0: 1,2, floor 2, resets 1, notices 1 of 1\n"
          "    | a there: #1 in 0 member 0*, #2 in 1 member 1*, of 2\n"
          "    | b there draining: of 2; the host is drained, as its machine will be taken away\n")

/* A member dies before it can leave: its step is lost, so the notice was not honoured. */
TAPE_CASE(a_notice_with_a_loss_is_not_honoured, TAPE_RUNNING "notice b 30s\n"
                                                             "exited 3 sig9\n"
                                                             "recovering 1,2,4 held=1.1\n"
                                                             "left 4\n"
                                                             "exited 4 | record ENDED 4 exit0\n"
                                                             "    | b < FORGET 4\n"
                                                             "    | record NOTICE b 0 of 1\n")

/* The driver dies between the notice and the end of the workers. */
TAPE_CASE(a_notice_outlives_the_driver, TAPE_RUNNING "notice b 30s\n"
                                                     "prepared 1,2\n"
                                                     "at 1-4 3\n"
                                                     "left 3,4\n"
                                                     "exited 3\n"
                                                     "kill\n"
                                                     "start\n"
                                                     "hello a #1:0 #2:1\n"
                                                     "hello b #4:1\n"
                                                     "left 4\n"
                                                     "exited 4 | record ENDED 4 exit0\n"
                                                     "    | b < FORGET 4\n"
                                                     "    | record NOTICE b 1 of 1\n")

/* An operator takes the host back, or drains it: then it is no notice any more. */
TAPE_CASE(a_notice_that_an_operator_ends_is_not_counted,
          "config min_np=4\n" TAPE_RUNNING "notice b 30s\n"
          "undrain b\n"
          "view | running term 1 round 1 from 1.0: 1,2,3,4, floor 1, resets 0\n"
          "    | a there: #1 in 0 member 0*, #2 in 1 member 1*, of 2\n"
          "    | b there: #3 in 0 member 2*, #4 in 1 member 3*, of 2\n")

TAPE_CASE(
    a_seat_that_is_not_there_cannot_be_drained, TAPE_RUNNING
    "drain c 5s | reply HVD_E_NOTFOUND: c: no such host in this job; see 'hvd-elastic hosts'\n"
    "drain c:1 5s | reply HVD_E_NOTFOUND: c:1: no such host in this job; see 'hvd-elastic hosts'\n"
    "drain a:2 5s | reply HVD_E_NOTFOUND: a:2: no such slot in this job; see 'hvd-elastic hosts'\n")

TAPE_CASE(a_drain_that_is_taken_back_ends_the_leaving,
          "config min_np=4\n" TAPE_RUNNING "drain b:1 10s\n"
          "undrain b:1 | record DRAIN b:1 ends\n"
          "    | reply HVD_OK\n"
          "wait 10s |\n")

TAPE_CASE(
    taking_a_host_back_takes_its_slots_back,
    "config min_np=4\n" TAPE_RUNNING "drain b:0 1h\n"
    "drain b 2h\n"
    "undrain b:0 | record DRAIN b:0 ends\n"
    "    | reply HVD_OK\n"
    "drain b:1 1h\n"
    "undrain b | record DRAIN b ends\n"
    "    | record DRAIN b:1 ends\n"
    "    | reply HVD_OK\n"
    "undrain b | reply HVD_OK\n"
    "undrain b:9 | reply HVD_E_NOTFOUND: b:9: no such slot in this job; see 'hvd-elastic hosts'\n"
    "undrain c | reply HVD_E_NOTFOUND: c: no such host in this job; see 'hvd-elastic hosts'\n")

/* An operator can clear failures and can undrain a host: neither command does the work of the
 * other. */
TAPE_CASE(forgiving_does_not_undrain, "config np=2 min_np=1 forever=1\n"
                                      "start\n"
                                      "hosts a:2\n"
                                      "hello a\n"
                                      "ready 1,2\n"
                                      "entered 1,2\n"
                                      "exited 2 exit1\n"
                                      "recovering 1 held=1.1\n"
                                      "entered 1\n"
                                      "drain a:1 1h\n"
                                      "clear a:1 | bar a:1 (0): cleared by the operator\n"
                                      "    | reply HVD_OK\n"
                                      "undrain a:1 | record DRAIN a:1 ends\n"
                                      "    | reply HVD_OK\n"
                                      "    | record LAUNCH 3 a:1\n"
                                      "    | a < LAUNCH 3 in 1 as 1/2 local 0/1 cross 0/1\n")

TAPE_CASE(undraining_does_not_forgive, "config np=2 min_np=1 forever=1\n"
                                       "start\n"
                                       "hosts a:2\n"
                                       "hello a\n"
                                       "ready 1,2\n"
                                       "entered 1,2\n"
                                       "exited 2 exit1\n"
                                       "recovering 1 held=1.1\n"
                                       "entered 1\n"
                                       "drain a:1 1h\n"
                                       "undrain a:1 | record DRAIN a:1 ends\n"
                                       "    | reply HVD_OK\n"
                                       "clear a:1 | bar a:1 (0): cleared by the operator\n"
                                       "    | reply HVD_OK\n"
                                       "    | record LAUNCH 3 a:1\n"
                                       "    | a < LAUNCH 3 in 1 as 1/2 local 0/1 cross 0/1\n")

TAPE_CASE(fewer_slots_are_a_leave, TAPE_RUNNING "hosts a:2,b:1 | a,b < HOSTS_UPDATED 1 +0 -1\n"
                                                "    | record NUMBER 2\n"
                                                "    | a,b < PREPARE 2 after 1: 1,2,3\n")

/* The notice of a machine ends when its host leaves the list; the drain of an operator does not. */
TAPE_CASE(a_drain_lasts_while_its_host_comes_and_goes,
          "config np=2 min_np=2\n"
          "start\n"
          "hosts a:1,b:1\n"
          "hello a\n"
          "hello b\n"
          "ready 1,2\n"
          "entered 1,2\n"
          "drain a 1h\n"
          "notice b 1h\n"
          "hosts c:1 | record DRAIN b ends\n"
          "    | a,b < HOSTS_UPDATED 1 +1 -2\n"
          "    | start c\n"
          "hosts b:1,a:1\n"
          "view | running term 1 round 1 from 1.0: 1,2, floor 1, resets 0\n"
          "    | b there: #2 in 0 member 1*, of 1\n"
          "    | a there draining: #1 in 0 member 0*, of 1; the host is being drained\n"
          "undrain a | record DRAIN a ends\n"
          "    | reply HVD_OK\n")

/* A drained host without workers and agent is remembered, and can be undrained. */
TAPE_CASE(a_drained_host_that_is_gone_is_shown,
          "config np=1 min_np=1\n"
          "start\n"
          "hosts a:1,b:2\n"
          "hello a\n"
          "ready 1\n"
          "entered 1\n"
          "drain b:1 never\n"
          "hosts a:1\n"
          "wait 2m |\n"
          "view | running term 1 round 1 from 1.0: 1, floor 1, resets 0\n"
          "    | a there: #1 in 0 member 0*, of 1\n"
          "    | b none unlisted: of 0; discovery no longer names the host; it stays drained until "
          "'hvd-elastic undrain'\n"
          "undrain b:1 | record DRAIN b:1 ends\n"
          "    | reply HVD_OK\n"
          "view | running term 1 round 1 from 1.0: 1, floor 1, resets 0\n"
          "    | a there: #1 in 0 member 0*, of 1\n")

/* Lists the host a, and `more` hosts h0, h1 ... */
static int list_many(unsigned more)
{
    struct hosts hosts;
    char name[32];
    int rc;

    hosts_init(&hosts);
    rc = hosts_add(&hosts, "a", 1);
    for (unsigned i = 0; i < more && !rc; i++) {
        snprintf(name, sizeof(name), "h%u", i);
        rc = hosts_add(&hosts, name, 1);
    }
    tape.now_us += tape.config.discovery.pause_us;
    if (!rc)
        rc = tape_step(&tape, &(struct event){ .kind = EVENT_TIMER });
    if (!rc)
        rc = tape_step(&tape, &(struct event){ .kind = EVENT_HOSTS, .hosts = &hosts });
    hosts_release(&hosts);
    return rc;
}

/* A fleet may drain one machine after the other, without end. The driver remembers at most
 * LIMIT_DRAINS_KEPT drained hosts that are no longer listed: it forgets the drains of the oldest
 * ones. */
TEST_FLAGS(the_oldest_drains_of_hosts_that_are_gone_are_forgotten, TEST_NO_TORTURE)
{
    struct core_view view;
    size_t drained = 0;
    char name[32];

    core_view_init(&view);
    CHECK_OK(t, tape_init(&tape));
    CHECK_PLAY(t, &tape, "config np=1 min_np=1\nstart\nhosts a:1\nhello a\nready 1\nentered 1\n");
    CHECK_OK(t, list_many(LIMIT_DRAINS_KEPT + 2));
    for (unsigned i = 0; i < LIMIT_DRAINS_KEPT + 2; i++) {
        snprintf(name, sizeof(name), "h%u", i);
        CHECK_OK(t, tape_step(&tape, &(struct event){ .kind = EVENT_DRAIN,
                                                      .host = name,
                                                      .slot = EVENT_WHOLE_HOST,
                                                      .left_us = TIME_NEVER,
                                                      .ask = 1 }));
    }
    CHECK_OK(t, list_many(0));
    CHECK_OK(t, core_view(tape.core, &view));
    for (size_t i = 0; i < view.host_count; i++) {
        drained += view.hosts[i].draining;
        CHECK(t, strcmp(view.hosts[i].name, "h0") != 0);
        CHECK(t, strcmp(view.hosts[i].name, "h1") != 0);
    }
    CHECK_INT(t, drained, ==, LIMIT_DRAINS_KEPT);
out:
    core_view_release(&view);
    tape_release(&tape);
}

/* The host left the list of hosts before the notice came. */
TAPE_CASE(a_notice_of_a_host_that_is_not_listed_ends_with_it,
          TAPE_RUNNING "hosts a:2\n"
                       "notice b 20s | record DRAIN b until 22s\n"
                       "prepared 1,2\n"
                       "at 1-4 3\n"
                       "left 3,4\n"
                       "exited 3,4\n"
                       "entered 1,2\n"
                       "closed b | ! b: the agent of this host has ended as told\n"
                       "wait 1m |\n"
                       "hosts a:2,b:2 | a < HOSTS_UPDATED 2 +1 -0\n"
                       "    | record DRAIN b ends\n"
                       "    | start b\n")

/* The agent that was told to end starts no worker; the next agent of the host does. */
TAPE_CASE(a_host_that_comes_back_while_its_agent_ends, TAPE_RUNNING "hosts a:2\n"
                                                                    "prepared 1,2\n"
                                                                    "at 1-4 3\n"
                                                                    "left 3,4\n"
                                                                    "exited 3,4\n"
                                                                    "entered 1,2\n"
                                                                    "hosts a:2,b:2\n"
                                                                    "closed b | start b\n")

TAPE_CASE(a_host_without_slots_offers_nothing,
          "config np=1 min_np=1\n"
          "start\n"
          "hosts a:0,b:1 | start b\n"
          "hello b | b < WELCOME_AGENT term 1\n"
          "    | record LAUNCH 1 b:0\n"
          "    | b < LAUNCH 1 in 0 as 0/1 local 0/1 cross 0/1\n"
          "view | gathering term 1 round 0: , floor 0, resets 0; waits for 1 workers to be ready; "
          "0 are, 1 are starting\n"
          "    | a none: of 0; the host is not needed\n"
          "    | b there: #1 in 0 launching, of 1\n")

TAPE_CASE(a_worker_that_boots_is_not_waited_for,
          TAPE_RUNNING "hosts a:2,b:2,c:1\n"
                       "hello c\n"
                       "drain c 1h | record DRAIN c until 1h2s\n"
                       "    | reply HVD_OK\n"
                       "    | record ENDED 5 sig9\n"
                       "    | c < KILL 5 in 5s: its slot is given up\n"
                       "exited 5 sig15 | c < FORGET 5\n")

TAPE_CASE(why_hosts_are_not_used,
          "config np=3 min_np=1 max_np=4\n"
          "start\n"
          "hosts a:2,b:1,c:1,d:1\n"
          "view | gathering term 1 round 0: , floor 0, resets 0, short; waits for 3 slots; hosts "
          "with an agent offer 0\n"
          "    | a starting: of 2; the agent of the host has not said hello yet\n"
          "    | b starting: of 1; the agent of the host has not said hello yet\n"
          "    | c starting: of 1; the agent of the host has not said hello yet\n"
          "    | d none: of 1; the host is not needed\n"
          "hello a\n"
          "hello b\n"
          "hello c\n"
          "launched 1-4\n"
          "ready 1-3\n"
          "view | gathering term 1 round 0: , floor 0, resets 0; waits for 3 workers to be ready; "
          "3 are, 1 are starting\n"
          "    | a there: #1 in 0 ready, #2 in 1 ready, of 2\n"
          "    | b there: #3 in 0 ready, of 1\n"
          "    | c there: #4 in 0 booting, of 1\n"
          "    | d none: of 1; the host is not needed\n"
          "entered 1-3\n"
          "ready 4\n"
          "view | running term 1 round 1 from 1.0: 1,2,3,4, floor 0, resets 0\n"
          "    | a there: #1 in 0 member 0, #2 in 1 member 1, of 2\n"
          "    | b there: #3 in 0 member 2, of 1\n"
          "    | c there: #4 in 0 member 3, of 1\n"
          "    | d none: of 1; the host is not needed\n"
          "prepared 1-4\n"
          "view | running term 1 round 1 from 1.0: 1,2,3,4, floor 0, resets 0\n"
          "    | a there: #1 in 0 member 0, #2 in 1 member 1, of 2\n"
          "    | b there: #3 in 0 member 2, of 1\n"
          "    | c there: #4 in 0 member 3, of 1\n"
          "    | d none: of 1; the host is not needed\n"
          "exited 2 exit1\n"
          "view | recovering term 1 round 1 from 1.0: 1,2,3,4, floor 0, resets 0; waits for 3 "
          "survivors to stop\n"
          "    | a there: #1 in 0 revoked 0, of 2; slot 1: cooling for 12.3s more after 1 failure: "
          "exit code 1\n"
          "    | b there: #3 in 0 revoked 2, of 1\n"
          "    | c there: #4 in 0 revoked 3, of 1\n"
          "    | d starting: of 1; the agent of the host has not said hello yet\n"
          "recovering 1,3\n"
          "drain b 1h\n"
          "closed c\n"
          "view | recovering term 1 round 1 from 1.0: 1,2,3,4, floor 0, resets 0; waits for 1 "
          "survivors to stop\n"
          "    | a there: #1 in 0 recovered 0, of 2; slot 1: cooling for 12.3s more after 1 "
          "failure: exit code 1\n"
          "    | b there draining: #3 in 0 recovered 2, of 1; the host is being drained\n"
          "    | c away: #4 in 0 revoked 3, of 1; the connection to its agent is gone\n"
          "    | d starting: of 1; the agent of the host has not said hello yet\n"
          "hosts a:2,d:1\n"
          "view | running term 1 round 2 from 2.0: 1,3, floor 0, resets 1\n"
          "    | a there: #1 in 0 member 0, of 2; slot 1: cooling for 11.3s more after 1 failure: "
          "exit code 1\n"
          "    | d starting: of 1; the agent of the host has not said hello yet\n"
          "    | b there unlisted draining: #3 in 0 member 1, of 0; discovery no longer names the "
          "host; it stays drained until 'hvd-elastic undrain'\n")

TAPE_CASE(the_view_says_what_the_end_waits_for,
          TAPE_RUNNING "finished 1\n"
                       "view | finishing term 1 round 1 from 1.0: 1,2,3,4, floor 1, resets 0; "
                       "waits for the last workers to end\n"
                       "    | a there: #1 in 0 finished 0*, #2 in 1 member 1*, of 2\n"
                       "    | b there: #3 in 0 member 2*, #4 in 1 member 3*, of 2\n"
                       "stop me\n"
                       "view | stopping term 1 round 1 from 1.0: 1,2,3,4, floor 1, resets 0; waits "
                       "for agents to end their workers\n"
                       "    | a there: #1 in 0 finished 0*, #2 in 1 member 1*, of 2\n"
                       "    | b there: #3 in 0 member 2*, #4 in 1 member 3*, of 2\n")

TAPE_CASE(a_drained_slot_is_named,
          "config np=1 min_np=1\n"
          "start\n"
          "hosts a:2\n"
          "hello a\n"
          "exited 1 exit1\n"
          "drain a:1 never\n"
          "exited 2 exit1\n"
          "view | gathering term 1 round 0: , floor 0, resets 0, short; waits for 1 workers to be "
          "ready; 0 are, 0 are starting\n"
          "    | a there: of 2; slot 0: cooling for 12.3s more after 1 failure: exit code 1\n")

TAPE_CASE(hosts_that_nobody_knows_any_more_are_forgotten,
          "config np=1 min_np=1\n"
          "start\n"
          "hosts a:1,b:1,c:1\n"
          "hosts a:1 | ! hosts: -b -c\n"
          "hosts a:1,c:1 | start c\n"
          "view | gathering term 1 round 0: , floor 0, resets 0, short; waits for 1 slots; hosts "
          "with an agent offer 0\n"
          "    | a starting: of 1; the agent of the host has not said hello yet\n"
          "    | c starting: of 1; the agent of the host has not said hello yet\n")

TAPE_CASE(a_dead_host_that_is_dropped_is_forgotten,
          TAPE_RUNNING "silent b\n"
                       "wait 11s\n"
                       "recovering 1,2 held=1.1\n"
                       "hosts a:2 | a < HOSTS_UPDATED 2 +0 -1\n"
                       "view | running term 1 round 2 from 1.1: 1,2, floor 1, resets 1\n"
                       "    | a there: #1 in 0 member 0, #2 in 1 member 1, of 2\n")

TAPE_CASE(a_host_that_was_taken_away_is_not_dialled,
          TAPE_RUNNING "hosts a:2\n"
                       "prepared 1,2\n"
                       "at 1-4 3\n"
                       "left 3,4\n"
                       "exited 3,4\n"
                       "closed b | ! b: the connection to its agent is gone: reset\n"
                       "wait 11s | ! b: silent for longer than the lease, counted as dead\n")

TAPE_CASE(
    all_hosts_are_drained, TAPE_RUNNING
    "drain a 5s | record DRAIN a until 6s\n"
    "    | reply HVD_OK\n"
    "    | record NUMBER 2\n"
    "    | b,a < PREPARE 2 after 1: 3,4\n"
    "drain b 8s | record DRAIN b until 9s\n"
    "    | reply HVD_OK\n"
    "wait 6s | a,b < ABANDON 1 next 2: a:0#1: the worker's time to leave is over\n"
    "    | a,b < REVOKE 1 lost 1: a:0#1: the worker's time to leave is over\n"
    "    | record ENDED 1 sig9\n"
    "    | a < KILL 1 in 0s: the worker's time to leave is over\n"
    "    | record ENDED 2 sig9\n"
    "    | a < KILL 2 in 0s: the worker's time to leave is over\n"
    "wait 3s | record ENDED 3 sig9\n"
    "    | b < KILL 3 in 0s: the worker's time to leave is over\n"
    "    | record ENDED 4 sig9\n"
    "    | b < KILL 4 in 0s: the worker's time to leave is over\n"
    "view | recovering term 1 round 1 from 1.0: 1,2,3,4, floor 1, resets 0, short; waits for 2 "
    "workers; 0 are ready\n"
    "    | a there draining: #1 in 0 doomed 0*, #2 in 1 doomed 1*, of 2; the host is being "
    "drained\n"
    "    | b there draining: #3 in 0 doomed 2*, #4 in 1 doomed 3*, of 2; the host is being "
    "drained\n")

/* The view counts the members that must leave and stay, until enough others are there. */
TEST(members_that_min_np_keeps_are_counted)
{
    struct core_view view;

    core_view_init(&view);
    CHECK_OK(t, tape_init(&tape));
    CHECK_PLAY(t, &tape, "config min_np=4\n" TAPE_RUNNING "drain b:0 30s\n");
    CHECK_OK(t, core_view(tape.core, &view));
    CHECK_INT(t, view.shortage.kept, ==, 1);
    CHECK_PLAY(t, &tape, "drain b 20s\n");
    CHECK_OK(t, core_view(tape.core, &view));
    CHECK_INT(t, view.shortage.kept, ==, 2);
    for (size_t i = 0; i < view.host_count; i++)
        CHECK_INT(t, view.hosts[i].drain_us, ==,
                  view.hosts[i].draining ? tape.now_us + 20 * TIME_S : TIME_NEVER);
    CHECK_PLAY(t, &tape, "undrain b\nundrain b:0\n");
    CHECK_OK(t, core_view(tape.core, &view));
    CHECK_INT(t, view.shortage.kept, ==, 0);
out:
    core_view_release(&view);
    tape_release(&tape);
}
