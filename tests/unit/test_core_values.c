/*
 * test_core_values.c: values that workers store in the job: a change is written down before it is
 * told, and made once; what a wait gets; what a round's end and a new driver leave of it.
 */
#include "proto/value_table.h"
#include "tests/lib/core_tape.h"
#include "tests/lib/fixture.h"

#include <string.h>

static struct core_tape tape;

static void begin_case(struct test *t)
{
    CHECK_OK(t, tape_init(&tape));
    CHECK_PLAY(t, &tape, TAPE_RUNNING);
}

static void end_case(struct test *t)
{
    (void)t;
    tape_release(&tape);
}
FIXTURE(begin_case, end_case)

static int code;

/* Worker `incarnation` says STORE. Returns the actions of the driver. */
static const char *store(uint64_t incarnation, uint64_t round, uint32_t op, uint64_t number,
                         const char *value)
{
    struct msg msg = {
        .type = MSG_STORE,
        .incarnation = incarnation,
        .round = round,
        .u.store = {.number = number,
                    .channel = op == STORE_WAIT,
                    .op = op,
                    .key = "k",
                    .value = { (const uint8_t *)value, strlen(value) }}
    };

    buf_clear(&tape.did);
    code = tape_msg(&tape, NULL, &msg);
    return tape_did(&tape);
}

#define CHECK_STORE(t, round, incarnation, op, number, value, expected) \
    do {                                                                \
        const char *did = store(incarnation, round, op, number, value); \
        CHECK_OK(t, code);                                              \
        CHECK_TEXT(t, did, expected);                                   \
    } while (0)

TEST(a_change_is_written_down_before_it_is_told)
{
    CHECK_STORE(t, 0, 1, STORE_SET, 1, "abc",
                "record STORE 1 call 1 round 0 code 0 k=616263\na < STORED 1 0:1");
    CHECK_STORE(t, 0, 3, STORE_GET, 1, "", "b < STORED 3 0:1 =abc");
    CHECK_STORE(t, 0, 1, STORE_DELETE, 2, "",
                "record STORE 1 call 2 round 0 code 2 k=\na < STORED 1 0:2");
    CHECK_STORE(t, 0, 3, STORE_GET, 2, "", "b < STORED 3 0:2 HVD_E_NOTFOUND");
    CHECK_STORE(t, 0, 3, STORE_DELETE, 3, "", "b < STORED 3 0:3 HVD_E_NOTFOUND");
}

TEST(a_change_that_is_asked_for_twice_is_made_once)
{
    CHECK_STORE(t, 0, 1, STORE_ADD, 4, "5",
                "record STORE 1 call 4 round 0 code 1 k=35\na < STORED 1 0:4 =5");
    CHECK_STORE(t, 0, 2, STORE_ADD, 1, "1",
                "record STORE 2 call 1 round 0 code 1 k=36\na < STORED 2 0:1 =6");
    CHECK_STORE(t, 0, 1, STORE_ADD, 4, "5", "a < STORED 1 0:4 =5");
    CHECK_STORE(t, 0, 1, STORE_SET, 3, "late", "");
    CHECK_STORE(t, 0, 3, STORE_GET, 1, "", "b < STORED 3 0:1 =6");
}

TEST(a_wait_is_answered_by_the_change)
{
    CHECK_STORE(t, 1, 3, STORE_WAIT, 1, "", "");
    CHECK_STORE(t, 1, 4, STORE_WAIT, 8, "", "");
    CHECK_STORE(t, 1, 4, STORE_WAIT, 9, "", ""); /* the one before it has timed out */
    CHECK_STORE(t, 0, 1, STORE_SET, 1, "job",
                "record STORE 1 call 1 round 0 code 0 k=6a6f62\na < STORED 1 0:1");
    CHECK_STORE(t, 1, 1, STORE_SET, 2, "x",
                "record STORE 1 call 2 round 1 code 0 k=78\na < STORED 1 0:2\n"
                "b < STORED 4 1:9 =x\nb < STORED 3 1:1 =x");
    CHECK_STORE(t, 1, 1, STORE_SET, 3, "y",
                "record STORE 1 call 3 round 1 code 0 k=79\na < STORED 1 0:3");
    CHECK_STORE(t, 1, 3, STORE_WAIT, 2, "", "b < STORED 3 1:2 =y");
}

TEST(a_dead_worker_waits_no_more)
{
    CHECK_STORE(t, 0, 4, STORE_WAIT, 1, "", "");
    CHECK_PLAY(t, &tape, "exited 4 sig9\n");
    CHECK_STORE(t, 0, 1, STORE_SET, 1, "x",
                "record STORE 1 call 1 round 0 code 0 k=78\na < STORED 1 0:1");
}

TEST(values_of_a_round_end_with_it)
{
    CHECK_STORE(t, 1, 1, STORE_SET, 1, "x",
                "record STORE 1 call 1 round 1 code 0 k=78\na < STORED 1 0:1");
    CHECK_STORE(t, 1, 3, STORE_WAIT, 1, "", "b < STORED 3 1:1 =x");
    CHECK_PLAY(t, &tape, "exited 4 sig9\n");
    CHECK_STORE(t, 1, 1, STORE_GET, 2, "", "");
    CHECK_PLAY(t, &tape, "recovering 1-3 held=1.1\nentered 1-3\n");
    CHECK_STORE(t, 1, 1, STORE_SET, 2, "old", "");
    CHECK_STORE(t, 2, 1, STORE_GET, 3, "", "a < STORED 1 0:3 HVD_E_NOTFOUND");
}

/* The new driver knows values, sums and which change of a worker was the last. */
TEST(a_new_driver_knows_the_values)
{
    CHECK_OK(t, (store(1, 1, STORE_SET, 1, "x"), code));
    CHECK_OK(t, (store(1, 0, STORE_ADD, 2, "40"), code));
    CHECK_OK(t, (store(3, 0, STORE_ADD, 1, "2"), code));
    CHECK_OK(t, (store(4, 1, STORE_WAIT, 1, ""), code));
    CHECK_PLAY(t, &tape, "kill twice\nstart\nhello a #1:0 #2:1\nhello b #3:0 #4:1\nentered 1-4\n");
    CHECK_STORE(t, 0, 1, STORE_ADD, 2, "40", "a < STORED 1 0:2 =40");
    CHECK_STORE(t, 0, 3, STORE_ADD, 1, "2", "b < STORED 3 0:1 =42");
    CHECK_STORE(t, 0, 2, STORE_GET, 1, "", "a < STORED 2 0:1 =42");
    CHECK_STORE(t, 1, 4, STORE_WAIT, 1, "", "b < STORED 4 1:1 =x");
}

/* The driver dies before the record of a change is on disk: no worker has heard of the change. */
TEST(a_change_that_is_lost_with_its_record_comes_again)
{
    CHECK_OK(t, (store(1, 0, STORE_ADD, 1, "40"), code));
    CHECK_PLAY(t, &tape, "kill 1\nstart\nhello a #1:0 #2:1\nhello b #3:0 #4:1\nentered 1-4\n");
    CHECK_STORE(t, 0, 1, STORE_ADD, 1, "40",
                "record STORE 1 call 1 round 0 code 1 k=3430\na < STORED 1 0:1 =40");
}
