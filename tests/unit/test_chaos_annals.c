#include "tests/chaos/annals.h"
#include "tests/lib/test.h"

#include <stdio.h>
#include <string.h>

struct history {
    const char *lines[8]; /* without their time; ends in NULL */
    const char *wrong;    /* part of what is said of the last one; NULL: nothing */
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
    /* a commit that its round was to begin with, and never did */
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
    /* one that was started anew may stand elsewhere */
    { { "a:0#1 is launched", "b:0#2 is launched", ROUND_1, "a:0#3 is launched",
        "round 2 (switch): size 2, from commit 1.0 held by 1", "round 2: by rank b:0 a:0" }, NULL },
    /* and of those whose last round is not known nothing can be said */
    { { "a:0#1 is launched", "b:0#2 is launched", ROUND_1, "(7 lines are missing here)",
        "round 3 (switch): size 2, from commit 1.0 held by 1", "round 3: by rank b:0 a:0" }, NULL },
    /* a driver dies before what it has said last is written down; then its numbers are free */
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
};
/* clang-format on */

static void what_cannot_be_is_found(struct test *t)
{
    struct annals annals;
    struct hvd_err err;
    char line[256];

    annals_init(&annals, "nowhere");
    for (size_t i = 0; i < ARRAY_SIZE(histories); i++) {
        const struct history *history = &histories[i];
        int rc = 0;

        annals_release(&annals);
        annals_init(&annals, "nowhere");
        err.text[0] = '\0';
        for (size_t j = 0; j < ARRAY_SIZE(history->lines) && history->lines[j]; j++) {
            CHECK_OK(t, rc);
            snprintf(line, sizeof(line), "2026-11-21T09:30:01.250Z %s", history->lines[j]);
            rc = annals_line(&annals, line, &err);
        }
        CHECK_INT(t, rc, ==, history->wrong ? HVD_E_MISMATCH : 0);
        if (history->wrong)
            CHECK_HAS(t, err.text, history->wrong);
    }
out:
    annals_release(&annals);
}

static void other_lines_say_nothing(struct test *t)
{
    static const char *const lines[] = { "",
                                         " ",
                                         "round",
                                         "x round 7",
                                         "x round 7: by rank a:0",
                                         "x round x (y): size",
                                         "x # is launched",
                                         "x a#1 is ready" };
    struct annals annals;
    struct hvd_err err;

    annals_init(&annals, "nowhere");
    for (size_t i = 0; i < ARRAY_SIZE(lines); i++)
        CHECK_OK(t, annals_line(&annals, lines[i], &err));
    CHECK_INT(t, annals.round, ==, 0);
    CHECK_INT(t, annals.launched, ==, 0);
    CHECK_OK(t, annals_read(&annals, &err)); /* there is no such file yet */
out:
    annals_release(&annals);
}

/* As somebody was there who had it, no step of theirs is done again. */
static void it_is_known_who_was_first(struct test *t)
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
    struct annals annals;
    struct hvd_err err;
    char line[256];

    annals_init(&annals, "nowhere");
    for (size_t i = 0; i < ARRAY_SIZE(lines); i++) {
        snprintf(line, sizeof(line), "2026-11-21T09:30:01.250Z %s", lines[i]);
        CHECK_OK(t, annals_line(&annals, line, &err));
    }
    CHECK(t, annals_same_first(&annals, 1, 2));
    CHECK(t, annals_same_first(&annals, 2, 2));
    CHECK(t, !annals_same_first(&annals, 2, 3)); /* another process in the same seat */
    CHECK(t, !annals_same_first(&annals, 3, 4)); /* it may be */
    CHECK(t, !annals_same_first(&annals, 4, 4));
    CHECK(t, !annals_same_first(&annals, 1, 1 + ANNALS_RECENT));
out:
    annals_release(&annals);
}

TESTS(CASE(it_is_known_who_was_first), CASE(what_cannot_be_is_found), CASE(other_lines_say_nothing))
