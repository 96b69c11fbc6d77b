/*
 * hosts.c: a set of hosts with an index by name, and the check of a host's name. The driver keeps
 * all its knowledge of hosts in such sets. Invariant: no name is in a set twice, and each name has
 * passed host_name_check, so a name is safe as an argument of ssh and as a part of a file name.
 */
#include "discovery/hosts.h"

#include "base/limits.h"
#include "base/mem.h"
#include "base/panic.h"
#include "base/text.h"
#include "base/vec.h"

#include <arpa/inet.h>
#include <string.h>

void hosts_init(struct hosts *hosts)
{
    *hosts = (struct hosts){ .items = NULL };
    names_init(&hosts->index);
}

void hosts_release(struct hosts *hosts)
{
    if (!hosts)
        return;
    names_release(&hosts->index); /* the index is released first, because it borrows the names */
    for (size_t i = 0; i < hosts->count; i++)
        mem_free(hosts->items[i].name);
    VEC_RELEASE(hosts);
}

/* Adds a host with a copy of its name. HVD_E_EXISTS: the set has a host of this name. */
int hosts_add(struct hosts *hosts, const char *name, uint32_t slots)
{
    size_t length = strlen(name);
    char *copy;
    int rc;

    if (slots > LIMIT_SLOTS_PER_HOST)
        return HVD_E_LIMIT;
    rc = host_name_check(name, length, NULL);
    if (rc)
        return rc;
    if (hosts_find(hosts, name))
        return HVD_E_EXISTS;
    rc = VEC_RESERVE(hosts, 1, LIMIT_HOSTS);
    if (rc)
        return rc;
    copy = mem_strndup(name, length);
    if (!copy)
        return HVD_E_NOMEM;
    rc = names_put(&hosts->index, copy, length, (uint32_t)hosts->count);
    if (rc) {
        mem_free(copy);
        return rc;
    }
    hosts->items[hosts->count++] = (struct host){ .name = copy, .slots = slots };
    return 0;
}

/* Adds `more` slots to a host that is in the set. HVD_E_LIMIT: the host would have more than
 * LIMIT_SLOTS_PER_HOST slots. */
int hosts_add_slots(struct hosts *hosts, const char *name, uint32_t more)
{
    uint32_t at = names_find(&hosts->index, name, strlen(name));

    ASSERT(at != NAMES_NONE);
    if (more > LIMIT_SLOTS_PER_HOST - hosts->items[at].slots)
        return HVD_E_LIMIT;
    hosts->items[at].slots += more;
    return 0;
}

const struct host *hosts_find(const struct hosts *hosts, const char *name)
{
    uint32_t at = names_find(&hosts->index, name, strlen(name));

    return at == NAMES_NONE ? NULL : &hosts->items[at];
}

uint64_t hosts_total_slots(const struct hosts *hosts)
{
    uint64_t total = 0;

    for (size_t i = 0; i < hosts->count; i++)
        total += hosts->items[i].slots;
    return total;
}

/* Replaces *ret_hosts by a copy of `hosts`. After a failure *ret_hosts is unchanged. */
int hosts_copy(const struct hosts *hosts, struct hosts *ret_hosts)
{
    struct hosts copy;
    int rc = 0;

    hosts_init(&copy);
    for (size_t i = 0; i < hosts->count && !rc; i++)
        rc = hosts_add(&copy, hosts->items[i].name, hosts->items[i].slots);
    if (!rc)
        hosts_move(&copy, ret_hosts);
    hosts_release(&copy);
    return rc;
}

/* Moves all hosts into ret_hosts, whose former hosts are released, and leaves `hosts` empty. The
 * names are not copied, so pointers to them stay valid. */
void hosts_move(struct hosts *hosts, struct hosts *ret_hosts)
{
    ASSERT(hosts != ret_hosts);
    hosts_release(ret_hosts);
    *ret_hosts = *hosts;
    hosts_init(hosts);
}

/* Returns how many bytes at the start of `span` are letters, digits, '.', '_' or '-', of which host
 * names consist. isalnum is not used, because it depends on the locale. */
static size_t name_bytes(struct span span)
{
    size_t count = 0;

    for (; count < span.length; count++) {
        char c = span.at[count];

        if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
              c == '.' || c == '_' || c == '-'))
            break;
    }
    return count;
}

/* Checks that the bytes are a name that a host can have: letters, digits, dot, underscore and dash,
 * or an IPv6 address without brackets. The error quotes the name. */
int host_name_check(const char *name, size_t length, struct hvd_err *err)
{
    struct span span = { name, length };
    char quoted[TEXT_QUOTE_MAX];
    char byte[TEXT_QUOTE_MAX];
    size_t good;

    if (length == 0)
        return err_set(err, HVD_E_INVAL, "\"\": a host name cannot be empty; write a name");
    if (length > LIMIT_HOST_NAME_BYTES)
        return err_set(
            err, HVD_E_LIMIT,
            "%s: the host name is longer than %d bytes (LIMIT_HOST_NAME_BYTES); shorten it",
            text_quote(name, length, quoted), LIMIT_HOST_NAME_BYTES);
    /* A name with a colon is an IPv6 address, perhaps with a zone (an interface) behind a "%". */
    if (memchr(name, ':', length)) {
        char text[INET6_ADDRSTRLEN] = "";
        struct in6_addr ignored;
        struct span zone = span;
        struct span address;
        bool valid = span_next(&zone, '%', &address) && address.length < sizeof(text) &&
                     !memchr(address.at, '\0', address.length) &&
                     (!zone.at || (zone.length && name_bytes(zone) == zone.length));

        /* If the name is not valid, `text` stays empty, and inet_pton refuses an empty text. */
        if (valid)
            memcpy(text, address.at, address.length);
        if (inet_pton(AF_INET6, text, &ignored) == 1)
            return 0;
        return err_set(
            err, HVD_E_INVAL,
            "%s: not an IPv6 address; write one such as fe80::1, or a name without a colon",
            text_quote(name, length, quoted));
    }
    if (name[0] == '-' || name[0] == '.')
        return err_set(err, HVD_E_INVAL,
                       "%s: a host name cannot start with '%c'; begin it with a letter or a digit",
                       text_quote(name, length, quoted), name[0]);
    good = name_bytes(span);
    if (good < length)
        return err_set(err, HVD_E_INVAL,
                       "%s: %s cannot be in a host name; use letters, digits, '.', '_' and '-'",
                       text_quote(name, length, quoted), text_quote(name + good, 1, byte));
    return 0;
}

bool host_name_is_ipv6(const char *name)
{
    return strchr(name, ':') != NULL;
}
