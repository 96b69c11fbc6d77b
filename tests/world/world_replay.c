/*
 * world_replay.c: compares the journal and the blacklist that a new driver has read in the
 * simulated etcd with what earlier drivers were told is durable. world_driver.c calls it before the
 * driver's core reads them. A write whose driver never heard of its fate becomes durable here, if
 * its successor has read it.
 */
#include "driver/store/etcd_text.h"

#include "base/mem.h"
#include "base/panic.h"
#include "tests/world/world_claim.h"
#include "tests/world/world_state.h"

#include <inttypes.h>
#include <string.h>

#define LINE_MAX_ 4096

/* The journal that the driver has read begins with a base that it has not seen compacted. */
static void replay_new_base(struct world *world, struct world_claim *own)
{
    struct world_disk *disk = &world->disk;
    size_t based = world->etcd.based, count = world->etcd.base_count;

    if (count > own->records.count || based > disk->records.count) {
        world_violate(world, "16", "a journal that was compacted to %zu records of %zu has %zu",
                      count, based, own->records.count);
        return;
    }
    while (disk->base.count)
        mem_free(disk->base.items[--disk->base.count]);
    for (size_t i = 0; i < count; i++)
        *WORLD_PUSH(&disk->base) = journal_copy(own->records.items[i]);
    disk->based = based;
    world->stats.compacted++;
    own->new_base = true;
}

/* Compares the records after the base, and takes those that no driver was told of. */
static void replay_records(struct world *world, struct world_claim *own)
{
    struct world_disk *disk = &world->disk;
    size_t base = disk->base.count;
    char line[JOURNAL_LINE_MAX];

    for (size_t i = base; i < own->records.count && !world->check.violated; i++) {
        size_t place = disk->based + i - base;

        if (place == disk->records.count) {
            check_durable(world, own->records.items[i]);
            *WORLD_PUSH(&disk->records) = own->records.items[i];
            own->records.items[i] = NULL;
        } else if (journal_digest(disk->records.items[place]) !=
                   journal_digest(own->records.items[i])) {
            world_violate(world, "16", "a successor reads \"%s\" where another record is durable",
                          journal_describe(own->records.items[i], line));
        }
    }
    if (disk->based + own->records.count - base < disk->records.count)
        world_violate(world, "16",
                      "a driver was told that %zu records are durable, and its successor reads %zu",
                      disk->records.count, disk->based + own->records.count - base);
}

static void replay_text(const struct blacklist_record *record, struct buf *ret_text)
{
    buf_clear(ret_text);
    world_need(etcd_write_blacklist(ret_text, record));
}

static const struct blacklist_record *replay_find(const struct world_claim *own, const char *host,
                                                  uint32_t slot)
{
    for (size_t i = 0; i < own->blacklist.count; i++)
        if (own->blacklist.items[i].slot == slot && !strcmp(own->blacklist.items[i].host, host))
            return &own->blacklist.items[i];
    return NULL;
}

/* Takes the changes that no driver was told of, and that the successor has read: each failure in
 * them is charged. The newest change of a slot stands for those before it. */
static void replay_changes(struct world *world, const struct world_claim *own)
{
    struct world_disk *disk = &world->disk;
    struct buf read, written;

    buf_init(&read, LINE_MAX_);
    buf_init(&written, LINE_MAX_);
    for (size_t i = 0; i < disk->unsure.count; i++) {
        const struct blacklist_change *change = disk->unsure.items[i];
        const struct blacklist_record *found =
            replay_find(own, change->record.host, change->record.slot);
        bool there = false;

        if (found)
            replay_text(found, &read);
        for (size_t k = i; found && k < disk->unsure.count && !there; k++) {
            const struct blacklist_record *later = &disk->unsure.items[k]->record;

            if (later->slot != found->slot || strcmp(later->host, found->host) != 0)
                continue;
            replay_text(later, &written);
            there = !strcmp(buf_text(&read), buf_text(&written));
        }
        if (there)
            check_charged(world, change);
    }
    buf_release(&read);
    buf_release(&written);
}

static bool replay_evicted(const struct world_disk *disk, const struct blacklist_record *record)
{
    for (size_t i = 0; i < disk->unsure.count; i++)
        if (disk->unsure.items[i]->evicted && disk->unsure.items[i]->evicted_slot == record->slot &&
            !strcmp(disk->unsure.items[i]->evicted_host, record->host))
            return true;
    return false;
}

static void replay_blacklist(struct world *world, const struct world_claim *own)
{
    struct world_disk *disk = &world->disk;

    for (size_t i = 0; i < disk->blacklist.count; i++) {
        const struct blacklist_record *record = &disk->blacklist.items[i];

        if (!replay_find(own, record->host, record->slot) && !replay_evicted(disk, record))
            world_violate(world, "16",
                          "a failure on %s is durable, and a successor has not read it",
                          record->host);
    }
    replay_changes(world, own);
    disk->blacklist.count = 0;
    for (size_t i = 0; i < own->blacklist.count; i++)
        *WORLD_PUSH(&disk->blacklist) = own->blacklist.items[i];
    disk_sure(disk, NULL);
}

void claim_reconcile(struct world *world, struct world_claim *own)
{
    const struct world_etcd *etcd = &world->etcd;

    /* A planted bug: the first record after a compaction is not read. */
    if (world->shape.bug == BUG_ETCD_REPLAY_FORGETS && etcd->base_count &&
        own->records.count > etcd->base_count) {
        mem_free(own->records.items[etcd->base_count]);
        own->records.count--;
        memmove(&own->records.items[etcd->base_count], &own->records.items[etcd->base_count + 1],
                (own->records.count - etcd->base_count) * sizeof(own->records.items[0]));
    }
    if (etcd->based != world->disk.based)
        replay_new_base(world, own);
    if (world->check.violated)
        return;
    replay_records(world, own);
    if (!world->check.violated)
        replay_blacklist(world, own);
    own->next = world->disk.records.count;
}
