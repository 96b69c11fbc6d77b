/*
 * addresses.h: the texts "KIND=VALUE" by which members are reached (PROTOCOL.md, "Addresses").
 */
#ifndef WORKER_ADDRESSES_H
#define WORKER_ADDRESSES_H

#include "proto/msg.h"

/* The value of the first of this kind; NULL: there is none. */
const char *addresses_find(const struct msg_texts *addresses, const char *kind);

/* The host of "10.0.0.7:4001" or "[::1]:4001", without brackets. HVD_E_INVAL, HVD_E_LIMIT. */
int addresses_host(const char *address, char *ret_host, size_t room) MUST_CHECK;

#endif
