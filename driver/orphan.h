/*
 * orphan.h: what can be said about a job that has no driver, without becoming its driver.
 */
#ifndef DRIVER_ORPHAN_H
#define DRIVER_ORPHAN_H

#include "driver/control/tables.h"

/*
 * Makes the view that a driver would have that takes over the job in `folder`, by its journal; the
 * caller has initialised *ret_view. Nothing is changed, and no other machine is asked: of an agent
 * on this machine `why` says whether it lives. The facts borrow from `folder` and from *ret_view.
 * HVD_E_NOTFOUND: there is no job in the folder. HVD_E_STATE: the job has ended; the error says
 * how.
 */
int orphan_view(const char *folder, struct core_view *ret_view, struct table_facts *ret_facts,
                struct hvd_err *err) MUST_CHECK;

#endif
