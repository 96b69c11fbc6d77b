/*
 * bench_core: the driver's core with many agents, which are played here by as little as there can
 * be: what is timed is core_step alone. A job of n hosts with 8 workers each begins, loses a
 * worker, and loses 100 a second; the figure is how the cost of a worker grows with n.
 */
#include "base/mem.h"
#include "bench/bench.h"
#include "driver/core/core.h"

#include <inttypes.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define SLOTS      8
#define DEATHS     100
#define DEATH_US   10000 /* from one to the next in a storm */
#define RUNS       5
#define MESSAGE_US 10 /* virtual time between two events */

struct world {
    struct core *core;
    struct action_list actions;
    uint32_t hosts;
    uint32_t alive;
    uint64_t *at;   /* incarnation by host and slot; 0: empty */
    uint64_t round; /* that the last ROUND named */
    uint64_t commit;
    bool revoked;
    uint32_t deaths_left; /* of a storm */
    int64_t next_death_us;
    int64_t now_us;
    double spent_ns; /* in core_step */
    double longest_ns;
};

static size_t live_bytes;
static size_t most_bytes;

static void count(size_t more, size_t less)
{
    live_bytes += more - less;
    if (live_bytes > most_bytes)
        most_bytes = live_bytes;
}

static void *counted_alloc(void *arg, size_t bytes)
{
    void *block = malloc(bytes ? bytes : 1);

    (void)arg;
    count(malloc_usable_size(block), 0);
    return block;
}

static void *counted_resize(void *arg, void *block, size_t bytes)
{
    size_t before = malloc_usable_size(block);
    void *resized = realloc(block, bytes ? bytes : 1);

    (void)arg;
    count(malloc_usable_size(resized), before);
    return resized;
}

static void counted_free(void *arg, void *block)
{
    (void)arg;
    count(0, malloc_usable_size(block));
    free(block);
}

static double now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static void look(struct world *world, const struct action *action)
{
    const struct msg *msg = action->msg;

    if (action->kind == ACTION_EXIT) {
        fprintf(stderr, "bench_core: the job ended: %s\n", action->text);
        abort();
    }
    if (action->kind != ACTION_SEND)
        return;
    switch (msg->type) {
    case MSG_LAUNCH:
        world->at[action->peer * SLOTS + msg->u.launch.slot] = msg->incarnation;
        world->alive++;
        break;
    case MSG_ROUND:
        world->revoked = false;
        world->round = msg->round;
        world->commit = msg->u.round.commit;
        break;
    case MSG_REVOKE: world->revoked = true; break;
    default: break;
    }
}

static void step(struct world *world, struct event *event)
{
    double start;
    double spent;

    world->now_us += MESSAGE_US;
    event->now_us = event->wall_us = world->now_us;
    start = now_ns();
    if (core_step(world->core, event, &world->actions))
        abort();
    spent = now_ns() - start;
    world->spent_ns += spent;
    if (world->longest_ns < spent)
        world->longest_ns = spent;
    for (size_t i = 0; i < world->actions.count; i++)
        look(world, &world->actions.items[i]);
    action_list_clear(&world->actions);
}

static void hear(struct world *world, uint32_t host, struct msg *msg)
{
    const char *name = msg->type == MSG_HELLO_AGENT ? msg->u.hello_agent.host : NULL;
    struct event event = { .kind = EVENT_MSG, .peer = host, .host = name, .msg = msg };

    step(world, &event);
}

static void kill_one(struct world *world, uint32_t seat)
{
    struct msg msg = { .type = MSG_EXITED, .incarnation = world->at[seat] };

    world->at[seat] = 0;
    world->alive--;
    msg.u.exited = (struct msg_exited){ .slot = seat % SLOTS, .ended = ENDED_SIGNAL, .value = 9 };
    hear(world, seat / SLOTS, &msg);
}

/* In a storm: kills the workers that are due before the next message. */
static void storm_on(struct world *world)
{
    uint32_t seats = world->hosts * SLOTS;

    while (world->deaths_left && world->alive > 1 && world->now_us >= world->next_death_us) {
        uint32_t seat = seats ? (world->deaths_left * 7919u) % seats : 0;

        while (!world->at[seat])
            seat = seat + 1 < seats ? seat + 1 : 0;
        world->deaths_left--;
        world->next_death_us += DEATH_US;
        kill_one(world, seat);
    }
}

/* The same message of every worker there is; until the round dies, if it is one that lives. */
static void hear_all(struct world *world, struct msg *msg)
{
    bool was_revoked = world->revoked;

    for (uint32_t i = 0; i < world->hosts * SLOTS; i++) {
        storm_on(world);
        if (world->revoked && !was_revoked)
            return;
        if (!world->at[i])
            continue;
        msg->incarnation = world->at[i];
        hear(world, i / SLOTS, msg);
    }
}

static void say_hello(struct world *world, uint32_t host)
{
    struct msg msg = { .type = MSG_HELLO_AGENT };
    char name[32];

    snprintf(name, sizeof(name), "node-%05" PRIu32, host);
    msg.u.hello_agent =
        (struct msg_hello_agent){ .version = "", .job = "bench", .host = name, .agent = host + 1 };
    hear(world, host, &msg);
}

static void enter(struct world *world)
{
    struct msg entered = { .type = MSG_ENTERED, .round = world->round };

    hear_all(world, &entered);
}

static void first_round(struct world *world)
{
    struct event event = { .kind = EVENT_START };
    struct msg ready = { .type = MSG_READY };
    struct hosts hosts;
    char name[32];

    hosts_init(&hosts);
    for (uint32_t i = 0; i < world->hosts; i++) {
        snprintf(name, sizeof(name), "node-%05" PRIu32, i);
        if (hosts_add(&hosts, name, SLOTS))
            abort();
    }
    step(world, &event);
    event = (struct event){ .kind = EVENT_HOSTS, .hosts = &hosts };
    step(world, &event);
    hosts_release(&hosts);
    for (uint32_t i = 0; i < world->hosts; i++)
        say_hello(world, i);
    hear_all(world, &ready);
    if (world->round != 1)
        abort();
    enter(world);
}

static void recover(struct world *world)
{
    const struct msg_held held = { .commit = world->commit, .checksum = 1 };
    struct msg msg = { .type = MSG_RECOVERING, .round = world->round };
    uint64_t before = world->round;

    msg.u.recovering.held = (struct msg_held_list){ &held, 1 };
    hear_all(world, &msg);
    if (world->round == before)
        abort();
    enter(world);
}

static struct world make_world(uint32_t hosts)
{
    struct world world = { .hosts = hosts };
    struct core_config config;
    struct hvd_err err;

    core_config_init(&config);
    config.job = "bench";
    config.np = hosts * SLOTS;
    config.min_np = 1;
    config.lease_us = INT64_C(3600) * 1000000; /* agents here say nothing unless asked */
    config.discovery.pause_us = INT64_C(3600) * 1000000;
    if (core_config_finish(&config, &err)) {
        fprintf(stderr, "bench_core: %s\n", err.text);
        abort();
    }
    world.at = mem_zalloc_array((size_t)hosts * SLOTS, sizeof(*world.at));
    world.core = core_create(&config, NULL);
    action_list_init(&world.actions);
    if (!world.at || !world.core)
        abort();
    return world;
}

static void free_world(struct world *world)
{
    core_free(world->core);
    action_list_release(&world->actions);
    mem_free(world->at);
}

struct figures {
    double first_ms, death_ms, tell_ms, storm_ms;
    size_t bytes;
};

static double take(struct world *world)
{
    double spent = world->spent_ns / 1e6;

    world->spent_ns = world->longest_ns = 0;
    return spent;
}

/* A second in which 100 die, and however long it takes until those that are left train again. */
static double storm(struct world *world)
{
    world->deaths_left = DEATHS;
    world->next_death_us = world->now_us;
    while (world->deaths_left || world->revoked) {
        storm_on(world);
        if (world->revoked)
            recover(world);
        else
            world->now_us = world->next_death_us;
    }
    return take(world);
}

static struct figures measure(uint32_t hosts)
{
    struct world world;
    struct figures figures;
    size_t before = live_bytes;

    most_bytes = live_bytes;
    world = make_world(hosts);
    first_round(&world);
    figures.first_ms = take(&world);
    figures.bytes = most_bytes - before;
    kill_one(&world, 3);
    figures.tell_ms = take(&world);
    recover(&world);
    figures.death_ms = figures.tell_ms + take(&world);
    figures.storm_ms = storm(&world);
    free_world(&world);
    return figures;
}

static int by_value(const void *left, const void *right)
{
    double difference = *(const double *)left - *(const double *)right;

    return difference < 0 ? -1 : difference > 0;
}

struct spread {
    double low, median, high;
};

static struct spread spread(const struct figures *runs, size_t offset)
{
    double values[RUNS];

    for (size_t i = 0; i < RUNS; i++)
        memcpy(&values[i], (const char *)&runs[i] + offset, sizeof(values[i]));
    qsort(values, RUNS, sizeof(values[0]), by_value);
    return (struct spread){ values[0], values[RUNS / 2], values[RUNS - 1] };
}

/* The cost for one worker, and how many times that of the smallest job it is. */
static void show(const char *name, const struct figures *runs, size_t offset, uint32_t hosts,
                 double *base_ns)
{
    struct spread s = spread(runs, offset);
    double each_ns = s.median * 1e6 / (hosts * SLOTS);

    if (*base_ns == 0)
        *base_ns = each_ns;
    printf("  %-34s %9.2f ms (%.2f to %.2f)  %7.1f ns a worker, %4.1f x that of 100 agents\n", name,
           s.median, s.low, s.high, each_ns, each_ns / *base_ns);
}

int main(void)
{
    const struct mem_ops ops = { counted_alloc, counted_resize, counted_free, NULL, NULL };
    const uint32_t sizes[] = { 100, 1000, 10000 };
    double base[4] = { 0 };

    mem_set_ops(&ops);
    for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
        struct figures runs[RUNS];

        for (size_t k = 0; k < RUNS; k++)
            runs[k] = measure(sizes[i]);
        printf("%" PRIu32 " agents x %d workers, %.1f MiB at most\n", sizes[i], SLOTS,
               (double)runs[0].bytes / 1048576);
        show("first round", runs, offsetof(struct figures, first_ms), sizes[i], &base[0]);
        show("a death, until all are told", runs, offsetof(struct figures, tell_ms), sizes[i],
             &base[1]);
        show("a death, until all train again", runs, offsetof(struct figures, death_ms), sizes[i],
             &base[2]);
        show("100 deaths in a second", runs, offsetof(struct figures, storm_ms), sizes[i],
             &base[3]);
        fflush(stdout);
    }
    return 0;
}
