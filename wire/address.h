/*
 * address.h: numeric addresses as texts and as the kernel has them. Never asks a name server.
 */
#ifndef WIRE_ADDRESS_H
#define WIRE_ADDRESS_H

#include "base/err.h"

#include <sys/socket.h>
#include <sys/un.h>

struct address {
    struct sockaddr_storage at;
    socklen_t length;
};

#define ADDRESS_TEXT_MAX 80 /* "[address%interface]:port" */

/* "10.0.0.7" or "::1", with or without brackets, and the port beside it. HVD_E_INVAL. */
int address_make(const char *host, uint16_t port, struct address *ret_address, struct hvd_err *err);

/* "10.0.0.7:4321", "[::1]:4321". HVD_E_INVAL. */
int address_parse(const char *text, struct address *ret_address, struct hvd_err *err);

const char *address_show(const struct address *address, char text[ADDRESS_TEXT_MAX]);
/* The same without its port: what address_make takes. */
const char *address_show_host(const struct address *address, char text[ADDRESS_TEXT_MAX]);
uint16_t address_port(const struct address *address);

/* "@name": abstract. HVD_E_LIMIT. A path that is too long goes by way of a descriptor of what it
 * leads to (/proc/self/fd), which the caller closes when it has connected; else *ret_fd is -1.
 * HVD_E_NOTFOUND, HVD_E_DENIED, HVD_E_IO. */
int address_unix(const char *name, struct address *ret_address, int *ret_fd, struct hvd_err *err);

/* What errno says of a name or an address. */
int address_code(int system_errno);

#endif
