/*
 * Something dies at a known moment of a change: first a change is caused, then the driver's line
 * that says that the moment has come is waited for, then somebody is killed.
 */
#include "base/mem.h"
#include "base/time.h"
#include "os/clock.h"
#include "tests/chaos/chronicle.h"
#include "tests/chaos/strike.h"

#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#define COMES_US  (8 * TIME_S) /* a moment that has not come by then does not come */
#define AFTER_US  (20 * TIME_MS)
#define LASTS_US  (2 * TIME_S)
#define ALL_TRAIN " train ("

enum cause {
    CAUSE_DEATH, /* a worker is killed */
    CAUSE_LEAVE, /* a host leaves the list */
    CAUSE_JOIN   /* it comes back, after all the others have gone on without it */
};

enum whom {
    WHOM_ANY,   /* a worker, an agent, the driver */
    WHOM_NAMED, /* the worker that the line names */
    WHOM_LEAVER /* of the host that has left the list */
};

struct phase {
    const char *line; /* has this in it */
    enum cause cause;
    enum whom whom;
    int64_t after_us; /* and up to so long after it */
};

/* ---- who dies ----------------------------------------------------------------------------------
 */

/* "TIME 127.0.0.1:0#12 is launched" */
static const struct sight_process *named(const struct sight *now, const char *line)
{
    const char *mark = strchr(line, '#');
    uint64_t incarnation = mark ? strtoull(mark + 1, NULL, 10) : 0;

    for (uint32_t i = 0; i < now->count; i++)
        if (now->processes[i].kind == SIGHT_WORKER && incarnation &&
            now->processes[i].incarnation == incarnation)
            return &now->processes[i];
    return NULL;
}

static const struct sight_process *of_leaver(struct chaos *chaos, const struct sight *now, int host)
{
    if (host < 0)
        return NULL;
    if (rng_below(&chaos->rng, 3) == 0)
        return sight_pick(now, SIGHT_AGENT, host, &chaos->rng);
    return sight_pick(now, SIGHT_WORKER, host, &chaos->rng);
}

/* A fault takes the commits of one host at most, as another may follow at once: where one has left
 * the list, it is only that one's agent that may die. */
static const struct sight_process *anybody(struct chaos *chaos, const struct sight *now, int left)
{
    const struct sight_process *process = NULL;

    switch (rng_below(&chaos->rng, 6)) {
    case 0:
        process = left < 0 ? strike_pick(chaos, now, SIGHT_AGENT)
                           : sight_pick(now, SIGHT_AGENT, left, &chaos->rng);
        break;
    case 1: process = sight_pick(now, SIGHT_DRIVER, -1, &chaos->rng); break;
    default: break;
    }
    return process ? process : sight_pick(now, SIGHT_WORKER, -1, &chaos->rng);
}

static void kill_in(struct chaos *chaos, const struct phase *phase, const char *line, int left)
{
    struct sight *now = mem_alloc(sizeof(*now));
    const struct sight_process *victim = NULL;

    if (now)
        sight_take(now, &chaos->arena);
    if (now && phase->whom == WHOM_NAMED)
        victim = named(now, line);
    else if (now && phase->whom == WHOM_LEAVER)
        victim = of_leaver(chaos, now, left);
    if (now && !victim)
        victim = anybody(chaos, now, left);
    if (!strike_signal(chaos, victim, SIGKILL))
        fault_say(chaos, "nobody was left to be killed");
    mem_free(now);
}

/* ---- the change --------------------------------------------------------------------------------
 */

static int join_after_leaving(struct chaos *chaos, struct chronicle *chronicle, struct hvd_err *err)
{
    int rc = strike_unlist(chaos, err);

    if (rc)
        return rc;
    if (!chronicle_await(chronicle, ALL_TRAIN, clock_now_us() + COMES_US))
        fault_say(chaos, "nobody trains without it"); /* which is for the judge to judge */
    fault_say(chaos, "and comes back");
    return strike_list(chaos, err);
}

static int begin(struct chaos *chaos, enum cause cause, struct chronicle *chronicle,
                 struct hvd_err *err)
{
    switch (cause) {
    case CAUSE_DEATH:
        return strike_signal(chaos, sight_pick(&chaos->sight, SIGHT_WORKER, -1, &chaos->rng),
                             SIGKILL)
                   ? 0
                   : HVD_DONE;
    case CAUSE_LEAVE: return strike_unlist(chaos, err);
    case CAUSE_JOIN: return join_after_leaving(chaos, chronicle, err);
    }
    return HVD_E_INVAL;
}

static int strike(struct chaos *chaos, const struct phase *phase, struct hvd_err *err)
{
    char path[ARENA_PATH];
    const int64_t began_us = clock_now_us();
    struct chronicle chronicle;
    int rc = chronicle_open(&chronicle, arena_path(&chaos->arena, "job/events.log", path), err);

    if (rc)
        return rc;
    rc = begin(chaos, phase->cause, &chronicle, err);
    if (!rc && chronicle_await(&chronicle, phase->line, clock_now_us() + COMES_US)) {
        strike_wait(strike_time(chaos, 0, phase->after_us + 1));
        kill_in(chaos, phase, chronicle.line,
                phase->cause == CAUSE_DEATH ? -1 : chaos->hosts[0]); /* stays when it is back */
    } else if (!rc) {
        fault_say(chaos, "no '%s' came", phase->line);
    }
    chronicle_close(&chronicle);
    chaos->lasts_us = clock_now_us() - began_us + strike_time(chaos, 0, LASTS_US);
    return rc;
}

static int relent(struct chaos *chaos, struct hvd_err *err)
{
    int rc = strike_list(chaos, err);
    int other = strike_drive(chaos, err);

    return rc ? rc : other;
}

/* ---- the moments -------------------------------------------------------------------------------
 */

#define LAUNCHED  " is launched"
#define READY     " is ready"
#define PREPARED  " is prepared beside "
#define SWITCHED  " (switch): size "
#define REVOKED   " is revoked: "
#define RECOVERED " (recovery): size "

/* A worker boots that takes the place of a dead one. */
static int boot(struct chaos *chaos, struct hvd_err *err)
{
    static const struct phase phase = { LAUNCHED, CAUSE_DEATH, WHOM_NAMED, AFTER_US };

    return strike(chaos, &phase, err);
}

/* It is ready and waits for the round that takes it in. */
static int ready(struct chaos *chaos, struct hvd_err *err)
{
    static const struct phase phase = { READY, CAUSE_DEATH, WHOM_NAMED, AFTER_US };

    return strike(chaos, &phase, err);
}

/* A round is prepared beside the one that trains: for leavers, */
static int prepare(struct chaos *chaos, struct hvd_err *err)
{
    static const struct phase phase = { PREPARED, CAUSE_LEAVE, WHOM_ANY, 5 * TIME_MS };

    return strike(chaos, &phase, err);
}

/* and for joiners. */
static int join(struct chaos *chaos, struct hvd_err *err)
{
    static const struct phase phase = { PREPARED, CAUSE_JOIN, WHOM_ANY, 5 * TIME_MS };

    return strike(chaos, &phase, err);
}

/* Nobody is in the new round yet, and all have been told. */
static int switch_over(struct chaos *chaos, struct hvd_err *err)
{
    static const struct phase phase = { SWITCHED, CAUSE_JOIN, WHOM_ANY, 2 * TIME_MS };

    return strike(chaos, &phase, err);
}

static int leave(struct chaos *chaos, struct hvd_err *err)
{
    static const struct phase phase = { SWITCHED, CAUSE_LEAVE, WHOM_LEAVER, AFTER_US };

    return strike(chaos, &phase, err);
}

/* Survivors stop, and say what they hold. */
static int recover(struct chaos *chaos, struct hvd_err *err)
{
    static const struct phase phase = { REVOKED, CAUSE_DEATH, WHOM_ANY, 3 * TIME_MS };

    return strike(chaos, &phase, err);
}

/* The state goes to those who have not the newest. */
static int sync_state(struct chaos *chaos, struct hvd_err *err)
{
    static const struct phase phase = { RECOVERED, CAUSE_DEATH, WHOM_ANY, 10 * TIME_MS };

    return strike(chaos, &phase, err);
}

/* They connect and make their first step. */
static int enter(struct chaos *chaos, struct hvd_err *err)
{
    static const struct phase phase = { RECOVERED, CAUSE_DEATH, WHOM_ANY, 60 * TIME_MS };

    return strike(chaos, &phase, err);
}

/* clang-format off */
#define PHASE(title, text, function) \
    { .name = (title), .what = (text), .weight = 2, .missing = strike_needs_two_hosts, \
      .strike = (function), .relent = relent }
/* clang-format on */

const struct fault phase_faults[] = {
    PHASE("phase-boot", "a worker dies while it boots for one that has died", boot),
    PHASE("phase-ready", "a worker dies while it waits to be taken in", ready),
    PHASE("phase-prepare", "somebody dies while a round without a host is prepared", prepare),
    PHASE("phase-join", "somebody dies while a round with another host is prepared", join),
    PHASE("phase-switch", "somebody dies while all go over to a new round", switch_over),
    PHASE("phase-leave", "a leaver dies while it leaves", leave),
    PHASE("phase-recover", "somebody dies while survivors stop", recover),
    PHASE("phase-sync", "somebody dies while survivors take the state over", sync_state),
    PHASE("phase-enter", "somebody dies while survivors begin to train", enter),
};
const size_t phase_fault_count = ARRAY_SIZE(phase_faults);
