/*
 * meeting.h: the shared memory in which the members of a communicator meet. The process that makes
 * the id owns the memory; other processes open it by its descriptor number in /proc. The memory is
 * freed when the last process that has it ends, however that happens. Members are processes, or
 * threads of one process.
 */
#ifndef TESTS_STANDIN_MEETING_H
#define TESTS_STANDIN_MEETING_H

#include "gpu/nccl.h"

#include <stdatomic.h>

#define MEETING_MEMBERS    32U
#define MEETING_PIECE      (64U << 10) /* bytes that a member brings to a collective at a time */
#define MEETING_PAIR_PIECE (8U << 10)  /* bytes that a member sends to another at a time */

/* A collective, as each member describes it; all descriptions must be equal. */
struct meeting_call {
    uint64_t number;
    uint64_t count;
    int kind, type, op, root;
};

struct meeting_member {
    _Atomic uint32_t joined; /* 0: not joined; 1: this place is taken; 2: joined */
    _Atomic uint32_t connected;
    _Atomic uint64_t brought; /* pieces that it has brought since the beginning */
    _Atomic uint64_t taken;   /* pieces that this member has taken from all others */
    /* from this time on no member gets anything from it; 0: it has not left */
    _Atomic int64_t gone_us;
    struct cuda_uuid uuid;
    uint64_t host;
    _Atomic uint32_t shrunk; /* 1: shrunk_id says where the members meet that are left */
    struct nccl_id shrunk_id;
    struct meeting_call call;
    char piece[MEETING_PIECE];
};

struct meeting_pair {
    _Atomic uint64_t sent, received; /* pieces */
    uint64_t bytes;                  /* bytes of the whole message */
    uint64_t length;                 /* bytes of this piece */
    char piece[MEETING_PAIR_PIECE];
};

struct meeting {
    _Atomic uint32_t bell; /* a counter; members sleep until it changes (futex) */
    _Atomic uint32_t size;
    _Atomic uint32_t here;
    struct meeting_member members[MEETING_MEMBERS];
    struct meeting_pair pairs[MEETING_MEMBERS][MEETING_MEMBERS]; /* [from][to] */
};

void meeting_make(struct nccl_id *ret_id);
bool meeting_has_left(const struct meeting_member *member);
/* NULL: the process that made the id is gone */
struct meeting *meeting_open(const struct nccl_id *id);
void meeting_close(struct meeting *meeting);

/* Changes the counter `bell`, which wakes all members that wait. */
void meeting_ring(struct meeting *meeting);
/* see returns the counter `bell`; wait sleeps until the counter is not `seen` any more, or for a
 * short time. */
uint32_t meeting_see(struct meeting *meeting);
void meeting_wait(struct meeting *meeting, uint32_t seen);

#endif
