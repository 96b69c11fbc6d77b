/*
 * bench_tls.h: what one TLS connection carries between two threads over the loopback, when nobody
 * looks at the bytes: the same cipher as wire/tls.c, blocking sockets, nothing in between.
 */
#ifndef BENCH_BENCH_TLS_H
#define BENCH_BENCH_TLS_H

#include "base/base.h"

/* Seconds for so many bytes; negative: it does not work. */
double bench_tls_carry(uint64_t bytes);

#endif
