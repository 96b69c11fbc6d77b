/*
 * trial.c: draws from a seed which members of a round are hurt, how and when, and says which of the
 * other members have to notice.
 */
#include "tests/coll/trial.h"

#include "base/rng.h"
#include "tests/coll/numbers.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

const char *const trial_engines[ENGINE_COUNT] = { "shm", "hierarchy, tcp", "flat, tcp",
                                                  "hierarchy, gloo", "flat, gloo" };

const char *const trial_harms[HARM_COUNT] = {
    "kill and cancel", "kill",       "kill two and cancel",      "stop and cancel",
    "cancel",          "cancel one", "a death while connecting", "drop and cancel",
};

static void choose_hosts(struct trial *trial, struct rng *rng)
{
    uint32_t size = trial->layout.size, hosts = 2 + (uint32_t)rng_below(rng, 2);

    for (uint32_t i = 0; i < size; i++) {
        if (trial->networks)
            trial->layout.host[i] = i >= size / 2;
        else if (trial->engine != ENGINE_HIERARCHY && trial->engine != ENGINE_HIERARCHY_GLOO)
            continue;
        else if (hosts == 2)
            trial->layout.host[i] = i >= size - size / 4; /* layouts like 3+1 and 6+2 */
        /* layouts like 1+1+2 and 2+3+3 */
        else
            trial->layout.host[i] = (uint8_t)((i + 1) * hosts / (size + 1));
    }
}

void trial_make(struct trial *trial, uint64_t seed, uint64_t number, const char *const *networks)
{
    struct rng rng;

    memset(trial, 0, sizeof(*trial));
    trial->seed = seed;
    trial->number = number;
    trial->networks = networks;
    rng_seed(&rng, numbers_mix(seed, number));
    if (networks) {
        trial->harm = HARM_DROP;
        trial->engine = (enum trial_engine)(ENGINE_HIERARCHY + number % (ENGINE_COUNT - 1));
    } else { /* consecutive trials combine each harm with each engine */
        trial->engine = (enum trial_engine)(number % ENGINE_COUNT);
        trial->harm = (enum trial_harm)(number / ENGINE_COUNT % HARM_DROP);
    }
    trial->layout.size = rng_below(&rng, 2) ? 8 : 4;
    choose_hosts(trial, &rng);
    if (trial->harm != HARM_CANCEL && trial->harm != HARM_CANCEL_ONE && trial->harm != HARM_DROP)
        trial->hurt_count = trial->harm == HARM_KILL_TWO ? 2 : 1;
    trial->hurt[0] = (uint32_t)rng_below(&rng, trial->layout.size);
    trial->hurt[1] = (trial->hurt[0] + 1 + (uint32_t)rng_below(&rng, trial->layout.size - 1)) %
                     trial->layout.size;
    trial->after_us = (int64_t)rng_below(&rng, 30000);
}

bool trial_hurts(const struct trial *trial, uint32_t rank)
{
    for (uint32_t i = 0; i < trial->hurt_count; i++) {
        if (trial->hurt[i] == rank)
            return true;
    }
    return false;
}

void trial_show(const struct trial *trial, char text[160])
{
    char hosts[PROCESSES_MAX + 1];

    processes_layout_show(&trial->layout, hosts);
    (void)snprintf(text, 160, "trial %" PRIu64 ": %s, hosts %s, %s", trial->number,
                   trial_engines[trial->engine], hosts, trial_harms[trial->harm]);
    if (trial->hurt_count)
        (void)snprintf(text + strlen(text), 160 - strlen(text), " (rank %u)", trial->hurt[0]);
}
