/* world_faults.c: random worlds: their shape, and the faults in them. Faults come in a first phase;
 * then the world is calm, is mended, and the job must end. */
#include "base/panic.h"
#include "tests/lib/fault.h"
#include "tests/world/world_claim.h"
#include "tests/world/world_saves.h"
#include "tests/world/world_state.h"

#include <stdio.h>

#define WORKERS_MAX 64
#define HOSTS_MAX   16
#define SLOTS_MAX   8

static int64_t among(struct rng *rng, int64_t low, int64_t high)
{
    return low + (int64_t)rng_below(rng, (uint64_t)(high - low + 1));
}

static struct world_span span_of(struct rng *rng, int64_t low_us, int64_t most_us)
{
    int64_t from_us = among(rng, low_us, (low_us + most_us) / 2);

    return (struct world_span){ from_us, among(rng, from_us, most_us) };
}

static void draw_config(struct core_config *config, struct rng *rng)
{
    core_config_init(config);
    config->job = "world";
    config->beat_us = TIME_S;
    config->lease_us = among(rng, 3 * TIME_S, 6 * TIME_S);
    config->driver_grace_us = among(rng, TIME_MIN, 5 * TIME_MIN);
    config->discovery.pause_us = among(rng, TIME_S, 5 * TIME_S);
    config->elastic_timeout_us = among(rng, 10 * TIME_MIN, 15 * TIME_MIN);
    config->agent_start_us = among(rng, 10 * TIME_S, TIME_MIN);
    config->start_timeout_us = among(rng, 90 * TIME_S, 150 * TIME_S);
    config->gather_us = among(rng, 200 * TIME_MS, 5 * TIME_S);
    config->prepare_us = among(rng, 3 * TIME_S, 10 * TIME_S);
    config->stall_warning_us = among(rng, 3 * TIME_S, 8 * TIME_S);
    config->stall_us = among(rng, 10 * TIME_S, 30 * TIME_S);
    config->kill_grace_us = among(rng, TIME_S, 5 * TIME_S);
    config->blacklist.lower_us = among(rng, TIME_S, 5 * TIME_S);
    config->blacklist.upper_us = among(rng, 10 * TIME_S, 40 * TIME_S);
    if (rng_below(rng, 6) == 0)
        config->blacklist.scope = SCOPE_HOST;
    if (rng_below(rng, 40) == 0)
        config->blacklist.forever = true;
    if (rng_below(rng, 40) == 0)
        config->reset_limit = (uint32_t)among(rng, 5, 50);
    /* A random world has far more faults than a commit interval; one in eight ends by this. */
    config->progress_restarts = config->progress_restarts_job = CORE_NO_PROGRESS_LIMIT;
    if (rng_below(rng, 8) == 0) {
        config->progress_restarts = (uint32_t)among(rng, 1, 4);
        config->progress_restarts_job = (uint32_t)among(rng, 2, 12);
    }
}

void world_shape_random(struct world_shape *shape, uint64_t seed, unsigned faults)
{
    struct rng rng;

    rng_seed(&rng, ~seed);
    *shape = (struct world_shape){ .seed = seed, .faults = faults, .quirks = true };
    draw_config(&shape->config, &rng);
    shape->link = span_of(&rng, 100, 20 * TIME_MS);
    shape->local = span_of(&rng, 20, 500);
    shape->disk = span_of(&rng, 200, 20 * TIME_MS);
    shape->spawn = span_of(&rng, TIME_MS, 20 * TIME_MS);
    shape->boot = span_of(&rng, 100 * TIME_MS, 3 * TIME_S);
    if (rng_below(&rng, 10) == 0)
        shape->boot = span_of(&rng, 2 * TIME_S, TIME_MIN);
    shape->build = span_of(&rng, 10 * TIME_MS, TIME_S);
    shape->ssh = span_of(&rng, 50 * TIME_MS, TIME_S);
    shape->step = span_of(&rng, 100 * TIME_MS, TIME_S);
    shape->connect = span_of(&rng, 5 * TIME_MS, 300 * TIME_MS);
    shape->fetch = span_of(&rng, TIME_MS, TIME_S);
    shape->script = span_of(&rng, 20 * TIME_MS, TIME_S);
    shape->restart = span_of(&rng, 100 * TIME_MS, 5 * TIME_S);
    shape->commit_every = (uint32_t)among(&rng, 1, 10);
    shape->always_check = rng_below(&rng, 3) == 0;
    /* A quarter of the worlds have a liar, some of them no other fault. */
    shape->liar = seed % 4 == 2;
    if (seed % 16 == 6)
        shape->faults = 0;
    if (seed % 3 == 1) {
        shape->config.checkpoint_dir = STORE_DIR;
        if (rng_below(&rng, 2))
            shape->config.checkpoint_us = among(&rng, 2 * TIME_S, TIME_MIN);
        else
            shape->config.checkpoint_commits = (uint32_t)among(&rng, 1, 20);
    }
    if (seed % 5 == 3)
        world_shape_etcd(shape);
    if (seed % 40 == 11) {
        shape->plain = true;
        shape->plain_code = (int)rng_below(&rng, 4) / 3;
        shape->boot = span_of(&rng, TIME_S, 80 * TIME_S);
        if (shape->plain_code) { /* without a limit such a job may go on for ever */
            shape->config.progress_restarts = 3;
            shape->config.progress_restarts_job = 10;
        }
    }
    /* Workers ask for checkpoints, in some worlds also where there is no directory for them. */
    if (shape->config.checkpoint_dir ? seed % 2 == 0 : seed % 12 == 5) {
        shape->persist_every = (uint32_t)among(&rng, 1, 8);
        shape->persist_all = rng_below(&rng, 2) == 0;
        shape->persist_waits = rng_below(&rng, 2) == 0;
    }
}

void world_shape_etcd(struct world_shape *shape)
{
    struct rng rng;

    rng_seed(&rng, shape->seed ^ UINT64_C(0x65746364));
    shape->etcd.used = true;
    shape->etcd.standbys = (unsigned)rng_below(&rng, 3);
    shape->etcd.lease_us = among(&rng, 1, 4) * TIME_S;
}

void world_populate(struct world *world)
{
    struct core_config *config = &world->shape.config;
    uint32_t hosts = (uint32_t)among(&world->rng, 1, HOSTS_MAX);
    uint32_t most = (uint32_t)among(&world->rng, 1, SLOTS_MAX);
    uint32_t total = 0;
    char name[16];

    if (rng_below(&world->rng, 2))
        hosts = 1 + hosts / 3; /* half of the worlds are small */
    for (uint32_t i = 0; i < hosts && total < WORKERS_MAX; i++) {
        uint32_t slots = (uint32_t)among(&world->rng, 1, most);

        if (slots > WORKERS_MAX - total)
            slots = WORKERS_MAX - total;
        snprintf(name, sizeof(name), "h%u", i);
        world_host(world, name, slots);
        total += slots;
    }
    config->np = (uint32_t)among(&world->rng, 1, total);
    config->min_np = (uint32_t)among(&world->rng, 1, config->np);
    config->max_np = (uint32_t)among(&world->rng, config->np, WORKERS_MAX);
    if (!world->shape.faults)
        world->length = (uint64_t)among(&world->rng, 50, world->shape.liar ? 1000 : 300);
}

/* ---- faults ---------------------------------------------------------------------------------- */

/* true: every commit that a new round may resume from is kept on another host than `but`. */
bool world_state_elsewhere(const struct world *world, const struct world_host *but)
{
    for (size_t i = 0; i < world->hosts.count; i++) {
        const struct world_host *host = world->hosts.items[i];

        if (host == but || !host->up || !host->agent || !host->agent->process.alive)
            continue;
        for (size_t slot = 0; slot < WORLD_SLOTS_MAX; slot++) {
            const struct world_kept *kept = &host->agent->kept[slot];

            if (kept->count && kept->items[0].commit >= world->check.entered_commit)
                return true;
        }
    }
    return !world->check.entered_commit;
}

static bool loses_the_state(struct world *world, const struct world_command *command)
{
    bool takes = command->kind == COMMAND_KILL_AGENT || command->kind == COMMAND_POWER_OFF ||
                 command->kind == COMMAND_UNLIST_HOST;

    return takes && !store_is_readable(world) &&
           !world_state_elsewhere(world, world_find_host(world, command->host)) &&
           !world_coin(world, 100);
}

static void on_fault_command(struct world *world, struct world_event *event)
{
    const struct world_when *when = &world->whens.items[event->number];

    if (!world->over && !world->calm && !loses_the_state(world, &when->command))
        world_do(world, &when->command);
}

static void soon(struct world *world, int64_t after_us, struct world_command command)
{
    struct world_when *when = WORLD_PUSH(&world->whens);

    *when = (struct world_when){ .command = command, .done = true };
    world_after(world, after_us, on_fault_command, world, NULL, world->whens.count - 1);
}

static int64_t a_while(struct world *world, int64_t low_us, int64_t high_us)
{
    return among(&world->rng, low_us, high_us);
}

static uint32_t slots_listed(const struct world *world, const struct world_host *host)
{
    for (size_t i = 0; i < world->discovery.listed.count; i++) {
        if (world->discovery.listed.items[i].host == host)
            return world->discovery.listed.items[i].slots;
    }
    return 0;
}

/* Queues a random fault of this worker, and the end of the fault if the fault lasts. The hurt_
 * functions below do the same for other targets. */
static void hurt_worker(struct world *world, struct world_host *host, uint32_t slot)
{
    switch (rng_below(&world->rng, 9)) {
    case 0:
    case 1: soon(world, 0, kill_worker(host->name, slot)); break;
    case 2:
        soon(world, 0, freeze_worker(host->name, slot));
        soon(world, a_while(world, 100 * TIME_MS, 10 * TIME_S), thaw_worker(host->name, slot));
        break;
    case 3: soon(world, 0, exit_worker(host->name, slot, (int)rng_below(&world->rng, 3))); break;
    case 4: soon(world, 0, stall_worker(host->name, slot, a_while(world, TIME_S, TIME_MIN))); break;
    case 5: soon(world, 0, hang_worker(host->name, slot, a_while(world, TIME_S, TIME_MIN))); break;
    case 6:
        soon(world, 0, next_boot(host->name, BOOT_EXITS, (int)rng_below(&world->rng, 2), 0));
        soon(world, 0, kill_worker(host->name, slot));
        break;
    case 7: soon(world, 0, unusable_worker(host->name, slot)); break;
    default:
        soon(world, 0, next_boot(host->name, BOOT_SLOW, 0, a_while(world, TIME_S, TIME_MIN)));
        soon(world, 0, kill_worker(host->name, slot));
    }
}

static void hurt_machine(struct world *world, struct world_host *host)
{
    switch (rng_below(&world->rng, 6)) {
    case 0: soon(world, 0, kill_agent(host->name)); break;
    case 1:
        soon(world, 0, freeze_agent(host->name));
        soon(world, a_while(world, 100 * TIME_MS, 15 * TIME_S), thaw_agent(host->name));
        break;
    case 2:
        soon(world, 0, power_off(host->name));
        soon(world, a_while(world, 100 * TIME_MS, 30 * TIME_S), power_on(host->name));
        break;
    case 3:
        soon(world, 0, notice(host->name, a_while(world, 2 * TIME_S, 20 * TIME_S)));
        soon(world, a_while(world, 10 * TIME_S, 25 * TIME_S), power_off(host->name));
        soon(world, 30 * TIME_S, power_on(host->name));
        soon(world, 30 * TIME_S, undrain(host->name, COMMAND_WHOLE_HOST));
        break;
    default: soon(world, 0, spawn_fails(host->name)); break;
    }
}

static void hurt_network(struct world *world, const struct world_host *host)
{
    struct world_command cut = cut_off(host->name);

    switch (rng_below(&world->rng, 4)) {
    case 0: soon(world, 0, break_link(host->name)); break;
    case 1:
        cut.value = (int)rng_below(&world->rng, 3); /* both directions, or one */
        soon(world, 0, cut);
        soon(world, a_while(world, 100 * TIME_MS, 15 * TIME_S), heal(host->name));
        break;
    default: soon(world, 0, repeat_frames(host->name)); break;
    }
}

static void hurt_driver(struct world *world)
{
    struct world_command kill = kill_driver();

    switch (rng_below(&world->rng, 8)) {
    case 0:
    case 1:
        /* the driver dies after this many more actions */
        kill.value = (int)rng_below(&world->rng, 30);
        soon(world, 0, kill);
        break;
    case 2:
        soon(world, 0, freeze_driver());
        soon(world, a_while(world, 100 * TIME_MS, 8 * TIME_S), thaw_driver());
        break;
    case 3: /* an old driver wakes up after its successor has taken over */
        soon(world, 0, freeze_driver());
        soon(world, a_while(world, 100 * TIME_MS, 3 * TIME_S), start_driver());
        soon(world, a_while(world, 3 * TIME_S, 10 * TIME_S), thaw_driver());
        break;
    case 4: soon(world, 0, slow_disk(a_while(world, TIME_S, 10 * TIME_S))); break;
    case 5: soon(world, 0, fail_disk(a_while(world, 100 * TIME_MS, 10 * TIME_S))); break;
    case 6: /* Starts a driver at another address, which some agents have to be told. */
        soon(world, 0, kill_driver());
        for (size_t i = 0; i < world->hosts.count; i++) {
            const struct world_host *host = world->hosts.items[i];

            if (world_coin(world, 3))
                continue;
            soon(world, 0, lead_astray(host->name));
            soon(world, a_while(world, 100 * TIME_MS, TIME_MIN), heal(host->name));
        }
        break;
    default:
        soon(world, 0, fail_disk(30 * TIME_S)); /* longer than a driver tolerates */
        soon(world, 22 * TIME_S, fail_disk(0));
    }
}

/* Faults of the cluster that has the drivers' store, of the way to it, and of standbys. */
static void hurt_etcd(struct world *world)
{
    switch (rng_below(&world->rng, 8)) {
    case 0:
    case 1: soon(world, 0, lose_leader(a_while(world, 200 * TIME_MS, 4 * TIME_S))); break;
    case 2: /* the driver dies with a write under way, and perhaps another leader has it */
        soon(world, a_while(world, 0, 100 * TIME_MS), kill_driver());
        soon(world, 0, lose_leader(a_while(world, 200 * TIME_MS, 4 * TIME_S)));
        break;
    case 3:
    case 4: soon(world, 0, cut_store(a_while(world, 200 * TIME_MS, 15 * TIME_S))); break;
    case 5: soon(world, 0, kill_standby()); break;
    case 6: /* it sleeps for longer than its lease */
        soon(world, 0, freeze_driver());
        soon(world, world->shape.etcd.lease_us + a_while(world, 0, 3 * TIME_S), thaw_driver());
        break;
    default: soon(world, 0, slow_disk(a_while(world, TIME_S, 10 * TIME_S))); break;
    }
}

static void change_hosts(struct world *world, const struct world_host *host, uint32_t slots)
{
    struct world_command failing = discovery_fails();

    switch (rng_below(&world->rng, 6)) {
    case 0:
    case 1:
        soon(world, 0, unlist_host(host->name));
        soon(world, a_while(world, 100 * TIME_MS, 30 * TIME_S), list_host(host->name, slots));
        break;
    case 2:
        soon(world, 0, list_host(host->name, (uint32_t)rng_below(&world->rng, slots + 1)));
        soon(world, a_while(world, TIME_S, 30 * TIME_S), list_host(host->name, slots));
        break;
    case 3:
        failing.value = (int)rng_below(&world->rng, 2);
        soon(world, 0, failing);
        break;
    case 4: soon(world, 0, discovery_hangs()); break;
    default: {
        uint32_t slot =
            world_coin(world, 2) ? COMMAND_WHOLE_HOST : (uint32_t)rng_below(&world->rng, slots);

        soon(world, 0, drain(host->name, slot, a_while(world, TIME_S, 30 * TIME_S)));
        soon(world, a_while(world, TIME_S, 40 * TIME_S), undrain(host->name, slot));
    }
    }
}

static void on_calm(struct world *world, struct world_event *event)
{
    (void)event;
    faults_end(world);
}

/* Decides how long the training is; in half of the worlds while there are still faults. */
static void decide_length(struct world *world)
{
    uint64_t most = 0;

    if (world->length != UINT64_MAX)
        return;
    for (size_t i = 0; i < world->workers.count; i++) {
        if (world->workers.items[i]->loop.model.step > most)
            most = world->workers.items[i]->loop.model.step;
    }
    world->length = most + 20 + rng_below(&world->rng, 40);
}

/* Faults of checkpoints. All agents die at once only when the job can go on from a checkpoint. */
static void hurt_checkpoints(struct world *world)
{
    switch (rng_below(&world->rng, 8)) {
    case 0: soon(world, 0, fail_store(a_while(world, TIME_S, 20 * TIME_S))); break;
    case 1:
        soon(world, 0, world_coin(world, 2) ? damage_checkpoint() : damage_checkpoint_for_some());
        break;
    case 2: soon(world, 0, want_checkpoint()); break;
    case 3:
        if (store_is_readable(world))
            soon(world, 0, kill_everything());
        break;
    default:
        if (store_is_readable(world))
            soon(world, 0, kill_all_agents());
    }
}

/* true: whichever agent dies, the state is kept on another host. */
static bool nobody_is_needed(const struct world *world)
{
    for (size_t i = 0; i < world->hosts.count; i++) {
        if (!world_state_elsewhere(world, world->hosts.items[i]))
            return false;
    }
    return true;
}

/* Causes a random fault at a random host, and queues the next fault, until none is left. */
static void on_fault(struct world *world, struct world_event *event)
{
    struct world_host *host;
    uint32_t slots;

    (void)event;
    if (world->over || world->calm)
        return;
    if (world->shape.oom && world_coin(world, 8) && nobody_is_needed(world))
        fault_arm(FAULT_ALLOC, 1 + rng_below(&world->rng, 300));
    /* New keys come beside another fault, so that agents and drivers die while they are given. */
    if (world_coin(world, 6))
        soon(world, a_while(world, 0, 200 * TIME_MS), rekey());
    if (world->shape.config.checkpoint_dir && world_coin(world, 6))
        hurt_checkpoints(world);
    if (world->shape.etcd.used && world_coin(world, 4))
        hurt_etcd(world);
    host = world->hosts.items[rng_below(&world->rng, world->hosts.count)];
    slots = slots_listed(world, host);
    switch (rng_below(&world->rng, 10)) {
    case 0: hurt_machine(world, host); break;
    case 1:
    case 2: hurt_network(world, host); break;
    case 3:
    case 4: hurt_driver(world); break;
    case 5:
    case 6:
        if (slots)
            change_hosts(world, host, slots);
        else
            hurt_worker(world, host, 0);
        break;
    default: hurt_worker(world, host, (uint32_t)rng_below(&world->rng, slots ? slots : 1));
    }
    if (world->faults_left == 10 && world->shape.seed % 2)
        decide_length(world);
    if (--world->faults_left) {
        int64_t after_us = a_while(world, TIME_S, 8 * TIME_S);

        if (world_coin(world, 3))
            after_us = a_while(world, 0, 300 * TIME_MS);
        else if (world_coin(world, 10))
            after_us = a_while(world, 15 * TIME_S, 40 * TIME_S);
        world_after(world, after_us, on_fault, world, NULL, 0);
    } else {
        world_after(world, 10 * TIME_S, on_calm, world, NULL, 0);
    }
}

void faults_begin(struct world *world)
{
    world_after(world, a_while(world, 2 * TIME_S, 15 * TIME_S), on_fault, world, NULL, 0);
}

/* Takes the drains and the barred slots of all hosts back, as an operator would. */
static void forgive_all(struct world *world)
{
    for (size_t i = 0; i < world->hosts.count; i++) {
        struct world_command commands[] = {
            undrain(world->hosts.items[i]->name, COMMAND_WHOLE_HOST),
            clear_slot(world->hosts.items[i]->name, COMMAND_WHOLE_HOST)
        };

        for (size_t j = 0; j < ARRAY_SIZE(commands); j++)
            world_do(world, &commands[j]);
    }
}

/* The notices of machines are withdrawn: no machine will be taken away any more. */
static void on_forgive(struct world *world, struct world_event *event)
{
    (void)event;
    if (!world->over)
        forgive_all(world);
}

void faults_end(struct world *world)
{
    struct world_command thaw = thaw_driver();

    if (world->calm)
        return;
    world_mark(world, "no more faults");
    world->calm = true;
    world->calm_us = world->now_us;
    if (world->shape.oom)
        fault_arm(FAULT_ALLOC, 0);
    decide_length(world);
    world->disk.fails_until_us = 0;
    world->disk.slow_until_us = 0;
    world->store.fails_until_us = 0;
    for (size_t i = 0; i < world->claims.count; i++)
        world->claims.items[i]->client->cut_us = 0;
    world->discovery.failures = 0;
    world->discovery.rubbish = 0;
    world->discovery.hangs = 0;
    world_do(world, &thaw);
    for (size_t i = 0; i < world->drivers.count; i++)
        world->drivers.items[i]->last_actions = 0; /* no driver will be killed later either */
    for (size_t i = 0; i < world->hosts.count; i++) {
        struct world_host *host = world->hosts.items[i];
        struct world_command mended[] = { heal(host->name), power_on(host->name),
                                          thaw_agent(host->name),
                                          list_host(host->name, world->slots[i]) };

        host->spawn_failures = 0;
        host->boot = BOOT_USUAL;
        host->boot_us = 0;
        for (size_t k = 0; k < ARRAY_SIZE(mended); k++)
            world_do(world, &mended[k]);
        for (uint32_t slot = 0; slot < world->slots[i]; slot++) {
            struct world_command again = thaw_worker(host->name, slot);

            world_do(world, &again);
        }
    }
    forgive_all(world);
    world_after(world, TIME_MIN, on_forgive, world, NULL, 0);
}
