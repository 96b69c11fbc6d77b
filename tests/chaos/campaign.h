/*
 * campaign.h: fault after fault to one job, each judged before the next.
 */
#ifndef TESTS_CHAOS_CAMPAIGN_H
#define TESTS_CHAOS_CAMPAIGN_H

#include "tests/chaos/judge.h"
#include "tests/chaos/record.h"

/* The arena is open, and nothing runs in it. Until all faults are struck or the time is over, at
 * the first violation, or when it is broken off; then the job has ended and was judged once more.
 * Violations and hangs stand in the record; an error is what kept the campaign itself from going
 * on.
 */
int campaign_run(struct chaos *chaos, struct record *record, struct hvd_err *err) MUST_CHECK;

/* HVD_E_INVAL: --only names what is no fault. */
int campaign_check(const struct chaos_plan *plan, struct hvd_err *err) MUST_CHECK;

/* A line for each fault: name, what it is, whether it may cost a round, why it cannot be done
 * here. */
void campaign_list(const struct chaos *chaos);

#endif
