/*
 * A snapshot that processes share: one process writes and is killed at any moment, other processes
 * read meanwhile.
 */
#include "base/rng.h"
#include "state/snapshot/copy.h"
#include "state/sum.h"
#include "tests/lib/test.h"

#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHUNK      STATE_CHUNK_BYTES
#define WORDS      (2 * CHUNK / sizeof(uint64_t) + 77)
#define RANK_WORDS (CHUNK / sizeof(uint64_t) / 3)
#define CHUNKS     4
#define DEATHS     100
#define READS      1000
#define PATIENCE_S 120

struct board_opening {
    _Atomic uint64_t newest; /* the newest commit that its writer has reported as whole */
};

struct scene {
    struct manifest manifest;
    struct snapshot *snapshot;
    struct board_opening *said; /* shared by all */
};

static int scene_init(struct scene *scene)
{
    struct snapshot_shape shape;
    int rc;

    *scene = (struct scene){ .said = MAP_FAILED };
    manifest_init(&scene->manifest);
    rc = manifest_add(&scene->manifest, "weights", WORDS * 8, ENTRY_REPLICATED, false, NULL);
    if (!rc)
        rc = manifest_add(&scene->manifest, "mine", RANK_WORDS * 8, ENTRY_PER_RANK, false, NULL);
    if (rc)
        return rc;
    manifest_seal(&scene->manifest);
    shape = (struct snapshot_shape){ scene->manifest.digest, scene->manifest.replicated_bytes,
                                     scene->manifest.bytes };
    scene->said = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (scene->said == MAP_FAILED)
        return HVD_E_NOMEM;
    return snapshot_create(&shape, &scene->snapshot, NULL);
}

static void scene_release(struct scene *scene)
{
    snapshot_free(scene->snapshot);
    manifest_release(&scene->manifest);
    if (scene->said != MAP_FAILED)
        munmap(scene->said, 4096);
}

/* Returns word i of a commit; each word contains the number of the commit. */
static uint64_t word_of(uint64_t commit, uint64_t i)
{
    return commit * UINT64_C(0x9e3779b97f4a7c15) + i;
}

static void fill(uint64_t *words, uint64_t count, uint64_t commit)
{
    for (uint64_t i = 0; i < count; i++)
        words[i] = word_of(commit, i);
}

static bool is_of(const uint64_t *words, uint64_t count, uint64_t commit)
{
    for (uint64_t i = 0; i < count; i++)
        if (words[i] != word_of(commit, i))
            return false;
    return true;
}

/* Maps the snapshot in a child, which has no mapping of its parent; the child dies with the
 * parent. */
static struct snapshot *mine(const struct scene *scene)
{
    struct snapshot *snapshot;

    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (snapshot_open(dup(snapshot_fd(scene->snapshot)), snapshot_shape(scene->snapshot), &snapshot,
                      NULL))
        _exit(99);
    return snapshot;
}

/* Writes one commit after the other, until the process is killed. */
NORETURN static void write_for_ever(const struct scene *scene)
{
    static uint64_t weights[WORDS];
    static uint64_t own[RANK_WORDS];
    struct copy_part parts[] = { { .at = weights }, { .at = own } };
    struct copy copy = {
        .manifest = &scene->manifest, .parts = parts, .which = COPY_ALL, .threads = 2
    };
    struct snapshot *snapshot = mine(scene);

    for (uint64_t commit = snapshot_newest(snapshot) + 1;; commit++) {
        fill(weights, WORDS, commit);
        fill(own, RANK_WORDS, commit);
        if (copy_commit(snapshot, &copy, NULL))
            _exit(98);
        snapshot_end(snapshot, commit);
        atomic_store(&scene->said->newest, commit);
        if (commit % 3 == 0)
            snapshot_rename(snapshot, ++commit);
    }
}

static pid_t start_writer(const struct scene *scene)
{
    pid_t pid = fork();

    if (pid == 0)
        write_for_ever(scene);
    return pid;
}

/* true: the commit has the right bytes. No process writes meanwhile. A renamed commit has the words
 * of its first number. */
static bool is_whole(const struct scene *scene, uint64_t commit)
{
    const uint8_t *bytes = snapshot_find(scene->snapshot, commit);
    const uint64_t *words = (const uint64_t *)(const void *)bytes;
    uint64_t own = scene->manifest.items[1].offset / sizeof(uint64_t);
    uint64_t written_as = words && words[0] == word_of(commit - 1, 0) ? commit - 1 : commit;

    for (uint64_t i = 0; bytes && i < CHUNKS; i++)
        if (snapshot_chunk_sum(scene->snapshot, commit, i) != sum_of(bytes + i * CHUNK, CHUNK))
            return false;
    return bytes && is_of(words, WORDS, written_as) && is_of(words + own, RANK_WORDS, written_as);
}

static bool all_is_whole(const struct scene *scene)
{
    struct msg_held held[2];
    size_t count = snapshot_held(scene->snapshot, held);

    for (size_t i = 0; i < count; i++)
        if (!is_whole(scene, held[i].commit))
            return false;
    return count == 0 || held[0].commit == snapshot_newest(scene->snapshot);
}

/* true: each checksum of the buffer that was open when the writer died is right, or SUM_NONE. */
static bool open_sums_are_true(const struct scene *scene)
{
    const uint8_t *bytes = snapshot_begin(scene->snapshot);

    for (uint64_t i = 0; i < CHUNKS; i++) {
        uint64_t sum = snapshot_sum(scene->snapshot, i);

        if (sum != SUM_NONE && sum != sum_of(bytes + i * CHUNK, CHUNK))
            return false;
    }
    return true;
}

static void spin(uint64_t turns)
{
    for (volatile uint64_t i = 0; i < turns; i++)
        ;
}

TEST_FLAGS(a_writer_may_die_on_any_line, TEST_NO_TORTURE)
{
    struct scene scene;
    struct rng rng;
    uint64_t newest = 0;

    rng_seed(&rng, 11);
    CHECK_OK(t, scene_init(&scene));
    alarm(PATIENCE_S);
    for (int i = 0; i < DEATHS; i++) {
        pid_t pid = start_writer(&scene);
        uint64_t wanted = newest + rng_below(&rng, 3);

        CHECK(t, pid > 0);
        while (snapshot_newest(scene.snapshot) < wanted && !waitpid(pid, NULL, WNOHANG))
            ;
        spin(rng_below(&rng, rng_below(&rng, 2) ? 3000000 : 30000));
        CHECK(t, !kill(pid, SIGKILL) && waitpid(pid, NULL, 0) == pid);
        newest = snapshot_newest(scene.snapshot);
        CHECK_INT(t, newest, >=, atomic_load(&scene.said->newest));
        CHECK_INT(t, newest, >=, wanted);
        CHECK(t, all_is_whole(&scene));
        if (rng_below(&rng, 2))
            CHECK(t, open_sums_are_true(&scene));
        CHECK_INT(t, snapshot_newest(scene.snapshot), ==, newest);
    }
out:
    alarm(0);
    scene_release(&scene);
}

/* Reads a chunk of the newest commit while the writer writes. 1: the commit is there afterwards and
 * the chunk is right; 0: the commit is gone; -1: the chunk is torn. */
static int read_one(const struct snapshot *snapshot, uint64_t chunk, uint64_t *block)
{
    uint64_t commit = snapshot_newest(snapshot);
    const uint8_t *bytes = snapshot_find(snapshot, commit);
    uint64_t sum = snapshot_chunk_sum(snapshot, commit, chunk);
    uint64_t first = chunk * CHUNK / sizeof(uint64_t);
    uint64_t count = CHUNK / sizeof(uint64_t);

    if (!bytes)
        return 0;
    memcpy(block, bytes + chunk * CHUNK, CHUNK);
    if (snapshot_find(snapshot, commit) != bytes)
        return 0;
    if (sum != sum_of(block, CHUNK))
        return -1;
    if (chunk == 3 || first + count > WORDS)
        return 1;
    if (block[0] != word_of(commit, first))
        commit--; /* the commit was renamed */
    for (uint64_t i = 0; i < count; i++)
        if (block[i] != word_of(commit, first + i))
            return -1;
    return 1;
}

NORETURN static void read_often(const struct scene *scene)
{
    static uint64_t block[CHUNK / sizeof(uint64_t)];
    struct snapshot *snapshot = mine(scene);

    alarm(PATIENCE_S);
    for (uint64_t reads = 0, turn = 0; reads < READS; turn++) {
        int rc = read_one(snapshot, turn % CHUNKS, block);

        if (rc < 0)
            _exit(1);
        reads += (uint64_t)rc;
    }
    _exit(0);
}

TEST_FLAGS(readers_never_believe_a_torn_commit, TEST_NO_TORTURE)
{
    struct scene scene;
    pid_t pids[3] = { -1, -1, -1 };

    CHECK_OK(t, scene_init(&scene));
    pids[0] = start_writer(&scene);
    CHECK(t, pids[0] > 0);
    for (int i = 1; i < 3; i++) {
        pids[i] = fork();
        CHECK(t, pids[i] >= 0);
        if (pids[i] == 0)
            read_often(&scene);
    }
    for (int i = 1; i < 3; i++) {
        int status = -1;
        pid_t pid = pids[i];

        pids[i] = -1;
        CHECK(t, waitpid(pid, &status, 0) == pid);
        CHECK_INT(t, status, ==, 0);
    }
    CHECK(t, !waitpid(pids[0], NULL, WNOHANG));
    CHECK_INT(t, snapshot_newest(scene.snapshot), >, 3);
out:
    for (int i = 0; i < 3; i++)
        if (pids[i] > 0) {
            kill(pids[i], SIGKILL);
            waitpid(pids[i], NULL, 0);
        }
    scene_release(&scene);
}
