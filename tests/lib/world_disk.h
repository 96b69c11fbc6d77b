/*
 * world_disk.h: what survives a driver: its journal and the blacklist's records; and the queue in
 * which a driver's actions wait until what they rest on is there.
 */
#ifndef TESTS_LIB_WORLD_DISK_H
#define TESTS_LIB_WORLD_DISK_H

#include "base/arena.h"
#include "driver/core/action.h"
#include "tests/lib/world_queue.h"

struct world_driver;
struct world_link;

struct world_disk {
    struct VEC(struct journal_record *) records; /* durable ones */
    struct VEC(struct blacklist_record) blacklist;
    uint32_t owner; /* the driver that has it; an older one that writes finds out */
    int64_t slow_until_us;
    int64_t slow_us;
    int64_t fails_until_us;
};

/* An action that waits, with all it points to. */
struct world_queued {
    enum action_kind kind;
    bool written;            /* a RECORD or BLACKLIST that is durable */
    struct world_link *link; /* bound when the core asked: its number may be another's by now */
    int code;
    uint64_t ask;
    char *host; /* NULL: none */
    char *text;
    struct world_frame *frame;
    struct journal_record *record;
    struct blacklist_change *change;
};

struct world_executor {
    struct VEC(struct world_queued) items;
    size_t first;     /* those before it are done */
    size_t unwritten; /* records in it that are not durable */
    size_t writing;   /* up to here, a write is under way; 0: none is */
    int64_t failing_since_us;
};

/* Copies the actions of one step to the end of the queue and does what can be done. */
void disk_execute(struct world *world, struct world_driver *driver, const struct action_list *list);
/* The driver is gone: what it was writing is there, or is not. */
void disk_abandon(struct world *world, struct world_driver *driver);
void disk_release(struct world_disk *disk);
struct journal_record *journal_copy(const struct journal_record *record) MUST_CHECK;

#endif
