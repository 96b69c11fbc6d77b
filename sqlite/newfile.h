/*
 * newfile.h: a database file that is there complete or not at all.
 *
 * It is made under a temporary name beside its real one, synced and then renamed, so whatever
 * stands under the real name was complete once. The directory is locked meanwhile: two processes
 * never make the same file, and what one left behind when it died is removed by the next.
 */
#ifndef SQLITE_NEWFILE_H
#define SQLITE_NEWFILE_H

#include "base/err.h"
#include "base/limits.h"

/* Ours alone: what is found under such a name is what an earlier start left, and is removed. */
#define NEWFILE_SUFFIX ".hvd-new"

struct newfile {
    const char *path;                                        /* borrowed until released */
    char temp[LIMIT_DB_PATH_BYTES + sizeof(NEWFILE_SUFFIX)]; /* the name to make it under */
    int dir_fd;
};

/*
 * Makes the temporary file, empty, with these permissions. Locks the directory, waiting wait_ms for
 * who has it. HVD_E_EXISTS when the file is there by now, HVD_E_BUSY, HVD_E_NOTFOUND without the
 * directory, HVD_E_DENIED, HVD_E_CORRUPT when the file is gone and its -wal or -journal is not. To
 * be released in any case.
 */
int newfile_begin(struct newfile *newfile, const char *path, unsigned mode, int wait_ms,
                  struct hvd_err *err) MUST_CHECK;

/* The file under the temporary name, closed by now, becomes the real one, durably. */
int newfile_publish(struct newfile *newfile, struct hvd_err *err) MUST_CHECK;

/* Unlocks. What was not published is gone. */
void newfile_release(struct newfile *newfile);

#endif
