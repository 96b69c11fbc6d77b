#include "driver/core/seats.h"

#include "driver/core/assign.h"
#include "driver/core/clock.h"
#include "driver/core/elect.h"
#include "driver/core/finish.h"
#include "driver/core/loss.h"
#include "driver/core/manifest.h"
#include "driver/core/roster.h"
#include "driver/core/round.h"
#include "driver/core/tell.h"

#include <inttypes.h>
#include <string.h>

static bool may_use_host(const struct core *core, const struct core_host *host)
{
    struct blacklist_verdict verdict =
        blacklist_verdict(&core->blacklist, host->name, BLACKLIST_WHOLE_HOST, core->now_us);

    return host->listed && host->slots && !host->draining && !host->ending &&
           verdict.state == BLACKLIST_OK;
}

/* The seat is one that the job wants, whoever is in it. */
static bool may_use_seat(const struct core *core, const struct core_host *host, uint32_t slot)
{
    const struct seat *seat = &host->seats[slot];
    struct blacklist_verdict verdict =
        blacklist_verdict(&core->blacklist, host->name, slot, core->now_us);

    return !seat->draining && verdict.state == BLACKLIST_OK;
}

static bool is_usable(const struct core *core, const struct core_host *host, uint32_t slot)
{
    const struct seat *seat = &host->seats[slot];

    return !seat->worker && !seat->done && may_use_seat(core, host, slot);
}

/* The agent of this host may hold what the job has reached. */
static bool may_hold_floor(const struct core *core, const struct core_host *host, uint32_t slot)
{
    return host->seats[slot].commit >= core->floor;
}

static bool host_may_hold_floor(const struct core *core, const struct core_host *host)
{
    for (uint32_t slot = 0; slot < host->slots; slot++)
        if (may_hold_floor(core, host, slot))
            return true;
    return false;
}

/* It is in no round, and can leave at once. */
static void dismiss_ready(struct core *core, struct worker *worker, const char *why)
{
    ASSERT(worker_state(worker) == WORKER_READY);
    round_lost(core, worker, WORKER_READY, why);
    tell_drain(core, worker, 0, why);
    roster_move(core, worker, WORKER_LEAVING);
    clock_limit(core, worker, core->config.stall_us, "it was to leave and did not");
}

/* Those that can go at once do. The others are members: round and change see to them. */
static void send_away(struct core *core)
{
    struct worker *worker;

    if (!core->going)
        return;
    for (size_t i = 0; (worker = roster_next(core, &i));) {
        enum worker_state state = worker_state(worker);

        if (!worker->has_to_go)
            continue;
        if (state == WORKER_LAUNCHING || state == WORKER_BOOTING) {
            loss_kill(core, worker, "its seat is given up", true, core->config.kill_grace_us);
        } else if (state == WORKER_READY) {
            dismiss_ready(core, worker, "its seat is given up");
        }
    }
}

/* Once a round runs, nobody waits for it who would be one too many. */
static void send_spares_away(struct core *core)
{
    struct worker *worker;

    if (job_state(core) != JOB_RUNNING || core->staying <= core->config.max_np)
        return;
    for (size_t i = core->workers.count; i-- > 0 && core->staying > core->config.max_np;) {
        worker = core->workers.items[i];
        if (worker && !worker->has_to_go && worker_state(worker) == WORKER_READY)
            dismiss_ready(core, worker, "there are enough workers without it");
    }
}

/* Agents on as many hosts, in order, as it takes to have max_np slots; and where somebody may hold
 * what nobody who is there holds. */
static void start_agents(struct core *core)
{
    uint64_t slots = 0;

    for (size_t i = 0; i < core->listed.count; i++) {
        struct core_host *host = core->listed.items[i];
        bool wanted = slots < core->config.max_np || core->alone ||
                      (core->holder_missing && host_may_hold_floor(core, host));

        if (!wanted && !core->holder_missing)
            break;
        if (!wanted || !may_use_host(core, host))
            continue;
        if (host->agent == AGENT_NONE && core->now_us < host->again_us) {
            clock_want(core, host->again_us); /* there may be no cooldown that lies between */
        } else if (host->agent == AGENT_NONE) {
            host->agent = AGENT_STARTING;
            host->started_us = core->now_us;
            clock_want(core, time_add(core->now_us, core->config.agent_start_us));
            tell_start_agent(core, host);
        }
        if (host->agent != AGENT_THERE) {
            slots += host->slots;
            continue;
        }
        for (uint32_t slot = 0; slot < host->slots; slot++)
            slots += host->seats[slot].worker || may_use_seat(core, host, slot);
    }
}

/* Appends the seats of one host that can be taken, until there are `most`; seats may be NULL. */
static size_t list_host(const struct core *core, const struct core_host *host,
                        struct assignment *seats, size_t count, size_t most)
{
    if (host->agent != AGENT_THERE || !may_use_host(core, host))
        return count;
    for (uint32_t slot = 0; slot < host->slots && count < most; slot++) {
        if (!is_usable(core, host, slot))
            continue;
        if (seats)
            seats[count] = (struct assignment){ .host = host->place, .slot = slot };
        count++;
    }
    return count;
}

/* Nobody who is there holds what the job has reached: seats where it may be are taken, however many
 * workers there are. */
static size_t list_holders(const struct core *core, struct assignment *seats)
{
    size_t count = 0;

    for (size_t i = 0; i < core->listed.count; i++) {
        const struct core_host *host = core->listed.items[i];

        if (host->agent != AGENT_THERE || !may_use_host(core, host))
            continue;
        for (uint32_t slot = 0; slot < host->slots; slot++) {
            if (!may_hold_floor(core, host, slot) || !is_usable(core, host, slot))
                continue;
            if (seats)
                seats[count] = (struct assignment){ .host = host->place, .slot = slot };
            count++;
        }
    }
    return count;
}

static size_t list_usable(const struct core *core, struct assignment *seats, size_t most)
{
    size_t count = 0;

    for (size_t i = 0; i < core->listed.count && count < most; i++)
        count = list_host(core, core->listed.items[i], seats, count, most);
    return count;
}

static void tell_launch(struct core *core, const struct worker *worker, const struct place *place)
{
    struct msg *msg = tell_msg(core, MSG_LAUNCH, worker->incarnation, 0);

    msg->u.launch = (struct msg_launch){
        .slot = worker->slot,
        .cwd = "",
        .rank = place->rank,
        .size = place->size,
        .local_rank = place->local_rank,
        .local_size = place->local_size,
        .cross_rank = place->cross_rank,
        .cross_size = place->cross_size,
    };
    tell_host(core, worker->host, msg);
}

/* The place that a worker in this seat is told, which somebody was told before, or this one. */
static const struct place *place_of(struct core *core, struct seat *seat, const struct place *fresh)
{
    if (core->anyone_joined)
        return fresh;
    if (!seat->told) {
        seat->told = true;
        seat->place = *fresh;
        core->places_told++;
    }
    return &seat->place;
}

void seats_launch_again(struct core *core, const struct worker *worker)
{
    uint32_t size = (uint32_t)(core->staying ? core->staying : 1);
    const struct place place = { .rank = size - 1, .size = size, .local_size = 1, .cross_size = 1 };

    ASSERT(worker_state(worker) == WORKER_LAUNCHING);
    tell_launch(core, worker, place_of(core, &worker->host->seats[worker->slot], &place));
}

static void launch(struct core *core, const struct assignment *seat)
{
    struct core_host *host = core->listed.items[seat->host];
    uint64_t incarnation = core->incarnations + 1;
    struct journal_record *record;
    struct worker *worker;
    char name[WORKER_NAME_MAX];

    ASSERT(host->agent == AGENT_THERE && seat->slot < host->slots);
    if (incarnation >= LIMIT_INCARNATIONS) {
        finish_fail(core, "it has launched LIMIT_INCARNATIONS workers; start it anew");
        return;
    }
    worker = roster_add(core, incarnation, host, seat->slot, WORKER_LAUNCHING);
    if (!worker)
        return;
    record = tell_record(core, JOURNAL_LAUNCH);
    record->incarnation = incarnation;
    record->host = tell_text(core, "%s", host->name);
    record->slot = seat->slot;
    clock_limit(core, worker, core->config.start_timeout_us,
                "it did not call hvd_elastic_run within --start-timeout");
    CORE_TRACE(core, "%s is launched", worker_name(worker, name));
    tell_launch(core, worker, place_of(core, &host->seats[seat->slot], &seat->place));
}

/* The first launch waits until np can be launched together. */
static bool is_gate_open(struct core *core)
{
    if (!core->gate_open && core->offered_slots >= core->config.np &&
        list_usable(core, NULL, core->config.np) + core->staying >= core->config.np)
        core->gate_open = true;
    return core->gate_open;
}

static size_t wanted(const struct core *core)
{
    size_t used = core->staying + (size_t)core->done_seats;

    return used < core->config.max_np ? core->config.max_np - used : 0;
}

/* Ranks that commands have been told are not told to others. */
static uint32_t first_fresh(const struct core *core)
{
    return core->places_told > core->staying ? core->places_told : (uint32_t)core->staying;
}

static void launch_listed(struct core *core, struct assignment *seats, size_t count)
{
    assign_places(seats, count, core->anyone_joined ? (uint32_t)core->staying : first_fresh(core));
    for (size_t i = 0; i < count && !core->broken; i++)
        launch(core, &seats[i]);
}

static struct assignment *make_list(struct core *core, size_t count)
{
    return count ? tell_alloc(core, count, sizeof(struct assignment)) : NULL;
}

static void launch_holders(struct core *core)
{
    size_t count = list_holders(core, NULL);
    struct assignment *seats = make_list(core, count);

    if (seats)
        launch_listed(core, seats, list_holders(core, seats));
}

static void launch_all(struct core *core)
{
    size_t count = list_usable(core, NULL, wanted(core));
    struct assignment *seats = make_list(core, count);

    if (seats)
        launch_listed(core, seats, list_usable(core, seats, count));
}

static void launch_host(struct core *core, const struct core_host *host)
{
    size_t count = list_host(core, host, NULL, 0, wanted(core));
    struct assignment *seats = make_list(core, count);

    if (seats)
        launch_listed(core, seats, list_host(core, host, seats, 0, count));
}

static bool may_launch(const struct core *core)
{
    return job_state(core) >= JOB_GATHERING && job_state(core) <= JOB_RECOVERING;
}

void seats_open(struct core *core, const struct core_host *host)
{
    if (!may_launch(core) || !host->listed)
        return;
    if (!core->gate_open)
        core->look_at_seats |= core->offered_slots >= core->config.np;
    else
        launch_host(core, host);
}

/* What is no longer listed and runs nothing is the user's to take back, agent included. While no
 * round runs it stays: it may keep the last commit, or the list may be wrong. */
static void stop_idle_agents(struct core *core)
{
    if (job_state(core) != JOB_RUNNING || core->current.entered < core->current.members.count)
        return;
    for (size_t i = 0; i < core->hosts.count; i++) {
        struct core_host *host = core->hosts.items[i];

        if (host->listed || host->taken || host->agent != AGENT_THERE || host->ending)
            continue;
        host->ending = true;
        finish_tell_stop(core, host);
    }
}

void seats_look(struct core *core)
{
    if (!may_launch(core))
        return;
    if (roster_judge_seats(core))
        core->look_at_rounds = true;
    send_away(core);
    start_agents(core);
    if (core->holder_missing)
        launch_holders(core);
    if (is_gate_open(core))
        launch_all(core);
    send_spares_away(core);
    stop_idle_agents(core);
    finish_look(core);
}

void seats_on_launched(struct core *core, struct worker *worker)
{
    const struct worker_limit limit = worker->limit;

    if (worker_state(worker) != WORKER_LAUNCHING)
        return;
    roster_move(core, worker, WORKER_BOOTING);
    worker->limit = limit; /* the same time for both */
}

void seats_on_launch_failed(struct core *core, struct worker *worker, const struct msg *msg)
{
    const struct ending ending = {
        .ended = ENDED_EXIT,
        .value = msg->u.launch_failed.code ? msg->u.launch_failed.code : HVD_E_INTERNAL,
        .text = tell_text(core, "it could not be started: %s", msg->u.launch_failed.text),
        .excused = msg->u.launch_failed.code == HVD_E_STATE,
    };

    worker->host->ending = worker->host->ending || ending.excused;
    if (worker_state(worker) <= WORKER_BOOTING || worker_state(worker) == WORKER_DOOMED)
        loss_ended(core, worker, &ending);
}

/* Somebody has joined, so commands that ended with 0 before did not do what is wanted here. */
void seats_first_joined(struct core *core)
{
    core->anyone_joined = true;
    for (size_t i = 0; i < core->hosts.count; i++)
        for (uint32_t slot = 0; slot < core->hosts.items[i]->seat_count; slot++)
            core->hosts.items[i]->seats[slot].done = false;
    core->done_seats = 0;
    core->look_at_seats = true;
}

static void turn_away_all_but(struct core *core, const struct worker *one)
{
    struct worker *worker;

    for (size_t i = 0; (worker = roster_next(core, &i));)
        if (worker != one && worker_state(worker) == WORKER_READY)
            loss_kill(core, worker, "its state differs from that of most", false,
                      core->config.kill_grace_us);
}

void seats_on_ready(struct core *core, struct worker *worker, const struct msg *msg)
{
    enum worker_state state = worker_state(worker);
    const char *mismatch;
    char name[WORKER_NAME_MAX];

    if (state != WORKER_LAUNCHING && state != WORKER_BOOTING)
        return;
    if (!roster_keep_addresses(worker, &msg->u.ready.addresses)) {
        core->broken = true;
        return;
    }
    if (!worker->joined) {
        struct journal_record *record = tell_record(core, JOURNAL_READY);

        record->incarnation = worker->incarnation;
        record->manifest = msg->u.ready.manifest;
        record->addresses = worker->addresses;
    }
    worker->joined = true;
    core->boot_failures_in_a_row = 0;
    worker->host->seats[worker->slot].boots_in_vain = 0;
    elect_note(core, worker, &msg->u.ready.held);
    roster_move(core, worker, WORKER_READY);
    if (!core->anyone_joined)
        seats_first_joined(core);
    if (manifest_yields(core, &msg->u.ready, core->count[WORKER_READY] - 1))
        turn_away_all_but(core, worker);
    mismatch = manifest_judge(core, &msg->u.ready);
    if (mismatch) {
        loss_kill(core, worker, mismatch, false, core->config.kill_grace_us);
        return;
    }
    CORE_TRACE(core, "%s is ready", worker_name(worker, name));
}

void seats_on_left(struct core *core, struct worker *worker)
{
    enum worker_state state = worker_state(worker);
    char name[WORKER_NAME_MAX];

    if (state == WORKER_FINISHED || state == WORKER_DOOMED ||
        (state == WORKER_LEAVING && worker->left))
        return;
    if (state != WORKER_LEAVING) {
        roster_move(core, worker, WORKER_LEAVING);
        round_lost(core, worker, state, "it left");
    }
    worker->left = true;
    worker->tied = false;
    CORE_TRACE(core, "%s has left", worker_name(worker, name));
    clock_limit(core, worker, core->config.stall_us, "it has left and does not end");
}
