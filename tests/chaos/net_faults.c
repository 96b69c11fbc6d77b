/*
 * net_faults.c: a thread that passes packets between a host and this machine through a tun device,
 * and loses, delays, doubles or reorders them as its seed says.
 */
#include "tests/chaos/net_faults.h"

#include "base/mem.h"
#include "base/rng.h"
#include "os/clock.h"
#include "os/thread.h"
#include "tests/chaos/mitm.h"
#include "tests/chaos/networks.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define DEVICE       "/dev/net/tun"
#define PACKETS      4096 /* packets under way; more packets are lost, as in a router */
#define PACKET_BYTES 2048
#define TABLE        1000 /* the routing table of host N has the number TABLE + N */

struct packet {
    struct packet *next;
    int64_t due_us;
    size_t length;
    char bytes[PACKET_BYTES];
};

struct net_faults {
    uint32_t number;
    struct net_faults_rates rates;
    struct net_faults_count count;
    struct rng rng;
    pthread_t thread;
    int device;
    int stop;              /* an eventfd; readable: the thread must end */
    struct packet *flying; /* ordered by the time at which they are due */
    struct packet *unused;
    struct packet *packets;
};

const char *net_faults_missing(void)
{
    return access(DEVICE, R_OK | W_OK) ? "there is no " DEVICE : NULL;
}

/* ---- the thread ---- */

static bool chance(struct net_faults *net, uint32_t of_a_thousand)
{
    return rng_below(&net->rng, 1000) < of_a_thousand;
}

/* Inserts the packet after all packets that are due at the same time or earlier, so that packets
 * change their order only on purpose. */
static void send_off(struct net_faults *net, const char *bytes, size_t length, int64_t due_us)
{
    struct packet *packet = net->unused;
    struct packet **at = &net->flying;

    if (!packet) {
        net->count.lost++;
        return;
    }
    net->unused = packet->next;
    packet->due_us = due_us;
    packet->length = length;
    memcpy(packet->bytes, bytes, length);
    while (*at && (*at)->due_us <= due_us)
        at = &(*at)->next;
    packet->next = *at;
    *at = packet;
}

/* Takes a packet that the man in the middle sends on. */
static void emit_packet(void *arg, const char *bytes, size_t length)
{
    struct net_faults *net = arg;

    send_off(net, bytes, length, clock_now_us());
}

/* A packet came in: loses it, or sends it off with its delay, once or twice, as chance says. */
static void take_packet(struct net_faults *net, char *bytes, size_t length)
{
    int64_t due_us = clock_now_us() + net->rates.delay_us;

    net->count.packets++;
    if (net->rates.mitm) {
        mitm_pass(net->rates.mitm, bytes, length, emit_packet, net);
        return;
    }
    if (chance(net, net->rates.lost)) {
        net->count.lost++;
        return;
    }
    if (chance(net, net->rates.overtaken)) {
        net->count.overtaken++;
        due_us += NET_FAULTS_LATE_US;
    }
    send_off(net, bytes, length, due_us);
    if (chance(net, net->rates.doubled)) {
        net->count.doubled++;
        send_off(net, bytes, length, due_us);
    }
}

/* Writes the packets that are due to the device. A packet that the kernel refuses is lost. */
static void deliver_due_packets(struct net_faults *net, int64_t now_us)
{
    while (net->flying && net->flying->due_us <= now_us) {
        struct packet *packet = net->flying;

        net->flying = packet->next;
        if (write(net->device, packet->bytes, packet->length) < 0)
            net->count.lost++;
        packet->next = net->unused;
        net->unused = packet;
    }
}

/* The thread: reads packets from the device and delivers those that are due, until `stop` is
 * readable. */
static void *carry(void *arg)
{
    struct net_faults *net = arg;
    struct pollfd fds[] = {
        {.fd = net->device, .events = POLLIN},
        { .fd = net->stop,  .events = POLLIN}
    };

    while (!fds[1].revents) {
        int64_t left_us = net->flying ? net->flying->due_us - clock_now_us() : -1;
        struct timespec left = { .tv_sec = left_us / 1000000, .tv_nsec = left_us % 1000000 * 1000 };
        char bytes[PACKET_BYTES];
        ssize_t got;

        if (!net->flying)
            (void)poll(fds, 2, -1);
        else if (left_us > 0)
            (void)ppoll(fds, 2, &left, NULL);
        else
            (void)poll(fds, 2, 0);
        while ((got = read(net->device, bytes, sizeof(bytes))) > 0)
            take_packet(net, bytes, (size_t)got);
        deliver_due_packets(net, clock_now_us());
    }
    deliver_due_packets(net, INT64_MAX);
    return NULL;
}

/* ---- the route through the device ---- */

static int make_device(struct net_faults *net, struct hvd_err *err)
{
    struct ifreq request = { .ifr_flags = IFF_TUN | IFF_NO_PI };

    snprintf(request.ifr_name, sizeof(request.ifr_name), "lossy%u", net->number);
    net->device = open(DEVICE, O_RDWR | O_NONBLOCK | O_CLOEXEC);
    if (net->device < 0 || ioctl(net->device, TUNSETIFF, &request))
        return err_set(err, HVD_E_IO, DEVICE ": no device can be made: %s", strerror(errno));
    return 0;
}

/* Lets packets that come out of the device continue as usual. Packets from this side have an
 * address of this machine, which the kernel refuses without accept_local. Without ip_early_demux=0
 * the kernel would match a packet to a local socket before it routes it, and drop it. */
static int let_out(uint32_t n, struct hvd_err *err)
{
    char name[64];
    int rc;

    snprintf(name, sizeof(name), "ipv4/conf/lossy%u/accept_local", n);
    rc = networks_set(name, "1", err);
    snprintf(name, sizeof(name), "ipv4/conf/lossy%u/rp_filter", n);
    rc = rc ? rc : networks_set(name, "0", err);
    rc = rc ? rc : networks_set("ipv4/conf/all/rp_filter", "0", err);
    rc = rc ? rc : networks_set("ipv4/ip_early_demux", "0", err);
    rc = rc ? rc : networks_ip(err, "rule add pref 3 iif lossy%u lookup local", n);
    return rc ? rc : networks_ip(err, "rule add pref 4 iif lossy%u lookup main", n);
}

/* Adds the rules that lead packets into the device; they come last, when everything else is ready.
 */
static int lead_in(uint32_t n, struct hvd_err *err)
{
    char name[ARENA_NAME];
    int rc = networks_ip(err, "link set lossy%u up", n);

    networks_name(n, name);
    rc = rc ? rc : let_out(n, err);
    rc = rc ? rc
            : networks_ip(err, "route add default dev lossy%u src " NETWORKS_NET ".%u.1 table %u",
                          n, n, TABLE + n);
    rc = rc ? rc : networks_ip(err, "rule add pref 5 iif veth%u lookup %u", n, TABLE + n);
    return rc ? rc : networks_ip(err, "rule add pref 6 to %s lookup %u", name, TABLE + n);
}

static void lead_out(uint32_t n)
{
    char name[ARENA_NAME];

    networks_ip(NULL, "rule del pref 6 to %s", networks_name(n, name));
    networks_ip(NULL, "rule del pref 5 iif veth%u", n);
}

/* Makes the packets, the tun device and the routes, and starts the thread. After a failure destroy
 * undoes what was made. */
static int start_faults(struct net_faults *net, struct hvd_err *err)
{
    int rc;

    net->packets = mem_zalloc_array(PACKETS, sizeof(*net->packets));
    if (!net->packets)
        return err_set(err, HVD_E_NOMEM, "no memory for packets");
    for (size_t i = 0; i < PACKETS; i++) {
        net->packets[i].next = net->unused;
        net->unused = &net->packets[i];
    }
    net->stop = eventfd(0, EFD_CLOEXEC);
    if (net->stop < 0)
        return err_set(err, HVD_E_IO, "no eventfd: %s", strerror(errno));
    rc = make_device(net, err);
    rc = rc ? rc : lead_in(net->number, err);
    return rc ? rc : thread_start(&net->thread, 0, carry, net);
}

static void destroy(struct net_faults *net)
{
    lead_out(net->number);
    networks_ip(NULL, "rule del pref 4 iif lossy%u", net->number);
    networks_ip(NULL, "rule del pref 3 iif lossy%u", net->number);
    if (net->device >= 0)
        close(net->device);
    if (net->stop >= 0)
        close(net->stop);
    mem_free(net->packets);
    mem_free(net);
}

int net_faults_open(struct net_faults **ret_net, uint32_t number,
                    const struct net_faults_rates *rates, struct hvd_err *err)
{
    struct net_faults *net = mem_zalloc(sizeof(*net));
    int rc;

    if (!net)
        return err_set(err, HVD_E_NOMEM, "no memory for packets");
    net->number = number;
    net->rates = *rates;
    net->device = net->stop = -1;
    rng_seed(&net->rng, rates->seed);
    rc = start_faults(net, err);
    if (rc) {
        destroy(net);
        return err_prefix(err, rc, "the way to host %u", number);
    }
    *ret_net = net;
    return 0;
}

void net_faults_close(struct net_faults *net, struct net_faults_count *ret_count)
{
    const uint64_t one = 1;

    if (!net)
        return;
    lead_out(net->number);
    (void)!write(net->stop, &one, sizeof(one));
    (void)pthread_join(net->thread, NULL);
    if (ret_count)
        *ret_count = net->count;
    destroy(net);
}
