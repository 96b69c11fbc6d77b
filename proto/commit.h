/*
 * commit.h: a commit's number consists of the round in which the commit was made (high 32 bits) and
 * its index in that round (low 32 bits). A higher number is a newer state. Index 0 is the state
 * with which the round begins.
 */
#ifndef PROTO_COMMIT_H
#define PROTO_COMMIT_H

#include "base/base.h"

#define COMMIT_FIRST_OF(round)  ((uint64_t)(round) << 32) /* the commit with index 0 of a round */
#define COMMIT_ROUND_OF(commit) ((uint64_t)(commit) >> 32)
#define COMMIT_PLACE_OF(commit) ((uint32_t)(commit)) /* the index of the commit in its round */

#endif
