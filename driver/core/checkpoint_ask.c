/*
 * checkpoint_ask.c: who wants a checkpoint before its time: an operator, or a job that is to end.
 * core.c brings the requests, checkpoint.c asks for them and reports how its attempts end.
 * Invariant: each operator who waits is answered once, at the end of an attempt that began after
 * the request, or when the job ends.
 */
#include "driver/core/checkpoint_ask.h"

#include "driver/core/over.h"
#include "driver/core/step.h"
#include "driver/core/tell.h"

#include <stdio.h>

/* An attempt begins as soon as all members train. Agents may wait for a commit that is far ahead;
 * a new HOLD asks for the newest one. */
void checkpoint_hurry(struct core *core)
{
    core->checkpoint.wanted = true;
    if (core->checkpoint.state == CHECKPOINT_HOLDING)
        core->checkpoint.state = CHECKPOINT_IDLE;
}

void checkpoint_want(struct core *core, const struct event *event)
{
    struct core_checkpoint *checkpoint = &core->checkpoint;

    if (!core->config.checkpoint_dir) {
        tell_reply(core, event->ask, HVD_E_STATE,
                   "the job has no directory for checkpoints; start it with --checkpoint-dir DIR");
    } else if (core->job >= JOB_FINISHING) {
        tell_reply(core, event->ask, HVD_E_STATE, "the job has come to its end");
    } else if (checkpoint->askers.count >= LIMIT_CLIENTS) {
        tell_reply(core, event->ask, HVD_E_BUSY,
                   "too many operators wait for a checkpoint; ask again when it is complete");
    } else if (VEC_RESERVE(&checkpoint->askers, 1, LIMIT_CLIENTS)) {
        core_fail(core);
    } else {
        CORE_TRACE(core, "an operator has asked for a checkpoint");
        checkpoint_hurry(core);
        if (event->code)
            checkpoint->askers.items[checkpoint->askers.count++] =
                (struct checkpoint_asker){ event->ask, core->now_us };
        else
            tell_reply(core, event->ask, 0, "a checkpoint is written when all workers train");
    }
}

void checkpoint_answer(struct core *core, int64_t until_us, int code, const char *text)
{
    struct core_checkpoint *checkpoint = &core->checkpoint;
    size_t left = 0;

    for (size_t i = 0; i < checkpoint->askers.count; i++) {
        const struct checkpoint_asker *asker = &checkpoint->askers.items[i];

        if (asker->since_us <= until_us)
            tell_reply(core, asker->ask, code, text);
        else
            checkpoint->askers.items[left++] = *asker;
    }
    checkpoint->askers.count = left;
}

bool checkpoint_last(struct core *core, const char *who)
{
    struct core_checkpoint *checkpoint = &core->checkpoint;

    if (!core->config.checkpoint_dir || core->job < JOB_RUNNING || core->job > JOB_RECOVERING ||
        checkpoint->last_us != TIME_NEVER)
        return false;
    checkpoint->last_us = core->now_us;
    checkpoint_hurry(core);
    snprintf(checkpoint->last_by, sizeof(checkpoint->last_by), "%s", who);
    CORE_TRACE(core,
               "%s ends the job: a checkpoint is written first; another stop ends the job without",
               who);
    core_want_timer(core, time_add(core->now_us, CHECKPOINT_LAST_US));
    return true;
}

void checkpoint_stop(struct core *core, const char *why)
{
    if (why)
        CORE_WARN(core, "the job ends without a last checkpoint: %s", why);
    core->checkpoint.last_us = TIME_NEVER;
    over_stop(core, core->checkpoint.last_by);
}
