/*
 * descriptors.h: a limit of descriptors for this process, so that a test finds what the product
 * does without a free descriptor.
 */
#ifndef TESTS_LIB_DESCRIPTORS_H
#define TESTS_LIB_DESCRIPTORS_H

#include "base/base.h"

#include <sys/resource.h>

#define DESCRIPTORS_MAX 8

/* Leaves `count` free descriptors to this process. The caller gives *ret_before back to setrlimit.
 * -1: a system call has failed, or the count is not 1 to DESCRIPTORS_MAX. */
int descriptors_allow(int count, struct rlimit *ret_before) MUST_CHECK;

#endif
