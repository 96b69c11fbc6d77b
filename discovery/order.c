#include "discovery/order.h"

int order_update(const struct hosts *before, const struct hosts *now, struct hosts *ret_hosts)
{
    struct hosts ordered;
    int rc = 0;

    hosts_init(&ordered);
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
