/*
 * world_in_etcd.h: what a story or a random world says of drivers whose store is etcd.
 */
#ifndef TESTS_WORLD_WORLD_IN_ETCD_H
#define TESTS_WORLD_WORLD_IN_ETCD_H

#include "tests/world/world_bug.h"
#include "tests/world/world_commands.h"

struct world_shape;

struct world_in_etcd {
    bool used;         /* false: the store is a file */
    unsigned standbys; /* machines that stand by */
    int64_t lease_us;  /* of a driver; whole seconds */
};

/* The job of a story is in etcd; or that of a random world, with random standbys and lease. */
void world_etcd(struct world *world, unsigned standbys, int64_t lease_us);
void world_shape_etcd(struct world_shape *shape);

/* There is no leader for so long; the driver reaches only one server, which is alone. */
struct world_command lose_leader(int64_t us), cut_store(int64_t us), kill_standby(void);

#endif
