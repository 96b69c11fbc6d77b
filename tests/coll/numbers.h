/*
 * numbers.h: what goes into a random collective, and what must come out of it: plain, slow, and on
 * purpose none of the code that is tested. Each number is a function of a case, a rank and a place,
 * so that nobody has to be told what the others put in.
 */
#ifndef TESTS_COLL_NUMBERS_H
#define TESTS_COLL_NUMBERS_H

#include "base/err.h"

/* A well mixed number that depends on both, and on their order. */
uint64_t numbers_mix(uint64_t a, uint64_t b);

size_t numbers_bytes(hvd_dtype type);
bool numbers_are_real(hvd_dtype type);
const char *numbers_type(hvd_dtype type);
const char *numbers_op(hvd_op op);

/* One number, anywhere in memory, with as many digits as any type has. */
struct number {
    int64_t whole; /* of the four types of whole numbers */
    long double real;
};
struct number numbers_read(hvd_dtype type, const void *at);

struct numbers {
    uint64_t key; /* of the case */
    hvd_dtype type;
    hvd_op op;
    double prescale, postscale;
    bool loose; /* numbers for which the order of a sum matters: not exact, by how much is known */
};

/* The numbers of a rank come again after so many: a prime, so that nothing that is shifted by a
 * chunk or a page looks right. */
#define NUMBERS_PERIOD ((size_t)4099)
void numbers_put(const struct numbers *how, uint32_t rank, uint64_t place, void *at);
void numbers_fill(const struct numbers *how, uint32_t rank, uint64_t first, size_t count, void *at);

/* Is it what these ranks (of a group of size) come to at this place? */
bool numbers_reduced(const struct numbers *how, const uint32_t *ranks, uint32_t count,
                     uint32_t size, uint64_t place, const void *got);

/* The same bytes as that rank has put there? */
bool numbers_same(const struct numbers *how, uint32_t rank, uint64_t place, const void *got);

/* For whoever reads why it failed. */
void numbers_show(hvd_dtype type, const void *at, char text[48]);
void numbers_show_reduced(const struct numbers *how, const uint32_t *ranks, uint32_t count,
                          uint32_t size, uint64_t place, char text[48]);

#endif
