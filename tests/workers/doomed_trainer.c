/*
 * doomed_trainer: a training program whose ranks do on command what an autopsy has to tell. In each
 * step the ranks add up a number and commit, until there is a file STOP in the folder.
 *
 *     doomed_trainer SAY FOLDER
 *
 * In each round a line is appended to SAY: incarnation, round, rank, size. While a file is there:
 *
 *     late    rank 0 does not come to the collective, so the others wait inside of it
 *     fail    rank 1 gives the training up: it removes the file, calls hvd_fail, and its train
 * fails hang    rank 1 removes the file, and then does nothing any more, outside of the library
 *     exit    rank 1 removes the file, prints some lines, and exits with code 7
 */
#include "tests/workers/worker_report.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define STEP_MS 5

struct trainer {
    const char *say, *folder;
    int64_t step;
};

/* True: the test has put a file of this name into the folder. */
static bool asked(const struct trainer *self, const char *name, bool once)
{
    char path[512];

    snprintf(path, sizeof(path), "%s/%s", self->folder, name);
    return once ? unlink(path) == 0 : access(path, F_OK) == 0;
}

/* Does what the test has asked rank 1 for; else returns 0. */
static int misbehave(const struct trainer *self)
{
    if (asked(self, "exit", true)) {
        printf("step %d was the last one\n", (int)self->step);
        fflush(stdout);
        fprintf(stderr, "Traceback:\n  \033[31mthe \033]0;title\007 data is gone\n");
        exit(7);
    }
    while (asked(self, "hang", true))
        for (;;)
            pause();
    if (asked(self, "fail", true)) {
        (void)hvd_fail("the loss is not a number");
        return HVD_E_INVAL;
    }
    return 0;
}

static int train(hvd_state *state, void *arg)
{
    struct trainer *self = arg;
    int32_t stop = 0;
    int rc = 0;

    worker_say_round(self->say);
    while (!rc && !stop) {
        stop = asked(self, "stop", false);
        worker_pass(STEP_MS);
        while (hvd_rank() == 0 && asked(self, "late", false) && !hvd_news())
            worker_pass(STEP_MS);
        rc = hvd_rank() == 1 ? misbehave(self) : 0;
        if (!rc)
            rc = hvd_allreduce(&stop, &stop, 1, HVD_INT32, HVD_MAX);
        self->step++;
        if (!rc && !stop)
            rc = hvd_state_commit(state);
    }
    return rc;
}

int main(int argc, char **argv)
{
    struct trainer self = { argc == 3 ? argv[1] : NULL, argc == 3 ? argv[2] : NULL, 0 };
    hvd_state *state;
    int rc;

    if (argc != 3 || hvd_init())
        worker_give_up(2, "doomed_trainer SAY FOLDER");
    state = hvd_state_create();
    if (!state || hvd_state_add_scalar(state, "step", &self.step, HVD_INT64))
        worker_give_up(1, "the state");
    rc = hvd_elastic_run(state, train, &self);
    hvd_state_free(state);
    return worker_status(rc);
}
