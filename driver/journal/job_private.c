/*
 * job_private.c: checks a job's state directory with os/private. job_folder.c and run.c of the
 * driver call it, and find_job.c for the verbs, before the first byte of the folder is read.
 *
 * SQLite opens job.db by its path, later than the check. Another user cannot replace the file in
 * that time: the check has shown that only this user and root can change a name on the path to the
 * file.
 */
#include "driver/journal/job_private.h"

#include "os/private.h"

#include <unistd.h>

/* The names of all files that a driver or a verb opens in the folder; "job.db.hvd-new" is a new
 * database that is not complete yet. */
static const char *const job_private_names[] = {
    "job.db",       "job.db-wal", "job.db-shm",     "job.db-journal", "job.db.hvd-new",
    "lock",         "command",    "invocation.new", "control",        "events.log",
    "events.log.1", "agents",     "claim",          "autopsies",
};

/* Checks that no other user can change the folder or a file in it that this program uses. `make`:
 * the folder is made if it does not exist. */
int job_private_check(const char *path, bool make, struct hvd_err *err)
{
    int fd;
    int rc = private_folder(path, make, &fd, err);

    if (rc)
        return rc;
    for (size_t i = 0; i < ARRAY_SIZE(job_private_names) && !rc; i++)
        rc = private_entry(fd, path, job_private_names[i], err);
    close(fd);
    return rc;
}
