/*
 * page.h: the server of --page: a page for browsers at "/", and at "/live" the state of the job as
 * server-sent events: a message at once, after each event of the job, and each second. web.h has
 * the limits of connections; there are at most LIMIT_VIEWERS viewers.
 *
 * Without a token, a request must name the host "localhost" or a numeric address, so that no page
 * of another site can read this page by a host name of its own that leads here. With a token, each
 * request must have it.
 *
 * With `control` the page drains and undrains hosts and stops the job: POST /drain and /undrain
 * with HOST or HOST:SLOT as the body, and POST /stop. Such a request needs the token as
 * "Authorization: Bearer", never in its address; a numeric Host, or localhost; and no Origin of
 * another server. It gets one answer, when the change is durable. Without `control` the page
 * changes nothing.
 *
 * A message is made once for all viewers, and only while there are viewers; making messages takes
 * at most a tenth of the driver's time.
 */
#ifndef DRIVER_CONTROL_PAGE_H
#define DRIVER_CONTROL_PAGE_H

#include "driver/control/events.h"
#include "driver/control/scrapes.h"

struct page;

#define PAGE_TOKEN_MAX 33

/* A request of the page to the core has a number with this bit; no other request has it. */
#define PAGE_ASK (UINT64_C(1) << 63)

struct page_access {
    const char *token; /* the token that each request must have; NULL: none is needed */
    bool control;      /* true: the page may change the job; only with a token */
};

/* Makes the server, which listens at `place`. `ops`, `events` and the token are borrowed while the
 * server lives. HVD_E_NOMEM, HVD_E_BUSY, HVD_E_IO. */
int page_create(struct event_base *base, const struct address *place,
                const struct page_access *access, struct events *events,
                const struct scrapes_ops *ops, void *arg, struct page **ret_page,
                struct hvd_err *err) MUST_CHECK;

void page_free(struct page *page);

/* Called when the core has answered the request `ask` of a viewer: sends the viewer the answer, if
 * the viewer is still connected. `page` NULL: does nothing. */
void page_reply(struct page *page, uint64_t ask, int code, const char *text);

/* Returns the address of the server, "127.0.0.1:8080". */
const char *page_address(const struct page *page);

#endif
