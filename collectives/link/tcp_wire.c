/*
 * tcp_wire.c: writes and reads the bytes of our own TCP links: addresses, the messages of the
 * handshake, and the heads of later messages. Bytes from the network are checked here before they
 * are used.
 */
#include "collectives/link/tcp_wire.h"

#include <string.h>

/* The first bytes of a challenge and of a greeting; the last one is the version of the protocol. */
static const uint8_t opening[4] = { 'h', 'v', 'd', 2 }; /* the last byte is the version */

/* Writes an unsigned number in `bytes` bytes, the lowest byte first. */
void wire_put(uint8_t *at, uint64_t value, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        at[i] = (uint8_t)(value >> (8 * i));
}

/* Reads an unsigned number of `bytes` bytes, the lowest byte first. */
uint64_t wire_get(const uint8_t *at, size_t bytes)
{
    uint64_t value = 0;

    for (size_t i = 0; i < bytes; i++)
        value |= (uint64_t)at[i] << (8 * i);
    return value;
}

/* Writes an address as tcp_address_read reads it; the port has two bytes. */
void tcp_address_write(const struct tcp_address *address, uint8_t ret_bytes[TCP_ADDRESS_BYTES])
{
    ret_bytes[0] = address->at.six ? 6 : 4;
    memcpy(ret_bytes + 1, address->at.ip, ENDPOINT_IP_BYTES);
    wire_put(ret_bytes + 1 + ENDPOINT_IP_BYTES, address->at.port, 2);
    memcpy(ret_bytes + 3 + ENDPOINT_IP_BYTES, address->token, TCP_TOKEN_BYTES);
}

/* Reads an address that tcp_address_write has written: 4 or 6 for IPv4 or IPv6, the IP address,
 * the port, and the token, a random value from which the keys of the connection are derived. */
int tcp_address_read(const uint8_t *bytes, size_t length, struct tcp_address *ret_address)
{
    if (length != TCP_ADDRESS_BYTES || (bytes[0] != 4 && bytes[0] != 6))
        return HVD_E_PROTO;
    ret_address->at.six = bytes[0] == 6;
    memcpy(ret_address->at.ip, bytes + 1, ENDPOINT_IP_BYTES);
    ret_address->at.port = (uint16_t)wire_get(bytes + 1 + ENDPOINT_IP_BYTES, 2);
    memcpy(ret_address->token, bytes + 3 + ENDPOINT_IP_BYTES, TCP_TOKEN_BYTES);
    return 0;
}

/* Returns the stronger of two modes: enum seal_mode has the weakest first. */
static enum seal_mode mode_max(enum seal_mode one, enum seal_mode other)
{
    return one > other ? one : other;
}

/* Returns the mode that both sides compute from both wishes: the weaker of the two modes that they
 * want, but none that is weaker than either accepts. */
enum seal_mode tcp_wish_agree(struct tcp_wish one, struct tcp_wish other)
{
    return mode_max(one.most < other.most ? one.most : other.most,
                    mode_max(one.least, other.least));
}

/* A wish has two bytes: the least mode and the most. */
static void wish_write(struct tcp_wish wish, uint8_t *at)
{
    at[0] = (uint8_t)wish.least;
    at[1] = (uint8_t)wish.most;
}

/* Reads the two bytes of a wish. HVD_E_PROTO: one of them is no mode. */
static int wish_read(const uint8_t *at, struct tcp_wish *ret_wish)
{
    if (at[0] >= SEAL_MODE_COUNT || at[1] >= SEAL_MODE_COUNT)
        return HVD_E_PROTO;
    *ret_wish = (struct tcp_wish){ (enum seal_mode)at[0], (enum seal_mode)at[1] };
    return 0;
}

/* Writes a challenge: the opening bytes and the nonce. */
void tcp_challenge_write(const uint8_t nonce[SEAL_NONCE_BYTES],
                         uint8_t ret_bytes[TCP_CHALLENGE_BYTES])
{
    memcpy(ret_bytes, opening, sizeof(opening));
    memcpy(ret_bytes + 4, nonce, SEAL_NONCE_BYTES);
}

/* Reads the nonce out of a challenge. HVD_E_PROTO: the bytes do not begin as messages of this
 * protocol do. */
int tcp_challenge_read(const uint8_t bytes[TCP_CHALLENGE_BYTES],
                       uint8_t ret_nonce[SEAL_NONCE_BYTES])
{
    if (memcmp(bytes, opening, sizeof(opening)) != 0)
        return HVD_E_PROTO;
    memcpy(ret_nonce, bytes + 4, SEAL_NONCE_BYTES);
    return 0;
}

/* Writes a greeting: the opening bytes, the rank, the nonce, how the sender wants messages to
 * travel, and the proof at the end. */
void tcp_greeting_write(const struct tcp_greeting *greeting, uint8_t ret_bytes[TCP_GREETING_BYTES])
{
    memcpy(ret_bytes, opening, sizeof(opening));
    wire_put(ret_bytes + 4, greeting->rank, 4);
    memcpy(ret_bytes + 8, greeting->nonce, SEAL_NONCE_BYTES);
    wish_write(greeting->wish, ret_bytes + 8 + SEAL_NONCE_BYTES);
    memcpy(ret_bytes + TCP_GREETING_BYTES - SEAL_PROOF_BYTES, greeting->proof, SEAL_PROOF_BYTES);
}

/* Reads a greeting; the proof is not checked here. HVD_E_PROTO: the bytes are no greeting. */
int tcp_greeting_read(const uint8_t bytes[TCP_GREETING_BYTES], struct tcp_greeting *ret_greeting)
{
    if (memcmp(bytes, opening, sizeof(opening)) != 0 ||
        wish_read(bytes + 8 + SEAL_NONCE_BYTES, &ret_greeting->wish))
        return HVD_E_PROTO;
    ret_greeting->rank = (uint32_t)wire_get(bytes + 4, 4);
    memcpy(ret_greeting->nonce, bytes + 8, SEAL_NONCE_BYTES);
    memcpy(ret_greeting->proof, bytes + TCP_GREETING_BYTES - SEAL_PROOF_BYTES, SEAL_PROOF_BYTES);
    return 0;
}

/* Writes an answer: the agreed mode (1 byte), how the sender wants messages to travel (a wish, 2
 * bytes), and the proof from byte 3 on. */
void tcp_answer_write(const struct tcp_answer *answer, uint8_t ret_bytes[TCP_ANSWER_BYTES])
{
    ret_bytes[0] = (uint8_t)answer->mode;
    wish_write(answer->wish, ret_bytes + 1);
    memcpy(ret_bytes + 3, answer->proof, SEAL_PROOF_BYTES);
}

/* Reads an answer, as tcp_answer_write has written it; the proof is not checked here. HVD_E_PROTO:
 * the bytes are no answer. */
int tcp_answer_read(const uint8_t bytes[TCP_ANSWER_BYTES], struct tcp_answer *ret_answer)
{
    if (bytes[0] >= SEAL_MODE_COUNT || wish_read(bytes + 1, &ret_answer->wish))
        return HVD_E_PROTO;
    ret_answer->mode = (enum seal_mode)bytes[0];
    memcpy(ret_answer->proof, bytes + 3, SEAL_PROOF_BYTES);
    return 0;
}

/* tcp_head_write and tcp_head_read: the head of a message, its tag and its length, 8 bytes each. */
void tcp_head_write(const struct tcp_head *head, uint8_t ret_bytes[TCP_HEAD_BYTES])
{
    wire_put(ret_bytes, head->tag, 8);
    wire_put(ret_bytes + 8, head->length, 8);
}

void tcp_head_read(const uint8_t bytes[TCP_HEAD_BYTES], struct tcp_head *ret_head)
{
    ret_head->tag = wire_get(bytes, 8);
    ret_head->length = wire_get(bytes + 8, 8);
}
