/*
 * rooted.c: a reduce, a gather and a scatter, in which one member (the root) gets or gives all;
 * run.c calls it. A reduce is a reducescatter of which the root gets all; a gather and a scatter
 * are an alltoall in which the root receives all, or gives all. Numbers are sent only between the
 * root and the other members.
 *
 * Invariant: the members compare the fingerprint of the program's own call (coll_call.shown), so
 * that the operation which carries it out needs no other agreement.
 */
#include "base/mem.h"
#include "collectives/device.h"
#include "collectives/dispatch.h"

/* Runs a whole reduce, gather or scatter (dispatch.h): `moved` is the call that carries it out,
 * with counts that are 0 wherever no number is sent. All members compute the same counts from the
 * call, so none are exchanged. */
int rooted_run(struct coll *coll, struct coll_group *group, const struct coll_call *call,
               const char **ret_by)
{
    const struct group *members = &group->group;
    size_t size = members->size;
    struct coll_call moved = *call;
    size_t *counts = mem_zalloc_array(2 * size, sizeof(*counts));
    uint64_t *given = mem_zalloc_array(call->kind == COLL_REDUCE ? 1 : size * size, sizeof(*given));
    int rc = HVD_E_NOMEM;

    moved.shown = call;
    if (counts && given && call->kind == COLL_REDUCE) {
        counts[call->root] = call->count;
        moved.kind = COLL_REDUCESCATTER;
        moved.counts = counts;
        moved.count = counts[members->place];
    } else if (counts && given) {
        bool gathers = call->kind == COLL_GATHER, is_root = members->place == call->root;
        size_t *to = counts, *from = counts + members->size;

        /* A gather or a scatter becomes an alltoall: `to`: what we give to each member; `from`:
         * what we get from each. */
        for (uint32_t i = 0; i < members->size; i++) {
            size_t count = call->counts ? call->counts[i] : call->count;

            given[gathers ? (size_t)i * members->size + call->root
                          : (size_t)call->root * members->size + i] = count;
            if (is_root)
                (gathers ? from : to)[i] = count;
        }
        (gathers ? to : from)[call->root] = call->count;
        moved.kind = COLL_ALLTOALL;
        moved.counts = to;
        moved.out_counts = from;
        moved.given = given;
    }
    if (counts && given)
        rc = call->device ? device_run(coll, group, &moved, ret_by)
                          : operation_inside(coll, group, &moved);
    mem_free(counts);
    mem_free(given);
    return rc;
}
