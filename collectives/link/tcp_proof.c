/*
 * tcp_proof.c: makes and checks the messages of the handshake of a TCP link. Called by
 * tcp_connect.c, which sends and receives them. Invariant: a wrong greeting gets no answer and no
 * keys; if both proofs are right, the two sides have derived the same keys.
 */
#include "collectives/link/tcp_proof.h"

#include <string.h>

/* Derives the four keys of a connection from the secret of the round and from facts of this
 * connection (tcp_proof.h). The keys are written as one run of bytes over the fields of *ret_keys.
 */
static int keys_derive(const struct tcp_pair *pair, const uint8_t *dialler_nonce,
                       const uint8_t *dialled_nonce, struct tcp_keys *ret_keys)
{
    uint8_t context[5 * 8 + TCP_TOKEN_BYTES + 2 * SEAL_NONCE_BYTES];

    _Static_assert(sizeof(*ret_keys) == 4 * (size_t)SEAL_KEY_BYTES, "keys without a hole");
    wire_put(context, pair->round->round, 8);
    wire_put(context + 8, pair->round->roster, 8);
    wire_put(context + 16, pair->dialler_incarnation, 8);
    wire_put(context + 24, pair->dialled_incarnation, 8);
    wire_put(context + 32, pair->dialler, 4);
    wire_put(context + 36, pair->dialled, 4);
    memcpy(context + 40, pair->token, TCP_TOKEN_BYTES);
    memcpy(context + 40 + TCP_TOKEN_BYTES, dialler_nonce, SEAL_NONCE_BYTES);
    memcpy(context + 40 + TCP_TOKEN_BYTES + SEAL_NONCE_BYTES, dialled_nonce, SEAL_NONCE_BYTES);
    return seal_derive(pair->round->secret, SEAL_KEY_BYTES, "hvd link", context, sizeof(context),
                       ret_keys->dialler_proof, sizeof(*ret_keys));
}

/* Makes the proof of a greeting. It covers all bytes of the greeting before the proof. */
static int greeting_prove(const struct tcp_keys *keys, const uint8_t *greeting, uint8_t *ret_proof)
{
    return seal_prove(keys->dialler_proof, 0, greeting, TCP_GREETING_BYTES - SEAL_PROOF_BYTES,
                      ret_proof);
}

/* Makes the proof of an answer. It covers the whole greeting, and all bytes of the answer before
 * the proof: so an answer fits one greeting only. */
static int answer_prove(const struct tcp_keys *keys, const uint8_t *greeting, const uint8_t *answer,
                        uint8_t *ret_proof)
{
    uint8_t both[TCP_GREETING_BYTES + TCP_ANSWER_BYTES - SEAL_PROOF_BYTES];

    memcpy(both, greeting, TCP_GREETING_BYTES);
    memcpy(both + TCP_GREETING_BYTES, answer, TCP_ANSWER_BYTES - SEAL_PROOF_BYTES);
    return seal_prove(keys->dialled_proof, 0, both, sizeof(both), ret_proof);
}

/* Makes the challenge for a connection that was accepted: random bytes, so that no greeting that
 * was made for an earlier connection is accepted. */
int proof_challenge(uint8_t ret_nonce[SEAL_NONCE_BYTES], uint8_t ret_bytes[TCP_CHALLENGE_BYTES])
{
    int rc = seal_random(ret_nonce, SEAL_NONCE_BYTES);

    if (!rc)
        tcp_challenge_write(ret_nonce, ret_bytes);
    return rc;
}

/* Makes the greeting that answers the challenge (tcp_proof.h). The greeting is written twice,
 * because the proof, which is its last field, covers the bytes before it. The outputs are written
 * only if all steps have succeeded. */
int proof_greet(const struct tcp_pair *pair, const uint8_t challenge[TCP_CHALLENGE_BYTES],
                struct tcp_wish wish, uint8_t ret_greeting[TCP_GREETING_BYTES],
                struct tcp_keys *ret_keys)
{
    struct tcp_greeting greeting = { .rank = pair->dialler, .wish = wish };
    uint8_t nonce[SEAL_NONCE_BYTES], bytes[TCP_GREETING_BYTES];
    struct tcp_keys keys;
    int rc = tcp_challenge_read(challenge, nonce);

    if (!rc)
        rc = seal_random(greeting.nonce, sizeof(greeting.nonce));
    if (!rc)
        rc = keys_derive(pair, greeting.nonce, nonce, &keys);
    if (!rc) {
        tcp_greeting_write(&greeting, bytes);
        rc = greeting_prove(&keys, bytes, greeting.proof);
    }
    if (!rc) {
        tcp_greeting_write(&greeting, ret_greeting);
        *ret_keys = keys;
    }
    seal_wipe(&keys, sizeof(keys));
    return rc;
}

/* Checks that the greeting has the proof which only the dialler of `pair` can make, and makes the
 * answer (tcp_proof.h). The outputs are written only if all checks have passed. */
int proof_admit(const struct tcp_pair *pair, const uint8_t nonce[SEAL_NONCE_BYTES],
                const uint8_t greeting[TCP_GREETING_BYTES], struct tcp_wish wish,
                uint8_t ret_answer[TCP_ANSWER_BYTES], enum seal_mode *ret_mode,
                struct tcp_keys *ret_keys)
{
    struct tcp_answer answer = { .wish = wish };
    uint8_t right[SEAL_PROOF_BYTES], bytes[TCP_ANSWER_BYTES];
    struct tcp_greeting read;
    struct tcp_keys keys;
    int rc = tcp_greeting_read(greeting, &read);

    if (!rc && read.rank != pair->dialler)
        rc = HVD_E_PROTO;
    if (!rc)
        rc = keys_derive(pair, read.nonce, nonce, &keys);
    if (!rc)
        rc = greeting_prove(&keys, greeting, right);
    if (!rc && !seal_same(right, read.proof, sizeof(right)))
        rc = HVD_E_PROTO;
    if (!rc) {
        answer.mode = tcp_wish_agree(read.wish, wish);
        tcp_answer_write(&answer, bytes);
        rc = answer_prove(&keys, greeting, bytes, answer.proof);
    }
    if (!rc) {
        tcp_answer_write(&answer, ret_answer);
        *ret_mode = answer.mode;
        *ret_keys = keys;
    }
    seal_wipe(&keys, sizeof(keys));
    return rc;
}

/* Checks the answer to our greeting (tcp_proof.h). The mode in the answer must be the one to which
 * the wishes of both sides lead. */
int proof_accept(const struct tcp_keys *keys, const uint8_t greeting[TCP_GREETING_BYTES],
                 const uint8_t answer[TCP_ANSWER_BYTES], enum seal_mode *ret_mode)
{
    uint8_t right[SEAL_PROOF_BYTES];
    struct tcp_greeting said;
    struct tcp_answer read;
    int rc = tcp_answer_read(answer, &read);

    if (!rc)
        rc = tcp_greeting_read(greeting, &said);
    if (!rc)
        rc = answer_prove(keys, greeting, answer, right);
    if (!rc && (!seal_same(right, read.proof, sizeof(right)) ||
                read.mode != tcp_wish_agree(said.wish, read.wish)))
        rc = HVD_E_PROTO;
    if (!rc)
        *ret_mode = read.mode;
    return rc;
}
