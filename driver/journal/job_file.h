/*
 * job_file.h: the state of a job on disk, in one SQLite file: its facts, its journal and its
 * blacklist. The file also says which driver may write to it.
 *
 * A driver claims the file before it reads the journal. From then on every write and every
 * job_file_check of an earlier owner fails with HVD_E_LOST: the earlier driver has been replaced,
 * and ends.
 *
 * Only one thread may use the file at a time.
 */
#ifndef DRIVER_JOURNAL_JOB_FILE_H
#define DRIVER_JOURNAL_JOB_FILE_H

#include "blacklist/blacklist.h"
#include "driver/core/journal.h"
#include "driver/journal/blacklist_rows.h"
#include "sqlite/db.h"

#define JOB_KEY_BYTES 32
#define JOB_NAME_MAX  64

struct job_file;

struct job_facts {
    char job[JOB_NAME_MAX + 1];
    uint8_t key[JOB_KEY_BYTES];
    int64_t created_wall_us;
    uint16_t port; /* the port that agents dial; 0: not chosen yet */
    bool ended;    /* the job has ended; then code and text are valid */
    int32_t code;
    char text[LIMIT_REASON_BYTES + 1];
};

/* A name has only letters, digits and . _ - and does not begin with a dot or dash, because it
 * becomes a part of the names of files and sockets. */
int job_name_check(const char *name, struct hvd_err *err) MUST_CHECK;

/* Opens the file. If it is missing, it is made with the facts in `fresh`, so every file has facts.
 * Only its user may read the file, because the key is in it. The options are copied. Codes are
 * those of db_open. */
int job_file_open(const char *path, const struct db_options *options, const struct job_facts *fresh,
                  struct job_file **ret_file, struct hvd_err *err) MUST_CHECK;
void job_file_close(struct job_file *file);

int job_file_facts(struct job_file *file, struct job_facts *ret_facts,
                   struct hvd_err *err) MUST_CHECK;

/* Makes this driver the owner of the file; the change is durable on return. token: a random number,
 * not 0. who: names the driver in messages, "pid 77 on node3". */
int job_file_claim(struct job_file *file, uint64_t token, const char *who,
                   struct hvd_err *err) MUST_CHECK;

/* Checks that this driver is still the owner of the file. HVD_E_LOST: it is not, and the error
 * names the new owner. */
int job_file_check(struct job_file *file, struct hvd_err *err) MUST_CHECK;

/* job_file_replay calls `each` with every record of the journal, from the first to the last, and
 * job_file_blacklist with every record of the blacklist. The record is borrowed during the call of
 * `each`. If `each` returns another value than 0, no further record is read and that value is
 * returned. HVD_E_CORRUPT: a record is damaged; then the caller must not use any record of this
 * call. */
typedef int job_record_fn(void *arg, const struct journal_record *record, struct hvd_err *err);
int job_file_replay(struct job_file *file, job_record_fn *each, void *arg, struct hvd_err *err);
int job_file_blacklist(struct job_file *file, blacklist_rows_fn *each, void *arg,
                       struct hvd_err *err);

/* One write. At least one of record, change, ended and port is set. */
struct job_write {
    const struct journal_record *record;
    const struct blacklist_change *change;
    bool ended; /* the job has ended, with code and text */
    int32_t code;
    const char *text;
    uint16_t port;
};

/* Writes all `writes` in one transaction. Returns 0 when all are durable. After a failure none is
 * written: HVD_E_LOST if another driver owns the file, HVD_E_INVAL for a record that could not be
 * read back, or a code of db_commit. */
int job_file_write(struct job_file *file, const struct job_write *writes, size_t count,
                   struct hvd_err *err) MUST_CHECK;

#endif
