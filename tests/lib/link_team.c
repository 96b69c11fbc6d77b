/*
 * link_team.c: links of any kind between the threads of a test, and messages over them.
 */
#include "tests/lib/link_team.h"

#include "os/clock.h"
#include "seal/seal.h"
#include "tests/lib/loopback.h"
#include "tests/lib/threads.h"

#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void fill_round(struct team *team, enum link_security security)
{
    static const uint8_t secret[SEAL_KEY_BYTES] = "the secret of this round";

    team->round = (struct link_round){ .round = 7,
                                       .roster = 77,
                                       .incarnations = team->incarnations,
                                       .secret = secret,
                                       .security = security };
    for (uint32_t i = 0; i < team->size; i++)
        team->incarnations[i] = 100 + i;
}

static void enter_network(int network)
{
    if (!setns(network, CLONE_NEWNET))
        return;
    perror("setns");
    abort();
}

void team_open_networks(struct team_networks *networks, char *const *names, uint32_t count)
{
    networks->home = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
    for (uint32_t i = 0; i < count; i++) {
        networks->of[i] = open(names[i], O_RDONLY | O_CLOEXEC);
        enter_network(networks->of[i]); /* it can be entered */
    }
    enter_network(networks->home);
}

int team_member(struct team *team, enum link_kind kind, const char *host, uint32_t rank)
{
    uint32_t peers[TEAM_MAX];
    size_t count = 0;
    int rc = link_device_open(kind, host, &team->devices[rank], NULL);

    if (!team->round.secret)
        fill_round(team, LINK_SECURITY_AUTO);
    for (uint32_t i = 0; i < team->size; i++) {
        if (i != rank)
            peers[count++] = i;
    }
    if (!rc)
        rc = link_create(team->devices[rank],
                         &(struct link_spec){ .round = &team->round,
                                              .reaper = team->reaper,
                                              .rank = rank,
                                              .size = team->size,
                                              .peers = peers,
                                              .peer_count = count },
                         &team->links[rank], NULL);
    for (size_t i = 0; i < count && !rc; i++) {
        struct team_address *told = &team->told[rank][peers[i]];

        rc = team->links[rank]->ops->address(team->links[rank], peers[i], told->bytes,
                                             &told->length, NULL);
    }
    return rc;
}

static int team_open_as(struct team *team, enum link_kind kind, enum link_security security,
                        const struct team_networks *networks, const char *host, uint32_t size)
{
    int rc;

    memset(team, 0, sizeof(*team));
    team->size = size;
    team->networks = networks;
    fill_round(team, security);
    for (uint32_t i = 0; i < size; i++)
        team->timeout_us[i] = LONG_US;
    if (pthread_barrier_init(&team->gate, NULL, size))
        abort();
    rc = reaper_open(&team->reaper, NULL);
    for (uint32_t i = 0; i < size && !rc; i++) {
        if (networks)
            enter_network(networks->of[i]);
        rc = team_member(team, kind, networks ? networks->hosts[i] : host, i);
    }
    if (networks)
        enter_network(networks->home);
    return rc;
}

int team_open(struct team *team, enum link_kind kind, const char *host, uint32_t size)
{
    return team_open_as(team, kind, LINK_SECURITY_AUTO, NULL, host, size);
}

int team_open_secured(struct team *team, enum link_security security, uint32_t size)
{
    return team_open_apart(team, security, NULL, size);
}

int team_open_apart(struct team *team, enum link_security security,
                    const struct team_networks *networks, uint32_t size)
{
    return team_open_as(team, LINK_TCP, security, networks, loopback_own(), size);
}

/* The reaper closes sockets that cancelled links have left to it, so it is closed before the links
 * are freed. */
void team_close(struct team *team)
{
    reaper_close(team->reaper);
    for (uint32_t i = 0; i < team->size; i++) {
        if (team->links[i])
            team->links[i]->ops->free(team->links[i]);
        link_device_close(team->devices[i]);
    }
    pthread_barrier_destroy(&team->gate);
}

static void act_one(void *arg, uint32_t rank)
{
    struct team *team = arg;

    if (team->networks)
        enter_network(team->networks->of[rank]);
    team->act(team, rank);
}

void team_run(struct team *team, void (*act)(struct team *team, uint32_t rank))
{
    team->act = act;
    threads_run(team->size, team->away, act_one, team);
}

/* ---- acts of members --- */

int team_connect_one(struct team *team, uint32_t rank, uint32_t peer)
{
    const struct team_address *told = &team->told[peer][rank];

    return team->links[rank]->ops->connect(team->links[rank], peer, told->bytes, told->length,
                                           &team->err[rank]);
}

int team_connected(struct team *team, uint32_t rank)
{
    return team->links[rank]->ops->connected(team->links[rank],
                                             clock_now_us() + team->timeout_us[rank],
                                             &team->missing[rank], &team->err[rank]);
}

void team_act_connect(struct team *team, uint32_t rank)
{
    team->rc[rank] = 0;
    for (uint32_t i = 1; i < team->size && !team->rc[rank]; i++) {
        uint32_t place = (i - 1 + team->shift * rank) % (team->size - 1);

        team->rc[rank] = team_connect_one(team, rank, (rank + 1 + place) % team->size);
    }
    if (!team->rc[rank])
        team->rc[rank] = team_connected(team, rank);
}

void team_cancel(struct team *team)
{
    for (uint32_t i = 0; i < team->size; i++) {
        if (team->links[i])
            team->links[i]->ops->cancel(team->links[i]);
    }
}

/* ---- messages ---- */

static uint8_t number_at(uint32_t from, uint32_t to, size_t at)
{
    return (uint8_t)(from * 31 + to * 7 + at + at / 251);
}

void link_fill(uint8_t *bytes, size_t length, uint32_t from, uint32_t to)
{
    for (size_t i = 0; i < length; i++)
        bytes[i] = number_at(from, to, i);
}

bool link_is_filled(const uint8_t *bytes, size_t length, uint32_t from, uint32_t to)
{
    for (size_t i = 0; i < length; i++) {
        if (bytes[i] != number_at(from, to, i))
            return false;
    }
    return true;
}

int link_post_send(struct link *link, uint32_t to, uint64_t tag, const void *bytes, size_t length,
                   struct link_request **ret_request)
{
    return link->ops->send(link, to, tag, bytes, length, ret_request);
}

int link_post_receive(struct link *link, uint32_t from, uint64_t tag, void *bytes, size_t length,
                      struct link_request **ret_request)
{
    return link->ops->receive(link, from, tag, bytes, length, ret_request);
}

int link_await(struct link *link, struct link_request *request)
{
    return link->ops->wait(link, request);
}

int link_send_now(struct link *link, uint32_t to, uint64_t tag, const void *bytes, size_t length)
{
    struct link_request *request;
    int rc = link_post_send(link, to, tag, bytes, length, &request);

    return rc ? rc : link_await(link, request);
}

int link_receive_now(struct link *link, uint32_t from, uint64_t tag, void *bytes, size_t length)
{
    struct link_request *request;
    int rc = link_post_receive(link, from, tag, bytes, length, &request);

    return rc ? rc : link_await(link, request);
}
