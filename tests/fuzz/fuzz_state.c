/*
 * fuzz_state.c: a worker that asks for memory of any size, a holder that answers a PULL with
 * anything, and a puller that asks for anything. All of them have the job's key. Each byte chooses
 * a message.
 *
 * After any input, a chunk with a checksum must match it, and each fetch must have one answer.
 */
#include "agent/commits/state_fetch_internal.h"
#include "base/limits.h"
#include "base/log.h"
#include "base/panic.h"
#include "state/sum.h"
#include "tests/lib/fuzz_input.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

#define CHUNKS    3
#define COMMIT    7
#define TURNS_MAX 400
#define TURN_US   2000 /* after this time an event loop without events is idle */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct fuzz_input in;
static struct event_base *base;
static struct tls *tls;
static struct state_thread thread;
static struct conn *holder;
static uint8_t bytes[STATE_CHUNK_BYTES];

static uint8_t take_byte(void)
{
    return fuzz_byte(&in);
}

/* ---- the holder ------------------------------------------------------------------------------ */

/* Changes a right answer of the holder; `how` chooses the lie. */
static void lie(struct msg *msg, uint8_t how)
{
    struct msg_chunk *chunk = &msg->u.chunk;

    switch (how % 12) {
    case 1: chunk->checksum ^= 1; break;
    case 2: chunk->data.length = take_byte(); break;
    case 3: chunk->data.length = 0; break;
    case 4: chunk->checksum = SUM_NONE; break;
    case 5: chunk->index += take_byte(); break;
    case 6: chunk->commit ^= take_byte(); break;
    case 7: chunk->code = -(int32_t)take_byte(); break;
    case 8: *msg = (struct msg){ .type = MSG_BEAT, .u.beat.sequence = 1 }; break;
    case 9:
        chunk->data.length = 0;
        chunk->checksum = SUM_NONE;
        break;
    default: break;
    }
}

/* Sends a chunk in answer to a PULL; a byte of the input chooses whether and how the chunk is
 * wrong. */
static void answer(const struct msg *pull, uint64_t index)
{
    struct msg msg = { .type = MSG_CHUNK, .incarnation = pull->incarnation };
    uint8_t how = take_byte();

    memset(bytes, (int)index + 1, sizeof(bytes));
    msg.u.chunk = (struct msg_chunk){
        .commit = COMMIT,
        .index = index,
        .checksum = sum_of(bytes, sizeof(bytes)),
        .data = {bytes, sizeof(bytes)}
    };
    lie(&msg, how);
    if (how % 12 == 10)
        return; /* sends nothing */
    if (conn_send(holder, &msg, NULL) || how % 12 == 11) {
        conn_drop(holder);
        holder = NULL;
    }
}

static void on_pull(void *arg, const struct msg *msg)
{
    (void)arg;
    ASSERT(msg->type == MSG_PULL && msg->u.pull.count <= CHUNKS);
    for (uint32_t i = 0; i < msg->u.pull.count && holder; i++)
        answer(msg, msg->u.pull.first + i);
}

static void on_closed(void *arg, const char *why)
{
    (void)arg;
    (void)why;
    holder = NULL;
}

static const struct conn_ops holder_ops = { NULL, on_pull, on_closed, NULL };

static void on_accepted(void *arg, struct conn *conn)
{
    (void)arg;
    if (holder)
        conn_drop(holder);
    holder = conn;
    conn_greeted(conn);
    conn_own(conn, &holder_ops, NULL);
}

/* ---- the puller ------------------------------------------------------------------------------ */

static struct conn *puller;

static void pull_something(void *arg)
{
    static const uint64_t known[LIMIT_PULL_CHUNKS];
    struct msg msg = { .type = MSG_PULL, .incarnation = 1 };

    (void)arg;
    conn_greeted(puller);
    for (int i = take_byte() % 32; i > 0; i--) {
        msg.u.pull = (struct msg_pull){
            .slot = take_byte() % 2,
            .manifest = 1 + take_byte() % 2,
            .commit = take_byte() % 2 ? COMMIT : take_byte(),
            .first = take_byte() % 8 == 7 ? LIMIT_STATE_CHUNKS : take_byte() % 8,
            .count = take_byte() % (LIMIT_PULL_CHUNKS + 1),
            .known = {known, take_byte() % 4}
        };
        ASSERT(!conn_send(puller, &msg, NULL));
    }
}

static void on_chunk(void *arg, const struct msg *msg)
{
    (void)arg;
    ASSERT(msg->type == MSG_CHUNK);
    if (msg->u.chunk.data.length)
        ASSERT(sum_of(msg->u.chunk.data.at, STATE_CHUNK_BYTES) == msg->u.chunk.checksum);
}

static void on_puller_closed(void *arg, const char *why)
{
    (void)arg;
    (void)why;
    puller = NULL;
}

static const struct conn_ops puller_ops = { pull_something, on_chunk, on_puller_closed, NULL };

/* ---- all of it ------------------------------------------------------------------------------- */

/* Sets up the parts of the state thread, in the event loop of this thread. */
static void begin(void)
{
    static const uint8_t key[TLS_KEY_BYTES] = { 1 };

    if (!base) {
        signal(SIGPIPE, SIG_IGN);
        log_open(NULL);
        base = event_base_new();
        ASSERT(base && !tls_create("job", key, &tls, NULL));
    }
    thread = (struct state_thread){ .base = base, .to_loop = -1, .to_thread = -1 };
    thread.config = (struct state_config){ .tls = tls, .host = "here" };
    ASSERT(!snapshots_create(&thread.config.snapshots, NULL));
    ASSERT(!pthread_mutex_init(&thread.mutex, NULL));
    list_init(&thread.asked);
    list_init(&thread.running);
    list_init(&thread.answered);
    list_init(&thread.servings);
    list_init(&thread.early);
}

static void ask_for_memory(uint32_t slot, uint64_t incarnation)
{
    struct snapshot_shape shape = { 1, CHUNKS * STATE_CHUNK_BYTES, CHUNKS * STATE_CHUNK_BYTES };
    uint8_t how = take_byte();
    int fd = -1;
    int rc;

    if (how & 1)
        shape.manifest = how >> 4;
    if (how & 2)
        shape.bytes = (uint64_t)take_byte() << (how >> 2);
    rc = snapshots_grant(thread.config.snapshots, slot, incarnation, &shape, &fd, NULL);
    ASSERT((rc == 0) == (fd >= 0));
}

static void commit(uint32_t slot)
{
    struct shared_snapshot *shared = snapshots_granted(thread.config.snapshots, slot, 9);
    struct snapshot *snapshot = shared ? shared_snapshot_of(shared) : NULL;

    if (snapshot && snapshot_shape(snapshot)->bytes <= CHUNKS * STATE_CHUNK_BYTES) {
        uint8_t *at = snapshot_begin(snapshot);

        for (uint64_t i = 0; i < snapshot_shape(snapshot)->bytes / STATE_CHUNK_BYTES; i++) {
            memset(at + i * STATE_CHUNK_BYTES, (int)i + 9, STATE_CHUNK_BYTES);
            snapshot_set_sum(snapshot, i, sum_of(at + i * STATE_CHUNK_BYTES, STATE_CHUNK_BYTES));
        }
        snapshot_end(snapshot, COMMIT);
    }
    shared_snapshot_put_down(shared);
}

static void turn(void)
{
    const struct timeval moment = { 0, TURN_US };

    ASSERT(!event_base_loopexit(base, &moment) && event_base_loop(base, EVLOOP_ONCE) >= 0);
}

static void fetch_from(const char *address, uint64_t commit)
{
    const struct msg_source source = {
        .incarnation = 1, .host = "there", .addresses = {&address, 1}
    };
    const struct msg msg = {
        .type = MSG_FETCH,
        .incarnation = 5,
        .u.fetch = {.number = 1, .commit = commit, .sources = { &source, 1 }}
    };
    struct fetch *fetch = fetch_create(&thread, 5, 0, &msg);

    ASSERT(fetch);
    list_append(&thread.running, &fetch->link);
    fetch_begin(fetch);
    for (int i = 0; i < TURNS_MAX && !list_empty(&thread.running) && (in.left || i < 20); i++)
        turn();
    if (!list_empty(&thread.running))
        fetch_end(fetch, HVD_E_REVOKED, "enough");
    ASSERT(list_length(&thread.answered) == 1);
    list_remove(&fetch->link);
    fetch_free(fetch);
}

/* reaches: the connection of the fetch is opened by a FETCH of commit 0 before it */
static void fetch_something(bool reaches)
{
    const struct snapshot_shape shape = { 1, CHUNKS * STATE_CHUNK_BYTES,
                                          CHUNKS * STATE_CHUNK_BYTES };
    struct listener *listener = NULL;
    struct shared_snapshot *shared;
    char address[ADDRESS_TEXT_MAX + 8];
    int fd;
    struct snapshot *into;
    const uint8_t *at;

    ASSERT(!snapshots_grant(thread.config.snapshots, 0, 5, &shape, &fd, NULL));
    ASSERT(!listener_tcp(base, &(struct listener_place){ "127.0.0.1", 0, tls }, on_accepted, NULL,
                         &listener, NULL));
    snprintf(address, sizeof(address), "state=%s", listener_address(listener));
    if (reaches)
        fetch_from(address, 0);
    fetch_from(address, COMMIT);
    reach_drop(&thread, 0);
    shared = snapshots_granted(thread.config.snapshots, 0, 5);
    into = shared_snapshot_of(shared);
    at = snapshot_begin(into);
    for (uint64_t i = 0; i < CHUNKS; i++) {
        uint64_t sum = snapshot_sum(into, i);

        if (sum != SUM_NONE)
            ASSERT(sum_of(at + i * STATE_CHUNK_BYTES, STATE_CHUNK_BYTES) == sum);
    }
    shared_snapshot_put_down(shared);
    listener_free(listener);
    conn_drop(holder);
    holder = NULL;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t what;

    in = (struct fuzz_input){ data, size };
    begin();
    what = take_byte();
    if (what & 1)
        fetch_something(what & 4);
    if (what & 2) {
        struct listener *listener;
        const char *address;
        struct msg_texts addresses;

        ask_for_memory(1, 9);
        ask_for_memory(1, 9);
        commit(1);
        listener = NULL;
        addresses = (struct msg_texts){ &address, 1 };
        ASSERT(!listener_tcp(base, &(struct listener_place){ "127.0.0.1", 0, tls }, serve_accepted,
                             &thread, &listener, NULL));
        address = listener_address(listener);
        ASSERT(!conn_dial(base, &addresses, tls, &puller_ops, NULL, &puller, NULL));
        for (int i = 0; i < 40 && puller; i++)
            turn();
        conn_drop(puller);
        puller = NULL;
        listener_free(listener);
        serve_end(&thread, UINT64_MAX);
    }
    snapshots_free(thread.config.snapshots);
    pthread_mutex_destroy(&thread.mutex);
    return 0;
}
