/*
 * half.h: fp16 and bf16, which C11 has no type for, to fp32 and back, rounded to the nearest even.
 */
#ifndef COLLECTIVES_REDUCE_HALF_H
#define COLLECTIVES_REDUCE_HALF_H

#include "base/base.h"

float half_to_float(uint16_t half);
uint16_t half_from_float(float value);
float bfloat_to_float(uint16_t bfloat);
uint16_t bfloat_from_float(float value);

#endif
