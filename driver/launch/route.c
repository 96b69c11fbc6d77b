/*
 * route.c: judges the addresses of a host and the route to the host by what the kernel of this
 * machine knows. reach.c calls it. No name is looked up and no packet is sent, so no call blocks.
 */
#include "driver/launch/route.h"

#include "base/text.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define NO_PORT 9 /* any port, because nothing is sent */

/* Copies an IPv4 or IPv6 address into *address; an IPv4 address in the form of IPv6
 * (::ffff:1.2.3.4, whose last four bytes are the IPv4 address) becomes IPv4. False: the address is
 * of another family. */
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

/* Reads a numeric address. False: the text is not one. inet_pton does not read zones
 * (fe80::1%eth0), so IPv6 addresses are read by getaddrinfo, which looks nothing up with
 * AI_NUMERICHOST. */
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

static socklen_t address_length(const struct route_address *address)
{
    return address->of.any.sa_family == AF_INET ? sizeof(address->of.four)
                                                : sizeof(address->of.six);
}

/* True: the address is in 127.0.0.0/8, or is ::1. */
static bool route_is_loopback(const struct route_address *address)
{
    if (address->of.any.sa_family == AF_INET)
        return ntohl(address->of.four.sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
    return IN6_IS_ADDR_LOOPBACK(&address->of.six.sin6_addr);
}

/* True: `host` is "localhost", or a numeric loopback address. A name is not looked up. */
bool route_names_loopback(const char *host)
{
    struct route_address address;

    return !strcmp(host, "localhost") ||
           (route_parse(&address, host) && route_is_loopback(&address));
}

static bool is_link_local(const struct route_address *address)
{
    return address->of.any.sa_family == AF_INET6 &&
           IN6_IS_ADDR_LINKLOCAL(&address->of.six.sin6_addr);
}

/* Writes the address as a numeric text. Returns 0, or an EAI_ code. */
static int address_show(const struct route_address *address, char text[REACH_ADDRESS_MAX])
{
    return getnameinfo(&address->of.any, address_length(address), text, REACH_ADDRESS_MAX, NULL, 0,
                       NI_NUMERICHOST);
}

/* True: the addresses are equal. Link-local addresses must also belong to the same network
 * interface. */
static bool is_same_address(const struct route_address *one, const struct route_address *other)
{
    if (one->of.any.sa_family != other->of.any.sa_family)
        return false;
    if (one->of.any.sa_family == AF_INET)
        return one->of.four.sin_addr.s_addr == other->of.four.sin_addr.s_addr;
    return IN6_ARE_ADDR_EQUAL(&one->of.six.sin6_addr, &other->of.six.sin6_addr) &&
           (!is_link_local(one) || one->of.six.sin6_scope_id == other->of.six.sin6_scope_id);
}

/* Finds the source address that the kernel chooses for packets to `to`. It is asked by the connect
 * of a datagram socket, which sends nothing. Returns 0 or an errno. */
static int route_ask_kernel(const struct route_address *to, struct route_address *ret_source)
{
    int fd = socket(to->of.any.sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    struct route_address target = *to;
    struct route_address source = { .of.four.sin_family = AF_UNSPEC };
    socklen_t length = sizeof(source.of);
    int error_number = 0;

    if (fd < 0)
        return errno;
    if (target.of.any.sa_family == AF_INET)
        target.of.four.sin_port = htons(NO_PORT);
    else
        target.of.six.sin6_port = htons(NO_PORT);
    if (connect(fd, &target.of.any, address_length(&target)) ||
        getsockname(fd, &source.of.any, &length))
        error_number = errno;
    else
        *ret_source = source;
    close(fd);
    return error_number;
}

/* True: `interfaces`, the list of --network-interface, allows the interface `name`. A list that
 * begins with "^" names the interfaces that must not be used. */
static bool may_use(const char *interfaces, const char *name)
{
    bool excludes = *interfaces == '^', listed = false;
    struct span rest = { interfaces + excludes, strlen(interfaces + excludes) };
    struct span item;

    while (!listed && span_next(&rest, ',', &item))
        listed = span_is(item, name);
    return listed != excludes;
}

/* Finds an address of an interface that `interfaces` allows, and that has the name `only` if `only`
 * is not empty. With `source` the address must be equal to *source. Without it the host `to` must
 * be able to dial the address: a link-local address fits only a link-local `to`, and a loopback
 * address fits only if `only` names its interface. Returns 0 or an errno. */
static int route_search_interfaces(const struct route_address *to, const char *interfaces,
                                   struct span only, const struct ifaddrs *all,
                                   const struct route_address *source,
                                   struct route_address *ret_source)
{
    struct route_address ours = { .of.four.sin_family = AF_UNSPEC };

    for (; all; all = all->ifa_next) {
        if (!all->ifa_addr || all->ifa_addr->sa_family != to->of.any.sa_family ||
            (only.length && !span_is(only, all->ifa_name)) || !may_use(interfaces, all->ifa_name) ||
            !route_take(&ours, all->ifa_addr, address_length(to)))
            continue;
        if (source ? is_same_address(&ours, source)
                   : is_link_local(&ours) == is_link_local(to) &&
                         (only.length || !route_is_loopback(&ours))) {
            *ret_source = ours;
            return 0;
        }
    }
    return EADDRNOTAVAIL;
}

/* Finds the first of the host's addresses of `family` to which there is a route, and sets
 * answer->source. Returns 0 or HVD_E_NOTFOUND; *error_number is then the errno for the last
 * address. */
static int route_find_of_family(const struct route_address *addresses, size_t count,
                                sa_family_t family, const char *interfaces,
                                const struct ifaddrs *all, struct reach_answer *answer,
                                int *error_number)
{
    const struct span none = { NULL, 0 };

    for (size_t i = 0; i < count; i++) {
        const struct route_address *to = &addresses[i];
        struct route_address from = { .of.four.sin_family = AF_UNSPEC }, kernels = from;
        struct span rest = { interfaces, interfaces ? strlen(interfaces) : 0 };
        struct span name;

        if (to->of.any.sa_family != family)
            continue;
        if (!interfaces) {
            *error_number = route_ask_kernel(to, &from);
        } else if (!route_ask_kernel(to, &kernels) &&
                   !route_search_interfaces(to, interfaces, none, all, &kernels, &from)) {
            *error_number = 0; /* the kernel's choice belongs to these interfaces */
        } else if (*interfaces == '^') {
            *error_number = route_search_interfaces(to, interfaces, none, all, NULL, &from);
        } else {
            *error_number = EADDRNOTAVAIL;
            while (*error_number && span_next(&rest, ',', &name))
                *error_number = route_search_interfaces(to, interfaces, name, all, NULL, &from);
        }
        if (!*error_number && address_show(&from, answer->source))
            *error_number = EAFNOSUPPORT;
        if (!*error_number)
            return 0;
    }
    return HVD_E_NOTFOUND;
}

/* Finds out whether the host with these addresses is this machine (answer.local), at which address
 * of this machine it can dial the driver (answer.source), and whether only this machine can dial
 * that address (answer.inside). `interfaces` NULL: any interface. */
int route_find(const char *host, const struct route_address *addresses, size_t count,
               const char *interfaces, struct reach_answer *ret_answer, struct hvd_err *err)
{
    struct route_address ours = { .of.four.sin_family = AF_UNSPEC };
    struct reach_answer answer = { .local = false };
    char text[REACH_ADDRESS_MAX];
    struct ifaddrs *all;
    int error_number = 0;
    int rc;

    if (count == 0)
        return err_set(err, HVD_E_NOTFOUND,
                       "%s: the host has no address; check the name of the host", host);
    if (getifaddrs(&all))
        return err_set(
            err, HVD_E_IO,
            "%s: this machine's addresses cannot be read: %s; free memory, or raise ulimit -n",
            host, strerror(errno));
    /* The host is this machine if one of its addresses belongs to this machine; a host name may
     * also have other addresses. */
    for (size_t i = 0; i < count && !answer.local; i++) {
        answer.local = route_is_loopback(&addresses[i]);
        /* The list of all addresses is searched, because a bind proves nothing: with
         * ip_nonlocal_bind it works for any address. */
        for (const struct ifaddrs *it = all; it && !answer.local; it = it->ifa_next)
            answer.local = it->ifa_addr &&
                           it->ifa_addr->sa_family == addresses[i].of.any.sa_family &&
                           route_take(&ours, it->ifa_addr, address_length(&addresses[i])) &&
                           is_same_address(&ours, &addresses[i]);
    }
    /* IPv4 is tried first, because a host with both families may have no IPv6 route to other hosts.
     */
    rc = route_find_of_family(addresses, count, AF_INET, interfaces, all, &answer, &error_number);
    if (rc)
        rc = route_find_of_family(addresses, count, AF_INET6, interfaces, all, &answer,
                                  &error_number);
    freeifaddrs(all);
    if (rc && address_show(&addresses[0], text))
        text[0] = '\0';
    if (rc && error_number == EADDRNOTAVAIL && interfaces)
        return err_set(err, HVD_E_NOTFOUND,
                       "%s: %s has no address that %s can reach; give this interface an address, "
                       "or choose another --network-interface",
                       host, interfaces, text);
    if (rc)
        return err_set(err, HVD_E_NOTFOUND, "%s: there is no route to %s: %s; see ip route", host,
                       text, strerror(error_number));
    answer.inside = route_names_loopback(answer.source);
    *ret_answer = answer;
    return 0;
}

/* Checks that the interfaces of --network-interface exist, and that a list that excludes some ("^")
 * leaves at least one. */
int route_check_interfaces(const char *interfaces, struct hvd_err *err)
{
    struct if_nameindex *all = if_nameindex();
    struct span rest = { interfaces, strlen(interfaces) };
    char names[ERR_TEXT_MAX] = "";
    char quoted[TEXT_QUOTE_MAX];
    size_t usable = 0;
    struct span name;
    int rc = 0;

    if (!all)
        return err_set(
            err, HVD_E_IO,
            "%s: this machine's interfaces cannot be read: %s; free memory, or raise ulimit -n",
            interfaces, strerror(errno));
    for (const struct if_nameindex *it = all; it->if_index; it++) {
        size_t length = strlen(names);

        usable += may_use(interfaces, it->if_name);
        snprintf(names + length, sizeof(names) - length, "%s%s", length ? ", " : "", it->if_name);
    }
    /* An interface that is excluded need not exist. */
    while (!rc && *interfaces != '^' && span_next(&rest, ',', &name)) {
        bool found = false;

        for (const struct if_nameindex *it = all; it->if_index && !found; it++)
            found = span_is(name, it->if_name);
        if (!found)
            rc = err_set(err, HVD_E_NOTFOUND, "%s: no such network interface; there are %s",
                         text_quote(name.at, name.length, quoted), names);
    }
    if (!rc && !usable)
        rc = err_set(err, HVD_E_NOTFOUND,
                     "%s: this excludes all network interfaces of this machine (%s); exclude fewer",
                     interfaces, names);
    if_freenameindex(all);
    return rc;
}
