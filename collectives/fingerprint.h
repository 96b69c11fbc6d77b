/*
 * fingerprint.h: the fingerprint of an operation, which all members of a group compare before the
 * operation runs. Members with different fingerprints would wait for each other for ever, or add up
 * numbers that do not belong together.
 */
#ifndef COLLECTIVES_FINGERPRINT_H
#define COLLECTIVES_FINGERPRINT_H

#include "base/err.h"

enum coll_kind {
    COLL_ALLREDUCE = 1,
    COLL_BROADCAST,
    COLL_ALLGATHER,
    COLL_REDUCESCATTER,
    COLL_ALLTOALL,
    COLL_BARRIER,
    COLL_JOIN,
    COLL_END,              /* the barrier of coll_part; the program never calls it */
    COLL_ALLGATHER_RAGGED, /* each member knows only its own counts (ragged.c) */
    COLL_ALLTOALL_RAGGED,
    COLL_OPEN, /* a group is opened, or closed, by all members (opened.c) */
    COLL_CLOSE,
    COLL_REDUCE = 21, /* COLL_REDUCE, _GATHER, _SCATTER: to or from one member (rooted.c) */
    COLL_GATHER,
    COLL_SCATTER,
    COLL_SEND,    /* from one member to another (channel.c) */
    COLL_RECEIVE, /* the other end of a COLL_SEND, whose fingerprint it has */
};

/* A fingerprint is equal on all members, except for the sender's rank and for what the sender knows
 * of joined ranks. It is sent and compared as raw memory, because all machines have the same byte
 * order; so it has no padding. Workers with an older libhvd may be in the same round, so no byte
 * ever changes its meaning (fingerprint.c asserts the offsets of the fields). */
struct fingerprint {
    uint64_t number; /* the operation's number in its group and round, counted from 1 */
    /* hash of the group's members; in a call with several buffers also of the buffers' lengths */
    uint64_t group;
    uint32_t kind; /* enum coll_kind */
    uint16_t type;
    /* 0: the buffers are in host memory; 1: in GPU memory; FINGERPRINT_BY_HOST: in GPU memory, and
     * the caller wants the operation to go through the host, not NCCL */
    uint16_t on_device;
    uint32_t op; /* hvd_op; in a REDUCE the upper 24 bits are the root's index */
    union {
        /* BROADCAST, GATHER, SCATTER: the root's index in the group; SEND: the sender's rank */
        uint32_t root;
        struct { /* every other kind */
            /* 1: an ALLREDUCE of several buffers, or another kind with counts for each member */
            uint32_t in_parts : 1;
            uint32_t algorithm : 15; /* ALLREDUCE: index of the algorithm, see algorithms.h */
            /* ALLREDUCE: how many started requests (hvd_start) it combines; 0: none */
            uint32_t fused : 16;
        };
    };
    /* how many numbers; if there are counts for each member, a hash of these counts */
    uint64_t count;
    double prescale, postscale; /* 1: no scale */
    uint32_t rank;              /* rank of the sender */
    /* JOIN: the rank that joined last, of all joined ranks that the sender knows */
    uint32_t last;
    union {
        uint64_t last_number; /* JOIN: the number of the operation before which `last` joined */
        uint64_t tag;         /* other kinds: the program's tag; 0: no tag */
    };
};

#define FINGERPRINT_ROOT_SHIFT 8 /* where the root begins in the field `op` of a REDUCE */

#define FINGERPRINT_FUSED_MAX  UINT16_MAX
#define FINGERPRINT_BY_HOST    2

/* Returns the hash after one more value. */
uint64_t fingerprint_mix(uint64_t hash, uint64_t value);

const char *coll_kind_name(uint32_t kind);
bool coll_kind_is_ragged(uint32_t kind);
bool coll_kind_is_rooted(uint32_t kind);    /* true: COLL_REDUCE, COLL_GATHER or COLL_SCATTER */
bool coll_kind_is_of_groups(uint32_t kind); /* true: COLL_OPEN or COLL_CLOSE */
bool fingerprint_same(const struct fingerprint *a, const struct fingerprint *b);
/* a hash of the compared fields: equal fingerprints have equal hashes */
uint64_t fingerprint_hash(const struct fingerprint *fingerprint);

/* Writes the fingerprint as text: "operation 7 is allreduce (sum) of 10 float32". */
#define FINGERPRINT_TEXT_MAX 360
void fingerprint_describe(const struct fingerprint *fingerprint, char text[FINGERPRINT_TEXT_MAX]);

#endif
