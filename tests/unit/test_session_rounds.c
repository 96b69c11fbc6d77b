/*
 * test_session_rounds.c: rounds that do not list the worker, rounds that it enters late, and
 * prepared rounds that never began.
 */
#include "base/mem.h"
#include "tests/lib/session_tape.h"
#include "tests/lib/test.h"

static struct tape tape;

TAPE_CASE(waits_for_a_round_that_lists_the_worker,
          "round 1 7 | ! this worker has not sent READY yet\n"
          "prepare 1 7 | ! this worker has not sent READY yet\n"
          "run | send READY manifest=5\n"
          "prepare 2 7,8 | prepare 2\n"
          "prepared 2 | send PREPARED round=2\n"
          "round 2 8,9 | abandon 2\n"
          "round 3 8,9 | ! the round does not list this worker, which waits\n"
          "prepare 4 7,8 | prepare 4\n"
          "round 3 8,9 | ! does not list this worker\n"
          "prepared 4 | send PREPARED round=4\n"
          "round 4 8,7 | enter 4 1/2 of 8,7 prepared\n")
TAPE_CASE(a_prepared_round_is_not_the_next_one,
          "run | send READY manifest=5\n"
          "prepare 2 7,8 | prepare 2\n"
          "prepared 2 | send PREPARED round=2\n"
          "round 3 7 RECOVERY | abandon 2; enter 3 0/1 of 7\n")
TAPE_CASE(a_preparation_fails, "run | send READY manifest=5\n"
                               "prepare 2 7,8 | prepare 2\n"
                               "prepared 2 E_IO | send PREPARED round=2 code=-7 text=\"no "
                               "route\"\n"
                               "round 2 7,8 | enter 2 0/2 of 7,8\n")
TAPE_CASE(out_of_the_recovery,
          TAPE_ACTIVE "revoke 1 | cancel 1; watch yes\n"
                      "returned E_REVOKED | restore\n"
                      "restored 4 | send RECOVERING round=1 with 4\n"
                      "prepare 2 7 | prepare 2\n"
                      "round 3 8 RECOVERY | abandon 2; send LEFT; return LEFT\n")
TAPE_CASE(out_before_it_has_recovered, TAPE_ACTIVE "revoke 1 | cancel 1; watch yes\n"
                                                   "round 2 8 RECOVERY |\n"
                                                   "state left |\n"
                                                   "check 3 | answer LEFT\n"
                                                   "returned E_REVOKED | send LEFT; return LEFT\n")
TAPE_CASE(out_while_it_restores, TAPE_ACTIVE "revoke 1 | cancel 1; watch yes\n"
                                             "returned E_REVOKED | restore\n"
                                             "round 2 8 RECOVERY |\n"
                                             "restored 4 | send LEFT; return LEFT\n")
TAPE_CASE(out_while_it_trains, TAPE_ACTIVE "pending 1 2 | watch yes\n"
                                           "check 0 | send NEXT_CHECK round=1 next=2; answer OK\n"
                                           "check 1 |\n"
                                           "round 3 8 RECOVERY | cancel 1; answer LEFT\n"
                                           "returned LEFT | send LEFT; return LEFT\n")
TAPE_CASE(out_while_it_enters, TAPE_ENTERING "round 3 8 RECOVERY | cancel 1; watch yes\n"
                                             "synced E_REVOKED | send LEFT; return LEFT\n")
TAPE_CASE(out_between_two_rounds,
          TAPE_ACTIVE "prepare 2 7,9 | prepare 2\n"
                      "switch 1 2 0 | watch yes\n"
                      "check 0 | commit 2:0; answer HOSTS_UPDATED\n"
                      "returned HOSTS_UPDATED |\n"
                      "round 3 9 RECOVERY | cancel 1; abandon 2; send LEFT; "
                      "return LEFT\n")

/* A later round lists the worker, although no SWITCH_AT has come. */
TAPE_CASE(catches_up_from_train, TAPE_ACTIVE "round 3 7,9 RECOVERY | cancel 2; watch yes\n"
                                             "returned E_REVOKED | restore\n"
                                             "restored 4 | watch no; enter 3 0/2 of 7,9\n")
TAPE_CASE(catches_up_from_do_enter,
          TAPE_ENTERING "round 2 7,9 RECOVERY | cancel 1; watch yes\n"
                        "round 2 7,9 RECOVERY | ! stale\n"
                        "round 3 9,7 RECOVERY | ! waits until the training loop can enter\n"
                        "synced E_REVOKED | restore\n"
                        "restored 4 | watch no; enter 3 1/2 of 9,7\n")
TAPE_CASE(catches_up_between_two_rounds, TAPE_ACTIVE "prepare 2 7,9 | prepare 2\n"
                                                     "switch 1 2 0 | watch yes\n"
                                                     "check 0 | commit 2:0; answer HOSTS_UPDATED\n"
                                                     "returned HOSTS_UPDATED |\n"
                                                     "round 3 7 RECOVERY | cancel 2; abandon 2; "
                                                     "restore\n"
                                                     "restored 5 | watch no; enter 3 0/1 of 7\n")
TAPE_CASE(catches_up_and_that_is_revoked_too,
          TAPE_ACTIVE "round 3 7,9 | cancel 2; watch yes\n"
                      "revoke 2 | ! stale\n"
                      "revoke 3 | cancel 3\n"
                      "returned E_REVOKED | restore\n"
                      "restored 4 | send RECOVERING round=3 with 4\n")
TAPE_CASE(catches_up_and_that_is_abandoned, TAPE_ACTIVE
          "round 3 7,9 | cancel 2; watch yes\n"
          "abandon 2 3 | ! is abandoned\n"
          "returned E_REVOKED | restore\n"
          "restored 4 | send RECOVERING round=2 text=\"a later round has begun\" with 4\n")
TAPE_CASE(dismissed_while_a_round_waits, TAPE_ACTIVE "round 3 7,9 | cancel 2; watch yes\n"
                                                     "done |\n"
                                                     "returned E_REVOKED | return DONE\n")

/* A waiting ROUND message is copied, small or large; without memory the step fails. */
TEST(a_large_round_is_copied)
{
    enum { MEMBERS = 150 };
    static const char *const addresses[] = { "10.0.0.1:4000", "unix:@hvd-elastic-somewhere" };
    struct msg_member *members = mem_zalloc_array(MEMBERS, sizeof(*members));
    uint64_t *holders = mem_zalloc_array(MEMBERS, sizeof(*holders));
    struct session_event event = { .kind = SESSION_MSG };
    struct msg msg = { .type = MSG_ROUND, .term = 1, .round = 3 };
    const struct session_action *enter;

    CHECK_OK(t, tape_init(&tape));
    CHECK(t, members && holders);
    for (uint64_t i = 0; i < MEMBERS; i++) {
        holders[i] = TAPE_ME + i;
        members[i] = (struct msg_member){
            .incarnation = TAPE_ME + i,
            .host = i % 2 ? "host-with-a-name-1" : "host-2",
            .slot = (uint32_t)i,
            .addresses = {addresses, i % 3}
        };
    }
    msg.u.round.members = (struct msg_member_list){ members, MEMBERS };
    msg.u.round.holders = (struct msg_ids){ holders, MEMBERS };
    event.msg = &msg;
    CHECK_PLAY(t, &tape, TAPE_ACTIVE);
    CHECK_OK(t, session_step(tape.session, &event, &tape.list));
    mem_free(members);
    mem_free(holders);
    members = NULL;
    holders = NULL;
    session_action_list_clear(&tape.list);
    CHECK_PLAY(t, &tape, "returned E_REVOKED | restore\n");
    CHECK_OK(t, session_step(tape.session, &(struct session_event){ .kind = SESSION_RESTORED },
                             &tape.list));
    CHECK_INT(t, tape.list.count, ==, 2);
    enter = &tape.list.items[1];
    CHECK_INT(t, enter->kind, ==, DO_ENTER);
    CHECK_INT(t, enter->place.local_size, ==, MEMBERS / 2);
    CHECK_INT(t, enter->msg->u.round.holders.items[149], ==, TAPE_ME + 149);
    CHECK_TEXT(t, enter->msg->u.round.members.items[149].host, "host-with-a-name-1");
    CHECK_TEXT(t, enter->msg->u.round.members.items[149].addresses.items[1], addresses[1]);
out:
    mem_free(members);
    mem_free(holders);
    tape_release(&tape);
}

TEST(freeing_forgets_waiting_messages)
{
    CHECK_OK(t, tape_init(&tape));
    CHECK_PLAY(t, &tape, TAPE_ACTIVE "round 3 7,9 | cancel 2; watch yes\n");
    CHECK_INT(t, session_round(tape.session), ==, 1);
out:
    tape_release(&tape);
}
