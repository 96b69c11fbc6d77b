/*
 * flood.c: the stranger of tests/attack: opens many connections to ports of a job, says nothing or
 * a few bytes on them, and opens those again that are closed. Started by the scripts of
 * tests/attack and by the faults of chaos. Invariant: it dials addresses of the loopback, and of
 * the networks fd77:N::/32 that tests make, holds no more than --connections to each port, and ends
 * at SIGTERM, at the end of --seconds, or with its parent.
 *
 * It prints "standing" when each port has been dialled --connections times, and at its end how many
 * connections it made.
 */
#include "base/mem.h"
#include "base/time.h"
#include "os/clock.h"
#include "tests/workers/worker_options.h"

#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#define PORTS_MAX 256
#define TICK_US   (5 * TIME_MS)
/* The first bytes of a TLS record that says that it is a handshake of 512 bytes. */
#define BYTES "\x16\x03\x01\x02\x00"

struct flood_options {
    struct opt_set set;
    uint64_t connections;
    uint64_t seconds;
    uint64_t rate;
    uint64_t sources;
    char *from;
    struct opt_list ports;
    bool speak;
    bool help;
};

/* IPv4, or IPv6, of which this program uses one source address only. */
union flood_address {
    struct sockaddr any;
    struct sockaddr_in four;
    struct sockaddr_in6 six;
};

struct flood_port {
    union flood_address at;
    socklen_t length;
    uint64_t dialled; /* also those that were closed again */
    uint64_t closed;  /* connections that the port has closed */
    uint64_t refused;
    uint64_t held; /* connections that are open or being opened */
};

struct flood {
    const struct flood_options *options;
    struct flood_port ports[PORTS_MAX];
    size_t port_count;
    uint32_t *port_of; /* by descriptor: index of its port, plus 1; 0: none */
    size_t room;
    size_t turn; /* the port that is dialled next, modulo their count */
    int epoll;
    bool stood;
};

static volatile sig_atomic_t over;

static void flood_on_signal(int number)
{
    (void)number;
    over = 1;
}

#define ROW(...) OPT(struct flood_options, __VA_ARGS__)
static const struct opt table[] = {
    ROW(connections, .name = "connections", .arg = "N", .min = 1, .max = 100000, .preset = "300",
        .group = "flood", .help = "connections to each port that are held open"),
    ROW(seconds, .name = "seconds", .arg = "S", .min = 1, .max = 600, .preset = "60",
        .group = "flood", .help = "how long at most"),
    ROW(rate, .name = "rate", .arg = "N", .min = 1, .max = 1000000, .preset = "2000",
        .group = "flood", .help = "connections a second at most, to all ports together"),
    ROW(from, .name = "from", .arg = "ADDRESS", .preset = "127.0.0.99", .group = "flood",
        .help = "the address that the connections come from"),
    ROW(sources, .name = "sources", .arg = "N", .min = 1, .max = 200, .preset = "1",
        .group = "flood", .help = "how many addresses, from that one upwards, take turns"),
    ROW(ports, .name = "port", .arg = "ADDRESS:PORT", .min = 1, .group = "flood",
        .help = "a port of the loopback; may be repeated"),
    ROW(speak, .name = "speak", .group = "flood",
        .help = "say the beginning of a handshake on each connection, and no more"),
    ROW(help, .name = "help", .key = 'h', .flags = OPT_ARGV_ONLY, .group = "flood",
        .help = "this text"),
};

static uint16_t flood_port_number(const struct flood_port *port)
{
    return ntohs(port->at.any.sa_family == AF_INET6 ? port->at.six.sin6_port
                                                    : port->at.four.sin_port);
}

static bool flood_add_port(struct flood *flood, const char *text)
{
    struct flood_port *port = &flood->ports[flood->port_count];
    char host[64];
    const char *colon = strrchr(text, ':');
    unsigned long number = colon ? strtoul(colon + 1, NULL, 10) : 0;

    if (!colon || (size_t)(colon - text) >= sizeof(host) || flood->port_count == PORTS_MAX)
        return false;
    memcpy(host, text, (size_t)(colon - text));
    host[colon - text] = '\0';
    if (number == 0 || number > UINT16_MAX)
        return false;
    if (host[0] == '[') {
        port->length = sizeof(port->at.six);
        port->at.six.sin6_family = AF_INET6;
        port->at.six.sin6_port = htons((uint16_t)number);
        host[strcspn(host, "]")] = '\0';
        if (inet_pton(AF_INET6, host + 1, &port->at.six.sin6_addr) != 1 ||
            (!IN6_IS_ADDR_LOOPBACK(&port->at.six.sin6_addr) && strncmp(host, "[fd77:", 6) != 0))
            return false;
    } else {
        port->length = sizeof(port->at.four);
        port->at.four.sin_family = AF_INET;
        port->at.four.sin_port = htons((uint16_t)number);
        if (inet_pton(AF_INET, host, &port->at.four.sin_addr) != 1 ||
            ntohl(port->at.four.sin_addr.s_addr) >> 24 != 127)
            return false;
    }
    flood->port_count++;
    return true;
}

/* Opens one more connection. false: no descriptor or port is left here. */
static bool flood_dial(struct flood *flood, size_t index)
{
    struct flood_port *port = &flood->ports[index];
    union flood_address from = port->at;
    struct epoll_event event = { .events = EPOLLIN | EPOLLRDHUP | EPOLLOUT | EPOLLET };
    int on = 1;
    int fd = socket(port->at.any.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

    if (fd < 0 || (size_t)fd >= flood->room) {
        if (fd >= 0)
            close(fd);
        return false;
    }
    if (from.any.sa_family == AF_INET6) {
        from.six.sin6_port = 0;
        from.six.sin6_addr = in6addr_any;
    } else {
        from.four.sin_port = 0;
        inet_pton(AF_INET, flood->options->from, &from.four.sin_addr);
        from.four.sin_addr.s_addr = htonl(ntohl(from.four.sin_addr.s_addr) +
                                          (uint32_t)(port->dialled % flood->options->sources));
    }
    (void)setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof(on));
    event.data.fd = fd;
    port->dialled++;
    if (bind(fd, &from.any, port->length) ||
        (connect(fd, &port->at.any, port->length) && errno != EINPROGRESS) ||
        epoll_ctl(flood->epoll, EPOLL_CTL_ADD, fd, &event)) {
        port->refused++;
        close(fd);
        return errno != EADDRNOTAVAIL;
    }
    flood->port_of[fd] = (uint32_t)index + 1;
    port->held++;
    return true;
}

/* A connection is open, or the other side has closed it. */
static void flood_hear(struct flood *flood, const struct epoll_event *event)
{
    int fd = event->data.fd;
    struct flood_port *port = &flood->ports[flood->port_of[fd] - 1];
    char byte;

    if (event->events & (EPOLLERR | EPOLLHUP | EPOLLRDHUP) ||
        (event->events & EPOLLIN && recv(fd, &byte, 1, 0) == 0)) {
        port->closed++;
        port->held--;
        flood->port_of[fd] = 0;
        close(fd);
    } else if (event->events & EPOLLOUT && flood->options->speak) {
        (void)!send(fd, BYTES, sizeof(BYTES) - 1, MSG_NOSIGNAL);
    }
}

/* Dials what the time since the last call allows, to each port in turn. */
static void flood_dial_all(struct flood *flood, uint64_t allowed)
{
    bool stands = true;

    for (size_t looked = 0; allowed && looked < flood->port_count; flood->turn++) {
        size_t i = flood->turn % flood->port_count;

        looked++;
        if (flood->ports[i].held >= flood->options->connections)
            continue;
        if (!flood_dial(flood, i))
            break;
        allowed--;
        looked = 0;
    }
    for (size_t i = 0; i < flood->port_count; i++)
        stands &= flood->ports[i].dialled >= flood->options->connections;
    if (stands && !flood->stood) {
        flood->stood = true;
        puts("standing");
        fflush(stdout);
    }
}

static void flood_run(struct flood *flood)
{
    int64_t begun_us = clock_now_us(), now_us = begun_us;
    int64_t until_us = begun_us + (int64_t)flood->options->seconds * TIME_S;
    uint64_t allowed = 0;
    struct epoll_event events[256];

    while (!over && now_us < until_us) {
        uint64_t by_now =
            (uint64_t)(now_us - begun_us) * flood->options->rate / (uint64_t)TIME_S + 1;
        int count;

        flood_dial_all(flood, by_now - allowed);
        allowed = by_now;
        count = epoll_wait(flood->epoll, events, ARRAY_SIZE(events), (int)(TICK_US / TIME_MS));
        for (int i = 0; i < count; i++)
            if (flood->port_of[events[i].data.fd])
                flood_hear(flood, &events[i]);
        now_us = clock_now_us();
    }
}

int main(int argc, char **argv)
{
    static struct flood_options options;
    const struct worker_options reads = { .program = "flood",
                                          .about = "Fills ports of the loopback with connections.",
                                          .table = table,
                                          .count = ARRAY_SIZE(table),
                                          .into = &options,
                                          .help = &options.help };
    static struct flood flood;
    struct rlimit files;
    int status = 0;

    if (!worker_options_read(&reads, &options.set, argc, argv, &status)) {
        opt_release(&options.set);
        return status;
    }
    (void)prctl(PR_SET_PDEATHSIG, SIGTERM);
    signal(SIGTERM, flood_on_signal);
    signal(SIGINT, flood_on_signal);
    getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max;
    (void)setrlimit(RLIMIT_NOFILE, &files);
    flood.options = &options;
    for (size_t i = 0; i < options.ports.count; i++)
        if (!flood_add_port(&flood, options.ports.items[i])) {
            fprintf(stderr, "flood: %s is no ADDRESS:PORT of the loopback or of fd77:N::\n",
                    options.ports.items[i]);
            opt_release(&options.set);
            return 2;
        }
    flood.room = files.rlim_max < 1000000 ? (size_t)files.rlim_max : 1000000;
    flood.port_of = mem_zalloc_array(flood.room, sizeof(*flood.port_of));
    flood.epoll = epoll_create1(EPOLL_CLOEXEC);
    if (!flood.port_of || flood.epoll < 0 || !flood.port_count) {
        fputs("flood: no memory, or no --port to dial\n", stderr);
        mem_free(flood.port_of);
        opt_release(&options.set);
        return 2;
    }
    flood_run(&flood);
    for (size_t i = 0; i < flood.port_count; i++)
        printf("port %u: %" PRIu64 " dialled, %" PRIu64 " closed by it, %" PRIu64
               " refused, %" PRIu64 " held at the end\n",
               flood_port_number(&flood.ports[i]), flood.ports[i].dialled, flood.ports[i].closed,
               flood.ports[i].refused, flood.ports[i].held);
    mem_free(flood.port_of);
    opt_release(&options.set);
    return 0;
}
