/*
 * test_session.c: the worker's session in scripts: beginnings, ends, drains, dismissals, and the
 * loss of its agent at every place. In a script `|` separates an event from the actions that must
 * follow.
 */
#include "proto/commit.h"
#include "tests/lib/session_tape.h"
#include "tests/lib/test.h"

static struct tape tape;

TAPE_CASE(trains_to_the_end, TAPE_ACTIVE "state active |\n"
                                         "stepped      | send ENTERED round=1 commit=1\n"
                                         "check 0      | answer OK\n"
                                         "check 5      | answer OK\n"
                                         "returned     | send FINISHED round=1; return OK\n"
                                         "state finished |\n"
                                         "run          | return E_STATE\n")

TAPE_CASE(says_once_that_it_entered, TAPE_ACTIVE "stepped | send ENTERED round=1 commit=1\n"
                                                 "stepped | ! the first step is ignored\n"
                                                 "revoke 1 | cancel 1; watch yes\n"
                                                 "stepped | ! the first step is ignored\n")

TAPE_CASE(fails_in_train,
          TAPE_ACTIVE "returned 42 | send FINISHED round=1 code=42 text=\"as told in two "
                      "lines\"; return ?\n")
TAPE_CASE(news_that_it_was_not_told,
          TAPE_ACTIVE "returned HOSTS_UPDATED | send FINISHED round=1 code=-4 text=\"train "
                      "returned HVD_HOSTS_UPDATED, but no call of\"...; return E_STATE\n")
TAPE_CASE(a_loss_of_its_own, TAPE_ACTIVE "returned E_LOST | send FINISHED round=1 code=-17 "
                                         "text=\"as told in two lines\"; return E_LOST\n")

TAPE_CASE(leaves_before_it_runs, "drain | send LEFT\n"
                                 "state left |\n"
                                 "drain | ! this worker has ended its part\n"
                                 "run   | return LEFT\n"
                                 "run   | return LEFT\n")
TAPE_CASE(leaves_while_ready, "run   | send READY manifest=5\n"
                              "prepare 1 7 | prepare 1\n"
                              "drain | abandon 1; send LEFT; return LEFT\n"
                              "prepared 1 | ! was abandoned or replaced\n"
                              "run   | return LEFT\n")
TAPE_CASE(a_drain_is_news_to_who_trains,
          TAPE_ENTERING "drain | ! this worker leaves at the switch\n"
                        "synced |\n"
                        "drain | ! this worker leaves at the switch\n"
                        "check 0 | answer OK\n")

TAPE_CASE(dismissed_before_it_runs, "done |\n"
                                    "done | ! this worker has ended its part\n"
                                    "run  | return DONE\n")
TAPE_CASE(dismissed_while_ready, "run  | send READY manifest=5\n"
                                 "done | return DONE\n"
                                 "run  | return DONE\n")
TAPE_CASE(dismissed_while_entering, TAPE_ENTERING "done   | cancel 1; watch yes\n"
                                                  "synced E_REVOKED | return DONE\n")
TAPE_CASE(dismissed_while_training, TAPE_ACTIVE "done     | cancel 1; watch yes\n"
                                                "check 3  | answer DONE\n"
                                                "returned DONE | return DONE\n")
TAPE_CASE(dismissed_but_it_reached_the_end,
          TAPE_ACTIVE "done | cancel 1; watch yes\n"
                      "returned | send FINISHED round=1; return OK\n"
                      "state finished |\n")
TAPE_CASE(dismissed_and_its_train_fails, TAPE_ACTIVE "done | cancel 1; watch yes\n"
                                                     "returned 42 | return DONE\n"
                                                     "closed |\n"
                                                     "state dismissed |\n")
TAPE_CASE(dismissed_while_a_check_waits,
          TAPE_ACTIVE "pending 1 2 | watch yes\n"
                      "check 0      | send NEXT_CHECK round=1 next=2; answer OK\n"
                      "check 1      |\n"
                      "done         | cancel 1; answer DONE\n"
                      "returned DONE | return DONE\n")

TAPE_CASE(lost_before_it_runs, "closed |\n"
                               "closed |\n"
                               "state lost |\n"
                               "round 1 7 | ! the agent of this worker is gone\n"
                               "run    | return E_LOST\n"
                               "timer  |\n")
TAPE_CASE(lost_while_training, TAPE_ACTIVE "bye |  cancel 1; watch yes\n"
                                           "closed |\n"
                                           "check 3 | answer E_LOST\n"
                                           "returned 5 | return E_LOST\n")
TAPE_CASE(lost_while_entering, TAPE_ENTERING "closed |  cancel 1; watch yes\n"
                                             "synced |\n"
                                             "returned E_REVOKED | return E_LOST\n")
TAPE_CASE(lost_while_restoring, TAPE_ACTIVE "revoke 1 |  cancel 1; watch yes\n"
                                            "returned E_REVOKED | restore\n"
                                            "closed |\n"
                                            "restored | return E_LOST\n")
TAPE_CASE(lost_after_it_finished, TAPE_ACTIVE "returned | send FINISHED round=1; return OK\n"
                                              "closed |\n"
                                              "state finished |\n")
TAPE_CASE(lost_while_it_leaves, TAPE_ACTIVE "switch 1 2 0 | watch yes\n"
                                            "check 0  | commit 2:0; answer LEFT\n"
                                            "closed   | cancel 1\n"
                                            "check 1  | answer LEFT\n"
                                            "returned E_REVOKED | return LEFT\n"
                                            "state left |\n")
TAPE_CASE(lost_while_dismissed_in_do_enter, TAPE_ENTERING "done | cancel 1; watch yes\n"
                                                          "closed | cancel 1\n"
                                                          "synced E_IO | return DONE\n")

/* Each remark about the present round is sent as one message. A remark outside of a round, or after
 * its round was revoked, is not sent. */
TAPE_CASE(remarks_while_training,
          TAPE_ACTIVE "remark | send REMARK round=1 text=\"through the host\"\n"
                      "remark | send REMARK round=1 text=\"through the host\"\n"
                      "revoke 1 | cancel 1; watch yes\n"
                      "remark |\n"
                      "closed |\n"
                      "remark |\n")
TAPE_CASE(remarks_outside_of_rounds, "remark |\n"
                                     "run | send READY manifest=5\n"
                                     "remark |\n")

/* ---- requests for a checkpoint ---- */

TAPE_CASE(a_checkpoint_is_asked_for,
          TAPE_ACTIVE "persist 1 5 | send PERSIST round=1 commit=4294967301\n"
                      "persisted 1 4 | persisted 1.4\n"
                      "persisted 1 5 | persisted 1.5\n"
                      "persisted 1 5 | persisted 1.5\n"
                      "persisted 1 6 E_IO | persisted 1.6 HVD_E_IO: a reason\n")
TAPE_CASE(a_request_of_a_dead_round_ends_with_it, TAPE_ACTIVE "persist 1 5 | send PERSIST round=1 "
                                                              "commit=4294967301\n"
                                                              "revoke 1 | cancel 1; watch yes\n"
                                                              "persist 1 6 |\n")
/* The round has changed, and the answer comes with the newer commit. */
TAPE_CASE(a_request_outlives_a_switch,
          TAPE_ACTIVE "persist 1 5 | send PERSIST round=1 commit=4294967301\n"
                      "prepare 2 7,8 | prepare 2\n"
                      "prepared 2 | send PREPARED round=2\n"
                      "pending 1 2 0 | watch yes; send NEXT_CHECK round=1 next=2\n"
                      "switch 2 2 1 |\n")
/* The driver answers a worker that was told to leave, and still waits. */
TAPE_CASE(a_worker_that_leaves_gets_its_answer,
          TAPE_ACTIVE "persist 1 5 | send PERSIST round=1 commit=4294967301\n"
                      "done | cancel 1; watch yes\n"
                      "persisted 1 5 | persisted 1.5\n")
TAPE_CASE(a_checkpoint_before_the_first_round_is_not_asked_for, "persist 0 0 |\n"
                                                                "run | send READY manifest=5\n"
                                                                "persist 0 0 |\n")

/* An agent of minor 2 would skip PERSIST, and the request would never end. */
TEST(an_older_agent_is_not_asked_for_a_checkpoint)
{
    static const struct msg_welcome_worker welcome = { .minor = 2 };
    struct session_event persist = { .kind = SESSION_PERSIST, .commit = COMMIT_FIRST_OF(1) | 5 };

    CHECK_OK(t, tape_init(&tape));
    session_free(tape.session);
    tape.session = session_create(TAPE_ME, &welcome, 0, &tape.trace);
    CHECK(t, tape.session);
    CHECK_PLAY(t, &tape, TAPE_ACTIVE);
    CHECK_OK(t, tape_step(&tape, &persist));
    CHECK_TEXT(t, tape_did(&tape),
               "persisted 1.5 HVD_E_UNSUPPORTED: the agent of this host is older than this "
               "library; install the same version of hvd-elastic on all hosts");
out:
    tape_release(&tape);
}

/* ---- values of the job ---- */

TAPE_CASE(a_call_is_passed_on_and_answered_in_each_state,
          "store 0 0 1 | send STORE number=1 key=\"k\"\n"
          "stored 0 1 | stored 0:1\n" TAPE_ACTIVE
          "store 1 3 2 | send STORE round=1 number=2 channel=3 key=\"k\"\n"
          "done | cancel 1; watch yes\n"
          "stored 3 2 | stored 3:2\n")
TAPE_CASE(a_call_without_an_agent_ends_at_once,
          "closed\n"
          "store 0 0 1 | stored 0:1 HVD_E_LOST: the agent of this host is gone\n")

/* An agent of minor 3 would skip STORE, and the call would never end. */
TEST(an_older_agent_is_not_asked_for_a_value)
{
    static const struct msg_welcome_worker welcome = { .minor = 3 };

    CHECK_OK(t, tape_init(&tape));
    session_free(tape.session);
    tape.session = session_create(TAPE_ME, &welcome, 0, &tape.trace);
    CHECK(t, tape.session);
    CHECK_PLAY(t, &tape,
               "store 0 0 1 | stored 0:1 HVD_E_UNSUPPORTED: the agent of this host is older than "
               "this library; install the same version of hvd-elastic on all hosts\n");
out:
    tape_release(&tape);
}

/* A worker that is unusable sends nothing more, in each place of the loop and after each later
 * event. */
TAPE_CASE(unusable_before_it_runs, "unusable | send UNUSABLE text=\"the worker gives no reason\"\n"
                                   "state lost |\n"
                                   "unusable |\n"
                                   "run    | return E_LOST\n"
                                   "timer  |\n")
TAPE_CASE(unusable_while_training, TAPE_ACTIVE
          "unusable why | send UNUSABLE text=\"its device is stuck\"; cancel 1; watch yes\n"
          "state lost |\n"
          "unusable why |\n"
          "revoke 1 | ! the agent of this worker is gone\n"
          "closed |\n"
          "at 60  |\n"
          "timer  |\n"
          "check 3 | answer E_LOST\n"
          "returned E_LOST | return E_LOST\n")
TAPE_CASE(unusable_while_a_check_waits,
          TAPE_ACTIVE "pending 1 2 | watch yes\n"
                      "check 0 | send NEXT_CHECK round=1 next=2; answer OK\n"
                      "check 1 |\n"
                      "unusable why | send UNUSABLE text=\"its device is stuck\"; cancel 1; answer "
                      "E_LOST\n"
                      "at 60   |\n"
                      "timer   |\n")
TAPE_CASE(unusable_when_its_round_is_dead,
          TAPE_ACTIVE "revoke 1 |  cancel 1; watch yes\n"
                      "unusable why | send UNUSABLE text=\"its device is stuck\"\n"
                      "round 2 7 | ! the agent of this worker is gone\n"
                      "returned E_REVOKED | return E_LOST\n")
TAPE_CASE(unusable_after_it_finished,
          TAPE_ACTIVE "returned | send FINISHED round=1; return OK\n"
                      "unusable why | send UNUSABLE text=\"its device is stuck\"\n"
                      "state finished |\n")
TAPE_CASE(unusable_after_it_left, "drain | send LEFT\n"
                                  "unusable why | send UNUSABLE text=\"its device is stuck\"\n"
                                  "state left |\n")
TAPE_CASE(unusable_when_its_agent_is_gone, TAPE_ACTIVE "closed | cancel 1; watch yes\n"
                                                       "unusable why |\n"
                                                       "state lost |\n")

/* A BEAT is due each second; it answers the newest beat of the agent. After the drain beats go on
 * until the connection closes. */
TEST(beats)
{
    CHECK_OK(t, tape_init(&tape));
    CHECK_INT(t, session_deadline(tape.session), ==, 1000000);
    CHECK_PLAY(t, &tape,
               "timer |\n"
               "at 1  |\n"
               "timer | send BEAT sequence=1\n"
               "timer |\n"
               "beat 4 |\n"
               "beat 3 |\n"
               "at 2  |\n"
               "timer | send BEAT sequence=2 answers=4\n"
               "at 3  |\n"
               "run   | send READY manifest=5\n"
               "timer |\n");
    CHECK_INT(t, session_deadline(tape.session), ==, 4000000);
    CHECK_PLAY(t, &tape,
               "drain | send LEFT; return LEFT\n"
               "at 4  |\n"
               "timer | send BEAT sequence=3 answers=4\n"
               "closed |\n"
               "timer |\n");
    CHECK_INT(t, session_deadline(tape.session), ==, INT64_MAX);
out:
    tape_release(&tape);
}

/* A check that waits 10 s for the other members is reported as STALLED, and again every 10 s, until
 * ABANDON. */
TEST(says_that_a_check_waits)
{
    CHECK_OK(t, tape_init(&tape));
    CHECK_PLAY(t, &tape,
               TAPE_ACTIVE "pending 1 2 | watch yes\n"
                           "check 0 | send NEXT_CHECK round=1 next=2; answer OK\n"
                           "at 5    |\n"
                           "timer   | send BEAT sequence=1\n"
                           "check 1 |\n"
                           "at 14   |\n"
                           "timer   | send BEAT sequence=2\n"
                           "at 15   |\n"
                           "timer   | send STALLED round=1 waited=10s operation=\"check\"\n"
                           "timer   |\n"
                           "at 16   |\n"
                           "timer   | send BEAT sequence=3\n"
                           "at 24   |\n"
                           "timer   | send BEAT sequence=4\n"
                           "at 25   |\n"
                           "timer   | send STALLED round=1 waited=20s operation=\"check\"\n"
                           "abandon 1 2 | watch no; answer OK\n"
                           "at 60   |\n"
                           "timer   | send BEAT sequence=5\n");
    CHECK_INT(t, session_deadline(tape.session), ==, 61000000);
out:
    tape_release(&tape);
}

TAPE_CASE(passes_on_what_is_stuck,
          "stuck | ! this worker is not in a round\n" TAPE_ACTIVE
          "stuck | send STALLED round=1 waited=1s operation=\"allreduce\"\n"
          "revoke 1 | cancel 1; watch yes\n"
          "stuck | ! this worker is not in a round\n")

TEST(no_beats_and_no_warnings)
{
    static const struct msg_welcome_worker welcome = { .beat_us = 0 };
    struct session *session = session_create(1, &welcome, 0, NULL);

    CHECK(t, session);
    CHECK_INT(t, session_deadline(session), ==, INT64_MAX);
    CHECK_INT(t, session_round(session), ==, 0);
    CHECK_TEXT(t, session_state_name(SESSION_STATE_COUNT), "?");
out:
    session_free(session);
    session_free(NULL);
    session_action_list_release(NULL);
}

TEST_FLAGS(an_event_that_cannot_be_panics, TEST_NO_TORTURE)
{
    static const char *const lines[] = { "synced", "check 0", "returned", "restored" };

    CHECK_OK(t, tape_init(&tape));
    for (size_t i = 0; i < ARRAY_SIZE(lines); i++)
        CHECK_PANICS(t, "at == LOOP_", (void)!tape_do(&tape, lines[i]));
    CHECK_PLAY(t, &tape, TAPE_ACTIVE "check 1 | answer OK\n");
    CHECK_PANICS(t, "LOOP_AWAY", (void)!tape_do(&tape, "run"));
    CHECK_PANICS(t, "event->check >= loop->checks", (void)!tape_do(&tape, "check 1"));
    CHECK_PANICS(t, "no event",
                 (void)!tape_step(&tape, &(struct session_event){ .kind = SESSION_EVENT_COUNT }));
out:
    tape_release(&tape);
}

/* A caller that never clears its list of actions. */
TEST_FLAGS(a_list_has_an_end, TEST_NO_TORTURE)
{
    struct session_event event = { .kind = SESSION_CLOSED };
    int rc = 0;

    CHECK_OK(t, tape_init(&tape));
    event = (struct session_event){ .kind = SESSION_TIMER };
    for (int i = 0; i < 70000 && !rc; i++) {
        event.now_us += 1000000;
        rc = session_step(tape.session, &event, &tape.list);
    }
    CHECK_CODE(t, rc, HVD_E_NOMEM);
    CHECK_INT(t, tape.list.count, ==, 65536);
out:
    tape_release(&tape);
}
