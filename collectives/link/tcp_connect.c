/*
 * tcp_connect.c: the handshake of a TCP link with each of its peers: the operations connect and
 * connected. Of two peers the one with the lower rank dials. A connection belongs to a peer only
 * when its greeting proves that peer (tcp_proof.h).
 *
 * Any process may dial us. A connection that has not proved its peer is a stranger. A link keeps
 * few strangers, and each for a short time only. So strangers cannot keep a peer out.
 */
#include "base/time.h"
#include "collectives/link/security.h"
#include "collectives/link/tcp_internal.h"
#include "collectives/link/tcp_sealed.h"
#include "collectives/link/tcp_speed.h"
#include "os/clock.h"
#include "os/source.h"

#include <errno.h>
#include <limits.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>

/* A stranger whose greeting is not complete after this time is closed; a real peer greets at once.
 */
#define STRANGER_US      (5 * TIME_S)

#define ACCEPTED_AT_ONCE 64 /* so many connections are accepted before the peers get their turn */

/* A link is starved while no file descriptor is free: it accepts and dials nothing for REST_US, and
 * then tries again. If no descriptor is free for STARVED_US, the peer counts as not connected. */
#define REST_US    (50 * TIME_MS)
#define STARVED_US TIME_S

/* the most dials to one peer; the peer is dialled again when a connection breaks in the handshake
 */
#define DIALS_MAX 8

#define UNPROVED                                                                         \
    "the answer at the address of this rank has no proof that it comes from this rank; " \
    "look for a device that changes what these hosts send"

/* The kernel can probe a connection without traffic, and end it when the peer's host does not
 * answer. A program without a driver needs these probes to notice that a host has died. In a job
 * with a driver the lease of the host's agent ends first, so the long times here cost nothing,
 * and a short failure of the network ends no connection. For bytes that were sent and not
 * acknowledged there are no probes: tcp_stream.c looks at them. TCP_USER_TIMEOUT is not used,
 * because it also ends a connection to a live peer that has read nothing for that time
 * (measured, Linux 6.18); a member may compute for longer than that. */
#define PROBE_AFTER_S 30
#define PROBE_EVERY_S 10
#define PROBES        3

/* Asks the kernel to probe a connection that carries nothing, so that a dead host is noticed (see
 * PROBE_AFTER_S). A socket that refuses an option only lacks the probes. */
static void probe_when_still(int fd)
{
    static const struct {
        int level, option, value;
    } options[] = {
        {SOL_SOCKET,   SO_KEEPALIVE,  1            },
        { IPPROTO_TCP, TCP_KEEPIDLE,  PROBE_AFTER_S},
        { IPPROTO_TCP, TCP_KEEPINTVL, PROBE_EVERY_S},
        { IPPROTO_TCP, TCP_KEEPCNT,   PROBES       },
    };

    for (size_t i = 0; i < ARRAY_SIZE(options); i++)
        (void)setsockopt(fd, options[i].level, options[i].option, &options[i].value,
                         sizeof(options[i].value));
}

/* How far a message of the handshake has come: wholly sent or received (DONE), not yet, or never.
 */
enum progress { BROKEN = -1, UNDER_WAY, DONE };

/* Prepares for a message of `length` bytes that is sent or received next. */
static void handshake_expect(struct tcp_handshake *handshake, size_t length)
{
    handshake->length = length;
    handshake->count = 0;
}

/* Counts the `bytes` that a send or recv has moved, and says how far the message is. -1 with
 * EAGAIN: the socket moves no more for now; 0: the peer has closed the connection. */
static enum progress handshake_progress(struct tcp_handshake *handshake, ssize_t bytes)
{
    if (bytes < 0)
        return errno == EAGAIN || errno == EINTR ? UNDER_WAY : BROKEN;
    handshake->count += (size_t)bytes;
    return handshake->count == handshake->length ? DONE : bytes ? UNDER_WAY : BROKEN;
}

/* Sends what is not sent yet of our message, as much as the socket takes. */
static enum progress handshake_say(struct tcp_handshake *handshake, int fd)
{
    return handshake_progress(handshake, send(fd, handshake->bytes + handshake->count,
                                              handshake->length - handshake->count, MSG_NOSIGNAL));
}

/* Receives what is missing of the peer's message, as much as has arrived. */
static enum progress handshake_hear(struct tcp_handshake *handshake, int fd)
{
    return handshake_progress(handshake, recv(fd, handshake->bytes + handshake->count,
                                              handshake->length - handshake->count, 0));
}

/* true: this member dials the peer. Exactly one member of each pair dials, so two connections of a
 * pair never cross. */
static bool we_dial(const struct tcp_link *link, const struct tcp_peer *peer)
{
    return link->rank < peer->rank;
}

/* Describes the two sides of a connection as tcp_proof.h needs them: first the side that dials,
 * then the side that is dialled. The token is the random value that the dialled side has put
 * into its address: the peer's token, if we dial; else the token that we gave the peer. */
static struct tcp_pair pair_of(const struct tcp_link *link, const struct tcp_peer *peer)
{
    bool dials = we_dial(link, peer);
    uint64_t own = link->round->incarnations[link->rank];
    struct tcp_pair pair = { .round = link->round,
                             .dialler = dials ? link->rank : peer->rank,
                             .dialled = dials ? peer->rank : link->rank,
                             .dialler_incarnation = dials ? own : peer->incarnation,
                             .dialled_incarnation = dials ? peer->incarnation : own };

    memcpy(pair.token, dials ? peer->told.token : peer->token, TCP_TOKEN_BYTES);
    return pair;
}

/* How this side wants the messages of the connection to travel. */
static struct tcp_wish wish_for(const struct tcp_link *link, int fd)
{
    return security_wish(link->round->security, socket_stays_inside(fd),
                         speed_affords(link->speed, fd));
}

/* Ends the handshake: prepares the connection for messages, which are encrypted or authenticated if
 * the two sides have agreed so. Each side has a key for what it sends, and decrypts or verifies
 * what the peer sends with the peer's key. peer->keys are not needed after that, so they are
 * wiped. */
static void peer_begin(const struct tcp_link *link, struct tcp_peer *peer)
{
    bool dials = we_dial(link, peer);
    int rc = 0;

    if (peer->mode != SEAL_PLAIN)
        rc = sealed_create(peer->fd, dials ? peer->keys.dialler_stream : peer->keys.dialled_stream,
                           dials ? peer->keys.dialled_stream : peer->keys.dialler_stream,
                           peer->mode, &peer->sealed);
    seal_wipe(&peer->keys, sizeof(peer->keys));
    peer->state = rc ? TCP_GONE : TCP_READY;
}

/* ---- the side that dials ---- */

/* Dials the peer, at most DIALS_MAX times; then the peer is GONE. Without a free descriptor the
 * peer is `starved`: that dial does not count, and the link dials again later. */
static void peer_dial(struct tcp_link *link, struct tcp_peer *peer)
{
    bool may_dial = peer->dials < DIALS_MAX;
    int fd = may_dial ? socket_dial(&peer->told.at) : -1;

    peer->starved = may_dial && fd < 0 && (errno == EMFILE || errno == ENFILE);
    peer->dials += !peer->starved; /* a dial without a descriptor does not count */
    if (fd >= 0)
        probe_when_still(fd);
    tcp_replace(link, &peer->fd, fd);
    peer->state = fd < 0 ? TCP_GONE : TCP_DIALS;
    handshake_expect(&peer->in, TCP_CHALLENGE_BYTES);
}

/* Goes on with the handshake of a peer that we dial, after poll says that its socket is ready:
 * DIALS, then CALLS, then ASKS (tcp_internal.h). The peer is dialled again if the connection
 * breaks, or if its answer proves nothing. */
static void peer_dial_continue(struct tcp_link *link, struct tcp_peer *peer)
{
    enum progress progress = UNDER_WAY;
    int fault;

    if (peer->state == TCP_DIALS) {
        fault = socket_fault(peer->fd);
        /* the peer listens as long as it lacks peers, so a refusal means that its link is gone */
        if (fault == ECONNREFUSED)
            peer->state = TCP_GONE;
        else if (fault)
            peer_dial(link, peer);
        else
            peer->state = TCP_CALLS;
        if (peer->state != TCP_CALLS)
            return;
    }
    if (peer->state == TCP_CALLS) {
        progress = handshake_hear(&peer->in, peer->fd); /* the challenge */
        if (progress == DONE) {
            struct tcp_pair pair = pair_of(link, peer);

            progress = BROKEN;
            if (!proof_greet(&pair, peer->in.bytes, wish_for(link, peer->fd), peer->out.bytes,
                             &peer->keys)) {
                handshake_expect(&peer->out, TCP_GREETING_BYTES);
                handshake_expect(&peer->in, TCP_ANSWER_BYTES);
                peer->state = TCP_ASKS;
                progress = handshake_say(&peer->out, peer->fd);
            }
        }
    } else if (peer->out.count < peer->out.length) { /* ASKS: the greeting is not wholly sent */
        progress = handshake_say(&peer->out, peer->fd);
    } else { /* ASKS: the greeting is sent, and the answer is next */
        progress = DONE;
    }
    if (progress == DONE) {
        progress = handshake_hear(&peer->in, peer->fd);
        peer->unproved = progress == DONE &&
                         proof_accept(&peer->keys, peer->out.bytes, peer->in.bytes, &peer->mode);
        if (peer->unproved)
            progress = BROKEN;
    }
    if (progress == DONE)
        peer_begin(link, peer);
    else if (progress == BROKEN)
        peer_dial(link, peer);
}

/* ---- the side that is dialled ---- */

/* Sends the answer to a peer that has dialled us, as far as the socket takes it; when it is sent,
 * the connection is ready for messages. */
static void peer_answer(const struct tcp_link *link, struct tcp_peer *peer)
{
    enum progress progress = handshake_say(&peer->out, peer->fd);

    if (progress == DONE)
        peer_begin(link, peer);
    else if (progress == BROKEN)
        peer->state = TCP_GONE;
}

/* Closes a stranger's connection; its entry is free then. */
static void stranger_close(struct tcp_link *link, struct tcp_stranger *stranger)
{
    door_leave(&link->door, &stranger->guest);
    tcp_replace(link, &stranger->fd, -1);
}

/* Reads the greeting of a stranger. If the greeting proves that the stranger is a peer, the
 * connection becomes that peer's; otherwise the connection is closed without an answer. */
static void stranger_hear(struct tcp_link *link, struct tcp_stranger *stranger)
{
    enum progress progress = handshake_hear(&stranger->in, stranger->fd);
    struct tcp_greeting greeting;
    struct tcp_peer *peer = NULL;
    bool is_read;

    if (stranger->in.count)
        door_spoke(&stranger->guest);
    if (progress == UNDER_WAY)
        return;
    is_read = progress == DONE && !tcp_greeting_read(stranger->in.bytes, &greeting);
    for (size_t i = 0; is_read && i < link->peer_count && !peer; i++) {
        struct tcp_peer *one = &link->peers[i];
        struct tcp_pair pair = pair_of(link, one);

        /* The peer must be one that dials us, and must not be connected yet. */
        if (one->rank == greeting.rank && one->state == TCP_NEW && !we_dial(link, one) &&
            !proof_admit(&pair, stranger->nonce, stranger->in.bytes, wish_for(link, stranger->fd),
                         one->out.bytes, &one->mode, &one->keys))
            peer = one;
    }
    if (!peer) {
        stranger_close(link, stranger);
        return;
    }
    pthread_mutex_lock(&link->mutex);
    peer->fd = stranger->fd;
    stranger->fd = -1;
    pthread_mutex_unlock(&link->mutex);
    door_leave(&link->door, &stranger->guest);
    handshake_expect(&peer->out, TCP_ANSWER_BYTES);
    peer->state = TCP_ANSWERS;
    peer_answer(link, peer);
}

/* Closes the stranger that base/door.h chooses, so that its descriptor can be used for a peer.
 * false: there is no stranger. */
static bool stranger_give_way(struct tcp_link *link)
{
    struct door_guest *guest = door_any_leaver(&link->door);

    if (guest)
        stranger_close(link, CONTAINER_OF(guest, struct tcp_stranger, guest));
    return guest != NULL;
}

/* Called when this process has no free file descriptor, so that the link can neither accept nor
 * dial a connection: it tries neither for REST_US, and then tries again (0). HVD_E_LIMIT: all tries
 * of the last STARVED_US have failed, and the caller gives the connections up. The time of the
 * first failed try is starves_since_us; a try that succeeds sets it to 0. */
static int link_rest(struct tcp_link *link)
{
    int64_t now_us = clock_now_us();

    link->rests_until_us = now_us + REST_US;
    if (!link->starves_since_us)
        link->starves_since_us = now_us;
    return now_us < link->starves_since_us + STARVED_US ? 0 : HVD_E_LIMIT;
}

/* Accepts waiting connections as strangers, at most ACCEPTED_AT_ONCE, and sends each a challenge.
 * If no descriptor is free, closes the stranger that base/door.h chooses, to use its descriptor.
 * HVD_E_LIMIT: no descriptor has been free for STARVED_US. */
static int stranger_accept_all(struct tcp_link *link)
{
    for (int i = 0; i < ACCEPTED_AT_ONCE; i++) {
        uint64_t source;
        int fd = socket_accept(link->listener, &source);
        struct tcp_stranger *stranger;
        struct door_guest *guest;
        uint8_t challenge[TCP_CHALLENGE_BYTES];

        /* a connection waits, but this process has no descriptor for it */
        if (fd < 0 && source_is_starved(link->listener, errno)) {
            if (!stranger_give_way(link))
                return link_rest(link);
            continue;
        }
        link->starves_since_us = 0;
        if (fd < 0) /* no further connection waits */
            return 0;
        /* base/door.h chooses the strangers that are closed to make room, those first that have
         * sent nothing. Bytes that are still in the kernel count as sent. */
        while ((guest = door_next_leaver(&link->door, source)) != NULL) {
            stranger = CONTAINER_OF(guest, struct tcp_stranger, guest);
            if (!guest->spoke && source_has_spoken(stranger->fd)) {
                door_spoke(guest);
                continue;
            }
            door_turn_away(&link->door, guest, clock_now_us());
            stranger_close(link, stranger);
        }
        stranger = link->strangers;
        while (stranger->fd >= 0) /* the loop above has left an entry unused */
            stranger++;
        probe_when_still(fd);
        tcp_replace(link, &stranger->fd, fd);
        door_enter(&link->door, &stranger->guest, source);
        stranger->since_us = clock_now_us();
        /* One send is enough, because the challenge fits into the empty buffer of a new connection.
         * stranger_hear reads the greeting later. */
        handshake_expect(&stranger->in, TCP_GREETING_BYTES);
        if (proof_challenge(stranger->nonce, challenge) ||
            send(stranger->fd, challenge, sizeof(challenge), MSG_NOSIGNAL) != sizeof(challenge))
            stranger_close(link, stranger);
    }
    return 0;
}

/* Begins to connect to the peer (link.h). bytes: the address that the peer has told us. The member
 * with the lower rank dials; the other one waits for the dial. */
int tcp_link_connect(struct link *base, uint32_t rank, const uint8_t *bytes, size_t length,
                     struct hvd_err *err)
{
    struct tcp_link *link = tcp_of(base);
    struct tcp_peer *peer = tcp_find(link, rank);

    if (atomic_load(&link->cancelled))
        return HVD_E_REVOKED;
    if (tcp_address_read(bytes, length, &peer->told))
        return err_set(
            err, HVD_E_PROTO,
            "rank %u has sent an address of an unknown kind; all workers must use the same "
            "release of libhvd",
            rank);
    if (we_dial(link, peer))
        peer_dial(link, peer);
    return 0;
}

/* Adds a descriptor to link->polled. *ret_at: the index of its entry; 0: it was not added. A
 * descriptor without events to wait for is left out, because poll would report its hang-up again
 * and again. The array has no holes, because poll takes only as many entries as this process may
 * have descriptors. */
static void poll_add(struct tcp_link *link, nfds_t *count, int fd, short events, size_t *ret_at)
{
    *ret_at = 0;
    if (fd < 0 || !events)
        return;
    *ret_at = *count;
    link->polled[(*count)++] = (struct pollfd){ .fd = fd, .events = events };
}

/* true: poll has found events for the descriptor with this index in link->polled (0: none there).
 */
static bool is_ready(const struct tcp_link *link, size_t at)
{
    return at && link->polled[at].revents;
}

/* Waits for the events that the handshakes need: until deadline_us, or earlier: until the link may
 * accept and dial again (rests_until_us), or until a stranger has had its STRANGER_US. The first
 * entry of link->polled is the eventfd that a cancel writes to. Returns as poll does. */
static int poll_wait(struct tcp_link *link, int64_t now_us, int64_t deadline_us)
{
    bool rests = now_us < link->rests_until_us;
    int64_t until_us = deadline_us, wait_ms;
    nfds_t count = 0;
    size_t first;

    /* the eventfd has entry 0, so for all others 0 means "not polled" */
    poll_add(link, &count, link->wake, POLLIN, &first);
    for (size_t i = 0; i < link->peer_count; i++) {
        struct tcp_peer *peer = &link->peers[i];
        bool writes = peer->state == TCP_DIALS || peer->state == TCP_ANSWERS ||
                      (peer->state == TCP_ASKS && peer->out.count < peer->out.length);
        bool reads = peer->state == TCP_CALLS || peer->state == TCP_ASKS;
        short events = writes ? POLLOUT : reads ? POLLIN : 0;

        poll_add(link, &count, peer->fd, events, &peer->polled);
    }
    for (size_t i = 0; i < TCP_STRANGERS_MAX; i++) {
        struct tcp_stranger *stranger = &link->strangers[i];

        poll_add(link, &count, stranger->fd, POLLIN, &stranger->polled);
        if (stranger->fd >= 0 && stranger->since_us + STRANGER_US < until_us)
            until_us = stranger->since_us + STRANGER_US;
    }
    poll_add(link, &count, rests ? -1 : link->listener, POLLIN, &link->listener_polled);
    if (rests && link->rests_until_us < until_us)
        until_us = link->rests_until_us;
    wait_ms = until_us > now_us ? (until_us - now_us + TIME_MS - 1) / TIME_MS : 0;
    return poll(link->polled, count, wait_ms < INT_MAX ? (int)wait_ms : INT_MAX);
}

/* Finds a peer that is not connected: first a peer that is gone, else one that is still connecting.
 * NULL: all peers are connected. */
static struct tcp_peer *find_missing(const struct tcp_link *link)
{
    struct tcp_peer *missing = NULL;

    for (size_t i = 0; i < link->peer_count; i++) {
        if (link->peers[i].state == TCP_GONE)
            return &link->peers[i];
        if (link->peers[i].state != TCP_READY && !missing)
            missing = &link->peers[i];
    }
    return missing;
}

/* Dials again a peer for which no descriptor was free, after closing a stranger, if there is one.
 * HVD_E_LIMIT: no descriptor has been free for STARVED_US. */
static int peer_dial_starved(struct tcp_link *link, struct tcp_peer *peer)
{
    (void)stranger_give_way(link);
    peer_dial(link, peer);
    if (peer->starved)
        return link_rest(link);
    link->starves_since_us = 0;
    return 0;
}

/* Closes the strangers that were accepted at `since_us` or before. */
static void drop_strangers(struct tcp_link *link, int64_t since_us)
{
    for (size_t i = 0; i < TCP_STRANGERS_MAX; i++) {
        if (link->strangers[i].fd >= 0 && link->strangers[i].since_us <= since_us)
            stranger_close(link, &link->strangers[i]);
    }
}

/* Makes all begun connections, and accepts those that the other peers make (link.h). When all peers
 * are connected, the listener and the strangers are closed. After HVD_E_TIMEOUT or HVD_E_LOST
 * *ret_rank is a peer that is not connected. */
int tcp_link_connected(struct link *base, int64_t deadline_us, uint32_t *ret_rank,
                       struct hvd_err *err)
{
    struct tcp_link *link = tcp_of(base);
    struct tcp_peer *missing;
    bool late = false; /* true: the deadline is over, and what had come by then was handled */
    int64_t now_us;
    int rc = 0;

    while (!atomic_load(&link->cancelled)) {
        missing = find_missing(link);
        if (!missing) {
            drop_strangers(link, INT64_MAX);
            tcp_replace(link, &link->listener, -1);
            return 0;
        }
        *ret_rank = missing->rank;
        now_us = clock_now_us();
        if (missing->starved && !rc && now_us >= link->rests_until_us) {
            rc = peer_dial_starved(link, missing);
            continue;
        }
        missing->why = NULL;
        if (rc)
            missing->why = SOCKET_STARVES;
        else if (missing->state == TCP_GONE && missing->unproved && !missing->starved)
            missing->why = UNPROVED;
        if (missing->why || (missing->state == TCP_GONE && !missing->starved))
            return err_set(err, HVD_E_LOST, "rank %u: %s", missing->rank,
                           missing->why ? missing->why : "the connection to this rank broke");
        if (late)
            return err_set(err, HVD_E_TIMEOUT,
                           "rank %u: the connection to this rank was not made in time; look for a "
                           "firewall between the hosts",
                           missing->rank);
        late = now_us >= deadline_us;
        drop_strangers(link, now_us - STRANGER_US);
        if (poll_wait(link, now_us, deadline_us) <= 0) /* a time is over: the loop looks which */
            continue;
        for (size_t i = 0; i < link->peer_count; i++) {
            if (!is_ready(link, link->peers[i].polled))
                continue;
            if (link->peers[i].state == TCP_ANSWERS)
                peer_answer(link, &link->peers[i]);
            else
                peer_dial_continue(link, &link->peers[i]);
        }
        for (size_t i = 0; i < TCP_STRANGERS_MAX; i++) {
            if (is_ready(link, link->strangers[i].polled))
                stranger_hear(link, &link->strangers[i]);
        }
        if (is_ready(link, link->listener_polled))
            rc = stranger_accept_all(link);
    }
    return HVD_E_REVOKED;
}
