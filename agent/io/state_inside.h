/*
 * state_inside.h: what the files behind state_thread.h share.
 *
 *     asked ──the thread takes it──► running ──ended──► answered ──told in the agent's loop──►
 * freed
 *
 * A fetch is in one of the three lists, all under the mutex. What else is in it belongs to the side
 * that has it then, but for `forgotten`: the agent's loop sets that at any time.
 */
#ifndef AGENT_IO_STATE_INSIDE_H
#define AGENT_IO_STATE_INSIDE_H

#include "agent/io/state_thread.h"
#include "base/list.h"
#include "base/vec.h"
#include "wire/listener.h"

#include <event2/event.h>
#include <pthread.h>
#include <stdatomic.h>

struct fetch;

struct state_thread {
    struct state_config config;
    const struct state_ops *ops;
    void *arg;
    pthread_t thread;

    pthread_mutex_t mutex; /* of what follows, up to the next empty line; held for a moment only */
    pthread_cond_t listened;
    struct list asked;   /* struct fetch, the oldest first; as in running and answered */
    struct list running; /* at most one of each `who` */
    struct list answered;
    char wanted[ADDRESS_TEXT_MAX];  /* a host to listen at; "": none */
    char address[ADDRESS_TEXT_MAX]; /* "": nowhere */
    bool stopping;

    int to_thread; /* eventfds, of what is in the lists */
    int to_loop;
    struct event *told; /* in the agent's loop */
    char shown[ADDRESS_TEXT_MAX];

    struct event_base *base; /* the thread's, as all that follows */
    struct event *woken;
    struct VEC(struct listener *) listeners;
    struct list servings;
    size_t serving_count;
};

/* state_thread.c */
void state_answer(struct fetch *fetch); /* from running to answered */

/* state_serve.c: commits of ours, for others */
void serve_accepted(void *arg, struct conn *conn);
void serve_end(struct state_thread *thread); /* all of it */

/* state_fetch.c */
struct fetch *fetch_create(struct state_thread *thread, uint64_t who, uint32_t slot,
                           const struct msg *msg) MUST_CHECK;
void fetch_free(struct fetch *fetch);
void fetch_begin(struct fetch *fetch);  /* running; ends by itself */
void fetch_forget(struct fetch *fetch); /* in any list, from the agent's loop */
void fetch_tell(struct fetch *fetch);   /* answered; in the agent's loop */

#endif
