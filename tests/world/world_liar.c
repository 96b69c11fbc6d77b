/*
 * world_liar.c: a host whose agent was taken over. Beside its true messages the agent lies: it
 * speaks for workers of other hosts, names numbers that cannot be, repeats old messages, forges
 * contacts and claims commits. A lie that driver/core/authority.c must refuse carries a mark: the
 * step in which such a lie arrives may make no action but against the liar itself (invariant 14).
 */
#include "tests/world/world_liar.h"

#include "base/arena.h"
#include "base/panic.h"
#include "proto/catalog.h"
#include "proto/commit.h"
#include "tests/lib/msg_random.h"
#include "tests/world/world_state.h"

#include <stdio.h>
#include <string.h>

#define LIE_MEMORY_MAX (1024u * 1024)
#define LIST_MAX       3
#define NOBODY         (UINT64_C(1) << 40) /* an incarnation that is never reached */
#define NEVER_TOLD     (UINT64_C(1) << 40) /* so many rounds after the last one */
#define PLACE_CLAIMED  100000
#define CLAIMS         40 /* times that it says that the worker trains */
#define CLAIM_US       (5 * TIME_MS)
#define DUE_STEPS_MAX  100
/* lies of a random world by which the liar may harm its own host and the rounds that it is in */
#define HARMS_MAX 30

static const char *const names[LIE_COUNT] = {
    [LIE_FOR_OTHERS] = "speaks for a worker of another host",
    [LIE_FOR_NOBODY] = "speaks for a worker that never was",
    [LIE_ROUND] = "names a round that was never told",
    [LIE_CHECK] = "names a check that no loop reaches",
    [LIE_NO_ADDRESS] = "names a contact that is no address",
    [LIE_HELLO_OTHER] = "says hello as another host",
    [LIE_HELLO_TERM] = "says hello with a term that no driver had",
    [LIE_HELLO_WORKERS] = "says hello with a worker of another host",
    [LIE_HELLO_KEPT] = "says hello with commits that it does not keep",
    [LIE_AGAIN] = "says old messages again",
    [LIE_CONTACT] = "names the contact of another host",
    [LIE_WAITS] = "says that its worker waits for another host",
    [LIE_COMMIT] = "claims a commit, and that its worker trains from it",
    [LIE_OWN] = "says anything of its own worker",
    [LIE_HOLDING] = "holds a commit for a checkpoint that it does not have",
    [LIE_SAVED] = "says that a file of a checkpoint is written",
};

const char *lie_name(enum world_lie lie)
{
    return names[lie];
}

/* ---- what is said ---------------------------------------------------------------------------- */

/* The newest round that was told; before the first one a round that is not told yet. */
static uint64_t newest_round(const struct world *world)
{
    return world->check.told_round ? world->check.told_round : 1;
}

static struct world_worker *own_worker(struct world *world, const struct world_host *host)
{
    for (size_t i = world->workers.count; i-- > 0;) {
        struct world_worker *worker = world->workers.items[i];

        if (worker->process.alive && worker->host == host && worker->agent == host->agent)
            return worker;
    }
    return NULL;
}

/* A random worker of another host that the driver has told to start; dead ones too. */
static const struct world_worker *other_worker(struct world *world, const struct world_host *host)
{
    size_t first = world->workers.count ? rng_below(&world->rng, world->workers.count) : 0;

    for (size_t i = 0; i < world->workers.count; i++) {
        const struct world_worker *worker =
            world->workers.items[(first + i) % world->workers.count];

        if (worker->host != host)
            return worker;
    }
    return NULL;
}

static void say(struct world *world, struct world_agent *agent, const struct msg *msg, bool refused)
{
    struct world_frame *frame = frame_make(msg, world->codec);

    frame->lie = refused;
    link_send(world, agent->link, END_DRIVER, frame);
}

/* A message of an agent that is about a worker, with random fields. */
static void draw(struct world *world, struct arena *arena, bool own, struct msg *ret_msg)
{
    static const enum msg_type honest[] = { MSG_EXITED,   MSG_FINISHED,      MSG_READY,
                                            MSG_LAUNCHED, MSG_LAUNCH_FAILED, MSG_HELLO_AGENT,
                                            MSG_BYE,      MSG_NOTICE,        MSG_BEAT,
                                            MSG_REKEYED,  MSG_HOLDING,       MSG_SAVED };
    const struct msg_kind *kind;
    bool taken;

    do {
        kind = msg_kind_at(rng_below(&world->rng, 64));
        taken = kind && kind->links & LINK_AGENT_TO_DRIVER;
        /* The last seven kinds of `honest` are about the agent's own host, so the driver would
         * believe them in any case. The kinds before them are believed of the agent's own workers,
         * and would end the worker or the job: they are drawn only for workers of others. */
        for (size_t i = own ? 0 : ARRAY_SIZE(honest) - 7; taken && i < ARRAY_SIZE(honest); i++)
            taken = kind->type != honest[i];
    } while (!taken);
    if (msg_random(kind->type, &world->rng, LIST_MAX, arena, ret_msg))
        PANIC("memory is out");
    ret_msg->term = 0;
    ret_msg->round = newest_round(world);
}

/* READY with these contacts, once more or too early. */
static void say_ready(struct world *world, struct world_agent *agent, uint64_t incarnation,
                      const char *contact, bool refused)
{
    struct msg msg = { .type = MSG_READY, .incarnation = incarnation };

    msg.u.ready.manifest = 42;
    msg.u.ready.addresses = (struct msg_texts){ &contact, 1 };
    say(world, agent, &msg, refused);
}

/* The liar says that its worker trains in the newest round. */
static void on_claimed(struct world *world, struct world_event *event)
{
    struct world_agent *agent = event->who;
    struct msg msg = { .type = MSG_ENTERED, .incarnation = event->number };

    msg.round = newest_round(world);
    if (agent->process.alive && agent->link)
        say(world, agent, &msg, false);
}

/* The worker has recovered with a commit that it does not have, and trains from it. */
static void say_commit(struct world *world, struct world_agent *agent, uint64_t incarnation)
{
    struct msg msg = { .type = MSG_RECOVERING,
                       .incarnation = incarnation,
                       .round = newest_round(world) };

    msg.u.recovering = (struct msg_recovering){ .code = HVD_E_REVOKED, .text = "the agent lies" };
    agent->host->claims = true;
    say(world, agent, &msg, false);
    for (int i = 1; i <= CLAIMS; i++)
        world_after(world, i * CLAIM_US, on_claimed, agent, NULL, incarnation);
}

static void say_waits(struct world *world, struct world_agent *agent,
                      const struct world_worker *worker, uint64_t other)
{
    struct msg msg = { .type = MSG_STALLED, .incarnation = worker->incarnation };

    msg.round = newest_round(world);
    msg.u.stalled = (struct msg_stalled){
        .operation = "allreduce", .waited_us = TIME_HOUR, .missing = {&other, 1}
    };
    say(world, agent, &msg, false);
}

/* The liar says that it holds a commit of which it has not heard; the truth comes later. */
static void say_holding(struct world *world, struct world_agent *agent)
{
    const struct world_hold *hold = &agent->hold;
    struct msg msg = { .type = MSG_HOLDING, .round = newest_round(world) };
    struct msg_kept kept[WORLD_SLOTS_MAX];

    for (size_t i = 0; i < hold->count; i++)
        kept[i] = (struct msg_kept){ .slot = hold->slots[i], .commit = hold->at + 1 };
    msg.u.holding = (struct msg_holding){
        .number = hold->number, .text = "", .kept = {kept, hold->count}
    };
    say(world, agent, &msg, false);
}

static void say_lie(struct world *world, struct world_host *host, enum world_lie lie)
{
    struct world_agent *agent = host->agent;
    const struct world_worker *worker = own_worker(world, host);
    const struct world_worker *other = other_worker(world, host);
    uint64_t own = worker ? worker->incarnation : 0;
    struct msg msg = { .type = MSG_NEXT_CHECK, .incarnation = own };
    struct arena arena;
    char contact[COMMAND_HOST_MAX + 32];

    arena_init(&arena, LIE_MEMORY_MAX);
    switch (lie) {
    case LIE_FOR_OTHERS:
    case LIE_FOR_NOBODY:
        draw(world, &arena, false, &msg);
        msg.incarnation = other && lie == LIE_FOR_OTHERS ? other->incarnation
                                                         : NOBODY + rng_below(&world->rng, NOBODY);
        say(world, agent, &msg, true);
        break;
    case LIE_ROUND:
        draw(world, &arena, false, &msg);
        msg.incarnation = own ? own : NOBODY;
        msg.round = world->check.number + NEVER_TOLD + rng_below(&world->rng, NEVER_TOLD);
        say(world, agent, &msg, true);
        break;
    case LIE_CHECK:
        msg.round = newest_round(world);
        msg.u.next_check =
            (struct msg_next_check){ .next = msg.round + 1, .check = LIMIT_CHECKS + 1 };
        if (own)
            say(world, agent, &msg, true);
        break;
    case LIE_NO_ADDRESS:
        if (own)
            say_ready(world, agent, own, "state=10.7:4001", true);
        break;
    case LIE_AGAIN: link_repeat(world, agent->link); break;
    case LIE_CONTACT:
        snprintf(contact, sizeof(contact), "state=%s",
                 other ? other->host->address : "10.0.0.250:1");
        if (own)
            say_ready(world, agent, own, contact, false);
        break;
    case LIE_WAITS:
        if (own && other)
            say_waits(world, agent, worker, other->incarnation);
        break;
    case LIE_COMMIT:
        if (own)
            say_commit(world, agent, own);
        break;
    case LIE_OWN:
        draw(world, &arena, true, &msg);
        msg.incarnation = own;
        if (own)
            say(world, agent, &msg, false);
        break;
    case LIE_HOLDING: say_holding(world, agent); break;
    case LIE_SAVED: host->forges = true; break;
    default: break;
    }
    arena_release(&arena);
}

void host_lie(struct world *world, struct world_host *host, enum world_lie lie)
{
    struct world_agent *agent = host->agent;

    host->liar = true;
    if (!agent || !agent->process.alive || agent->process.frozen || !agent->link)
        return;
    if (lie >= LIE_HELLO_OTHER && lie <= LIE_HELLO_KEPT) {
        host->hello_lie = lie; /* a hello is said when the agent has dialled again */
        link_break(world, agent->link);
    } else {
        say_lie(world, host, lie);
    }
}

/* ---- a hello that lies ------------------------------------------------------------------------
 */

static struct world_frame *lie_in_hello(struct world *world, struct world_host *host,
                                        const struct msg *true_hello)
{
    const struct world_worker *other = other_worker(world, host);
    struct msg_slot_report report = { .incarnation = NOBODY, .pid = 1 };
    struct msg_kept kept[LIST_MAX];
    struct msg msg = *true_hello;
    struct msg_hello_agent *hello = &msg.u.hello_agent;
    struct world_frame *frame;
    enum world_lie lie = host->hello_lie;

    host->hello_lie = LIE_COUNT;
    switch (lie) {
    case LIE_HELLO_OTHER: hello->host = other ? other->host->name : "nobody"; break;
    case LIE_HELLO_TERM: msg.term = UINT64_C(0x7fffffffffffffff); break;
    case LIE_HELLO_WORKERS:
        if (other && other->process.alive && !world->shape.faults)
            report.incarnation = other->incarnation;
        hello->slots = (struct msg_slot_report_list){ &report, 1 };
        break;
    default: /* LIE_HELLO_KEPT */
        for (uint32_t i = 0; i < LIST_MAX; i++)
            kept[i] =
                (struct msg_kept){ .slot = i,
                                   .commit = COMMIT_FIRST_OF(newest_round(world)) | PLACE_CLAIMED };
        kept[0].commit = UINT64_MAX;
        hello->kept = (struct msg_kept_list){ kept, LIST_MAX };
    }
    frame = frame_make(&msg, world->codec);
    frame->lie = lie != LIE_HELLO_KEPT;
    return frame;
}

struct world_frame *lie_instead(struct world *world, struct world_host *host, const struct msg *msg)
{
    struct msg_held held = { COMMIT_FIRST_OF(msg->round) | PLACE_CLAIMED, 7 };
    struct msg claim = *msg;

    if (msg->type == MSG_HELLO_AGENT && host->hello_lie != LIE_COUNT)
        return lie_in_hello(world, host, msg);
    if (msg->type == MSG_RECOVERING && host->claims) {
        host->claims = false;
        claim.u.recovering.held = (struct msg_held_list){ &held, 1 };
    }
    return frame_make(&claim, world->codec);
}

/* ---- the judge --------------------------------------------------------------------------------
 */

/* Gives the driver a lie that it must refuse. Deadlines that have come are handled before, so every
 * action of the step is an answer to the lie. */
void lie_arrives(struct world *world, struct world_link *link, struct event *event)
{
    struct world_driver *driver = link->driver;
    struct msg beat = { .type = MSG_BEAT };
    struct event first = { .kind = EVENT_MSG, .peer = event->peer, .host = event->host };
    struct event timer = { .kind = EVENT_TIMER };

    first.msg = &beat;
    driver_step(world, driver, &first);
    for (int i = 0;
         i < DUE_STEPS_MAX && driver->process.alive && core_deadline(driver->core) <= world->now_us;
         i++)
        driver_step(world, driver, &timer);
    if (!driver->process.alive || !link->ends[END_DRIVER].open)
        return;
    bug_lie(world, event);
    world->check.liar = link;
    driver_step(world, driver, event);
    world->check.liar = NULL;
}

/* Returns whether a driver may do this for a lie that it refuses. closed: it closes the connection;
 * then it may use other hosts instead of the liar's. */
static bool may_answer(const struct world_link *link, const struct action *action, bool closed)
{
    const char *host = link->agent->host->name;

    switch (action->kind) {
    case ACTION_SEND:
        if (action->peer == link->peer)
            return action->msg->type == MSG_REFUSED || action->msg->type == MSG_FORGET;
        /* an attempt at a checkpoint, in which the host had a part, is over */
        return closed && (action->msg->type == MSG_LAUNCH || action->msg->type == MSG_RELEASE);
    case ACTION_CLOSE: return action->peer == link->peer;
    case ACTION_RECORD:
        /* the charge may be the first one since the last commit, which the journal keeps */
        if (action->record->kind == JOURNAL_STUCK)
            return !action->record->host[0] || !strcmp(action->record->host, host);
        /* any step may record for what the workers' time was used, and what was reported */
        return action->record->kind == JOURNAL_GOODPUT ||
               action->record->kind == JOURNAL_REPORTED ||
               (closed &&
                (action->record->kind == JOURNAL_KEY || action->record->kind == JOURNAL_LAUNCH));
    case ACTION_BLACKLIST: return !strcmp(action->change->record.host, host);
    case ACTION_START_AGENT: return closed;
    case ACTION_KEY:
    case ACTION_CHECK_OWNER: return true;
    default: return false;
    }
}

static bool ends_own_worker(const struct world *world, const struct world_link *link,
                            const struct action *action)
{
    const struct world_worker *worker;

    if (action->kind != ACTION_RECORD || action->record->kind != JOURNAL_ENDED)
        return false;
    worker = world_worker_of(world, action->record->incarnation);
    return worker && worker->host == link->agent->host;
}

void check_liar(struct world *world, const struct action_list *list)
{
    const struct world_link *link = world->check.liar;
    bool closed = false, gone = false;

    /* With this scope a host that is charged gives up its workers, so rounds may change. */
    if (!link || world->shape.config.blacklist.scope == SCOPE_HOST)
        return;
    for (size_t i = 0; i < list->count; i++) {
        closed |= list->items[i].kind == ACTION_CLOSE;
        gone |= ends_own_worker(world, link, &list->items[i]);
    }
    /* A host that has left the list is gone with its connection, and its workers with it. */
    if (closed && gone)
        return;
    for (size_t i = 0; i < list->count; i++)
        if (!may_answer(link, &list->items[i], closed))
            world_violate(world, "14", "a lie of %s is believed: an action of kind %d follows",
                          link->agent->host->name, (int)list->items[i].kind);
}

/* ---- the liar of a random world ---------------------------------------------------------------
 */

static void on_lie(struct world *world, struct world_event *event)
{
    struct world_host *host = event->who;
    struct world_command command = lie(host->name, LIE_FOR_OTHERS);
    bool may_harm = world->lies_that_harm < HARMS_MAX && world_state_elsewhere(world, host) &&
                    (!world->calm || !world->shape.faults);

    if (world->over)
        return;
    command.value = (int)rng_below(&world->rng, may_harm ? LIE_COUNT : LIE_CHECK);
    if (command.value >= LIE_CHECK)
        world->lies_that_harm++;
    world_do(world, &command);
    world_after(world, (int64_t)rng_below(&world->rng, 8 * TIME_S), on_lie, host, NULL, 0);
}

void liar_begin(struct world *world)
{
    struct world_host *host = world->hosts.items[rng_below(&world->rng, world->hosts.count)];

    world_after(world, TIME_S, on_lie, host, NULL, 0);
}
