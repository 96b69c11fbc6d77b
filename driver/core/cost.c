#include "driver/core/cost.h"

#include "driver/core/round.h"
#include "driver/core/tell.h"

#include <string.h>

static int64_t more(int64_t one, int64_t other)
{
    return one > other ? one : other;
}

void cost_lost(struct core *core)
{
    const struct round *round = &core->current;

    if (round->entered == round->members.count || core->costs.lost_us == TIME_NEVER)
        core->costs.lost_us = core->now_us;
}

/* Since when it is known that there has to be another round. The first one is not waited for by
 * anybody who trains. */
static int64_t known_us(const struct core *core, const struct round *round)
{
    switch (round->cause) {
    case CAUSE_RECOVERY: return core->costs.lost_us;
    case CAUSE_SWITCH: return core->costs.prepare_us;
    default: return core->now_us;
    }
}

void cost_begin(struct core *core)
{
    const struct round *round = &core->current;
    int64_t since_us = known_us(core, round);

    core->costs.now = (struct view_change){
        .round = round->number,
        .cause = round->cause,
        .from = (uint32_t)core->costs.size_before,
        .to = (uint32_t)round->members.count,
        .agree_us = since_us == TIME_NEVER ? 0 : core->now_us - since_us,
    };
    core->costs.since_us = since_us;
}

/* Who comes at a switch is there before the others, and waits for them to connect; those wait in
 * their first step until it has the state. So of newcomers nothing counts but that, unless there
 * are no others. */
void cost_entered(struct core *core, const struct worker *worker, const struct msg_entered *costs)
{
    struct view_change *cost = &core->costs.now;
    int64_t sum_us = time_add(costs->rebuild_us, costs->state_us);

    cost->state_us = more(cost->state_us, costs->state_us);
    if (worker->newcomer && cost->cause == CAUSE_SWITCH && core->current.holders.count)
        return;
    cost->rebuild_us = more(cost->rebuild_us, costs->rebuild_us);
    cost->first_step_us = more(cost->first_step_us, costs->first_step_us);
    cost->pause_us = more(cost->pause_us, time_add(sum_us, costs->first_step_us));
}

static void keep(struct core *core)
{
    struct view_change *kept = core->costs.kept;

    if (core->costs.count == ARRAY_SIZE(core->costs.kept))
        memmove(kept, kept + 1, --core->costs.count * sizeof(*kept));
    kept[core->costs.count++] = core->costs.now;
}

void cost_end(struct core *core)
{
    struct view_change *cost = &core->costs.now;

    core->costs.lost_us = TIME_NEVER;
    core->costs.size_before = core->current.members.count;
    if (cost->round != core->current.number || core->costs.since_us == TIME_NEVER)
        return;
    if (cost->cause != CAUSE_SWITCH)
        cost->pause_us = core->now_us - core->costs.since_us;
    cost->ended_us = core->now_us;
    keep(core);
}

const char *cost_text(struct core *core)
{
    const struct view_change *cost = &core->costs.now;
    char pause[TIME_TEXT_MAX], agree[TIME_TEXT_MAX], rebuild[TIME_TEXT_MAX], state[TIME_TEXT_MAX];
    char step[TIME_TEXT_MAX];

    if (cost->round != core->current.number || core->costs.since_us == TIME_NEVER)
        return "";
    return tell_text(core, " (%s %s: %s%s%srebuild %s, state %s, first step %s)",
                     change_cause_name(cost->cause), time_brief(cost->pause_us, pause),
                     cost->cause == CAUSE_FIRST ? "" : "agree ",
                     cost->cause == CAUSE_FIRST ? "" : time_brief(cost->agree_us, agree),
                     cost->cause == CAUSE_RECOVERY ? ", "
                     : cost->cause == CAUSE_SWITCH ? " beside it, "
                                                   : "",
                     time_brief(cost->rebuild_us, rebuild), time_brief(cost->state_us, state),
                     time_brief(cost->first_step_us, step));
}
