/*
 * faults_mitm.c: a man in the middle (mitm.h) harms the bytes of connections of one host: those
 * with the driver, or those with other hosts. Invariant: relent takes him away in any case. The
 * condition: each harmed connection ends while he is there, and the log names one of them.
 *
 * That no sum was wrong, that no sample was lost and that the job is whole again is seen by the
 * judge, as after each fault.
 */
#include "base/mem.h"
#include "base/time.h"
#include "os/clock.h"
#include "tests/chaos/log_follow.h"
#include "tests/chaos/mitm.h"
#include "tests/chaos/net_faults.h"
#include "tests/chaos/networks.h"
#include "tests/chaos/strike.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Connections that are harmed by one fault. Each may end a round before its first commit, and the
 * job ends when too many do so in a row (--progress-restarts). */
#define MOST     3
#define HARMS_US (10 * TIME_S) /* within this time he has harmed them */
#define READ_US  (8 * TIME_S)  /* within this time a receiver that waits has read */
#define LOOK_US  (20 * TIME_MS)

struct middle {
    struct mitm *mitm;
    struct net_faults *net;
    enum mitm_way way;
    struct log_follow follow;
    char host[BLAME_NAME];
    char named[FAULT_TEXT]; /* a line of the log about a broken connection has this */
};

static const char *middle_not_here(const struct chaos *chaos)
{
    if (chaos->arena.plan->where != PLAN_NETWORKS)
        return "hosts are one machine; --where networks";
    return net_faults_missing();
}

/* Ends the harm, and waits until each harmed connection has ended. */
static int middle_await_end(struct chaos *chaos, struct middle *middle, struct mitm_count *count,
                            struct hvd_err *err)
{
    int64_t began_us = clock_now_us(), until_us = began_us + chaos->arena.plan->patience_us;

    mitm_rest(middle->mitm);
    for (mitm_look(middle->mitm, count);
         (count->unnoticed || (count->open && clock_now_us() < began_us + READ_US)) &&
         clock_now_us() < until_us && !*chaos->arena.broken_off;
         mitm_look(middle->mitm, count))
        strike_wait(LOOK_US);
    if (count->unnoticed && !*chaos->arena.broken_off)
        return err_set(err, HVD_E_MISMATCH,
                       "%" PRIu32 " of %" PRIu32 " connections go on after a man in the middle "
                       "has harmed their bytes: %s",
                       count->unnoticed, count->all, count->where);
    /* A connection that was still in its handshake is dialled again without a word. */
    if (count->old)
        fault_blame(chaos, BLAME_HOST, middle->host);
    while (count->old && !chaos->hurried && !*chaos->arena.broken_off) {
        const char *line = middle->follow.line;

        if (!log_follow_await(&middle->follow, middle->named, until_us))
            return err_set(err, HVD_E_MISMATCH,
                           "a man in the middle has harmed %" PRIu32 " connections, and no line "
                           "of the log names one of them",
                           count->old);
        /* the other end of the connection may be heard first, and knows less */
        if (middle->way == MITM_DRIVER || strstr(line, "look for a device") ||
            strstr(line, ": the connection to rank "))
            break;
    }
    return 0;
}

static int middle_end(struct chaos *chaos, struct hvd_err *err)
{
    struct middle *middle = chaos->own;
    struct mitm_count count = { .all = 0 };
    int rc = 0;

    if (!middle)
        return 0;
    if (middle->net && err)
        rc = middle_await_end(chaos, middle, &count, err);
    net_faults_close(middle->net, NULL);
    mitm_free(middle->mitm);
    log_follow_close(&middle->follow);
    mem_free(middle);
    chaos->own = NULL;
    for (size_t i = 0; i < MITM_HARMS; i++)
        if (count.harmed[i])
            fault_say(chaos, "%" PRIu32 " %s", count.harmed[i], mitm_harm_names[i]);
    return rc;
}

static int middle_begin(struct chaos *chaos, enum mitm_way way, uint32_t number,
                        struct hvd_err *err)
{
    const uint32_t most = 1 + (uint32_t)rng_below(&chaos->rng, MOST);
    struct middle *middle = mem_zalloc(sizeof(*middle));
    struct net_faults_rates rates = { .lost = 0 };
    char path[ARENA_PATH];
    int rc;

    if (!middle)
        return err_set(err, HVD_E_NOMEM, "no memory for a man in the middle");
    middle->way = way;
    middle->follow = (struct log_follow){ .fd = -1, .notify = -1 };
    chaos->own = middle;
    rc = log_follow_open(&middle->follow, arena_path(&chaos->arena, "driver.log", path), err);
    if (!rc && mitm_create(way, most, rng_next(&chaos->rng), &middle->mitm))
        rc = err_set(err, HVD_E_NOMEM, "no memory for a man in the middle");
    rates.mitm = middle->mitm;
    if (!rc)
        rc = net_faults_open(&middle->net, number, &rates, err);
    return rc;
}

/* The man in the middle harms some connections of a host. HVD_DONE: they carry nothing now. */
static int middle_strike(struct chaos *chaos, enum mitm_way way, struct hvd_err *err)
{
    int64_t until_us = clock_now_us() + HARMS_US;
    int host = strike_host(chaos, -1);
    struct mitm_count count = { .all = 0 };
    struct middle *middle;
    uint32_t before;
    int rc;

    if (host < 0 || !strike_spares(chaos, &chaos->scan, host))
        return HVD_DONE;
    fault_say(chaos, "%s", chaos->arena.hosts[host].name);
    fault_allow(chaos, BLAME_HOST, chaos->arena.hosts[host].name);
    rc = middle_begin(chaos, way, (uint32_t)host + 1, err);
    if (rc)
        return rc;
    middle = chaos->own;
    (void)snprintf(middle->host, sizeof(middle->host), "%s", chaos->arena.hosts[host].name);
    if (way == MITM_DRIVER)
        (void)snprintf(middle->named, sizeof(middle->named),
                       "%s: the connection to its agent is gone", chaos->arena.hosts[host].name);
    else
        (void)snprintf(middle->named, sizeof(middle->named), " is revoked: ");
    do {
        before = count.all;
        strike_wait(LOOK_US);
        mitm_look(middle->mitm, &count);
        /* further connections are harmed within this time after the last */
        if (count.all > before)
            until_us = clock_now_us() + HARMS_US / 10;
    } while (count.all < MOST && clock_now_us() < until_us && !*chaos->arena.broken_off);
    return strike_whole(chaos, count.all ? 0 : HVD_DONE, middle_end, err);
}

FAULT(mitm_driver, "mitm-driver", .names = "{host}: the connection to its agent is gone",
      .what = "bytes between a host's agent and the driver are changed, dropped, repeated, swapped "
              "or injected",
      .weight = 2, .missing = middle_not_here, .relent = middle_end)
{
    return middle_strike(chaos, MITM_DRIVER, err);
}

FAULT(mitm_members, "mitm-members", .names = "{host}:",
      .what = "bytes between members on two hosts are changed, dropped, repeated, swapped or "
              "injected",
      .weight = 2, .missing = middle_not_here, .relent = middle_end)
{
    return middle_strike(chaos, MITM_MEMBERS, err);
}
