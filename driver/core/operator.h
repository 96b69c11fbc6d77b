/*
 * operator.h: the drain, undrain and clear requests of operators. Each request gets one answer.
 */
#ifndef DRIVER_CORE_OPERATOR_H
#define DRIVER_CORE_OPERATOR_H

#include "driver/core/core_internal.h"

void operator_on_drain(struct core *core, const struct event *event);
void operator_on_undrain(struct core *core, const struct event *event);
void operator_on_clear(struct core *core, const struct event *event);

#endif
