/* Commits that travel between agents: real threads, real TLS, in one process. */
#include "base/limits.h"
#include "state/sum.h"
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

/* On each host a worker in slot 0, incarnation = host + 1; those of the first `holders` hosts have
 * committed. */
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

static void end(void)
{
    for (size_t i = 0; i < STATE_HOSTS; i++)
        snapshot_free(workers[i]);
    state_hosts_release(&scene);
}

static struct msg_source source(size_t host)
{
    return state_source(&scene, host, 0, &rooms[host], texts[host]);
}

static void a_commit_is_fetched_from_another_host(struct test *t)
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
out:
    end();
}

/* What is in its slot outlives it, and its number. */
static void a_commit_whose_worker_is_long_gone_is_fetched(struct test *t)
{
    struct msg_source sources[1];

    CHECK_OK(t, begin(2, 1, CHUNKS));
    sources[0] = source(0);
    sources[0].incarnation = 0;
    CHECK_OK(t, state_fetch(&scene, 1, 0, 2, 1, COMMIT, sources, 1));
    CHECK(t, state_wait(&scene, 1));
    CHECK_TEXT(t, scene.answers.items[0].text, "");
    CHECK(t, state_is(workers[1], COMMIT));
out:
    end();
}

static void it_is_fetched_from_all_holders_at_once(struct test *t)
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
out:
    end();
}

static const struct state_answer *answer(size_t i)
{
    return &scene.answers.items[i];
}

static void two_joiners_pull_at_once(struct test *t)
{
    struct snapshot *other = NULL;
    struct msg_source sources[1];

    CHECK_OK(t, begin(3, 1, CHUNKS));
    other = state_worker(&scene, 1, 5, 9, CHUNKS); /* and two on one host */
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
out:
    snapshot_free(other);
    end();
}

static void a_neighbour_is_copied_and_nobody_dialled(struct test *t)
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
out:
    snapshot_free(other);
    end();
}

static void what_the_worker_has_itself_is_not_fetched(struct test *t)
{
    struct msg_source sources[1];

    CHECK_OK(t, begin(1, 1, CHUNKS));
    sources[0] = source(0);
    /* the newest: it is copied into the other buffer */
    CHECK_OK(t, state_fetch(&scene, 0, 0, 1, 1, COMMIT, sources, 1));
    CHECK(t, state_wait(&scene, 1));
    CHECK_TEXT(t, answer(0)->text, "");
    CHECK_INT(t, answer(0)->fetched.local_bytes, ==, CHUNKS * STATE_CHUNK_BYTES);
    CHECK(t, state_is(workers[0], COMMIT));
    /* the older: it lies where it is wanted */
    CHECK_OK(t, state_commit(workers[0], COMMIT + 1));
    CHECK_OK(t, state_fetch(&scene, 0, 0, 1, 2, COMMIT, sources, 1));
    CHECK(t, state_wait(&scene, 2));
    CHECK_TEXT(t, answer(1)->text, "");
    CHECK_INT(t, answer(1)->fetched.local_bytes, ==, 0);
    CHECK(t, state_is(workers[0], COMMIT));
out:
    end();
}

static void equal_chunks_do_not_travel(struct test *t)
{
    struct msg_source sources[1];

    CHECK_OK(t, begin(2, 1, CHUNKS));
    sources[0] = source(0);
    CHECK_OK(t, state_commit_part(workers[1], COMMIT, 7));
    snapshot_set_sum(workers[1], 2, SUM_NONE); /* it died while it wrote this one */
    CHECK_OK(t, state_fetch(&scene, 1, 0, 2, 1, COMMIT, sources, 1));
    CHECK(t, state_wait(&scene, 1));
    CHECK_TEXT(t, answer(0)->text, "");
    CHECK_INT(t, answer(0)->fetched.bytes, ==, (CHUNKS - 6) * STATE_CHUNK_BYTES);
    CHECK(t, state_is(workers[1], COMMIT));
out:
    end();
}

static void a_chunk_that_was_never_written_has_no_sum(struct test *t)
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
out:
    end();
}

static void no_bytes_are_there_at_once(struct test *t)
{
    CHECK_OK(t, begin(1, 0, 0));
    CHECK_OK(t, state_fetch(&scene, 0, 0, 1, 1, COMMIT, NULL, 0));
    CHECK(t, state_wait(&scene, 1));
    CHECK_TEXT(t, answer(0)->text, "");
    CHECK(t, state_is(workers[0], COMMIT));
out:
    end();
}

/* ---- it does not work out -------------------------------------------------------------------- */

static void nobody_is_left(struct test *t)
{
    const char *nowhere = "state=127.0.0.1:1";
    const char *rubbish[] = { "data=127.0.0.1:1/x", "state=somewhere" };
    struct msg_source sources[4];

    CHECK_OK(t, begin(2, 0, CHUNKS));
    sources[0] = source(0); /* it has committed nothing */
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
    CHECK_HAS(t, answer(0)->text, "slot 7 of x: it has no address");
    CHECK_HAS(t, answer(0)->text, "slot 0 of y: ");
    CHECK_HAS(t, answer(0)->text, "slot 0 of z: ");
    /* a worker that has asked for no snapshot */
    CHECK_OK(t, state_fetch(&scene, 1, 3, 8, 3, COMMIT, sources, 1));
    CHECK(t, state_wait(&scene, 2));
    CHECK_INT(t, answer(1)->fetched.code, ==, HVD_E_STATE);
out:
    end();
}

static void another_manifest_is_no_source(struct test *t)
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
out:
    snapshot_free(other);
    end();
}

/* Every way of it, with nobody beside it and with somebody who is honest. */
static void a_holder_that_fails_is_left_out(struct test *t)
{
    struct state_liar liar = { .conn = NULL };
    struct msg_source sources[2];
    size_t answers = 0;

    CHECK_OK(t, begin(3, 1, CHUNKS));
    for (int lie = 0; lie < LIE_COUNT; lie++) {
        if (lie == LIE_IS_SILENT)
            continue; /* takes its time: see below */
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
out:
    state_liar_stop(&liar);
    end();
}

/* Stopped, or cut off: what it was asked for comes from the other, without waiting for its end. */
static void a_silent_holder_holds_nobody_up(struct test *t)
{
    struct state_liar liar = { .conn = NULL };
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
    CHECK_OK(t, state_fetch(&scene, 1, 0, 2, 2, COMMIT, sources, 1)); /* and alone: it is lost */
    CHECK(t, state_wait(&scene, 2));
    CHECK_INT(t, answer(1)->fetched.code, ==, HVD_E_LOST);
    CHECK_HAS(t, answer(1)->text, "it is silent");
out:
    state_liar_stop(&liar);
    end();
}

static void a_holder_that_commits_over_it_is_believed_only_by_its_sums(struct test *t)
{
    struct msg_source sources[2];

    CHECK_OK(t, begin(3, 2, CHUNKS));
    CHECK_OK(t, state_commit(workers[0], COMMIT + 1)); /* what is wanted is its older one */
    sources[0] = source(0);
    sources[1] = source(1);
    CHECK_OK(t, state_fetch(&scene, 2, 0, 3, 1, COMMIT, sources, 2));
    for (uint64_t i = 2; i < 6; i++)
        CHECK_OK(t, state_commit(workers[0], COMMIT + i));
    CHECK(t, state_wait(&scene, 1));
    CHECK_TEXT(t, answer(0)->text, "");
    CHECK(t, state_is(workers[2], COMMIT));
out:
    end();
}

/* ---- it is ended ----------------------------------------------------------------------------- */

/* Waits until so many chunks of the worker's open buffer are there. */
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

static void the_next_fetch_ends_it_and_goes_on(struct test *t)
{
    struct state_liar liar = { .conn = NULL };
    struct msg_source sources[2];

    CHECK_OK(t, begin(2, 1, CHUNKS));
    CHECK_OK(t, state_liar_start(&liar, &scene, LIE_IS_SILENT, 5));
    snapshot_begin(workers[1]);
    sources[0] = state_liar_source(&liar);
    sources[1] = source(0);
    CHECK_OK(t, state_fetch(&scene, 1, 0, 2, 1, COMMIT, sources, 1));
    CHECK(t, wait_for_chunks(workers[1], 5));
    CHECK_OK(t, state_fetch(&scene, 1, 0, 2, 2, 0, NULL, 0)); /* only ends it */
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
out:
    state_liar_stop(&liar);
    end();
}

static void who_is_gone_gets_no_answer_and_no_bytes(struct test *t)
{
    struct state_liar liar = { .conn = NULL };
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
    state_thread_forget(scene.hosts[1].thread, 2); /* it may be told twice */
    /* who is started in its slot goes on with what has come */
    successor = state_worker(&scene, 1, 0, 12, CHUNKS);
    CHECK(t, successor);
    CHECK_OK(t, state_fetch(&scene, 1, 0, 12, 1, COMMIT, sources + 1, 1));
    CHECK(t, state_wait(&scene, 1));
    CHECK_INT(t, answer(0)->who, ==, 12);
    CHECK_TEXT(t, answer(0)->text, "");
    CHECK_INT(t, answer(0)->fetched.bytes, ==, (CHUNKS - 5) * STATE_CHUNK_BYTES);
    CHECK(t, state_is(successor, COMMIT));
out:
    snapshot_free(successor);
    state_liar_stop(&liar);
    end();
}

static void the_thread_ends_in_the_middle_of_everything(struct test *t)
{
    struct state_liar liar = { .conn = NULL };
    struct msg_source sources[2];

    CHECK_OK(t, begin(3, 1, CHUNKS));
    snapshot_begin(workers[1]);
    CHECK_OK(t, state_liar_start(&liar, &scene, LIE_IS_SILENT, 5));
    sources[0] = state_liar_source(&liar);
    sources[1] = source(0);
    CHECK_OK(t, state_fetch(&scene, 1, 0, 2, 1, COMMIT, sources, 1));
    CHECK_OK(t, state_fetch(&scene, 2, 0, 3, 1, COMMIT, sources + 1, 1));
    CHECK(t, wait_for_chunks(workers[1], 1));
out:
    state_liar_stop(&liar);
    end();
}

/* ---- whoever pulls --------------------------------------------------------------------------- */

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

static void who_pulls_rubbish_is_hung_up_on(struct test *t)
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
        .type = MSG_BEAT, .u.beat = {1, 1}
    };
    for (size_t i = 0; i < ARRAY_SIZE(rubbish); i++) {
        CHECK(t, dial(&puller));
        CHECK_OK(t, conn_send(puller.conn, &rubbish[i], NULL));
        CHECK(t, wait_until(&puller.closed, 1));
        CHECK_INT(t, puller.chunks, ==, 0);
    }
    /* one that asks for everything and reads nothing */
    CHECK(t, dial(&puller));
    conn_hold(puller.conn, true);
    rubbish[0] = a_pull(0, LIMIT_PULL_CHUNKS);
    for (int i = 0; i < 100; i++)
        CHECK_OK(t, conn_send(puller.conn, &rubbish[0], NULL));
    /* and the others are served */
    sources[0] = source(0);
    CHECK_OK(t, state_fetch(&scene, 1, 0, 2, 1, COMMIT, sources, 1));
    CHECK(t, state_wait(&scene, 1));
    CHECK(t, state_is(workers[1], COMMIT));
    conn_hold(puller.conn, false);
    CHECK(t, wait_until(&puller.closed, 1));
out:
    conn_drop(puller.conn);
    end();
}

static void what_is_not_there_ends_the_answer(struct test *t)
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
    pull = a_pull(0, 1); /* and that was all of it */
    CHECK_OK(t, conn_send(puller.conn, &pull, NULL));
    CHECK(t, wait_until(&puller.chunks, 5));
    CHECK_INT(t, puller.code, ==, 0);
    CHECK_INT(t, puller.closed, ==, 0);
out:
    conn_drop(puller.conn);
    end();
}

static void where_nobody_can_listen_the_rest_goes_on(struct test *t)
{
    char before[96];

    CHECK_OK(t, begin(2, 1, 1));
    snprintf(before, sizeof(before), "%s", state_thread_address(scene.hosts[0].thread));
    state_thread_listen(scene.hosts[0].thread, "192.0.2.1"); /* nobody's */
    CHECK(t, !state_thread_address(scene.hosts[0].thread));
    state_thread_listen(scene.hosts[0].thread, "127.0.0.1"); /* the driver is back */
    CHECK_TEXT(t, state_thread_address(scene.hosts[0].thread), before);
    state_thread_listen(scene.hosts[0].thread, "::1");
    CHECK_HAS(t, state_thread_address(scene.hosts[0].thread), "[::1]:");
    state_thread_listen(scene.hosts[0].thread, "::1");
    CHECK_HAS(t, state_thread_address(scene.hosts[0].thread), "[::1]:");
out:
    end();
}

#define ALONE(function) CASE_FLAGS(function, TEST_NO_TORTURE)

TESTS(ALONE(a_commit_is_fetched_from_another_host),
      ALONE(a_commit_whose_worker_is_long_gone_is_fetched),
      ALONE(it_is_fetched_from_all_holders_at_once), ALONE(two_joiners_pull_at_once),
      ALONE(a_neighbour_is_copied_and_nobody_dialled),
      ALONE(what_the_worker_has_itself_is_not_fetched), ALONE(equal_chunks_do_not_travel),
      ALONE(a_chunk_that_was_never_written_has_no_sum), ALONE(no_bytes_are_there_at_once),
      ALONE(nobody_is_left), ALONE(another_manifest_is_no_source),
      ALONE(a_holder_that_fails_is_left_out), ALONE(a_silent_holder_holds_nobody_up),
      ALONE(a_holder_that_commits_over_it_is_believed_only_by_its_sums),
      ALONE(the_next_fetch_ends_it_and_goes_on), ALONE(who_is_gone_gets_no_answer_and_no_bytes),
      ALONE(the_thread_ends_in_the_middle_of_everything), ALONE(who_pulls_rubbish_is_hung_up_on),
      ALONE(what_is_not_there_ends_the_answer), ALONE(where_nobody_can_listen_the_rest_goes_on))
