/*
 * gpu_crew.h: a crew (coll_crew.h) whose members have a stand-in device each, and buffers that are
 * there twice: as the device sees them, and as the host does.
 */
#ifndef TESTS_LIB_GPU_CREW_H
#define TESTS_LIB_GPU_CREW_H

#include "gpu/device.h"
#include "tests/lib/coll_crew.h"
#include "tests/lib/fake_gpu.h"

/* Each works with the device of its number, and tells the others if told; round 1 is made. */
int gpu_crew_open(struct crew *crew, const char *hosts, const struct coll_options *options,
                  bool told);
void gpu_crew_act_connect(struct crew *crew, uint32_t rank); /* and NCCL has been waited for */
void gpu_crew_show(const struct crew *crew);                 /* who has failed, and why */

/* All have done what they should. */
#define CHECK_CREW(t, crew)                            \
    do {                                               \
        gpu_crew_show(crew);                           \
        for (uint32_t of = 0; of < (crew)->size; of++) \
            CHECK_OK(t, (crew)->rc[of]);               \
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
    void *device; /* for calls */
    void *host;   /* the same bytes, for the test; nothing may be queued that writes them */
};

const struct gpu_device *gpu_crew_device(uint32_t rank);
MUST_CHECK int gpu_twin_make(uint32_t rank, size_t bytes, struct gpu_twin *ret_twin);
void gpu_twin_free(uint32_t rank, struct gpu_twin *twin);

#endif
