/*
 * hex.h: bytes as hexadecimal digits, two for each byte, in lower case.
 */
#ifndef BASE_HEX_H
#define BASE_HEX_H

#include "base/base.h"

/* Returns the value of a hexadecimal digit of either case; -1: the character is none. */
int hex_digit(char c);

/* Writes 2 * length digits and a NUL. */
void hex_write(const void *bytes, size_t length, char *ret_digits);

/* Both read 2 * length digits: hex_read what hex_write has written, so in lower case alone;
 * hex_read_typed also upper case, for a key or token that a person has made. false: the text does
 * not begin with that many digits; the bytes read so far are then zero. The text need not end after
 * the digits. */
bool hex_read(const char *digits, size_t length, void *ret_bytes);
bool hex_read_typed(const char *digits, size_t length, void *ret_bytes);

/* Reads a number of at most HEX_NUMBER_DIGITS digits from the beginning of a text. Returns how many
 * digits the number has; 0: the text begins with no digit. */
#define HEX_NUMBER_DIGITS 16
size_t hex_number(const char *text, uint64_t *ret_number);

#endif
