/*
 * orphan.h: what can be said about a job that has no driver, without becoming its driver.
 */
#ifndef DRIVER_ORPHAN_H
#define DRIVER_ORPHAN_H

#include "driver/cli/cli.h"

/*
 * Makes the view that a driver would have if it took over the job, from the journal in the job's
 * folder or in etcd; the caller has initialised *ret_view. Nothing is changed, and only this
 * machine and those of etcd are asked: `why` of a host says whether its agent lives on this
 * machine. The facts borrow from `place` and from *ret_view. HVD_E_NOTFOUND: there is no job in the
 * folder. HVD_E_STATE: the job has ended; the error says how. HVD_E_EXISTS: a driver of the job in
 * etcd lives.
 */
int orphan_view(const struct cli_place *place, struct core_view *ret_view,
                struct table_facts *ret_facts, struct hvd_err *err) MUST_CHECK;

#endif
