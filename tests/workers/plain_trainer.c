/*
 * plain_trainer.c: a worker for an observer: in each step all ranks send the same known number, in
 * 64 KiB of it, and get it back as their maximum. A job of it ends after STEPS steps.
 */
#include "hvd/hvd.h"

#include <stdio.h>
#include <string.h>

#define STEPS 50
#define COUNT 8192

static int64_t numbers[COUNT];

static int train(hvd_state *state, void *arg)
{
    int64_t *steps = arg;

    while (*steps < STEPS) {
        int64_t sums[COUNT];
        int code = hvd_allreduce(numbers, sums, COUNT, HVD_INT64, HVD_MAX);

        if (code)
            return code;
        if (memcmp(sums, numbers, sizeof(sums)) != 0) {
            fprintf(stderr, "plain_trainer: a maximum is wrong\n");
            return HVD_E_INTERNAL;
        }
        ++*steps;
        code = hvd_state_commit(state);
        if (code)
            return code;
    }
    return 0;
}

int main(void)
{
    int64_t steps = 0;
    hvd_state *state = NULL;
    int code = hvd_init();

    for (size_t i = 0; i < COUNT; i++)
        memcpy(&numbers[i], "SECRNMBR", sizeof(numbers[i]));
    if (!code && !(state = hvd_state_create()))
        code = HVD_E_NOMEM;
    if (!code)
        code = hvd_state_add(state, "steps", &steps, sizeof(steps));
    if (!code)
        code = hvd_elastic_run(state, train, &steps);
    if (code < 0) /* HVD_DONE is a success too */
        fprintf(stderr, "plain_trainer: %s: %s\n", hvd_strerror(code), hvd_last_error());
    hvd_state_free(state);
    hvd_shutdown();
    return code < 0 ? 1 : 0;
}
