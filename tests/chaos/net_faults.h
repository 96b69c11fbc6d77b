/*
 * net_faults.h: a bad network between the driver's side and one host: packets are lost, delayed,
 * doubled or reordered. All packets to and from the host pass through a tun device, and a thread of
 * this process forwards them or not. This needs only /dev/net/tun, and a seed decides which packets
 * are hit.
 */
#ifndef TESTS_CHAOS_NET_FAULTS_H
#define TESTS_CHAOS_NET_FAULTS_H

#include "base/err.h"

struct net_faults;
struct mitm;

struct net_faults_rates {
    uint32_t lost;    /* packets of a thousand that are lost, each way */
    uint32_t doubled; /* packets of a thousand that arrive twice */
    /* packets of a thousand that arrive NET_FAULTS_LATE_US late, behind packets sent after them */
    uint32_t overtaken;
    int64_t delay_us; /* delay of every packet */
    uint64_t seed;
    struct mitm *mitm; /* changes the bytes of TCP; NULL: no change. Borrowed */
};

#define NET_FAULTS_LATE_US 5000

struct net_faults_count {
    uint64_t packets, lost, doubled, overtaken;
};

/* NULL: net faults are possible here; else the reason why not. */
const char *net_faults_missing(void);

/* Starts faults for host number N of networks.h, which must have no other. */
int net_faults_open(struct net_faults **ret_net, uint32_t number,
                    const struct net_faults_rates *rates, struct hvd_err *err) MUST_CHECK;

/* Ends the faults; packets under way arrive. net may be NULL. The counts go to *ret_count, which
 * may be NULL. */
void net_faults_close(struct net_faults *net, struct net_faults_count *ret_count);

#endif
