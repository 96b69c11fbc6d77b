/*
 * world_check.c: checks every world at every event: places, commits, progress, launches and ends,
 * judged by what the world itself knows. A violation ends the world and names the number of the
 * invariant (world_check.h lists them). A fact is what the journal says of one worker.
 */
#include "tests/world/world_check.h"

#include "base/panic.h"
#include "proto/commit.h"
#include "tests/world/world_state.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define COMMITS_REMEMBERED 512
/* A worker's end must be recorded within this time, with any faults of driver, agent and disk. */
#define RECORDED_WITHIN_US TIME_MIN

/* Writes the world's first violation, with the seed and the time; later violations are ignored. */
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

/* Returns what is known of this incarnation; a new entry if nothing is known. Valid until the next
 * call. */
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

/* Checks a worker that an agent has started: its incarnation is new and its slot is free. */
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

/* ---- rounds as their members see them -------------------------------------------------------- */

/* Checks the ROUND with which this worker enters: the same members and commit as for the first
 * member, and the worker is among them. */
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

/* true: no member can be told that the round is over. The members may then continue; their results
 * will not count. */
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

/* true: every member is recorded as dead, so its messages and commits do not count any more. */
static bool counted_as_dead(struct world *world, const struct world_round *round)
{
    for (size_t i = 0; i < round->count; i++)
        if (!fact_of(world, round->members[i]->incarnation)->ended)
            return false;
    return true;
}

/* Checks the members that wait in the collective of a step: they are at one step with one history,
 * and no other round makes steps. */
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

/* Checks a commit that a worker has made or fetched: its content must equal the same commit
 * elsewhere. */
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

void check_saved_commit(struct world *world, const struct store_checkpoint *checkpoint)
{
    const struct world_check *check = &world->check;
    uint64_t checksum = model_checksum(checkpoint->model);

    for (size_t i = 0; i < check->commits.count && !checkpoint->damage; i++)
        if (check->commits.items[i].commit == checkpoint->commit &&
            check->commits.items[i].checksum != checksum)
            world_violate(world, "15", "%s is not the commit of that number", checkpoint->folder);
}

void check_finish(struct world *world, const struct world_worker *worker)
{
    const struct world_model *model = &worker->loop.model;

    if (model->step != world->length)
        world_violate(world, "7",
                      "incarnation %" PRIu64 " finishes at step %" PRIu64 " of %" PRIu64,
                      worker->incarnation, model->step, world->length);
}

/* ---- durable records ------------------------------------------------------------------------- */

/* Checks a record of a worker's end: the worker has ended, and in the recorded way. */
static void check_ended(struct world *world, const struct journal_record *record)
{
    const struct world_worker *worker = world_worker_of(world, record->incarnation);

    /* silence and SIGKILL are also recorded for a worker that is only counted as dead */
    if (!worker || record->ended != ENDED_EXIT || worker->host->liar)
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

/* Notes a record of a round, and the highest round number that is recorded. */
static void check_number(struct world *world, const struct journal_record *record)
{
    if (record->kind == JOURNAL_ROUND) {
        *WORLD_PUSH(&world->check.rounds) = record;
        world->stats.rounds++;
        if (record->cause == CAUSE_RECOVERY)
            world->stats.recoveries++;
        /* check_fall_back has judged whether the job may go back */
        if (record->commit < world->check.entered_commit) {
            world->check.entered_commit = record->commit;
            world->stats.fallbacks++;
        }
    }
    if (record->round > world->check.number)
        world->check.number = record->round;
}

/* Checks a record that a worker has finished. A worker that finished and died before the driver
 * recorded it has not finished. */
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

/* Checks a record that has become durable, and notes the record for later checks. */
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
        check->state_lost = !world_state_elsewhere(world, NULL) && !store_is_readable(world);
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

/* True: without the workers of the host that lies the job cannot have --min-np. Such an agent may
 * say that its worker is unusable, and never that it has ended: the slot then stays taken. */
static bool check_needs_liar(const struct world *world)
{
    uint32_t slots = 0;

    for (size_t i = 0; i < world->hosts.count; i++)
        slots += world->hosts.items[i]->liar ? 0 : world->hosts.items[i]->most_slots;
    return world->shape.liar && slots < world->shape.config.min_np;
}

/* Checks the end of the job: a failure needs a reason that can hold, success a finished worker. */
void check_exit(struct world *world, const struct world_driver *driver)
{
    const struct core_config *config = &world->shape.config;
    bool justified =
        world->check.state_lost || world->shape.plain ||
        config->reset_limit != CORE_NO_RESET_LIMIT || config->blacklist.forever ||
        world->stats.faults[COMMAND_STOP] || (world->shape.faults == 0 && !world->shape.liar) ||
        strstr(world->exit_text, "for longer than --start-timeout") ||
        (!store_is_readable(world) && strstr(world->exit_text, "no checkpoint in")) ||
        strstr(world->exit_text, "every worker of round") ||
        (config->progress_restarts != CORE_NO_PROGRESS_LIMIT &&
         strstr(world->exit_text, "makes no progress")) ||
        strstr(world->exit_text, "every worker failed before it joined") ||
        strstr(world->exit_text, "failed before they joined") ||
        (check_needs_liar(world) && strstr(world->exit_text, "for longer than --elastic-timeout"));

    (void)driver;
    if (world->exit_code != 0 && !justified)
        world_violate(world, "10", "the job fails for no good reason: %s", world->exit_text);
    if (world->exit_code == 0 && world->check.joined && !world->check.finished)
        world_violate(world, "10", "the job ends well, and no worker has finished: %s",
                      world->exit_text);
}

/* Checks the end of the job: every process has ended, every end is recorded, and the training was
 * finished if the exit code says so. */
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
        /* The time within which an end must be recorded. A host may be away until it is told where
         * the next driver is. */
        if (!worker->process.alive &&
            worker->died_us <
                world->over_us - (RECORDED_WITHIN_US + world->shape.config.agent_start_us) &&
            !fact_of(world, worker->incarnation)->ended) {
            world_violate(world, "9", "incarnation %" PRIu64 " ended, and no journal has that",
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
