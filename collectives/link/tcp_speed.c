/*
 * tcp_speed.c: measures the ciphers, and remembers the speed of each host. Called by tcp_link.c at
 * the end of a link, on the reaper's thread, and by tcp_connect.c in a handshake. Invariant:
 * without a measurement for a host, encryption does not count as cheap. So with --data-security
 * auto the first round with a host is authenticated, not encrypted.
 */
#include "collectives/link/tcp_speed.h"

#include "base/mem.h"
#include "base/time.h"
#include "collectives/link/security.h"
#include "os/clock.h"
#include "seal/record.h"

#include <linux/tcp.h>
#include <netinet/in.h>
#include <pthread.h>
#include <string.h>
#include <sys/socket.h>

#define HOSTS   64 /* the most hosts whose speed is remembered */
#define TRIES   5  /* how often the ciphers are measured; the shortest time counts */
#define RECORDS 16 /* this many records of RECORD_DATA_BYTES bytes are 1 MiB */

/* A connection that has carried fewer bytes is not noted: the kernel's buffers may hold them all.
 */
#define LEAST_BYTES ((uint64_t)8 * 1024 * 1024)

struct speed_host {
    uint8_t ip[16];
    uint64_t mib_us; /* the time in which the kernel carried 1 MiB; 0: this entry is free */
};

struct tcp_speed {
    pthread_mutex_t mutex;
    /* how much longer it takes to encrypt 1 MiB than to authenticate it; -1: not measured yet */
    int64_t extra_us;
    struct speed_host hosts[HOSTS];
    size_t next; /* the entry that is replaced next when none is free */
};

/* Makes the table of the speeds of hosts, with nothing measured (`extra_us` -1). One table serves
 * all rounds of a process. */
int speed_create(struct tcp_speed **ret_speed)
{
    struct tcp_speed *speed = mem_zalloc(sizeof(*speed));

    if (!speed)
        return HVD_E_NOMEM;
    pthread_mutex_init(&speed->mutex, NULL);
    speed->extra_us = -1;
    *ret_speed = speed;
    return 0;
}

void speed_free(struct tcp_speed *speed)
{
    if (!speed)
        return;
    pthread_mutex_destroy(&speed->mutex);
    mem_free(speed);
}

/* Reads the IP address of the connection's peer. false: the connection is gone. */
static bool ip_of(int fd, uint8_t ret_ip[16])
{
    union {
        struct sockaddr any;
        struct sockaddr_in four;
        struct sockaddr_in6 six;
    } peer = { .any.sa_family = AF_UNSPEC };
    socklen_t length = sizeof(peer);

    memset(ret_ip, 0, 16);
    if (getpeername(fd, &peer.any, &length))
        return false;
    if (peer.any.sa_family == AF_INET)
        memcpy(ret_ip, &peer.four.sin_addr, 4);
    else
        memcpy(ret_ip, &peer.six.sin6_addr, 16);
    return true;
}

/* Measures how long 1 MiB takes in this mode, TRIES times: the sender encrypts or authenticates it
 * (record_seal), and the receiver decrypts or verifies it (record_open_*). Returns the shortest
 * time in microseconds; -1: no memory, or OpenSSL has failed. */
static int64_t measure(enum seal_mode mode)
{
    const uint8_t key[SEAL_KEY_BYTES] = "only to measure";
    struct record_stream *seals = NULL, *opens = NULL;
    uint8_t *record = mem_zalloc(RECORD_MAX);
    int64_t least_us = -1;
    int rc = record ? 0 : HVD_E_NOMEM;

    if (!rc)
        rc = record_stream_create(key, mode, true /* the sender's stream */, RECORD_REKEY, &seals);
    if (!rc)
        rc = record_stream_create(key, mode, false /* the receiver's stream */, RECORD_REKEY,
                                  &opens);
    for (int i = 0; i < TRIES && !rc; i++) {
        int64_t began_us = clock_now_us(), took_us;
        size_t length;

        for (int k = 0; k < RECORDS && !rc; k++) {
            rc = record_seal(seals, record, RECORD_DATA_BYTES, &length);
            if (!rc)
                rc = record_open_head(opens, record, &length);
            if (!rc)
                rc = record_open_data(opens, record + RECORD_HEAD_BYTES, length);
        }
        took_us = clock_now_us() - began_us;
        if (!rc && (least_us < 0 || took_us < least_us))
            least_us = took_us;
    }
    record_stream_free(seals);
    record_stream_free(opens);
    mem_free(record);
    return rc ? -1 : least_us;
}

/* Notes how fast a connection was (tcp_speed.h). A connection is left out if it carried too little,
 * or if this program was slower than the network (`app_limited`): then its rate says nothing about
 * the network. A host without an entry takes a free one; if none is free, it replaces one, the
 * entries in turn. */
void speed_note(struct tcp_speed *speed, int fd)
{
    struct tcp_info info = { .tcpi_state = 0 };
    socklen_t length = sizeof(info);
    struct speed_host *host = NULL;
    uint8_t ip[16];
    int64_t plain_us, extra_us = -1;

    if (!speed || getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &length) ||
        info.tcpi_bytes_acked < LEAST_BYTES || !info.tcpi_delivery_rate ||
        info.tcpi_delivery_rate_app_limited || !ip_of(fd, ip))
        return;
    pthread_mutex_lock(&speed->mutex);
    /* -1: the ciphers are not measured yet. Encryption that seems faster than authentication counts
     * as equal (0). */
    if (speed->extra_us < 0) {
        plain_us = measure(SEAL_AUTHENTICATED);
        if (plain_us >= 0)
            extra_us = measure(SEAL_ENCRYPTED) - plain_us;
        speed->extra_us = extra_us > 0 ? extra_us : plain_us < 0 ? -1 : 0;
    }
    for (size_t i = 0; i < HOSTS && !host; i++) {
        if (!speed->hosts[i].mib_us || !memcmp(speed->hosts[i].ip, ip, sizeof(ip)))
            host = &speed->hosts[i];
    }
    if (!host)
        host = &speed->hosts[speed->next++ % HOSTS];
    memcpy(host->ip, ip, sizeof(ip));
    /* the kernel's rate is in bytes a second; + 1: never 0, which means a free entry */
    host->mib_us = (uint64_t)TIME_S * 1024 * 1024 / info.tcpi_delivery_rate + 1;
    pthread_mutex_unlock(&speed->mutex);
}

/* true: the speed of transfers to the peer's host is known, and encryption is cheap at that speed
 * (tcp_speed.h). */
bool speed_affords(struct tcp_speed *speed, int fd)
{
    bool affords = false;
    uint8_t ip[16];

    if (!speed || !ip_of(fd, ip))
        return false;
    pthread_mutex_lock(&speed->mutex);
    for (size_t i = 0; i < HOSTS; i++) {
        const struct speed_host *host = &speed->hosts[i];

        if (host->mib_us && !memcmp(host->ip, ip, sizeof(ip)))
            affords = security_is_cheap(speed->extra_us, host->mib_us);
    }
    pthread_mutex_unlock(&speed->mutex);
    return affords;
}
