/*
 * show.h: a call, in the timeline of its round.
 */
#ifndef COLLECTIVES_SHOW_H
#define COLLECTIVES_SHOW_H

#include "collectives/coll_inside.h"

/* As it ended, now. err: why, if code is not 0; or NULL. Costs a branch when there is no timeline;
 * begun_us is then not looked at. */
void show_call(const struct coll *coll, const struct coll_call *call, int64_t begun_us, int code,
               const struct hvd_err *err);

#endif
