/*
 * standby.h: a standby, which is a driver that waits on another machine: it reads the job from the
 * store in etcd, and takes it over when the job has no driver any more.
 */
#ifndef DRIVER_STANDBY_H
#define DRIVER_STANDBY_H

#include "base/buf.h"
#include "driver/store/etcd_store.h"

/* Waits until no driver of the job lives. *ret_ended is true if the job has ended; *ret_facts then
 * says how. The wait has no limit: it goes on while the job does not exist yet, and while etcd does
 * not answer. The codes are those of etcd_store_open. */
int standby_wait(const struct etcd_store_config *config, const char *job, bool *ret_ended,
                 struct job_facts *ret_facts, struct hvd_err *err) MUST_CHECK;

/* Reads from the store how the driver of the job was started, as invocation_encode has made it. */
int standby_command(const struct etcd_store_config *config, const char *job, struct buf *out,
                    struct hvd_err *err) MUST_CHECK;

#endif
