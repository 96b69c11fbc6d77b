/*
 * round.c: the peers of one round, as seen by this process: the functions of meet.h that have a
 * round, and the functions by which handshake.c and meet.c report what happened to a peer. A
 * caller's thread only writes orders under the mutex; meet's thread carries them out
 * (meet_round_obey).
 */
#include "base/limits.h"
#include "base/mem.h"
#include "collectives/link/socket.h"
#include "collectives/meet/meet_internal.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>

/* ---- called by other threads ---- */

/* Makes meet's thread, which may sleep in poll, look at its orders. */
static void meet_wake(struct meet *meet)
{
    (void)eventfd_write(meet->wake, 1);
}

/* Frees a round; NULL is allowed. Its secret is wiped. */
static void meet_round_free(struct meet_round *round)
{
    if (!round)
        return;
    mem_free(round->peers);
    seal_wipe(round->secret, sizeof(round->secret));
    mem_free(round);
}

/* Joins a round (meet.h): copies the spec, decides which side dials in each pair, and gives the
 * round to meet's thread, which dials. */
int meet_join(struct meet *meet, const struct meet_spec *spec, struct meet_round **ret_round,
              struct hvd_err *err)
{
    struct meet_round *round = mem_zalloc(sizeof(*round));
    int rc = 0;

    if (round)
        round->peers = mem_zalloc_array(spec->peer_count, sizeof(*round->peers));
    if (!round || !round->peers) {
        meet_round_free(round);
        return err_set(err, HVD_E_NOMEM,
                       "no memory for the list of the peers of a round; free memory on this host");
    }
    list_init(&round->place);
    round->meet = meet;
    round->spec = *spec;
    round->spec.peers = NULL;
    memcpy(round->secret, spec->secret, sizeof(round->secret));
    round->spec.secret = round->secret;
    for (size_t i = 0; i < spec->peer_count && !rc; i++) {
        const struct meet_peer *from = &spec->peers[i];
        struct round_peer *peer = &round->peers[i];

        peer->rank = from->rank;
        peer->incarnation = from->incarnation;
        memcpy(peer->address, from->address, from->address_length);
        peer->address_length = from->address_length;
        /* in each pair one member dials, and each member dials half of its peers */
        peer->dialled =
            (spec->rank + from->rank) % 2 ? spec->rank < from->rank : spec->rank > from->rank;
        rc = from->contact ? meet_contact_read(from->contact, &peer->contact, err)
                           : err_set(err, HVD_E_LOST,
                                     "the worker has announced no address for data connections; "
                                     "install the same release of the agent and of libhvd on the "
                                     "host of this rank");
        if (rc)
            err_prefix(err, rc, "rank %u", from->rank);
    }
    if (rc) {
        meet_round_free(round);
        return rc;
    }
    /* *ret_round is set under the mutex: the owner must have it before the first callback */
    pthread_mutex_lock(&meet->mutex);
    list_append(&meet->arrivals, &round->place);
    *ret_round = round;
    pthread_mutex_unlock(&meet->mutex);
    meet_wake(meet);
    return 0;
}

/* Orders that meet's thread tells all peers why the round is over (meet.h). Only the first reason
 * is kept. */
void meet_tell(struct meet_round *round, int code, uint32_t rank, const char *why)
{
    struct meet *meet = round->meet;

    pthread_mutex_lock(&meet->mutex);
    if (!round->told) {
        round->told = true;
        round->notice = (struct meet_frame){ .kind = MEET_NOTICE, .code = code, .rank = rank };
        memcpy(round->notice.text, why, strnlen(why, sizeof(round->notice.text) - 1));
    }
    pthread_mutex_unlock(&meet->mutex);
    meet_wake(meet);
}

/* Orders a BYE to all connected peers, and waits until meet's thread has sent it. A meet that is
 * closing sends nothing any more, so the wait ends then too. */
void meet_bye(struct meet_round *round)
{
    struct meet *meet = round->meet;

    pthread_mutex_lock(&meet->mutex);
    round->bye = true;
    meet_wake(meet);
    while (!round->bye_said && !meet->closing)
        pthread_cond_wait(&meet->changed, &meet->mutex);
    pthread_mutex_unlock(&meet->mutex);
}

/* Orders meet's thread to leave the round (meet.h); the callback `gone` says when that is done. */
void meet_leave(struct meet_round *round, bool politely)
{
    struct meet *meet = round->meet;

    pthread_mutex_lock(&meet->mutex);
    round->leaving = true;
    round->politely = politely;
    pthread_mutex_unlock(&meet->mutex);
    meet_wake(meet);
}

/* ---- what happens to the peers; the owner knows a peer by its index in meet_spec.peers ---- */

/* Makes `conn` the connection of this peer, after the peer has proved that it is a member. frame:
 * the peer's HELLO or WELCOME, with its address for the links. The owner is told once that a peer
 * is met, also if the peer connects again. */
void meet_round_met(struct meet_round *round, struct round_peer *peer, struct meet_conn *conn,
                    const struct meet_frame *frame)
{
    /* the peer has dialled again, because its first connection broke: that one is closed */
    if (peer->conn && peer->conn != conn) {
        struct meet_conn *older = peer->conn;

        peer->conn = conn;
        meet_conn_free(older);
    }
    if (conn->state == CONN_PARKED)
        conn->meet->parked_count--;
    /* from now on the connection belongs to this peer */
    conn->state = CONN_MET;
    conn->round = round;
    conn->peer = peer;
    peer->conn = conn;
    if (round->told_all) /* the other peers have been told already why the round is over */
        meet_conn_say_proved(conn, &conn->line, &round->notice);
    if (peer->met)
        return;
    peer->met = true;
    round->spec.ops->met(round->spec.arg, (size_t)(peer - round->peers), frame->address,
                         frame->address_length);
}

/* Tells the owner that the peers which must dial this process and are not met cannot be connected:
 * no descriptor is free to accept them. The dials of this process wait for a free descriptor by
 * themselves. */
void meet_round_starves(struct meet_round *round)
{
    for (size_t i = 0; i < round->spec.peer_count && !round->left; i++) {
        if (!round->peers[i].dialled && !round->peers[i].met)
            round->spec.ops->missed(round->spec.arg, i, HVD_E_LIMIT, SOCKET_STARVES);
    }
}

/* Tells the owner that this peer cannot be connected, and frees the connection. */
void meet_round_missed(struct meet_conn *conn, int code, const char *why)
{
    struct meet_round *round = conn->round;
    size_t at = (size_t)(conn->peer - round->peers);

    if (!round->left)
        round->spec.ops->missed(round->spec.arg, at, code, why);
    meet_conn_free(conn);
}

/* Handles a NOTICE or BYE of a peer. After its BYE the peer's NOTICEs are ignored. */
void meet_round_heard(struct meet_conn *conn, const struct meet_frame *frame)
{
    struct meet_round *round = conn->round;
    size_t at = (size_t)(conn->peer - round->peers);

    if (frame->kind == MEET_BYE)
        conn->bye_heard = true;
    else if (!round->left && !conn->bye_heard)
        round->spec.ops->heard(round->spec.arg, at, frame->code, frame->rank, frame->text);
}

/* Handles the end of a connection: it means that the peer has died, unless one of the two sides has
 * left the round. */
void meet_round_parted(struct meet_conn *conn)
{
    struct meet_round *round = conn->round;
    size_t at = (size_t)(conn->peer - round->peers);
    bool expected = conn->bye_heard || round->left;

    meet_conn_free(conn);
    if (!expected)
        round->spec.ops->parted(round->spec.arg, at);
}

/* Called for a frame whose proof is wrong: bytes on the connection were changed, lost, repeated or
 * added. Tells the owner, and closes the connection. */
void meet_round_forged(struct meet_conn *conn)
{
    struct meet_round *round = conn->round;
    size_t at = (size_t)(conn->peer - round->peers);
    uint32_t rank = conn->peer->rank;
    char why[MEET_TEXT_MAX];

    (void)snprintf(why, sizeof(why),
                   "the control connection of ranks %" PRIu32 " and %" PRIu32
                   " (%s port %u) carried bytes that neither has sent; look for a device that "
                   "changes what these hosts send",
                   round->spec.rank, rank, conn->peer->contact.host,
                   (unsigned)conn->peer->contact.port);
    if (!round->left && !conn->bye_heard)
        round->spec.ops->heard(round->spec.arg, at, HVD_E_LOST, rank, why);
    meet_conn_free(conn);
}

/* ---- what the owner orders ---- */

/* Sends a frame to every peer that is met and still connected; each connection has a proof of its
 * own. */
static void say_to_all_met(struct meet_round *round, const struct meet_frame *frame)
{
    for (size_t i = 0; i < round->spec.peer_count; i++) {
        struct meet_conn *conn = round->peers[i].conn;

        if (conn && conn->state == CONN_MET)
            meet_conn_say_proved(conn, &conn->line, frame);
    }
}

/* Carries out what the owner has ordered since the last iteration: to tell why the round is over,
 * to send BYE, to leave. The orders are copied under the mutex, and carried out without it. */
void meet_round_obey(struct meet_round *round, int64_t now_us)
{
    const struct meet_frame bye_frame = { .kind = MEET_BYE };
    struct meet *meet = round->meet;
    bool told, bye, leaving, politely;

    pthread_mutex_lock(&meet->mutex);
    told = round->told;
    bye = round->bye && !round->bye_said;
    leaving = round->leaving;
    politely = round->politely;
    pthread_mutex_unlock(&meet->mutex);

    /* tell all connected peers the first reason; a peer that connects later is told when it is met
     */
    if (told && !round->told_all) {
        round->told_all = true;
        say_to_all_met(round, &round->notice);
    }
    if (bye) {
        say_to_all_met(round, &bye_frame);
        pthread_mutex_lock(&meet->mutex);
        round->bye_said = true;
        pthread_cond_broadcast(&meet->changed);
        pthread_mutex_unlock(&meet->mutex);
    }
    if (leaving && !round->left) {
        round->left = true;
        round->deadline_us = now_us + LIMIT_MEET_BYE_US;
        for (size_t i = 0; i < round->spec.peer_count; i++) {
            struct meet_conn *conn = round->peers[i].conn;

            if (conn && (!politely || conn->state != CONN_MET))
                meet_conn_free(conn);
        }
        say_to_all_met(round, &bye_frame);
    }
}

/* Ends and frees a round that its owner has left: when all peers have sent BYE and the BYEs of this
 * side are sent, or at the deadline. `gone` is the last callback: the round is freed before it, as
 * the owner may free itself in it. */
void meet_round_end(struct meet_round *round, int64_t now_us)
{
    const struct meet_spec spec = round->spec;

    if (!round->left)
        return;
    for (size_t i = 0; i < spec.peer_count && now_us < round->deadline_us; i++) {
        const struct meet_conn *conn = round->peers[i].conn;

        if (conn && (!conn->bye_heard || conn->out.length))
            return;
    }
    for (size_t i = 0; i < spec.peer_count; i++) {
        if (round->peers[i].conn)
            meet_conn_free(round->peers[i].conn);
    }
    list_remove(&round->place);
    meet_round_free(round);
    spec.ops->gone(spec.arg);
}
