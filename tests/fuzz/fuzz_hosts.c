/*
 * fuzz_hosts.c: two texts that a discovery script may print, one after the other, and the hosts
 * that discovery reads from them.
 *
 * The first byte is a digit: '0' to '4' are the default_slots of a text, '5' to '9' those of a
 * list, plus five. Any byte above is that of a host file. A form feed separates the first text from
 * the second.
 */
#include "base/limits.h"
#include "base/panic.h"
#include "discovery/diff.h"
#include "discovery/format.h"
#include "discovery/order.h"
#include "discovery/parse.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_set(const struct hosts *hosts)
{
    uint64_t total = 0;

    ASSERT(hosts->count <= LIMIT_HOSTS);
    ASSERT(hosts_total_slots(hosts) <= LIMIT_SLOTS);
    for (size_t i = 0; i < hosts->count; i++) {
        const struct host *host = &hosts->items[i];

        ASSERT(host->slots <= LIMIT_SLOTS_PER_HOST);
        ASSERT(host_name_check(host->name, strlen(host->name), NULL) == 0);
        ASSERT(hosts_find(hosts, host->name) == host);
        total += host->slots;
    }
    ASSERT(hosts_total_slots(hosts) == total);
}

static bool same(const struct hosts *left, const struct hosts *right)
{
    if (left->count != right->count)
        return false;
    for (size_t i = 0; i < left->count; i++) {
        if (strcmp(left->items[i].name, right->items[i].name) != 0 ||
            left->items[i].slots != right->items[i].slots)
            return false;
    }
    return true;
}

/* A text that is refused must leave the set unchanged, and the error must name the line. A text
 * that is accepted must give a valid set. */
static void read_text(char mode, struct span text, struct hosts *hosts)
{
    unsigned digit = (unsigned char)(mode - '0') % 10;
    uint32_t default_slots = digit % 5;
    bool list = digit >= 5;
    struct hvd_err err = { .text = "" };
    int rc;
    struct hosts again;
    struct buf buf;

    ASSERT(hosts_add(hosts, "left-alone", 1) == 0);
    if (mode > '9')
        rc = hosts_parse_hostfile(text, "fuzz", default_slots, hosts, &err);
    else
        rc = list ? hosts_parse_list(text, "fuzz", default_slots, hosts, &err)
                  : hosts_parse_text(text, "fuzz", default_slots, hosts, &err);
    if (rc) {
        ASSERT(err.code == rc && !strncmp(err.text, "fuzz: ", 6));
        ASSERT(hosts->count == 1 && hosts_find(hosts, "left-alone"));
        hosts_release(hosts);
    }
    check_set(hosts);
    /* Every set of hosts can be written as text, unless the text is too long, and the parser reads
     * the text back. */
    hosts_init(&again);
    buf_init(&buf, LIMIT_HOST_TEXT_BYTES);
    rc = hosts_format_text(hosts, &buf);
    ASSERT(rc == 0 || rc == HVD_E_LIMIT);
    if (!rc) {
        ASSERT(hosts_parse_text((struct span){ buf.data, buf.length }, "text", 0, &again, NULL) ==
               0);
        ASSERT(same(hosts, &again));
    }
    buf_release(&buf);
    hosts_release(&again);
}

static unsigned kind_between(const struct host *before, const struct host *now)
{
    if (!before)
        return DIFF_ADDED;
    if (!now)
        return DIFF_REMOVED;
    return now->slots > before->slots ? DIFF_GROWN : DIFF_SHRUNK;
}

/* Every reported change must be true, and none may be missing. */
static void check_diff(const struct hosts *before, const struct hosts *now)
{
    char text[DIFF_TEXT_MAX];
    size_t expected = 0;
    unsigned kinds = 0;
    struct diff diff;

    diff_init(&diff);
    ASSERT(diff_between(before, before, &diff) == 0);
    ASSERT(diff.count == 0 && diff.kinds == 0);
    ASSERT(!strcmp(diff_describe(&diff, text), "no change"));
    ASSERT(diff_between(before, now, &diff) == 0);
    for (size_t i = 0; i < diff.count; i++) {
        const struct host_change *change = &diff.items[i];
        const struct host *old_host = hosts_find(before, change->name);
        const struct host *new_host = hosts_find(now, change->name);

        ASSERT(change->old_slots == (old_host ? old_host->slots : 0));
        ASSERT(change->new_slots == (new_host ? new_host->slots : 0));
        ASSERT(!old_host || !new_host || change->old_slots != change->new_slots);
        ASSERT(change->kind == kind_between(old_host, new_host));
        kinds |= change->kind;
    }
    for (size_t i = 0; i < before->count; i++) {
        const struct host *found = hosts_find(now, before->items[i].name);

        expected += !found || found->slots != before->items[i].slots;
    }
    for (size_t i = 0; i < now->count; i++)
        expected += !hosts_find(before, now->items[i].name);
    ASSERT(diff.count == expected && diff.kinds == kinds);
    ASSERT(strlen(diff_describe(&diff, text)) < DIFF_TEXT_MAX);
    diff_release(&diff);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct hosts before;
    struct hosts now;
    struct span rest;
    struct span text;
    struct hosts order;
    struct hosts again;
    size_t at;

    if (size < 1)
        return 0;
    rest = (struct span){ (const char *)data + 1, size - 1 };
    hosts_init(&before);
    hosts_init(&now);
    span_next(&rest, '\f', &text);
    read_text((char)data[0], text, &before);
    read_text((char)data[0], rest, &now);
    check_diff(&before, &now);
    /* Both lists hold the same hosts: first the known hosts, then the new hosts, each in the old
     * order. */
    at = 0;
    hosts_init(&order);
    hosts_init(&again);
    ASSERT(order_update(&before, &now, &order) == 0);
    check_set(&order);
    for (size_t i = 0; i < before.count; i++) {
        if (hosts_find(&now, before.items[i].name))
            ASSERT(!strcmp(order.items[at++].name, before.items[i].name));
    }
    for (size_t i = 0; i < now.count; i++) {
        if (!hosts_find(&before, now.items[i].name))
            ASSERT(!strcmp(order.items[at++].name, now.items[i].name));
        ASSERT(hosts_find(&order, now.items[i].name)->slots == now.items[i].slots);
    }
    ASSERT(at == order.count && at == now.count);
    ASSERT(order_update(&order, &now, &again) == 0);
    ASSERT(same(&order, &again));
    hosts_release(&order);
    hosts_release(&again);
    hosts_release(&before);
    hosts_release(&now);
    return 0;
}
