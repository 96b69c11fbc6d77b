/* The library in a program that hvd-elastic has not started: a job of one worker, and its commits.
 * The body of a program is the train function of its hvd_elastic_run. */
#include "hvd/hvd.h"
#include "os/thread.h"
#include "proto/commit.h"
#include "tests/lib/test.h"
#include "worker/state_internal.h"

#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

struct program {
    struct test *t;
    hvd_state *state;
    int64_t step;
    uint8_t weights[3000];
    char note[16]; /* the value of a custom entry */
    int64_t save;  /* the result of the entry's save function, unless 0 */
    int load;
    int resets;
    int (*body)(struct program *program);
};

static int64_t save_note(void *arg, void *into, size_t room)
{
    const struct program *program = arg;

    if (program->save)
        return program->save;
    if (strlen(program->note) > room)
        return HVD_E_LIMIT;
    memcpy(into, program->note, strlen(program->note));
    return (int64_t)strlen(program->note);
}

static int load_note(void *arg, const void *from, size_t bytes)
{
    struct program *program = arg;

    memcpy(program->note, from, bytes);
    program->note[bytes] = '\0';
    return program->load;
}

static int on_reset(hvd_state *state, void *arg)
{
    struct program *program = arg;

    (void)state;
    program->resets++;
    return 0;
}

static int train(hvd_state *state, void *arg)
{
    struct program *program = arg;

    (void)state;
    return program->body(program);
}

/* Calls hvd_init without an agent, and makes a state with three entries. 0, or a code. */
static int open_program(struct program *program, struct test *t)
{
    int rc;

    memset(program, 0, sizeof(*program));
    program->t = t;
    unsetenv("HVD_AGENT");
    rc = hvd_init();
    program->state = rc ? NULL : hvd_state_create();
    if (!program->state)
        return HVD_E_NOMEM;
    rc = hvd_state_add_scalar(program->state, "step", &program->step, HVD_INT64);
    if (!rc)
        rc = hvd_state_add(program->state, "weights", program->weights, sizeof(program->weights));
    if (!rc)
        rc = hvd_state_add_custom(program->state, "note", sizeof(program->note) - 1, save_note,
                                  load_note, program);
    return rc ? rc : hvd_state_on_reset(program->state, on_reset, program);
}

static void close_program(struct program *program)
{
    hvd_state_free(program->state);
    program->state = NULL;
    hvd_shutdown();
}

/* Runs hvd_elastic_run with the body as train. The body's checks fail the test; the result of the
 * body becomes the result of the run. */
static int run(struct program *program, int (*body)(struct program *program))
{
    program->body = body;
    return hvd_elastic_run(program->state, train, program);
}

static void set(struct program *program, int64_t step)
{
    program->step = step;
    memset(program->weights, (int)step, sizeof(program->weights));
    program->note[0] = (char)('a' + step);
    program->note[1] = '\0';
}

static bool is(const struct program *program, int64_t step)
{
    return program->step == step && program->weights[2999] == (uint8_t)step &&
           program->note[0] == (char)('a' + step);
}

/* ---- rounds of one --------------------------------------------------------------------------- */

static int use_collectives(struct program *program)
{
    struct test *t = program->t;
    const double in[2] = { 1.5, 2 };
    double out[2] = { 0 };
    int rc = HVD_E_INTERNAL;

    CHECK_INT(t, hvd_round(), ==, 1);
    CHECK_OK(t, rc = hvd_allreduce(in, out, 2, HVD_FLOAT64, HVD_AVERAGE));
    CHECK(t, out[0] == 1.5 && out[1] == 2);
    CHECK_OK(t, rc = hvd_broadcast(out, 2, HVD_FLOAT64, 0));
    CHECK_OK(t, rc = hvd_allgather(in, 2, out, NULL, HVD_FLOAT64));
    CHECK_OK(t, rc = hvd_barrier());
    CHECK_OK(t, rc = hvd_state_check(program->state));
    CHECK_CODE(t, rc = hvd_elastic_run(program->state, train, program), HVD_E_STATE);
    CHECK_HAS(t, hvd_last_error(), "running already");
    CHECK_CODE(t, rc = hvd_state_add(program->state, "late", &program->step, 1), HVD_E_STATE);
    CHECK_HAS(t, hvd_last_error(), "before hvd_elastic_run");
    hvd_shutdown(); /* does nothing */
    hvd_state_free(program->state);
    rc = 0;
out:
    return rc;
}

static int belongs(const hvd_place *place, void *arg)
{
    return place->size == 1 && place->local_size == 1 && place->cross_size == 1 ? *(int *)arg : -1;
}

static hvd_group *all_of_us, *none_of_us;

/* Makes each kind of call, also by hvd_start, in groups with and without this worker. */
static int use_every_form(struct program *program)
{
    static const int first = 0;
    hvd_group *opened = NULL;
    struct test *t = program->t;
    float *in = hvd_alloc(4 * sizeof(*in));
    float *out = hvd_alloc(4 * sizeof(*out));
    const size_t one[] = { 4 };
    const hvd_piece pieces[] = {
        {in,      out,     1},
        { in + 1, out + 1, 3}
    };
    hvd_call call = { .kind = HVD_ALLREDUCE,
                      .group = all_of_us,
                      .pieces = pieces,
                      .piece_count = 2,
                      .type = HVD_FLOAT32,
                      .prescale = 2 };
    hvd_request *requests[2] = { NULL, NULL };
    int last = -1;
    int done = 0;
    int rc = HVD_E_NOMEM;

    CHECK(t, in && out);
    for (int i = 0; i < 4; i++)
        in[i] = (float)i;
    CHECK_OK(t, rc = hvd_reducescatter(in, out, 4, one, HVD_FLOAT32, HVD_PRODUCT));
    CHECK_INT(t, out[3], ==, 3);
    CHECK_OK(t, rc = hvd_alltoall(in, out, 2, HVD_FLOAT32));
    CHECK_OK(t, rc = hvd_run(&call));
    CHECK_INT(t, out[0], ==, 0);
    CHECK_INT(t, out[3], ==, 6);
    CHECK_OK(t, rc = hvd_start(&call, &requests[0]));
    call.prescale = 3;
    CHECK_OK(t, rc = hvd_start(&call, &requests[1]));
    CHECK_OK(t, rc = hvd_barrier()); /* a barrier ends after both requests */
    CHECK_OK(t, rc = hvd_test(requests[0], &done));
    CHECK(t, done);
    CHECK_INT(t, out[3], ==, 9);
    CHECK_OK(t, rc = hvd_wait(requests[1]));
    CHECK_OK(t, rc = hvd_wait(requests[0]));
    CHECK_CODE(t, rc = hvd_wait(requests[0]), HVD_E_INVAL);
    CHECK_INT(t, hvd_group_rank(all_of_us), ==, 0);
    CHECK_INT(t, hvd_group_size(all_of_us), ==, 1);
    CHECK_INT(t, hvd_group_rank(none_of_us), ==, -1);
    CHECK_INT(t, hvd_group_size(none_of_us), ==, 0);
    CHECK_OK(t, rc = hvd_group_create_of(&first, 1, &opened));
    CHECK_INT(t, hvd_group_rank(opened), ==, 0);
    CHECK_INT(t, hvd_group_size(opened), ==, 1);
    CHECK_OK(t, rc = hvd_run(&(hvd_call){ .kind = HVD_BARRIER, .group = opened }));
    CHECK_OK(t, rc = hvd_group_close(opened));
    CHECK_CODE(t, hvd_group_rank(opened), HVD_E_INVAL);
    CHECK_OK(t, rc = hvd_join(&last));
    CHECK_INT(t, last, ==, 0);
    call.group = none_of_us;
    CHECK_CODE(t, rc = hvd_run(&call), HVD_E_INVAL);
    CHECK_HAS(t, hvd_last_error(), "rank 0 is not a member of group 2");
    rc = HVD_E_INVAL;
out:
    if (rc != HVD_E_INVAL) /* a started request may still use the buffers */
        (void)hvd_wait(requests[0]);
    hvd_free(in);
    hvd_free(out);
    return rc;
}

/* A case that is one run of a program: the body, and the code that the run must return. */
#define RUN_CASE(name, flags, body, code)         \
    TEST_FLAGS(name, flags)                       \
    {                                             \
        struct program program;                   \
        CHECK_OK(t, open_program(&program, t));   \
        CHECK_CODE(t, run(&program, body), code); \
out:                                              \
        close_program(&program);                  \
    }

TEST(every_form_works)
{
    struct program program = { .state = NULL };
    hvd_request *request;
    int colour = 3;

    CHECK_CODE(t, hvd_group_create(belongs, &colour, &all_of_us), HVD_E_STATE);
    CHECK_OK(t, open_program(&program, t));
    CHECK_OK(t, hvd_group_create(belongs, &colour, &all_of_us));
    CHECK_OK(t, hvd_group_create_of(NULL, 0, &none_of_us));
    CHECK_CODE(t, hvd_group_size(all_of_us), HVD_E_STATE);
    CHECK_CODE(t, hvd_group_size((hvd_group *)&colour), HVD_E_INVAL);
    CHECK_CODE(t, hvd_start(&(hvd_call){ .kind = HVD_BARRIER }, &request), HVD_E_STATE);
    CHECK_CODE(t, hvd_join(NULL), HVD_E_STATE);
    CHECK_CODE(t, run(&program, use_every_form), HVD_E_INVAL);
    CHECK_HAS(t, hvd_last_error(), "not a member of group 2");
out:
    close_program(&program);
}

TEST(the_environment_is_read)
{
    struct program program = { .state = NULL };

    setenv("HVD_CPU_OPERATIONS", "mpi", 1);
    CHECK_CODE(t, hvd_init(), HVD_E_INVAL);
    CHECK_HAS(t, hvd_last_error(), "HVD_CPU_OPERATIONS is \"mpi\"");
    setenv("HVD_CPU_OPERATIONS", "gloo", 1);
    CHECK_OK(t, open_program(&program, t));
    CHECK_OK(t, run(&program, use_collectives));
out:
    unsetenv("HVD_CPU_OPERATIONS");
    close_program(&program);
}

TEST(every_call_works)
{
    struct program program;

    CHECK_OK(t, open_program(&program, t));
    CHECK_INT(t, hvd_size(), ==, 1);
    CHECK_INT(t, hvd_max_np(), ==, 1);
    CHECK_CODE(t, hvd_barrier(), HVD_E_STATE);
    CHECK_HAS(t, hvd_last_error(), "call collectives only in train");
    CHECK_CODE(t, hvd_state_commit(program.state), HVD_E_STATE);
    CHECK_HAS(t, hvd_last_error(), "hvd_state_commit");
    CHECK_OK(t, run(&program, use_collectives));
    CHECK_INT(t, program.resets, ==, 1);
    CHECK_CODE(t, hvd_barrier(), HVD_E_STATE);
out:
    close_program(&program);
}

/* ---- commits --------------------------------------------------------------------------------- */

static int commit_and_restore(struct program *program)
{
    struct test *t = program->t;
    int rc = HVD_E_INTERNAL;

    CHECK_CODE(t, rc = hvd_state_restore(program->state), HVD_E_NOTFOUND);
    CHECK_HAS(t, hvd_last_error(), "there is no commit yet");
    for (int64_t step = 1; step <= 3; step++) {
        set(program, step);
        CHECK_OK(t, rc = hvd_state_commit(program->state));
    }
    set(program, 9);
    CHECK_OK(t, rc = hvd_state_restore(program->state));
    CHECK(t, is(program, 3));
    set(program, 4);
    CHECK_OK(t, rc = hvd_state_commit_async(program->state));
    CHECK_OK(t, rc = hvd_state_fence(program->state));
    CHECK_OK(t, rc = hvd_state_fence(program->state));
    set(program, 5);
    CHECK_OK(t, rc = hvd_state_commit_async(program->state));
    CHECK_OK(t, rc = hvd_state_restore(program->state)); /* restore waits for the commit */
    CHECK(t, is(program, 5));
    CHECK_OK(t, rc = hvd_state_commit_async(program->state));
    CHECK_OK(t, rc = hvd_state_commit_async(program->state));
    CHECK_OK(t, rc = hvd_state_commit(program->state));
    CHECK_INT(t, snapshot_newest(program->state->snapshot), ==, COMMIT_FIRST_OF(1) | 8);
    set(program, 6);
    CHECK_OK(t, rc = hvd_state_commit_async(program->state));
    rc = 0;
out:
    return rc;
}

TEST_FLAGS(commits_are_kept, TEST_SURVIVES_ALLOC)
{
    struct program program;

    CHECK_OK(t, open_program(&program, t));
    CHECK_OK(t, run(&program, commit_and_restore));
    CHECK_INT(t, snapshot_newest(program.state->snapshot), ==, COMMIT_FIRST_OF(1) | 9);
out:
    close_program(&program);
}

/* The save and load functions fail: calls return their code, and the former commit stays valid. */
static int fail_to_save(struct program *program)
{
    struct test *t = program->t;
    int rc = HVD_E_INTERNAL;

    set(program, 1);
    CHECK_OK(t, rc = hvd_state_commit(program->state));
    set(program, 2);
    program->save = -1234;
    CHECK_CODE(t, rc = hvd_state_commit(program->state), -1234);
    CHECK_HAS(t, hvd_last_error(), "entry \"note\"");
    CHECK_OK(t, rc = hvd_state_commit_async(program->state));
    CHECK_CODE(t, rc = hvd_state_fence(program->state), -1234);
    CHECK_HAS(t, hvd_last_error(), "entry \"note\"");
    CHECK_OK(t, rc = hvd_state_fence(program->state)); /* the failure is reported once */
    program->save = 100;
    CHECK_CODE(t, rc = hvd_state_commit(program->state), HVD_E_LIMIT);
    CHECK_HAS(t, hvd_last_error(), "register a larger entry");
    CHECK_OK(t, rc = hvd_state_restore(program->state)); /* the former commit is valid */
    CHECK(t, is(program, 1));
    program->load = -4321;
    CHECK_CODE(t, rc = hvd_state_restore(program->state), -4321);
    CHECK_HAS(t, hvd_last_error(), "load function");
    program->load = 0;
    program->save = -1234;
    CHECK_OK(t, rc = hvd_state_commit_async(program->state));
    rc = 0; /* the run fails all the same, because the last commit was not made */
out:
    return rc;
}

TEST(a_commit_that_fails_leaves_the_former_commit)
{
    struct program program;

    CHECK_OK(t, open_program(&program, t));
    CHECK_CODE(t, run(&program, fail_to_save), -1234);
    CHECK_HAS(t, hvd_last_error(), "entry \"note\"");
    CHECK_INT(t, snapshot_newest(program.state->snapshot), ==, COMMIT_FIRST_OF(1) | 1);
out:
    close_program(&program);
}

/* A wrong broadcast ends the round: later calls return HVD_E_REVOKED, and no commit is made. */
static int break_a_collective(struct program *program)
{
    struct test *t = program->t;
    int rc = HVD_E_INTERNAL;
    double x = 1;

    CHECK_CODE(t, rc = hvd_broadcast(&x, 1, HVD_FLOAT64, 3), HVD_E_INVAL);
    CHECK_CODE(t, rc = hvd_barrier(), HVD_E_REVOKED);
    CHECK_HAS(t, hvd_last_error(), "return HVD_E_REVOKED from train");
    CHECK_CODE(t, rc = hvd_state_commit(program->state), HVD_E_REVOKED);
    CHECK_HAS(t, hvd_last_error(), "hvd_state_commit: round 1 is dead");
    CHECK_CODE(t, rc = hvd_state_commit_async(program->state), HVD_E_REVOKED);
    CHECK_INT(t, snapshot_newest(program->state->snapshot), ==, 0);
out:
    return rc;
}

RUN_CASE(a_failure_prevents_commits, 0, break_a_collective, HVD_E_REVOKED)

/* ---- how a run ends -------------------------------------------------------------------------- */

static int return_news(struct program *program)
{
    (void)program;
    return HVD_HOSTS_UPDATED;
}

static int return_own(struct program *program)
{
    (void)program;
    return -5000;
}

static int return_done(struct program *program)
{
    program->step++;
    return 0;
}

TEST(runs_end_as_train_says)
{
    struct program program;

    CHECK_OK(t, open_program(&program, t));
    CHECK_CODE(t, run(&program, return_news), HVD_E_STATE);
    CHECK_HAS(t, hvd_last_error(), "no call of the library has returned this code");
    CHECK_INT(t, run(&program, return_own), ==, -5000);
    CHECK_OK(t, run(&program, return_done));
    CHECK_OK(t, run(&program, return_done)); /* a second run */
    CHECK_INT(t, program.step, ==, 2);
    CHECK_INT(t, hvd_round(), ==, 4);
    CHECK_CODE(t, hvd_elastic_run(program.state, NULL, NULL), HVD_E_INVAL);
    CHECK_CODE(t, hvd_elastic_run(NULL, train, NULL), HVD_E_INVAL);
out:
    close_program(&program);
}

/* The first round is revoked after a commit and one more step. */
static int revoke_once(struct program *program)
{
    struct test *t = program->t;
    int rc = HVD_E_INTERNAL;

    if (program->resets == 2) {
        CHECK(t, is(program, 1));
        return 0;
    }
    set(program, 1);
    CHECK_OK(t, hvd_state_commit(program->state));
    set(program, 2);
    CHECK_INT(t, hvd_news(), ==, 0);
    CHECK_OK(t, hvd_revoke("the loss is not a number"));
    CHECK_INT(t, hvd_news(), ==, HVD_E_REVOKED);
    CHECK_CODE(t, hvd_state_commit(program->state), HVD_E_REVOKED);
    CHECK_CODE(t, rc = hvd_barrier(), HVD_E_REVOKED);
    CHECK_HAS(t, hvd_last_error(), "the loss is not a number");
out:
    return rc;
}

TEST(a_revoked_round_of_one_is_trained_again)
{
    struct program program;

    CHECK_OK(t, open_program(&program, t));
    CHECK_CODE(t, hvd_revoke("too early"), HVD_E_STATE);
    CHECK_CODE(t, hvd_fail("too early"), HVD_E_STATE);
    CHECK_OK(t, run(&program, revoke_once));
    CHECK_INT(t, program.resets, ==, 2);
out:
    close_program(&program);
}

static int fail_in_words(struct program *program)
{
    struct test *t = program->t;
    int rc = HVD_E_INTERNAL;

    CHECK_CODE(t, hvd_fail(NULL), HVD_E_INVAL);
    CHECK_OK(t, hvd_fail("ValueError: \x1b[31mred\nand black"));
    CHECK_TEXT(t, hvd_last_error(), ""); /* of the call that worked */
    rc = -5000;
out:
    return rc;
}

/* A call that works clears the error; a call that only asks does not. */
static int fail_and_go_on(struct program *program)
{
    struct test *t = program->t;
    int rc = HVD_E_INTERNAL;

    CHECK_TEXT(t, hvd_last_error(), ""); /* although there is no commit to load yet */
    CHECK_CODE(t, hvd_wait(NULL), HVD_E_INVAL);
    CHECK_INT(t, hvd_rank(), ==, 0);
    CHECK_HAS(t, hvd_last_error(), "the request is unknown");
    CHECK_OK(t, hvd_barrier());
    CHECK_TEXT(t, hvd_last_error(), "");
    CHECK_CODE(t, hvd_wait(NULL), HVD_E_INVAL);
    CHECK_OK(t, hvd_state_commit(program->state));
    CHECK_TEXT(t, hvd_last_error(), "");
    rc = HVD_E_INVAL; /* the code of hvd_wait: its text belongs to it */
out:
    return rc;
}

TEST(an_error_is_that_of_the_last_call)
{
    struct program program;

    CHECK_OK(t, open_program(&program, t));
    CHECK_INT(t, run(&program, fail_in_words), ==, -5000);
    CHECK_TEXT(t, hvd_last_error(), "ValueError:  [31mred and black");
    CHECK_INT(t, run(&program, fail_and_go_on), ==, HVD_E_INVAL);
    CHECK_HAS(t, hvd_last_error(), "the request is unknown");
    CHECK_INT(t, run(&program, return_own), ==, -5000);
    CHECK_HAS(t, hvd_last_error(), "an error of the program itself");
out:
    close_program(&program);
}

static int open_group(struct program *program)
{
    struct test *t = program->t;
    const int rank = 0;
    hvd_group *group = NULL;
    int rc = HVD_E_INTERNAL;

    CHECK_OK(t, hvd_group_create_of(&rank, 1, &group));
    CHECK_OK(t, rc = use_collectives(program));
out:
    return rc;
}

/* A notebook: another state after hvd_shutdown and hvd_init, with everything that the first had. */
TEST(a_process_may_begin_again)
{
    struct program program;
    const int rank = 0;
    hvd_group *group = NULL;

    for (int i = 0; i < 3; i++) {
        CHECK_OK(t, open_program(&program, t));
        CHECK_OK(t, hvd_group_create_of(&rank, 1, &group));
        CHECK_INT(t, hvd_round(), ==, 0);
        CHECK_OK(t, run(&program, open_group));
        CHECK_INT(t, program.resets, ==, 1);
        close_program(&program);
        CHECK_CODE(t, hvd_rank(), HVD_E_STATE);
    }
out:
    close_program(&program);
}

/* Entries of a state that has committed once move, and a restore finds the new place. */
static int64_t elsewhere;

static int move_and_restore(struct program *program)
{
    struct test *t = program->t;
    hvd_state *state = program->state;
    int rc = HVD_E_INTERNAL;

    set(program, 3);
    CHECK_OK(t, hvd_state_commit(state));
    CHECK_OK(t, hvd_state_move(state, "step", &elsewhere));
    CHECK_OK(t, hvd_state_restore(state));
    CHECK_INT(t, elsewhere, ==, 3);
    elsewhere = 4;
    CHECK_OK(t, hvd_state_commit_async(state));
    CHECK_OK(t, hvd_state_move(state, "step", &program->step));
    CHECK_OK(t, hvd_state_restore(state));
    CHECK_INT(t, program->step, ==, 4);
    CHECK_CODE(t, hvd_state_move(state, "steps", &elsewhere), HVD_E_NOTFOUND);
    CHECK_CODE(t, hvd_state_move(state, "step", NULL), HVD_E_INVAL);
    CHECK_CODE(t, hvd_state_move(state, "note", &elsewhere), HVD_E_INVAL);
    CHECK_HAS(t, hvd_last_error(), "has callbacks");
    CHECK_CODE(t, hvd_state_move(NULL, "step", &elsewhere), HVD_E_INVAL);
    rc = 0;
out:
    return rc;
}

TEST(entries_may_move)
{
    struct program program;

    CHECK_OK(t, open_program(&program, t));
    CHECK_OK(t, hvd_state_move(program.state, "step", &elsewhere));
    CHECK_OK(t, hvd_state_move(program.state, "step", &program.step));
    CHECK_OK(t, run(&program, move_and_restore));
    CHECK_OK(t, hvd_elastic_begin(program.state));
    CHECK_CODE(t, hvd_state_move(program.state, "step", &elsewhere), HVD_E_STATE);
out:
    (void)hvd_elastic_next(program.state, -5000); /* ends the run */
    close_program(&program);
}

/* hvd_elastic_next in a job of one: one round, whose end is the code of the program. */
TEST(the_program_may_have_the_loop)
{
    static const int codes[][2] = {
        {0,                  HVD_FINISHED},
        { -5000,             -5000       },
        { HVD_HOSTS_UPDATED, HVD_E_STATE },
        { HVD_FINISHED,      HVD_E_STATE },
    };
    struct program program;
    int64_t one = 1;

    CHECK_OK(t, open_program(&program, t));
    CHECK_CODE(t, hvd_elastic_begin(NULL), HVD_E_INVAL);
    CHECK_CODE(t, hvd_elastic_next(NULL, 0), HVD_E_INVAL);
    CHECK_CODE(t, hvd_elastic_next(program.state, 0), HVD_E_STATE);
    CHECK_HAS(t, hvd_last_error(), "hvd_elastic_begin has not been called");
    for (size_t i = 0; i < ARRAY_SIZE(codes); i++) {
        CHECK_OK(t, hvd_elastic_begin(program.state));
        CHECK_CODE(t, hvd_elastic_begin(program.state), HVD_E_STATE);
        CHECK_CODE(t, hvd_barrier(), HVD_E_STATE); /* no round is running yet */
        CHECK_CODE(t, hvd_state_commit(program.state), HVD_E_STATE);
        CHECK_OK(t, hvd_elastic_next(program.state, 0));
        CHECK_INT(t, program.resets, ==, (int)i + 1);
        CHECK_OK(t, hvd_allreduce(&one, &one, 1, HVD_INT64, HVD_SUM));
        CHECK_OK(t, hvd_state_commit(program.state));
        CHECK_INT(t, hvd_elastic_next(program.state, codes[i][0]), ==, codes[i][1]);
        CHECK_CODE(t, hvd_elastic_next(program.state, 0), HVD_E_STATE);
    }
    CHECK_OK(t, hvd_elastic_begin(program.state));
    CHECK_INT(t, hvd_elastic_next(program.state, -5000), ==, -5000); /* before the first round */
    CHECK_HAS(t, hvd_last_error(), "has not trained yet");
    CHECK_OK(t, run(&program, return_done));
out:
    (void)hvd_elastic_next(program.state, -5000); /* ends a run that a failed check has left */
    close_program(&program);
}

static int take_the_loop(struct program *program)
{
    struct test *t = program->t;
    int rc = HVD_E_INTERNAL;

    CHECK_CODE(t, hvd_elastic_next(program->state, 0), HVD_E_STATE);
    CHECK_HAS(t, hvd_last_error(), "return from train instead");
    rc = 0;
out:
    return rc;
}

TEST(a_run_keeps_its_loop)
{
    struct program program;

    CHECK_OK(t, open_program(&program, t));
    CHECK_OK(t, run(&program, take_the_loop));
out:
    close_program(&program);
}

/* ---- threads and forks ----------------------------------------------------------------------- */

static void *call_from_elsewhere(void *arg)
{
    struct program *program = arg;
    struct test *t = program->t;

    CHECK_CODE(t, hvd_state_check(program->state), HVD_E_STATE);
    CHECK_HAS(t, hvd_last_error(), "hvd_state_check: this thread is not the training thread");
    CHECK_CODE(t, hvd_state_commit(program->state), HVD_E_STATE);
    CHECK_OK(t, hvd_barrier()); /* any thread may call a barrier */
    CHECK_INT(t, hvd_rank(), ==, 0);
out:
    return NULL;
}

static int use_a_thread(struct program *program)
{
    pthread_t thread;
    int rc = thread_start(&thread, 0, call_from_elsewhere, program);

    if (!rc)
        pthread_join(thread, NULL);
    return rc;
}

RUN_CASE(some_calls_are_for_the_loop, 0, use_a_thread, 0)

/* As a data loader does that was forked from train: each call in the fork is refused. */
static int call_from_a_fork(struct program *program)
{
    const hvd_call barrier = { .kind = HVD_BARRIER };
    struct test *t = program->t;
    hvd_request *pending = NULL;
    hvd_request *request;
    int status = 1;
    /* starts a thread, which the forked process will not have */
    int rc = hvd_start(&barrier, &pending);
    pid_t child = fork();

    if (child == 0) {
        bool right = hvd_state_check(program->state) == HVD_E_STATE &&
                     test_has_text(hvd_last_error(), "fork") &&
                     hvd_state_commit(program->state) == HVD_E_STATE &&
                     hvd_barrier() == HVD_E_STATE && hvd_start(&barrier, &request) == HVD_E_STATE &&
                     hvd_wait(pending) == HVD_E_STATE && hvd_join(NULL) == HVD_E_STATE &&
                     hvd_group_rank(NULL) == HVD_E_STATE && !hvd_alloc(1);

        _exit(right ? 0 : 1);
    }
    CHECK_INT(t, waitpid(child, &status, 0), ==, child);
    CHECK_INT(t, status, ==, 0);
    CHECK_OK(t, rc);
    CHECK_OK(t, rc = hvd_wait(pending));
out:
    return rc;
}

RUN_CASE(no_call_is_for_a_fork, TEST_NO_TORTURE, call_from_a_fork, 0)

static int commit_beside(struct program *program)
{
    int rc = hvd_state_commit_async(program->state);

    return rc ? rc : hvd_state_fence(program->state);
}

/* The forked process has no copier thread, so hvd_state_free must not wait for the copier. */
TEST_FLAGS(a_fork_may_free_its_copy, TEST_NO_TORTURE)
{
    struct program program;
    int status = 1;
    pid_t child;

    CHECK_OK(t, open_program(&program, t));
    CHECK_OK(t, run(&program, commit_beside));
    child = fork();
    if (child == 0) {
        alarm(100);
        close_program(&program);
        _exit(0);
    }
    CHECK_INT(t, waitpid(child, &status, 0), ==, child);
    CHECK_INT(t, status, ==, 0);
    CHECK_OK(t, run(&program, commit_beside));
out:
    close_program(&program);
}

TEST(a_registration_says_what_is_wrong)
{
    struct program program;

    CHECK_OK(t, open_program(&program, t));
    CHECK_CODE(t, hvd_state_add(program.state, "weights", program.weights, 1), HVD_E_EXISTS);
    CHECK_HAS(t, hvd_last_error(), "hvd_state_add: ");
    CHECK_HAS(t, hvd_last_error(), "\"weights\"");
    CHECK_CODE(t, hvd_state_add(program.state, NULL, program.weights, 1), HVD_E_INVAL);
    CHECK_CODE(t, hvd_state_add(program.state, "more", NULL, 1), HVD_E_INVAL);
    CHECK_OK(t, hvd_state_add(program.state, "nothing", NULL, 0));
    CHECK_CODE(t, hvd_state_add(NULL, "more", program.weights, 1), HVD_E_INVAL);
    CHECK_CODE(t, hvd_state_add_scalar(program.state, "more", &program.step, (hvd_dtype)13),
               HVD_E_INVAL);
    CHECK_HAS(t, hvd_last_error(), "hvd_state_add_scalar: the entry \"more\" gets the type 13");
    CHECK_CODE(t, hvd_state_add_array(program.state, NULL, program.weights, 1, (hvd_dtype)-1),
               HVD_E_INVAL);
    CHECK_HAS(t, hvd_last_error(), "gets the type -1");
    CHECK_CODE(t, hvd_state_add_array(program.state, "more", NULL, 1, HVD_INT8), HVD_E_INVAL);
    CHECK_CODE(
        t, hvd_state_add_array(program.state, "more", program.weights, SIZE_MAX / 4, HVD_FLOAT32),
        HVD_E_LIMIT);
    CHECK_HAS(t, hvd_last_error(), "hvd_state_add_array: the entry \"more\"");
    CHECK_HAS(t, hvd_last_error(), "LIMIT_STATE_BYTES");
    CHECK_CODE(t,
               hvd_state_add_array_per_rank(program.state, "note", program.weights, 1, HVD_INT64),
               HVD_E_EXISTS);
    CHECK_HAS(t, hvd_last_error(), "hvd_state_add_array_per_rank: ");
    CHECK_CODE(t, hvd_state_add_custom(program.state, "more", 1, NULL, load_note, NULL),
               HVD_E_INVAL);
    CHECK_CODE(t, hvd_state_on_reset(program.state, NULL, NULL), HVD_E_INVAL);
    CHECK_CODE(t, hvd_state_check(NULL), HVD_E_INVAL);
    CHECK_CODE(t, hvd_state_add(program.state, "", program.weights, 1), HVD_E_INVAL);
out:
    close_program(&program);
}

TEST_FLAGS(a_program_sees_whether_it_is_initialized, TEST_NO_TORTURE)
{
    struct program program;
    pid_t child;
    int status;

    CHECK_INT(t, hvd_is_initialized(), ==, 0);
    CHECK_OK(t, open_program(&program, t));
    CHECK_INT(t, hvd_is_initialized(), ==, 1);
    child = fork();
    if (child == 0)
        _exit(hvd_is_initialized());
    CHECK(t, child > 0 && waitpid(child, &status, 0) == child);
    CHECK(t, WIFEXITED(status) && WEXITSTATUS(status) == 0);
    close_program(&program);
    CHECK_INT(t, hvd_is_initialized(), ==, 0);
    setenv("OMPI_COMM_WORLD_SIZE", "2", 1);
    CHECK_CODE(t, hvd_init(), HVD_E_INVAL);
    CHECK_INT(t, hvd_is_initialized(), ==, 0);
out:
    unsetenv("OMPI_COMM_WORLD_SIZE");
}
