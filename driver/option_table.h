/*
 * option_table.h: the rows behind options.h.
 */
#ifndef DRIVER_OPTION_TABLE_H
#define DRIVER_OPTION_TABLE_H

#include "driver/options.h"

/* What carries collectives: "auto", ... by cpu_operations. */
extern const char *const options_operations[];
enum { OPTIONS_FUSION_MB = 64 }; /* as workers have it when nobody says anything */

extern const struct opt driver_option_table[];
extern const size_t driver_option_count;

#endif
