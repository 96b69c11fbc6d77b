#include "bench/load.h"

#include "base/text.h"
#include "base/time.h"
#include "os/clock.h"

#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

/* The first line of /proc/stat: cpu, then ticks of user, nice, system, idle, iowait, irq, softirq,
 * stolen. */
static int64_t busy_us(void)
{
    FILE *file = fopen("/proc/stat", "re");
    char line[256] = "";
    struct span rest, part;
    uint64_t ticks, sum = 0;

    if (!file)
        return 0;
    rest.at = fgets(line, sizeof(line), file) ? line : "";
    rest.length = strcspn(rest.at, "\n");
    (void)fclose(file);
    for (int i = -1; i < 8 && span_next(&rest, ' ', &part);) {
        if (!part.length)
            continue;
        if (i >= 0 && i != 3 && i != 4 &&
            !text_parse_u64(part, 0, INT64_MAX, "ticks", &ticks, NULL))
            sum += ticks;
        i++;
    }
    return (int64_t)sum * TIME_S / sysconf(_SC_CLK_TCK);
}

static int64_t used_us(int who)
{
    struct rusage usage;

    if (getrusage(who, &usage))
        return 0;
    return (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * TIME_S + usage.ru_utime.tv_usec +
           usage.ru_stime.tv_usec;
}

void load_look(struct load *load)
{
    load->at_us = clock_now_us();
    load->busy_us = busy_us();
    load->own_us = used_us(RUSAGE_SELF) + used_us(RUSAGE_CHILDREN);
}

int load_of_others(const struct load *since)
{
    struct load now;
    int64_t others_us, all_us;

    load_look(&now);
    others_us = (now.busy_us - since->busy_us) - (now.own_us - since->own_us);
    all_us = (now.at_us - since->at_us) * sysconf(_SC_NPROCESSORS_ONLN);
    if (others_us <= 0 || all_us <= 0)
        return 0;
    return (int)(others_us * 100 / all_us);
}
