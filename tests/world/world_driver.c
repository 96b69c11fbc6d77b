/*
 * world_driver.c: a simulated driver process: feeds a driver's core with events, carries out its
 * actions, and compares the core with its shadow, a second core that gets the same events. A peer
 * is a connection to an agent, by its number.
 */
#include "tests/world/world_driver.h"

#include "base/mem.h"
#include "base/panic.h"
#include "driver/core/compact.h"
#include "driver/journal/scribe.h"
#include "proto/catalog.h"
#include "tests/lib/fault.h"
#include "tests/world/world_claim.h"
#include "tests/world/world_state.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define TRACE_LINES     64
#define VIEW_EVERY      64
#define LOOK_US         (5 * TIME_S)
#define NOT_YET_US      (100 * TIME_MS)
#define SCRIPT_LIMIT    (10 * TIME_S)

#define COMPACT_SOON    300 /* records after which a driver compacts its journal in etcd, at most */
#define COMPACTED_MAX   4096
#define COMPACTED_BYTES ((size_t)4 << 20)

bool driver_newest(const struct world_driver *driver)
{
    return driver->world->driver == driver;
}

uint32_t driver_accept(struct world_driver *driver, struct world_link *link)
{
    uint32_t peer = 0;

    while (peer < driver->peers.count && driver->peers.items[peer])
        peer++;
    if (peer == driver->peers.count)
        (void)WORLD_PUSH(&driver->peers);
    driver->peers.items[peer] = link;
    return peer;
}

/* ---- one step ------------------------------------------------------------------------------- */

/* Returns a hash of the actions, to compare the actions of two cores. */
static uint64_t digest_of(struct world *world, const struct action_list *list)
{
    uint64_t digest = UINT64_C(0xcbf29ce484222325);

    buf_clear(&world->scratch);
    for (size_t i = 0; i < list->count; i++) {
        if (action_write(&list->items[i], &world->scratch))
            PANIC("an action that cannot be written");
    }
    for (size_t i = 0; i < world->scratch.length; i++)
        digest = (digest ^ (uint8_t)world->scratch.data[i]) * UINT64_C(0x100000001b3);
    return digest;
}

/* Gives the shadow the same event; the actions of both cores must be equal. */
static void compare_shadow(struct world *world, struct world_driver *driver,
                           const struct event *event)
{
    struct action_list list;
    uint64_t mine = digest_of(world, &driver->actions);

    world->digest = (world->digest ^ mine) * UINT64_C(0x100000001b3);
    if (!driver->shadow)
        return;
    action_list_init(&list);
    if (core_step(driver->shadow, event, &list))
        PANIC("memory is out");
    if (digest_of(world, &list) != mine)
        world_violate(world, "replay", "the same event gave other actions the second time");
    action_list_release(&list);
}

static void on_timer(struct world *world, struct world_event *event)
{
    struct world_driver *driver = event->who;
    struct event timer = { .kind = EVENT_TIMER };

    if (!process_takes(&driver->process, event))
        return;
    driver->process.timer_us = TIME_NEVER;
    if (!driver->begun)
        world_wake(world, &driver->process, world->now_us + NOT_YET_US, on_timer, driver);
    else if (core_deadline(driver->core) <= world->now_us)
        driver_step(world, driver, &timer);
    else
        world_wake(world, &driver->process, core_deadline(driver->core), on_timer, driver);
}

/* Checks what the core shows of itself, at every VIEW_EVERY-th step, or at every step of a
 * story. */
static void look(struct world *world, struct world_driver *driver)
{
    struct core_view view;

    if (++driver->steps % VIEW_EVERY != 0 && !world->told)
        return;
    core_view_init(&view);
    if (core_view(driver->core, &view))
        PANIC("memory is out");
    check_view(world, driver, &view);
    core_view_release(&view);
}

/* Gives the core an event, and checks and carries out the core's actions; without memory the driver
 * dies. */
void driver_step(struct world *world, struct world_driver *driver, struct event *event)
{
    int rc;

    ASSERT(driver->process.alive && !driver->process.frozen && !driver->stepping);
    driver->stepping = true;
    event->now_us = world->now_us;
    event->wall_us = world_wall(world);
    event->held_us = disk_held_us(world, driver);
    check_event(world, driver, event);
    fault_hold(FAULT_ALLOC, false);
    rc = core_step(driver->core, event, &driver->actions);
    fault_hold(FAULT_ALLOC, true);
    driver->stepping = false;
    if (rc) {
        action_list_clear(&driver->actions);
        driver_die(world, driver, "memory is out");
        return;
    }
    if (driver->actions.count > world->stats.worst_actions)
        world->stats.worst_actions = driver->actions.count;
    if (driver->shadow || world->shape.shadow)
        compare_shadow(world, driver, event);
    check_actions(world, driver, &driver->actions);
    disk_execute(world, driver, &driver->actions);
    action_list_clear(&driver->actions);
    if (!driver->process.alive)
        return;
    world_wake(world, &driver->process, core_deadline(driver->core), on_timer, driver);
    look(world, driver);
}

/* ---- carrying out actions -------------------------------------------------------------------- */

enum outcome { OUTCOME_GOOD, OUTCOME_FAILS, OUTCOME_RUBBISH, OUTCOME_HANGS };

/* A run of the discovery script ends: the driver gets the listed hosts, or a failure
 * (event->number). */
static void on_discovered(struct world *world, struct world_event *event)
{
    static const char *const texts[] = { "", "the script ended with code 1",
                                         "line 1: \"%\": not a host name",
                                         "the script took longer than 10s" };
    struct world_driver *driver = event->who;
    struct event told = { .kind = EVENT_HOSTS_FAILED, .text = texts[event->number] };
    struct hosts hosts;

    if (!process_takes(&driver->process, event))
        return;
    hosts_init(&hosts);
    if (event->number == OUTCOME_GOOD) {
        told = (struct event){ .kind = EVENT_HOSTS, .hosts = &hosts };
        for (size_t i = 0; i < world->discovery.listed.count; i++) {
            const struct world_listed *listed = &world->discovery.listed.items[i];

            if (hosts_add(&hosts, listed->host->name, listed->slots))
                PANIC("a host that cannot be");
        }
    }
    driver_step(world, driver, &told);
    hosts_release(&hosts);
}

/* Starts a run of the discovery script, which fails, hangs or prints rubbish if a command asked for
 * that. */
static void discover(struct world *world, struct world_driver *driver)
{
    struct world_discovery *discovery = &world->discovery;
    enum outcome outcome = OUTCOME_GOOD;
    int64_t after_us = world_between(world, world->shape.script);

    if (discovery->hangs) {
        discovery->hangs--;
        outcome = OUTCOME_HANGS;
        after_us = SCRIPT_LIMIT;
    } else if (discovery->failures) {
        discovery->failures--;
        outcome = OUTCOME_FAILS;
    } else if (discovery->rubbish) {
        discovery->rubbish--;
        outcome = OUTCOME_RUBBISH;
    }
    world_after(world, after_us, on_discovered, driver, NULL, outcome);
}

/* Says for what the time of workers was used, in milliseconds of time and of all workers. */
static void tell_goodput(struct world *world, const struct world_driver *driver)
{
    struct core_view view;

    core_view_init(&view);
    if (core_view(driver->core, &view))
        PANIC("memory is out");
    for (enum goodput_use use = GOODPUT_TRAINING; use < GOODPUT_COUNT; use++)
        if (view.goodput.sums[use].time_us)
            world_mark(world, "%s: %" PRId64 "ms, of all workers %" PRId64 "ms",
                       goodput_use_name(use), view.goodput.sums[use].time_us / TIME_MS,
                       view.goodput.sums[use].worker_us / TIME_MS);
    for (size_t i = 0; i < view.goodput.failure_count; i++)
        world_mark(world, "workers of %s have failed %" PRIu64 " times",
                   view.goodput.failures[i].host, view.goodput.failures[i].count);
    core_view_release(&view);
}

/* The newest driver thereby ends the job. */
void driver_over(struct world *world, struct world_driver *driver, const char *text, int code)
{
    if (driver_newest(driver)) {
        world->over = true;
        world->over_us = world->now_us;
        world->exit_code = code;
        snprintf(world->exit_text, sizeof(world->exit_text), "%s", text ? text : "");
        if (world->shape.tells_goodput)
            tell_goodput(world, driver);
        world_mark(world, "the driver exits with %d: %s", code, world->exit_text);
        check_exit(world, driver);
    } else {
        world_mark(world, "an old driver exits with %d: %s", code, text ? text : "");
    }
    driver_die(world, driver, NULL);
}

/* ---- keys of hosts --------------------------------------------------------------------------- */

static size_t key_index(const struct world_driver *driver, const char *host, uint64_t epoch)
{
    size_t i = 0;

    while (i < driver->keys.count &&
           (driver->keys.items[i].epoch != epoch || strcmp(driver->keys.items[i].host, host) != 0))
        i++;
    return i;
}

bool driver_accepts(const struct world_driver *driver, const char *host, uint64_t epoch)
{
    return key_index(driver, host, epoch) < driver->keys.count;
}

uint64_t driver_newest_key(const struct world_driver *driver, const char *host)
{
    uint64_t newest = 0;

    for (size_t i = 0; i < driver->keys.count; i++)
        if (driver->keys.items[i].epoch > newest && !strcmp(driver->keys.items[i].host, host))
            newest = driver->keys.items[i].epoch;
    return newest;
}

/* The host may use this key, or may not any more. A key that is used must be durable. */
static void set_key(struct world *world, struct world_driver *driver, const char *host,
                    uint64_t epoch, bool accepted)
{
    size_t at = key_index(driver, host, epoch);
    struct world_key *key;
    bool durable = false;

    for (size_t i = 0; i < world->disk.records.count && !durable; i++) {
        const struct journal_record *record = world->disk.records.items[i];

        durable = record->kind == JOURNAL_KEY && (uint64_t)record->value == epoch &&
                  !strcmp(record->host, host);
    }
    if (accepted && !durable)
        world_violate(world, "1", "%s has the key of epoch %" PRIu64 ", which is not durable", host,
                      epoch);
    if (accepted && at == driver->keys.count) {
        key = WORLD_PUSH(&driver->keys);
        key->epoch = epoch;
        snprintf(key->host, sizeof(key->host), "%s", host);
    } else if (!accepted && at < driver->keys.count) {
        driver->keys.items[at] = driver->keys.items[--driver->keys.count];
    }
}

void driver_perform(struct world *world, struct world_driver *driver,
                    const struct world_queued *action)
{
    switch (action->kind) {
    case ACTION_SEND:
        check_speaks(world, driver, msg_kind(action->frame->msg.type)->name);
        if (action->link && check_send(world, driver, action->link, action->frame))
            link_send(world, action->link, END_AGENT, frame_keep(action->frame));
        break;
    case ACTION_CLOSE:
        if (action->link)
            link_close(world, action->link, END_DRIVER);
        break;
    case ACTION_START_AGENT: host_start_agent(world, driver, action->host); break;
    case ACTION_KEY: set_key(world, driver, action->host, action->epoch, action->code); break;
    case ACTION_TOKEN: break; /* no host of the world joins by itself */
    case ACTION_REKEYING: world_mark(world, "%s", action->text); break;
    case ACTION_DISCOVER: discover(world, driver); break;
    case ACTION_CHECK_OWNER:
        if (driver->claim)
            scribe_check(driver->claim->client->scribe);
        else if (world->disk.owner != driver->number)
            driver_die(world, driver, "the journal has another owner");
        break;
    case ACTION_CHECKPOINT: store_complete(world, driver, action->checkpoint); break;
    case ACTION_CHECKPOINT_REJECT: store_reject(world, driver, action->epoch); break;
    case ACTION_REPLY:
        world_mark(world, "reply %d: %s", action->code, action->text ? action->text : "");
        break;
    case ACTION_EXIT:
        if (driver->claim && action->code != CORE_REPLACED)
            claim_end(world, driver, action->code, action->text);
        else
            driver_over(world, driver, action->text, action->code);
        break;
    default: PANIC("an action of kind %d", action->kind);
    }
}

/* ---- beginning and end ----------------------------------------------------------------------- */

static void on_start(struct world *world, struct world_event *event)
{
    (void)event;
    if (!world->over && (!world->driver || !world->driver->process.alive))
        driver_start(world);
}

void driver_die(struct world *world, struct world_driver *driver, const char *why)
{
    if (!driver->process.alive)
        return;
    if (why)
        world_mark(world, "driver %u ends: %s", driver->number, why);
    process_end(&driver->process);
    for (size_t i = 0; i < driver->peers.count; i++) {
        if (driver->peers.items[i])
            link_close(world, driver->peers.items[i], END_DRIVER);
    }
    disk_abandon(world, driver);
    store_abandon(world, driver);
    core_free(driver->core);
    core_free(driver->shadow);
    driver->core = NULL;
    driver->shadow = NULL;
    world->driver_trouble_us = world->now_us;
    if (driver->claim)
        claim_driver_gone(world, driver, !why);
    else if (driver_newest(driver) && !world->over && world->shape.restart.high_us != TIME_NEVER)
        world_after(world, world_between(world, world->shape.restart), on_start, world, NULL, 0);
}

static void trace_line_out(void *arg, const char *line, enum trace_level level,
                           const struct facts *facts)
{
    ASSERT(facts && facts->kind); /* programs read the kind of each line */
    (void)level;
    world_told(arg, line);
}

/* Makes a core from the journal that earlier drivers have left; `whole`: from all records, also
 * those that were removed. */
static struct core *make_core(struct world *world, const struct core_config *config, bool whole,
                              struct trace *trace)
{
    const struct world_disk *disk = &world->disk;
    struct hvd_err err = { .code = 0 };
    struct core *core = core_create(config, trace);
    int rc = core ? 0 : HVD_E_NOMEM;

    for (size_t i = 0; !rc && !whole && i < disk->base.count; i++)
        rc = core_replay(core, disk->base.items[i], &err);
    for (size_t i = whole ? 0 : disk->based; !rc && i < disk->records.count; i++)
        rc = core_replay(core, disk->records.items[i], &err);
    for (size_t i = 0; !rc && i < world->disk.blacklist.count; i++)
        rc = core_replay_blacklist(core, &world->disk.blacklist.items[i], world->now_us,
                                   world_wall(world), &err);
    if (!rc)
        return core;
    if (rc != HVD_E_NOMEM)
        world_violate(world, "replay", "a driver cannot read its journal: %s", err.text);
    core_free(core);
    return NULL;
}

/* The records of a compacted journal. */
struct compacted {
    struct buf lines;
    uint64_t digest; /* of all records in any order: hosts have none */
    size_t count;
    struct journal_record *records[COMPACTED_MAX];
};

static int keep_compacted(void *arg, const struct journal_record *record)
{
    struct compacted *own = arg;
    char line[JOURNAL_LINE_MAX];

    own->digest += journal_digest(record);
    if (own->count == COMPACTED_MAX ||
        buf_printf(&own->lines, "  %s\n", journal_describe(record, line)))
        PANIC("a compacted journal is too long");
    own->records[own->count++] = journal_copy(record);
    return 0;
}

/* Compacts the journal as this core has read it. Returns HVD_DONE if it is kept as it is. */
static int compact(struct world *world, const struct core_config *config, bool whole,
                   struct compacted *own)
{
    struct core *core = make_core(world, config, whole, NULL);
    struct arena memory;
    int rc;

    arena_init(&memory, COMPACT_BYTES);
    rc = core ? core_compact(core, &memory, keep_compacted, own) : HVD_DONE;
    arena_release(&memory);
    core_free(core);
    return rc;
}

/* Compacts what a core has read in all records, and in the journal as it is: both give the same
 * journal. Returns HVD_DONE if it cannot be compacted now. */
static int compact_both(struct world *world, const struct core_config *config,
                        struct compacted own[2])
{
    int rc[2];

    for (int i = 0; i < 2; i++) {
        buf_init(&own[i].lines, COMPACTED_BYTES);
        rc[i] = compact(world, config, i == 0 /* whole */, &own[i]);
    }
    if (rc[0] != rc[1] || own[0].digest != own[1].digest)
        world_violate(world, "compact", "all records say\n%sand a compacted journal says\n%s",
                      buf_text(&own[0].lines), buf_text(&own[1].lines));
    return rc[1];
}

static void compacted_free(struct compacted own[2])
{
    for (int i = 0; i < 2; i++) {
        while (own[i].count)
            mem_free(own[i].records[--own[i].count]);
        buf_release(&own[i].lines);
    }
    mem_free(own);
}

/* Compacts the journal before a driver reads it, also one that was compacted before. A core that
 * has read the shorter journal is compared with one that has read all records: both give the same
 * shorter journal. */
static void compact_journal(struct world *world, const struct core_config *config)
{
    struct compacted *own = world_alloc(2 * sizeof(*own));
    struct world_disk *disk = &world->disk;
    int rc = compact_both(world, config, own);

    if (!rc) {
        while (disk->base.count)
            mem_free(disk->base.items[--disk->base.count]);
        for (size_t i = 0; i < own[1].count; i++)
            *WORLD_PUSH(&disk->base) = own[1].records[i];
        own[1].count = 0;
        disk->based = disk->records.count;
        world->stats.compacted++;
    }
    compacted_free(own);
}

static void check_compacted(struct world *world, const struct core_config *config)
{
    struct compacted *own = world_alloc(2 * sizeof(*own));

    (void)compact_both(world, config, own);
    compacted_free(own);
}

static struct world_driver *driver_create(struct world *world)
{
    struct world_driver *driver = world_alloc(sizeof(*driver));

    process_init(&driver->process);
    driver->world = world;
    driver->number = (uint32_t)world->drivers.count + 1;
    driver->told = told_create(world);
    action_list_init(&driver->actions);
    *WORLD_PUSH(&world->drivers) = driver;
    if (world->shape.trace) {
        if (trace_init(&driver->trace, "driver", TRACE_LINES))
            PANIC("memory is out");
        driver->tracing = &driver->trace;
        if (world->told)
            trace_set_tap(&driver->trace, trace_line_out, world);
    }
    return driver;
}

/* A driver checks now and then whether it still owns the journal. Without this check a driver that
 * was frozen during a takeover and has nothing to write would never learn of the takeover. */
static void on_look(struct world *world, struct world_event *event)
{
    struct world_driver *driver = event->who;

    if (!process_takes(&driver->process, event))
        return;
    if (world->disk.owner != driver->number)
        driver_die(world, driver, "the journal has another owner");
    else
        world_after(world, LOOK_US, on_look, driver, NULL, 0);
}

static void driver_configure(struct world *world, struct world_driver *driver,
                             struct core_config *config)
{
    *config = world->shape.config;
    config->seed = world->shape.seed + driver->number;
    store_find(world, driver, config);
    if (world->shape.bug == BUG_LAUNCH_ON_BARRED) {
        config->blacklist.lower_us = 0;
        config->blacklist.upper_us = 0;
    }
}

/* Makes the core of a driver from the journal, and gives it its first event. */
static void driver_run(struct world *world, struct world_driver *driver,
                       const struct core_config *own_config)
{
    struct event start = { .kind = EVENT_START };
    struct core_config config = *own_config;

    world->stats.drivers++;
    world->driver_trouble_us = world->now_us;
    world_mark(world, "driver %u starts", driver->number);
    if (!driver->claim && !world->shape.whole_journal && driver->number % 2 == 0)
        compact_journal(world, &config);
    fault_hold(FAULT_ALLOC, false);
    driver->core = make_core(world, &config, false, driver->tracing);
    fault_hold(FAULT_ALLOC, true);
    if (world->shape.shadow && driver->core)
        driver->shadow = make_core(world, &config, false, NULL);
    if (!driver->claim)
        world_after(world, LOOK_US, on_look, driver, NULL, 0);
    if (driver->core)
        driver_step(world, driver, &start);
    else
        driver_die(world, driver, "memory is out");
}

void driver_start(struct world *world)
{
    struct world_driver *driver;
    struct core_config config;

    if (world->shape.etcd.used) {
        claim_start(world, CLAIM_TAKEOVER);
        return;
    }
    driver = driver_create(world);
    driver_configure(world, driver, &config);
    world->driver = driver;
    world->disk.owner = driver->number;
    driver_run(world, driver, &config);
}

/* A driver that was replaced while it read the journal hears of that at its first write. */
void driver_begin(struct world *world, struct world_claim *claim)
{
    bool owns = world->etcd.owner == claim->client;
    struct world_driver *driver;
    struct core_config config;

    if (owns)
        claim_reconcile(world, claim);
    driver = driver_create(world);
    driver->claim = claim;
    claim->client->driver = driver;
    driver_configure(world, driver, &config);
    if (claim->new_base)
        check_compacted(world, &config);
    if (owns) {
        world->driver = driver;
        world->disk.owner = driver->number;
    }
    scribe_compact(claim->client->scribe, &config,
                   LIMIT_JOURNAL_COMPACT - rng_below(&world->rng, COMPACT_SOON));
    driver_run(world, driver, &config);
}

void driver_release(struct world_driver *driver)
{
    process_end(&driver->process);
    for (size_t i = 0; i < driver->queue.items.count; i++) {
        struct world_queued *queued = &driver->queue.items.items[i];

        mem_free(queued->host);
        mem_free(queued->text);
        frame_drop(queued->frame);
        mem_free(queued->record);
        mem_free(queued->change);
    }
    VEC_RELEASE(&driver->queue.items);
    VEC_RELEASE(&driver->peers);
    VEC_RELEASE(&driver->keys);
    core_free(driver->core);
    core_free(driver->shadow);
    action_list_release(&driver->actions);
    trace_release(&driver->trace);
    told_free(driver->told);
    mem_free(driver);
}
