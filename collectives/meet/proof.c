/*
 * proof.c: the keys of a control connection, and the proofs that are made with them. Called by
 * handshake.c and connection.c. Invariant: a key is used in one direction of one connection, and
 * each number at most once.
 */
#include "collectives/meet/proof.h"

#include "collectives/link/tcp_wire.h"

#include <string.h>

/* Derives the two keys of a connection, one for each direction, from a secret and from facts that
 * belong to this connection only. `dials` is true on the side that dials, which proves its frames
 * with keys[0]; the other side uses keys[1]. */
static int proof_keys_derive(const uint8_t *secret, size_t length, const char *label,
                             const struct meet_frame *hello, const uint8_t *challenge, bool dials,
                             struct proof_keys *ret_keys)
{
    uint8_t context[4 * 8 + 2 * SEAL_NONCE_BYTES], keys[2][SEAL_KEY_BYTES];
    int rc;

    wire_put(context, hello->round, 8);
    wire_put(context + 8, hello->from, 8);
    wire_put(context + 16, hello->to, 8);
    wire_put(context + 24, hello->roster, 8);
    memcpy(context + 32, hello->nonce, SEAL_NONCE_BYTES);
    memcpy(context + 32 + SEAL_NONCE_BYTES, challenge, SEAL_NONCE_BYTES);
    rc = seal_derive(secret, length, label, context, sizeof(context), keys[0], sizeof(keys));
    if (rc)
        return rc;
    *ret_keys = (struct proof_keys){ .said = 0 };
    memcpy(ret_keys->ours, keys[!dials], SEAL_KEY_BYTES);
    memcpy(ret_keys->theirs, keys[dials], SEAL_KEY_BYTES);
    seal_wipe(keys, sizeof(keys));
    return 0;
}

/* The keys by which two members prove that they have the secret of the round (proof.h). */
int proof_of_round(const uint8_t secret[SEAL_KEY_BYTES], const struct meet_frame *hello,
                   const uint8_t challenge[SEAL_NONCE_BYTES], bool dials,
                   struct proof_keys *ret_keys)
{
    return proof_keys_derive(secret, SEAL_KEY_BYTES, "hvd meet", hello, challenge, dials, ret_keys);
}

/* The keys by which the dialling side proves that it has the contact of the other side, before that
 * side knows of the round (proof.h). */
int proof_of_contact(const uint8_t secret[MEET_SECRET_BYTES], const struct meet_frame *hello,
                     const uint8_t challenge[SEAL_NONCE_BYTES], bool dials,
                     struct proof_keys *ret_keys)
{
    return proof_keys_derive(secret, MEET_SECRET_BYTES, "hvd gate", hello, challenge, dials,
                             ret_keys);
}

/* Makes the proof of the next frame that this side sends, and counts the frame. */
int proof_make(struct proof_keys *keys, const struct meet_frame *frame,
               uint8_t ret_proof[SEAL_PROOF_BYTES])
{
    return meet_frame_prove(frame, keys->ours, keys->said++, ret_proof);
}

/* true: the peer has made this proof for this frame, and the frame is its next one. A wrong frame
 * is counted too, which does no harm: the caller closes the connection. */
bool proof_holds(struct proof_keys *keys, const struct meet_frame *frame,
                 const uint8_t proof[SEAL_PROOF_BYTES])
{
    uint8_t right[SEAL_PROOF_BYTES];

    return !meet_frame_prove(frame, keys->theirs, keys->heard++, right) &&
           seal_same(right, proof, SEAL_PROOF_BYTES);
}
