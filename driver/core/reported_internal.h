/*
 * reported_internal.h: what the core keeps of the values that a program reports. Owner: reported.c.
 * Private to this folder.
 */
#ifndef DRIVER_CORE_REPORTED_INTERNAL_H
#define DRIVER_CORE_REPORTED_INTERNAL_H

#include "base/limits.h"
#include "driver/core/view_reports.h"

struct core_report {
    char name[LIMIT_REPORT_NAME_BYTES + 1];
    /* the worker that reported the newest value, and the number of the report in this worker */
    uint64_t incarnation, said;
    uint64_t round, commit; /* the worker's round and newest commit when it reported the value */
    int64_t at_us;          /* when the value was reported; a time of day until replay_start */
    int64_t gap_us;         /* the least time between two points of the series */
    bool changed;           /* the newest value is not in the journal */
    size_t point_count;
    struct view_point points[LIMIT_REPORT_POINTS];
};

/* The values that the program has reported. */
struct core_reported {
    struct core_report *items[LIMIT_REPORTS];
    size_t count;
    int64_t written_us;    /* when values were written to the journal last; 0: never */
    uint64_t records_seen; /* how many records the journal had after the last look */
};

#endif
