/*
 * count: a training program as a user has it, in another tree: it knows only the
 * installed files. Together its ranks count steps, until there is a file that says stop. Then what
 * it has counted in two ways must be the same, also if workers died meanwhile.
 *
 *     count SAY STOP
 *
 * In each round a line is appended to SAY: incarnation, round, rank, size, and the step with which
 * the round begins; and one is printed that says that step.
 */
#include <hvd/hvd.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

struct count {
    const char *say, *stop;
    uint64_t steps;
    double sum;
};

static int say_round(const struct count *count)
{
    const char *incarnation = getenv("HVD_INCARNATION");
    FILE *file = fopen(count->say, "a");

    if (!file)
        return HVD_E_IO;
    printf("round %" PRIu64 " begins at %" PRIu64 "\n", hvd_round(), count->steps);
    fprintf(file, "%s %" PRIu64 " %d %d %" PRIu64 "\n", incarnation ? incarnation : "0",
            hvd_round(), hvd_rank(), hvd_size(), count->steps);
    return fclose(file) ? HVD_E_IO : 0;
}

/* Each rank gives 1, and whether it sees the file: all of them stop in the same step. */
static int step(struct count *count, int32_t *ret_stop)
{
    double one = 1.0;
    int32_t stop = access(count->stop, F_OK) == 0;
    int code = hvd_allreduce(&one, &one, 1, HVD_FLOAT64, HVD_AVERAGE);

    if (!code)
        code = hvd_allreduce(&stop, &stop, 1, HVD_INT32, HVD_MAX);
    if (code)
        return code;
    count->sum += one;
    count->steps++;
    *ret_stop = stop;
    return 0;
}

static int train(hvd_state *state, void *arg)
{
    struct count *count = (struct count *)arg;
    int32_t stop = 0;
    int code = say_round(count);

    while (!code && !stop) {
        code = step(count, &stop);
        if (!code && !stop)
            code = hvd_state_commit(state);
    }
    return code;
}

static int fail(const char *what, int code)
{
    fprintf(stderr, "count: %s: %s: %s\n", what, hvd_strerror(code), hvd_last_error());
    return 1;
}

int main(int argc, char **argv)
{
    struct count count = { argc > 1 ? argv[1] : "", argc > 2 ? argv[2] : "", 0, 0.0 };
    hvd_state *state;
    int code;

    setvbuf(stdout, NULL, _IOLBF, 0);
    code = hvd_init();
    if (code)
        return fail("hvd_init", code);
    state = hvd_state_create();
    code = hvd_state_add_scalar(state, "steps", &count.steps, HVD_INT64);
    if (!code)
        code = hvd_state_add(state, "sum", &count.sum, sizeof(count.sum));
    if (!code)
        code = hvd_elastic_run(state, train, &count);
    if (code < 0)
        return fail("hvd_elastic_run", code);
    hvd_state_free(state);
    if (!code && count.sum != (double)count.steps) {
        fprintf(stderr, "count: %" PRIu64 " steps, and a sum of %.17g\n", count.steps, count.sum);
        return 1;
    }
    if (!code)
        printf("counted %" PRIu64 "\n", count.steps);
    hvd_shutdown();
    return 0;
}
