/*
 * backoff.c: counts rounds and changes that brought nothing (fruitless ones), and sets the time
 * before which no other round or change begins. round.c and recovery.c report how a round ended,
 * change.c how a change ended. A round that gained anything never makes the job wait.
 */
#include "driver/core/backoff.h"

#include "driver/core/roster.h"
#include "driver/core/step.h"
#include "driver/core/tell.h"
#include "driver/core/waits.h"

#include <stdio.h>

#define ROUND_DELAY_US      (100 * TIME_MS)
#define ROUND_DELAY_US_MAX  (10 * TIME_S)
#define CHANGE_DELAY_US     (1 * TIME_S)
#define CHANGE_DELAY_US_MAX (64 * TIME_S)

/* After this many fruitless rounds in a row that ended in a mismatch (ranks called different
 * operations), the program is to blame and the job fails. */
#define MISMATCHES_MAX 5

/* Returns delay_us after it was doubled `doublings` times, but at most most_us. */
static int64_t backoff_doubled_us(int64_t delay_us, uint32_t doublings, int64_t most_us)
{
    for (uint32_t i = 0; i < doublings && delay_us < most_us; i++)
        delay_us *= 2;
    return delay_us < most_us ? delay_us : most_us;
}

/* True: no backoff holds the next round or change back. False: the caller begins nothing, and a
 * step is requested for the end of the wait. */
bool backoff_is_over(struct core *core)
{
    if (core->now_us >= core->backoff.not_before_us)
        return true;
    core_want_timer(core, core->backoff.not_before_us);
    return false;
}

/* Counts the round that was just revoked. `died`: a member's death is the reason. The round counts
 * as fruitless until backoff_weigh knows its gain, when all survivors have said which commits they
 * hold. It never counts if a member died after some member had begun to train (`entered`), or if
 * all members have trained for long. The second fruitless round in a row, and each further one,
 * makes the next round wait. */
void backoff_round_ended(struct core *core, bool died)
{
    const struct round *round = &core->current;
    struct core_backoff *backoff = &core->backoff;
    bool trained_long =
        round->trains_us != TIME_NEVER && core->now_us - round->trains_us >= ROUND_DELAY_US_MAX;

    /* The round has ended, so the wait after a failed change is over. */
    backoff->not_before_us = core->now_us;
    backoff->fruitless = (died && round->entered) || trained_long ? 0 : backoff->fruitless + 1;
    snprintf(backoff->waited, sizeof(backoff->waited), "%s", waits_said(core));
    if (backoff->fruitless >= 2)
        backoff->not_before_us +=
            backoff_doubled_us(ROUND_DELAY_US, backoff->fruitless - 2, ROUND_DELAY_US_MAX);
}

/* Judges whether the ended round brought the training further, when all survivors have said which
 * commits they hold. Returns NULL, or the reason why the job fails: the ranks called different
 * operations in MISMATCHES_MAX fruitless rounds in a row. */
const char *backoff_weigh(struct core *core)
{
    struct round *round = &core->current;
    struct core_backoff *backoff = &core->backoff;
    struct msg_held newest = { .commit = round->commit };
    const struct worker *worker;
    bool further;

    round->weighed = true;
    for (size_t i = 0; (worker = roster_next_member(core, round, &i));)
        for (size_t k = 0; k < worker->held_count; k++)
            if (worker->held[k].commit > newest.commit)
                newest = worker->held[k];
    /* A commit with a higher number counts as newer only if its contents have changed: a training
     * loop may commit before its first step. A checksum of 0 is not known, and counts as changed.
     */
    further =
        newest.commit > round->commit && (!newest.checksum || newest.checksum != backoff->reached);
    if (newest.checksum)
        backoff->reached = newest.checksum;
    /* `entered`: some member trained. `lost`: a member has died since the round began, perhaps
     * after the revoke. The cause of the failure is probably gone with that member, so the round is
     * forgiven even if it left no newer commit (backoff.h). */
    if (backoff->fruitless && round->entered && (further || round->lost))
        backoff_forgive(core);
    if (round->failed_with != HVD_E_MISMATCH || round->lost || !backoff->fruitless)
        backoff->mismatches = 0;
    else if (++backoff->mismatches >= MISMATCHES_MAX)
        return tell_text(core,
                         "%d rounds in a row ended without a new commit, because the ranks made "
                         "different calls: %s",
                         MISMATCHES_MAX, backoff->mismatch);
    return NULL;
}

/* Forgets the fruitless rounds in a row: the next round begins without a wait. The counts of
 * mismatches and of failed changes stay. */
void backoff_forgive(struct core *core)
{
    core->backoff.fruitless = 0;
    core->backoff.not_before_us = core->now_us;
}

/* The round has ended in a switch, with all members: nothing has failed, so all counts of failures
 * in a row start again at 0. */
void backoff_switched(struct core *core)
{
    core->backoff.fruitless = core->backoff.mismatches = core->backoff.failed_changes = 0;
}

/* A change was abandoned: the next one waits, twice as long after each failure in a row. The
 * current round goes on. */
void backoff_change_failed(struct core *core)
{
    struct core_backoff *backoff = &core->backoff;

    backoff->not_before_us =
        core->now_us +
        backoff_doubled_us(CHANGE_DELAY_US, backoff->failed_changes++, CHANGE_DELAY_US_MAX);
    core_want_timer(core, backoff->not_before_us);
}

/* Keeps the text with which a member reported that ranks called different operations, for the
 * reason that backoff_weigh gives when the job fails. */
void backoff_note_mismatch(struct core *core, const char *text)
{
    snprintf(core->backoff.mismatch, sizeof(core->backoff.mismatch), "%s", text);
}
