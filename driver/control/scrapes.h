/*
 * scrapes.h: the server of --metrics: GET /metrics and GET /healthz over HTTP/1, for Prometheus
 * and for checks of health. It needs no key, so by default only this machine can ask.
 *
 * The limits of connections are those of web.h. The metrics are made at most ten times a second,
 * however many ask for them.
 */
#ifndef DRIVER_CONTROL_SCRAPES_H
#define DRIVER_CONTROL_SCRAPES_H

#include "driver/control/tables.h"
#include "driver/core/event.h"
#include "wire/address.h"

struct event_base;
struct scrapes;

struct scrapes_ops {
    /* As in control.h. */
    int (*view)(void *arg, struct core_view *ret_view, struct table_facts *ret_facts);
    /* NULL: the driver does its work; else why it does not, in words. */
    const char *(*trouble)(void *arg);
    /* As in control.h; page_reply answers. Only the page uses it. */
    void (*act)(void *arg, const struct event *event);
};

/* Listens. `ops` is borrowed while the server lives. HVD_E_NOMEM, HVD_E_BUSY, HVD_E_IO. */
int scrapes_create(struct event_base *base, const struct address *place,
                   const struct scrapes_ops *ops, void *arg, struct scrapes **ret_scrapes,
                   struct hvd_err *err) MUST_CHECK;

/* Closes all connections. */
void scrapes_free(struct scrapes *scrapes);

/* Returns "127.0.0.1:9464". */
const char *scrapes_address(const struct scrapes *scrapes);

#endif
