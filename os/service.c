/*
 * service.c: the client side of sd_notify(3). driver/front calls it; libsystemd is not linked for
 * one datagram.
 */
#include "os/service.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/* Sends `state` to the service manager. Without a service manager, or if the datagram cannot be
 * sent at once, nothing happens. */
void service_tell(const char *state)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    const char *name = getenv(SERVICE_SOCKET);
    size_t length = name ? strlen(name) : 0;
    int fd;

    if (length == 0 || length >= sizeof(address.sun_path) || (*name != '/' && *name != '@'))
        return;
    memcpy(address.sun_path, name, length);
    if (*name == '@') /* a name without a file begins with a zero byte */
        address.sun_path[0] = '\0';
    fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return;
    (void)sendto(fd, state, strlen(state), MSG_DONTWAIT | MSG_NOSIGNAL, (struct sockaddr *)&address,
                 (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length));
    close(fd);
}
