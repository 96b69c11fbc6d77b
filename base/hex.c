/*
 * hex.c: bytes as hexadecimal digits. Called wherever a key, a token, a checksum or a value becomes
 * text. Invariant: hex_read returns what hex_write has written, and neither reader leaves a part of
 * a key behind when the text is none.
 */
#include "base/hex.h"

#include <string.h>

int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

void hex_write(const void *bytes, size_t length, char *ret_digits)
{
    static const char digits[] = "0123456789abcdef";
    const uint8_t *at = bytes;

    for (size_t i = 0; i < length; i++) {
        *ret_digits++ = digits[at[i] >> 4];
        *ret_digits++ = digits[at[i] & 15];
    }
    *ret_digits = '\0';
}

bool hex_read_typed(const char *digits, size_t length, void *ret_bytes)
{
    uint8_t *at = ret_bytes;

    for (size_t i = 0; i < length; i++) {
        int high = hex_digit(digits[2 * i]);
        int low = high < 0 ? -1 : hex_digit(digits[2 * i + 1]);

        if (low < 0) {
            explicit_bzero(ret_bytes, i);
            return false;
        }
        at[i] = (uint8_t)(high << 4 | low);
    }
    return true;
}

bool hex_read(const char *digits, size_t length, void *ret_bytes)
{
    for (size_t i = 0; i < 2 * length && digits[i]; i++)
        if (digits[i] >= 'A' && digits[i] <= 'F')
            return false;
    return hex_read_typed(digits, length, ret_bytes);
}

size_t hex_number(const char *text, uint64_t *ret_number)
{
    uint64_t number = 0;
    size_t digits = 0;

    for (; digits < HEX_NUMBER_DIGITS && hex_digit(text[digits]) >= 0; digits++)
        number = number << 4 | (uint64_t)hex_digit(text[digits]);
    if (digits)
        *ret_number = number;
    return digits;
}
