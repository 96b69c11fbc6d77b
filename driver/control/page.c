/*
 * page.c: answers GET / with the page for browsers and GET /live with a stream of messages, and
 * gives the core what a POST asks for. web.c has the connections, live.c makes the messages, the
 * folder page/ has the page. The driver's loop owns the server. Invariant: the timer `tick` runs
 * while there are streams, and at most once more after the last one has ended.
 */
#include "driver/control/page.h"

#include "base/limits.h"
#include "base/mem.h"
#include "base/time.h"
#include "discovery/key.h"
#include "driver/control/live.h"
#include "driver/control/page_text.h"
#include "driver/control/web.h"
#include "os/clock.h"

#include <event2/event.h>
#include <stdio.h>
#include <string.h>

/* How long a message that was made is sent again to other viewers: at least FRESH_US, and at least
 * FRESH_COST times as long as it took to make. So making messages takes a bounded part of the
 * driver's time. */
#define FRESH_US   (100 * TIME_MS)
#define FRESH_COST 20
#define BEAT_US    TIME_S /* the time from one message of a stream to the next */
#define PAGE_USAGE "the driver answers GET / and /live\n"

/* The two kinds of messages: the first one that a viewer gets, and those that follow; and how many
 * events each has. */
enum page_message { PAGE_FIRST, PAGE_NEXT, PAGE_MESSAGES };
static const size_t page_events[PAGE_MESSAGES] = { 400, 64 };

struct page {
    struct web *web;
    const char *token; /* the token of the page; NULL: none is needed */
    bool control;      /* the page may change the job */
    bool stopped;      /* a viewer has stopped the job */
    uint64_t last_ask; /* the number of the newest request to the core */
    struct events *events;
    struct events_follower follower;
    const struct scrapes_ops *ops;
    void *arg;
    struct event *tick;              /* the timer of the next message to all streams */
    struct buf texts[PAGE_MESSAGES]; /* the newest message of each kind */
    int64_t made_us[PAGE_MESSAGES];  /* when each message was made; TIME_NEVER: it was not */
    int64_t fresh_us;                /* for how long a message counts as fresh */
    bool hurried; /* the timer is set to an earlier time, because something has happened */
};

/* Makes the message of a kind, unless the last one is still fresh. Returns 0 or HVD_E_NOMEM.
 * PAGE_FIRST also tells the browser whether it may show buttons (event "control"). */
static int page_make(struct page *page, enum page_message which)
{
    struct buf *text = &page->texts[which];
    int64_t now_us = clock_now_us();
    struct table_facts facts;
    struct core_view view;
    int rc;

    if (page->made_us[which] != TIME_NEVER && now_us - page->made_us[which] < page->fresh_us)
        return 0;
    core_view_init(&view);
    buf_clear(text);
    rc = page->ops->view(page->arg, &view, &facts);
    if (!rc)
        rc = buf_append_text(text, "data: ");
    if (!rc)
        rc = live_write(&view, &facts, page->events, page_events[which], text);
    if (!rc)
        rc = buf_append_text(text, "\n\n");
    if (!rc && which == PAGE_FIRST && page->control)
        rc = buf_append_text(text, "event: control\ndata: yes\n\n");
    core_view_release(&view);
    page->made_us[which] = rc ? TIME_NEVER : now_us;
    page->fresh_us = FRESH_COST * (clock_now_us() - now_us);
    if (page->fresh_us < FRESH_US)
        page->fresh_us = FRESH_US;
    return rc;
}

/* Called by the timer: sends the state of the job to all viewers, and sets the timer again. Without
 * memory for the message this message is left out. Without viewers the timer stops. */
static void page_on_tick(evutil_socket_t fd, short what, void *arg)
{
    struct page *page = arg;
    struct timeval later;

    (void)fd;
    (void)what;
    page->hurried = false;
    if (!web_has_streams(page->web))
        return;
    if (!page_make(page, PAGE_NEXT))
        web_publish(page->web, buf_text(&page->texts[PAGE_NEXT]), page->texts[PAGE_NEXT].length);
    later = clock_timeval(page->fresh_us > BEAT_US ? page->fresh_us : BEAT_US);
    event_add(page->tick, &later);
}

/* Called for each new line of the event log: something has happened, so the timer is set to the
 * time at which a new message may be made. The message is not made now, because the step of the
 * core that changes the state is not over. */
static void page_on_line(void *arg, const struct event_line *line)
{
    struct page *page = arg;
    struct timeval soon = clock_timeval(page->fresh_us);

    (void)line;
    if (page->hurried || !web_has_streams(page->web))
        return;
    page->hurried = !event_add(page->tick, &soon);
}

/* True: `given` is equal to the token of this page. All bytes are compared in any case, so the time
 * of the answer does not say how many bytes of a wrong token are right. */
static bool page_is_token(const struct page *page, const char *given)
{
    volatile unsigned difference = 0;

    if (strlen(given) != strlen(page->token))
        return false;
    for (size_t i = 0; given[i]; i++)
        difference |= (unsigned char)(page->token[i] ^ given[i]);
    return difference == 0;
}

/* Carries out a POST of a viewer (`kind`: drain, undrain or stop), if the rules of page.h allow it.
 * A drain or undrain is answered when the core has answered (page_reply), any other request at
 * once. */
static int page_act(struct page *page, struct web_client *client, const struct http_head *head,
                    enum event_kind kind)
{
    struct event event = { .kind = kind, .left_us = TIME_NEVER, .text = "the page", .code = 1 };
    char done[2 * HTTP_BODY_MAX];
    bool stop = kind == EVENT_STOP, stopping = page->stopped;
    struct table_facts facts;
    struct core_view view;
    struct hvd_err err;
    struct key key;
    int rc = 0;

    if (!page->control)
        return web_answer_text(client, 403,
                               "this page only shows the job; start its driver with "
                               "--page-control, or use hvd-elastic drain, undrain and stop\n");
    if (!page_is_token(page, head->bearer))
        return web_answer_text(client, 403,
                               "the header Authorization does not have the token of this page, "
                               "which is in the driver's log\n");
    if (!head->own_origin || !http_host_is_plain(head->host))
        return web_answer_text(client, 403,
                               "a page at another name may not change the job: open this page at a "
                               "numeric address, or at localhost\n");
    /* A second stop would end the job without its checkpoint, or kill the workers at once. Only the
     * verb `stop` may do that, so a stop of a job that is being stopped is not given to the core.
     */
    if (stop) {
        core_view_init(&view);
        rc = page->ops->view(page->arg, &view, &facts);
        stopping = stopping || view.job >= JOB_STOPPING;
        core_view_release(&view);
        snprintf(done, sizeof(done), "the job is being stopped%s\n",
                 stopping ? " already; 'hvd-elastic stop' ends it sooner" : "");
    } else if (key_parse(kind == EVENT_DRAIN ? "drain" : "undrain", head->body, &key, &err)) {
        snprintf(done, sizeof(done), "%s\n", err.text);
        return web_answer_text(client, 400, done);
    } else {
        event.host = key.host;
        event.slot = key.slot;
        /* The bit PAGE_ASK tells requests of the page from those of control.c. */
        event.ask = PAGE_ASK | ++page->last_ask;
        snprintf(done, sizeof(done), "%.*s %s\n", HTTP_BODY_MAX / 2, head->body,
                 kind == EVENT_DRAIN ? "is being drained" : "may be used again");
    }
    if (rc)
        return web_answer_text(client, 503, "the driver has no memory for the request\n");
    rc = web_answer_text(client, 200, done);
    if (rc || (stop && stopping))
        return rc;
    page->stopped = stop || page->stopped;
    if (!stop)
        web_wait(client, event.ask);
    page->ops->act(page->arg, &event); /* the core does not answer a stop */
    return 0;
}

/* Sends the core's answer to the viewer whose request has the number `ask`. Its code becomes the
 * status of the HTTP answer. */
void page_reply(struct page *page, uint64_t ask, int code, const char *text)
{
    char line[LIMIT_REASON_BYTES + LIMIT_HOST_NAME_BYTES];

    if (!page)
        return;
    snprintf(line, sizeof(line), "%s\n", *text ? text : err_text(code));
    web_reply(page->web, ask,
              !code                    ? 200
              : code == HVD_E_NOTFOUND ? 404
              : code == HVD_E_BUSY     ? 503
                                       : 409,
              line);
}

/* Called by web.c for each request: answers it, or begins a stream of messages (GET /live). If the
 * page has a token, a request without it is refused; if the page has none, a request is refused
 * whose Host is neither localhost nor a numeric address. */
static int page_answer(void *arg, struct web_client *client, const struct http_head *head)
{
    static const char wanted[] =
        "open the address that the driver's log names: it ends in the token of this page\n";
    static const char named[] = "this page needs no token, so it is only for browsers that name "
                                "localhost or a numeric address\n";
    static const struct {
        const char *path;
        enum event_kind kind;
    } acts[] = {
        {"/drain",    EVENT_DRAIN  },
        { "/undrain", EVENT_UNDRAIN},
        { "/stop",    EVENT_STOP   },
    };
    struct page *page = arg;
    struct timeval beat = clock_timeval(BEAT_US);

    for (size_t i = 0; i < ARRAY_SIZE(acts); i++)
        if (!strcmp(head->path, acts[i].path))
            return head->post ? page_act(page, client, head, acts[i].kind)
                              : web_answer(client, 405, "text/plain; charset=utf-8",
                                           "Allow: POST\r\n", PAGE_USAGE, strlen(PAGE_USAGE));
    if (head->post)
        return web_answer_text(client, 405, PAGE_USAGE);
    if (page->token && !page_is_token(page, head->token))
        return web_answer_text(client, 403, wanted);
    if (!page->token && !http_host_is_plain(head->host))
        return web_answer_text(client, 403, named);
    if (!strcmp(head->path, "/"))
        return web_answer(client, 200, "text/html; charset=utf-8", page_headers,
                          (const char *)page_text, page_text_length);
    if (strcmp(head->path, "/live") != 0)
        return web_answer_text(client, 404, PAGE_USAGE);
    /* The message is made, and the timer is started, only if web_stream can begin a stream. */
    if (!head->only_head && web_has_room(page->web)) {
        if (page_make(page, PAGE_FIRST))
            return web_answer_text(client, 503, "the driver has no memory for the state\n");
        if (!event_pending(page->tick, EV_TIMEOUT, NULL) && event_add(page->tick, &beat))
            return HVD_E_NOMEM;
    }
    return web_stream(client, buf_text(&page->texts[PAGE_FIRST]), page->texts[PAGE_FIRST].length);
}

/* Makes the server of --page. access->control needs a token: without a token the page cannot change
 * the job. */
int page_create(struct event_base *base, const struct address *place,
                const struct page_access *access, struct events *events,
                const struct scrapes_ops *ops, void *arg, struct page **ret_page,
                struct hvd_err *err)
{
    static const struct web_ops web_ops = { .option = "--page",
                                            .usage = PAGE_USAGE,
                                            .clients_max = LIMIT_VIEWER_REQUESTS,
                                            .streams_max = LIMIT_VIEWERS,
                                            .posts = true,
                                            .answer = page_answer };
    struct page *page = mem_zalloc(sizeof(*page));
    int rc;

    if (!page)
        return err_set(err, HVD_E_NOMEM, "%s", err_text(HVD_E_NOMEM));
    page->token = access->token;
    page->control = access->control && access->token;
    page->ops = ops;
    page->arg = arg;
    page->events = events;
    page->fresh_us = FRESH_US;
    page->follower = (struct events_follower){ .line = page_on_line, .arg = page };
    for (size_t i = 0; i < PAGE_MESSAGES; i++) {
        buf_init(&page->texts[i], LIMIT_LIVE_BYTES);
        page->made_us[i] = TIME_NEVER;
    }
    events_follow(events, &page->follower);
    page->tick = event_new(base, -1 /* a timer */, 0, page_on_tick, page);
    rc = page->tick ? web_create(base, place, &web_ops, page, &page->web, err)
                    : err_set(err, HVD_E_NOMEM, "%s", err_text(HVD_E_NOMEM));
    if (rc)
        page_free(page);
    else
        *ret_page = page;
    return rc;
}

void page_free(struct page *page)
{
    if (!page)
        return;
    web_free(page->web);
    events_unfollow(&page->follower);
    if (page->tick)
        event_free(page->tick);
    for (size_t i = 0; i < PAGE_MESSAGES; i++)
        buf_release(&page->texts[i]);
    mem_free(page);
}

const char *page_address(const struct page *page)
{
    return web_address(page->web);
}
