/*
 * test_core_authority.c: an agent that lies. It speaks for workers of other hosts, for workers that
 * never were, and with numbers that cannot be. Nothing of that is believed, each host's lies are
 * told, and nothing changes for the other hosts.
 */
#include "tests/lib/core_tape.h"
#include "tests/lib/test.h"

#include <stdio.h>
#include <string.h>

static struct core_tape tape;

#define REFUSED "! a: a statement of this host's agent is refused: "

TAPE_CASE(an_agent_speaks_for_its_own_host,
          TAPE_RUNNING "stalled 3 1s from=a | " REFUSED
                       "the agent sends STALLED about worker #3, which runs on b\n"
                       "recovering 3 from=a | " REFUSED
                       "the agent sends RECOVERING about worker #3, which runs on b\n"
                       "exited 3 sig9 from=a | " REFUSED
                       "the agent sends EXITED about worker #3, which runs on b\n"
                       "view | running term 1 round 1 from 1.0: 1,2,3,4, floor 1, resets 0\n"
                       "    | a there: #1 in 0 member 0*, #2 in 1 member 1*, of 2\n"
                       "    | b there: #3 in 0 member 2*, #4 in 1 member 3*, of 2\n")

TAPE_CASE(lies_are_told_a_few_times, TAPE_RUNNING
          "output 3 from=a | " REFUSED "the agent sends OUTPUT about worker #3, which runs on b\n"
          "output 3 from=a\n"
          "output 3 from=a\n"
          "output 3 from=a |\n"
          "output 3 from=a |\n"
          "wait 11s\n"
          "output 4 from=a | " REFUSED "the agent sends OUTPUT about worker #4, which runs on "
          "b; 2 more such messages were not logged\n")

TAPE_CASE(
    a_round_that_was_never_told_is_not_believed, TAPE_RUNNING
    "entered 1 round=18446744073709551615 | " REFUSED
    "the agent names round 18446744073709551615, but no agent has been told of a round after 1\n"
    "prepared 1 round=2 | " REFUSED
    "the agent names round 2, but no agent has been told of a round after 1\n")

TAPE_CASE(a_commit_of_a_round_that_was_never_told_is_not_believed, TAPE_RUNNING
          "exited 4 exit1\n"
          "recovering 1 held=9.1,1.2 | " REFUSED
          "the agent names a commit of round 9, but no agent has been told of a round after 1\n"
          "recovering 2,3 held=1.2 | record ROUND 2 recovery after 1 from 1.2 of "
          "1,2,3: 1,2,3\n"
          "    | a,b < ROUND 2 recovery after 1 from 1.2 of 1,2,3: 1,2,3\n")

#define PAST_ALL_CHECKS                                                                          \
    "worker #1 says that its next check is 9223372036854775807; the greatest possible check is " \
    "281474976710656 (LIMIT_CHECKS); install the same version of hvd-elastic on its host\n"
/* A check that no training loop comes to: the connection ends, and only this host is charged. */
TAPE_CASE(a_check_that_cannot_be_ends_the_connection,
          TAPE_RUNNING "hosts a:2,b:1\n"
                       "prepared 1-3\n"
                       "at 1 9223372036854775807 | close a: " PAST_ALL_CHECKS
                       "    | bar a (1): " PAST_ALL_CHECKS "    | start a\n"
                       "hello a #1:0 #2:1 | a < WELCOME_AGENT term 1\n"
                       "    | a < PREPARE 2 after 1: 1,2,3\n"
                       "    | a < PENDING 1 next 2\n"
                       "at 1-3 2\n"
                       "at 4 2 | record ROUND 2 switch after 1 from 2.0 of 1,2,3 check 3: 1,2,3\n"
                       "    | a,b < SWITCH_AT 1 next 2 check 3\n"
                       "    | a,b < ROUND 2 switch after 1 from 2.0 of 1,2,3: 1,2,3\n")

/* No member is blamed for a switch at a check that the others never reach. */
TAPE_CASE(members_that_are_too_far_apart_do_not_switch,
          TAPE_RUNNING "hosts a:2,b:1\n"
                       "prepared 1-3\n"
                       "at 1 99999999\n"
                       "at 2,3 2\n"
                       "at 4 2 | a,b < ABANDON 1 next 2: the members are at checks 2 to 99999999, "
                       "more than LIMIT_CHECKS_APART (1048576) apart\n"
                       "view | running term 1 round 1 from 1.0: 1,2,3,4, floor 1, resets 0\n"
                       "    | a there: #1 in 0 member 0*, #2 in 1 member 1*, of 2\n"
                       "    | b there: #3 in 0 member 2*, #4 in 1 member 3*, of 1\n")

/* The agent of b is not refused when it comes back, although a lying agent has said meanwhile that
 * it runs the workers of b, which were counted as dead. */
TAPE_CASE(a_hello_that_claims_dead_workers_keeps_no_agent_out,
          TAPE_RUNNING "silent b\n"
                       "wait 20s\n"
                       "hello a #1:0 #2:1 #3:5 #4:6\n"
                       "hello b #3:0 #4:1 | b < WELCOME_AGENT term 1\n"
                       "    | b < KILL 3 in 0s: the worker was counted as dead\n"
                       "    | b < KILL 4 in 0s: the worker was counted as dead\n")

/* The same, when the workers of b have left the table: they are known from the lie. Their ends are
 * believed of b, which is no liar: it gets FORGET, once for each end that it repeats. */
TAPE_CASE(a_hello_that_claims_dead_workers_keeps_no_end_from_being_heard,
          TAPE_RUNNING "hosts a:2\n"
                       "silent b\n"
                       "wait 30s\n"
                       "hello a #1:0 #2:1 #3:5 #4:6\n"
                       "hosts a:2,b:2\n"
                       "hello b #3:0 #4:1=sig9\n"
                       "exited 3 sig9 from=b | b < FORGET 3\n")

/* Workers of b have not moved, says the agent of a. With a third host whose workers do not wait,
 * that ends no worker of b. */
TAPE_CASE(one_host_alone_does_not_end_workers_of_another,
          "config np=3 min_np=1 stall_warning=4s stall=10s\n"
          "start\n"
          "hosts a:1,b:1,c:1\n"
          "hello a\n"
          "hello b\n"
          "hello c\n"
          "launched 1-3\n"
          "ready 1-3\n"
          "entered 1-3\n"
          "stalled 1 1h 2 in=allreduce\n"
          "wait 2s | b < EXAMINE\n"
          "    | a,b,c < REVOKE 1: workers of a, and of no other host, wait for rank 1 (b:0#2), "
          "for 1h in allreduce\n")

/* The same, but the agent of b says too that its worker has not moved. */
TAPE_CASE(
    a_worker_that_says_itself_that_it_does_not_move_is_ended,
    "config np=3 min_np=1 stall_warning=4s stall=10s\n"
    "start\n"
    "hosts a:1,b:1,c:1\n"
    "hello a\n"
    "hello b\n"
    "hello c\n"
    "launched 1-3\n"
    "ready 1-3\n"
    "entered 1-3\n"
    "wait 10s\n"
    "stalled 1 12s 2 in=allreduce\n"
    "stalled 2 11s 2 in=step\n"
    "wait 2s | b < EXAMINE\n"
    "    | a,b,c < REVOKE 1 lost 2: b:0#2: the other members have waited for the worker for "
    "12s in "
    "allreduce\n"
    "    | record ENDED 2 sig9\n"
    "    | bar b:0 (1): the other members have waited for the worker for 12s in allreduce\n"
    "    | b < KILL 2 in 0s: the other members have waited for the worker for 12s in allreduce\n")

/* ---- contacts ------------------------------------------------------------------------------- */

static int ready(const char *host, uint64_t incarnation, const char *contact)
{
    const char *addresses[] = { contact };
    struct msg msg = { .type = MSG_READY, .incarnation = incarnation };

    msg.u.ready.manifest = 5;
    msg.u.ready.addresses = (struct msg_texts){ addresses, 1 };
    buf_clear(&tape.did);
    return tape_msg(&tape, tape_host(&tape, host), &msg);
}

/* Returns the line of the trace that has the text; "": none has. */
static const char *trace_text(const char *text)
{
    const char *line = NULL;

    for (size_t i = 0; (line = trace_line(&tape.trace, i)) && !strstr(line, text); i++)
        ;
    return line ? line : "";
}

/* The driver cannot know which of two hosts has the port that both name. A liar that guesses a port
 * and names it first does not keep the other host's worker out. */
TEST(a_contact_that_two_hosts_name_is_told)
{
    CHECK_OK(t, tape_init(&tape));
    CHECK_PLAY(t, &tape, TAPE_LAUNCHED);
    CHECK_OK(t, ready("a", 1, "state=10.0.0.1:4001"));
    CHECK_HAS(t, tape_did(&tape), "record READY 1");
    CHECK_OK(t, ready("a", 2, "state=10.0.0.1:4001")); /* the same agent */
    CHECK_HAS(t, tape_did(&tape), "record READY 2");
    CHECK_OK(t, ready("b", 3, "state=10.0.0.1:4001"));
    CHECK_HAS(t, tape_did(&tape), "record READY 3");
    CHECK_HAS(t, trace_text("contact"),
              "b: the agent of this host names the contact \"state=10.0.0.1:4001\", which the "
              "agent of a has named, too");
    CHECK_OK(t, ready("b", 4, "state=[fe80::1%eth0]:4001"));
    CHECK_HAS(t, tape_did(&tape), "record READY 4");
out:
    tape_release(&tape);
}

/* The same holds for the address in a hello; what is no address is left out. */
TEST(a_contact_that_two_hellos_name_is_told)
{
    CHECK_OK(t, tape_init(&tape));
    CHECK_PLAY(t, &tape,
               "config np=2\n"
               "start\n"
               "hosts a:1,b:1,c:1\n"
               "hello a serves=state=10.0.0.1:4001\n"
               "hello b serves=state=10.0.0.1:4001\n");
    CHECK_HAS(t, trace_text("contact \"state=10.0.0.1:4001\""),
              "b: the agent of this host names the contact \"state=10.0.0.1:4001\", which the "
              "agent of a has named, too");
    CHECK_PLAY(t, &tape, "hello c serves=state=here\n");
    CHECK_HAS(t, trace_text("\"here\""), "c: ");
out:
    tape_release(&tape);
}

TEST(contacts_that_are_no_address_end_the_connection)
{
    static const char *const wrong[] = {
        "state=",
        "state=:1",
        "state=10.0.0.1",
        "state=10.0.0.1:",
        "state=10.0.0.1:0",
        "data=10.0.0.1:65536",
        "data=name:7/secret",
        "data=10.0.0.1:7x/secret",
        "data=10.0.0.1:00000000000007",
        "data=10.0.0.1:07",
        "state=10.7:4001",
        "state=010.0.0.1:4001",
        "state=167772161:4001",
        "state=[10.0.0.1]:4001",
        "state=::1:4001",
        "state=[0::1]:4001",
        "state=[::0001]:4001",
        "state=[FE80::1%eth0]:1",
        "state=[::ffff:a00:1]:4001",
        "state=[fe80::1%]:1",
        "state=[fe80::1%eth0:1",
        "state=[fe80::1%]name:1",
    };
    static const char *const right[] = { "state=[fe80::1%2]:1", "state=[fe80::1%eth0]:1",
                                         "data=[::1]:65535/secret", "gpu=anything", "10.0.0.1:7" };

    for (size_t i = 0; i < ARRAY_SIZE(wrong) + ARRAY_SIZE(right); i++) {
        bool is_right = i >= ARRAY_SIZE(wrong);

        CHECK_OK(t, tape_init(&tape));
        CHECK_PLAY(t, &tape, TAPE_LAUNCHED);
        CHECK_OK(t, ready("a", 1, is_right ? right[i - ARRAY_SIZE(wrong)] : wrong[i]));
        CHECK_HAS(t, tape_did(&tape),
                  is_right ? "record READY 1" : "close a: the agent's contact \"");
        if (!is_right)
            CHECK_HAS(t, tape_did(&tape), "bar a (1): the agent's contact \"");
        tape_release(&tape);
    }
    CHECK_OK(t, tape_init(&tape));
out:
    tape_release(&tape);
}

/* ---- a lying commit ---------------------------------------------------------------------------
 */

/* The agent of b claims a commit that no worker has made, and that its workers train from it. No
 * other commit is given up for that; after a minute of rounds without the commit the workers of b
 * are ended, and the job goes on from the commit that is there. */
TAPE_CASE(
    a_held_commit_that_no_other_host_can_fetch_is_given_up,
    "config np=3 min_np=1\n"
    "start\n"
    "hosts a:1,b:1,c:1\n"
    "hello a\n"
    "hello b\n"
    "hello c\n"
    "launched 1-3\n"
    "ready 1-3\n"
    "entered 1-3\n"
    "recovering 2 held=1.9\n"
    "recovering 1,3 held=1.2\n"
    "entered 2 round=2\n"
    "view | running term 1 round 2 from 1.9: 1,2,3, floor 1, resets 1\n"
    "    | a there: #1 in 0 member 0, of 1\n"
    "    | b there: #2 in 0 member 1*, of 1\n"
    "    | c there: #3 in 0 member 2, of 1\n"
    "recovering 1 code=-17 text=lost held=1.2\n"
    "recovering 2 held=1.9\n"
    "recovering 3 held=1.2\n"
    "wait 5s\n"
    "recovering 1 code=-17 text=lost held=1.2\n"
    "recovering 2 held=1.9\n"
    "recovering 3 held=1.2\n"
    "wait 56s\n"
    "recovering 1 code=-17 text=lost held=1.2 | a,b,c < REVOKE 4: a:0#1: lost\n"
    "    | record ENDED 2 sig9\n"
    "    | bar b:0 (1): the worker says that it holds commit 1.9, which no other host could fetch\n"
    "    | b < KILL 2 in 5s: the worker says that it holds commit 1.9, which no other host could "
    "fetch\n"
    "recovering 3 held=1.2\n"
    "wait 20s | record ROUND 5 recovery after 4 from 1.2 of 1,3: 1,3\n"
    "    | a,c < ROUND 5 recovery after 4 from 1.2 of 1,3: 1,3\n")

/* ---- a lying `kept` -------------------------------------------------------------------------- */

/* All members die, and the agent of b says that it keeps a newer commit than it has. After a minute
 * of recoveries that could not fetch this commit it is not believed, and the job goes on with the
 * commit that agents really keep. */
TAPE_CASE(a_kept_commit_that_no_worker_can_fetch_is_forgotten,
          TAPE_RUNNING "exited 1-4 sig9\n"
                       "closed b\n"
                       "hello b kept=0:1.9,1:1.0\n"
                       "hosts c:2\n"
                       "hello c\n"
                       "launched 5,6\n"
                       "ready 5\n"
                       "ready 6 | record READY 6\n"
                       "    | record ROUND 2 recovery after 1 from 1.9: 5,6\n"
                       "    | c < ROUND 2 recovery after 1 from 1.9 kept by b:0: 5,6\n"
                       "recovering 5 code=-17 text=lost\n"
                       "recovering 6\n"
                       "recovering 5 code=-17 text=lost\n"
                       "recovering 6\n"
                       "wait 61s\n"
                       "recovering 5 code=-17 text=lost\n"
                       "recovering 6\n"
                       "wait 20s | record ROUND 5 recovery after 4 from 1.0: 5,6\n"
                       "    | c < ROUND 5 recovery after 4 from 1.0 kept by a:0,a:1,b:1: 5,6\n")
