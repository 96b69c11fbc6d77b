/*
 * test_core_goodput.c: for what the time of workers counts, over losses, switches, waits and
 * drivers that die; and that a successor, also one with a compacted journal, knows the same sums.
 */
#include "driver/core/compact.h"
#include "driver/core/goodput.h"
#include "tests/lib/core_tape.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static struct core_tape tape;
static struct core_view view;
static char shown[1024];

/* Writes the sums that are not 0, in seconds of time and of all workers, and the failures. */
static const char *sums(struct test *t)
{
    size_t used = 0;

    core_view_init(&view);
    CHECK_OK(t, core_view(tape.core, &view));
    shown[0] = '\0';
    for (enum goodput_use use = GOODPUT_TRAINING; use < GOODPUT_COUNT; use++) {
        const struct goodput_part *sum = &view.goodput.sums[use];

        if (sum->time_us)
            used += (size_t)snprintf(shown + used, sizeof(shown) - used, "%s %.1f/%.1f ",
                                     goodput_use_name(use), (double)sum->time_us / TIME_S,
                                     (double)sum->worker_us / TIME_S);
    }
    for (size_t i = 0; i < view.goodput.failure_count; i++)
        used += (size_t)snprintf(shown + used, sizeof(shown) - used, "%s:%" PRIu64 " ",
                                 view.goodput.failures[i].host, view.goodput.failures[i].count);
out:
    core_view_release(&view);
    return shown;
}

#define GOODPUT_CASE(name, script, expected) \
    TEST(name)                               \
    {                                        \
        CHECK_OK(t, tape_init(&tape));       \
        CHECK_PLAY(t, &tape, script);        \
        CHECK_TEXT(t, sums(t), expected);    \
out:                                         \
        tape_release(&tape);                 \
    }

#define TRAINED_10S               \
    "start\nwait 1s\n"            \
    "hosts a:2,b:2\n"             \
    "hello a\nhello b\nwait 2s\n" \
    "launched 1-4\n"              \
    "ready 1-4\nwait 500ms\n"     \
    "entered 1-4\nwait 10s\n"

GOODPUT_CASE(training_follows_the_start, TRAINED_10S,
             "training 9.5/38.0 start 2.5/10.0 waiting 1.0/4.0 ")

/* Until a round trains without it, also the time of the lost worker counts. */
GOODPUT_CASE(a_recovery,
             TRAINED_10S "exited 4 exit1\n"
                         "wait 1s\n"
                         "recovering 1-3 held=1.5\n"
                         "wait 2s\n"
                         "entered 1-3\n"
                         "wait 10s\n",
             "training 19.5/68.5 start 2.5/10.0 recovery 1.0/4.0 rebuild 2.0/8.0 waiting 1.0/4.0 "
             "b:1 ")

GOODPUT_CASE(steps_that_are_made_again,
             TRAINED_10S "exited 4 exit1\n"
                         "recovering 1-3 held=1.0\n"
                         "entered 1-3\n"
                         "wait 1s\n",
             "training 0.5/1.5 start 2.5/10.0 waiting 1.0/4.0 lost_steps 10.0/40.0 b:1 ")

/* The workers of a lost host count for the host, as their lines in the log say. */
GOODPUT_CASE(a_lost_host,
             TRAINED_10S "silent b\n"
                         "wait 11s\n",
             "training 19.5/78.0 start 2.5/10.0 recovery 1.0/4.0 waiting 1.0/4.0 b:2 ")

GOODPUT_CASE(too_few_workers,
             "config min_np=4\n" TRAINED_10S "exited 4 exit1\n"
             "wait 1s\n"
             "recovering 1-3 held=1.5\n"
             "wait 5s\n",
             "training 10.0/40.0 start 2.5/10.0 recovery 1.0/4.0 waiting 5.5/22.0 b:1 ")

/* Members pause for as long as they have measured; the joiner did not train before. */
GOODPUT_CASE(a_switch,
             "config max_np=5\n" TRAINED_10S "hosts a:2,b:2,c:1\n"
             "hello c\n"
             "ready 5\n"
             "prepared 1-5\n"
             "at 1-4 3\n"
             "wait 4s\n"
             "entered 1-4 rebuild=1s step=1s\n"
             "entered 5 rebuild=10s state=15ms step=25ms\n"
             "wait 1s\n",
             "training 14.0/57.0 start 2.5/10.0 switch 2.0/8.0 waiting 1.0/4.0 ")

GOODPUT_CASE(the_end,
             TRAINED_10S "finished 1\n"
                         "wait 3s\n",
             "training 10.0/40.0 start 2.5/10.0 waiting 1.0/4.0 ending 2.5/10.0 ")

/* A driver dies after `before`, and 5 s later the next one has the script `after`. */
static void play_return(struct test *t, const char *before, const char *after, const char *expected)
{
    CHECK_OK(t, tape_init(&tape));
    CHECK_PLAY(t, &tape, before);
    CHECK_PLAY(t, &tape, "kill\n");
    tape.now_us += 5 * TIME_S;
    CHECK_PLAY(t, &tape, after);
    CHECK_TEXT(t, sums(t), expected);
out:
    tape_release(&tape);
}

/* The time without a driver counts as training once all members have said that they train in the
 * same round. */
TEST(a_driver_returns)
{
    play_return(t, TRAINED_10S "wait 60s\n",
                "start\nhosts a:2,b:2\nhello a #1:0 #2:1\nhello b #3:0 #4:1\nwait 1s\n"
                "entered 1-4\nwait 4s\n",
                "training 80.0/320.0 start 2.5/10.0 waiting 1.0/4.0 ");
}

/* A member has died meanwhile: when is not known. */
TEST(a_driver_returns_to_a_round_that_has_ended)
{
    play_return(t, TRAINED_10S "wait 60s\n",
                "start\nhosts a:2,b:2\nhello a #1:0 #2:1\nhello b #3:0 #4:1=exit1\nwait 1s\n"
                "exited 4 exit1\nrecovering 1-3 held=1.5\nentered 1-3\nwait 4s\n",
                "training 63.5/250.0 start 2.5/10.0 waiting 1.0/4.0 no_driver 16.5/66.0 b:1 ");
}

/* After each record a core that has replayed the journal knows the sums of the last one, once or
 * twice read; and so does one that reads the compacted journal. */
static int put(void *arg, const struct journal_record *record)
{
    return core_replay(arg, record, NULL);
}

static void same_sums(struct test *t, const struct core *one, const struct core *other)
{
    struct core_view first, second;

    core_view_init(&first);
    core_view_init(&second);
    CHECK_OK(t, core_view(one, &first));
    CHECK_OK(t, core_view(other, &second));
    CHECK(t, !memcmp(first.goodput.sums, second.goodput.sums, sizeof(first.goodput.sums)));
    CHECK_INT(t, first.goodput.failure_count, ==, second.goodput.failure_count);
    for (size_t i = 0; i < first.goodput.failure_count; i++) {
        CHECK_TEXT(t, first.goodput.failures[i].host, second.goodput.failures[i].host);
        CHECK_INT(t, first.goodput.failures[i].count, ==, second.goodput.failures[i].count);
    }
out:
    core_view_release(&first);
    core_view_release(&second);
}

TEST(a_successor_knows_the_same)
{
    struct core *compacted = NULL;
    struct arena memory;

    arena_init(&memory, COMPACT_BYTES);
    CHECK_OK(t, tape_init(&tape));
    CHECK_PLAY(t, &tape,
               TRAINED_10S "exited 4 exit1\nrecovering 1-3 held=1.5\nentered 1-3\nwait 2m\n"
                           "kill 0 twice\n");
    CHECK_HAS(t, sums(t), "b:1 ");
    CHECK_HAS(t, shown, "training 82.5/257.5 ");
    compacted = core_create(&tape.config, NULL);
    CHECK(t, compacted);
    CHECK_OK(t, core_compact(tape.core, &memory, put, compacted));
    same_sums(t, tape.core, compacted);
out:
    core_free(compacted);
    arena_release(&memory);
    tape_release(&tape);
}

TEST(records_that_no_job_can_have)
{
    const struct journal_record bad[] = {
        {.kind = JOURNAL_GOODPUT,  .slot = GOODPUT_COUNT,         .host = "",  .text = ""},
        { .kind = JOURNAL_GOODPUT, .check = UINT64_MAX,           .host = "",  .text = ""},
        { .kind = JOURNAL_GOODPUT, .check = UINT64_MAX,           .host = "a", .text = ""},
        { .kind = JOURNAL_GOODPUT, .manifest = UINT64_C(1) << 63, .host = "",  .text = ""},
    };

    CHECK_OK(t, tape_init(&tape));
    CHECK_OK(t, tape_core(&tape));
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
        CHECK_CODE(t, core_replay(tape.core, &bad[i], NULL), HVD_E_CORRUPT);
    CHECK_TEXT(t, sums(t), "");
out:
    tape_release(&tape);
}

/* More hosts than have an entry of their own fail: the rest is counted together. */
TEST(many_hosts_fail)
{
    struct journal_record kept = { .kind = JOURNAL_GOODPUT, .text = "" };
    struct core *compacted = NULL;

    CHECK_OK(t, tape_init(&tape));
    CHECK_OK(t, tape_core(&tape));
    for (int i = 0; i < 100; i++) {
        char name[16];
        const struct journal_record record = {
            .kind = JOURNAL_GOODPUT, .check = 2, .host = name, .text = ""
        };

        snprintf(name, sizeof(name), "n%d", i);
        CHECK_OK(t, core_replay(tape.core, &record, NULL));
    }
    CHECK_HAS(t, sums(t), "n0:2 n1:2 ");
    CHECK_HAS(t, shown, "n31:2 :2 ");
    goodput_note_failure(tape.core, "n50");
    goodput_note_failure(tape.core, "n60");
    CHECK_HAS(t, sums(t), "n31:2 :4 ");
    /* a compacted journal keeps the count */
    compacted = core_create(&tape.config, NULL);
    CHECK(t, compacted);
    for (size_t i = 0; goodput_host_record(tape.core, i, &kept); i++)
        CHECK_OK(t, put(compacted, &kept));
    same_sums(t, tape.core, compacted);
out:
    core_free(compacted);
    tape_release(&tape);
}
