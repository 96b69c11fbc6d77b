/*
 * conn.h: a connection that carries frames, on libevent's loop: TLS with a pre-shared key between
 * driver and agent, plain bytes on a Unix socket.
 *
 * A connection reads and decodes, and hands on whole messages; it takes messages or ready frames,
 * and sends them in order. A stream that breaks the framing (PROTOCOL.md F1 to F4, V4) is closed
 * with the reason. Until conn_greeted the limits of the greeting hold, and after LIMIT_GREETING_US
 * without it the connection is closed.
 *
 * The program ignores SIGPIPE (os/process.h gives it back to the programs that it starts).
 *
 * Callbacks come from the loop, never from inside a call of the owner (conn_read_now excepted). An
 * owner may close or drop any connection from inside a callback, also the connection whose callback
 * it is.
 */
#ifndef WIRE_CONN_H
#define WIRE_CONN_H

#include "proto/msg.h"
#include "wire/address.h"
#include "wire/tls.h"

#include <sys/types.h>

struct conn;
struct event_base;

struct conn_ops {
    /* the handshake is done; only called for a connection that this side has dialled */
    void (*opened)(void *arg);
    /* a message has come; it is valid until the callback returns */
    void (*msg)(void *arg, const struct msg *msg);
    /* the peer or an error has ended the connection, for the reason `why`. This is the last
     * callback; the connection is freed after it */
    void (*closed)(void *arg, const char *why);
    /* may be NULL; called when the unsent bytes fall below CONN_LOW_BYTES after they were above
     * CONN_HIGH_BYTES */
    void (*drained)(void *arg);
};

#define CONN_LOW_BYTES  (256 * 1024)
#define CONN_HIGH_BYTES (1024 * 1024)

/* Dials "address:port" texts ("[::1]:80" too) one after the other, CONN_DIAL_US each, until a peer
 * answers and proves that it has the key; if no peer does, the callback `closed` says why. Numeric
 * addresses only, so that no call blocks. Fails with HVD_E_INVAL, HVD_E_LIMIT, HVD_E_NOMEM. */
#define CONN_DIAL_US (5 * INT64_C(1000000))
int conn_dial(struct event_base *base, const struct msg_texts *addresses, struct tls *tls,
              const struct conn_ops *ops, void *arg, struct conn **ret_conn,
              struct hvd_err *err) MUST_CHECK;

/* Dials a Unix socket: "@name" is in the abstract namespace, anything else a path. HVD_E_NOTFOUND
 * (no process listens), HVD_E_BUSY (the process does not accept), HVD_E_DENIED (it is another
 * user's), HVD_E_LIMIT (a name of more than 107 bytes), HVD_E_IO, HVD_E_NOMEM. */
int conn_dial_unix(struct event_base *base, const char *name, const struct conn_ops *ops, void *arg,
                   struct conn **ret_conn, struct hvd_err *err) MUST_CHECK;

/* Sets the owner whose callbacks are called from now on: for a connection that a listener has
 * handed over. */
void conn_own(struct conn *conn, const struct conn_ops *ops, void *arg);

/* Says that the greeting is over: longer bodies are accepted, and the time limit ends. */
void conn_greeted(struct conn *conn);

/* conn_send encodes and sends a message; conn_send_frame sends a frame that is encoded already.
 * Both keep the order of the calls. HVD_E_NOMEM, or the code of msg_encode: the connection is
 * unchanged. On a connection that is breaking, or not opened yet, the message is lost, and the call
 * returns 0. A peer that leaves LIMIT_UNSENT_BYTES unread breaks the connection. */
int conn_send(struct conn *conn, const struct msg *msg, struct hvd_err *err);
int conn_send_frame(struct conn *conn, const void *frame, size_t length);

/* Sends the message together with a descriptor, which stays the caller's. Only on a plain
 * connection without unsent bytes (else HVD_E_STATE). HVD_E_BUSY: the socket's buffer is full. */
int conn_send_with_fd(struct conn *conn, const struct msg *msg, int fd, struct hvd_err *err);

/* Sends a CHUNK without copying its data, which the caller keeps until `drained` says that all is
 * sent, or until the connection is closed. HVD_E_STATE: the data of an earlier CHUNK is unsent. */
int conn_send_lent(struct conn *conn, const struct msg *msg, struct hvd_err *err) MUST_CHECK;

/* Announces many large frames: each read takes more bytes, and the memory of one frame is kept. */
void conn_bulk(struct conn *conn);

/* Returns the number of bytes that were queued, and that the socket has not taken yet. */
size_t conn_unsent(const struct conn *conn);

/* Asks for one call of `drained`: when no byte is unsent and the socket takes more. */
void conn_when_sent(struct conn *conn);

/* true: stops reading, which slows the peer down (back-pressure); false: reads on. */
void conn_hold(struct conn *conn, bool hold);

/* Reads and hands on all that the other side has sent by now, also while reading is held: for a
 * peer that has died. A call from inside a callback of this function does nothing. */
void conn_read_now(struct conn *conn);

/* Closes the connection and gives up the caller's ownership. Nothing more is read, and no callback
 * follows; unsent messages are still sent, for CONN_LINGER_US at most. */
void conn_close(struct conn *conn);
#define CONN_LINGER_US (5 * INT64_C(1000000))

/* Closes the connection at once, without waiting for unsent messages. The caller's ownership
 * ends. */
void conn_drop(struct conn *conn);

/* Returns the peer's name for logs: "10.0.0.7:4321", "pid 77". */
const char *conn_peer(const struct conn *conn);

/* Returns the identity that the peer has proved, for a connection that a TCP listener has handed
 * over. */
const struct tls_peer *conn_proved(const struct conn *conn);

/* Writes the address of this end of an open TCP connection, without its port: "10.0.0.8", "::1".
 * HVD_E_STATE: the connection does not use TCP, or is not open. */
int conn_local_host(const struct conn *conn, char text[ADDRESS_TEXT_MAX]) MUST_CHECK;

/* Returns the pid of the peer on a Unix socket, as the kernel reports it; 0 on other
 * connections. */
pid_t conn_peer_pid(const struct conn *conn);

#endif
