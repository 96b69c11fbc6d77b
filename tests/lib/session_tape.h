/*
 * session_tape.h: a session played from a script: what happens on the left, what it does on the
 * right, and a line that begins with "!" is what it traced while it did nothing.
 *
 *     tape_play(&tape, "run            | send READY\n"
 *                      "round 1 7,8    | enter 1 0/2 of 7,8\n"
 *                      "synced         |\n"
 *                      "revoke 0       | ! malformed\n");
 *
 * The session is incarnation 7. Codes are named without HVD_; none is HVD_OK.
 *     run [C,...]            the commits held        synced [CODE]      stepped     check N
 *     returned [CODE]        settled [C,...]         prepared R [CODE]  stuck
 *     timer      closed      at SECONDS (the time)   state NAME (and asserts it)
 *     term T, for I          keys of the messages after it
 *     round R M,... [CAUSE]  prepare R M,...         pending R N [CHECK] switch R N CHECK
 *     abandon R N            revoke R                hosts R            drain    done   beat S bye
 */
#ifndef TESTS_LIB_SESSION_TAPE_H
#define TESTS_LIB_SESSION_TAPE_H

#include "base/buf.h"
#include "worker/core/session.h"

#define TAPE_ME 7

struct tape {
    struct session *session;
    struct trace trace;
    struct session_action_list list;
    struct buf did;      /* the actions of the last step */
    struct arena memory; /* of the event that is being told: gone after its step */
    uint64_t term;
    uint64_t incarnation;
    int64_t now_us;
    uint64_t traced; /* lines of the last step */
    char wrong[1024];
};

int tape_init(struct tape *tape) MUST_CHECK;
void tape_release(struct tape *tape);

/* One step; 0 or HVD_E_NOMEM. tape_did: what it did, as in a script. */
int tape_step(struct tape *tape, struct session_event *event) MUST_CHECK;
int tape_msg(struct tape *tape, struct msg *msg) MUST_CHECK;

/* One line of a script without what is on the right: 0, HVD_E_NOMEM, HVD_E_INVAL. */
int tape_do(struct tape *tape, const char *line) MUST_CHECK;
const char *tape_did(const struct tape *tape);

/* NULL, or what is wrong with which line. */
const char *tape_play(struct tape *tape, const char *script) MUST_CHECK;

/* The action as it stands in a script; borrowed until the next call. */
int tape_show(const struct session_action *action, struct buf *out) MUST_CHECK;

/* Beginnings of scripts. */
#define TAPE_ENTERING                       \
    "run         | send READY manifest=5\n" \
    "round 1 7,8 | enter 1 0/2 of 7,8\n"
#define TAPE_ACTIVE TAPE_ENTERING "synced |\n"

/* A case that is a script; `tape` is the file's. */
#define TAPE_CASE(name, ...)               \
    static void name(struct test *t)       \
    {                                      \
        CHECK_OK(t, tape_init(&tape));     \
        CHECK_PLAY(t, &tape, __VA_ARGS__); \
out:                                       \
        tape_release(&tape);               \
    }

#define CHECK_PLAY(t, tape, script) CHECK_TEXT(t, tape_play(tape, script), NULL)

#endif
