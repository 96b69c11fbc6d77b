/*
 * changes.c: the verb "changes": shows what each change of the membership has cost. The driver
 * makes the answer in control/tables.c, of the changes that it has seen. Without a driver the
 * changes come from events.log in the job's folder, to which all drivers of the job have written.
 */
#include "driver/cli/job_log.h"
#include "driver/cli/verbs.h"
#include "os/clock.h"

/* Fills in the changes of the whole life of the job. */
static int changes_complete(const char *folder, const struct table_facts *facts,
                            struct core_view *view, struct hvd_err *err)
{
    struct view_change *changes;
    struct job_log log;
    int rc;

    if (!folder)
        return err_set(err, HVD_E_NOTFOUND,
                       "job %s has no state directory on this machine, and its changes are in "
                       "events.log there; ask on the machine of its last driver",
                       facts->job);
    rc = job_log_read(folder, &log, err);
    changes = rc ? NULL : arena_alloc_array(&view->memory, HISTORY_CHANGES, sizeof(*changes));
    if (!rc && !changes)
        rc = err_set(err, HVD_E_NOMEM, "%s", err_text(HVD_E_NOMEM));
    if (!rc) {
        view->changes = changes;
        view->change_count = history_changes(log.texts, log.since, facts->now_us, clock_wall_us(),
                                             changes, HISTORY_CHANGES);
    }
    job_log_release(&log);
    return rc;
}

const struct cli_verb cli_changes = {
    .name = "changes",
    .words = "",
    .about = "Shows what each change of the membership has cost, by phase.",
    .repeats = true,
    .orphan_table = table_changes,
    .complete = changes_complete,
    .ended_too = true,
};
