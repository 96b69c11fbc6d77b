/*
 * tcp_inside.h: what the files of a TCP link share.
 *
 *     who dials, the lower rank:   NEW ──► DIALS ──► ASKS ──► READY ──► GONE
 *                                           ▲─────────┘ it broke: again, a few times
 *     who is dialled:              NEW ──► ANSWERS ──► READY ──► GONE
 *
 * A connection that was accepted is a stranger's until its greeting has been read.
 */
#ifndef COLLECTIVES_LINK_TCP_INSIDE_H
#define COLLECTIVES_LINK_TCP_INSIDE_H

#include "collectives/link/inbox.h"
#include "collectives/link/tcp_link.h"

#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>

#define TCP_STRANGERS_MAX 64

enum tcp_stage { TCP_NEW, TCP_DIALS, TCP_ASKS, TCP_ANSWERS, TCP_READY, TCP_GONE };

struct tcp_greets { /* a greeting on its way, in or out */
    uint8_t bytes[TCP_GREETING_BYTES];
    size_t count;
};

struct tcp_peer {
    uint32_t rank;
    enum tcp_stage stage;
    int fd;                         /* -1: none */
    size_t polled;                  /* its place in link->polled; 0: none */
    uint8_t token[TCP_TOKEN_BYTES]; /* what it has to say to us */
    bool begun;                     /* we know what to say to it: */
    struct tcp_address told;
    unsigned dials;
    struct tcp_greets out, in;

    bool mute;         /* nothing can be written any more */
    struct list sends; /* what is not written yet; the first may be in part */
    struct inbox inbox;
};

struct tcp_stranger {
    int fd; /* -1: none */
    int64_t since_us;
    size_t polled; /* its place in link->polled; 0: none */
    struct tcp_greets in;
};

struct tcp_link {
    struct link base;
    struct tcp_address here;
    uint32_t rank;
    struct tcp_peer *peers;
    size_t peer_count;
    struct tcp_stranger strangers[TCP_STRANGERS_MAX];
    int listener;           /* -1: all are connected */
    struct pollfd *polled;  /* wake, then those that something is wanted of */
    size_t listener_polled; /* its place there; 0: none */
    int wake;               /* an eventfd: cancelled */
    atomic_bool cancelled;
    pthread_mutex_t mutex; /* a descriptor comes or goes, and cancel looks at them all */
};

static inline struct tcp_link *tcp_of(struct link *link)
{
    return (struct tcp_link *)(void *)link;
}

/* tcp_socket.c: sockets that never wait. -1: errno. */
int tcp_address_parse(const char *host, struct tcp_address *ret_address) MUST_CHECK;
int tcp_listen(struct tcp_address *address); /* its port is filled in */
int tcp_accept(int listener);
int tcp_dial(const struct tcp_address *address);
int tcp_fault(int fd);      /* what has become of a dial: 0, or an errno */
bool tcp_is_silent(int fd); /* its machine has stopped to answer */

/* tcp_connect.c */
int tcp_link_connect(struct link *base, uint32_t rank, const uint8_t *bytes, size_t length,
                     struct hvd_err *err) MUST_CHECK;
int tcp_link_connected(struct link *base, int64_t deadline_us, uint32_t *ret_rank,
                       struct hvd_err *err) MUST_CHECK;

/* tcp_stream.c */
int tcp_link_send(struct link *base, uint32_t rank, uint64_t tag, const void *bytes, size_t length,
                  struct link_request **ret_request) MUST_CHECK;
int tcp_link_receive(struct link *base, uint32_t rank, uint64_t tag, void *bytes, size_t length,
                     struct link_request **ret_request) MUST_CHECK;
int tcp_link_wait(struct link *base, struct link_request *awaited) MUST_CHECK;
void tcp_link_drop(struct link *base, struct link_request *dropped);

/* tcp_link.c */
struct tcp_peer *tcp_find(struct tcp_link *link, uint32_t rank); /* one of the link's peers */
/* Closes what is in the place, and puts this there (-1: nothing). */
void tcp_replace(struct tcp_link *link, int *place, int fd);
void tcp_move(struct tcp_link *link, int *place, int *from);

#endif
