/*
 * conn.h: a connection that carries frames, on libevent's loop: TLS with the job's key between
 * driver and agent, plain bytes on a Unix socket.
 *
 * It reads what comes, decodes it, and hands on whole messages; it takes messages or ready frames,
 * and sends them in order. A stream that breaks the framing (PROTOCOL.md F1 to F4, V4) is closed
 * with the reason. Until conn_greeted the limits of the greeting hold, and after LIMIT_GREETING_US
 * without it the connection is closed.
 *
 * The program ignores SIGPIPE (process_spawn gives it back to what it starts).
 *
 * Callbacks come from the loop, never from inside a call of the owner (conn_read_now excepted).
 * An owner may close or drop the connection, this one too, from inside a callback.
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
    void (*opened)(void *arg); /* dialled: the handshake is done. Not called for accepted ones */
    void (*msg)(void *arg, const struct msg *msg); /* borrowed */
    void (*closed)(void *arg, const char *why);    /* by the other side, or by an error; the last
                                                      call: the connection is no more */
    void (*drained)(void *arg); /* NULL, or: what is unsent fell below CONN_LOW_BYTES, after it had
                                   been above CONN_HIGH_BYTES */
};

#define CONN_LOW_BYTES  (256 * 1024)
#define CONN_HIGH_BYTES (1024 * 1024)

/* Dials "address:port" texts ("[::1]:80" too) one after the other until one answers and has the
 * key, each for CONN_DIAL_US; `closed` says why none did. Numeric addresses only: nothing here
 * blocks. HVD_E_INVAL, HVD_E_LIMIT, HVD_E_NOMEM. */
#define CONN_DIAL_US (5 * INT64_C(1000000))
int conn_dial(struct event_base *base, const struct msg_texts *addresses, struct tls *tls,
              const struct conn_ops *ops, void *arg, struct conn **ret_conn,
              struct hvd_err *err) MUST_CHECK;

/* Dials a Unix socket: "@name" is in the abstract namespace, anything else a path. HVD_E_NOTFOUND
 * (nobody listens), HVD_E_BUSY (it does not accept), HVD_E_DENIED (it is another user's),
 * HVD_E_LIMIT (a name of more than 107 bytes), HVD_E_IO, HVD_E_NOMEM. */
int conn_dial_unix(struct event_base *base, const char *name, const struct conn_ops *ops, void *arg,
                   struct conn **ret_conn, struct hvd_err *err) MUST_CHECK;

/* Who is told from now on: for one that a listener has handed over. */
void conn_own(struct conn *conn, const struct conn_ops *ops, void *arg);

/* The greeting is over: longer bodies, and no time limit. */
void conn_greeted(struct conn *conn);

/* Sends in order. HVD_E_NOMEM, or what msg_encode says; the connection stays as it was. On one that
 * is breaking, or not yet opened, it is lost. A peer that leaves LIMIT_UNSENT_BYTES unread breaks
 * it. */
int conn_send(struct conn *conn, const struct msg *msg, struct hvd_err *err);
int conn_send_frame(struct conn *conn, const void *frame, size_t length);

/* On a plain connection on which nothing is unsent (else HVD_E_STATE): the message with a
 * descriptor beside it, which is borrowed. HVD_E_BUSY: its socket is full. */
int conn_send_with_fd(struct conn *conn, const struct msg *msg, int fd, struct hvd_err *err);

/* A CHUNK whose data is not copied: it is borrowed until `drained` says that all is out, or until
 * the connection is closed. HVD_E_STATE: that of another one still is. */
int conn_send_lent(struct conn *conn, const struct msg *msg, struct hvd_err *err) MUST_CHECK;

/* Many large frames will come: more is read at a time, and the memory of one frame kept. */
void conn_bulk(struct conn *conn);

size_t conn_unsent(const struct conn *conn);

/* `drained` is called once more: when nothing is unsent and the socket takes more. */
void conn_when_sent(struct conn *conn);

/* Reads nothing more until it is taken back: back-pressure. */
void conn_hold(struct conn *conn, bool hold);

/* Reads and hands on what the other side had sent by now, as one that has died; held or not. From
 * inside itself it does nothing. */
void conn_read_now(struct conn *conn);

/* Nothing more is read or told; what was sent goes out, for CONN_LINGER_US at most. Given. */
void conn_close(struct conn *conn);
#define CONN_LINGER_US (5 * INT64_C(1000000))

/* The same without waiting. Given. */
void conn_drop(struct conn *conn);

/* "10.0.0.7:4321", "pid 77": for logs. */
const char *conn_peer(const struct conn *conn);

/* The address of our own end of a TCP connection that is open, without its port: "10.0.0.8", "::1".
 * HVD_E_STATE when it is none, or not open. */
int conn_local_host(const struct conn *conn, char text[ADDRESS_TEXT_MAX]) MUST_CHECK;

/* Of a Unix socket's other side, as the kernel vouches; 0 on others. */
pid_t conn_peer_pid(const struct conn *conn);

#endif
