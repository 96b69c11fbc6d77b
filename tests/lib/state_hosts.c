/*
 * state_hosts.c: several hosts in one process, with the commits of their workers, a real state
 * thread for each host, and fetches between the hosts.
 */
#include "tests/lib/state_hosts.h"

#include "base/limits.h"
#include "os/clock.h"
#include "state/sum.h"
#include "tests/lib/loopback.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static void on_fetched(void *arg, uint64_t who, const struct msg *fetched)
{
    struct state_hosts *hosts = ((struct state_host *)arg)->all;
    struct state_answer *answer;

    if (VEC_RESERVE(&hosts->answers, 1, 1024)) {
        hosts->starved = true;
        return;
    }
    answer = &hosts->answers.items[hosts->answers.count++];
    *answer = (struct state_answer){ .who = who, .fetched = fetched->u.fetched };
    answer->fetched.text = NULL;
    snprintf(answer->text, sizeof(answer->text), "%s", fetched->u.fetched.text);
}

static const struct state_ops ops = { on_fetched };

static const uint8_t key[TLS_KEY_BYTES] = { 7 };

static int start(struct state_hosts *hosts, size_t i)
{
    struct state_host *host = &hosts->hosts[i];
    struct state_config config = { .key_us = STATE_KEY_US, .host = host->name };
    int rc;

    host->all = hosts;
    snprintf(host->name, sizeof(host->name), "host-%c", (char)('a' + i));
    rc = tls_create("job", key, &host->tls, NULL);
    if (!rc)
        rc = snapshots_create(&host->snapshots, NULL);
    if (rc)
        return rc;
    config.tls = host->tls;
    config.snapshots = host->snapshots;
    rc = state_thread_start(hosts->base, &config, &ops, host, &host->thread, NULL);
    if (rc)
        return rc;
    state_thread_listen(host->thread, loopback_own());
    return 0;
}

int state_hosts_init(struct state_hosts *hosts, size_t count)
{
    int rc;

    signal(SIGPIPE, SIG_IGN);
    *hosts = (struct state_hosts){ .count = count };
    hosts->base = event_base_new();
    if (!hosts->base)
        return HVD_E_NOMEM;
    rc = tls_create("job", key, &hosts->tls, NULL);
    for (size_t i = 0; !rc && i < count; i++)
        rc = start(hosts, i);
    return rc;
}

void state_hosts_release(struct state_hosts *hosts)
{
    for (size_t i = 0; i < hosts->count; i++) {
        state_thread_stop(hosts->hosts[i].thread);
        snapshots_free(hosts->hosts[i].snapshots);
        tls_free(hosts->hosts[i].tls);
    }
    VEC_RELEASE(&hosts->answers);
    tls_free(hosts->tls);
    if (hosts->base)
        event_base_free(hosts->base);
}

struct snapshot *state_worker(struct state_hosts *hosts, size_t host, uint32_t slot,
                              uint64_t incarnation, uint64_t chunks)
{
    const struct snapshot_shape shape = { STATE_MANIFEST, chunks * STATE_CHUNK_BYTES,
                                          chunks * STATE_CHUNK_BYTES };
    struct snapshot *snapshot = NULL;
    int fd;

    if (snapshots_grant(hosts->hosts[host].snapshots, slot, incarnation, &shape, &fd, NULL) ||
        snapshot_open(dup(fd), &shape, &snapshot, NULL))
        return NULL;
    return snapshot;
}

void state_chunk_bytes(uint64_t commit, uint64_t chunk, uint8_t *ret_bytes)
{
    uint64_t word = commit * UINT64_C(0x9e3779b97f4a7c15) + chunk;

    for (size_t i = 0; i < STATE_CHUNK_BYTES; i += sizeof(word)) {
        word += UINT64_C(0x9e3779b97f4a7c15);
        memcpy(ret_bytes + i, &word, sizeof(word));
    }
}

static uint64_t chunks_of(const struct snapshot *snapshot)
{
    return snapshot_shape(snapshot)->bytes / STATE_CHUNK_BYTES;
}

int state_commit_part(struct snapshot *snapshot, uint64_t commit, uint64_t chunks)
{
    uint8_t *at = snapshot_begin(snapshot);

    for (uint64_t i = 0; i < chunks; i++) {
        if (snapshot_take_room(snapshot, i))
            return HVD_E_NOMEM;
        snapshot_set_sum(snapshot, i, SUM_NONE);
        state_chunk_bytes(commit, i, at + i * STATE_CHUNK_BYTES);
        snapshot_set_sum(snapshot, i, sum_of(at + i * STATE_CHUNK_BYTES, STATE_CHUNK_BYTES));
    }
    return 0;
}

int state_commit(struct snapshot *snapshot, uint64_t commit)
{
    int rc = state_commit_part(snapshot, commit, chunks_of(snapshot));

    if (!rc)
        snapshot_end(snapshot, commit);
    return rc;
}

bool state_has(struct snapshot *snapshot, uint64_t commit)
{
    static uint8_t expected[STATE_CHUNK_BYTES];
    const uint8_t *at = snapshot_begin(snapshot);
    bool right = true;

    for (uint64_t i = 0; right && i < chunks_of(snapshot); i++) {
        state_chunk_bytes(commit, i, expected);
        right = !memcmp(at + i * STATE_CHUNK_BYTES, expected, sizeof(expected)) &&
                snapshot_sum(snapshot, i) == sum_of(expected, sizeof(expected));
    }
    return right;
}

bool state_is(struct snapshot *snapshot, uint64_t commit)
{
    bool right = state_has(snapshot, commit);

    if (right)
        snapshot_end(snapshot, commit);
    return right;
}

struct msg_source state_source(const struct state_hosts *hosts, size_t host, uint32_t slot,
                               const char **room, char text[96])
{
    const char *address = state_thread_address(hosts->hosts[host].thread);

    snprintf(text, 96, "state=%s", address ? address : "127.0.0.1:1");
    *room = text;
    return (struct msg_source){
        .incarnation = 1, .host = hosts->hosts[host].name, .slot = slot, .addresses = {room, 1}
    };
}

int state_fetch(struct state_hosts *hosts, size_t host, uint32_t slot, uint64_t incarnation,
                uint64_t number, uint64_t commit, const struct msg_source *sources, size_t count)
{
    const struct msg msg = {
        .type = MSG_FETCH,
        .incarnation = incarnation,
        .u.fetch = {.number = number, .commit = commit, .sources = { sources, count }}
    };

    return state_thread_fetch(hosts->hosts[host].thread, incarnation, slot, &msg);
}

bool state_wait(struct state_hosts *hosts, size_t answers)
{
    int64_t until_us = clock_now_us() + STATE_PATIENCE_S * INT64_C(1000000);
    const struct timeval look = { 1, 0 };

    while (hosts->answers.count < answers && !hosts->starved && clock_now_us() < until_us) {
        if (event_base_loopexit(hosts->base, &look) ||
            event_base_loop(hosts->base, EVLOOP_ONCE) < 0)
            return false;
    }
    return hosts->answers.count >= answers;
}
