/*
 * core_tape.h: a driver's core played from a script, without agents or workers: what happens on the
 * left, what the core does on the right. A line without "|" is not compared; one with nothing on
 * its left goes on with the line before; "!" is what was traced while nothing was done.
 *
 *     tape_play(&tape, "config np=2\n"
 *                      "start     | record TERM 1\n"
 *                      "hosts a:2 | start a\n");
 *
 * Workers are incarnations, one or several (1,3-5), each in a step of its own. Beats and questions
 * to discovery are not shown unless "show" was said.
 *     config KEY=VALUE...      start       kill [LOST] [twice]: a new core out of the journal, but
 *                                          for the last LOST records, which were never written
 *     hosts LIST               nohosts TEXT            failed HOST TEXT
 *     hello HOST [agent=N] [term=N] [job=NAME] [kept=SLOT:1.3,...]
 *                                                       [#I:SLOT[=exitN|=sigN|=silent]]...
 *     closed HOST              silent HOST             beat HOST     bye HOST    notice HOST TIME
 *     launched W               launchfail W CODE       ready W [held=1.3/SUM,...] [manifest=N]
 *                                                              [entries=NAME:BYTES,...]
 *     prepared W [CODE]        at W CHECK [next=N]     recovering W [held=...]     output W
 *     entered W [rebuild=TIME] [state=TIME] [step=TIME]       stalled W TIME [W] [in=OPERATION]
 *     left W      finished W [CODE]      exited W [exitN|sigN|silent]      any: round=N from=HOST
 *     drain HOST[:SLOT] TIME   undrain HOST[:SLOT]     clear HOST[:SLOT]     stop WHO
 *     wait TIME (agents beat, discovery answers)       jump TIME (nobody does)
 *     state NAME    worker W NAME    view: what status would say    held: the blacklist
 */
#ifndef TESTS_LIB_CORE_TAPE_H
#define TESTS_LIB_CORE_TAPE_H

#include "base/buf.h"
#include "base/time.h"
#include "driver/core/core.h"

#define TAPE_HOSTS   24
#define TAPE_PEERS   256
#define TAPE_WORKERS 65536
#define TAPE_WALL    (INT64_C(1000000) * TIME_S)

struct tape_host {
    char name[64];
    uint32_t peer; /* 0: not connected */
    uint64_t agent;
    bool silent;
};

struct core_tape {
    struct core_config config;
    struct core *core;
    struct trace trace;
    struct action_list list;
    struct buf did;      /* the actions of the last line of the script */
    struct buf bytes;    /* of one action */
    struct arena memory; /* of the event that is being told: gone after its step */
    struct arena kept;   /* what the journal points to */
    struct VEC(struct journal_record) journal;
    struct VEC(struct blacklist_record) blacklist;
    struct tape_host hosts[TAPE_HOSTS];
    size_t host_count;
    struct tape_host *by_peer[TAPE_PEERS];
    uint8_t host_of[TAPE_WORKERS]; /* of a worker, + 1 */
    char listing[512];
    int64_t now_us;
    uint64_t term;
    uint64_t digest; /* of all actions */
    uint64_t traced;
    bool show, over, asked;
    int exit_code;
    char wrong[2048];
};

int tape_init(struct core_tape *tape) MUST_CHECK;
void tape_release(struct core_tape *tape);
/* The core, for the config there is now, if there is none yet. */
int tape_core(struct core_tape *tape) MUST_CHECK;
int tape_kill(struct core_tape *tape, size_t lost, bool twice) MUST_CHECK;

/* One step, its actions appended to `did`: 0 or HVD_E_NOMEM. An impossible action panics. */
int tape_step(struct core_tape *tape, struct event *event) MUST_CHECK;

/* A message of a worker, or (incarnation 0) of a host's agent; NULL: of the host it runs on. */
int tape_msg(struct core_tape *tape, struct tape_host *host, struct msg *msg) MUST_CHECK;
int tape_hello(struct core_tape *tape, struct tape_host *host, struct msg *msg) MUST_CHECK;
int tape_wait(struct core_tape *tape, int64_t us) MUST_CHECK;
struct tape_host *tape_host(struct core_tape *tape, const char *name);

/* One line of a script without what is on the right: 0, HVD_E_NOMEM, HVD_E_INVAL. */
int tape_do(struct core_tape *tape, const char *line) MUST_CHECK;
const char *tape_did(const struct core_tape *tape);

/* NULL, or what is wrong with which line. */
const char *tape_play(struct core_tape *tape, const char *script) MUST_CHECK;

/* The i-th action as it stands in a script, without the host of a message. */
int tape_show(struct core_tape *tape, const struct action *action, struct buf *out) MUST_CHECK;
int tape_show_view(const struct core_view *view, struct buf *out) MUST_CHECK;
int tape_show_held(const struct core_view *view, struct buf *out) MUST_CHECK;

/* Beginnings of scripts: two hosts with two workers each. */
#define TAPE_LAUNCHED        \
    "start\nhosts a:2,b:2\n" \
    "hello a\nhello b\n"     \
    "launched 1-4\n"
#define TAPE_RUNNING \
    TAPE_LAUNCHED    \
    "ready 1-4\n"    \
    "entered 1-4\n"

#define CHECK_PLAY(t, tape, script) CHECK_TEXT(t, tape_play(tape, script), NULL)

/* A case that is a script; `tape` is the file's. */
#define TAPE_CASE(name, ...)               \
    static void name(struct test *t)       \
    {                                      \
        CHECK_OK(t, tape_init(&tape));     \
        CHECK_PLAY(t, &tape, __VA_ARGS__); \
out:                                       \
        tape_release(&tape);               \
    }

#endif
