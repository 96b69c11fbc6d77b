/*
 * join_places.c: reads the list of --join and looks up its names. Called by the options of the
 * agent and by join.c before each attempt. Invariant: every text of the result is a numeric address
 * with a port.
 */
#include "agent/join/join_places.h"

#include "base/text.h"

#include <netdb.h>
#include <stdio.h>
#include <string.h>

#define PLACE_BYTES 300 /* a name of 253 bytes, brackets, a colon and a port */

/* Splits "name:port" or "[address]:port" into the name or address, without brackets, and the port.
 * HVD_E_INVAL: the text has another form. */
static int place_split(struct span place, char name[PLACE_BYTES], uint64_t *ret_port,
                       struct hvd_err *err)
{
    const char *colon = memrchr(place.at, ':', place.length);
    struct span port;
    size_t length;
    bool bracketed;

    if (!colon || colon == place.at || place.length >= PLACE_BYTES)
        return err_set(
            err, HVD_E_INVAL,
            "%.*s: not the address of a driver; write HOST:PORT, [ADDRESS]:PORT for IPv6",
            (int)(place.length < 60 ? place.length : 60), place.at);
    length = (size_t)(colon - place.at);
    port = (struct span){ colon + 1, place.length - length - 1 };
    bracketed = place.at[0] == '[' && length > 2 && place.at[length - 1] == ']';
    if (!bracketed && memchr(place.at, ':', length))
        return err_set(
            err, HVD_E_INVAL,
            "%.*s: more than one colon; write an IPv6 address in brackets, [fd00::7]:7000",
            (int)(place.length < 60 ? place.length : 60), place.at);
    snprintf(name, PLACE_BYTES, "%.*s", (int)(bracketed ? length - 2 : length),
             place.at + (bracketed ? 1 : 0));
    return text_parse_u64(port, 1, 65535, "the port of the driver", ret_port, err);
}

/* Checks the form of the list of --join, without looking a name up. */
int join_places_check(const char *list, struct hvd_err *err)
{
    struct span rest = { list, strlen(list) }, place;
    char name[PLACE_BYTES];
    uint64_t port = 0;
    size_t count = 0;
    int rc = 0;

    while (!rc && span_next(&rest, ',', &place)) {
        rc = place_split(place, name, &port, err);
        if (!rc && ++count > LIMIT_ADDRESSES)
            rc = err_set(err, HVD_E_LIMIT,
                         "more than %d addresses (LIMIT_ADDRESSES); leave some out",
                         LIMIT_ADDRESSES);
    }
    if (!rc && !count)
        rc = err_set(err, HVD_E_INVAL, "the list is empty; write HOST:PORT[,HOST:PORT...]");
    return rc;
}

/* Looks up the addresses of all names of the list. A name that has none now is left out; only if no
 * name has an address is that an error, with the reason of the last name. */
int join_places_find(const char *list, struct join_places *ret_places, struct hvd_err *err)
{
    const struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_ADDRCONFIG };
    struct span rest = { list, strlen(list) }, place;
    struct join_places places = { .count = 0 };
    struct hvd_err why = { .text = "" };
    char name[PLACE_BYTES], digits[8];
    struct address address;
    uint64_t port = 0;

    while (span_next(&rest, ',', &place)) {
        struct addrinfo *found = NULL;
        int rc = place_split(place, name, &port, &why);

        if (rc)
            continue;
        snprintf(digits, sizeof(digits), "%u", (unsigned)port);
        rc = getaddrinfo(name, digits, &hints, &found);
        if (rc)
            err_set(&why, HVD_E_NOTFOUND, "%s: its address is not known: %s; check the name", name,
                    gai_strerror(rc));
        for (const struct addrinfo *it = found; it; it = it->ai_next) {
            if (it->ai_addrlen > sizeof(address.at) || places.count == LIMIT_ADDRESSES)
                continue;
            memset(&address, 0, sizeof(address));
            memcpy(&address.at, it->ai_addr, it->ai_addrlen);
            address.length = it->ai_addrlen;
            address_show(&address, places.text[places.count++]);
        }
        if (found)
            freeaddrinfo(found);
    }
    if (!places.count)
        return err_set(err, HVD_E_NOTFOUND, "%s", why.text);
    *ret_places = places;
    return 0;
}
