#include "tests/chaos/air.h"

#include "base/mem.h"
#include "base/rng.h"
#include "os/clock.h"
#include "os/thread.h"
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
#define PACKETS      4096 /* on their way; further ones are lost, as in a router */
#define PACKET_BYTES 2048
#define TABLE        1000 /* the number of a host's routing table, less the host's */

struct packet {
    struct packet *next;
    int64_t due_us;
    size_t length;
    char bytes[PACKET_BYTES];
};

struct air {
    uint32_t number;
    struct air_weather weather;
    struct air_count count;
    struct rng rng;
    pthread_t thread;
    int device;
    int stop;              /* readable: it is to end */
    struct packet *flying; /* by when they are due */
    struct packet *unused;
    struct packet *packets;
};

const char *air_missing(void)
{
    return access(DEVICE, R_OK | W_OK) ? "there is no " DEVICE : NULL;
}

/* ---- the thread --------------------------------------------------------------------------------
 */

static bool chance(struct air *air, uint32_t of_a_thousand)
{
    return rng_below(&air->rng, 1000) < of_a_thousand;
}

/* Behind all that are due no later: so nothing is overtaken that is not meant to be. */
static void send_off(struct air *air, const char *bytes, size_t length, int64_t due_us)
{
    struct packet *packet = air->unused;
    struct packet **at = &air->flying;

    if (!packet) {
        air->count.lost++;
        return;
    }
    air->unused = packet->next;
    packet->due_us = due_us;
    packet->length = length;
    memcpy(packet->bytes, bytes, length);
    while (*at && (*at)->due_us <= due_us)
        at = &(*at)->next;
    packet->next = *at;
    *at = packet;
}

static void take(struct air *air, const char *bytes, size_t length)
{
    int64_t due_us = clock_now_us() + air->weather.delay_us;

    air->count.packets++;
    if (chance(air, air->weather.lost)) {
        air->count.lost++;
        return;
    }
    if (chance(air, air->weather.overtaken)) {
        air->count.overtaken++;
        due_us += AIR_LATE_US;
    }
    send_off(air, bytes, length, due_us);
    if (chance(air, air->weather.doubled)) {
        air->count.doubled++;
        send_off(air, bytes, length, due_us);
    }
}

static void take_all(struct air *air)
{
    char bytes[PACKET_BYTES];
    ssize_t got;

    while ((got = read(air->device, bytes, sizeof(bytes))) > 0)
        take(air, bytes, (size_t)got);
}

/* A packet that the kernel does not want is lost, as it would be elsewhere. */
static void deliver(struct air *air, int64_t now_us)
{
    while (air->flying && air->flying->due_us <= now_us) {
        struct packet *packet = air->flying;

        air->flying = packet->next;
        if (write(air->device, packet->bytes, packet->length) < 0)
            air->count.lost++;
        packet->next = air->unused;
        air->unused = packet;
    }
}

static void *carry(void *arg)
{
    struct air *air = arg;
    struct pollfd fds[] = {
        {.fd = air->device, .events = POLLIN},
        { .fd = air->stop,  .events = POLLIN}
    };

    while (!fds[1].revents) {
        int64_t left_us = air->flying ? air->flying->due_us - clock_now_us() : -1;
        struct timespec left = { .tv_sec = left_us / 1000000, .tv_nsec = left_us % 1000000 * 1000 };

        if (!air->flying)
            (void)poll(fds, 2, -1);
        else if (left_us > 0)
            (void)ppoll(fds, 2, &left, NULL);
        else
            (void)poll(fds, 2, 0);
        take_all(air);
        deliver(air, clock_now_us());
    }
    deliver(air, INT64_MAX);
    return NULL;
}

/* ---- the way through it ------------------------------------------------------------------------
 */

static int make_device(struct air *air, struct hvd_err *err)
{
    struct ifreq request = { .ifr_flags = IFF_TUN | IFF_NO_PI };

    snprintf(request.ifr_name, sizeof(request.ifr_name), "air%u", air->number);
    air->device = open(DEVICE, O_RDWR | O_NONBLOCK | O_CLOEXEC);
    if (air->device < 0 || ioctl(air->device, TUNSETIFF, &request))
        return err_set(err, HVD_E_IO, DEVICE ": no device can be made: %s", strerror(errno));
    return 0;
}

/* What comes out of the device goes on as always; what was sent from here bears an address of ours,
 * which the kernel takes for a lie unless it is told. And what comes in for a socket of ours it
 * would give to that before it is routed, and drop it then. */
static int let_out(uint32_t n, struct hvd_err *err)
{
    char name[64];
    int rc;

    snprintf(name, sizeof(name), "ipv4/conf/air%u/accept_local", n);
    rc = networks_set(name, "1", err);
    snprintf(name, sizeof(name), "ipv4/conf/air%u/rp_filter", n);
    rc = rc ? rc : networks_set(name, "0", err);
    rc = rc ? rc : networks_set("ipv4/conf/all/rp_filter", "0", err);
    rc = rc ? rc : networks_set("ipv4/ip_early_demux", "0", err);
    rc = rc ? rc : networks_ip(err, "rule add pref 3 iif air%u lookup local", n);
    return rc ? rc : networks_ip(err, "rule add pref 4 iif air%u lookup main", n);
}

/* The rules that lead into it come last, when all else stands. */
static int lead_in(uint32_t n, struct hvd_err *err)
{
    char name[ARENA_NAME];
    int rc = networks_ip(err, "link set air%u up", n);

    networks_name(n, name);
    rc = rc ? rc : let_out(n, err);
    rc = rc ? rc
            : networks_ip(err, "route add default dev air%u src " NETWORKS_NET ".%u.1 table %u", n,
                          n, TABLE + n);
    rc = rc ? rc : networks_ip(err, "rule add pref 5 iif veth%u lookup %u", n, TABLE + n);
    return rc ? rc : networks_ip(err, "rule add pref 6 to %s lookup %u", name, TABLE + n);
}

static void lead_out(uint32_t n)
{
    char name[ARENA_NAME];

    networks_ip(NULL, "rule del pref 6 to %s", networks_name(n, name));
    networks_ip(NULL, "rule del pref 5 iif veth%u", n);
}

static int make(struct air *air, struct hvd_err *err)
{
    int rc;

    air->packets = mem_zalloc_array(PACKETS, sizeof(*air->packets));
    if (!air->packets)
        return err_set(err, HVD_E_NOMEM, "no memory for packets");
    for (size_t i = 0; i < PACKETS; i++) {
        air->packets[i].next = air->unused;
        air->unused = &air->packets[i];
    }
    air->stop = eventfd(0, EFD_CLOEXEC);
    if (air->stop < 0)
        return err_set(err, HVD_E_IO, "no eventfd: %s", strerror(errno));
    rc = make_device(air, err);
    rc = rc ? rc : lead_in(air->number, err);
    return rc ? rc : thread_start(&air->thread, 0, carry, air);
}

static void destroy(struct air *air)
{
    lead_out(air->number);
    networks_ip(NULL, "rule del pref 4 iif air%u", air->number);
    networks_ip(NULL, "rule del pref 3 iif air%u", air->number);
    if (air->device >= 0)
        close(air->device);
    if (air->stop >= 0)
        close(air->stop);
    mem_free(air->packets);
    mem_free(air);
}

int air_open(struct air **ret_air, uint32_t number, const struct air_weather *weather,
             struct hvd_err *err)
{
    struct air *air = mem_zalloc(sizeof(*air));
    int rc;

    if (!air)
        return err_set(err, HVD_E_NOMEM, "no memory for packets");
    air->number = number;
    air->weather = *weather;
    air->device = air->stop = -1;
    rng_seed(&air->rng, weather->seed);
    rc = make(air, err);
    if (rc) {
        destroy(air);
        return err_prefix(err, rc, "the way to host %u", number);
    }
    *ret_air = air;
    return 0;
}

void air_close(struct air *air, struct air_count *ret_count)
{
    const uint64_t one = 1;

    if (!air)
        return;
    lead_out(air->number);
    (void)!write(air->stop, &one, sizeof(one));
    (void)pthread_join(air->thread, NULL);
    if (ret_count)
        *ret_count = air->count;
    destroy(air);
}
