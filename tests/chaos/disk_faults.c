/*
 * disk_faults.c: maps the page that the driver's preloaded library reads, and sets it to calm.
 * faults_disk.c and faults_pool.c write the fields of the page.
 */
#include "tests/chaos/disk_faults.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int disk_faults_open(const char *path, struct disk_faults **ret_faults, struct hvd_err *err)
{
    void *page = MAP_FAILED;
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    int number;

    if (fd >= 0 && !ftruncate(fd, DISK_FAULTS_PAGE))
        page = mmap(NULL, DISK_FAULTS_PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    number = errno;
    if (fd >= 0)
        close(fd);
    if (page == MAP_FAILED)
        return err_set(err, HVD_E_IO, "%s: cannot be mapped: %s", path, strerror(number));
    *ret_faults = (struct disk_faults *)page;
    return 0;
}

void disk_faults_close(struct disk_faults *disk_faults)
{
    if (disk_faults)
        munmap(disk_faults, DISK_FAULTS_PAGE);
}

void disk_faults_calm(struct disk_faults *disk_faults)
{
    atomic_store(&disk_faults->wall_offset_us, 0);
    atomic_store(&disk_faults->sync_delay_us, 0);
    atomic_store(&disk_faults->write_delay_us, 0);
    atomic_store(&disk_faults->disk_full, 0);
    atomic_store(&disk_faults->disk_broken, 0);
    atomic_store(&disk_faults->disk_readonly, 0);
}
