/*
 * link_team.h: members of a round with a link each. A member is a thread with a device of its own,
 * and is connected to all other members.
 */
#ifndef TESTS_LIB_LINK_TEAM_H
#define TESTS_LIB_LINK_TEAM_H

#include "collectives/link/links.h"

#include <pthread.h>

#define TEAM_MAX 9
#define LONG_US  (100 * INT64_C(1000000)) /* longer than any test takes */
#define SHORT_US 50000
#define MIB      ((size_t)1024 * 1024)
#define LARGE    (17 * MIB) /* more than all buffers of a connection can hold */

struct team_address {
    uint8_t bytes[LINK_ADDRESS_MAX];
    size_t length;
};

/* Network namespaces, one for each member, and the address of each member there. */
struct team_networks {
    int home; /* the namespace of the test itself */
    int of[TEAM_MAX];
    const char *hosts[TEAM_MAX];
};

struct team {
    uint32_t size;
    const struct team_networks *networks; /* NULL: all are in that of the test */
    struct link_round round;
    uint64_t incarnations[TEAM_MAX];
    struct reaper *reaper;
    struct link_device *devices[TEAM_MAX];
    struct link *links[TEAM_MAX];
    /* [by][to]: the address that member `by` has told member `to` */
    struct team_address told[TEAM_MAX][TEAM_MAX];
    int rc[TEAM_MAX];
    uint32_t missing[TEAM_MAX];
    struct hvd_err err[TEAM_MAX];
    bool away[TEAM_MAX]; /* true: this member does not act */
    int64_t timeout_us[TEAM_MAX];
    unsigned shift; /* rotates the order in which a member connects to the others */
    size_t bytes;
    void (*act)(struct team *team, uint32_t rank);
    pthread_barrier_t gate;
};

/* No member is connected yet. Call team_close also when team_open failed. */
int team_open(struct team *team, enum link_kind kind, const char *host, uint32_t size) MUST_CHECK;
/* the same with our TCP on the loopback, whose messages travel as `security` says */
int team_open_secured(struct team *team, enum link_security security, uint32_t size) MUST_CHECK;
/* the same between network namespaces, which are borrowed; NULL: on the loopback */
int team_open_apart(struct team *team, enum link_security security,
                    const struct team_networks *networks, uint32_t size) MUST_CHECK;
/* Opens the namespaces with these names, and that of the caller. Aborts the test on failure. */
void team_open_networks(struct team_networks *networks, char *const *names, uint32_t count);
void team_close(struct team *team);
/* one more member, for a test that opens members one by one */
int team_member(struct team *team, enum link_kind kind, const char *host, uint32_t rank) MUST_CHECK;

/* Runs act on each member that is not away, and waits for them. */
void team_run(struct team *team, void (*act)(struct team *team, uint32_t rank));

int team_connect_one(struct team *team, uint32_t rank, uint32_t peer) MUST_CHECK;
int team_connected(struct team *team, uint32_t rank) MUST_CHECK;
/* connects to all others; its result goes to rc */
void team_act_connect(struct team *team, uint32_t rank);
void team_cancel(struct team *team);

/* Fills with bytes that are different for each pair of members (from, to). */
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
