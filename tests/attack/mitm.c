/*
 * mitm.c: a device between two members of a round changes what their link carries. The harm that
 * this attack looks for: a member gets bytes that the other has not sent and is told that all is
 * well; or a change is not noticed; or the error does not name the link.
 *
 *     rank 0 ──► proxy, which knows where records begin ──► rank 1
 *
 *     mitm                       all on the loopback
 *     mitm NETWORK NETWORK       the members in two network namespaces, 10.79.1.2 and 10.79.2.2,
 *                                the proxy on the router between them (apart.sh)
 *
 * Each trial is a new link in one of two modes, over which both members send and receive some
 * batches of messages. The proxy does one thing to one record of one direction: it changes a bit,
 * drops, repeats or swaps the record, cuts bytes out of it, puts a foreign one or one of the other
 * direction before it; or it changes a bit of the handshake, after which the members connect again
 * or not at all.
 * ATTACK=large: 10,000 trials.
 */
#include "base/mem.h"
#include "base/rng.h"
#include "collectives/link/tcp_wire.h"
#include "os/thread.h"
#include "tests/lib/link_team.h"
#include "tests/lib/loopback.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define BATCHES    3
#define MESSAGES   4 /* of a batch, in each direction */
#define BYTES_MAX  (200 * 1024)
#define BUFFER_MAX (4 * RECORD_MAX)

enum harm { CHANGE, DROP, REPEAT, SWAP, FOREIGN, REFLECT, HANDSHAKE, CUT, HARM_COUNT };
static const char *const harm_names[] = { "changed",  "dropped",   "repeated",          "swapped",
                                          "injected", "reflected", "handshake changed", "cut" };

/* One direction: what has come, and what of it is not sent on yet. */
struct flow {
    int from, to;
    size_t skip; /* bytes of the handshake that are still to come */
    uint8_t bytes[BUFFER_MAX];
    size_t length;
    size_t record; /* the number of the next one */
    uint8_t held[RECORD_MAX];
    size_t held_length; /* SWAP: the record that goes after the next one */
};

struct proxy {
    struct in_addr here, there; /* its own address, and that of rank 1 */
    int listener;
    uint16_t port; /* of rank 1's link */
    enum harm harm;
    uint32_t direction; /* 0: from rank 0 to rank 1 */
    size_t record;      /* which one */
    uint64_t seed;
    bool done; /* the harm is done */
    struct flow flows[2];
};

struct trial {
    struct team team;
    struct proxy proxy;
    size_t bytes[BATCHES][MESSAGES];
    uint8_t *in[2];
    bool wrong[2]; /* bytes came that were not sent */
    unsigned cuts; /* at most so many trials of CUT, each of which takes seconds */
};

static void must(bool holds, const char *what)
{
    if (holds)
        return;
    perror(what);
    exit(2);
}

/* ---- the device ---- */

static bool send_all(int fd, const uint8_t *bytes, size_t length)
{
    while (length) {
        ssize_t sent = send(fd, bytes, length, MSG_NOSIGNAL);

        if (sent <= 0)
            return false;
        bytes += sent;
        length -= (size_t)sent;
    }
    return true;
}

/* Sends one record on, with what the harm makes of it. */
static bool flow_pass(struct proxy *proxy, struct flow *flow, uint8_t *record, size_t length)
{
    bool harms = !proxy->done && flow == &proxy->flows[proxy->direction] &&
                 flow->record == proxy->record && proxy->harm != HANDSHAKE;
    uint8_t foreign[RECORD_HEAD_BYTES];
    size_t part, rest;

    flow->record++;
    if (flow->held_length) { /* this one goes first */
        size_t held = flow->held_length;

        flow->held_length = 0;
        return send_all(flow->to, record, length) && send_all(flow->to, flow->held, held);
    }
    if (!harms)
        return send_all(flow->to, record, length);
    proxy->done = true;
    switch (proxy->harm) {
    case CHANGE: record[proxy->seed % length] ^= (uint8_t)(1u << proxy->seed / length % 8); break;
    case DROP: return true;
    case CUT: /* the member waits for the end of the record, until signs of life have filled it */
        part = 1 + proxy->seed % (length - 1);
        rest = part + 1 + proxy->seed / length % (length - part);
        return send_all(flow->to, record, part) && send_all(flow->to, record + rest, length - rest);
    case REPEAT:
        if (!send_all(flow->to, record, length))
            return false;
        break;
    case SWAP:
        memcpy(flow->held, record, length);
        flow->held_length = length;
        return true;
    case FOREIGN:
        memset(foreign, (int)(proxy->seed % 256), sizeof(foreign));
        memset(foreign, 0, 4); /* a length that is allowed */
        return send_all(flow->to, foreign, sizeof(foreign)) && send_all(flow->to, record, length);
    case REFLECT: /* back to the member that has sent it */
        return send_all(flow->from, record, length) && send_all(flow->to, record, length);
    default: break;
    }
    return send_all(flow->to, record, length);
}

/* Takes what has come, and passes the handshake and each whole record on. */
static bool flow_take(struct proxy *proxy, struct flow *flow)
{
    ssize_t got =
        recv(flow->from, flow->bytes + flow->length, sizeof(flow->bytes) - flow->length, 0);
    size_t at = 0;

    if (got <= 0)
        return false;
    flow->length += (size_t)got;
    if (flow->skip) {
        size_t part = flow->length < flow->skip ? flow->length : flow->skip;

        if (!proxy->done && proxy->harm == HANDSHAKE && flow == &proxy->flows[proxy->direction]) {
            flow->bytes[proxy->seed % part] ^= (uint8_t)(1u << proxy->seed / part % 8);
            proxy->done = true;
        }
        if (!send_all(flow->to, flow->bytes, part))
            return false;
        flow->skip -= part;
        at = part;
    }
    while (flow->length - at >= RECORD_HEAD_BYTES) {
        size_t data = (size_t)wire_get(flow->bytes + at, 4);
        size_t whole = RECORD_HEAD_BYTES + data + (data ? RECORD_TAG_BYTES : 0);

        must(data <= RECORD_DATA_BYTES, "the proxy does not find the records");
        if (flow->length - at < whole)
            break;
        if (!flow_pass(proxy, flow, flow->bytes + at, whole))
            return false;
        at += whole;
    }
    flow->length -= at;
    memmove(flow->bytes, flow->bytes + at, flow->length);
    return true;
}

/* Passes one connection on, until it ends. */
static void proxy_serve(struct proxy *proxy, int dialler)
{
    struct sockaddr_in at = { .sin_family = AF_INET, .sin_port = htons(proxy->port) };
    int dialled = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct pollfd polled[2];
    bool open;

    at.sin_addr = proxy->there;
    must(dialled >= 0, "socket");
    open = !connect(dialled, (struct sockaddr *)&at, sizeof(at));
    for (int i = 0; i < 2; i++) {
        proxy->flows[i].from = i ? dialled : dialler;
        proxy->flows[i].to = i ? dialler : dialled;
        proxy->flows[i].skip = i ? TCP_CHALLENGE_BYTES + TCP_ANSWER_BYTES : TCP_GREETING_BYTES;
        proxy->flows[i].length = proxy->flows[i].record = proxy->flows[i].held_length = 0;
        polled[i] = (struct pollfd){ .fd = proxy->flows[i].from, .events = POLLIN };
    }
    while (open && poll(polled, 2, -1) > 0) {
        for (int i = 0; i < 2 && open; i++) {
            if (polled[i].revents)
                open = flow_take(proxy, &proxy->flows[i]);
        }
    }
    close(dialler);
    close(dialled);
}

static void *proxy_run(void *arg)
{
    struct proxy *proxy = arg;
    int fd;

    while ((fd = accept(proxy->listener, NULL, NULL)) >= 0)
        proxy_serve(proxy, fd);
    return NULL;
}

/* Puts the proxy's address in place of rank 1's. */
static void proxy_open(struct proxy *proxy, struct team *team)
{
    struct sockaddr_in at = { .sin_family = AF_INET };
    socklen_t length = sizeof(at);
    struct tcp_address address;

    at.sin_addr = proxy->here;
    proxy->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    must(proxy->listener >= 0 && !bind(proxy->listener, (struct sockaddr *)&at, length) &&
             !listen(proxy->listener, 16) &&
             !getsockname(proxy->listener, (struct sockaddr *)&at, &length) &&
             !tcp_address_read(team->told[1][0].bytes, team->told[1][0].length, &address),
         "the proxy's port");
    proxy->port = address.at.port;
    address.at.port = ntohs(at.sin_port);
    memcpy(address.at.ip, &proxy->here, sizeof(proxy->here));
    tcp_address_write(&address, team->told[1][0].bytes);
}

/* ---- the members ---- */

static uint8_t byte_of(uint32_t from, int batch, int message, size_t at)
{
    return (uint8_t)(from * 101 + (unsigned)batch * 37 + (unsigned)message * 11 + at + at / 251);
}

/* Sends and receives a batch; true in *ret_wrong: bytes came that the other has not sent. */
static int exchange(struct trial *trial, uint32_t rank, int batch, bool *ret_wrong)
{
    struct link *link = trial->team.links[rank];
    struct link_request *sends[MESSAGES], *receives[MESSAGES];
    int rc = 0, begun = 0, waited = 0;
    uint8_t *out = mem_alloc(MESSAGES * (size_t)BYTES_MAX), *in = trial->in[rank];

    must(out != NULL, "memory");
    for (int i = 0; i < MESSAGES && !rc; i++) {
        uint8_t *bytes = out + (size_t)i * BYTES_MAX;

        for (size_t k = 0; k < trial->bytes[batch][i]; k++)
            bytes[k] = byte_of(rank, batch, i, k);
        rc = link_post_receive(link, 1 - rank, (uint64_t)i, in + (size_t)i * BYTES_MAX,
                               trial->bytes[batch][i], &receives[i]);
        if (!rc && (rc = link_post_send(link, 1 - rank, (uint64_t)i, bytes, trial->bytes[batch][i],
                                        &sends[i])))
            link->ops->drop(link, receives[i]);
        begun += !rc;
    }
    for (; waited < begun && !rc; waited++) {
        rc = link_await(link, sends[waited]);
        if (rc) {
            link->ops->drop(link, receives[waited]);
            continue;
        }
        rc = link_await(link, receives[waited]);
        for (size_t k = 0; !rc && k < trial->bytes[batch][waited]; k++)
            *ret_wrong |= in[(size_t)waited * BYTES_MAX + k] != byte_of(1 - rank, batch, waited, k);
    }
    for (; waited < begun; waited++) {
        link->ops->drop(link, sends[waited]);
        link->ops->drop(link, receives[waited]);
    }
    mem_free(out);
    return rc;
}

static void act_trial(struct team *team, uint32_t rank)
{
    struct trial *trial = (struct trial *)(void *)team;

    team_act_connect(team, rank);
    for (int batch = 0; batch < BATCHES && !team->rc[rank]; batch++)
        team->rc[rank] = exchange(trial, rank, batch, &trial->wrong[rank]);
    /* as collectives do: the end of a round cancels the links, and the peers notice */
    if (team->rc[rank])
        team->links[rank]->ops->cancel(team->links[rank]);
}

/* ---- trials ---- */

/* Returns NULL, or the harm that was done. */
static const char *judge(struct trial *trial, bool *ret_noticed)
{
    struct team *team = &trial->team;
    uint32_t victim =
        trial->proxy.harm == REFLECT ? trial->proxy.direction : 1 - trial->proxy.direction;
    char why[600] = "", names[2][40];

    if (trial->wrong[0] || trial->wrong[1])
        return "a member took bytes that the other has not sent";
    if (!trial->proxy.done)
        return "the proxy did not do what it should";
    if (trial->proxy.harm == HANDSHAKE) {
        *ret_noticed = true; /* the members connected again, or not at all; nothing was believed */
        return NULL;
    }
    *ret_noticed = team->rc[victim] != 0;
    if (!*ret_noticed)
        return "it was not noticed";
    if (!team->links[victim]->ops->why(team->links[victim], 1 - victim, why, sizeof(why)))
        return "the error does not say that bytes were changed";
    /* between networks the victim knows the other member by the proxy's address there */
    for (unsigned rank = 0; rank < 2; rank++)
        snprintf(names[rank], sizeof(names[rank]),
                 team->networks ? "rank %u (10.79.%u.%u:" : "rank %u (127.", rank, victim + 1,
                 rank == victim ? 2 : 1);
    if (!strstr(why, names[0]) || !strstr(why, names[1]))
        return "the error does not name the link";
    return NULL;
}

static bool try_once(struct trial *trial, const struct team_networks *networks, struct rng *rng,
                     unsigned counts[HARM_COUNT])
{
    struct proxy *proxy = &trial->proxy;
    bool encrypted = rng_below(rng, 2), noticed = false;
    const char *harm;
    pthread_t thread;

    must(!team_open_apart(&trial->team,
                          encrypted ? LINK_SECURITY_ENCRYPTED : LINK_SECURITY_AUTHENTICATED,
                          networks, 2),
         "links");
    trial->wrong[0] = trial->wrong[1] = false;
    proxy->harm = (enum harm)rng_below(rng, HARM_COUNT);
    if (proxy->harm == CUT && counts[CUT] == trial->cuts)
        proxy->harm = CHANGE;
    proxy->direction = (uint32_t)rng_below(rng, 2);
    proxy->seed = rng_next(rng) >> 8;
    proxy->done = false;
    /* there is at least one record for each batch, and one after it */
    proxy->record = rng_below(rng, BATCHES - 1);
    for (int i = 0; i < BATCHES * MESSAGES; i++)
        trial->bytes[i / MESSAGES][i % MESSAGES] =
            rng_below(rng, 4) ? rng_below(rng, 2000) : 70000 + rng_below(rng, BYTES_MAX - 70000);
    proxy_open(proxy, &trial->team);
    must(!thread_start(&thread, 0, proxy_run, proxy), "a thread");
    team_run(&trial->team, act_trial);
    shutdown(proxy->listener, SHUT_RDWR);
    harm = judge(trial, &noticed);
    team_close(&trial->team);
    pthread_join(thread, NULL);
    close(proxy->listener);
    counts[proxy->harm] += noticed;
    if (harm)
        fprintf(stderr, "mitm: %s, %s, record %zu from rank %u: %s (codes %d, %d)\n",
                harm_names[proxy->harm], encrypted ? "encrypted" : "authenticated", proxy->record,
                proxy->direction, harm, trial->team.rc[0], trial->team.rc[1]);
    return !harm;
}

int main(int argc, char **argv)
{
    static struct team_networks networks = {
        .hosts = {"10.79.1.2", "10.79.2.2"}
    };
    static struct trial the_trial;
    const char *size = getenv("ATTACK"), *seed = getenv("ATTACK_SEED");
    unsigned trials = size && !strcmp(size, "large") ? 10000 : 300, counts[HARM_COUNT] = { 0 };
    struct rng rng;
    unsigned harms = 0;

    the_trial.cuts = trials > 1000 ? 40 : 3;
    rng_seed(&rng, seed ? strtoull(seed, NULL, 0) : 1);
    must(argc == 1 || argc == 3, "usage: mitm [NETWORK NETWORK]");
    if (argc == 3)
        team_open_networks(&networks, argv + 1, 2);
    (void)inet_pton(AF_INET, argc == 3 ? "10.79.1.1" : loopback_own(), &the_trial.proxy.here);
    (void)inet_pton(AF_INET, argc == 3 ? "10.79.2.2" : loopback_own(), &the_trial.proxy.there);
    for (int i = 0; i < 2; i++) {
        the_trial.in[i] = mem_alloc(MESSAGES * (size_t)BYTES_MAX);
        must(the_trial.in[i] != NULL, "memory");
    }
    for (unsigned i = 0; i < trials && harms < 5; i++)
        harms += !try_once(&the_trial, argc == 3 ? &networks : NULL, &rng, counts);
    mem_free(the_trial.in[0]);
    mem_free(the_trial.in[1]);
    printf("mitm: %u links %s were attacked:", trials,
           argc == 3 ? "between two networks" : "on the loopback");
    for (int i = 0; i < HARM_COUNT; i++)
        printf("%s %u %s", i ? "," : "", counts[i], harm_names[i]);
    printf(": %s\n", harms ? "HARM" : "each noticed, no byte wrong");
    return harms ? 1 : 0;
}
