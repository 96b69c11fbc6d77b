/* Commits that travel between agents: real threads, real TLS, in one process. */
#include "base/limits.h"
#include "tests/lib/state_hosts.h"

#include <string.h>

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

#define ALONE(function) CASE_FLAGS(function, TEST_NO_TORTURE)

TESTS(ALONE(a_commit_is_fetched_from_another_host), ALONE(it_is_fetched_from_all_holders_at_once))
