/*
 * test_err.c: base/err: codes, names and texts, prefixes, and texts that are cut or were never
 * filled.
 */
#include "base/err.h"
#include "tests/lib/fixture.h"

#include <string.h>

TEST(every_code_has_text_and_name)
{
    for (int code = HVD_E_EXCEPTION; code <= HVD_FINISHED; code++) {
        CHECK(t, strcmp(err_text(code), "unknown code") != 0);
        CHECK_HAS(t, err_name(code), "HVD_");
        CHECK(t, strcmp(err_name(code), "HVD_?") != 0);
    }
    CHECK_TEXT(t, err_name(HVD_E_LIMIT), "HVD_E_LIMIT");
    CHECK_TEXT(t, err_text(HVD_E_REVOKED), "the round was revoked");
    CHECK_TEXT(t, err_text(HVD_E_EXCEPTION - 1), "unknown code");
    CHECK_TEXT(t, err_name(HVD_FINISHED + 1), "HVD_?");
}

TEST(set_fills_and_returns)
{
    struct hvd_err err = { 0 };

    CHECK_CODE(t, err_set(&err, HVD_E_IO, "disk %d is %s", 3, "gone"), HVD_E_IO);
    CHECK_INT(t, err.code, ==, HVD_E_IO);
    CHECK_TEXT(t, err.text, "disk 3 is gone");
    CHECK_CODE(t, err_set(NULL, HVD_E_IO, "no process listens"), HVD_E_IO);
}

TEST(prefix_says_who_asked)
{
    struct hvd_err err = { 0 };

    err_set(&err, HVD_E_IO, "no such file");
    CHECK_CODE(t, err_prefix(&err, HVD_E_INVAL, "host file '%s'", "x"), HVD_E_INVAL);
    CHECK_TEXT(t, err.text, "host file 'x': no such file");
    CHECK_INT(t, err.code, ==, HVD_E_INVAL);
    CHECK_CODE(t, err_prefix(NULL, HVD_E_INVAL, "x"), HVD_E_INVAL);
}

TEST(prefix_of_nothing_gives_the_sentence)
{
    struct hvd_err err = { 0 };

    CHECK_CODE(t, err_prefix(&err, HVD_E_NOMEM, "host file"), HVD_E_NOMEM);
    CHECK_TEXT(t, err.text, "host file: out of memory");
    err_set(&err, HVD_E_IO, "?");
    err_prefix(&err, HVD_E_IO, "host file");
    CHECK_TEXT(t, err.text, "host file: ?");
}

TEST(arguments_may_be_the_text_itself)
{
    struct hvd_err err = { 0 };

    err_set(&err, HVD_E_IO, "no such file");
    err_set(&err, HVD_E_INVAL, "'%s', they said", err.text);
    CHECK_TEXT(t, err.text, "'no such file', they said");
    err_prefix(&err, HVD_E_INVAL, "%s and", err.text);
    CHECK_TEXT(t, err.text, "'no such file', they said and: 'no such file', they said");
}

TEST(text_is_one_line)
{
    struct hvd_err err = { 0 };

    err_set(&err, HVD_E_IO, "%s", "two\nlines");
    CHECK_TEXT(t, err.text, "two lines");
    err_prefix(&err, HVD_E_IO, "%s", "three\n");
    CHECK_TEXT(t, err.text, "three : two lines");
}

TEST(long_text_is_cut)
{
    struct hvd_err err;
    char big[2 * ERR_TEXT_MAX];

    memset(big, 'x', sizeof(big) - 1);
    big[sizeof(big) - 1] = '\0';
    err_set(&err, HVD_E_IO, "%s", big);
    CHECK_INT(t, strlen(err.text), ==, ERR_TEXT_MAX - 1);
    CHECK_HAS(t, err.text, "xx...");
    err_prefix(&err, HVD_E_IO, "host file");
    CHECK_INT(t, strlen(err.text), ==, ERR_TEXT_MAX - 1);
    CHECK_HAS(t, err.text, "host file: xx");
    CHECK_TEXT(t, err.text + ERR_TEXT_MAX - 6, "xx...");
    err_prefix(&err, HVD_E_IO, "%s", big);
    CHECK_INT(t, strlen(err.text), ==, ERR_TEXT_MAX - 1);
    CHECK_TEXT(t, err.text + ERR_TEXT_MAX - 6, "xx...");
}

/* As on the stack of a caller whose callee failed and did not say why. */
TEST(unterminated_text_is_not_read_past)
{
    struct hvd_err err;

    memset(&err, 'x', sizeof(err));
    CHECK_CODE(t, err_prefix(&err, HVD_E_IO, "host file"), HVD_E_IO);
    CHECK_HAS(t, err.text, "host file: xx");
    CHECK_INT(t, strlen(err.text), ==, ERR_TEXT_MAX - 1);
}
