/*
 * queue.c: keeps the actions of the core in order, and holds each one back until the records before
 * it are durable. loop.c puts the actions of each step into the queue, and takes those out that may
 * be carried out. The scribe (driver/journal/scribe.h) is the thread that writes the records to
 * disk. No action leaves the queue before the first record, the TERM, is durable, so two drivers
 * never act for one term.
 */
#include "driver/io/queue.h"

#include "base/mem.h"
#include "proto/codec.h"

void queue_init(struct queue *queue, struct scribe *scribe, struct server *server)
{
    *queue = (struct queue){ .scribe = scribe, .server = server };
    list_init(&queue->waiting);
    list_init(&queue->urgent);
}

/* Drops one reference to a frame, and frees the frame with the last one: the items of a message to
 * several agents share one frame. */
static void frame_release(struct frame_text *frame)
{
    if (!frame || --frame->refs > 0)
        return;
    buf_release(&frame->bytes);
    mem_free(frame);
}

/* Frees an action, carried out or not, with its references to the connection and the frame. */
void queued_free(struct queued *item)
{
    if (!item)
        return;
    list_remove(&item->chain);
    peer_release(item->peer);
    frame_release(item->frame);
    mem_free(item->text);
    mem_free(item);
}

void queue_release(struct queue *queue)
{
    LIST_EACH_SAFE (it, after, &queue->urgent)
        queued_free(CONTAINER_OF(it, struct queued, chain));
    LIST_EACH_SAFE (it, after, &queue->waiting)
        queued_free(CONTAINER_OF(it, struct queued, chain));
}

/* Encodes the messages of one step. A message to many agents is encoded only once, or twice if only
 * some of these agents may know the secret in it. */
struct encoder {
    const struct msg *msg; /* the last message that was encoded; a queued item holds its frame */
    bool secret;           /* the message in `frame` has its secret */
    struct frame_text *frame;
    queue_complete_fn *complete;
    void *arg;
};

/* Returns the frame (the encoded message) of an action, with one more reference. If the action
 * before had the same message, and both or none of the two have the secret, that frame is used
 * again. */
static int queue_encode(struct encoder *encoder, const struct action *action,
                        struct frame_text **ret_frame, struct hvd_err *err)
{
    struct frame_text *frame;
    struct msg whole = *action->msg;
    int rc;

    if (encoder->msg == action->msg && encoder->secret == action->secret) {
        encoder->frame->refs++;
        *ret_frame = encoder->frame;
        return 0;
    }
    frame = mem_zalloc(sizeof(*frame));
    if (!frame)
        return err_set(err, HVD_E_NOMEM, "no memory for a message; free memory on this host");
    frame->refs = 1;
    buf_init(&frame->bytes, LIMIT_FRAME_BODY_BYTES + FRAME_HEADER_BYTES);
    rc = encoder->complete(encoder->arg, action, &whole);
    if (rc)
        err_set(err, rc, "a message cannot be completed: %s", err_text(rc));
    else
        rc = msg_encode(&whole, &frame->bytes, err);
    if (rc) {
        frame_release(frame);
        return rc;
    }
    encoder->msg = action->msg;
    encoder->secret = action->secret;
    encoder->frame = frame;
    *ret_frame = frame;
    return 0;
}

/* Queues an action that is not itself a record of the journal. The action waits until the newest
 * record so far (`needs`) is durable. `now_us` is noted as the beginning of this wait. */
static int queue_action(struct queue *queue, const struct action *action, int64_t now_us,
                        struct encoder *encoder, struct hvd_err *err)
{
    const char *text = action->host ? action->host : action->text;
    struct queued *item = mem_zalloc(sizeof(*item));
    int rc = 0;

    if (!item)
        return err_set(err, HVD_E_NOMEM, "no memory for an action; free memory on this host");
    list_init(&item->chain);
    item->needs = queue->last;
    item->since_us = now_us;
    item->kind = action->kind;
    item->code = action->code;
    item->ask = action->ask;
    item->number = action->number;
    item->checkpoint = action->checkpoint;
    /* The item points at the connection itself, because the number may belong to another connection
     * before the action is carried out. */
    if (action->kind == ACTION_SEND || action->kind == ACTION_CLOSE)
        item->peer = server_peer(queue->server, action->peer);
    if (action->kind == ACTION_CLOSE)
        server_mute(queue->server, action->peer);
    if (text && !(item->text = mem_strdup(text)))
        rc = err_set(err, HVD_E_NOMEM, "no memory for an action; free memory on this host");
    if (!rc && action->kind == ACTION_SEND) {
        item->type = action->msg->type;
        rc = queue_encode(encoder, action, &item->frame, err);
    }
    if (rc)
        queued_free(item);
    else
        list_append(action->overtakes ? &queue->urgent : &queue->waiting, &item->chain);
    return rc;
}

/* Gives a record or a change of the blacklist to the scribe. The actions after it wait until the
 * write is durable. */
static int queue_write(struct queue *queue, const struct job_write *write, struct hvd_err *err)
{
    uint64_t number = scribe_put(queue->scribe, write);

    if (!number)
        return err_set(err, HVD_E_LIMIT,
                       "the journal cannot keep up: its store is too slow, or no memory is left; "
                       "put the state directory (or etcd) on a faster disk, or free memory on this "
                       "host");
    if (!queue->first)
        queue->first = number;
    queue->last = number;
    return 0;
}

/* Takes the actions of one step of the core, in order. The records go to the scribe, the thread
 * that writes the journal, and become durable together. All other actions go into the queue. After
 * a failure the driver cannot go on. */
int queue_take(struct queue *queue, const struct action_list *list, int64_t now_us,
               queue_complete_fn *complete, void *arg, struct hvd_err *err)
{
    struct encoder encoder = { .complete = complete, .arg = arg };
    int rc = 0;

    scribe_step_begin(queue->scribe);
    for (size_t i = 0; i < list->count && !rc; i++) {
        const struct action *action = &list->items[i];

        if (action->kind == ACTION_RECORD)
            rc = queue_write(queue, &(struct job_write){ .record = action->record }, err);
        else if (action->kind == ACTION_BLACKLIST)
            rc = queue_write(queue, &(struct job_write){ .change = action->change }, err);
        else
            rc = queue_action(queue, action, now_us, &encoder, err);
    }
    scribe_step_end(queue->scribe);
    return rc;
}

/* Takes the next action that may be carried out out of the queue; NULL: none may. `durable`: the
 * number of the newest record that is on disk with all before it. */
struct queued *queue_next(struct queue *queue, uint64_t durable)
{
    struct queued *item;

    /* Before the TERM record is durable no action is carried out. Then the urgent actions come
     * first; they wait for no other record. */
    if (durable < queue->first)
        return NULL;
    if (!list_empty(&queue->urgent)) {
        item = CONTAINER_OF(queue->urgent.next, struct queued, chain);
    } else if (!list_empty(&queue->waiting)) {
        item = CONTAINER_OF(queue->waiting.next, struct queued, chain);
        if (item->needs > durable)
            return NULL;
    } else {
        return NULL;
    }
    list_remove(&item->chain);
    return item;
}

/* Returns for how long the oldest action has waited for its record to be durable; 0: no action
 * waits for a record. A long time shows a slow disk. */
int64_t queue_held_us(const struct queue *queue, uint64_t durable, int64_t now_us)
{
    const struct queued *oldest;

    if (list_empty(&queue->waiting))
        return 0;
    oldest = CONTAINER_OF(queue->waiting.next, struct queued, chain);
    return oldest->needs > durable ? now_us - oldest->since_us : 0;
}
