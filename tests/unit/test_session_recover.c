/*
 * test_session_recover.c: the worker's session through a recovery: revokes at every place, failed
 * collectives, restores, and dismissals meanwhile.
 */
#include "tests/lib/session_tape.h"

static struct tape tape;

#define RECOVERED                          \
    TAPE_ACTIVE                            \
    "revoke 1     | cancel 1; watch yes\n" \
    "returned E_REVOKED | restore\n"       \
    "restored 4,5  | send RECOVERING round=1 with 4,5\n"

TAPE_CASE(recovers, RECOVERED "state recovered |\n"
                              "revoke 1 | ! a REVOKE of this or a later round has come\n"
                              "round 2 8,7 RECOVERY | watch no; enter 2 1/2 of 8,7\n"
                              "revoke 1 | ! stale\n"
                              "synced |\n"
                              "revoke 1 | ! stale\n"
                              "revoke 2 | cancel 2; watch yes\n")
TAPE_CASE(is_asked_again, RECOVERED "revoke 3 | send RECOVERING round=3 with 4,5\n"
                                    "revoke 3 | ! a REVOKE of this or a later round has come\n"
                                    "revoke 2 | ! a REVOKE of this or a later round has come\n"
                                    "round 3 7 | ! stale\n"
                                    "round 2 7 | ! stale\n"
                                    "prepare 3 7 | ! stale\n"
                                    "round 4 7 | watch no; enter 4 0/1 of 7\n")
TAPE_CASE(revoked_in_do_enter, TAPE_ENTERING "revoke 1 | cancel 1; watch yes\n"
                                             "synced E_REVOKED | restore\n"
                                             "restored | send RECOVERING round=1\n")
TAPE_CASE(revoked_just_as_train_begins, TAPE_ENTERING "revoke 1 | cancel 1; watch yes\n"
                                                      "synced |\n"
                                                      "check 0 | answer E_REVOKED\n"
                                                      "returned E_REVOKED | restore\n"
                                                      "restored | send RECOVERING round=1\n")
TAPE_CASE(revoked_twice_before_it_is_restored,
          TAPE_ACTIVE "revoke 1 | cancel 1; watch yes\n"
                      "revoke 1 | ! a REVOKE of this or a later round has come\n"
                      "revoke 2 | cancel 2\n"
                      "returned E_REVOKED | restore\n"
                      "revoke 3 | cancel 3\n"
                      "restored 4 | send RECOVERING round=3 with 4\n")
TAPE_CASE(revoked_with_a_change_pending,
          TAPE_ACTIVE "prepare 2 7 | prepare 2\n"
                      "pending 1 2 | watch yes\n"
                      "check 0 | send NEXT_CHECK round=1 next=2; answer OK\n"
                      "check 1 |\n"
                      "revoke 1 | cancel 1; answer E_REVOKED\n"
                      "returned E_REVOKED | restore\n"
                      "prepared 2 | send PREPARED round=2\n"
                      "restored 4 | send RECOVERING round=1 with 4\n"
                      "pending 1 2 | ! this worker does not train in the round\n"
                      "switch 1 2 1 | ! this worker does not train in the round\n"
                      "abandon 1 2 | abandon 2\n"
                      "round 3 7 RECOVERY | watch no; enter 3 0/1 of 7\n")
TAPE_CASE(revoked_together_with_the_prepared_round,
          TAPE_ACTIVE "prepare 2 7 | prepare 2\n"
                      "prepared 2 | send PREPARED round=2\n"
                      "pending 1 2 | watch yes\n"
                      "switch 1 2 3 |\n"
                      "round 2 7 | ! waits until the training loop can enter\n"
                      "revoke 1 | ! stale\n"
                      "revoke 2 | cancel 2; abandon 2\n"
                      "check 1 | answer E_REVOKED\n"
                      "returned E_REVOKED | restore\n"
                      "restored 4 | send RECOVERING round=2 with 4\n")
TAPE_CASE(revoked_between_two_rounds, TAPE_ACTIVE "prepare 2 7,9 | prepare 2\n"
                                                  "switch 1 2 0 | watch yes\n"
                                                  "check 0 | commit 2:0; answer HOSTS_UPDATED\n"
                                                  "returned HOSTS_UPDATED |\n"
                                                  "revoke 2 | cancel 2; abandon 2; restore\n"
                                                  "restored 5 | send RECOVERING round=2 with 5\n"
                                                  "prepared 2 | ! was abandoned or replaced\n")
TAPE_CASE(revoked_while_it_restores_after_a_switch,
          TAPE_ACTIVE "prepare 2 7,9 | prepare 2\n"
                      "switch 1 2 0 | watch yes\n"
                      "check 0 | commit 2:0; answer HOSTS_UPDATED\n"
                      "returned E_REVOKED | restore\n"
                      "revoke 1 | cancel 1\n"
                      "restored 5 | send RECOVERING round=1 with 5\n"
                      "revoke 2 | abandon 2; send RECOVERING round=2 with 5\n")

TAPE_CASE(collectives_fail,
          TAPE_ACTIVE "returned E_REVOKED | cancel 1; restore\n"
                      "restored 4 | send RECOVERING round=1 text=\"as told in two lines\" with 4\n"
                      "revoke 1 | send RECOVERING round=1 with 4\n"
                      "revoke 1 | ! a REVOKE of this or a later round has come\n")
TAPE_CASE(collectives_fail_as_ranks_do_not_match, TAPE_ACTIVE
          "returned E_REVOKED E_MISMATCH | cancel 1; restore\n"
          "restored 4 | send RECOVERING round=1 text=\"as told in two lines\" code=-16 with 4\n"
          "revoke 1 | send RECOVERING round=1 with 4\n")
TAPE_CASE(collectives_fail_and_the_driver_asks,
          TAPE_ACTIVE "returned E_REVOKED | cancel 1; restore\n"
                      "revoke 1 |\n"
                      "restored 4 | send RECOVERING round=1 "
                      "with 4\n"
                      "revoke 1 | ! a REVOKE of this or a later round has come\n")
TAPE_CASE(the_worker_cannot_enter, TAPE_ENTERING
          "synced E_IO | cancel 1; restore\n"
          "restored 4 | send RECOVERING round=1 text=\"input or output failed\" code=-7 with 4\n")
TAPE_CASE(finishes_in_a_dead_round, TAPE_ACTIVE "revoke 1 | cancel 1; watch yes\n"
                                                "returned | send FINISHED round=1; return OK\n")
TAPE_CASE(fails_in_a_dead_round, TAPE_ACTIVE "revoke 1 | cancel 1; watch yes\n"
                                             "returned 9 | send FINISHED round=1 code=9 text=\"as "
                                             "told in two lines\"; return ?\n")

TAPE_CASE(drained_while_it_recovers,
          TAPE_ACTIVE "revoke 1 | cancel 1; watch yes\n"
                      "drain | ! this worker was asked to leave; it leaves\n"
                      "drain | ! this worker was already asked to leave\n"
                      "returned E_REVOKED | restore\n"
                      "restored 4 | send LEFT; return LEFT\n")
TAPE_CASE(drained_but_a_round_lists_the_worker,
          TAPE_ACTIVE "revoke 1 | cancel 1; watch yes\n"
                      "drain | ! this worker was asked to leave; it leaves\n"
                      "round 2 7 RECOVERY | ! waits until the training loop can enter\n"
                      "drain | ! a ROUND that lists this worker has arrived\n"
                      "prepare 2 7 | ! stale\n"
                      "returned E_REVOKED | restore\n"
                      "prepare 3 7 | ! another round is agreed\n"
                      "restored 4 | watch no; enter 2 0/1 of 7\n")
TAPE_CASE(drained_after_it_recovered, RECOVERED "drain | send LEFT; return LEFT\n")
TAPE_CASE(dismissed_after_it_recovered, RECOVERED "done | return DONE\n")
TAPE_CASE(dismissed_while_it_recovers, TAPE_ACTIVE "revoke 1 | cancel 1; watch yes\n"
                                                   "done |\n"
                                                   "check 0 | answer DONE\n"
                                                   "returned E_REVOKED | return DONE\n")
TAPE_CASE(lost_after_it_recovered, RECOVERED "closed | return E_LOST\n")

/* No worker joins a dead round; a worker that was never in a round has nothing to restore. */
TAPE_CASE(a_joiner_and_a_revoke, "revoke 1 | ! this worker is not a member\n"
                                 "revoke 1 | ! a REVOKE of this or a later round has come\n"
                                 "run 4 | send READY manifest=5 held=1\n"
                                 "revoke 2 | ! this worker is not a member\n"
                                 "prepare 3 8 | ! does not list this worker\n"
                                 "revoke 3 | ! this worker is not a member\n"
                                 "prepare 4 7,8 | prepare 4\n"
                                 "revoke 4 | abandon 4; send RECOVERING round=4 with 4\n"
                                 "state recovered |\n"
                                 "revoke 4 | ! a REVOKE of this or a later round has come\n"
                                 "round 5 8 RECOVERY | ! waits for another\n"
                                 "round 6 8,7 | enter 6 1/2 of 8,7\n")
TAPE_CASE(a_joiner_and_a_revoke_before_what_it_is_prepared_for,
          "run | send READY manifest=5\n"
          "prepare 4 7,8 | prepare 4\n"
          "revoke 3 | ! this worker is not a member\n"
          "prepared 4 | send PREPARED round=4\n"
          "round 4 7,8 | enter 4 0/2 of 7,8 prepared\n")
