/*
 * scrapes.c: answers GET /metrics and GET /healthz; web.c has the connections. The driver's loop
 * owns the server. Invariant: a text of metrics that was made is sent for at most FRESH_US, to any
 * number of clients.
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
    /* `texts`: the metrics in both formats; the index is true for OpenMetrics. `made_us`: when each
     * text was made; TIME_NEVER: it was not. */
    struct buf texts[2];
    int64_t made_us[2];
};

#define SCRAPES_USAGE "the driver answers GET /metrics and /healthz\n"

/* Called by web.c for each request: answers it from a text that is still fresh, or makes a new one.
 */
static int scrapes_answer(void *arg, struct web_client *client, const struct http_head *head)
{
    struct scrapes *scrapes = arg;
    struct buf *metrics = &scrapes->texts[head->openmetrics];
    int64_t *made_us = &scrapes->made_us[head->openmetrics];
    int64_t now_us = clock_now_us();
    struct table_facts facts;
    struct core_view view;
    const char *trouble;
    char line[LIMIT_REASON_BYTES + 2];
    int rc = 0;

    if (!strcmp(head->path, "/healthz")) {
        trouble = scrapes->ops->trouble(scrapes->arg);
        snprintf(line, sizeof(line), "%s\n", trouble ? trouble : "ok");
        return web_answer_text(client, trouble ? 503 : 200, line);
    }
    if (strcmp(head->path, "/metrics") != 0)
        return web_answer_text(client, 404, SCRAPES_USAGE);
    if (*made_us == TIME_NEVER || now_us - *made_us >= FRESH_US) {
        core_view_init(&view);
        buf_clear(metrics);
        rc = scrapes->ops->view(scrapes->arg, &view, &facts);
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

/* Makes the server of --metrics, which listens at `place`, with a text of metrics in each format
 * that is not made yet. */
int scrapes_create(struct event_base *base, const struct address *place,
                   const struct scrapes_ops *ops, void *arg, struct scrapes **ret_scrapes,
                   struct hvd_err *err)
{
    static const struct web_ops web_ops = { .option = "--metrics",
                                            .usage = SCRAPES_USAGE,
                                            .clients_max = LIMIT_SCRAPES,
                                            .answer = scrapes_answer };
    struct scrapes *scrapes = mem_zalloc(sizeof(*scrapes));
    int rc;

    if (!scrapes)
        return err_set(err, HVD_E_NOMEM, "%s", err_text(HVD_E_NOMEM));
    scrapes->ops = ops;
    scrapes->arg = arg;
    for (size_t i = 0; i < ARRAY_SIZE(scrapes->texts); i++) {
        buf_init(&scrapes->texts[i], LIMIT_METRICS_BYTES);
        scrapes->made_us[i] = TIME_NEVER;
    }
    rc = web_create(base, place, &web_ops, scrapes, &scrapes->web, err);
    if (rc)
        scrapes_free(scrapes);
    else
        *ret_scrapes = scrapes;
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
