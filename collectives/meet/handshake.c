/*
 * handshake.c: how two peers of a round connect and prove that they are members (then they have
 * "met"); called by meet.c.
 *
 * The side that accepts sends a CHALLENGE at once. The side that dials sends a HELLO, with the
 * round and the roster, and with two proofs that are good for this connection alone: that it has
 * the contact of the other side, and that it has the secret of the round. The side that accepts
 * answers WELCOME, which proves that it is a member too, or REFUSED with the reason; or, if it has
 * not joined that round yet, it parks (keeps) the connection until it joins the round. A connection
 * whose proof is wrong is closed without a word. Invariant: a peer gets another connection only
 * after a proof of that peer.
 */
#include "base/limits.h"
#include "collectives/link/socket.h"
#include "collectives/meet/meet_internal.h"

#include <errno.h>
#include <string.h>
#include <sys/resource.h>

#define RETRY_US     5000   /* the wait before the second dial; doubled with each try */
#define RETRY_MAX_US 200000 /* the longest wait between two dials */

/* Parked connections may use 1 / PARKED_SHARE of the descriptors of this process. A peer whose
 * parked connection is closed, because too many are parked, dials again. */
#define PARKED_SHARE 4

/* A peer counts as missed after this many tries to dial it that found no free descriptor; they take
 * more than a second. */
#define STARVED_TRIES 10

#define OTHER_ROUND                                                                             \
    "the two workers have different members, groups or settings for this round; make the same " \
    "groups "                                                                                   \
    "on all ranks, and give all workers the same HVD_ variables"

#define NO_MEMBER                                                                                  \
    "the address of this rank answers, but not as a member of the round; use the same release of " \
    "libhvd on all workers, and look for a device between the two hosts that changes what they "   \
    "send"

/* ---- the side that dials ---- */

/* Closes the socket, and sets the time of the next dial: after RETRY_US, doubled with each try, at
 * most RETRY_MAX_US. */
static void conn_dial_later(struct meet_conn *conn, int64_t now_us)
{
    /* 5000 shifted by 6 is more than RETRY_MAX_US already */
    int64_t wait_us = RETRY_US << (conn->tries < 6 ? conn->tries : 6);

    meet_conn_hang_up(conn);
    conn->state = CONN_WAITS;
    conn->tries++;
    conn->deadline_us = now_us + (wait_us < RETRY_MAX_US ? wait_us : RETRY_MAX_US);
}

/* Handles a dial that failed. fault: the errno of the dial. A worker listens before its contact is
 * told to others, so a refused dial means that the worker has died. Without a free descriptor this
 * process tries again, up to STARVED_TRIES. */
static void conn_dial_failed(struct meet_conn *conn, int fault, int64_t now_us)
{
    if (fault == ECONNREFUSED)
        meet_round_missed(conn, HVD_E_LOST, "this rank no longer listens, so it has ended");
    else if ((fault == EMFILE || fault == ENFILE) && conn->tries >= STARVED_TRIES)
        meet_round_missed(conn, HVD_E_LIMIT, SOCKET_STARVES);
    else
        conn_dial_later(conn, now_us);
}

/* Begins to connect to the peer. Does not wait: poll reports when the kernel has connected, and
 * handshake_ready goes on. */
static void conn_dial(struct meet_conn *conn, int64_t now_us)
{
    const struct meet_contact *contact = &conn->peer->contact;
    struct endpoint endpoint;

    conn->state = CONN_DIALS;
    errno = EINVAL; /* the errno of the failure if the contact's host is no numeric address */
    if (!endpoint_parse(contact->host, contact->port, &endpoint))
        conn->fd = socket_dial(&endpoint);
    if (conn->fd < 0)
        conn_dial_failed(conn, errno, now_us);
}

/* ---- the side that accepts ---- */

/* Tells the side that dialled why it is refused, and closes the connection. The proof of the
 * REFUSED shows only that this side has the contact, because the two sides may have no common
 * round. */
static void conn_refuse(struct meet_conn *conn, int code, const char *why)
{
    struct meet_frame refused = { .kind = MEET_REFUSED, .code = code, .rank = MEET_NOBODY };

    memcpy(refused.text, why, strlen(why));
    meet_conn_say_proved(conn, &conn->gate, &refused);
    meet_conn_free(conn);
}

/* Sends CHALLENGE, with a new nonce, to a stranger that has just connected. Without random bytes
 * the connection is freed. */
void handshake_challenge(struct meet_conn *conn)
{
    struct meet_frame challenge = { .kind = MEET_CHALLENGE };

    if (seal_random(conn->challenge, sizeof(conn->challenge))) {
        meet_conn_free(conn);
        return;
    }
    memcpy(challenge.nonce, conn->challenge, sizeof(challenge.nonce));
    meet_conn_say(conn, &challenge);
}

/* true: the HELLO is for a group that its members alone open (meet.h), not for a round. */
static bool hello_is_of_group(const struct meet_frame *hello)
{
    return hello->round & MEET_OF_GROUP;
}

/* true: the HELLO is for this round, or for this group. In a round there are many groups, which
 * only their rosters tell apart; but in a round of all members another roster is a mismatch, which
 * judge_parked refuses. */
static bool hello_means(const struct meet_frame *hello, const struct meet_round *round)
{
    return hello->round == round->spec.round && !round->left &&
           (!hello_is_of_group(hello) || hello->roster == round->spec.roster);
}

/* true: this process may still join what the HELLO is for: a later round, or a group of a round
 * that this process has not left. */
static bool hello_is_early(const struct meet *meet, const struct meet_frame *hello)
{
    uint64_t number = hello->round & ~MEET_OF_GROUP;

    if (number > meet->newest)
        return true;
    LIST_EACH (it, &meet->rounds) {
        const struct meet_round *one = CONTAINER_OF(it, struct meet_round, place);

        if (hello_is_of_group(hello) && one->spec.round == number && !one->left)
            return true;
    }
    return false;
}

/* Decides about a connection that has proved that it has the contact: its peer is met; or the
 * connection stays parked until this process joins the round; or the peer is refused. */
static void judge_parked(struct meet_conn *conn)
{
    const struct meet_frame *hello = &conn->hello;
    struct meet_frame welcome = { .kind = MEET_WELCOME };
    struct meet *meet = conn->meet;
    struct meet_round *round = NULL;
    struct round_peer *peer = NULL;
    rlim_t most = LIMIT_MEET_PARKED;
    struct rlimit files;

    /* find the round, and the peer in the round, that the other side means */
    LIST_EACH (it, &meet->rounds) {
        struct meet_round *one = CONTAINER_OF(it, struct meet_round, place);

        if (!round && hello_means(hello, one))
            round = one;
    }
    /* this process has not joined that round yet: the connection waits, unless too many wait
     * already */
    if (!round && hello_is_early(meet, hello)) {
        /* most descriptors are left to the user's program */
        if (!getrlimit(RLIMIT_NOFILE, &files) && files.rlim_cur / PARKED_SHARE < most)
            most = files.rlim_cur / PARKED_SHARE;
        if (meet->parked_count > most)
            meet_conn_free(conn);
        return;
    }
    if (!round) {
        conn_refuse(conn, HVD_E_NOTFOUND, "the other worker has left this round already");
        return;
    }
    for (size_t i = 0; i < round->spec.peer_count && !peer; i++) {
        /* a peer with `dialled` does not dial this process: this process dials it */
        if (round->peers[i].incarnation == hello->from && !round->peers[i].dialled)
            peer = &round->peers[i];
    }
    if (!peer || hello->to != round->spec.incarnation || hello->roster != round->spec.roster) {
        conn_refuse(conn, HVD_E_MISMATCH, OTHER_ROUND);
        return;
    }
    /* The peer has shown that it has our contact, but every member of the job has it, also one
     * of another round. The peer must prove that it has the secret of this round too; false: this
     * side was dialled. */
    if (proof_of_round(round->secret, hello, conn->challenge, false, &conn->line) ||
        !proof_holds(&conn->line, hello, hello->proof)) {
        meet_conn_free(conn);
        return;
    }
    memcpy(welcome.address, peer->address, peer->address_length);
    welcome.address_length = peer->address_length;
    meet_conn_say_proved(conn, &conn->line, &welcome);
    meet_round_met(round, peer, conn, hello);
}

/* Begins a round: dials the peers that this member must dial, and looks at the connections of
 * peers that dialled before this process joined the round (parked connections). */
void handshake_begin(struct meet_round *round, int64_t now_us)
{
    struct meet *meet = round->meet;
    struct meet_conn *parked;

    if (!(round->spec.round & MEET_OF_GROUP) && round->spec.round > meet->newest)
        meet->newest = round->spec.round;
    for (size_t i = 0; i < round->spec.peer_count; i++) {
        struct round_peer *peer = &round->peers[i];

        if (!peer->dialled)
            continue;
        /* -1: the connection has no socket yet; conn_dial makes it */
        peer->conn = meet_conn_create(meet, CONN_WAITS, -1);
        if (!peer->conn) {
            round->spec.ops->missed(
                round->spec.arg, i, HVD_E_NOMEM,
                "no memory for a connection to this rank; free memory on this host");
            continue;
        }
        peer->conn->round = round;
        peer->conn->peer = peer;
        conn_dial(peer->conn, now_us);
    }
    /* Judges the parked connections that need not wait any more. The search begins anew after each,
     * because judging one connection may free others. */
    do {
        parked = NULL;
        LIST_EACH (it, &meet->conns) {
            struct meet_conn *conn = CONTAINER_OF(it, struct meet_conn, place);

            if (conn->state == CONN_PARKED &&
                (hello_means(&conn->hello, round) || !hello_is_early(meet, &conn->hello))) {
                parked = conn;
                break;
            }
        }
        if (parked)
            judge_parked(parked);
    } while (parked);
}

/* Answers the CHALLENGE with a HELLO, which proves that this side has the contact of the peer and
 * the secret of the round. */
static void conn_say_hello(struct meet_conn *conn, const uint8_t *challenge, int64_t now_us)
{
    const struct meet_spec *spec = &conn->round->spec;
    const struct round_peer *peer = conn->peer;
    struct meet_frame *hello = &conn->hello;

    *hello = (struct meet_frame){ .kind = MEET_HELLO,
                                  .round = spec->round,
                                  .from = spec->incarnation,
                                  .to = peer->incarnation,
                                  .roster = spec->roster };
    memcpy(hello->address, peer->address, peer->address_length);
    hello->address_length = peer->address_length;
    memcpy(conn->challenge, challenge, sizeof(conn->challenge));
    /* true: this side has dialled */
    if (seal_random(hello->nonce, sizeof(hello->nonce)) ||
        proof_of_contact(peer->contact.secret, hello, challenge, true, &conn->gate) ||
        proof_of_round(spec->secret, hello, challenge, true, &conn->line) ||
        proof_make(&conn->gate, hello, hello->gate) ||
        proof_make(&conn->line, hello, hello->proof)) {
        conn_dial_later(conn, now_us);
        return;
    }
    conn->state = CONN_ASKS;
    meet_conn_say(conn, hello);
}

/* Handles a frame, in the state of the connection. `frame` is NULL: the peer broke the protocol.
 * Returns false when the caller must not read on: the connection is freed, or waits to dial again,
 * or is parked. */
static bool hear_frame(struct meet_conn *conn, const struct meet_frame *frame, int64_t now_us)
{
    /* frame NULL: the bytes of the peer are no frame. They are then treated as a HELLO, because a
     * HELLO is an error in all states below except CONN_STRANGER, which checks `frame` first. */
    enum meet_kind kind = frame ? frame->kind : MEET_HELLO;

    switch (conn->state) {
    case CONN_CALLS:
        if (kind == MEET_CHALLENGE) {
            conn_say_hello(conn, frame->nonce, now_us);
            return conn->state == CONN_ASKS;
        }
        meet_round_missed(conn, HVD_E_PROTO, NO_MEMBER);
        return false;
    case CONN_ASKS:
        if (kind == MEET_WELCOME && proof_holds(&conn->line, frame, frame->proof)) {
            meet_round_met(conn->round, conn->peer, conn, frame);
            return true;
        }
        if (kind == MEET_REFUSED && proof_holds(&conn->gate, frame, frame->proof))
            meet_round_missed(conn, frame->code, frame->text);
        else
            meet_round_missed(conn, HVD_E_PROTO, NO_MEMBER);
        return false;
    case CONN_STRANGER:
        /* Only a HELLO that proves that the stranger has the contact of this process is accepted,
         * and nothing may follow it: a peer sends nothing more until its HELLO is answered. (false:
         * this side was dialled.) */
        if (!frame || conn->in_length || kind != MEET_HELLO ||
            proof_of_contact(conn->meet->contact.secret, frame, conn->challenge, false,
                             &conn->gate) ||
            !proof_holds(&conn->gate, frame, frame->gate))
            break;
        door_leave(&conn->meet->door, &conn->guest);
        conn->meet->parked_count++;
        conn->state = CONN_PARKED;
        conn->hello = *frame;
        conn->deadline_us = now_us + LIMIT_MEET_PARKED_US;
        judge_parked(conn);
        return false;
    case CONN_MET:
        if ((kind != MEET_NOTICE && kind != MEET_BYE) ||
            !proof_holds(&conn->line, frame, frame->proof)) {
            meet_round_forged(conn);
            return false;
        }
        meet_round_heard(conn, frame);
        return true;
    default: break;
    }
    meet_conn_free(conn);
    return false;
}

/* Returns the poll events that this connection waits for: the end of the connect, or frames of the
 * peer, and room for bytes that wait to be sent. */
short handshake_events(const struct meet_conn *conn)
{
    if (conn->state == CONN_DIALS)
        return POLLOUT;
    return (short)(POLLIN | (conn->out.length ? POLLOUT : 0));
}

/* Handles the poll events of a connection: goes on with the handshake, and hands each whole frame
 * to hear_frame. The connection may be freed on return. */
void handshake_ready(struct meet_conn *conn, short events, int64_t now_us)
{
    struct meet_frame frame;
    int fault, rc;

    if (conn->state == CONN_DIALS) {
        /* the kernel has connected, or has failed to; then the other side sends the first frame */
        fault = socket_fault(conn->fd);
        if (fault)
            conn_dial_failed(conn, fault, now_us);
        else
            conn->state = CONN_CALLS;
        return;
    }
    if (events & POLLOUT)
        meet_conn_flush(conn);
    if (!(events & (POLLIN | POLLERR | POLLHUP)))
        return;
    while ((rc = meet_conn_read(conn)) > 0) {
        door_spoke(&conn->guest);
        /* a parked peer must send nothing until it is met; this one has, so it broke the protocol
         */
        if (conn->state == CONN_PARKED) {
            meet_conn_free(conn);
            return;
        }
        while ((rc = meet_conn_next(conn, &frame)) == 1) {
            if (!hear_frame(conn, &frame, now_us))
                return;
        }
        if (rc < 0) {
            /* NULL: the bytes are no frame */
            (void)hear_frame(conn, NULL, now_us);
            return;
        }
    }
    /* 0: no more bytes have come; negative: the connection has ended */
    if (rc == 0)
        return;

    /* the connection broke: dial again, or tell the owner that the peer is gone, or forget it */
    if (conn->state == CONN_CALLS || conn->state == CONN_ASKS)
        conn_dial_later(conn, now_us);
    else if (conn->state == CONN_MET)
        meet_round_parted(conn);
    else
        meet_conn_free(conn);
}

/* Called at the deadline of a connection: dials again (WAITS), or ends a connection that took too
 * long (STRANGER, PARKED). */
void handshake_due(struct meet_conn *conn, int64_t now_us)
{
    if (conn->state == CONN_WAITS)
        conn_dial(conn, now_us);
    else
        meet_conn_free(conn);
}
