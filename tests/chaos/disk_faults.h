/*
 * disk_faults.h: faults of the disk and of the wall clock of one process. The process is started
 * with the library of disk_faults_preload.c, which reads the faults from a page in a file; the
 * chaos program maps the same page:
 *
 *     LD_PRELOAD=.../libdisk_faults_preload.so CHAOS_DISK_FAULTS=FOLDER/disk_faults hvd-elastic ...
 *
 * The process removes both variables at its start, so its children have the real disk and clock.
 * Faults apply only to regular files, and to directories that are synced; standard input, output
 * and error are left alone, so that error texts can be read. A page of zeros is calm: no call is
 * changed. A change applies to the next call; a call that already waits is not cut short.
 *
 * CHAOS_FOLDER_FAULTS names a second page, whose faults apply only below the folder that the page
 * names, with or without the first page. A driver leaves this variable and LD_PRELOAD to its
 * children, so that the agents have the same faults; an agent removes both.
 */
#ifndef TESTS_CHAOS_DISK_FAULTS_H
#define TESTS_CHAOS_DISK_FAULTS_H

#include "base/err.h"

#include <stdatomic.h>

#define DISK_FAULTS_PAGE   4096
#define DISK_FAULTS_FOLDER 256

struct disk_faults {
    _Atomic int64_t wall_offset_us;  /* added to CLOCK_REALTIME */
    _Atomic int64_t sync_delay_us;   /* delay of fsync and fdatasync */
    _Atomic int64_t write_delay_us;  /* delay of each write */
    _Atomic uint32_t disk_full;      /* 1: ENOSPC for writes, and for making a file or a folder */
    _Atomic uint32_t disk_broken;    /* 1: EIO for writes and syncs */
    _Atomic uint32_t disk_readonly;  /* 1: EROFS for each change of a file or a folder */
    char folder[DISK_FAULTS_FOLDER]; /* faults apply only below it; "": everywhere */

    /* Written by the process: calls that were refused or delayed since the page was made. */
    _Atomic uint64_t refused;
    _Atomic uint64_t delayed;
};

_Static_assert(sizeof(struct disk_faults) <= DISK_FAULTS_PAGE, "it is one page");

/* Maps the file; makes it, calm, if it does not exist. */
int disk_faults_open(const char *path, struct disk_faults **ret_faults,
                     struct hvd_err *err) MUST_CHECK;
void disk_faults_close(struct disk_faults *disk_faults);

void disk_faults_calm(struct disk_faults *disk_faults);

#endif
