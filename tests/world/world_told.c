/* world_told.c: checks a driver's actions against the events that the driver was told and the
 * durable records. A bar is a slot or host that the blacklist or a drain keeps out of use. */
#include "base/mem.h"
#include "base/panic.h"
#include "proto/commit.h"
#include "tests/world/world_liar.h"
#include "tests/world/world_state.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define TROUBLE_LASTS_US (2 * TIME_MIN)

/* A slot, or a whole host, that must not be used until this time. */
struct bar {
    char host[COMMAND_HOST_MAX];
    uint32_t slot;
    int64_t until_wall_us;
    bool noticed; /* a drain: the machine itself gave notice */
};

struct peer {
    char host[COMMAND_HOST_MAX]; /* "": the connection has not sent HELLO */
};

struct world_told {
    struct hosts listed;
    struct VEC(struct peer) peers;
    struct VEC(struct bar) bars;
    struct VEC(struct bar) drains;
};

/* Notes a record of the blacklist: until when the slot is barred; counted: at least as long as its
 * failures demand. */
static void note_bar(struct world *world, struct world_told *told,
                     const struct blacklist_record *record, bool counted)
{
    const struct policy *policy = &world->shape.config.blacklist;
    int64_t until_us = record->until_wall_us;
    int64_t least_us = policy->lower_us;
    struct bar *bar = NULL;

    for (uint32_t i = 1; i < record->failures && least_us < policy->upper_us; i++)
        least_us *= 2;
    if (least_us > policy->upper_us)
        least_us = policy->upper_us;
    if (counted && !policy->forever && until_us < world_wall(world) + least_us)
        until_us = world_wall(world) + least_us;
    for (size_t i = 0; i < told->bars.count; i++) {
        if (told->bars.items[i].slot == record->slot &&
            !strcmp(told->bars.items[i].host, record->host))
            bar = &told->bars.items[i];
    }
    if (!bar)
        bar = WORLD_PUSH(&told->bars);
    snprintf(bar->host, sizeof(bar->host), "%.*s", COMMAND_HOST_MAX - 1, record->host);
    bar->slot = record->slot;
    bar->until_wall_us = until_us;
}

/* Notes a drain: the slot must not be used again until the operator takes the drain back. */
static void note_drain(struct world_told *told, const struct journal_record *record)
{
    struct bar *drain = NULL;

    for (size_t i = 0; i < told->drains.count; i++) {
        if (told->drains.items[i].slot == record->slot &&
            !strcmp(told->drains.items[i].host, record->host))
            drain = &told->drains.items[i];
    }
    if (!drain)
        drain = WORLD_PUSH(&told->drains);
    snprintf(drain->host, sizeof(drain->host), "%s", record->host);
    drain->slot = record->slot;
    drain->until_wall_us = record->wall_us ? TIME_NEVER : 0;
    drain->noticed = record->code != 0;
}

struct world_told *told_create(struct world *world)
{
    struct world_told *told = world_alloc(sizeof(*told));

    hosts_init(&told->listed);
    for (size_t i = 0; i < world->disk.blacklist.count; i++)
        note_bar(world, told, &world->disk.blacklist.items[i], false);
    for (size_t i = 0; i < world->disk.records.count; i++) {
        if (world->disk.records.items[i]->kind == JOURNAL_DRAIN)
            note_drain(told, world->disk.records.items[i]);
    }
    return told;
}

void told_free(struct world_told *told)
{
    hosts_release(&told->listed);
    VEC_RELEASE(&told->peers);
    VEC_RELEASE(&told->bars);
    VEC_RELEASE(&told->drains);
    mem_free(told);
}

static struct peer *peer_of(struct world_told *told, uint32_t number)
{
    while (told->peers.count <= number)
        WORLD_PUSH(&told->peers)->host[0] = '\0';
    return &told->peers.items[number];
}

void check_event(struct world *world, struct world_driver *driver, const struct event *event)
{
    struct world_told *told = driver->told;

    (void)world;
    if (event->kind == EVENT_HOSTS && hosts_copy(event->hosts, &told->listed))
        PANIC("memory is out");
    /* the notice of a machine ends when its host leaves the list */
    for (size_t i = 0; event->kind == EVENT_HOSTS && i < told->drains.count; i++) {
        if (told->drains.items[i].noticed && !hosts_find(&told->listed, told->drains.items[i].host))
            told->drains.items[i].until_wall_us = 0;
    }
    if (event->kind == EVENT_CLOSED)
        peer_of(told, event->peer)->host[0] = '\0';
    if (event->kind == EVENT_MSG && event->msg->type == MSG_HELLO_AGENT)
        snprintf(peer_of(told, event->peer)->host, COMMAND_HOST_MAX, "%s", event->host);
}

/* ---- launches ------------------------------------------------------------------------------- */

static bool covers(const struct bar *bar, const char *host, uint32_t slot)
{
    return (bar->slot == slot || bar->slot == BLACKLIST_WHOLE_HOST) && !strcmp(bar->host, host);
}

static bool is_draining(const struct world_told *told, const char *host, uint32_t slot)
{
    for (size_t i = 0; i < told->drains.count; i++) {
        if (covers(&told->drains.items[i], host, slot) && told->drains.items[i].until_wall_us)
            return true;
    }
    return false;
}

/* Checks a LAUNCH: its slot is listed, connected, not barred and not drained. */
static void check_launch(struct world *world, struct world_told *told, const struct action *action)
{
    const char *name = peer_of(told, action->peer)->host;
    uint32_t slot = action->msg->u.launch.slot;
    const struct host *host = *name ? hosts_find(&told->listed, name) : NULL;
    struct world_fact *fact = fact_of(world, action->msg->incarnation);

    if (!*name) {
        world_violate(world, "4", "a launch goes to peer %u, which has not said hello",
                      action->peer);
        return;
    }
    if (!host || slot >= host->slots)
        world_violate(world, "4", "a launch on %s:%u, which is not listed", name, slot);
    for (size_t i = 0; i < told->bars.count && !fact->meant; i++) {
        if (covers(&told->bars.items[i], name, slot) &&
            world_wall(world) < told->bars.items[i].until_wall_us)
            world_violate(world, "4", "a launch on %s:%u, which is barred or cooling", name, slot);
    }
    if (is_draining(told, name, slot))
        world_violate(world, "4", "a launch on %s:%u, which is draining", name, slot);
    fact->meant = true;
}

/* ---- charges -------------------------------------------------------------------------------- */

static bool left_in_order(const struct world_worker *worker)
{
    return !worker->process.alive && worker->ended == ENDED_EXIT && worker->value == 0 &&
           worker->loop.place == LOOP_OVER && worker->loop.code >= 0;
}

/* true: the newest round has members on three hosts or more. In a smaller round the word of a host
 * that lies stands against that of one other, and the driver cannot know which is right. */
static bool has_witnesses(const struct world *world)
{
    const struct journal_record *round = durable_round(world, world->check.told_round);
    const struct world_host *one = NULL, *other = NULL;
    bool more = false;

    for (size_t i = 0; round && i < round->members.count; i++) {
        const struct world_worker *worker = world_worker_of(world, round->members.items[i]);
        const struct world_host *host = worker ? worker->host : NULL;

        one = one ? one : host;
        more |= other && host != one && host != other;
        other = host != one ? host : other;
    }
    return more;
}

static bool had_a_cause(const struct world *world, const struct world_worker *worker)
{
    return worker->blamed ||
           (worker->host->trouble_us >= 0 &&
            world->now_us - worker->host->trouble_us < TROUBLE_LASTS_US) ||
           world->now_us - world->driver_trouble_us < TROUBLE_LASTS_US ||
           world->now_us - world->prepare_trouble_us < TROUBLE_LASTS_US || world->shape.plain ||
           worker->host->liar || (world->shape.liar && !has_witnesses(world)) || world->over;
}

/* Checks a failure that the driver charges to a slot: once, to the incarnation that failed, with a
 * reason. */
static void check_failure(struct world *world, const struct world_told *told,
                          const struct blacklist_change *change)
{
    const struct world_fact *fact = fact_of(world, change->event.incarnation);
    const struct world_worker *worker = world_worker_of(world, change->event.incarnation);
    uint32_t slot = change->record.slot;

    if (!change->event.incarnation || change->none)
        return;
    if (fact->charged)
        world_violate(world, "8", "incarnation %" PRIu64 " is charged twice", fact->incarnation);
    if (world->shape.liar && !world->shape.faults && worker && !worker->host->liar &&
        has_witnesses(world))
        world_violate(world, "14", "%s is charged, and only another host has lied: %s",
                      worker->host->name, change->event.reason);
    if (!worker)
        return;
    if (strcmp(change->record.host, worker->host->name) != 0 ||
        (slot != worker->slot && slot != BLACKLIST_WHOLE_HOST))
        world_violate(world, "8", "incarnation %" PRIu64 " ran on %s:%u, and %s:%u is charged",
                      fact->incarnation, worker->host->name, worker->slot, change->record.host,
                      slot);
    else if (left_in_order(worker) && !worker->blamed)
        world_violate(world, "8",
                      "incarnation %" PRIu64 " left in order with %d, and is charged: %s",
                      fact->incarnation, worker->loop.code, change->event.reason);
    else if (is_draining(told, worker->host->name, worker->slot))
        world_violate(world, "8", "incarnation %" PRIu64 " is being drained, and is charged: %s",
                      fact->incarnation, change->event.reason);
    else if (!had_a_cause(world, worker))
        world_violate(world, "8", "incarnation %" PRIu64 " did nothing, and is charged: %s",
                      fact->incarnation, change->event.reason);
}

/* ---- records -------------------------------------------------------------------------------- */

/* Checks the record of a new round: the number of its members, and the order of their ranks. */
static void check_round_record(struct world *world, const struct world_driver *driver,
                               const struct journal_record *record)
{
    const struct core_config *config = &world->shape.config;
    size_t least = record->cause == CAUSE_FIRST ? config->np : config->min_np;
    const struct journal_record *before;
    bool others;
    size_t at;

    if (record->members.count < least || record->members.count > config->max_np)
        world_violate(world, "3", "round %" PRIu64 " has %zu members, not %zu to %u", record->round,
                      record->members.count, least, config->max_np);
    if (record->round <= world->check.told_round)
        world_violate(world, "6", "round %" PRIu64 " begins after round %" PRIu64, record->round,
                      world->check.told_round);
    check_fall_back(world, driver, record);
    /* Checks the order of a round: members of the round before keep their order, and come before
     * new members. */
    before = durable_round(world, record->previous);
    others = false;
    at = 0;
    for (size_t i = 0; before && i < record->members.count; i++) {
        size_t place = 0;

        while (place < before->members.count &&
               before->members.items[place] != record->members.items[i])
            place++;
        if (place == before->members.count) {
            others = true;
            continue;
        }
        if (place < at || others)
            world_violate(world, "2", "round %" PRIu64 " changes the order of its survivors",
                          record->round);
        at = place;
    }
}

void check_actions(struct world *world, struct world_driver *driver, const struct action_list *list)
{
    check_liar(world, list);
    if (list->count > CHECK_ACTIONS_MAX)
        world_violate(world, "11", "%zu actions in one step", list->count);
    /* This driver does not know that it has been replaced; its records will never be durable. */
    if (world->disk.owner != driver->number)
        return;
    for (size_t i = 0; i < list->count; i++) {
        const struct action *action = &list->items[i];

        if (action->kind == ACTION_RECORD) {
            switch (action->record->kind) {
            case JOURNAL_TERM:
                driver->term = action->record->term;
                if (action->record->term <= world->check.told_term)
                    world_violate(world, "6", "term %" PRIu64 " was told before",
                                  action->record->term);
                break;
            case JOURNAL_LAUNCH:
                if (fact_of(world, action->record->incarnation)->told)
                    world_violate(world, "6", "incarnation %" PRIu64 " was told before",
                                  action->record->incarnation);
                break;
            case JOURNAL_NUMBER:
                if (action->record->round <= world->check.told_number)
                    world_violate(world, "6", "round number %" PRIu64 " was told before",
                                  action->record->round);
                break;
            case JOURNAL_ROUND: check_round_record(world, driver, action->record); break;
            case JOURNAL_DRAIN: note_drain(driver->told, action->record); break;
            default: break;
            }
        } else if (action->kind == ACTION_BLACKLIST) {
            check_failure(world, driver->told, action->change);
            note_bar(world, driver->told, &action->change->record, action->change->event.counted);
        } else if (action->kind == ACTION_SEND && action->msg->type == MSG_LAUNCH) {
            check_launch(world, driver->told, action);
        } else if (action->kind == ACTION_CLOSE) {
            peer_of(driver->told, action->peer)->host[0] = '\0';
        }
    }
}

/* ---- the view ------------------------------------------------------------------------------- */

/* Checks what a driver shows of itself against the durable records. */
void check_view(struct world *world, const struct world_driver *driver,
                const struct core_view *view)
{
    const struct journal_record *round = durable_round(world, view->round);
    int64_t life_us = 0;

    /* The sums of goodput are the life of the job, as far as drivers have written it down. */
    for (enum goodput_use use = GOODPUT_TRAINING; use < GOODPUT_COUNT; use++) {
        const struct goodput_part *sum = &view->goodput.sums[use];

        if (sum->time_us < 0 || sum->worker_us < sum->time_us)
            world_violate(world, "goodput", "%s: %" PRId64 "us, of all workers %" PRId64 "us",
                          goodput_use_name(use), sum->time_us, sum->worker_us);
        life_us += sum->time_us;
    }
    if (life_us > world->now_us)
        world_violate(world, "goodput", "%" PRId64 "us are counted of %" PRId64 "us", life_us,
                      world->now_us);
    if (world->disk.owner != driver->number)
        return;
    if (round && (round->members.count != view->member_count ||
                  (view->member_count && memcmp(round->members.items, view->members,
                                                view->member_count * sizeof(*view->members)) != 0)))
        world_violate(world, "12", "the view of round %" PRIu64 " is not its record", view->round);
    for (size_t i = 0; i < view->host_count; i++) {
        const struct view_host *host = &view->hosts[i];

        for (size_t k = 0; k < host->worker_count; k++) {
            for (size_t l = 0; l < k; l++) {
                if (host->workers[k].state == WORKER_MEMBER &&
                    host->workers[l].state == WORKER_MEMBER &&
                    host->workers[k].slot == host->workers[l].slot)
                    world_violate(world, "12", "two members in %s:%u", host->name,
                                  host->workers[k].slot);
            }
        }
    }
}
