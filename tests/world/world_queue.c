/*
 * world_queue.c: the queue of a world's events by virtual time, frames that pass through the real
 * codec, and processes that can die or freeze.
 */
#include "tests/world/world_queue.h"

#include "base/mem.h"
#include "base/panic.h"
#include "proto/codec.h"
#include "tests/world/world_state.h"

#include <string.h>

void *world_alloc(size_t bytes)
{
    void *block = mem_zalloc(bytes);

    ASSERT(block);
    return block;
}

void world_need(int rc)
{
    if (rc)
        PANIC("the world has grown past its memory");
}

static bool earlier(const struct world_event *left, const struct world_event *right)
{
    return left->at_us != right->at_us ? left->at_us < right->at_us : left->order < right->order;
}

void queue_push(struct world_queue *queue, struct world_event event)
{
    struct world_event *items;
    size_t at = queue->heap.count;

    event.order = queue->order++;
    (void)WORLD_PUSH(&queue->heap);
    items = queue->heap.items;
    while (at > 0 && earlier(&event, &items[(at - 1) / 2])) {
        items[at] = items[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    items[at] = event;
}

bool queue_pop(struct world_queue *queue, struct world_event *ret_event)
{
    struct world_event *items = queue->heap.items;
    struct world_event last;
    size_t at = 0;

    if (!queue->heap.count)
        return false;
    *ret_event = items[0];
    last = items[--queue->heap.count];
    for (;;) {
        size_t child = 2 * at + 1;

        if (child >= queue->heap.count)
            break;
        if (child + 1 < queue->heap.count && earlier(&items[child + 1], &items[child]))
            child++;
        if (!earlier(&items[child], &last))
            break;
        items[at] = items[child];
        at = child;
    }
    if (queue->heap.count)
        items[at] = last;
    return true;
}

void queue_release(struct world_queue *queue)
{
    for (size_t i = 0; i < queue->heap.count; i++)
        frame_drop(queue->heap.items[i].frame);
    VEC_RELEASE(&queue->heap);
}

/* ---- frames --------------------------------------------------------------------------------- */

/* Encodes a message, reads the frame back and decodes the frame, as a real sender and receiver
 * do. */
static void through_the_wire(const struct msg *msg, struct msg *ret_msg)
{
    struct hvd_err err = { .code = 0 };
    struct frame_reader reader;
    const uint8_t *bytes;
    struct frame frame;
    struct buf buf;
    size_t length;

    buf_init(&buf, LIMIT_FRAME_BODY_BYTES + FRAME_HEADER_BYTES);
    frame_reader_init(&reader, LIMIT_FRAME_BODY_BYTES);
    if (msg_encode(msg, &buf, &err))
        PANIC("a message that cannot be sent: %s", err.text);
    bytes = (const uint8_t *)buf.data;
    length = buf.length;
    if (frame_feed(&reader, &bytes, &length, &frame, &err) != 1 ||
        msg_decode(&frame, ret_msg, &err))
        PANIC("a message that cannot be read: %s", err.text);
    frame_reader_release(&reader);
    buf_release(&buf);
}

struct world_frame *frame_make(const struct msg *msg, bool codec)
{
    struct world_frame *frame = world_alloc(sizeof(*frame));

    frame->references = 1;
    if (codec)
        through_the_wire(msg, &frame->msg);
    else if (msg_copy(msg, &frame->msg))
        PANIC("memory is out");
    return frame;
}

struct world_frame *frame_keep(struct world_frame *frame)
{
    frame->references++;
    return frame;
}

void frame_drop(struct world_frame *frame)
{
    if (!frame || --frame->references)
        return;
    msg_release(&frame->msg);
    mem_free(frame);
}

/* ---- processes ------------------------------------------------------------------------------ */

void process_init(struct world_process *process)
{
    *process = (struct world_process){ .alive = true, .timer_us = TIME_NEVER };
}

void process_end(struct world_process *process)
{
    for (size_t i = 0; i < process->held.count; i++)
        frame_drop(process->held.items[i].frame);
    VEC_RELEASE(&process->held);
    process->alive = false;
    process->frozen = false;
}

bool process_takes(struct world_process *process, struct world_event *event)
{
    if (!process->alive)
        return false;
    if (!process->frozen)
        return true;
    *WORLD_PUSH(&process->held) = *event;
    event->frame = NULL;
    return false;
}

void process_freeze(struct world_process *process)
{
    if (process->alive)
        process->frozen = true;
}

void process_thaw(struct world *world, struct world_process *process)
{
    if (!process->alive || !process->frozen)
        return;
    process->frozen = false;
    for (size_t i = 0; i < process->held.count; i++) {
        process->held.items[i].at_us = world->now_us;
        queue_push(&world->queue, process->held.items[i]);
    }
    process->held.count = 0;
}
