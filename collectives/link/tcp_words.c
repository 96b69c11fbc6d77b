#include "collectives/link/tcp_words.h"

#include <string.h>

static const uint8_t opening[4] = { 'h', 'v', 'd', 1 }; /* the last is the version */

static void put_number(uint8_t *at, uint64_t value, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        at[i] = (uint8_t)(value >> (8 * i));
}

static uint64_t get_number(const uint8_t *at, size_t bytes)
{
    uint64_t value = 0;

    for (size_t i = 0; i < bytes; i++)
        value |= (uint64_t)at[i] << (8 * i);
    return value;
}

void tcp_address_write(const struct tcp_address *address, uint8_t ret_bytes[TCP_ADDRESS_BYTES])
{
    ret_bytes[0] = address->six ? 6 : 4;
    memcpy(ret_bytes + 1, address->ip, TCP_IP_BYTES);
    put_number(ret_bytes + 1 + TCP_IP_BYTES, address->port, 2);
    memcpy(ret_bytes + 3 + TCP_IP_BYTES, address->token, TCP_TOKEN_BYTES);
}

int tcp_address_read(const uint8_t *bytes, size_t length, struct tcp_address *ret_address)
{
    if (length != TCP_ADDRESS_BYTES || (bytes[0] != 4 && bytes[0] != 6))
        return HVD_E_PROTO;
    ret_address->six = bytes[0] == 6;
    memcpy(ret_address->ip, bytes + 1, TCP_IP_BYTES);
    ret_address->port = (uint16_t)get_number(bytes + 1 + TCP_IP_BYTES, 2);
    memcpy(ret_address->token, bytes + 3 + TCP_IP_BYTES, TCP_TOKEN_BYTES);
    return 0;
}

void tcp_greeting_write(const struct tcp_greeting *greeting, uint8_t ret_bytes[TCP_GREETING_BYTES])
{
    memcpy(ret_bytes, opening, sizeof(opening));
    put_number(ret_bytes + 4, greeting->rank, 4);
    memcpy(ret_bytes + 8, greeting->token, TCP_TOKEN_BYTES);
}

int tcp_greeting_read(const uint8_t bytes[TCP_GREETING_BYTES], struct tcp_greeting *ret_greeting)
{
    if (memcmp(bytes, opening, sizeof(opening)) != 0)
        return HVD_E_PROTO;
    ret_greeting->rank = (uint32_t)get_number(bytes + 4, 4);
    memcpy(ret_greeting->token, bytes + 8, TCP_TOKEN_BYTES);
    return 0;
}

/* Takes as long wherever they differ: that tells nobody how much of a guess was right. */
bool tcp_token_is(const uint8_t left[TCP_TOKEN_BYTES], const uint8_t right[TCP_TOKEN_BYTES])
{
    unsigned differs = 0;

    for (size_t i = 0; i < TCP_TOKEN_BYTES; i++)
        differs |= (unsigned)(left[i] ^ right[i]);
    return !differs;
}

void tcp_head_write(const struct tcp_head *head, uint8_t ret_bytes[TCP_HEAD_BYTES])
{
    put_number(ret_bytes, head->tag, 8);
    put_number(ret_bytes + 8, head->length, 8);
}

void tcp_head_read(const uint8_t bytes[TCP_HEAD_BYTES], struct tcp_head *ret_head)
{
    ret_head->tag = get_number(bytes, 8);
    ret_head->length = get_number(bytes + 8, 8);
}
