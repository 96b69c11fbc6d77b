/*
 * newfile.h: creates a database file that is there complete or not at all.
 *
 * The file is created under a temporary name beside its real name, synced and then renamed, so a
 * file under the real name was complete once.
 */
#ifndef SQLITE_NEWFILE_H
#define SQLITE_NEWFILE_H

#include "base/err.h"
#include "base/limits.h"

/* No other program uses this suffix: a file with it was left by an earlier start, and is removed.
 */
#define NEWFILE_SUFFIX ".hvd-new"

struct newfile {
    const char *path; /* the path of the database; borrowed until newfile_release */
    /* the temporary name under which the file is created */
    char temp[LIMIT_DB_PATH_BYTES + sizeof(NEWFILE_SUFFIX)];
    int dir_fd; /* the directory of the file, with the lock on it */
};

/*
 * Locks the directory, waiting up to wait_ms milliseconds for another holder, and creates the
 * temporary file, empty, with these permissions. HVD_E_EXISTS: the file exists by now; HVD_E_BUSY:
 * the directory stays locked; HVD_E_NOTFOUND: there is no such directory; HVD_E_DENIED;
 * HVD_E_CORRUPT: the file is gone but its -wal or -journal is there. The caller releases the
 * newfile in any case.
 */
int newfile_begin(struct newfile *newfile, const char *path, unsigned mode, int wait_ms,
                  struct hvd_err *err) MUST_CHECK;

/* Gives the temporary file, which the caller has closed, its real name, durably. */
int newfile_publish(struct newfile *newfile, struct hvd_err *err) MUST_CHECK;

/* Unlocks the directory, and removes a file that was not published. */
void newfile_release(struct newfile *newfile);

#endif
