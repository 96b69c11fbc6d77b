/*
 * commit.h: how commits are numbered: by the round in which they are made, and their place there.
 * A higher number is a newer state. Place 0 is what the round begins with.
 */
#ifndef PROTO_COMMIT_H
#define PROTO_COMMIT_H

#include "base/base.h"

#define COMMIT_FIRST_OF(round)  ((uint64_t)(round) << 32)
#define COMMIT_ROUND_OF(commit) ((uint64_t)(commit) >> 32)
#define COMMIT_PLACE_OF(commit) ((uint32_t)(commit))

#endif
