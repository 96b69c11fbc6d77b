/*
 * world_disk.c: the disk of a simulated driver. A driver's actions wait in a queue: a record is
 * written first and is then durable, which means that a successor reads it; an action behind a
 * record is performed when that record is durable.
 */
#include "tests/world/world_disk.h"

#include "base/mem.h"
#include "base/panic.h"
#include "driver/journal/scribe.h"
#include "tests/world/world_claim.h"
#include "tests/world/world_state.h"

#include <string.h>

#define RETRY_US   (200 * TIME_MS)
#define GIVE_UP_US (20 * TIME_S)

static void *copy_of(const void *from, size_t bytes)
{
    void *copy = world_alloc(bytes ? bytes : 1);

    memcpy(copy, from, bytes);
    return copy;
}

static char *text_of(const char *text)
{
    return text ? copy_of(text, strlen(text) + 1) : NULL;
}

static const void *put(char **at, const void *from, size_t bytes)
{
    char *copy = *at;

    if (bytes)
        memcpy(copy, from, bytes);
    *at += bytes;
    return copy;
}

static size_t texts_bytes(const struct msg_texts *texts)
{
    size_t bytes = texts->count * sizeof(char *);

    for (size_t i = 0; i < texts->count; i++)
        bytes += strlen(texts->items[i]) + 1;
    return bytes;
}

/* Copies the record, its lists and its texts into one block. */
struct journal_record *journal_copy(const struct journal_record *record)
{
    size_t members = record->members.count * sizeof(uint64_t);
    size_t holders = record->holders.count * sizeof(uint64_t);
    const char *host = record->host ? record->host : "";
    const char *text = record->text ? record->text : "";
    struct journal_record *copy =
        world_alloc(sizeof(*copy) + members + holders + texts_bytes(&record->addresses) +
                    strlen(host) + strlen(text) + 2);
    char *at = (char *)(copy + 1);
    const char **addresses;

    *copy = *record;
    copy->members.items = put(&at, record->members.items, members);
    copy->holders.items = put(&at, record->holders.items, holders);
    addresses = (const char **)(void *)at;
    at += record->addresses.count * sizeof(char *);
    for (size_t i = 0; i < record->addresses.count; i++)
        addresses[i] = put(&at, record->addresses.items[i], strlen(record->addresses.items[i]) + 1);
    copy->addresses.items = addresses;
    copy->host = put(&at, host, strlen(host) + 1);
    copy->text = put(&at, text, strlen(text) + 1);
    return copy;
}

static uint64_t digest_text(uint64_t digest, const char *text)
{
    for (; *text; text++)
        digest = (digest ^ (unsigned char)*text) * UINT64_C(0x100000001b3);
    return digest;
}

static uint64_t digest_numbers(uint64_t digest, const uint64_t *numbers, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        digest = (digest ^ numbers[i]) * UINT64_C(0x100000001b3);
        digest ^= digest >> 29; /* a product carries bits upwards only */
    }
    return digest;
}

uint64_t journal_digest(const struct journal_record *record)
{
    const uint64_t numbers[] = { record->kind,
                                 record->term,
                                 record->incarnation,
                                 record->round,
                                 record->previous,
                                 record->commit,
                                 record->check,
                                 record->manifest,
                                 record->cause,
                                 record->slot,
                                 (uint64_t)record->value,
                                 (uint64_t)record->code,
                                 (uint64_t)record->wall_us,
                                 record->addresses.count };
    uint64_t digest = digest_numbers(UINT64_C(0xcbf29ce484222325), numbers, ARRAY_SIZE(numbers));

    digest = digest_text(digest, record->host);
    digest = digest_numbers(digest, record->members.items, record->members.count);
    digest = digest_numbers(digest, record->holders.items, record->holders.count);
    for (size_t i = 0; i < record->addresses.count; i++)
        digest = digest_text(digest, record->addresses.items[i]);
    return digest;
}

static void queued_release(struct world_queued *queued)
{
    mem_free(queued->host);
    mem_free(queued->text);
    frame_drop(queued->frame);
    mem_free(queued->record);
    mem_free(queued->change);
    *queued = (struct world_queued){ .kind = queued->kind, .written = queued->written };
}

/* ---- durable records ------------------------------------------------------------------------- */

static size_t blacklist_place(const struct world_disk *disk, const char *host, uint32_t slot)
{
    size_t i = 0;

    while (i < disk->blacklist.count && (disk->blacklist.items[i].slot != slot ||
                                         strcmp(disk->blacklist.items[i].host, host) != 0))
        i++;
    return i;
}

/* Applies a change of the blacklist to the durable blacklist: sets one record, and removes the
 * evicted record. */
static void store_change(struct world_disk *disk, const struct blacklist_change *change)
{
    size_t place = blacklist_place(disk, change->record.host, change->record.slot);

    if (place == disk->blacklist.count)
        (void)WORLD_PUSH(&disk->blacklist);
    disk->blacklist.items[place] = change->record;
    if (!change->evicted)
        return;
    place = blacklist_place(disk, change->evicted_host, change->evicted_slot);
    if (place < disk->blacklist.count)
        disk->blacklist.items[place] = disk->blacklist.items[--disk->blacklist.count];
}

void disk_sure(struct world_disk *disk, const struct blacklist_change *change)
{
    size_t kept = 0;

    for (size_t i = 0; i < disk->unsure.count; i++)
        if (change && disk->unsure.items[i] != change)
            disk->unsure.items[kept++] = disk->unsure.items[i];
        else
            mem_free(disk->unsure.items[i]);
    disk->unsure.count = kept;
}

static bool must_be_written(enum action_kind kind)
{
    return kind == ACTION_RECORD || kind == ACTION_BLACKLIST;
}

/* A record or a change of the queue is durable. */
static void make_one_durable(struct world *world, struct world_driver *driver,
                             struct world_queued *queued)
{
    if (queued->kind == ACTION_RECORD && driver->claim) {
        claim_durable(world, driver, &queued->record);
    } else if (queued->kind == ACTION_RECORD) {
        check_durable(world, queued->record);
        *WORLD_PUSH(&world->disk.records) = queued->record;
        queued->record = NULL;
    } else if (!driver->claim || world->disk.owner == driver->number) {
        store_change(&world->disk, queued->change);
        check_charged(world, queued->change);
        disk_sure(&world->disk, queued->unsure);
    }
    queued->written = true;
    driver->queue.unwritten--;
    driver->begun = true;
}

/* The write under way has succeeded: its records become durable. */
static void make_durable(struct world *world, struct world_driver *driver)
{
    struct world_executor *queue = &driver->queue;

    for (size_t i = queue->first; i < queue->writing; i++) {
        struct world_queued *queued = &queue->items.items[i];

        if (!queued->written && must_be_written(queued->kind))
            make_one_durable(world, driver, queued);
    }
    queue->writing = 0;
}

/* ---- the queue ------------------------------------------------------------------------------ */

static void on_written(struct world *world, struct world_event *event);

/* Begins a write of all queued records, unless a write is under way. */
static void write_more(struct world *world, struct world_driver *driver)
{
    struct world_executor *queue = &driver->queue;
    int64_t after_us;

    if (driver->claim || !queue->unwritten || queue->writing)
        return;
    after_us = world_between(world, world->shape.disk);
    if (world->now_us < world->disk.slow_until_us)
        after_us += world->disk.slow_us;
    queue->writing = queue->items.count;
    world_after(world, after_us, on_written, driver, NULL, 0);
}

static bool disk_may_act(const struct world *world, const struct world_driver *driver)
{
    return !driver->claim || claim_may_act(world, driver);
}

/* Performs the actions at the head of the queue, up to the first action that waits for a record to
 * become durable. */
static void perform_what_can_be(struct world *world, struct world_driver *driver)
{
    struct world_executor *queue = &driver->queue;

    while (driver->process.alive && queue->first < queue->items.count &&
           disk_may_act(world, driver)) {
        struct world_queued *queued = &queue->items.items[queue->first];

        if (must_be_written(queued->kind)) {
            if (!queued->written)
                break;
            queue->first++;
        } else {
            struct world_queued mine = *queued;

            *queued = (struct world_queued){ .kind = mine.kind };
            /* moved first, because performing an EXIT frees the driver and its queue */
            queue->first++;
            driver_perform(world, driver, &mine);
            queued_release(&mine);
            if (driver->last_actions && --driver->last_actions == 0)
                driver_die(world, driver, "killed");
        }
    }
    if (driver->process.alive)
        check_everybody_told(world, driver);
    if (queue->first == queue->items.count) {
        for (size_t i = 0; i < queue->items.count; i++)
            queued_release(&queue->items.items[i]);
        queue->items.count = 0;
        queue->first = 0;
    }
    if (driver->process.alive)
        write_more(world, driver);
}

/* A write ends: its records are durable, or the disk fails and the write is tried again; a driver
 * that no longer owns the disk dies. */
static void on_written(struct world *world, struct world_event *event)
{
    struct world_driver *driver = event->who;
    struct world_executor *queue = &driver->queue;

    if (!process_takes(&driver->process, event))
        return;
    if (world->disk.owner != driver->number) {
        driver_die(world, driver, "the journal has another owner");
        return;
    }
    if (world->now_us < world->disk.fails_until_us) {
        if (!queue->failing_since_us)
            queue->failing_since_us = world->now_us;
        if (world->now_us - queue->failing_since_us > GIVE_UP_US)
            driver_die(world, driver, "the journal cannot be written");
        else
            world_after(world, RETRY_US, on_written, driver, NULL, 0);
        return;
    }
    queue->failing_since_us = 0;
    make_durable(world, driver);
    perform_what_can_be(world, driver);
}

/* Appends a copy of the action; shares the frame with the action before, if both send the same
 * message. */
static void append(struct world *world, struct world_driver *driver, const struct action *action)
{
    struct world_queued *queued = WORLD_PUSH(&driver->queue.items);
    struct world_queued *before = driver->queue.items.count > 1 ? queued - 1 : NULL;

    *queued = (struct world_queued){ .kind = action->kind,
                                     .since_us = world->now_us,
                                     .code = action->code,
                                     .ask = action->ask,
                                     .epoch = action->number,
                                     .checkpoint = action->checkpoint,
                                     .host = text_of(action->host),
                                     .text = text_of(action->text) };
    if (action->kind == ACTION_SEND || action->kind == ACTION_CLOSE) {
        ASSERT(action->peer < driver->peers.count);
        queued->link = driver->peers.items[action->peer];
    }
    if (action->msg) {
        if (before && before->frame && before->frame->copied_from == action->msg) {
            queued->frame = frame_keep(before->frame);
        } else {
            queued->frame = frame_make(action->msg, world->codec);
            queued->frame->copied_from = action->msg;
            queued->frame->made_us = world->now_us;
        }
    }
    if (action->kind == ACTION_RECORD)
        queued->record = journal_copy(action->record);
    if (action->kind == ACTION_BLACKLIST)
        queued->change = copy_of(action->change, sizeof(*action->change));
    if (action->kind == ACTION_CLOSE && queued->link) {
        queued->link->deaf = true;
        driver->peers.items[action->peer] = NULL;
    }
    if (!must_be_written(action->kind))
        return;
    driver->queue.unwritten++;
    if (!driver->claim)
        return;
    queued->number = claim_write(driver, queued);
    if (queued->change) {
        queued->unsure = copy_of(queued->change, sizeof(*queued->change));
        *WORLD_PUSH(&world->disk.unsure) = queued->unsure;
    }
}

void disk_execute(struct world *world, struct world_driver *driver, const struct action_list *list)
{
    struct world_executor *queue = &driver->queue;
    size_t begin = queue->items.count;
    bool hasty =
        (world->shape.bug == BUG_VISIBLE_BEFORE_DURABLE || world->shape.bug == BUG_ETCD_VISIBLE) &&
        world_coin(world, 20);

    if (driver->claim)
        claim_step(driver, true);
    for (size_t i = 0; i < list->count; i++) {
        if (list->items[i].overtakes && driver->begun && disk_may_act(world, driver)) {
            const struct action *action = &list->items[i];
            struct world_queued now = { .kind = action->kind };

            /* Performs at once an action that needs only the driver's first record, not the writes
             * before it. */
            ASSERT(action->kind == ACTION_SEND && action->peer < driver->peers.count);
            now.link = driver->peers.items[action->peer];
            now.frame = frame_make(action->msg, world->codec);
            driver_perform(world, driver, &now);
            queued_release(&now);
            continue;
        }
        append(world, driver, &list->items[i]);
        if (hasty && list->items[i].kind == ACTION_SEND)
            driver_perform(world, driver, &queue->items.items[queue->items.count - 1]);
    }
    if (driver->claim)
        claim_step(driver, false);
    for (size_t i = begin; i < queue->items.count; i++) {
        if (queue->items.items[i].frame)
            queue->items.items[i].frame->copied_from = NULL;
    }
    perform_what_can_be(world, driver);
}

int64_t disk_held_us(const struct world *world, const struct world_driver *driver)
{
    const struct world_executor *queue = &driver->queue;

    for (size_t i = queue->first; i < queue->items.count; i++)
        if (!must_be_written(queue->items.items[i].kind))
            return world->now_us - queue->items.items[i].since_us;
    return 0;
}

/* The scribe's news: records that are durable, a lease that was renewed, or the failure that has
 * ended it. */
void disk_look(struct world *world, struct world_driver *driver)
{
    struct world_executor *queue = &driver->queue;
    struct world_claim *claim = driver->claim;
    struct hvd_err err = { .code = 0 };
    uint64_t durable = 0;
    int rc = scribe_look(claim->client->scribe, &durable, &err);

    if (rc) {
        driver_die(world, driver, rc == HVD_E_LOST ? "the journal has another owner" : err.text);
        return;
    }
    for (size_t i = queue->first; i < queue->items.count; i++) {
        struct world_queued *queued = &queue->items.items[i];

        if (must_be_written(queued->kind) && !queued->written && queued->number <= durable)
            make_one_durable(world, driver, queued);
    }
    if (claim->end_record && durable >= claim->end_record)
        driver_over(world, driver, claim->end_text, claim->end_code);
    else
        perform_what_can_be(world, driver);
}

void disk_abandon(struct world *world, struct world_driver *driver)
{
    struct world_executor *queue = &driver->queue;

    if (!driver->claim && queue->writing && world->disk.owner == driver->number &&
        world->now_us >= world->disk.fails_until_us && world_coin(world, 2))
        make_durable(world, driver);
    for (size_t i = 0; i < queue->items.count; i++)
        queued_release(&queue->items.items[i]);
    VEC_RELEASE(&queue->items);
    *queue = (struct world_executor){ .first = 0 };
}

void disk_release(struct world_disk *disk)
{
    for (size_t i = 0; i < disk->records.count; i++)
        mem_free(disk->records.items[i]);
    for (size_t i = 0; i < disk->base.count; i++)
        mem_free(disk->base.items[i]);
    VEC_RELEASE(&disk->records);
    VEC_RELEASE(&disk->base);
    VEC_RELEASE(&disk->blacklist);
    disk_sure(disk, NULL);
    VEC_RELEASE(&disk->unsure);
}
