/*
 * agent_script.h: an agent's core in a test. The test gives it events one by one, and gets its
 * actions as lines of text.
 *
 *     CHECK_TEXT(t, script_driver(&s, &kill), "term 7\n");
 *
 * Every call that returns a text returns the actions of its step, one per line: "" when there was
 * none, the error code's name when the step failed. Times are in seconds since the script began.
 */
#ifndef TESTS_LIB_AGENT_SCRIPT_H
#define TESTS_LIB_AGENT_SCRIPT_H

#include "agent/core/agent.h"
#include "base/time.h"

#define SCRIPT_BEAT_S       1
#define SCRIPT_LEASE_S      4
#define SCRIPT_GRACE_S      60
#define SCRIPT_REDIAL_S     2
#define SCRIPT_KILL_GRACE_S 5

struct script {
    struct agent *agent;
    struct trace trace;
    struct agent_action_list list;
    int64_t now_us;
    char lines[64 * 1024]; /* large enough for the actions of a few hundred workers */
    size_t length;
};

/* The wait before the first attempt to reach a driver again, for the agents that are made next. */
extern int64_t script_redial_first_us;

int script_init(struct script *script) MUST_CHECK;
void script_release(struct script *script);

/* Sets the time of the events that follow. */
void script_at(struct script *script, double seconds);

const char *script_step(struct script *script, const struct agent_event *event);
const char *script_start(struct script *script);
/* at the agent's deadline; now, when the deadline is past */
const char *script_timer(struct script *script);
const char *script_up(struct script *script);
const char *script_down(struct script *script);
const char *script_driver(struct script *script, const struct msg *msg);
const char *script_worker(struct script *script, uint32_t worker, const struct msg *msg);
const char *script_gone(struct script *script, uint32_t worker);
const char *script_spawned(struct script *script, uint64_t incarnation, uint64_t pid);
const char *script_spawn_failed(struct script *script, uint64_t incarnation, int code,
                                const char *text);
const char *script_ended(struct script *script, uint64_t incarnation, uint32_t ended, int32_t value,
                         uint32_t witness);
const char *script_output(struct script *script, uint64_t incarnation, uint32_t stream,
                          const char *text, size_t length);
const char *script_notice(struct script *script, int64_t left_us, const char *text);
const char *script_moved(struct script *script, const char *text);
const char *script_stop(struct script *script, const char *text);

/* Messages of term 1 that most scripts need. */
struct msg script_welcome(uint64_t term);
struct msg script_launch(uint64_t incarnation, uint32_t slot);
struct msg script_hello(uint64_t incarnation, uint64_t pid);

/* Each brings the agent into a known state; the lines of the steps on the way are lost. 0, or the
 * code of the step that failed. */
int script_serve(struct script *script) MUST_CHECK; /* start, up, welcome of term 1 */
int script_run(struct script *script, uint64_t incarnation, uint32_t slot) MUST_CHECK;
int script_join(struct script *script, uint64_t incarnation, uint32_t slot,
                uint32_t worker) MUST_CHECK;       /* run, with pid 100 + incarnation, and hello */
int script_lose(struct script *script) MUST_CHECK; /* the driver's connection breaks */
/* dials and connects again, then returns the lines of the WELCOME's step */
const char *script_return(struct script *script, uint64_t term);

#endif
