/*
 * hosts.h: a set of hosts, each with its number of slots, in the order in which they were added.
 * That order is kept, because ranks follow it: it is never sorted and never that of a hash.
 *
 * A host may have no slots: it is known and offers nothing.
 */
#ifndef DISCOVERY_HOSTS_H
#define DISCOVERY_HOSTS_H

#include "base/err.h"
#include "base/names.h"

struct host {
    char *name; /* owned by the set; an IPv6 address stands here without brackets */
    uint32_t slots;
};

struct hosts {
    struct host *items; /* to be read; changed only through the functions below */
    size_t count;
    size_t capacity;
    struct names index;
};

void hosts_init(struct hosts *hosts);
void hosts_release(struct hosts *hosts);

/* Appends; the name is copied. 0, HVD_E_NOMEM, HVD_E_EXISTS, HVD_E_INVAL for what host_name_check
 * refuses, HVD_E_LIMIT past LIMIT_HOSTS or LIMIT_SLOTS_PER_HOST. */
int hosts_add(struct hosts *hosts, const char *name, uint32_t slots) MUST_CHECK;

/* Borrowed until the set changes; NULL when it is not there. */
const struct host *hosts_find(const struct hosts *hosts, const char *name);

uint64_t hosts_total_slots(const struct hosts *hosts);

/* ret_hosts is a set already, and what it held is released; copying a set onto itself is fine. */
int hosts_copy(const struct hosts *hosts, struct hosts *ret_hosts) MUST_CHECK;

/* The same without a copy: hosts is empty afterwards, names borrowed from it stay valid. */
void hosts_move(struct hosts *hosts, struct hosts *ret_hosts);

/*
 * Letters, digits, '.', '_' and '-', not starting with '.' or with '-', which ssh would take for an
 * option; or an IPv6 address without brackets, with or without a %zone. At most
 * LIMIT_HOST_NAME_BYTES. The case of letters counts. 0, HVD_E_INVAL or HVD_E_LIMIT.
 */
int host_name_check(const char *name, size_t length, struct hvd_err *err);

/* Of a name that passed the check: only an address has a colon. */
bool host_name_is_ipv6(const char *name);

#endif
