/*
 * test_token.c: wire/token: the digits, the key and the id of a token, and what is no token.
 */
#include "wire/token.h"

#include "tests/lib/test.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define DIGITS "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"

TEST(a_token_is_kept_as_its_id_and_its_key)
{
    char text[TOKEN_TEXT_MAX];
    struct token token, again;

    CHECK_OK(t, token_of(DIGITS, &token, NULL));
    token_write(&token, text);
    CHECK_INT(t, strlen(text), ==, LIMIT_TOKEN_TEXT_BYTES);
    CHECK(t, !strncmp(text, token.id, 8) && text[8] == ' ');
    /* the digits cannot be found in what is kept */
    CHECK(t, !strstr(text, "00112233"));
    CHECK_OK(t, token_parse(text, &again));
    CHECK(t, !memcmp(&token, &again, sizeof(token)));
out:;
}

TEST(capital_digits_are_the_same_token)
{
    struct token token, again;

    CHECK_OK(t, token_of(DIGITS, &token, NULL));
    CHECK_OK(t, token_of("00112233445566778899AABBCCDDEEFF00112233445566778899AABBCCDDEEFF", &again,
                         NULL));
    CHECK(t, !memcmp(&token, &again, sizeof(token)));
out:;
}

TEST(two_tokens_differ)
{
    char one[TOKEN_DIGITS + 1], other[TOKEN_DIGITS + 1];

    CHECK_OK(t, token_draw(one, NULL));
    CHECK_OK(t, token_draw(other, NULL));
    CHECK_INT(t, strlen(one), ==, TOKEN_DIGITS);
    CHECK(t, strcmp(one, other) != 0);
out:;
}

TEST(other_texts_are_no_tokens)
{
    static const char *const texts[] = { "", "0", DIGITS "0", "x" DIGITS, " " DIGITS };
    struct token token;
    struct hvd_err err;

    for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
        CHECK_INT(t, token_of(texts[i], &token, &err), ==, HVD_E_INVAL);
        CHECK(t, !strstr(err.text, DIGITS));
    }
    CHECK_INT(t, token_parse(DIGITS, &token), ==, HVD_E_INVAL);
    CHECK_INT(t, token_parse("01234567-" DIGITS, &token), ==, HVD_E_INVAL);
out:;
}

/* A file has the token and blanks; anything else is refused, and the error names the file alone. */
TEST(a_file_has_one_token)
{
    static const struct {
        const char *text;
        int code;
    } files[] = {
        {DIGITS "\n",           0          },
        { "  " DIGITS "\r\n\n", 0          },
        { DIGITS,               0          },
        { DIGITS " " DIGITS,    HVD_E_INVAL},
        { "token " DIGITS,      HVD_E_INVAL},
        { "",                   HVD_E_INVAL},
    };
    char path[] = "/tmp/test_token_XXXXXX";
    struct token token;
    struct hvd_err err;
    int fd = mkstemp(path);
    int rc;

    CHECK(t, fd >= 0);
    for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
        CHECK(t, !ftruncate(fd, 0) && pwrite(fd, files[i].text, strlen(files[i].text), 0) ==
                                          (ssize_t)strlen(files[i].text));
        rc = token_read(path, &token, &err);
        CHECK_INT(t, rc, ==, files[i].code);
        if (rc)
            CHECK(t, !strstr(err.text, DIGITS));
    }
    CHECK_INT(t, token_read("/nonexistent/token", &token, &err), ==, HVD_E_NOTFOUND);
out:
    if (fd >= 0) {
        close(fd);
        unlink(path);
    }
}
