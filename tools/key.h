/*
 * key.h: HOST or HOST:SLOT, as an operator names what a blacklist holds back.
 */
#ifndef TOOLS_KEY_H
#define TOOLS_KEY_H

#include "blacklist/record.h"

struct key {
    char host[LIMIT_HOST_NAME_BYTES + 1];
    uint32_t slot; /* or BLACKLIST_WHOLE_HOST */
};

/* "a", "a:3", "[::1]", "[::1]:3"; option is what the text was given to. HVD_E_INVAL, HVD_E_LIMIT.
 */
int key_parse(const char *option, const char *text, struct key *ret_key, struct hvd_err *err);

#endif
