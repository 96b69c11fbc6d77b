/*
 * shown.h: what the loop makes of views of the core: facts for tables, labels of the workers'
 * output, metrics, the page, the hooks of events, and the summary at the end of a job.
 */
#ifndef DRIVER_IO_SHOWN_H
#define DRIVER_IO_SHOWN_H

#include "driver/control/autopsies.h"
#include "driver/control/events.h"
#include "driver/control/page.h"
#include "driver/control/scrapes.h"
#include "driver/control/textfile.h"
#include "driver/core/core.h"
#include "driver/io/loop.h"

/* Makes the view, which the caller has initialised, and the facts for an answer to an operator.
 * started_us: when this driver began. */
int shown_view(const struct core *core, const struct loop_config *config, int64_t started_us,
               struct core_view *ret_view, struct table_facts *ret_facts) MUST_CHECK;

/* Tells the output the rank, host and slot of each worker, for the labels of its lines. If no
 * memory is left the old labels stay. */
void shown_label(const struct core *core, struct output *output);

/* shown_serve serves the metrics of --metrics and the page of --page, writes the file of
 * --metrics-textfile, tells events to --on-event and --on-event-url, and keeps autopsies of
 * workers. If one of these cannot be served, a driver that takes a job over only logs it, because
 * the job matters more; at the beginning of a job it is an error. After shown_end nothing is
 * served, also if shown_serve has failed or was not called. */
struct shown {
    int64_t started_us;          /* when this driver began; the caller fills it in */
    struct scrapes *scrapes;     /* serves --metrics; NULL: no metrics are served */
    struct textfile *textfile;   /* writes --metrics-textfile; NULL: no such file */
    struct page *page;           /* serves --page; NULL: no page */
    char token[PAGE_TOKEN_MAX];  /* the secret that the page asks for; "": none */
    struct autopsies *autopsies; /* NULL: what dead workers were doing is not kept */
    struct event_hook *hook;     /* runs the command of --on-event; NULL: there is none */
    struct event_url *url_hook;  /* posts to --on-event-url; NULL: there is no URL */
};
int shown_serve(struct shown *shown, struct event_base *base, const struct loop_config *config,
                struct events *events, const struct scrapes_ops *ops, void *arg,
                struct hvd_err *err) MUST_CHECK;
void shown_end(struct shown *shown, bool job_is_over);
/* Frees what shown_end has left to the event loop and to the disk, if the job is over: the last
 * calls of --on-event and posts to --on-event-url, the last metrics of --metrics-textfile, and the
 * last autopsies. */
void shown_free(struct shown *shown);

/* Writes the summary of a job that has ended, also into the events. A summary that lacks memory is
 * left out. */
void shown_sum_up(const struct core_view *view, const struct table_facts *facts,
                  struct events *events, struct buf *summary);

#endif
