#include "base/buf.h"
#include "base/err.h"
#include "base/rng.h"
#include "tests/lib/test.h"

#include <string.h>
#include <wchar.h>

static void starts_empty_and_prints(struct test *t)
{
    struct buf buf;

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

static void nothing_appended_is_a_text_too(struct test *t)
{
    struct buf buf;

    buf_init(&buf, 0);
    buf_clear(&buf);
    CHECK_TEXT(t, buf_text(&buf), "");
    CHECK_OK(t, buf_append(&buf, NULL, 0));
    CHECK_OK(t, buf_printf(&buf, "%s", ""));
    CHECK_OK(t, buf_reserve(&buf, 0));
    CHECK_TEXT(t, buf_text(&buf), "");
    CHECK_CODE(t, buf_append(&buf, "x", 1), HVD_E_LIMIT);
    CHECK_INT(t, buf.length, ==, 0);
out:
    buf_release(&buf);
}

static void prints_up_to_max(struct test *t)
{
    struct buf buf;

    buf_init(&buf, 100);
    CHECK_OK(t, buf_printf(&buf, "%99s", "x"));
    CHECK_CODE(t, buf_printf(&buf, "%d", 12), HVD_E_LIMIT);
    CHECK_OK(t, buf_printf(&buf, "%d", 1));
    CHECK_INT(t, buf.length, ==, 100);
    CHECK_INT(t, buf.capacity, ==, 101);
    CHECK_HAS(t, buf_text(&buf), " x1");
out:
    buf_release(&buf);
}

/* The C locale has no character for U+1F401. */
static void what_cannot_be_formatted_is_not_appended(struct test *t)
{
    static const wchar_t mouse[] = { 0x1f401, 0 };
    struct buf buf;

    buf_init(&buf, 100);
    CHECK_OK(t, buf_append_text(&buf, "kept"));
    CHECK_CODE(t, buf_printf(&buf, " and %ls", mouse), HVD_E_INVAL);
    CHECK_TEXT(t, buf_text(&buf), "kept");
out:
    buf_release(&buf);
}

static void released_is_empty_and_keeps_its_max(struct test *t)
{
    struct buf buf;

    buf_init(&buf, 3);
    CHECK_OK(t, buf_append_text(&buf, "abc"));
    buf_release(&buf);
    CHECK_TEXT(t, buf_text(&buf), "");
    CHECK_CODE(t, buf_append_text(&buf, "abcd"), HVD_E_LIMIT);
    CHECK_OK(t, buf_append_text(&buf, "def"));
    CHECK_TEXT(t, buf_text(&buf), "def");
out:
    buf_release(&buf);
}

#define MODEL_MAX 200

/* The same random changes in a buf and in a plain array. */
static void agrees_with_an_array(struct test *t)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz\n\x1b\xff";
    char model[MODEL_MAX + 1] = "";
    size_t used = 0;
    struct buf buf;
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
out:
    buf_release(&buf);
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
      CASE(consumes_from_the_front), CASE(nothing_appended_is_a_text_too), CASE(prints_up_to_max),
      CASE(what_cannot_be_formatted_is_not_appended), CASE(released_is_empty_and_keeps_its_max),
      CASE(agrees_with_an_array), CASE_FLAGS(refuses_to_consume_what_is_not_there, TEST_NO_TORTURE))
