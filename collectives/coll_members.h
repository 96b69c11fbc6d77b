/*
 * coll_members.h: the members of a round, and how errors name them. coll.c fills the list in and
 * frees it; all files of collectives/ read it.
 */
#ifndef COLLECTIVES_COLL_MEMBERS_H
#define COLLECTIVES_COLL_MEMBERS_H

#include "base/limits.h"

#include <stdint.h>

/* The members of the round; index of each array: the rank. */
struct coll_members {
    uint64_t *incarnations;
    char **contacts; /* NULL: the member has no contact */
    uint32_t *hosts; /* for each member a number for its host: the lowest rank on that host */
    char **names;    /* the name of a host, at the rank that is the host's number; else NULL */
    uint32_t *ranks; /* 0, 1, 2, ... */
    uint64_t hash;   /* hash of members, groups and options */
    uint8_t secret[LIMIT_ROUND_SECRET_BYTES];
};

#define COLL_NAME_MAX (LIMIT_HOST_NAME_BYTES + 64)

struct coll;

/* Writes how errors name a member: "rank 1 (#73 on 10.0.0.2)", with its incarnation and host.
 * Returns text. In failure.c. */
const char *coll_name(const struct coll *coll, uint32_t rank, char text[COLL_NAME_MAX]);

#endif
