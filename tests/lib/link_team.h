/*
 * link_team.h: members of a round with a link each. A member is a thread with a device of its own,
 * and is connected to all the others.
 */
#ifndef TESTS_LIB_LINK_TEAM_H
#define TESTS_LIB_LINK_TEAM_H

#include "collectives/link/links.h"

#include <pthread.h>

#define TEAM_MAX 9
#define LONG_US  (60 * INT64_C(1000000)) /* nothing takes that long */
#define SHORT_US 50000
#define MIB      ((size_t)1024 * 1024)
#define LARGE    (17 * MIB) /* more than all buffers of a connection hold */

struct team_address {
    uint8_t bytes[LINK_ADDRESS_MAX];
    size_t length;
};

struct team {
    uint32_t size;
    struct reaper *reaper;
    struct link_device *devices[TEAM_MAX];
    struct link *links[TEAM_MAX];
    struct team_address told[TEAM_MAX][TEAM_MAX]; /* [by][to] */
    int rc[TEAM_MAX];
    uint32_t missing[TEAM_MAX];
    struct hvd_err err[TEAM_MAX];
    bool away[TEAM_MAX]; /* does not act */
    int64_t timeout_us[TEAM_MAX];
    unsigned turn; /* by how much the order is turned in which each connects the others */
    size_t bytes;
    void (*act)(struct team *team, uint32_t rank);
    pthread_barrier_t gate;
};

struct team_seat {
    struct team *team;
    uint32_t rank;
    pthread_t thread;
};

/* Nobody is connected yet. Close it also when that failed. */
int team_open(struct team *team, enum link_kind kind, const char *host, uint32_t size) MUST_CHECK;
void team_close(struct team *team);
int team_member(struct team *team, enum link_kind kind, const char *host,
                uint32_t rank) MUST_CHECK; /* one alone */

/* Those that are not away act, and are waited for. */
void team_run(struct team *team, void (*act)(struct team *team, uint32_t rank));

int team_connect_one(struct team *team, uint32_t rank, uint32_t peer) MUST_CHECK;
int team_connected(struct team *team, uint32_t rank) MUST_CHECK;
void team_act_connect(struct team *team, uint32_t rank); /* all; to rc */
void team_cancel(struct team *team);

/* What one sends another looks like nobody else's. */
void link_fill(uint8_t *bytes, size_t length, uint32_t from, uint32_t to);
bool link_is_filled(const uint8_t *bytes, size_t length, uint32_t from, uint32_t to);

int link_post_send(struct link *link, uint32_t to, uint64_t tag, const void *bytes, size_t length,
                   struct link_request **ret_request) MUST_CHECK;
int link_post_receive(struct link *link, uint32_t from, uint64_t tag, void *bytes, size_t length,
                      struct link_request **ret_request) MUST_CHECK;
int link_await(struct link *link, struct link_request *request) MUST_CHECK;
int link_send_now(struct link *link, uint32_t to, uint64_t tag, const void *bytes,
                  size_t length) MUST_CHECK;
int link_receive_now(struct link *link, uint32_t from, uint64_t tag, void *bytes,
                     size_t length) MUST_CHECK;

#endif
