/*
 * found.h: what of GPUs this machine has, in words, for --check-build.
 */
#ifndef GPU_FOUND_H
#define GPU_FOUND_H

#include "base/buf.h"

/* A line for the driver and each device, and one for NCCL: "  [X] ..." what can be used, "  [ ]
 * ..." what cannot, and why. Loads both. */
int gpu_found(struct buf *out) MUST_CHECK;

#endif
