/*
 * front_link.c: the messages between a driver and its parent. front.c calls it in the parent, run.c
 * and driver/io/parent.c in the driver. A message of the wrong size or kind counts as the end of
 * the link.
 */
#include "driver/front/front_link.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* Makes a pair of sockets, on which each message arrives whole or not at all (SOCK_SEQPACKET), and
 * on which no call waits. */
int front_link_open(int ret_fds[2], struct hvd_err *err)
{
    if (!socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ret_fds))
        return 0;
    return err_set(err, HVD_E_LIMIT, "no socket can be made: %s; raise ulimit -n", strerror(errno));
}

void front_link_send(int fd, const struct front_msg *msg)
{
    if (fd >= 0)
        (void)TEMP_FAILURE_RETRY(send(fd, msg, sizeof(*msg), MSG_NOSIGNAL));
}

/* Takes the next message. HVD_E_BUSY: there is none now. HVD_E_LOST: the other process has closed
 * the link, or what came is no message. */
int front_link_take(int fd, struct front_msg *ret_msg)
{
    struct front_msg msg;
    ssize_t got = TEMP_FAILURE_RETRY(recv(fd, &msg, sizeof(msg), 0));

    if (got < 0 && errno == EAGAIN)
        return HVD_E_BUSY;
    if (got != sizeof(msg) || msg.kind < FRONT_TAKEN || msg.kind >= FRONT_KINDS)
        return HVD_E_LOST;
    msg.job[sizeof(msg.job) - 1] = '\0';
    *ret_msg = msg;
    return 0;
}
