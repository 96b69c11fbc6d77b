/*
 * tcp_wire.h: the bytes of our own TCP links. Numbers are little-endian.
 *
 *     the side that is dialled: challenge ──►     ◄── greeting :the side that dials
 *                               answer ──►
 *     then both sides: head, message, head, message, ... ; in records (seal/record.h), if the two
 *     have agreed so
 *
 * Greeting and answer prove that their senders have the secret of the round: each holds an HMAC
 * under a key of this connection and direction (tcp_proof.h). The token in an address is random and
 * not secret. The keys are derived from it too, so the keys of one link do not fit another link.
 */
#ifndef COLLECTIVES_LINK_TCP_WIRE_H
#define COLLECTIVES_LINK_TCP_WIRE_H

#include "collectives/link/socket.h"
#include "seal/record.h"

#define TCP_TOKEN_BYTES     16
#define TCP_ADDRESS_BYTES   (1 + ENDPOINT_IP_BYTES + 2 + TCP_TOKEN_BYTES)
#define TCP_CHALLENGE_BYTES (4 + SEAL_NONCE_BYTES)
#define TCP_GREETING_BYTES  (4 + 4 + SEAL_NONCE_BYTES + 2 + SEAL_PROOF_BYTES)
#define TCP_ANSWER_BYTES    (1 + 2 + SEAL_PROOF_BYTES)
#define TCP_WORD_MAX        TCP_GREETING_BYTES /* the longest message of the handshake */
#define TCP_HEAD_BYTES      16

struct tcp_address { /* where a link listens, and its token for one peer */
    struct endpoint at;
    uint8_t token[TCP_TOKEN_BYTES];
};
void tcp_address_write(const struct tcp_address *address, uint8_t ret_bytes[TCP_ADDRESS_BYTES]);
int tcp_address_read(const uint8_t *bytes, size_t length, struct tcp_address *ret_address)
    MUST_CHECK; /* HVD_E_PROTO: the bytes are no address */

/* How a side wants the messages to travel. `least`: the weakest mode that it accepts; `most`: the
 * strongest mode that it wants. tcp_wish_agree returns the mode that two sides use. */
struct tcp_wish {
    enum seal_mode least, most;
};
enum seal_mode tcp_wish_agree(struct tcp_wish one, struct tcp_wish other);

struct tcp_greeting {
    uint32_t rank; /* rank of the sender */
    uint8_t nonce[SEAL_NONCE_BYTES];
    struct tcp_wish wish;
    uint8_t proof[SEAL_PROOF_BYTES]; /* proves all bytes of the greeting before it */
};
struct tcp_answer {
    enum seal_mode mode;             /* the result of tcp_wish_agree for both wishes */
    struct tcp_wish wish;            /* the sender's own wish */
    uint8_t proof[SEAL_PROOF_BYTES]; /* proves the greeting, and the answer's bytes before it */
};
void tcp_challenge_write(const uint8_t nonce[SEAL_NONCE_BYTES],
                         uint8_t ret_bytes[TCP_CHALLENGE_BYTES]);
void tcp_greeting_write(const struct tcp_greeting *greeting, uint8_t ret_bytes[TCP_GREETING_BYTES]);
void tcp_answer_write(const struct tcp_answer *answer, uint8_t ret_bytes[TCP_ANSWER_BYTES]);
/* Read one of the three messages. HVD_E_PROTO: the bytes are not a challenge, greeting or answer.
 */
int tcp_challenge_read(const uint8_t bytes[TCP_CHALLENGE_BYTES],
                       uint8_t ret_nonce[SEAL_NONCE_BYTES]) MUST_CHECK;
int tcp_greeting_read(const uint8_t bytes[TCP_GREETING_BYTES],
                      struct tcp_greeting *ret_greeting) MUST_CHECK;
int tcp_answer_read(const uint8_t bytes[TCP_ANSWER_BYTES],
                    struct tcp_answer *ret_answer) MUST_CHECK;

struct tcp_head { /* what precedes the bytes of a message on a connection */
    uint64_t tag, length;
};
void tcp_head_write(const struct tcp_head *head, uint8_t ret_bytes[TCP_HEAD_BYTES]);
void tcp_head_read(const uint8_t bytes[TCP_HEAD_BYTES], struct tcp_head *ret_head);

/* wire_put writes a number in `bytes` bytes, little-endian; wire_get reads one. For all wire
 * formats of this folder and of meet_wire.h. */
void wire_put(uint8_t *at, uint64_t value, size_t bytes);
uint64_t wire_get(const uint8_t *at, size_t bytes);

#endif
