/*
 * job_log.c: reads the event log of a job for the verbs "page" and "changes". Invariant: the files
 * are only read, so a driver may write them at the same time.
 */
#include "driver/cli/job_log.h"

#include "base/limits.h"
#include "driver/control/events.h"
#include "driver/journal/job_file.h"
#include "driver/journal/job_path.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Writes the time at which the job in this folder began; "" if its journal is not there. */
static int job_log_since(const char *folder, char since[TIME_STAMP_MAX], struct hvd_err *err)
{
    char path[LIMIT_PATH_BYTES + sizeof("/job.db")];
    struct store *store = NULL;
    struct job_facts facts;
    int rc;

    since[0] = '\0';
    snprintf(path, sizeof(path), "%s/job.db", folder);
    if (access(path, F_OK))
        return 0;
    rc = job_file_look(path, &store, err);
    if (!rc)
        rc = store_facts(store, &facts, err);
    if (!rc) {
        time_stamp(facts.created_wall_us, since);
        explicit_bzero(facts.key, sizeof(facts.key));
    }
    store_close(store);
    return rc;
}

int job_log_read(const char *folder, struct job_log *ret_log, struct hvd_err *err)
{
    static const char *const names[HISTORY_TEXTS] = { "events.log.1", "events.log" };
    char path[LIMIT_PATH_BYTES + sizeof("/events.log.1")];
    int rc = 0;

    for (size_t i = 0; i < HISTORY_TEXTS; i++) {
        buf_init(&ret_log->files[i], EVENTS_FILE_MAX);
        ret_log->texts[i] = (struct span){ "", 0 };
    }
    ret_log->since[0] = '\0';
    if (!folder)
        return 0;
    rc = job_log_since(folder, ret_log->since, err);
    for (size_t i = 0; i < HISTORY_TEXTS && !rc; i++) {
        snprintf(path, sizeof(path), "%s/%s", folder, names[i]);
        if (access(path, F_OK))
            continue;
        rc = events_read(path, &ret_log->files[i], err);
        ret_log->texts[i] = (struct span){ buf_text(&ret_log->files[i]), ret_log->files[i].length };
    }
    return rc;
}

void job_log_release(struct job_log *log)
{
    for (size_t i = 0; i < HISTORY_TEXTS; i++)
        buf_release(&log->files[i]);
}
