/*
 * order.c: the order of hosts over time, used by the driver's core and by hvd-hosts. A host that
 * stays keeps its position before all new hosts, so that old workers keep low ranks.
 */
#include "discovery/order.h"

/* Puts the hosts of `now` in order: first those that are also in `before`, in the order of
 * `before`, then the new hosts, in the order of `now`. ret_hosts may be `before` itself. After a
 * failure *ret_hosts is unchanged. */
int order_update(const struct hosts *before, const struct hosts *now, struct hosts *ret_hosts)
{
    struct hosts ordered;
    int rc = 0;

    hosts_init(&ordered);
    /* `before` is the result of the last call: its hosts come first, even if the script now prints
     * another order (docs/stories.md, `old_hosts_first`). */
    for (size_t i = 0; i < before->count && !rc; i++) {
        const struct host *kept = hosts_find(now, before->items[i].name);

        if (kept)
            rc = hosts_add(&ordered, kept->name, kept->slots);
    }
    for (size_t i = 0; i < now->count && !rc; i++) {
        const struct host *host = &now->items[i];

        if (!hosts_find(before, host->name))
            rc = hosts_add(&ordered, host->name, host->slots);
    }
    if (!rc)
        hosts_move(&ordered, ret_hosts);
    hosts_release(&ordered);
    return rc;
}
