#include "driver/hosts/route.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define NO_PORT 9 /* nothing is sent there */

bool route_take(struct route_address *address, const struct sockaddr *from, socklen_t length)
{
    struct route_address taken = { .of.four.sin_family = AF_UNSPEC };

    if (!from || length > sizeof(taken.of))
        return false;
    memcpy(&taken.of, from, length);
    if (from->sa_family == AF_INET6 && IN6_IS_ADDR_V4MAPPED(&taken.of.six.sin6_addr)) {
        struct in_addr four;

        memcpy(&four, &taken.of.six.sin6_addr.s6_addr[12], sizeof(four));
        taken = (struct route_address){
            .of.four = {.sin_family = AF_INET, .sin_addr = four}
        };
    }
    if (taken.of.any.sa_family != AF_INET && taken.of.any.sa_family != AF_INET6)
        return false;
    *address = taken;
    return true;
}

bool route_parse(struct route_address *address, const char *text)
{
    const struct addrinfo hints = { .ai_family = AF_INET6,
                                    .ai_socktype = SOCK_DGRAM,
                                    .ai_flags = AI_NUMERICHOST };
    struct route_address four = { .of.four = { .sin_family = AF_INET } };
    struct addrinfo *info = NULL;
    bool taken;

    if (inet_pton(AF_INET, text, &four.of.four.sin_addr) == 1) {
        *address = four;
        return true;
    }
    if (!strchr(text, ':') || getaddrinfo(text, NULL, &hints, &info))
        return false;
    taken = route_take(address, info->ai_addr, info->ai_addrlen);
    freeaddrinfo(info);
    return taken;
}

static socklen_t length_of(const struct route_address *address)
{
    return address->of.any.sa_family == AF_INET ? sizeof(address->of.four)
                                                : sizeof(address->of.six);
}

static bool is_loopback(const struct route_address *address)
{
    if (address->of.any.sa_family == AF_INET)
        return ntohl(address->of.four.sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
    return IN6_IS_ADDR_LOOPBACK(&address->of.six.sin6_addr);
}

bool route_names_loopback(const char *host)
{
    struct route_address address;

    return !strcmp(host, "localhost") || (route_parse(&address, host) && is_loopback(&address));
}

static bool is_link_local(const struct route_address *address)
{
    return address->of.any.sa_family == AF_INET6 &&
           IN6_IS_ADDR_LINKLOCAL(&address->of.six.sin6_addr);
}

static bool is_same(const struct route_address *a, const struct route_address *b)
{
    if (a->of.any.sa_family != b->of.any.sa_family)
        return false;
    if (a->of.any.sa_family == AF_INET)
        return a->of.four.sin_addr.s_addr == b->of.four.sin_addr.s_addr;
    return !memcmp(&a->of.six.sin6_addr, &b->of.six.sin6_addr, sizeof(a->of.six.sin6_addr)) &&
           (!is_link_local(a) || a->of.six.sin6_scope_id == b->of.six.sin6_scope_id);
}

static int show(const struct route_address *address, char text[REACH_ADDRESS_MAX])
{
    return getnameinfo(&address->of.any, length_of(address), text, REACH_ADDRESS_MAX, NULL, 0,
                       NI_NUMERICHOST);
}

/* One of ours. Not by trying to bind it: where ip_nonlocal_bind is set that works for any. */
static bool is_ours(const struct route_address *address, const struct ifaddrs *all)
{
    struct route_address ours;

    if (is_loopback(address))
        return true;
    for (; all; all = all->ifa_next)
        if (all->ifa_addr &&
            route_take(&ours, all->ifa_addr,
                       all->ifa_addr->sa_family == AF_INET ? sizeof(ours.of.four)
                                                           : sizeof(ours.of.six)) &&
            is_same(address, &ours))
            return true;
    return false;
}

/* The kernel's choice: a datagram socket is connected without a word to the other side. */
static int ask_kernel(const struct route_address *to, struct route_address *ret_source)
{
    int fd = socket(to->of.any.sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    struct route_address target = *to;
    struct route_address source = { .of.four.sin_family = AF_UNSPEC };
    socklen_t length = sizeof(source.of);
    int number = 0;

    if (fd < 0)
        return errno;
    if (target.of.any.sa_family == AF_INET)
        target.of.four.sin_port = htons(NO_PORT);
    else
        target.of.six.sin6_port = htons(NO_PORT);
    if (connect(fd, &target.of.any, length_of(&target)) || getsockname(fd, &source.of.any, &length))
        number = errno;
    else
        *ret_source = source;
    close(fd);
    return number;
}

/* An address of the interface that a host of the address `to` can dial. Of IPv6 one that is good
 * beyond the link, unless `to` is itself of that link. */
static int ask_interface(const struct route_address *to, const char *interface,
                         const struct ifaddrs *all, struct route_address *ret_source)
{
    struct route_address ours;

    for (; all; all = all->ifa_next) {
        if (!all->ifa_addr || strcmp(all->ifa_name, interface) != 0 ||
            all->ifa_addr->sa_family != to->of.any.sa_family)
            continue;
        if (route_take(&ours, all->ifa_addr, length_of(to)) &&
            is_link_local(&ours) == is_link_local(to)) {
            *ret_source = ours;
            return 0;
        }
    }
    return EADDRNOTAVAIL;
}

static int find_source(const struct route_address *to, const char *interface,
                       const struct ifaddrs *all, char source[REACH_ADDRESS_MAX])
{
    struct route_address from = { .of.four.sin_family = AF_UNSPEC };
    int number = interface ? ask_interface(to, interface, all, &from) : ask_kernel(to, &from);

    if (number)
        return number;
    return show(&from, source) ? EAFNOSUPPORT : 0;
}

/* The first to which there is a way; otherwise why there is none to the last. */
static int find_of_family(const struct route_address *addresses, size_t count, sa_family_t family,
                          const char *interface, const struct ifaddrs *all,
                          struct reach_answer *answer, int *number)
{
    for (size_t i = 0; i < count; i++) {
        if (addresses[i].of.any.sa_family != family)
            continue;
        *number = find_source(&addresses[i], interface, all, answer->source);
        if (*number == 0)
            return 0;
    }
    return HVD_E_NOTFOUND;
}

static int no_way(const char *host, const struct route_address *address, const char *interface,
                  int number, struct hvd_err *err)
{
    char text[REACH_ADDRESS_MAX];

    if (show(address, text))
        text[0] = '\0';
    if (number == EADDRNOTAVAIL && interface)
        return err_set(err, HVD_E_NOTFOUND,
                       "%s: %s has no address that could be dialled from %s; give it one, or "
                       "choose another --network-interface",
                       host, interface, text);
    return err_set(err, HVD_E_NOTFOUND, "%s: there is no way to %s: %s; see ip route", host, text,
                   strerror(number));
}

int route_find(const char *host, const struct route_address *addresses, size_t count,
               const char *interface, struct reach_answer *ret_answer, struct hvd_err *err)
{
    struct reach_answer answer = { .local = false };
    struct ifaddrs *all;
    int number = 0;
    int rc;

    if (count == 0)
        return err_set(err, HVD_E_NOTFOUND, "%s: has no address; check its name", host);
    if (getifaddrs(&all))
        return err_set(err, HVD_E_IO, "%s: this machine's addresses cannot be read: %s", host,
                       strerror(errno));
    for (size_t i = 0; i < count && !answer.local; i++)
        answer.local = is_ours(&addresses[i], all);
    rc = find_of_family(addresses, count, AF_INET, interface, all, &answer, &number);
    if (rc)
        rc = find_of_family(addresses, count, AF_INET6, interface, all, &answer, &number);
    freeifaddrs(all);
    if (rc)
        return no_way(host, &addresses[0], interface, number, err);
    answer.inside = route_names_loopback(answer.source);
    *ret_answer = answer;
    return 0;
}

int route_check_interface(const char *interface, struct hvd_err *err)
{
    struct if_nameindex *all = if_nameindex();
    char names[ERR_TEXT_MAX] = "";
    size_t length = 0;
    bool found = false;

    if (!all)
        return err_set(err, HVD_E_IO, "%s: this machine's interfaces cannot be read: %s", interface,
                       strerror(errno));
    for (const struct if_nameindex *it = all; it->if_index && !found; it++) {
        found = !strcmp(it->if_name, interface);
        snprintf(names + length, sizeof(names) - length, "%s%s", length ? ", " : "", it->if_name);
        length = strlen(names);
    }
    if (!found)
        err_set(err, HVD_E_NOTFOUND, "%s: no such network interface; there are %s", interface,
                names);
    if_freenameindex(all);
    return found ? 0 : HVD_E_NOTFOUND;
}
