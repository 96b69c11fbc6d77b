/* api_misuse_calls.c: calls at the wrong moment, by the wrong thread, with the wrong arguments. */
#include "tests/workers/api_misuse.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static int nothing(hvd_state *state, void *arg)
{
    (void)state;
    (void)arg;
    return 0;
}

static int64_t save_nothing(void *arg, void *into, size_t room)
{
    (void)arg;
    (void)into;
    (void)room;
    return 0;
}

static int load_nothing(void *arg, const void *from, size_t bytes)
{
    (void)arg;
    (void)from;
    (void)bytes;
    return 0;
}

/* ---- NULL ------------------------------------------------------------------------------------ */

static void nulls_of_state(hvd_state *state)
{
    int number = 0;

    EXPECT(hvd_state_add(NULL, "a", &number, 4) == HVD_E_INVAL);
    EXPECT(hvd_state_add(state, NULL, &number, 4) == HVD_E_INVAL);
    EXPECT(hvd_state_add(state, "a", NULL, 4) == HVD_E_INVAL);
    EXPECT(hvd_state_add(state, "", &number, 4) == HVD_E_INVAL);
    EXPECT(hvd_state_add(state, "\xff", &number, 4) == HVD_E_INVAL);
    EXPECT(hvd_state_add(state, "step", &number, 4) == HVD_E_EXISTS);
    EXPECT(hvd_state_add(state, "a", &number, SIZE_MAX) == HVD_E_LIMIT);
    EXPECT(hvd_state_add_per_rank(NULL, "a", &number, 4) == HVD_E_INVAL);
    EXPECT(hvd_state_add_per_rank(state, "a", NULL, 4) == HVD_E_INVAL);
    EXPECT(hvd_state_add_scalar(state, "a", NULL, HVD_INT32) == HVD_E_INVAL);
    EXPECT(hvd_state_add_scalar(state, "a", &number, (hvd_dtype)99) == HVD_E_INVAL);
    EXPECT(hvd_state_add_custom(state, "a", 9, NULL, load_nothing, NULL) == HVD_E_INVAL);
    EXPECT(hvd_state_add_custom(state, "a", 9, save_nothing, NULL, NULL) == HVD_E_INVAL);
    EXPECT(hvd_state_add_custom(state, "a", SIZE_MAX, save_nothing, load_nothing, NULL) ==
           HVD_E_LIMIT);
    EXPECT(hvd_state_on_reset(NULL, nothing, NULL) == HVD_E_INVAL);
    EXPECT(hvd_state_on_reset(state, NULL, NULL) == HVD_E_INVAL);
    EXPECT(hvd_state_add(state, "nothing", NULL, 0) == 0);
}

static void nulls(hvd_state *state)
{
    hvd_sampler *sampler;
    hvd_batch batch;

    nulls_of_state(state);
    hvd_state_free(NULL);
    EXPECT(hvd_elastic_run(NULL, nothing, NULL) == HVD_E_INVAL);
    EXPECT(hvd_elastic_run(state, NULL, NULL) == HVD_E_INVAL);
    EXPECT(hvd_state_commit(NULL) == HVD_E_INVAL && hvd_state_check(NULL) == HVD_E_INVAL);
    EXPECT(hvd_state_commit_async(NULL) == HVD_E_INVAL && hvd_state_fence(NULL) == HVD_E_INVAL);
    EXPECT(hvd_state_restore(NULL) == HVD_E_INVAL);
    EXPECT(hvd_sampler_create(NULL, "s", 1, 1, HVD_BATCH_GLOBAL, 1, &sampler) == HVD_E_INVAL);
    EXPECT(hvd_sampler_create(state, NULL, 1, 1, HVD_BATCH_GLOBAL, 1, &sampler) == HVD_E_INVAL);
    EXPECT(hvd_sampler_create(state, "s", 0, 1, HVD_BATCH_GLOBAL, 1, &sampler) == HVD_E_INVAL);
    EXPECT(hvd_sampler_create(state, "s", 1, 0, HVD_BATCH_GLOBAL, 1, &sampler) == HVD_E_INVAL);
    EXPECT(hvd_sampler_create(state, "s", 1, 1, HVD_BATCH_GLOBAL, 1, NULL) == HVD_E_INVAL);
    EXPECT(hvd_sampler_create(state, "s", 1, 1, (hvd_batch_mode)7, 1, &sampler) == HVD_E_INVAL);
    EXPECT(hvd_sampler_next(NULL, &batch) == HVD_E_INVAL);
    EXPECT(strlen(hvd_strerror(12345)) && strlen(hvd_strerror(-12345)));
}

/* ---- before hvd_init, and too often ---------------------------------------------------------- */

static void before_init(void)
{
    hvd_state *state = hvd_state_create();
    int number = 0;

    EXPECT(state && hvd_state_add(state, "a", &number, 4) == 0);
    EXPECT(hvd_rank() == HVD_E_STATE && hvd_size() == HVD_E_STATE);
    EXPECT(hvd_local_rank() == HVD_E_STATE && hvd_cross_size() == HVD_E_STATE);
    EXPECT(hvd_slot() == HVD_E_STATE);
    EXPECT(hvd_timeline_start("t.json") == HVD_E_STATE && hvd_timeline_stop() == HVD_E_STATE);
    EXPECT(hvd_min_np() == HVD_E_STATE && hvd_max_np() == HVD_E_STATE && hvd_round() == 0);
    EXPECT(hvd_barrier() == HVD_E_STATE);
    EXPECT(hvd_allreduce(&number, &number, 1, HVD_INT32, HVD_SUM) == HVD_E_STATE);
    EXPECT(hvd_run(NULL) == HVD_E_STATE && hvd_start(NULL, NULL) == HVD_E_STATE);
    EXPECT(hvd_wait(NULL) == HVD_E_STATE && hvd_group_size(NULL) == HVD_E_STATE);
    EXPECT(hvd_group_create(NULL, NULL, NULL) == HVD_E_STATE);
    EXPECT(hvd_group_close(NULL) == HVD_E_STATE);
    hvd_free(hvd_alloc(100));
    EXPECT(hvd_elastic_run(state, nothing, NULL) == HVD_E_STATE);
    EXPECT(strstr(hvd_last_error(), "hvd_init"));
    EXPECT(hvd_state_commit(state) == HVD_E_STATE && hvd_state_check(state) == HVD_E_STATE);
    hvd_shutdown();
    hvd_state_free(state);
}

static void init_again(hvd_state *state)
{
    (void)state;
    EXPECT(hvd_init() == 0 && hvd_init() == 0);
}

/* A second run returns the code of the first at once; no worker waits for a round that never comes.
 */
static void run_again(hvd_state *state)
{
    bool alone = !getenv("HVD_AGENT");
    int rc = hvd_elastic_run(state, api_misuse_train, NULL);

    EXPECT(alone ? rc == 0 : rc == HVD_E_STATE || rc == HVD_DONE);
}

/* ---- inside train ---------------------------------------------------------------------------- */

static int run_inside(hvd_state *state)
{
    hvd_state *other = hvd_state_create();
    int number;

    EXPECT(hvd_elastic_run(state, nothing, NULL) == HVD_E_STATE);
    EXPECT(other && hvd_elastic_run(other, nothing, NULL) == HVD_E_STATE);
    hvd_state_free(other);
    hvd_shutdown();
    hvd_state_free(state);
    EXPECT(hvd_init() == 0);
    EXPECT(hvd_state_add(state, "late", &number, 4) == HVD_E_STATE);
    EXPECT(hvd_state_on_reset(state, nothing, NULL) == HVD_E_STATE);
    EXPECT(hvd_state_commit(NULL) == HVD_E_INVAL);
    return 0;
}

static void *call_from_outside(void *arg)
{
    hvd_state *state = arg;
    int number;

    EXPECT(hvd_elastic_run(state, nothing, NULL) == HVD_E_STATE);
    EXPECT(hvd_state_commit(state) == HVD_E_STATE && hvd_state_check(state) == HVD_E_STATE);
    EXPECT(hvd_state_commit_async(state) == HVD_E_STATE && hvd_state_fence(state) == HVD_E_STATE);
    EXPECT(hvd_state_restore(state) == HVD_E_STATE);
    EXPECT(hvd_state_add(state, "late", &number, 4) == HVD_E_STATE);
    EXPECT(hvd_size() > 0 && hvd_init() == 0);
    hvd_shutdown();
    hvd_state_free(state);
    return NULL;
}

static int other_thread(hvd_state *state)
{
    pthread_t thread;

    EXPECT(pthread_create(&thread, NULL, call_from_outside, state) == 0);
    EXPECT(pthread_join(thread, NULL) == 0);
    return 0;
}

static int reset_calls(hvd_state *state)
{
    int64_t number = 1;
    size_t counts[1024] = { 0 };
    void *none = NULL;

    EXPECT(hvd_size() > 0 && hvd_rank() >= 0 && hvd_round() > 0);
    EXPECT(hvd_allreduce(&number, &number, 1, HVD_INT64, HVD_SUM) == HVD_E_STATE);
    EXPECT(hvd_broadcast(&number, 1, HVD_INT64, 0) == HVD_E_STATE);
    EXPECT(hvd_allgather(&number, 1, counts, NULL, HVD_INT64) == HVD_E_STATE);
    EXPECT(hvd_allgather_ragged(&number, 1, HVD_INT64, &none, counts) == HVD_E_STATE);
    EXPECT(hvd_alltoall_ragged(&number, counts, HVD_INT64, &none, counts) == HVD_E_STATE);
    EXPECT(!none);
    EXPECT(hvd_barrier() == HVD_E_STATE && hvd_join(NULL) == HVD_E_STATE);
    EXPECT(hvd_group_create_of(NULL, 0, NULL) == HVD_E_STATE);
    EXPECT(hvd_group_close(NULL) == HVD_E_STATE);
    EXPECT(hvd_start(NULL, NULL) == HVD_E_STATE && hvd_group_size(NULL) == hvd_size());
    EXPECT(hvd_state_commit(state) == HVD_E_STATE && hvd_state_check(state) == HVD_E_STATE);
    EXPECT(hvd_state_restore(state) == HVD_E_STATE && hvd_state_fence(state) == HVD_E_STATE);
    EXPECT(hvd_elastic_run(state, nothing, NULL) == HVD_E_STATE);
    EXPECT(hvd_state_on_reset(state, nothing, NULL) == HVD_E_STATE);
    hvd_shutdown();
    return 0;
}

static int reset_says_news(hvd_state *state)
{
    (void)state;
    return HVD_HOSTS_UPDATED;
}

static int reset_fails(hvd_state *state)
{
    (void)state;
    return -77;
}

static int say_updated(hvd_state *state)
{
    (void)state;
    return HVD_HOSTS_UPDATED;
}

static int say_left(hvd_state *state)
{
    (void)state;
    return HVD_LEFT;
}

static int say_done(hvd_state *state)
{
    (void)state;
    return HVD_DONE;
}

static int say_rubbish(hvd_state *state)
{
    (void)state;
    return 4711;
}

/* A collective with wrong arguments ends the round, because other ranks may be in the same
 * collective. */
static int bad_collective(hvd_state *state)
{
    int64_t number = 1;

    (void)state;
    EXPECT(hvd_broadcast(&number, 1, HVD_INT64, -1) == HVD_E_INVAL);
    EXPECT(hvd_barrier() == HVD_E_REVOKED);
    EXPECT(hvd_state_commit(state) == HVD_E_REVOKED);
    return HVD_E_INVAL;
}

static int null_collective(hvd_state *state)
{
    (void)state;
    EXPECT(hvd_allreduce(NULL, NULL, 1, HVD_INT64, HVD_SUM) == HVD_E_INVAL);
    return HVD_E_INVAL;
}

static int collective_fails(const hvd_call *call, const char *says)
{
    EXPECT(hvd_run(call) == HVD_E_INVAL && strstr(hvd_last_error(), says));
    EXPECT(hvd_barrier() == HVD_E_REVOKED);
    return HVD_E_INVAL;
}

static int bad_kind(hvd_state *state)
{
    (void)state;
    return collective_fails(&(hvd_call){ .kind = (hvd_kind)77 }, "kind 77");
}

static int no_call(hvd_state *state)
{
    (void)state;
    return collective_fails(NULL, "NULL");
}

static int bad_overlap(hvd_state *state)
{
    static double numbers[9];
    const hvd_call call = {
        .kind = HVD_ALLREDUCE, .in = numbers, .out = numbers + 1, .count = 8, .type = HVD_FLOAT64
    };

    (void)state;
    return collective_fails(&call, "overlap");
}

static int bad_scale(hvd_state *state)
{
    int64_t number = 1;
    const hvd_call call = { .kind = HVD_ALLREDUCE,
                            .in = &number,
                            .out = &number,
                            .count = 1,
                            .type = HVD_INT64,
                            .prescale = 0.5 };

    (void)state;
    return collective_fails(&call, "cannot be scaled");
}

static int bad_pieces(hvd_state *state)
{
    static uint8_t byte;
    const hvd_piece pieces[] = {
        {&byte, &byte, SIZE_MAX},
        { NULL, &byte, 1       }
    };
    const hvd_call call = {
        .kind = HVD_ALLREDUCE, .pieces = pieces, .piece_count = 2, .type = HVD_UINT8
    };

    (void)state;
    return collective_fails(&call, "pieces[0]");
}

static int bad_group(hvd_state *state)
{
    const hvd_call call = { .kind = HVD_BARRIER, .group = (hvd_group *)(void *)state };

    return collective_fails(&call, "the group is unknown");
}

static int no_request(hvd_state *state)
{
    (void)state;
    EXPECT(hvd_start(&(hvd_call){ .kind = HVD_BARRIER }, NULL) == HVD_E_INVAL);
    EXPECT(hvd_barrier() == HVD_E_REVOKED);
    return HVD_E_INVAL;
}

/* Waiting wrongly for a request does not end the round. */
static int wait_wrongly(hvd_state *state)
{
    const hvd_call call = { .kind = HVD_BARRIER };
    hvd_request *request = NULL;
    hvd_group *group = NULL;
    int done = 0;

    (void)state;
    EXPECT(hvd_wait(NULL) == HVD_E_INVAL && hvd_test(NULL, &done) == HVD_E_INVAL);
    EXPECT(hvd_wait((hvd_request *)(void *)&done) == HVD_E_INVAL);
    /* with more ranks this would be a collective that the other ranks do not call */
    if (hvd_size() == 1) {
        EXPECT(hvd_start(&call, &request) == 0);
        EXPECT(hvd_test(request, NULL) == HVD_E_INVAL);
        EXPECT(hvd_wait(request) == 0);
        EXPECT(hvd_wait(request) == HVD_E_INVAL && strstr(hvd_last_error(), "wait once"));
        done = 0;
        EXPECT(hvd_group_create_of(&done, 1, &group) == 0 && hvd_group_close(group) == 0);
    }
    hvd_free(hvd_alloc(1));
    hvd_free(hvd_alloc(0));
    hvd_free(NULL);
    return 0;
}

/* Starts as many operations as the steps of the other ranks have, and more than they complete:
 * train returns in the middle of them. */
static int forget_requests(hvd_state *state)
{
    static int64_t number = 1;
    static int64_t sums[100];
    const hvd_call call = { .kind = HVD_ALLREDUCE, .in = &number, .count = 1, .type = HVD_INT64 };
    hvd_request *request;

    (void)state;
    for (int i = 0; i < 100; i++) {
        hvd_call next = call;

        next.out = &sums[i];
        EXPECT(hvd_start(&next, &request) == 0);
    }
    return -77;
}

/* ---- forks ----------------------------------------------------------------------------------- */

static void call_as_child(void *arg)
{
    hvd_state *state = arg;
    int64_t number = 1;

    EXPECT(hvd_init() == HVD_E_STATE && strstr(hvd_last_error(), "fork"));
    EXPECT(hvd_rank() == HVD_E_STATE && hvd_size() == HVD_E_STATE && hvd_max_np() == HVD_E_STATE);
    EXPECT(hvd_barrier() == HVD_E_STATE && hvd_run(NULL) == HVD_E_STATE);
    EXPECT(hvd_timeline_start("t.json") == HVD_E_STATE && hvd_timeline_stop() == HVD_E_STATE);
    EXPECT(hvd_start(NULL, NULL) == HVD_E_STATE && hvd_wait(NULL) == HVD_E_STATE);
    EXPECT(hvd_group_size(NULL) == HVD_E_STATE && !hvd_alloc(1));
    EXPECT(hvd_allreduce(&number, &number, 1, HVD_INT64, HVD_SUM) == HVD_E_STATE);
    EXPECT(hvd_state_commit(state) == HVD_E_STATE && hvd_state_check(state) == HVD_E_STATE);
    EXPECT(hvd_state_commit_async(state) == HVD_E_STATE && hvd_state_fence(state) == HVD_E_STATE);
    EXPECT(hvd_state_restore(state) == HVD_E_STATE);
    EXPECT(hvd_elastic_run(state, nothing, NULL) == HVD_E_STATE);
    hvd_shutdown();
    hvd_state_free(state);
}

static int fork_in_train(hvd_state *state)
{
    EXPECT(hvd_state_commit_async(state) == 0); /* starts a thread that the child does not have */
    api_misuse_in_child(call_as_child, state);
    return hvd_state_check(state);
}

static void fork_ready(hvd_state *state)
{
    api_misuse_in_child(call_as_child, state);
}

static void *fork_after_thread(void *arg)
{
    api_misuse_in_child(call_as_child, arg);
    return NULL;
}

static void fork_after(hvd_state *state)
{
    pthread_t thread;

    api_misuse_in_child(call_as_child, state);
    EXPECT(pthread_create(&thread, NULL, fork_after_thread, state) == 0);
    EXPECT(pthread_join(thread, NULL) == 0);
}

/* ---- callbacks ------------------------------------------------------------------------------- */

static bool wrong_now;

static int64_t save_too_much(void *arg, void *into, size_t room)
{
    (void)arg;
    (void)into;
    return wrong_now ? (int64_t)room + 1 : 0;
}

static int64_t save_least(void *arg, void *into, size_t room)
{
    (void)arg;
    (void)into;
    (void)room;
    return wrong_now ? INT64_MIN : 0;
}

static int64_t save_and_call(void *arg, void *into, size_t room)
{
    hvd_state *state = arg;

    (void)into;
    (void)room;
    if (wrong_now) {
        EXPECT(hvd_state_commit(state) == HVD_E_STATE && hvd_state_check(state) == HVD_E_STATE);
        EXPECT(hvd_state_commit_async(state) == HVD_E_STATE);
        EXPECT(hvd_state_fence(state) == HVD_E_STATE && hvd_state_restore(state) == HVD_E_STATE);
    }
    return 0;
}

static int load_and_call(void *arg, const void *from, size_t bytes)
{
    (void)save_and_call(arg, NULL, bytes + (from != NULL));
    return 0;
}

static void add_too_much(hvd_state *state)
{
    EXPECT(hvd_state_add_custom(state, "much", 16, save_too_much, load_nothing, NULL) == 0);
}

static void add_least(hvd_state *state)
{
    EXPECT(hvd_state_add_custom(state, "least", 16, save_least, load_nothing, NULL) == 0);
}

static void add_caller(hvd_state *state)
{
    EXPECT(hvd_state_add_custom(state, "calls", 16, save_and_call, load_and_call, state) == 0);
}

/* The save callback fails: nothing is committed, and the next commit succeeds. */
static int commit_badly(hvd_state *state)
{
    int rc;

    wrong_now = true;
    rc = hvd_state_commit(state);
    EXPECT(rc == HVD_E_LIMIT || rc == HVD_E_INVAL);
    EXPECT(hvd_state_commit_async(state) == 0);
    EXPECT(hvd_state_fence(state) == rc);
    EXPECT(hvd_state_fence(state) == 0);
    EXPECT(hvd_state_restore(state) == 0);
    wrong_now = false;
    return 0;
}

static int commit_calling(hvd_state *state)
{
    int rc;

    wrong_now = true;
    rc = hvd_state_commit_async(state);
    EXPECT(rc == 0 && hvd_state_fence(state) == 0);
    EXPECT(hvd_state_restore(state) == 0);
    rc = hvd_state_commit(state);
    wrong_now = false;
    return rc;
}

const struct api_misuse api_misuse_calls[] = {
    {.name = "nulls",                     .what = "NULL and rubbish everywhere", .ready = nulls },
    { .name = "before-init",                     .what = "calls before hvd_init", .before = before_init },
    { .name = "init-again",              .what = "hvd_init three times", .ready = init_again },
    { .name = "run-again",              .what = "hvd_elastic_run after it has ended", .after = run_again },
    { .name = "run-inside",               .what = "what is not for train, from train", .step = run_inside },
    { .name = "other-thread",                .what = "what is for the loop, beside it", .step = other_thread },
    { .name = "reset-calls",                .what = "collectives in a reset callback", .reset = reset_calls },
    { .name = "reset-news",
     .what = "a reset callback that returns news",
     .reset = reset_says_news,
     .run = HVD_E_STATE,
     .says = "reset callback 1 of 1" },
    { .name = "reset-fails",
     .what = "a reset callback that fails",
     .reset = reset_fails,
     .run = -77,
     .says = "reset callback 1 of 1" },
    { .name = "says-updated",
     .what = "train returns news untold",
     .step = say_updated,
     .run = HVD_E_STATE },
    { .name = "says-left",
     .what = "train returns news untold",
     .step = say_left,
     .run = HVD_E_STATE },
    { .name = "says-done",
     .what = "train returns news untold",
     .step = say_done,
     .run = HVD_E_STATE },
    { .name = "says-rubbish",
     .what = "train returns a number",
     .step = say_rubbish,
     .run = HVD_E_STATE,
     .says = "4711" },
    { .name = "bad-collective",
     .what = "a root that is none",
     .step = bad_collective,
     .run = HVD_E_INVAL },
    { .name = "null-collective",
     .what = "from NULL to NULL",
     .step = null_collective,
     .run = HVD_E_INVAL },
    { .name = "bad-kind",            .what = "no such collective", .step = bad_kind, .run = HVD_E_INVAL },
    { .name = "no-call",     .what = "a call that is NULL", .step = no_call, .run = HVD_E_INVAL },
    { .name = "bad-overlap",              .what = "overlap", .step = bad_overlap, .run = HVD_E_INVAL },
    { .name = "bad-scale",                .what = "whole numbers, halved", .step = bad_scale, .run = HVD_E_INVAL },
    { .name = "bad-pieces",
     .what = "pieces that cannot be",
     .step = bad_pieces,
     .run = HVD_E_INVAL },
    { .name = "bad-group",             .what = "a group that is none", .step = bad_group, .run = HVD_E_INVAL },
    { .name = "no-request",                 .what = "no place for it", .step = no_request, .run = HVD_E_INVAL },
    { .name = "wait-wrongly",                                  .what = "requests that are none", .step = wait_wrongly },
    { .name = "forget-requests",
     .what = "train returns with requests",
     .step = forget_requests,
     .run = -77 },
    { .name = "fork",
     .what = "a child calls the library",
     .ready = fork_ready,
     .step = fork_in_train,
     .after = fork_after },
    { .name = "save-too-much",
     .what = "save writes beyond its room",
     .add = add_too_much,
     .step = commit_badly },
    { .name = "save-least",
     .what = "save returns INT64_MIN",
     .add = add_least,
     .step = commit_badly },
    { .name = "save-calls",
     .what = "save and load call the library",
     .add = add_caller,
     .step = commit_calling },
    { .name = "empty",    .what = "no state at all", .empty = true },
    { .name = NULL                 },
};
