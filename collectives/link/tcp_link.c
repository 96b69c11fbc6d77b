/*
 * tcp_link.c: makes, cancels and frees a link over TCP (tcp_internal.h lists the files of such a
 * link). Every descriptor of a link is set and removed with the link's mutex locked. So a cancel,
 * from any thread, shuts down all descriptors; and a descriptor that is set after a cancel is shut
 * down at once.
 */
#include "base/mem.h"
#include "base/panic.h"
#include "collectives/link/tcp_sealed.h"
#include "collectives/link/tcp_speed.h"

#include <errno.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

/* Writes the error of a failed listen at `host`; the reason is in errno. Returns the error's code.
 */
static int fail_listen(const char *host, struct hvd_err *err)
{
    if (errno == EMFILE || errno == ENFILE)
        return err_set(
            err, HVD_E_LIMIT,
            "no file descriptor is left for the links between workers; raise the limit of open "
            "files (ulimit -n)");
    return err_set(err, HVD_E_IO,
                   "this worker cannot listen on %s: %s; choose an address of this machine with "
                   "--network-interface",
                   host, strerror(errno));
}

/* Checks that this process can listen at `host`, by listening there for a moment; each link listens
 * at a port of its own later. *ret_here: the address, with port 0. */
int tcp_link_host(const char *host, struct endpoint *ret_here, struct hvd_err *err)
{
    struct endpoint tried;
    int fd;

    if (endpoint_parse(host, 0, ret_here))
        return err_set(err, HVD_E_INVAL,
                       "\"%s\" is no numeric address; give an IP address of this machine", host);
    tried = *ret_here;
    fd = socket_listen(&tried);
    if (fd < 0)
        return fail_listen(host, err);
    close(fd);
    return 0;
}

/* Returns the peer with this rank. A rank that is no peer of this link is a bug of the caller. */
struct tcp_peer *tcp_find(struct tcp_link *link, uint32_t rank)
{
    for (size_t i = 0; i < link->peer_count; i++) {
        if (link->peers[i].rank == rank)
            return &link->peers[i];
    }
    PANIC("rank %u is no peer of this link", rank);
}

/* Stores `fd` (-1: none) in *place, and closes the descriptor that *place had before. After a
 * cancel `fd` is shut down at once, as cancel has done with the earlier descriptors. */
void tcp_replace(struct tcp_link *link, int *place, int fd)
{
    int old;

    pthread_mutex_lock(&link->mutex);
    old = *place;
    *place = fd;
    if (fd >= 0 && atomic_load(&link->cancelled))
        (void)shutdown(fd, SHUT_RDWR);
    pthread_mutex_unlock(&link->mutex);
    if (old >= 0)
        close(old);
}

/* Writes our address for a peer: the IP address and port of the link, and the token for this
 * peer. */
static int tcp_link_address(struct link *base, uint32_t rank, uint8_t *ret_bytes,
                            size_t *ret_length, struct hvd_err *err)
{
    struct tcp_link *link = tcp_of(base);
    struct tcp_address address = { .at = link->told };

    (void)err;
    address.at.port = link->here.at.port;
    memcpy(address.token, tcp_find(link, rank)->token, TCP_TOKEN_BYTES);
    tcp_address_write(&address, ret_bytes);
    *ret_length = TCP_ADDRESS_BYTES;
    return 0;
}

/* The operations enter and leave: nothing to do, because writes to a TCP link never raise SIGPIPE.
 */
static void tcp_link_nothing(struct link *base)
{
    (void)base;
}

/* Ends both directions of a socket, which stays open; -1: there is none. */
static void shut_fd(int fd)
{
    if (fd >= 0)
        (void)shutdown(fd, SHUT_RDWR);
}

/* Cancels the link: shuts all its sockets down, which ends every wait for them. The descriptors
 * stay open, because another thread may use them. The eventfd `wake` is never read, so every poll
 * from now on returns at once. */
static void tcp_link_cancel(struct link *base)
{
    struct tcp_link *link = tcp_of(base);

    pthread_mutex_lock(&link->mutex);
    if (!atomic_exchange(&link->cancelled, true)) {
        (void)eventfd_write(link->wake, 1);
        shut_fd(link->listener);
        for (size_t i = 0; i < link->peer_count; i++)
            shut_fd(link->peers[i].fd);
        for (size_t i = 0; i < TCP_STRANGERS_MAX; i++)
            shut_fd(link->strangers[i].fd);
    }
    pthread_mutex_unlock(&link->mutex);
}

/* Closes the descriptor; -1: there is none. */
static void close_fd(int fd)
{
    if (fd >= 0)
        close(fd);
}

/* Frees the link. The connections are closed in the normal way: bytes that we have sent still
 * arrive, if we have read all bytes that the peer has sent. With --data-security auto the speed of
 * each sealed connection is noted, for the next round's choice between encryption and
 * authentication. */
static void tcp_link_free(struct link *base)
{
    struct tcp_link *link = tcp_of(base);

    for (size_t i = 0; i < link->peer_count; i++) {
        if (link->peers[i].sealed && link->round->security == LINK_SECURITY_AUTO)
            speed_note(link->speed, link->peers[i].fd);
        close_fd(link->peers[i].fd);
        inbox_release(&link->peers[i].inbox);
        sealed_free(link->peers[i].sealed);
        /* a handshake that was not finished has left the keys of the connection in peer->keys */
        seal_wipe(&link->peers[i].keys, sizeof(link->peers[i].keys));
    }
    for (size_t i = 0; i < TCP_STRANGERS_MAX; i++)
        close_fd(link->strangers[i].fd);
    close_fd(link->listener);
    close_fd(link->wake);
    pthread_mutex_destroy(&link->mutex);
    mem_free(link->polled);
    mem_free(link->peers);
    mem_free(link);
}

static const struct link_ops operations = {
    .address = tcp_link_address,
    .connect = tcp_link_connect,
    .connected = tcp_link_connected,
    .enter = tcp_link_nothing,
    .leave = tcp_link_nothing,
    .send = tcp_link_send,
    .receive = tcp_link_receive,
    .wait = tcp_link_wait,
    .drop = tcp_link_drop,
    .why = tcp_link_why,
    .cancel = tcp_link_cancel,
    .free = tcp_link_free,
};

/* Makes a link that listens at a port of its own, and has a token for each peer. It is not
 * connected: the other side of each pair must get our address first (link.h). */
int tcp_link_create(const struct endpoint *here, const struct endpoint *told,
                    struct tcp_speed *speed, const struct link_spec *spec, struct link **ret_link,
                    struct hvd_err *err)
{
    struct tcp_link *link = mem_zalloc(sizeof(*link));
    int rc = 0;

    if (!link)
        return err_set(err, HVD_E_NOMEM,
                       "no memory for the links between workers; free memory on this host");
    link->base.ops = &operations;
    link->rank = spec->rank;
    link->round = spec->round;
    link->speed = speed;
    link->here.at = *here;
    link->told = *told;
    link->listener = -1;
    link->wake = -1;
    pthread_mutex_init(&link->mutex, NULL);
    door_init(&link->door, TCP_STRANGERS_MAX, TCP_STRANGERS_EACH);
    for (size_t i = 0; i < TCP_STRANGERS_MAX; i++) {
        link->strangers[i].fd = -1;
        list_init(&link->strangers[i].guest.link);
    }
    link->peers = mem_zalloc_array(spec->peer_count, sizeof(*link->peers));
    /* the 2: the eventfd `wake`, and the listener */
    link->polled =
        mem_zalloc_array(2 + spec->peer_count + TCP_STRANGERS_MAX, sizeof(*link->polled));
    if (!link->peers || !link->polled)
        rc = err_set(
            err, HVD_E_NOMEM,
            "no memory for the peers of the links between workers; free memory on this host");

    for (size_t i = 0; i < spec->peer_count && !rc; i++) {
        struct tcp_peer *peer = &link->peers[link->peer_count++];

        peer->rank = spec->peers[i];
        peer->incarnation = spec->round->incarnations[peer->rank];
        peer->fd = -1;
        list_init(&peer->sends);
        inbox_init(&peer->inbox);
        if (seal_random(peer->token, TCP_TOKEN_BYTES))
            rc = err_set(
                err, HVD_E_IO,
                "the kernel gives no random bytes; allow the call getrandom in this container");
    }
    if (!rc && (link->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) < 0)
        rc = err_set(
            err, HVD_E_LIMIT,
            "no file descriptor is left for the links between workers; raise the limit of open "
            "files (ulimit -n)");
    if (!rc && (link->listener = socket_listen(&link->here.at)) < 0)
        rc = fail_listen("the address of the links", err);
    if (rc)
        tcp_link_free(&link->base);
    else
        *ret_link = &link->base;
    return rc;
}
