#include "base/buf.h"
#include "base/err.h"
#include "tests/lib/test.h"

#include <string.h>

static void starts_empty_and_prints(struct test *t)
{
    struct buf buf;

    buf_init(&buf, 100);
    CHECK_TEXT(t, buf_text(&buf), "");
    CHECK_OK(t, buf_append_text(&buf, "abc"));
    CHECK_OK(t, buf_printf(&buf, "-%d", 42));
    CHECK_TEXT(t, buf_text(&buf), "abc-42");
    CHECK_INT(t, buf.length, ==, 6);
    buf_clear(&buf);
    CHECK_TEXT(t, buf_text(&buf), "");
out:
    buf_release(&buf);
}

static void never_grows_past_max(struct test *t)
{
    struct buf buf;

    buf_init(&buf, 10);
    CHECK_OK(t, buf_append(&buf, "0123456789", 10));
    CHECK_CODE(t, buf_append(&buf, "x", 1), HVD_E_LIMIT);
    CHECK_CODE(t, buf_printf(&buf, "%s", "x"), HVD_E_LIMIT);
    CHECK_CODE(t, buf_reserve(&buf, SIZE_MAX), HVD_E_LIMIT);
    CHECK_TEXT(t, buf_text(&buf), "0123456789");
out:
    buf_release(&buf);
}

static void grows_byte_by_byte(struct test *t)
{
    struct buf buf;

    buf_init(&buf, 1000);
    for (int i = 0; i < 1000; i++)
        CHECK_OK(t, buf_append(&buf, &"abcdefghij"[i % 10], 1));
    CHECK_INT(t, buf.length, ==, 1000);
    CHECK_CODE(t, buf_append(&buf, "x", 1), HVD_E_LIMIT);
    for (int i = 0; i < 1000; i++)
        CHECK_INT(t, buf.data[i], ==, "abcdefghij"[i % 10]);
out:
    buf_release(&buf);
}

static void consumes_from_the_front(struct test *t)
{
    struct buf buf;

    buf_init(&buf, 100);
    buf_consume(&buf, 0);
    CHECK_OK(t, buf_append_text(&buf, "hello world"));
    buf_consume(&buf, 6);
    CHECK_TEXT(t, buf_text(&buf), "world");
    buf_consume(&buf, 5);
    CHECK_TEXT(t, buf_text(&buf), "");
out:
    buf_release(&buf);
    buf_release(NULL);
}

static void refuses_to_consume_what_is_not_there(struct test *t)
{
    struct buf buf;

    buf_init(&buf, 100);
    CHECK_PANICS(t, "length <= buf->length", buf_consume(&buf, 1));
    CHECK_PANICS(t, "max < SIZE_MAX / 2", buf_init(&buf, SIZE_MAX));
out:
    buf_release(&buf);
}

TESTS(CASE(starts_empty_and_prints), CASE(never_grows_past_max), CASE(grows_byte_by_byte),
      CASE(consumes_from_the_front),
      CASE_FLAGS(refuses_to_consume_what_is_not_there, TEST_NO_TORTURE))
