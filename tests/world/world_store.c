/*
 * world_store.c: the checkpoints of a simulated job: the files that agents write, the manifests
 * that drivers write, and what workers read. Called by world_checkpoint.c, world_driver.c and
 * world_app.c. Invariant 15: a checkpoint that is complete has durable files of one commit, from
 * all members; and a job goes back to a checkpoint only when no process that the driver can hear of
 * has a newer commit.
 */
#include "tests/world/world_store.h"

#include "base/mem.h"
#include "base/panic.h"
#include "proto/commit.h"
#include "tests/world/world_state.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define ADDRESS "checkpoint="
/* After so many rounds that began with a commit, and did not get it, a driver may believe its
 * holders no longer. */
#define VAIN_ROUNDS 3
/* the longest way of an EXITED to the driver over a connection that works */
#define EXITED_US TIME_S

const struct msg_entry store_entries[] = {
    {.name = "weights", .bytes = 4096, .kind = ENTRY_REPLICATED},
    { .name = "bias",   .bytes = 512,  .kind = ENTRY_REPLICATED, .offset = 4096 },
    { .name = "momentum",                .bytes = 64,           .kind = ENTRY_PER_RANK        },
};

void store_release(struct world_store *store)
{
    for (size_t i = 0; i < store->checkpoints.count; i++)
        mem_free(store->checkpoints.items[i]);
    VEC_RELEASE(&store->checkpoints);
    VEC_RELEASE(&store->files);
}

static struct store_checkpoint *store_add(struct world *world, uint64_t commit)
{
    struct store_checkpoint *added = world_alloc(sizeof(*added));

    added->commit = commit;
    snprintf(added->folder, sizeof(added->folder), STORE_DIR "/commit-%" PRIu64 ".%" PRIu32,
             COMMIT_ROUND_OF(commit), COMMIT_PLACE_OF(commit));
    *WORLD_PUSH(&world->store.checkpoints) = added;
    return added;
}

/* Returns the newest checkpoint before `before` that no driver has found damaged, or NULL. */
static struct store_checkpoint *store_newest(const struct world *world, uint64_t before)
{
    struct store_checkpoint *newest = NULL;

    for (size_t i = 0; i < world->store.checkpoints.count; i++) {
        struct store_checkpoint *one = world->store.checkpoints.items[i];

        if (one->complete && !one->rejected && one->commit < before &&
            (!newest || one->commit >= newest->commit))
            newest = one;
    }
    return newest;
}

static struct store_checkpoint *store_at(const struct world *world, const char *folder)
{
    for (size_t i = world->store.checkpoints.count; i-- > 0;)
        if (world->store.checkpoints.items[i]->complete &&
            !strcmp(world->store.checkpoints.items[i]->folder, folder))
            return world->store.checkpoints.items[i];
    return NULL;
}

void store_earlier(struct world *world, uint64_t round, uint32_t place, uint64_t step)
{
    struct store_checkpoint *earlier = store_add(world, COMMIT_FIRST_OF(round) | place);

    earlier->model = (struct world_model){ .step = step, .hash = step };
    earlier->complete = true;
}

bool store_has(const struct world *world, uint64_t commit)
{
    for (size_t i = 0; i < world->store.checkpoints.count; i++)
        if (world->store.checkpoints.items[i]->complete &&
            world->store.checkpoints.items[i]->commit == commit)
            return true;
    return false;
}

void store_damage(struct world *world, enum store_damage damage, unsigned how_many)
{
    struct store_checkpoint *newest = store_newest(world, UINT64_MAX);

    for (unsigned i = 0; newest && i < how_many; i++) {
        newest->damage = damage;
        newest = store_newest(world, newest->commit);
    }
}

bool store_is_readable(const struct world *world)
{
    for (size_t i = 0; i < world->store.checkpoints.count; i++)
        if (world->store.checkpoints.items[i]->complete &&
            !world->store.checkpoints.items[i]->rejected &&
            !world->store.checkpoints.items[i]->damage)
            return true;
    return false;
}

/* ---- files ---------------------------------------------------------------------------------- */

size_t store_write_file(struct world *world, const struct store_file *file)
{
    *WORLD_PUSH(&world->store.files) = *file;
    return world->store.files.count - 1;
}

void store_set_durable(struct world *world, size_t index)
{
    world->store.files.items[index].durable = true;
}

int store_read(const struct world *world, const struct world_worker *worker, const char *address,
               struct world_model *ret_model)
{
    const struct store_checkpoint *found = store_at(world, address + strlen(ADDRESS));

    if (world->now_us < world->store.fails_until_us)
        return HVD_E_BUSY;
    if (!found)
        return HVD_E_NOTFOUND;
    if (found->damage == DAMAGE_ALL || (found->damage && worker->incarnation % 2))
        return HVD_E_CORRUPT;
    *ret_model = found->model;
    return 0;
}

/* ---- manifests ------------------------------------------------------------------------------ */

static const struct store_file *store_file_of(const struct world *world, const char *name)
{
    for (size_t i = world->store.files.count; i-- > 0;)
        if (!strcmp(world->store.files.items[i].name, name))
            return &world->store.files.items[i];
    return NULL;
}

/* Checks one file of a manifest. A host that lies may have written anything; then a worker that
 * reads the file notices it. Returns the entries in the file. */
static unsigned check_file(struct world *world, struct store_checkpoint *checkpoint,
                           const struct saved_file *listed)
{
    const struct journal_record *round = durable_round(world, COMMIT_ROUND_OF(checkpoint->commit));
    const struct store_file *file = store_file_of(world, listed->name);
    const struct world_worker *writer = NULL;
    uint64_t sum = 0;

    if (!file || !round) {
        world_violate(world, "15", "%s is in a manifest, and no agent was asked for it",
                      listed->name);
        return 0;
    }
    if (listed->rank >= 0 && (uint64_t)listed->rank < round->members.count)
        writer = world_worker_of(world, round->members.items[listed->rank]);
    if (listed->rank >= 0 && (!writer || writer->host != file->host || writer->slot != file->slot))
        world_violate(world, "15", "%s is not of the member with this rank", listed->name);
    if (listed->sums.length == sizeof(sum))
        memcpy(&sum, listed->sums.at, sizeof(sum));
    checkpoint->model = file->model;
    if (file->host->liar) {
        if (!file->durable || sum != model_checksum(file->model))
            checkpoint->damage = DAMAGE_ALL;
        return file->entries;
    }
    if (!file->durable)
        world_violate(world, "15", "%s is in a manifest before it is durable", listed->name);
    if (file->commit != checkpoint->commit || sum != model_checksum(file->model))
        world_violate(world, "15", "%s is not of commit %" PRIu64 ".%" PRIu32, listed->name,
                      COMMIT_ROUND_OF(checkpoint->commit), COMMIT_PLACE_OF(checkpoint->commit));
    return file->entries;
}

/* Checks that the files are durable, of one commit, and together the state of all members. */
static void check_manifest(struct world *world, struct store_checkpoint *checkpoint,
                           const struct checkpoint_done *done)
{
    const struct journal_record *round = durable_round(world, COMMIT_ROUND_OF(done->commit));
    unsigned replicated = 0;
    size_t ranks = 0;
    uint64_t sum;

    for (size_t i = 0; i < done->file_count; i++) {
        unsigned entries = check_file(world, checkpoint, &done->files[i]);
        bool again = done->files[i].rank < 0 && (entries & replicated);

        for (size_t k = 0; k < i; k++)
            again |= done->files[i].rank >= 0 && done->files[i].rank == done->files[k].rank;
        if (again)
            world_violate(world, "15", "%s has entries of an earlier file", done->files[i].name);
        replicated |= done->files[i].rank < 0 ? entries : 0;
        ranks += done->files[i].rank >= 0 && entries == 4;
    }
    if (replicated != 3 || !round || ranks != round->members.count || done->ranks != ranks)
        world_violate(world, "15",
                      "checkpoint %" PRIu64 ".%" PRIu32 " does not have the state of all members",
                      COMMIT_ROUND_OF(done->commit), COMMIT_PLACE_OF(done->commit));
    sum = model_checksum(checkpoint->model);
    for (size_t i = 0; i < done->file_count && !checkpoint->damage; i++)
        if (memcmp(done->files[i].sums.at, &sum, sizeof(sum)) != 0)
            world_violate(world, "15", "%s is of another commit than the other files",
                          done->files[i].name);
    check_saved_commit(world, checkpoint);
}

/* The manifest is written, or cannot be: the driver is told. */
static void on_manifest(struct world *world, struct world_event *event)
{
    struct world_driver *driver = event->who;
    struct store_checkpoint *checkpoint = world->store.checkpoints.items[event->number];
    struct event told = { .kind = EVENT_CHECKPOINT,
                          .ask = checkpoint->number,
                          .commit = checkpoint->commit,
                          .text = checkpoint->folder };

    if (!process_takes(&driver->process, event))
        return;
    if (world->disk.owner != driver->number) {
        driver_die(world, driver, "its checkpoints have another owner");
        return;
    }
    if (world->now_us < world->store.fails_until_us) {
        told.code = HVD_E_IO;
        told.text = "manifest.json: the disk is full";
    } else {
        checkpoint->complete = true;
        driver->checkpoint = checkpoint;
        world->stats.checkpoints++;
    }
    driver_step(world, driver, &told);
}

void store_complete(struct world *world, struct world_driver *driver,
                    const struct checkpoint_done *done)
{
    struct store_checkpoint *checkpoint = store_add(world, done->commit);

    checkpoint->driver = driver;
    checkpoint->number = done->number;
    /* A driver that lost the ownership unnoticed is refused by owner_check: on_manifest. */
    for (size_t i = 0; i + 1 < world->store.checkpoints.count; i++)
        if (world->store.checkpoints.items[i]->complete &&
            world->store.checkpoints.items[i]->commit == done->commit &&
            world->disk.owner == driver->number)
            world_violate(world, "15", "%s is complete, and is written again", checkpoint->folder);
    check_manifest(world, checkpoint, done);
    world_mark(world, "the manifest of %s is written", checkpoint->folder);
    world_after(world, world_between(world, world->shape.disk), on_manifest, driver, NULL,
                world->store.checkpoints.count - 1);
}

/* The search for the checkpoint before event->number ends. */
static void on_found(struct world *world, struct world_event *event)
{
    struct world_driver *driver = event->who;
    struct event told = { .kind = EVENT_CHECKPOINT, .text = "none is left" };
    const struct store_checkpoint *found;

    if (!process_takes(&driver->process, event))
        return;
    found = store_newest(world, event->number);
    driver->checkpoint = found;
    if (found) {
        told.commit = found->commit;
        told.text = found->folder;
    }
    driver_step(world, driver, &told);
}

void store_reject(struct world *world, struct world_driver *driver, uint64_t commit)
{
    for (size_t i = 0; i < world->store.checkpoints.count; i++) {
        struct store_checkpoint *one = world->store.checkpoints.items[i];

        if (one->commit != commit || !one->complete)
            continue;
        if (!one->damage)
            world_violate(world, "15", "%s is rejected, and can be read", one->folder);
        one->rejected = true;
    }
    world_after(world, world_between(world, world->shape.disk), on_found, driver, NULL, commit);
}

void store_find(const struct world *world, struct world_driver *driver, struct core_config *config)
{
    const struct store_checkpoint *newest = store_newest(world, UINT64_MAX);

    if (!config->checkpoint_dir)
        return;
    driver->checkpoint = newest;
    config->checkpoint_from.folder = newest ? newest->folder : NULL;
    config->checkpoint_from.commit = newest ? newest->commit : 0;
    config->checkpoint_round = 0;
    for (size_t i = 0; i < world->store.checkpoints.count; i++) {
        const struct store_checkpoint *one = world->store.checkpoints.items[i];

        if (!one->driver && COMMIT_ROUND_OF(one->commit) > config->checkpoint_round)
            config->checkpoint_round = COMMIT_ROUND_OF(one->commit);
    }
}

/* The driver is dead: the manifest that it wrote became complete, or did not, by chance. */
void store_abandon(struct world *world, const struct world_driver *driver)
{
    for (size_t i = 0; i < world->store.checkpoints.count; i++) {
        struct store_checkpoint *one = world->store.checkpoints.items[i];

        if (one->driver != driver || one->complete || world->disk.owner != driver->number ||
            world->now_us < world->store.fails_until_us || !world->shape.quirks)
            continue;
        one->complete = world_coin(world, 2);
    }
}

/* ---- rounds that begin with a checkpoint ----------------------------------------------------- */

/* True: rounds have begun with this commit, and their members could not get it. */
static bool is_in_vain(const struct world *world, uint64_t commit)
{
    unsigned rounds = 0;

    for (size_t i = world->check.rounds.count; i-- > 0 && rounds < VAIN_ROUNDS;)
        rounds += world->check.rounds.items[i]->commit == commit;
    return rounds >= VAIN_ROUNDS;
}

/* True: the driver has heard a hello of this agent over a connection that still works. */
static bool is_heard(const struct world *world, const struct world_driver *driver,
                     const struct world_agent *agent)
{
    const struct world_link *link = agent ? agent->link : NULL;

    return link && agent->process.alive && !agent->process.frozen && link->driver == driver &&
           link->heard && !link->deaf && !link->broken && host_reachable(agent->host) &&
           link->heard_us < world->now_us && !agent->host->liar;
}

/* True: no worker of this slot runs, or has ended so shortly before that its EXITED is under way. A
 * round that does not go back behind the last one waits for no EXITED, which may name a newer
 * commit. */
static bool is_end_known(const struct world *world, const struct world_host *host, uint32_t slot)
{
    for (size_t i = 0; i < world->workers.count; i++) {
        const struct world_worker *worker = world->workers.items[i];

        if (worker->host == host && worker->slot == slot &&
            (worker->process.alive || world->now_us - worker->died_us < EXITED_US))
            return false;
    }
    return true;
}

void check_fall_back(struct world *world, const struct world_driver *driver,
                     const struct journal_record *record)
{
    bool back = record->commit < world->check.entered_commit;
    uint64_t newest = driver->checkpoint ? driver->checkpoint->commit : 0;

    if (record->cause == CAUSE_SWITCH || record->holders.count ||
        (!back && record->commit != newest))
        return;
    if (back && (!newest || record->commit < newest))
        world_violate(world, "15",
                      "round %" PRIu64 " goes back to commit %" PRIu64 ".%" PRIu32
                      ", which is older than the newest checkpoint",
                      record->round, COMMIT_ROUND_OF(record->commit),
                      COMMIT_PLACE_OF(record->commit));
    for (size_t i = 0; i < world->hosts.count; i++) {
        const struct world_host *host = world->hosts.items[i];

        for (uint32_t slot = 0; slot < WORLD_SLOTS_MAX; slot++) {
            const struct world_kept *kept = host->agent ? &host->agent->kept[slot] : NULL;

            if (!back && !is_end_known(world, host, slot))
                continue;
            if (kept && kept->count && kept->items[0].commit > record->commit &&
                is_heard(world, driver, host->agent) && !is_in_vain(world, kept->items[0].commit))
                world_violate(world, "15",
                              "round %" PRIu64 " goes back to commit %" PRIu64 ".%" PRIu32
                              ", and %s:%u keeps %" PRIu64 ".%" PRIu32,
                              record->round, COMMIT_ROUND_OF(record->commit),
                              COMMIT_PLACE_OF(record->commit), host->name, slot,
                              COMMIT_ROUND_OF(kept->items[0].commit),
                              COMMIT_PLACE_OF(kept->items[0].commit));
        }
    }
}

bool check_checkpoint_source(struct world *world, const struct msg *msg)
{
    const struct msg_source_list *sources = &msg->u.round.sources;
    const struct msg_texts *addresses;
    const struct store_checkpoint *found;

    if (!sources->count || sources->items[0].host[0])
        return false;
    addresses = &sources->items[0].addresses;
    found = addresses->count && !strncmp(addresses->items[0], ADDRESS, strlen(ADDRESS))
                ? store_at(world, addresses->items[0] + strlen(ADDRESS))
                : NULL;
    if (sources->count != 1 || msg->u.round.holders.count || !found ||
        found->commit != msg->u.round.commit)
        world_violate(world, "15", "round %" PRIu64 " names a checkpoint that there is not",
                      msg->round);
    return true;
}
