/*
 * address.c: numeric addresses, as texts and as the kernel uses them. Called by all code that reads
 * or shows addresses. Invariant: no name server is asked, so no call here blocks.
 */
#include "wire/address.h"

#include "base/text.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Returns the error code for the errno of a call with an address. Values of errno that have the
 * same remedy (start the other side, choose another name, raise a limit ...) become the same
 * code. */
int address_code(int system_errno)
{
    switch (system_errno) {
    case ENOENT:
    case ENOTDIR:
    case ECONNREFUSED: return HVD_E_NOTFOUND;
    case EACCES:
    case EROFS:
    case EPERM: return HVD_E_DENIED;
    case EADDRINUSE:
    case EAGAIN: return HVD_E_BUSY;
    case EADDRNOTAVAIL:
    case EAFNOSUPPORT:
    case EINVAL: return HVD_E_INVAL;
    case ENAMETOOLONG:
    case EMFILE:
    case ENFILE: return HVD_E_LIMIT;
    case ENOBUFS:
    case ENOMEM: return HVD_E_NOMEM;
    case ENOSPC:
    case EDQUOT: return HVD_E_FULL;
    default: return HVD_E_IO;
    }
}

/* Makes an address from a numeric host, which may stand in brackets, and a port. No name server is
 * asked. */
int address_make(const char *host, size_t length, uint16_t port, struct address *ret_address,
                 struct hvd_err *err)
{
    struct addrinfo hints = { .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV,
                              .ai_socktype = SOCK_STREAM };
    bool brackets = length >= 2 && host[0] == '[' && host[length - 1] == ']';
    size_t bare_length = brackets ? length - 2 : length;
    struct addrinfo *found = NULL;
    char quoted[TEXT_QUOTE_MAX];
    char bare[ADDRESS_TEXT_MAX];
    char service[8];
    int rc = EAI_NONAME;

    snprintf(service, sizeof(service), "%u", port);
    if (bare_length > 0 && bare_length < sizeof(bare)) {
        memcpy(bare, host + brackets, bare_length);
        bare[bare_length] = '\0';
        rc = getaddrinfo(bare, service, &hints, &found);
    }
    if (rc == EAI_MEMORY)
        return err_set(err, HVD_E_NOMEM, "%s", err_text(HVD_E_NOMEM));
    if (rc || found->ai_addrlen > sizeof(ret_address->at)) {
        if (!rc)
            freeaddrinfo(found);
        return err_set(err, HVD_E_INVAL, "%s: not a numeric address; write 10.0.0.7 or ::1",
                       text_quote(host, length, quoted));
    }
    memset(ret_address, 0, sizeof(*ret_address));
    memcpy(&ret_address->at, found->ai_addr, found->ai_addrlen);
    ret_address->length = found->ai_addrlen;
    freeaddrinfo(found);
    return 0;
}

/* Parses "10.0.0.7:4321" or "[::1]:4321". An IPv6 address needs brackets here: without them the
 * port would be a part of the address. */
int address_parse(const char *text, struct address *ret_address, struct hvd_err *err)
{
    const char *colon = strrchr(text, ':');
    char quoted[TEXT_QUOTE_MAX];
    uint64_t port = 0;

    if (!colon || colon == text || (strchr(text, ':') != colon && colon[-1] != ']'))
        return err_set(err, HVD_E_INVAL, "%s: write address:port, or [address]:port for IPv6",
                       text_quote(text, strlen(text), quoted));
    if (text_parse_u64((struct span){ colon + 1, strlen(colon + 1) }, 1, UINT16_MAX, "the port",
                       &port, err))
        return err_prefix(err, HVD_E_INVAL, "%s", text_quote(text, strlen(text), quoted));
    return address_make(text, (size_t)(colon - text), (uint16_t)port, ret_address, err);
}

/* Writes the address and its port: "10.0.0.7:4321" or "[::1]:4321". The host is "?" when the
 * address has no text form. */
const char *address_show(const struct address *address, char text[ADDRESS_TEXT_MAX])
{
    bool v6 = address->at.ss_family == AF_INET6;
    char host[ADDRESS_TEXT_MAX - 10];

    if (getnameinfo((const struct sockaddr *)&address->at, address->length, host, sizeof(host),
                    NULL, 0, NI_NUMERICHOST))
        snprintf(host, sizeof(host), "?");
    snprintf(text, ADDRESS_TEXT_MAX, v6 ? "[%s]:%u" : "%s:%u", host, address_port(address));
    return text;
}

/* Writes the address without its port; "?" when the address has no text form. */
const char *address_show_host(const struct address *address, char text[ADDRESS_TEXT_MAX])
{
    if (getnameinfo((const struct sockaddr *)&address->at, address->length, text, ADDRESS_TEXT_MAX,
                    NULL, 0, NI_NUMERICHOST))
        snprintf(text, ADDRESS_TEXT_MAX, "?");
    return text;
}

/* Returns the port of the address; 0: the address is of a Unix socket. */
uint16_t address_port(const struct address *address)
{
    if (address->at.ss_family == AF_INET)
        return ntohs(((const struct sockaddr_in *)(const void *)&address->at)->sin_port);
    if (address->at.ss_family == AF_INET6)
        return ntohs(((const struct sockaddr_in6 *)(const void *)&address->at)->sin6_port);
    return 0;
}

/* Asks the kernel by binding a socket to the address, at any port. */
bool address_is_own(const char *host)
{
    struct address address = { .length = 0 };
    bool own;
    int fd;

    if (address_make(host, strlen(host), 0, &address, NULL))
        return false;
    fd = socket(address.at.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    own = fd >= 0 && !bind(fd, (const struct sockaddr *)&address.at, address.length);
    if (fd >= 0)
        close(fd);
    return own;
}

/* Makes the address of a Unix socket from a path, or from "@name", which stands for an abstract
 * name: for the kernel an abstract name begins with a NUL. A path that is too long for the kernel
 * becomes "/proc/self/fd/N": N is *ret_fd, a descriptor of the socket file, which the caller closes
 * after its connect. *ret_fd -1: there is no such descriptor. */
int address_unix(const char *name, struct address *ret_address, int *ret_fd, struct hvd_err *err)
{
    struct address address = { .length = sizeof(struct sockaddr_un) };
    struct sockaddr_un *at = (struct sockaddr_un *)(void *)&address.at;
    size_t length = strlen(name);

    at->sun_family = AF_UNIX;
    *ret_fd = -1;
    if (length == 0 || (name[0] == '@' && length == 1))
        return err_set(err, HVD_E_INVAL,
                       "the name of a Unix socket is empty; give a path, or @ and a name");
    if (name[0] == '@' && length > sizeof(at->sun_path))
        return err_set(err, HVD_E_LIMIT,
                       "%s: longer than the %zu bytes of a Unix socket's name; shorten it", name,
                       sizeof(at->sun_path));
    if (name[0] == '@') {
        memcpy(at->sun_path + 1, name + 1, length - 1);
        address.length = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length);
    } else if (length < sizeof(at->sun_path)) {
        memcpy(at->sun_path, name, length + 1);
    } else {
        /* The path is too long for the kernel (sun_path has 108 bytes), so the address names a
         * descriptor of the socket file instead. */
        *ret_fd = open(name, O_PATH | O_CLOEXEC);
        if (*ret_fd < 0)
            return err_set(err, address_code(errno), "%s: %s", name, strerror(errno));
        snprintf(at->sun_path, sizeof(at->sun_path), "/proc/self/fd/%d", *ret_fd);
    }
    *ret_address = address;
    return 0;
}
