/*
 * world_app.c: the training program of a simulated worker: carries out the actions of its session
 * with collectives, commits, fetches and restores that take virtual time. Words: a loop is the
 * training loop of one worker, its place is what the loop does now (enum world_place), train is the
 * program's function that runs the steps of a round.
 */
#include "tests/world/world_app.h"

#include "base/mem.h"
#include "base/panic.h"
#include "proto/commit.h"
#include "tests/world/world_state.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define RETURN_US      50 /* from the end of a call to the next action of its caller */
#define RESTORE_US     (2 * TIME_MS)
#define FETCH_AGAIN_US (200 * TIME_MS)
/* connecting to a process that has ended fails after this time */
#define NOBODY_US (2 * TIME_S)

/* ---- the loop's place ----------------------------------------------------------------------- */

static void set_place(const struct world *world, struct world_worker *worker,
                      enum world_place place)
{
    worker->loop.place = place;
    worker->loop.token++;
    worker->loop.since_us = world->now_us;
}

/* Queues an event for the loop's present place; the event is dropped if the loop has left the place
 * by then. */
static void later(struct world *world, struct world_worker *worker, int64_t after_us,
                  world_run_fn *run)
{
    world_after(world, after_us, run, worker, NULL, worker->loop.token);
}

/* Returns the worker of an event that later() has queued; NULL: the event must be dropped, because
 * the worker is dead, frozen or at another place. */
static struct world_worker *here(struct world_event *event)
{
    struct world_worker *worker = event->who;

    if (!process_takes(&worker->process, event) || worker->loop.token != event->number)
        return NULL;
    return worker;
}

static bool is_cancelled(const struct world_worker *worker)
{
    return worker->loop.round->number <= worker->loop.cancelled;
}

static struct world_kept *kept_of(struct world_worker *worker)
{
    return &worker->agent->kept[worker->slot];
}

/* ---- start, and waiting for a round ---------------------------------------------------------- */

static size_t held_list(const struct world_kept *kept, struct msg_held items[2])
{
    for (size_t i = 0; i < kept->count; i++)
        items[i] = (struct msg_held){ kept->items[i].commit, model_checksum(kept->items[i].model) };
    return kept->count;
}

/* The program has built its state: tells the session the entries of the state, the commits that the
 * agent holds, and the worker's address. */
static void on_built(struct world *world, struct world_event *event)
{
    static const struct msg_entry entries[] = {
        {.name = "weights", .bytes = 4096}
    };
    static const struct msg_entry others[] = {
        {.name = "weights", .bytes = 8192}
    };
    struct world_worker *worker = here(event);
    struct msg_held held[2];
    struct msg_ready ready = {
        .manifest = 42, .entries = {entries, 1},
             .held = { held,   0}
    };
    struct session_event told = { .kind = SESSION_RUN, .ready = &ready };
    char contact[40], address[40];
    const char *const addresses[] = { contact, address };

    if (!worker)
        return;
    snprintf(address, sizeof(address), "%s:%u", worker->host->name, 4000 + worker->slot);
    snprintf(contact, sizeof(contact), "state=%s", worker->host->address);
    ready.addresses = (struct msg_texts){ addresses, 2 };
    worker->loop.held = *kept_of(worker);
    worker->loop.settled = true;
    if (world->shape.config.checkpoint_dir)
        ready.entries = (struct msg_entry_list){ store_entries, STORE_ENTRIES };
    if (worker->boot == BOOT_OTHER_STATE) {
        ready.manifest = 43;
        ready.entries = (struct msg_entry_list){ others, 1 };
    }
    ready.held.count = held_list(&worker->loop.held, held);
    worker_tell(world, worker, &told);
}

void app_build(struct world *world, struct world_worker *worker)
{
    later(world, worker, world_between(world, world->shape.build), on_built);
}

/* ---- how a call of the library ends --------------------------------------------------------- */

static void on_returned(struct world *world, struct world_event *event)
{
    struct world_worker *worker = here(event);
    struct session_event told = { .kind = SESSION_RETURNED, .text = "" };

    if (!worker)
        return;
    told.code = worker->loop.code;
    worker_tell(world, worker, &told);
}

static void train_returns(struct world *world, struct world_worker *worker, int code)
{
    worker->loop.code = code;
    set_place(world, worker, LOOP_RETURNED);
    later(world, worker, RETURN_US, on_returned);
}

static void sync_fails(struct world *world, struct world_worker *worker, int code)
{
    struct session_event told = { .kind = SESSION_SYNCED, .code = code };

    told.round = worker->loop.round->number;
    set_place(world, worker, LOOP_OUTSIDE);
    worker_tell(world, worker, &told);
}

/* A collective fails: its round was cancelled, or the worker has noticed that a peer is gone. */
static void on_failed(struct world *world, struct world_event *event)
{
    struct world_worker *worker = here(event);

    if (!worker)
        return;
    if (worker->loop.place == LOOP_CONNECTING || worker->loop.place == LOOP_SYNCING)
        sync_fails(world, worker, HVD_E_REVOKED);
    else if (worker->loop.place == LOOP_COLLECTIVE || worker->loop.place == LOOP_PERSISTING)
        train_returns(world, worker, HVD_E_REVOKED);
}

/* ---- the training --------------------------------------------------------------------------- */

/* The step's own computation is done: the worker waits in the collective, or train fails because
 * the round is cancelled. */
static void on_computed(struct world *world, struct world_event *event)
{
    struct world_worker *worker = here(event);

    if (!worker)
        return;
    if (is_cancelled(worker)) {
        train_returns(world, worker, HVD_E_REVOKED);
        return;
    }
    set_place(world, worker, LOOP_COLLECTIVE);
    round_try(world, worker->loop.round);
}

static void compute(struct world *world, struct world_worker *worker)
{
    set_place(world, worker, LOOP_COMPUTING);
    later(world, worker, world_between(world, world->shape.step) + worker->loop.stall_us,
          on_computed);
    worker->loop.stall_us = 0;
}

static void keep(struct world *world, struct world_worker *worker, uint64_t commit)
{
    check_commit(world, worker, commit);
    kept_put(kept_of(worker), commit, worker->loop.model);
    world_hold_look(world, worker->agent);
    world->stats.commits++;
}

/* Runs the check after a step: asks the session, if the session watches for checks; otherwise
 * begins the next step. */
static void check(struct world *world, struct world_worker *worker)
{
    struct session_event told = { .kind = SESSION_CHECK, .check = worker->loop.checks++ };

    if (!worker->loop.watched && !world->shape.always_check) {
        compute(world, worker);
        return;
    }
    set_place(world, worker, LOOP_CHECKING);
    worker_tell(world, worker, &told);
}

/* The step is made, and its commit: finishes, or goes on with the check after the step. */
static void go_on(struct world *world, struct world_worker *worker)
{
    if (worker->loop.model.step >= world->length) {
        check_finish(world, worker);
        train_returns(world, worker, 0);
    } else {
        check(world, worker);
    }
}

/* The worker asks for a checkpoint of its newest commit, if it is to do so now. true: it waits. */
static bool persist(struct world *world, struct world_worker *worker)
{
    struct world_loop *loop = &worker->loop;
    struct session_event told = { .kind = SESSION_PERSIST };

    if (!world->shape.persist_every || loop->commit_place % world->shape.persist_every != 0 ||
        (!world->shape.persist_all && loop->round->members[0] != worker))
        return false;
    told.commit = loop->persist = COMMIT_FIRST_OF(loop->round->number) | loop->commit_place;
    if (world->shape.persist_waits) {
        set_place(world, worker, LOOP_PERSISTING);
        if (is_cancelled(worker))
            later(world, worker, RETURN_US, on_failed);
    }
    worker_tell(world, worker, &told);
    return world->shape.persist_waits;
}

/* The wait for a checkpoint has ended. */
static void on_persisted(struct world *world, struct world_event *event)
{
    struct world_worker *worker = here(event);

    if (worker)
        go_on(world, worker);
}

/* Invariant 15: a request that is answered with code 0 has its commit in a complete checkpoint. */
static void persisted(struct world *world, struct world_worker *worker,
                      const struct session_action *action)
{
    struct world_loop *loop = &worker->loop;

    if (!action->code && !store_has(world, action->commit))
        world_violate(world, "15",
                      "%s:%u is told that commit %" PRIu64 ".%" PRIu32
                      " is in a checkpoint, and it is not",
                      worker->host->name, worker->slot, COMMIT_ROUND_OF(action->commit),
                      COMMIT_PLACE_OF(action->commit));
    if (!loop->persist || loop->persist > action->commit)
        return;
    world_mark(world, "%s:%u is told of its checkpoint: %s", worker->host->name, worker->slot,
               action->code ? action->text : "complete");
    world->stats.persists += !action->code;
    loop->persist = 0;
    if (loop->place == LOOP_PERSISTING)
        later(world, worker, RETURN_US, on_persisted);
}

/* The collective of a step is done for this worker: makes the step, and the check after it. */
void app_stepped(struct world *world, struct world_worker *worker)
{
    struct world_loop *loop = &worker->loop;
    struct msg_entered entered = { .commit = loop->round->commit,
                                   .rebuild_us = loop->connected_us - loop->entered_us,
                                   .state_us = loop->synced_us - loop->connected_us,
                                   .first_step_us = world->now_us - loop->synced_us };
    struct session_event told = { .kind = SESSION_STEPPED, .entered = &entered };

    loop->model.step++;
    loop->model.hash =
        (loop->model.hash ^ loop->round->number) * UINT64_C(0x9e3779b97f4a7c15) + loop->model.step;
    loop->steps++;
    world->stats.steps++;
    set_place(world, worker, LOOP_COMPUTING); /* events of the collective are dropped from now on */
    if (loop->steps == 1) {
        told.round = loop->round->number;
        worker_tell(world, worker, &told);
        if (!worker->process.alive)
            return;
    }
    if (loop->model.step % world->shape.commit_every == 0)
        keep(world, worker, COMMIT_FIRST_OF(loop->round->number) | ++loop->commit_place);
    if (loop->model.step % world->shape.commit_every != 0 || !persist(world, worker))
        go_on(world, worker);
}

/* ---- entering a round ----------------------------------------------------------------------- */

/* The worker has connected and has the round's commit: tells the session, and begins the first
 * step. */
static void train_begins(struct world *world, struct world_worker *worker)
{
    struct session_event told = { .kind = SESSION_SYNCED };

    told.round = worker->loop.round->number;
    worker->loop.checks = 0;
    worker->loop.steps = 0;
    worker->loop.commit_place = 0;
    worker->loop.synced_us = world->now_us;
    if (worker->loop.model.step < world->length) {
        compute(world, worker);
    } else {
        check_finish(world, worker);
        train_returns(world, worker, 0); /* the round's commit holds the last step */
    }
    worker_tell(world, worker, &told);
}

/* true: the commit is kept; *ret_model: the state in the commit. */
static bool find_kept(const struct world_kept *kept, uint64_t commit, struct world_model *ret_model)
{
    for (size_t i = 0; i < kept->count; i++) {
        if (kept->items[i].commit == commit) {
            *ret_model = kept->items[i].model;
            return true;
        }
    }
    return false;
}

/* Fetches the round's commit from this agent. 0; HVD_E_BUSY: the agent cannot answer now;
 * HVD_E_LOST: the agent is dead or has no such commit. awaited: the worker that is to make the
 * commit may still make it. */
static int fetch_from(const struct world_worker *worker, const struct world_agent *agent,
                      uint32_t slot, bool awaited, struct world_model *ret_model)
{
    const struct world_host *host = agent->host;
    bool cut = host != worker->host && (!host_reachable(host) || !host_reachable(worker->host));

    if (!agent->process.alive || !host->up)
        return HVD_E_LOST;
    if (!cut && find_kept(&agent->kept[slot], worker->loop.round->commit, ret_model))
        return 0;
    return cut || awaited ? HVD_E_BUSY : HVD_E_LOST;
}

/* Fetches the round's commit from a holder, another source, or its checkpoint. 0, or the codes of
 * fetch_from and store_read: HVD_E_BUSY if any of the agents may have the commit later. */
static int fetch(const struct world *world, const struct world_worker *worker,
                 struct world_model *ret_model)
{
    const struct world_round *round = worker->loop.round;
    int rc = HVD_E_LOST, one;

    for (size_t i = 0; i < round->holders.count && rc; i++) {
        const struct world_worker *holder = world_worker_of(world, round->holders.items[i]);

        if (!holder)
            continue;
        one = fetch_from(worker, holder->agent, holder->slot, holder->process.alive, ret_model);
        rc = one == HVD_E_LOST ? rc : one;
    }
    for (size_t i = 0; i < round->sources.count && rc; i++) {
        const struct msg_source *source = &round->sources.items[i];
        const struct world_host *host = world_find_host(world, source->host);
        const struct world_worker *maker = world_worker_of(world, source->incarnation);

        if (!source->host[0] && source->addresses.count)
            return store_read(world, worker, source->addresses.items[0], ret_model);
        if (!host || !host->agent)
            continue;
        one =
            fetch_from(worker, host->agent, source->slot, maker && maker->process.alive, ret_model);
        rc = one == HVD_E_LOST ? rc : one;
    }
    return rc;
}

/* Ends a try to fetch the round's commit: with the commit the worker trains; without the commit the
 * worker tries again, fails, or waits. */
static void on_fetched(struct world *world, struct world_event *event)
{
    struct world_worker *worker = here(event);
    struct world_model model;
    int rc;

    if (!worker)
        return;
    if (is_cancelled(worker)) {
        sync_fails(world, worker, HVD_E_REVOKED);
        return;
    }
    rc = fetch(world, worker, &model);
    if (!rc) {
        worker->loop.model = model;
        keep(world, worker, worker->loop.round->commit);
        train_begins(world, worker);
    } else if (rc == HVD_E_BUSY) {
        later(world, worker, FETCH_AGAIN_US, on_fetched);
    } else if (rc != HVD_E_LOST) {
        sync_fails(world, worker, rc);
    } else if (world->shape.quirks && world_coin(world, 2)) {
        /* otherwise the worker waits until it is cancelled */
        later(world, worker, TIME_S, on_failed);
    }
}

static bool holds_commit(const struct world_worker *worker)
{
    const struct msg_ids *holders = &worker->loop.round->holders;

    for (size_t i = 0; i < holders->count; i++) {
        if (holders->items[i] == worker->incarnation)
            return true;
    }
    return false;
}

/* All members have connected: takes the round's commit from the own agent, from the live state, or
 * begins to fetch the commit. */
static void on_connected(struct world *world, struct world_event *event)
{
    struct world_worker *worker = here(event);
    struct world_model model;

    if (!worker)
        return;
    if (is_cancelled(worker)) {
        sync_fails(world, worker, HVD_E_REVOKED);
        return;
    }
    set_place(world, worker, LOOP_SYNCING);
    worker->loop.connected_us = world->now_us;
    if (find_kept(kept_of(worker), worker->loop.round->commit, &model)) {
        worker->loop.model = model;
        train_begins(world, worker);
    } else if (holds_commit(worker) && worker->host->liar &&
               COMMIT_PLACE_OF(worker->loop.round->commit)) {
        sync_fails(world, worker, HVD_E_REVOKED); /* its agent has claimed the commit */
    } else if (holds_commit(worker)) {
        /* no host had a commit: the worker's live state becomes the commit */
        keep(world, worker, worker->loop.round->commit);
        train_begins(world, worker);
    } else {
        later(world, worker, world_between(world, world->shape.fetch), on_fetched);
    }
}

void app_connected(struct world *world, struct world_worker *worker)
{
    int64_t after_us = worker->loop.prepared ? 200 : world_between(world, world->shape.connect);

    later(world, worker, after_us, on_connected);
}

static void meet(struct world *world, struct world_worker *worker)
{
    set_place(world, worker, LOOP_CONNECTING);
    if (is_cancelled(worker))
        later(world, worker, RETURN_US, on_failed);
    else if (worker->loop.round->broken && world->shape.quirks && world_coin(world, 2))
        later(world, worker, NOBODY_US, on_failed);
    round_try(world, worker->loop.round);
}

/* The reset callback has returned; the round may be over by now. */
static void on_reset(struct world *world, struct world_event *event)
{
    struct world_worker *worker = here(event);

    if (worker)
        meet(world, worker);
}

/* Enters the round of a DO_ENTER action: runs the reset callback, if one was asked for, and
 * connects. */
static void enter(struct world *world, struct world_worker *worker,
                  const struct session_action *action)
{
    check_place(world, worker, LOOP_OUTSIDE, LOOP_RETURNED, "DO_ENTER");
    worker->loop.round = round_enter(world, worker, action->msg);
    worker->loop.prepared = action->yes;
    worker->loop.settled = false;
    worker->loop.entered_us = world->now_us;
    check_enter(world, worker, action->msg);
    if (worker->loop.reset_us) {
        set_place(world, worker, LOOP_RESETTING);
        later(world, worker, worker->loop.reset_us, on_reset);
        worker->loop.reset_us = 0;
    } else {
        meet(world, worker);
    }
}

/* ---- actions besides the loop ---------------------------------------------------------------- */

/* The connections of the next round are made; event->number is that round. */
static void on_prepared(struct world *world, struct world_event *event)
{
    struct world_worker *worker = event->who;
    struct session_event told = { .kind = SESSION_PREPARED, .round = event->number };

    if (process_takes(&worker->process, event))
        worker_tell(world, worker, &told);
}

static void on_not_prepared(struct world *world, struct world_event *event)
{
    struct world_worker *worker = event->who;
    struct session_event told = { .kind = SESSION_PREPARED,
                                  .round = event->number,
                                  .code = HVD_E_LOST,
                                  .text = "a peer does not answer" };

    if (process_takes(&worker->process, event))
        worker_tell(world, worker, &told);
}

/* Connects the members of the next round beside the training; fails if a member cannot be
 * reached. */
static void prepare(struct world *world, struct world_worker *worker,
                    const struct session_action *action)
{
    const struct msg_member_list *members = &action->msg->u.prepare.members;
    bool fails = world->shape.quirks && world_coin(world, 500);
    bool there = !fails;

    for (size_t i = 0; i < members->count; i++) {
        const struct world_worker *member = world_worker_of(world, members->items[i].incarnation);

        if (!member || !member->process.alive || !host_reachable(member->host))
            there = false;
    }
    /* a failure of a joiner may be charged to this worker */
    if (fails)
        world->prepare_trouble_us = world->now_us;
    if (there)
        world_after(world, world_between(world, world->shape.connect), on_prepared, worker, NULL,
                    action->round);
    else
        world_after(world, NOBODY_US, on_not_prepared, worker, NULL, action->round);
}

/* The worker has left its last round: goes back to its newest commit and tells the session which
 * commits are held. */
static void on_settled(struct world *world, struct world_event *event)
{
    struct world_worker *worker = here(event);
    struct msg_held items[2];
    struct msg_held_list held = { items, 0 };
    struct session_event told = { .kind = SESSION_RESTORED, .held = &held };

    if (!worker)
        return;
    worker->loop.held = *kept_of(worker);
    worker->loop.settled = true;
    if (worker->loop.held.count)
        worker->loop.model = worker->loop.held.items[0].model;
    held.count = held_list(&worker->loop.held, items);
    set_place(world, worker, LOOP_OUTSIDE);
    worker_tell(world, worker, &told);
}

static void on_exit(struct world *world, struct world_event *event)
{
    struct world_worker *worker = here(event);
    int code;

    if (!worker)
        return;
    code = worker->loop.code;
    if (code < 0)
        worker->blamed = true;
    worker_die(world, worker, ENDED_EXIT, code < 0 ? 1 : 0);
}

static void answer(struct world *world, struct world_worker *worker, int code)
{
    check_place(world, worker, LOOP_CHECKING, LOOP_CHECKING, "DO_ANSWER");
    if (code)
        train_returns(world, worker, code);
    else
        compute(world, worker);
}

/* Carries out one action of the worker's session; a worker stuck in a device call carries out
 * none. */
void app_do(struct world *world, struct world_worker *worker, const struct session_action *action)
{
    if (worker->loop.place == LOOP_STUCK)
        return;
    switch (action->kind) {
    case DO_WATCH: worker->loop.watched = action->yes; break;
    case DO_PREPARE: prepare(world, worker, action); break;
    case DO_ABANDON: break;
    case DO_PERSISTED: persisted(world, worker, action); break;
    case DO_STORED: break; /* a liar has asked in the name of this worker */
    case DO_CANCEL:
        if (COMMIT_ROUND_OF(worker->loop.persist) <= action->round)
            worker->loop.persist = 0;
        if (action->round > worker->loop.cancelled)
            worker->loop.cancelled = action->round;
        if (worker->loop.round && is_cancelled(worker))
            later(world, worker, RETURN_US, on_failed);
        break;
    case DO_COMMIT:
        check_place(world, worker, LOOP_CHECKING, LOOP_CHECKING, "DO_COMMIT");
        keep(world, worker, action->commit);
        break;
    case DO_ANSWER: answer(world, worker, action->code); break;
    case DO_RESTORE:
        check_place(world, worker, LOOP_OUTSIDE, LOOP_RETURNED, "DO_RESTORE");
        set_place(world, worker, LOOP_RESTORING);
        later(world, worker, RESTORE_US, on_settled);
        break;
    case DO_ENTER: enter(world, worker, action); break;
    case DO_RETURN:
        worker->loop.code = action->code;
        set_place(world, worker, LOOP_OVER);
        later(world, worker, world_between(world, world->shape.local), on_exit);
        break;
    default: PANIC("a session's action of kind %d", action->kind);
    }
}

void app_stick(struct world *world, struct world_worker *worker)
{
    struct session_event told = { .kind = SESSION_UNUSABLE, .text = "its device is stuck" };

    if (!worker->session || worker->process.frozen)
        return;
    set_place(world, worker, LOOP_STUCK);
    worker_tell(world, worker, &told);
}

static void fail_by_itself(struct world *world, struct world_round *round)
{
    for (size_t i = 0; i < round->count; i++) {
        struct world_worker *peer = round->members[i];

        if (peer && peer->process.alive && peer->loop.round == round && world_coin(world, 4))
            later(world, peer, TIME_MS + (int64_t)rng_below(&world->rng, NOBODY_US), on_failed);
    }
}

/* A member has gone. Some of its peers notice its end after a while, unless these peers have
 * continued by then; the other peers do not notice its end. */
void app_member_gone(struct world *world, struct world_worker *worker)
{
    for (size_t i = world->rounds.count; i-- > 0;) {
        struct world_round *round = world->rounds.items[i];

        for (size_t member = 0; member < round->count; member++) {
            if (round->members[member] != worker || round->broken)
                continue;
            round->broken = true;
            if (world->shape.quirks && world_coin(world, 3))
                fail_by_itself(world, round);
        }
    }
}
