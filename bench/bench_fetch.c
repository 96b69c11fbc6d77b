/*
 * How fast a commit comes to a worker: from a slot of its own host beside a memcpy, from one and
 * from two other hosts beside what one plain TLS connection carries on this machine's loopback. All
 * hosts are threads of this process, so two of them and the one who fetches share its cores.
 */
#include "agent/commits/state_thread.h"
#include "base/limits.h"
#include "base/mem.h"
#include "bench/bench_tls.h"
#include "os/clock.h"
#include "state/sum.h"

#include <event2/event.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#define MIB      UINT64_C(1024)
#define HOSTS    3
#define RUNS     5
#define MANIFEST 1
#define COMMIT   1

struct host {
    char name[8];
    struct snapshots *snapshots;
    struct state_thread *thread;
    struct snapshot *worker; /* of slot 0 */
};

static struct event_base *base;
static struct tls *tls;
static struct host hosts[HOSTS];
static const struct snapshot_shape shape = { MANIFEST, MIB << 20, MIB << 20 };

static void must(bool did, const char *what)
{
    if (did)
        return;
    fprintf(stderr, "bench fetch: cannot %s\n", what);
    exit(1);
}

static void on_fetched(void *arg, uint64_t who, const struct msg *fetched)
{
    (void)arg;
    (void)who;
    if (fetched->u.fetched.code)
        fprintf(stderr, "%s\n", fetched->u.fetched.text);
    must(!fetched->u.fetched.code, "fetch");
    event_base_loopbreak(base);
}

static const struct state_ops ops = { on_fetched };

static struct snapshot *worker_of(struct host *host, uint32_t slot)
{
    struct snapshot *snapshot = NULL;
    int fd = -1;

    must(!snapshots_grant(host->snapshots, slot, slot + 1, &shape, &fd, NULL), "get memory");
    must(!snapshot_open(dup(fd), &shape, &snapshot, NULL), "map memory");
    return snapshot;
}

static void make_host(struct host *host, unsigned number)
{
    struct state_config config = { .tls = tls, .host = host->name };

    snprintf(host->name, sizeof(host->name), "host-%u", number);
    must(!snapshots_create(&host->snapshots, NULL), "keep snapshots");
    config.snapshots = host->snapshots;
    must(!state_thread_start(base, &config, &ops, host, &host->thread, NULL), "start a thread");
    state_thread_listen(host->thread, "127.0.0.1");
    host->worker = worker_of(host, 0);
}

static void commit(struct snapshot *snapshot)
{
    uint8_t *at = snapshot_begin(snapshot);

    for (uint64_t i = 0; i < MIB; i++) {
        uint8_t *chunk = at + i * STATE_CHUNK_BYTES;

        memset(chunk, (int)(i % 255 + 1), STATE_CHUNK_BYTES);
        snapshot_set_sum(snapshot, i, sum_of(chunk, STATE_CHUNK_BYTES));
    }
    snapshot_end(snapshot, COMMIT);
}

/* Makes the chunks that are there count as missing. */
static void forget_all(struct snapshot *snapshot)
{
    snapshot_begin(snapshot);
    for (uint64_t i = 0; i < MIB; i++)
        snapshot_set_sum(snapshot, i, SUM_NONE);
}

static double seconds_since(int64_t from_us)
{
    return (double)(clock_now_us() - from_us) / 1e6;
}

static double fetch(struct host *to, uint32_t slot, size_t first, size_t count)
{
    struct msg_source sources[HOSTS];
    char texts[HOSTS][96];
    const char *addresses[HOSTS];
    struct msg msg = { .type = MSG_FETCH, .incarnation = slot + 1 };
    static uint64_t number;
    int64_t begin_us = clock_now_us();

    for (size_t i = 0; i < count; i++) {
        snprintf(texts[i], sizeof(texts[i]), "state=%s",
                 state_thread_address(hosts[first + i].thread));
        addresses[i] = texts[i];
        sources[i] = (struct msg_source){
            .incarnation = 1, .host = hosts[first + i].name, .addresses = {&addresses[i], 1}
        };
    }
    msg.u.fetch = (struct msg_fetch){
        .number = ++number, .commit = COMMIT, .sources = {sources, count}
    };
    must(!state_thread_fetch(to->thread, slot + 1, slot, &msg), "ask for a fetch");
    event_base_dispatch(base);
    return seconds_since(begin_us);
}

static int by_size(const void *a, const void *b)
{
    double left = *(const double *)a;
    double right = *(const double *)b;

    return (left > right) - (left < right);
}

/* Of all threads, since it was asked last: what a busy machine does not change. */
static double cpu_seconds(void)
{
    static double before;
    struct rusage usage;
    double now, spent;

    getrusage(RUSAGE_SELF, &usage);
    now = (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
          (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
    spent = now - before;
    before = now;
    return spent;
}

/* In GB/s, beside a reference; the first run, into memory that was never touched, by itself. */
static double line(const char *name, double first_s, double cpu_s, double *runs, const char *than,
                   double reference)
{
    double rate;

    qsort(runs, RUNS, sizeof(runs[0]), by_size);
    rate = (double)(MIB << 20) / 1e9 / runs[RUNS / 2];
    printf("%-34s %6.2f GB/s", name, rate);
    printf("  cpu %5.2f s/GiB", cpu_s / RUNS);
    if (first_s > 0)
        printf("  first %5.2f", (double)(MIB << 20) / 1e9 / first_s);
    if (reference > 0)
        printf("  %.2f x %s", rate / reference, than);
    printf("\n");
    return rate;
}

static double time_fetch(const char *name, struct host *to, uint32_t slot, size_t first,
                         size_t count, const char *than, double reference)
{
    struct snapshot *worker = slot ? worker_of(to, slot) : to->worker;
    double runs[RUNS];
    double first_s = fetch(to, slot, first, count);

    (void)cpu_seconds();
    for (size_t i = 0; i < RUNS; i++) {
        forget_all(worker);
        runs[i] = fetch(to, slot, first, count);
    }
    forget_all(worker);
    return line(name, first_s, cpu_seconds(), runs, than, reference);
}

static double time_memcpy(void)
{
    size_t bytes = MIB << 20;
    uint8_t *from = mem_alloc(bytes);
    uint8_t *to = mem_alloc(bytes);
    double runs[RUNS];

    must(from && to, "get memory");
    memset(from, 1, bytes);
    memset(to, 2, bytes);
    (void)cpu_seconds();
    for (size_t i = 0; i < RUNS; i++) {
        int64_t begin_us = clock_now_us();

        memcpy(to, from, bytes);
        runs[i] = seconds_since(begin_us);
    }
    mem_free(from);
    mem_free(to);
    return line("memcpy", 0, cpu_seconds(), runs, "", 0);
}

static double time_tls(void)
{
    double runs[RUNS];

    (void)cpu_seconds();
    for (size_t i = 0; i < RUNS; i++) {
        runs[i] = bench_tls_carry(MIB << 20);
        must(runs[i] > 0, "carry bytes over TLS");
    }
    return line("one plain TLS connection", 0, cpu_seconds(), runs, "", 0);
}

int main(void)
{
    static const uint8_t key[TLS_KEY_BYTES] = { 1 };
    double copy, plain;

    signal(SIGPIPE, SIG_IGN);
    base = event_base_new();
    must(base && !tls_create("bench", key, &tls, NULL), "begin");
    for (unsigned i = 0; i < HOSTS; i++)
        make_host(&hosts[i], i);
    commit(hosts[0].worker);
    commit(hosts[1].worker);
    printf("1 GiB of state:\n");
    copy = time_memcpy();
    time_fetch("from a slot of the same host", &hosts[0], 1, 0, 1, "memcpy", copy);
    plain = time_tls();
    time_fetch("from one other host", &hosts[2], 0, 0, 1, "plain TLS", plain);
    time_fetch("from two other hosts", &hosts[2], 0, 0, 2, "plain TLS", plain);
    for (unsigned i = 0; i < HOSTS; i++) {
        state_thread_stop(hosts[i].thread);
        snapshot_free(hosts[i].worker);
        snapshots_free(hosts[i].snapshots);
    }
    tls_free(tls);
    event_base_free(base);
    return 0;
}
