/*
 * test_queue.c: the driver's action queue: an action that rests on a record waits until the record
 * is durable; an action without a record may overtake.
 */
#include "driver/io/queue.h"

#include "driver/journal/job_file.h"
#include "tests/lib/test.h"

#include <stdio.h>
#include <string.h>

/* A queue with a real scribe, and a server without connections. */
struct bench {
    struct server *server; /* without a connection */
    struct scribe *scribe;
    struct queue queue;
    struct action_list list;
};

static bool open_bench(struct test *t, struct bench *bench)
{
    const struct job_facts facts = { .job = "j", .created_wall_us = 1 };
    struct store *file;
    char path[300];

    snprintf(path, sizeof(path), "%s/job.db", test_dir(t));
    action_list_init(&bench->list);
    if (job_file_open(path, &db_options_usual, &facts, &file, NULL))
        return false;
    if (store_claim(file, 7, "me", NULL) ||
        scribe_start(file, INT64_C(1000000000), &bench->scribe, NULL)) {
        store_close(file);
        return false;
    }
    if (server_create(NULL, NULL, NULL, NULL, &bench->server))
        return false;
    queue_init(&bench->queue, bench->scribe, bench->server);
    return true;
}

static void close_bench(struct bench *bench)
{
    struct hvd_err err;

    if (bench->scribe) {
        queue_release(&bench->queue);
        (void)!scribe_stop(bench->scribe, &err);
    }
    bench->scribe = NULL;
    server_free(bench->server);
    bench->server = NULL;
    action_list_release(&bench->list);
}

static struct action *add(struct bench *bench, enum action_kind kind)
{
    struct action *action;

    if (VEC_RESERVE(&bench->list, 1, 1000))
        return NULL;
    action = &bench->list.items[bench->list.count++];
    *action = (struct action){ .kind = kind };
    return action;
}

static int complete(void *arg, const struct action *action, struct msg *ret_whole)
{
    (void)arg;
    if (action->secret)
        ret_whole->u.round.secret = (struct msg_bytes){ (const uint8_t *)"secret", 6 };
    return 0;
}

static int take_at(struct bench *bench, int64_t now_us)
{
    int rc = queue_take(&bench->queue, &bench->list, now_us, complete, NULL, NULL);

    bench->list.count = 0;
    return rc;
}

static int take(struct bench *bench)
{
    return take_at(bench, 0);
}

static int kind_of_next(struct bench *bench, uint64_t durable)
{
    struct queued *item = queue_next(&bench->queue, durable);
    int kind = item ? (int)item->kind : -1;

    queued_free(item);
    return kind;
}

static const struct journal_record term = {
    .kind = JOURNAL_TERM, .term = 1, .host = "", .text = ""
};

TEST_FLAGS(nothing_before_the_term, TEST_NO_TORTURE)
{
    struct bench bench = { .server = NULL };

    CHECK(t, open_bench(t, &bench));
    add(&bench, ACTION_RECORD)->record = &term;
    add(&bench, ACTION_DISCOVER);
    CHECK_OK(t, take(&bench));
    CHECK_INT(t, kind_of_next(&bench, 0), ==, -1);
    CHECK_INT(t, kind_of_next(&bench, bench.queue.first), ==, ACTION_DISCOVER);
    CHECK_INT(t, kind_of_next(&bench, bench.queue.first), ==, -1);
out:
    close_bench(&bench);
}

TEST_FLAGS(actions_behind_a_record_wait_for_it, TEST_NO_TORTURE)
{
    struct bench bench = { .server = NULL };
    uint64_t first;

    CHECK(t, open_bench(t, &bench));
    add(&bench, ACTION_RECORD)->record = &term;
    CHECK_OK(t, take(&bench));
    first = bench.queue.first;
    add(&bench, ACTION_DISCOVER);
    add(&bench, ACTION_RECORD)->record = &term;
    add(&bench, ACTION_START_AGENT)->host = "a";
    add(&bench, ACTION_RECORD)->record = &term;
    add(&bench, ACTION_EXIT)->text = "done";
    CHECK_OK(t, take(&bench));
    CHECK_INT(t, kind_of_next(&bench, first), ==, ACTION_DISCOVER);
    CHECK_INT(t, kind_of_next(&bench, first), ==, -1);
    CHECK_INT(t, kind_of_next(&bench, first + 1), ==, ACTION_START_AGENT);
    CHECK_INT(t, kind_of_next(&bench, first + 1), ==, -1);
    CHECK_INT(t, kind_of_next(&bench, first + 2), ==, ACTION_EXIT);
out:
    close_bench(&bench);
}

TEST_FLAGS(unordered_actions_overtake, TEST_NO_TORTURE)
{
    struct bench bench = { .server = NULL };
    struct queued *item = NULL;
    const struct msg beat = { .type = MSG_BEAT };

    CHECK(t, open_bench(t, &bench));
    add(&bench, ACTION_RECORD)->record = &term;
    CHECK_OK(t, take(&bench));
    add(&bench, ACTION_RECORD)->record = &term;
    add(&bench, ACTION_REPLY)->text = "late";
    CHECK_OK(t, take(&bench));
    *add(&bench, ACTION_SEND) =
        (struct action){ .kind = ACTION_SEND, .overtakes = true, .msg = &beat };
    CHECK_OK(t, take(&bench));
    item = queue_next(&bench.queue, bench.queue.first);
    CHECK(t, item && item->kind == ACTION_SEND && item->type == MSG_BEAT);
    CHECK_INT(t, kind_of_next(&bench, bench.queue.first), ==, -1);
out:
    queued_free(item);
    close_bench(&bench);
}

TEST_FLAGS(a_message_for_many_is_one_frame, TEST_NO_TORTURE)
{
    struct bench bench = { .server = NULL };
    const struct msg done = { .type = MSG_DONE, .term = 1 };
    struct queued *items[2] = { NULL, NULL };

    CHECK(t, open_bench(t, &bench));
    for (int i = 0; i < 2; i++)
        *add(&bench, ACTION_SEND) = (struct action){ .kind = ACTION_SEND, .msg = &done };
    CHECK_OK(t, take(&bench));
    for (int i = 0; i < 2; i++)
        CHECK(t, (items[i] = queue_next(&bench.queue, 0)));
    CHECK(t, items[0]->frame == items[1]->frame);
    CHECK_INT(t, items[0]->frame->refs, ==, 2);
out:
    queued_free(items[0]);
    queued_free(items[1]);
    close_bench(&bench);
}

TEST_FLAGS(only_members_get_a_frame_with_the_secret, TEST_NO_TORTURE)
{
    struct bench bench = { .server = NULL };
    const struct msg round = { .type = MSG_ROUND, .term = 1, .round = 1 };
    struct queued *items[3] = { NULL, NULL, NULL };

    CHECK(t, open_bench(t, &bench));
    for (int i = 0; i < 3; i++)
        *add(&bench, ACTION_SEND) =
            (struct action){ .kind = ACTION_SEND, .msg = &round, .secret = i < 2 };
    CHECK_OK(t, take(&bench));
    for (int i = 0; i < 3; i++)
        CHECK(t, (items[i] = queue_next(&bench.queue, 0)));
    CHECK(t, items[0]->frame == items[1]->frame);
    CHECK(t, items[0]->frame != items[2]->frame);
    CHECK(t, memmem(items[0]->frame->bytes.data, items[0]->frame->bytes.length, "secret", 6));
    CHECK(t, !memmem(items[2]->frame->bytes.data, items[2]->frame->bytes.length, "secret", 6));
out:
    for (int i = 0; i < 3; i++)
        queued_free(items[i]);
    close_bench(&bench);
}

TEST_FLAGS(the_oldest_action_says_how_long_it_waits, TEST_NO_TORTURE)
{
    struct bench bench = { .server = NULL };
    uint64_t first;

    CHECK(t, open_bench(t, &bench));
    CHECK_INT(t, queue_held_us(&bench.queue, 0, 100), ==, 0);
    add(&bench, ACTION_RECORD)->record = &term;
    CHECK_OK(t, take_at(&bench, 100));
    first = bench.queue.first;
    CHECK_INT(t, queue_held_us(&bench.queue, 0, 150), ==, 0); /* a record alone holds nothing up */
    add(&bench, ACTION_DISCOVER);
    CHECK_OK(t, take_at(&bench, 200));
    add(&bench, ACTION_RECORD)->record = &term;
    add(&bench, ACTION_CHECK_OWNER);
    CHECK_OK(t, take_at(&bench, 300));
    CHECK_INT(t, queue_held_us(&bench.queue, 0, 1000), ==, 800);
    CHECK_INT(t, queue_held_us(&bench.queue, first, 1000), ==, 0); /* it may be carried out now */
    CHECK_INT(t, kind_of_next(&bench, first), ==, ACTION_DISCOVER);
    CHECK_INT(t, queue_held_us(&bench.queue, first, 1000), ==, 700);
    CHECK_INT(t, queue_held_us(&bench.queue, first + 1, 1000), ==, 0);
    CHECK_INT(t, kind_of_next(&bench, first + 1), ==, ACTION_CHECK_OWNER);
    CHECK_INT(t, queue_held_us(&bench.queue, first, 1000), ==, 0);
out:
    close_bench(&bench);
}
