/*
 * huge.c: runs collectives of more than 2^31 numbers between two processes, where the machine has
 * the memory. It proves that no count or offset is cut to 32 bits.
 */
#include "tests/coll/huge.h"

#include "base/mem.h"
#include "base/time.h"
#include "collectives/coll.h"
#include "tests/coll/processes.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNT   (((size_t)1 << 31) + 5)
#define MEMBERS 2
/* bytes for the buffers, and half of them again for everything else */
#define ROOM    (((uint64_t)MEMBERS * COUNT * 3) / 2)
#define LONG_US (600 * TIME_S)

struct shared {
    char contacts[MEMBERS][PROCESSES_CONTACT_MAX];
    char wrong[MEMBERS][600];
};

struct huge {
    struct shared *shared;
    bool flat;
};

static uint64_t memory_available(void)
{
    FILE *info = fopen("/proc/meminfo", "re");
    uint64_t kib = 0;
    char line[128];

    while (info && fgets(line, sizeof(line), info)) {
        if (!strncmp(line, "MemAvailable:", 13))
            kib = strtoull(line + 13, NULL, 10);
    }
    if (info)
        (void)fclose(info);
    return kib * 1024;
}

static uint8_t byte_of(uint32_t rank, size_t at)
{
    return (uint8_t)(at * 31 + (at >> 19) + rank * 7);
}

static void fill(uint8_t *bytes, uint32_t rank)
{
    for (size_t i = 0; i < COUNT; i++)
        bytes[i] = byte_of(rank, i);
}

static int work(struct coll *coll, uint32_t rank, uint8_t *bytes, struct hvd_err *err)
{
    struct coll_call call = {
        .kind = COLL_ALLREDUCE, .in = bytes, .out = bytes, .count = COUNT, .type = HVD_UINT8
    };
    int rc;

    fill(bytes, rank);
    rc = coll_run(coll, &call, err);
    for (size_t i = 0; i < COUNT && !rc; i++) {
        if (bytes[i] != (uint8_t)(byte_of(0, i) + byte_of(1, i)))
            return err_set(err, HVD_E_INTERNAL, "allreduce: number %zu is %u", i, bytes[i]);
    }
    if (rc)
        return rc;
    fill(bytes, rank);
    call = (struct coll_call){
        .kind = COLL_BROADCAST, .out = bytes, .count = COUNT, .type = HVD_UINT8, .root = 1
    };
    rc = coll_run(coll, &call, err);
    for (size_t i = 0; i < COUNT && !rc; i++) {
        if (bytes[i] != byte_of(1, i))
            return err_set(err, HVD_E_INTERNAL, "broadcast: number %zu is %u", i, bytes[i]);
    }
    return rc;
}

static int in_round(struct huge *huge, uint32_t rank, struct coll_engine *engine,
                    struct hvd_err *err)
{
    struct coll_peer peers[MEMBERS];
    static const uint8_t secret[LIMIT_ROUND_SECRET_BYTES] = "the secret of the round";
    const struct coll_roster roster = { .round = 1,
                                        .rank = rank,
                                        .size = MEMBERS,
                                        .peers = peers,
                                        .secret = secret,
                                        .secret_length = sizeof(secret) };
    uint8_t *bytes = mem_alloc(COUNT);
    struct coll *coll = NULL;
    int rc = bytes ? 0 : err_set(err, HVD_E_NOMEM, "out of memory");

    for (uint32_t i = 0; i < MEMBERS; i++)
        peers[i] = (struct coll_peer){ .incarnation = 100 + i,
                                       .host = "a",
                                       .contact = huge->shared->contacts[i] };
    if (bytes)
        rc = coll_create(engine, &roster, &coll, err);
    if (!rc)
        rc = coll_connect(coll, LONG_US, err);
    if (!rc && bytes)
        rc = work(coll, rank, bytes, err);
    if (!rc)
        coll_bye(coll);
    coll_free(coll);
    mem_free(bytes);
    return rc;
}

static int be_member(uint32_t rank, int talk, void *arg)
{
    struct huge *huge = arg;
    const struct coll_options options = { .host = "127.0.0.1", .flat = huge->flat };
    struct coll_engine *engine = NULL;
    struct hvd_err err = { .text = "" };
    int rc = coll_engine_open(&options, &engine, &err);

    if (!rc) {
        (void)snprintf(huge->shared->contacts[rank], PROCESSES_CONTACT_MAX, "%s",
                       coll_engine_contact(engine));
        rc = processes_say(talk, 'c') && processes_hear(talk, LONG_US) == 'g'
                 ? in_round(huge, rank, engine, &err)
                 : 1;
    }
    coll_engine_close(engine);
    if (rc)
        (void)snprintf(huge->shared->wrong[rank], sizeof(huge->shared->wrong[rank]), "%s",
                       err.text);
    (void)processes_say(talk, rc ? 'w' : 'd');
    return 0;
}

static bool all_say(struct processes *processes, char letter)
{
    for (uint32_t i = 0; i < processes->size; i++) {
        if (processes_hear(processes->members[i].talk, LONG_US) != letter)
            return false;
    }
    return true;
}

static bool run_one(struct huge *huge)
{
    struct processes processes;
    bool ok =
        processes_fork(&processes, MEMBERS, false, be_member, huge) && all_say(&processes, 'c');

    for (uint32_t i = 0; i < MEMBERS && ok; i++)
        ok = processes_say(processes.members[i].talk, 'g');
    ok = ok && all_say(&processes, 'd');
    processes_end(&processes);
    printf("collcheck: %zu numbers, %s: %s\n", COUNT, huge->flat ? "flat" : "shared memory",
           ok ? "right" : "wrong");
    for (uint32_t i = 0; i < MEMBERS && !ok; i++)
        printf("  rank %u: %s\n", i, huge->shared->wrong[i]);
    return ok;
}

int huge_run(void)
{
    struct huge huge = { .flat = false };
    bool ok;

    if (memory_available() < ROOM) {
        printf("collcheck: skipped: %zu numbers need %" PRIu64 " MiB of memory, and %" PRIu64
               " are available\n",
               COUNT, ROOM >> 20, memory_available() >> 20);
        return 0;
    }
    huge.shared = processes_share(sizeof(*huge.shared));
    ok = run_one(&huge);
    huge.flat = true;
    ok = run_one(&huge) && ok;
    processes_unshare(huge.shared, sizeof(*huge.shared));
    return ok ? 0 : 1;
}
