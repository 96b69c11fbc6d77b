/*
 * faults_discovery.c: faults of the list of hosts, and of the operator. The promises are in
 * docs/operations.md and docs/hvd-hosts.md: a discovery run that fails, in any way, changes
 * nothing; a worker that is no longer listed, or is drained, leaves with everything committed.
 */
#include "base/time.h"
#include "os/clock.h"
#include "tests/chaos/strike.h"

#include <inttypes.h>
#include <stdio.h>

#define FLAPS      5
#define LOOK_US    (20 * TIME_MS)
#define FLAP_US    (400 * TIME_MS)
#define SLOT_BYTES (ARENA_NAME + 16)
#define READD_LOW  (100 * TIME_MS) /* about the time between two discovery runs */
#define READD_HIGH (300 * TIME_MS)
#define AWAY_LOW   TIME_S
#define AWAY_HIGH  (2 * TIME_S)
#define MOOD_LOW   (300 * TIME_MS)
#define MOOD_HIGH  (3 * TIME_S) /* longer than the time limit of a discovery run */

static const char *needs_two_slots(const struct chaos *chaos)
{
    return chaos->arena.plan->slots < 2 ? "it needs two slots on each host: --slots 2" : NULL;
}

/* ---- faults of the script ---- */

/* A failure that repeats is logged once a minute. */
#define SCRIPT_FAILS "discovery has failed, so the list of hosts does not change: {thing}"

static int strike_mood(struct chaos *chaos, const char *mood, struct hvd_err *err)
{
    char path[ARENA_PATH];
    int rc = arena_mood(&chaos->arena, mood, err);

    chaos->lasts_us = strike_time(chaos, MOOD_LOW, MOOD_HIGH);
    chaos->looks = arena_looks(&chaos->arena);
    fault_blame(chaos, BLAME_THING, arena_path(&chaos->arena, "discover", path));
    return rc;
}

/* Waits until the script has run in its mood: on a busy machine the time of the fault may pass
 * without a discovery. */
static int script_is_well(struct chaos *chaos, struct hvd_err *err)
{
    int64_t deadline_us = clock_now_us() + chaos->arena.plan->patience_us;

    while (err && arena_looks(&chaos->arena) <= chaos->looks && clock_now_us() < deadline_us &&
           !*chaos->arena.broken_off)
        strike_wait(LOOK_US);
    return arena_mood(&chaos->arena, NULL, err);
}

FAULT(script_fails, "script-fails", .names = SCRIPT_FAILS, .names_each_minute = true,
      .what = "the discovery script fails for a while", .cost = FAULT_COSTS_NOTHING, .weight = 2,
      .relent = script_is_well)
{
    return strike_mood(chaos, "fail", err);
}

FAULT(script_hangs, "script-hangs", .names = SCRIPT_FAILS, .names_each_minute = true,
      .what = "the discovery script does not end", .cost = FAULT_COSTS_NOTHING, .weight = 2,
      .relent = script_is_well)
{
    return strike_mood(chaos, "hang", err);
}

FAULT(script_rubbish, "script-rubbish", .names = SCRIPT_FAILS, .names_each_minute = true,
      .what = "the discovery script prints what is no list", .cost = FAULT_COSTS_NOTHING,
      .weight = 2, .relent = script_is_well)
{
    return strike_mood(chaos, "rubbish", err);
}

FAULT(script_empty, "script-empty", .names = SCRIPT_FAILS, .names_each_minute = true,
      .what = "the discovery script prints nothing at all", .cost = FAULT_COSTS_NOTHING,
      .weight = 2, .relent = script_is_well)
{
    return strike_mood(chaos, "empty", err);
}

/* The script fails and a worker dies: the worker is replaced on the hosts that were listed last. */
FAULT(script_fails_and_kill, "script-fails-kill",
      .names = SCRIPT_FAILS "; {worker}: killed by signal 9", .names_each_minute = true,
      .what = "any of these, and a worker is killed meanwhile", .weight = 2,
      .relent = script_is_well)
{
    static const char *const moods[] = { "fail", "hang", "rubbish", "empty" };
    const char *mood = moods[rng_below(&chaos->rng, ARRAY_SIZE(moods))];
    int rc = strike_mood(chaos, mood, err);

    fault_say(chaos, "%s", mood);
    if (!rc)
        rc = strike_kill(chaos, PROC_WORKER, -1);
    return strike_whole(chaos, rc, script_is_well, err);
}

/* ---- faults of the list ---- */

/* Removes the host from the list, and remembers it for the relent. */
static int unlist(struct chaos *chaos, int host, struct hvd_err *err)
{
    if (chaos->cut_count == FAULT_VICTIMS)
        return HVD_DONE;
    chaos->hosts[chaos->cut_count++] = host;
    chaos->arena.hosts[host].listed = false;
    fault_say(chaos, "%s", chaos->arena.hosts[host].name);
    fault_allow(chaos, BLAME_HOST, chaos->arena.hosts[host].name);
    return arena_list(&chaos->arena, err);
}

static int list_again(struct chaos *chaos, struct hvd_err *err)
{
    for (uint32_t i = 0; i < chaos->cut_count; i++) {
        struct arena_host *host = &chaos->arena.hosts[chaos->hosts[i]];

        host->listed = true;
        host->slots = (uint32_t)chaos->arena.plan->slots;
    }
    chaos->cut_count = 0;
    return arena_list(&chaos->arena, err);
}

FAULT(forget, "forget-and-readd", .quiet = "the operator's list of hosts says so",
      .what = "a host is not listed for a look or two, and is again in the same second",
      .weight = 3, .missing = strike_needs_two_hosts, .relent = list_again)
{
    int host = strike_host(chaos, -1);

    chaos->lasts_us = strike_time(chaos, READD_LOW, READD_HIGH);
    return host < 0 ? HVD_DONE : unlist(chaos, host, err);
}

FAULT(host_leaves, "host-leaves-and-comes", .quiet = "the operator's list of hosts says so",
      .what = "a host is not listed for a second or two", .weight = 3,
      .missing = strike_needs_two_hosts, .relent = list_again)
{
    int host = strike_host(chaos, -1);

    chaos->lasts_us = strike_time(chaos, AWAY_LOW, AWAY_HIGH);
    return host < 0 ? HVD_DONE : unlist(chaos, host, err);
}

/* One host leaves, and a host that stays loses a worker meanwhile. */
FAULT(host_leaves_and_kill, "host-leaves-kill", .names = "{worker}: killed by signal 9",
      .what = "a host is no longer listed and a worker of another is killed at once", .weight = 2,
      .missing = strike_needs_two_hosts, .relent = list_again)
{
    int host = strike_host(chaos, -1);
    int other = strike_host(chaos, host);
    int rc;

    chaos->lasts_us = strike_time(chaos, READD_LOW, AWAY_HIGH);
    if (host < 0 || other < 0)
        return HVD_DONE;
    rc = unlist(chaos, host, err);
    if (!rc)
        rc = strike_kill(chaos, PROC_WORKER, other);
    return strike_whole(chaos, rc, list_again, err);
}

/* Waits until all listed slots have done a step, or the time is over. When most hosts have left,
 * one host may be the only one with the training state; the next fault must not hit it before
 * others have the state too. */
static int await_all(struct chaos *chaos, struct hvd_err *err)
{
    int64_t deadline_us = clock_now_us() + chaos->arena.plan->patience_us;
    uint32_t all = arena_whole(&chaos->arena);
    struct steps *steps = &chaos->steps;
    int rc = steps_read(steps, err);

    while (!rc && (!steps->count || steps->list[steps->count - 1].size != all))
        rc = steps_await(steps, steps->count, deadline_us, err);
    return rc == HVD_E_TIMEOUT ? 0 : rc;
}

static int swap_back(struct chaos *chaos, struct hvd_err *err)
{
    int rc = await_all(chaos, err);
    int listed = list_again(chaos, err);

    return rc ? rc : listed;
}

/* The host that was away joins in the same discovery run in which another host leaves. */
FAULT(swap, "hosts-swap", .quiet = "the operator's list of hosts says so",
      .what = "a host comes in the same look in which another goes", .weight = 2,
      .missing = strike_needs_two_hosts, .relent = swap_back)
{
    int first = strike_host(chaos, -1);
    int second = strike_host(chaos, first);
    int rc;

    chaos->lasts_us = strike_time(chaos, AWAY_LOW, AWAY_HIGH);
    if (first < 0 || second < 0)
        return HVD_DONE;
    rc = unlist(chaos, first, err);
    if (!rc)
        rc = await_all(chaos, err);
    if (rc)
        return rc;
    chaos->arena.hosts[first].listed = true;
    return unlist(chaos, second, err);
}

/* Changes the slots of a random listed host by `change`. HVD_DONE: no host can have so many
 * slots. */
static int resize(struct chaos *chaos, int change, struct hvd_err *err)
{
    int host = strike_host(chaos, -1);

    chaos->lasts_us = strike_time(chaos, READD_LOW, AWAY_HIGH);
    if (host < 0 || (int64_t)chaos->arena.hosts[host].slots + change < 1)
        return HVD_DONE;
    chaos->hosts[chaos->cut_count++] = host;
    chaos->arena.hosts[host].slots += (uint32_t)change;
    fault_say(chaos, "%s:%" PRIu32, chaos->arena.hosts[host].name, chaos->arena.hosts[host].slots);
    fault_allow(chaos, BLAME_HOST, chaos->arena.hosts[host].name);
    return arena_list(&chaos->arena, err);
}

FAULT(slots_shrink, "slots-shrink", .quiet = "the operator's list of hosts says so",
      .what = "a host offers one slot less for a while", .weight = 2, .missing = needs_two_slots,
      .relent = list_again)
{
    return resize(chaos, -1, err);
}

FAULT(slots_grow, "slots-grow", .quiet = "the operator's list of hosts says so",
      .what = "a host offers one slot more for a while", .weight = 2, .relent = list_again)
{
    return resize(chaos, 1, err);
}

/* Lists each host with this many slots. If fewer than --min-np workers would be left, workers stay.
 */
static int offer(struct chaos *chaos, uint32_t slots, struct hvd_err *err)
{
    for (uint32_t i = 0; i < chaos->arena.host_count; i++) {
        chaos->arena.hosts[i].slots = slots;
        fault_allow(chaos, BLAME_HOST, chaos->arena.hosts[i].name);
    }
    return arena_list(&chaos->arena, err);
}

static int all_offered(struct chaos *chaos, struct hvd_err *err)
{
    int rc = offer(chaos, (uint32_t)chaos->arena.plan->slots, err);

    return rc ? rc : await_all(chaos, err);
}

FAULT(nothing_offered, "nothing-offered", .quiet = "the operator's list of hosts says so",
      .what = "all hosts are listed with no slot for a while", .weight = 1, .relent = all_offered)
{
    chaos->lasts_us = strike_time(chaos, READD_LOW, AWAY_HIGH);
    return offer(chaos, 0, err);
}

/* The host leaves and joins again and again, for random parts of FLAP_US. */
FAULT(flapping, "flapping", .quiet = "the operator's list of hosts says so",
      .what = "a host is listed and not listed, five times in two seconds", .weight = 2,
      .missing = strike_needs_two_hosts, .relent = list_again)
{
    int host = strike_host(chaos, -1);
    int rc = host < 0 ? HVD_DONE : unlist(chaos, host, err);

    for (int i = 1; !rc && i < 2 * FLAPS; i++) {
        int64_t until_us = clock_now_us() + strike_time(chaos, 0, FLAP_US);

        while ((rc = steps_await(&chaos->steps, chaos->steps.count, until_us, err)) == 0)
            continue;
        if (rc != HVD_E_TIMEOUT)
            return rc;
        chaos->arena.hosts[host].listed = i % 2;
        rc = arena_list(&chaos->arena, err);
    }
    return rc;
}

/* ---- faults of the operator ---- */

static int drain(struct chaos *chaos, int host, const char *place, const char *deadline,
                 struct hvd_err *err)
{
    const char *words[] = { "drain", place, deadline ? "--deadline" : NULL, deadline, NULL };

    chaos->hosts[chaos->cut_count++] = host;
    fault_say(chaos, "%s", place);
    fault_allow(chaos, BLAME_HOST, chaos->arena.hosts[host].name);
    return strike_ask(chaos, words, err);
}

/* Takes a drain back; for a host that includes its slots. */
static int undrain(struct chaos *chaos, struct hvd_err *err)
{
    int rc = 0;

    for (uint32_t i = 0; i < chaos->cut_count && !rc; i++) {
        const char *words[] = { "undrain", chaos->arena.hosts[chaos->hosts[i]].name, NULL };

        rc = strike_ask(chaos, words, err);
    }
    chaos->cut_count = 0;
    return rc;
}

FAULT(drain_host, "drain", .quiet = "the operator has asked for it",
      .what = "a host is drained, and let be used again", .weight = 3,
      .missing = strike_needs_two_hosts, .relent = undrain)
{
    int host = strike_host(chaos, -1);

    chaos->lasts_us = strike_time(chaos, READD_LOW, AWAY_HIGH);
    return host < 0 ? HVD_DONE : drain(chaos, host, chaos->arena.hosts[host].name, NULL, err);
}

/* Drains with so short a time that a worker that does not leave at once is killed. */
FAULT(drain_soon, "drain-soon", .quiet = "the operator has asked for it",
      .what = "a host is drained with a deadline that no worker can keep", .weight = 2,
      .missing = strike_needs_two_hosts, .relent = undrain)
{
    int host = strike_host(chaos, -1);

    chaos->lasts_us = strike_time(chaos, AWAY_LOW, AWAY_HIGH);
    return host < 0 ? HVD_DONE : drain(chaos, host, chaos->arena.hosts[host].name, "50ms", err);
}

FAULT(drain_slot, "drain-slot", .quiet = "the operator has asked for it",
      .what = "a slot is drained, and let be used again", .weight = 2, .missing = needs_two_slots,
      .relent = undrain)
{
    int host = strike_host(chaos, -1);
    char place[SLOT_BYTES];

    chaos->lasts_us = strike_time(chaos, READD_LOW, AWAY_HIGH);
    if (host < 0)
        return HVD_DONE;
    snprintf(place, sizeof(place), "%s:%" PRIu64, chaos->arena.hosts[host].name,
             rng_below(&chaos->rng, chaos->arena.hosts[host].slots));
    return drain(chaos, host, place, NULL, err);
}

static int undrain_all(struct chaos *chaos, struct hvd_err *err)
{
    int rc = 0;

    for (uint32_t i = 0; i < chaos->arena.host_count && !rc; i++) {
        const char *words[] = { "undrain", chaos->arena.hosts[i].name, NULL };

        rc = strike_ask(chaos, words, err);
    }
    return rc ? rc : await_all(chaos, err);
}

FAULT(drain_all, "drain-all", .quiet = "the operator has asked for it",
      .what = "all hosts are drained, and let be used again", .weight = 1, .relent = undrain_all)
{
    int rc = 0;

    chaos->lasts_us = strike_time(chaos, READD_LOW, AWAY_HIGH);
    for (uint32_t i = 0; i < chaos->arena.host_count && !rc; i++) {
        const char *words[] = { "drain", chaos->arena.hosts[i].name, NULL };

        fault_allow(chaos, BLAME_HOST, chaos->arena.hosts[i].name);
        rc = strike_ask(chaos, words, err);
    }
    return rc;
}

FAULT(drain_and_kill, "drain-kill", .names = "{worker}: killed by signal 9",
      .what = "a host is drained and a worker is killed at once", .weight = 2,
      .missing = strike_needs_two_hosts, .relent = undrain)
{
    int host = strike_host(chaos, -1);
    int rc;

    chaos->lasts_us = strike_time(chaos, READD_LOW, AWAY_HIGH);
    if (host < 0)
        return HVD_DONE;
    rc = drain(chaos, host, chaos->arena.hosts[host].name, NULL, err);
    if (!rc)
        rc = strike_kill(chaos, PROC_WORKER, -1);
    return strike_whole(chaos, rc, undrain, err);
}
