/*
 * autopsies.h: keeps what agents tell of workers that have died, or are in a stall (AUTOPSY), in
 * the files of autopsy_file.h.
 *
 * A thread writes, so a disk that hangs or is full never stops the event loop of the driver. At
 * most AUTOPSIES_WAITING of them wait for the disk, and further ones are dropped. All failures in a
 * row are one warning. The first one that is written names the command that shows it, but for those
 * of workers that were ordered to end.
 */
#ifndef DRIVER_CONTROL_AUTOPSIES_H
#define DRIVER_CONTROL_AUTOPSIES_H

#include "base/err.h"
#include "proto/msg.h"

struct autopsies;

#define AUTOPSIES_WAITING 64
#define AUTOPSIES_LAST_US (2 * INT64_C(1000000)) /* how long autopsies_free waits for the disk */

/* Begins to keep autopsies in the folder of the job. fresh: the job is a new one, and those of a
 * former job of its name are removed. HVD_E_NOMEM, or HVD_E_LIMIT if no thread can be started. */
int autopsies_create(const char *folder, bool fresh, struct autopsies **ret_autopsies,
                     struct hvd_err *err) MUST_CHECK;

/* Keeps the AUTOPSY of a worker on this host. by_order: the worker was ordered to end, so nothing
 * needs to be looked at. Waits for no disk. autopsies may be NULL. */
void autopsies_take(struct autopsies *autopsies, const char *host, const struct msg *msg,
                    bool by_order);

/* Waits until all are written, at most AUTOPSIES_LAST_US. NULL is allowed. */
void autopsies_free(struct autopsies *autopsies);

#endif
