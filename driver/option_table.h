/*
 * option_table.h: the rows behind options.h.
 */
#ifndef DRIVER_OPTION_TABLE_H
#define DRIVER_OPTION_TABLE_H

#include "driver/options.h"

extern const struct opt driver_option_table[];
extern const size_t driver_option_count;

#endif
