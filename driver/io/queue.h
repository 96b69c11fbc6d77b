/*
 * queue.h: what the core wants done, in its order, and nothing before what it rests on is on disk
 * (driver/core/action.h). Records go to the scribe as they come; what follows waits for them here.
 */
#ifndef DRIVER_IO_QUEUE_H
#define DRIVER_IO_QUEUE_H

#include "base/list.h"
#include "driver/core/action.h"
#include "driver/io/server.h"
#include "driver/journal/scribe.h"

/* A frame that many may be sent. */
struct frame_text {
    unsigned refs;
    struct buf bytes;
};

struct queued {
    struct list chain;
    uint64_t needs; /* the last record before it */
    enum action_kind kind;
    struct peer *peer; /* SEND, CLOSE */
    enum msg_type type;
    struct frame_text *frame;
    int code;
    uint64_t ask;
    char *text; /* of a START_AGENT: its host */
};

struct queue {
    struct list waiting;
    struct list urgent; /* what may overtake */
    struct scribe *scribe;
    struct server *server;
    uint64_t first; /* the TERM: before it nothing at all is done */
    uint64_t last;  /* the newest record */
};

/* Both are borrowed until queue_release. */
void queue_init(struct queue *queue, struct scribe *scribe, struct server *server);
void queue_release(struct queue *queue);

/* Fills in what the core leaves to us in a LAUNCH: argv, env, cwd. */
typedef void queue_launch_fn(void *arg, const struct msg *launch, struct msg *ret_whole);

/* Takes the actions of one step. 0, HVD_E_NOMEM, or what msg_encode says: then the driver cannot go
 * on, as somebody would not be told what he must know. */
int queue_take(struct queue *queue, const struct action_list *list, queue_launch_fn *launch,
               void *arg, struct hvd_err *err) MUST_CHECK;

/* The next one that may be done, now that all is durable up to there; NULL: it has to wait. Given:
 * queued_free. */
struct queued *queue_next(struct queue *queue, uint64_t durable);
void queued_free(struct queued *item);

#endif
