/*
 * option_words.h: the words that some options of a job allow, and the defaults that run.c compares.
 */
#ifndef DRIVER_OPTION_WORDS_H
#define DRIVER_OPTION_WORDS_H

#include "base/time.h"

/* The lists are in option_table.c. Each list has the allowed words of one option, such as "auto".
 * The field of that option in struct driver_options, such as cpu_operations, is an index in the
 * list. */
extern const char *const options_operations[];
enum { OPTIONS_STOP_NO, OPTIONS_STOP_CHECKPOINT, OPTIONS_STOP_NOW }; /* the words of --stop */
enum { OPTIONS_GLOO = 1 };                                 /* "gloo" in options_operations */
enum { OPTIONS_ENCRYPTED = 1, OPTIONS_AUTHENTICATED = 2 }; /* indices in options_data_security */
extern const char *const options_data_security[];
enum { OPTIONS_JOIN = 1 }; /* "join" in options_discovery */
extern const char *const options_discovery[];
/* the words of --ssh-host-key-checking; the first one means that the configuration of ssh decides
 */
extern const char *const options_host_keys[];
extern const char *const options_gpu_operations[];
#define OPTIONS_GPU_TIMEOUT_US (10 * TIME_S) /* the default of --gpu-timeout */
extern const char *const options_commit_to[];
/* the words of --log-time in the order of enum log_time (os/log_time.h), and of --color in the
 * order of enum stderr_colours (os/stderr_log.h) */
extern const char *const options_log_time[];
extern const char *const options_colours[];
enum { OPTIONS_FUSION_MB = 64 }; /* the default of --fusion-threshold-mb; libhvd has the same */

#endif
