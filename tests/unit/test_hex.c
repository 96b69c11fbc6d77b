/*
 * test_hex.c: base/hex: digits of both cases, and texts that are too short or have another
 * character.
 */
#include "base/hex.h"

#include "base/rng.h"
#include "tests/lib/fixture.h"

#include <string.h>

TEST(knows_each_digit_and_no_other_byte)
{
    static const char digits[] = "0123456789abcdef", upper[] = "0123456789ABCDEF";

    for (int c = 0; c < 256; c++) {
        const char *lower_at = c ? strchr(digits, c) : NULL;
        const char *upper_at = c ? strchr(upper, c) : NULL;
        long value = lower_at ? lower_at - digits : upper_at ? upper_at - upper : -1;

        CHECK_INT(t, hex_digit((char)c), ==, value);
    }
}

TEST(reads_what_it_has_written)
{
    struct rng rng;
    uint8_t bytes[40], back[40];
    char text[2 * sizeof(bytes) + 1];

    rng_seed(&rng, 7);
    for (size_t length = 0; length <= sizeof(bytes); length++) {
        for (size_t i = 0; i < length; i++)
            bytes[i] = (uint8_t)rng_below(&rng, 256);
        hex_write(bytes, length, text);
        CHECK_INT(t, strlen(text), ==, 2 * length);
        CHECK(t, hex_read(text, length, back));
        CHECK(t, !memcmp(bytes, back, length));
    }
}

TEST(leaves_nothing_of_a_key_that_is_none)
{
    uint8_t back[4] = { 9, 9, 9, 9 };
    static const uint8_t none[2] = { 0, 0 };

    CHECK(t, hex_read_typed("00fF", 2, back) && back[0] == 0 && back[1] == 255);
    CHECK(t, !hex_read("00fF", 2, back));
    CHECK(t, !hex_read("A0", 1, back));
    CHECK(t, hex_read("00ffA", 2, back) && back[0] == 0 && back[1] == 255);
    CHECK(t, !hex_read("a1b2c", 3, back));
    CHECK(t, !memcmp(back, none, sizeof(none)));
    CHECK(t, !hex_read("a1b2 3d4", 4, back));
    CHECK(t, !memcmp(back, none, sizeof(none)));
    CHECK(t, !hex_read("", 1, back));
}

TEST(reads_numbers)
{
    uint64_t number = 5;

    CHECK_INT(t, hex_number("", &number), ==, 0);
    CHECK_INT(t, hex_number(" 1", &number), ==, 0);
    CHECK_INT(t, number, ==, 5);
    CHECK_INT(t, hex_number("1fX", &number), ==, 2);
    CHECK_INT(t, number, ==, 0x1f);
    CHECK_INT(t, hex_number("ffffffffffffffff0", &number), ==, HEX_NUMBER_DIGITS);
    CHECK(t, number == UINT64_MAX);
}
