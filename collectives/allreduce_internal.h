/*
 * allreduce_internal.h: what the files of allreduce share: one allreduce in progress. allreduce.c
 * has the drawing and the reading order.
 */
#ifndef COLLECTIVES_ALLREDUCE_INTERNAL_H
#define COLLECTIVES_ALLREDUCE_INTERNAL_H

#include "collectives/dispatch.h"
#include "collectives/pieces.h"

struct allreduce {
    struct operation *operation;
    struct reduction how; /* type, op and scales */
    size_t count;         /* how many numbers the whole operation has */
    /* bytes of one number in its own type, and in the type in which the reduction computes */
    size_t bytes, work_bytes;
    /* the program's buffers; NULL: this rank has joined and gives no numbers */
    struct pieces *pieces;
    struct algorithm algorithm;

    size_t chunk;    /* numbers in one chunk */
    uint32_t owners; /* the first `owners` members of a host each reduce a part of every chunk */
    /* memory for this member's part of a chunk in the work type; NULL: not needed, because the
     * memory of the result can hold these numbers */
    uint8_t *work;
};

/* ---- allreduce_choice.c: decisions that all members make alike ---- */

/* Returns the fingerprint that describes the reduction: that of the call. Exception: for a call on
 * GPU memory this allreduce reduces only the members' votes (device.c), so the fingerprint is that
 * of the votes. */
const struct fingerprint *allreduce_fingerprint(const struct operation *operation);
struct reduction allreduce_reduction(const struct operation *operation);
struct algorithm allreduce_algorithm(const struct operation *operation);
/* true: the call has one buffer, which can be read and written in place. */
bool allreduce_is_one(const struct allreduce *all);
/* true: the reduction computes in a type that is not the buffer's, as for averages of integers and
 * sums of fp16. */
bool allreduce_is_apart(const struct allreduce *all);

/* In allreduce_board.c: plans an allreduce over the boards. In allreduce_lane.c: runs an allreduce
 * along a lane without boards. */
int allreduce_plan_stages(struct allreduce *all, struct stages *ret_stages) MUST_CHECK;
int allreduce_along_lane(struct allreduce *all) MUST_CHECK;

/* Writes the numbers of a rank that has joined: numbers that do not change the result. *ret_how:
 * the reduction without its prescale, which must not be applied to these numbers. */
void allreduce_give_nothing(const struct allreduce *all, void *to, size_t count,
                            struct reduction *ret_how);
/* Opens the lane. The opening message has the fingerprint and, where the algorithm allows it, also
 * the `count` numbers of `work`, which the first step would send. */
int allreduce_open_lane(const struct allreduce *all, const void *work, size_t count) MUST_CHECK;

/* ---- allreduce_direct.c: reads the buffers of the other members of this host in place ---- */

/* how many members of this host have offered their buffers */
enum direct_extent { DIRECT_NONE, DIRECT_SOME, DIRECT_ALL };
/* direct_offer is called before the opening, which then tells the other members where our buffers
 * are. It returns true if the other members can read both buffers. direct_offered is called after
 * the opening and tells how many members have offered their buffers. direct_run then reduces the
 * numbers where they are. */
bool direct_offer(struct operation *operation);
enum direct_extent direct_offered(const struct operation *operation);
int direct_run(const struct allreduce *all) MUST_CHECK;

#endif
