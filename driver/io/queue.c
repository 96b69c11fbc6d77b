#include "driver/io/queue.h"

#include "base/mem.h"
#include "base/panic.h"
#include "proto/codec.h"

#include <string.h>

void queue_init(struct queue *queue, struct scribe *scribe, struct server *server)
{
    *queue = (struct queue){ .scribe = scribe, .server = server };
    list_init(&queue->waiting);
    list_init(&queue->urgent);
}

static void frame_release(struct frame_text *frame)
{
    if (!frame || --frame->refs > 0)
        return;
    buf_release(&frame->bytes);
    mem_free(frame);
}

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

static void release_list(struct list *list)
{
    LIST_EACH_SAFE (it, after, list) {
        queued_free(CONTAINER_OF(it, struct queued, chain));
    }
}

void queue_release(struct queue *queue)
{
    release_list(&queue->urgent);
    release_list(&queue->waiting);
}

static int write_down(struct queue *queue, const struct action *action, struct hvd_err *err)
{
    const struct job_write write = {
        .record = action->kind == ACTION_RECORD ? action->record : NULL,
        .change = action->kind == ACTION_BLACKLIST ? action->change : NULL,
    };
    uint64_t number = scribe_put(queue->scribe, &write);

    if (!number)
        return err_set(err, HVD_E_LIMIT,
                       "no room for another record: the disk of the state directory does not keep "
                       "up, or memory is out");
    if (!queue->first)
        queue->first = number;
    queue->last = number;
    return 0;
}

/* Encodes a message, or takes the frame of the action before when that was the same one. */
struct encoder {
    const struct msg *msg;
    struct frame_text *frame;
    queue_launch_fn *launch;
    void *arg;
};

static int encode(struct encoder *encoder, const struct msg *msg, struct frame_text **ret_frame,
                  struct hvd_err *err)
{
    struct frame_text *frame;
    struct msg whole = *msg;
    int rc;

    if (encoder->msg == msg) {
        encoder->frame->refs++;
        *ret_frame = encoder->frame;
        return 0;
    }
    frame = mem_zalloc(sizeof(*frame));
    if (!frame)
        return HVD_E_NOMEM;
    frame->refs = 1;
    buf_init(&frame->bytes, LIMIT_FRAME_BODY_BYTES + FRAME_HEADER_BYTES);
    if (msg->type == MSG_LAUNCH)
        encoder->launch(encoder->arg, msg, &whole);
    rc = msg_encode(&whole, &frame->bytes, err);
    if (rc) {
        frame_release(frame);
        return rc;
    }
    encoder->msg = msg;
    encoder->frame = frame; /* borrowed: the queued item has it, and outlives this step */
    *ret_frame = frame;
    return 0;
}

static int fill(struct queue *queue, struct queued *item, const struct action *action,
                struct encoder *encoder, struct hvd_err *err)
{
    const char *text = action->kind == ACTION_START_AGENT ? action->host : action->text;

    item->needs = queue->last;
    item->kind = action->kind;
    item->code = action->code;
    item->ask = action->ask;
    if (action->kind == ACTION_SEND || action->kind == ACTION_CLOSE)
        item->peer = server_peer(queue->server, action->peer);
    if (action->kind == ACTION_CLOSE)
        server_mute(queue->server, action->peer);
    if (text) {
        item->text = mem_strdup(text);
        if (!item->text)
            return HVD_E_NOMEM;
    }
    if (action->kind != ACTION_SEND)
        return 0;
    item->type = action->msg->type;
    return encode(encoder, action->msg, &item->frame, err);
}

static int take(struct queue *queue, const struct action *action, struct encoder *encoder,
                struct hvd_err *err)
{
    struct queued *item;
    int rc;

    if (action->kind == ACTION_RECORD || action->kind == ACTION_BLACKLIST)
        return write_down(queue, action, err);
    item = mem_zalloc(sizeof(*item));
    if (!item)
        return HVD_E_NOMEM;
    list_init(&item->chain);
    rc = fill(queue, item, action, encoder, err);
    if (rc) {
        queued_free(item);
        return rc;
    }
    list_append(action->overtakes ? &queue->urgent : &queue->waiting, &item->chain);
    return 0;
}

int queue_take(struct queue *queue, const struct action_list *list, queue_launch_fn *launch,
               void *arg, struct hvd_err *err)
{
    struct encoder encoder = { .launch = launch, .arg = arg };
    int rc = 0;

    for (size_t i = 0; i < list->count && !rc; i++)
        rc = take(queue, &list->items[i], &encoder, err);
    return rc;
}

struct queued *queue_next(struct queue *queue, uint64_t durable)
{
    struct queued *item;

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
