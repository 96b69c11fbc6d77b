#include "tests/lib/link_team.h"

#include "os/clock.h"

#include <stdlib.h>
#include <string.h>

int team_member(struct team *team, enum link_kind kind, const char *host, uint32_t rank)
{
    uint32_t peers[TEAM_MAX];
    size_t count = 0;
    int rc = link_device_open(kind, host, &team->devices[rank], NULL);

    for (uint32_t i = 0; i < team->size; i++) {
        if (i != rank)
            peers[count++] = i;
    }
    if (!rc)
        rc = link_create(team->devices[rank], team->reaper, rank, team->size, peers, count,
                         &team->links[rank], NULL);
    for (size_t i = 0; i < count && !rc; i++) {
        struct team_address *told = &team->told[rank][peers[i]];

        rc = team->links[rank]->ops->address(team->links[rank], peers[i], told->bytes,
                                             &told->length, NULL);
    }
    return rc;
}

int team_open(struct team *team, enum link_kind kind, const char *host, uint32_t size)
{
    int rc;

    memset(team, 0, sizeof(*team));
    team->size = size;
    for (uint32_t i = 0; i < size; i++)
        team->timeout_us[i] = LONG_US;
    if (pthread_barrier_init(&team->gate, NULL, size))
        abort();
    rc = reaper_open(NULL, NULL, &team->reaper, NULL);
    for (uint32_t i = 0; i < size && !rc; i++)
        rc = team_member(team, kind, host, i);
    return rc;
}

/* What a cancel has left to do is done before a link is freed. */
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

static void *play(void *arg)
{
    struct team_seat *seat = arg;

    seat->team->act(seat->team, seat->rank);
    return NULL;
}

static void team_start(struct team *team, struct team_seat *seats,
                       void (*act)(struct team *team, uint32_t rank))
{
    team->act = act;
    for (uint32_t i = 0; i < team->size; i++) {
        seats[i] = (struct team_seat){ .team = team, .rank = i };
        if (!team->away[i] && pthread_create(&seats[i].thread, NULL, play, &seats[i]))
            abort();
    }
}

static void team_await(const struct team *team, struct team_seat *seats)
{
    for (uint32_t i = 0; i < team->size; i++) {
        if (!team->away[i])
            pthread_join(seats[i].thread, NULL);
    }
}

void team_run(struct team *team, void (*act)(struct team *team, uint32_t rank))
{
    struct team_seat seats[TEAM_MAX];

    team_start(team, seats, act);
    team_await(team, seats);
}

/* ---- what members do ---- */

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
        uint32_t place = (i - 1 + team->turn * rank) % (team->size - 1);

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
