/*
 * cost.c: measures changes of the membership by the messages that mark their phases. round.c and
 * change.c call it when rounds end, begin and train; view.c and the trace show the costs. A change
 * whose beginning this driver has not seen is not measured.
 */
#include "driver/core/cost.h"

#include "driver/core/tell.h"

#include <string.h>

/* Histograms of other drivers have the same bounds, so that metrics of jobs can be added up. */
const int64_t pause_bounds_us[PAUSE_BOUNDS] = {
    5 * TIME_MS,    25 * TIME_MS, 100 * TIME_MS, 250 * TIME_MS, 500 * TIME_MS, TIME_S,
    2500 * TIME_MS, 5 * TIME_S,   10 * TIME_S,   30 * TIME_S,   2 * TIME_MIN,  10 * TIME_MIN,
};

/* A switch begins to be prepared: notes the moment, from which cost_begin counts the time until the
 * members agree. */
void cost_prepare(struct core *core)
{
    core->costs.prepare_us = core->now_us;
}

/* Called when core->current is revoked: remembers since when no worker trains. If an earlier revoke
 * has set that time, and not all members have begun to train since, the earlier time stays. */
void cost_lost(struct core *core, int64_t since_us)
{
    const struct round *round = &core->current;

    if (round->entered != round->members.count && core->costs.lost_us != TIME_NEVER)
        return;
    core->costs.lost_us = since_us;
    core->costs.noticed_us = core->now_us;
}

/* Called when core->current has begun: begins to measure the change that led to it. */
void cost_begin(struct core *core)
{
    const struct round *round = &core->current;
    /* The moment when the driver knew that a new round was needed. For the first round that is
     * now. `since_us`: when the members stopped, which is earlier if the failure was a silence. */
    int64_t known_us = core->now_us, since_us;

    if (round->cause == CAUSE_RECOVERY)
        known_us = core->costs.noticed_us;
    else if (round->cause == CAUSE_SWITCH)
        known_us = core->costs.prepare_us;
    since_us = round->cause == CAUSE_RECOVERY ? core->costs.lost_us : known_us;
    core->costs.now = (struct view_change){
        .round = round->number,
        .cause = round->cause,
        .from = (uint32_t)core->costs.size_before,
        .to = (uint32_t)round->members.count,
        .detect_us = since_us == TIME_NEVER ? 0 : known_us - since_us,
        .agree_us = since_us == TIME_NEVER ? 0 : core->now_us - known_us,
    };
    core->costs.since_us = since_us;
}

/* Returns the longer of two durations: a phase of a change takes as long as its slowest member. */
static int64_t cost_longer(int64_t one_us, int64_t other_us)
{
    return one_us > other_us ? one_us : other_us;
}

/* Takes the costs that one member has measured. At a switch only the time for the state counts of a
 * joiner, because the other times of the joiner are waits: the joiner waits until the other members
 * connect, and these members wait in their first step until the joiner has the state. If all
 * members are joiners, all their times count. */
void cost_entered(struct core *core, const struct worker *worker, const struct msg_entered *costs)
{
    struct view_change *cost = &core->costs.now;
    int64_t sum_us = time_add(costs->rebuild_us, costs->state_us);

    cost->state_us = cost_longer(cost->state_us, costs->state_us);
    if (worker->is_joiner && cost->cause == CAUSE_SWITCH && core->current.holders.count)
        return;
    cost->rebuild_us = cost_longer(cost->rebuild_us, costs->rebuild_us);
    cost->first_step_us = cost_longer(cost->first_step_us, costs->first_step_us);
    cost->pause_us = cost_longer(cost->pause_us, time_add(sum_us, costs->first_step_us));
}

/* True: this driver has seen the beginning of the present change, so its cost is known. */
static bool cost_is_known(const struct core *core)
{
    return core->costs.now.round == core->current.number && core->costs.since_us != TIME_NEVER;
}

/* Counts a duration in the histogram. The last count (index PAUSE_BOUNDS) is of durations longer
 * than every bound. */
static void cost_note(struct view_histogram *histogram, int64_t us)
{
    size_t i = 0;

    while (i < PAUSE_BOUNDS && us > pause_bounds_us[i])
        i++;
    histogram->counts[i]++;
    histogram->sum_us = time_add(histogram->sum_us, us);
}

/* Called when all members of core->current train: the change is complete. Its costs become the
 * newest entry of `kept`; if the list is full, the oldest entry goes. */
void cost_end(struct core *core)
{
    struct view_change *cost = &core->costs.now;
    struct view_change *kept = core->costs.kept;
    struct view_histogram *pauses;

    core->costs.lost_us = TIME_NEVER;
    core->costs.size_before = core->current.members.count;
    if (!cost_is_known(core)) /* an earlier driver has begun this change */
        return;
    /* At a switch the members trained until they changed over. In other changes they did not train
     * from the beginning of the change on, so the pause is the whole change. */
    if (cost->cause != CAUSE_SWITCH)
        cost->pause_us = core->now_us - core->costs.since_us;
    cost->ended_us = core->now_us;
    if (core->costs.count == ARRAY_SIZE(core->costs.kept))
        memmove(kept, kept + 1, --core->costs.count * sizeof(*kept));
    kept[core->costs.count++] = *cost;
    pauses = core->costs.pauses[cost->cause];
    cost_note(&pauses[PAUSE_WHOLE], cost->pause_us);
    cost_note(&pauses[PAUSE_DETECT], cost->detect_us);
    cost_note(&pauses[PAUSE_AGREE], cost->agree_us);
    cost_note(&pauses[PAUSE_REBUILD], cost->rebuild_us);
    cost_note(&pauses[PAUSE_STATE], cost->state_us);
    cost_note(&pauses[PAUSE_FIRST_STEP], cost->first_step_us);
}

/* Returns the costs of the present change for the log, such as " (recovery 1.2s: agree 10ms,
 * rebuild ...)"; "": not known. At a switch the members trained while they agreed: "agree 60ms
 * beside it" says that this time passed beside the pause and is no part of it. */
const char *cost_text(struct core *core, struct facts *facts)
{
    const struct view_change *cost = &core->costs.now;
    char pause[TIME_TEXT_MAX], agree[TIME_TEXT_MAX], rebuild[TIME_TEXT_MAX], state[TIME_TEXT_MAX];
    char step[TIME_TEXT_MAX], detect[TIME_TEXT_MAX];

    if (!cost_is_known(core))
        return "";
    facts->cause = change_cause_name(cost->cause);
    facts->has_cost = true;
    facts->cost.pause_us = cost->pause_us;
    facts->cost.detect_us = cost->detect_us;
    facts->cost.agree_us = cost->agree_us;
    facts->cost.rebuild_us = cost->rebuild_us;
    facts->cost.state_us = cost->state_us;
    facts->cost.first_step_us = cost->first_step_us;
    return tell_text(core, " (%s %s: %s%s%s%s%s%srebuild %s, state %s, first step %s)",
                     change_cause_name(cost->cause), time_brief(cost->pause_us, pause),
                     cost->detect_us ? "detect " : "",
                     cost->detect_us ? time_brief(cost->detect_us, detect) : "",
                     cost->detect_us ? ", " : "", cost->cause == CAUSE_FIRST ? "" : "agree ",
                     cost->cause == CAUSE_FIRST ? "" : time_brief(cost->agree_us, agree),
                     cost->cause == CAUSE_RECOVERY ? ", "
                     : cost->cause == CAUSE_SWITCH ? " beside it, "
                                                   : "",
                     time_brief(cost->rebuild_us, rebuild), time_brief(cost->state_us, state),
                     time_brief(cost->first_step_us, step));
}
