/*
 * What the list of hosts and the operator can do to a job. docs/operations.md and docs/hvd-hosts.md
 * say what is promised: a look for hosts that fails, in whatever way, changes nothing; who is no
 * longer listed, or drained, leaves with everything committed.
 */
#include "base/time.h"
#include "os/clock.h"
#include "tests/chaos/strike.h"

#include <inttypes.h>
#include <stdio.h>

#define FLAPS      5
#define FLAP_US    (400 * TIME_MS)
#define ALL_US     (10 * TIME_S) /* until those train that are listed */
#define SLOT_BYTES (ARENA_NAME + 16)
#define READD_LOW  (100 * TIME_MS) /* about one look for hosts */
#define READD_HIGH (300 * TIME_MS)
#define AWAY_LOW   TIME_S
#define AWAY_HIGH  (2 * TIME_S)
#define MOOD_LOW   (300 * TIME_MS)
#define MOOD_HIGH  (3 * TIME_S) /* longer than a look may take */

static const char *needs_two_slots(const struct chaos *chaos)
{
    return chaos->arena.plan->slots < 2 ? "it needs two slots on each host: --slots 2" : NULL;
}

/* ---- the script --------------------------------------------------------------------------------
 */

static int strike_mood(struct chaos *chaos, const char *mood, struct hvd_err *err)
{
    chaos->lasts_us = strike_time(chaos, MOOD_LOW, MOOD_HIGH);
    return arena_mood(&chaos->arena, mood, err);
}

static int script_fails(struct chaos *chaos, struct hvd_err *err)
{
    return strike_mood(chaos, "fail", err);
}

static int script_hangs(struct chaos *chaos, struct hvd_err *err)
{
    return strike_mood(chaos, "hang", err);
}

static int script_rubbish(struct chaos *chaos, struct hvd_err *err)
{
    return strike_mood(chaos, "rubbish", err);
}

static int script_empty(struct chaos *chaos, struct hvd_err *err)
{
    return strike_mood(chaos, "empty", err);
}

static int script_is_well(struct chaos *chaos, struct hvd_err *err)
{
    return arena_mood(&chaos->arena, NULL, err);
}

/* Who dies is replaced on what was listed last. */
static int script_fails_and_kill(struct chaos *chaos, struct hvd_err *err)
{
    static const char *const moods[] = { "fail", "hang", "rubbish", "empty" };
    const char *mood = moods[rng_below(&chaos->rng, ARRAY_SIZE(moods))];
    int rc = strike_mood(chaos, mood, err);

    fault_say(chaos, "%s", mood);
    if (!rc)
        rc = strike_kill(chaos, SIGHT_WORKER, -1);
    return strike_whole(chaos, rc, script_is_well, err);
}

/* ---- the list ----------------------------------------------------------------------------------
 */

/* Remembered for the relent. */
static int unlist(struct chaos *chaos, int host, struct hvd_err *err)
{
    if (chaos->cut_count == FAULT_VICTIMS)
        return HVD_DONE;
    chaos->hosts[chaos->cut_count++] = host;
    chaos->arena.hosts[host].listed = false;
    fault_say(chaos, "%s", chaos->arena.hosts[host].name);
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

static int forget(struct chaos *chaos, struct hvd_err *err)
{
    int host = strike_host(chaos, -1);

    chaos->lasts_us = strike_time(chaos, READD_LOW, READD_HIGH);
    return host < 0 ? HVD_DONE : unlist(chaos, host, err);
}

static int host_leaves(struct chaos *chaos, struct hvd_err *err)
{
    int host = strike_host(chaos, -1);

    chaos->lasts_us = strike_time(chaos, AWAY_LOW, AWAY_HIGH);
    return host < 0 ? HVD_DONE : unlist(chaos, host, err);
}

/* One that stays loses a worker while the other leaves. */
static int host_leaves_and_kill(struct chaos *chaos, struct hvd_err *err)
{
    int host = strike_host(chaos, -1);
    int other = strike_host(chaos, host);
    int rc;

    chaos->lasts_us = strike_time(chaos, READD_LOW, AWAY_HIGH);
    if (host < 0 || other < 0)
        return HVD_DONE;
    rc = unlist(chaos, host, err);
    if (!rc)
        rc = strike_kill(chaos, SIGHT_WORKER, other);
    return strike_whole(chaos, rc, list_again, err);
}

/* Until a step is done by all that are listed, or the time is over. Where most have left, one may
 * be all that has what was trained: a fault that follows must not hit it before others have it too.
 */
static int await_all(struct chaos *chaos, struct hvd_err *err)
{
    int64_t deadline_us = clock_now_us() + ALL_US;
    uint32_t all = arena_whole(&chaos->arena);
    struct steps *steps = &chaos->steps;
    int rc = steps_read(steps, err);

    while (!rc && (!steps->count || steps->list[steps->count - 1].size != all))
        rc = steps_await(steps, steps->count, deadline_us, err);
    return rc == HVD_E_TIMEOUT ? 0 : rc;
}

/* The one that was away comes in the look in which another goes. */
static int swap(struct chaos *chaos, struct hvd_err *err)
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

static int swap_back(struct chaos *chaos, struct hvd_err *err)
{
    int rc = await_all(chaos, err);
    int listed = list_again(chaos, err);

    return rc ? rc : listed;
}

static int resize(struct chaos *chaos, int change, struct hvd_err *err)
{
    int host = strike_host(chaos, -1);

    chaos->lasts_us = strike_time(chaos, READD_LOW, AWAY_HIGH);
    if (host < 0 || (int64_t)chaos->arena.hosts[host].slots + change < 1)
        return HVD_DONE;
    chaos->hosts[chaos->cut_count++] = host;
    chaos->arena.hosts[host].slots += (uint32_t)change;
    fault_say(chaos, "%s:%" PRIu32, chaos->arena.hosts[host].name, chaos->arena.hosts[host].slots);
    return arena_list(&chaos->arena, err);
}

static int slots_shrink(struct chaos *chaos, struct hvd_err *err)
{
    return resize(chaos, -1, err);
}

static int slots_grow(struct chaos *chaos, struct hvd_err *err)
{
    return resize(chaos, 1, err);
}

/* With nobody to take their places --min-np of them stay. */
static int offer(struct chaos *chaos, uint32_t slots, struct hvd_err *err)
{
    for (uint32_t i = 0; i < chaos->arena.host_count; i++)
        chaos->arena.hosts[i].slots = slots;
    return arena_list(&chaos->arena, err);
}

static int nothing_offered(struct chaos *chaos, struct hvd_err *err)
{
    chaos->lasts_us = strike_time(chaos, READD_LOW, AWAY_HIGH);
    return offer(chaos, 0, err);
}

static int all_offered(struct chaos *chaos, struct hvd_err *err)
{
    int rc = offer(chaos, (uint32_t)chaos->arena.plan->slots, err);

    return rc ? rc : await_all(chaos, err);
}

/* In and out, for a random part of FLAP_US each. */
static int flapping(struct chaos *chaos, struct hvd_err *err)
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

/* ---- the operator ------------------------------------------------------------------------------
 */

static int drain(struct chaos *chaos, int host, const char *place, const char *deadline,
                 struct hvd_err *err)
{
    const char *words[] = { "drain", place, deadline ? "--deadline" : NULL, deadline, NULL };

    chaos->hosts[chaos->cut_count++] = host;
    fault_say(chaos, "%s", place);
    return strike_ask(chaos, words, err);
}

static int drain_host(struct chaos *chaos, struct hvd_err *err)
{
    int host = strike_host(chaos, -1);

    chaos->lasts_us = strike_time(chaos, READD_LOW, AWAY_HIGH);
    return host < 0 ? HVD_DONE : drain(chaos, host, chaos->arena.hosts[host].name, NULL, err);
}

/* So short that who does not leave at once is killed. */
static int drain_soon(struct chaos *chaos, struct hvd_err *err)
{
    int host = strike_host(chaos, -1);

    chaos->lasts_us = strike_time(chaos, AWAY_LOW, AWAY_HIGH);
    return host < 0 ? HVD_DONE : drain(chaos, host, chaos->arena.hosts[host].name, "50ms", err);
}

static int drain_slot(struct chaos *chaos, struct hvd_err *err)
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

static int drain_all(struct chaos *chaos, struct hvd_err *err)
{
    int rc = 0;

    chaos->lasts_us = strike_time(chaos, READD_LOW, AWAY_HIGH);
    for (uint32_t i = 0; i < chaos->arena.host_count && !rc; i++) {
        const char *words[] = { "drain", chaos->arena.hosts[i].name, NULL };

        rc = strike_ask(chaos, words, err);
    }
    return rc;
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

/* Of a host that means its slots too. */
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

static int drain_and_kill(struct chaos *chaos, struct hvd_err *err)
{
    int host = strike_host(chaos, -1);
    int rc;

    chaos->lasts_us = strike_time(chaos, READD_LOW, AWAY_HIGH);
    if (host < 0)
        return HVD_DONE;
    rc = drain(chaos, host, chaos->arena.hosts[host].name, NULL, err);
    if (!rc)
        rc = strike_kill(chaos, SIGHT_WORKER, -1);
    return strike_whole(chaos, rc, undrain, err);
}

/* ---- the table ---------------------------------------------------------------------------------
 */

/* clang-format off */
#define ROW(title, ...) { .name = (title), __VA_ARGS__ }
/* clang-format on */

const struct fault discovery_faults[] = {
    ROW("script-fails", .what = "the discovery script fails for a while",
        .cost = FAULT_COSTS_NOTHING, .weight = 2, .strike = script_fails, .relent = script_is_well),
    ROW("script-hangs", .what = "the discovery script does not end", .cost = FAULT_COSTS_NOTHING,
        .weight = 2, .strike = script_hangs, .relent = script_is_well),
    ROW("script-rubbish", .what = "the discovery script prints what is no list",
        .cost = FAULT_COSTS_NOTHING, .weight = 2, .strike = script_rubbish,
        .relent = script_is_well),
    ROW("script-empty", .what = "the discovery script prints nothing at all",
        .cost = FAULT_COSTS_NOTHING, .weight = 2, .strike = script_empty, .relent = script_is_well),
    ROW("script-fails-kill", .what = "any of these, and a worker is killed meanwhile", .weight = 2,
        .strike = script_fails_and_kill, .relent = script_is_well),
    ROW("forget-and-readd",
        .what = "a host is not listed for a look or two, and is again in the same second",
        .weight = 3, .missing = strike_needs_two_hosts, .strike = forget, .relent = list_again),
    ROW("host-leaves-and-comes", .what = "a host is not listed for a second or two", .weight = 3,
        .missing = strike_needs_two_hosts, .strike = host_leaves, .relent = list_again),
    ROW("host-leaves-kill",
        .what = "a host is no longer listed and a worker of another is killed at once", .weight = 2,
        .missing = strike_needs_two_hosts, .strike = host_leaves_and_kill, .relent = list_again),
    ROW("hosts-swap", .what = "a host comes in the same look in which another goes", .weight = 2,
        .missing = strike_needs_two_hosts, .strike = swap, .relent = swap_back),
    ROW("slots-shrink", .what = "a host offers one slot less for a while", .weight = 2,
        .missing = needs_two_slots, .strike = slots_shrink, .relent = list_again),
    ROW("slots-grow", .what = "a host offers one slot more for a while", .weight = 2,
        .strike = slots_grow, .relent = list_again),
    ROW("flapping", .what = "a host is listed and not listed, five times in two seconds",
        .weight = 2, .missing = strike_needs_two_hosts, .strike = flapping, .relent = list_again),
    ROW("nothing-offered", .what = "all hosts are listed with no slot for a while", .weight = 1,
        .strike = nothing_offered, .relent = all_offered),
    ROW("drain-all", .what = "all hosts are drained, and let be used again", .weight = 1,
        .strike = drain_all, .relent = undrain_all),
    ROW("drain", .what = "a host is drained, and let be used again", .weight = 3,
        .missing = strike_needs_two_hosts, .strike = drain_host, .relent = undrain),
    ROW("drain-soon", .what = "a host is drained with a deadline that nobody can keep", .weight = 2,
        .missing = strike_needs_two_hosts, .strike = drain_soon, .relent = undrain),
    ROW("drain-slot", .what = "a slot is drained, and let be used again", .weight = 2,
        .missing = needs_two_slots, .strike = drain_slot, .relent = undrain),
    ROW("drain-kill", .what = "a host is drained and a worker is killed at once", .weight = 2,
        .missing = strike_needs_two_hosts, .strike = drain_and_kill, .relent = undrain),
};
const size_t discovery_fault_count = ARRAY_SIZE(discovery_faults);
