/*
 * What networks do. Packets vanish by routing rules, and nobody is told; a link that goes down is
 * one of the kernel's. Host number N here is hosts[N - 1] of the arena.
 */
#include "base/buf.h"
#include "base/time.h"
#include "tests/chaos/air.h"
#include "tests/chaos/networks.h"
#include "tests/chaos/strike.h"

#include <signal.h>

/* Against the arena's --lease of 1 s, --stall-shutdown of 5 s and --driver-grace of 20 s. What was
 * lost is sent again after 0.2, 0.6, 1.4 and 3 s: silence is longer than what has caused it. */
#define SHORT_FROM_US (50 * TIME_MS)
#define SHORT_TO_US   (250 * TIME_MS)
#define LONG_FROM_US  (2 * TIME_S)
#define LONG_TO_US    (5 * TIME_S)
#define WALL_TO_US    (2500 * TIME_MS)
#define THICK_FROM_US (6 * TIME_S)
#define THICK_TO_US   (9 * TIME_S)
#define ALONE_TO_US   (8 * TIME_S)
#define SSH_US        (2 * TIME_S)
#define LINES_MAX     ((size_t)ARENA_HOSTS * 64)
#define FLAPS         8

static const char *needs_networks(const struct chaos *chaos)
{
    return chaos->arena.plan->where == PLAN_NETWORKS ? NULL
                                                     : "hosts are one machine; --where networks";
}

static const char *needs_air(const struct chaos *chaos)
{
    const char *missing = needs_networks(chaos);

    return missing ? missing : air_missing();
}

static const char *name_of(const struct chaos *chaos, uint32_t number)
{
    return chaos->arena.hosts[number - 1].name;
}

/* By chance, of those that are listed and are not `other` (0: none). 0: there is none. */
static uint32_t any_host(struct chaos *chaos, uint32_t other)
{
    const uint32_t count = chaos->arena.host_count;
    uint32_t from = (uint32_t)rng_below(&chaos->rng, count);

    for (uint32_t i = 0; i < count; i++) {
        uint32_t at = (from + i) % count;

        if (chaos->arena.hosts[at].listed && at + 1 != other)
            return at + 1;
    }
    return 0;
}

/* One that the others can go on without, with all that was trained. */
static uint32_t host_to_lose(struct chaos *chaos)
{
    uint32_t number = any_host(chaos, 0);

    return number && strike_spares(chaos, &chaos->sight, (int)number - 1) ? number : 0;
}

/* Whatever it was. */
static int mend(struct chaos *chaos, struct hvd_err *err)
{
    return networks_mend(chaos->arena.networks, err);
}

/* ---- a link ------------------------------------------------------------------------------------
 */

static int link_down(struct chaos *chaos, uint32_t number, struct hvd_err *err)
{
    if (!number)
        return HVD_DONE;
    fault_say(chaos, "%s", name_of(chaos, number));
    return networks_ip(err, "link set veth%u down", number);
}

static int link_down_shortly(struct chaos *chaos, struct hvd_err *err)
{
    chaos->lasts_us = strike_time(chaos, SHORT_FROM_US, SHORT_TO_US);
    return link_down(chaos, any_host(chaos, 0), err);
}

static int link_down_long(struct chaos *chaos, struct hvd_err *err)
{
    chaos->lasts_us = strike_time(chaos, LONG_FROM_US, LONG_TO_US);
    return link_down(chaos, host_to_lose(chaos), err);
}

static int link_flaps(struct chaos *chaos, struct hvd_err *err)
{
    uint32_t number = host_to_lose(chaos);
    int rc = link_down(chaos, number, err);

    for (int i = 1; i < FLAPS && !rc && !*chaos->arena.broken_off; i++) {
        strike_wait(strike_time(chaos, SHORT_FROM_US, SHORT_TO_US));
        rc = networks_ip(err, "link set veth%u %s", number, i % 2 ? "up" : "down");
    }
    return rc;
}

/* ---- packets that vanish -----------------------------------------------------------------------
 */

static int deafen(uint32_t number, struct hvd_err *err)
{
    return networks_ip(err,
                       "-n host%u rule add pref 1 iif peer%u from " NETWORKS_NET ".%u.1 blackhole",
                       number, number, number);
}

static int to_host(struct chaos *chaos, struct hvd_err *err)
{
    uint32_t number = host_to_lose(chaos);

    if (!number)
        return HVD_DONE;
    chaos->lasts_us = strike_time(chaos, LONG_FROM_US, LONG_TO_US);
    fault_say(chaos, "driver to %s", name_of(chaos, number));
    return deafen(number, err);
}

static int from_host(struct chaos *chaos, struct hvd_err *err)
{
    uint32_t number = host_to_lose(chaos);

    if (!number)
        return HVD_DONE;
    chaos->lasts_us = strike_time(chaos, LONG_FROM_US, LONG_TO_US);
    fault_say(chaos, "%s to driver", name_of(chaos, number));
    return networks_ip(err, "rule add pref 1 iif veth%u to " NETWORKS_NET ".%u.1 blackhole", number,
                       number);
}

static int wall(struct chaos *chaos, int64_t low_us, int64_t high_us, struct hvd_err *err)
{
    uint32_t one = any_host(chaos, 0);
    uint32_t other = any_host(chaos, one);
    int rc;

    if (!one || !other)
        return HVD_DONE;
    chaos->lasts_us = strike_time(chaos, low_us, high_us);
    fault_say(chaos, "%s and %s", name_of(chaos, one), name_of(chaos, other));
    rc = networks_ip(err, "rule add pref 1 iif veth%u to %s blackhole", one, name_of(chaos, other));
    return rc ? rc
              : networks_ip(err, "rule add pref 1 iif veth%u to %s blackhole", other,
                            name_of(chaos, one));
}

static int thin_wall(struct chaos *chaos, struct hvd_err *err)
{
    return wall(chaos, SHORT_FROM_US, WALL_TO_US, err);
}

static int thick_wall(struct chaos *chaos, struct hvd_err *err)
{
    return wall(chaos, THICK_FROM_US, THICK_TO_US, err);
}

/* All of them in the same moment: who is heard for longer is a witness that the driver is not cut
 * off. What the driver says vanishes next. */
static int leave_alone(struct chaos *chaos, struct hvd_err *err)
{
    struct buf lines;
    int rc = 0;

    buf_init(&lines, LINES_MAX);
    for (uint32_t n = 1; n <= chaos->arena.host_count && !rc; n++)
        rc = buf_printf(&lines, "rule add pref 1 iif veth%u to " NETWORKS_NET ".%u.1 blackhole\n",
                        n, n);
    if (rc)
        rc = err_set(err, rc, "rules for %u hosts: %s", chaos->arena.host_count, err_text(rc));
    else
        rc = networks_ip_all(chaos->arena.networks, buf_text(&lines), err);
    buf_release(&lines);
    for (uint32_t n = 1; n <= chaos->arena.host_count && !rc; n++)
        rc = deafen(n, err);
    return rc;
}

static int alone_shortly(struct chaos *chaos, struct hvd_err *err)
{
    chaos->lasts_us = strike_time(chaos, SHORT_FROM_US, SHORT_TO_US);
    return leave_alone(chaos, err);
}

static int alone(struct chaos *chaos, struct hvd_err *err)
{
    chaos->lasts_us = strike_time(chaos, LONG_FROM_US, ALONE_TO_US);
    return leave_alone(chaos, err);
}

/* ---- bad ways ----------------------------------------------------------------------------------
 */

static int bad_air(struct chaos *chaos, const struct air_weather *weather, struct hvd_err *err)
{
    uint32_t number = host_to_lose(chaos);
    struct air_weather seeded = *weather;
    struct air *air = NULL;
    int rc;

    if (!number)
        return HVD_DONE;
    seeded.seed = rng_next(&chaos->rng);
    chaos->lasts_us = strike_time(chaos, LONG_FROM_US, LONG_TO_US);
    fault_say(chaos, "%s", name_of(chaos, number));
    rc = air_open(&air, number, &seeded, err);
    chaos->own = air;
    return rc;
}

static int clear_up(struct chaos *chaos, struct hvd_err *err)
{
    struct air_count count = { 0 };

    (void)err;
    air_close(chaos->own, &count);
    chaos->own = NULL;
    fault_say(chaos, "%u packets", (unsigned)count.packets);
    if (count.lost)
        fault_say(chaos, "%u lost", (unsigned)count.lost);
    return 0;
}

static int lose(struct chaos *chaos, struct hvd_err *err)
{
    const struct air_weather weather = { .lost = 50 + (uint32_t)rng_below(&chaos->rng, 151) };

    return bad_air(chaos, &weather, err);
}

static int delay(struct chaos *chaos, struct hvd_err *err)
{
    const struct air_weather weather = {
        .delay_us = strike_time(chaos, 25 * TIME_MS, 50 * TIME_MS), /* each way */
    };

    return bad_air(chaos, &weather, err);
}

static int muddle(struct chaos *chaos, struct hvd_err *err)
{
    const struct air_weather weather = { .doubled = 100, .overtaken = 100 };

    return bad_air(chaos, &weather, err);
}

/* ---- ssh ---------------------------------------------------------------------------------------
 */

/* The agent has to be started again, and cannot be for a while. */
static int shut_out(struct chaos *chaos, struct hvd_err *err)
{
    const struct sight_process *agent = strike_pick(chaos, &chaos->sight, SIGHT_AGENT);

    (void)err;
    if (!agent || agent->host < 0)
        return HVD_DONE;
    networks_shut(chaos->arena.networks, (uint32_t)agent->host + 1);
    chaos->lasts_us = SSH_US;
    return strike_signal(chaos, agent, SIGKILL) ? 0 : HVD_DONE;
}

/* clang-format off */
#define ROW(title, ...) { .name = (title), .missing = needs_networks, .relent = mend, __VA_ARGS__ }
#define AIR(title, ...) { .name = (title), .missing = needs_air, .relent = clear_up, __VA_ARGS__ }
/* clang-format on */

const struct fault network_faults[] = {
    ROW("link-down-short", .what = "the link of a host is down for less than the lease",
        .cost = FAULT_COSTS_NOTHING, .weight = 3, .strike = link_down_shortly),
    ROW("link-down-long", .what = "the link of a host is down for longer than the lease",
        .weight = 4, .strike = link_down_long),
    ROW("link-flaps", .what = "the link of a host goes down and up eight times", .weight = 2,
        .strike = link_flaps),
    ROW("deaf-host", .what = "what the driver sends to a host vanishes", .weight = 3,
        .strike = to_host),
    ROW("dumb-host", .what = "what a host sends to the driver vanishes", .weight = 3,
        .strike = from_host),
    ROW("wall", .what = "two hosts do not reach each other for a while",
        .cost = FAULT_COSTS_NOTHING, .weight = 3, .strike = thin_wall),
    ROW("wall-long", .what = "two hosts do not reach each other until the stall limit", .weight = 2,
        .strike = thick_wall),
    ROW("driver-alone-short", .what = "no host reaches the driver, for less than the lease",
        .cost = FAULT_COSTS_NOTHING, .weight = 2, .strike = alone_shortly),
    ROW("driver-alone", .what = "no host reaches the driver, for less than the grace",
        .cost = FAULT_COSTS_NOTHING, .weight = 4, .strike = alone),
    AIR("packet-loss", .what = "5 to 20 % of the packets to and from a host are lost", .weight = 3,
        .strike = lose),
    AIR("packet-delay", .what = "packets to and from a host are 25 to 50 ms late",
        .cost = FAULT_COSTS_NOTHING, .weight = 2, .strike = delay),
    AIR("packet-muddle", .what = "10 % of them come twice, 10 % late", .cost = FAULT_COSTS_NOTHING,
        .weight = 2, .strike = muddle),
    ROW("agent-kill-no-ssh", .what = "SIGKILL to an agent whose machine has no sshd for a while",
        .weight = 2, .strike = shut_out),
};
const size_t network_fault_count = ARRAY_SIZE(network_faults);
