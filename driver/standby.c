/*
 * standby.c: waits for the end of a driver's lease in etcd. run.c calls it before it opens the
 * folder of the job. Nothing is claimed here: of several standbys that have waited, the claim lets
 * one win.
 */
#include "driver/standby.h"

#include "base/log.h"
#include "base/time.h"
#include "os/thread.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>

#define LOOK_US (100 * TIME_MS) /* between two looks at the lease of the job's driver */
#define OPEN_US TIME_S          /* between two attempts to find a job that does not exist yet */

/* Opens the job in etcd. If the job does not exist yet, or etcd does not answer, it tries again
 * every OPEN_US, without an end. `reported`: the log says already what is waited for. */
static int standby_open(const struct etcd_store_config *config, const char *job,
                        struct store **ret_store, struct hvd_err *err)
{
    bool reported = false;
    int rc;

    for (;;) {
        rc = etcd_store_open(config, job, NULL, ret_store, err);
        if (rc != HVD_E_NOTFOUND && rc != HVD_E_BUSY)
            return rc;
        if (!reported)
            log_info(JOB, "standby for job %s: %s; waiting", job,
                     rc == HVD_E_NOTFOUND ? "there is no such job yet" : err->text);
        reported = true;
        thread_pause(OPEN_US);
    }
}

/* Finds the addresses of this machine at which agents of other machines can dial it. IPv6 addresses
 * get brackets. */
static void standby_hosts(struct store_peers *ret_hosts)
{
    char text[STORE_PEER_TEXT_MAX];
    struct ifaddrs *list;

    ret_hosts->count = 0;
    if (getifaddrs(&list))
        return;
    for (struct ifaddrs *at = list; at && ret_hosts->count < STORE_PEERS_MAX; at = at->ifa_next) {
        int family = at->ifa_addr ? at->ifa_addr->sa_family : AF_UNSPEC;
        bool is_ipv6 = family == AF_INET6;

        if ((family != AF_INET && !is_ipv6) || !(at->ifa_flags & IFF_UP) ||
            (at->ifa_flags & IFF_LOOPBACK) ||
            getnameinfo(at->ifa_addr,
                        is_ipv6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in), text,
                        sizeof(text), NULL, 0, NI_NUMERICHOST) ||
            strchr(text, '%')) /* an address with a zone (fe80::1%eth0) is valid on one link only */
            continue;
        snprintf(ret_hosts->address[ret_hosts->count++], STORE_PEER_TEXT_MAX, "%s%.60s%s",
                 is_ipv6 ? "[" : "", text, is_ipv6 ? "]" : "");
    }
    freeifaddrs(list);
}

/* Waits until the job has no driver: looks at the lease of its driver every LOOK_US, and announces
 * the addresses of this machine in etcd, where agents find them. If etcd does not answer, or
 * refuses the addresses, the log says so when that begins, and the wait goes on. */
int standby_wait(const struct etcd_store_config *config, const char *job, bool *ret_ended,
                 struct job_facts *ret_facts, struct hvd_err *err)
{
    bool is_free = false, no_answer = false, announce_failed = false;
    struct store_peers hosts;
    struct store *store;
    int rc = standby_open(config, job, &store, err);

    if (rc)
        return rc;
    log_info(JOB, "standby for job %s: waiting until it has no driver", job);
    standby_hosts(&hosts);
    while (!is_free) {
        rc = etcd_store_look(store, &is_free, ret_ended, err);
        if (rc && rc != HVD_E_BUSY)
            break;
        if (!rc && !is_free && etcd_store_announce(store, &hosts, err)) {
            if (!announce_failed)
                log_warning(
                    JOB, "standby for job %s: agents are not told the address of this standby: %s",
                    job, err->text);
            announce_failed = true;
        }
        if (rc && !no_answer)
            log_warning(JOB, "standby for job %s: %s; waiting", job, err->text);
        no_answer = rc;
        if (rc || !is_free)
            thread_pause(LOOK_US);
    }
    if (!rc)
        rc = store_facts(store, ret_facts, err);
    store_close(store);
    return rc;
}

/* Reads from etcd how the driver of the job was started, for --standby and --resume with --store.
 */
int standby_command(const struct etcd_store_config *config, const char *job, struct buf *out,
                    struct hvd_err *err)
{
    struct store *store;
    int rc = etcd_store_open(config, job, NULL, &store, err);

    if (rc)
        return rc;
    rc = etcd_store_load_command(store, out, err);
    store_close(store);
    return rc;
}
