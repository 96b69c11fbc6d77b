/*
 * reporting_trainer: a training program that reports values (hvd_report): in each step its loss,
 * which becomes smaller with the step, and values that are no numbers; once what it has named so;
 * and, where it may not, names that are refused. Together its ranks count steps, until there is a
 * file STOP.
 *
 *     reporting_trainer SAY STOP
 *
 * In each round a line is appended to SAY: incarnation, round, rank, size. At the end rank 0 writes
 * the number of the last step, as it has reported it, into STOP. A rank that gets another code than
 * hvd.h promises ends with 9.
 */
#include "tests/workers/worker_report.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <unistd.h>

#define STEP_MS 5

struct trainer {
    const char *say, *stop;
    int64_t step;
    bool reported; /* the values that are reported once */
};

static void expect(const char *name, double value, int code)
{
    int rc = hvd_report(name, value);

    if (rc != (hvd_rank() == 0 ? code : 0))
        worker_wrong("hvd_report(\"%s\") is %d on rank %d: %s", name, rc, hvd_rank(),
                     hvd_last_error());
}

/* Names that are refused, each more than once, and more names than there may be. */
static void report_once(struct trainer *self)
{
    static const char *const hostile[] = {
        "<script>alert(1)</script>", "a\"} 1", "\x1b[31mred", "a\nhvd_elastic_round 77", "",
    };
    char name[32];

    for (int times = 0; times < 2; times++)
        for (size_t i = 0; i < sizeof(hostile) / sizeof(hostile[0]); i++)
            expect(hostile[i], 1, HVD_E_INVAL);
    expect("once", (double)self->step, 0);
    for (int i = 0; i < 40; i++) {
        snprintf(name, sizeof(name), "extra/%d", i);
        expect(name, i, i < 27 ? 0 : HVD_E_LIMIT);
    }
    self->reported = true;
}

/* Writes the number of the last step for the test that has made the file STOP. */
static void say_last_step(const struct trainer *self)
{
    FILE *stream = fopen(self->stop, "we");

    if (!stream || fprintf(stream, "%" PRId64 "\n", self->step) < 0 || fclose(stream))
        worker_wrong("%s cannot be written", self->stop);
}

static int train(hvd_state *state, void *arg)
{
    struct trainer *self = arg;
    int32_t stop = 0;
    int rc = 0;

    worker_say_round(self->say);
    while (!rc && !stop) {
        double value = 1;

        stop = access(self->stop, F_OK) == 0;
        worker_pass(STEP_MS);
        rc = hvd_allreduce(&value, &value, 1, HVD_FLOAT64, HVD_AVERAGE);
        if (!rc)
            rc = hvd_allreduce(&stop, &stop, 1, HVD_INT32, HVD_MAX);
        if (rc)
            break;
        self->step++;
        expect("loss", 1 / (double)self->step, 0);
        expect("step", (double)self->step, 0);
        expect("nan", NAN, 0);
        expect("inf", -INFINITY, 0);
        if (!self->reported)
            report_once(self);
        rc = stop ? 0 : hvd_state_commit(state);
    }
    if (!rc && hvd_rank() == 0)
        say_last_step(self);
    return rc;
}

int main(int argc, char **argv)
{
    struct trainer self = { argc == 3 ? argv[1] : NULL, argc == 3 ? argv[2] : NULL, 0, false };
    hvd_state *state;
    int rc;

    if (argc != 3 || hvd_report("early", 1) != HVD_E_STATE || hvd_init() ||
        hvd_report("early", 1) != HVD_E_STATE)
        worker_give_up(2, "reporting_trainer SAY STOP");
    state = hvd_state_create();
    if (!state || hvd_state_add_scalar(state, "step", &self.step, HVD_INT64))
        worker_give_up(1, "the state");
    rc = hvd_elastic_run(state, train, &self);
    hvd_state_free(state);
    return worker_status(rc);
}
