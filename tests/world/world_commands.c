/*
 * world_commands.c: carries out the commands of a script or of the random faults: kills, freezes,
 * cut links, listed hosts, drains, broken disks.
 */
#include "tests/world/world_commands.h"

#include "base/panic.h"
#include "tests/world/world_claim.h"
#include "tests/world/world_liar.h"
#include "tests/world/world_saves.h"
#include "tests/world/world_state.h"

#include <limits.h>
#include <stdio.h>

const char *command_name(enum world_command_kind kind)
{
    static const char *const names[] = {
#define COMMAND_NAME_OF(name, text) text,
        DEEDS(COMMAND_NAME_OF)
#undef COMMAND_NAME_OF
    };

    return names[kind];
}

/* The target of a command. Every kind is listed, so that the compiler complains about a new kind
 * without a target. */
enum target { TO_WORKER, TO_HOST, TO_LIST, TO_DISCOVERY, TO_OPERATOR, TO_DRIVER };

static enum target target_of(enum world_command_kind kind)
{
    switch (kind) {
    case COMMAND_KILL_WORKER:
    case COMMAND_FREEZE_WORKER:
    case COMMAND_THAW_WORKER:
    case COMMAND_EXIT_WORKER:
    case COMMAND_STALL_WORKER:
    case COMMAND_HANG_WORKER:
    case COMMAND_UNUSABLE_WORKER: return TO_WORKER;
    case COMMAND_BOOT_NEXT:
    case COMMAND_SPAWN_FAILS:
    case COMMAND_KILL_AGENT:
    case COMMAND_FREEZE_AGENT:
    case COMMAND_THAW_AGENT:
    case COMMAND_POWER_OFF:
    case COMMAND_POWER_ON:
    case COMMAND_CUT:
    case COMMAND_HEAL:
    case COMMAND_LEAD_ASTRAY:
    case COMMAND_BREAK_LINK:
    case COMMAND_REPEAT_FRAMES:
    case COMMAND_NOTICE:
    case COMMAND_LIE: return TO_HOST;
    case COMMAND_LIST_HOST:
    case COMMAND_UNLIST_HOST: return TO_LIST;
    case COMMAND_DISCOVERY_FAILS:
    case COMMAND_DISCOVERY_HANGS: return TO_DISCOVERY;
    case COMMAND_DRAIN:
    case COMMAND_UNDRAIN:
    case COMMAND_CLEAR:
    case COMMAND_REKEY:
    case COMMAND_STOP:
    case COMMAND_CROWD:
    case COMMAND_CHECKPOINT:
    case COMMAND_STATUS: return TO_OPERATOR;
    case COMMAND_KILL_DRIVER:
    case COMMAND_FREEZE_DRIVER:
    case COMMAND_THAW_DRIVER:
    case COMMAND_START_DRIVER:
    case COMMAND_SLOW_DISK:
    case COMMAND_FAIL_DISK:
    case COMMAND_KILL_STANDBY:
    case COMMAND_LOSE_LEADER:
    case COMMAND_CUT_STORE:
    case COMMAND_KILL_ALL:
    case COMMAND_FAIL_STORE:
    case COMMAND_DAMAGE: return TO_DRIVER;
    case COMMAND_COUNT: break;
    }
    PANIC("no command is %d", (int)kind);
}

static struct world_command make(enum world_command_kind kind, const char *host, uint32_t slot,
                                 int value, int64_t us)
{
    struct world_command command = { .kind = kind, .slot = slot, .value = value, .us = us };

    snprintf(command.host, sizeof(command.host), "%s", host);
    return command;
}

#define COMMAND_SLOT(function, KIND)                               \
    struct world_command function(const char *host, uint32_t slot) \
    {                                                              \
        return make(COMMAND_##KIND, host, slot, 0, 0);             \
    }
#define COMMAND_NAME(function, KIND)                                 \
    struct world_command function(const char *host)                  \
    {                                                                \
        return make(COMMAND_##KIND, host, COMMAND_WHOLE_HOST, 0, 0); \
    }
#define COMMAND_BARE(function, KIND)                               \
    struct world_command function(void)                            \
    {                                                              \
        return make(COMMAND_##KIND, "", COMMAND_WHOLE_HOST, 0, 0); \
    }
COMMAND_SLOT(kill_worker, KILL_WORKER)
COMMAND_SLOT(freeze_worker, FREEZE_WORKER)
COMMAND_SLOT(thaw_worker, THAW_WORKER)
COMMAND_SLOT(unusable_worker, UNUSABLE_WORKER)
COMMAND_SLOT(list_host, LIST_HOST)
COMMAND_SLOT(undrain, UNDRAIN)
COMMAND_SLOT(clear_slot, CLEAR)
COMMAND_NAME(kill_agent, KILL_AGENT)
COMMAND_NAME(freeze_agent, FREEZE_AGENT)
COMMAND_NAME(thaw_agent, THAW_AGENT)
COMMAND_NAME(power_off, POWER_OFF)
COMMAND_NAME(power_on, POWER_ON)
COMMAND_NAME(cut_off, CUT)
COMMAND_NAME(heal, HEAL)
COMMAND_NAME(lead_astray, LEAD_ASTRAY)
COMMAND_NAME(break_link, BREAK_LINK)
COMMAND_NAME(repeat_frames, REPEAT_FRAMES)
COMMAND_NAME(unlist_host, UNLIST_HOST)
COMMAND_NAME(spawn_fails, SPAWN_FAILS)
COMMAND_NAME(stop_job, STOP)
COMMAND_BARE(kill_driver, KILL_DRIVER)
COMMAND_BARE(freeze_driver, FREEZE_DRIVER)
COMMAND_BARE(thaw_driver, THAW_DRIVER)
COMMAND_BARE(start_driver, START_DRIVER)
COMMAND_BARE(kill_standby, KILL_STANDBY)
COMMAND_BARE(discovery_fails, DISCOVERY_FAILS)
COMMAND_BARE(discovery_hangs, DISCOVERY_HANGS)
COMMAND_BARE(ask_status, STATUS)
COMMAND_BARE(crowd_port, CROWD)
COMMAND_BARE(rekey, REKEY)
COMMAND_BARE(kill_all_agents, KILL_ALL)
COMMAND_BARE(damage_checkpoint, DAMAGE)
COMMAND_BARE(want_checkpoint, CHECKPOINT)

struct world_command exit_worker(const char *host, uint32_t slot, int code)
{
    return make(COMMAND_EXIT_WORKER, host, slot, code, 0);
}

struct world_command stall_worker(const char *host, uint32_t slot, int64_t us)
{
    return make(COMMAND_STALL_WORKER, host, slot, 0, us);
}

struct world_command hang_worker(const char *host, uint32_t slot, int64_t us)
{
    return make(COMMAND_HANG_WORKER, host, slot, 0, us);
}

struct world_command next_boot(const char *host, enum world_boot boot, int value, int64_t us)
{
    return make(COMMAND_BOOT_NEXT, host, boot, value, us);
}

struct world_command discovery_prints_rubbish(void)
{
    return make(COMMAND_DISCOVERY_FAILS, "", COMMAND_WHOLE_HOST, 1, 0);
}

struct world_command mute(const char *host)
{
    return make(COMMAND_CUT, host, COMMAND_WHOLE_HOST, 1, 0);
}

struct world_command deafen(const char *host)
{
    return make(COMMAND_CUT, host, COMMAND_WHOLE_HOST, 2, 0);
}

struct world_command kill_driver_after(unsigned actions)
{
    return make(COMMAND_KILL_DRIVER, "", COMMAND_WHOLE_HOST, (int)actions, 0);
}

struct world_command slow_disk(int64_t us)
{
    return make(COMMAND_SLOW_DISK, "", COMMAND_WHOLE_HOST, 0, us);
}

struct world_command fail_disk(int64_t us)
{
    return make(COMMAND_FAIL_DISK, "", COMMAND_WHOLE_HOST, 0, us);
}

struct world_command lose_leader(int64_t us)
{
    return make(COMMAND_LOSE_LEADER, "", COMMAND_WHOLE_HOST, 0, us);
}

struct world_command cut_store(int64_t us)
{
    return make(COMMAND_CUT_STORE, "", COMMAND_WHOLE_HOST, 0, us);
}

struct world_command kill_everything(void)
{
    return make(COMMAND_KILL_ALL, "", COMMAND_WHOLE_HOST, 1, 0);
}

struct world_command fail_store(int64_t us)
{
    return make(COMMAND_FAIL_STORE, "", COMMAND_WHOLE_HOST, 0, us);
}

struct world_command damage_every_checkpoint(void)
{
    return make(COMMAND_DAMAGE, "", COMMAND_WHOLE_HOST, 1, 0);
}

struct world_command damage_checkpoint_for_some(void)
{
    return make(COMMAND_DAMAGE, "", COMMAND_WHOLE_HOST, 2, 0);
}

struct world_command drain(const char *host, uint32_t slot, int64_t left_us)
{
    return make(COMMAND_DRAIN, host, slot, 0, left_us);
}

struct world_command notice(const char *host, int64_t left_us)
{
    return make(COMMAND_NOTICE, host, COMMAND_WHOLE_HOST, 0, left_us);
}

struct world_command lie(const char *host, enum world_lie what)
{
    return make(COMMAND_LIE, host, COMMAND_WHOLE_HOST, (int)what, 0);
}

/* ---- commands for a worker ------------------------------------------------------------------- */

/* Carries out a command whose target is the live worker in the command's slot; without such a
 * worker nothing happens. */
static void do_to_worker(struct world *world, const struct world_host *host,
                         const struct world_command *command)
{
    struct world_worker *worker = host_worker(world, host, command->slot);

    if (!worker)
        return;
    worker->blamed = true;
    switch (command->kind) {
    case COMMAND_KILL_WORKER: worker_die(world, worker, ENDED_SIGNAL, 9); break;
    case COMMAND_EXIT_WORKER: worker_die(world, worker, ENDED_EXIT, command->value); break;
    case COMMAND_FREEZE_WORKER: process_freeze(&worker->process); break;
    case COMMAND_THAW_WORKER: process_thaw(world, &worker->process); break;
    case COMMAND_STALL_WORKER: worker->loop.stall_us = command->us; break;
    case COMMAND_HANG_WORKER: worker->loop.reset_us = command->us; break;
    case COMMAND_UNUSABLE_WORKER: app_stick(world, worker); break;
    default: break;
    }
}

/* ---- commands for an agent or its host ------------------------------------------------------- */

static void each_link(struct world *world, const struct world_host *host,
                      void (*what)(struct world *world, struct world_link *link))
{
    for (size_t i = 0; i < world->links.count; i++) {
        struct world_link *link = world->links.items[i];

        if (link->agent->host == host &&
            (link->ends[END_DRIVER].open || link->ends[END_AGENT].open))
            what(world, link);
    }
}

static void heal_link(struct world *world, struct world_link *link)
{
    link_heal(world, link, world_coin(world, 2));
}

/* Turns the machine on or off; off: its processes end without a word to their peers. */
static void power(struct world *world, struct world_host *host, bool on)
{
    if (host->up == on)
        return;
    if (!on && host->agent)
        agent_die(world, host->agent, true);
    host->up = on;
    /* a peer that still uses the old connection learns that the host has forgotten it */
    if (on)
        each_link(world, host, link_break);
}

/* The host can be reached again in both directions: the frames that waited arrive, and workers try
 * their failed connections again. */
static void mend(struct world *world, struct world_host *host)
{
    host->astray = false;
    if (!host->cut[END_DRIVER] && !host->cut[END_AGENT])
        return;
    host->cut[END_DRIVER] = false;
    host->cut[END_AGENT] = false;
    each_link(world, host, heal_link);
    app_retry(world);
}

static void give_notice(struct world *world, struct world_host *host, int64_t left_us)
{
    struct agent_event told = { .kind = AGENT_NOTICE, .left_us = left_us, .text = "metadata" };

    if (host->agent && host->agent->process.alive && !host->agent->process.frozen)
        agent_tell(world, host->agent, &told);
}

static void do_to_host(struct world *world, struct world_host *host,
                       const struct world_command *command)
{
    struct world_agent *agent = host->agent;

    host->trouble_us = world->now_us;
    switch (command->kind) {
    case COMMAND_KILL_AGENT:
        if (agent)
            agent_die(world, agent, false);
        break;
    case COMMAND_FREEZE_AGENT:
        if (agent)
            process_freeze(&agent->process);
        break;
    case COMMAND_THAW_AGENT:
        if (agent)
            process_thaw(world, &agent->process);
        break;
    case COMMAND_POWER_OFF: power(world, host, false); break;
    case COMMAND_POWER_ON: power(world, host, true); break;
    case COMMAND_CUT:
        host->cut[END_DRIVER] = command->value != 2;
        host->cut[END_AGENT] = command->value != 1;
        break;
    case COMMAND_LEAD_ASTRAY: host->astray = true; break;
    case COMMAND_HEAL: mend(world, host); break;
    case COMMAND_BREAK_LINK: each_link(world, host, link_break); break;
    case COMMAND_REPEAT_FRAMES: each_link(world, host, link_repeat); break;
    case COMMAND_SPAWN_FAILS: host->spawn_failures++; break;
    case COMMAND_BOOT_NEXT:
        host->boot = (enum world_boot)command->slot;
        host->boot_value = command->value;
        host->boot_us = command->us;
        break;
    case COMMAND_NOTICE: give_notice(world, host, command->us); break;
    case COMMAND_LIE: host_lie(world, host, (enum world_lie)command->value); break;
    default: break;
    }
}

/* ---- commands for discovery ------------------------------------------------------------------ */

static void list(struct world *world, struct world_host *host, uint32_t slots)
{
    struct world_discovery *discovery = &world->discovery;

    if (slots > host->most_slots)
        host->most_slots = slots;
    for (size_t i = 0; i < discovery->listed.count; i++) {
        if (discovery->listed.items[i].host == host) {
            discovery->listed.items[i].slots = slots;
            return;
        }
    }
    *WORLD_PUSH(&discovery->listed) = (struct world_listed){ host, slots };
}

static void unlist(struct world *world, const struct world_host *host)
{
    struct world_discovery *discovery = &world->discovery;
    size_t kept = 0;

    for (size_t i = 0; i < discovery->listed.count; i++) {
        if (discovery->listed.items[i].host != host)
            discovery->listed.items[kept++] = discovery->listed.items[i];
    }
    discovery->listed.count = kept;
}

static void do_to_discovery(struct world *world, const struct world_command *command)
{
    struct world_discovery *discovery = &world->discovery;

    if (command->kind == COMMAND_DISCOVERY_HANGS)
        discovery->hangs++;
    else if (command->value)
        discovery->rubbish++;
    else
        discovery->failures++;
}

/* ---- commands for the driver ----------------------------------------------------------------- */

/* Gives the driver a request of an operator, such as a drain; a dead or frozen driver gets none. */
static void operate(struct world *world, enum event_kind kind, const struct world_command *command)
{
    struct event event = { .kind = kind,
                           .host = command->host,
                           .slot = command->slot,
                           .left_us = command->us,
                           .text = "an operator",
                           .ask = ++world->ask };

    if (world->driver && world->driver->process.alive && !world->driver->process.frozen)
        driver_step(world, world->driver, &event);
}

/* Asks the core for the view that `status` would show. */
static void show_status(struct world *world)
{
    struct core_view view;

    core_view_init(&view);
    if (!world->driver || !world->driver->core || core_view(world->driver->core, &view)) {
        world_mark(world, "there is no driver");
        return;
    }
    world_mark(world, "the job is %s%s%s", job_state_name(view.job),
               *view.waiting_for ? "; it waits for " : "", view.waiting_for);
    for (size_t i = 0; i < view.host_count; i++)
        world_mark(world, "%s: %zu of %u slots are used%s%s", view.hosts[i].name,
                   view.hosts[i].worker_count, view.hosts[i].slots, *view.hosts[i].why ? ": " : "",
                   view.hosts[i].why);
    core_view_release(&view);
}

/* All agents and their workers die at the same moment, as when a whole pool of machines is taken
 * back; with_driver: the driver too. */
static void kill_all(struct world *world, bool with_driver)
{
    for (size_t i = 0; i < world->hosts.count; i++) {
        struct world_host *host = world->hosts.items[i];

        host->trouble_us = world->now_us;
        for (uint32_t slot = 0; slot < WORLD_SLOTS_MAX; slot++)
            if (host_worker(world, host, slot))
                host_worker(world, host, slot)->blamed = true;
        if (host->agent)
            agent_die(world, host->agent, true);
        each_link(world, host, link_break);
    }
    if (with_driver && world->driver)
        driver_die(world, world->driver, "killed");
}

/* Carries out a command whose target is the newest driver, its disk or its checkpoints. */
static void do_to_driver(struct world *world, const struct world_command *command)
{
    struct world_driver *driver = world->driver;

    world->driver_trouble_us = world->now_us;
    if (!driver) /* it is still claiming the job */
        return;
    switch (command->kind) {
    case COMMAND_KILL_DRIVER:
        if (command->value)
            driver->last_actions = (unsigned)command->value;
        else
            driver_die(world, driver, "killed");
        break;
    case COMMAND_FREEZE_DRIVER:
        process_freeze(&driver->process);
        if (driver->claim)
            process_freeze(&driver->claim->client->process);
        break;
    case COMMAND_THAW_DRIVER:
        for (size_t i = 0; i < world->drivers.count; i++)
            process_thaw(world, &world->drivers.items[i]->process);
        for (size_t i = 0; i < world->claims.count; i++)
            process_thaw(world, &world->claims.items[i]->client->process);
        break;
    case COMMAND_START_DRIVER:
        if (!world->over)
            driver_start(world);
        break;
    case COMMAND_SLOW_DISK:
        world->disk.slow_until_us = world->now_us + command->us;
        world->disk.slow_us = command->us / 4;
        break;
    case COMMAND_FAIL_DISK:
        world->disk.fails_until_us = time_add(world->now_us, command->us);
        break;
    case COMMAND_KILL_STANDBY: claim_kill_standby(world); break;
    case COMMAND_LOSE_LEADER: etcd_world_lose_leader(world, command->us); break;
    case COMMAND_CUT_STORE:
        if (driver->claim) {
            driver->claim->client->cut_us = world->now_us + command->us;
            driver->claim->client->alone = (size_t)rng_below(&world->rng, ETCD_WORLD_SERVERS);
        }
        break;
    case COMMAND_KILL_ALL: kill_all(world, command->value); break;
    case COMMAND_FAIL_STORE:
        world->store.fails_until_us = time_add(world->now_us, command->us);
        break;
    case COMMAND_DAMAGE:
        store_damage(world, command->value == 2 ? DAMAGE_SOME : DAMAGE_ALL,
                     command->value == 1 ? UINT_MAX : 1);
        break;
    default: break;
    }
}

static void do_to_place(struct world *world, struct world_host *host,
                        const struct world_command *command, enum target target)
{
    if (target == TO_WORKER)
        do_to_worker(world, host, command);
    else if (target == TO_HOST)
        do_to_host(world, host, command);
    else if (command->kind == COMMAND_LIST_HOST)
        list(world, host, command->slot);
    else
        unlist(world, host);
}

/* Carries out a command, after a line about the command in the story. */
void world_do(struct world *world, const struct world_command *command)
{
    struct world_host *host = *command->host ? world_find_host(world, command->host) : NULL;
    enum target target = target_of(command->kind);
    static const char *const boots[] = { "boots as usual", "will exit", "will be killed",
                                         "boots slowly", "will build another state" };

    world->stats.faults[command->kind]++;
    /* Adds a line about the command to the story. */
    if (host && command->kind == COMMAND_BOOT_NEXT)
        world_mark(world, "the next worker on %s %s", command->host, boots[command->slot]);
    else if (host && command->kind == COMMAND_CUT && command->value)
        world_mark(world,
                   command->value == 1 ? "nothing of %s arrives any more"
                                       : "nothing gets to %s any more",
                   command->host);
    else if (host && command->kind == COMMAND_LIE)
        world_mark(world, "the agent of %s lies: it %s", command->host,
                   lie_name((enum world_lie)command->value));
    else if (command->kind == COMMAND_KILL_ALL && command->value)
        world_mark(world, "%s, and the driver", command_name(command->kind));
    else if (host && command->kind == COMMAND_LIST_HOST)
        world_mark(world, "%s %s with %u slot%s", command_name(command->kind), command->host,
                   command->slot, command->slot == 1 ? "" : "s");
    else if (host && command->slot != COMMAND_WHOLE_HOST)
        world_mark(world, "%s %s:%u", command_name(command->kind), command->host, command->slot);
    else
        world_mark(world, "%s%s%s", command_name(command->kind), host ? " " : "", command->host);
    if (*command->host && !host)
        return;
    switch (target) {
    case TO_WORKER:
    case TO_HOST:
    case TO_LIST:
        if (host)
            do_to_place(world, host, command, target);
        break;
    case TO_DISCOVERY: do_to_discovery(world, command); break;
    case TO_OPERATOR:
        switch (command->kind) {
        case COMMAND_DRAIN: operate(world, EVENT_DRAIN, command); break;
        case COMMAND_UNDRAIN: operate(world, EVENT_UNDRAIN, command); break;
        case COMMAND_CLEAR: operate(world, EVENT_CLEAR, command); break;
        case COMMAND_REKEY: operate(world, EVENT_REKEY, command); break;
        case COMMAND_STOP: operate(world, EVENT_STOP, command); break;
        case COMMAND_CHECKPOINT: operate(world, EVENT_WANT_CHECKPOINT, command); break;
        case COMMAND_CROWD: operate(world, EVENT_CROWDED, command); break;
        default: show_status(world); break;
        }
        break;
    case TO_DRIVER: do_to_driver(world, command); break;
    }
}

/* Returns why the command has no target in this world; NULL: the command can be carried out. */
const char *command_wrong(const struct world *world, const struct world_command *command)
{
    const struct world_host *host = *command->host ? world_find_host(world, command->host) : NULL;
    enum target target = target_of(command->kind);

    if (!host && (*command->host || target == TO_WORKER || target == TO_HOST || target == TO_LIST))
        return "there is no such host";
    if (target == TO_WORKER && command->slot >= host->most_slots)
        return "discovery never listed such a slot there";
    if (command->kind == COMMAND_LIST_HOST && command->slot > WORLD_SLOTS_MAX)
        return "a host cannot have so many slots";
    return NULL;
}
