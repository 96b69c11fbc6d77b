#include "state/snapshot/copy.h"

#include "base/mem.h"
#include "tests/lib/test.h"

#include <string.h>

#define MIB ((uint64_t)1 << 20)

struct world {
    struct manifest manifest;
    struct snapshot *snapshot;
    struct copy_part parts[2];
    struct copy copy;
    uint8_t *weights;
    uint64_t counter;
};

#define WEIGHTS (3 * MIB + 100)

static int world_init(struct world *world)
{
    int rc;

    *world = (struct world){ .counter = 7 };
    manifest_init(&world->manifest);
    world->weights = mem_zalloc(WEIGHTS);
    rc = world->weights ? 0 : HVD_E_NOMEM;
    if (!rc)
        rc = manifest_add(&world->manifest, "weights", WEIGHTS, ENTRY_REPLICATED, false, NULL);
    if (!rc)
        rc = manifest_add(&world->manifest, "counter", 8, ENTRY_PER_RANK, false, NULL);
    manifest_seal(&world->manifest);
    if (!rc) {
        struct snapshot_shape shape = { world->manifest.digest, world->manifest.replicated_bytes,
                                        world->manifest.bytes };
        rc = snapshot_create(&shape, &world->snapshot, NULL);
    }
    world->parts[0].at = world->weights;
    world->parts[1].at = &world->counter;
    world->copy = (struct copy){ &world->manifest, world->parts, COPY_ALL, 1 };
    return rc;
}

static void world_release(struct world *world)
{
    snapshot_free(world->snapshot);
    manifest_release(&world->manifest);
    mem_free(world->weights);
}

static void comes_back(struct test *t)
{
    struct world world;

    CHECK_OK(t, world_init(&world));
    memset(world.weights, 3, WEIGHTS);
    CHECK_OK(t, copy_commit(world.snapshot, &world.copy, NULL));
    CHECK_INT(t, snapshot_newest(world.snapshot), ==, 0);
    snapshot_end(world.snapshot, 5);
    memset(world.weights, 4, WEIGHTS);
    world.counter = 8;
    CHECK_OK(t, copy_restore(world.snapshot, 5, &world.copy, NULL));
    CHECK_INT(t, world.counter, ==, 7);
    for (size_t i = 0; i < WEIGHTS; i++)
        CHECK_INT(t, world.weights[i], ==, 3);
out:
    world_release(&world);
}

TESTS(CASE(comes_back))
