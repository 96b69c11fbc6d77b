#include "driver/core/view.h"

#include "driver/core/roster.h"
#include "driver/core/round.h"
#include "driver/core/stall.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define VIEW_MEMORY_MAX ((size_t)1 << 30)

const char *agent_state_name(enum agent_state state)
{
    static const char *const names[AGENT_STATE_COUNT] = { "none", "starting", "there", "away" };

    return state < AGENT_STATE_COUNT ? names[state] : "?";
}

const char *change_cause_name(enum msg_cause cause)
{
    static const char *const names[CAUSE_COUNT] = {
        [CAUSE_FIRST] = "first", [CAUSE_SWITCH] = "switch", [CAUSE_RECOVERY] = "recovery"
    };

    return cause < CAUSE_COUNT ? names[cause] : "?";
}

void core_view_init(struct core_view *view)
{
    *view = (struct core_view){ .waiting_for = "" };
    arena_init(&view->memory, VIEW_MEMORY_MAX);
}

void core_view_release(struct core_view *view)
{
    if (view)
        arena_release(&view->memory);
}

/* "" when memory is out: the arena remembers. */
PRINTF_LIKE(2, 3)
static const char *text(struct arena *memory, const char *format, ...)
{
    char line[512];
    char *copy;
    size_t length;
    va_list args;

    va_start(args, format);
    length = text_line(line, sizeof(line), format, args);
    va_end(args);
    copy = arena_alloc(memory, length + 1);
    if (!copy)
        return "";
    return memcpy(copy, line, length + 1);
}

/* Why seats of this host are empty; "" when none need be. */
static const char *why_unused(const struct core *core, const struct core_host *host,
                              struct arena *memory)
{
    char sentence[BLACKLIST_SENTENCE_MAX];

    if (!host->listed)
        return core->discovered ? "discovery no longer names it" : "discovery has not answered yet";
    if (host->draining)
        return "it is being drained";
    if (host->agent == AGENT_STARTING)
        return "its agent has not said hello yet";
    if (host->agent == AGENT_AWAY)
        return "the connection to its agent is gone";
    for (uint32_t slot = 0; slot < host->slots; slot++) {
        struct blacklist_verdict verdict =
            blacklist_verdict(&core->blacklist, host->name, slot, core->now_us);

        if (host->seats[slot].draining) /* said while its worker is still there, too */
            return text(memory, "slot %" PRIu32 " is being drained", slot);
        if (host->seats[slot].worker)
            continue;
        if (verdict.state != BLACKLIST_OK)
            return text(memory, "slot %" PRIu32 ": %s", slot,
                        blacklist_sentence(&verdict, core->now_us, sentence));
    }
    if (host->agent == AGENT_THERE && job_state(core) == JOB_GATHERING && !core->gate_open)
        return "the first round waits for more slots than there are";
    return host->agent == AGENT_NONE ? "it is not needed" : "";
}

static bool view_host(const struct core *core, const struct core_host *host, struct arena *memory,
                      struct view_host *ret_host)
{
    struct view_worker *workers = arena_alloc_array(memory, host->taken, sizeof(*workers));
    size_t count = 0;

    if (!workers)
        return false;
    for (uint32_t slot = 0; slot < host->seat_count; slot++) {
        const struct worker *worker = host->seats[slot].worker;

        if (!worker)
            continue;
        workers[count++] = (struct view_worker){
            .incarnation = worker->incarnation,
            .slot = slot,
            .rank = round_has(&core->current, worker) ? worker->rank : RANK_NONE,
            .state = worker_state(worker),
            .entered = worker->entered,
            .since_us = worker->since_us,
        };
    }
    *ret_host = (struct view_host){
        .name = text(memory, "%s", host->name),
        .slots = host->slots,
        .listed = host->listed,
        .draining = host->draining,
        .agent = host->agent,
        .why = why_unused(core, host, memory),
        .workers = workers,
        .worker_count = count,
    };
    return true;
}

static bool view_hosts(const struct core *core, struct core_view *view)
{
    struct view_host *hosts = arena_alloc_array(&view->memory, core->hosts.count, sizeof(*hosts));
    size_t count = 0;

    if (!hosts)
        return false;
    for (size_t i = 0; i < core->listed.count; i++)
        if (!view_host(core, core->listed.items[i], &view->memory, &hosts[count++]))
            return false;
    for (size_t i = 0; i < core->hosts.count; i++) {
        const struct core_host *host = core->hosts.items[i];

        if (!host->listed && host->taken && !view_host(core, host, &view->memory, &hosts[count++]))
            return false;
    }
    view->hosts = hosts;
    view->host_count = count;
    return true;
}

static bool view_changes(const struct core *core, struct core_view *view)
{
    struct view_change *changes =
        arena_alloc_array(&view->memory, core->costs.count, sizeof(*changes));

    if (!changes)
        return false;
    for (size_t i = 0; i < core->costs.count; i++)
        changes[i] = core->costs.kept[i];
    view->changes = changes;
    view->change_count = core->costs.count;
    return true;
}

static bool view_blacklist(const struct core *core, struct core_view *view)
{
    size_t all = blacklist_count(&core->blacklist);
    struct view_held *held = arena_alloc_array(&view->memory, all, sizeof(*held));
    size_t count = 0;

    if (!held)
        return false;
    for (size_t i = 0; i < all; i++) {
        struct blacklist_record record;
        int64_t left_us;

        blacklist_record_at(&core->blacklist, i, core->now_us, core->wall_us, &record);
        left_us = record.until_wall_us - core->wall_us;
        if (record.until_wall_us == TIME_NEVER)
            left_us = TIME_NEVER;
        if (!record.failures && left_us <= 0)
            continue; /* cleared, or forgiven */
        held[count++] = (struct view_held){
            .host = text(&view->memory, "%s", record.host),
            .slot = record.slot,
            .failures = record.failures,
            .left_us = left_us > 0 ? left_us : 0,
            .reason = text(&view->memory, "%s", record.reason),
        };
    }
    view->held = held;
    view->held_count = count;
    return true;
}

static const char *waiting_for(const struct core *core, struct arena *memory)
{
    if (core->alone)
        return "any agent at all: this machine may be cut off";
    switch (job_state(core)) {
    case JOB_RUNNING: return text(memory, "%s", stall_said(core));
    case JOB_GATHERING:
        if (!core->gate_open && !core->staying)
            return text(memory, "%" PRIu32 " slots; hosts with an agent offer %" PRIu64,
                        core->config.np, core->offered_slots);
        return text(memory, "%" PRIu32 " workers to be ready; %zu are, %zu are starting",
                    core->config.np, core->count[WORKER_READY],
                    core->count[WORKER_LAUNCHING] + core->count[WORKER_BOOTING]);
    case JOB_PREPARING:
        return text(memory, "connections of round %" PRIu64 ": %zu of %zu workers have them",
                    core->next.number, core->next.prepared, core->next.members.count);
    case JOB_PENDING:
        return text(memory, "%zu of %zu workers to come to a check",
                    core->current.members.count - core->current.at, core->current.members.count);
    case JOB_RECOVERING:
        if (core->count[WORKER_REVOKED])
            return text(memory, "%zu survivors to stop", core->count[WORKER_REVOKED]);
        if (core->holder_missing)
            return "a host that holds the last commit";
        return text(memory, "%" PRIu32 " workers; %zu are there", core->config.min_np,
                    core->count[WORKER_RECOVERED] + core->count[WORKER_READY]);
    case JOB_FINISHING: return "the last workers to end";
    case JOB_STOPPING: return "agents to end their workers";
    default: return "";
    }
}

int core_view(const struct core *core, struct core_view *ret_view)
{
    struct core_view view;
    uint64_t *members;

    core_view_init(&view);
    members = arena_alloc_array(&view.memory, core->current.members.count, sizeof(*members));
    if (!members || !view_hosts(core, &view) || !view_blacklist(core, &view) ||
        !view_changes(core, &view)) {
        core_view_release(&view);
        return HVD_E_NOMEM;
    }
    for (size_t i = 0; i < core->current.members.count; i++)
        members[i] = core->current.members.items[i];
    view.job = job_state(core);
    view.term = core->term;
    view.round = core->current.number;
    view.next = core->next.number;
    view.commit = core->current.commit;
    view.floor = core->floor;
    view.members = members;
    view.member_count = core->current.members.count;
    view.resets = core->resets;
    view.enough = core->short_since_us == TIME_NEVER;
    view.short_since_us = core->short_since_us;
    view.waiting_for = waiting_for(core, &view.memory);
    if (view.memory.starved) {
        core_view_release(&view);
        return HVD_E_NOMEM;
    }
    core_view_release(ret_view);
    *ret_view = view;
    return 0;
}
