#include "tests/lib/core_tape.h"
#include "tests/lib/test.h"

static struct core_tape tape;

/* Of #2, which is a:1. */
#define REVOKED "a,b < REVOKE 1 lost 2: a:1#2: of no more use: its device is stuck\n"
#define WRITTEN "record ENDED 2 sig9\n"
#define CHARGED "    | bar a:1 (1): of no more use: its device is stuck\n"

/* ---- in whatever it is ---------------------------------------------------------------------- */

/* Its word may be here before its agent's, that it runs. */
TAPE_CASE(before_it_is_known_to_run, "config np=2\n"
                                     "start\n"
                                     "hosts a:2\n"
                                     "hello a\n"
                                     "useless 2 | " WRITTEN CHARGED "launched 2 |\n"
                                     "ready 2 |\n"
                                     "exited 2 sig9 | a < FORGET 2\n")

/* Nobody who trains is disturbed. */
TAPE_CASE(as_it_joins, TAPE_RUNNING "hosts a:2,b:2,c:1\n"
                                    "hello c\n"
                                    "ready 5 | record READY 5\n"
                                    "    | record NUMBER 2\n"
                                    "    | a,b,c < PREPARE 2 after 1: 1,2,3,4,5\n"
                                    "prepared 1-4\n"
                                    "useless 5 | a,b,c < ABANDON 1 next 2: c:0#5: of no more use: "
                                    "its device is stuck\n"
                                    "    | record ENDED 5 sig9\n"
                                    "    | bar c:0 (1): of no more use: its device is stuck\n"
                                    "prepared 5 |\n")

TAPE_CASE(on_the_way_to_a_switch,
          TAPE_RUNNING "hosts a:2,b:1\n"
                       "prepared 1-3\n"
                       "at 1,3 7\n"
                       "useless 2 | a,b < ABANDON 1 next 2: a:1#2: of no more use: its device is "
                       "stuck\n"
                       "    | " REVOKED "    | " WRITTEN CHARGED "at 2 7 |\n"
                       "entered 2 |\n")

/* The others may not be past the agreed check yet; it was to go, so nobody is charged. */
TAPE_CASE(as_it_leaves, TAPE_RUNNING "hosts a:2,b:1\n"
                                     "prepared 1-3\n"
                                     "at 1-4 7\n"
                                     "useless 4 | a,b < REVOKE 2 lost 4: b:1#4: of no more use: "
                                     "its device is stuck\n"
                                     "    | record ENDED 4 sig9\n"
                                     "left 4 |\n")

TAPE_CASE(when_it_has_left, TAPE_RUNNING "hosts a:2,b:1\n"
                                         "prepared 1-3\n"
                                         "at 1-4 7\n"
                                         "left 4\n"
                                         "useless 4 | record ENDED 4 sig9\n"
                                         "exited 4 sig9 | b < FORGET 4\n")

/* As after any other bad end of who had finished: it may have had something left to do. */
TAPE_CASE(when_it_has_finished, TAPE_RUNNING
          "finished 1-4\n"
          "exited 1,3,4\n"
          "useless 2 | record ENDED 2 sig9\n"
          "    | record OVER 1: the training has finished, but a worker failed after it: a:1#2: of "
          "no more use: its device is stuck\n"
          "    | a < STOP: the training has finished, but a worker failed after it: a:1#2: of no "
          "more use: its device is stuck\n"
          "    | b < STOP: the training has finished, but a worker failed after it: a:1#2: of no "
          "more use: its device is stuck\n")

/* The others cannot go on without it. */
TAPE_CASE(as_the_others_finish, TAPE_RUNNING "finished 1\n"
                                             "useless 2 | record ENDED 2 sig9\n"
                                             "    | b < DONE 3\n"
                                             "    | b < DONE 4\n")

/* ---- silence -------------------------------------------------------------------------------- */

/* Not even SIGKILL ends it: its slot is not used, the others go on, and the job ends without it. */
TAPE_CASE(its_process_never_ends, TAPE_RUNNING "useless 2\n"
                                               "recovering 1,3,4 held=1.1\n"
                                               "entered 1,3,4\n"
                                               "wait 5m |\n"
                                               "worker 2 doomed |\n"
                                               "finished 1,3,4\n"
                                               "exited 1,3\n"
                                               "exited 4 | record ENDED 4 exit0\n"
                                               "    | record OVER 0: finished\n"
                                               "    | a < STOP: finished\n"
                                               "    | b < STOP: finished\n"
                                               "    | b < FORGET 4\n"
                                               "closed b |\n"
                                               "wait 21s | exit 0: finished\n")

/* It is not counted a second time. */
TAPE_CASE(its_host_is_silent_after_it,
          TAPE_RUNNING "useless 2\n"
                       "silent a\n"
                       "wait 11s | close a: silent for longer than the lease\n"
                       "    | record ENDED 1 silent\n"
                       "    | bar a (1): silent for longer than the lease\n")

/* The next one has nothing of it: nor is it to blame for that. */
TAPE_CASE(its_agent_dies_after_it, TAPE_RUNNING "useless 2\n"
                                                "closed a\n"
                                                "hello a agent=8 | a < WELCOME_AGENT term 1\n"
                                                "    | record ENDED 1 silent\n"
                                                "    | a < FORGET 1\n"
                                                "    | a < FORGET 2\n"
                                                "    | bar a (1): its agent has lost its workers\n")

/* ---- the driver dies ------------------------------------------------------------------------ */

/* Its end was not written down: it is as if it were said the first time, but for its seat, which
 * was charged for this incarnation. */
TAPE_CASE(the_driver_dies_before_it_is_durable,
          TAPE_RUNNING "useless 2\n"
                       "kill 1\n"
                       "start\n"
                       "hello a #1:0 #2:1=sig9 | a < WELCOME_AGENT term 2\n"
                       "    | a < ROUND 1 first after 0 from 1.0 of 1: 1,2,3,4\n"
                       "hello b #3:0 #4:1\n"
                       "useless 2 | " REVOKED "    | " WRITTEN "exited 2 sig9 | a < FORGET 2\n")

/* Its end is known, and its process still there: it is neither charged again, nor replaced yet. */
TAPE_CASE(the_driver_dies_when_it_is_durable,
          TAPE_RUNNING "useless 2\n"
                       "kill\n"
                       "start\n"
                       "hello a #1:0 #2:1 | a < WELCOME_AGENT term 2\n"
                       "    | a < KILL 2 in 0s: it was counted as dead\n"
                       "    | a < REVOKE 1: it was revoked while you were away\n"
                       "useless 2 |\n"
                       "hello b #3:0 #4:1\n"
                       "hosts a:2,b:2\n"
                       "recovering 1,3,4 held=1.1\n"
                       "wait 1m |\n"
                       "exited 2 sig9 | a < FORGET 2\n"
                       "    | record LAUNCH 5 a:1\n"
                       "    | a < LAUNCH 5 in 1 as 3/4 local 0/1 cross 0/1\n")

/* ---- late, and by others --------------------------------------------------------------------- */

/* Its successor is in the slot. */
TAPE_CASE(its_word_is_late,
          TAPE_RUNNING "exited 2 sig9\n"
                       "recovering 1,3,4 held=1.1\n"
                       "entered 1,3,4\n"
                       "wait 30s\n"
                       "worker 5 launching |\n"
                       "useless 2 | ! a: a message of #2, which is no more, is dropped\n"
                       "worker 5 launching |\n"
                       "useless 3 from=a | ! a: a message of #3, which is no more, is dropped\n")

/* It is of the process, whatever the round: also of one that is over. */
TAPE_CASE(no_round_is_too_old_for_it, TAPE_RUNNING
          "exited 4 exit1\n"
          "recovering 1-3 held=1.1\n"
          "entered 1-3\n"
          "useless 2 round=1 | a,b < REVOKE 2 lost 2: a:1#2: of no more use: its device is stuck\n"
          "    | " WRITTEN CHARGED)

TESTS(CASE(before_it_is_known_to_run), CASE(as_it_joins), CASE(on_the_way_to_a_switch),
      CASE(as_it_leaves), CASE(when_it_has_left), CASE(when_it_has_finished),
      CASE(as_the_others_finish), CASE(its_process_never_ends), CASE(its_host_is_silent_after_it),
      CASE(its_agent_dies_after_it), CASE(the_driver_dies_before_it_is_durable),
      CASE(the_driver_dies_when_it_is_durable), CASE(its_word_is_late),
      CASE(no_round_is_too_old_for_it))
