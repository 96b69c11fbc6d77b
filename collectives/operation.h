/*
 * operation.h: how an operation is begun, said, and ended; its messages.
 */
#ifndef COLLECTIVES_OPERATION_H
#define COLLECTIVES_OPERATION_H

#include "collectives/coll_inside.h"

/* opening.c. Begins an operation: its first message goes to the next rank, and comes from the one
 * before, with up to OPENING_MAX bytes beside it. */
const char *coll_kind_name(uint32_t kind);
int coll_begin(struct coll *coll, const struct coll_call *call, struct hvd_err *err) MUST_CHECK;
int coll_open_with(struct coll *coll, const void *payload, size_t length,
                   const void **ret_payload) MUST_CHECK;
int coll_end(struct coll *coll, int rc, struct hvd_err *err) MUST_CHECK;

/* traffic.c. Codes are for coll_end, which knows more. A place is used up by awaiting it. */
int coll_send(struct coll *coll, uint32_t rank, uint64_t tag, const void *bytes,
              size_t length) MUST_CHECK;
int coll_receive(struct coll *coll, uint32_t rank, uint64_t tag, void *bytes, size_t length,
                 size_t *ret_place) MUST_CHECK;
int coll_await(struct coll *coll, size_t place) MUST_CHECK;
int coll_await_all(struct coll *coll) MUST_CHECK;
void coll_drop_all(struct coll *coll);
uint64_t coll_tag(const struct coll *coll, size_t step);

/* Bytes to one and from another, in segments; arrived (NULL) sees each one in order. */
struct coll_exchange {
    uint32_t to, from;
    const void *out;
    void *in;
    size_t out_bytes, in_bytes;
    void (*arrived)(void *arg, size_t at, size_t length);
    void *arg;
};
int coll_exchange(struct coll *coll, size_t step, const struct coll_exchange *exchange) MUST_CHECK;

#endif
