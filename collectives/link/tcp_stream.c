/*
 * tcp_stream.c: messages between connected peers; called by lane/traffic.c, in the operations of
 * struct link. A thread that waits for one message moves the bytes of all peers: otherwise a peer
 * would wait for us while we wait for another peer.
 */
#include "base/mem.h"
#include "collectives/link/tcp_sealed.h"
#include "os/clock.h"

#include <errno.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <sys/socket.h>

/* After this many writes to one peer the bytes of the other peers are moved. */
#define WRITES_AT_ONCE 4

/* After LOOK_MS without an event the waiting thread asks the kernel about each connection. A peer
 * counts as dead if its last acknowledgement is SILENT_MS old, and SILENT_REPEATS repeated packets
 * and probes got no answer: a live host answers them. */
#define LOOK_MS        1000
#define SILENT_MS      60000
#define SILENT_REPEATS 3

/* Every link_request of this kind of link is a tcp_request. */
static struct tcp_request *request_of(struct link_request *request)
{
    return (struct tcp_request *)(void *)request;
}

/* true: the message was received, or was written to the socket, or the request has failed. */
static bool is_done(const struct tcp_request *request)
{
    return request->receives ? request->receive.done : list_empty(&request->place);
}

/* Ends all sends to this peer that are not written, with HVD_E_LOST. */
static void fail_sends(struct tcp_peer *peer)
{
    while (!list_empty(&peer->sends)) {
        struct tcp_request *request = CONTAINER_OF(peer->sends.next, struct tcp_request, place);

        list_remove(&request->place);
        request->code = HVD_E_LOST;
    }
}

/* Marks the peer as gone, and ends the connection. The descriptor stays open until the link is
 * freed, because cancel, on another thread, may shut it down. */
static void lose_peer(struct tcp_peer *peer)
{
    peer->state = TCP_GONE;
    (void)shutdown(peer->fd, SHUT_RDWR);
    fail_sends(peer);
    inbox_fail(&peer->inbox, HVD_E_LOST);
}

/* true: the last call moved no byte, but the connection is whole: errno says "later". */
static bool may_try_again(void)
{
    return errno == EAGAIN || errno == EINTR;
}

/* Writes the peer's messages until the socket takes no more, or until it is the other peers' turn.
 * After a failed write the peer is `mute`: nothing is written to it any more. A mute peer counts as
 * gone only when all bytes have been read that it had sent before it died. */
static void write_sends(struct tcp_peer *peer)
{
    if (peer->sealed) {
        if (sealed_write(peer)) {
            peer->mute = true;
            fail_sends(peer);
        }
        return;
    }
    for (int i = 0; i < WRITES_AT_ONCE && !list_empty(&peer->sends); i++) {
        struct tcp_request *request = CONTAINER_OF(peer->sends.next, struct tcp_request, place);
        struct iovec pieces[2];
        struct msghdr message = { .msg_iov = pieces };
        size_t body = 0;
        ssize_t bytes;

        /* the unwritten part of the head, and of the body */
        if (request->written < TCP_HEAD_BYTES)
            pieces[message.msg_iovlen++] = (struct iovec){ request->head + request->written,
                                                           TCP_HEAD_BYTES - request->written };
        else
            body = request->written - TCP_HEAD_BYTES;
        if (body < request->length)
            pieces[message.msg_iovlen++] =
                (struct iovec){ /* sendmsg does not write to this memory */
                                (void *)(uintptr_t)(request->bytes + body), request->length - body
                };
        bytes = sendmsg(peer->fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
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

/* Reads once from the peer; a peer with more bytes is read again after the other peers. Nothing is
 * read while the inbox has no room: it then holds a large message back until the receive for that
 * message is posted. */
static void read_inbox(struct tcp_peer *peer)
{
    struct iovec room[2];
    int pieces;
    ssize_t bytes;

    if (peer->sealed) {
        if (sealed_read(peer))
            lose_peer(peer);
        return;
    }
    pieces = inbox_room(&peer->inbox, room);
    if (!pieces)
        return;
    bytes = readv(peer->fd, room, pieces);
    if (bytes < 0 && may_try_again())
        return;
    if (bytes <= 0 || inbox_fill(&peer->inbox, (size_t)bytes))
        lose_peer(peer);
}

/* Makes a request to send to this rank, or (`receives`) to receive from it. NULL: out of memory. */
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

/* Begins a send. Sends to one peer are written in order. HVD_E_LOST: the peer is not connected, or
 * no bytes can be written to it any more. */
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
    request = request_create(link, rank, false /* a send */);
    if (!request)
        return HVD_E_NOMEM;
    peer = request->peer;
    if (peer->state != TCP_READY || peer->mute) {
        mem_free(request);
        return HVD_E_LOST;
    }
    tcp_head_write(&head, request->head);
    request->bytes = bytes;
    request->length = length;
    /* If no other send waits, the socket may take these bytes now: writing them at once saves a
     * poll. */
    first = list_empty(&peer->sends);
    list_append(&peer->sends, &request->place);
    if (first)
        write_sends(peer);
    *ret_request = (struct link_request *)(void *)request;
    return 0;
}

/* Begins a receive (link.h). An error of the inbox loses the peer, and the request then ends with
 * HVD_E_LOST when the caller waits for it. */
int tcp_link_receive(struct link *base, uint32_t rank, uint64_t tag, void *bytes, size_t length,
                     struct link_request **ret_request)
{
    struct tcp_link *link = tcp_of(base);
    const struct tcp_peer *peer = tcp_find(link, rank);
    struct tcp_request *request;

    if (atomic_load(&link->cancelled))
        return HVD_E_REVOKED;
    /* a peer that was connected and is gone may have sent bytes that the inbox still has */
    if (peer->state != TCP_READY && !peer->inbox.over)
        return HVD_E_LOST;
    request = request_create(link, rank, true /* a receive */);
    if (!request)
        return HVD_E_NOMEM;
    request->receive.tag = tag;
    request->receive.bytes = bytes;
    request->receive.length = length;
    /* With sealed records the inbox may now take data of a record that was opened before. */
    if (inbox_post(&request->peer->inbox, &request->receive) ||
        (peer->sealed && peer->state == TCP_READY && sealed_sort(request->peer)))
        lose_peer(request->peer);
    *ret_request = (struct link_request *)(void *)request;
    return 0;
}

/* Drops a request. If the message of a send is partly written, this ends the connection: the memory
 * is the caller's again, so the rest cannot be written, and no other message can follow. */
void tcp_link_drop(struct link *base, struct link_request *dropped)
{
    struct tcp_request *request = request_of(dropped);
    struct tcp_peer *peer = request->peer;

    (void)base;
    if (request->receives)
        inbox_drop(&peer->inbox, &request->receive);
    else if (!is_done(request) && request->written)
        lose_peer(peer);
    else
        list_remove(&request->place);
    mem_free(request);
}

/* Waits until a request is done, and frees the request. During the wait the function moves the
 * bytes of all peers. It reads from the awaited peer before the first poll, because bytes that have
 * arrived need no poll. When poll has found nothing for LOOK_MS, the function also asks the kernel
 * whether the peers' hosts are dead. */
int tcp_link_wait(struct link *base, struct link_request *awaited)
{
    struct tcp_link *link = tcp_of(base);
    struct tcp_request *request = request_of(awaited);
    int rc;

    if (!is_done(request) && request->receives && request->peer->state == TCP_READY)
        read_inbox(request->peer);
    /* Waits until bytes can be moved to or from any peer, and moves them. A descriptor without
     * events to wait for is left out, because poll would report its hang-up again and again. */
    while (!is_done(request) && !atomic_load(&link->cancelled)) {
        nfds_t count = 0;
        int ready;

        link->polled[count++] = (struct pollfd){ .fd = link->wake, .events = POLLIN };
        for (size_t i = 0; i < link->peer_count; i++) {
            struct tcp_peer *peer = &link->peers[i];
            bool writes = !list_empty(&peer->sends) ||
                          (peer->sealed && !peer->mute && sealed_writes(peer->sealed));
            short events =
                (short)((inbox_is_open(&peer->inbox) ? POLLIN : 0) | (writes ? POLLOUT : 0));

            if (peer->state != TCP_READY)
                events = 0;
            link->polled[count++] =
                (struct pollfd){ .fd = events ? peer->fd : -1, .events = events };
        }
        ready = poll(link->polled, count, LOOK_MS);
        for (size_t i = 0; i < link->peer_count; i++) {
            short events = link->polled[1 + i].revents, asked = link->polled[1 + i].events;
            struct tcp_peer *peer = &link->peers[i];
            struct tcp_info info = { .tcpi_state = 0 };
            socklen_t length = sizeof(info);

            /* poll has found nothing for LOOK_MS: asks the kernel whether the peer's host is dead
             */
            if (ready == 0 && peer->state == TCP_READY &&
                !getsockopt(peer->fd, IPPROTO_TCP, TCP_INFO, &info, &length) &&
                info.tcpi_retransmits + info.tcpi_probes >= SILENT_REPEATS &&
                info.tcpi_last_ack_recv >= SILENT_MS)
                lose_peer(peer);
            /* keepalives in each pass, also when the events of other peers keep this thread busy */
            if (peer->state == TCP_READY && peer->sealed && !peer->mute &&
                sealed_keep_alive(peer, clock_now_us()))
                peer->mute = true;
            if (ready > 0 && events & (POLLOUT | POLLERR | POLLHUP) && asked & POLLOUT)
                write_sends(peer);
            if (ready > 0 && events & (POLLIN | POLLERR | POLLHUP) && asked & POLLIN)
                read_inbox(peer);
        }
    }
    rc = request->receives ? request->receive.code : request->code;
    if (atomic_load(&link->cancelled))
        rc = HVD_E_REVOKED;
    tcp_link_drop(base, awaited);
    return rc;
}

/* Writes why the connection to this peer could not be made, or which bytes that the peer has not
 * sent ended it. false: the link does not know a reason. */
bool tcp_link_why(struct link *base, uint32_t rank, char *ret_text, size_t size)
{
    const struct tcp_link *link = tcp_of(base);
    const struct sealed_forgery *forgery = NULL;
    const char *why = NULL;

    for (size_t i = 0; i < link->peer_count; i++) {
        if (link->peers[i].rank != rank)
            continue;
        why = link->peers[i].why;
        if (link->peers[i].sealed)
            forgery = sealed_forgery_of(link->peers[i].sealed);
    }
    if (why)
        (void)snprintf(ret_text, size, "rank %" PRIu32 " cannot connect to rank %" PRIu32 ": %s",
                       link->rank, rank, why);
    if (!forgery)
        return why != NULL;
    (void)snprintf(
        ret_text, size,
        "the link of rank %" PRIu32 " (%s) and rank %" PRIu32
        " (%s) carried bytes that rank %" PRIu32
        " has not sent, or not in this order (after %" PRIu64
        " good frames): bytes were changed, lost, repeated or added on the way; look for "
        "a device that changes what these hosts send",
        link->rank, forgery->ours, rank, forgery->theirs, rank, forgery->record);
    return true;
}
