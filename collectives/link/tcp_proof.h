/*
 * tcp_proof.h: makes and checks the three messages of the handshake of a TCP connection between two
 * members. It uses no sockets.
 *
 *     the side that is dialled          the side that dials
 *     proof_challenge ──► challenge ──►
 *                              ◄── greeting ◄── proof_greet
 *     proof_admit ──► answer ──►               proof_accept
 *
 * All keys are derived from the secret of the round, which only its members have, and from facts of
 * the connection: both nonces, ranks and incarnations, the roster, the token of the link. So
 * neither a message of another connection proves anything, nor one that a device on the way sends
 * back to its sender. The proofs also cover how messages will travel (tcp_wish), so that no device
 * can make the two sides choose a weaker mode.
 */
#ifndef COLLECTIVES_LINK_TCP_PROOF_H
#define COLLECTIVES_LINK_TCP_PROOF_H

#include "collectives/link/link.h"
#include "collectives/link/tcp_wire.h"

/* The facts that both sides of a connection know before the handshake. */
struct tcp_pair {
    const struct link_round *round;
    uint32_t dialler, dialled; /* ranks of the side that dials, and of the side that is dialled */
    uint64_t dialler_incarnation, dialled_incarnation;
    uint8_t token[TCP_TOKEN_BYTES]; /* the token in the address of the side that is dialled */
};

struct tcp_keys { /* the keys of one connection: one for each direction and purpose */
    uint8_t dialler_proof[SEAL_KEY_BYTES], dialled_proof[SEAL_KEY_BYTES];
    uint8_t dialler_stream[SEAL_KEY_BYTES], dialled_stream[SEAL_KEY_BYTES];
};

/* Makes a challenge with a random nonce. HVD_E_IO: the kernel gives no random bytes. */
int proof_challenge(uint8_t ret_nonce[SEAL_NONCE_BYTES],
                    uint8_t ret_bytes[TCP_CHALLENGE_BYTES]) MUST_CHECK;

/* Makes the greeting that answers the challenge. HVD_E_PROTO: the received bytes are no challenge;
 * HVD_E_NOMEM, HVD_E_IO. */
int proof_greet(const struct tcp_pair *pair, const uint8_t challenge[TCP_CHALLENGE_BYTES],
                struct tcp_wish wish, uint8_t ret_greeting[TCP_GREETING_BYTES],
                struct tcp_keys *ret_keys) MUST_CHECK;

/* Checks the greeting and makes the answer. nonce: the one of our challenge; wish: how this side
 * wants the messages to travel; *ret_mode: how they will. HVD_E_PROTO: the greeting does not prove
 * that the dialler of `pair` has sent it; HVD_E_NOMEM. */
int proof_admit(const struct tcp_pair *pair, const uint8_t nonce[SEAL_NONCE_BYTES],
                const uint8_t greeting[TCP_GREETING_BYTES], struct tcp_wish wish,
                uint8_t ret_answer[TCP_ANSWER_BYTES], enum seal_mode *ret_mode,
                struct tcp_keys *ret_keys) MUST_CHECK;

/* Checks the answer to our greeting. HVD_E_PROTO: the answer does not prove that it is from the
 * side that was dialled; HVD_E_NOMEM. */
int proof_accept(const struct tcp_keys *keys, const uint8_t greeting[TCP_GREETING_BYTES],
                 const uint8_t answer[TCP_ANSWER_BYTES], enum seal_mode *ret_mode) MUST_CHECK;

#endif
