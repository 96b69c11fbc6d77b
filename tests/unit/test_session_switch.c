/*
 * test_session_switch.c: the worker's session during a change of rounds: PREPARE, PENDING,
 * SWITCH_AT and ABANDON, in every order in which the messages can come.
 */
#include "tests/lib/session_tape.h"

static struct tape tape;

#define PREPARED                  \
    TAPE_ACTIVE                   \
    "prepare 2 7,9 | prepare 2\n" \
    "prepared 2    | send PREPARED round=2\n"
#define PENDING PREPARED "pending 1 2 | watch yes\n"
#define WAITING                                                     \
    PENDING                                                         \
    "check 4 | send NEXT_CHECK round=1 next=2 check=4; answer OK\n" \
    "check 5 |\n"
#define SWITCHED                                        \
    WAITING                                             \
    "switch 1 2 5 | commit 2:0; answer HOSTS_UPDATED\n" \
    "state switched |\n"

TAPE_CASE(switches_and_then_the_round_comes, SWITCHED "returned HOSTS_UPDATED |\n"
                                                      "round 2 7,9 | watch no; enter 2 0/2 of 7,9 "
                                                      "prepared\n"
                                                      "synced  |\n"
                                                      "check 0 | answer OK\n"
                                                      "stepped | send ENTERED round=2 commit=1\n")
TAPE_CASE(switches_and_the_round_was_there, SWITCHED "round 2 7,9 |\n"
                                                     "round 2 7,9 | ! stale\n"
                                                     "returned HOSTS_UPDATED | watch no; enter 2 "
                                                     "0/2 of 7,9 prepared\n"
                                                     "round 2 7,9 | ! stale\n"
                                                     "synced  |\n")
TAPE_CASE(the_round_comes_before_the_agreed_check,
          PENDING "check 4 | send NEXT_CHECK round=1 next=2 check=4; answer OK\n"
                  "switch 1 2 6 |\n"
                  "round 2 7,9 | ! waits until the training loop can enter\n"
                  "check 5 | answer OK\n"
                  "check 6 | commit 2:0; answer HOSTS_UPDATED\n"
                  "returned HOSTS_UPDATED | watch no; enter 2 0/2 of 7,9 prepared\n")
TAPE_CASE(waits_and_is_let_go_on,
          WAITING "switch 1 2 7 | answer OK\n"
                  "switch 1 2 7 | ! the switch to this round is agreed already\n"
                  "pending 1 2 | ! the switch to this round is agreed already\n"
                  "pending 1 3 | ! the switch to another round is agreed\n"
                  "switch 1 3 9 | ! the switch to another round is agreed\n"
                  "prepare 3 7 | ! another round is agreed\n"
                  "check 6 | answer OK\n"
                  "check 7 | commit 2:0; answer HOSTS_UPDATED\n")
TAPE_CASE(messages_of_a_switch_again,
          SWITCHED "pending 1 2 | ! this worker does not train in the round\n"
                   "switch 1 2 5 | ! this worker does not train in the round\n"
                   "prepare 2 7,9 | send PREPARED round=2\n"
                   "prepare 3 7 | ! another round is agreed\n"
                   "drain | ! this worker leaves at the switch\n")
TAPE_CASE(says_at_once_per_change,
          PENDING "pending 1 2 | ! this PENDING has come before\n"
                  "check 0 | send NEXT_CHECK round=1 next=2; answer OK\n"
                  "pending 1 2 | ! this PENDING has come before\n"
                  "check 1 |\n"
                  "pending 1 2 | ! this PENDING has come before\n"
                  "pending 2 3 | ! this worker does not train in the round\n"
                  "pending 1 1 | ! stale\n")

/* The next round has other workers and not this worker. */
TAPE_CASE(leaves_with_the_switch,
          TAPE_ACTIVE "prepare 2 8,9 | ! does not list this worker\n"
                      "prepare 2 8,9 | ! this PREPARE has come before\n"
                      "pending 1 2 | watch yes\n"
                      "check 0 | send NEXT_CHECK round=1 next=2; answer OK\n"
                      "switch 1 2 1 |\n"
                      "round 2 8,9 | ! does not list this worker\n"
                      "check 1 | commit 2:0; answer LEFT\n"
                      "state left |\n"
                      "revoke 1 | ! this worker has ended its part\n"
                      "check 2 | answer LEFT\n"
                      "returned LEFT | send LEFT; return LEFT\n"
                      "run | return LEFT\n")
TAPE_CASE(leaves_while_its_check_waits,
          TAPE_ACTIVE "prepare 2 8,9 | ! does not list this worker\n"
                      "pending 1 2 | watch yes\n"
                      "check 0 | send NEXT_CHECK round=1 next=2; answer OK\n"
                      "check 1 |\n"
                      "switch 1 2 1 | commit 2:0; answer LEFT\n"
                      "returned | send LEFT; return LEFT\n")
/* PREPARE lists this worker and ROUND does not: ROUND is right. */
TAPE_CASE(the_round_does_not_list_the_worker_after_all,
          PENDING "switch 1 2 3 |\n"
                  "round 2 8,9 | abandon 2\n"
                  "check 3 | commit 2:0; answer LEFT\n"
                  "returned LEFT | send LEFT; return LEFT\n")
TAPE_CASE(the_round_lists_the_worker_after_all,
          TAPE_ACTIVE "prepare 2 8,9 | ! does not list this worker\n"
                      "switch 1 2 3 | watch yes\n"
                      "round 2 7,9 | ! waits until the training loop can enter\n"
                      "check 3 | commit 2:0; answer HOSTS_UPDATED\n"
                      "returned HOSTS_UPDATED | watch no; enter 2 0/2 of "
                      "7,9\n")
TAPE_CASE(the_round_does_not_list_the_worker_after_the_switch,
          SWITCHED "round 2 8,9 | abandon 2\n"
                   "returned HOSTS_UPDATED | send LEFT; return LEFT\n")

/* The loop may be in a collective that needs a member which waits already. */
TAPE_CASE(says_at_once_where_the_loop_is,
          PREPARED "pending 1 2 7 | watch yes; send NEXT_CHECK round=1 next=2 check=7\n"
                   "check 7 | answer OK\n"
                   "check 8 |\n"
                   "switch 1 2 10 | answer OK\n"
                   "check 9 | answer OK\n"
                   "check 10 | commit 2:0; answer HOSTS_UPDATED\n")
TAPE_CASE(says_where_it_begins_while_it_enters,
          TAPE_ENTERING "pending 1 2 0 | watch yes; send NEXT_CHECK round=1 next=2\n"
                        "synced |\n"
                        "check 0 | answer OK\n"
                        "check 1 |\n")
TAPE_CASE(a_brought_commit_counts_too,
          WAITING "pending 1 3 2 | send NEXT_CHECK round=1 next=3 check=5; answer OK\n"
                  "pending 1 4 2 | send NEXT_CHECK round=1 next=4 check=6\n"
                  "check 6 | answer OK\n"
                  "check 7 |\n")
TAPE_CASE(abandoned_while_pending, PENDING "abandon 1 2 | abandon 2; watch no\n"
                                           "abandon 1 2 | ! stale\n"
                                           "pending 1 2 | ! stale\n"
                                           "switch 1 2 5 | ! stale\n"
                                           "prepare 2 7,9 | ! stale\n"
                                           "round 2 7,9 | ! stale\n"
                                           "check 0 | answer OK\n"
                                           "check 1 | answer OK\n")
TAPE_CASE(abandoned_while_it_waits,
          WAITING "abandon 1 2 | abandon 2; watch no; answer OK\n"
                  "prepare 3 7 | prepare 3\n"
                  "pending 1 3 | watch yes\n"
                  "check 6 | send NEXT_CHECK round=1 next=3 check=6; answer OK\n")
TAPE_CASE(abandoned_after_the_check_was_agreed,
          WAITING "switch 1 2 7 | answer OK\n"
                  "round 2 7,9 | ! waits until the training loop can enter\n"
                  "abandon 1 2 | abandon 2; watch no\n"
                  "check 6 | answer OK\n"
                  "check 7 | answer OK\n")
TAPE_CASE(abandoned_before_the_round_was_prepared,
          TAPE_ACTIVE "prepare 2 7 | prepare 2\n"
                      "abandon 1 2 | abandon 2\n"
                      "prepared 2 | ! was abandoned or replaced\n"
                      "abandon 1 3 | ! is abandoned\n")
/* ABANDON names a round as the running one: that round goes on, although its ROUND message is still
 * on its way. */
TAPE_CASE(abandoned_beyond_the_round_to_come,
          PENDING "switch 1 2 6 |\n"
                  "abandon 2 4 | ! round 4 is abandoned\n"
                  "prepare 4 7 | ! stale\n"
                  "abandon 2 2 | ! stale\n"
                  "abandon 2 3 | ! stale\n"
                  "round 2 7,9 | ! waits until the training loop can enter\n"
                  "check 6 | commit 2:0; answer HOSTS_UPDATED\n"
                  "returned HOSTS_UPDATED | watch no; enter 2 0/2 of 7,9 prepared\n"
                  "prepare 3 7 | ! stale\n"
                  "abandon 6 7 | ! is abandoned\n"
                  "prepare 7 7 | ! stale\n"
                  "prepare 6 7 | prepare 6\n"
                  "abandon 5 8 | abandon 6\n"
                  "prepare 6 7 | ! stale\n")
TAPE_CASE(abandoned_after_the_switch,
          SWITCHED "abandon 1 2 | abandon 2; cancel 1\n"
                   "returned HOSTS_UPDATED | restore\n"
                   "restored 4 | send RECOVERING round=1 text=\"the next round was abandoned after "
                   "the switch\" with 4\n"
                   "revoke 1 | send RECOVERING round=1 with 4\n"
                   "revoke 1 | ! a REVOKE of this or a later round has come\n"
                   "round 3 7 | watch no; enter 3 0/1 of 7\n")

TAPE_CASE(a_second_pending_change_while_a_check_waits,
          WAITING "pending 1 3 | send NEXT_CHECK round=1 next=3 check=5; answer OK\n"
                  "pending 1 2 | ! stale\n"
                  "switch 1 2 5 | ! stale\n"
                  "check 6 |\n"
                  "switch 1 3 6 | commit 3:0; answer LEFT; abandon 2\n")
TAPE_CASE(a_second_prepare_while_a_check_waits,
          WAITING "prepare 3 7 | abandon 2; watch no; answer OK; prepare 3\n"
                  "prepare 2 7 | ! stale\n"
                  "pending 1 2 | ! stale\n"
                  "prepared 2 | ! was abandoned or replaced\n"
                  "prepared 3 E_IO | send PREPARED round=3 code=-7 text=\"no route\"\n"
                  "prepare 3 7 | send PREPARED round=3 code=-7 text=\"no route\"\n"
                  "abandon 1 3 |\n")
TAPE_CASE(pending_comes_before_its_prepare,
          TAPE_ACTIVE "pending 1 2 | watch yes\n"
                      "prepare 2 7,9 | prepare 2\n"
                      "check 0 | send NEXT_CHECK round=1 next=2; answer OK\n"
                      "prepare 1 7,9 | ! stale\n"
                      "switch 1 2 1 |\n"
                      "check 1 | commit 2:0; answer HOSTS_UPDATED\n"
                      "returned HOSTS_UPDATED |\n"
                      "round 2 7,9 | abandon 2; watch no; enter 2 "
                      "0/2 of 7,9\n"
                      "prepared 2 | ! was abandoned or replaced\n")
TAPE_CASE(a_prepare_older_than_the_pending_round, TAPE_ACTIVE "pending 1 3 | watch yes\n"
                                                              "prepare 2 7 | ! stale\n"
                                                              "round 2 7 | ! stale\n")

TAPE_CASE(a_switch_that_was_not_announced, PREPARED "switch 1 2 3 | watch yes\n"
                                                    "check 2 | answer OK\n"
                                                    "check 3 | commit 2:0; answer HOSTS_UPDATED\n")
TAPE_CASE(a_switch_other_than_announced, WAITING "switch 1 3 6 | answer OK\n"
                                                 "check 6 | commit 3:0; answer LEFT; abandon 2\n")
TAPE_CASE(
    a_check_beyond_the_agreed_check, PENDING
    "switch 1 2 3 |\n"
    "check 4 | cancel 1; answer E_REVOKED\n"
    "state revoked |\n"
    "returned E_REVOKED | restore\n"
    "restored 4 | send RECOVERING round=1 text=\"this worker is past the agreed check\" with 4\n")
TAPE_CASE(a_check_beyond_the_agreed_check_waits,
          WAITING "switch 1 2 4 | cancel 1; answer E_REVOKED\n"
                  "returned E_REVOKED | restore\n")
TAPE_CASE(the_agreed_check_has_passed,
          PENDING "check 4 | send NEXT_CHECK round=1 next=2 check=4; answer OK\n"
                  "switch 1 2 4 | cancel 1\n"
                  "check 5 | answer E_REVOKED\n"
                  "returned E_REVOKED | restore\n"
                  "round 2 7,9 | ! waits until the training loop can enter\n"
                  "restored 4 | watch no; enter 2 0/2 of 7,9 prepared\n")

/* train made steps after the agreed check; the commit does not have these steps. */
TAPE_CASE(train_checks_again, SWITCHED "round 2 7,9 |\n"
                                       "check 6 | answer HOSTS_UPDATED\n"
                                       "returned HOSTS_UPDATED | restore\n"
                                       "restored 4 | watch no; enter 2 0/2 of 7,9 prepared\n")
TAPE_CASE(train_returns_something_else,
          SWITCHED "returned E_REVOKED | restore\n"
                   "round 2 7,9 |\n"
                   "restored 4 | watch no; enter 2 0/2 of 7,9 prepared\n")
TAPE_CASE(restored_and_the_round_comes_later, SWITCHED "returned E_REVOKED | restore\n"
                                                       "restored 4 |\n"
                                                       "round 2 7,9 | watch no; enter 2 0/2 of 7,9 "
                                                       "prepared\n")
TAPE_CASE(train_ends_at_the_switch,
          SWITCHED "returned | abandon 2; send FINISHED round=1; return OK\n")
TAPE_CASE(train_fails_at_the_switch,
          SWITCHED "returned 9 | abandon 2; send FINISHED round=1 code=9 text=\"as told in two "
                   "lines\"; return ?\n")
