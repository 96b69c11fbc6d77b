/*
 * campaign.h: strikes one job with fault after fault; the job is judged after each one.
 */
#ifndef TESTS_CHAOS_CAMPAIGN_H
#define TESTS_CHAOS_CAMPAIGN_H

#include "tests/chaos/judge.h"
#include "tests/chaos/record.h"

/* Runs in an open arena in which no process runs. Ends when all faults are struck or the time is
 * over, at the first violation, or when broken off; then the job has ended and was judged once
 * more. Violations and hangs are in the record; an error means that the campaign itself could not
 * go on. */
int campaign_run(struct chaos *chaos, struct record *record, struct hvd_err *err) MUST_CHECK;

/* 0, or HVD_E_INVAL: --only names a fault that does not exist. */
int campaign_check(const struct chaos_plan *plan, struct hvd_err *err) MUST_CHECK;

/* Prints a line for each fault: its name, what it does, whether it may cost a round, and why it is
 * not possible here. */
void campaign_list(const struct chaos *chaos);

#endif
