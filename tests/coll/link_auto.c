/*
 * link_auto: two members in two network namespaces, whose link is made anew in each round with
 * --data-security auto. The first round, before anything was measured, must be authenticated. Each
 * round moves 16 MiB each way over a slow network. A later round must be encrypted: the second one,
 * unless this program was slower than the network. Such a round is not noted (tcp_speed.h), so
 * further rounds follow.
 *
 *     link_auto NAMESPACE NAMESPACE      (10.79.1.2 and 10.79.2.2; tests/integration/link_auto.sh)
 */
#include "base/mem.h"
#include "collectives/link/tcp_internal.h"
#include "tests/lib/link_team.h"

#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define BYTES      (16 * MIB)
#define ROUNDS_MAX 60 /* a machine is not so busy in so many rounds */

static const char *const hosts[] = { "10.79.1.2", "10.79.2.2" };
static int namespaces[2];

static void must(bool holds, const char *what)
{
    if (holds)
        return;
    perror(what);
    exit(2);
}

/* Sockets of this thread are made in the namespace of this member from now on. */
static void enter(uint32_t rank)
{
    must(!setns(namespaces[rank], CLONE_NEWNET), "setns");
}

static void act_exchange(struct team *team, uint32_t rank)
{
    uint8_t *out = mem_alloc(BYTES), *in = mem_alloc(BYTES);
    struct link_request *send, *receive;

    must(out && in, "memory");
    enter(rank);
    link_fill(out, BYTES, rank, 1 - rank);
    team_act_connect(team, rank);
    must(!team->rc[rank], "the link");
    must(!link_post_receive(team->links[rank], 1 - rank, 1, in, BYTES, &receive) &&
             !link_post_send(team->links[rank], 1 - rank, 1, out, BYTES, &send) &&
             !link_await(team->links[rank], receive) && !link_await(team->links[rank], send),
         "16 MiB");
    must(link_is_filled(in, BYTES, 1 - rank, rank), "the bytes of the peer");
    mem_free(out);
    mem_free(in);
}

/* Makes the link of each member for a round. */
static void round_begin(struct team *team, uint64_t round)
{
    team->round.round = round;
    for (uint32_t rank = 0; rank < 2; rank++) {
        const uint32_t peer = 1 - rank;
        const struct link_spec spec = { .round = &team->round,
                                        .reaper = team->reaper,
                                        .rank = rank,
                                        .size = 2,
                                        .peers = &peer,
                                        .peer_count = 1 };
        struct team_address *told = &team->told[rank][peer];

        enter(rank);
        must(!link_create(team->devices[rank], &spec, &team->links[rank], NULL) &&
                 !team->links[rank]->ops->address(team->links[rank], peer, told->bytes,
                                                  &told->length, NULL),
             "a link");
    }
}

/* Ends the round. Returns how its messages have travelled; both members agree. */
static enum seal_mode round_end(struct team *team)
{
    enum seal_mode modes[2];

    for (uint32_t rank = 0; rank < 2; rank++)
        modes[rank] = tcp_find(tcp_of(team->links[rank]), 1 - rank)->mode;
    for (uint32_t rank = 0; rank < 2; rank++) {
        team->links[rank]->ops->free(team->links[rank]);
        team->links[rank] = NULL;
    }
    must(modes[0] == modes[1], "both ends");
    return modes[0];
}

int main(int argc, char **argv)
{
    static const char *const names[] = { "in clear", "authenticated", "encrypted" };
    static struct team team;
    enum seal_mode first = SEAL_PLAIN, mode = SEAL_PLAIN;

    must(argc == 3, "usage: link_auto NAMESPACE NAMESPACE");
    must(!team_open_secured(&team, LINK_SECURITY_AUTO, 2), "members");
    for (uint32_t rank = 0; rank < 2; rank++) {
        namespaces[rank] = open(argv[1 + rank], O_RDONLY | O_CLOEXEC);
        must(namespaces[rank] >= 0, argv[1 + rank]);
        /* in place of the link and the device on the loopback */
        team.links[rank]->ops->free(team.links[rank]);
        team.links[rank] = NULL;
        link_device_close(team.devices[rank]);
        enter(rank);
        must(!link_device_open(LINK_TCP, hosts[rank], &team.devices[rank], NULL), "a device");
    }
    for (uint64_t round = 1; round <= ROUNDS_MAX && mode != SEAL_ENCRYPTED; round++) {
        round_begin(&team, round);
        team_run(&team, act_exchange);
        mode = round_end(&team);
        first = round == 1 ? mode : first;
        printf("link_auto: round %u was %s\n", (unsigned)round, names[mode]);
    }
    team_close(&team);
    return first == SEAL_AUTHENTICATED && mode == SEAL_ENCRYPTED ? 0 : 1;
}
