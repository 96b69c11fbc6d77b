/*
 * report.c: hvd_report: a value of the program goes into the page that this worker shares with its
 * agent. The agent reads the page with each of its heartbeats, so no message is sent here. Called
 * by the program, from any thread. Invariant: a report waits for no other process, and a worker
 * whose agent is gone writes to a page that has no reader.
 */
#include "base/text.h"
#include "os/clock.h"
#include "proto/page.h"
#include "worker/fail.h"
#include "worker/worker.h"

#include <string.h>

/* Tells the driver's log why a value was refused; only the first refusal of a worker is told. The
 * program may ignore the code of hvd_report, and no operator would hear of the mistake. Returns the
 * code. */
static int report_refuse(struct worker *worker, int code)
{
    bool first = !atomic_exchange(&worker->reports.refused, true);

    if (first && worker->session)
        session_thread_say(worker->session, &(struct session_event){ .kind = SESSION_REMARK,
                                                                     .text = fail_err()->text });
    return code;
}

/* Notes the newest commit of this worker: each value that the program reports is shown with it. */
void worker_note_commit(struct worker *worker, uint64_t commit)
{
    atomic_store_explicit(&worker->reports.commit, commit, memory_order_relaxed);
}

/* Writes the value to the slot of its name in the page. On other ranks than 0, and in a program
 * that runs alone, the value is not shown, so nothing is written. */
int hvd_report(const char *name, double value)
{
    struct worker *worker = worker_enter();
    struct report report = { .bits = report_bits_of(value) };
    int rc;

    if (!worker)
        return HVD_E_STATE;
    report.round = hvd_round();
    if (!report.round)
        return fail(HVD_E_STATE,
                    "hvd_report: there has been no round yet, so no worker is known to "
                    "be rank 0; report in train");
    if (hvd_rank() != 0)
        return 0;
    if (!name || !report_name_is_good(name)) {
        char quoted[TEXT_QUOTE_MAX] = "NULL";

        if (name)
            text_quote(name, strnlen(name, TEXT_QUOTE_SHOWN + 1), quoted);
        return report_refuse(
            worker,
            fail(HVD_E_INVAL,
                 "hvd_report: %s is no name of a value; a name must have 1 to %d letters, digits "
                 "and characters of _-./:@%%+",
                 quoted, LIMIT_REPORT_NAME_BYTES));
    }
    if (worker_is_alone(worker))
        return 0;
    memcpy(report.name, name, strlen(name));
    report.commit = atomic_load_explicit(&worker->reports.commit, memory_order_relaxed);
    pthread_mutex_lock(&worker->reports.lock);
    report.said_us = clock_now_us();
    rc = report_put(session_thread_page(worker->session)->reports, &report);
    pthread_mutex_unlock(&worker->reports.lock);
    if (!rc)
        return 0;
    return report_refuse(worker,
                         fail(rc,
                              "hvd_report: \"%s\" is one name too many; a worker reports at "
                              "most %d names (LIMIT_REPORTS), so use fewer",
                              name, LIMIT_REPORTS));
}
