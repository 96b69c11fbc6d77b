/*
 * conn_calls.h: the calls between the files behind conn.h. Included by conn_internal.h.
 */
#ifndef WIRE_CONN_CALLS_H
#define WIRE_CONN_CALLS_H

#include "wire/conn.h"

/* ---- conn_state.c: the life of a connection ---- */
/* conn_enter and conn_leave stand around each callback: they count in `busy` the callbacks that
 * run */
void conn_enter(struct conn *conn);
/* frees the connection if it is GONE and no other callback of it runs */
void conn_leave(struct conn *conn);
/* lets the event loop do the work of a call, in its next iteration */
void conn_kick(struct conn *conn);
/* starts the timer of the phase; HVD_E_NOMEM */
int conn_arm(struct conn *conn, int64_t us) MUST_CHECK;
/* ends the connection: `closed` is called when all received input is handed on */
void conn_end(struct conn *conn, const char *why);
/* ends the connection: input that was not handed on is dropped, and `closed` is called */
void conn_break(struct conn *conn, const char *why);
/* the handshake is done: messages may be sent and received */
void conn_up(struct conn *conn);
void conn_release_stream(struct conn *conn);
void conn_release_dial(struct conn *conn);

/* Checks that the peer of a Unix socket is the same user, or root. Fails with HVD_E_DENIED,
 * HVD_E_IO. */
int conn_check_user(struct conn *conn, int fd, struct hvd_err *err) MUST_CHECK;

/* conn_stream.c: reads and writes bytes without waiting; the result is a count of bytes or a
 * STREAM_ value */
ssize_t conn_stream_get(struct conn *conn, void *bytes, size_t size);
ssize_t conn_stream_put(struct conn *conn, const void *bytes, size_t size);
/* Returns why the last conn_stream call failed. Called before any call that changes errno or
 * OpenSSL's error queue. */
const char *conn_stream_reason(const struct conn *conn);
/* does one step of the handshake; calls `done` at the end of the handshake */
void conn_stream_handshake(struct conn *conn);
void conn_tune(int fd); /* sets up a TCP socket for small messages and for noticing a dead peer */

/* ---- conn_feed.c: from bytes to messages ---- */
void conn_feed(struct conn *conn); /* hands whole messages to the owner */
/* true: bytes have come that are not handed on yet; they may be a part of a frame */
bool conn_has_input(const struct conn *conn);
/* reads once from the stream; *ret_got: the number of bytes, or a STREAM_ value */
int conn_take_in(struct conn *conn, ssize_t *ret_got) MUST_CHECK;

/* conn_flow.c: conn_attach and conn_attach_tls own the descriptor when they succeed */
struct conn *conn_create(struct event_base *base, struct tls *tls) MUST_CHECK;
void conn_flow_go(struct conn *conn); /* called by the kick event: does the handshake, or writes */
int conn_attach(struct conn *conn, int fd) MUST_CHECK;
int conn_attach_tls(struct conn *conn, int fd, bool server, conn_handshake_fn *done,
                    void *arg) MUST_CHECK;

#endif
