/*
 * world_claim.c: drivers and standbys at a simulated etcd: which of them there are, what the
 * product's code does on their threads, and the rules about owners and leases. world_driver.c calls
 * it in worlds whose store is etcd. Invariant: the world believes the cluster, not a driver, about
 * the owner of the job.
 */
#include "tests/world/world_claim.h"

#include "base/limits.h"
#include "base/mem.h"
#include "base/panic.h"
#include "driver/journal/scribe.h"
#include "driver/standby.h"
#include "tests/world/world_state.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

static const char url[] = "etcd://10.0.0.1:2379,10.0.0.2:2379,10.0.0.3:2379/" ETCD_WORLD_PREFIX;

static struct world_claim *claim_of(const struct world *world, const struct world_client *client)
{
    for (size_t i = 0; i < world->claims.count; i++)
        if (world->claims.items[i]->client == client)
            return world->claims.items[i];
    PANIC("a client without a claim");
}

static int64_t lease_us(const struct world *world)
{
    return world->shape.etcd.lease_us;
}

/* ---- on the thread -------------------------------------------------------------------------- */

static int claim_take_record(void *arg, const struct journal_record *record, struct hvd_err *err)
{
    struct world_claim *own = arg;

    (void)err;
    *WORLD_PUSH(&own->records) = journal_copy(record);
    return 0;
}

static int claim_take_blacklist(void *arg, const struct blacklist_record *record,
                                struct hvd_err *err)
{
    struct world_claim *own = arg;

    (void)err;
    *WORLD_PUSH(&own->blacklist) = *record;
    return 0;
}

/* Opens and claims the job, as driver/run.c and driver/job_folder.c do. */
static int claim_open(struct world_claim *own, const struct etcd_store_config *config)
{
    const struct job_facts fresh = { .job = ETCD_WORLD_JOB, .created_wall_us = 1, .port = 4000 };
    struct job_facts facts;
    char who[32];
    int rc = 0;

    if (own->kind == CLAIM_STANDBY)
        rc = standby_wait(config, ETCD_WORLD_JOB, &own->ended, &facts, &own->err);
    if (rc || own->ended)
        return rc;
    rc = etcd_store_open(config, ETCD_WORLD_JOB, own->kind == CLAIM_NEW ? &fresh : NULL,
                         &own->store, &own->err);
    if (rc)
        return rc;
    if (own->kind == CLAIM_AGAIN)
        etcd_store_bury(own->store, own->client->world->etcd.dead_token);
    snprintf(who, sizeof(who), "client %u", own->client->number);
    return store_claim(own->store, own->token, who, &own->err);
}

static void *claim_thread(void *arg)
{
    struct world_claim *own = arg;
    const struct etcd_store_config config = { .url = url,
                                              .insecure = true,
                                              .lease_us = lease_us(own->client->world),
                                              .takeover = own->kind == CLAIM_TAKEOVER };
    int rc;

    do {
        store_close(own->store);
        own->store = NULL;
        rc = claim_open(own, &config);
        own->ended = own->ended || rc == HVD_E_STATE;
    } while ((rc == HVD_E_EXISTS || rc == HVD_E_FULL) && own->kind == CLAIM_STANDBY);
    if (!rc && !own->ended)
        rc = store_replay(own->store, claim_take_record, own, &own->err);
    if (!rc && !own->ended)
        rc = store_blacklist(own->store, claim_take_blacklist, own, &own->err);
    if (!rc && !own->ended)
        rc = scribe_start(own->store, own->store->check_us, &own->client->scribe, &own->err);
    if (rc || own->ended)
        store_close(own->store);
    own->store = NULL;
    own->rc = rc;
    own->done = true;
    return NULL;
}

/* The driver has ended in order: its scribe writes all that waits, and gives the lease back. */
static void *claim_close(void *arg)
{
    struct world_client *client = arg;
    struct scribe *scribe = client->scribe;

    client->scribe = NULL;
    (void)scribe_stop(scribe, NULL);
    return NULL;
}

/* ---- the crew ------------------------------------------------------------------------------- */

static bool claim_lives(const struct world_claim *own)
{
    const struct world_driver *driver = own->client->driver;

    return !own->client->dead && (driver ? driver->process.alive : !own->done || !own->rc);
}

static void on_refill(struct world *world, struct world_event *event)
{
    size_t living = 0;
    bool drives = false;

    (void)event;
    for (size_t i = 0; i < world->claims.count; i++) {
        living += claim_lives(world->claims.items[i]);
        drives = drives || (claim_lives(world->claims.items[i]) &&
                            world->claims.items[i]->kind != CLAIM_STANDBY);
    }
    if (world->over || living > world->shape.etcd.standbys)
        return;
    if (living || drives)
        claim_start(world, CLAIM_STANDBY);
    else
        claim_start(world, !world->etcd.owner                               ? CLAIM_NEW
                           : world_coin(world, 2) && world->etcd.dead_token ? CLAIM_AGAIN
                                                                            : CLAIM_RESUME);
    world_after(world, 0, on_refill, world, NULL, 0);
}

static void claim_refill(struct world *world)
{
    if (!world->over && world->shape.restart.high_us != TIME_NEVER)
        world_after(world, world_between(world, world->shape.restart), on_refill, world, NULL, 0);
}

/* A thread of the client has run: its scribe may have news, or its claim is done. */
static void claim_woken(struct world_client *client)
{
    struct world *world = client->world;
    struct world_claim *own = claim_of(world, client);
    struct world_driver *driver = client->driver;

    if (driver && driver->process.alive && !driver->process.frozen) {
        disk_look(world, driver);
    } else if (own->done && !driver && !client->dead) {
        if (!own->rc && !own->ended) {
            driver_begin(world, own);
            return;
        }
        if (own->rc == HVD_E_CORRUPT)
            world_violate(world, "16", "a driver cannot read its journal: %s", own->err.text);
        world_mark(world, "machine %u gives up: %s", client->number,
                   own->ended ? "the job has ended" : own->err.text);
        client_kill(client);
        claim_refill(world);
    }
}

void claim_start(struct world *world, enum claim_kind kind)
{
    static const char *const kinds[] = { "begins the job", "goes on after its driver",
                                         "waits for the lease to be over", "stands by",
                                         "takes over" };
    struct world_claim *own = world_alloc(sizeof(*own));

    own->kind = kind;
    own->client = client_create(world, claim_woken);
    own->client->number = (uint32_t)world->claims.count + 1;
    own->token = own->client->number;
    *WORLD_PUSH(&world->claims) = own;
    world_mark(world, "machine %u %s", own->client->number, kinds[kind]);
    client_run(own->client, claim_thread, own);
}

void claim_crew(struct world *world)
{
    claim_start(world, CLAIM_NEW);
    for (unsigned i = 0; i < world->shape.etcd.standbys; i++)
        claim_start(world, CLAIM_STANDBY);
}

void claim_kill_standby(struct world *world)
{
    for (size_t i = 0; i < world->claims.count; i++) {
        struct world_claim *own = world->claims.items[i];

        if (own->client->driver || own->done || own->client->dead || own->kind != CLAIM_STANDBY)
            continue;
        world_mark(world, "machine %u dies", own->client->number);
        client_kill(own->client);
        own->done = true;
        own->rc = HVD_E_IO;
        claim_refill(world);
        return;
    }
}

/* Ends the threads of a client, and what its scribe has. */
static void claim_kill(struct world_claim *own)
{
    client_kill(own->client);
    if (own->client->scribe)
        client_run_dead(own->client, claim_close, own->client);
}

void claim_driver_gone(struct world *world, struct world_driver *driver, bool leaves)
{
    struct world_claim *own = driver->claim;

    own->left = leaves;
    if (leaves) {
        client_run(own->client, claim_close, own->client);
    } else {
        claim_kill(own);
        world->etcd.dead_token = world->etcd.owner == own->client ? own->token : 0;
    }
    claim_refill(world);
}

void claim_release(struct world *world)
{
    for (size_t i = 0; i < world->claims.count; i++)
        claim_kill(world->claims.items[i]);
    for (size_t i = 0; i < world->claims.count; i++) {
        struct world_claim *own = world->claims.items[i];

        client_free(own->client);
        for (size_t k = 0; k < own->records.count; k++)
            mem_free(own->records.items[k]);
        VEC_RELEASE(&own->records);
        VEC_RELEASE(&own->blacklist);
        mem_free(own);
    }
    VEC_RELEASE(&world->claims);
}

/* ---- a driver's writes ---------------------------------------------------------------------- */

void claim_step(struct world_driver *driver, bool begins)
{
    if (begins) {
        scribe_step_begin(driver->claim->client->scribe);
        return;
    }
    scribe_step_end(driver->claim->client->scribe);
    client_signal(driver->claim->client);
}

uint64_t claim_write(struct world_driver *driver, const struct world_queued *queued)
{
    const struct job_write write = { .record = queued->record, .change = queued->change };
    uint64_t number = scribe_put(driver->claim->client->scribe, &write);

    ASSERT(number);
    return number;
}

void claim_end(struct world *world, struct world_driver *driver, int code, const char *text)
{
    struct world_claim *own = driver->claim;
    struct job_write write = { .ended = true, .code = code, .text = own->end_text };

    (void)world;
    own->end_code = code;
    snprintf(own->end_text, sizeof(own->end_text), "%s", text ? text : "");
    own->end_record = scribe_put(own->client->scribe, &write);
    ASSERT(own->end_record);
    client_signal(own->client);
}

bool claim_may_act(const struct world *world, const struct world_driver *driver)
{
    const struct world_claim *own = driver->claim;
    int64_t until_us = scribe_held_until(own->client->scribe);

    if (world->shape.bug == BUG_ETCD_LEASE_FROM_ANSWER)
        until_us += own->answer_us;
    return world->now_us < until_us;
}

/* ---- the rules ------------------------------------------------------------------------------ */

void check_speaks(struct world *world, const struct world_driver *driver, const char *what)
{
    const struct world_claim *own = driver->claim;

    if (!own || own->overthrown || world->now_us <= own->held_us)
        return;
    world_violate(world, "16",
                  "driver %u says %s %" PRId64 " us after the time for which it holds the job%s",
                  driver->number, what, world->now_us - own->held_us,
                  world->etcd.owner == own->client ? "" : ", and another driver is the owner");
}

void claim_applied(struct world *world, const struct world_client *client)
{
    struct world_claim *own = claim_of(world, client);
    struct world_claim *before = world->etcd.owner ? claim_of(world, world->etcd.owner) : NULL;

    world->etcd.owner = client;
    world_mark(world, "machine %u owns the job", client->number);
    if (!before || before == own || before->client->dead || before->left)
        return;
    if (own->kind == CLAIM_TAKEOVER)
        before->overthrown = true;
    else if (before->held_us > world->now_us)
        world_violate(world, "16",
                      "machine %u claims the job %" PRId64 " us before the lease of machine %u is "
                      "over",
                      client->number, before->held_us - world->now_us, before->client->number);
}

/* True: the transaction writes the key `alive`. */
static bool claim_writes_alive(const json_t *request)
{
    const json_t *todo = json_object_get(request, "success");

    for (size_t i = 0; i < json_array_size(todo); i++) {
        const json_t *put = json_object_get(json_array_get(todo, i), "request_put");

        if (json_object_get(put, "lease") && !*json_string_value(json_object_get(put, "value")))
            return true;
    }
    return false;
}

/* A client that drives the job counts its lease from the sending of the request, if the answer came
 * while the lease before was not over. */
void claim_answered(struct world *world, struct world_client *client, const char *path,
                    const json_t *request, const char *text, int64_t sent_us)
{
    struct world_claim *own = claim_of(world, client);
    bool renews = !strcmp(path, "lease/keepalive") && strstr(text, "\"TTL\"");
    bool grants = !strcmp(path, "lease/grant") && strstr(text, "\"TTL\"");
    /* A claim that was carried out although its first answer was lost does not succeed again. */
    bool writes = !strcmp(path, "kv/txn") && claim_writes_alive(request) &&
                  (strstr(text, "\"succeeded\":true") ||
                   (strstr(text, "\"succeeded\":false") && world->etcd.owner == client));

    if (renews || grants) {
        own->renewed_us = sent_us;
        own->answer_us = world->now_us - sent_us;
    }
    if (writes || (renews && world->now_us <= own->held_us))
        own->held_us = own->renewed_us + lease_us(world);
}

/* ---- records -------------------------------------------------------------------------------- */

static bool claim_same(const struct journal_record *one, const struct journal_record *other)
{
    return journal_digest(one) == journal_digest(other);
}

void claim_durable(struct world *world, struct world_driver *driver, struct journal_record **record)
{
    struct world_claim *own = driver->claim;
    struct world_disk *disk = &world->disk;
    char line[JOURNAL_LINE_MAX];

    if (own->next < disk->records.count) {
        if (!claim_same(disk->records.items[own->next], *record))
            world_violate(world, "16",
                          "driver %u is told that \"%s\" is durable, and another record is in its "
                          "place",
                          driver->number, journal_describe(*record, line));
        own->next++;
        return;
    }
    if (world->disk.owner != driver->number) {
        world_violate(world, "16",
                      "driver %u is told that \"%s\" is durable, and its successor has not read it",
                      driver->number, journal_describe(*record, line));
        return;
    }
    check_durable(world, *record);
    *WORLD_PUSH(&disk->records) = *record;
    *record = NULL;
    own->next++;
}
