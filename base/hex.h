/*
 * hex.h: bytes as hexadecimal digits, two for each byte. Written in lower case, read in both.
 */
#ifndef BASE_HEX_H
#define BASE_HEX_H

#include "base/base.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Returns the value of a hexadecimal digit; -1: the character is none. */
int hex_digit(char c);

/* Writes 2 * length digits and a NUL. */
void hex_write(const void *bytes, size_t length, char *ret_digits);

/* Reads 2 * length digits. false: the text does not begin with that many digits; the bytes read so
 * far are then zero. The text need not end after the digits. */
bool hex_read(const char *digits, size_t length, void *ret_bytes);

/* Reads a number of at most HEX_NUMBER_DIGITS digits from the beginning of a text. Returns how many
 * digits the number has; 0: the text begins with no digit. */
#define HEX_NUMBER_DIGITS 16
size_t hex_number(const char *text, uint64_t *ret_number);

#endif
