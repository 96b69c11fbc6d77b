/*
 * world_etcd.h: a cluster of three etcd servers as a client sees it: keys with revisions,
 * transactions, leases that run out on the cluster's clock, a time without a leader, a client that
 * reaches only the minority, answers that are late or lost, a full database. The requests are those
 * of the JSON gateway, as driver/store/ sends them; world_gateway.c brings them here.
 */
#ifndef TESTS_WORLD_WORLD_ETCD_H
#define TESTS_WORLD_WORLD_ETCD_H

#include "base/buf.h"
#include "base/list.h"
#include "base/vec.h"

struct json_t; /* of jansson */

struct world;
struct world_client;

#define ETCD_WORLD_SERVERS 3
#define ETCD_WORLD_PREFIX  "worlds"
#define ETCD_WORLD_JOB     "world"

struct world_etcd_key {
    char *name;
    struct buf value;
    int64_t made, changed, version; /* made and changed are revisions */
    int64_t lease;
};

struct world_etcd_lease {
    int64_t number, ttl_s;
    int64_t over_us;
};

struct world_etcd {
    struct VEC(struct world_etcd_key) keys; /* in the order of their names */
    struct VEC(struct world_etcd_lease) leases;
    int64_t revision, leases_given;
    int64_t leaderless_us; /* until then there is no leader */
    int64_t leader_lost_us;
    struct list requests; /* under way; world_gateway.c */

    uint64_t dead_token; /* of the owner, which is known to be dead; 0: none is */
    /* For the checks. A driver counts as the owner from the moment of its claim. */
    const struct world_client *owner;
    size_t applied;    /* records that the journal has ever had */
    size_t based;      /* so many of them are replaced by ... */
    size_t base_count; /* ... so many */
};

void etcd_world_init(struct world_etcd *etcd);
void etcd_world_release(struct world_etcd *etcd);

/* Carries a request out. *ret_status: of HTTP. The caller frees the answer with json_decref. */
struct json_t *etcd_world_carry_out(struct world *world, const struct world_client *client,
                                    const char *path, const struct json_t *request,
                                    long *ret_status) MUST_CHECK;

/* The leader dies: there is none for so long. The next one begins all leases anew. */
void etcd_world_lose_leader(struct world *world, int64_t us);

/* True: the job has this key, "journal/0000000000000001". */
bool etcd_world_has(const struct world_etcd *etcd, const char *key);

/* world_gateway.c */
void gateway_release(struct world_etcd *etcd);

#endif
