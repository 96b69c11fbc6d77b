/*
 * weather.h: what the disk and the wall clock of one process are like. The library of
 * weather_preload.c, which that process is started with, reads it from a page that we map too:
 *
 *     LD_PRELOAD=.../libweather_preload.so CHAOS_WEATHER=FOLDER/weather hvd-elastic ...
 *
 * The process forgets both variables as it starts, so what it starts has the real weather. Of files
 * only regular ones have it, and directories that are synced; standard input, output and error are
 * left alone, so that what is said of it can be read. All zero is calm: then nothing is changed.
 * Changes hold for the next call; one that waits already waits to its end.
 */
#ifndef TESTS_CHAOS_WEATHER_H
#define TESTS_CHAOS_WEATHER_H

#include "base/err.h"

#include <stdatomic.h>

#define WEATHER_PAGE 4096

struct weather {
    _Atomic int64_t wall_offset_us; /* of CLOCK_REALTIME */
    _Atomic int64_t sync_delay_us;  /* fsync, fdatasync */
    _Atomic int64_t write_delay_us; /* each write */
    _Atomic uint32_t disk_full;     /* ENOSPC for who writes, or makes a file or a folder */
    _Atomic uint32_t disk_broken;   /* EIO for who writes or syncs */

    /* By the process: calls that were refused, or kept waiting, since the page was made. */
    _Atomic uint64_t refused;
    _Atomic uint64_t delayed;
};

_Static_assert(sizeof(struct weather) <= WEATHER_PAGE, "it is one page");

/* The file is made, calm, if it is not there. */
int weather_open(const char *path, struct weather **ret_weather, struct hvd_err *err) MUST_CHECK;
void weather_close(struct weather *weather);

void weather_calm(struct weather *weather);

#endif
