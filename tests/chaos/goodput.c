/*
 * goodput.c: computes what the workers' time was used for. Each moment of each worker is counted
 * once.
 *
 * The gap between two lines of the steps, with s workers in the later line:
 *
 *     in one round          min(gap, 3 usual steps) x s is useful, or lost if the step is repeated
 *                           later; a slow step is no loss. A longer gap is a pause.
 *     to another round      min(gap, a usual step) x s is the first step of the round; the rest is
 *                           a pause of the workers that trained before and after.
 *     other workers         do not train: discovery, the start of the agent, the boot of the
 *                           worker, the wait for others, the switch; or the worker is drained.
 *
 * A step is lost if a later line has its number or a lower one. Before the first step no worker
 * trains. The time after the last step is neither.
 *
 * The limit is what a launcher could reach with the same boot and step times and no cost of its
 * own. When a worker leaves without notice, the step in progress is lost for all workers that stay:
 * half a step on average. A worker that joins cannot train before it has started:
 *
 *     limit = available - not training - losses x usual step / 2 x workers that stay
 *
 * Hosts that leave in the same moment are one loss. With notice there are no losses.
 */
#include "tests/chaos/replay.h"

#include "base/mem.h"

#define SLOW_STEPS 3 /* a step may take this many usual steps */

static int64_t available_us(const struct replay *replay, int64_t from_us, int64_t until_us)
{
    int64_t sum = 0;

    for (size_t i = 0; i < replay->change_count; i++) {
        const struct replay_change *change = &replay->changes[i];
        int64_t begin = change->at_us > from_us ? change->at_us : from_us;
        int64_t end = i + 1 < replay->change_count ? change[1].at_us : until_us;

        if (end > until_us)
            end = until_us;
        if (end > begin)
            sum += (end - begin) * change->hosts * replay->slots;
    }
    return sum;
}

/* Finds the lines that are kept: all later lines have higher numbers. */
static int find_kept(const struct steps *steps, bool **ret_kept)
{
    bool *kept = mem_zalloc_array(steps->count + 1, sizeof(*kept));
    uint64_t least = UINT64_MAX;

    if (!kept)
        return HVD_E_NOMEM;
    for (size_t i = steps->count; i-- > 0;) {
        kept[i] = steps->list[i].number < least;
        if (kept[i])
            least = steps->list[i].number;
    }
    *ret_kept = kept;
    return 0;
}

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Counts the time from one line to the next. */
static void count_gap(struct replay *replay, const struct step *before, const struct step *step,
                      bool kept)
{
    bool same = before->round == step->round;
    int64_t gap = step->at_us - before->at_us;
    int64_t step_us = least(gap, same ? SLOW_STEPS * replay->usual_us : replay->usual_us);
    int64_t available = available_us(replay, before->at_us, step->at_us);
    int64_t trained = least(step_us * step->size, available);
    int64_t stood = least((gap - step_us) * least(before->size, step->size), available - trained);

    if (kept)
        replay->useful_us += trained;
    else
        replay->lost_again_us += trained;
    replay->lost_pause_us += stood;
    replay->lost_boot_us += available - trained - stood;
    replay->rounds += !same;
}

int goodput_work_out(struct replay *replay, const struct steps *steps)
{
    struct step last = { .at_us = replay->began_us };
    bool *kept;
    int rc = find_kept(steps, &kept);
    int64_t sum;

    if (rc)
        return rc;
    replay->usual_us = steps_usual_us(steps, 0);
    replay->available_us = available_us(replay, replay->began_us, replay->ended_us);
    for (size_t i = 0; i < steps->count; i++) {
        const struct step *step = &steps->list[i];

        if (step->at_us < last.at_us || step->at_us > replay->ended_us)
            continue; /* a line that came late, or after the end */
        if (last.size == 0)
            replay->lost_boot_us += available_us(replay, last.at_us, step->at_us);
        else
            count_gap(replay, &last, step, kept[i]);
        replay->steps += kept[i];
        replay->repeated += !kept[i];
        last = *step;
    }
    if (last.size == 0)
        replay->lost_boot_us = replay->available_us;
    /* Time that no launcher could have used, because it is not told that a machine will leave. */
    sum = 0;
    for (size_t i = 0; i < replay->change_count; i++) {
        const struct replay_change *change = &replay->changes[i];

        if (!change->add)
            sum += replay->usual_us / 2 * change->hosts * replay->slots;
    }
    replay->limit_us = replay->available_us - replay->lost_boot_us - (replay->announced ? 0 : sum);
    mem_free(kept);
    return 0;
}
