/*
 * goodput.c: each moment of each worker that was there is counted once.
 *
 * The time from one line of the steps to the next, with s workers in the later one:
 *
 *     in a round            min(gap, 3 usual steps) x s is useful, or lost and done again; a step
 *                           that is slower than others is not a loss. What is longer is a pause.
 *     to another round      min(gap, a usual step) x s is that of its first step; the rest is a
 *                           pause of those who trained before and after.
 *     who is there beyond   does not train: the look for hosts, the start of its agent, the boot of
 *                           its worker, the wait for others, the switch; or it is drained.
 *
 * A step is lost if one with its number, or a lower one, comes later. Before the first step nobody
 * trains yet. Behind the last one the time is nobody's: the rest.
 *
 * The limit is what a launcher could reach that has the same boot and the same steps and no cost of
 * its own. Who goes without notice takes the step that is in progress with it, half of one on
 * average, of all that stay; who comes cannot train before it is up:
 *
 *     limit = available - not training - losses x usual step / 2 x workers that stay
 *
 * Hosts that go in the same moment are one loss. With notice there are none.
 */
#include "tests/chaos/goodput.h"

#include "base/mem.h"

#define SLOW_STEPS 3 /* usual ones, up to which a step counts as one */

int64_t goodput_available_us(const struct replay *replay, int64_t from_us, int64_t until_us)
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

/* A line is kept if all that come later have higher numbers. */
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

/* From the line before this one to this one. */
static void count_gap(struct replay *replay, const struct step *before, const struct step *step,
                      bool kept)
{
    bool same = before->round == step->round;
    int64_t gap = step->at_us - before->at_us;
    int64_t step_us = least(gap, same ? SLOW_STEPS * replay->usual_us : replay->usual_us);
    int64_t available = goodput_available_us(replay, before->at_us, step->at_us);
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

/* Time with which no launcher could have done anything, as it has nobody who goes tell it. */
static int64_t unavoidable_us(const struct replay *replay)
{
    int64_t sum = 0;

    for (size_t i = 0; i < replay->change_count; i++) {
        const struct replay_change *change = &replay->changes[i];

        if (!change->add)
            sum += replay->usual_us / 2 * change->hosts * replay->slots;
    }
    return replay->announced ? 0 : sum;
}

int goodput_work_out(struct replay *replay, const struct steps *steps)
{
    struct step last = { .at_us = replay->began_us };
    bool *kept;
    int rc = find_kept(steps, &kept);

    if (rc)
        return rc;
    replay->usual_us = steps_usual_us(steps, 0);
    replay->available_us = goodput_available_us(replay, replay->began_us, replay->ended_us);
    for (size_t i = 0; i < steps->count; i++) {
        const struct step *step = &steps->list[i];

        if (step->at_us < last.at_us || step->at_us > replay->ended_us)
            continue; /* a line that came late, or after the end */
        if (last.size == 0)
            replay->lost_boot_us += goodput_available_us(replay, last.at_us, step->at_us);
        else
            count_gap(replay, &last, step, kept[i]);
        replay->steps += kept[i];
        replay->repeated += !kept[i];
        last = *step;
    }
    if (last.size == 0)
        replay->lost_boot_us = replay->available_us;
    replay->limit_us = replay->available_us - replay->lost_boot_us - unavoidable_us(replay);
    mem_free(kept);
    return 0;
}
