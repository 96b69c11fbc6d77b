/*
 * world.c: creates and runs a simulated world, which is one job under a virtual clock: takes the
 * next event of the queue, moves the clock, and stops when the job is over, hangs or breaks an
 * invariant (a rule of world_check.h). A story is the text that a scripted world writes: lines of
 * the driver's trace, and commands.
 */
#include "tests/world/world.h"

#include "base/mem.h"
#include "base/panic.h"
#include "tests/lib/fault.h"
#include "tests/lib/heap.h"
#include "tests/world/world_claim.h"
#include "tests/world/world_liar.h"
#include "tests/world/world_state.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define WALL_START_US INT64_C(1700000000000000)
#define PATIENCE_US   (30 * TIME_MIN)
#define SETTLE_US     (20 * TIME_S) /* added to the time that the job itself may take */
#define SAME_TIME_MAX 1000000
#define SCRATCH_MAX   (64u * 1024 * 1024)
#define STORY_MAX     (4u * 1024 * 1024)

/* ---- time ----------------------------------------------------------------------------------- */

void world_after(struct world *world, int64_t delay_us, world_run_fn *run, void *who,
                 struct world_frame *frame, uint64_t number)
{
    struct world_event event = {
        .at_us = world->now_us + delay_us, .run = run, .who = who, .frame = frame, .number = number
    };

    ASSERT(delay_us >= 0);
    queue_push(&world->queue, event);
}

/* Queues a timer event for the deadline, unless an event that is as early is pending. */
void world_wake(struct world *world, struct world_process *process, int64_t deadline_us,
                world_run_fn *run, void *who)
{
    if (deadline_us == TIME_NEVER || deadline_us >= process->timer_us)
        return;
    if (deadline_us < world->now_us)
        deadline_us = world->now_us;
    process->timer_us = deadline_us;
    world_after(world, deadline_us - world->now_us, run, who, NULL, 0);
}

int64_t world_between(struct world *world, struct world_span span)
{
    if (span.high_us <= span.low_us)
        return span.low_us;
    return span.low_us + (int64_t)rng_below(&world->rng, (uint64_t)(span.high_us - span.low_us));
}

bool world_coin(struct world *world, unsigned one_in)
{
    return rng_below(&world->rng, one_in) == 0;
}

int64_t world_wall(const struct world *world)
{
    return WALL_START_US + world->now_us;
}

/* ---- creating a world ------------------------------------------------------------------------ */

/* Allocates a world of the shape and sets its random numbers, texts and failing allocations up; the
 * caller adds the hosts. */
struct world *world_create(const struct world_shape *shape)
{
    struct world *world;

    if (shape->torture || shape->oom)
        heap_use();
    fault_hold(FAULT_ALLOC, true);
    fault_arm(FAULT_ALLOC, shape->torture);
    world = world_alloc(sizeof(*world));
    world->shape = *shape;
    rng_seed(&world->rng, shape->seed);
    world->codec = shape->tell || shape->seed % 8 == 0;
    world->length = UINT64_MAX;
    world->faults_left = shape->faults;
    world->calm = !shape->faults;
    world->driver_trouble_us = -TIME_HOUR;
    world->prepare_trouble_us = -TIME_HOUR;
    if (shape->etcd.used)
        etcd_world_init(&world->etcd);
    else
        list_init(&world->etcd.requests);
    buf_init(&world->scratch, SCRATCH_MAX);
    buf_init(&world->story, STORY_MAX);
    world->told = shape->tell;
    return world;
}

void world_free(struct world *world)
{
    if (!world)
        return;
    claim_release(world);
    etcd_world_release(&world->etcd);
    queue_release(&world->queue);
    store_release(&world->store);
    for (size_t i = 0; i < world->drivers.count; i++)
        driver_release(world->drivers.items[i]);
    for (size_t i = 0; i < world->links.count; i++)
        link_release(world->links.items[i]);
    for (size_t i = 0; i < world->workers.count; i++)
        worker_release(world->workers.items[i]);
    for (size_t i = 0; i < world->agents.count; i++)
        agent_release(world->agents.items[i]);
    for (size_t i = 0; i < world->rounds.count; i++)
        world_round_release(world->rounds.items[i]);
    for (size_t i = 0; i < world->hosts.count; i++)
        mem_free(world->hosts.items[i]);
    VEC_RELEASE(&world->drivers);
    VEC_RELEASE(&world->links);
    VEC_RELEASE(&world->workers);
    VEC_RELEASE(&world->agents);
    VEC_RELEASE(&world->rounds);
    VEC_RELEASE(&world->hosts);
    VEC_RELEASE(&world->discovery.listed);
    VEC_RELEASE(&world->whens);
    disk_release(&world->disk);
    check_release(&world->check);
    buf_release(&world->scratch);
    buf_release(&world->story);
    fault_arm(FAULT_ALLOC, 0);
    mem_free(world);
}

struct world_host *world_find_host(const struct world *world, const char *name)
{
    for (size_t i = 0; i < world->hosts.count; i++) {
        if (!strcmp(world->hosts.items[i]->name, name))
            return world->hosts.items[i];
    }
    return NULL;
}

void world_host(struct world *world, const char *name, uint32_t slots)
{
    struct world_host *host = world_alloc(sizeof(*host));

    ASSERT(slots <= WORLD_SLOTS_MAX && world->hosts.count < WORLD_HOSTS_MAX);
    ASSERT(!world_find_host(world, name));
    world->slots[world->hosts.count] = slots;
    snprintf(host->name, sizeof(host->name), "%s", name);
    host->up = true;
    host->most_slots = slots;
    host->trouble_us = -1;
    host->hello_lie = LIE_COUNT;
    snprintf(host->address, sizeof(host->address), "10.0.0.%zu:4001", world->hosts.count + 1);
    *WORLD_PUSH(&world->hosts) = host;
    if (slots)
        *WORLD_PUSH(&world->discovery.listed) = (struct world_listed){ host, slots };
}

/* ---- running -------------------------------------------------------------------------------- */

/* Starts the driver and the random faults at the first call; does nothing at a later call. */
static void begin(struct world *world)
{
    struct hvd_err err = { .code = 0 };

    if (world->begun)
        return;
    world->begun = true;
    if (core_config_finish(&world->shape.config, &err))
        PANIC("a world's config: %s", err.text);
    if (world->shape.etcd.used)
        claim_crew(world);
    else
        driver_start(world);
    app_watch(world);
    if (world->faults_left)
        faults_begin(world);
    if (world->shape.liar)
        liar_begin(world);
}

/* Runs the next event, if it is due by until_us. false: no event is due. */
static bool run_next_event(struct world *world, int64_t until_us)
{
    struct world_event event;

    if (!world->queue.heap.count || world->queue.heap.items[0].at_us > until_us ||
        !queue_pop(&world->queue, &event))
        return false;
    world->events++;
    if (event.at_us > world->now_us) {
        world->now_us = event.at_us;
        world->same_time = 0;
    } else if (++world->same_time > SAME_TIME_MAX) {
        world_violate(world, "10", "time stands still");
    }
    event.run(world, &event);
    frame_drop(event.frame);
    return true;
}

static bool all_gone(const struct world *world)
{
    for (size_t i = 0; i < world->agents.count; i++) {
        if (world->agents.items[i]->process.alive)
            return false;
    }
    for (size_t i = 0; i < world->workers.count; i++) {
        if (world->workers.items[i]->process.alive)
            return false;
    }
    return true;
}

/* true: the round has no member but workers of the host that lies. No other worker can report that
 * they have stopped, so their agent can hold such a round for ever (SECURITY.md, taken-over agent).
 */
static bool liar_holds_round(const struct world *world, const struct core_view *view)
{
    for (size_t i = 0; i < view->member_count; i++) {
        const struct world_worker *worker = world_worker_of(world, view->members[i]);

        if (!worker || !worker->host->liar)
            return false;
    }
    return view->member_count > 0;
}

/* Reports a job that hangs, with the driver's own text about what it waits for. */
static void hangs(struct world *world)
{
    struct core_view view;

    core_view_init(&view);
    if (!world->driver || !world->driver->core || core_view(world->driver->core, &view))
        world_violate(world, "10", "the job hangs: it has no driver");
    else if (liar_holds_round(world, &view))
        world->check.held = true;
    else
        world_violate(
            world, "10",
            "the job hangs: job %s, round %" PRIu64 " of %zu, next %" PRIu64 ", waiting for: %s",
            job_state_name(view.job), view.round, view.member_count, view.next, view.waiting_for);
    core_view_release(&view);
}

/* Runs the events of the next us microseconds and moves the clock to their end. */
void world_run_for(struct world *world, int64_t us)
{
    int64_t until_us = world->now_us + us;

    begin(world);
    while (!world->check.violated && run_next_event(world, until_us))
        ;
    if (world->now_us < until_us)
        world->now_us = until_us;
}

/* Runs events until the job is over and its processes have ended, or until a violation; a job
 * without progress for PATIENCE_US after the last fault is a violation. */
void world_run(struct world *world)
{
    const struct core_config *config = &world->shape.config;
    int64_t settle_us;

    begin(world);
    settle_us = time_add(config->driver_grace_us, 4 * config->lease_us + SETTLE_US);
    settle_us = time_add(settle_us, config->kill_grace_us);
    while (!world->check.violated && !world->check.held && run_next_event(world, TIME_NEVER)) {
        if (world->over && (world->now_us - world->over_us > settle_us || all_gone(world)))
            break;
        if (world->over && !world->calm)
            faults_end(world);
        if (!world->over && world->calm && world->now_us - world->calm_us > PATIENCE_US)
            hangs(world);
    }
    if (!world->check.violated && !world->check.held && !world->over)
        hangs(world);
    if (world->check.held)
        return;
    if (!world->check.violated)
        check_end(world);
    if (!world->check.violated)
        world_whens_end(world);
}

/* ---- the outcome ---------------------------------------------------------------------------- */

struct world_shape *world_shape(struct world *world)
{
    return &world->shape;
}

const char *world_wrong(const struct world *world)
{
    return world->check.violated ? world->check.wrong : NULL;
}

const char *world_story(const struct world *world)
{
    return buf_text(&world->story);
}

const struct world_stats *world_stats(const struct world *world)
{
    return &world->stats;
}

const char *world_exit_text(const struct world *world)
{
    return world->exit_text;
}

int world_exit_code(const struct world *world)
{
    return world->over ? world->exit_code : -1;
}

uint64_t world_digest(const struct world *world)
{
    return world->digest ^ world->events;
}

int64_t world_now(const struct world *world)
{
    return world->now_us;
}
