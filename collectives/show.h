/*
 * show.h: a call, in the timeline of its round.
 */
#ifndef COLLECTIVES_SHOW_H
#define COLLECTIVES_SHOW_H

#include "collectives/coll_inside.h"

struct shown {
    uint64_t number; /* of the operation */
    const char *by;  /* what carried memory of a device, or NULL */
    int64_t begun_us;
    int code;
    const struct hvd_err *err; /* why, if code is not 0; or NULL */
};

/* As it ended, now. Costs a branch when there is no timeline; begun_us is then not looked at. */
void show_call(const struct coll *coll, const struct coll_call *call, const struct shown *shown);

#endif
