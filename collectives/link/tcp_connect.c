#include "base/time.h"
#include "collectives/link/tcp_inside.h"
#include "os/clock.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/socket.h>

/* One that dials has been connected by the kernel, and speaks at once: so long it may take. */
#define STRANGER_US (5 * TIME_S)

/* Where strangers have taken all places none keeps its own for longer, so that those who have
 * something to say get their turn, however many others say nothing. */
#define CROWDED_US (50 * TIME_MS)

/* One that is cut off though it is no stranger dials again. */
#define DIALS_MAX 5

/* ---- greetings ---- */

enum progress { BROKEN = -1, UNDER_WAY, DONE };

static enum progress progress_of(struct tcp_greets *greets, ssize_t bytes)
{
    if (bytes < 0)
        return errno == EAGAIN || errno == EINTR ? UNDER_WAY : BROKEN;
    greets->count += (size_t)bytes;
    return greets->count == TCP_GREETING_BYTES ? DONE : bytes ? UNDER_WAY : BROKEN;
}

static enum progress say(struct tcp_greets *greets, int fd)
{
    return progress_of(greets, send(fd, greets->bytes + greets->count,
                                    TCP_GREETING_BYTES - greets->count, MSG_NOSIGNAL));
}

static enum progress hear(struct tcp_greets *greets, int fd)
{
    return progress_of(
        greets, recv(fd, greets->bytes + greets->count, TCP_GREETING_BYTES - greets->count, 0));
}

static void prepare_to_say(const struct tcp_link *link, struct tcp_peer *peer)
{
    struct tcp_greeting greeting = { .rank = link->rank };

    memcpy(greeting.token, peer->told.token, TCP_TOKEN_BYTES);
    tcp_greeting_write(&greeting, peer->out.bytes);
    peer->out.count = 0;
    peer->in.count = 0;
}

static bool is_from(const struct tcp_greets *in, const struct tcp_peer *peer)
{
    struct tcp_greeting greeting;

    return !tcp_greeting_read(in->bytes, &greeting) && greeting.rank == peer->rank &&
           tcp_token_is(greeting.token, peer->token);
}

/* ---- who dials: the lower rank of the two ---- */

static bool dials(const struct tcp_link *link, const struct tcp_peer *peer)
{
    return link->rank < peer->rank;
}

/* Its link listens as long as it lives and is not connected: a refusal is final. */
static void dial(struct tcp_link *link, struct tcp_peer *peer)
{
    int fd = peer->dials++ < DIALS_MAX ? tcp_dial(&peer->told) : -1;

    tcp_replace(link, &peer->fd, fd);
    peer->stage = fd < 0 ? TCP_GONE : TCP_DIALS;
    prepare_to_say(link, peer);
}

static void go_on_dialling(struct tcp_link *link, struct tcp_peer *peer)
{
    enum progress progress;
    int fault;

    if (peer->stage == TCP_DIALS) {
        fault = tcp_fault(peer->fd);
        if (fault == ECONNREFUSED)
            peer->stage = TCP_GONE;
        else if (fault)
            dial(link, peer);
        else
            peer->stage = TCP_ASKS;
    }
    if (peer->stage != TCP_ASKS)
        return;
    progress = peer->out.count < TCP_GREETING_BYTES ? say(&peer->out, peer->fd) : DONE;
    if (progress == DONE)
        progress = hear(&peer->in, peer->fd);
    if (progress == DONE && is_from(&peer->in, peer))
        peer->stage = TCP_READY;
    else if (progress != UNDER_WAY)
        dial(link, peer);
}

/* ---- who is dialled ---- */

/* Once it is known what to say. */
static void answer(struct tcp_peer *peer)
{
    enum progress progress = say(&peer->out, peer->fd);

    if (progress != UNDER_WAY)
        peer->stage = progress == DONE ? TCP_READY : TCP_GONE;
}

static void welcome(struct tcp_link *link, struct tcp_stranger *stranger)
{
    for (size_t i = 0; i < link->peer_count; i++) {
        struct tcp_peer *peer = &link->peers[i];

        if (peer->stage != TCP_NEW || dials(link, peer) || !is_from(&stranger->in, peer))
            continue;
        tcp_move(link, &peer->fd, &stranger->fd);
        peer->stage = TCP_ANSWERS;
        if (peer->begun)
            answer(peer);
        return;
    }
    tcp_replace(link, &stranger->fd, -1);
}

static void listen_to(struct tcp_link *link, struct tcp_stranger *stranger)
{
    enum progress progress = hear(&stranger->in, stranger->fd);

    if (progress == DONE)
        welcome(link, stranger);
    else if (progress == BROKEN)
        tcp_replace(link, &stranger->fd, -1);
}

static struct tcp_stranger *free_place(struct tcp_link *link)
{
    for (size_t i = 0; i < TCP_STRANGERS_MAX; i++) {
        if (link->strangers[i].fd < 0)
            return &link->strangers[i];
    }
    return NULL;
}

/* HVD_E_LIMIT: no descriptor is left. */
static int accept_all(struct tcp_link *link)
{
    struct tcp_stranger *stranger;

    while ((stranger = free_place(link))) {
        int fd = tcp_accept(link->listener);

        if (fd < 0)
            return errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM
                       ? HVD_E_LIMIT
                       : 0;
        tcp_replace(link, &stranger->fd, fd);
        stranger->since_us = clock_now_us();
        stranger->in.count = 0;
        listen_to(link, stranger);
    }
    return 0;
}

/* From its coming on. */
static int64_t patience_us(struct tcp_link *link)
{
    return free_place(link) ? STRANGER_US : CROWDED_US;
}

static void part_from_slow_ones(struct tcp_link *link, int64_t now_us)
{
    int64_t patience = patience_us(link);

    for (size_t i = 0; i < TCP_STRANGERS_MAX; i++) {
        if (link->strangers[i].fd >= 0 && now_us >= link->strangers[i].since_us + patience)
            tcp_replace(link, &link->strangers[i].fd, -1);
    }
}

/* ---- all of them ---- */

int tcp_link_connect(struct link *base, uint32_t rank, const uint8_t *bytes, size_t length,
                     struct hvd_err *err)
{
    struct tcp_link *link = tcp_of(base);
    struct tcp_peer *peer = tcp_find(link, rank);

    if (atomic_load(&link->cancelled))
        return HVD_E_REVOKED;
    if (tcp_address_read(bytes, length, &peer->told))
        return err_set(err, HVD_E_PROTO, "rank %u says an address of no known kind", rank);
    peer->begun = true;
    if (dials(link, peer))
        dial(link, peer);
    else
        prepare_to_say(link, peer);
    return 0;
}

static short wanted(const struct tcp_peer *peer)
{
    switch (peer->stage) {
    case TCP_DIALS: return POLLOUT;
    case TCP_ASKS: return peer->out.count < TCP_GREETING_BYTES ? POLLOUT : POLLIN;
    case TCP_ANSWERS: return peer->begun ? POLLOUT : 0;
    case TCP_NEW:
    case TCP_READY:
    case TCP_GONE: break;
    }
    return 0;
}

/* ret_at: where it is then. Nobody is looked at of whom nothing is wanted, for poll would go on
 * saying that it has hung up; and no place is left empty, for poll takes only as many as this
 * process may have descriptors. */
static void add_polled(struct tcp_link *link, nfds_t *count, int fd, short events, size_t *ret_at)
{
    *ret_at = 0;
    if (fd < 0 || !events)
        return;
    *ret_at = *count;
    link->polled[(*count)++] = (struct pollfd){ .fd = fd, .events = events };
}

static nfds_t fill_polled(struct tcp_link *link)
{
    nfds_t count = 0;
    size_t first;

    add_polled(link, &count, link->wake, POLLIN, &first);
    for (size_t i = 0; i < link->peer_count; i++) {
        struct tcp_peer *peer = &link->peers[i];

        add_polled(link, &count, peer->fd, wanted(peer), &peer->polled);
    }
    for (size_t i = 0; i < TCP_STRANGERS_MAX; i++) {
        struct tcp_stranger *stranger = &link->strangers[i];

        add_polled(link, &count, stranger->fd, POLLIN, &stranger->polled);
    }
    add_polled(link, &count, link->listener, free_place(link) ? POLLIN : 0, &link->listener_polled);
    return count;
}

static bool is_ready(const struct tcp_link *link, size_t at)
{
    return at && link->polled[at].revents;
}

static int serve(struct tcp_link *link)
{
    for (size_t i = 0; i < link->peer_count; i++) {
        if (!is_ready(link, link->peers[i].polled))
            continue;
        if (link->peers[i].stage == TCP_ANSWERS)
            answer(&link->peers[i]);
        else
            go_on_dialling(link, &link->peers[i]);
    }
    for (size_t i = 0; i < TCP_STRANGERS_MAX; i++) {
        if (is_ready(link, link->strangers[i].polled))
            listen_to(link, &link->strangers[i]);
    }
    return is_ready(link, link->listener_polled) ? accept_all(link) : 0;
}

static int poll_ms(struct tcp_link *link, int64_t now_us, int64_t deadline_us)
{
    int64_t patience = patience_us(link), until_us = deadline_us, wait_ms;

    for (size_t i = 0; i < TCP_STRANGERS_MAX; i++) {
        const struct tcp_stranger *stranger = &link->strangers[i];

        if (stranger->fd >= 0 && stranger->since_us + patience < until_us)
            until_us = stranger->since_us + patience;
    }
    wait_ms = until_us > now_us ? (until_us - now_us + TIME_MS - 1) / TIME_MS : 0;
    return wait_ms < INT_MAX ? (int)wait_ms : INT_MAX;
}

/* One that is gone first, then any that is not there yet. */
static const struct tcp_peer *find_missing(const struct tcp_link *link)
{
    const struct tcp_peer *missing = NULL;

    for (size_t i = 0; i < link->peer_count; i++) {
        if (link->peers[i].stage == TCP_GONE)
            return &link->peers[i];
        if (link->peers[i].stage != TCP_READY && !missing)
            missing = &link->peers[i];
    }
    return missing;
}

static void stop_listening(struct tcp_link *link)
{
    for (size_t i = 0; i < TCP_STRANGERS_MAX; i++)
        tcp_replace(link, &link->strangers[i].fd, -1);
    tcp_replace(link, &link->listener, -1);
}

int tcp_link_connected(struct link *base, int64_t deadline_us, uint32_t *ret_rank,
                       struct hvd_err *err)
{
    struct tcp_link *link = tcp_of(base);
    const struct tcp_peer *missing;
    bool late = false;
    int64_t now_us;
    int rc = 0;

    while (!atomic_load(&link->cancelled)) {
        missing = find_missing(link);
        if (!missing) {
            stop_listening(link);
            return 0;
        }
        *ret_rank = missing->rank;
        if (rc)
            return err_set(err, HVD_E_LOST,
                           "no descriptor is left for its connection; raise the limit (ulimit -n)");
        if (missing->stage == TCP_GONE)
            return err_set(err, HVD_E_LOST, "its connection broke");
        if (late)
            return err_set(err, HVD_E_TIMEOUT, "its connection was not made in time");
        now_us = clock_now_us();
        late = now_us >= deadline_us;
        part_from_slow_ones(link, now_us);
        if (poll(link->polled, fill_polled(link), poll_ms(link, now_us, deadline_us)) > 0)
            rc = serve(link);
    }
    return HVD_E_REVOKED;
}
