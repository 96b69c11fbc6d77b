/*
 * test_text_show.c: base/text_show: which foreign text a terminal may have.
 */
#include "base/text_show.h"

#include "tests/lib/fixture.h"

#include <string.h>

static struct buf out;

static void begin(struct test *t)
{
    (void)t;
    buf_init(&out, 4096);
}

static void end(struct test *t)
{
    (void)t;
    buf_release(&out);
}
FIXTURE(begin, end)

static const char *show(const char *text, bool colours)
{
    buf_clear(&out);
    return text_show(&out, text, strlen(text), colours) ? NULL : buf_text(&out);
}

/* A failing allocation is a failure of the case. */
#define CHECK_SHOWS(t, text, colours, wanted)  \
    do {                                       \
        const char *got = show(text, colours); \
        CHECK(t, got);                         \
        CHECK_TEXT(t, got, wanted);            \
    } while (0)

TEST(plain_text_passes)
{
    CHECK_SHOWS(t, "", true, "");
    CHECK_SHOWS(t, "loss 0.5\tstep 3", true, "loss 0.5\tstep 3");
    CHECK_SHOWS(t, "one\ntwo\n", false, "one\ntwo\n");
    CHECK_SHOWS(t, "\xc3\xa9 \xe2\x82\xac \xf0\x9f\x99\x82", true,
                "\xc3\xa9 \xe2\x82\xac \xf0\x9f\x99\x82");
}

TEST(what_moves_the_cursor_or_asks_the_terminal_is_escaped)
{
    CHECK_SHOWS(t, "\x1b[1A\x1b[2K", true, "\\x1b[1A\\x1b[2K");
    CHECK_SHOWS(t, "\x1b]52;c;AAAA\a", true, "\\x1b]52;c;AAAA\\x07");
    CHECK_SHOWS(t, "a\rb\bc\x7f", true, "a\\x0db\\x08c\\x7f");
    CHECK_SHOWS(t,
                "\xc2\x9b"
                "2J",
                true, "\\xc2\\x9b2J");
    CHECK_SHOWS(t,
                "\x9b"
                "2J\xff",
                true, "\\x9b2J\\xff");
    CHECK_SHOWS(t,
                "\xe2\x80\xae"
                "abc\xe2\x81\xa6",
                true, "\\xe2\\x80\\xaeabc\\xe2\\x81\\xa6");
    CHECK_SHOWS(t, "end \xe2\x82", true, "end \\xe2\\x82");
}

TEST(colours_pass_and_end_with_their_line)
{
    CHECK_SHOWS(t, "\x1b[31mred\x1b[0m", true, "\x1b[31mred\x1b[0m\x1b[0m");
    CHECK_SHOWS(t, "\x1b[1;38:5:9mred\nplain\n", true, "\x1b[1;38:5:9mred\x1b[0m\nplain\n");
    CHECK_SHOWS(t, "\x1b[31m", false, "\\x1b[31m");
    CHECK_SHOWS(t, "\x1b[31", true, "\\x1b[31");
    CHECK_SHOWS(t, "\x1b[?25l\x1b[31;H", true, "\\x1b[?25l\\x1b[31;H");
    CHECK_SHOWS(t,
                "\x1b["
                "0000000000000000000000000000000000000000000000000000"
                "m",
                true,
                "\\x1b["
                "0000000000000000000000000000000000000000000000000000"
                "m");
}

TEST(a_full_buffer_stays_as_it_was)
{
    buf_release(&out);
    buf_init(&out, 8);
    CHECK_OK(t, buf_append_text(&out, "full"));
    CHECK_CODE(t, text_show(&out, "\x1b\x1b", 2, true), HVD_E_LIMIT);
    CHECK_INT(t, out.length, ==, 4);
}
