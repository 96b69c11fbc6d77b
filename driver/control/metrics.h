/*
 * metrics.h: the state of a job as text for Prometheus, in the format 0.0.4 or OpenMetrics 1.0.0.
 * docs/metrics.md describes each name; names and labels never change, but new ones may be added.
 * The number of series does not grow with the number of workers or hosts.
 */
#ifndef DRIVER_CONTROL_METRICS_H
#define DRIVER_CONTROL_METRICS_H

#include "driver/control/tables.h"

/* Returns the Content-Type of the text. */
const char *metrics_type(bool openmetrics);

/* Appends the text; openmetrics false: in the format 0.0.4. Returns 0, HVD_E_NOMEM, or HVD_E_LIMIT;
 * after a failure `out` is unchanged. */
int metrics_write(const struct core_view *view, const struct table_facts *facts, bool openmetrics,
                  struct buf *out) MUST_CHECK;

#endif
