/*
 * hosts.h: a set of hosts, each with its number of slots, in the order in which they were added.
 * Ranks follow that order, so it is never sorted and never the order of a hash.
 *
 * A host may have 0 slots: it is in the set, but no worker can run on it.
 */
#ifndef DISCOVERY_HOSTS_H
#define DISCOVERY_HOSTS_H

#include "base/err.h"
#include "base/names.h"

struct host {
    char *name; /* the set frees the name; an IPv6 address stands here without brackets */
    uint32_t slots;
};

struct hosts {
    struct host *items; /* read-only for callers: changed only through the functions below */
    size_t count;
    size_t capacity;
    struct names index;
};

void hosts_init(struct hosts *hosts);
void hosts_release(struct hosts *hosts);

/* Appends a host; the name is copied. Returns 0, HVD_E_NOMEM, HVD_E_EXISTS if the set has this
 * host, HVD_E_INVAL for a name that host_name_check refuses, or HVD_E_LIMIT for more than
 * LIMIT_HOSTS hosts or LIMIT_SLOTS_PER_HOST slots. */
int hosts_add(struct hosts *hosts, const char *name, uint32_t slots) MUST_CHECK;

/* Gives a host of the set `more` slots in addition. Returns 0, or HVD_E_LIMIT if the host would
 * have more than LIMIT_SLOTS_PER_HOST. */
int hosts_add_slots(struct hosts *hosts, const char *name, uint32_t more) MUST_CHECK;

/* Returns a host, borrowed until the set changes; NULL when the host is not in the set. */
const struct host *hosts_find(const struct hosts *hosts, const char *name);

uint64_t hosts_total_slots(const struct hosts *hosts);

/* Replaces the hosts of ret_hosts, which must be initialised, by a copy of `hosts`. Both may be the
 * same set. */
int hosts_copy(const struct hosts *hosts, struct hosts *ret_hosts) MUST_CHECK;

/* Moves all hosts of `hosts` into ret_hosts, whose former hosts are released. `hosts` is empty
 * afterwards. Names that were borrowed from `hosts` stay valid. */
void hosts_move(struct hosts *hosts, struct hosts *ret_hosts);

/*
 * Checks a host name: letters, digits, '.', '_' and '-', not starting with '.' or with '-', which
 * ssh would take for an option; or an IPv6 address without brackets, with or without a %zone. At
 * most LIMIT_HOST_NAME_BYTES. Upper and lower case differ. Returns 0, HVD_E_INVAL or HVD_E_LIMIT.
 */
int host_name_check(const char *name, size_t length, struct hvd_err *err);

/* true: the name, which has passed host_name_check, is an IPv6 address. Only an address has a
 * colon. */
bool host_name_is_ipv6(const char *name);

#endif
