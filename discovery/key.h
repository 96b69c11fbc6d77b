/*
 * key.h: reads a word HOST or HOST:SLOT, with which an operator names a host or one of its slots.
 */
#ifndef DISCOVERY_KEY_H
#define DISCOVERY_KEY_H

#include "base/err.h"
#include "base/limits.h"

#define KEY_WHOLE_HOST UINT32_MAX

struct key {
    char host[LIMIT_HOST_NAME_BYTES + 1];
    uint32_t slot; /* KEY_WHOLE_HOST: no slot was named */
};

/* Parses "a", "a:3", "[::1]" or "[::1]:3". `option` is the name of the command or option for error
 * texts. Fails with HVD_E_INVAL or HVD_E_LIMIT. */
int key_parse(const char *option, const char *text, struct key *ret_key, struct hvd_err *err);

#endif
