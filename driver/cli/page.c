/*
 * page.c: the verb "page": writes the page of a job, living or ended, as one file for browsers. A
 * living driver says what it knows now; without a driver the job's journal tells what the last
 * driver knew. The history of the job comes from events.log in the job's folder. Invariant:
 * standard output gets a whole page, or nothing unless writing fails.
 */
#include "driver/cli/verbs.h"

#include "base/limits.h"
#include "driver/cli/client.h"
#include "driver/cli/job_log.h"
#include "driver/control/json.h"
#include "driver/control/live.h"
#include "driver/control/page_file.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Appends the history of the job to `out`, as the JSON object of history.h. folder NULL: the job
 * has no folder here, so the history is empty. */
static int page_history(const char *folder, struct buf *out, struct hvd_err *err)
{
    struct job_log log;
    int rc = job_log_read(folder, &log, err);

    if (!rc) {
        rc = history_write(log.texts, log.since, out);
        if (rc)
            err_set(err, rc, "%s", err_text(rc));
    }
    job_log_release(&log);
    return rc;
}

/* Prints the page, or with --json only its data. The page is refused on a terminal: an operator
 * could not read it there, and its texts could control the terminal. `live` is a message of live.h,
 * as another process has sent it; facts NULL: the job's driver lives. */
static int page_print(const struct cli_request *request, const char *folder, const struct buf *live,
                      const struct table_facts *facts, struct hvd_err *err)
{
    struct buf data, page;
    const struct buf *out = request->options.json ? &data : &page;
    struct json json = { .out = &data };
    int rc;

    if (isatty(STDOUT_FILENO) && !request->options.json)
        return err_set(err, HVD_E_INVAL,
                       "page: standard output is a terminal; write it to a file: 'hvd-elastic page "
                       "JOB > job.html'");
    buf_init(&data, LIMIT_ANSWER_BYTES);
    buf_init(&page, 2 * (size_t)LIMIT_ANSWER_BYTES);
    rc = buf_append_text(&data, "{\"live\":");
    if (!rc)
        rc = buf_append(&data, buf_text(live), live->length);
    if (!rc)
        rc = buf_append_text(&data, ",\"ended\":");
    if (!rc && facts && facts->ended) {
        json_open(&json, NULL, '{');
        json_number(&json, "code", (uint64_t)facts->ended_code);
        json_text(&json, "text", facts->ended);
        json_close(&json, '}');
        rc = json.rc;
    } else if (!rc) {
        rc = buf_append_text(&data, "null");
    }
    if (!rc)
        rc = buf_append_text(&data, ",\"history\":");
    if (rc)
        err_set(err, rc, "%s", err_text(rc));
    else
        rc = page_history(folder, &data, err);
    if (!rc) {
        rc = buf_append_text(&data, "}\n");
        if (!rc && !request->options.json)
            rc = page_file_write(buf_text(&data), data.length, &page);
        if (rc)
            err_set(err, rc, "%s", err_text(rc));
    }
    if (!rc) {
        fwrite(buf_text(out), 1, out->length, stdout);
        /* EPIPE is no failure: the reader of the output has ended, as "| head" does. */
        if ((fflush(stdout) || ferror(stdout)) && errno != EPIPE)
            rc = err_set(err, HVD_E_IO,
                         "standard output: %s; the page is not complete, write it to another file",
                         strerror(errno));
    }
    buf_release(&page);
    buf_release(&data);
    return rc;
}

/* Called if the job may have a driver: asks the driver for the message of its page (live.h), and
 * prints the page. */
static int page_live(struct cli_request *request, const char *folder, struct hvd_err *err)
{
    const struct msg_ask ask = { .verb = "live" };
    struct client_outcome outcome = { .code = 0 };
    struct buf live;
    int rc;

    buf_init(&live, LIMIT_ANSWER_BYTES);
    rc = client_ask(folder, &ask, ANSWER_TIMEOUT_US, &outcome, &live, err);
    rc = rc ? rc : outcome.code;
    if (!rc && !outcome.answered)
        rc = err_set(err, HVD_E_LOST, "the answer of the driver is not complete; ask again");
    if (!rc)
        rc = page_print(request, folder, &live, NULL, err);
    buf_release(&live);
    return rc;
}

/* Called if no driver of the job lives: makes the message of the page from the job's journal, and
 * prints the page. A job that has ended is shown, too. */
static int page_offline(const struct cli_request *request, const struct cli_place *place,
                        struct hvd_err *err)
{
    struct cli_place ended_too = *place;
    struct table_facts facts;
    struct core_view view;
    struct buf live;
    int rc;

    if (!request->orphan)
        return HVD_E_NOTFOUND;
    ended_too.ended_too = true;
    core_view_init(&view);
    buf_init(&live, LIMIT_LIVE_BYTES);
    rc = request->orphan(&ended_too, &view, &facts, err);
    if (!rc) {
        rc = live_write(&view, &facts, NULL, 0, &live);
        if (rc)
            err_set(err, rc, "%s", err_text(rc));
    }
    if (!rc)
        rc = page_print(request, place->folder, &live, &facts, err);
    buf_release(&live);
    core_view_release(&view);
    return rc;
}

const struct cli_verb cli_page = {
    .name = "page",
    .words = "",
    .about = "Writes the page of a job, living or ended, to standard output: one file for browsers "
             "that shows its size and pauses over time, changes, hosts and events. The file needs "
             "no driver and no network.",
    .live = page_live,
    .answer_offline = page_offline,
};
