#include "collectives/ways.h"

#define KB ((size_t)1024)

/* Up to this size of all members on a host together each of them reduces everything by itself: that
 * costs less than one more step. In between, it is tried. */
#define ALONE_BYTES     (48 * KB)
#define ALONE_TRY_FROM  (16 * KB)
#define ALONE_TRY_UP_TO (256 * KB)

/* Likewise for one member of each host to talk to the others. */
#define LEADER_BYTES     (32 * KB)
#define LEADER_TRY_FROM  (16 * KB)
#define LEADER_TRY_UP_TO (512 * KB)

/* What goes along a lane: up to the first all of it to all, at once with the opening; up to the
 * second in pairs, all of it each time; then around. */
#define GATHER_BYTES      ((size_t)LANE_FIRST_MAX)
#define DOUBLE_BYTES      (64 * KB)
#define PAIRS_TRY_UP_TO   (1024 * KB)

#define CHUNK_BYTES       (128 * KB)
#define LARGE_CHUNK_BYTES (256 * KB)
#define SMALL_CHUNK_BYTES (64 * KB)

static size_t add(struct way ways[WAYS_MAX], size_t count, struct way way)
{
    ways[count] = way;
    return count + 1;
}

/* ---- on one host ---- */

static size_t ways_here(const struct group *group, size_t bytes, struct way ways[WAYS_MAX])
{
    size_t all = bytes * (group->local_count - 1), count = 0;
    const struct way alone = { .alone = true, .chunk_bytes = bytes };
    const struct way shared = { .chunk_bytes = CHUNK_BYTES };

    if (all <= ALONE_BYTES)
        count = add(ways, count, alone);
    if (all > ALONE_TRY_FROM)
        count = add(ways, count, shared);
    if (all > ALONE_BYTES && all <= ALONE_TRY_UP_TO)
        count = add(ways, count, alone);
    if (bytes > CHUNK_BYTES) {
        count = add(ways, count, (struct way){ .chunk_bytes = LARGE_CHUNK_BYTES });
        count = add(ways, count, (struct way){ .chunk_bytes = SMALL_CHUNK_BYTES });
    }
    return count;
}

/* ---- between hosts ---- */

static size_t ways_between(size_t bytes, struct way ways[WAYS_MAX])
{
    const struct way leader = { .leader = true, .chunk_bytes = LARGE_CHUNK_BYTES };
    const struct way lanes = { .chunk_bytes = LARGE_CHUNK_BYTES };
    size_t count = 0;

    if (bytes <= LEADER_BYTES)
        count = add(ways, count, leader);
    if (bytes > LEADER_TRY_FROM)
        count = add(ways, count, lanes);
    if (bytes > LEADER_BYTES && bytes <= LEADER_TRY_UP_TO)
        count = add(ways, count, leader);
    if (bytes > LEADER_TRY_UP_TO)
        count = add(ways, count, (struct way){ .chunk_bytes = 2 * LARGE_CHUNK_BYTES });
    return count;
}

static size_t ways_apart(size_t work_bytes, struct way ways[WAYS_MAX])
{
    size_t count = add(ways, 0, (struct way){ .lane = ways_along_lane(work_bytes) });

    if (work_bytes <= GATHER_BYTES)
        return count;
    if (work_bytes <= PAIRS_TRY_UP_TO && ways[0].lane != LANE_DOUBLE)
        count = add(ways, count, (struct way){ .lane = LANE_DOUBLE });
    if (ways[0].lane != LANE_RING)
        count = add(ways, count, (struct way){ .lane = LANE_RING });
    return add(ways, count, (struct way){ .lane = LANE_HALVE });
}

size_t ways_for(const struct group *group, size_t bytes, size_t work_bytes,
                struct way ret_ways[WAYS_MAX])
{
    if (group_is_apart(group))
        return ways_apart(work_bytes, ret_ways);
    return group->host_count == 1 ? ways_here(group, bytes, ret_ways)
                                  : ways_between(bytes, ret_ways);
}

enum lane_way ways_along_lane(size_t work_bytes)
{
    if (work_bytes <= GATHER_BYTES)
        return LANE_GATHER;
    return work_bytes <= DOUBLE_BYTES ? LANE_DOUBLE : LANE_RING;
}

bool ways_at_once(size_t work_bytes)
{
    return work_bytes <= GATHER_BYTES;
}

/* ---- trying them ---- */

/* Another way must be so much faster than the likeliest: times are noisy. */
#define GAIN 0.9F

static size_t class_of(size_t bytes)
{
    size_t power = 0;

    while (bytes > 1 && power + 1 < TRIAL_CLASSES) {
        bytes /= 2;
        power++;
    }
    return power;
}

uint32_t trial_way(const struct trials *trials, size_t bytes, size_t count, bool *ret_try)
{
    const struct trial *trial = &trials->classes[class_of(bytes)];

    *ret_try = count > 1 && !trial->settled;
    if (*ret_try)
        return trial->runs % (uint32_t)count;
    return trial->choice < count ? trial->choice : 0;
}

bool trial_note(struct trials *trials, size_t bytes, size_t count, uint32_t way, int64_t took_us)
{
    struct trial *trial = &trials->classes[class_of(bytes)];

    const float took = took_us > 0 ? (float)took_us : 0.5F; /* 0: it has not been tried */

    if (trial->least_us[way] <= 0 || took < trial->least_us[way])
        trial->least_us[way] = took;
    trial->runs++;
    return trial->runs >= TRIAL_RUNS * count;
}

float *trial_times(struct trials *trials, size_t bytes)
{
    return trials->classes[class_of(bytes)].least_us;
}

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
