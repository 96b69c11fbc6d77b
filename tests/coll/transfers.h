/*
 * transfers.h: random sends and receives between the members of a group.
 */
#ifndef TESTS_COLL_TRANSFERS_H
#define TESTS_COLL_TRANSFERS_H

#include "tests/coll/plan_run.h"

/* Runs the transfers of the plan of which the member at `place` among these ranks is one end.
 * Returns 0, or the code of a transfer; run->wrong says what was wrong. */
int transfers_run(struct plan_run *run, const uint32_t *ranks, uint32_t size, uint32_t place);

#endif
