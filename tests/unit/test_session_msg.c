/*
 * test_session_msg.c: every message in every state of the worker's session. The tables below say
 * whether the session obeys, ignores or refuses the message.
 */
#include "base/text.h"
#include "proto/catalog.h"
#include "tests/lib/session_tape.h"
#include "tests/lib/test.h"

#include <stdio.h>
#include <string.h>

static struct tape tape;

#define READY      "run | send READY manifest=5\n"
#define PREPARED   "prepare 2 7,8 | prepare 2\nprepared 2 | send PREPARED round=2\n"
#define PENDING    TAPE_ACTIVE PREPARED "pending 1 2 | watch yes\n"
#define NEXT_CHECK PENDING "check 4 | send NEXT_CHECK round=1 next=2 check=4; answer OK\n"
#define AGREED     NEXT_CHECK "switch 1 2 6 |\n"
#define SWITCHED                  \
    NEXT_CHECK "switch 1 2 5 |\n" \
               "check 5 | commit 2:0; answer HOSTS_UPDATED\n"
#define REVOKED   TAPE_ACTIVE "revoke 1 | cancel 1; watch yes\n"
#define RESTORING REVOKED "returned E_REVOKED | restore\n"
#define RECOVERED RESTORING "restored 4 | send RECOVERING round=1 with 4\n"
#define THERE     "round 2 7,8 | ! waits until the training loop can enter\n"

#define WHILE_ENTERING                                              \
    "round 2 7,8 | cancel 1; watch yes => revoked\n"                \
    "round 2 8,9 | cancel 1; watch yes => left\n"                   \
    "round 3 7 RECOVERY | cancel 2; watch yes => revoked\n"         \
    "round 3 8 RECOVERY | cancel 1; watch yes => left\n"            \
    "prepare 2 7,8 | prepare 2\n"                                   \
    "prepare 3 7 | prepare 3\n"                                     \
    "pending 1 2 | watch yes\n"                                     \
    "pending 1 3 | watch yes\n"                                     \
    "switch 1 2 5 | watch yes\n"                                    \
    "abandon 1 2 | \n"                                              \
    "revoke 1 | cancel 1; watch yes => revoked\n"                   \
    "revoke 2 | cancel 2; watch yes => revoked\n"                   \
    "hosts 1 | \n"                                                  \
    "drain | ! this worker leaves at the switch that will follow\n" \
    "done | cancel 1; watch yes => dismissed\n"                     \
    "beat 3 | \n"                                                   \
    "bye | cancel 1; watch yes => lost\n"

#define SWITCHED_IN_TRAIN_DOES                                                   \
    "round 2 7,8 | \n"                                                           \
    "round 2 8,9 | abandon 2 => left\n"                                          \
    "round 3 7 RECOVERY | cancel 2; abandon 2 => revoked\n"                      \
    "round 3 8 RECOVERY | cancel 1; abandon 2 => left\n"                         \
    "prepare 2 7,8 | send PREPARED round=2\n"                                    \
    "prepare 3 7 | ! another round is agreed, or its ROUND has come\n"           \
    "pending 1 2 | ! this worker does not train in the round of this message\n"  \
    "pending 1 3 | ! this worker does not train in the round of this message\n"  \
    "switch 1 2 5 | ! this worker does not train in the round of this message\n" \
    "abandon 1 2 | abandon 2; cancel 1 => revoked\n"                             \
    "revoke 1 | cancel 1 => revoked\n"                                           \
    "revoke 2 | cancel 2; abandon 2 => revoked\n"                                \
    "hosts 1 | \n"                                                               \
    "drain | ! this worker leaves at the switch that will follow\n"              \
    "done | cancel 1; abandon 2 => dismissed\n"                                  \
    "beat 3 | \n"                                                                \
    "bye | cancel 1; abandon 2 => lost\n"

#define WHILE_REVOKED                                                            \
    "round 2 7,8 | \n"                                                           \
    "round 2 8,9 | => left\n"                                                    \
    "round 3 7 RECOVERY | \n"                                                    \
    "round 3 8 RECOVERY | => left\n"                                             \
    "prepare 2 7,8 | prepare 2\n"                                                \
    "prepare 3 7 | prepare 3\n"                                                  \
    "pending 1 2 | ! this worker does not train in the round of this message\n"  \
    "pending 1 3 | ! this worker does not train in the round of this message\n"  \
    "switch 1 2 5 | ! this worker does not train in the round of this message\n" \
    "abandon 1 2 | \n"                                                           \
    "revoke 1 | ! a REVOKE of this or a later round has come before\n"           \
    "revoke 2 | cancel 2\n"                                                      \
    "hosts 1 | \n"                                                               \
    "drain | \n"                                                                 \
    "done | => dismissed\n"                                                      \
    "beat 3 | \n"                                                                \
    "bye | => lost\n"

#define UNTIL_THE_BYE                                                    \
    "round 2 7,8 | ! this worker has ended its part in the job\n"        \
    "round 2 8,9 | ! this worker has ended its part in the job\n"        \
    "round 3 7 RECOVERY | ! this worker has ended its part in the job\n" \
    "round 3 8 RECOVERY | ! this worker has ended its part in the job\n" \
    "prepare 2 7,8 | ! this worker has ended its part in the job\n"      \
    "prepare 3 7 | ! this worker has ended its part in the job\n"        \
    "pending 1 2 | ! this worker has ended its part in the job\n"        \
    "pending 1 3 | ! this worker has ended its part in the job\n"        \
    "switch 1 2 5 | ! this worker has ended its part in the job\n"       \
    "abandon 1 2 | ! this worker has ended its part in the job\n"        \
    "revoke 1 | ! this worker has ended its part in the job\n"           \
    "revoke 2 | ! this worker has ended its part in the job\n"           \
    "hosts 1 | ! this worker has ended its part in the job\n"            \
    "drain | ! this worker has ended its part in the job\n"              \
    "done | ! this worker has ended its part in the job\n"               \
    "beat 3 | \n"

#define WHEN_OVER_IN_TRAIN UNTIL_THE_BYE "bye | cancel 1\n"
#define WHEN_OVER          UNTIL_THE_BYE "bye | \n"

/* A situation is a state of the session. Each row has the script that leads to the state, and for
 * each message the session's reaction and the state that follows, if the state changes. A reaction
 * `drop` gives the reason. */
static const struct situation {
    const char *name;
    const char *begins;
    const char *does;
} situations[] = {
    {"joining",                            "",
     "round 2 7,8 | ! this worker has not sent READY yet\n"
      "round 2 8,9 | ! this worker has not sent READY yet\n"
      "round 3 7 RECOVERY | ! this worker has not sent READY yet\n"
      "round 3 8 RECOVERY | ! this worker has not sent READY yet\n"
      "prepare 2 7,8 | ! this worker has not sent READY yet\n"
      "prepare 3 7 | ! this worker has not sent READY yet\n"
      "pending 1 2 | ! this worker does not train in the round of this message\n"
      "pending 1 3 | ! this worker does not train in the round of this message\n"
      "switch 1 2 5 | ! this worker does not train in the round of this message\n"
      "abandon 1 2 | \n"
      "revoke 1 | ! this worker is not a member of the round\n"
      "revoke 2 | ! this worker is not a member of the round\n"
      "hosts 1 | \n"
      "drain | send LEFT => left\n"
      "done | => dismissed\n"
      "beat 3 | \n"
      "bye | => lost\n"                                                                                                                 },
    { "ready",                             READY,
     "round 2 7,8 | enter 2 0/2 of 7,8 => entering\n"
      "round 2 8,9 | ! the round does not list this worker, which waits for another round\n"
      "round 3 7 RECOVERY | enter 3 0/1 of 7 => entering\n"
      "round 3 8 RECOVERY | ! the round does not list this worker, which waits for another round\n"
      "prepare 2 7,8 | prepare 2\n"
      "prepare 3 7 | prepare 3\n"
      "pending 1 2 | ! this worker does not train in the round of this message\n"
      "pending 1 3 | ! this worker does not train in the round of this message\n"
      "switch 1 2 5 | ! this worker does not train in the round of this message\n"
      "abandon 1 2 | \n"
      "revoke 1 | ! this worker is not a member of the round\n"
      "revoke 2 | ! this worker is not a member of the round\n"
      "hosts 1 | \n"
      "drain | send LEFT; return LEFT => left\n"
      "done | return DONE => dismissed\n"
      "beat 3 | \n"
      "bye | return E_LOST => lost\n"                                                                                                   },
    { "ready and prepared",                READY PREPARED,
     "round 2 7,8 | enter 2 0/2 of 7,8 prepared => entering\n"
      "round 2 8,9 | abandon 2\n"
      "round 3 7 RECOVERY | abandon 2; enter 3 0/1 of 7 => entering\n"
      "round 3 8 RECOVERY | abandon 2\n"
      "prepare 2 7,8 | send PREPARED round=2\n"
      "prepare 3 7 | abandon 2; prepare 3\n"
      "pending 1 2 | ! this worker does not train in the round of this message\n"
      "pending 1 3 | ! this worker does not train in the round of this message\n"
      "switch 1 2 5 | ! this worker does not train in the round of this message\n"
      "abandon 1 2 | abandon 2\n"
      "revoke 1 | ! this worker is not a member of the round\n"
      "revoke 2 | abandon 2; send RECOVERING round=2 => recovered\n"
      "hosts 1 | \n"
      "drain | abandon 2; send LEFT; return LEFT => left\n"
      "done | abandon 2; return DONE => dismissed\n"
      "beat 3 | \n"
      "bye | abandon 2; return E_LOST => lost\n"                                                                                        },
    { "entering",                          TAPE_ENTERING,                                                     WHILE_ENTERING            },
    { "active",                            TAPE_ACTIVE,                                                       WHILE_ENTERING            },
    { "active, a change pending",          PENDING,
     "round 2 7,8 | cancel 1 => revoked\n"
      "round 2 8,9 | cancel 1; abandon 2 => left\n"
      "round 3 7 RECOVERY | cancel 2; abandon 2 => revoked\n"
      "round 3 8 RECOVERY | cancel 1; abandon 2 => left\n"
      "prepare 2 7,8 | send PREPARED round=2\n"
      "prepare 3 7 | abandon 2; watch no; prepare 3\n"
      "pending 1 2 | ! this PENDING has come before\n"
      "pending 1 3 | \n"
      "switch 1 2 5 | \n"
      "abandon 1 2 | abandon 2; watch no\n"
      "revoke 1 | cancel 1 => revoked\n"
      "revoke 2 | cancel 2; abandon 2 => revoked\n"
      "hosts 1 | \n"
      "drain | ! this worker leaves at the switch that will follow\n"
      "done | cancel 1; abandon 2 => dismissed\n"
      "beat 3 | \n"
      "bye | cancel 1; abandon 2 => lost\n"                                                                                             },
    { "active, a check waits",             NEXT_CHECK "check 5 |\n",
     "round 2 7,8 | cancel 1; answer E_REVOKED => revoked\n"
      "round 2 8,9 | cancel 1; answer LEFT; abandon 2 => left\n"
      "round 3 7 RECOVERY | cancel 2; answer E_REVOKED; abandon 2 => revoked\n"
      "round 3 8 RECOVERY | cancel 1; answer LEFT; abandon 2 => left\n"
      "prepare 2 7,8 | send PREPARED round=2\n"
      "prepare 3 7 | abandon 2; watch no; answer OK; prepare 3\n"
      "pending 1 2 | ! this PENDING has come before\n"
      "pending 1 3 | send NEXT_CHECK round=1 next=3 check=5; answer OK\n"
      "switch 1 2 5 | commit 2:0; answer HOSTS_UPDATED => switched\n"
      "abandon 1 2 | abandon 2; watch no; answer OK\n"
      "revoke 1 | cancel 1; answer E_REVOKED => revoked\n"
      "revoke 2 | cancel 2; answer E_REVOKED; abandon 2 => revoked\n"
      "hosts 1 | \n"
      "drain | ! this worker leaves at the switch that will follow\n"
      "done | cancel 1; answer DONE; abandon 2 => dismissed\n"
      "beat 3 | \n"
      "bye | cancel 1; answer E_LOST; abandon 2 => lost\n"                                                                              },
    { "active, a switch agreed",           AGREED,
     "round 2 7,8 | \n"
      "round 2 8,9 | abandon 2\n"
      "round 3 7 RECOVERY | cancel 2; abandon 2 => revoked\n"
      "round 3 8 RECOVERY | cancel 1; abandon 2 => left\n"
      "prepare 2 7,8 | send PREPARED round=2\n"
      "prepare 3 7 | ! another round is agreed, or its ROUND has come\n"
      "pending 1 2 | ! the switch to this round is agreed already\n"
      "pending 1 3 | ! the switch to another round is agreed already\n"
      "switch 1 2 5 | ! the switch to this round is agreed already\n"
      "abandon 1 2 | abandon 2; watch no\n"
      "revoke 1 | cancel 1 => revoked\n"
      "revoke 2 | cancel 2; abandon 2 => revoked\n"
      "hosts 1 | \n"
      "drain | ! this worker leaves at the switch that will follow\n"
      "done | cancel 1; abandon 2 => dismissed\n"
      "beat 3 | \n"
      "bye | cancel 1; abandon 2 => lost\n"                                                                                             },
    { "active, the next round is there",   AGREED THERE,
     "round 2 7,8 | ! stale: the round is dead, or a newer round is known\n"
      "round 2 8,9 | ! stale: the round is dead, or a newer round is known\n"
      "round 3 7 RECOVERY | cancel 2; abandon 2 => revoked\n"
      "round 3 8 RECOVERY | cancel 1; abandon 2 => left\n"
      "prepare 2 7,8 | ! stale: the round is dead, or a newer round is known\n"
      "prepare 3 7 | ! another round is agreed, or its ROUND has come\n"
      "pending 1 2 | ! the switch to this round is agreed already\n"
      "pending 1 3 | ! the switch to another round is agreed already\n"
      "switch 1 2 5 | ! the switch to this round is agreed already\n"
      "abandon 1 2 | abandon 2; watch no\n"
      "revoke 1 | ! stale: a newer round is known\n"
      "revoke 2 | cancel 2; abandon 2 => revoked\n"
      "hosts 1 | \n"
      "drain | ! this worker leaves at the switch that will follow\n"
      "done | cancel 1; abandon 2 => dismissed\n"
      "beat 3 | \n"
      "bye | cancel 1; abandon 2 => lost\n"                                                                                             },
    { "switched, in train",                SWITCHED,                                                          SWITCHED_IN_TRAIN_DOES    },
    { "switched, the next round is there", SWITCHED THERE,
     "round 2 7,8 | ! stale: the round is dead, or a newer round is known\n"
      "round 2 8,9 | ! stale: the round is dead, or a newer round is known\n"
      "round 3 7 RECOVERY | cancel 2; abandon 2 => revoked\n"
      "round 3 8 RECOVERY | cancel 1; abandon 2 => left\n"
      "prepare 2 7,8 | ! stale: the round is dead, or a newer round is known\n"
      "prepare 3 7 | ! another round is agreed, or its ROUND has come\n"
      "pending 1 2 | ! this worker does not train in the round of this message\n"
      "pending 1 3 | ! this worker does not train in the round of this message\n"
      "switch 1 2 5 | ! this worker does not train in the round of this message\n"
      "abandon 1 2 | abandon 2; cancel 1 => revoked\n"
      "revoke 1 | ! stale: a newer round is known\n"
      "revoke 2 | cancel 2; abandon 2 => revoked\n"
      "hosts 1 | \n"
      "drain | ! this worker leaves at the switch that will follow\n"
      "done | cancel 1; abandon 2 => dismissed\n"
      "beat 3 | \n"
      "bye | cancel 1; abandon 2 => lost\n"                                                                                             },
    { "switched, outside",                 SWITCHED "returned HOSTS_UPDATED |\n",
     "round 2 7,8 | watch no; enter 2 0/2 of 7,8 prepared => entering\n"
      "round 2 8,9 | abandon 2; send LEFT; return LEFT => left\n"
      "round 3 7 RECOVERY | cancel 2; abandon 2; restore => revoked\n"
      "round 3 8 RECOVERY | cancel 1; abandon 2; send LEFT; return LEFT => left\n"
      "prepare 2 7,8 | send PREPARED round=2\n"
      "prepare 3 7 | ! another round is agreed, or its ROUND has come\n"
      "pending 1 2 | ! this worker does not train in the round of this message\n"
      "pending 1 3 | ! this worker does not train in the round of this message\n"
      "switch 1 2 5 | ! this worker does not train in the round of this message\n"
      "abandon 1 2 | abandon 2; cancel 1; restore => revoked\n"
      "revoke 1 | cancel 1; restore => revoked\n"
      "revoke 2 | cancel 2; abandon 2; restore => revoked\n"
      "hosts 1 | \n"
      "drain | ! this worker leaves at the switch that will follow\n"
      "done | cancel 1; abandon 2; return DONE => dismissed\n"
      "beat 3 | \n"
      "bye | cancel 1; abandon 2; return E_LOST => lost\n"                                                                              },
    { "switched, restoring",               SWITCHED "returned E_REVOKED | restore\n",                         SWITCHED_IN_TRAIN_DOES    },
    { "revoked, entering",                 TAPE_ENTERING "revoke 1 | cancel 1; watch yes\n",                  WHILE_REVOKED             },
    { "revoked, in train",                 REVOKED,                                                           WHILE_REVOKED             },
    { "revoked, restoring",                RESTORING,                                                         WHILE_REVOKED             },
    { "revoked, drained",                  RESTORING "drain | ! this worker was asked to leave; it leaves\n",
     "round 2 7,8 | \n"
      "round 2 8,9 | => left\n"
      "round 3 7 RECOVERY | \n"
      "round 3 8 RECOVERY | => left\n"
      "prepare 2 7,8 | prepare 2\n"
      "prepare 3 7 | prepare 3\n"
      "pending 1 2 | ! this worker does not train in the round of this message\n"
      "pending 1 3 | ! this worker does not train in the round of this message\n"
      "switch 1 2 5 | ! this worker does not train in the round of this message\n"
      "abandon 1 2 | \n"
      "revoke 1 | ! a REVOKE of this or a later round has come before\n"
      "revoke 2 | cancel 2\n"
      "hosts 1 | \n"
      "drain | ! this worker was already asked to leave\n"
      "done | => dismissed\n"
      "beat 3 | \n"
      "bye | => lost\n"                                                                                                                 },
    { "revoked, a round is there",
     RESTORING "round 2 7 RECOVERY | ! waits until the training loop can enter\n",
     "round 2 7,8 | ! stale: the round is dead, or a newer round is known\n"
      "round 2 8,9 | ! stale: the round is dead, or a newer round is known\n"
      "round 3 7 RECOVERY | \n"
      "round 3 8 RECOVERY | => left\n"
      "prepare 2 7,8 | ! stale: the round is dead, or a newer round is known\n"
      "prepare 3 7 | ! another round is agreed, or its ROUND has come\n"
      "pending 1 2 | ! this worker does not train in the round of this message\n"
      "pending 1 3 | ! this worker does not train in the round of this message\n"
      "switch 1 2 5 | ! this worker does not train in the round of this message\n"
      "abandon 1 2 | \n"
      "revoke 1 | ! stale: a newer round is known\n"
      "revoke 2 | cancel 2\n"
      "hosts 1 | \n"
      "drain | ! a ROUND that lists this worker has arrived, so this worker enters it\n"
      "done | => dismissed\n"
      "beat 3 | \n"
      "bye | => lost\n"                                                                                                                 },
    { "recovered",                         RECOVERED,
     "round 2 7,8 | watch no; enter 2 0/2 of 7,8 => entering\n"
      "round 2 8,9 | send LEFT; return LEFT => left\n"
      "round 3 7 RECOVERY | watch no; enter 3 0/1 of 7 => entering\n"
      "round 3 8 RECOVERY | send LEFT; return LEFT => left\n"
      "prepare 2 7,8 | prepare 2\n"
      "prepare 3 7 | prepare 3\n"
      "pending 1 2 | ! this worker does not train in the round of this message\n"
      "pending 1 3 | ! this worker does not train in the round of this message\n"
      "switch 1 2 5 | ! this worker does not train in the round of this message\n"
      "abandon 1 2 | \n"
      "revoke 1 | ! a REVOKE of this or a later round has come before\n"
      "revoke 2 | send RECOVERING round=2 with 4\n"
      "hosts 1 | \n"
      "drain | send LEFT; return LEFT => left\n"
      "done | return DONE => dismissed\n"
      "beat 3 | \n"
      "bye | return E_LOST => lost\n"                                                                                                   },
    { "recovered, unasked",
     TAPE_ENTERING "synced E_IO | cancel 1; restore\n"
                    "restored | send RECOVERING round=1 text=\"input or output failed\" code=-7\n",           "round 2 7,8 | enter 2 0/2 of 7,8 => entering\n"
      "round 2 8,9 | send LEFT; return LEFT => left\n"
      "round 3 7 RECOVERY | enter 3 0/1 of 7 => entering\n"
      "round 3 8 RECOVERY | send LEFT; return LEFT => left\n"
      "prepare 2 7,8 | prepare 2\n"
      "prepare 3 7 | prepare 3\n"
      "pending 1 2 | ! this worker does not train in the round of this message\n"
      "pending 1 3 | ! this worker does not train in the round of this message\n"
      "switch 1 2 5 | ! this worker does not train in the round of this message\n"
      "abandon 1 2 | \n"
      "revoke 1 | send RECOVERING round=1\n"
      "revoke 2 | send RECOVERING round=2\n"
      "hosts 1 | \n"
      "drain | send LEFT; return LEFT => left\n"
      "done | return DONE => dismissed\n"
      "beat 3 | \n"
      "bye | return E_LOST => lost\n"},
    { "left, in train",
     PENDING "switch 1 3 6 |\n"
              "check 6 | commit 3:0; answer LEFT; abandon 2\n",                                               WHEN_OVER_IN_TRAIN        },
    { "left",                              READY "drain | send LEFT; return LEFT\n",                          WHEN_OVER                 },
    { "finished",                          TAPE_ACTIVE "returned | send FINISHED round=1; return OK\n",       WHEN_OVER                 },
    { "dismissed, in train",               TAPE_ACTIVE "done | cancel 1; watch yes\n",                        WHEN_OVER_IN_TRAIN        },
    { "dismissed",                         READY "done | return DONE\n",                                      WHEN_OVER                 },
    { "lost",                              TAPE_ACTIVE "closed | cancel 1; watch yes\n",
     "round 2 7,8 | ! the agent of this worker is gone\n"
      "round 2 8,9 | ! the agent of this worker is gone\n"
      "round 3 7 RECOVERY | ! the agent of this worker is gone\n"
      "round 3 8 RECOVERY | ! the agent of this worker is gone\n"
      "prepare 2 7,8 | ! the agent of this worker is gone\n"
      "prepare 3 7 | ! the agent of this worker is gone\n"
      "pending 1 2 | ! the agent of this worker is gone\n"
      "pending 1 3 | ! the agent of this worker is gone\n"
      "switch 1 2 5 | ! the agent of this worker is gone\n"
      "abandon 1 2 | ! the agent of this worker is gone\n"
      "revoke 1 | ! the agent of this worker is gone\n"
      "revoke 2 | ! the agent of this worker is gone\n"
      "hosts 1 | ! the agent of this worker is gone\n"
      "drain | ! the agent of this worker is gone\n"
      "done | ! the agent of this worker is gone\n"
      "beat 3 | ! the agent of this worker is gone\n"
      "bye | ! the agent of this worker is gone\n"                                                                                      },
};

static enum session_state state(void)
{
    return session_state(tape.session);
}

/* Writes the reaction to the last step into text, in the form of the tables above, and returns
 * text. */
static const char *reaction(enum session_state before, char text[256])
{
    const char *traced = trace_line(&tape.trace, 0);
    const char *dropped = traced ? strstr(traced, " dropped in ") : NULL;

    if (!*tape_did(&tape) && state() == before && tape.traced == 1 && dropped)
        snprintf(text, 256, "! %s", strstr(dropped, ": ") + 2);
    else if (state() != before)
        snprintf(text, 256, "%s%s=> %s", tape_did(&tape), *tape_did(&tape) ? " " : "",
                 session_state_name(state()));
    else
        snprintf(text, 256, "%s", tape_did(&tape));
    return text;
}

/* Returns the reaction to the same message when it comes for the second time: the session repeats
 * only its answer to a PREPARE. */
static const char *again(const char *line)
{
    enum session_state before = state();
    int rc = tape_do(&tape, line);

    if (rc)
        return err_name(rc);
    if (state() != before)
        return session_state_name(state());
    if (!strncmp(line, "prepare ", 8) && !strncmp(tape_did(&tape), "send PREPARED", 13))
        return "";
    return tape_did(&tape);
}

/* Calls check for each message in each situation. Each call has a new session. */
static void in_each_situation(struct test *t,
                              const char *(*check)(const char *line, const char *expected))
{
    char line[64];
    struct span rest;
    struct span one;
    struct span told;

    for (size_t i = 0; i < ARRAY_SIZE(situations); i++) {
        rest = (struct span){ situations[i].does, strlen(situations[i].does) };
        while (span_next(&rest, '\n', &one) && one.length) {
            char expected[256];
            const char *wrong;

            span_next(&one, '|', &told);
            told = span_trim(told);
            one = span_trim(one);
            snprintf(line, sizeof(line), "%.*s", (int)told.length, told.at);
            snprintf(expected, sizeof(expected), "%.*s", (int)one.length, one.at);
            CHECK_OK(t, tape_init(&tape));
            CHECK_PLAY(t, &tape, situations[i].begins);
            wrong = check(line, expected);
            if (wrong) {
                test_fail(t, __FILE__, __LINE__, "%s: %s: %s", situations[i].name, line, wrong);
                goto out;
            }
            tape_release(&tape);
        }
    }
    return;
out:
    tape_release(&tape);
}

static const char *once_and_again(const char *line, const char *expected)
{
    enum session_state before = state();
    static char text[256];

    if (tape_do(&tape, line))
        return "a step failed";
    if (strcmp(reaction(before, text), expected) != 0)
        return text;
    if (*again(line))
        return "the second changes something";
    return NULL;
}

TEST_FLAGS(every_message_in_every_state, TEST_NO_TORTURE)
{
    in_each_situation(t, once_and_again);
}

static bool is_dropped(const char *line)
{
    enum session_state before = state();
    int rc = tape_do(&tape, line);

    return !rc && state() == before && !*tape_did(&tape) && tape.traced == 1;
}

/* Gives each message again with keys (incarnation, term) that are wrong or no longer right; the
 * session must drop the message. */
static const char *with_wrong_keys(const char *line, const char *expected)
{
    bool has_term = strncmp(line, "beat", 4) != 0 && strncmp(line, "bye", 3) != 0;

    (void)expected;
    tape.incarnation = TAPE_ME + 1;
    if (!is_dropped(line))
        return "of another worker";
    tape.incarnation = TAPE_ME;
    tape.term = 0;
    if (has_term && !is_dropped(line))
        return "without a term";
    tape.term = 5;
    if (tape_do(&tape, "hosts 1"))
        return "a step failed";
    tape.term = 4;
    if (has_term && !is_dropped(line))
        return "of an old term";
    return NULL;
}

TEST_FLAGS(wrong_keys_in_every_state, TEST_NO_TORTURE)
{
    in_each_situation(t, with_wrong_keys);
}

/* Gives each message again for a round that the session has never heard of, and for a round that is
 * long over. */
static const char *of_other_rounds(const char *line, const char *expected)
{
    static const char *const stale[] = { "pending 9 10", "switch 9 10 1", "pending 1 1",
                                         "switch 1 1 0", "round 0 7",     "prepare 0 7",
                                         "revoke 0",     "pending 0 2" };
    static const char *const old[] = { "round 1 7,8", "round 1 8", "prepare 1 7", "abandon 1 1" };

    (void)line;
    (void)expected;
    for (size_t i = 0; i < ARRAY_SIZE(stale); i++) {
        if (!is_dropped(stale[i]))
            return stale[i];
    }
    for (size_t i = 0; i < ARRAY_SIZE(old); i++) {
        if (session_round(tape.session) == 1 && !is_dropped(old[i]))
            return old[i];
    }
    return NULL;
}

TEST_FLAGS(other_rounds_in_every_state, TEST_NO_TORTURE)
{
    in_each_situation(t, of_other_rounds);
}

/* Gives the session every number that can stand as a message's type in a frame; the tables above
 * have the types that a worker may get. */
static const char *of_every_type(const char *line, const char *expected)
{
    (void)line;
    (void)expected;
    for (unsigned type = 0; type < 500; type++) {
        struct msg msg = { .type = (enum msg_type)type, .term = 1, .round = 1 };
        enum session_state before = state();

        if (!msg_allowed(type, LINK_AGENT_TO_WORKER, WHEN_OPEN, NULL))
            continue;
        if (tape_msg(&tape, &msg) || *tape_did(&tape) || tape.traced != 1 || state() != before)
            return "a message that is not for workers";
    }
    return NULL;
}

TEST_FLAGS(other_messages_in_every_state, TEST_NO_TORTURE)
{
    in_each_situation(t, of_every_type);
}

TEST(a_new_driver_is_obeyed)
{
    CHECK_OK(t, tape_init(&tape));
    CHECK_PLAY(t, &tape,
               TAPE_ACTIVE "term 3 |\n"
                           "pending 1 2 | watch yes\n"
                           "term 2 |\n"
                           "abandon 1 2 | ! the message is of a driver that was replaced\n"
                           "done | ! the message is of a driver that was replaced\n"
                           "beat 4 |\n"
                           "term 3 |\n"
                           "abandon 1 2 | watch no\n"
                           "term 0 |\n"
                           "drain | ! malformed\n");
    CHECK_PLAY(t, &tape,
               "for 8 |\nterm 9 |\ndone | ! the message is for another worker\n"
               "for 7 |\nterm 3 |\nhosts 1 |\ndone | cancel 1; watch yes\n");
out:
    tape_release(&tape);
}
