#include "worker/io/agent_link.h"

#include "base/limits.h"
#include "base/time.h"
#include "proto/codec.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static int address_of(const char *name, struct sockaddr_un *ret_address, socklen_t *ret_length,
                      struct hvd_err *err)
{
    size_t length = strlen(name);

    *ret_address = (struct sockaddr_un){ .sun_family = AF_UNIX };
    if (length >= sizeof(ret_address->sun_path))
        return err_set(err, HVD_E_INVAL,
                       "the agent \"%.16s...\": longer than the name of a socket can be; leave "
                       "HVD_AGENT as hvd-elastic has set it",
                       name);
    memcpy(ret_address->sun_path, name, length);
    if (name[0] == '@')
        ret_address->sun_path[0] = '\0';
    else
        length++;
    *ret_length = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length);
    return 0;
}

static int say_why(const char *name, int number, struct hvd_err *err)
{
    if (number == EAGAIN)
        return err_set(err, HVD_E_TIMEOUT,
                       "the agent at %s does not answer; is its process stopped?", name);
    return err_set(err, HVD_E_LOST,
                   "the agent at %s: %s; it may have ended, and this process is to end too", name,
                   strerror(number));
}

int agent_link_connect(const char *name, int64_t patience_us, int *ret_fd, struct hvd_err *err)
{
    const struct timeval patience = { patience_us / TIME_S, patience_us % TIME_S };
    struct sockaddr_un address;
    socklen_t length = 0;
    int rc;
    int fd;

    rc = address_of(name, &address, &length, err);
    if (rc)
        return rc;
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 && (errno == EMFILE || errno == ENFILE))
        return err_set(err, HVD_E_LIMIT,
                       "no descriptor is left for the agent's socket; raise the limit of open "
                       "files (ulimit -n)");
    if (fd < 0)
        return err_set(err, HVD_E_IO, "%s: %s", name, strerror(errno));
    /* How long a connect waits while the queue of who dials is full; later sends never wait. */
    if (setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience)) ||
        connect(fd, (const struct sockaddr *)&address, length)) {
        rc = say_why(name, errno, err);
        close(fd);
        return rc;
    }
    *ret_fd = fd;
    return 0;
}

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
}

short agent_link_events(const struct agent_link *link)
{
    return link->unsent.length ? POLLIN | POLLOUT : POLLIN;
}

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
            return err_set(err, HVD_E_LOST, "the agent: %s", strerror(errno));
        }
        buf_consume(&link->unsent, (size_t)sent);
    }
    return 0;
}

int agent_link_send(struct agent_link *link, const struct msg *msg, struct hvd_err *err)
{
    int rc;

    if (link->fd < 0)
        return err_set(err, HVD_E_LOST, "the agent is gone");
    rc = msg_encode(msg, &link->unsent, err);
    return rc ? rc : agent_link_flush(link, err);
}

int agent_link_take_fd(struct agent_link *link)
{
    int fd = link->passed_fd;

    link->passed_fd = -1;
    return fd;
}

int agent_link_no_fd(int fd, const char *what, struct hvd_err *err)
{
    if (fd == AGENT_LINK_NO_ROOM)
        return err_set(err, HVD_E_LIMIT,
                       "%s, and no descriptor is left here for it; raise the limit of open files "
                       "(ulimit -n)",
                       what);
    return err_set(err, HVD_E_PROTO, "%s, and did not pass it on", what);
}

static void keep_descriptor(struct agent_link *link, struct msghdr *header)
{
    struct cmsghdr *part;

    for (part = CMSG_FIRSTHDR(header); part; part = CMSG_NXTHDR(header, part)) {
        if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS)
            continue;
        if (link->passed_fd >= 0)
            close(link->passed_fd);
        memcpy(&link->passed_fd, CMSG_DATA(part), sizeof(link->passed_fd));
    }
}

/* 1: something came; 0: nothing now. */
static int read_chunk(struct agent_link *link, struct hvd_err *err)
{
    union {
        struct cmsghdr align;
        char space[CMSG_SPACE(sizeof(int))];
    } control;
    struct iovec into = { link->chunk, sizeof(link->chunk) };
    struct msghdr header = { .msg_iov = &into,
                             .msg_iovlen = 1,
                             .msg_control = &control,
                             .msg_controllen = sizeof(control) };
    ssize_t got;

    do
        got = recvmsg(link->fd, &header, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    while (got < 0 && errno == EINTR);
    if (got < 0 && errno == EAGAIN)
        return 0;
    if (got < 0)
        return err_set(err, HVD_E_LOST, "the agent: %s", strerror(errno));
    if (got == 0)
        return err_set(err, HVD_E_LOST, "the agent is gone");
    keep_descriptor(link, &header);
    if ((header.msg_flags & MSG_CTRUNC) && link->passed_fd < 0)
        link->passed_fd = AGENT_LINK_NO_ROOM;
    link->at = link->chunk;
    link->left = (size_t)got;
    return 1;
}

int agent_link_receive(struct agent_link *link, struct msg *ret_msg, struct hvd_err *err)
{
    struct frame frame;
    int rc;

    for (;;) {
        while (link->left) {
            rc = frame_feed(&link->reader, &link->at, &link->left, &frame, err);
            if (rc < 0)
                return rc;
            if (rc == 1) {
                rc = msg_decode(&frame, ret_msg, err);
                return rc ? rc : 1;
            }
        }
        rc = link->fd >= 0 ? read_chunk(link, err) : 0;
        if (rc <= 0)
            return rc;
    }
}
