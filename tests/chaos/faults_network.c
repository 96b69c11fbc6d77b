/*
 * faults_network.c: faults of networks. Packets are dropped by routing rules, without an error; a
 * link that is down is reported by the kernel. Host number N here is hosts[N - 1] of the arena.
 */
#include "base/buf.h"
#include "base/time.h"
#include "tests/chaos/net_faults.h"
#include "tests/chaos/networks.h"
#include "tests/chaos/strike.h"

#include <signal.h>

/* A long time is the lease and one of these, a thick wall stands for --stall-shutdown and one of
 * these; both are below --driver-grace. TCP sends a lost packet again after 0.2, 0.6, 1.4 and 3 s,
 * so a silence is longer than the fault that causes it. */
#define SHORT_FROM_US (50 * TIME_MS)
#define SHORT_TO_US   (250 * TIME_MS)
#define LONG_FROM_US  TIME_S
#define LONG_TO_US    (4 * TIME_S)
#define WALL_TO_US    (2500 * TIME_MS)
#define ALONE_TO_US   (7 * TIME_S)
#define AIR_FROM_US   (2 * TIME_S)
#define AIR_TO_US     (5 * TIME_S)
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

    return missing ? missing : net_faults_missing();
}

#define CUT(function, title, ...) \
    FAULT(function, title, .missing = needs_networks, .relent = mend, __VA_ARGS__)
#define AIR(function, title, ...) \
    FAULT(function, title, .missing = needs_air, .relent = clear_up, __VA_ARGS__)

static const char *name_of(const struct chaos *chaos, uint32_t number)
{
    return chaos->arena.hosts[number - 1].name;
}

/* A random listed host other than `other` (0: any); 0: there is none. */
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

/* A random host without which the other hosts still have the whole training state; 0: there is
 * none. */
static uint32_t host_to_lose(struct chaos *chaos)
{
    uint32_t number = any_host(chaos, 0);

    return number && strike_spares(chaos, &chaos->scan, (int)number - 1) ? number : 0;
}

/* A random time that is longer than the lease by LONG_FROM_US to `by_us`. */
static int64_t longer_than_lease(struct chaos *chaos, int64_t by_us)
{
    return chaos->arena.plan->lease_us + strike_time(chaos, LONG_FROM_US, by_us);
}

/* Makes all networks work again, whichever fault has cut them. */
static int mend(struct chaos *chaos, struct hvd_err *err)
{
    return networks_mend(chaos->arena.networks, err);
}

/* ---- a link ---- */

static int link_down(struct chaos *chaos, uint32_t number, struct hvd_err *err)
{
    if (!number)
        return HVD_DONE;
    fault_note_host(chaos, (int)number - 1);
    return networks_ip(err, "link set veth%u down", number);
}

CUT(link_down_shortly, "link-down-short", .quiet = "it is over before the lease",
    .what = "the link of a host is down for less than the lease", .cost = FAULT_COSTS_NOTHING,
    .over = FAULT_OVER_BEFORE_LEASE, .weight = 3)
{
    chaos->lasts_us = strike_time(chaos, SHORT_FROM_US, SHORT_TO_US);
    return link_down(chaos, any_host(chaos, 0), err);
}

CUT(link_down_long, "link-down-long", .names = "{host}",
    .what = "the link of a host is down for longer than the lease", .weight = 4)
{
    chaos->lasts_us = longer_than_lease(chaos, LONG_TO_US);
    return link_down(chaos, host_to_lose(chaos), err);
}

CUT(link_flaps, "link-flaps", .quiet = "it is over before the lease",
    .what = "the link of a host goes down and up eight times", .weight = 2)
{
    uint32_t number = host_to_lose(chaos);
    int rc = link_down(chaos, number, err);

    for (int i = 1; i < FLAPS && !rc && !*chaos->arena.broken_off; i++) {
        strike_wait(strike_time(chaos, SHORT_FROM_US, SHORT_TO_US));
        rc = networks_ip(err, "link set veth%u %s", number, i % 2 ? "up" : "down");
    }
    return rc;
}

/* ---- dropped packets ---- */

static int deafen(uint32_t number, struct hvd_err *err)
{
    return networks_ip(err,
                       "-n host%u rule add pref 1 iif peer%u from " NETWORKS_NET ".%u.1 blackhole",
                       number, number, number);
}

CUT(to_host, "deaf-host", .names = "{host}", .what = "what the driver sends to a host vanishes",
    .weight = 3)
{
    uint32_t number = host_to_lose(chaos);

    if (!number)
        return HVD_DONE;
    chaos->lasts_us = longer_than_lease(chaos, LONG_TO_US);
    fault_note_host(chaos, (int)number - 1);
    return deafen(number, err);
}

CUT(from_host, "dumb-host", .names = "{host}", .what = "what a host sends to the driver vanishes",
    .weight = 3)
{
    uint32_t number = host_to_lose(chaos);

    if (!number)
        return HVD_DONE;
    chaos->lasts_us = longer_than_lease(chaos, LONG_TO_US);
    fault_note_host(chaos, (int)number - 1);
    return networks_ip(err, "rule add pref 1 iif veth%u to " NETWORKS_NET ".%u.1 blackhole", number,
                       number);
}

/* Drops all packets between two random hosts, for a time in [low_us, high_us). */
static int wall(struct chaos *chaos, int64_t low_us, int64_t high_us, struct hvd_err *err)
{
    uint32_t one = any_host(chaos, 0);
    uint32_t other = any_host(chaos, one);
    int rc;

    if (!one || !other)
        return HVD_DONE;
    chaos->lasts_us = strike_time(chaos, low_us, high_us);
    fault_note_host(chaos, (int)one - 1);
    fault_note_host(chaos, (int)other - 1);
    rc = networks_ip(err, "rule add pref 1 iif veth%u to %s blackhole", one, name_of(chaos, other));
    return rc ? rc
              : networks_ip(err, "rule add pref 1 iif veth%u to %s blackhole", other,
                            name_of(chaos, one));
}

CUT(thin_wall, "wall", .quiet = "it is over before --stall-shutdown",
    .what = "two hosts do not reach each other for a while", .cost = FAULT_COSTS_NOTHING,
    .over = FAULT_OVER_BEFORE_STALL, .weight = 3)
{
    /* a warning names any two workers that wait for each other */
    for (uint32_t i = 0; i < chaos->arena.host_count; i++)
        fault_allow(chaos, BLAME_HOST, chaos->arena.hosts[i].name);
    return wall(chaos, SHORT_FROM_US, WALL_TO_US, err);
}

CUT(thick_wall, "wall-long", .names = " wait for each other, for ",
    .what = "two hosts do not reach each other until the stall limit", .weight = 2)
{
    const int64_t stall_us = arena_stall_us(&chaos->arena);

    return wall(chaos, stall_us + LONG_FROM_US, stall_us + LONG_TO_US, err);
}

/* Cuts all hosts in the same moment, because a host that is heard for longer would show the driver
 * that it is not cut off. The driver's packets are dropped next. */
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

CUT(alone_shortly, "driver-alone-short", .quiet = "it is over before the lease",
    .what = "no host reaches the driver, for less than the lease", .cost = FAULT_COSTS_NOTHING,
    .weight = 2)
{
    chaos->lasts_us = strike_time(chaos, SHORT_FROM_US, SHORT_TO_US);
    return leave_alone(chaos, err);
}

CUT(alone, "driver-alone", .names = "no agent is heard: the driver's machine may be cut off",
    .what = "no host reaches the driver, for less than the grace", .cost = FAULT_COSTS_NOTHING,
    .weight = 4)
{
    chaos->lasts_us = longer_than_lease(chaos, ALONE_TO_US);
    return leave_alone(chaos, err);
}

/* ---- bad networks ---- */

/* Starts random losses and delays of the packets of one host, whose loss the state would
 * survive. */
static int bad_air(struct chaos *chaos, const struct net_faults_rates *rates, struct hvd_err *err)
{
    uint32_t number = host_to_lose(chaos);
    struct net_faults_rates seeded = *rates;
    struct net_faults *air = NULL;
    int rc;

    if (!number)
        return HVD_DONE;
    seeded.seed = rng_next(&chaos->rng);
    chaos->lasts_us = strike_time(chaos, AIR_FROM_US, AIR_TO_US);
    fault_note_host(chaos, (int)number - 1);
    rc = net_faults_open(&air, number, &seeded, err);
    chaos->own = air;
    return rc;
}

static int clear_up(struct chaos *chaos, struct hvd_err *err)
{
    struct net_faults_count count = { 0 };

    (void)err;
    net_faults_close(chaos->own, &count);
    chaos->own = NULL;
    fault_say(chaos, "%u packets", (unsigned)count.packets);
    if (count.lost)
        fault_say(chaos, "%u lost", (unsigned)count.lost);
    return 0;
}

AIR(lose, "packet-loss", .quiet = "TCP sends the packets again",
    .what = "5 to 20 % of the packets to and from a host are lost", .weight = 3)
{
    const struct net_faults_rates disk_faults = { .lost =
                                                      50 + (uint32_t)rng_below(&chaos->rng, 151) };

    return bad_air(chaos, &disk_faults, err);
}

AIR(delay, "packet-delay", .quiet = "it is less than the lease",
    .what = "packets to and from a host are 25 to 50 ms late", .cost = FAULT_COSTS_NOTHING,
    .weight = 2)
{
    const struct net_faults_rates disk_faults = {
        .delay_us = strike_time(chaos, 25 * TIME_MS, 50 * TIME_MS), /* in each direction */
    };

    return bad_air(chaos, &disk_faults, err);
}

AIR(muddle, "packet-muddle", .quiet = "TCP puts the packets in order",
    .what = "10 % of them come twice, 10 % late", .cost = FAULT_COSTS_NOTHING, .weight = 2)
{
    const struct net_faults_rates disk_faults = { .doubled = 100, .overtaken = 100 };

    return bad_air(chaos, &disk_faults, err);
}

/* ---- ssh ---- */

/* The agent has to be started again, and ssh refuses that for a while. */
CUT(shut_out, "agent-kill-no-ssh", .names = "{host}",
    .what = "SIGKILL to an agent whose machine has no sshd for a while", .weight = 2)
{
    const struct proc_info *agent = strike_pick(chaos, &chaos->scan, PROC_AGENT);

    if (!agent || agent->host < 0)
        return HVD_DONE;
    networks_shut(chaos->arena.networks, (uint32_t)agent->host + 1);
    chaos->lasts_us = SSH_US;
    return strike_signal(chaos, agent, SIGKILL) ? 0 : HVD_DONE;
}
