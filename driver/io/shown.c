/*
 * shown.c: shows the state of the core to the parts that look at a job: the tables and the page of
 * an operator, the metrics, the terminal. loop.c calls it, outside of steps of the core. Invariant:
 * no function of this file changes the core, and in a job that runs a failure to show something is
 * no failure of the job.
 */
#include "driver/io/shown.h"

#include "base/hex.h"
#include "base/log.h"
#include "base/text.h"
#include "base/trace.h"
#include "driver/control/summary.h"
#include "driver/io/event_hook.h"
#include "driver/io/event_url.h"
#include "driver/launch/route.h"
#include "os/clock.h"
#include "seal/seal.h"
#include "wire/address.h"
#include "wire/tls.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Makes a view of the core, and the facts about the job that the core does not know. */
int shown_view(const struct core *core, const struct loop_config *config, int64_t started_us,
               struct core_view *ret_view, struct table_facts *ret_facts)
{
    *ret_facts = (struct table_facts){
        .job = config->core->job,
        .state_dir = config->folder,
        .pid = (uint64_t)getpid(),
        .np = config->core->np,
        .min_np = config->core->min_np,
        .max_np = config->core->max_np,
        .now_us = clock_now_us(),
        .started_us = started_us,
        .checkpoint_dir = config->core->checkpoint_dir,
        .output_dir = config->output->folder,
    };
    return core_view(core, ret_view);
}

/* Gives the label of each worker's lines, "[RANK HOST:SLOT]", to the output, from a view of the
 * core.
 */
void shown_label(const struct core *core, struct output *output)
{
    struct core_view view;
    int rc;

    core_view_init(&view);
    rc = core_view(core, &view);
    for (size_t i = 0; !rc && i < view.host_count; i++) {
        const struct view_host *host = &view.hosts[i];

        for (size_t j = 0; j < host->worker_count; j++)
            output_name(output, host->workers[j].incarnation, host->workers[j].rank, host->name,
                        host->workers[j].slot);
    }
    core_view_release(&view);
}

/* Starts what shows the job to the outside: the hooks of events, metrics, their file, the page. At
 * the first failure a driver that begins a job stops, and returns the error. A driver that takes a
 * job over (`resumed`) logs each failure, goes on without that part, and returns 0. */
int shown_serve(struct shown *shown, struct event_base *base, const struct loop_config *config,
                struct events *events, const struct scrapes_ops *ops, void *arg,
                struct hvd_err *err)
{
    char host[ADDRESS_TEXT_MAX];
    uint8_t secret[(PAGE_TOKEN_MAX - 1) / 2];
    struct page_access access = { .control = config->page_control };
    const char *token = shown->token;
    struct hvd_err why;
    int rc = 0;

    if (autopsies_create(config->folder, !config->resumed, &shown->autopsies, &why))
        log_warning(JOB, "the job goes on without autopsies of its workers: %s", why.text);
    /* After a failure (`rc`) each further part is served only in a job that was taken over. */
    if (config->on_event->command) {
        rc = event_hook_create(base, config->on_event, events, &shown->hook, &why);
        if (rc && config->resumed)
            log_warning(JOB, "the job goes on without --on-event: %s", why.text);
    }
    if (config->on_event->url && (!rc || config->resumed)) {
        rc = event_url_create(config->on_event, events, &shown->url_hook, &why);
        if (rc && config->resumed)
            log_warning(JOB, "the job goes on without --on-event-url: %s", why.text);
    }
    if (config->stop) /* a driver that only ends its job serves no metrics and no page */
        return 0;
    if (config->metrics && (!rc || config->resumed))
        rc = scrapes_create(base, config->metrics, ops, arg, &shown->scrapes, &why);
    if (shown->scrapes)
        log_info(JOB, "the metrics are at http://%s/metrics", scrapes_address(shown->scrapes));
    if (rc && config->metrics && config->resumed)
        log_warning(JOB, "the job goes on without metrics: %s", why.text);
    if (config->metrics_textfile && (!rc || config->resumed)) {
        rc = textfile_create(base, config->metrics_textfile, ops, arg, &shown->textfile, &why);
        if (rc && config->resumed)
            log_warning(JOB, "the job goes on without its file of metrics: %s", why.text);
    }
    if (config->page && (!rc || config->resumed)) {
        /* The token is derived from the job's key, so the next driver has the same one, and a page
         * that is open goes on. */
        rc = seal_derive(config->facts->key, TLS_KEY_BYTES, "hvd page", "", 0, secret,
                         sizeof(secret));
        if (!rc &&
            (config->page_control || !route_names_loopback(address_show_host(config->page, host))))
            hex_write(secret, sizeof(secret), shown->token);
        seal_wipe(secret, sizeof(secret));
        access.token = *token ? token : NULL;
        if (rc)
            err_set(&why, rc, "no memory for the token of --page; free memory on this host");
        else
            rc = page_create(base, config->page, &access, events, ops, arg, &shown->page, &why);
        if (rc && config->resumed)
            log_warning(JOB, "the job goes on without the web page of --page: %s", why.text);
    }
    if (shown->page)
        log_info(JOB, "the page is at http://%s/%s%s", page_address(shown->page),
                 *token ? "?token=" : "", token);
    if (rc && !config->resumed)
        *err = why;
    return config->resumed ? 0 : rc;
}

/* The driver ends: metrics and page are closed now. If the job is over, the hooks of events and the
 * file of metrics still get the end of the job, while the event loop runs; shown_free follows.
 * Otherwise the next driver tells about the job. */
void shown_end(struct shown *shown, bool job_is_over)
{
    textfile_end(shown->textfile, job_is_over);
    if (!job_is_over) {
        event_hook_free(shown->hook);
        shown->hook = NULL;
        event_url_free(shown->url_hook);
        shown->url_hook = NULL;
    }
    event_hook_end(shown->hook);
    event_url_end(shown->url_hook);
    scrapes_free(shown->scrapes);
    page_free(shown->page);
    seal_wipe(shown->token, sizeof(shown->token));
}

/* Frees what has still told the end of the job after shown_end. */
void shown_free(struct shown *shown)
{
    event_hook_free(shown->hook);
    event_url_free(shown->url_hook);
    textfile_free(shown->textfile);
    autopsies_free(shown->autopsies);
}

/* Writes the summary of a job that has ended into `summary`, and each of its lines into the events.
 */
void shown_sum_up(const struct core_view *view, const struct table_facts *facts,
                  struct events *events, struct buf *summary)
{
    char text[TRACE_LINE_MAX];
    struct span rest, line;

    if (summary_write(view, facts, summary))
        buf_clear(summary);
    rest = (struct span){ buf_text(summary), summary->length };
    while (span_next(&rest, '\n', &line)) {
        snprintf(text, sizeof(text), "%.*s", (int)line.length, line.at);
        if (line.length)
            events_add(events, TRACE_INFO, FACTS(.kind = KIND_JOB_SUMMARY), text);
    }
}
