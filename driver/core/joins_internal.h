/*
 * joins_internal.h: the part of the core's data that is about hosts that join by themselves, and
 * about the tokens with which they join. Only core_internal.h includes this file; the rules about
 * owners stand in core_internal.h.
 */
#ifndef DRIVER_CORE_JOINS_INTERNAL_H
#define DRIVER_CORE_JOINS_INTERNAL_H

#include "base/limits.h"
#include "base/log.h"
#include "base/vec.h"
#include "discovery/hosts.h"

/* A host has joined with a token. */
struct core_token_use {
    char *host;
    uint64_t number; /* JOIN's number of the process that joined last; 0: not known */
};

/* A token with which hosts may join. */
struct core_token {
    char text[LIMIT_TOKEN_TEXT_BYTES + 1]; /* its id, a blank, the digits of its key */
    char *host;                            /* the only host that may use the token; NULL: any */
    uint32_t uses;                         /* how many hosts may use the token; 0: any number */
    /* the time of day when the token expires; TIME_NEVER: it never does */
    int64_t until_wall_us;
    bool revoked;
    /* the hosts that have joined with the token; empty if it has neither `uses` nor an end */
    struct VEC(struct core_token_use) used;
};

/* Hosts that join by themselves. Owner: joins.c; of `tokens` tokens.c; of the hosts that discovery
 * has found listing.c. */
struct core_joins {
    struct VEC(struct core_token) tokens;
    struct hosts found;     /* only with JOIN_LISTED: the hosts that discovery has named last */
    uint64_t found_times;   /* how often discovery has named hosts */
    uint64_t found_applied; /* the value of found_times in the present list */
    bool changed;           /* hosts have come or gone since the list was made */
    int64_t apply_us;       /* no list is made before this moment */
    int64_t heard_us;       /* after a takeover: when the wait for hosts is over */
    struct log_limit refusals;
    bool advised; /* the log has said how a token is made */
};

#endif
