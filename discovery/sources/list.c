/*
 * list.c: hosts from a fixed list, "a:2,b:1" (--hosts). The list is read once, when the driver
 * starts; each answer is a copy of it.
 */
#include "discovery/parse.h"
#include "discovery/sources/source_internal.h"

#include <string.h>

/* Reads the value of --hosts once. The hosts are kept in discoverer->state. */
static int list_open(struct discoverer *discoverer, struct hvd_err *err)
{
    struct span text = { discoverer->config.value, strlen(discoverer->config.value) };
    struct hosts *hosts = discoverer->state;
    int rc;

    discoverer->name = "host list";
    hosts_init(hosts);
    rc = hosts_parse_list(text, discoverer->name, discoverer->config.slots_per_host, hosts, err);
    if (!rc && hosts->count == 0)
        rc = err_set(err, HVD_E_INVAL,
                     "host list: the list has no hosts; write name:slots,name:slots");
    return rc;
}

static void list_ask(struct discoverer *discoverer)
{
    discover_answer_copy(discoverer, discoverer->state);
}

static void list_close(struct discoverer *discoverer)
{
    hosts_release(discoverer->state);
}

const struct discover_source discover_list = {
    .option = "hosts",
    .when_empty = "is empty",
    .state_bytes = sizeof(struct hosts),
    .open = list_open,
    .ask = list_ask,
    .close = list_close,
};
