/*
 * msg_random.h: makes messages with a random value in every field, and compares messages field by
 * field. Both are generated from proto/catalog.h, so no field can be forgotten.
 */
#ifndef TESTS_LIB_MSG_RANDOM_H
#define TESTS_LIB_MSG_RANDOM_H

#include "base/arena.h"
#include "base/rng.h"
#include "proto/msg.h"

/* The message's lists and texts are allocated in arena. Lists have at most list_max entries. 0 or
 * HVD_E_NOMEM. */
int msg_random(enum msg_type type, struct rng *rng, size_t list_max, struct arena *arena,
               struct msg *ret_msg) MUST_CHECK;

/* NULL: the messages are equal; else the name of the first field that differs. */
const char *msg_difference(const struct msg *left, const struct msg *right);

#endif
