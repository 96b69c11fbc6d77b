/*
 * air.h: a bad way between this side and one host: packets are lost, late, doubled, and overtake
 * each other. All that goes to or comes from the host's network is led through a device of this
 * process, whose thread passes it on or does not. So it needs /dev/net/tun and nothing else of the
 * kernel, and what is lost is chosen by a seed.
 */
#ifndef TESTS_CHAOS_AIR_H
#define TESTS_CHAOS_AIR_H

#include "base/err.h"

struct air;

struct air_weather {
    uint32_t lost;      /* so many of a thousand packets, each way */
    uint32_t doubled;   /* come twice */
    uint32_t overtaken; /* come AIR_LATE_US late, behind those that were sent after them */
    int64_t delay_us;   /* of all */
    uint64_t seed;
};

#define AIR_LATE_US 5000

struct air_count {
    uint64_t packets, lost, doubled, overtaken;
};

/* NULL: it can be done here; else why not. */
const char *air_missing(void);

/* For host number N of networks.h, which has no other air. */
int air_open(struct air **ret_air, uint32_t number, const struct air_weather *weather,
             struct hvd_err *err) MUST_CHECK;

/* Good weather again; what is on its way arrives. NULL is fine. What it has done in *ret_count,
 * which may be NULL. */
void air_close(struct air *air, struct air_count *ret_count);

#endif
