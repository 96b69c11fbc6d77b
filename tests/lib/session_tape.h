/*
 * session_tape.h: plays a worker's session from a script. A line has an event on the left of "|"
 * and the actions of the session on the right. A text behind "!" is the trace line of an event that
 * caused no action.
 *
 *     tape_play(&tape, "run            | send READY\n"
 *                      "round 1 7,8    | enter 1 0/2 of 7,8\n"
 *                      "synced         |\n"
 *                      "revoke 0       | ! malformed\n");
 *
 * The session is incarnation 7. Codes are written without HVD_; no code means HVD_OK.
 *     run [C,...]            the commits held        synced [CODE]      stepped     check N
 *     returned [CODE]        restored [C,...]        prepared R [CODE]  stuck
 *     timer      closed      at SECONDS (the time)   state NAME (and asserts it)
 *     term T, for I          the term and incarnation of the messages after it
 *     round R M,... [CAUSE]  prepare R M,...         pending R N [CHECK] switch R N CHECK
 *     abandon R N            revoke R                hosts R            drain    done   beat S bye
 */
#ifndef TESTS_LIB_SESSION_TAPE_H
#define TESTS_LIB_SESSION_TAPE_H

#include "base/buf.h"
#include "tests/lib/test.h"
#include "worker/core/session.h"

#define TAPE_ME 7

struct tape {
    struct session *session;
    struct trace trace;
    struct session_action_list list;
    struct buf did;      /* the actions of the last step */
    struct arena memory; /* the memory of the current event, freed after its step */
    uint64_t term;
    uint64_t incarnation;
    int64_t now_us;
    uint64_t traced; /* trace lines of the last step */
    char wrong[1024];
};

int tape_init(struct tape *tape) MUST_CHECK;
void tape_release(struct tape *tape);

/* Runs one step; 0 or HVD_E_NOMEM. tape_did returns its actions as a script writes them. */
int tape_step(struct tape *tape, struct session_event *event) MUST_CHECK;
int tape_msg(struct tape *tape, struct msg *msg) MUST_CHECK;

/* Runs the left side of one script line: 0, HVD_E_NOMEM or HVD_E_INVAL. */
int tape_do(struct tape *tape, const char *line) MUST_CHECK;
const char *tape_did(const struct tape *tape);

/* NULL: the script was right; else which line was wrong, and why. */
const char *tape_play(struct tape *tape, const char *script) MUST_CHECK;

/* Appends the action to out, as a script writes it. */
int tape_show(const struct session_action *action, struct buf *out) MUST_CHECK;

/* Beginnings of scripts. */
#define TAPE_ENTERING                       \
    "run         | send READY manifest=5\n" \
    "round 1 7,8 | enter 1 0/2 of 7,8\n"
#define TAPE_ACTIVE TAPE_ENTERING "synced |\n"

/* A test case that is one script; `tape` is a static of the test file. */
#define TAPE_CASE(name, ...)               \
    TEST(name)                             \
    {                                      \
        CHECK_OK(t, tape_init(&tape));     \
        CHECK_PLAY(t, &tape, __VA_ARGS__); \
out:                                       \
        tape_release(&tape);               \
    }

#define CHECK_PLAY(t, tape, script) CHECK_TEXT(t, tape_play(tape, script), NULL)

#endif
