/*
 * address.h: numeric addresses, as texts and as the kernel uses them. No function asks a name
 * server.
 */
#ifndef WIRE_ADDRESS_H
#define WIRE_ADDRESS_H

#include "base/err.h"

#include <sys/socket.h>
#include <sys/un.h>

struct address {
    struct sockaddr_storage at;
    socklen_t length; /* bytes of `at` that the address has, as connect() takes it */
};

#define ADDRESS_TEXT_MAX 80 /* "[address%interface]:port" */

/* Makes an address from a host of `length` bytes, "10.0.0.7" or "::1", with or without brackets,
 * and a port, which a listener may leave to the system (0). Fails with HVD_E_INVAL. */
int address_make(const char *host, size_t length, uint16_t port, struct address *ret_address,
                 struct hvd_err *err);

/* Parses "10.0.0.7:4321" or "[::1]:4321". Fails with HVD_E_INVAL. */
int address_parse(const char *text, struct address *ret_address, struct hvd_err *err);

/* Writes "10.0.0.7:4321" or "[::1]:4321". Returns `text`. */
const char *address_show(const struct address *address, char text[ADDRESS_TEXT_MAX]);
/* Writes the address without its port, in the form that address_make takes: "10.0.0.7", "::1".
 * Returns `text`. */
const char *address_show_host(const struct address *address, char text[ADDRESS_TEXT_MAX]);
uint16_t address_port(const struct address *address); /* 0: a Unix socket */
/* True: a program can listen on this numeric address here, as it is one of this machine. */
bool address_is_own(const char *host);

/* Makes the address of a Unix socket: "@name" is an abstract name, any other name is a path.
 * HVD_E_LIMIT: an abstract name is too long. For a path that is too long for the kernel, the
 * address uses a descriptor of the socket file (/proc/self/fd): that descriptor is *ret_fd, which
 * the caller closes after it has connected. For any other name *ret_fd is -1. Fails with
 * HVD_E_NOTFOUND, HVD_E_DENIED, HVD_E_IO. */
int address_unix(const char *name, struct address *ret_address, int *ret_fd, struct hvd_err *err);

/* Returns the error code for the errno of a call with a name or an address. */
int address_code(int system_errno);

#endif
