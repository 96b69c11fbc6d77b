#include "tests/chaos/weather.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int weather_open(const char *path, struct weather **ret_weather, struct hvd_err *err)
{
    void *page = MAP_FAILED;
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    int number;

    if (fd >= 0 && !ftruncate(fd, WEATHER_PAGE))
        page = mmap(NULL, WEATHER_PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    number = errno;
    if (fd >= 0)
        close(fd);
    if (page == MAP_FAILED)
        return err_set(err, HVD_E_IO, "%s: cannot be mapped: %s", path, strerror(number));
    *ret_weather = (struct weather *)page;
    return 0;
}

void weather_close(struct weather *weather)
{
    if (weather)
        munmap(weather, WEATHER_PAGE);
}

void weather_calm(struct weather *weather)
{
    atomic_store(&weather->wall_offset_us, 0);
    atomic_store(&weather->sync_delay_us, 0);
    atomic_store(&weather->write_delay_us, 0);
    atomic_store(&weather->disk_full, 0);
    atomic_store(&weather->disk_broken, 0);
}
