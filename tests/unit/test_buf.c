/*
 * test_buf.c: base/buf: appending, printing and consuming within a cap. A call that fails leaves
 * the buffer as it was.
 */
#include "base/buf.h"
#include "base/rng.h"
#include "tests/lib/fixture.h"

#include <string.h>
#include <wchar.h>

static struct buf buf;

static void end_case(struct test *t)
{
    (void)t;
    buf_release(&buf);
    buf_release(NULL);
}
FIXTURE(NULL, end_case)

TEST(starts_empty_and_prints)
{
    buf_init(&buf, 100);
    CHECK_TEXT(t, buf_text(&buf), "");
    CHECK_OK(t, buf_reserve(&buf, 10));
    CHECK_TEXT(t, buf_text(&buf), "");
    CHECK_OK(t, buf_append_text(&buf, "abc"));
    CHECK_OK(t, buf_printf(&buf, "-%d", 42));
    CHECK_TEXT(t, buf_text(&buf), "abc-42");
    CHECK_INT(t, buf.length, ==, 6);
    buf_clear(&buf);
    CHECK_TEXT(t, buf_text(&buf), "");
}

TEST(never_grows_past_max)
{
    buf_init(&buf, 10);
    CHECK_OK(t, buf_append(&buf, "0123456789", 10));
    CHECK_CODE(t, buf_append(&buf, "x", 1), HVD_E_LIMIT);
    CHECK_CODE(t, buf_printf(&buf, "%s", "x"), HVD_E_LIMIT);
    CHECK_CODE(t, buf_reserve(&buf, SIZE_MAX), HVD_E_LIMIT);
    CHECK_TEXT(t, buf_text(&buf), "0123456789");
}

TEST(grows_byte_by_byte)
{
    buf_init(&buf, 1000);
    for (int i = 0; i < 1000; i++)
        CHECK_OK(t, buf_append(&buf, &"abcdefghij"[i % 10], 1));
    CHECK_INT(t, buf.length, ==, 1000);
    CHECK_CODE(t, buf_append(&buf, "x", 1), HVD_E_LIMIT);
    for (int i = 0; i < 1000; i++)
        CHECK_INT(t, buf.data[i], ==, "abcdefghij"[i % 10]);
}

TEST(consumes_from_the_front)
{
    buf_init(&buf, 100);
    buf_consume(&buf, 0);
    CHECK_OK(t, buf_append_text(&buf, "hello world"));
    buf_consume(&buf, 6);
    CHECK_TEXT(t, buf_text(&buf), "world");
    buf_consume(&buf, 5);
    CHECK_TEXT(t, buf_text(&buf), "");
}

TEST(nothing_appended_is_a_text_too)
{
    buf_init(&buf, 0);
    buf_clear(&buf);
    CHECK_TEXT(t, buf_text(&buf), "");
    CHECK_OK(t, buf_append(&buf, NULL, 0));
    CHECK_OK(t, buf_printf(&buf, "%s", ""));
    CHECK_OK(t, buf_reserve(&buf, 0));
    CHECK_TEXT(t, buf_text(&buf), "");
    CHECK_CODE(t, buf_append(&buf, "x", 1), HVD_E_LIMIT);
    CHECK_INT(t, buf.length, ==, 0);
}

TEST(prints_up_to_max)
{
    buf_init(&buf, 100);
    CHECK_OK(t, buf_printf(&buf, "%99s", "x"));
    CHECK_CODE(t, buf_printf(&buf, "%d", 12), HVD_E_LIMIT);
    CHECK_OK(t, buf_printf(&buf, "%d", 1));
    CHECK_INT(t, buf.length, ==, 100);
    CHECK_INT(t, buf.capacity, ==, 101);
    CHECK_HAS(t, buf_text(&buf), " x1");
}

/* The C locale has no character for U+1F401. */
TEST(a_failed_format_appends_nothing)
{
    static const wchar_t mouse[] = { 0x1f401, 0 };

    buf_init(&buf, 100);
    CHECK_OK(t, buf_append_text(&buf, "kept"));
    CHECK_CODE(t, buf_printf(&buf, " and %ls", mouse), HVD_E_INVAL);
    CHECK_TEXT(t, buf_text(&buf), "kept");
}

TEST(released_is_empty_and_keeps_its_max)
{
    buf_init(&buf, 3);
    CHECK_OK(t, buf_append_text(&buf, "abc"));
    buf_release(&buf);
    CHECK_TEXT(t, buf_text(&buf), "");
    CHECK_CODE(t, buf_append_text(&buf, "abcd"), HVD_E_LIMIT);
    CHECK_OK(t, buf_append_text(&buf, "def"));
    CHECK_TEXT(t, buf_text(&buf), "def");
}

#define MODEL_MAX 200

/* The same random changes in a buf and in a plain array. */
TEST(agrees_with_an_array)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz\n\x1b\xff";
    char model[MODEL_MAX + 1] = "";
    size_t used = 0;
    struct rng rng;

    buf_init(&buf, MODEL_MAX);
    rng_seed(&rng, 3);
    for (int step = 0; step < 10000; step++) {
        size_t length = (size_t)rng_below(&rng, sizeof(letters));
        int expected = length > MODEL_MAX - used ? HVD_E_LIMIT : 0;

        if (rng_below(&rng, 4) == 0) {
            length = length < used ? length : used;
            buf_consume(&buf, length);
            used -= length;
            memmove(model, model + length, used);
        } else if (rng_below(&rng, 2)) {
            CHECK_CODE(t, buf_append(&buf, letters, length), expected);
        } else {
            CHECK_CODE(t, buf_printf(&buf, "%.*s", (int)length, letters), expected);
        }
        if (buf.length > used) {
            memcpy(model + used, letters, length);
            used += length;
        }
        model[used] = '\0';
        CHECK_INT(t, buf.length, ==, used);
        CHECK_TEXT(t, buf_text(&buf), model);
    }
}

TEST_FLAGS(refuses_to_consume_what_is_not_there, TEST_NO_TORTURE)
{
    buf_init(&buf, 100);
    CHECK_PANICS(t, "length <= buf->length", buf_consume(&buf, 1));
    CHECK_PANICS(t, "max < SIZE_MAX / 2", buf_init(&buf, SIZE_MAX));
}
