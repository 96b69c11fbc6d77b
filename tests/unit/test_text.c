/*
 * test_text.c: base/text: trimming, cutting, numbers, quotes, clean UTF-8 (without control
 * characters), and lines that are cut between characters.
 */
#include "base/rng.h"
#include "base/text.h"
#include "tests/lib/fixture.h"

#include <stdio.h>
#include <string.h>
#include <wchar.h>

static struct span span_of(const char *text)
{
    return (struct span){ text, strlen(text) };
}

TEST(names_signals)
{
    char text[TEXT_SIGNAL_MAX];

    CHECK_TEXT(t, text_signal(9, text), "signal 9 (SIGKILL)");
    CHECK_TEXT(t, text_signal(11, text), "signal 11 (SIGSEGV)");
    CHECK_TEXT(t, text_signal(0, text), "signal 0");
    CHECK_TEXT(t, text_signal(50, text), "signal 50");
    CHECK_TEXT(t, text_signal(INT32_MIN, text), "signal -2147483648");
}

TEST(trims_both_ends)
{
    CHECK(t, span_is(span_trim(span_of(" \t\r a b\t \r")), "a b"));
    CHECK(t, span_is(span_trim(span_of("a")), "a"));
    CHECK(t, span_is(span_trim(span_of(" \t\r ")), ""));
    CHECK(t, span_is(span_trim(span_of("")), ""));
    CHECK(t, span_is(span_trim((struct span){ NULL, 0 }), ""));
    CHECK(t, span_is(span_trim(span_of("\na ")), "\na"));
}

TEST(compares_whole_texts)
{
    CHECK(t, span_is((struct span){ "abcd", 3 }, "abc"));
    CHECK(t, !span_is(span_of("abc"), "ab"));
    CHECK(t, !span_is(span_of("ab"), "abc"));
    CHECK(t, !span_is(span_of("abc"), "abd"));
    CHECK(t, !span_is((struct span){ "a\0b", 3 }, "a"));
    CHECK(t, !span_is((struct span){ NULL, 0 }, "a"));
}

/* Returns the parts of text between ':', each followed by '|'. */
static const char *parts_of(const char *text, char joined[64])
{
    struct span rest = span_of(text);
    struct span part;
    size_t used = 0;

    joined[0] = '\0';
    while (used < 40 && span_next(&rest, ':', &part))
        used += (size_t)snprintf(joined + used, 64 - used, "%.*s|", (int)part.length, part.at);
    return joined;
}

TEST(cuts_at_every_separator)
{
    struct span rest = { NULL, 0 };
    struct span part = span_of("untouched");
    char joined[64];

    CHECK_TEXT(t, parts_of("a:bc:d", joined), "a|bc|d|");
    CHECK_TEXT(t, parts_of("a", joined), "a|");
    CHECK_TEXT(t, parts_of("a:", joined), "a||");
    CHECK_TEXT(t, parts_of(":a", joined), "|a|");
    CHECK_TEXT(t, parts_of("::", joined), "|||");
    CHECK_TEXT(t, parts_of("", joined), "|");
    CHECK(t, !span_next(&rest, ':', &part));
    CHECK(t, span_is(part, "untouched"));
    rest = (struct span){ "a:b:c", 3 };
    CHECK(t, span_next(&rest, ':', &part) && span_is(part, "a"));
    CHECK(t, span_next(&rest, ':', &part) && span_is(part, "b"));
    CHECK(t, !span_next(&rest, ':', &part));
}

TEST(takes_a_word_off_the_beginning)
{
    struct span rest = { "round 3", 7 };
    struct span none = { NULL, 0 };

    CHECK(t, !span_take(&rest, "rounds ") && !span_take(&rest, "round 34") && rest.length == 7);
    CHECK(t, span_take(&rest, "round ") && span_is(rest, "3"));
    CHECK(t, span_take(&rest, "") && span_is(rest, "3"));
    CHECK(t, span_take(&rest, "3") && !rest.length && !span_take(&rest, "3"));
    CHECK(t, !span_take(&none, "a") && span_take(&none, ""));
}

TEST(reads_numbers_within_bounds)
{
    uint64_t value = 0;

    CHECK_OK(t, text_parse_u64(span_of("0"), 0, 0, "slots", &value, NULL));
    CHECK(t, value == 0);
    CHECK_OK(t, text_parse_u64(span_of("0042"), 1, 42, "slots", &value, NULL));
    CHECK(t, value == 42);
    CHECK_OK(t, text_parse_u64(span_of("18446744073709551615"), 0, UINT64_MAX, "x", &value, NULL));
    CHECK(t, value == UINT64_MAX);
    CHECK_OK(t, text_parse_u64((struct span){ "123", 2 }, 12, 12, "slots", &value, NULL));
    CHECK(t, value == 12);
}

TEST(says_why_a_number_is_refused)
{
    static const char *const not_numbers[] = { "-1",  "+1",  " 1",    "1 ", "1\n", "0x10",
                                               "1e3", "1.0", "1,000", "/",  ":",   "\xb1" };
    struct hvd_err err = { 0 };
    uint64_t value = 77;

    for (size_t i = 0; i < ARRAY_SIZE(not_numbers); i++) {
        CHECK_CODE(t, text_parse_u64(span_of(not_numbers[i]), 0, 100, "slots", &value, &err),
                   HVD_E_INVAL);
        CHECK_HAS(t, err.text, "slots must be a whole number");
    }
    CHECK_CODE(t, text_parse_u64(span_of("99999999999999999999x"), 0, 9, "slots", &value, &err),
               HVD_E_INVAL);
    CHECK_CODE(t, text_parse_u64(span_of(""), 0, 9, "slots", &value, &err), HVD_E_INVAL);
    CHECK_TEXT(t, err.text, "slots is missing");
    CHECK_CODE(t, text_parse_u64(span_of("0"), 1, 9, "slots", &value, &err), HVD_E_LIMIT);
    CHECK_TEXT(t, err.text, "\"0\": slots must be between 1 and 9");
    CHECK_CODE(t, text_parse_u64(span_of("10"), 1, 9, "slots", &value, &err), HVD_E_LIMIT);
    CHECK_CODE(t, text_parse_u64(span_of("18446744073709551616"), 0, UINT64_MAX, "x", &value, &err),
               HVD_E_LIMIT);
    CHECK_TEXT(t, err.text,
               "\"18446744073709551616\": x must be between 0 and 18446744073709551615");
    CHECK_CODE(t,
               text_parse_u64(span_of("184467440737095516150"), 0, UINT64_MAX, "x", &value, NULL),
               HVD_E_LIMIT);
    CHECK(t, value == 77);
}

TEST(reads_back_any_number)
{
    struct rng rng;

    rng_seed(&rng, 6);
    for (int i = 0; i < 20000; i++) {
        uint64_t number = rng_next(&rng) >> rng_below(&rng, 64);
        uint64_t value;
        char text[32];

        snprintf(text, sizeof(text), "%llu", (unsigned long long)number);
        CHECK_OK(t, text_parse_u64(span_of(text), number, number, "number", &value, NULL));
        CHECK(t, value == number);
    }
}

TEST(quotes_what_cannot_be_shown)
{
    char quoted[TEXT_QUOTE_MAX];

    CHECK_TEXT(t, text_quote("node-1 ~", 8, quoted), "\"node-1 ~\"");
    CHECK_TEXT(t, text_quote("a\"b\\c\n\0\x1b\x7f\xff", 10, quoted),
               "\"a\\x22b\\x5cc\\x0a\\x00\\x1b\\x7f\\xff\"");
    CHECK_TEXT(t, text_quote(NULL, 0, quoted), "\"\"");
}

TEST(a_long_quote_is_cut)
{
    char text[TEXT_QUOTE_SHOWN + 1];
    char quoted[TEXT_QUOTE_MAX];

    memset(text, 'a', sizeof(text));
    text_quote(text, TEXT_QUOTE_SHOWN, quoted);
    CHECK_INT(t, strlen(quoted), ==, TEXT_QUOTE_SHOWN + 2);
    text_quote(text, TEXT_QUOTE_SHOWN + 1, quoted);
    CHECK_INT(t, strlen(quoted), ==, TEXT_QUOTE_SHOWN + 5);
    CHECK_HAS(t, quoted, "aa\"...");
    memset(text, '\xff', sizeof(text));
    text_quote(text, TEXT_QUOTE_SHOWN + 1, quoted);
    CHECK_INT(t, strlen(quoted), ==, TEXT_QUOTE_MAX - 1);
    CHECK_HAS(t, quoted, "\\xff\"...");
}

TEST(clean_text_is_recognised)
{
    static const char *const clean[] = {
        "",
        "plain text\twith tab\nand newline",
        "\xc2\xa0",           /* U+00A0, the first that is no control character again */
        "gr\xc3\xbc\xc3\x9f", /* two bytes */
        "\xdf\xbf",
        "\xe0\xa0\x80", /* the least of three bytes */
        "\xed\x9f\xbf", /* before the surrogates */
        "\xee\x80\x80", /* after the surrogates */
        "\xef\xbf\xbf",
        "\xf0\x90\x80\x80", /* the least of four bytes */
        "\xf4\x8f\xbf\xbf", /* U+10FFFF */
    };

    for (size_t i = 0; i < ARRAY_SIZE(clean); i++)
        CHECK(t, text_is_clean(clean[i], strlen(clean[i])));
    CHECK(t, text_is_clean(NULL, 0));
}

TEST(unclean_text_is_recognised)
{
    static const char *const unclean[] = {
        "\x1b[31m",
        "a\r\n",
        "\x7f",
        "\xc2\x80",     /* U+0080, the first of the eight-bit control characters */
        "\xc2\x9b?25l", /* ESC [ in one character */
        "\xc2\x9f",
        "\x80",             /* starts in the middle of a sequence */
        "\xc0\xaf",         /* overlong '/' */
        "\xc1\xbf",         /* overlong */
        "\xc3",             /* ends too early */
        "\xc3(",            /* not continued */
        "\xe0\x9f\xbf",     /* overlong */
        "\xe1\x80",         /* ends too early */
        "\xe1\x80\xc0",     /* not continued */
        "\xed\xa0\x80",     /* a surrogate */
        "\xf0\x8f\xbf\xbf", /* overlong */
        "\xf1\x80\x80",     /* ends too early */
        "\xf4\x90\x80\x80", /* past U+10FFFF */
        "\xf5\x80\x80\x80",
        "\xff",
    };

    for (size_t i = 0; i < ARRAY_SIZE(unclean); i++)
        CHECK(t, !text_is_clean(unclean[i], strlen(unclean[i])));
    CHECK(t, !text_is_clean("a\0b", 3));
    CHECK(t, text_is_clean("a\0b", 1));
    CHECK(t, !text_is_clean("a\xc3\xbc", 2));
}

static size_t encode(unsigned point, char *out)
{
    if (point < 0x80) {
        out[0] = (char)point;
        return 1;
    }
    if (point < 0x800) {
        out[0] = (char)(0xc0 | point >> 6);
        out[1] = (char)(0x80 | (point & 0x3f));
        return 2;
    }
    if (point < 0x10000) {
        out[0] = (char)(0xe0 | point >> 12);
        out[1] = (char)(0x80 | (point >> 6 & 0x3f));
        out[2] = (char)(0x80 | (point & 0x3f));
        return 3;
    }
    out[0] = (char)(0xf0 | point >> 18);
    out[1] = (char)(0x80 | (point >> 12 & 0x3f));
    out[2] = (char)(0x80 | (point >> 6 & 0x3f));
    out[3] = (char)(0x80 | (point & 0x3f));
    return 4;
}

static bool point_is_clean(unsigned point)
{
    if (point < ' ')
        return point == '\t' || point == '\n';
    return (point < 0x7f || point > 0x9f) && (point < 0xd800 || point > 0xdfff) &&
           point <= 0x10ffff;
}

/* All code points, as many numbers beyond them, and each sequence cut short. */
TEST(every_character_is_judged)
{
    for (unsigned point = 0; point < 0x200000; point++) {
        char bytes[4];
        size_t length = encode(point, bytes);

        if (text_is_clean(bytes, length) != point_is_clean(point))
            CHECK_INT(t, point, ==, -1);
        if (length > 1 && text_is_clean(bytes, length - 1))
            CHECK_INT(t, point, ==, -2);
    }
}

PRINTF_LIKE(3, 4)
static size_t line_of(char *line, size_t size, const char *format, ...)
{
    va_list args;
    size_t length;

    va_start(args, format);
    length = text_line(line, size, format, args);
    va_end(args);
    return length;
}

TEST(a_line_stays_one_line)
{
    char line[80];

    CHECK_INT(t, line_of(line, sizeof(line), "%s of %d", "three", 4), ==, 10);
    CHECK_TEXT(t, line, "three of 4");
    CHECK_INT(t, line_of(line, sizeof(line), "%s", "a\nb\r\tc\x1b[31m\x7f"), ==, 12);
    CHECK_TEXT(t, line, "a b  c [31m ");
    CHECK_INT(t, line_of(line, sizeof(line), "%s", "\xc2\x9b?25l gr\xc3\xbcn \xc2\xa0\xc2"), ==,
              16);
    CHECK_TEXT(t, line, "  ?25l gr\xc3\xbcn \xc2\xa0\xc2");
    CHECK_INT(t, line_of(line, sizeof(line), "%s", ""), ==, 0);
    CHECK_TEXT(t, line, "");
}

TEST(a_line_is_cut_between_characters)
{
    char line[12];

    CHECK_INT(t, line_of(line, sizeof(line), "%s", "elevenbytes"), ==, 11);
    CHECK_TEXT(t, line, "elevenbytes");
    CHECK_INT(t, line_of(line, sizeof(line), "%s", "twelve bytes"), ==, 11);
    CHECK_TEXT(t, line, "twelve b...");
    line_of(line, sizeof(line), "%s", "1234567\xc3\xbc is cut");
    CHECK_TEXT(t, line, "1234567...");
    line_of(line, sizeof(line), "%s", "12345\xf0\x9f\x90\x81 is cut");
    CHECK_TEXT(t, line, "12345...");
    line_of(line, sizeof(line), "%s", "1234\xf0\x9f\x90\x81 is not cut");
    CHECK_TEXT(t, line, "1234\xf0\x9f\x90\x81...");
    line_of(line, sizeof(line), "%s", "\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80");
    CHECK_TEXT(t, line, "\x80\x80\x80\x80\x80...");
}

/* The C locale has no character for U+1F401. */
TEST(a_failed_format_leaves_the_format)
{
    static const wchar_t mouse[] = { 0x1f401, 0 };
    char line[12];

    line_of(line, sizeof(line), "a %ls\n", mouse);
    CHECK_TEXT(t, line, "a %ls ");
    line_of(line, sizeof(line), "%ls seen by the cat", mouse);
    CHECK_TEXT(t, line, "%ls seen...");
}

TEST_FLAGS(a_line_needs_room, TEST_NO_TORTURE)
{
    char line[8];
    size_t length = 0;

    CHECK_PANICS(t, "size >= 8", length = line_of(line, 7, "%s", ""));
    CHECK_INT(t, length, ==, 0);
}

static const char *const options[] = { "min-np", "max-np", "hosts", "verbose",
                                       "an-option-with-a-name-of-more-than-forty-letters" };

TEST(finds_the_nearest)
{
    CHECK_TEXT(t, text_nearest("min-np", options, ARRAY_SIZE(options)), "min-np");
    CHECK_TEXT(t, text_nearest("mim-np", options, ARRAY_SIZE(options)), "min-np");
    CHECK_TEXT(t, text_nearest("mx-np", options, ARRAY_SIZE(options)), "max-np");
    CHECK_TEXT(t, text_nearest("host", options, ARRAY_SIZE(options)), "hosts");
    CHECK_TEXT(t, text_nearest("verboose", options, ARRAY_SIZE(options)), "verbose");
    CHECK_TEXT(t, text_nearest("mi-np", options, ARRAY_SIZE(options)), "min-np");
    CHECK_TEXT(t, text_nearest("mxn-np", options, ARRAY_SIZE(options)), "min-np");
}

/* A slip of the pen is one edit, and one more for every three letters. */
TEST(counts_edits)
{
    static const struct {
        const char *text;
        const char *name;
        bool near;
    } pairs[] = {
        {"",        "a",         true },
        { "",       "ab",        false},
        { "abc",    "abcde",     true },
        { "abc",    "abcdef",    false},
        { "abcde",  "abc",       true },
        { "abcde",  "ab",        false},
        { "abcde",  "abcxy",     true },
        { "abcde",  "abxyz",     false},
        { "abcdef", "abcxyz",    true },
        { "kitten", "sitting",   true },
        { "kitten", "sittings",  false},
        { "sunday", "saturday",  true },
        { "sunday", "saturdays", false},
    };

    for (size_t i = 0; i < ARRAY_SIZE(pairs); i++)
        CHECK_TEXT(t, text_nearest(pairs[i].text, &pairs[i].name, 1),
                   pairs[i].near ? pairs[i].name : NULL);
}

TEST(the_first_of_equally_near_words_is_taken)
{
    static const char *const names[] = { "xyz", "ab1", "ab2" };

    CHECK_TEXT(t, text_nearest("abc", names, 3), "ab1");
    CHECK_TEXT(t, text_nearest("ayc", names, 3), "xyz");
    CHECK_TEXT(t, text_nearest("rst", names, 3), NULL);
}

TEST(compares_up_to_forty_letters)
{
    char name[42];
    char text[42];
    const char *const names[] = { name };

    memset(name, 'a', sizeof(name));
    memset(text, 'b', 3);
    memset(text + 3, 'a', sizeof(text) - 3);
    name[40] = text[40] = '\0';
    CHECK(t, text_nearest(text, names, 1) == name);
    name[40] = 'a';
    name[41] = '\0';
    CHECK_TEXT(t, text_nearest(text, names, 1), NULL);
    CHECK_TEXT(t, text_nearest(name, names, 1), NULL);
}

TEST(finds_none_that_is_no_slip)
{
    CHECK_TEXT(t, text_nearest("discovery", options, ARRAY_SIZE(options)), NULL);
    CHECK_TEXT(t, text_nearest("", options, ARRAY_SIZE(options)), NULL);
    CHECK_TEXT(t, text_nearest("min-np", options, 0), NULL);
    CHECK_TEXT(t, text_nearest(options[4], options, ARRAY_SIZE(options)), NULL);
    CHECK_TEXT(t, text_nearest("an-option-with-a-name-of-forty-letters-x", options, 5), NULL);
}
