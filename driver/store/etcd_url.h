/*
 * etcd_url.h: the option --store, "etcd://h1:2379,h2:2379/PREFIX": which servers of an etcd cluster
 * a driver asks, and below which prefix the keys of all jobs lie.
 */
#ifndef DRIVER_STORE_ETCD_URL_H
#define DRIVER_STORE_ETCD_URL_H

#include "base/err.h"
#include "base/limits.h"
#include "driver/store/etcd_limits.h"

#define ETCD_USER_MAX   64
#define ETCD_PREFIX_MAX 128

struct etcd_url {
    bool tls;                     /* the URL begins with "etcds://", not with "etcd://" */
    bool loopback;                /* each server of the URL is on this machine */
    char user[ETCD_USER_MAX + 1]; /* the user that the URL names; "": none */
    /* the beginning of the keys of all jobs, without a slash at either end */
    char prefix[ETCD_PREFIX_MAX + 1];
    size_t count;
    /* the servers, as URLs such as "https://10.0.0.7:2379" */
    char server[LIMIT_ETCD_SERVERS][LIMIT_HOST_NAME_BYTES + 24];
};

/* Reads "etcd://" or "etcds://", then "USER@" or nothing, the servers with commas between, and the
 * prefix. A server without a port has the port 2379; an empty prefix is "hvd-elastic". HVD_E_INVAL:
 * the text is not such a URL, or a password is in it. */
int etcd_url_parse(const char *text, struct etcd_url *ret_url, struct hvd_err *err) MUST_CHECK;

#endif
