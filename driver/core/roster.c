#include "driver/core/roster.h"

#include "base/mem.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define ALIVE                                                                   \
    (SM_BIT(WORKER_LAUNCHING) | SM_BIT(WORKER_BOOTING) | SM_BIT(WORKER_READY) | \
     SM_BIT(WORKER_MEMBER) | SM_BIT(WORKER_REVOKED) | SM_BIT(WORKER_RECOVERED))
#define OUT                                                                     \
    (SM_BIT(WORKER_LEAVING) | SM_BIT(WORKER_FINISHED) | SM_BIT(WORKER_DOOMED) | \
     SM_BIT(WORKER_ENDED))

static const struct sm_state states[WORKER_STATE_COUNT] = {
    [WORKER_LAUNCHING] = {"launching",  SM_BIT(WORKER_BOOTING) | SM_BIT(WORKER_READY) | OUT,
                          SM_INITIAL                                                                    },
    [WORKER_BOOTING] = { "booting",   SM_BIT(WORKER_READY) | OUT,                           SM_INITIAL},
    [WORKER_READY] = { "ready",     SM_BIT(WORKER_MEMBER) | OUT,                          0         },
    [WORKER_MEMBER] = { "member",    SM_BIT(WORKER_REVOKED) | OUT,                         SM_INITIAL},
    [WORKER_REVOKED] = { "revoked",   SM_BIT(WORKER_RECOVERED) | OUT,                       0         },
    [WORKER_RECOVERED] = { "recovered", SM_BIT(WORKER_MEMBER) | SM_BIT(WORKER_REVOKED) | OUT, 0         },
    [WORKER_LEAVING] = { "leaving",   SM_BIT(WORKER_DOOMED) | SM_BIT(WORKER_ENDED),         SM_INITIAL},
    [WORKER_FINISHED] = { "finished",  SM_BIT(WORKER_DOOMED) | SM_BIT(WORKER_ENDED),         SM_INITIAL},
    [WORKER_DOOMED] = { "doomed",    SM_BIT(WORKER_ENDED),                                 SM_INITIAL},
    [WORKER_ENDED] = { "ended",     0,                                                    SM_FINAL  },
};

static void check_worker(const void *owner, unsigned state)
{
    const struct worker *worker = owner;

    ASSERT(state == WORKER_ENDED || worker->host->seats[worker->slot].worker == worker);
    ASSERT(state != WORKER_MEMBER || worker->rank != RANK_NONE);
    ASSERT(state != WORKER_READY || worker->joined);
}

static const struct sm_type worker_type = { "worker", states, WORKER_STATE_COUNT, check_worker };

const char *worker_state_name(enum worker_state state)
{
    return state < WORKER_STATE_COUNT ? states[state].name : "?";
}

const char *worker_name(const struct worker *worker, char text[WORKER_NAME_MAX])
{
    snprintf(text, WORKER_NAME_MAX, "%s:%" PRIu32 "#%" PRIu64, worker->host->name, worker->slot,
             worker->incarnation);
    return text;
}

struct core_host *roster_find_host(const struct core *core, const char *name)
{
    uint32_t index = names_find(&core->hosts_by_name, name, strlen(name));

    return index == NAMES_NONE ? NULL : core->hosts.items[index];
}

static void free_host(struct core_host *host)
{
    if (!host)
        return;
    mem_free((void *)(uintptr_t)host->addresses.items);
    mem_free(host->seats);
    mem_free(host->name);
    mem_free(host);
}

static struct core_host *create_host(const char *name)
{
    struct core_host *host = mem_zalloc(sizeof(*host));

    if (host)
        host->name = mem_strdup(name);
    if (host && !host->name) {
        free_host(host);
        host = NULL;
    }
    return host;
}

struct core_host *roster_host(struct core *core, const char *name)
{
    struct core_host *host = roster_find_host(core, name);

    if (host)
        return host;
    host = create_host(name);
    if (!host || VEC_RESERVE(&core->hosts, 1, SIZE_MAX / sizeof(host)) ||
        names_put(&core->hosts_by_name, host->name, strlen(host->name),
                  (uint32_t)core->hosts.count)) {
        free_host(host);
        core->broken = true;
        return NULL;
    }
    core->hosts.items[core->hosts.count++] = host;
    return host;
}

bool roster_seats(struct core *core, struct core_host *host, uint32_t count)
{
    struct seat *seats;

    ASSERT(count <= LIMIT_SLOTS_PER_HOST);
    if (count <= host->seat_count)
        return true;
    seats = mem_resize(host->seats, count * sizeof(*seats));
    if (!seats) {
        core->broken = true;
        return false;
    }
    memset(seats + host->seat_count, 0, (count - host->seat_count) * sizeof(*seats));
    host->seats = seats;
    host->seat_count = count;
    return true;
}

static bool is_held(const struct core_host *host)
{
    return host->listed || host->taken || host->agent == AGENT_THERE || host->agent == AGENT_AWAY;
}

/* Nobody is there who could still say that they have ended. */
static void bury(struct core *core, const struct core_host *host)
{
    if (host->listed || host->agent == AGENT_THERE || host->agent == AGENT_AWAY)
        return;
    for (uint32_t slot = 0; slot < host->seat_count; slot++) {
        struct worker *worker = host->seats[slot].worker;

        if (worker && worker_state(worker) == WORKER_DOOMED)
            roster_remove(core, worker);
    }
}

void roster_sweep(struct core *core)
{
    size_t kept = 0;

    for (size_t i = 0; i < core->hosts.count; i++)
        bury(core, core->hosts.items[i]);
    for (size_t i = 0; i < core->hosts.count; i++)
        kept += is_held(core->hosts.items[i]);
    if (kept == core->hosts.count)
        return;
    names_release(&core->hosts_by_name);
    names_init(&core->hosts_by_name);
    kept = 0;
    for (size_t i = 0; i < core->hosts.count; i++) {
        struct core_host *host = core->hosts.items[i];

        if (!is_held(host)) {
            host->next_gone = core->gone_hosts;
            core->gone_hosts = host;
            continue;
        }
        core->hosts.items[kept] = host;
        if (names_put(&core->hosts_by_name, host->name, strlen(host->name), (uint32_t)kept))
            core->broken = true;
        kept++;
    }
    core->hosts.count = kept;
}

struct core_host *roster_peer(const struct core *core, uint32_t peer)
{
    return peer < core->peers.count ? core->peers.items[peer] : NULL;
}

bool roster_connect(struct core *core, struct core_host *host, uint32_t peer)
{
    size_t more = peer < core->peers.count ? 0 : peer + 1 - core->peers.count;

    ASSERT(!roster_peer(core, peer));
    if (VEC_RESERVE(&core->peers, more, LIMIT_PEERS)) {
        core->broken = true;
        return false;
    }
    while (core->peers.count <= peer)
        core->peers.items[core->peers.count++] = NULL;
    core->peers.items[peer] = host;
    if (host->agent == AGENT_AWAY)
        host->back_us = core->now_us;
    host->peer = peer;
    host->agent = AGENT_THERE;
    host->heard_us = core->now_us;
    host->sequence_heard = 0;
    host->ending = false;
    host->hung_up_us = 0;
    if (host->listed)
        core->offered_slots += host->slots;
    return true;
}

void roster_disconnect(struct core *core, struct core_host *host)
{
    ASSERT(host->agent == AGENT_THERE && roster_peer(core, host->peer) == host);
    core->peers.items[host->peer] = NULL;
    host->agent = AGENT_AWAY;
    if (host->listed)
        core->offered_slots -= host->slots;
}

struct worker *roster_worker(const struct core *core, uint64_t incarnation)
{
    return incarnation < core->workers.count ? core->workers.items[incarnation] : NULL;
}

struct worker *roster_next(const struct core *core, size_t *index)
{
    while (*index < core->workers.count) {
        struct worker *worker = core->workers.items[(*index)++];

        if (worker)
            return worker;
    }
    return NULL;
}

/* Before the first discovery nothing is known of what is listed. */
static bool has_to_go(const struct core *core, const struct core_host *host, uint32_t slot)
{
    return (core->discovered && slot >= host->slots) || host->draining ||
           host->seats[slot].draining;
}

static void count_worker(struct core *core, const struct worker *worker, bool in)
{
    size_t one = in ? 1 : (size_t)-1;

    core->count[worker->sm.state] += one;
    if (!worker_is_alive(worker))
        return;
    if (worker->has_to_go)
        core->going += one;
    else
        core->staying += one;
}

bool worker_is_alive(const struct worker *worker)
{
    return (ALIVE & SM_BIT(worker->sm.state)) != 0;
}

/* The table has a place for each incarnation: they are given one after the other. */
static bool make_place(struct core *core, uint64_t incarnation)
{
    size_t more =
        incarnation < core->workers.count ? 0 : (size_t)(incarnation + 1 - core->workers.count);

    if (VEC_RESERVE(&core->workers, more, LIMIT_INCARNATIONS))
        return false;
    while (core->workers.count <= incarnation)
        core->workers.items[core->workers.count++] = NULL;
    return true;
}

struct worker *roster_add(struct core *core, uint64_t incarnation, struct core_host *host,
                          uint32_t slot, enum worker_state state)
{
    struct worker *worker = NULL;

    ASSERT(!roster_worker(core, incarnation));
    if (make_place(core, incarnation) && roster_seats(core, host, slot + 1))
        worker = mem_zalloc(sizeof(*worker));
    if (!worker) {
        core->broken = true;
        return NULL;
    }
    ASSERT(!host->seats[slot].worker);
    *worker = (struct worker){ .incarnation = incarnation,
                               .host = host,
                               .slot = slot,
                               .since_us = core->now_us,
                               .launched_us = core->now_us,
                               .limit = { .in_us = TIME_NEVER },
                               .rank = state == WORKER_MEMBER ? 0 : RANK_NONE,
                               .next_rank = RANK_NONE,
                               .has_to_go = has_to_go(core, host, slot) };
    host->seats[slot].worker = worker;
    host->taken++;
    core->workers.items[incarnation] = worker;
    if (core->incarnations < incarnation)
        core->incarnations = incarnation;
    sm_init(&worker->sm, &worker_type, state, worker, NULL);
    count_worker(core, worker, true);
    return worker;
}

void roster_move(struct core *core, struct worker *worker, enum worker_state to)
{
    ASSERT(roster_worker(core, worker->incarnation) == worker);
    count_worker(core, worker, false);
    sm_move(&worker->sm, to, core->now_us, "");
    count_worker(core, worker, true);
    worker->since_us = core->now_us;
    worker->limit.in_us = TIME_NEVER;
    core->look_at_rounds = true;
}

void roster_restore(struct core *core, struct worker *worker, enum worker_state state)
{
    ASSERT(core->sm.state == JOB_NEW);
    count_worker(core, worker, false);
    sm_init(&worker->sm, &worker_type, state, worker, NULL);
    count_worker(core, worker, true);
}

/* In one block: the array, then the texts. */
static bool keep_texts(struct msg_texts *kept, const struct msg_texts *texts)
{
    size_t bytes = texts->count * sizeof(char *);
    const char **items;
    char *at;

    for (size_t i = 0; i < texts->count; i++)
        bytes += strlen(texts->items[i]) + 1;
    items = mem_alloc(bytes);
    if (!items)
        return false;
    at = (char *)(items + texts->count);
    for (size_t i = 0; i < texts->count; i++) {
        size_t length = strlen(texts->items[i]) + 1;

        items[i] = memcpy(at, texts->items[i], length);
        at += length;
    }
    mem_free((void *)(uintptr_t)kept->items);
    *kept = (struct msg_texts){ items, texts->count };
    return true;
}

bool roster_keep_addresses(struct worker *worker, const struct msg_texts *addresses)
{
    return keep_texts(&worker->addresses, addresses) &&
           keep_texts(&worker->host->addresses, addresses);
}

static void free_worker(struct worker *worker)
{
    mem_free((void *)(uintptr_t)worker->addresses.items);
    mem_free(worker->complaint);
    mem_free(worker);
}

void roster_remove(struct core *core, struct worker *worker)
{
    struct core_host *host = worker->host;

    ASSERT(host->seats[worker->slot].worker == worker);
    count_worker(core, worker, false);
    host->seats[worker->slot].worker = NULL;
    host->taken--;
    core->workers.items[worker->incarnation] = NULL;
    worker->next_gone = core->gone_workers;
    core->gone_workers = worker;
    core->look_at_seats = true;
    core->look_at_rounds = true;
}

void roster_bury(struct core *core)
{
    while (core->gone_workers) {
        struct worker *worker = core->gone_workers;

        core->gone_workers = worker->next_gone;
        free_worker(worker);
    }
    while (core->gone_hosts) {
        struct core_host *host = core->gone_hosts;

        core->gone_hosts = host->next_gone;
        free_host(host);
    }
}

bool roster_judge_seats(struct core *core)
{
    bool changed = false;
    struct worker *worker;

    for (size_t i = 0; (worker = roster_next(core, &i));) {
        bool now = has_to_go(core, worker->host, worker->slot);

        if (now == worker->has_to_go)
            continue;
        count_worker(core, worker, false);
        worker->has_to_go = now;
        count_worker(core, worker, true);
        changed = changed || worker_is_alive(worker);
    }
    return changed;
}

void roster_release(struct core *core)
{
    struct worker *worker;

    roster_bury(core);
    for (size_t i = 0; (worker = roster_next(core, &i));)
        free_worker(worker);
    for (size_t i = 0; i < core->hosts.count; i++)
        free_host(core->hosts.items[i]);
    VEC_RELEASE(&core->workers);
    VEC_RELEASE(&core->hosts);
    VEC_RELEASE(&core->listed);
    VEC_RELEASE(&core->peers);
    names_release(&core->hosts_by_name);
    hosts_release(&core->listing);
}
