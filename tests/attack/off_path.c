/*
 * off_path.c: a stranger who sees no packet of a link between two members, and sends packets in the
 * name of one of them. The harm that this attack looks for: bytes that no member has sent are taken
 * for a member's; a link ends by packets whose numbers are only guessed.
 *
 *     off_path NETWORK NETWORK NETWORK      (apart.sh: two members, and the stranger)
 *
 * The stranger knows addresses and ports, which is more than such a stranger can know. He guesses
 * sequence numbers, or is told the exact ones, as if he had sent all 2^32. Exact numbers end the
 * link: no protocol above TCP can prevent that. They must end it with an error, before a byte of
 * his is believed. ATTACK=large: 400 links and 20,000 guesses for each.
 */
#include "base/mem.h"
#include "base/rng.h"
#include "collectives/link/tcp_internal.h"
#include "os/clock.h"
#include "tests/lib/link_team.h"

#include <arpa/inet.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define BYTES      ((size_t)150 * 1024) /* of each message */
#define ARRIVES_MS 60000                /* an exact packet has ended or filled a link by then */
#define IP_BYTES   20
#define TCP_BYTES  20
#define DATA_BYTES 64
#define FLAG_SYN   2
#define FLAG_RST   4
#define FLAG_ACK   16
#define REPAIR_OFF (-1) /* TCP_REPAIR: off, without a word to the other side */

enum guess { GUESS_RST, GUESS_SYN, GUESS_DATA, EXACT_RST, EXACT_DATA, AHEAD_DATA, GUESS_COUNT };
static const char *const guess_names[] = { "guessed resets", "guessed SYNs",
                                           "guessed data",   "exact reset",
                                           "exact data",     "data ahead of the exact number" };

struct packet { /* in the name of rank 0, to rank 1 */
    struct in_addr from, to;
    uint16_t from_port, to_port;
    uint32_t seq, ack;
    uint8_t flags;
    size_t data;
};

struct trial {
    struct team team;
    uint64_t first; /* tag of the exchange */
    bool wrong[2];  /* bytes came that were not sent */
};

static void must(bool holds, const char *what)
{
    if (holds)
        return;
    perror(what);
    exit(2);
}

/* ---- the stranger ---- */

static uint32_t sum_add(uint32_t sum, const uint8_t *bytes, size_t length)
{
    for (size_t i = 0; i + 1 < length; i += 2)
        sum += (uint32_t)(bytes[i] << 8 | bytes[i + 1]);
    return sum;
}

static void put(uint8_t *at, size_t size, uint32_t value)
{
    for (size_t i = 0; i < size; i++)
        at[i] = (uint8_t)(value >> 8 * (size - 1 - i));
}

/* The kernel fills in the checksum of the IP header, its length and its number. */
static void packet_send(int raw, const struct packet *p)
{
    uint8_t bytes[IP_BYTES + TCP_BYTES + DATA_BYTES] = { 0x45 }, *tcp = bytes + IP_BYTES;
    struct sockaddr_in to = { .sin_family = AF_INET, .sin_addr = p->to };
    uint32_t sum;

    bytes[8] = 64;
    bytes[9] = IPPROTO_TCP;
    memcpy(bytes + 12, &p->from, 4);
    memcpy(bytes + 16, &p->to, 4);
    put(tcp, 2, p->from_port);
    put(tcp + 2, 2, p->to_port);
    put(tcp + 4, 4, p->seq);
    put(tcp + 8, 4, p->ack);
    tcp[12] = TCP_BYTES / 4 << 4;
    tcp[13] = p->flags;
    put(tcp + 14, 2, 512);
    memset(tcp + TCP_BYTES, 0x5a, p->data);
    sum = sum_add(IPPROTO_TCP + TCP_BYTES + (uint32_t)p->data, bytes + 12, 8);
    sum = sum_add(sum, tcp, TCP_BYTES + p->data);
    while (sum >> 16)
        sum = (sum & 0xffff) + (sum >> 16);
    put(tcp + 16, 2, ~sum & 0xffff);
    must(sendto(raw, bytes, IP_BYTES + TCP_BYTES + p->data, 0, (struct sockaddr *)&to, sizeof(to)) >
             0,
         "a packet");
}

static uint32_t queue_number(int fd, int queue)
{
    uint32_t number = 0;
    socklen_t length = sizeof(number);

    must(!setsockopt(fd, IPPROTO_TCP, TCP_REPAIR_QUEUE, &queue, sizeof(queue)) &&
             !getsockopt(fd, IPPROTO_TCP, TCP_QUEUE_SEQ, &number, &length),
         "the numbers of a connection");
    return number;
}

/* Sets the packet of a stranger who has guessed all numbers. false: this kernel does not tell
 * them. */
static bool packet_exact(int fd, struct packet *ret_packet)
{
    struct sockaddr_in from = { .sin_family = AF_INET }, to = from;
    socklen_t length = sizeof(from);
    int on = 1, off = REPAIR_OFF;

    must(!getpeername(fd, (struct sockaddr *)&from, &length) &&
             !getsockname(fd, (struct sockaddr *)&to, &length),
         "the addresses");
    if (setsockopt(fd, IPPROTO_TCP, TCP_REPAIR, &on, sizeof(on)))
        return false;
    *ret_packet = (struct packet){ .from = from.sin_addr,
                                   .to = to.sin_addr,
                                   .from_port = ntohs(from.sin_port),
                                   .to_port = ntohs(to.sin_port),
                                   .seq = queue_number(fd, TCP_RECV_QUEUE),
                                   .ack = queue_number(fd, TCP_SEND_QUEUE) };
    return !setsockopt(fd, IPPROTO_TCP, TCP_REPAIR, &off, sizeof(off));
}

/* Sends the packets of this kind. Those with exact numbers have arrived when it returns. */
static void stranger_act(int raw, enum guess guess, unsigned guesses, int victim,
                         struct packet exact, struct rng *rng)
{
    static const uint8_t flags[] = { FLAG_RST, FLAG_SYN, FLAG_ACK, FLAG_RST, FLAG_ACK, FLAG_ACK };
    struct pollfd arrived = { .fd = victim, .events = POLLIN };
    bool has_data = guess == GUESS_DATA || guess >= EXACT_DATA;
    struct packet packet = exact;

    packet.flags = flags[guess];
    packet.data = has_data ? DATA_BYTES : 0;
    if (guess < EXACT_RST) {
        for (unsigned i = 0; i < guesses; i++) {
            packet.seq = exact.seq + 1 + (uint32_t)rng_below(rng, UINT32_MAX - 1);
            /* half of them acknowledge what is acknowledged already, which kernels believe */
            packet.ack = i % 2 ? exact.ack : (uint32_t)rng_next(rng);
            packet_send(raw, &packet);
        }
        return;
    }
    packet.seq += guess == AHEAD_DATA ? 1 + (uint32_t)rng_below(rng, 20000) : 0;
    packet_send(raw, &packet);
    if (guess != AHEAD_DATA)
        must(poll(&arrived, 1, ARRIVES_MS) == 1, "a packet of the stranger does not arrive");
}

/* ---- the members ---- */

/* Sends a message to the other member and receives one. */
static void act_exchange(struct team *team, uint32_t rank)
{
    struct trial *trial = (struct trial *)(void *)team;
    uint8_t *out = mem_alloc(BYTES), *in = mem_zalloc(BYTES);
    struct link_request *send, *receive;
    struct link *link = team->links[rank];
    int rc;

    must(out && in, "memory");
    if (trial->first)
        team_act_connect(team, rank);
    link_fill(out, BYTES, rank, 1 - rank);
    rc = team->rc[rank];
    if (!rc)
        rc = link_post_receive(link, 1 - rank, trial->first, in, BYTES, &receive);
    if (!rc && (rc = link_post_send(link, 1 - rank, trial->first, out, BYTES, &send)))
        link->ops->drop(link, receive);
    if (!rc && (rc = link_await(link, receive)))
        link->ops->drop(link, send);
    else if (!rc)
        rc = link_await(link, send);
    trial->wrong[rank] = !rc && !link_is_filled(in, BYTES, 1 - rank, rank);
    if (rc) /* as collectives do: the end of a round cancels the links, and the peers notice */
        link->ops->cancel(link);
    team->rc[rank] = rc;
    mem_free(out);
    mem_free(in);
}

/* ---- trials ---- */

/* Returns NULL, or the harm that was done. */
static const char *judge(const struct trial *trial, enum guess guess)
{
    const int *rc = trial->team.rc;

    if (trial->wrong[0] || trial->wrong[1])
        return "a member took bytes that the other has not sent";
    if ((guess == GUESS_RST || guess == GUESS_SYN) && (rc[0] || rc[1]))
        return "guesses have ended the link";
    if ((guess == EXACT_RST || guess == EXACT_DATA) && !rc[1])
        return "it was not noticed";
    return NULL;
}

static bool try_once(struct trial *trial, const struct team_networks *networks, int raw,
                     enum guess guess, unsigned guesses, struct rng *rng)
{
    enum link_security mode =
        rng_below(rng, 2) ? LINK_SECURITY_ENCRYPTED : LINK_SECURITY_AUTHENTICATED;
    struct team *team = &trial->team;
    struct packet exact;
    const char *harm;
    int victim;

    must(!team_open_apart(team, mode, networks, 2), "links");
    trial->first = 1;
    team_run(team, act_exchange);
    must(!team->rc[0] && !team->rc[1] && !trial->wrong[0] && !trial->wrong[1], "peace");
    victim = tcp_find(tcp_of(team->links[1]), 0)->fd;
    if (!packet_exact(victim, &exact)) {
        puts("skipped: this kernel does not tell the numbers of a connection (TCP_REPAIR)");
        exit(77);
    }
    stranger_act(raw, guess, guesses, victim, exact, rng);
    trial->first = 0;
    team_run(team, act_exchange);
    harm = judge(trial, guess);
    if (harm)
        fprintf(stderr, "off_path: %s, %s: %s (codes %d, %d)\n", guess_names[guess],
                mode == LINK_SECURITY_ENCRYPTED ? "encrypted" : "authenticated", harm, team->rc[0],
                team->rc[1]);
    team_close(team);
    return !harm;
}

int main(int argc, char **argv)
{
    static struct team_networks networks = {
        .hosts = {"10.79.1.2", "10.79.2.2"}
    };
    static struct trial the_trial;
    const char *size = getenv("ATTACK"), *seed = getenv("ATTACK_SEED");
    bool large = size && !strcmp(size, "large");
    unsigned links = large ? 400 : 24, guesses = large ? 20000 : 2000, harms = 0, ended = 0;
    struct rng rng;
    int raw;

    must(argc == 4, "usage: off_path NETWORK NETWORK NETWORK");
    rng_seed(&rng, seed ? strtoull(seed, NULL, 0) : 1);
    team_open_networks(&networks, argv + 1, 3);
    must(!setns(networks.of[2], CLONE_NEWNET), "setns");
    raw = socket(AF_INET, SOCK_RAW | SOCK_CLOEXEC, IPPROTO_RAW);
    must(raw >= 0 && !setns(networks.home, CLONE_NEWNET), "a raw socket");
    for (unsigned i = 0; i < links && harms < 5; i++) {
        harms +=
            !try_once(&the_trial, &networks, raw, (enum guess)(i % GUESS_COUNT), guesses, &rng);
        ended += the_trial.team.rc[1] != 0;
    }
    close(raw);
    printf("off_path: %u links, %u guesses for each of half of them; %u links ended, all with an "
           "error: %s\n",
           links, guesses, ended, harms ? "HARM" : "no byte wrong");
    return harms ? 1 : 0;
}
