/*
 * addresses.h: the texts "KIND=VALUE" that say how a member is reached (PROTOCOL.md, "Addresses").
 */
#ifndef WORKER_ADDRESSES_H
#define WORKER_ADDRESSES_H

#include "proto/msg.h"

/* Returns the value of the first text of this kind, such as "10.0.0.7:4001"; NULL: there is no
 * such text. */
const char *addresses_find(const struct msg_texts *addresses, const char *kind);

/* Copies the host of an address without brackets: "10.0.0.7" of "10.0.0.7:4001", "::1" of
 * "[::1]:4001". HVD_E_INVAL: not an address; HVD_E_LIMIT: the host does not fit in room bytes. */
int addresses_host(const char *address, char *ret_host, size_t room) MUST_CHECK;

#endif
