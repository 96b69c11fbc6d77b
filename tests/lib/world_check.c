#include "tests/lib/world_check.h"

#include "base/panic.h"
#include "proto/commit.h"
#include "tests/lib/world_state.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define COMMITS_REMEMBERED 512
#define RECORDED_WITHIN_US TIME_MIN /* of its end, whatever happens to driver, agent and disk */

void world_violate(struct world *world, const char *invariant, const char *format, ...)
{
    struct world_check *check = &world->check;
    va_list args;
    int head;

    if (check->violated)
        return;
    check->violated = true;
    head = snprintf(check->wrong, sizeof(check->wrong),
                    "seed %" PRIu64 ", at %" PRId64 ".%06" PRId64 " s: invariant %s: ",
                    world->shape.seed, world->now_us / TIME_S, world->now_us % TIME_S, invariant);
    va_start(args, format);
    vsnprintf(check->wrong + head, sizeof(check->wrong) - (size_t)head, format, args);
    va_end(args);
    world_mark(world, "VIOLATION %s", check->wrong);
}

void check_release(struct world_check *check)
{
    VEC_RELEASE(&check->facts);
    VEC_RELEASE(&check->rounds);
    VEC_RELEASE(&check->commits);
}

struct world_fact *fact_of(struct world *world, uint64_t incarnation)
{
    struct world_fact *fact;

    for (size_t i = world->check.facts.count; i-- > 0;) {
        if (world->check.facts.items[i].incarnation == incarnation)
            return &world->check.facts.items[i];
    }
    fact = WORLD_PUSH(&world->check.facts);
    *fact = (struct world_fact){ .incarnation = incarnation };
    return fact;
}

const struct journal_record *durable_round(const struct world *world, uint64_t number)
{
    for (size_t i = world->check.rounds.count; i-- > 0;) {
        if (world->check.rounds.items[i]->round == number)
            return world->check.rounds.items[i];
    }
    return NULL;
}

/* ---- processes ------------------------------------------------------------------------------ */

void check_spawn(struct world *world, const struct world_worker *worker)
{
    const struct world_worker *there = host_worker(world, worker->host, worker->slot);

    world->stats.launches++;
    if (world_worker_of(world, worker->incarnation))
        world_violate(world, "4", "incarnation %" PRIu64 " was started twice", worker->incarnation);
    if (there && there->agent == worker->agent)
        world_violate(world, "4",
                      "%s:%u runs incarnation %" PRIu64 " while %" PRIu64 " is started there",
                      worker->host->name, worker->slot, there->incarnation, worker->incarnation);
}

void check_place(struct world *world, const struct world_worker *worker, enum world_place one,
                 enum world_place other, const char *action)
{
    if (worker->loop.place != one && worker->loop.place != other)
        world_violate(world, "session",
                      "%s for incarnation %" PRIu64 " while its loop is at %d, not %d or %d",
                      action, worker->incarnation, (int)worker->loop.place, (int)one, (int)other);
}

/* ---- rounds as the workers live them -------------------------------------------------------- */

void check_enter(struct world *world, const struct world_worker *worker, const struct msg *msg)
{
    const struct world_round *round = worker->loop.round;
    const struct msg_round *mine = &msg->u.round;
    const struct msg_round *theirs = &round->frame->msg.u.round;
    bool same = mine->members.count == theirs->members.count && mine->commit == theirs->commit;
    bool found = false;

    for (size_t i = 0; same && i < mine->members.count; i++) {
        same = mine->members.items[i].incarnation == theirs->members.items[i].incarnation;
        found = found || mine->members.items[i].incarnation == worker->incarnation;
    }
    if (!same)
        world_violate(world, "1", "round %" PRIu64 " is told in two ways", round->number);
    else if (!found)
        world_violate(world, "1",
                      "incarnation %" PRIu64 " enters round %" PRIu64 " without being in it",
                      worker->incarnation, round->number);
}

/* Where nobody can be told that the round is over, it may go on: nothing of it will count. */
static bool unreachable(const struct world *world, const struct world_round *round)
{
    for (size_t i = 0; i < round->count; i++) {
        const struct world_agent *agent = round->members[i]->agent;

        if (agent->process.alive && !agent->process.frozen && agent->link &&
            agent->link->driver == world->driver && host_reachable(agent->host) &&
            world->driver->process.alive && !world->driver->process.frozen &&
            world->now_us - agent->host->trouble_us > 2 * world->shape.config.lease_us &&
            world->now_us - world->driver_trouble_us > 2 * world->shape.config.lease_us)
            return false;
    }
    return true;
}

/* Every member is written down as dead, so that nothing it says or commits counts any more. */
static bool counted_as_dead(struct world *world, const struct world_round *round)
{
    for (size_t i = 0; i < round->count; i++)
        if (!fact_of(world, round->members[i]->incarnation)->ended)
            return false;
    return true;
}

void check_progress(struct world *world, const struct world_round *round)
{
    const struct world_worker *first = NULL;

    for (size_t i = 0; i < round->count; i++) {
        const struct world_worker *member = round->members[i];

        if (member->loop.round != round || member->loop.place != LOOP_COLLECTIVE)
            continue;
        if (!first)
            first = member;
        if (member->loop.model.step != first->loop.model.step ||
            member->loop.model.hash != first->loop.model.hash)
            world_violate(world, "7",
                          "in round %" PRIu64 " incarnation %" PRIu64 " is at step %" PRIu64
                          " and %" PRIu64 " at step %" PRIu64 ", or with another history",
                          round->number, first->incarnation, first->loop.model.step,
                          member->incarnation, member->loop.model.step);
    }
    if (round->number < world->check.progress && !unreachable(world, round) &&
        !counted_as_dead(world, round))
        world_violate(world, "1", "round %" PRIu64 " makes a step after round %" PRIu64 " did",
                      round->number, world->check.progress);
    if (round->number > world->check.progress)
        world->check.progress = round->number;
}

void check_commit(struct world *world, const struct world_worker *worker, uint64_t commit)
{
    struct world_check *check = &world->check;
    uint64_t checksum = model_checksum(worker->loop.model);
    size_t oldest =
        check->commits.count > COMMITS_REMEMBERED ? check->commits.count - COMMITS_REMEMBERED : 0;

    for (size_t i = check->commits.count; i-- > oldest;) {
        if (check->commits.items[i].commit != commit)
            continue;
        if (check->commits.items[i].checksum != checksum)
            world_violate(world, "7",
                          "commit %" PRIu64 ":%u of incarnation %" PRIu64
                          " is not what another worker has under that number",
                          COMMIT_ROUND_OF(commit), COMMIT_PLACE_OF(commit), worker->incarnation);
        return;
    }
    *WORLD_PUSH(&check->commits) = (struct world_commit){ commit, checksum };
}

void check_finish(struct world *world, const struct world_worker *worker)
{
    const struct world_model *model = &worker->loop.model;

    if (model->step != world->length)
        world_violate(world, "7",
                      "incarnation %" PRIu64 " finishes at step %" PRIu64 " of %" PRIu64,
                      worker->incarnation, model->step, world->length);
}

/* ---- what is durable ------------------------------------------------------------------------ */

static void check_ended(struct world *world, const struct journal_record *record)
{
    const struct world_worker *worker = world_worker_of(world, record->incarnation);

    /* Silence and SIGKILL are also what is written of one that is counted as dead before it is. */
    if (!worker || record->ended != ENDED_EXIT)
        return;
    if (worker->process.alive)
        world_violate(world, "8", "incarnation %" PRIu64 " is written down as ended, and runs",
                      record->incarnation);
    else if (worker->agent->process.alive &&
             (worker->ended != record->ended || worker->value != record->value))
        world_violate(world, "8",
                      "incarnation %" PRIu64 " ended with %d/%d, and is written down with %d/%d",
                      record->incarnation, (int)worker->ended, worker->value, (int)record->ended,
                      record->value);
}

static void check_number(struct world *world, const struct journal_record *record)
{
    if (record->kind == JOURNAL_ROUND) {
        *WORLD_PUSH(&world->check.rounds) = record;
        world->stats.rounds++;
        if (record->cause == CAUSE_RECOVERY)
            world->stats.recoveries++;
    }
    if (record->round > world->check.number)
        world->check.number = record->round;
}

/* Who finished and died before anybody wrote that down has not finished. */
static void check_finished(struct world *world, const struct journal_record *record)
{
    const struct world_worker *worker = world_worker_of(world, record->incarnation);
    struct world_check *check = &world->check;

    if (!worker)
        return;
    if (worker->loop.model.step != world->length)
        world_violate(world, "7",
                      "incarnation %" PRIu64 " is written down as finished at step %" PRIu64,
                      record->incarnation, worker->loop.model.step);
    if (check->finished && check->finish_hash != worker->loop.model.hash)
        world_violate(world, "7", "incarnation %" PRIu64 " has finished with another history",
                      record->incarnation);
    check->finish_hash = worker->loop.model.hash;
    check->finished = true;
}

void check_durable(struct world *world, const struct journal_record *record)
{
    struct world_check *check = &world->check;
    const struct journal_record *round;

    switch (record->kind) {
    case JOURNAL_TERM:
        if (record->term <= check->term)
            world_violate(world, "6", "term %" PRIu64 " was taken before", record->term);
        check->term = record->term;
        break;
    case JOURNAL_LAUNCH:
        if (fact_of(world, record->incarnation)->launch)
            world_violate(world, "6", "incarnation %" PRIu64 " was given out before",
                          record->incarnation);
        fact_of(world, record->incarnation)->launch = record;
        break;
    case JOURNAL_NUMBER:
    case JOURNAL_ROUND: check_number(world, record); break;
    case JOURNAL_ENTERED:
        round = durable_round(world, record->round);
        if (!round)
            world_violate(world, "6", "round %" PRIu64 " is entered, and was never begun",
                          record->round);
        else
            check->entered_commit = round->commit;
        break;
    case JOURNAL_READY: check->joined = true; break;
    case JOURNAL_FINISHED: check_finished(world, record); break;
    case JOURNAL_ENDED:
        fact_of(world, record->incarnation)->ended = record;
        check_ended(world, record);
        break;
    case JOURNAL_OVER:
        check->over = true;
        check->state_lost = !world_state_elsewhere(world, NULL);
        break;
    default: break;
    }
}

void check_charged(struct world *world, const struct blacklist_change *change)
{
    if (!change->none && change->event.incarnation)
        fact_of(world, change->event.incarnation)->charged = true;
}

/* ---- at the end ----------------------------------------------------------------------------- */

void check_exit(struct world *world, const struct world_driver *driver)
{
    const struct core_config *config = &world->shape.config;
    bool justified = world->check.state_lost || world->shape.plain ||
                     config->reset_limit != CORE_NO_RESET_LIMIT || config->blacklist.forever ||
                     world->stats.faults[DEED_STOP] || world->shape.faults == 0 ||
                     strstr(world->exit_text, "every worker of round") ||
                     strstr(world->exit_text, "every worker failed before it joined") ||
                     strstr(world->exit_text, "failed before they joined") ||
                     strstr(world->exit_text, "a worker failed after it");

    (void)driver;
    if (world->exit_code != 0 && !justified)
        world_violate(world, "10", "the job fails for no good reason: %s", world->exit_text);
    if (world->exit_code == 0 && world->check.joined && !world->check.finished)
        world_violate(world, "10", "the job ends well, and nobody has finished: %s",
                      world->exit_text);
}

/* To the next driver a host may be away for as long as it takes to tell it where that is. */
static int64_t recorded_within_us(const struct world *world)
{
    return RECORDED_WITHIN_US + world->shape.config.agent_start_us;
}

void check_end(struct world *world)
{
    for (size_t i = 0; i < world->workers.count; i++) {
        const struct world_worker *worker = world->workers.items[i];

        if (worker->process.alive && worker->host->up) {
            world_violate(world, "9",
                          "the job is over, and incarnation %" PRIu64
                          " runs on %s:%u (loop at %d%s, agent %s, driver %u)",
                          worker->incarnation, worker->host->name, worker->slot,
                          (int)worker->loop.place, worker->process.frozen ? ", frozen" : "",
                          worker->agent->process.alive ? "alive" : "dead",
                          worker->agent->link ? worker->agent->link->driver->number : 0);
            return;
        }
        if (!worker->process.alive &&
            worker->died_us < world->over_us - recorded_within_us(world) &&
            !fact_of(world, worker->incarnation)->ended) {
            world_violate(world, "9", "incarnation %" PRIu64 " ended, and nobody wrote that down",
                          worker->incarnation);
            return;
        }
        if (!fact_of(world, worker->incarnation)->launch) {
            world_violate(world, "9", "incarnation %" PRIu64 " ran without a record of it",
                          worker->incarnation);
            return;
        }
    }
    for (size_t i = 0; i < world->hosts.count; i++) {
        const struct world_host *host = world->hosts.items[i];

        if (host->agent && host->agent->process.alive)
            world_violate(world, "9", "the job is over, and the agent of %s runs", host->name);
    }
}
