/* agent_words.c: what a worker said last, kept for a driver that comes back, until it is outdated
 * by what the worker says next or by what it is told. */
#include "agent/core/agent_state.h"
#include "proto/catalog.h"

static void drop(struct msg *kept)
{
    msg_release(kept);
    *kept = (struct msg){ .type = 0 };
}

static void keep(struct agent *agent, struct msg *kept, const struct msg *msg)
{
    struct msg copy;

    if (msg_copy(msg, &copy)) {
        agent->list->failed = true;
        return;
    }
    drop(kept);
    *kept = copy;
}

/* Nothing can follow but its end. */
static bool is_through(const struct agent_worker *worker)
{
    return worker->phase == PHASE_LEFT || worker->phase == PHASE_FINISHED ||
           worker->phase == PHASE_ENDED;
}

/* The round is not known to be an old one: the worker is taken to be there. */
static void advance(struct agent_worker *worker, uint32_t phase, uint64_t round)
{
    if (is_through(worker) || round < worker->round)
        return;
    worker->phase = phase;
    worker->round = round;
}

static void note_finished(struct agent_worker *worker, const struct msg *msg)
{
    worker->dismissed = true;
    if (msg->u.finished.code == 0)
        worker->phase = PHASE_FINISHED;
}

void agent_words_keep(struct agent *agent, struct agent_worker *worker, const struct msg *msg)
{
    struct msg *kept = &worker->word;

    if (kept->type == MSG_USELESS)
        return; /* there is no word after that */
    switch ((unsigned)msg->type) {
    case MSG_READY: advance(worker, PHASE_READY, worker->round); break;
    case MSG_AT: break;
    case MSG_RECOVERING: advance(worker, PHASE_RECOVERING, msg->round); break;
    case MSG_LEFT:
        worker->phase = PHASE_LEFT;
        worker->dismissed = true;
        break;
    case MSG_FINISHED: note_finished(worker, msg); break;
    case MSG_USELESS:
        if (kept->type == MSG_LEFT || kept->type == MSG_FINISHED)
            return; /* what it has done counts for more than how it ends */
        break;
    case MSG_ENTERED:
        advance(worker, PHASE_ACTIVE, msg->round);
        kept = &worker->entered;
        break;
    case MSG_PREPARED: kept = &worker->prepared; break;
    default: return; /* STALLED: it is said again while it lasts */
    }
    keep(agent, kept, msg);
}

/* A word of the loop of round `round` is outdated: whatever comes next is said anew. */
static void outdate(struct agent_worker *worker, uint64_t round)
{
    if (worker->entered.type && worker->entered.round < round)
        drop(&worker->entered);
    if (worker->prepared.type && worker->prepared.round <= round)
        drop(&worker->prepared);
    switch ((unsigned)worker->word.type) {
    case MSG_READY: drop(&worker->word); break;
    case MSG_AT:
    case MSG_RECOVERING:
        if (worker->word.round < round)
            drop(&worker->word);
        break;
    default: break; /* LEFT, FINISHED: the last words of all */
    }
}

void agent_words_note_member(struct agent_worker *worker, uint64_t round)
{
    /* One that is said again, or is older than what the worker has said since, tells nothing. */
    if (round <= worker->round || is_through(worker))
        return;
    outdate(worker, round);
    advance(worker, PHASE_ACTIVE, round);
}

static void drop_change(struct agent_worker *worker, uint64_t next)
{
    if (worker->prepared.type && worker->prepared.round == next)
        drop(&worker->prepared);
    if (worker->word.type == MSG_AT && worker->word.u.at.next == next)
        drop(&worker->word);
}

void agent_words_note_down(struct agent_worker *worker, const struct msg *msg)
{
    switch ((unsigned)msg->type) {
    case MSG_ABANDON: drop_change(worker, msg->u.abandon.next); break;
    case MSG_PREPARE:
        if (worker->prepared.type && worker->prepared.round < msg->round)
            drop(&worker->prepared);
        break;
    case MSG_REVOKE:
        if (worker->word.type == MSG_AT && worker->word.round <= msg->round)
            drop(&worker->word);
        if (worker->prepared.type && worker->prepared.round <= msg->round)
            drop(&worker->prepared);
        break;
    case MSG_DONE: worker->dismissed = true; break;
    default: break;
    }
}

static void say(struct agent *agent, const struct msg *kept)
{
    struct msg *msg;

    if (!kept->type)
        return;
    msg = agent_msg(agent, kept->type, kept->incarnation);
    if (msg_copy_into(kept, &agent->list->memory, msg))
        agent->list->failed = true;
    agent_driver_send(agent, msg);
}

void agent_words_say_again(struct agent *agent, const struct agent_worker *worker)
{
    say(agent, &worker->entered);
    say(agent, &worker->prepared);
    say(agent, &worker->word);
}

void agent_words_release(struct agent_worker *worker)
{
    msg_release(&worker->word);
    msg_release(&worker->entered);
    msg_release(&worker->prepared);
}
