/*
 * test_core_keys.c: which keys the agents of hosts may use. Each host has a key of its own, which
 * the journal has before an agent gets it. A host that has left the job has no key, and a host that
 * comes back has one that it never had; that holds for each driver of the job.
 */
#include "tests/lib/core_tape.h"
#include "tests/lib/test.h"

#include <stdio.h>
#include <string.h>

static struct core_tape tape;

#define TWO_HOSTS                             \
    "config np=1 min_np=1 max_np=2\n"         \
    "keys\n"                                  \
    "start\n"                                 \
    "hosts a:1,b:1 | record KEY a 1 code 1\n" \
    "    | key 1 of a\n"                      \
    "    | start a\n"                         \
    "    | record KEY b 2 code 1\n"           \
    "    | key 2 of b\n"                      \
    "    | start b\n"                         \
    "hello a\nhello b\nready 1,2\nentered 1\nentered 2\n"

#define B_LEAVES                     \
    "hosts a:1\n"                    \
    "prepared 1\n"                   \
    "at 1,2 4\n"                     \
    "left 2\n"                       \
    "exited 2 exit0\n"               \
    "entered 1 | record ENTERED 2\n" \
    "    | b < STOP: the job does not use this host\n"

TAPE_CASE(each_host_has_a_key_of_its_own, TWO_HOSTS "closed a | start a\n")

TAPE_CASE(a_host_that_left_has_no_key,
          TWO_HOSTS B_LEAVES "closed b | record KEY b 0 code 0\n"
                             "    | key 2 of b ends\n"
                             "hosts a:1,b:1 | a < HOSTS_UPDATED 2 +1 -0\n"
                             "    | record KEY b 3 code 1\n"
                             "    | key 3 of b\n"
                             "    | start b\n")

/* An agent that does not obey keeps its key for as long as an obedient one may need. */
TAPE_CASE(an_agent_that_does_not_end_loses_its_key,
          TWO_HOSTS B_LEAVES "wait 14s |\n"
                             "wait 2s | close b: the agent was told to end, but has not ended\n"
                             "    | record KEY b 0 code 0\n"
                             "    | key 2 of b ends\n")

/* The next agent of this host was not told to end, so it is started, and launches workers. */
TAPE_CASE(a_host_whose_agent_did_not_end_comes_back,
          TWO_HOSTS B_LEAVES "wait 16s\n"
                             "hosts a:1,b:1 | a < HOSTS_UPDATED 2 +1 -0\n"
                             "    | record KEY b 3 code 1\n"
                             "    | key 3 of b\n"
                             "    | start b\n"
                             "hello b\n"
                             "launched 3 |\n")

TAPE_CASE(an_agent_that_dials_again_and_again_does_not_keep_its_key,
          TWO_HOSTS B_LEAVES "wait 8s\n"
                             "closed b | record KEY b 0 code 0\n"
                             "    | key 2 of b ends\n")

TAPE_CASE(the_next_driver_knows_the_keys, TWO_HOSTS "kill\n"
                                                    "start | record TERM 2\n"
                                                    "    | key 1 of a\n"
                                                    "    | key 2 of b\n"
                                                    "    | start a\n"
                                                    "    | start b\n"
                                                    "hosts a:1,b:1,c:1\n"
                                                    "hello a #1:0\n"
                                                    "closed a | start a\n"
                                                    "failed x no\n")

TAPE_CASE(the_next_driver_knows_which_keys_are_dead,
          TWO_HOSTS B_LEAVES "closed b\n"
                             "kill twice\n"
                             "start | record TERM 2\n"
                             "    | key 1 of a\n"
                             "    | start a\n"
                             "hosts a:1,b:1 | record KEY b 3 code 1\n"
                             "    | key 3 of b\n"
                             "    | start b\n")

/* The record was lost with the driver: no agent had the key, and the epoch is given again. */
TAPE_CASE(a_key_that_is_not_on_disk_was_given_to_no_agent, "config np=1 min_np=1 max_np=1\n"
                                                           "keys\n"
                                                           "start\n"
                                                           "hosts a:1\n"
                                                           "kill 1\n"
                                                           "start | record TERM 2\n"
                                                           "hosts a:1 | record KEY a 1 code 1\n"
                                                           "    | key 1 of a\n"
                                                           "    | start a\n")

TAPE_CASE(an_agent_is_the_host_that_its_key_proves,
          TWO_HOSTS "closed a\n"
                    "hello a proved=b #1:0 | a < REFUSED: the agent says that its host is a, but "
                    "has the key of host b\n"
                    "    | close a: the agent says that its host is a, but has the key of host b\n"
                    "hello b proved=a #2:0 | b < REFUSED: the agent says that its host is b, but "
                    "has the key of host a\n"
                    "    | close b: the agent says that its host is b, but has the key of host a\n")

/* ---- new keys while the job trains -------------------------------------------------------------
 */

#define REKEY                         \
    "rekey | record KEY a 3 code 1\n" \
    "    | key 3 of a\n"              \
    "    | a < REKEY 3\n"             \
    "    | record KEY b 4 code 1\n"   \
    "    | key 4 of b\n"              \
    "    | b < REKEY 4\n"             \
    "    | reply HVD_OK: hosts that get a new key: 2\n"

/* While no agent is connected. */
#define REKEY_AWAY                    \
    "rekey | record KEY a 3 code 1\n" \
    "    | key 3 of a\n"              \
    "    | record KEY b 4 code 1\n"   \
    "    | key 4 of b\n"              \
    "    | reply HVD_OK: hosts that get a new key: 2\n"

#define A_HAS_IT                            \
    "rekeyed a 3 | record KEY a 3 code 2\n" \
    "    | key 1 of a ends\n"

#define B_ENDS                \
    "record KEY b 4 code 2\n" \
    "    | key 2 of b ends\n" \
    "    | rekeyed: hosts with a new key: 2; the old keys are no longer accepted\n"

TAPE_CASE(each_host_gets_a_new_key_while_it_trains,
          TWO_HOSTS REKEY A_HAS_IT "rekeyed b 4 | " B_ENDS
                                   /* a second answer changes nothing, and an old one neither */
                                   "rekeyed a 3 |\n"
                                   "rekeyed b 2 |\n"
                                   "wait 3s |\n"
                                   "state running\n")

TAPE_CASE(a_job_without_an_agent_has_no_key_to_change,
          "config np=1 min_np=1 max_np=1\n"
          "keys\n"
          "start\n"
          "rekey | reply HVD_OK: hosts that get a new key: 0\n"
          "    | rekeyed: hosts with a new key: 0; the old keys are no longer accepted\n"
          "hosts a:1 | record KEY a 1 code 1\n"
          "    | key 1 of a\n"
          "    | start a\n")

TAPE_CASE(a_second_rekey_waits_for_the_first,
          TWO_HOSTS REKEY A_HAS_IT "rekey | reply HVD_OK: the keys are being changed already: "
                                   "hosts with a new key: 1 of 2; still to come: b\n"
                                   "rekeyed b 4 | " B_ENDS "rekey | record KEY a 5 code 1\n"
                                   "    | key 5 of a\n"
                                   "    | a < REKEY 5\n"
                                   "    | record KEY b 6 code 1\n"
                                   "    | key 6 of b\n"
                                   "    | b < REKEY 6\n"
                                   "    | reply HVD_OK: hosts that get a new key: 2\n"
                                   /* late answers to the first rekey */
                                   "rekeyed a 3 |\n"
                                   "rekeyed b 4 |\n")

TAPE_CASE(
    a_key_that_the_host_never_had_is_no_answer, TWO_HOSTS REKEY
    "rekeyed a 4 | ! a: a statement of this host's agent is refused: the agent says that it has "
    "version 4 of its host's key, but the host was never given this version\n" A_HAS_IT)

/* Its connection breaks between REKEY and REKEYED: with the next hello the agent says by its key
 * whether it has the new one. */
TAPE_CASE(an_agent_that_comes_back_with_the_old_key_is_told_again,
          TWO_HOSTS REKEY A_HAS_IT "closed b | start b\n"
                                   "hello b epoch=2 #2:0 | b < WELCOME_AGENT term 1\n"
                                   "    | b < REKEY 4\n"
                                   "    | b < STATE_KEY 1\n"
                                   "rekeyed b 4 | " B_ENDS)

TAPE_CASE(an_agent_that_comes_back_with_the_new_key_has_it, TWO_HOSTS REKEY A_HAS_IT
          "closed b | start b\n"
          "hello b epoch=4 #2:0 | b < WELCOME_AGENT term 1\n"
          "    | record KEY b 4 code 2\n"
          "    | key 2 of b ends\n"
          "    | b < STATE_KEY 1\n"
          "    | rekeyed: hosts with a new key: 2; the old keys are no longer accepted\n")

TAPE_CASE(an_agent_that_was_away_keeps_its_key_until_it_is_back,
          TWO_HOSTS "closed b\n"
                    "rekey | record KEY a 3 code 1\n"
                    "    | key 3 of a\n"
                    "    | a < REKEY 3\n"
                    "    | record KEY b 4 code 1\n"
                    "    | key 4 of b\n"
                    "    | reply HVD_OK: hosts that get a new key: 2\n" A_HAS_IT
                    "wait 2s | rekeying: hosts with a new key: 1 of 2; still to come: b\n"
                    "hello b epoch=2 #2:0\n"
                    "rekeyed b 4 | " B_ENDS)

/* Its lease ends: its old key is dead, and the agent that is started anew has the new one. */
TAPE_CASE(an_agent_that_does_not_come_back_loses_its_key,
          TWO_HOSTS "closed b\n"
                    "rekey\n" A_HAS_IT "wait 15s\n"
                    "hello b agent=8 epoch=2 | b < REFUSED: the agent's key is no longer valid: "
                    "the host has left the job, or has a newer key\n"
                    "    | close b: the agent's key is no longer valid: the host has left the job, "
                    "or has a newer key\n"
                    "rekey | record KEY a 5 code 1\n"
                    "    | key 5 of a\n"
                    "    | a < REKEY 5\n"
                    "    | record KEY b 6 code 1\n"
                    "    | key 6 of b\n"
                    "    | reply HVD_OK: hosts that get a new key: 2\n"
                    /* no agent of b is there that could have its old key */
                    "    | record KEY b 6 code 2\n"
                    "    | key 4 of b ends\n"
                    "    | rekeying: hosts with a new key: 1 of 2; still to come: a\n")

/* An agent of an earlier release skips what it does not know, and a taken-over one lies. */
TAPE_CASE(an_agent_that_does_not_answer_loses_its_old_key, TWO_HOSTS REKEY A_HAS_IT
          "wait 9s | rekeying: hosts with a new key: 1 of 2; still to come: b\n"
          "wait 2s | " B_ENDS "closed b | start b\n"
          "hello b epoch=2 #2:0 | b < REFUSED: the agent's key is no longer valid: the host has "
          "left the job, or has a newer key\n"
          "    | close b: the agent's key is no longer valid: the host has left the job, or has a "
          "newer key\n"
          "state running\n")

/* The time of a's old key is over two seconds before that of b's: the timer is then set for b, not
 * for the time that has passed (tape_step asserts it). */
TAPE_CASE(an_old_key_that_ends_sets_no_timer_in_the_past,
          TWO_HOSTS "closed b\n"
                    "rekey\n"
                    "wait 2s\n"
                    "hello b epoch=2 #2:0\n"
                    "wait 7s |\n"
                    "silent a\n" /* no heartbeat is a step at the same moment */
                    "silent b\n"
                    "wait 1s | record KEY a 3 code 2\n"
                    "    | key 1 of a ends\n"
                    "    | rekeying: hosts with a new key: 1 of 2; still to come: b\n"
                    "wait 3s | " B_ENDS)

TAPE_CASE(a_host_that_comes_during_a_change_has_a_new_key,
          TWO_HOSTS REKEY A_HAS_IT "hosts a:1,b:1,c:1\n"
                                   "drain a never\n"
                                   "rekeyed b 4 | " B_ENDS)

TAPE_CASE(a_host_that_leaves_during_a_change_has_no_key, TWO_HOSTS B_LEAVES
          "rekey\n" A_HAS_IT "closed b | record KEY b 4 code 2\n"
          "    | key 2 of b ends\n"
          "    | record KEY b 0 code 0\n"
          "    | key 4 of b ends\n"
          "    | rekeyed: hosts with a new key: 2; the old keys are no longer accepted\n")

/* The thief has the key and not the number of the agent that has it. */
TAPE_CASE(a_stolen_old_key_is_no_agent_that_is_there,
          TWO_HOSTS REKEY "hello b agent=8 epoch=2 | b < REFUSED: the agent has the old key of its "
                          "host, but another agent process was given that key\n"
                          "    | close b: the agent has the old key of its host, but another agent "
                          "process was given that key\n" A_HAS_IT)

TAPE_CASE(the_next_driver_goes_on_with_the_change, TWO_HOSTS REKEY A_HAS_IT
          "kill twice\n"
          "start | record TERM 2\n"
          "    | key 3 of a\n"
          "    | key 2 of b\n"
          "    | key 4 of b\n"
          "    | start a\n"
          "    | start b\n"
          "hosts a:1,b:1\n"
          "hello a epoch=3 #1:0 | a < WELCOME_AGENT term 2\n"
          "    | a < STATE_KEY 1\n"
          "    | a < ROUND 1 first after 0 from 1.0 of 1: 1,2\n"
          "rekey | reply HVD_OK: the keys are being changed already: hosts with a new key: 0 of 1; "
          "still to come: b\n"
          "hello b epoch=2 #2:0\n"
          "rekeyed b 4 | record KEY b 4 code 2\n"
          "    | key 2 of b ends\n"
          "    | rekeyed: hosts with a new key: 1; the old keys are no longer accepted\n")

/* The records of the new keys were lost with the driver, so no agent has them; the next driver
 * gives these epochs again. */
TAPE_CASE(new_keys_that_are_not_on_disk_were_given_to_no_agent,
          TWO_HOSTS REKEY "kill 2\n"
                          "start | record TERM 2\n"
                          "    | key 1 of a\n"
                          "    | key 2 of b\n"
                          "    | start a\n"
                          "    | start b\n" REKEY_AWAY)

/* The end of an old key was lost: the next driver accepts it until the agent is back. */
TAPE_CASE(an_end_that_is_not_on_disk_comes_again, TWO_HOSTS REKEY A_HAS_IT
          "rekeyed b 4 | " B_ENDS "kill 1\n"
          "start | record TERM 2\n"
          "    | key 3 of a\n"
          "    | key 2 of b\n"
          "    | key 4 of b\n"
          "    | start a\n"
          "    | start b\n"
          "hosts a:1,b:1\n"
          "hello a epoch=3 #1:0\n"
          "hello b epoch=4 #2:0 | b < WELCOME_AGENT term 2\n"
          "    | record KEY b 4 code 2\n"
          "    | key 2 of b ends\n"
          "    | b < STATE_KEY 1\n"
          "    | b < ROUND 1 first after 0 from 1.0 of 1: 1,2\n"
          "    | rekeyed: hosts with a new key: 1; the old keys are no longer accepted\n")

/* A host without a worker is not waited for, once its agent had the time to come back. */
TAPE_CASE(the_next_driver_ends_the_old_key_of_an_agent_that_does_not_come,
          TWO_HOSTS REKEY A_HAS_IT "kill\n"
                                   "start\n"
                                   "hosts a:1\n"
                                   "hello a epoch=3 #1:0\n"
                                   "wait 61s\n"
                                   "rekey | record KEY a 5 code 1\n"
                                   "    | key 5 of a\n"
                                   "    | a < REKEY 5\n"
                                   "    | reply HVD_OK: hosts that get a new key: 1\n")

/* b was told to end, and its driver died: the next one hears nothing of b any more. */
TAPE_CASE(the_next_driver_ends_the_key_of_a_host_that_left,
          TWO_HOSTS B_LEAVES "kill\n"
                             "start | record TERM 2\n"
                             "    | key 1 of a\n"
                             "    | key 2 of b\n"
                             "    | start a\n"
                             "hosts a:1 | record KEY b 0 code 0\n"
                             "    | key 2 of b ends\n")

TAPE_CASE(a_job_that_ends_keeps_its_keys, TWO_HOSTS REKEY
          "stop you\n"
          "rekeyed a 3 | record KEY a 3 code 2\n"
          "    | key 1 of a ends\n"
          "rekey | reply HVD_E_STATE: the job is ending, and all its keys end with the job\n")
