/*
 * queue.h: the actions of the core in their order (driver/core/action.h). Records go at once to the
 * scribe, the thread that writes the journal (driver/journal/scribe.h). Every other action waits
 * here until the records before it are durable.
 */
#ifndef DRIVER_IO_QUEUE_H
#define DRIVER_IO_QUEUE_H

#include "base/list.h"
#include "driver/core/action.h"
#include "driver/io/server.h"
#include "driver/journal/scribe.h"

/* The bytes of a frame (an encoded message); several queued items may share them. */
struct frame_text {
    unsigned refs; /* how many items have the frame */
    struct buf bytes;
};

struct queued {
    struct list chain;
    uint64_t needs;   /* the number of the newest record that stands before this action */
    int64_t since_us; /* when the core returned the action */
    enum action_kind kind;
    struct peer *peer;  /* the connection of a SEND or CLOSE */
    enum msg_type type; /* type of the message of a SEND, and the message as a frame */
    struct frame_text *frame;
    int code; /* `code`, `ask` and `number` are those of the action, see action.h */
    uint64_t ask;
    uint64_t number;
    const struct checkpoint_done *checkpoint; /* borrowed from the core, see action.h */
    char *text; /* the text of the action; for a START_AGENT or a KEY the name of the host */
};

struct queue {
    struct list waiting;
    struct list urgent; /* actions with `overtakes`: they wait only for the record `first` */
    struct scribe *scribe;
    struct server *server;
    uint64_t first; /* the number of the TERM record: no action is done before it is durable */
    uint64_t last;  /* the number of the newest record */
};

/* Initialises an empty queue. The scribe and the server are borrowed until queue_release. */
void queue_init(struct queue *queue, struct scribe *scribe, struct server *server);
void queue_release(struct queue *queue);

/* The callback that completes the message of a SEND, when that message is encoded: it adds what the
 * core must not know. A LAUNCH gets argv, env and cwd, a ROUND or PREPARE gets its secret if
 * action->secret is true. *ret_whole is a copy of the message; what the callback adds is borrowed
 * until the next call. */
typedef int queue_complete_fn(void *arg, const struct action *action, struct msg *ret_whole);

/* Puts the actions of one step of the core, made at now_us, into the queue, and gives its records
 * to the scribe. Returns 0, HVD_E_NOMEM, HVD_E_LIMIT or a code of msg_encode. After a failure the
 * driver cannot go on, because an agent would miss a message that it needs. */
int queue_take(struct queue *queue, const struct action_list *list, int64_t now_us,
               queue_complete_fn *complete, void *arg, struct hvd_err *err) MUST_CHECK;

/* Returns the next action that may be carried out when all records up to `durable` are on disk.
 * NULL: no action may. The caller frees the action with queued_free. */
struct queued *queue_next(struct queue *queue, uint64_t durable);
void queued_free(struct queued *item);

/* Returns for how long the oldest action has waited for its records, when all records up to
 * `durable` are on disk; 0: no action waits. */
int64_t queue_held_us(const struct queue *queue, uint64_t durable, int64_t now_us);

#endif
