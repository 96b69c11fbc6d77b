/*
 * test_agent.c: agent/core as a whole: every message of a driver and of a worker in every state of
 * the agent (a scene), mistakes of the program around the core, and invariants that a test breaks.
 */
#include "agent/core/agent_internal.h"
#include "proto/catalog.h"
#include "tests/lib/agent_script.h"
#include "tests/lib/msg_random.h"
#include "tests/lib/test.h"

#define S TIME_S

static struct script s;

/* ---- each message in each state ---- */

enum scene { NEW, DIALLING, GREETING, SERVING, ALONE, ENDING, OVER, SCENES };

#define SPAWNING_ONE  1 /* incarnations, and their slots */
#define RUNNING_ONE   2
#define JOINED_ONE    3
#define ENDED_ONE     4
#define FAILED_ONE    5
#define FORGOTTEN_ONE 6
#define UNKNOWN_ONE   7
#define ONES          8 /* number of incarnations; 0: none */
#define CONNECTION    30
#define STRANGER      31

static int tell(struct msg msg)
{
    script_driver(&s, &msg);
    return s.list.failed ? HVD_E_NOMEM : 0;
}

/* Makes one worker in each state of a process. */
static int populate(void)
{
    static const uint64_t running[] = { RUNNING_ONE, ENDED_ONE, FORGOTTEN_ONE };
    int rc = script_join(&s, JOINED_ONE, JOINED_ONE, CONNECTION);

    for (size_t i = 0; !rc && i < ARRAY_SIZE(running); i++)
        rc = script_run(&s, running[i], (uint32_t)running[i]);
    if (!rc)
        rc = tell(script_launch(SPAWNING_ONE, SPAWNING_ONE));
    if (!rc)
        rc = tell(script_launch(FAILED_ONE, FAILED_ONE));
    if (rc)
        return rc;
    script_spawn_failed(&s, FAILED_ONE, HVD_E_IO, "test");
    script_ended(&s, ENDED_ONE, ENDED_EXIT, 1, WITNESS_PIDFD);
    script_ended(&s, FORGOTTEN_ONE, ENDED_EXIT, 1, WITNESS_PIDFD);
    return tell((struct msg){ .type = MSG_FORGET, .term = 1, .incarnation = FORGOTTEN_ONE });
}

static int set(enum scene scene)
{
    struct msg stop = {
        .type = MSG_STOP, .term = 1, .u.stop = {5 * S, "test"}
    };
    int rc = script_init(&s);

    if (rc || scene == NEW)
        return rc;
    if (scene <= GREETING) {
        script_start(&s);
        if (scene == GREETING)
            script_up(&s);
        return 0;
    }
    rc = script_serve(&s);
    if (!rc && scene != OVER)
        rc = populate();
    if (!rc && scene == ALONE)
        rc = script_lose(&s);
    if (!rc && scene >= ENDING)
        rc = tell(stop);
    return rc;
}

static bool does(enum agent_action_kind kind)
{
    for (size_t i = 0; i < s.list.count; i++) {
        if (s.list.items[i].kind == kind)
            return true;
    }
    return false;
}

static bool is_connected(enum scene scene)
{
    return scene == GREETING || scene == SERVING || scene == ENDING;
}

/* Checks the rules for all answers to a driver's message. Returns the broken rule, or NULL. */
static const char *wrong_with_driver(enum scene scene, const struct msg *msg)
{
    enum msg_when when = scene == GREETING ? WHEN_GREETING : WHEN_OPEN;
    bool stale = msg->term == 1 && scene != GREETING; /* a term of 2 was adopted */
    bool ends = msg->type == MSG_BYE || msg->type == MSG_REFUSED;

    if (!is_connected(scene))
        return s.list.count == 0 ? NULL : "acts on a message without a connection";
    if (msg_allowed(msg->type, LINK_DRIVER_TO_AGENT, when, NULL) || ends || stale)
        return does(AGENT_DO_HANG_UP) ? NULL : "does not hang up";
    return does(AGENT_DO_HANG_UP) && !does(AGENT_DO_EXIT) ? "hangs up" : NULL;
}

/* Twice: the second time nothing is started or ended. */
static const char *feed_driver(enum scene scene, const struct msg *msg)
{
    const char *wrong;

    script_driver(&s, msg);
    wrong = wrong_with_driver(scene, msg);
    if (wrong || !is_connected(scene) || does(AGENT_DO_HANG_UP))
        return wrong;
    script_driver(&s, msg);
    if (does(AGENT_DO_SPAWN) || does(AGENT_DO_TERM) || does(AGENT_DO_KILL))
        return "does it twice";
    return NULL;
}

static int random_msg(const struct msg_kind *kind, uint64_t incarnation, struct rng *rng,
                      struct arena *arena, struct msg *ret_msg)
{
    int rc = msg_random(kind->type, rng, 3, arena, ret_msg);

    ret_msg->incarnation = incarnation;
    if (kind->type == MSG_LAUNCH)
        ret_msg->u.launch.slot = (uint32_t)incarnation;
    if (kind->type == MSG_HELLO_WORKER)
        ret_msg->u.hello_worker.pid = 100 + incarnation;
    return rc;
}

/* Sends one message in one scene three times: without a term, with the term of a new driver, and
 * with an old term. */
static int try_driver(enum scene scene, const struct msg_kind *kind, uint64_t one, struct rng *rng,
                      struct arena *arena, const char **ret_wrong)
{
    static const uint64_t terms[] = { 0, 2, 1 };
    struct msg msg;
    int rc = set(scene);

    if (!rc)
        rc = random_msg(kind, one % ONES, rng, arena, &msg);
    if (rc)
        return rc;
    msg.term = terms[one / ONES];
    if (msg.term == 1 && is_connected(scene) && scene != GREETING)
        rc = tell((struct msg){ .type = MSG_BEAT, .term = 2 });
    *ret_wrong = feed_driver(scene, &msg);
    return rc;
}

typedef int try_fn(enum scene scene, const struct msg_kind *kind, uint64_t one, struct rng *rng,
                   struct arena *arena, const char **ret_wrong);

/* Sends every message, in `variants` variants, in every state of the agent. */
static void check_each_message(struct test *t, try_fn *try_one, uint64_t variants)
{
    const struct msg_kind *kind;
    const char *wrong = NULL;
    struct arena arena;
    struct rng rng;

    arena_init(&arena, 1u << 20);
    rng_seed(&rng, 3);
    for (int scene = NEW; scene < SCENES; scene++) {
        for (size_t i = 0; (kind = msg_kind_at(i)); i++) {
            for (uint64_t one = 0; one < variants; one++) {
                CHECK_OK(t, try_one((enum scene)scene, kind, one, &rng, &arena, &wrong));
                if (wrong) {
                    test_fail(t, __FILE__, __LINE__,
                              "%s, variant %d, in scene %d: the agent %s:\n%s", kind->name,
                              (int)one, scene, wrong, s.lines);
                    goto out;
                }
                script_release(&s);
                arena_release(&arena);
            }
        }
    }
out:
    script_release(&s);
    arena_release(&arena);
}

TEST_FLAGS(each_message_of_a_driver_in_each_state, TEST_NO_TORTURE)
{
    check_each_message(t, try_driver, 3 * ONES);
}

/* Returns the broken rule in the answer to a worker's message, or NULL. */
static const char *wrong_with_worker(enum scene scene, uint32_t connection, const struct msg *msg)
{
    bool joined =
        connection == CONNECTION && (scene == SERVING || scene == ALONE || scene == ENDING);
    bool foreign = msg->incarnation != JOINED_ONE && msg->type != MSG_BEAT;
    bool said;

    if (scene == NEW || scene == OVER)
        return s.list.count == 0 ? NULL : "acts although it is not there";
    if (!joined) { /* the other workers that could say hello are spawning or running */
        said = scene >= SERVING && msg->type == MSG_HELLO_WORKER &&
               (msg->incarnation == SPAWNING_ONE || msg->incarnation == RUNNING_ONE);
        return said != does(AGENT_DO_DROP) ? NULL : "takes a stranger, or drops a friend";
    }
    said = !foreign && msg->type != MSG_BYE &&
           !msg_allowed(msg->type, LINK_WORKER_TO_AGENT, WHEN_OPEN, NULL);
    if (said == does(AGENT_DO_DROP))
        return "drops what is right, or takes what is wrong";
    said = said && msg->type != MSG_BEAT && scene != ALONE;
    return said == does(AGENT_DO_SEND_DRIVER) ? NULL : "passes on what it should not, or does not";
}

static int try_worker(enum scene scene, const struct msg_kind *kind, uint64_t one, struct rng *rng,
                      struct arena *arena, const char **ret_wrong)
{
    uint32_t connection = one < ONES ? CONNECTION : STRANGER;
    struct msg msg;
    int rc = set(scene);

    if (!rc)
        rc = random_msg(kind, one % ONES, rng, arena, &msg);
    if (rc)
        return rc;
    script_worker(&s, connection, &msg);
    *ret_wrong = wrong_with_worker(scene, connection, &msg);
    if (!*ret_wrong)
        script_worker(&s, connection, &msg);
    return 0;
}

TEST_FLAGS(each_message_of_a_worker_in_each_state, TEST_NO_TORTURE)
{
    check_each_message(t, try_worker, 2 * ONES);
}

TEST(nothing_happens_before_the_start_or_after_the_end)
{
    CHECK_OK(t, set(NEW));
    CHECK_INT(t, agent_deadline(s.agent), ==, TIME_NEVER);
    CHECK_TEXT(t, script_timer(&s), "");
    CHECK_TEXT(t, script_notice(&s, S, "early"), "");
    script_release(&s);
    CHECK_OK(t, set(OVER));
    CHECK_INT(t, agent_deadline(s.agent), ==, TIME_NEVER);
    CHECK_TEXT(t, script_start(&s), "");
    CHECK_TEXT(t, script_spawned(&s, 1, 1), "");
out:
    script_release(&s);
    agent_free(NULL);
    agent_action_list_release(NULL);
}

static void step_with(struct agent_event event)
{
    s.now_us = event.now_us;
    script_step(&s, &event);
}

TEST_FLAGS(our_own_mistakes_are_not_survived, TEST_NO_TORTURE)
{
    CHECK_OK(t, set(SERVING));
    CHECK_PANICS(t, "not an event", step_with((struct agent_event){ .kind = AGENT_EVENT_COUNT }));
    CHECK_PANICS(t, "now_us", step_with((struct agent_event){ .kind = AGENT_TIMER, .now_us = -1 }));
    s.list.failed = true;
    CHECK_PANICS(t, "!list->failed",
                 if (agent_step(s.agent, &(struct agent_event){ .kind = AGENT_TIMER }, &s.list))
                     s.now_us++);
    s.list.failed = false;
    CHECK_PANICS(t, "ENDED_NOT", script_ended(&s, RUNNING_ONE, ENDED_NOT, 0, WITNESS_PIDFD));
    CHECK_PANICS(t, "WITNESS_COUNT", script_ended(&s, RUNNING_ONE, ENDED_EXIT, 0, WITNESS_COUNT));
    CHECK_PANICS(t, "STREAM_COUNT", script_output(&s, RUNNING_ONE, STREAM_COUNT, "", 0));
out:
    script_release(&s);
}

static void create(const struct agent_config *config)
{
    agent_free(agent_create(config, NULL));
}

TEST_FLAGS(a_config_that_cannot_be_is_not_taken, TEST_NO_TORTURE)
{
    struct agent_config good;
    struct agent_config bad;

    CHECK_OK(t, set(NEW));
    good = s.agent->config;
    bad = good;
    bad.job = NULL;
    CHECK_PANICS(t, "config->job", create(&bad));
    bad = good;
    bad.host = NULL;
    CHECK_PANICS(t, "config->host", create(&bad));
    bad = good;
    bad.beat_us = 0;
    CHECK_PANICS(t, "config->beat_us", create(&bad));
    bad = good;
    bad.lease_us = 0;
    CHECK_PANICS(t, "config->lease_us", create(&bad));
    bad = good;
    bad.redial_us = 0;
    CHECK_PANICS(t, "config->redial_us", create(&bad));
    bad = good;
    bad.redial_first_us = 0;
    CHECK_PANICS(t, "config->redial_first_us", create(&bad));
    bad = good;
    bad.driver_grace_us = -1;
    CHECK_PANICS(t, "config->driver_grace_us", create(&bad));
    bad = good;
    bad.kill_grace_us = -1;
    CHECK_PANICS(t, "config->kill_grace_us", create(&bad));
out:
    script_release(&s);
}

/* Each invariant is broken by hand, and the next step of the core panics. */
TEST_FLAGS(broken_invariants_are_found, TEST_NO_TORTURE)
{
    struct agent_worker *worker;
    struct agent *agent;

    CHECK_OK(t, set(SERVING));
    agent = s.agent;
    CHECK_PANICS(t, "grace_at_us", agent->life.state = LIFE_ALONE; agent->grace_at_us = 0;
                 sm_move(&agent->life, LIFE_SERVING, 0, ""));
    CHECK_PANICS(t, "agent_link_is_open", agent->life.state = LIFE_ALONE;
                 agent->driver.state = DRIVER_DOWN; sm_move(&agent->life, LIFE_SERVING, 0, ""));
    CHECK_PANICS(t, "!agent_link_is_open", sm_move(&agent->life, LIFE_ALONE, 0, ""));
    CHECK_PANICS(t, "agent->alive == 0", sm_move(&agent->life, LIFE_ENDING, 0, "");
                 sm_move(&agent->life, LIFE_OVER, 0, ""));
    worker = agent_roster_find(agent, RUNNING_ONE);
    CHECK_PANICS(t, "ENDED", sm_move(&worker->process, ENDED, 0, ""));
    worker = agent_roster_find(agent, SPAWNING_ONE);
    CHECK_PANICS(t, "worker->ending.code", sm_move(&worker->process, FAILED, 0, ""));
    CHECK_PANICS(t, "incarnation", worker->incarnation = 0;
                 sm_move(&worker->process, RUNNING, 0, ""));
    CHECK_PANICS(t, "slot", worker->slot = 9999; sm_move(&worker->process, RUNNING, 0, ""));
    worker = agent_roster_find(agent, ENDED_ONE);
    CHECK_PANICS(t, "connected", worker->contact.connected = true;
                 sm_move(&worker->process, FORGOTTEN, 0, ""));
    CHECK_PANICS(t, "FORGOTTEN", agent_roster_remove(agent, worker));
    CHECK_PANICS(t, "connected", agent_roster_disconnect(agent, worker));
    worker = agent_roster_find(agent, JOINED_ONE);
    CHECK_PANICS(t, "!worker->contact.connected", agent_roster_connect(agent, worker, STRANGER));
    CHECK_PANICS(t, "slot->highest", agent_roster_add(agent, &(struct msg){ .incarnation = 1 });
                 agent_roster_add(agent, &(struct msg){ .incarnation = 1 }));
    CHECK_PANICS(t, "list", agent_do(agent, AGENT_DO_DIAL));
out:
    script_release(&s);
}
