/* world_story.c: the script of a story, its trace, and its expectations. */
#include "base/panic.h"
#include "tests/lib/fault.h"
#include "tests/world/world_saves.h"
#include "tests/world/world_state.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Carries out a command of the script; in a story a command without a target is a violation. */
static void on_command(struct world *world, struct world_event *event)
{
    const struct world_when *when = &world->whens.items[event->number];
    const char *wrong = command_wrong(world, &when->command);

    if (world->told && wrong)
        world_violate(world, "expected", "that \"%s\" can be done to %s; %s",
                      command_name(when->command.kind),
                      *when->command.host ? when->command.host : "nobody", wrong);
    world_do(world, &when->command);
}

void world_at(struct world *world, int64_t at_us, struct world_command command)
{
    struct world_when *when = WORLD_PUSH(&world->whens);

    *when = (struct world_when){ .command = command, .done = true };
    world_after(world, at_us - world->now_us, on_command, world, NULL, world->whens.count - 1);
}

void world_when(struct world *world, const char *part, int64_t after_us,
                struct world_command command)
{
    struct world_when *when = WORLD_PUSH(&world->whens);

    *when = (struct world_when){ .command = command, .after_us = after_us };
    ASSERT(strlen(part) < sizeof(when->text));
    snprintf(when->text, sizeof(when->text), "%s", part);
}

void world_whens_end(struct world *world)
{
    if (!world->told || world->shape.torture)
        return; /* under torture one more process has died than the script expects */
    for (size_t i = 0; i < world->whens.count; i++) {
        const struct world_when *when = &world->whens.items[i];

        if (!when->done)
            world_violate(world, "expected", "a line with \"%s\", for \"%s\"; there was none",
                          when->text, command_name(when->command.kind));
    }
}

/* Takes a line of a trace: adds the line to the story, and queues the commands that wait for such a
 * line. */
void world_told(void *arg, const char *line)
{
    struct world *world = arg;
    /* no allocation may fail here: a core may be in the middle of a step */
    bool held = fault_hold(FAULT_ALLOC, true);

    if (buf_printf(&world->story, "%s\n", line))
        PANIC("the story is too long");
    for (size_t i = 0; i < world->whens.count; i++) {
        struct world_when *when = &world->whens.items[i];

        if (when->done || !strstr(line, when->text))
            continue;
        when->done = true;
        world_after(world, when->after_us, on_command, world, NULL, i);
    }
    fault_hold(FAULT_ALLOC, held);
}

void world_mark(struct world *world, const char *format, ...)
{
    char line[400];
    va_list args;
    int head;

    if (!world->told)
        return;
    head = snprintf(line, sizeof(line), "[%6" PRId64 ".%03" PRId64 "] ** ", world->now_us / TIME_S,
                    world->now_us / TIME_MS % 1000);
    va_start(args, format);
    vsnprintf(line + head, sizeof(line) - (size_t)head, format, args);
    va_end(args);
    world_told(world, line);
}

void world_np(struct world *world, uint32_t np, uint32_t min_np, uint32_t max_np)
{
    world->shape.config.np = np;
    world->shape.config.min_np = min_np;
    world->shape.config.max_np = max_np ? max_np : LIMIT_WORKERS;
}

void world_train(struct world *world, uint64_t steps)
{
    world->length = steps;
}

void world_checkpoints(struct world *world, int64_t every_us, uint32_t commits)
{
    world->shape.config.checkpoint_dir = STORE_DIR;
    world->shape.config.checkpoint_us = every_us;
    world->shape.config.checkpoint_commits = commits;
}

void world_persists(struct world *world, uint32_t every, bool all, bool waits)
{
    world->shape.persist_every = every;
    world->shape.persist_all = all;
    world->shape.persist_waits = waits;
}

void world_earlier(struct world *world, uint64_t round, uint32_t place, uint64_t step)
{
    store_earlier(world, round, place, step);
}

/* ---- expectations --------------------------------------------------------------------------- */

void world_expect_rounds(struct world *world, const char *sizes)
{
    char text[400] = "";
    size_t used = 0;

    if (world->shape.torture)
        return; /* under torture one more process has died than the script expects */
    for (size_t i = 0; i < world->check.rounds.count && used + 12 < sizeof(text); i++)
        used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%zu", i ? " " : "",
                                 world->check.rounds.items[i]->members.count);
    if (strcmp(text, sizes) != 0)
        world_violate(world, "expected", "rounds of %s; they were of %s", sizes, text);
}

void world_expect_exit(struct world *world, int code)
{
    if (!world->over)
        world_violate(world, "expected", "exit %d; it still runs", code);
    else if (!world->shape.torture && world->exit_code != code)
        world_violate(world, "expected", "exit %d; it was %d: %s", code, world->exit_code,
                      world->exit_text);
}

void world_expect_told(struct world *world, const char *part)
{
    if (!world->shape.torture && !strstr(buf_text(&world->story), part))
        world_violate(world, "expected", "a line with \"%s\"; there is none", part);
}

/* ---- shapes --------------------------------------------------------------------------------- */

static struct world_span exactly(int64_t us)
{
    return (struct world_span){ us, us };
}

void world_etcd(struct world *world, unsigned standbys, int64_t lease_us)
{
    world->shape.etcd.used = true;
    world->shape.etcd.standbys = standbys;
    world->shape.etcd.lease_us = lease_us;
    etcd_world_init(&world->etcd);
}

void world_shape_story(struct world_shape *shape)
{
    *shape = (struct world_shape){
        .seed = 1, .commit_every = 5, .trace = true, .tell = true, .whole_journal = true
    };
    core_config_init(&shape->config);
    shape->config.job = "story";
    shape->config.np = 4;
    shape->config.max_np = LIMIT_WORKERS;
    shape->link = exactly(TIME_MS);
    shape->local = exactly(100);
    shape->disk = exactly(2 * TIME_MS);
    shape->spawn = exactly(5 * TIME_MS);
    shape->boot = exactly(2 * TIME_S);
    shape->build = exactly(TIME_S);
    shape->ssh = exactly(300 * TIME_MS);
    shape->step = exactly(100 * TIME_MS);
    shape->connect = exactly(10 * TIME_MS);
    shape->fetch = exactly(50 * TIME_MS);
    shape->script = exactly(100 * TIME_MS);
    shape->restart = exactly(TIME_S);
}
