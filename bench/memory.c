#include "bench/memory.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COPIES    3
#define SPARE_MIB 1024

static uint64_t spare_mib(void)
{
    static const char label[] = "MemAvailable:";
    FILE *file = fopen("/proc/meminfo", "re");
    char line[128];
    uint64_t kib = 0;

    while (file && !kib && fgets(line, sizeof(line), file)) {
        if (!strncmp(line, label, sizeof(label) - 1))
            kib = strtoull(line + sizeof(label) - 1, NULL, 10);
    }
    if (file)
        fclose(file);
    return kib / 1024;
}

bool memory_suffices(uint32_t workers, uint32_t state_mib)
{
    uint64_t spare = spare_mib();
    uint64_t wanted = (uint64_t)workers * state_mib * COPIES + SPARE_MIB;

    if (spare >= wanted)
        return true;
    printf("%" PRIu32 " workers of %" PRIu32 " MiB: left out, %" PRIu64
           " MiB are free of the %" PRIu64 " that they need with their commits\n",
           workers, state_mib, spare, wanted);
    fflush(stdout);
    return false;
}
