/*
 * view_reports.h: the part of the visible core that has what the program reports (hvd_report).
 * view.h includes it.
 */
#ifndef DRIVER_CORE_VIEW_REPORTS_H
#define DRIVER_CORE_VIEW_REPORTS_H

#include "base/base.h"

/* One value over time of a name that the program reports (hvd_report). */
struct view_point {
    int64_t at_us; /* below 0: before the clock of this machine began */
    double value;
    uint64_t commit; /* the newest commit of the worker then; 0: none */
};
struct view_report {
    const char *name;
    double value; /* the newest value */
    /* of the worker that reported it: the round and the newest commit then; 0: none */
    uint64_t round, commit;
    int64_t at_us;             /* when the newest value was reported */
    struct view_point *points; /* values over time, at least one; the last is the newest */
    size_t point_count;
};

struct view_reports {
    struct view_report *items;
    size_t count;
};

#endif
