/*
 * event_post.h: posts one event at a time to the server of --on-event-url, and judges the answer.
 * A post blocks, so only the thread of event_url.c calls event_post_send.
 */
#ifndef DRIVER_IO_EVENT_POST_H
#define DRIVER_IO_EVENT_POST_H

#include "driver/io/event_queue.h"

struct event_post;

enum post_verdict {
    POST_TOLD,   /* 200 to 299: the server has the event */
    POST_LATER,  /* no answer, 429, 502, 503 or 504: the server takes no event now */
    POST_BROKEN, /* 500, or no answer in HTTP: the server has failed, perhaps due to this event */
    POST_REFUSED /* any other status: a repeat is of no use */
};

/* Reads the URL and the file of headers (event_target.h), and makes an HTTP client. The config is
 * borrowed during the call. */
int event_post_create(const struct event_hook_config *config, struct event_post **ret_post,
                      struct hvd_err *err) MUST_CHECK;
void event_post_free(struct event_post *post);

/* The server, for the log: "https://hooks.example:8443". */
const char *event_post_name(const struct event_post *post);

/* Posts the line and waits for the answer, for at most limit_us. Unless the verdict is POST_TOLD,
 * the err names the server, what it has done, and the remedy. *ret_after_us: how long the server
 * asks to be left alone, at most EVENT_POST_AFTER_US; 0: it does not. */
#define EVENT_POST_AFTER_US (300 * INT64_C(1000000))
enum post_verdict event_post_send(struct event_post *post, const struct buf *line, int64_t limit_us,
                                  int64_t *ret_after_us, struct hvd_err *err);

/* Called by another thread: the post that runs fails, and so does each later one. */
void event_post_stop(struct event_post *post);

#endif
