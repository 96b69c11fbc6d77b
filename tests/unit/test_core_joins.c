/*
 * test_core_joins.c: hosts that join by themselves, and the tokens that let them in. A process that
 * joins for host a has the connection a*.
 */
#include "tests/lib/core_tape.h"

static struct core_tape tape;

#define BEGIN                                         \
    "config np=2 max_np=4 join=alone lease=5s\n"      \
    "start | record TERM 1\nwait 200ms\n"             \
    "token aaaaaaaa | record TOKEN aaaaaaaa code 0\n" \
    "    | token aaaaaaaa\n"                          \
    "    | reply HVD_OK\n"                            \
    "wait 200ms\n"

#define TWO_TRAIN                                            \
    BEGIN "join a* | a* < WELCOME_AGENT term 1\n"            \
          "    | a* < START 1\n"                             \
          "hello a\njoin b* number=4\nwait 200ms\nhello b\n" \
          "launched 1-2\nready 1-2\nentered 1-2\n"

TAPE_CASE(a_host_that_joins_is_a_host_of_the_job,
          BEGIN "join a* slots=2 | a* < WELCOME_AGENT term 1\n"
                "    | a* < START 1\n"
                "hello a | a < WELCOME_AGENT term 1\n"
                "    | record LAUNCH 1 a:0\n"
                "    | a < LAUNCH 1 in 0 as 0/2 local 0/2 cross 0/1\n"
                "    | record LAUNCH 2 a:1\n"
                "    | a < LAUNCH 2 in 1 as 1/2 local 1/2 cross 0/1\n")

/* The list is made at most once in a short time, so that a thousand hosts are a few lists. */
TAPE_CASE(hosts_that_come_together_are_listed_together,
          BEGIN "join a* | a* < WELCOME_AGENT term 1\n"
                "    | a* < START 1\n"
                "join b* number=4 | b* < WELCOME_AGENT term 1\n"
                "join c* number=5 | c* < WELCOME_AGENT term 1\n"
                "wait 100ms | b* < START 2\n"
                "    | c* < START 3\n")

TAPE_CASE(
    a_token_that_is_not_good_opens_nothing, BEGIN
    "token bbbbbbbb uses=1\ntoken cccccccc host=c\ntoken dddddddd for=1s\n"
    "token eeeeeeee\n"
    "token eeeeeeee revoke | record TOKEN eeeeeeee code 2\n"
    "    | reply HVD_OK\n"
    "token eeeeeeee revoke | reply HVD_OK\n"
    "token ffffffff revoke | reply HVD_E_NOTFOUND: ffffffff: no such token in this job; see "
    "'hvd-elastic token list'\n"
    "wait 1s\n"
    "join d* token=dddddddd | d* < REFUSED: token dddddddd has expired; get another one with "
    "'hvd-elastic token create'\n"
    "    | close d*: token dddddddd has expired; get another one with 'hvd-elastic token "
    "create'\n"
    "join e* token=eeeeeeee | e* < REFUSED: token eeeeeeee is revoked; get another one with "
    "'hvd-elastic token create'\n"
    "    | close e*: token eeeeeeee is revoked; get another one with 'hvd-elastic token "
    "create'\n"
    "join f* token=cccccccc | f* < REFUSED: token cccccccc is for host c alone; join with "
    "--name c, or with another token\n"
    "    | close f*: token cccccccc is for host c alone; join with --name c, or with another "
    "token\n"
    "join b* token=bbbbbbbb | record TOKEN bbbbbbbb code 1 b\n"
    "    | b* < WELCOME_AGENT term 1\n"
    "    | b* < START 1\n"
    "join g* token=bbbbbbbb | g* < REFUSED: token bbbbbbbb is used up, as it is good for 1 "
    "hosts; get another one with 'hvd-elastic token create'\n"
    "    | close g*: token bbbbbbbb is used up, as it is good for 1 hosts; get another one with "
    "'hvd-elastic token create'\n")

/* The host that has used a token comes back with it, also to the next driver, and after its end. */
TAPE_CASE(
    a_use_is_counted_once_for_each_host, BEGIN
    "token bbbbbbbb uses=1\n"
    "join b* token=bbbbbbbb\n"
    "bye b*\n"
    "join b* token=bbbbbbbb\n"
    "wait 200ms\n"
    "kill\n"
    "start | record TERM 2\n"
    "    | token aaaaaaaa\n"
    "    | token bbbbbbbb\n"
    "token aaaaaaaa | reply HVD_OK\n"
    "join b* token=bbbbbbbb number=9 | b* < WELCOME_AGENT term 2\n"

    "join g* token=bbbbbbbb | g* < REFUSED: token bbbbbbbb is used up, as it is good for 1 "
    "hosts; get another one with 'hvd-elastic token create'\n"
    "    | close g*: token bbbbbbbb is used up, as it is good for 1 hosts; get another one with "
    "'hvd-elastic token create'\n")

#define LATE \
    "REFUSED: token dddddddd has expired; get another one with 'hvd-elastic token create'\n"
#define LATE_CLOSED \
    ": token dddddddd has expired; get another one with 'hvd-elastic token create'\n"

/* A token is needed for the first entry: its end does not keep a process out that was in, and which
 * the driver and its successor know by the number of its JOIN. Another process, also one under the
 * same name, needs a token that is good. */
TAPE_CASE(the_end_of_a_token_keeps_no_process_out_that_was_in,
          BEGIN "token dddddddd for=1s\n"
                "join d* token=dddddddd number=7 | record TOKEN dddddddd code 1 d\n"
                "    | d* < WELCOME_AGENT term 1\n"
                "    | d* < START 1\n"
                "wait 1s\n"
                "closed d*\n"
                "join d* token=dddddddd number=8 | d* < " LATE "    | close d*" LATE_CLOSED
                "join e* token=dddddddd number=7 | e* < " LATE "    | close e*" LATE_CLOSED
                "join d* token=dddddddd number=7 | d* < WELCOME_AGENT term 1\n"
                "    | d* < START 1\n"
                "kill\n"
                "start | record TERM 2\n"
                "    | token aaaaaaaa\n"
                "    | token dddddddd\n"
                "join x* name=d token=dddddddd number=8 | x* < " LATE "    | close x*" LATE_CLOSED
                "join d* token=dddddddd number=7 | d* < WELCOME_AGENT term 2\n"
                "closed d*\n"
                "token dddddddd revoke\n"
                "join d* token=dddddddd number=7 | d* < REFUSED: token dddddddd is revoked; get "
                "another one with 'hvd-elastic token create'\n"
                "    | close d*: token dddddddd is revoked; get another one with 'hvd-elastic "
                "token create'\n")

/* A process that is started again before the token expires is the one that may come back. */
TAPE_CASE(the_last_process_of_a_host_comes_back_with_an_expired_token,
          BEGIN "token dddddddd for=1s\n"
                "join d* token=dddddddd number=7\n"
                "bye d*\n"
                "join d* token=dddddddd number=8 | record TOKEN dddddddd code 1 d\n"
                "    | d* < WELCOME_AGENT term 1\n"
                "    | d* < START 1\n"
                "closed d*\n"
                "wait 1s\n"
                "join d* token=dddddddd number=7 | d* < " LATE "    | close d*" LATE_CLOSED
                "join d* token=dddddddd number=8 | d* < WELCOME_AGENT term 1\n"
                "    | d* < START 1\n")

TAPE_CASE(
    the_name_of_a_living_host_is_taken, BEGIN
    "join a*\n"
    "join x* name=a number=8 | x* < REFUSED: the name a is that of a living host of the job; "
    "give each host a name of its own with --name\n"
    "    | close x*: the name a is that of a living host of the job; give each host a name of "
    "its own with --name\n"
    /* its connection has ended, so another process may come for the host */
    "closed a*\n"
    "join x* name=a number=8 | x* < WELCOME_AGENT term 1\n"
    "    | x* < START 1\n")

/* The same process dials again, as its old connection is dead: the new one counts. */
TAPE_CASE(a_process_that_dials_again_replaces_its_connection,
          BEGIN "join a*\n"
                "join x* name=a | close a*: the process of this host has dialled again\n"
                "    | x* < WELCOME_AGENT term 1\n"
                "    | x* < START 1\n")

TAPE_CASE(
    a_stranger_with_a_token_says_nothing_else, BEGIN
    "hello a proved=token:aaaaaaaa | a < REFUSED: the agent says that its host is a, but has the "
    "key of host "
    "token:aaaaaaaa\n"
    "    | close a: the agent says that its host is a, but has the key of host token:aaaaaaaa\n"
    "join b* proved=b | b* < REFUSED: the connection has not proved a token\n"
    "    | close b*: the connection has not proved a token\n"
    "join c* name=-o\nview\n")

#define BEHIND_NAT                                                                                \
    "its address is 192.168.5.2, but its connection comes from 10.77.1.2:4321: the host is "      \
    "behind "                                                                                     \
    "NAT, and the other hosts cannot connect to its workers; give hvd-agent --address, with the " \
    "address at which they can\n"

/* Other hosts could not connect to the workers there. The operator's word counts: then a host names
 * no address. A host of the job is not judged again when its driver has moved. */
TAPE_CASE(
    a_host_behind_nat_is_refused, BEGIN
    "token bbbbbbbb uses=1\n"
    "join a* token=bbbbbbbb address=192.168.5.2 seen=10.77.1.2:4321 | a* < REFUSED: " BEHIND_NAT
    "    | close a*: " BEHIND_NAT
    "join a* token=bbbbbbbb seen=10.77.1.2:4321 | record TOKEN bbbbbbbb code 1 a\n"
    "    | a* < WELCOME_AGENT term 1\n"
    "    | a* < START 1\n"
    "closed a*\n"
    "join a* token=bbbbbbbb address=192.168.5.2 seen=10.77.1.2:4321 | a* < WELCOME_AGENT "
    "term 1\n"
    "    | a* < START 1\n")

/* Neither the port nor the spelling of an address makes a difference. */
TAPE_CASE(a_host_without_nat_is_let_in, BEGIN
          "join a* address=10.0.0.7 seen=10.0.0.7:4321 | a* < WELCOME_AGENT term 1\n"
          "    | a* < START 1\n"
          "join b* number=4 address=10.0.0.8 seen=[::ffff:10.0.0.8]:4321 | b* < WELCOME_AGENT "
          "term 1\n"
          "join c* number=5 address=fe80::7%eth0 seen=[fe80::7%eth1]:4321 | c* < WELCOME_AGENT "
          "term 1\n"
          "join d* number=6 address=10.0.0.7 seen=10.0.0.70:4321 | d* < REFUSED: its address is "
          "10.0.0.7, but its connection comes from 10.0.0.70:4321: the host is behind NAT, and "
          "the other hosts cannot connect to its workers; give hvd-agent --address, with the "
          "address at which they can\n"
          "    | close d*: its address is 10.0.0.7, but its connection comes from "
          "10.0.0.70:4321: the host is behind NAT, and the other hosts cannot connect to its "
          "workers; give hvd-agent --address, with the address at which they can\n")

TAPE_CASE(a_host_that_leaves_is_left_in_order,
          TWO_TRAIN "join c* number=5\nwait 200ms\nhello c\nlaunched 3\nready 3\n"
                    "bye a* | close a*: the process of this host has said bye\n"
                    "    | a,b < HOSTS_UPDATED 1 +0 -1\n"
                    "view\n")

/* Its process dies; nothing happens for a lease, and the worker goes on. */
TAPE_CASE(a_lost_connection_costs_nothing_within_the_lease,
          TWO_TRAIN "closed a* |\n"
                    "wait 4s |\n"
                    "join a* number=77 | a* < WELCOME_AGENT term 1\n"
                    "wait 10s |\n")

TAPE_CASE(an_agent_that_could_not_be_started_is_asked_for_again,
          BEGIN "join a* slots=2\n"
                "failed a full\n"
                "clear a | bar a (0): cleared by the operator\n"
                "    | reply HVD_OK\n    | a* < START 1\n")

/* A driver that takes over waits for the hosts of its workers, and starts the agents of those that
 * come before their agents do. */
TAPE_CASE(the_next_driver_waits_for_the_hosts,
          TWO_TRAIN "kill\n"
                    "start | record TERM 2\n"
                    "    | token aaaaaaaa\n"
                    "join a* number=3 | a* < WELCOME_AGENT term 2\n"
                    "    | a* < START 1\n"
                    "hello a #1:0\n"
                    "hello b #2:0\n"
                    "wait 1s |\n"
                    "join b* number=4 | b* < WELCOME_AGENT term 2\n"
                    "wait 20s |\n"
                    "worker 1 member |\n"
                    "worker 2 member |\n")

TAPE_CASE(a_host_is_used_when_both_say_so, "config np=1 min_np=1 max_np=4 join=listed lease=5s\n"
                                           "start | record TERM 1\n"
                                           "token aaaaaaaa\n"
                                           "join a* slots=2 | a* < WELCOME_AGENT term 1\n"
                                           "hosts b:1 |\n"
                                           "hosts a:1,b:1 | a* < START 1\n"
                                           "join b* slots=3 number=5\n"
                                           "wait 200ms | b* < START 2\n")

/* A host that only one of the two sources names is not used, and the operator sees which one. */
TAPE_CASE(a_host_that_one_source_names_is_shown,
          "config np=1 min_np=1 max_np=4 join=listed lease=5s\n"
          "start\ntoken aaaaaaaa\n"
          "join x*\n"
          "view | gathering term 1 round 0: , floor 0, resets 0, short; waits for 1 slots; hosts "
          "with an agent "
          "offer 0\n"
          "    | x none unlisted: of 0; discovery has not answered yet\n"
          "hosts a:1,b:2\n"
          "join a* number=4\nwait 200ms\n"
          "view | gathering term 1 round 0: , floor 0, resets 0, short; waits for 1 slots; hosts "
          "with an agent "
          "offer 0\n"
          "    | a starting: of 1; the agent of the host has not said hello yet\n"
          "    | x none unlisted: of 0; not listed: the host has joined, and the list of hosts "
          "does not name it\n"
          "    | b none: of 0; not joined: the list of hosts names it, and no 'hvd-agent --join' "
          "has joined for it\n")

/* The driver waits, and nothing else would say what a host needs. */
TAPE_CASE(a_job_without_a_token_says_how_one_is_made,
          "config np=2 max_np=4 join=alone lease=5s\n"
          "start | record TERM 1\n"
          "    | ! waiting for slots: 0 of 2 are listed; no host can join, as the job has no "
          "token: 'hvd-elastic token create' makes one, for 'hvd-agent --join'\n")

TAPE_CASE(no_token_is_made_where_no_host_can_join,
          "config np=1 min_np=1\nstart\n"
          "token aaaaaaaa | reply HVD_E_STATE: no host can join this job; start it with "
          "--discovery join\n"
          "join a* | a* < REFUSED: no host can join this job; start it with --discovery join\n"
          "    | close a*: no host can join this job; start it with --discovery join\n")

/* A process whose connection is lost is waited for, and is told when it comes. */
TAPE_CASE(the_end_of_the_job_is_told_to_one_that_dials_again,
          TWO_TRAIN "closed a*\n"
                    "stop operator\n"
                    "exited 1,2 sig15\n"
                    "closed a\n"
                    "closed b |\n"
                    "join a* | a* < REFUSED: the job is over\n"
                    "    | close a*: the job is over\n"
                    "    | b* < STOP: stopped by operator\n"
                    "    | close b*: the job is over\n"
                    "    | exit 2: stopped by operator\n")

TAPE_CASE(the_end_of_the_job_does_not_wait_long,
          TWO_TRAIN "closed a*\n"
                    "stop operator\n"
                    "exited 1,2 sig15\n"
                    "closed a\n"
                    "closed b |\n"
                    "wait 5s | b* < STOP: stopped by operator\n"
                    "    | close b*: the job is over\n"
                    "    | exit 2: stopped by operator\n")

TAPE_CASE(the_end_of_the_job_is_told, TWO_TRAIN "stop operator\n"
                                                "exited 1,2 sig15\n"
                                                "closed a\n"
                                                "closed b | a* < STOP: stopped by operator\n"
                                                "    | close a*: the job is over\n"
                                                "    | b* < STOP: stopped by operator\n"
                                                "    | close b*: the job is over\n"
                                                "    | exit 2: stopped by operator\n")
