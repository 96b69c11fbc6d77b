/*
 * scrapes.h: the server of --metrics: GET /metrics and GET /healthz over HTTP/1, for Prometheus and
 * for health checks. A request needs no key, so by default only this machine can connect.
 *
 * The limits of connections are those of web.h. The metrics are made at most ten times a second,
 * however many clients ask for them.
 */
#ifndef DRIVER_CONTROL_SCRAPES_H
#define DRIVER_CONTROL_SCRAPES_H

#include "driver/control/tables.h"
#include "driver/core/event.h"
#include "wire/address.h"

struct event_base;
struct scrapes;

struct scrapes_ops {
    /* Makes the view of the job and the facts that tables show; see struct control_ops in
     * control.h. */
    int (*view)(void *arg, struct core_view *ret_view, struct table_facts *ret_facts);
    /* Returns why the driver does not do its work, in words; NULL: it does. */
    const char *(*trouble)(void *arg);
    /* Gives the core an event; page_reply brings the core's answer. Only the page (page.h) uses
     * this function; see control.h. */
    void (*act)(void *arg, const struct event *event);
};

/* Makes the server, which listens at `place`. `ops` is borrowed while the server lives.
 * HVD_E_NOMEM, HVD_E_BUSY, HVD_E_IO. */
int scrapes_create(struct event_base *base, const struct address *place,
                   const struct scrapes_ops *ops, void *arg, struct scrapes **ret_scrapes,
                   struct hvd_err *err) MUST_CHECK;

/* Closes all connections. */
void scrapes_free(struct scrapes *scrapes);

/* Returns the address of the server, "127.0.0.1:9464". */
const char *scrapes_address(const struct scrapes *scrapes);

#endif
