/*
 * tcp_stream.h: the messages of a TCP link, and the operations of struct link on them.
 */
#ifndef COLLECTIVES_LINK_TCP_STREAM_H
#define COLLECTIVES_LINK_TCP_STREAM_H

#include "collectives/link/tcp_internal.h"

/* One message that is sent or received. A send is in the list `sends` of its peer until all its
 * bytes are written. For a receive, the peer's inbox uses `receive`; the fields below are of sends.
 */
struct tcp_request {
    struct tcp_peer *peer;
    bool receives;
    struct inbox_receive receive;

    struct list place; /* entry in peer->sends; in no list once the send is done */
    uint8_t head[TCP_HEAD_BYTES];
    const uint8_t *bytes;
    /* length: bytes of the message without its head; written: bytes that were written, the head
     * included */
    size_t length, written;
    int code; /* 0, or HVD_E_LOST: why the send ended */
};

int tcp_link_send(struct link *base, uint32_t rank, uint64_t tag, const void *bytes, size_t length,
                  struct link_request **ret_request) MUST_CHECK;
int tcp_link_receive(struct link *base, uint32_t rank, uint64_t tag, void *bytes, size_t length,
                     struct link_request **ret_request) MUST_CHECK;
int tcp_link_wait(struct link *base, struct link_request *awaited) MUST_CHECK;
void tcp_link_drop(struct link *base, struct link_request *dropped);
bool tcp_link_why(struct link *base, uint32_t rank, char *ret_text, size_t size);

#endif
