/*
 * option_words.h: the words that some options of a job allow, and the defaults that run.c compares.
 */
#ifndef DRIVER_OPTION_WORDS_H
#define DRIVER_OPTION_WORDS_H

#include "base/time.h"

/* The lists are in option_table.c. Each has the allowed words of one option, such as "auto";
 * the field of the option, such as cpu_operations, is an index into its list. */
extern const char *const options_operations[];
enum { OPTIONS_STOP_NO, OPTIONS_STOP_CHECKPOINT, OPTIONS_STOP_NOW }; /* the words of --stop */
enum { OPTIONS_GLOO = 1 };                                 /* "gloo" in options_operations */
enum { OPTIONS_ENCRYPTED = 1, OPTIONS_AUTHENTICATED = 2 }; /* in options_data_security */
extern const char *const options_data_security[];
enum { OPTIONS_JOIN = 1 }; /* "join" in options_discovery */
extern const char *const options_discovery[];
/* the first word means that the configuration of ssh decides */
extern const char *const options_host_keys[];
extern const char *const options_gpu_operations[];
#define OPTIONS_GPU_TIMEOUT_US (10 * TIME_S)
extern const char *const options_commit_to[];
/* in the order of enum log_time (os/log_time.h) and of enum stderr_colours (os/stderr_log.h) */
extern const char *const options_log_time[];
extern const char *const options_colours[];
enum { OPTIONS_FUSION_MB = 64 }; /* the library has the same default */

#endif
