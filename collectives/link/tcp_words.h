/*
 * tcp_words.h: what is said over our own TCP links, as bytes. Numbers are little-endian.
 *
 *     who dials: greeting ──►     ◄── greeting :who is dialled     then both: head, message, ...
 *
 * A greeting proves that its sender is who was given the address: it holds the token that stood in
 * there, which is made for one pair of peers in one round.
 */
#ifndef COLLECTIVES_LINK_TCP_WORDS_H
#define COLLECTIVES_LINK_TCP_WORDS_H

#include "base/err.h"

#define TCP_IP_BYTES       16
#define TCP_TOKEN_BYTES    16
#define TCP_ADDRESS_BYTES  (1 + TCP_IP_BYTES + 2 + TCP_TOKEN_BYTES)
#define TCP_GREETING_BYTES (4 + 4 + TCP_TOKEN_BYTES)
#define TCP_HEAD_BYTES     16

struct tcp_address { /* where a peer listens, and what it wants to hear */
    bool six;
    uint8_t ip[TCP_IP_BYTES]; /* IPv4: the first four */
    uint16_t port;
    uint8_t token[TCP_TOKEN_BYTES];
};
void tcp_address_write(const struct tcp_address *address, uint8_t ret_bytes[TCP_ADDRESS_BYTES]);
int tcp_address_read(const uint8_t *bytes, size_t length,
                     struct tcp_address *ret_address) MUST_CHECK; /* HVD_E_PROTO */

struct tcp_greeting {
    uint32_t rank; /* of who speaks */
    uint8_t token[TCP_TOKEN_BYTES];
};
void tcp_greeting_write(const struct tcp_greeting *greeting, uint8_t ret_bytes[TCP_GREETING_BYTES]);
int tcp_greeting_read(const uint8_t bytes[TCP_GREETING_BYTES],
                      struct tcp_greeting *ret_greeting) MUST_CHECK; /* HVD_E_PROTO */
bool tcp_token_is(const uint8_t left[TCP_TOKEN_BYTES], const uint8_t right[TCP_TOKEN_BYTES]);

struct tcp_head { /* of a message */
    uint64_t tag, length;
};
void tcp_head_write(const struct tcp_head *head, uint8_t ret_bytes[TCP_HEAD_BYTES]);
void tcp_head_read(const uint8_t bytes[TCP_HEAD_BYTES], struct tcp_head *ret_head);

#endif
