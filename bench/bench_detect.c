/*
 * bench_detect: from the SIGKILL of a worker to its driver knowing it. The driver is played here,
 * by as little as there can be; agent and worker are the real agent and tests/workers/bare_trainer.
 * Beside it, in the same run and of the same victim: until the end of a socket that the victim
 * held, which is what a launcher sees that waits for nothing else. The kernel closes that only
 * after it has taken the memory back.
 */
#include "base/limits.h"
#include "base/text.h"
#include "base/time.h"
#include "bench/agent_fixture.h"
#include "os/clock.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KILLS_MAX 1000
#define SPARE_MIB 512

struct size {
    uint32_t mib;
    uint32_t kills;
};

static const struct size sizes[] = {
    {16,    200},
    { 1024, 100},
    { 4096, 30 },
};

struct sample {
    int64_t known_us;
    int64_t eof_us;
};

static struct sample samples[KILLS_MAX];

static int by_time(const void *left, const void *right)
{
    int64_t a = *(const int64_t *)left;
    int64_t b = *(const int64_t *)right;

    return a < b ? -1 : a > b;
}

static double ms(const int64_t *us, uint32_t place)
{
    return (double)us[place] / 1e3;
}

static void show(const char *name, const int64_t *us, uint32_t count)
{
    printf("  %-28s median %8.2f ms  p99 %8.2f ms  least %8.2f ms  most %8.2f ms  of %u\n", name,
           ms(us, count / 2), ms(us, (count * 99 - 1) / 100), ms(us, 0), ms(us, count - 1), count);
}

static void report(uint32_t mib, uint32_t count, const uint32_t witnesses[WITNESS_COUNT])
{
    static const char *const names[WITNESS_COUNT] = { "none", "futex", "pidfd", "socket", "lease" };
    static int64_t column[KILLS_MAX];

    printf("a worker with %u MiB, killed\n", mib);
    for (uint32_t i = 0; i < count; i++)
        column[i] = samples[i].known_us;
    qsort(column, count, sizeof(column[0]), by_time);
    show("until its driver knows it", column, count);
    for (uint32_t i = 0; i < count; i++)
        column[i] = samples[i].eof_us;
    qsort(column, count, sizeof(column[0]), by_time);
    show("until its socket ends", column, count);
    for (uint32_t i = 0; i < count; i++)
        column[i] = samples[i].known_us - samples[i].eof_us;
    qsort(column, count, sizeof(column[0]), by_time);
    show("the first less the second", column, count);
    printf("  first seen by");
    for (size_t i = 0; i < WITNESS_COUNT; i++) {
        if (witnesses[i])
            printf(" %s (%u)", names[i], witnesses[i]);
    }
    printf("\n");
    fflush(stdout);
}

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

static int measure(struct agent_fixture *fixture, uint32_t mib, uint32_t kills, struct hvd_err *err)
{
    uint32_t witnesses[WITNESS_COUNT] = { 0 };
    int rc = 0;

    for (uint32_t i = 0; !rc && i < kills; i++) {
        int64_t killed_us;

        rc = agent_fixture_begin_victim(fixture, mib, err);
        if (rc)
            break;
        killed_us = clock_now_us();
        kill(fixture->victim.pid, SIGKILL);
        rc = agent_fixture_await_end(fixture, err);
        samples[i] = (struct sample){ fixture->victim.known_us - killed_us,
                                      fixture->victim.eof_us - killed_us };
        if (fixture->victim.witness < WITNESS_COUNT)
            witnesses[fixture->victim.witness]++;
    }
    if (!rc)
        report(mib, kills, witnesses);
    return rc;
}

static int run(uint32_t kills_max, struct hvd_err *err)
{
    struct agent_fixture *fixture = NULL;
    int rc = agent_fixture_create(&fixture, err);

    for (size_t i = 0; !rc && i < ARRAY_SIZE(sizes); i++) {
        uint32_t kills = sizes[i].kills < kills_max ? sizes[i].kills : kills_max;

        if (spare_mib() < sizes[i].mib + SPARE_MIB)
            printf("a worker with %u MiB: left out, %" PRIu64 " MiB are free\n", sizes[i].mib,
                   spare_mib());
        else
            rc = measure(fixture, sizes[i].mib, kills, err);
    }
    agent_fixture_free(fixture);
    return rc;
}

/* bench_detect [KILLS]: at most so many of each size. */
int main(int argc, char **argv)
{
    struct hvd_err err = { 0 };
    uint64_t kills_max = KILLS_MAX;

    if (argc > 1 && text_parse_u64((struct span){ argv[1], strlen(argv[1]) }, 1, KILLS_MAX,
                                   "the number of kills", &kills_max, &err)) {
        fprintf(stderr, "bench_detect: %s\n", err.text);
        return 2;
    }
    signal(SIGPIPE, SIG_IGN);
    if (run((uint32_t)kills_max, &err)) {
        fprintf(stderr, "bench_detect: %s\n", err.text);
        return 1;
    }
    return 0;
}
