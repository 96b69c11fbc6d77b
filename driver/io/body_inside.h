/*
 * body_inside.h: what the parts of the body share. Private to driver/io/body*.c.
 */
#ifndef DRIVER_IO_BODY_INSIDE_H
#define DRIVER_IO_BODY_INSIDE_H

#include "driver/ask/control.h"
#include "driver/ask/events.h"
#include "driver/core/core.h"
#include "driver/hosts/reach.h"
#include "driver/io/alarms.h"
#include "driver/io/body.h"
#include "driver/io/queue.h"
#include "driver/io/server.h"

struct reached; /* body_hosts.c */

struct body {
    const struct body_config *config;
    struct body_end *end;
    struct hvd_err *err;
    int failed; /* the code with which it cannot go on; 0 */

    struct event_base *base;
    struct alarms *alarms;
    struct tls *tls;
    struct server *server;
    struct scribe *scribe;
    struct discoverer *discoverer;
    struct reach *reach;
    struct launcher *launcher;
    struct output *output;
    struct control *control;
    struct events *events;

    struct core *core;
    struct trace trace;
    struct action_list actions;
    struct queue queue;
    uint64_t durable;
    uint64_t last_words; /* the record after which nothing is waited for; 0: not over */
    bool open;           /* the term is on disk: events may come */
    bool stepping;       /* inside the core */
    bool performing;     /* what the core wanted is being done */
    int stop_asked;      /* by a signal that came before it was open; 0 */

    int64_t started_us;
    int64_t tell_at_us;        /* when agents that have not come back are told where we are */
    struct VEC(char *) wanted; /* hosts that are to have an agent once they are found */
    struct VEC(struct reached *) held; /* loopback hosts that wait for what the scout says */
    char *scout;                       /* a host that is looked up for them; NULL: none */
    char outward[REACH_ADDRESS_MAX];   /* where other machines reach us; "": no need is known */
    uint16_t port;
    bool labels_old;
    int64_t labels_us; /* when they were looked up */
};

/* body.c */
void body_step(struct body *body, struct event *event);
void body_fail(struct body *body, int code);                    /* body->err says why */
void body_stop(struct body *body, int signal, const char *who); /* the first time; then at once */

/* body_hosts.c: agents: where they are, and getting them started */
int body_hosts_create(struct body *body);
void body_hosts_free(struct body *body);
void body_hosts_start(struct body *body, const char *host);
void body_hosts_open(struct body *body); /* those that a former driver had dial us again */
void body_hosts_look(struct body *body); /* or are told where we are */

/* body_words.c: what is shown of workers and of the core's decisions */
int body_words_create(struct body *body);
void body_words_free(struct body *body);
void body_words_take(struct body *body, const struct msg *msg);
void body_words_launched(struct body *body, const struct msg *launch);

/* body_ask.c: operators */
int body_ask_create(struct body *body);
void body_ask_free(struct body *body);

#endif
