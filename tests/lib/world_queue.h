/*
 * world_queue.h: what is going to happen in a simulated world, by virtual time; and the two things
 * that all events share: the frame they may carry, and the process they happen to.
 *
 * Events of the same microsecond happen in the order in which they were made.
 */
#ifndef TESTS_LIB_WORLD_QUEUE_H
#define TESTS_LIB_WORLD_QUEUE_H

#include "base/time.h"
#include "base/vec.h"
#include "proto/msg.h"

struct world;
struct world_event;

typedef void world_run_fn(struct world *world, struct world_event *event);

/* One message on its way; shared by all that it was sent to. */
struct world_frame {
    unsigned references;
    const struct msg *copied_from; /* valid only while the list that it was made for lives */
    int64_t made_us;               /* of one that a driver made: when */
    struct msg msg;
};

struct world_event {
    int64_t at_us;
    uint64_t order;
    world_run_fn *run;
    void *who;                 /* lives as long as the world */
    struct world_frame *frame; /* may be NULL; whoever keeps it sets it to NULL */
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

/* The memory of the world itself never runs out: when it does, it is not the product's fault. */
void *world_alloc(size_t bytes) MUST_CHECK;
#define WORLD_ITEMS_MAX ((size_t)1 << 24)
void world_need(int rc);
#define WORLD_PUSH(vec) \
    (world_need(VEC_RESERVE(vec, 1, WORLD_ITEMS_MAX)), &(vec)->items[(vec)->count++])

/* codec: through the bytes of the wire and back. */
struct world_frame *frame_make(const struct msg *msg, bool codec);
struct world_frame *frame_keep(struct world_frame *frame);
void frame_drop(struct world_frame *frame); /* NULL is fine */

/* A process: what happens to it while it is frozen happens when it is thawed, in order. */
struct world_process {
    bool alive;
    bool frozen;
    int64_t timer_us; /* of the timer event that is waiting; TIME_NEVER */
    struct world_events held;
};

void process_init(struct world_process *process);
void process_end(struct world_process *process);

/* False: the event is not for now; it was kept, or is dropped because nobody is there. */
bool process_takes(struct world_process *process, struct world_event *event);
void process_freeze(struct world_process *process);
void process_thaw(struct world *world, struct world_process *process);

#endif
