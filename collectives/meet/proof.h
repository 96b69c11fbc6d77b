/*
 * proof.h: the keys of one control connection. Two sides that have the same secret, and have seen
 * the same HELLO and the same nonces, get the same two keys, one for each direction.
 *
 *     secret of the round, or of the contact  +  what the HELLO says, both nonces  ──►  two keys
 *
 * Because of the nonces no other connection has these keys, so a frame of another connection proves
 * nothing. Because each direction has its own key, a frame that is sent back to its sender proves
 * nothing.
 */
#ifndef COLLECTIVES_MEET_PROOF_H
#define COLLECTIVES_MEET_PROOF_H

#include "collectives/meet/meet_wire.h"

struct proof_keys { /* of one connection and one secret, as one side has them */
    /* the key with which this side proves its frames; that of the peer */
    uint8_t ours[SEAL_KEY_BYTES], theirs[SEAL_KEY_BYTES];
    /* said: number of frames that this side has sent with a proof by `ours`; heard: number of
     * received frames whose proof by `theirs` was right */
    uint64_t said, heard;
};

/* Make the keys from the secret of the round, or of the contact. `challenge`: the nonce of the side
 * that accepts. `dials` is true: this side has sent the HELLO. HVD_E_NOMEM: no memory is left. */
int proof_of_round(const uint8_t secret[SEAL_KEY_BYTES], const struct meet_frame *hello,
                   const uint8_t challenge[SEAL_NONCE_BYTES], bool dials,
                   struct proof_keys *ret_keys) MUST_CHECK;
int proof_of_contact(const uint8_t secret[MEET_SECRET_BYTES], const struct meet_frame *hello,
                     const uint8_t challenge[SEAL_NONCE_BYTES], bool dials,
                     struct proof_keys *ret_keys) MUST_CHECK;

/* Makes the proof for the next frame of this side. HVD_E_NOMEM: no memory is left. */
int proof_make(struct proof_keys *keys, const struct meet_frame *frame,
               uint8_t ret_proof[SEAL_PROOF_BYTES]) MUST_CHECK;

/* true: `proof` is right for `frame`, and `frame` is the next frame of the peer. */
bool proof_holds(struct proof_keys *keys, const struct meet_frame *frame,
                 const uint8_t proof[SEAL_PROOF_BYTES]) MUST_CHECK;

#endif
