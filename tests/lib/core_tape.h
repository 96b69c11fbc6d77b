/*
 * core_tape.h: plays a driver's core from a script, without agents or workers. A line has an event
 * on the left of "|" and the core's actions on the right; without "|" it is not compared. With
 * nothing on its left it continues the line before. "!": its trace, behind its actions.
 *
 *     tape_play(&tape, "config np=2\n" "start     | record TERM 1\n"
 *                      "hosts a:2 | start a\n");
 *
 * A worker is written as its incarnation, or several (1,3-5), each in a step of its own.
 * Heartbeats, questions to discovery and first failures after progress are shown only after the
 * word "show", the keys of hosts after "keys".
 *
 *     config KEY=VALUE...      start       kill [LOST] [twice]: a new core from the journal,
 *                                          without the last LOST records
 *     hosts LIST               nohosts TEXT            failed HOST TEXT     crowd (strangers do)
 *     hello HOST [agent=N] [term=N] [job=NAME] [kept=SLOT:1.3,...] [serves=state=IP:PORT]
 *           [#I:SLOT[=exitN|=sigN|=silent]]
 *                [proved=HOST] [epoch=N]: whose key it has, and which
 *     join HOST* [slots=N] [number=N] [token=ID] [name=HOST]: its process joins, over the
 *                              connection HOST*
 *     token ID [uses=N] [host=HOST] [for=TIME]         token ID revoke
 *     closed HOST              silent HOST             beat HOST     bye HOST    notice HOST TIME
 *     launched W   launchfail W CODE   ready W [held=1.3/SUM,...] [manifest=N]
 * [entries=NAME:BYTES,] prepared W [CODE]        at W CHECK [next=N]     recovering W [held=...]
 * output W entered W [rebuild=TIME] [state=TIME] [step=TIME]       stalled W TIME [W]
 * [in=OPERATION] left W      finished W [CODE]      any: round=N from=HOST    rekey   rekeyed HOST
 * EPOCH exited W [exitN|sigN|silent] [held=1.3]: the newest commit that it leaves holding HOST
 * [kept=SLOT:1.3,...]   saved HOST FILE [chunks=N]   checkpoint [ASK [wait=1]]   written COMMIT
 * drain HOST[:SLOT] TIME   undrain HOST[:SLOT]     clear HOST[:SLOT]     stop WHO wait TIME (agents
 * send heartbeats, discovery answers)     jump TIME (no agent sends one) state NAME    worker W
 * NAME    view: what status would say    held: the blacklist    full, room: the journal's disk is
 */
#ifndef TESTS_LIB_CORE_TAPE_H
#define TESTS_LIB_CORE_TAPE_H

#include "base/time.h"
#include "driver/core/core.h"
#include "tests/lib/test.h"
#define TAPE_HOSTS   24
#define TAPE_PEERS   256
#define TAPE_WORKERS 65536
#define TAPE_WALL    (INT64_C(1000000) * TIME_S)

struct tape_host {
    char name[64];
    uint32_t peer; /* the connection's number; 0: not connected */
    uint64_t agent;
    bool silent;
};

struct core_tape {
    struct core_config config;
    char checkpoint_dir[64], checkpoint_from[64];
    struct core *core;
    struct trace trace;
    struct action_list list;
    struct buf did;      /* the actions of the last line of the script */
    struct buf bytes;    /* scratch for one action */
    struct arena memory; /* the memory of the current event, freed after its step */
    struct arena kept;   /* what the journal's records point to */
    struct VEC(struct journal_record) journal;
    struct VEC(struct blacklist_record) blacklist;
    struct tape_host hosts[TAPE_HOSTS];
    size_t host_count;
    struct tape_host *by_peer[TAPE_PEERS];
    uint8_t host_of[TAPE_WORKERS]; /* for each worker: index of its host, + 1 */
    char listing[512];
    int64_t now_us, full_us; /* full_us: since when the disk is full, so actions wait; 0: not */
    uint64_t term;
    uint64_t digest;        /* over all actions */
    uint64_t traced, epoch; /* epoch: of the key of a hello's agent; 0: not compared */
    bool show, over, asked, keys;
    const char *proved; /* by a hello; NULL: its own host */
    const char *seen;   /* the address from which a hello comes; NULL: not known */
    int exit_code;
    char wrong[2048];
};

int tape_init(struct core_tape *tape) MUST_CHECK;
void tape_release(struct core_tape *tape);
/* Makes the core from the present config, unless there is one. */
int tape_core(struct core_tape *tape) MUST_CHECK;
int tape_kill(struct core_tape *tape, size_t lost, bool twice) MUST_CHECK;

/* Runs one step and appends its actions to `did`. 0 or HVD_E_NOMEM. An impossible action panics. */
int tape_step(struct core_tape *tape, struct event *event) MUST_CHECK;

/* A message from a worker, or (incarnation 0) an agent. host NULL: the host of the worker. */
int tape_msg(struct core_tape *tape, struct tape_host *host, struct msg *msg) MUST_CHECK;
int tape_hello(struct core_tape *tape, struct tape_host *host, struct msg *msg) MUST_CHECK;
int tape_wait(struct core_tape *tape, int64_t us) MUST_CHECK;
struct tape_host *tape_host(struct core_tape *tape, const char *name);

/* Runs the left side of one script line: 0, HVD_E_NOMEM or HVD_E_INVAL. */
int tape_do(struct core_tape *tape, const char *line) MUST_CHECK;
const char *tape_did(const struct core_tape *tape);

/* NULL: the script was right; else which line was wrong, and why. */
const char *tape_play(struct core_tape *tape, const char *script) MUST_CHECK;

/* Appends the action as a script writes it, without the host of a message. */
int tape_show(struct core_tape *tape, const struct action *action, struct buf *out) MUST_CHECK;
int tape_show_view(const struct core_view *view, struct buf *out) MUST_CHECK;
int tape_show_held(const struct core_view *view, struct buf *out) MUST_CHECK;

/* Beginnings of scripts: two hosts with two workers each. */
#define TAPE_LAUNCHED        \
    "start\nhosts a:2,b:2\n" \
    "hello a\nhello b\n"     \
    "launched 1-4\n"
#define TAPE_RUNNING                TAPE_LAUNCHED "ready 1-4\nentered 1-4\n"

#define CHECK_PLAY(t, tape, script) CHECK_TEXT(t, tape_play(tape, script), NULL)

/* A test case that is one script; `tape` is a static of the test file. */
#define TAPE_CASE(name, ...)               \
    TEST(name)                             \
    {                                      \
        CHECK_OK(t, tape_init(&tape));     \
        CHECK_PLAY(t, &tape, __VA_ARGS__); \
out:                                       \
        tape_release(&tape);               \
    }

#endif
