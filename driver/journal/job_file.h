/*
 * job_file.h: what a job leaves on disk: who it is, its journal and its blacklist, in one SQLite
 * file, and which driver may write to it.
 *
 * A driver claims the file before it reads the journal. From then on every write of an earlier
 * owner fails with HVD_E_LOST, and so does its job_file_check: it has been replaced, and ends.
 *
 * One thread at a time uses it.
 */
#ifndef DRIVER_JOURNAL_JOB_FILE_H
#define DRIVER_JOURNAL_JOB_FILE_H

#include "blacklist/blacklist.h"
#include "blacklist/record.h"
#include "driver/core/journal.h"
#include "sqlite/db.h"

#define JOB_KEY_BYTES 32
#define JOB_NAME_MAX  64

struct job_file;

struct job_facts {
    char job[JOB_NAME_MAX + 1];
    uint8_t key[JOB_KEY_BYTES];
    int64_t created_wall_us;
    uint16_t port; /* where agents dial; 0: not chosen yet */
    bool ended;    /* a driver has come to the end of it: code and text */
    int32_t code;
    char text[LIMIT_REASON_BYTES + 1];
};

/* Letters, digits and . _ - only, none of them a dot in front: it becomes part of names of files
 * and sockets. */
int job_name_check(const char *name, struct hvd_err *err) MUST_CHECK;

/* Opens, or makes it with these facts when it is missing: the file is there with them or not at
 * all. Only its owner may read it, the key is in it. The options are copied. Codes as of db_open.
 */
int job_file_open(const char *path, const struct db_options *options, const struct job_facts *fresh,
                  struct job_file **ret_file, struct hvd_err *err) MUST_CHECK;
void job_file_close(struct job_file *file);

int job_file_facts(struct job_file *file, struct job_facts *ret_facts,
                   struct hvd_err *err) MUST_CHECK;

/* Becomes the owner, durably. The token is drawn at random, and not 0; `who` is for messages: "pid
 * 77 on node3". */
int job_file_claim(struct job_file *file, uint64_t token, const char *who,
                   struct hvd_err *err) MUST_CHECK;

/* 0 while it is ours; HVD_E_LOST, naming the new owner. */
int job_file_check(struct job_file *file, struct hvd_err *err) MUST_CHECK;

/* In order, from the first, borrowed. Anything but 0 from `each` ends the visit and is returned.
 * HVD_E_CORRUPT for what cannot be: then none of what was shown is to be used. */
typedef int job_record_fn(void *arg, const struct journal_record *record, struct hvd_err *err);
typedef int job_blacklist_fn(void *arg, const struct blacklist_record *record, struct hvd_err *err);
int job_file_replay(struct job_file *file, job_record_fn *each, void *arg, struct hvd_err *err);
int job_file_blacklist(struct job_file *file, job_blacklist_fn *each, void *arg,
                       struct hvd_err *err);

/* One of them is not NULL, or ended is set, or port is not 0. */
struct job_write {
    const struct journal_record *record;
    const struct blacklist_change *change;
    bool ended; /* code and text */
    int32_t code;
    const char *text;
    uint16_t port;
};

/* All of them are durable when it returns 0, or none. HVD_E_LOST; HVD_E_INVAL for a record that
 * could not be read back. */
int job_file_write(struct job_file *file, const struct job_write *writes, size_t count,
                   struct hvd_err *err) MUST_CHECK;

#endif
