/*
 * bench_tls.h: the throughput of one TLS connection between two threads over the loopback, without
 * any use of the bytes: the same cipher as wire/tls.c, blocking sockets, nothing in between.
 */
#ifndef BENCH_BENCH_TLS_H
#define BENCH_BENCH_TLS_H

#include "base/base.h"

/* Seconds for so many bytes; negative: it does not work. */
double bench_tls_carry(uint64_t bytes);

#endif
