/*
 * mitm.h: a man in the middle of TCP connections. He sees each packet to and from one host
 * (net_faults.h), chooses some connections, and does one thing to the bytes of each: changes a bit,
 * drops, repeats, swaps or injects bytes. Sequence numbers, acknowledgements and checksums are
 * mended, so that both kernels see a connection without faults.
 *
 * A connection is harmed when it has carried some segments with data, and only once. Later packets
 * of it are mended on.
 */
#ifndef TESTS_CHAOS_MITM_H
#define TESTS_CHAOS_MITM_H

#include "base/err.h"

/* On which connections: between the host and the driver, or between the host and other hosts. */
enum mitm_way { MITM_DRIVER, MITM_MEMBERS };

enum mitm_harm { MITM_CHANGE, MITM_DROP, MITM_REPEAT, MITM_SWAP, MITM_INJECT, MITM_HARMS };
extern const char *const mitm_harm_names[MITM_HARMS];

struct mitm;

/* most: so many connections are harmed. HVD_E_NOMEM. */
int mitm_create(enum mitm_way way, uint32_t most, uint64_t seed, struct mitm **ret_mitm) MUST_CHECK;
void mitm_free(struct mitm *mitm); /* NULL is allowed */

/* Takes an IPv4 packet, and emits what is to go on: usually the packet, sometimes nothing or two
 * packets. Changes the bytes in place. */
typedef void mitm_emit_fn(void *arg, const char *packet, size_t length);
void mitm_pass(struct mitm *mitm, char *packet, size_t length, mitm_emit_fn *emit, void *arg);

/* No further connection is harmed from now on. Any thread. */
void mitm_rest(struct mitm *mitm);

struct mitm_count {
    uint32_t harmed[MITM_HARMS]; /* connections, by what was done */
    uint32_t all;                /* their sum */
    /* of these, connections that were open before, so that they were past their handshake */
    uint32_t old;
    uint32_t open;      /* of these, connections that live on; the receiver may not have read yet */
    uint32_t unnoticed; /* of these, connections on which the receiver has read on */
    char where[96];     /* one of the unnoticed */
};

void mitm_look(struct mitm *mitm, struct mitm_count *ret_count); /* any thread */

#endif
