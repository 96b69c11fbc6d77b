/*
 * algorithms.c: lists the algorithms for an allreduce of this size and placement of the members,
 * and finds out which one is the fastest. allreduce_choice.c calls it before each allreduce. All
 * sizes between two powers of two are one size class. Pure: all members must get the same list,
 * because the fingerprint holds the index of the chosen algorithm.
 */
#include "collectives/algorithms.h"

#define KB ((size_t)1024)

/* A group on one host: up to ALONE_BYTES of the other members' numbers each member reduces
 * everything alone, because that costs less than one more step of the board. From ALONE_TRY_FROM to
 * ALONE_TRY_UP_TO both algorithms are tried: alone, and in chunks that the members share. */
#define ALONE_BYTES     (48 * KB)
#define ALONE_TRY_FROM  (16 * KB)
#define ALONE_TRY_UP_TO (256 * KB)

/* A group on several hosts: up to LEADER_BYTES one leader on each host exchanges all data with the
 * other hosts. From LEADER_TRY_FROM to LEADER_TRY_UP_TO both algorithms are tried: the leaders, and
 * all lanes. */
#define LEADER_BYTES     (32 * KB)
#define LEADER_TRY_FROM  (16 * KB)
#define LEADER_TRY_UP_TO (512 * KB)

/* Along a lane: up to GATHER_BYTES each member sends all its numbers to every member, the first
 * time in the opening message. Up to DOUBLE_BYTES pairs of members exchange all numbers; larger
 * sizes use the ring. Up to PAIRS_TRY_UP_TO the pairs are tried too. */
#define GATHER_BYTES    ((size_t)LANE_FIRST_MAX)
#define DOUBLE_BYTES    (64 * KB)
#define PAIRS_TRY_UP_TO (1024 * KB)

/* How many bytes the members of a host reduce at a time, over their board. */
#define CHUNK_BYTES       (128 * KB)
#define LARGE_CHUNK_BYTES (256 * KB)
#define SMALL_CHUNK_BYTES (64 * KB)

/* Lists the algorithms that may be the fastest for an allreduce, the most promising one first
 * (algorithms.h). bytes: the size of the numbers; work_bytes: their size in the type in which
 * they are reduced. `all`: the bytes that a member must read from the other members of its host
 * if it reduces everything by itself. */
size_t algorithms_for(const struct group *group, size_t bytes, size_t work_bytes,
                      struct algorithm ret_algorithms[ALGORITHMS_MAX])
{
    struct algorithm *list = ret_algorithms;
    enum lane_algorithm likeliest = algorithm_along_lane(work_bytes);
    const struct algorithm alone = { .alone = true, .chunk_bytes = bytes };
    const struct algorithm leader = { .leader = true, .chunk_bytes = LARGE_CHUNK_BYTES };
    size_t all = bytes * (group->local_count - 1), count = 0;

    if (group_is_apart(group)) {
        list[count++] = (struct algorithm){ .lane = likeliest };
        if (work_bytes <= GATHER_BYTES)
            return count;
        if (work_bytes <= PAIRS_TRY_UP_TO && likeliest != LANE_DOUBLE)
            list[count++] = (struct algorithm){ .lane = LANE_DOUBLE };
        if (likeliest != LANE_RING)
            list[count++] = (struct algorithm){ .lane = LANE_RING };
        list[count++] = (struct algorithm){ .lane = LANE_HALVE };
        return count;
    }
    if (group->host_count == 1) {
        if (all <= ALONE_BYTES)
            list[count++] = alone;
        if (all > ALONE_TRY_FROM)
            list[count++] = (struct algorithm){ .chunk_bytes = CHUNK_BYTES };
        if (all > ALONE_BYTES && all <= ALONE_TRY_UP_TO)
            list[count++] = alone;
        if (bytes > CHUNK_BYTES) {
            list[count++] = (struct algorithm){ .chunk_bytes = LARGE_CHUNK_BYTES };
            list[count++] = (struct algorithm){ .chunk_bytes = SMALL_CHUNK_BYTES };
        }
        return count;
    }
    /* Some hosts have several members: either one leader for each host talks to the other hosts, or
     * all lanes are used. */
    if (bytes <= LEADER_BYTES)
        list[count++] = leader;
    if (bytes > LEADER_TRY_FROM)
        list[count++] = (struct algorithm){ .chunk_bytes = LARGE_CHUNK_BYTES };
    if (bytes > LEADER_BYTES && bytes <= LEADER_TRY_UP_TO)
        list[count++] = leader;
    if (bytes > LEADER_TRY_UP_TO)
        list[count++] = (struct algorithm){ .chunk_bytes = 2 * LARGE_CHUNK_BYTES };
    return count;
}

/* Returns the algorithm that is probably the fastest along a lane, for numbers of this size. */
enum lane_algorithm algorithm_along_lane(size_t work_bytes)
{
    if (work_bytes <= GATHER_BYTES)
        return LANE_GATHER;
    return work_bytes <= DOUBLE_BYTES ? LANE_DOUBLE : LANE_RING;
}

/* An algorithm is chosen instead of the first one of the list only if it takes less than this part
 * of the first one's time, because times vary by chance. */
#define GAIN 0.9F

/* Returns the class of a size in bytes: the exponent of the largest power of two that is not
 * greater than `bytes`, and at most TRIAL_CLASSES - 1. */
static size_t class_of(size_t bytes)
{
    size_t power = 0;

    while (bytes > 1 && power + 1 < TRIAL_CLASSES) {
        bytes /= 2;
        power++;
    }
    return power;
}

/* Returns the index of the algorithm for the next operation (algorithms.h). While the algorithms of
 * this size class are being timed, each is used in turn. Later the fastest one is used, or the
 * first one (0) if the list of this operation is too short for that index: sizes of one class may
 * have lists of different lengths. */
uint32_t trial_choose(const struct trials *trials, size_t bytes, size_t count, bool *ret_try)
{
    const struct trial *trial = &trials->classes[class_of(bytes)];

    *ret_try = count > 1 && !trial->settled;
    if (*ret_try)
        return trial->runs % (uint32_t)count;
    return trial->choice < count ? trial->choice : 0;
}

/* Notes the time of a trial (algorithms.h). The shortest time of each algorithm counts. true: each
 * algorithm has been tried often enough. */
bool trial_note(struct trials *trials, size_t bytes, size_t count, uint32_t algorithm,
                int64_t took_us)
{
    struct trial *trial = &trials->classes[class_of(bytes)];
    /* at least 0.5, because 0 means: not tried yet */
    const float took = took_us > 0 ? (float)took_us : 0.5F;

    if (trial->least_us[algorithm] <= 0 || took < trial->least_us[algorithm])
        trial->least_us[algorithm] = took;
    trial->runs++;
    return trial->runs >= TRIAL_RUNS * count;
}

/* Returns the shortest time of each algorithm for this size class; 0: the algorithm was not tried.
 */
float *trial_times(struct trials *trials, size_t bytes)
{
    return trials->classes[class_of(bytes)].least_us;
}

/* Chooses the algorithm for the rest of the round. The first of the list is chosen unless another
 * one takes less than GAIN of its time, because a small difference may be chance. */
void trial_settle(struct trials *trials, size_t bytes, size_t count)
{
    struct trial *trial = &trials->classes[class_of(bytes)];

    trial->settled = true;
    for (uint32_t i = 1; i < count; i++) {
        if (trial->least_us[i] > 0 && trial->least_us[i] < GAIN * trial->least_us[0] &&
            trial->least_us[i] < trial->least_us[trial->choice])
            trial->choice = i;
    }
}
