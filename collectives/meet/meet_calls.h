/*
 * meet_calls.h: the calls between the files of meet, in the order of the drawing in
 * meet_internal.h, which includes this file.
 */
#ifndef COLLECTIVES_MEET_CALLS_H
#define COLLECTIVES_MEET_CALLS_H

#include "collectives/meet/meet.h"

struct meet_conn;
struct round_peer;
struct proof_keys;

/* In connection.c. Makes a connection over `fd`. NULL: out of memory, and `fd` is closed. */
struct meet_conn *meet_conn_create(struct meet *meet, enum meet_conn_state state, int fd);
void meet_conn_free(struct meet_conn *conn);
void meet_conn_hang_up(struct meet_conn *conn); /* closes the socket; the struct stays */
/* Sends a frame. Bytes that the socket does not take now wait for meet_conn_flush. */
void meet_conn_say(struct meet_conn *conn, const struct meet_frame *frame);
/* Sends the frame with a proof of `keys`, by which the peer knows who has sent the frame. */
void meet_conn_say_proved(struct meet_conn *conn, struct proof_keys *keys,
                          const struct meet_frame *frame);
void meet_conn_flush(struct meet_conn *conn); /* writes bytes that wait */
/* Reads bytes of the peer. 1: bytes were read; 0: none have come; -1: the connection has ended. */
int meet_conn_read(struct meet_conn *conn);
/* Takes the next frame from the bytes that were read; returns what meet_frame_read returns. */
int meet_conn_next(struct meet_conn *conn, struct meet_frame *ret_frame);

/* In round.c. The peer has proved itself over `conn`; frame: its HELLO or WELCOME. */
void meet_round_met(struct meet_round *round, struct round_peer *peer, struct meet_conn *conn,
                    const struct meet_frame *frame);
/* meet_round_missed, meet_round_parted and meet_round_forged free the connection. */
void meet_round_missed(struct meet_conn *conn, int code, const char *why);
void meet_round_parted(struct meet_conn *conn);
void meet_round_forged(struct meet_conn *conn); /* a frame came without a valid proof */
/* The peer of the connection has sent a NOTICE or a BYE. */
void meet_round_heard(struct meet_conn *conn, const struct meet_frame *frame);
/* Carries out the orders of the round's owner. */
void meet_round_obey(struct meet_round *round, int64_t now_us);
void meet_round_end(struct meet_round *round, int64_t now_us); /* frees a round that was left */
void meet_round_starves(struct meet_round *round); /* no descriptor was free for a while */

/* In handshake.c. */
void handshake_begin(struct meet_round *round, int64_t now_us); /* dials the peers */
void handshake_due(struct meet_conn *conn, int64_t now_us);     /* at the deadline of `conn` */
void handshake_challenge(struct meet_conn *conn);               /* sends CHALLENGE to a stranger */
short handshake_events(const struct meet_conn *conn);           /* the poll events to wait for */
void handshake_ready(struct meet_conn *conn, short events, int64_t now_us);

#endif
