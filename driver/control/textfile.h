/*
 * textfile.h: the file of --metrics-textfile: the metrics of metrics.h in the format 0.0.4, for the
 * textfile collector of node_exporter, where no program may dial the driver.
 *
 * The file is replaced as a whole, so a reader never sees half of it: as soon as the driver does
 * its work, then every TEXTFILE_EVERY_US, and at the end of the job. While the driver does not do
 * its work (`trouble` in scrapes.h), the file keeps its old values and its old time.
 *
 * A thread writes the file. A disk that hangs or is full never stops the event loop of the driver:
 * the newest text waits for the disk, and older texts are dropped. Of several failures in a row one
 * warning is logged, and a line says when the file is written again.
 */
#ifndef DRIVER_CONTROL_TEXTFILE_H
#define DRIVER_CONTROL_TEXTFILE_H

#include "driver/control/scrapes.h"

struct textfile;

#define TEXTFILE_EVERY_US (15 * INT64_C(1000000))
#define TEXTFILE_LAST_US  (2 * INT64_C(1000000)) /* how long textfile_free waits for the disk */

/* Checks the path of --metrics-textfile: its name must end in ".prom"; with `folder` its folder
 * must exist, and this user must be able to write there. HVD_E_INVAL, HVD_E_LIMIT for a path that
 * is too long, or a code of remedy.h. */
int textfile_check(const char *path, bool folder, struct hvd_err *err) MUST_CHECK;

/* Begins to write the file. `ops` is borrowed until textfile_end. HVD_E_NOMEM, or HVD_E_LIMIT if no
 * thread can be started. */
int textfile_create(struct event_base *base, const char *path, const struct scrapes_ops *ops,
                    void *arg, struct textfile **ret_textfile, struct hvd_err *err) MUST_CHECK;

/* Ends the making of texts; with `last` one more is made, for a job that has ended. Does not wait
 * for the disk. The textfile may be NULL, here and in textfile_free. */
void textfile_end(struct textfile *textfile, bool last);

/* Called after textfile_end. Waits until the last text is written, at most TEXTFILE_LAST_US, and
 * frees the textfile. */
void textfile_free(struct textfile *textfile);

#endif
