/*
 * fuzz_join.c: the texts of a host that joins. The first byte says which: 'l' the list of --join,
 * 't' the digits of a token, any other the form in which a driver keeps one.
 */
#include "agent/join/join_places.h"
#include "base/mem.h"
#include "base/panic.h"
#include "wire/token.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char text[TOKEN_TEXT_MAX], again[TOKEN_TEXT_MAX];
    struct token token, other;
    struct hvd_err err = { 0 };
    char *copy = size ? mem_strndup((const char *)data + 1, size - 1) : NULL;

    if (!copy)
        return 0;
    if (data[0] == 'l') {
        if (join_places_check(copy, &err))
            ASSERT(*err.text);
    } else if (data[0] == 't') {
        if (!token_of(copy, &token, &err)) {
            token_write(&token, text);
            ASSERT(strlen(copy) == TOKEN_DIGITS && !token_parse(text, &other));
            ASSERT(!memcmp(&token, &other, sizeof(token)));
        }
    } else if (!token_parse(copy, &token)) {
        token_write(&token, again);
        ASSERT(!token_parse(again, &other) && !memcmp(&token, &other, sizeof(token)));
    }
    mem_free(copy);
    return 0;
}
