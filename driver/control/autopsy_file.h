/*
 * autopsy_file.h: what is known of the death of a worker, as a file of the job's folder:
 * "autopsies/INCARNATION"; or of what it was doing in a stall: "autopsies/INCARNATION-stall". The
 * file is one frame, the AUTOPSY of the worker's agent (proto/PROTOCOL.md) with the name of the
 * host; its time is the time of the death, or of the stall. The driver
 * writes the files (autopsies.h), and the verb "autopsy" reads them, with a driver or without one.
 *
 * At most AUTOPSIES_KEPT files are kept, and the oldest go. A file is whole or is not there.
 */
#ifndef DRIVER_CONTROL_AUTOPSY_FILE_H
#define DRIVER_CONTROL_AUTOPSY_FILE_H

#include "base/buf.h"
#include "base/err.h"
#include "base/vec.h"
#include "proto/msg.h"

#define AUTOPSIES_KEPT     64
#define AUTOPSY_FILE_BYTES (64 * 1024) /* a longer file is none of ours */

/* Of which worker the file is, and what it is about. */
struct autopsy_name {
    uint64_t incarnation;
    bool stall;
    int64_t wall_us; /* the time of the file; not for writing */
};

struct autopsy {
    int64_t wall_us;
    struct msg msg; /* MSG_AUTOPSY */
};

struct autopsy_list {
    struct VEC(struct autopsy) found; /* in the order of their times */
    size_t damaged; /* files that are not what they should be; they are left out */
};

/* Writes the frame of a worker, replaces an older file of that worker, and removes the oldest
 * files. Waits for the disk. The codes of remedy.h. */
int autopsy_file_write(const char *folder, const struct autopsy_name *name, const struct buf *frame,
                       struct hvd_err *err) MUST_CHECK;

/* Removes all files, because another job of the same name begins. */
int autopsy_file_clear(const char *folder, struct hvd_err *err) MUST_CHECK;

/* Reads all files. There may be none. HVD_E_NOMEM, or the codes of remedy.h. */
int autopsy_file_list(const char *folder, struct autopsy_list *ret_list,
                      struct hvd_err *err) MUST_CHECK;
void autopsy_list_release(struct autopsy_list *list);

/* Reads the bytes of a file, which may be any. ret_msg owns its memory (msg_release).
 * HVD_E_CORRUPT: they are no AUTOPSY. */
int autopsy_file_parse(const void *bytes, size_t length, struct msg *ret_msg) MUST_CHECK;

#endif
