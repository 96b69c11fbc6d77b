/* Commits (snapshots of the training state) travel between agents: real threads and real TLS, in
 * one process. A holder is an agent that has the commit; a puller is an agent that asks for its
 * chunks; a liar is a holder that fails on purpose. */
#include "base/limits.h"
#include "state/sum.h"
#include "tests/lib/fixture.h"
#include "tests/lib/loopback.h"
#include "tests/lib/state_hosts.h"
#include "tests/lib/state_liar.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define CHUNKS 40
#define COMMIT 70

static struct state_hosts scene;
static struct snapshot *workers[STATE_HOSTS];
static const char *rooms[STATE_HOSTS];
static char texts[STATE_HOSTS][96];

/* Starts the hosts. On each host there is a worker in slot 0 with incarnation = host + 1; the
 * workers of the first `holders` hosts have made the commit. */
static int begin(size_t hosts, size_t holders, uint64_t chunks)
{
    int rc = state_hosts_init(&scene, hosts);

    memset(workers, 0, sizeof(workers));
    for (size_t i = 0; !rc && i < hosts; i++) {
        workers[i] = state_worker(&scene, i, 0, i + 1, chunks);
        rc = !workers[i] ? HVD_E_NOMEM : i < holders ? state_commit(workers[i], COMMIT) : 0;
    }
    return rc;
}

static struct msg_source source(size_t host)
{
    return state_source(&scene, host, 0, &rooms[host], texts[host]);
}

static struct state_liar liar;

static void end_case(struct test *t)
{
    (void)t;
    state_liar_stop(&liar);
    for (size_t i = 0; i < STATE_HOSTS; i++)
        snapshot_free(workers[i]);
    state_hosts_release(&scene);
}
FIXTURE(NULL, end_case)

TEST_FLAGS(a_commit_is_fetched_from_another_host, TEST_NO_TORTURE)
{
    struct msg_source sources[1];

    CHECK_OK(t, begin(2, 1, CHUNKS));
    sources[0] = source(0);
    CHECK_OK(t, state_fetch(&scene, 1, 0, 2, 1, COMMIT, sources, 1));
    CHECK(t, state_wait(&scene, 1));
    CHECK_TEXT(t, scene.answers.items[0].text, "");
    CHECK_INT(t, scene.answers.items[0].fetched.code, ==, 0);
    CHECK_INT(t, scene.answers.items[0].fetched.number, ==, 1);
    CHECK_INT(t, scene.answers.items[0].fetched.commit, ==, COMMIT);
    CHECK_INT(t, scene.answers.items[0].fetched.bytes, ==, CHUNKS * STATE_CHUNK_BYTES);
    CHECK_INT(t, scene.answers.items[0].fetched.local_bytes, ==, 0);
    CHECK(t, state_is(workers[1], COMMIT));
}

/* The commit stays in its slot when the worker and its incarnation are gone. */
TEST_FLAGS(a_commit_whose_worker_is_long_gone_is_fetched, TEST_NO_TORTURE)
{
    struct msg_source sources[1];

    CHECK_OK(t, begin(2, 1, CHUNKS));
    sources[0] = source(0);
    sources[0].incarnation = 0;
    CHECK_OK(t, state_fetch(&scene, 1, 0, 2, 1, COMMIT, sources, 1));
    CHECK(t, state_wait(&scene, 1));
    CHECK_TEXT(t, scene.answers.items[0].text, "");
    CHECK(t, state_is(workers[1], COMMIT));
}

TEST_FLAGS(a_commit_is_fetched_from_all_holders_at_once, TEST_NO_TORTURE)
{
    struct msg_source sources[3];

    CHECK_OK(t, begin(4, 3, 3L * CHUNKS));
    for (size_t i = 0; i < 3; i++)
        sources[i] = source(i);
    CHECK_OK(t, state_fetch(&scene, 3, 0, 4, 1, COMMIT, sources, 3));
    CHECK(t, state_wait(&scene, 1));
    CHECK_TEXT(t, scene.answers.items[0].text, "");
    CHECK_INT(t, scene.answers.items[0].fetched.bytes, >=, 3L * CHUNKS * STATE_CHUNK_BYTES);
    CHECK(t, state_is(workers[3], COMMIT));
}

/* A FETCH of commit 0 with sources is answered when a holder is connected, and the fetch after it
 * needs no new connection: it works although the holder has stopped listening meanwhile. */
TEST_FLAGS(a_holder_is_reached_before_the_fetch, TEST_NO_TORTURE)
{
    struct msg_source sources[1];

    CHECK_OK(t, begin(2, 0, 2));
    CHECK_OK(t, state_liar_start(&liar, &scene, LIE_COUNT, UINT64_MAX));
    sources[0] = state_liar_source(&liar);
    CHECK_OK(t, state_fetch(&scene, 1, 0, 2, 1, 0, sources, 1));
    CHECK(t, state_wait(&scene, 1));
    CHECK_TEXT(t, scene.answers.items[0].text, "");
    CHECK_INT(t, scene.answers.items[0].fetched.code, ==, 0);
    while (!liar.conn) /* the holder's side of the handshake may end later */
        CHECK_INT(t, event_base_loop(scene.base, EVLOOP_ONCE), ==, 0);
    listener_free(liar.listener);
    liar.listener = NULL;
    CHECK_OK(t, state_fetch(&scene, 1, 0, 2, 2, COMMIT, sources, 1));
    CHECK(t, state_wait(&scene, 2));
    CHECK_TEXT(t, scene.answers.items[1].text, "");
    CHECK(t, state_has(workers[1], COMMIT));
}

/* The reason is told for each holder, and a later request may succeed. */
TEST_FLAGS(no_holder_can_be_reached, TEST_NO_TORTURE)
{
    const char *nowhere = "state=127.0.0.1:1";
    struct msg_source sources[2];

    CHECK_OK(t, begin(2, 1, 2));
    sources[0] = source(0);
    sources[0].addresses = (struct msg_texts){ &nowhere, 1 };
    sources[1] = sources[0];
    CHECK_OK(t, state_fetch(&scene, 1, 0, 2, 1, 0, sources, 1));
    CHECK(t, state_wait(&scene, 1));
    CHECK_INT(t, scene.answers.items[0].fetched.code, ==, HVD_E_LOST);
    CHECK_HAS(t, scene.answers.items[0].text, "127.0.0.1:1");
    sources[1] = source(0);
    CHECK_OK(t, state_fetch(&scene, 1, 0, 2, 2, 0, sources, 2));
    CHECK(t, state_wait(&scene, 2));
    CHECK_INT(t, scene.answers.items[1].fetched.code, ==, 0);
}

/* A worker that dies, or asks for something else, while its agent still dials. */
TEST_FLAGS(a_request_to_reach_holders_is_given_up, TEST_NO_TORTURE)
{
    const char *nowhere = "state=127.0.0.1:1";
    struct msg_source sources[1];

    CHECK_OK(t, begin(2, 1, 2));
    sources[0] = source(0);
    sources[0].addresses = (struct msg_texts){ &nowhere, 1 };
    CHECK_OK(t, state_fetch(&scene, 1, 0, 2, 1, 0, sources, 1));
    sources[0] = source(0);
    CHECK_OK(t, state_fetch(&scene, 1, 0, 2, 2, COMMIT, sources, 1));
    CHECK(t, state_wait(&scene, 2));
    CHECK_INT(t, scene.answers.items[0].fetched.code, ==, HVD_E_REVOKED);
    CHECK_INT(t, scene.answers.items[1].fetched.code, ==, 0);
    CHECK_OK(t, state_fetch(&scene, 1, 0, 2, 3, 0, sources, 1));
    state_thread_forget(scene.hosts[1].thread, 2);
}

static const struct state_answer *answer(size_t i)
{
    return &scene.answers.items[i];
}

TEST_FLAGS(two_joiners_pull_at_once, TEST_NO_TORTURE)
{
    struct snapshot *other = NULL;
    struct msg_source sources[1];

    CHECK_OK(t, begin(3, 1, CHUNKS));
    other = state_worker(&scene, 1, 5, 9, CHUNKS); /* a second worker on one host */
    CHECK(t, other);
    sources[0] = source(0);
    CHECK_OK(t, state_fetch(&scene, 1, 0, 2, 1, COMMIT, sources, 1));
    CHECK_OK(t, state_fetch(&scene, 2, 0, 3, 1, COMMIT, sources, 1));
    CHECK_OK(t, state_fetch(&scene, 1, 5, 9, 1, COMMIT, sources, 1));
    CHECK(t, state_wait(&scene, 3));
    for (size_t i = 0; i < 3; i++)
        CHECK_TEXT(t, answer(i)->text, "");
    CHECK(t, state_is(workers[1], COMMIT));
    CHECK(t, state_is(workers[2], COMMIT));
    CHECK(t, state_is(other, COMMIT));
    snapshot_free(other);
}

TEST_FLAGS(a_commit_on_the_same_host_is_copied_without_a_dial, TEST_NO_TORTURE)
{
    struct snapshot *other = NULL;
    struct msg_source sources[2];

    CHECK_OK(t, begin(1, 1, CHUNKS));
    other = state_worker(&scene, 0, 1, 9, CHUNKS);
    CHECK(t, other);
    sources[0] = source(0);
    sources[0].addresses.count = 0;
    CHECK_OK(t, state_fetch(&scene, 0, 1, 9, 1, COMMIT, sources, 1));
    CHECK(t, state_wait(&scene, 1));
    CHECK_TEXT(t, answer(0)->text, "");
    CHECK_INT(t, answer(0)->fetched.bytes, ==, 0);
    CHECK_INT(t, answer(0)->fetched.local_bytes, ==, CHUNKS * STATE_CHUNK_BYTES);
    CHECK(t, state_is(other, COMMIT));
    snapshot_free(other);
}

TEST_FLAGS(own_chunks_are_not_fetched, TEST_NO_TORTURE)
{
    struct msg_source sources[1];

    CHECK_OK(t, begin(1, 1, CHUNKS));
    sources[0] = source(0);
    /* the newest commit of the host is copied into the other buffer */
    CHECK_OK(t, state_fetch(&scene, 0, 0, 1, 1, COMMIT, sources, 1));
    CHECK(t, state_wait(&scene, 1));
    CHECK_TEXT(t, answer(0)->text, "");
    CHECK_INT(t, answer(0)->fetched.local_bytes, ==, CHUNKS * STATE_CHUNK_BYTES);
    CHECK(t, state_is(workers[0], COMMIT));
    /* the older commit is already in the right buffer */
    CHECK_OK(t, state_commit(workers[0], COMMIT + 1));
    CHECK_OK(t, state_fetch(&scene, 0, 0, 1, 2, COMMIT, sources, 1));
    CHECK(t, state_wait(&scene, 2));
    CHECK_TEXT(t, answer(1)->text, "");
    CHECK_INT(t, answer(1)->fetched.local_bytes, ==, 0);
    CHECK(t, state_is(workers[0], COMMIT));
}

TEST_FLAGS(equal_chunks_do_not_travel, TEST_NO_TORTURE)
{
    struct msg_source sources[1];

    CHECK_OK(t, begin(2, 1, CHUNKS));
    sources[0] = source(0);
    CHECK_OK(t, state_commit_part(workers[1], COMMIT, 7));
    snapshot_set_sum(workers[1], 2, SUM_NONE); /* this worker died while it wrote the commit */
    CHECK_OK(t, state_fetch(&scene, 1, 0, 2, 1, COMMIT, sources, 1));
    CHECK(t, state_wait(&scene, 1));
    CHECK_TEXT(t, answer(0)->text, "");
    CHECK_INT(t, answer(0)->fetched.bytes, ==, (CHUNKS - 6) * STATE_CHUNK_BYTES);
    CHECK(t, state_is(workers[1], COMMIT));
}

TEST_FLAGS(a_chunk_that_was_never_written_has_no_sum, TEST_NO_TORTURE)
{
    struct msg_source sources[1];

    CHECK_OK(t, begin(2, 0, 3));
    CHECK_OK(t, state_commit_part(workers[0], COMMIT, 2));
    snapshot_end(workers[0], COMMIT);
    CHECK_OK(t, state_commit_part(workers[1], COMMIT + 5, 3));
    sources[0] = source(0);
    CHECK_OK(t, state_fetch(&scene, 1, 0, 2, 1, COMMIT, sources, 1));
    CHECK(t, state_wait(&scene, 1));
    CHECK_TEXT(t, answer(0)->text, "");
    snapshot_begin(workers[1]);
    CHECK_INT(t, snapshot_sum(workers[1], 2), ==, SUM_NONE);
    CHECK(t, snapshot_sum(workers[1], 1) != SUM_NONE);
}

TEST_FLAGS(no_bytes_are_there_at_once, TEST_NO_TORTURE)
{
    CHECK_OK(t, begin(1, 0, 0));
    CHECK_OK(t, state_fetch(&scene, 0, 0, 1, 1, COMMIT, NULL, 0));
    CHECK(t, state_wait(&scene, 1));
    CHECK_TEXT(t, answer(0)->text, "");
    CHECK(t, state_is(workers[0], COMMIT));
}

/* ---- fetches that fail ---- */

/* No source can serve the commit: an empty host, no address, an address without a listener, no
 * valid address. The answer names each reason. */
TEST_FLAGS(a_fetch_without_holders_fails, TEST_NO_TORTURE)
{
    const char *nowhere = "state=127.0.0.1:1";
    const char *rubbish[] = { "data=127.0.0.1:1/x", "state=somewhere" };
    struct msg_source sources[4];

    CHECK_OK(t, begin(2, 0, CHUNKS));
    sources[0] = source(0); /* this host has no commit */
    sources[1] = (struct msg_source){ .incarnation = 5, .host = "x", .slot = 7 };
    sources[2] = (struct msg_source){
        .incarnation = 6, .host = "y", .addresses = {&nowhere, 1}
    };
    sources[3] = (struct msg_source){
        .incarnation = 6, .host = "z", .addresses = {rubbish, 2}
    };
    CHECK_OK(t, state_fetch(&scene, 1, 0, 2, 2, COMMIT, sources, 4));
    CHECK(t, state_wait(&scene, 1));
    CHECK_INT(t, answer(0)->fetched.code, ==, HVD_E_LOST);
    CHECK_INT(t, answer(0)->fetched.number, ==, 2);
    CHECK_HAS(t, answer(0)->text, "slot 0 of host-a: there is no such commit");
    CHECK_HAS(t, answer(0)->text, "slot 7 of x: the source has no address");
    CHECK_HAS(t, answer(0)->text, "slot 0 of y: ");
    CHECK_HAS(t, answer(0)->text, "slot 0 of z: ");
    /* a worker that has opened no snapshot */
    CHECK_OK(t, state_fetch(&scene, 1, 3, 8, 3, COMMIT, sources, 1));
    CHECK(t, state_wait(&scene, 2));
    CHECK_INT(t, answer(1)->fetched.code, ==, HVD_E_STATE);
}

TEST_FLAGS(another_manifest_is_no_source, TEST_NO_TORTURE)
{
    const struct snapshot_shape shape = { STATE_MANIFEST + 1, STATE_CHUNK_BYTES,
                                          STATE_CHUNK_BYTES };
    struct snapshot *other = NULL;
    struct msg_source sources[1];
    int fd;

    CHECK_OK(t, begin(2, 0, 1));
    CHECK_OK(t, snapshots_grant(scene.hosts[0].snapshots, 0, 9, &shape, &fd, NULL));
    CHECK_OK(t, snapshot_open(dup(fd), &shape, &other, NULL));
    CHECK_OK(t, state_commit(other, COMMIT));
    sources[0] = source(0);
    CHECK_OK(t, state_fetch(&scene, 1, 0, 2, 1, COMMIT, sources, 1));
    CHECK(t, state_wait(&scene, 1));
    CHECK_INT(t, answer(0)->fetched.code, ==, HVD_E_LOST);
    snapshot_free(other);
}

/* Every kind of liar, alone and beside an honest holder. */
TEST_FLAGS(a_holder_that_fails_is_left_out, TEST_NO_TORTURE)
{
    struct msg_source sources[2];
    size_t answers = 0;

    CHECK_OK(t, begin(3, 1, CHUNKS));
    for (int lie = 0; lie < LIE_COUNT; lie++) {
        if (lie == LIE_IS_SILENT)
            continue; /* a slow liar; see below */
        CHECK_OK(t, state_liar_start(&liar, &scene, (enum lie)lie, 3));
        sources[0] = state_liar_source(&liar);
        sources[1] = source(0);
        CHECK_OK(t, state_commit_part(workers[1], COMMIT + 9, CHUNKS));
        CHECK_OK(t, state_fetch(&scene, 1, 0, 2, 1, COMMIT, sources, 1));
        CHECK(t, state_wait(&scene, ++answers));
        CHECK_INT(t, answer(answers - 1)->fetched.code, ==, HVD_E_LOST);
        CHECK_HAS(t, answer(answers - 1)->text, "slot 0 of liar: ");
        liar.honest = 3;
        CHECK_OK(t, state_commit_part(workers[1], COMMIT + 9, CHUNKS));
        CHECK_OK(t, state_fetch(&scene, 1, 0, 2, 2, COMMIT, sources, 2));
        CHECK(t, state_wait(&scene, ++answers));
        CHECK_TEXT(t, answer(answers - 1)->text, "");
        CHECK(t, state_has(workers[1], COMMIT));
        state_liar_stop(&liar);
    }
}

/* A holder is silent: its chunks come from the other holder, before any time limit ends. */
TEST_FLAGS(a_silent_holder_causes_no_delay, TEST_NO_TORTURE)
{
    struct msg_source sources[2];

    CHECK_OK(t, begin(2, 1, CHUNKS));
    CHECK_OK(t, state_liar_start(&liar, &scene, LIE_IS_SILENT, 3));
    sources[0] = state_liar_source(&liar);
    sources[1] = source(0);
    CHECK_OK(t, state_fetch(&scene, 1, 0, 2, 1, COMMIT, sources, 2));
    CHECK(t, state_wait(&scene, 1));
    CHECK_TEXT(t, answer(0)->text, "");
    CHECK(t, state_has(workers[1], COMMIT));
    CHECK_OK(t, state_commit_part(workers[1], COMMIT + 9, CHUNKS));
    CHECK_OK(t, state_fetch(&scene, 1, 0, 2, 2, COMMIT, sources, 1)); /* alone: the fetch is lost */
    CHECK(t, state_wait(&scene, 2));
    CHECK_INT(t, answer(1)->fetched.code, ==, HVD_E_LOST);
    CHECK_HAS(t, answer(1)->text, "the source has sent nothing for too long");
}

TEST_FLAGS(a_holder_that_commits_anew_is_checked_by_sums, TEST_NO_TORTURE)
{
    struct msg_source sources[2];

    CHECK_OK(t, begin(3, 2, CHUNKS));
    CHECK_OK(t, state_commit(workers[0], COMMIT + 1)); /* the older commit is wanted */
    sources[0] = source(0);
    sources[1] = source(1);
    CHECK_OK(t, state_fetch(&scene, 2, 0, 3, 1, COMMIT, sources, 2));
    for (uint64_t i = 2; i < 6; i++)
        CHECK_OK(t, state_commit(workers[0], COMMIT + i));
    CHECK(t, state_wait(&scene, 1));
    CHECK_TEXT(t, answer(0)->text, "");
    CHECK(t, state_is(workers[2], COMMIT));
}

/* ---- fetches that are ended ---- */

/* Waits until the worker's open buffer has `chunks` chunks. false: this took too long. */
static bool wait_for_chunks(struct snapshot *worker, uint64_t chunks)
{
    uint64_t there = 0;

    for (int i = 0; i < 10000 && there < chunks; i++) {
        const struct timeval moment = { 0, 5000 };

        if (event_base_loopexit(scene.base, &moment) || event_base_dispatch(scene.base) < 0)
            return false;
        there = 0;
        for (uint64_t chunk = 0; chunk < CHUNKS; chunk++)
            there += snapshot_sum(worker, chunk) != SUM_NONE;
    }
    return there >= chunks;
}

/* The first fetch gets 5 chunks. A second one without sources ends it, and a third one fetches only
 * the missing chunks. */
TEST_FLAGS(the_next_fetch_replaces_the_one_before, TEST_NO_TORTURE)
{
    struct msg_source sources[2];

    CHECK_OK(t, begin(2, 1, CHUNKS));
    CHECK_OK(t, state_liar_start(&liar, &scene, LIE_IS_SILENT, 5));
    snapshot_begin(workers[1]);
    sources[0] = state_liar_source(&liar);
    sources[1] = source(0);
    CHECK_OK(t, state_fetch(&scene, 1, 0, 2, 1, COMMIT, sources, 1));
    CHECK(t, wait_for_chunks(workers[1], 5));
    CHECK_OK(t, state_fetch(&scene, 1, 0, 2, 2, 0, NULL, 0)); /* ends the first fetch */
    CHECK_OK(t, state_fetch(&scene, 1, 0, 2, 3, COMMIT, sources + 1, 1));
    CHECK(t, state_wait(&scene, 3));
    CHECK_INT(t, answer(0)->fetched.number, ==, 1);
    CHECK_INT(t, answer(0)->fetched.code, ==, HVD_E_REVOKED);
    CHECK_INT(t, answer(1)->fetched.number, ==, 2);
    CHECK_INT(t, answer(1)->fetched.code, ==, 0);
    CHECK_INT(t, answer(2)->fetched.number, ==, 3);
    CHECK_TEXT(t, answer(2)->text, "");
    CHECK_INT(t, answer(2)->fetched.bytes, ==, (CHUNKS - 5) * STATE_CHUNK_BYTES);
    CHECK(t, state_is(workers[1], COMMIT));
}

/* The worker of a fetch is forgotten: no answer comes. A new worker in the slot continues with the
 * chunks that are there. */
TEST_FLAGS(a_worker_that_is_gone_gets_no_answer, TEST_NO_TORTURE)
{
    struct snapshot *successor = NULL;
    struct msg_source sources[2];

    CHECK_OK(t, begin(2, 1, CHUNKS));
    CHECK_OK(t, state_liar_start(&liar, &scene, LIE_IS_SILENT, 5));
    snapshot_begin(workers[1]);
    sources[0] = state_liar_source(&liar);
    sources[1] = source(0);
    CHECK_OK(t, state_fetch(&scene, 1, 0, 2, 1, COMMIT, sources, 1));
    CHECK(t, wait_for_chunks(workers[1], 5));
    state_thread_forget(scene.hosts[1].thread, 2);
    state_thread_forget(scene.hosts[1].thread, 2); /* a second call does nothing */
    /* the new worker in the slot continues with the chunks that are there */
    successor = state_worker(&scene, 1, 0, 12, CHUNKS);
    CHECK(t, successor);
    CHECK_OK(t, state_fetch(&scene, 1, 0, 12, 1, COMMIT, sources + 1, 1));
    CHECK(t, state_wait(&scene, 1));
    CHECK_INT(t, answer(0)->who, ==, 12);
    CHECK_TEXT(t, answer(0)->text, "");
    CHECK_INT(t, answer(0)->fetched.bytes, ==, (CHUNKS - 5) * STATE_CHUNK_BYTES);
    CHECK(t, state_is(successor, COMMIT));
    snapshot_free(successor);
}

TEST_FLAGS(the_thread_ends_in_the_middle_of_everything, TEST_NO_TORTURE)
{
    struct msg_source sources[2];

    CHECK_OK(t, begin(3, 1, CHUNKS));
    snapshot_begin(workers[1]);
    CHECK_OK(t, state_liar_start(&liar, &scene, LIE_IS_SILENT, 5));
    sources[0] = state_liar_source(&liar);
    sources[1] = source(0);
    CHECK_OK(t, state_fetch(&scene, 1, 0, 2, 1, COMMIT, sources, 1));
    CHECK_OK(t, state_fetch(&scene, 2, 0, 3, 1, COMMIT, sources + 1, 1));
    CHECK(t, wait_for_chunks(workers[1], 1));
}

/* ---- pullers --------------------------------------------------------------------------------- */

struct puller {
    struct conn *conn;
    int opened;
    int chunks;
    int32_t code;
    int closed;
};

static void on_opened(void *arg)
{
    struct puller *puller = arg;

    puller->opened++;
    conn_greeted(puller->conn);
}

static void on_chunk(void *arg, const struct msg *msg)
{
    struct puller *puller = arg;

    puller->chunks++;
    puller->code = msg->u.chunk.code;
}

static void on_closed(void *arg, const char *why)
{
    struct puller *puller = arg;

    (void)why;
    puller->closed++;
    puller->conn = NULL;
}

static const struct conn_ops puller_ops = { on_opened, on_chunk, on_closed, NULL };

static bool wait_until(const int *number, int value)
{
    for (int i = 0; i < 10000 && *number < value; i++) {
        const struct timeval moment = { 0, 5000 };

        if (event_base_loopexit(scene.base, &moment) || event_base_dispatch(scene.base) < 0)
            return false;
    }
    return *number >= value;
}

static bool dial(struct puller *puller)
{
    const char *address = state_thread_address(scene.hosts[0].thread);
    const struct msg_texts addresses = { &address, 1 };

    *puller = (struct puller){ .code = 0 };
    return !conn_dial(scene.base, &addresses, scene.tls, &puller_ops, puller, &puller->conn,
                      NULL) &&
           wait_until(&puller->opened, 1);
}

static struct msg a_pull(uint64_t first, uint32_t count)
{
    return (struct msg){
        .type = MSG_PULL,
        .incarnation = 1,
        .u.pull = {.manifest = STATE_MANIFEST, .commit = COMMIT, .first = first, .count = count}
    };
}

/* Requests for no chunk, with wrong lists and of a wrong type end the connection; so does a peer
 * that asks for much and reads nothing. Another agent is served meanwhile. */
TEST_FLAGS(a_peer_with_bad_requests_is_disconnected, TEST_NO_TORTURE)
{
    static const uint64_t known[3];
    struct puller puller = { .conn = NULL };
    struct msg rubbish[3];
    struct msg_source sources[1];

    CHECK_OK(t, begin(2, 1, CHUNKS));
    rubbish[0] = a_pull(0, 0);
    rubbish[1] = a_pull(0, 2);
    rubbish[1].u.pull.known = (struct msg_ids){ known, 3 };
    rubbish[2] = (struct msg){
        .type = MSG_BEAT, .u.beat = {.sequence = 1, .answers = 1}
    };
    for (size_t i = 0; i < ARRAY_SIZE(rubbish); i++) {
        CHECK(t, dial(&puller));
        CHECK_OK(t, conn_send(puller.conn, &rubbish[i], NULL));
        CHECK(t, wait_until(&puller.closed, 1));
        CHECK_INT(t, puller.chunks, ==, 0);
    }
    /* a peer that asks for everything and reads nothing */
    CHECK(t, dial(&puller));
    conn_hold(puller.conn, true);
    rubbish[0] = a_pull(0, LIMIT_PULL_CHUNKS);
    for (int i = 0; i < 100; i++)
        CHECK_OK(t, conn_send(puller.conn, &rubbish[0], NULL));
    /* the other agents are served */
    sources[0] = source(0);
    CHECK_OK(t, state_fetch(&scene, 1, 0, 2, 1, COMMIT, sources, 1));
    CHECK(t, state_wait(&scene, 1));
    CHECK(t, state_is(workers[1], COMMIT));
    conn_hold(puller.conn, false);
    CHECK(t, wait_until(&puller.closed, 1));
    conn_drop(puller.conn);
}

/* Each bad request gets one answer with a code; the connection stays and serves the next
 * request. */
TEST_FLAGS(a_missing_chunk_ends_the_answer, TEST_NO_TORTURE)
{
    struct puller puller = { .conn = NULL };
    struct msg pull;

    CHECK_OK(t, begin(1, 1, CHUNKS));
    CHECK(t, dial(&puller));
    pull = a_pull(CHUNKS - 2, 10);
    CHECK_OK(t, conn_send(puller.conn, &pull, NULL));
    CHECK(t, wait_until(&puller.chunks, 3));
    CHECK_INT(t, puller.code, ==, HVD_E_INVAL);
    pull = a_pull(0, 10);
    pull.u.pull.commit++;
    CHECK_OK(t, conn_send(puller.conn, &pull, NULL));
    CHECK(t, wait_until(&puller.chunks, 4));
    CHECK_INT(t, puller.code, ==, HVD_E_NOTFOUND);
    pull = a_pull(0, 1); /* the connection still serves */
    CHECK_OK(t, conn_send(puller.conn, &pull, NULL));
    CHECK(t, wait_until(&puller.chunks, 5));
    CHECK_INT(t, puller.code, ==, 0);
    CHECK_INT(t, puller.closed, ==, 0);
    conn_drop(puller.conn);
}

TEST_FLAGS(the_thread_works_without_a_listener, TEST_NO_TORTURE)
{
    char before[96];

    CHECK_OK(t, begin(2, 1, 1));
    snprintf(before, sizeof(before), "%s", state_thread_address(scene.hosts[0].thread));
    state_thread_listen(scene.hosts[0].thread, "192.0.2.1"); /* an address of no host */
    CHECK(t, !state_thread_address(scene.hosts[0].thread));
    state_thread_listen(scene.hosts[0].thread, loopback_own()); /* the driver is back */
    CHECK_TEXT(t, state_thread_address(scene.hosts[0].thread), before);
    state_thread_listen(scene.hosts[0].thread, "::1");
    CHECK_HAS(t, state_thread_address(scene.hosts[0].thread), "[::1]:");
    state_thread_listen(scene.hosts[0].thread, "::1");
    CHECK_HAS(t, state_thread_address(scene.hosts[0].thread), "[::1]:");
}

/* ---- keys of rounds ----------------------------------------------------------------------------
 */

static void tell_key(size_t host, uint64_t round)
{
    uint8_t key[STATE_KEY_BYTES] = { (uint8_t)round, 0x5a };

    state_thread_key(scene.hosts[host].thread, round, key);
}

/* A puller may hear of a round before its holder: it is refused, and asks again. */
TEST_FLAGS(a_puller_waits_until_its_holder_knows_the_round, TEST_NO_TORTURE)
{
    struct msg_source sources[1];

    CHECK_OK(t, begin(2, 1, CHUNKS));
    sources[0] = source(0);
    tell_key(1, 5);
    CHECK_OK(t, state_fetch(&scene, 1, 0, 2, 1, COMMIT, sources, 1));
    /* An own fetch, which fails at once, shows that the thread has taken the key and has dialled.
     */
    CHECK_OK(t, state_fetch(&scene, 1, 1, 9, 1, COMMIT, sources, 0));
    CHECK(t, state_wait(&scene, 1));
    tell_key(0, 5);
    CHECK(t, state_wait(&scene, 2));
    CHECK_TEXT(t, scene.answers.items[1].text, "");
    CHECK(t, state_is(workers[1], COMMIT));
}

/* An agent that is not told the keys of later rounds fetches nothing any more. */
TEST_FLAGS(a_removed_agent_cannot_fetch, TEST_NO_TORTURE)
{
    struct msg_source sources[1];
    size_t removed;

    CHECK_OK(t, begin(3, 1, CHUNKS));
    sources[0] = source(0);
    for (uint64_t round = 1; round <= 3; round++) {
        tell_key(0, round);
        /* The thread takes the key before it answers this. Of two keys that come at once it takes
         * the later one only, and the key of round 1 would be that of the round before. */
        state_thread_listen(scene.hosts[0].thread, loopback_own());
        CHECK(t, state_thread_address(scene.hosts[0].thread));
    }
    tell_key(1, 1);
    tell_key(2, 3);
    CHECK_OK(t, state_fetch(&scene, 1, 0, 2, 1, COMMIT, sources, 1));
    CHECK_OK(t, state_fetch(&scene, 2, 0, 3, 1, COMMIT, sources, 1));
    CHECK(t, state_wait(&scene, 2));
    /* The two fetches end in either order. */
    removed = scene.answers.items[0].who == 2 ? 0 : 1;
    CHECK_INT(t, scene.answers.items[removed].fetched.code, ==, HVD_E_LOST);
    CHECK_HAS(t, scene.answers.items[removed].text, TLS_REFUSED);
    CHECK_INT(t, scene.answers.items[1 - removed].who, ==, 3);
    CHECK_TEXT(t, scene.answers.items[1 - removed].text, "");
    CHECK(t, state_is(workers[2], COMMIT));
    CHECK(t, !state_has(workers[1], COMMIT));
}
