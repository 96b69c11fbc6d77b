/*
 * test_core_change.c: switches from one round to the next: joiners, leavers, changes that are given
 * up. No member loses a step, and survivors keep their order.
 *
 * Each case is a tape: a text of the events that come in (a line) and of the actions that the
 * driver's core must answer with.
 */
#include "tests/lib/core_tape.h"

#include <string.h>

static struct core_tape tape;

/* All members train while the connections are made; then all leave the training loop at the same
 * check. */
TAPE_CASE(a_new_host_joins_without_losing_a_step, TAPE_RUNNING
          "hosts a:2,b:2,c:1 | a,b < HOSTS_UPDATED 1 +1 -0\n"
          "    | start c\n"
          "hello c | c < WELCOME_AGENT term 1\n"
          "    | record LAUNCH 5 c:0\n"
          "    | c < LAUNCH 5 in 0 as 4/5 local 0/1 cross 0/1\n"
          "launched 5 |\n"
          "ready 5 | record READY 5\n"
          "    | record NUMBER 2\n"
          "    | a,b,c < PREPARE 2 after 1: 1,2,3,4,5\n"
          "prepared 1-4 |\n"
          "prepared 5 | a,b < PENDING 1 next 2\n"
          "at 1 10 |\n"
          "at 2 12 |\n"
          "at 3,4 11 | record ROUND 2 switch after 1 from 2.0 of 1,2,3,4 check 13: 1,2,3,4,5\n"
          "    | a,b < SWITCH_AT 1 next 2 check 13\n"
          "    | a,b,c < ROUND 2 switch after 1 from 2.0 of 1,2,3,4: 1,2,3,4,5\n"
          "entered 1-5 | record ENTERED 2\n")

TAPE_CASE(nothing_begins_before_all_have_entered,
          TAPE_LAUNCHED "ready 1-4\n"
                        "entered 1-3\n"
                        "hosts a:2,b:2,c:1\n"
                        "hello c\n"
                        "ready 5 | record READY 5\n"
                        "entered 4 | record NUMBER 2\n"
                        "    | a,b,c < PREPARE 2 after 1: 1,2,3,4,5\n")

TAPE_CASE(no_round_when_it_would_be_the_same, TAPE_RUNNING "hosts a:2,b:2 |\n"
                                                           "hosts b:2,a:2 |\n"
                                                           "wait 5s |\n")

TAPE_CASE(hosts_beyond_max_np_disturb_nobody,
          "config max_np=4\n" TAPE_RUNNING "hosts a:2,b:2,c:4 | ! hosts: +c:4\n")

TAPE_CASE(more_hosts_are_news,
          "config max_np=6\n" TAPE_RUNNING "hosts a:2,b:2,c:4,d:1 | a,b < HOSTS_UPDATED 1 +2 -0\n"
          "    | start c\n")

TAPE_CASE(survivors_keep_low_ranks,
          "config np=4 min_np=2\n" TAPE_RUNNING "hosts b:2,c:2 | a,b < HOSTS_UPDATED 1 +1 -1\n"
          "    | start c\n"
          "    | record NUMBER 2\n"
          "    | b,a < PREPARE 2 after 1: 3,4\n"
          "hello c\n"
          "ready 5 | record READY 5\n"
          "ready 6 | record READY 6\n"
          "prepared 3,4,5,6\n"
          "at 1-2 4\n"
          "at 3-4 4 | record ROUND 2 switch after 1 from 2.0 of 3,4 check 5: 3,4\n"
          "    | a,b < SWITCH_AT 1 next 2 check 5\n"
          "    | b < ROUND 2 switch after 1 from 2.0 of 3,4: 3,4\n"
          "left 1 | ! a:0#1 has left\n"
          "exited 1 exit0 | record ENDED 1 exit0\n"
          "    | a < FORGET 1\n"
          "left 2 | ! a:1#2 has left\n"
          "exited 2 exit0 | record ENDED 2 exit0\n"
          "    | a < FORGET 2\n"
          "entered 3-6 | record ENTERED 2\n"
          "    | a < STOP: the job does not use this host\n"
          "    | record NUMBER 3\n"
          "    | b,c < PREPARE 3 after 2: 3,4,5,6\n")

/* PROTOCOL.md, ROUND: the host of workers that leave gets the PREPARE without the secret. */
TEST(a_host_that_leaves_is_not_told_the_secret)
{
    size_t told = 0, left_out = 0;

    CHECK_OK(t, tape_init(&tape));
    CHECK_PLAY(t, &tape,
               "config np=4 min_np=2\n" TAPE_RUNNING "hosts b:2,c:2 | a,b < HOSTS_UPDATED 1 +1 -1\n"
               "    | start c\n"
               "    | record NUMBER 2\n"
               "    | b,a < PREPARE 2 after 1: 3,4\n");
    for (size_t i = 0; i < tape.list.count; i++) {
        const struct action *action = &tape.list.items[i];
        bool is_b = action->kind == ACTION_SEND && !strcmp(tape.by_peer[action->peer]->name, "b");

        if (action->kind != ACTION_SEND || action->msg->type != MSG_PREPARE)
            continue;
        told += action->secret;
        left_out += !action->secret;
        CHECK_INT(t, action->secret, ==, is_b);
    }
    CHECK_INT(t, told, ==, 1);
    CHECK_INT(t, left_out, ==, 1);
    /* neither when the messages are repeated after a hello, nor in a ROUND without its workers */
    CHECK_PLAY(t, &tape,
               "prepared 3,4\n"
               "at 1-4 4\n"
               "closed a\n");
    CHECK_PLAY(t, &tape, "hello a #1:0 #2:1\n");
    told = left_out = 0;
    for (size_t i = 0; i < tape.list.count; i++) {
        const struct action *action = &tape.list.items[i];

        if (action->kind == ACTION_SEND &&
            (action->msg->type == MSG_PREPARE || action->msg->type == MSG_ROUND)) {
            told += action->secret;
            left_out += !action->secret;
        }
    }
    CHECK_INT(t, told, ==, 0);
    CHECK_INT(t, left_out, >, 0);
out:
    tape_release(&tape);
}

TAPE_CASE(a_leaver_that_min_np_needs_stays,
          "config np=4 min_np=4\n" TAPE_RUNNING "hosts a:2,b:1,c:1 | a,b < HOSTS_UPDATED 1 +1 -1\n"
          "    | start c\n"
          "hello c | c < WELCOME_AGENT term 1\n"
          "    | record LAUNCH 5 c:0\n"
          "    | c < LAUNCH 5 in 0 as 3/4 local 0/1 cross 0/1\n"
          "ready 5 | record READY 5\n"
          "    | record NUMBER 2\n"
          "    | a,b,c < PREPARE 2 after 1: 1,2,3,5\n")

/* An old member has to give the state to the new workers, so one stays for one more round. */
TAPE_CASE(all_hosts_are_replaced_at_once,
          "config min_np=4\n" TAPE_RUNNING "hosts c:2,d:2 | a,b < HOSTS_UPDATED 1 +2 -2\n"
          "    | start c\n"
          "    | start d\n"
          "hello c\n"
          "hello d\n"
          "launched 5-8\n"
          "ready 5-8 | record READY 5\n"
          "    | record READY 6\n"
          "    | record READY 7\n"
          "    | record READY 8\n"
          "    | record NUMBER 2\n"
          "    | a,c,d,b < PREPARE 2 after 1: 1,5,6,7,8\n"
          "prepared 1,5-8 | a,b < PENDING 1 next 2\n"
          "at 1-4 9 | record ROUND 2 switch after 1 from 2.0 of 1 check 10: 1,5,6,7,8\n"
          "    | a,b < SWITCH_AT 1 next 2 check 10\n"
          "    | a,c,d < ROUND 2 switch after 1 from 2.0 of 1: 1,5,6,7,8\n"
          "left 2-4\n"
          "entered 1,5-8 | record ENTERED 2\n"
          "    | record NUMBER 3\n"
          "    | c,d,a < PREPARE 3 after 2: 5,6,7,8\n"
          "prepared 5-8 | a,c,d < PENDING 2 next 3\n"
          "at 1,5-8 3 | record ROUND 3 switch after 2 from 3.0 of 5,6,7,8 check 4: 5,6,7,8\n"
          "    | a,c,d < SWITCH_AT 2 next 3 check 4\n"
          "    | c,d < ROUND 3 switch after 2 from 3.0 of 5,6,7,8: 5,6,7,8\n")

TAPE_CASE(a_leaver_that_dies_before_the_agreed_check_revokes, TAPE_RUNNING
          "hosts a:2,b:1\n"
          "prepared 1-3\n"
          "at 1-4 3 | record ROUND 2 switch after 1 from 2.0 of 1,2,3 check 4: 1,2,3\n"
          "    | a,b < SWITCH_AT 1 next 2 check 4\n"
          "    | a,b < ROUND 2 switch after 1 from 2.0 of 1,2,3: 1,2,3\n"
          "exited 4 exit1 | a,b < REVOKE 2 lost 4: b:1#4: exit code 1\n"
          "    | record ENDED 4 exit1\n"
          "    | b < FORGET 4\n"
          "recovering 1-2 held=2.0 | ! a:1#2 has recovered (2 of 3)\n"
          "recovering 3 held=2.0 | record ROUND 3 recovery after 2 from 2.0 of 1,2,3: 1,2,3\n"
          "    | a,b < ROUND 3 recovery after 2 from 2.0 of 1,2,3: 1,2,3\n")

/* The leaver has died in the last step of round 1, and a member says so before its agent does: the
 * line names no innocent. */
TAPE_CASE(a_switch_whose_commit_was_not_made_accuses_no_member, TAPE_RUNNING
          "hosts a:2,b:1\n"
          "prepared 1-3\n"
          "at 1-4 3\n"
          "recovering 1 code=-5 text=unmade held=1.2 | a,b < REVOKE 2: unmade\n"
          "recovering 2 held=1.2 | ! a:1#2 has recovered (2 of 3)\n"
          "recovering 3 held=1.2 | record ROUND 3 recovery after 2 from 1.2 of 1,2,3: 1,2,3\n"
          "    | a,b < ROUND 3 recovery after 2 from 1.2 of 1,2,3: 1,2,3\n")

TAPE_CASE(a_leaver_that_dies_after_the_switch_is_no_loss,
          TAPE_RUNNING "hosts a:2,b:1\n"
                       "prepared 1-3\n"
                       "at 1-4 3\n"
                       "entered 1-3 | record ENTERED 2\n"
                       "exited 4 exit1 | record ENDED 4 exit1\n"
                       "    | b < FORGET 4\n")

TAPE_CASE(a_leaver_that_does_not_go_is_killed,
          "config stall=20s\n" TAPE_RUNNING "hosts a:2,b:1\n"
          "prepared 1-3\n"
          "at 1-4 3\n"
          "entered 1-3\n"
          "wait 21s | record ENDED 4 sig9\n"
          "    | b < KILL 4 in 5s: the worker was told to leave, but did not\n")

TAPE_CASE(
    a_leaver_that_recovers_is_sent_away, TAPE_RUNNING
    "hosts a:2,b:1\n"
    "prepared 1-3\n"
    "at 1-4 3\n"
    "recovering 4 round=1 held=1.2 | b < DRAIN 4: the worker is to leave, and its round is "
    "revoked\n"
    "recovering 1 round=1 held=1.2 | a,b < REVOKE 2: a:0#1: the worker's collectives failed\n")

TAPE_CASE(duplicates_and_late_messages_change_nothing,
          TAPE_RUNNING "hosts a:2,b:1\n"
                       "prepared 1 |\n"
                       "prepared 1 |\n"
                       "prepared 2 round=1 |\n"
                       "prepared 4 |\n"
                       "at 1 3 |\n"
                       "prepared 2,3 | a,b < PENDING 1 next 2\n"
                       "at 1 3 |\n"
                       "at 1 9 |\n"
                       "at 2 3 next=7 |\n"
                       "at 2 3 round=7 |\n"
                       "at 2-4 4 | record ROUND 2 switch after 1 from 2.0 of 1,2,3 check 5: 1,2,3\n"
                       "    | a,b < SWITCH_AT 1 next 2 check 5\n"
                       "    | a,b < ROUND 2 switch after 1 from 2.0 of 1,2,3: 1,2,3\n"
                       "at 2 5 |\n"
                       "prepared 2 round=2 |\n")

TAPE_CASE(a_death_while_preparing_drops_the_change, TAPE_RUNNING
          "hosts a:2,b:2,c:1\n"
          "hello c\n"
          "ready 5\n"
          "exited 4 exit1 | a,b,c < ABANDON 1 next 2: b:1#4: exit code 1\n"
          "    | a,b < REVOKE 1 lost 4: b:1#4: exit code 1\n"
          "    | record ENDED 4 exit1\n"
          "    | bar b:1 (1): exit code 1\n"
          "    | b < FORGET 4\n"
          "recovering 1-3 held=1.3 | record ROUND 3 recovery after 1 from 1.3 of 1,2,3: 1,2,3,5\n"
          "    | a,b,c < ROUND 3 recovery after 1 from 1.3 of 1,2,3: 1,2,3,5\n")

TAPE_CASE(a_death_between_at_and_switch_drops_the_change,
          TAPE_RUNNING "hosts a:2,b:2,c:1\n"
                       "hello c\n"
                       "ready 5\n"
                       "prepared 1-5\n"
                       "at 1-3 4\n"
                       "exited 4 exit1 | a,b,c < ABANDON 1 next 2: b:1#4: exit code 1\n"
                       "    | a,b < REVOKE 1 lost 4: b:1#4: exit code 1\n"
                       "    | record ENDED 4 exit1\n"
                       "    | bar b:1 (1): exit code 1\n"
                       "    | b < FORGET 4\n")

TAPE_CASE(a_joiner_that_dies_drops_the_change_alone,
          TAPE_RUNNING "hosts a:2,b:2,c:1\n"
                       "hello c\n"
                       "ready 5\n"
                       "prepared 1-5\n"
                       "at 1-3 4\n"
                       "exited 5 exit1 | a,b,c < ABANDON 1 next 2: c:0#5: exit code 1\n"
                       "    | record ENDED 5 exit1\n"
                       "    | bar c:0 (1): exit code 1\n"
                       "    | c < FORGET 5\n"
                       "at 4 4 |\n")

TAPE_CASE(a_joiner_that_cannot_connect_is_tried_three_times, TAPE_RUNNING
          "hosts a:2,b:2,c:1\n"
          "hello c\n"
          "ready 5\n"
          "prepared 5 -7 | a,b,c < ABANDON 1 next 2: c:0#5 cannot connect: no route\n"
          "wait 1s | record NUMBER 3\n"
          "    | a,b,c < PREPARE 3 after 1: 1,2,3,4,5\n"
          "prepared 5 -7 | a,b,c < ABANDON 1 next 3: c:0#5 cannot connect: no route\n"
          "wait 2s | record NUMBER 4\n"
          "    | a,b,c < PREPARE 4 after 1: 1,2,3,4,5\n"
          "prepared 5 -7 | a,b,c < ABANDON 1 next 4: c:0#5 cannot connect: no route\n"
          "    | record ENDED 5 sig9\n"
          "    | c < KILL 5 in 5s: the worker could not be connected to the other members\n")

TAPE_CASE(a_member_that_cannot_connect_is_no_joiners_fault_alone,
          "config np=4 min_np=1\n" TAPE_RUNNING "hosts a:2,b:1\n"
          "prepared 1 -7 | a,b < ABANDON 1 next 2: a:0#1 cannot connect: no route\n"
          "wait 999ms |\n"
          "wait 1ms | record NUMBER 3\n"
          "    | a,b < PREPARE 3 after 1: 1,2,3\n")

TAPE_CASE(a_worker_that_connects_late_delays_the_change,
          "config prepare=10s\n" TAPE_RUNNING "hosts a:2,b:2,c:1\n"
          "hello c\n"
          "ready 5\n"
          "prepared 1-4\n"
          "wait 10s | a,b,c < ABANDON 1 next 2: not all members were connected in time\n")

TAPE_CASE(a_worker_without_a_check_delays_the_change,
          "config stall=20s\n" TAPE_RUNNING "hosts a:2,b:1\n"
          "prepared 1-3\n"
          "at 1-3 5\n"
          "wait 21s | a,b < ABANDON 1 next 2: not all members came to a check in time\n"
          "    | record NUMBER 3\n"
          "    | a,b < PREPARE 3 after 1: 1,2,3\n")

TAPE_CASE(the_collectives_fail_in_the_middle_of_a_change, TAPE_RUNNING
          "hosts a:2,b:1\n"
          "prepared 1-3\n"
          "at 1-2 5\n"
          "recovering 3 held=1.1 | a,b < ABANDON 1 next 2: b:0#3: the worker's collectives failed\n"
          "    | a,b < REVOKE 1: b:0#3: the worker's collectives failed\n")

TAPE_CASE(a_member_leaves_by_itself,
          TAPE_RUNNING "left 3 | a,b < REVOKE 1 lost 3: b:0#3: the worker has left\n"
                       "left 3 |\n"
                       "exited 3 exit0 | record ENDED 3 exit0\n"
                       "    | b < FORGET 3\n"
                       "    | record LAUNCH 5 b:0\n"
                       "    | b < LAUNCH 5 in 0 as 3/4 local 0/1 cross 0/1\n")

TAPE_CASE(a_joiner_leaves_by_itself,
          TAPE_RUNNING "hosts a:2,b:2,c:1\n"
                       "hello c\n"
                       "ready 5\n"
                       "left 5 | a,b,c < ABANDON 1 next 2: c:0#5: the worker has left\n")

TAPE_CASE(a_ready_worker_whose_seat_is_given_up_goes_at_once,
          TAPE_RUNNING "hosts a:2,b:2,c:2\n"
                       "hello c\n"
                       "launched 5\n"
                       "ready 5\n"
                       "hosts a:2,b:2 | a,b < HOSTS_UPDATED 1 +0 -1\n"
                       "    | c < DRAIN 5: its slot is given up\n"
                       "    | record ENDED 6 sig9\n"
                       "    | c < KILL 6 in 5s: its slot is given up\n"
                       "exited 6 sig15 | c < FORGET 6\n")

TAPE_CASE(the_reset_limit_counts_changes_too,
          "config reset_limit=0\n" TAPE_RUNNING "hosts a:2,b:2,c:1\n"
          "hello c\n"
          "ready 5 | record READY 5\n"
          "    | record OVER 1: change 1 of the membership is one more than --reset-limit 0 "
          "allows; raise --reset-limit, or leave it out\n"
          "    | a < STOP: change 1 of the membership is one more than --reset-limit 0 allows; "
          "raise --reset-limit, or leave it out\n"
          "    | b < STOP: change 1 of the membership is one more than --reset-limit 0 allows; "
          "raise --reset-limit, or leave it out\n"
          "    | c < STOP: change 1 of the membership is one more than --reset-limit 0 allows; "
          "raise --reset-limit, or leave it out\n")

TAPE_CASE(a_seat_that_is_wanted_again_gets_another_worker,
          TAPE_RUNNING "hosts a:2,b:1\n"
                       "prepared 1-3\n"
                       "at 1-4 3\n"
                       "entered 1-3\n"
                       "hosts a:2,b:2 | a,b < HOSTS_UPDATED 2 +1 -0\n"
                       "left 4 | ! b:1#4 has left\n"
                       "exited 4 | record ENDED 4 exit0\n"
                       "    | b < FORGET 4\n"
                       "    | record LAUNCH 5 b:1\n"
                       "    | b < LAUNCH 5 in 1 as 3/4 local 0/1 cross 0/1\n"
                       "launched 5 |\n"
                       "ready 5 | record READY 5\n"
                       "    | record NUMBER 3\n"
                       "    | a,b < PREPARE 3 after 2: 1,2,3,5\n")

TAPE_CASE(the_last_possible_check_is_ignored, TAPE_RUNNING "hosts a:2,b:1\n"
                                                           "prepared 1-3\n"
                                                           "at 1-3 4\n"
                                                           "at 4 18446744073709551615 |\n")

/* Three times the joiner's agent is away when the time is over: the joiner is kept all the same. */
TAPE_CASE(a_joiner_that_could_not_say_that_it_is_connected_is_kept,
          "config prepare=3s\n" TAPE_RUNNING "hosts a:2,b:2,c:1\n"
          "hello c\n"
          "ready 5\n"
          "prepared 1-4\n"
          "closed c\n"
          "wait 3s | a,b < ABANDON 1 next 2: not all members were connected in time\n"
          "hello c #5:0\n"
          "wait 1s | record NUMBER 3\n"
          "    | a,b,c < PREPARE 3 after 1: 1,2,3,4,5\n"
          "prepared 1-4\n"
          "closed c\n"
          "wait 3s | a,b < ABANDON 1 next 3: not all members were connected in time\n"
          "hello c #5:0\n"
          "wait 2s | record NUMBER 4\n"
          "    | a,b,c < PREPARE 4 after 1: 1,2,3,4,5\n"
          "prepared 1-4\n"
          "closed c\n"
          "wait 3s | a,b < ABANDON 1 next 4: not all members were connected in time\n"
          "hello c #5:0\n"
          "wait 4s | record NUMBER 5\n"
          "    | a,b,c < PREPARE 5 after 1: 1,2,3,4,5\n"
          "prepared 1-5 | a,b < PENDING 1 next 5\n")

TAPE_CASE(a_worker_that_has_left_does_not_enter, TAPE_LAUNCHED "ready 1-4\n"
                                                               "left 4\n"
                                                               "recovering 1-3\n"
                                                               "entered 4 |\n")
