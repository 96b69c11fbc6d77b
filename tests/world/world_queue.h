/*
 * world_queue.h: the queue of future events of a simulated world, by virtual time; and two things
 * that all events share: the frame that an event may carry, and the process to which it happens.
 *
 * Events of the same microsecond happen in the order in which they were queued.
 */
#ifndef TESTS_WORLD_WORLD_QUEUE_H
#define TESTS_WORLD_WORLD_QUEUE_H

#include "base/time.h"
#include "base/vec.h"
#include "proto/msg.h"

struct world;
struct world_event;

typedef void world_run_fn(struct world *world, struct world_event *event);

/* One message under way, shared by all connections to which it was sent. */
struct world_frame {
    unsigned references;
    /* the message in the action list from which this frame was copied; valid only while that list
     * lives */
    const struct msg *copied_from;
    int64_t made_us; /* when a driver made the frame; only for a driver's frames */
    bool lie;        /* the driver must refuse the message (world_liar.c) */
    struct msg msg;
};

struct world_event {
    int64_t at_us;
    uint64_t order;
    world_run_fn *run;
    void *who; /* the object to which the event happens; lives as long as the world */
    /* may be NULL; a handler that keeps the frame sets this field to NULL */
    struct world_frame *frame;
    uint64_t number;
};

struct world_events VEC(struct world_event);

struct world_queue {
    struct world_events heap;
    uint64_t order;
};

void queue_release(struct world_queue *queue);
void queue_push(struct world_queue *queue, struct world_event event);
bool queue_pop(struct world_queue *queue, struct world_event *ret_event);

/* Memory of the world itself: its allocations never fail on purpose. A real lack of memory ends the
 * test. */
void *world_alloc(size_t bytes) MUST_CHECK;
#define WORLD_ITEMS_MAX ((size_t)1 << 24)
void world_need(int rc);
#define WORLD_PUSH(vec) \
    (world_need(VEC_RESERVE(vec, 1, WORLD_ITEMS_MAX)), &(vec)->items[(vec)->count++])

/* codec: encode and decode the message, as on the wire. */
struct world_frame *frame_make(const struct msg *msg, bool codec);
struct world_frame *frame_keep(struct world_frame *frame);
void frame_drop(struct world_frame *frame); /* NULL is allowed */

/* A process. An event that comes while it is frozen happens after the thaw, in the same order. */
struct world_process {
    bool alive;
    bool frozen;
    int64_t timer_us; /* when the pending timer event happens; TIME_NEVER: none is pending */
    struct world_events held;
};

void process_init(struct world_process *process);
void process_end(struct world_process *process);

/* false: the process is frozen (the event is kept) or gone (the event is dropped). */
bool process_takes(struct world_process *process, struct world_event *event);
void process_freeze(struct world_process *process);
void process_thaw(struct world *world, struct world_process *process);

#endif
