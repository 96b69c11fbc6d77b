/*
 * key.h: HOST or HOST:SLOT, as an operator names them.
 */
#ifndef DISCOVERY_KEY_H
#define DISCOVERY_KEY_H

#include "base/err.h"
#include "base/limits.h"

#define KEY_WHOLE_HOST UINT32_MAX

struct key {
    char host[LIMIT_HOST_NAME_BYTES + 1];
    uint32_t slot; /* or KEY_WHOLE_HOST */
};

/* "a", "a:3", "[::1]", "[::1]:3"; option is what the text was given to. HVD_E_INVAL, HVD_E_LIMIT.
 */
int key_parse(const char *option, const char *text, struct key *ret_key, struct hvd_err *err);

#endif
