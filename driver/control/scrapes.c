/*
 * scrapes.c: answers GET /metrics and GET /healthz; web.c has the connections. The driver's loop
 * owns the server. Invariant: a text of metrics is given out for at most FRESH_US.
 */
#include "driver/control/scrapes.h"

#include "base/limits.h"
#include "base/mem.h"
#include "base/time.h"
#include "driver/control/metrics.h"
#include "driver/control/web.h"
#include "os/clock.h"

#include <stdio.h>
#include <string.h>

#define FRESH_US (100 * TIME_MS)

struct scrapes {
    const struct scrapes_ops *ops;
    void *arg;
    struct web *web;
    /* texts: the metrics in both formats. made_us: when each text was made; TIME_NEVER: it was
     * never made. */
    struct buf texts[2];
    int64_t made_us[2];
};

#define SCRAPES_USAGE "the driver answers GET /metrics and /healthz\n"

static int scrapes_answer(void *arg, struct web_client *client, const struct http_head *head)
{
    struct scrapes *own = arg;
    struct buf *metrics = &own->texts[head->openmetrics];
    int64_t *made_us = &own->made_us[head->openmetrics];
    int64_t now_us = clock_now_us();
    struct table_facts facts;
    struct core_view view;
    const char *trouble;
    char line[LIMIT_REASON_BYTES + 2];
    int rc = 0;

    if (!strcmp(head->path, "/healthz")) {
        trouble = own->ops->trouble(own->arg);
        snprintf(line, sizeof(line), "%s\n", trouble ? trouble : "ok");
        return web_answer_text(client, trouble ? 503 : 200, line);
    }
    if (strcmp(head->path, "/metrics") != 0)
        return web_answer_text(client, 404, SCRAPES_USAGE);
    if (*made_us == TIME_NEVER || now_us - *made_us >= FRESH_US) {
        core_view_init(&view);
        buf_clear(metrics);
        rc = own->ops->view(own->arg, &view, &facts);
        if (!rc)
            rc = metrics_write(&view, &facts, head->openmetrics, metrics);
        core_view_release(&view);
        *made_us = rc ? TIME_NEVER : now_us;
    }
    if (rc)
        return web_answer_text(client, 503, "the driver has no memory for the metrics\n");
    return web_answer(client, 200, metrics_type(head->openmetrics), "", buf_text(metrics),
                      metrics->length);
}

int scrapes_create(struct event_base *base, const struct address *place,
                   const struct scrapes_ops *ops, void *arg, struct scrapes **ret_scrapes,
                   struct hvd_err *err)
{
    static const struct web_ops web_ops = { .option = "--metrics",
                                            .usage = SCRAPES_USAGE,
                                            .clients_max = LIMIT_SCRAPES,
                                            .answer = scrapes_answer };
    struct scrapes *own = mem_zalloc(sizeof(*own));
    int rc;

    if (!own)
        return err_set(err, HVD_E_NOMEM, "%s", err_text(HVD_E_NOMEM));
    own->ops = ops;
    own->arg = arg;
    for (size_t i = 0; i < ARRAY_SIZE(own->texts); i++) {
        buf_init(&own->texts[i], LIMIT_METRICS_BYTES);
        own->made_us[i] = TIME_NEVER;
    }
    rc = web_create(base, place, &web_ops, own, &own->web, err);
    if (rc)
        scrapes_free(own);
    else
        *ret_scrapes = own;
    return rc;
}

void scrapes_free(struct scrapes *scrapes)
{
    if (!scrapes)
        return;
    web_free(scrapes->web);
    for (size_t i = 0; i < ARRAY_SIZE(scrapes->texts); i++)
        buf_release(&scrapes->texts[i]);
    mem_free(scrapes);
}

const char *scrapes_address(const struct scrapes *scrapes)
{
    return web_address(scrapes->web);
}
