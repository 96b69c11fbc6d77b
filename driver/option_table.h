/*
 * option_table.h: the rows behind options.h.
 */
#ifndef DRIVER_OPTION_TABLE_H
#define DRIVER_OPTION_TABLE_H

#include "driver/options.h"

/* What carries collectives: "auto", ... by cpu_operations. */
extern const char *const options_operations[];
/* What carries those on memory of a GPU, by gpu_operations. */
extern const char *const options_gpu_operations[];
#define OPTIONS_GPU_TIMEOUT_US (10 * TIME_S)
/* Where commits of entries in device memory go: "both", ... by commit_to. */
extern const char *const options_commit_to[];
enum { OPTIONS_FUSION_MB = 64 }; /* as workers have it when nobody says anything */

extern const struct opt driver_option_table[];
extern const size_t driver_option_count;

#endif
