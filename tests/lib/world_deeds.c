#include "tests/lib/world_deeds.h"

#include "base/panic.h"
#include "tests/lib/world_state.h"

#include <stdio.h>

const char *deed_name(enum world_deed_kind kind)
{
    static const char *const names[] = {
#define DEED_NAME_OF(name, text) text,
        DEEDS(DEED_NAME_OF)
#undef DEED_NAME_OF
    };

    return names[kind];
}

/* Who or what a deed is done to. Every kind is listed, so that the compiler asks for a new one. */
enum target { TO_WORKER, TO_HOST, TO_LIST, TO_DISCOVERY, TO_OPERATOR, TO_DRIVER };

static enum target target_of(enum world_deed_kind kind)
{
    switch (kind) {
    case DEED_KILL_WORKER:
    case DEED_FREEZE_WORKER:
    case DEED_THAW_WORKER:
    case DEED_EXIT_WORKER:
    case DEED_STALL_WORKER:
    case DEED_HANG_WORKER:
    case DEED_USELESS_WORKER: return TO_WORKER;
    case DEED_BOOT_NEXT:
    case DEED_SPAWN_FAILS:
    case DEED_KILL_AGENT:
    case DEED_FREEZE_AGENT:
    case DEED_THAW_AGENT:
    case DEED_POWER_OFF:
    case DEED_POWER_ON:
    case DEED_CUT:
    case DEED_HEAL:
    case DEED_LEAD_ASTRAY:
    case DEED_BREAK_LINK:
    case DEED_REPEAT_FRAMES:
    case DEED_NOTICE: return TO_HOST;
    case DEED_LIST_HOST:
    case DEED_UNLIST_HOST: return TO_LIST;
    case DEED_DISCOVERY_FAILS:
    case DEED_DISCOVERY_HANGS: return TO_DISCOVERY;
    case DEED_DRAIN:
    case DEED_UNDRAIN:
    case DEED_CLEAR:
    case DEED_STOP:
    case DEED_STATUS: return TO_OPERATOR;
    case DEED_KILL_DRIVER:
    case DEED_FREEZE_DRIVER:
    case DEED_THAW_DRIVER:
    case DEED_START_DRIVER:
    case DEED_SLOW_DISK:
    case DEED_FAIL_DISK: return TO_DRIVER;
    case DEED_COUNT: break;
    }
    PANIC("no deed is %d", (int)kind);
}

static struct world_deed make(enum world_deed_kind kind, const char *host, uint32_t slot, int value,
                              int64_t us)
{
    struct world_deed deed = { .kind = kind, .slot = slot, .value = value, .us = us };

    snprintf(deed.host, sizeof(deed.host), "%s", host);
    return deed;
}

#define DEED_SLOT(function, KIND)                               \
    struct world_deed function(const char *host, uint32_t slot) \
    {                                                           \
        return make(DEED_##KIND, host, slot, 0, 0);             \
    }
#define DEED_NAME(function, KIND)                              \
    struct world_deed function(const char *host)               \
    {                                                          \
        return make(DEED_##KIND, host, DEED_WHOLE_HOST, 0, 0); \
    }
#define DEED_BARE(function, KIND)                            \
    struct world_deed function(void)                         \
    {                                                        \
        return make(DEED_##KIND, "", DEED_WHOLE_HOST, 0, 0); \
    }
DEED_SLOT(kill_worker, KILL_WORKER)
DEED_SLOT(freeze_worker, FREEZE_WORKER)
DEED_SLOT(thaw_worker, THAW_WORKER)
DEED_SLOT(useless_worker, USELESS_WORKER)
DEED_SLOT(list_host, LIST_HOST)
DEED_SLOT(undrain, UNDRAIN)
DEED_SLOT(clear_slot, CLEAR)
DEED_NAME(kill_agent, KILL_AGENT)
DEED_NAME(freeze_agent, FREEZE_AGENT)
DEED_NAME(thaw_agent, THAW_AGENT)
DEED_NAME(power_off, POWER_OFF)
DEED_NAME(power_on, POWER_ON)
DEED_NAME(cut_off, CUT)
DEED_NAME(heal, HEAL)
DEED_NAME(lead_astray, LEAD_ASTRAY)
DEED_NAME(break_link, BREAK_LINK)
DEED_NAME(repeat_frames, REPEAT_FRAMES)
DEED_NAME(unlist_host, UNLIST_HOST)
DEED_NAME(spawn_fails, SPAWN_FAILS)
DEED_NAME(stop_job, STOP)
DEED_BARE(kill_driver, KILL_DRIVER)
DEED_BARE(freeze_driver, FREEZE_DRIVER)
DEED_BARE(thaw_driver, THAW_DRIVER)
DEED_BARE(start_driver, START_DRIVER)
DEED_BARE(discovery_fails, DISCOVERY_FAILS)
DEED_BARE(discovery_hangs, DISCOVERY_HANGS)
DEED_BARE(ask_status, STATUS)

struct world_deed exit_worker(const char *host, uint32_t slot, int code)
{
    return make(DEED_EXIT_WORKER, host, slot, code, 0);
}

struct world_deed stall_worker(const char *host, uint32_t slot, int64_t us)
{
    return make(DEED_STALL_WORKER, host, slot, 0, us);
}

struct world_deed hang_worker(const char *host, uint32_t slot, int64_t us)
{
    return make(DEED_HANG_WORKER, host, slot, 0, us);
}

struct world_deed next_boot(const char *host, enum world_boot boot, int value, int64_t us)
{
    return make(DEED_BOOT_NEXT, host, boot, value, us);
}

struct world_deed discovery_prints_rubbish(void)
{
    return make(DEED_DISCOVERY_FAILS, "", DEED_WHOLE_HOST, 1, 0);
}

struct world_deed mute(const char *host)
{
    return make(DEED_CUT, host, DEED_WHOLE_HOST, 1, 0);
}

struct world_deed deafen(const char *host)
{
    return make(DEED_CUT, host, DEED_WHOLE_HOST, 2, 0);
}

struct world_deed kill_driver_after(unsigned actions)
{
    return make(DEED_KILL_DRIVER, "", DEED_WHOLE_HOST, (int)actions, 0);
}

struct world_deed slow_disk(int64_t us)
{
    return make(DEED_SLOW_DISK, "", DEED_WHOLE_HOST, 0, us);
}

struct world_deed fail_disk(int64_t us)
{
    return make(DEED_FAIL_DISK, "", DEED_WHOLE_HOST, 0, us);
}

struct world_deed drain(const char *host, uint32_t slot, int64_t left_us)
{
    return make(DEED_DRAIN, host, slot, 0, left_us);
}

struct world_deed notice(const char *host, int64_t left_us)
{
    return make(DEED_NOTICE, host, DEED_WHOLE_HOST, 0, left_us);
}

/* ---- to a worker ---------------------------------------------------------------------------- */

static void do_to_worker(struct world *world, const struct world_host *host,
                         const struct world_deed *deed)
{
    struct world_worker *worker = host_worker(world, host, deed->slot);

    if (!worker)
        return;
    worker->blamed = true;
    switch (deed->kind) {
    case DEED_KILL_WORKER: worker_die(world, worker, ENDED_SIGNAL, 9); break;
    case DEED_EXIT_WORKER: worker_die(world, worker, ENDED_EXIT, deed->value); break;
    case DEED_FREEZE_WORKER: process_freeze(&worker->process); break;
    case DEED_THAW_WORKER: process_thaw(world, &worker->process); break;
    case DEED_STALL_WORKER: worker->loop.stall_us = deed->us; break;
    case DEED_HANG_WORKER: worker->loop.reset_us = deed->us; break;
    case DEED_USELESS_WORKER: app_stick(world, worker); break;
    default: break;
    }
}

/* ---- to an agent or its host ---------------------------------------------------------------- */

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

static void power(struct world *world, struct world_host *host, bool on)
{
    if (host->up == on)
        return;
    if (!on && host->agent)
        agent_die(world, host->agent, true);
    host->up = on;
    if (on)
        each_link(world, host, link_break); /* whoever still talks to it learns that it forgot */
}

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

static void do_to_host(struct world *world, struct world_host *host, const struct world_deed *deed)
{
    struct world_agent *agent = host->agent;

    host->trouble_us = world->now_us;
    switch (deed->kind) {
    case DEED_KILL_AGENT:
        if (agent)
            agent_die(world, agent, false);
        break;
    case DEED_FREEZE_AGENT:
        if (agent)
            process_freeze(&agent->process);
        break;
    case DEED_THAW_AGENT:
        if (agent)
            process_thaw(world, &agent->process);
        break;
    case DEED_POWER_OFF: power(world, host, false); break;
    case DEED_POWER_ON: power(world, host, true); break;
    case DEED_CUT:
        host->cut[END_DRIVER] = deed->value != 2;
        host->cut[END_AGENT] = deed->value != 1;
        break;
    case DEED_LEAD_ASTRAY: host->astray = true; break;
    case DEED_HEAL: mend(world, host); break;
    case DEED_BREAK_LINK: each_link(world, host, link_break); break;
    case DEED_REPEAT_FRAMES: each_link(world, host, link_repeat); break;
    case DEED_SPAWN_FAILS: host->spawn_failures++; break;
    case DEED_BOOT_NEXT:
        host->boot = (enum world_boot)deed->slot;
        host->boot_value = deed->value;
        host->boot_us = deed->us;
        break;
    case DEED_NOTICE: give_notice(world, host, deed->us); break;
    default: break;
    }
}

/* ---- to discovery --------------------------------------------------------------------------- */

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

static void do_to_discovery(struct world *world, const struct world_deed *deed)
{
    struct world_discovery *discovery = &world->discovery;

    if (deed->kind == DEED_DISCOVERY_HANGS)
        discovery->hangs++;
    else if (deed->value)
        discovery->rubbish++;
    else
        discovery->failures++;
}

/* ---- to the driver -------------------------------------------------------------------------- */

static void operate(struct world *world, enum event_kind kind, const struct world_deed *deed)
{
    struct event event = { .kind = kind,
                           .host = deed->host,
                           .slot = deed->slot,
                           .left_us = deed->us,
                           .text = "an operator",
                           .ask = ++world->ask };

    if (world->driver->process.alive && !world->driver->process.frozen)
        driver_step(world, world->driver, &event);
}

/* What `status` would show. */
static void show_status(struct world *world)
{
    struct core_view view;

    core_view_init(&view);
    if (!world->driver->core || core_view(world->driver->core, &view)) {
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

static void do_as_operator(struct world *world, const struct world_deed *deed)
{
    switch (deed->kind) {
    case DEED_DRAIN: operate(world, EVENT_DRAIN, deed); break;
    case DEED_UNDRAIN: operate(world, EVENT_UNDRAIN, deed); break;
    case DEED_CLEAR: operate(world, EVENT_CLEAR, deed); break;
    case DEED_STOP: operate(world, EVENT_STOP, deed); break;
    default: show_status(world); break;
    }
}

static void do_to_driver(struct world *world, const struct world_deed *deed)
{
    struct world_driver *driver = world->driver;

    world->driver_trouble_us = world->now_us;
    switch (deed->kind) {
    case DEED_KILL_DRIVER:
        if (deed->value)
            driver->last_actions = (unsigned)deed->value;
        else
            driver_die(world, driver, "killed");
        break;
    case DEED_FREEZE_DRIVER: process_freeze(&driver->process); break;
    case DEED_THAW_DRIVER:
        for (size_t i = 0; i < world->drivers.count; i++)
            process_thaw(world, &world->drivers.items[i]->process);
        break;
    case DEED_START_DRIVER:
        if (!world->over)
            driver_start(world);
        break;
    case DEED_SLOW_DISK:
        world->disk.slow_until_us = world->now_us + deed->us;
        world->disk.slow_us = deed->us / 4;
        break;
    case DEED_FAIL_DISK: world->disk.fails_until_us = time_add(world->now_us, deed->us); break;
    default: break;
    }
}

static void say(struct world *world, const struct world_host *host, const struct world_deed *deed)
{
    static const char *const boots[] = { "boots as usual", "will exit", "will be killed",
                                         "boots slowly", "will build another state" };

    if (host && deed->kind == DEED_BOOT_NEXT)
        world_mark(world, "the next worker on %s %s", deed->host, boots[deed->slot]);
    else if (host && deed->kind == DEED_CUT && deed->value)
        world_mark(world,
                   deed->value == 1 ? "nothing of %s arrives any more"
                                    : "nothing gets to %s any more",
                   deed->host);
    else if (host && deed->kind == DEED_LIST_HOST)
        world_mark(world, "%s %s with %u slot%s", deed_name(deed->kind), deed->host, deed->slot,
                   deed->slot == 1 ? "" : "s");
    else if (host && deed->slot != DEED_WHOLE_HOST)
        world_mark(world, "%s %s:%u", deed_name(deed->kind), deed->host, deed->slot);
    else
        world_mark(world, "%s%s%s", deed_name(deed->kind), host ? " " : "", deed->host);
}

static void do_to_place(struct world *world, struct world_host *host, const struct world_deed *deed,
                        enum target target)
{
    if (target == TO_WORKER)
        do_to_worker(world, host, deed);
    else if (target == TO_HOST)
        do_to_host(world, host, deed);
    else if (deed->kind == DEED_LIST_HOST)
        list(world, host, deed->slot);
    else
        unlist(world, host);
}

void world_do(struct world *world, const struct world_deed *deed)
{
    struct world_host *host = *deed->host ? world_find_host(world, deed->host) : NULL;
    enum target target = target_of(deed->kind);

    world->stats.faults[deed->kind]++;
    say(world, host, deed);
    if (*deed->host && !host)
        return;
    switch (target) {
    case TO_WORKER:
    case TO_HOST:
    case TO_LIST:
        if (host)
            do_to_place(world, host, deed, target);
        break;
    case TO_DISCOVERY: do_to_discovery(world, deed); break;
    case TO_OPERATOR: do_as_operator(world, deed); break;
    case TO_DRIVER: do_to_driver(world, deed); break;
    }
}

const char *deed_wrong(const struct world *world, const struct world_deed *deed)
{
    const struct world_host *host = *deed->host ? world_find_host(world, deed->host) : NULL;
    enum target target = target_of(deed->kind);

    if (!host && (*deed->host || target == TO_WORKER || target == TO_HOST || target == TO_LIST))
        return "there is no such host";
    if (target == TO_WORKER && deed->slot >= host->most_slots)
        return "discovery never listed such a slot there";
    if (deed->kind == DEED_LIST_HOST && deed->slot > WORLD_SLOTS_MAX)
        return "a host cannot have so many slots";
    return NULL;
}
