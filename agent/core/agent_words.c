/*
 * agent_words.c: the last messages of a worker, which the agent keeps to send them again to a
 * driver that connects later (PROTOCOL.md, "Greeting"). In this file the messages are called the
 * words of the worker. Called for each message of a worker, and for each message that is passed
 * down to a worker. Invariant: a kept message is still true: a later message from or to the worker
 * removes a message that is out of date.
 */
#include "agent/core/agent_internal.h"

/* Frees a kept message; type 0 stands for no message. */
static void words_drop(struct msg *kept)
{
    msg_release(kept);
    *kept = (struct msg){ .type = 0 };
}

/* Drops the last message of the worker, unless it is a READY, which moves to `ready`: a READY has
 * the entries of the state, which a driver needs for a checkpoint. */
static void words_drop_last(struct agent_words *words)
{
    if (words->last.type != MSG_READY) {
        words_drop(&words->last);
        return;
    }
    words_drop(&words->ready);
    words->ready = words->last;
    words->last = (struct msg){ .type = 0 };
}

/* true: the worker has sent LEFT or FINISHED, or has ended: no other message is true of it any
 * more. */
static bool words_are_last(const struct agent_worker *worker)
{
    return worker->phase == PHASE_LEFT || worker->phase == PHASE_FINISHED ||
           worker->phase == PHASE_ENDED;
}

/* Records that the worker is in that round, unless the round is older than the known one. */
static void words_advance(struct agent_worker *worker, uint32_t phase, uint64_t round)
{
    if (words_are_last(worker) || round < worker->round)
        return;
    worker->phase = phase;
    worker->round = round;
}

/* Keeps a message that the worker has sent to the driver, and notes what the message says about
 * the worker's phase. The message replaces the kept one of its kind: `last`, `entered`,
 * `prepared`, `persist` or one of `stores`. */
void agent_words_keep(struct agent *agent, struct agent_worker *worker, const struct msg *msg)
{
    struct agent_words *words = &worker->words;
    struct msg *kept = &words->last;
    struct msg copy;

    if (words->last.type == MSG_UNUSABLE)
        return; /* a worker says nothing after UNUSABLE */
    switch ((unsigned)msg->type) {
    case MSG_READY: words_advance(worker, PHASE_READY, worker->round); break;
    case MSG_NEXT_CHECK: break;
    case MSG_RECOVERING: words_advance(worker, PHASE_RECOVERING, msg->round); break;
    case MSG_LEFT:
        worker->phase = PHASE_LEFT;
        worker->contact.dismissed = true;
        break;
    case MSG_FINISHED:
        worker->contact.dismissed = true;
        if (msg->u.finished.code == 0)
            worker->phase = PHASE_FINISHED;
        break;
    case MSG_UNUSABLE:
        if (kept->type == MSG_LEFT || kept->type == MSG_FINISHED)
            return; /* a kept LEFT or FINISHED stays, however the worker ends after it */
        break;
    case MSG_ENTERED:
        words_advance(worker, PHASE_ACTIVE, msg->round);
        kept = &words->entered;
        break;
    case MSG_PREPARED: kept = &words->prepared; break;
    case MSG_PERSIST:
        if (words_are_last(worker) || msg->u.persist.commit < words->persist.u.persist.commit)
            return; /* the answer to the PERSIST of a later commit answers this one, too */
        kept = &words->persist;
        break;
    case MSG_STORE:
        if (words_are_last(worker))
            return; /* the worker has left or finished: it awaits no answer to this STORE */
        kept = &words->stores[msg->u.store.channel];
        break;
    default: return; /* STALLED is not kept: the worker repeats it while the stall lasts */
    }
    if (msg_copy(msg, &copy)) {
        agent->list->failed = true;
        return;
    }
    if (kept == &words->last)
        words_drop_last(words);
    else
        words_drop(kept);
    *kept = copy;
}

/* Drops the kept STORE messages of all rounds before the round `before`: the worker has ended those
 * calls by itself, and awaits no answer. */
static void words_drop_stores(struct agent_words *words, uint64_t before)
{
    for (size_t i = 0; i < ARRAY_SIZE(words->stores); i++)
        if (words->stores[i].round && words->stores[i].round < before)
            words_drop(&words->stores[i]);
}

/* Called when a ROUND that names this worker as a member is passed down to it: from now on the
 * worker is in that round. */
void agent_words_note_member(struct agent_worker *worker, uint64_t round)
{
    struct agent_words *words = &worker->words;

    /* A repeated ROUND, or one older than the worker's last message, changes nothing. */
    if (round <= worker->round || words_are_last(worker))
        return;
    /* The worker sends these messages again in its new round, so the kept ones are dropped. LEFT
     * and FINISHED stay. */
    if (words->entered.type && words->entered.round < round)
        words_drop(&words->entered);
    if (words->prepared.type && words->prepared.round <= round)
        words_drop(&words->prepared);
    if (words->last.type == MSG_READY ||
        ((words->last.type == MSG_NEXT_CHECK || words->last.type == MSG_RECOVERING) &&
         words->last.round < round))
        words_drop_last(words);
    words_drop_stores(words, round);
    words_advance(worker, PHASE_ACTIVE, round);
}

/* A message goes down to the worker: drops the kept messages that this message makes outdated. */
void agent_words_note_down(struct agent_worker *worker, const struct msg *msg)
{
    struct agent_words *words = &worker->words;

    switch ((unsigned)msg->type) {
    /* a kept answer to the abandoned PREPARE or PENDING is no answer to the next one */
    case MSG_ABANDON:
        if (words->prepared.type && words->prepared.round == msg->u.abandon.next)
            words_drop(&words->prepared);
        if (words->last.type == MSG_NEXT_CHECK &&
            words->last.u.next_check.next == msg->u.abandon.next)
            words_drop(&words->last);
        break;
    case MSG_PREPARE:
        if (words->prepared.type && words->prepared.round < msg->round)
            words_drop(&words->prepared);
        break;
    case MSG_REVOKE:
        if (words->last.type == MSG_NEXT_CHECK && words->last.round <= msg->round)
            words_drop(&words->last);
        if (words->prepared.type && words->prepared.round <= msg->round)
            words_drop(&words->prepared);
        if (words->persist.type && words->persist.round <= msg->round)
            words_drop(&words->persist); /* the worker has ended its requests by itself */
        words_drop_stores(words, msg->round + 1);
        break;
    case MSG_PERSISTED:
        if (words->persist.type && words->persist.u.persist.commit <= msg->u.persisted.commit)
            words_drop(&words->persist);
        break;
    case MSG_STORED:
        if (words->stores[msg->u.stored.channel].type &&
            words->stores[msg->u.stored.channel].u.store.number == msg->u.stored.number)
            words_drop(&words->stores[msg->u.stored.channel]);
        break;
    case MSG_DONE: worker->contact.dismissed = true; break;
    default: break;
    }
}

/* Returns the READY with which the worker has named the entries of its state, or NULL. */
const struct msg *agent_words_entries(const struct agent_worker *worker)
{
    const struct msg *ready =
        worker->words.last.type == MSG_READY ? &worker->words.last : &worker->words.ready;
    bool known = ready == &worker->words.last || worker->round;

    return known && ready->type && ready->u.ready.entries.count ? ready : NULL;
}

/* Called when a driver has said welcome: repeats the kept messages of a worker. `entries` is true
 * for one worker only: its READY is sent too, because the driver needs the names of the entries of
 * the state, which are the same for all workers. */
void agent_words_say_again(struct agent *agent, const struct agent_worker *worker, bool entries)
{
    const struct agent_words *words = &worker->words;
    const struct msg none = { .type = 0 };
    const struct msg *kept[5 + LIMIT_STORE_CALLS] = {
        entries && agent_words_entries(worker) == &words->ready ? &words->ready : &none,
        &words->entered, &words->prepared, &words->last,
        words_are_last(worker) ? &none : &words->persist
    };

    for (size_t i = 0; i < LIMIT_STORE_CALLS; i++)
        kept[5 + i] = words_are_last(worker) ? &none : &words->stores[i];
    for (size_t i = 0; i < ARRAY_SIZE(kept); i++) {
        struct msg *msg;

        if (!kept[i]->type)
            continue;
        msg = agent_msg(agent, kept[i]->type, kept[i]->incarnation);
        if (msg_copy_into(kept[i], &agent->list->memory, msg))
            agent->list->failed = true;
        if (kept[i] == &worker->words.ready)
            msg->round = worker->round; /* an old READY, for its entries, names the present round */
        agent_link_send(agent, msg);
    }
}

void agent_words_release(struct agent_worker *worker)
{
    msg_release(&worker->words.ready);
    msg_release(&worker->words.last);
    msg_release(&worker->words.entered);
    msg_release(&worker->words.prepared);
    msg_release(&worker->words.persist);
    for (size_t i = 0; i < LIMIT_STORE_CALLS; i++)
        msg_release(&worker->words.stores[i]);
}
