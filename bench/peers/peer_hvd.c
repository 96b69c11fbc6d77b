/*
 * peer_hvd: the training step that the peers are compared with, on libhvd. The environment
 * describes the step: peer_step.h.
 */
#include "base/mem.h"
#include "bench/peers/peer_step.h"
#include "os/clock.h"

#include <hvd/hvd.h>
#include <stdio.h>
#include <string.h>

struct trainer {
    struct peer_step step;
    int64_t number;
    char *state;
};

static int take_care(hvd_state *state, struct trainer *trainer)
{
    int64_t began_us = clock_now_us();
    int code;

    if (trainer->step.care == PEER_CHECK)
        return hvd_state_check(state);
    if (trainer->step.care == PEER_NONE)
        return 0;
    code = hvd_state_commit(state);
    if (!code && hvd_rank() == 0)
        peer_note(&trainer->step, "commit", clock_now_us() - began_us);
    return code;
}

static int train(hvd_state *state, void *arg)
{
    struct trainer *trainer = arg;
    struct peer_step *step = &trainer->step;
    int code = 0;

    while (!code) {
        peer_step_fill(step);
        code = hvd_allreduce(step->numbers, step->numbers, step->floats, HVD_FLOAT32, HVD_SUM);
        if (code)
            return code;
        peer_step_work(step, hvd_size());
        trainer->number++;
        trainer->state[(size_t)trainer->number % (step->state_bytes + 1)]++;
        if (hvd_rank() == 0)
            peer_step_note(step, hvd_round(), trainer->number, hvd_size());
        code = take_care(state, trainer);
    }
    return code;
}

static int take_part(struct trainer *trainer)
{
    size_t bytes = trainer->step.state_bytes;
    hvd_state *state = NULL;
    int code = hvd_init();

    if (!code && !(state = hvd_state_create()))
        code = HVD_E_NOMEM;
    if (!code)
        code = hvd_state_add_scalar(state, "step", &trainer->number, HVD_INT64);
    if (!code)
        code = hvd_state_add(state, "state", trainer->state, bytes);
    if (!code)
        code = hvd_elastic_run(state, train, trainer);
    hvd_state_free(state);
    return code;
}

int main(void)
{
    static struct trainer trainer;
    int code;

    peer_step_open(&trainer.step);
    trainer.state = mem_alloc(trainer.step.state_bytes + 1);
    if (trainer.state) {
        memset(trainer.state, 1, trainer.step.state_bytes + 1);
        code = take_part(&trainer);
    } else {
        code = HVD_E_NOMEM;
    }
    if (code < 0)
        fprintf(stderr, "peer_hvd: %s: %s\n", hvd_strerror(code), hvd_last_error());
    mem_free(trainer.state);
    peer_step_close(&trainer.step);
    return code < 0 ? 1 : 0;
}
