#include "collectives/shm/cores.h"

#include "base/text.h"

#include <fcntl.h>
#include <sched.h>
#include <unistd.h>

/* "max 100000" or "150000 100000": microseconds in each period. UINT32_MAX: no quota is known. */
static uint32_t quota(void)
{
    int fd = open("/sys/fs/cgroup/cpu.max", O_RDONLY | O_CLOEXEC);
    uint64_t allowed, period;
    struct span rest, part;
    char text[64];
    ssize_t length;

    if (fd < 0)
        return UINT32_MAX;
    length = read(fd, text, sizeof(text));
    close(fd);
    if (length <= 0)
        return UINT32_MAX;
    rest = span_trim((struct span){ text, (size_t)length });
    if (!span_next(&rest, ' ', &part) ||
        text_parse_u64(part, 0, INT64_MAX, "the quota", &allowed, NULL) ||
        text_parse_u64(rest, 1, INT64_MAX, "its period", &period, NULL))
        return UINT32_MAX;
    return allowed / period < UINT32_MAX ? (uint32_t)(allowed / period) : UINT32_MAX;
}

uint32_t cores_usable(void)
{
    uint32_t cores, most = quota();
    cpu_set_t set;
    long online;

    if (!sched_getaffinity(0, sizeof(set), &set)) {
        cores = (uint32_t)CPU_COUNT(&set);
    } else { /* more than a cpu_set_t holds */
        online = sysconf(_SC_NPROCESSORS_ONLN);
        cores = online > 0 ? (uint32_t)online : 1;
    }
    cores = cores < most ? cores : most;
    return cores ? cores : 1;
}
