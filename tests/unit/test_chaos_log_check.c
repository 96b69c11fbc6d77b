/*
 * test_chaos_log_check.c: how chaos checks events.log: each kind of impossible line is found, and
 * lines of other kinds change nothing.
 */
#include "tests/chaos/log_check.h"
#include "tests/lib/test.h"

#include <stdio.h>

struct history {
    const char *lines[8]; /* without their time; ends in NULL */
    const char *wrong;    /* a part of the report about the last line; NULL: no report */
};

#define ROUND_1 "round 1 (first): size 2, from commit 1.0 held by 1", "round 1: by rank a:0 b:0"

/* clang-format off */
static const struct history histories[] = {
    { { "a:0#1 is launched", "a:1#2 is launched", "b:0#3 is launched",
        "round 1 (first): size 3, from commit 1.0 held by 1", "round 1: by rank a:0,1 b:0",
        "round 1: all 3 train (first 23ms)", "a:0#4 is launched" }, NULL },
    { { "a:0#2 is launched", "b:0#2 is launched" }, "comes twice" },
    { { "round 2 (failure): size 1, from commit 1.9 held by 1",
        "round 2 (failure): size 1, from commit 1.9 held by 1" }, "round 2 begins after round 2" },
    { { "round 2 (failure): size 1, from commit 1.9 held by 1", "round 2: all 1 train",
        "round 3 (failure): size 1, from commit 1.8 held by 1" }, "work was lost" },
    { { "round 2 (failure): size 1, from commit 2.0 held by 1", "round 2: all 1 train",
        "round 3 (failure): size 1, from commit 1.9 held by 1" }, "work was lost" },
    /* a commit with which its round was to begin, but did not */
    { { "round 1 (first): size 1, from commit 1.0 held by 1", "round 1: all 1 train",
        "round 2 (switch): size 1, from commit 2.0 held by 1",
        "round 3 (failure): size 1, from commit 1.9 held by 1" }, NULL },
    { { "round 2 (switch): size 1, from commit 2.0 kept by agents", "round 2: by rank a:0,1 a:0" },
      "a:0 is rank 0 and 2" },
    { { "round 2 (switch): size 2, from commit 2.0 held by 2", "round 2: by rank a:0,1",
        "round 2: all 3 train" }, "3 train" },
    { { "a:0#1 is launched", "b:0#2 is launched", ROUND_1,
        "round 2 (switch): size 2, from commit 1.0 held by 1", "round 2: by rank b:0 a:0" },
      "keep their order" },
    /* a worker that was started anew may be on another slot */
    { { "a:0#1 is launched", "b:0#2 is launched", ROUND_1, "a:0#3 is launched",
        "round 2 (switch): size 2, from commit 1.0 held by 1", "round 2: by rank b:0 a:0" }, NULL },
    /* nothing is known about workers whose last round is missing */
    { { "a:0#1 is launched", "b:0#2 is launched", ROUND_1, "(7 lines are missing here)",
        "round 3 (switch): size 2, from commit 1.0 held by 1", "round 3: by rank b:0 a:0" }, NULL },
    /* a driver dies whose disk was broken, with the lines of its last round */
    { { "a:0#1 is launched", "b:0#2 is launched", ROUND_1, "job j: term 2, 2 workers known, round 2",
        "round 3 (failure): size 2, from commit 2.0 held by 1", "round 3: by rank b:0 a:0" }, NULL },
    /* a driver dies before its last line is written; its numbers are free then */
    { { "round 2 (failure): size 1, from commit 1.9 held by 1", "a:0#7 is launched",
        "job j: term 2, 1 workers known, round 1", "a:0#7 is launched",
        "round 2 (failure): size 1, from commit 1.9 held by 1" }, NULL },
    { { "round 2 (failure): size 1, from commit 1.9 held by 1", "round 2: by rank a:0",
        "job j: term 2, 1 workers known, round 1",
        "round 2 (failure): size 1, from commit 1.9 held by 1", "round 2: by rank a:0" }, NULL },
    { { "a:0#7 is launched", "a:0#7 is ready", "job j: term 2, 1 workers known, round 1",
        "a:0#7 is launched" }, "comes twice" },
    { { "round 2 (failure): size 1, from commit 1.9 held by 1", "round 2: all 1 train",
        "job j: term 2, 1 workers known, round 1" }, "round 2 has trained" },
    { { "the last 10 rounds ended by failures without a newer commit in between, 3 of them in a:0; "
        "--progress-restarts limits that" }, NULL },
    { { "the last 11 rounds ended by failures without a newer commit in between; "
        "--progress-restarts limits that" }, "goes on after 11 failures" },
    { { "the last 4 rounds ended by failures without a newer commit in between, 4 of them in a:0; "
        "--progress-restarts limits that" }, "4 of them in one slot" },
    { { "the driver (pid 7) died of signal 9 (SIGKILL); a new driver takes the job over (pid 9)",
        "the driver (pid 9) ended with code 4; a new driver takes the job over (pid 12)" }, NULL },
    { { "the driver (pid 7) died of signal 11 (SIGSEGV); a new driver takes the job over "
        "(pid 9)" }, "by itself the driver (pid 7) died of signal 11" },
    { { "the driver (pid 7) ended with code 2; a new driver takes the job over (pid 9)" },
      "by itself the driver (pid 7) ended with code 2" },
};
/* clang-format on */

TEST(impossible_lines_are_found)
{
    struct log_check check;
    struct hvd_err err;
    char line[256];

    log_check_init(&check, "nowhere");
    for (size_t i = 0; i < ARRAY_SIZE(histories); i++) {
        const struct history *history = &histories[i];
        int rc = 0;

        log_check_release(&check);
        log_check_init(&check, "nowhere");
        err.text[0] = '\0';
        for (size_t j = 0; j < ARRAY_SIZE(history->lines) && history->lines[j]; j++) {
            CHECK_OK(t, rc);
            snprintf(line, sizeof(line), "2026-11-21T09:30:01.250Z %s", history->lines[j]);
            rc = log_check_line(&check, line, &err);
        }
        CHECK_INT(t, rc, ==, history->wrong ? HVD_E_MISMATCH : 0);
        if (history->wrong)
            CHECK_HAS(t, err.text, history->wrong);
    }
out:
    log_check_release(&check);
}

TEST(other_lines_say_nothing)
{
    static const char *const lines[] = { "",
                                         " ",
                                         "round",
                                         "x round 7",
                                         "x round 7: by rank a:0",
                                         "x round x (y): size",
                                         "x # is launched",
                                         "x a#1 is ready" };
    struct log_check check;
    struct hvd_err err;

    log_check_init(&check, "nowhere");
    for (size_t i = 0; i < ARRAY_SIZE(lines); i++)
        CHECK_OK(t, log_check_line(&check, lines[i], &err));
    CHECK_INT(t, check.round, ==, 0);
    CHECK_INT(t, check.launched, ==, 0);
    CHECK_OK(t, log_check_read(&check, &err)); /* the file does not exist yet */
out:
    log_check_release(&check);
}

/* Some member had the commit, so none of its steps is repeated. */
TEST(the_first_incarnation_is_known)
{
    static const char *const lines[] = {
        "a:0#1 is launched",
        "b:0#2 is launched",
        ROUND_1,
        "round 2 (failure): size 1, from commit 1.9 held by 1",
        "round 2: by rank a:0",
        "a:0#3 is launched",
        "round 3 (failure): size 2, from commit 2.9 held by 1",
        "round 3: by rank a:0 b:0",
        "(7 lines are missing here)",
        "round 4 (failure): size 2, from commit 3.9 held by 1",
        "round 4: by rank a:0 b:0",
    };
    struct log_check check;
    struct hvd_err err;
    char line[256];

    log_check_init(&check, "nowhere");
    for (size_t i = 0; i < ARRAY_SIZE(lines); i++) {
        snprintf(line, sizeof(line), "2026-11-21T09:30:01.250Z %s", lines[i]);
        CHECK_OK(t, log_check_line(&check, line, &err));
    }
    CHECK(t, log_check_same_first(&check, 1, 2));
    CHECK(t, log_check_same_first(&check, 2, 2));
    CHECK(t, !log_check_same_first(&check, 2, 3)); /* another process in the same slot */
    CHECK(t, !log_check_same_first(&check, 3, 4)); /* may be the same */
    CHECK(t, !log_check_same_first(&check, 4, 4));
    CHECK(t, !log_check_same_first(&check, 1, 1 + LOG_CHECK_RECENT));
out:
    log_check_release(&check);
}

#define GOES_ON(commit) \
    "x no process has a newer commit than checkpoint " commit ": the training goes on from /a"

/* A round may begin with a checkpoint after a loss of all processes with commits, once, and only
 * with the newest complete one. */
TEST(a_checkpoint_is_taken_only_after_a_loss)
{
    static const uint64_t kept[2] = { 1, 7 };
    struct log_check check;
    struct hvd_err err;

    log_check_init(&check, "nowhere");
    CHECK_OK(t,
             log_check_line(&check, "x round 1 (first): size 1, from commit 1.0 held by 1", &err));
    CHECK_OK(t, log_check_line(&check, "x round 1: all 1 train (first 23ms)", &err));
    CHECK_OK(t, log_check_line(&check, "x checkpoint 1.5 is complete: 1 files", &err));
    CHECK_OK(t, log_check_line(&check, "x round 2 (failure): size 1, from commit 1.9 held", &err));
    CHECK_OK(t, log_check_line(&check, "x round 2: all 1 train", &err));
    CHECK_CODE(t, log_check_line(&check, GOES_ON("1.5"), &err), HVD_E_MISMATCH);
    CHECK_HAS(t, err.text, "processes with newer commits were left: work was lost");

    /* the log does not tell of the newest checkpoint, and the directory has it */
    log_check_lost(&check, kept);
    CHECK_CODE(t, log_check_line(&check, GOES_ON("1.5"), &err), HVD_E_MISMATCH);
    CHECK_HAS(t, err.text, "goes on from checkpoint 1.5, and 1.7 was complete: work was lost");
    CHECK_OK(t, log_check_line(&check, GOES_ON("1.7"), &err));
    CHECK_OK(t, log_check_line(&check, "x round 3 (failure): size 1, from commit 1.7 kept", &err));
    /* the round ends before it trains, and the next one begins with the same checkpoint */
    CHECK_OK(t, log_check_line(&check, GOES_ON("1.7"), &err));
    CHECK_OK(t, log_check_line(&check, "x round 4 (failure): size 1, from commit 1.7 kept", &err));
    CHECK_OK(t, log_check_line(&check, "x round 4: all 1 train", &err));
    CHECK_CODE(t, log_check_line(&check, GOES_ON("1.7"), &err), HVD_E_MISMATCH);
    CHECK_CODE(t, log_check_line(&check, "x round 5 (failure): size 1, from commit 1.5 kept", &err),
               HVD_E_MISMATCH);
    CHECK_HAS(t, err.text, "round 4 has trained from 1.7: work was lost");
out:
    log_check_release(&check);
}
