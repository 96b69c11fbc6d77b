/*
 * meeting.h: where the members of a communicator meet: memory of the process that made the id,
 * which the others open by its number in /proc. It is gone with the last who has it, however they
 * end. Members are processes, or threads of one process.
 */
#ifndef TESTS_STANDIN_MEETING_H
#define TESTS_STANDIN_MEETING_H

#include "gpu/nccl.h"

#include <stdatomic.h>

#define MEETING_MEMBERS    32U
#define MEETING_PIECE      (64U << 10) /* of what a member brings to a collective */
#define MEETING_PAIR_PIECE (8U << 10)  /* of what one sends to another */

/* What all members of a collective say that it is. */
struct meeting_call {
    uint64_t number;
    uint64_t count;
    int kind, type, op, root;
};

struct meeting_member {
    _Atomic uint32_t joined; /* 0: no; 1: taken; 2: here */
    _Atomic uint32_t connected;
    _Atomic uint64_t brought; /* pieces, since the beginning */
    _Atomic uint64_t taken;   /* by this member, of all others */
    _Atomic int64_t gone_us;  /* from then on nobody gets anything of it; 0: not yet */
    struct cuda_uuid uuid;
    uint64_t host;
    _Atomic uint32_t shrunk; /* it has said where those meet that are left */
    struct nccl_id shrunk_id;
    struct meeting_call call;
    char piece[MEETING_PIECE];
};

struct meeting_pair {
    _Atomic uint64_t sent, received; /* pieces */
    uint64_t bytes;                  /* of the whole message */
    uint64_t length;                 /* of this piece */
    char piece[MEETING_PAIR_PIECE];
};

struct meeting {
    _Atomic uint32_t bell; /* who waits for anything waits for its next stroke */
    _Atomic uint32_t size;
    _Atomic uint32_t here;
    struct meeting_member members[MEETING_MEMBERS];
    struct meeting_pair pairs[MEETING_MEMBERS][MEETING_MEMBERS]; /* from, to */
};

void meeting_make(struct nccl_id *ret_id);
bool meeting_has_left(const struct meeting_member *member);
struct meeting *meeting_open(const struct nccl_id *id); /* NULL: its maker is gone */
void meeting_close(struct meeting *meeting);

void meeting_ring(struct meeting *meeting);
/* Until the bell has struck since it was seen, or for a while. */
uint32_t meeting_see(struct meeting *meeting);
void meeting_wait(struct meeting *meeting, uint32_t seen);

#endif
