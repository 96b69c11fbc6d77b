#include "base/mem.h"
#include "base/panic.h"
#include "collectives/link/tcp_inside.h"

#include <errno.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

struct tcp_device {
    struct tcp_address here;
};

static int cannot_listen(const char *host, struct hvd_err *err)
{
    if (errno == EMFILE || errno == ENFILE)
        return err_set(err, HVD_E_LIMIT, "no descriptor is left; raise the limit (ulimit -n)");
    return err_set(err, HVD_E_IO, "cannot listen on %s: %s; it must be an address of this machine",
                   host, strerror(errno));
}

/* What is wrong with the address shows here, not in the first round. */
int tcp_device_open(const char *host, struct tcp_device **ret_device, struct hvd_err *err)
{
    struct tcp_address here, tried;
    struct tcp_device *device;
    int fd;

    if (tcp_address_parse(host, &here))
        return err_set(err, HVD_E_INVAL, "\"%s\" is no numeric address", host);
    tried = here;
    fd = tcp_listen(&tried);
    if (fd < 0)
        return cannot_listen(host, err);
    close(fd);
    device = mem_zalloc(sizeof(*device));
    if (!device)
        return err_set(err, HVD_E_NOMEM, "out of memory");
    device->here = here;
    *ret_device = device;
    return 0;
}

void tcp_device_close(struct tcp_device *device)
{
    mem_free(device);
}

/* ---- its parts ---- */

struct tcp_peer *tcp_find(struct tcp_link *link, uint32_t rank)
{
    for (size_t i = 0; i < link->peer_count; i++) {
        if (link->peers[i].rank == rank)
            return &link->peers[i];
    }
    PANIC("rank %u is no peer of this link", rank);
}

/* What comes after a cancel is as what was there: shut down. */
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

void tcp_move(struct tcp_link *link, int *place, int *from)
{
    pthread_mutex_lock(&link->mutex);
    *place = *from;
    *from = -1;
    pthread_mutex_unlock(&link->mutex);
}

/* The port is that of the link, the token that of the peer. */
static int tcp_link_address(struct link *base, uint32_t rank, uint8_t *ret_bytes,
                            size_t *ret_length, struct hvd_err *err)
{
    struct tcp_link *link = tcp_of(base);
    struct tcp_address address = link->here;

    (void)err;
    memcpy(address.token, tcp_find(link, rank)->token, TCP_TOKEN_BYTES);
    tcp_address_write(&address, ret_bytes);
    *ret_length = TCP_ADDRESS_BYTES;
    return 0;
}

static void tcp_link_no_care(struct link *base)
{
    (void)base; /* no write of ours raises a signal */
}

/* ---- the end ---- */

static void shut(int fd)
{
    if (fd >= 0)
        (void)shutdown(fd, SHUT_RDWR);
}

/* The eventfd is not read any more: every poll to come returns at once. */
static void tcp_link_cancel(struct link *base)
{
    struct tcp_link *link = tcp_of(base);

    pthread_mutex_lock(&link->mutex);
    if (!atomic_exchange(&link->cancelled, true)) {
        (void)eventfd_write(link->wake, 1);
        shut(link->listener);
        for (size_t i = 0; i < link->peer_count; i++)
            shut(link->peers[i].fd);
        for (size_t i = 0; i < TCP_STRANGERS_MAX; i++)
            shut(link->strangers[i].fd);
    }
    pthread_mutex_unlock(&link->mutex);
}

static void drop_fd(int fd)
{
    if (fd >= 0)
        close(fd);
}

/* Closes softly: what has been sent still arrives, if what the peer has sent has been read. */
static void tcp_link_free(struct link *base)
{
    struct tcp_link *link = tcp_of(base);

    for (size_t i = 0; i < link->peer_count; i++) {
        drop_fd(link->peers[i].fd);
        inbox_release(&link->peers[i].inbox);
    }
    for (size_t i = 0; i < TCP_STRANGERS_MAX; i++)
        drop_fd(link->strangers[i].fd);
    drop_fd(link->listener);
    drop_fd(link->wake);
    pthread_mutex_destroy(&link->mutex);
    mem_free(link->polled);
    mem_free(link->peers);
    mem_free(link);
}

static const struct link_ops operations = {
    .address = tcp_link_address,
    .connect = tcp_link_connect,
    .connected = tcp_link_connected,
    .enter = tcp_link_no_care,
    .leave = tcp_link_no_care,
    .send = tcp_link_send,
    .receive = tcp_link_receive,
    .wait = tcp_link_wait,
    .drop = tcp_link_drop,
    .cancel = tcp_link_cancel,
    .free = tcp_link_free,
};

/* ---- the beginning ---- */

static int init_peer(struct tcp_peer *peer, uint32_t rank)
{
    peer->rank = rank;
    peer->fd = -1;
    list_init(&peer->sends);
    inbox_init(&peer->inbox);
    return getrandom(peer->token, TCP_TOKEN_BYTES, 0) == TCP_TOKEN_BYTES ? 0 : HVD_E_IO;
}

static int init(struct tcp_link *link, const uint32_t *peers, size_t peer_count,
                struct hvd_err *err)
{
    link->peers = mem_zalloc_array(peer_count, sizeof(*link->peers));
    link->polled = mem_zalloc_array(2 + peer_count + TCP_STRANGERS_MAX, sizeof(*link->polled));
    if (!link->peers || !link->polled)
        return err_set(err, HVD_E_NOMEM, "out of memory");
    for (size_t i = 0; i < peer_count; i++) {
        if (init_peer(&link->peers[link->peer_count++], peers[i]))
            return err_set(err, HVD_E_IO, "the kernel gives no random bytes");
    }
    link->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (link->wake < 0)
        return err_set(err, HVD_E_LIMIT, "no descriptor is left; raise the limit (ulimit -n)");
    link->listener = tcp_listen(&link->here);
    return link->listener < 0 ? cannot_listen("the address of the links", err) : 0;
}

int tcp_link_create(const struct tcp_device *device, uint32_t rank, const uint32_t *peers,
                    size_t peer_count, struct link **ret_link, struct hvd_err *err)
{
    struct tcp_link *link = mem_zalloc(sizeof(*link));
    int rc;

    if (!link)
        return err_set(err, HVD_E_NOMEM, "out of memory");
    link->base.ops = &operations;
    link->rank = rank;
    link->here = device->here;
    link->listener = -1;
    link->wake = -1;
    pthread_mutex_init(&link->mutex, NULL);
    for (size_t i = 0; i < TCP_STRANGERS_MAX; i++)
        link->strangers[i].fd = -1;
    rc = init(link, peers, peer_count, err);
    if (rc) {
        tcp_link_free(&link->base);
        return rc;
    }
    *ret_link = &link->base;
    return 0;
}
