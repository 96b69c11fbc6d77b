/*
 * world_disk.h: what outlives a driver: its journal and the records of the blacklist. Also the
 * queue in which a driver's actions wait until the records before them are durable.
 */
#ifndef TESTS_WORLD_WORLD_DISK_H
#define TESTS_WORLD_WORLD_DISK_H

#include "base/arena.h"
#include "driver/core/action.h"
#include "tests/world/world_etcd.h"
#include "tests/world/world_queue.h"

struct world_driver;
struct world_link;

struct world_disk {
    struct VEC(struct journal_record *) records; /* the records that are durable */
    /* The journal as a driver reads it: `base` instead of the first `based` records, which the
     * checks of the world need. */
    struct VEC(struct journal_record *) base;
    size_t based;
    struct VEC(struct blacklist_record) blacklist;
    /* changes in a store in etcd of which no driver knows yet whether they are durable */
    struct VEC(struct blacklist_change *) unsure;
    /* number of the driver that owns the disk; an older driver fails at its next write */
    uint32_t owner;
    int64_t slow_until_us;
    int64_t slow_us;
    int64_t fails_until_us;
};

/* An action in the queue, with copies of all that it points to. */
struct world_queued {
    enum action_kind kind;
    uint64_t number;  /* of the write for the scribe, in a world whose store is etcd */
    bool written;     /* true: a RECORD or BLACKLIST that is durable */
    int64_t since_us; /* when the core returned the action */
    /* the link at the time of the action: later its number may belong to another link */
    struct world_link *link;
    int code;
    uint64_t ask;
    uint64_t epoch;
    char *host; /* NULL: none */
    char *text;
    struct world_frame *frame;
    struct journal_record *record;
    struct blacklist_change *change;
    struct blacklist_change *unsure;          /* its copy in world_disk.unsure; NULL: none */
    const struct checkpoint_done *checkpoint; /* the core has its memory until it is written */
};

struct world_executor {
    struct VEC(struct world_queued) items;
    size_t first;     /* index of the first action that is not done */
    size_t unwritten; /* records in the queue that are not durable */
    size_t writing;   /* a write of the items before this index is under way; 0: no write is */
    int64_t failing_since_us;
};

/* Copies the actions of one step to the end of the queue, and performs those that need not wait. */
void disk_execute(struct world *world, struct world_driver *driver, const struct action_list *list);
/* Returns for how long the oldest action that is no record has waited for the records before it; 0:
 * none waits. */
int64_t disk_held_us(const struct world *world, const struct world_driver *driver);
/* The driver is dead: the write under way became durable, or did not, by chance. */
void disk_abandon(struct world *world, struct world_driver *driver);
/* The scribe of a driver whose store is etcd has news. */
void disk_look(struct world *world, struct world_driver *driver);
/* The fate of this change is known; NULL: that of all. */
void disk_sure(struct world_disk *disk, const struct blacklist_change *change);
void disk_release(struct world_disk *disk);
struct journal_record *journal_copy(const struct journal_record *record) MUST_CHECK;
/* Returns a hash of all that a record says, but for the term in a text. */
uint64_t journal_digest(const struct journal_record *record);

#endif
