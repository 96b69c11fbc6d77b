/*
 * agent_link.c: a worker's Unix socket to its agent: connect, send, receive messages and
 * descriptors.
 *
 * Called by greeting.c and session_thread.c, on one thread. Invariant: no call waits, except
 * agent_link_connect, for a limited time. Bytes that cannot be sent now stay in `unsent`.
 */
#include "worker/io/agent_link.h"

#include "base/limits.h"
#include "os/clock.h"
#include "proto/codec.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/* Connects to the agent's Unix socket, and checks that the listening process is of this user or of
 * root. A name "@..." is in the abstract namespace of Linux: its first byte is 0, and it has no
 * final NUL. */
int agent_link_connect(const char *name, int64_t patience_us, int *ret_fd, struct hvd_err *err)
{
    const struct timeval patience = clock_timeval(patience_us);
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    size_t length = strlen(name);
    int64_t until_us = clock_now_us() + patience_us;
    struct ucred peer;
    socklen_t peer_bytes = sizeof(peer);
    int rc = 0;
    int fd, fault;

    if (length >= sizeof(address.sun_path))
        return err_set(err, HVD_E_INVAL,
                       "HVD_AGENT is \"%.16s...\", which is too long for the name of a socket; "
                       "leave it as hvd-elastic has set it",
                       name);
    memcpy(address.sun_path, name, length);
    if (name[0] == '@')
        address.sun_path[0] = '\0';
    else
        length++;
    length += offsetof(struct sockaddr_un, sun_path);
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 && (errno == EMFILE || errno == ENFILE))
        return err_set(err, HVD_E_LIMIT,
                       "no file descriptor is free for the agent's socket; raise the limit of open "
                       "files (ulimit -n)");
    if (fd < 0)
        return err_set(err, HVD_E_IO, "no Unix socket can be made (%s); allow this call",
                       strerror(errno));
    /* SO_SNDTIMEO limits how long connect() waits while the agent's queue of connections is full
     * (sends use MSG_DONTWAIT and never wait). A signal, also SIGCONT, ends a connect() that waits:
     * then it is called again, until the time has passed. EINTR also as the first value, so that
     * the loop begins. */
    fault = setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience)) ? errno : EINTR;
    while (fault == EINTR) {
        fault = connect(fd, (const struct sockaddr *)&address, (socklen_t)length) ? errno : 0;
        if (fault == EINTR && clock_now_us() >= until_us)
            fault = EAGAIN;
    }
    if (fault) {
        if (fault == EAGAIN)
            rc = err_set(
                err, HVD_E_TIMEOUT,
                "the agent at %s does not answer; if hvd-agent is stopped or hangs, kill it", name);
        else
            rc = err_set(err, HVD_E_LOST,
                         "the agent at %s cannot be reached: %s; if the agent has ended, this "
                         "process must end too",
                         name, strerror(fault));
        close(fd);
        return rc;
    }
    /* When an agent has ended, any user may listen under the name of its socket, which
     * /proc/net/unix shows: so the user of the process that listens is checked. A worker of root
     * accepts an agent of any user, because the command of a job may begin with sudo. */
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &peer_bytes))
        rc = err_set(err, HVD_E_IO, "%s: the agent's user cannot be read (%s); allow getsockopt",
                     name, strerror(errno));
    else if (peer.uid != geteuid() && peer.uid != 0 && geteuid() != 0)
        rc = err_set(
            err, HVD_E_DENIED,
            "%s: process %d of user %u listens at this name, not the agent; end this process", name,
            (int)peer.pid, (unsigned)peer.uid);
    if (rc)
        close(fd);
    else
        *ret_fd = fd;
    return rc;
}

/* Connects to the agent and prepares the link; waits for at most LIMIT_GREETING_US. On failure the
 * link is not open, and nothing needs to be closed. */
int agent_link_open(struct agent_link *link, const char *name, struct hvd_err *err)
{
    int rc = agent_link_connect(name, LIMIT_GREETING_US, &link->fd, err);

    if (rc)
        return rc;
    link->passed_fd = -1;
    link->left = 0;
    frame_reader_init(&link->reader, LIMIT_FRAME_BODY_BYTES);
    buf_init(&link->unsent, 2 * LIMIT_FRAME_BODY_BYTES);
    return 0;
}

/* Closes the socket. Messages that were read and not parsed yet, and unsent ones, are dropped;
 * agent_link_send then fails with HVD_E_LOST. */
void agent_link_cut(struct agent_link *link)
{
    if (link->fd >= 0)
        close(link->fd);
    link->fd = -1;
    link->left = 0;
    buf_clear(&link->unsent);
}

void agent_link_close(struct agent_link *link)
{
    agent_link_cut(link);
    if (link->passed_fd >= 0)
        close(link->passed_fd);
    frame_reader_release(&link->reader);
    buf_release(&link->unsent);
    explicit_bzero(link->chunk, sizeof(link->chunk)); /* a ROUND has the secret of its members */
}

/* Returns the events for poll: input always, and output while messages are unsent. */
short agent_link_events(const struct agent_link *link)
{
    return link->unsent.length ? POLLIN | POLLOUT : POLLIN;
}

/* Sends as many unsent bytes as the socket takes now. HVD_E_LOST: the agent does not read any more,
 * and the unsent bytes are dropped. */
int agent_link_flush(struct agent_link *link, struct hvd_err *err)
{
    while (link->unsent.length) {
        ssize_t sent =
            send(link->fd, link->unsent.data, link->unsent.length, MSG_NOSIGNAL | MSG_DONTWAIT);

        if (sent < 0 && errno == EINTR)
            continue;
        if (sent < 0 && errno == EAGAIN)
            return 0;
        if (sent < 0) {
            buf_clear(&link->unsent);
            return err_set(err, HVD_E_LOST, "%s: " AGENT_LINK_GONE, strerror(errno));
        }
        buf_consume(&link->unsent, (size_t)sent);
    }
    return 0;
}

/* Queues a message behind the unsent ones, and sends what the socket takes now. HVD_E_LOST: the
 * agent is gone, or reads no more. HVD_E_LIMIT: the unsent messages leave no room for this one. */
int agent_link_send(struct agent_link *link, const struct msg *msg, struct hvd_err *err)
{
    int rc;

    if (link->fd < 0)
        return err_set(err, HVD_E_LOST, AGENT_LINK_GONE);
    rc = msg_encode(msg, &link->unsent, err);
    return rc ? rc : agent_link_flush(link, err);
}

/* Returns the descriptor that came with a message, and gives it to the caller; -1: there is none;
 * AGENT_LINK_NO_ROOM: one came, but this process could not receive it. */
int agent_link_take_fd(struct agent_link *link)
{
    int fd = link->passed_fd;

    link->passed_fd = -1;
    return fd;
}

/* Writes into *err why a message came without the descriptor that belongs to it; the text begins
 * with `what`. fd is AGENT_LINK_NO_ROOM: this process has no descriptor free; -1: the agent has
 * sent none. */
int agent_link_no_fd(int fd, const char *what, struct hvd_err *err)
{
    if (fd == AGENT_LINK_NO_ROOM)
        return err_set(
            err, HVD_E_LIMIT,
            "%s, but this process has no free file descriptor for this memory; raise the "
            "limit of open files (ulimit -n)",
            what);
    return err_set(err, HVD_E_PROTO,
                   "%s, but sent no descriptor with the message; install the same release of the "
                   "agent and of libhvd",
                   what);
}

/* Receives the next message: 1: *ret_msg has it; 0: no message is complete yet; below 0: an error.
 * Bytes of the last read that are not parsed yet come first. A descriptor that comes beside a
 * message is kept in `passed_fd`. */
int agent_link_receive(struct agent_link *link, struct msg *ret_msg, struct hvd_err *err)
{
    struct frame frame;
    int rc;

    /* Each pass first parses what the last read has left, and then reads again. */
    for (;;) {
        union {
            struct cmsghdr align;
            char space[CMSG_SPACE(sizeof(int))];
        } control;
        struct iovec into = { link->chunk, sizeof(link->chunk) };
        struct msghdr header = { .msg_iov = &into,
                                 .msg_iovlen = 1,
                                 .msg_control = &control,
                                 .msg_controllen = sizeof(control) };
        struct cmsghdr *part;
        ssize_t got;

        while (link->left) {
            rc = frame_feed(&link->reader, &link->at, &link->left, &frame, err);
            if (rc < 0)
                return rc;
            if (rc == 1) {
                rc = msg_decode(&frame, ret_msg, err);
                return rc ? rc : 1;
            }
        }
        if (link->fd < 0) /* the link was cut, and its end was reported before */
            return 0;
        do
            got = recvmsg(link->fd, &header, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
        while (got < 0 && errno == EINTR);
        if (got < 0 && errno == EAGAIN)
            return 0;
        if (got < 0)
            return err_set(err, HVD_E_LOST, "%s: " AGENT_LINK_GONE, strerror(errno));
        if (got == 0)
            return err_set(err, HVD_E_LOST, AGENT_LINK_GONE);
        for (part = CMSG_FIRSTHDR(&header); part; part = CMSG_NXTHDR(&header, part)) {
            if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS)
                continue;
            if (link->passed_fd >= 0) /* no caller has taken the descriptor that came before */
                close(link->passed_fd);
            memcpy(&link->passed_fd, CMSG_DATA(part), sizeof(link->passed_fd));
        }
        /* the kernel could not give this process a descriptor: too many are open */
        if ((header.msg_flags & MSG_CTRUNC) && link->passed_fd < 0)
            link->passed_fd = AGENT_LINK_NO_ROOM;
        link->at = link->chunk;
        link->left = (size_t)got;
    }
}
