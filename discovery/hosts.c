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
    names_release(&hosts->index); /* first: it borrows the names */
    for (size_t i = 0; i < hosts->count; i++)
        mem_free(hosts->items[i].name);
    VEC_RELEASE(hosts);
}

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

void hosts_move(struct hosts *hosts, struct hosts *ret_hosts)
{
    ASSERT(hosts != ret_hosts);
    hosts_release(ret_hosts);
    *ret_hosts = *hosts;
    hosts_init(hosts);
}

/* By hand: isalnum follows the locale. */
static bool is_name_byte(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '_' || c == '-';
}

static size_t name_bytes(struct span span)
{
    size_t count = 0;

    while (count < span.length && is_name_byte(span.at[count]))
        count++;
    return count;
}

static bool is_ipv6(struct span name)
{
    char text[INET6_ADDRSTRLEN];
    struct in6_addr ignored;
    struct span address;

    if (!span_next(&name, '%', &address) || address.length >= sizeof(text) ||
        memchr(address.at, '\0', address.length))
        return false;
    if (name.at && (name.length == 0 || name_bytes(name) < name.length))
        return false; /* an empty zone, or one that is no interface name */
    memcpy(text, address.at, address.length);
    text[address.length] = '\0';
    return inet_pton(AF_INET6, text, &ignored) == 1;
}

int host_name_check(const char *name, size_t length, struct hvd_err *err)
{
    struct span span = { name, length };
    char quoted[TEXT_QUOTE_MAX];
    char byte[TEXT_QUOTE_MAX];
    size_t good;

    if (length == 0)
        return err_set(err, HVD_E_INVAL, "\"\": an empty host name");
    if (length > LIMIT_HOST_NAME_BYTES)
        return err_set(err, HVD_E_LIMIT, "%s: a host name longer than LIMIT_HOST_NAME_BYTES (%d)",
                       text_quote(name, length, quoted), LIMIT_HOST_NAME_BYTES);
    if (memchr(name, ':', length)) {
        if (is_ipv6(span))
            return 0;
        return err_set(err, HVD_E_INVAL, "%s: not an IPv6 address",
                       text_quote(name, length, quoted));
    }
    if (name[0] == '-' || name[0] == '.')
        return err_set(err, HVD_E_INVAL, "%s: a host name cannot start with '%c'",
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
