/*
 * gpu_team.h: a team (coll_team.h) whose members have one stand-in device each. Each buffer has two
 * addresses: one for the device and one for the host.
 */
#ifndef TESTS_LIB_GPU_TEAM_H
#define TESTS_LIB_GPU_TEAM_H

#include "gpu/device.h"
#include "tests/lib/coll_team.h"
#include "tests/lib/fake_gpu.h"

/* Each member works with the device of its rank; told: each member also tells the others which
 * device it has. A device is stuck after COLL_TEAM_LONG_US, unless the options give another time.
 * Round 1 is made. */
int gpu_team_open(struct team *team, const char *hosts, const struct coll_options *options,
                  bool told);
void gpu_team_act_connect(struct team *team, uint32_t rank); /* connects, and waits for NCCL */
/* prints the members that have failed, and why */
void gpu_team_show(const struct team *team);

/* No member has failed. */
#define CHECK_TEAM(t, team)                            \
    do {                                               \
        gpu_team_show(team);                           \
        for (uint32_t of = 0; of < (team)->size; of++) \
            CHECK_OK(t, (team)->rc[of]);               \
    } while (0)

#define CHECK_NOTHING_LEFT(t)                                \
    do {                                                     \
        CHECK_INT(t, fake_gpu_live("communicators"), ==, 0); \
        CHECK_INT(t, fake_gpu_live("memory"), ==, 0);        \
        CHECK_INT(t, fake_gpu_live("streams"), ==, 0);       \
        CHECK_INT(t, fake_gpu_live("events"), ==, 0);        \
        CHECK_INT(t, fake_gpu_live("pinned"), ==, 0);        \
    } while (0)

struct gpu_twin {
    void *device; /* the address for collective calls */
    void *host;   /* the same bytes for the test; read them only when no queued work writes them */
};

const struct gpu_device *gpu_team_device(uint32_t rank);
MUST_CHECK int gpu_twin_make(uint32_t rank, size_t bytes, struct gpu_twin *ret_twin);
void gpu_twin_free(uint32_t rank, struct gpu_twin *twin);

#endif
