/*
 * allreduce_choice.c: the decisions of an allreduce that must be equal on all members: its
 * reduction, its algorithm, its lanes. They depend only on the fingerprint and on the hosts of the
 * members. So a rank that has joined decides the same, although it has only learnt the fingerprint.
 */
#include "collectives/allreduce_internal.h"
#include "os/clock.h"

#include <stdio.h>

_Static_assert(ALGORITHMS_MAX <= UINT8_MAX, "an index has room in a fingerprint");

/* Returns the fingerprint of the numbers that are reduced. This is the fingerprint of the call,
 * with one exception: for a call on memory of a GPU only the votes of the members are reduced here
 * (can NCCL carry the call?), and then the result is a fingerprint made for the votes. */
const struct fingerprint *allreduce_fingerprint(const struct operation *operation)
{
    static const struct fingerprint votes = { .kind = COLL_ALLREDUCE,
                                              .type = HVD_INT32,
                                              .op = HVD_SUM,
                                              .count = OPERATION_VOTES,
                                              .prescale = 1,
                                              .postscale = 1 };

    return operation->fingerprint.on_device ? &votes : &operation->fingerprint;
}

/* Returns how the numbers of this fingerprint are reduced: op, type, scales. An average divides
 * by the number of members in the group. */
struct reduction allreduce_reduction(const struct operation *operation)
{
    const struct fingerprint *fingerprint = allreduce_fingerprint(operation);

    return (struct reduction){ .type = (hvd_dtype)fingerprint->type,
                               .op = (hvd_op)fingerprint->op,
                               .size = operation->group->group.size,
                               .prescale = fingerprint->prescale,
                               .postscale = fingerprint->postscale };
}

/* Lists the algorithms for this operation (algorithms_for). The list depends only on the
 * fingerprint and the group, so it is equal on all members. */
static size_t list_algorithms(const struct operation *operation,
                              struct algorithm list[ALGORITHMS_MAX])
{
    const struct reduction how = allreduce_reduction(operation);
    uint64_t numbers = allreduce_fingerprint(operation)->count;

    return algorithms_for(&operation->group->group, numbers * reduce_type_bytes(how.type),
                          numbers * reduce_work_bytes(&how), list);
}

/* true: the call has one buffer, which is read and written in place. */
bool allreduce_is_one(const struct allreduce *all)
{
    return all->pieces && all->pieces->items == &all->pieces->whole;
}

/* true: the numbers are reduced in another type than their own (reduce.h). */
bool allreduce_is_apart(const struct allreduce *all)
{
    return reduce_work_type(&all->how) != all->how.type;
}

/* Returns the algorithm whose index the fingerprint holds. A wrong index, which only a broken peer
 * sends, counts as 0. */
struct algorithm allreduce_algorithm(const struct operation *operation)
{
    struct algorithm list[ALGORITHMS_MAX];
    size_t count = list_algorithms(operation, list);
    uint32_t index = allreduce_fingerprint(operation)->algorithm;

    return list[index < count ? index : 0];
}

/* Returns along how many lanes the numbers of this operation go between hosts. */
uint32_t allreduce_lanes(const struct operation *operation)
{
    return operation_is_ordered(operation) || allreduce_algorithm(operation).leader
               ? 1
               : operation->group->group.lane_count;
}

/* true: the allreduce is so small that its numbers are sent in the first message of the lane,
 * together with the fingerprint (LANE_GATHER). Then that message can only be sent after the numbers
 * of this host were reduced, and not at the beginning of the operation. */
bool allreduce_opens_late(const struct operation *operation)
{
    const struct fingerprint *fingerprint = allreduce_fingerprint(operation);
    const struct reduction how = allreduce_reduction(operation);

    return fingerprint->kind == COLL_ALLREDUCE && !operation_is_ordered(operation) &&
           fingerprint->count &&
           algorithm_along_lane(fingerprint->count * reduce_work_bytes(&how)) == LANE_GATHER;
}

/* Chooses the algorithm, writes its index to the fingerprint, and notes whether this operation is a
 * trial, whose time is measured. A rank that has joined (hvd_join) does not choose: it has received
 * the fingerprint with the index, and only notes whether this is a trial. With --fixed-order there
 * is one algorithm to choose from. */
void allreduce_choose(struct operation *operation)
{
    struct algorithm list[ALGORITHMS_MAX];
    struct fingerprint *fingerprint = &operation->fingerprint;
    size_t count = list_algorithms(operation, list);
    uint32_t choice;

    operation->bytes = fingerprint->count * reduce_type_bytes((hvd_dtype)fingerprint->type);
    operation->algorithms = operation_is_ordered(operation) ? 1 : (uint32_t)count;
    choice = trial_choose(&operation->group->trials, operation->bytes, operation->algorithms,
                          &operation->tries);
    if (!operation->joined)
        fingerprint->algorithm = choice & INT16_MAX;
    if (operation->tries)
        operation->begun_us = clock_now_us();
}

/* Called at the end of an allreduce: if it was a trial, notes its time. true: each algorithm has
 * now been tried often enough, and the members must choose one. */
bool allreduce_note(struct operation *operation)
{
    return operation->tries &&
           trial_note(&operation->group->trials, operation->bytes, operation->algorithms,
                      operation->fingerprint.algorithm, clock_now_us() - operation->begun_us);
}

/* Reports each algorithm of the trials that have just ended, with its time, to the program
 * (coll_tried_fn). */
void allreduce_tell_trials(const struct operation *operation)
{
    static const char *const along_lane[] = { [LANE_GATHER] = "gather",
                                              [LANE_DOUBLE] = "double",
                                              [LANE_HALVE] = "halve",
                                              [LANE_RING] = "ring",
                                              [LANE_ORDER] = "order" };
    struct coll *coll = operation->coll;
    const struct coll_engine *engine = coll->engine;
    const struct group *group = &operation->group->group;
    const float *times = trial_times(&operation->group->trials, operation->bytes);
    struct algorithm list[ALGORITHMS_MAX];
    size_t count = list_algorithms(operation, list);
    bool is_trial;
    uint32_t choice = trial_choose(&operation->group->trials, operation->bytes, count, &is_trial);

    /* Only rank 0 reports, and only about the group of all members. */
    if (!engine || !engine->options.tried || operation->group != coll->groups || group->place != 0)
        return;
    for (uint32_t i = 0; i < count; i++) {
        char chunks[32];
        struct coll_tried tried = { .round = coll->round,
                                    .size = group->size,
                                    .hosts = group->host_count,
                                    .bytes = operation->bytes,
                                    .algorithm = list[i].alone ? "alone" : "leader",
                                    .us = (double)times[i],
                                    .chosen = i == choice };

        if (group_is_apart(group)) {
            tried.algorithm = along_lane[list[i].lane];
        } else if (!list[i].alone && !list[i].leader) {
            snprintf(chunks, sizeof(chunks), "chunks of %zu KiB", list[i].chunk_bytes / 1024);
            tried.algorithm = chunks;
        }

        engine->options.tried(engine->options.arg, &tried);
    }
}
