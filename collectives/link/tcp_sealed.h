/*
 * tcp_sealed.h: the messages of a TCP peer as sealed records (seal/record.h), for tcp_stream.c. The
 * bytes inside the records are those that would travel in clear: heads and messages, one after
 * another; a record may hold several messages, and a message may take several records.
 *
 *     peer->sends ──► sealed_write ──► socket        socket ──► sealed_read ──► peer->inbox
 */
#ifndef COLLECTIVES_LINK_TCP_SEALED_H
#define COLLECTIVES_LINK_TCP_SEALED_H

#include "collectives/link/tcp_stream.h"

/* Prepares to seal and open the records of a connection. fd: the connection; its two addresses are
 * kept for error texts. ours: the key for what this side sends; theirs: the key for what the peer
 * sends. Returns 0 or HVD_E_NOMEM. */
int sealed_create(int fd, const uint8_t ours[SEAL_KEY_BYTES], const uint8_t theirs[SEAL_KEY_BYTES],
                  enum seal_mode mode, struct tcp_sealed **ret_sealed) MUST_CHECK;
void sealed_free(struct tcp_sealed *sealed); /* NULL is allowed */

/* true: a sealed record is not wholly written to the socket yet. */
bool sealed_writes(const struct tcp_sealed *sealed);
/* Seals and writes the messages that wait to be sent (peer->sends), a few records in one call. A
 * send is done when the record with its last byte is written. Returns 0; or HVD_E_LOST: no byte can
 * be written any more. */
int sealed_write(struct tcp_peer *peer) MUST_CHECK;
/* A waiting thread calls this function again and again. When nothing was written for a second, the
 * function writes a record without data (a keepalive): if an earlier record was lost on the way,
 * the peer cannot open the keepalive and notices. If only a part of a record was lost, the peer
 * waits for the missing bytes; so after 2, 4, 8, ... seconds the function writes as many keepalives
 * as fill the longest record. Returns 0; or HVD_E_LOST: no byte can be written any more. */
int sealed_keep_alive(struct tcp_peer *peer, int64_t now_us) MUST_CHECK;

/* Reads some records into peer->inbox. Returns 0; HVD_E_LOST: the connection ended; HVD_E_PROTO: a
 * record is not the peer's next one (sealed_forgery_of), or a message in it is too long for its
 * receive; or HVD_E_NOMEM. */
int sealed_read(struct tcp_peer *peer) MUST_CHECK;
/* Gives the inbox data that were read earlier and that it had no memory for. Called after a receive
 * was posted. Returns what sealed_read returns. */
int sealed_sort(struct tcp_peer *peer) MUST_CHECK;
/* Describes the record that did not open and so ended the connection. sealed_forgery_of returns
 * NULL when no record has failed to open. */
struct sealed_forgery {
    uint64_t record; /* how many records were opened before this one */
    char ours[SOCKET_TEXT_MAX], theirs[SOCKET_TEXT_MAX]; /* the addresses of the two ends */
};
const struct sealed_forgery *sealed_forgery_of(const struct tcp_sealed *sealed);

#endif
