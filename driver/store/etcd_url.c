/*
 * etcd_url.c: reads the URL of --store. driver/options.c calls it to check the option, and
 * etcd_store.c to open the store. A password is refused in a URL, because every user of the machine
 * can read a command line.
 */
#include "driver/store/etcd_url.h"

#include "base/text.h"
#include "discovery/hosts.h"

#include <stdio.h>
#include <string.h>

#define ETCD_PORT 2379

static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";

/* True: the part is not empty, and each of its bytes is a letter, a digit, one of . _ - or the byte
 * `more`. */
static bool etcd_is_plain(struct span part, char more)
{
    for (size_t i = 0; i < part.length; i++)
        if (!part.at[i] || (part.at[i] != more && !strchr(letters, part.at[i])))
            return false;
    return part.length > 0;
}

/* Reads one server, "h1:2379" or "[fd00::1]:2379", and adds it to the URL as "http://h1:2379". The
 * brackets of an IPv6 address stay in that text. */
static int etcd_read_server(struct etcd_url *url, struct span part, struct hvd_err *err)
{
    char quoted[TEXT_QUOTE_MAX], name[LIMIT_HOST_NAME_BYTES + 1];
    const char *bracket = part.length ? memchr(part.at, ']', part.length) : NULL;
    struct span host = part, port = { NULL, 0 };
    uint64_t number = ETCD_PORT;
    const char *colon;

    colon = bracket ? bracket + 1 : part.length ? memchr(part.at, ':', part.length) : NULL;
    if (colon && colon < part.at + part.length) {
        host.length = (size_t)(colon - part.at);
        port = (struct span){ colon + 1, part.length - host.length - 1 };
    }
    if (bracket && host.length > 2 && *host.at == '[')
        snprintf(name, sizeof(name), "%.*s", (int)(host.length - 2), host.at + 1);
    else
        snprintf(name, sizeof(name), "%.*s", (int)host.length, host.at);
    if (host.length > LIMIT_HOST_NAME_BYTES || host_name_check(name, strlen(name), NULL) ||
        (colon && host.length < part.length && *colon != ':') ||
        (port.at && text_parse_u64(port, 1, UINT16_MAX, "the port", &number, NULL)))
        return err_set(err, HVD_E_INVAL, "%s: not a server; write HOST or HOST:PORT",
                       text_quote(part.at, part.length, quoted));
    if (url->count == LIMIT_ETCD_SERVERS)
        return err_set(err, HVD_E_LIMIT, "more than %d servers; name some of them",
                       LIMIT_ETCD_SERVERS);
    snprintf(url->server[url->count], sizeof(url->server[0]), "%s://%.*s:%u",
             url->tls ? "https" : "http", (int)host.length, host.at, (unsigned)number);
    url->count++;
    url->loopback = url->loopback && (!strcmp(name, "localhost") || !strcmp(name, "::1") ||
                                      !strncmp(name, "127.", 4));
    return 0;
}

/* Reads the whole URL. Its parts are cut off from the left: scheme, user, servers, prefix. */
int etcd_url_parse(const char *text, struct etcd_url *ret_url, struct hvd_err *err)
{
    struct etcd_url url = { .loopback = true };
    const char *at = text, *slash, *sign;
    struct span servers, part, prefix;
    int rc = 0;

    if (!strncmp(at, "etcds://", 8))
        url.tls = true;
    else if (strncmp(at, "etcd://", 7) != 0)
        return err_set(
            err, HVD_E_INVAL,
            "not the URL of a store; write etcd://HOST:PORT/PREFIX, or etcds:// with TLS");
    at += url.tls ? 8 : 7;
    slash = strchr(at, '/');
    servers = (struct span){ at, slash ? (size_t)(slash - at) : strlen(at) };
    sign = servers.length ? memchr(at, '@', servers.length) : NULL;
    if (sign) {
        part = (struct span){ at, (size_t)(sign - at) };
        if (memchr(part.at, ':', part.length))
            return err_set(err, HVD_E_INVAL,
                           "a password does not belong in the URL, which other users can read; "
                           "put it into a file, and name that with --store-password-file");
        if (!etcd_is_plain(part, '.') || part.length > ETCD_USER_MAX)
            return err_set(err, HVD_E_INVAL, "the name of the user is not valid; see --store-user");
        snprintf(url.user, sizeof(url.user), "%.*s", (int)part.length, part.at);
        servers = (struct span){ sign + 1, servers.length - part.length - 1 };
    }
    while (!rc && span_next(&servers, ',', &part))
        rc = etcd_read_server(&url, part, err);
    if (!rc && !url.count)
        rc = err_set(err, HVD_E_INVAL, "no server is named; write etcd://HOST:PORT/PREFIX");
    prefix = (struct span){ slash ? slash + 1 : "", slash ? strlen(slash + 1) : 0 };
    while (prefix.length && prefix.at[prefix.length - 1] == '/')
        prefix.length--;
    if (!rc && prefix.length && (!etcd_is_plain(prefix, '/') || prefix.length > ETCD_PREFIX_MAX))
        rc = err_set(
            err, HVD_E_INVAL,
            "the prefix must have 1 to %d letters, digits and . _ - /; shorten or change it",
            ETCD_PREFIX_MAX);
    if (rc)
        return rc;
    snprintf(url.prefix, sizeof(url.prefix), "%.*s", (int)prefix.length, prefix.at);
    if (!prefix.length)
        snprintf(url.prefix, sizeof(url.prefix), "hvd-elastic");
    *ret_url = url;
    return 0;
}
