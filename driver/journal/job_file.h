/*
 * job_file.h: the store of a job in one SQLite file, job.db: its facts, its journal, its blacklist,
 * and which driver may write to it.
 */
#ifndef DRIVER_JOURNAL_JOB_FILE_H
#define DRIVER_JOURNAL_JOB_FILE_H

#include "driver/store/store.h"
#include "sqlite/db.h"

/* Opens the file. If it is missing, it is made with the facts in `fresh`, so every file has facts.
 * Only its user may read the file, because the key is in it. The options are copied. Codes are
 * those of db_open. */
int job_file_open(const char *path, const struct db_options *options, const struct job_facts *fresh,
                  struct store **ret_store, struct hvd_err *err) MUST_CHECK;

/* Opens the file only to read its facts, its journal and its blacklist, also while a driver writes
 * to it. The file is not changed. HVD_E_NOTFOUND: there is no such file. */
int job_file_look(const char *path, struct store **ret_store, struct hvd_err *err) MUST_CHECK;

/* Renames the file of an ended job, which no driver has open. Nothing of it is left under the old
 * name, so a new file can be made there. HVD_E_BUSY: another process reads the file all the time.
 */
int job_file_put_aside(const char *path, const char *aside, struct hvd_err *err) MUST_CHECK;

#endif
