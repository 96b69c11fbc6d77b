#include "base/mem.h"
#include "collectives/link/tcp_inside.h"

#include <errno.h>
#include <sys/socket.h>

/* One that can take or give more than this waits for the others' turn. */
#define WRITES_IN_A_TURN 4

/* So long nothing happens, then it is seen whether the peers' machines still answer. */
#define LOOK_MS 1000

/* What is sent stands in the list of its peer until all of it is written; what is received belongs
 * to the inbox. */
struct tcp_request {
    struct tcp_peer *peer;
    bool receives;
    struct inbox_receive receive;

    struct list place; /* a send: in no list once it is done */
    uint8_t head[TCP_HEAD_BYTES];
    const uint8_t *bytes;
    size_t length, written; /* with the head */
    int code;
};

static struct tcp_request *request_of(struct link_request *request)
{
    return (struct tcp_request *)(void *)request;
}

static bool is_done(const struct tcp_request *request)
{
    return request->receives ? request->receive.done : list_empty(&request->place);
}

static void fail_sends(struct tcp_peer *peer)
{
    while (!list_empty(&peer->sends)) {
        struct tcp_request *request = CONTAINER_OF(peer->sends.next, struct tcp_request, place);

        list_remove(&request->place);
        request->code = HVD_E_LOST;
    }
}

/* The other side learns of it too. The descriptor stays until the link is freed: cancel looks at
 * it. */
static void part(struct tcp_peer *peer)
{
    peer->stage = TCP_GONE;
    (void)shutdown(peer->fd, SHUT_RDWR);
    fail_sends(peer);
    inbox_fail(&peer->inbox, HVD_E_LOST);
}

static bool may_try_again(void)
{
    return errno == EAGAIN || errno == EINTR;
}

/* ---- writing ---- */

static ssize_t write_some(const struct tcp_peer *peer, struct tcp_request *request)
{
    struct msghdr message = { .msg_iovlen = 0 };
    struct iovec pieces[2];
    size_t body = 0;

    message.msg_iov = pieces;
    if (request->written < TCP_HEAD_BYTES)
        pieces[message.msg_iovlen++] =
            (struct iovec){ request->head + request->written, TCP_HEAD_BYTES - request->written };
    else
        body = request->written - TCP_HEAD_BYTES;
    if (body < request->length)
        pieces[message.msg_iovlen++] = (struct iovec){
            (void *)(uintptr_t)(request->bytes + body), /* sendmsg writes nothing there */
            request->length - body
        };
    return sendmsg(peer->fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* One that cannot be written to any more may have sent something before it went: it is gone when
 * that has been read. */
static void write_on(struct tcp_peer *peer)
{
    for (int i = 0; i < WRITES_IN_A_TURN && !list_empty(&peer->sends); i++) {
        struct tcp_request *request = CONTAINER_OF(peer->sends.next, struct tcp_request, place);
        ssize_t bytes = write_some(peer, request);

        if (bytes < 0 && may_try_again())
            return;
        if (bytes < 0) {
            peer->mute = true;
            fail_sends(peer);
            return;
        }
        request->written += (size_t)bytes;
        if (request->written == TCP_HEAD_BYTES + request->length)
            list_remove(&request->place);
    }
}

/* ---- reading ---- */

static void read_on(struct tcp_peer *peer)
{
    struct iovec room[2];
    int pieces = inbox_room(&peer->inbox, room);
    ssize_t bytes;

    if (!pieces)
        return;
    bytes = readv(peer->fd, room, pieces);
    if (bytes < 0 && may_try_again())
        return;
    if (bytes <= 0 || inbox_fill(&peer->inbox, (size_t)bytes))
        part(peer);
}

/* ---- all peers ---- */

/* Whom nothing is wanted of is not looked at: poll would go on saying that it has hung up. */
static short wanted(struct tcp_peer *peer)
{
    if (peer->stage != TCP_READY)
        return 0;
    return (short)((inbox_is_open(&peer->inbox) ? POLLIN : 0) |
                   (list_empty(&peer->sends) ? 0 : POLLOUT));
}

static nfds_t fill_polled(struct tcp_link *link)
{
    nfds_t count = 0;

    link->polled[count++] = (struct pollfd){ .fd = link->wake, .events = POLLIN };
    for (size_t i = 0; i < link->peer_count; i++) {
        short events = wanted(&link->peers[i]);

        link->polled[count++] =
            (struct pollfd){ .fd = events ? link->peers[i].fd : -1, .events = events };
    }
    return count;
}

static void part_from_silent_ones(struct tcp_link *link)
{
    for (size_t i = 0; i < link->peer_count; i++) {
        if (link->peers[i].stage == TCP_READY && tcp_is_silent(link->peers[i].fd))
            part(&link->peers[i]);
    }
}

/* Waits until something can be moved, and moves it, of all peers: none of them stands still
 * because we wait for another. */
static void move(struct tcp_link *link)
{
    int ready = poll(link->polled, fill_polled(link), LOOK_MS);

    if (ready == 0)
        part_from_silent_ones(link);
    for (size_t i = 0; i < link->peer_count && ready > 0; i++) {
        short events = link->polled[1 + i].revents, asked = link->polled[1 + i].events;

        if (events & (POLLOUT | POLLERR | POLLHUP) && asked & POLLOUT)
            write_on(&link->peers[i]);
        if (events & (POLLIN | POLLERR | POLLHUP) && asked & POLLIN)
            read_on(&link->peers[i]);
    }
}

/* ---- messages ---- */

static struct tcp_request *request_create(struct tcp_link *link, uint32_t rank, bool receives)
{
    struct tcp_request *request = mem_zalloc(sizeof(*request));

    if (!request)
        return NULL;
    request->peer = tcp_find(link, rank);
    request->receives = receives;
    list_init(&request->place);
    list_init(&request->receive.place);
    return request;
}

/* Of one that was, what it has sent before it went is still there. */
static bool was_connected(const struct tcp_peer *peer)
{
    return peer->stage == TCP_READY || peer->inbox.over;
}

/* What is before it in the list goes first. */
int tcp_link_send(struct link *base, uint32_t rank, uint64_t tag, const void *bytes, size_t length,
                  struct link_request **ret_request)
{
    const struct tcp_head head = { tag, length };
    struct tcp_link *link = tcp_of(base);
    struct tcp_request *request;
    struct tcp_peer *peer;
    bool first;

    if (atomic_load(&link->cancelled))
        return HVD_E_REVOKED;
    request = request_create(link, rank, false);
    if (!request)
        return HVD_E_NOMEM;
    peer = request->peer;
    if (peer->stage != TCP_READY || peer->mute) {
        mem_free(request);
        return HVD_E_LOST;
    }
    tcp_head_write(&head, request->head);
    request->bytes = bytes;
    request->length = length;
    first = list_empty(&peer->sends);
    list_append(&peer->sends, &request->place);
    if (first)
        write_on(peer);
    *ret_request = (struct link_request *)(void *)request;
    return 0;
}

int tcp_link_receive(struct link *base, uint32_t rank, uint64_t tag, void *bytes, size_t length,
                     struct link_request **ret_request)
{
    struct tcp_link *link = tcp_of(base);
    struct tcp_request *request;

    if (atomic_load(&link->cancelled))
        return HVD_E_REVOKED;
    if (!was_connected(tcp_find(link, rank)))
        return HVD_E_LOST;
    request = request_create(link, rank, true);
    if (!request)
        return HVD_E_NOMEM;
    request->receive.tag = tag;
    request->receive.bytes = bytes;
    request->receive.length = length;
    if (inbox_post(&request->peer->inbox, &request->receive))
        part(request->peer);
    *ret_request = (struct link_request *)(void *)request;
    return 0;
}

/* A message of which a part is written cannot be ended otherwise: the rest of its memory is not
 * ours any more, and nothing can follow it. */
void tcp_link_drop(struct link *base, struct link_request *dropped)
{
    struct tcp_request *request = request_of(dropped);
    struct tcp_peer *peer = request->peer;

    (void)base;
    if (request->receives)
        inbox_drop(&peer->inbox, &request->receive);
    else if (!is_done(request) && request->written)
        part(peer);
    else
        list_remove(&request->place);
    mem_free(request);
}

/* What has come already needs no poll. */
int tcp_link_wait(struct link *base, struct link_request *awaited)
{
    struct tcp_link *link = tcp_of(base);
    struct tcp_request *request = request_of(awaited);
    int rc;

    if (!is_done(request) && request->receives && request->peer->stage == TCP_READY)
        read_on(request->peer);
    while (!is_done(request) && !atomic_load(&link->cancelled))
        move(link);
    rc = request->receives ? request->receive.code : request->code;
    if (atomic_load(&link->cancelled))
        rc = HVD_E_REVOKED;
    tcp_link_drop(base, awaited);
    return rc;
}
