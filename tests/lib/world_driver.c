#include "tests/lib/world_driver.h"

#include "base/mem.h"
#include "base/panic.h"
#include "tests/lib/fault.h"
#include "tests/lib/world_state.h"

#include <stdio.h>
#include <string.h>

#define TRACE_LINES  64
#define VIEW_EVERY   64
#define LOOK_US      (5 * TIME_S)
#define NOT_YET_US   (100 * TIME_MS)
#define SCRIPT_LIMIT (10 * TIME_S)

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

/* A second core that is told the same says the same. */
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

void driver_step(struct world *world, struct world_driver *driver, struct event *event)
{
    int rc;

    ASSERT(driver->process.alive && !driver->process.frozen && !driver->stepping);
    driver->stepping = true;
    event->now_us = world->now_us;
    event->wall_us = world_wall(world);
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

/* ---- what it wants done --------------------------------------------------------------------- */

enum outcome { OUTCOME_GOOD, OUTCOME_FAILS, OUTCOME_RUBBISH, OUTCOME_HANGS };

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

static void over(struct world *world, struct world_driver *driver, const char *text, int code)
{
    if (driver_newest(driver)) {
        world->over = true;
        world->over_us = world->now_us;
        world->exit_code = code;
        snprintf(world->exit_text, sizeof(world->exit_text), "%s", text ? text : "");
        world_mark(world, "the driver exits with %d: %s", code, world->exit_text);
        check_exit(world, driver);
    } else {
        world_mark(world, "an old driver exits with %d: %s", code, text ? text : "");
    }
    driver_die(world, driver, NULL);
}

void driver_perform(struct world *world, struct world_driver *driver,
                    const struct world_queued *action)
{
    switch (action->kind) {
    case ACTION_SEND:
        if (action->link && check_send(world, driver, action->link, action->frame))
            link_send(world, action->link, END_AGENT, frame_keep(action->frame));
        break;
    case ACTION_CLOSE:
        if (action->link)
            link_close(world, action->link, END_DRIVER);
        break;
    case ACTION_START_AGENT: host_start_agent(world, driver, action->host); break;
    case ACTION_DISCOVER: discover(world, driver); break;
    case ACTION_REPLY:
        world_mark(world, "reply %d: %s", action->code, action->text ? action->text : "");
        break;
    case ACTION_EXIT: over(world, driver, action->text, action->code); break;
    default: PANIC("an action of kind %d", action->kind);
    }
}

/* ---- life ----------------------------------------------------------------------------------- */

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
    core_free(driver->core);
    core_free(driver->shadow);
    driver->core = NULL;
    driver->shadow = NULL;
    world->driver_trouble_us = world->now_us;
    if (driver_newest(driver) && !world->over && world->shape.restart.high_us != TIME_NEVER)
        world_after(world, world_between(world, world->shape.restart), on_start, world, NULL, 0);
}

static void trace_line_out(void *arg, const char *line)
{
    world_told(arg, line);
}

/* With what earlier drivers left. */
static struct core *make_core(struct world *world, const struct core_config *config,
                              struct trace *trace)
{
    struct hvd_err err = { .code = 0 };
    struct core *core = core_create(config, trace);
    int rc = core ? 0 : HVD_E_NOMEM;

    for (size_t i = 0; !rc && i < world->disk.records.count; i++)
        rc = core_replay(core, world->disk.records.items[i], &err);
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

/* A driver looks now and then whether the journal is still its own: one that slept while another
 * took over, and has nothing to write, would not find out. */
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

void driver_start(struct world *world)
{
    struct event start = { .kind = EVENT_START };
    struct core_config config = world->shape.config;
    struct world_driver *driver = driver_create(world);

    config.seed = world->shape.seed + driver->number;
    if (world->shape.bug == BUG_LAUNCH_ON_BARRED) {
        config.blacklist.lower_us = 0;
        config.blacklist.upper_us = 0;
    }
    world->driver = driver;
    world->disk.owner = driver->number;
    world->stats.drivers++;
    world->driver_trouble_us = world->now_us;
    world_mark(world, "driver %u starts", driver->number);
    fault_hold(FAULT_ALLOC, false);
    driver->core = make_core(world, &config, driver->tracing);
    fault_hold(FAULT_ALLOC, true);
    if (world->shape.shadow && driver->core)
        driver->shadow = make_core(world, &config, NULL);
    world_after(world, LOOK_US, on_look, driver, NULL, 0);
    if (driver->core)
        driver_step(world, driver, &start);
    else
        driver_die(world, driver, "memory is out");
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
    core_free(driver->core);
    core_free(driver->shadow);
    action_list_release(&driver->actions);
    trace_release(&driver->trace);
    told_free(driver->told);
    mem_free(driver);
}
