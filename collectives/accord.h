/*
 * accord.h: what the members of a group must agree about before they do anything: the operation.
 */
#ifndef COLLECTIVES_ACCORD_H
#define COLLECTIVES_ACCORD_H

#include "base/err.h"

enum coll_kind {
    COLL_ALLREDUCE = 1,
    COLL_BROADCAST,
    COLL_ALLGATHER,
    COLL_REDUCESCATTER,
    COLL_ALLTOALL,
    COLL_BARRIER,
    COLL_JOIN,
    COLL_END, /* nobody can call it: see coll_part */
};

/* root of an ALLREDUCE: whether it is of several pieces, and its way (ways.h); of what has counts,
 * whether it has them. */
#define ACCORD_PIECES 1U
#define ACCORD_WAY    2U

/* The same bytes on all members, but for who says it and for a JOIN. No padding: it is compared and
 * sent as it is, between machines of one kind. */
struct accord {
    uint64_t number; /* of the operation in its group and round, from 1 */
    uint64_t group;  /* a sum of its members, and of how several pieces are cut */
    uint32_t kind;
    uint16_t type, on_device; /* on_device: 1 when its memory is a device's */
    uint32_t op, root;
    uint64_t count;             /* of numbers; of several counts a sum */
    double prescale, postscale; /* 1: none */
    uint32_t rank;              /* who says it */
    uint32_t last;              /* JOIN: who of those known here was last */
    uint64_t last_number;       /* and the number of the operation that it joined before */
};

/* A sum that each value in turn is mixed into. */
static inline uint64_t accord_mix(uint64_t sum, uint64_t value)
{
    sum = (sum ^ value) * UINT64_C(0x9e3779b97f4a7c15);
    return sum ^ sum >> 29;
}

const char *accord_kind_name(uint32_t kind);
bool accord_same(const struct accord *a, const struct accord *b);
uint64_t accord_sum(const struct accord *accord); /* equal for those that are the same */

/* "operation 7 is allreduce (sum) of 10 float32" */
#define ACCORD_TEXT_MAX 192
void accord_describe(const struct accord *accord, char text[ACCORD_TEXT_MAX]);

#endif
