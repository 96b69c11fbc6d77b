/*
 * world_claim.h: the drivers and standbys of a world whose store is etcd. Each of them opens,
 * claims and reads the store with the product's own code (driver/store/, driver/standby.c), and
 * writes it by the product's scribe, on threads of world_thread.h. The rules are judged by what the
 * simulated cluster knows:
 *
 *     16  a driver that may have been replaced says nothing; a record that a driver was told is
 *         durable is in the journal of each successor, and in its place; a standby waits for the
 *         lease
 */
#ifndef TESTS_WORLD_WORLD_CLAIM_H
#define TESTS_WORLD_WORLD_CLAIM_H

#include "blacklist/blacklist.h"
#include "driver/core/journal.h"
#include "driver/store/store.h"
#include "tests/world/world_thread.h"

struct json_t; /* of jansson */

struct world_driver;
struct world_queued;

enum claim_kind {
    CLAIM_NEW,      /* the first driver of the job */
    CLAIM_AGAIN,    /* on the machine of the last driver, which is known to be dead */
    CLAIM_RESUME,   /* on another machine: it waits until the lease is over */
    CLAIM_STANDBY,  /* as the one before, and it waits as long as the driver lives */
    CLAIM_TAKEOVER, /* an operator has said so: it does not wait */
};

struct world_claim {
    struct world_client *client;
    enum claim_kind kind;
    uint64_t token;
    struct store *store; /* until the scribe has it */
    bool done, ended;    /* the thread is over; the job has ended */
    bool new_base; /* it has read a journal that was compacted since the last driver read it */
    int rc;
    struct hvd_err err;
    /* what it has read */
    struct VEC(struct journal_record *) records;
    struct VEC(struct blacklist_record) blacklist;

    /* what the checks know of a driver */
    int64_t renewed_us;  /* when the last request that renews its lease was sent */
    int64_t held_us;     /* no other driver can claim the job before, as it may know */
    int64_t answer_us;   /* how long the answer to that request took; for a planted bug */
    bool left;           /* it has ended in order, and gives its lease back */
    bool overthrown;     /* an operator has let another driver take over at once */
    size_t next;         /* place of its next durable record in world->disk.records */
    uint64_t end_record; /* number of the record of the job's end; 0: none */
    int end_code;
    char end_text[256];
};

/* The first driver, and the standbys. */
void claim_crew(struct world *world);
void claim_start(struct world *world, enum claim_kind kind);
void claim_release(struct world *world);
/* A random standby dies. */
void claim_kill_standby(struct world *world);

/* The driver is dead, or (`leaves`) ends in order and gives its lease back. */
void claim_driver_gone(struct world *world, struct world_driver *driver, bool leaves);

/* The driver's side: a write for its scribe, its end, and whether it may act for the job now. */
uint64_t claim_write(struct world_driver *driver, const struct world_queued *queued);
void claim_step(struct world_driver *driver, bool begins);
void claim_end(struct world *world, struct world_driver *driver, int code, const char *text);
bool claim_may_act(const struct world *world, const struct world_driver *driver);

/* A driver is told that a record is durable. Takes the record if it is not known yet. */
void claim_durable(struct world *world, struct world_driver *driver,
                   struct journal_record **record);

/* Makes the durable records of the world what a new owner has read (world_replay.c). */
void claim_reconcile(struct world *world, struct world_claim *own);

/* Checks that the driver may speak now. */
void check_speaks(struct world *world, const struct world_driver *driver, const char *what);

/* The cluster has made the client the owner; and an answer has come to a client. */
void claim_applied(struct world *world, const struct world_client *client);
void claim_answered(struct world *world, struct world_client *client, const char *path,
                    const struct json_t *request, const char *text, int64_t sent_us);

#endif
