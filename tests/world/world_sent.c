/* world_sent.c: checks the messages that leave a driver: what they say must be durable, and a round
 * must resume from the right commit. */
#include "proto/catalog.h"
#include "proto/commit.h"
#include "tests/world/world_state.h"

#include <inttypes.h>

/* true: the ROUND message says what the durable record of the round says. */
static bool same_members(const struct journal_record *record, const struct msg *msg)
{
    const struct msg_member_list *members = &msg->u.round.members;
    bool same = record->members.count == members->count && record->commit == msg->u.round.commit &&
                record->cause == msg->u.round.cause && record->previous == msg->u.round.previous;

    for (size_t i = 0; same && i < members->count; i++)
        same = record->members.items[i] == members->items[i].incarnation;
    return same;
}

/* The checksum of the commit, as this member last reported it; 0: the member does not hold the
 * commit. */
static uint64_t checksum_held(const struct world_worker *worker, uint64_t commit)
{
    const struct world_kept *held = &worker->loop.held;

    for (size_t i = 0; i < held->count; i++) {
        if (held->items[i].commit == commit)
            return model_checksum(held->items[i].model);
    }
    return 0;
}

static bool is_holder(const struct msg_round *round, uint64_t incarnation)
{
    for (size_t i = 0; i < round->holders.count; i++) {
        if (round->holders.items[i] == incarnation)
            return true;
    }
    return false;
}

/* Checks a ROUND for which no member holds the newest commit: an agent must hold it that was
 * connected when the driver decided. */
static void check_sources(struct world *world, const struct msg *msg)
{
    const struct msg_round *round = &msg->u.round;

    for (size_t i = 0; i < round->sources.count; i++) {
        const struct msg_source *source = &round->sources.items[i];
        const struct world_host *host = world_find_host(world, source->host);
        const struct world_kept *kept =
            host && host->agent ? &host->agent->kept[source->slot] : NULL;
        bool keeps = false;

        for (size_t k = 0; kept && k < kept->count; k++)
            keeps = keeps || kept->items[k].commit == round->commit;
        if (!keeps && kept && host->agent->process.alive && msg->u.round.cause != CAUSE_SWITCH &&
            host->trouble_us < 0)
            world_violate(world, "5", "round %" PRIu64 ": %s:%u does not keep its commit",
                          msg->round, source->host, source->slot);
    }
}

/* true: a member of the round before is in this round, and holds a commit. */
static bool has_survivor(const struct world *world, const struct msg_round *round)
{
    const struct journal_record *before = durable_round(world, round->previous);

    for (size_t i = 0; before && i < before->members.count; i++)
        for (size_t k = 0; k < round->members.count; k++) {
            const struct world_worker *worker =
                world_worker_of(world, round->members.items[k].incarnation);

            if (worker && worker->incarnation == before->members.items[i] &&
                worker->loop.held.count)
                return true;
        }
    return false;
}

/* true: the driver must know what the agent of this host keeps for its slots without a worker. */
static bool is_well_known(const struct world *world, const struct world_host *host)
{
    int64_t calm_us = 2 * world->shape.config.lease_us;

    return host->agent && host->agent->process.alive && host->agent->link && !host->liar &&
           (host->trouble_us < 0 || world->now_us - host->trouble_us > calm_us) &&
           world->now_us - world->driver_trouble_us > calm_us;
}

/* Checks a ROUND without a survivor: no agent keeps a newer commit of a worker whose end is
 * known to the driver. */
static void check_kept(struct world *world, const struct msg *msg)
{
    for (size_t i = 0; i < world->workers.count; i++) {
        const struct world_worker *worker = world->workers.items[i];
        const struct world_host *host = worker->host;
        const struct world_kept *kept = &host->agent->kept[worker->slot];

        if (is_well_known(world, host) && worker->agent == host->agent && kept->count &&
            kept->items[0].commit > msg->u.round.commit && !worker->process.alive &&
            !host_worker(world, host, worker->slot) &&
            world->now_us - worker->died_us > world->shape.config.lease_us)
            world_violate(
                world, "5",
                "round %" PRIu64 " resumes from %" PRIu64 ":%u, and %s:%u keeps %" PRIu64 ":%u",
                msg->round, COMMIT_ROUND_OF(msg->u.round.commit),
                COMMIT_PLACE_OF(msg->u.round.commit), host->name, worker->slot,
                COMMIT_ROUND_OF(kept->items[0].commit), COMMIT_PLACE_OF(kept->items[0].commit));
    }
}

/* true: only workers of a host that lies are named as holders. */
static bool liars_alone(const struct world *world, const struct msg_round *round)
{
    for (size_t i = 0; i < round->holders.count; i++) {
        const struct world_worker *worker = world_worker_of(world, round->holders.items[i]);

        if (!worker || !worker->host->liar)
            return false;
    }
    return round->holders.count > 0;
}

/* Checks the commit and the holders that a ROUND names: the highest commit of its members, all who
 * have this commit and no one else. */
static void check_holders(struct world *world, const struct msg *msg, uint64_t highest)
{
    const struct msg_round *round = &msg->u.round;

    if (round->commit > highest && liars_alone(world, round))
        return; /* it is not fetched, and the next round resumes from another one */
    if (check_checkpoint_source(world, msg)) {
        if (highest > round->commit)
            world_violate(world, "15",
                          "round %" PRIu64 " goes back, and a member holds %" PRIu64 ":%u",
                          msg->round, COMMIT_ROUND_OF(highest), COMMIT_PLACE_OF(highest));
        return;
    }
    /* An agent may keep a commit that is newer than those of the members and than the newest
     * checkpoint. */
    if (!round->holders.count &&
        (highest < world->check.entered_commit || round->commit > highest)) {
        check_sources(world, msg);
        return;
    }
    if (!highest) {
        if (round->commit != COMMIT_FIRST_OF(msg->round) || round->holders.count != 1)
            world_violate(
                world, "5",
                "no host holds a commit, and round %" PRIu64 " resumes from %" PRIu64 ":%u",
                msg->round, COMMIT_ROUND_OF(round->commit), COMMIT_PLACE_OF(round->commit));
        return;
    }
    if (round->commit != highest)
        world_violate(world, "5",
                      "round %" PRIu64 " resumes from %" PRIu64 ":%u, and a member holds %" PRIu64
                      ":%u",
                      msg->round, COMMIT_ROUND_OF(round->commit), COMMIT_PLACE_OF(round->commit),
                      COMMIT_ROUND_OF(highest), COMMIT_PLACE_OF(highest));
    for (size_t i = 0; i < round->members.count; i++) {
        uint64_t incarnation = round->members.items[i].incarnation;
        const struct world_worker *worker = world_worker_of(world, incarnation);

        if (worker && !worker->host->liar &&
            (checksum_held(worker, highest) != 0) != is_holder(round, incarnation))
            world_violate(world, "5", "round %" PRIu64 ": incarnation %" PRIu64 " %s", msg->round,
                          incarnation,
                          is_holder(round, incarnation) ? "is no holder of the commit"
                                                        : "holds the commit, and is not named");
    }
}

/* Checks a ROUND of a switch: its commit is made by the members that stay. */
static void check_switch(struct world *world, const struct msg *msg)
{
    const struct journal_record *before = durable_round(world, msg->u.round.previous);
    const struct msg_round *round = &msg->u.round;

    if (round->commit != COMMIT_FIRST_OF(msg->round))
        world_violate(world, "5", "round %" PRIu64 " is switched to with another's commit",
                      msg->round);
    for (size_t i = 0; before && i < round->members.count; i++) {
        bool survivor = false;

        for (size_t k = 0; k < before->members.count; k++)
            survivor = survivor || before->members.items[k] == round->members.items[i].incarnation;
        if (survivor != is_holder(round, round->members.items[i].incarnation))
            world_violate(world, "5", "round %" PRIu64 ": its holders are not its survivors",
                          msg->round);
    }
}

void check_round_told(struct world *world, const struct msg *msg)
{
    const struct msg_round *round = &msg->u.round;
    uint64_t highest = 0;

    for (size_t i = 0; i < round->members.count; i++) {
        const struct world_worker *worker =
            world_worker_of(world, round->members.items[i].incarnation);

        if (!worker) {
            world_violate(world, "5", "round %" PRIu64 " has a member that never ran", msg->round);
            return;
        }
        if (round->cause != CAUSE_SWITCH && !worker->loop.settled && !worker->host->liar)
            world_violate(world, "5",
                          "round %" PRIu64 ": incarnation %" PRIu64 " has not said what it holds",
                          msg->round, worker->incarnation);
        if (!worker->host->liar && worker->loop.held.count &&
            worker->loop.held.items[0].commit > highest)
            highest = worker->loop.held.items[0].commit;
    }
    if (round->cause == CAUSE_SWITCH)
        check_switch(world, msg);
    else
        check_holders(world, msg, highest);
    if (round->cause == CAUSE_RECOVERY && !has_survivor(world, round))
        check_kept(world, msg);
    if (round->commit < world->check.entered_commit)
        world_violate(world, "5", "round %" PRIu64 " goes back behind what the last one began with",
                      msg->round);
}

static void check_round(struct world *world, const struct msg *msg)
{
    const struct journal_record *record = durable_round(world, msg->round);

    if (msg->round > world->check.told_round) {
        world->check.told_round = msg->round;
        check_round_told(world, msg);
    }
    if (!record)
        world_violate(world, "6", "round %" PRIu64 " is told before it is durable", msg->round);
    else if (!same_members(record, msg))
        world_violate(world, "6", "round %" PRIu64 " is told otherwise than written", msg->round);
}

static void need(struct world *world, bool durable, const struct msg *msg, uint64_t number)
{
    if (!durable)
        world_violate(world, "6", "%s of %" PRIu64 " leaves before what it rests on is durable",
                      msg_kind(msg->type)->name, number);
}

/* Checks that the record behind the message (a term, a launch, a round) is durable before the
 * message leaves. */
static void check_durable_before(struct world *world, const struct world_link *link,
                                 const struct msg *msg)
{
    struct world_check *check = &world->check;
    const struct journal_record *round;
    const struct world_worker *worker;
    struct world_fact *fact;

    switch (msg->type) {
    case MSG_WELCOME_AGENT:
        need(world, msg->term <= check->term, msg, msg->term);
        if (msg->term > check->told_term)
            check->told_term = msg->term;
        break;
    case MSG_LAUNCH:
        fact = fact_of(world, msg->incarnation);
        need(world, fact->launch != NULL, msg, msg->incarnation);
        fact->told = true;
        break;
    case MSG_FORGET:
        need(world, fact_of(world, msg->incarnation)->ended != NULL, msg, msg->incarnation);
        worker = world_worker_of(world, msg->incarnation);
        /* the agent of another host may have lied about the worker, and does not have it */
        if (worker && worker->process.alive && worker->agent == worker->host->agent &&
            worker->agent == link->agent)
            world_violate(world, "8", "incarnation %" PRIu64 " is to be forgotten, and runs",
                          msg->incarnation);
        break;
    case MSG_PREPARE:
        need(world, msg->round <= check->number, msg, msg->round);
        if (msg->round > check->told_number)
            check->told_number = msg->round;
        break;
    case MSG_PENDING: need(world, msg->u.pending.next <= check->number, msg, msg->round); break;
    case MSG_SWITCH_AT:
        round = durable_round(world, msg->u.switch_at.next);
        need(world, round && round->check == msg->u.switch_at.check, msg, msg->u.switch_at.next);
        break;
    case MSG_ROUND: check_round(world, msg); break;
    case MSG_DONE: need(world, check->finished || check->over, msg, msg->term); break;
    default: break;
    }
}

/* Notes a ROUND or REVOKE that goes to an agent, for check_everybody_told. */
static void note_told(struct world *world, struct world_link *link, const struct world_frame *frame,
                      bool arrives)
{
    const struct msg *msg = &frame->msg;
    bool to_all = !msg->incarnation;

    if (msg->type != MSG_ROUND && msg->type != MSG_REVOKE)
        return;
    /* the previous driver has died while it told the members */
    if (world->check.to_all_by != link->driver)
        world->check.round_to_all = world->check.revoke_to_all = 0;
    /* A driver that was mute says in one go what it has decided at several times. */
    if (to_all && world->check.to_all_us != frame->made_us)
        check_everybody_told(world, link->driver);
    if (to_all) {
        world->check.to_all_us = frame->made_us;
        world->check.to_all_by = link->driver;
    }
    if (msg->type == MSG_ROUND) {
        if (to_all)
            world->check.round_to_all = msg->round;
        if (arrives && link->told_round < msg->round)
            link->told_round = msg->round;
    }
    if (msg->type == MSG_REVOKE) {
        if (to_all)
            world->check.revoke_to_all = msg->round;
        if (arrives && link->told_revoke < msg->round)
            link->told_revoke = msg->round;
    }
}

/* The connection by which this driver reached the worker's host when it made the newest ROUND or
 * REVOKE to all agents (check.to_all_us); NULL: there was none, or it does not work any more. */
static const struct world_link *way_to(const struct world *world, const struct world_driver *driver,
                                       const struct world_worker *worker)
{
    const struct world_link *link = worker ? worker->agent->link : NULL;

    if (!link || link->driver != driver || !link->heard || link->deaf || link->broken ||
        link->heard_us >= world->check.to_all_us)
        return NULL;
    return link;
}

/* Checks that each member of the round that the driver can reach was told the ROUND, or the
 * REVOKE. */
static void check_told(struct world *world, const struct world_driver *driver, uint64_t number,
                       bool revoke)
{
    const struct journal_record *record = durable_round(world, number);

    for (size_t i = 0; record && i < record->members.count; i++) {
        uint64_t incarnation = record->members.items[i];
        const struct world_worker *worker = world_worker_of(world, incarnation);
        const struct world_link *link = way_to(world, driver, worker);

        if (!link || fact_of(world, incarnation)->ended ||
            (worker->loop.round && worker->loop.round->number >= number && !revoke))
            continue;
        if ((revoke ? link->told_revoke : link->told_round) < number)
            world_violate(world, "13",
                          "%s %" PRIu64 " is told to others, and not to incarnation %" PRIu64
                          " on %s, who said hello at %" PRId64,
                          revoke ? "REVOKE" : "ROUND", number, incarnation, worker->host->name,
                          link->heard_us);
    }
}

void check_everybody_told(struct world *world, const struct world_driver *driver)
{
    uint64_t round = world->check.round_to_all;
    uint64_t revoke = world->check.revoke_to_all;

    world->check.round_to_all = world->check.revoke_to_all = 0;
    if (world->check.to_all_by != driver)
        return;
    if (round)
        check_told(world, driver, round, false);
    if (revoke)
        check_told(world, driver, revoke, true);
}

bool check_send(struct world *world, struct world_driver *driver, struct world_link *link,
                struct world_frame *frame)
{
    struct hvd_err err = { .code = 0 };
    bool arrives = bug_down(world, &frame->msg);

    note_told(world, link, frame, arrives);
    if (msg_allowed(frame->msg.type, LINK_DRIVER_TO_AGENT,
                    frame->msg.type == MSG_WELCOME_AGENT || frame->msg.type == MSG_REFUSED
                        ? WHEN_GREETING
                        : WHEN_OPEN,
                    &err))
        world_violate(world, "protocol", "%s", err.text);
    if (frame->msg.term && driver->term && frame->msg.term != driver->term)
        world_violate(world, "6", "a frame of term %" PRIu64 " from the driver of %" PRIu64,
                      frame->msg.term, driver->term);
    check_durable_before(world, link, &frame->msg);
    return arrives;
}
