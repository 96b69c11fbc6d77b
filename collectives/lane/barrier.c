#include "collectives/operation.h"

/* After the step of distance d everybody has heard, directly or not, of the 2d - 1 before it; the
 * opening is the first step. */
static int wait_for_all(struct coll *coll)
{
    uint8_t said = 0, heard = 0;
    int rc = coll_open_with(coll, NULL, 0, NULL);

    for (uint32_t distance = 2; distance < coll->size && !rc; distance *= 2) {
        const struct coll_exchange exchange = {
            .to = (coll->rank + distance) % coll->size,
            .from = (coll->rank + coll->size - distance) % coll->size,
            .out = &said,
            .in = &heard,
            .out_bytes = 1,
            .in_bytes = 1,
        };

        rc = coll_exchange(coll, distance, &exchange);
    }
    if (!rc)
        rc = coll_await_all(coll);
    coll_drop_all(coll);
    return rc;
}

int coll_barrier(struct coll *coll, struct hvd_err *err)
{
    const struct coll_call call = { .kind = COLL_BARRIER };
    int rc = coll_begin(coll, &call, err);

    if (rc)
        return rc;
    if (coll->size > 1)
        rc = wait_for_all(coll);
    return coll_end(coll, rc, err);
}
