/*
 * view.c: copies what status, metrics and tests show. view.c reads the core and changes nothing;
 * driver/control calls it between steps.
 */
#include "driver/core/view.h"

#include "driver/core/over.h"
#include "driver/core/pace.h"
#include "driver/core/reported.h"
#include "driver/core/roster.h"
#include "driver/core/round.h"
#include "driver/core/step.h"
#include "driver/core/waits.h"

#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

#define VIEW_MEMORY_MAX ((size_t)1 << 30)
#define VIEW_LINE_MAX   512
#define VIEW_NOT_JOINED \
    "not joined: the list of hosts names it, and no 'hvd-agent --join' has joined for it"

/* Makes an empty view: no text is NULL, and times that are not known are TIME_NEVER. */
void core_view_init(struct core_view *view)
{
    *view = (struct core_view){
        .waiting_for = "",
        .discovery = {TIME_NEVER, TIME_NEVER, TIME_NEVER, 0, ""},
        .checkpoint.made_us = TIME_NEVER,
    };
    arena_init(&view->memory, VIEW_MEMORY_MAX);
}

void core_view_release(struct core_view *view)
{
    if (view)
        arena_release(&view->memory);
}

/* Returns the formatted text; "" when no memory is left, which the arena remembers. */
PRINTF_LIKE(2, 3)
static const char *view_text(struct arena *memory, const char *format, ...)
{
    const char *text;
    va_list args;

    va_start(args, format);
    text = arena_line(memory, VIEW_LINE_MAX, format, args);
    va_end(args);
    return text ? text : "";
}

/* Returns why this host, of which the roster knows, is not one of the job, for the operator. */
static const char *view_why_unlisted(const struct core *core, const struct core_host *host)
{
    const struct core_joins *joins = &core->listing.joins;
    bool both = core->config.join == JOIN_LISTED && joins->found_times;

    if (!core->listing.discovered && !both)
        return "discovery has not answered yet";
    if (both && host->join.here && !hosts_find(&joins->found, host->name))
        return "not listed: the host has joined, and the list of hosts does not name it";
    if (both && !host->join.here && hosts_find(&joins->found, host->name))
        return VIEW_NOT_JOINED;
    return roster_is_drained(host) ? "discovery no longer names the host; it stays drained "
                                     "until 'hvd-elastic undrain'"
                                   : "discovery no longer names the host";
}

/* Returns why slots of this host have no worker, for the operator; "": there is nothing to
 * explain. */
static const char *view_why_unused(const struct core *core, const struct core_host *host,
                                   struct arena *memory)
{
    char sentence[BLACKLIST_SENTENCE_MAX], left[TIME_TEXT_MAX];

    if (!host->listed)
        return view_why_unlisted(core, host);
    if (host->draining && host->taken)
        return "the host is being drained";
    if (host->draining)
        return host->notice.given ? "the host is drained, as its machine will be taken away"
                                  : "the host is drained until 'hvd-elastic undrain'";
    if (host->agent == AGENT_STARTING)
        return "the agent of the host has not said hello yet";
    if (host->agent == AGENT_AWAY)
        return "the connection to its agent is gone";
    for (uint32_t slot = 0; slot < host->listed_slots; slot++) {
        const struct core_slot *of = &host->slots[slot];
        int64_t left_us = of->drain_us - core->now_us;
        struct blacklist_verdict verdict =
            blacklist_verdict(&core->blacklist, host->name, slot, core->now_us);

        /* a drained slot is named even if its worker has not left yet */
        if (of->draining && !of->worker)
            return view_text(memory, "slot %" PRIu32 " is drained until 'hvd-elastic undrain'",
                             slot);
        if (of->draining && of->drain_us == TIME_NEVER)
            return view_text(memory, "slot %" PRIu32 " is being drained", slot);
        if (of->draining)
            return view_text(memory, "slot %" PRIu32 " is being drained; %s left", slot,
                             time_brief(left_us > 0 ? left_us : 0, left));
        if (of->worker)
            continue;
        if (verdict.state != BLACKLIST_OK)
            return view_text(memory, "slot %" PRIu32 ": %s", slot,
                             blacklist_sentence(&verdict, core->now_us, sentence));
    }
    if (host->agent == AGENT_THERE && core->job == JOB_GATHERING && !core->launch.gate_open)
        return "the first round waits for more slots than there are";
    return host->agent == AGENT_NONE ? "the host is not needed" : "";
}

/* Copies a host with its workers. When no memory is left, the arena remembers it. */
static void view_host(const struct core *core, const struct core_host *host, struct arena *memory,
                      struct view_host *ret_host)
{
    struct view_worker *workers = arena_alloc_array(memory, host->taken, sizeof(*workers));
    const struct worker *worker;
    size_t count = 0;

    if (!workers)
        return;
    for (size_t slot = 0; (worker = roster_next_on(host, &slot));) {
        const struct core_slot *of = &host->slots[worker->slot];
        int64_t host_us = host->draining ? host->drain_us : TIME_NEVER;
        int64_t slot_us = of->draining ? of->drain_us : TIME_NEVER;

        workers[count++] = (struct view_worker){
            .incarnation = worker->incarnation,
            .slot = worker->slot,
            .rank = round_has(&core->current, worker) ? worker->rank : RANK_NONE,
            .state = worker->state,
            .entered = worker->entered,
            .draining = host->draining || of->draining,
            .drain_us = host_us < slot_us ? host_us : slot_us,
            .since_us = worker->since_us,
            .commit = worker->pulse.commit,
            .commit_us = worker->pulse.commit ? worker->pulse.commit_us : TIME_NEVER,
            .heard_us = worker->pulse.heard_us,
            .silent = pace_is_silent(core, worker),
            .behind = pace_is_behind(core, worker),
        };
    }
    *ret_host = (struct view_host){
        .name = view_text(memory, "%s", host->name),
        .slots = host->listed_slots,
        .listed = host->listed,
        .draining = host->draining,
        .drain_us = host->draining ? host->drain_us : TIME_NEVER,
        .agent = host->agent,
        .heard_us = host->agent == AGENT_THERE || (host->agent == AGENT_AWAY && host->agent_id)
                        ? host->heard_us
                        : TIME_NEVER,
        .why = view_why_unused(core, host, memory),
        .workers = workers,
        .worker_count = count,
    };
}

/* Copies the hosts and slots that the blacklist holds failures against. When no memory is left, the
 * arena remembers it. */
static void view_blacklist(const struct core *core, struct core_view *view)
{
    size_t all = blacklist_count(&core->blacklist);
    struct view_held *held = arena_alloc_array(&view->memory, all, sizeof(*held));
    size_t count = 0;

    if (!held)
        return;
    for (size_t i = 0; i < all; i++) {
        struct blacklist_record record;
        int64_t left_us;

        blacklist_record_at(&core->blacklist, i, core_moment(core), &record);
        left_us = record.until_wall_us - core->wall_us;
        if (record.until_wall_us == TIME_NEVER)
            left_us = TIME_NEVER;
        if (!record.failures && left_us <= 0)
            continue; /* this entry has no failures and no cooldown any more */
        held[count++] = (struct view_held){
            .host = view_text(&view->memory, "%s", record.host),
            .slot = record.slot,
            .failures = record.failures,
            .left_us = left_us > 0 ? left_us : 0,
            .reason = view_text(&view->memory, "%s", record.reason),
        };
    }
    view->held = held;
    view->held_count = count;
}

/* Copies the tokens, without their keys. When no memory is left, the arena remembers it. */
static void view_tokens(const struct core *core, struct core_view *view)
{
    size_t count = core->listing.joins.tokens.count;
    struct view_token *tokens = arena_alloc_array(&view->memory, count, sizeof(*tokens));

    for (size_t i = 0; tokens && i < count; i++) {
        const struct core_token *token = &core->listing.joins.tokens.items[i];
        int64_t left_us = token->until_wall_us - core->wall_us;

        tokens[i] = (struct view_token){
            .id = view_text(&view->memory, "%.8s", token->text),
            .host = view_text(&view->memory, "%s", token->host ? token->host : ""),
            .uses = token->uses,
            .used = token->uses ? (uint32_t)token->used.count : 0,
            .left_us = token->until_wall_us == TIME_NEVER ? TIME_NEVER
                       : left_us > 0                      ? left_us
                                                          : 0,
            .revoked = token->revoked,
        };
    }
    view->tokens.items = tokens;
    view->tokens.count = tokens ? count : 0;
}

/* Returns what the driver waits for in the present state of the job, as a sentence for the
 * operator; "": it waits for nothing. */
static const char *view_waiting_for(const struct core *core, struct arena *memory)
{
    if (core->leases.alone)
        return "a message of any agent: the driver's machine may be cut off";
    switch (core->job) {
    case JOB_RUNNING: return view_text(memory, "%s", waits_said(core));
    case JOB_GATHERING:
        if (!core->launch.gate_open && !core->roster.staying)
            return view_text(memory, "%" PRIu32 " slots; hosts with an agent offer %" PRIu64,
                             core->config.np, core->roster.offered_slots);
        return view_text(memory, "%" PRIu32 " workers to be ready; %zu are, %zu are starting",
                         core->config.np, core->roster.count[WORKER_READY],
                         core->roster.count[WORKER_LAUNCHING] + core->roster.count[WORKER_BOOTING]);
    case JOB_PREPARING:
        return view_text(memory,
                         "the connections of round %" PRIu64 ": %zu of %zu workers are connected",
                         core->next.number, core->next.prepared, core->next.members.count);
    case JOB_PENDING:
        return view_text(memory, "%zu of %zu workers to come to a check",
                         core->current.members.count - core->current.at_sent,
                         core->current.members.count);
    case JOB_RECOVERING:
        if (core->roster.count[WORKER_REVOKED])
            return view_text(memory, "%zu survivors to stop", core->roster.count[WORKER_REVOKED]);
        if (core->recovery.holder_missing)
            return "a host that keeps the last commit";
        return view_text(memory, "%" PRIu32 " workers; %zu are ready", core->config.min_np,
                         core->roster.count[WORKER_RECOVERED] + core->roster.count[WORKER_READY]);
    case JOB_FINISHING: return "the last workers to end";
    case JOB_STOPPING: return "agents to end their workers";
    default: return "";
    }
}

/* True: the host is not one of the job, and an operator must see it: it has workers or drains, or
 * it has joined where a list must name it too. */
static bool view_has_unlisted(const struct core *core, const struct core_host *host)
{
    return !host->listed && (host->taken || roster_is_drained(host) ||
                             (core->config.join == JOIN_LISTED && host->join.here));
}

/* Copies the hosts: the listed ones, in order; then those that are not listed and that an operator
 * must see; then those that the list of hosts names, where a host must join too and has not. False:
 * no memory is left. */
static bool view_hosts(const struct core *core, struct core_view *view)
{
    const struct core_roster *roster = &core->roster;
    const struct hosts *found = &core->listing.joins.found;
    struct view_host *hosts =
        arena_alloc_array(&view->memory, roster->hosts.count + found->count, sizeof(*hosts));

    if (!hosts)
        return false;
    for (size_t i = 0; i < core->listing.list.count; i++)
        view_host(core, core->listing.list.items[i], &view->memory, &hosts[view->host_count++]);
    for (size_t i = 0; i < roster->hosts.count; i++)
        if (view_has_unlisted(core, roster->hosts.items[i]))
            view_host(core, roster->hosts.items[i], &view->memory, &hosts[view->host_count++]);
    for (size_t i = 0; i < found->count; i++) {
        const struct core_host *host = roster_find_host(core, found->items[i].name);

        if (host && (host->listed || view_has_unlisted(core, host)))
            continue;
        hosts[view->host_count++] =
            (struct view_host){ .name = view_text(&view->memory, "%s", found->items[i].name),
                                .listed = true,
                                .drain_us = TIME_NEVER,
                                .agent = host ? host->agent : AGENT_NONE,
                                .heard_us = TIME_NEVER,
                                .why = VIEW_NOT_JOINED };
    }
    view->hosts = hosts;
    return true;
}

/* Copies the sums of goodput.c, and how often workers of each host have failed. The last entry,
 * with the name "", is of all hosts that have no entry of their own. If no memory is left, the view
 * has no entries, and core_view fails because view->memory is starved. */
static void view_goodput(const struct core *core, struct core_view *view)
{
    const struct core_goodput *goodput = &core->costs.goodput;
    struct view_failures *failures =
        arena_alloc_array(&view->memory, GOODPUT_HOSTS + 1, sizeof(*failures));
    struct view_goodput *all = &view->goodput;

    memcpy(all->sums, goodput->sums, sizeof(all->sums));
    all->failures = failures;
    for (size_t i = 0; failures && i < goodput->host_count; i++)
        failures[all->failure_count++] =
            (struct view_failures){ view_text(&view->memory, "%s", goodput->hosts[i].name),
                                    goodput->hosts[i].failures };
    if (failures && goodput->others.failures)
        failures[all->failure_count++] = (struct view_failures){ "", goodput->others.failures };
}

/* Copies the visible part of the core. The former contents of *ret_view are freed. Returns 0, or
 * HVD_E_NOMEM, and then *ret_view is as before. */
int core_view(const struct core *core, struct core_view *ret_view)
{
    struct core_view view;
    struct view_change *changes;
    const struct worker *worker;
    uint64_t *members;

    core_view_init(&view);
    members = arena_alloc_array(&view.memory, core->current.members.count, sizeof(*members));
    changes = arena_alloc_array(&view.memory, core->costs.count, sizeof(*changes));
    if (!members || !changes || !view_hosts(core, &view)) {
        core_view_release(&view);
        return HVD_E_NOMEM;
    }
    view_blacklist(core, &view);
    view_tokens(core, &view);
    memcpy(changes, core->costs.kept, core->costs.count * sizeof(*changes));
    view.changes = changes;
    view.change_count = core->costs.count;
    view.notices = core->costs.notices;
    memcpy(view.pauses, core->costs.pauses, sizeof(view.pauses));
    for (size_t i = 0; i < core->roster.hosts.count; i++)
        view.notices.under_way += core->roster.hosts.items[i]->notice.open;
    for (size_t i = 0; i < core->current.members.count; i++)
        members[i] = core->current.members.items[i];
    for (size_t i = 0; (worker = roster_next_member(core, &core->current, &i));)
        view.shortage.kept += core->change.kept_few && worker->has_to_go &&
                              view.shortage.kept < core->change.kept_told;
    view_goodput(core, &view);
    view.discovery = core->listing.health;
    view.discovery.failure = view_text(&view.memory, "%s", core->listing.failure);
    view.checkpoint = core->costs.checkpoints;
    view.checkpoint.commit = core->checkpoint.newest;
    view.job = core->job;
    view.term = core->term;
    view.round = core->current.number;
    view.next = core->next.number;
    view.commit = core->current.commit;
    view.resume_min_commit = core->rounds.resume_min_commit;
    view.newest = core->rounds.pace.newest;
    view.newest_us = view.newest ? core->rounds.pace.newest_us : TIME_NEVER;
    view.commits = pace_commits(core, &view.commits_us);
    reported_view(core, &view);
    view.members = members;
    view.member_count = core->current.members.count;
    view.resets = core->rounds.resets;
    view.shortage.since_us = core->shortage.since_us;
    view.shortage.fails_us = over_fails_us(core);
    view.waiting_for = view_waiting_for(core, &view.memory);
    if (view.memory.starved || view.memory.full) {
        core_view_release(&view);
        return HVD_E_NOMEM;
    }
    core_view_release(ret_view);
    *ret_view = view;
    return 0;
}

/* Finds the next host whose agent may still run and was not told that the job is over. *at is the
 * index of the first host to look at, and then of the host after the one found. False: there is
 * none. */
bool core_missing(const struct core *core, int64_t now_us, size_t *at,
                  struct core_missing *ret_missing)
{
    /* An agent without a driver notices that after a lease, and ends itself --driver-grace
     * later. */
    int64_t waits_us = time_add(core->config.lease_us, core->config.driver_grace_us);

    while (*at < core->roster.hosts.count) {
        const struct core_host *host = core->roster.hosts.items[(*at)++];
        int64_t until_us = time_add(host->heard_us, waits_us);
        bool lost = host->agent != AGENT_THERE && host->hung_up_us;

        /* The agent is connected, and was told; or none was started (no key); or it has ended by
         * itself. */
        if ((!lost && host->agent != AGENT_AWAY) || !host->key.version || until_us <= now_us)
            continue;
        *ret_missing = (struct core_missing){ host->name, host->key.version, host->key.old,
                                              until_us, core->term };
        return true;
    }
    return false;
}
