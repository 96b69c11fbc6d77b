/*
 * numbers.h: the input of a random collective and its right result. The code is plain and slow, and
 * uses none of the tested code. Each number is a function of a case, a rank and a place, so a
 * member knows the numbers of all other members.
 */
#ifndef TESTS_COLL_NUMBERS_H
#define TESTS_COLL_NUMBERS_H

#include "base/err.h"

/* Mixes both numbers, in this order, into a random-looking one. */
uint64_t numbers_mix(uint64_t a, uint64_t b);

size_t numbers_bytes(hvd_dtype type);
bool numbers_have(hvd_dtype type, hvd_op op); /* the type has the op */
bool numbers_are_real(hvd_dtype type);
const char *numbers_type(hvd_dtype type);
const char *numbers_op(hvd_op op);

/* The value of one element, of any type, without loss. */
struct number {
    int64_t whole; /* used for the four integer types */
    long double real;
};
struct number numbers_read(hvd_dtype type, const void *at);

struct numbers {
    uint64_t key; /* of the case */
    hvd_dtype type;
    hvd_op op;
    double prescale, postscale;
    /* true: inexact sums are allowed; their result depends on the order, within a known bound */
    bool loose;
};

/* The numbers of a rank repeat after this many places. The period is a prime, so a result that is
 * shifted by a chunk or a page is never right by accident. */
#define NUMBERS_PERIOD ((size_t)4099)
void numbers_put(const struct numbers *how, uint32_t rank, uint64_t place, void *at);
void numbers_fill(const struct numbers *how, uint32_t rank, uint64_t first, size_t count, void *at);

/* Is `got` the reduced value of these ranks (`count` ranks of a group of `size`) at this place? */
bool numbers_reduced(const struct numbers *how, const uint32_t *ranks, uint32_t count,
                     uint32_t size, uint64_t place, const void *got);

/* Are these the bytes that this rank has put at this place? */
bool numbers_same(const struct numbers *how, uint32_t rank, uint64_t place, const void *got);

/* Writes a value as text, for the report of a failure: the value at `at`, or the right reduced
 * value. */
void numbers_show(hvd_dtype type, const void *at, char text[48]);
void numbers_show_reduced(const struct numbers *how, const uint32_t *ranks, uint32_t count,
                          uint32_t size, uint64_t place, char text[48]);

#endif
