/*
 * test_snapshot.c: state/snapshot: the memory that holds the two newest commits, its checksums,
 * mappings and limits, and the refusal of foreign memory.
 */
#include "state/snapshot/snapshot.h"

#include "base/rng.h"
#include "state/snapshot/memory_left.h"
#include "state/sum.h"
#include "tests/lib/fixture.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHUNK STATE_CHUNK_BYTES
#define GIB   ((uint64_t)1 << 30)

static const struct snapshot_shape small = { .manifest = 7,
                                             .replicated_bytes = 2 * CHUNK,
                                             .bytes = 3 * CHUNK };
static const struct snapshot_shape empty = { .manifest = 9 };

/* Writes a commit whose bytes are all `byte`. Returns its memory. */
static uint8_t *write_commit(struct snapshot *snapshot, uint64_t commit, uint8_t byte)
{
    uint8_t *bytes = snapshot_begin(snapshot);

    for (uint64_t i = 0; i < snapshot_shape(snapshot)->bytes / CHUNK; i++) {
        snapshot_set_sum(snapshot, i, SUM_NONE);
        memset(bytes + i * CHUNK, byte, CHUNK);
        snapshot_set_sum(snapshot, i, sum_of(bytes + i * CHUNK, CHUNK));
    }
    snapshot_end(snapshot, commit);
    return bytes;
}

static struct snapshot *snapshot;
static struct snapshot *others[3];

static void begin(struct test *t)
{
    snapshot = NULL;
    memset(others, 0, sizeof(others));
    CHECK_OK(t, snapshot_create(&small, &snapshot, NULL));
}

static void end(struct test *t)
{
    (void)t;
    snapshot_free(snapshot);
    for (size_t i = 0; i < ARRAY_SIZE(others); i++)
        snapshot_free(others[i]);
}
FIXTURE(begin, end)

TEST(holds_the_two_newest)
{
    struct msg_held held[2];

    CHECK_INT(t, snapshot_newest(snapshot), ==, 0);
    CHECK_INT(t, snapshot_held(snapshot, held), ==, 0);
    CHECK(t, !snapshot_find(snapshot, 0));
    write_commit(snapshot, 1, 'a');
    CHECK_INT(t, snapshot_held(snapshot, held), ==, 1);
    write_commit(snapshot, 2, 'b');
    write_commit(snapshot, 3, 'c');
    CHECK_INT(t, snapshot_newest(snapshot), ==, 3);
    CHECK_INT(t, snapshot_held(snapshot, held), ==, 2);
    CHECK_INT(t, held[0].commit, ==, 3);
    CHECK_INT(t, held[1].commit, ==, 2);
    CHECK(t, held[0].checksum != held[1].checksum);
    CHECK(t, !snapshot_find(snapshot, 1));
    CHECK_INT(t, snapshot_find(snapshot, 2)[0], ==, 'b');
    CHECK_INT(t, snapshot_find(snapshot, 3)[3 * CHUNK - 1], ==, 'c');
    CHECK(t, snapshot_chunk_sum(snapshot, 3, 2) == sum_of(snapshot_find(snapshot, 3), CHUNK));
    CHECK(t, snapshot_chunk_sum(snapshot, 1, 0) == SUM_NONE);
    CHECK(t, snapshot_chunk_sum(snapshot, 3, 3) == SUM_NONE);
    CHECK(t, snapshot_chunk_sum(snapshot, 3, UINT64_MAX) == SUM_NONE);
}

TEST(an_open_commit_does_not_count)
{
    uint8_t *older;

    older = write_commit(snapshot, 1, 'a');
    write_commit(snapshot, 2, 'b');
    CHECK(t, snapshot_begin(snapshot) == older);
    CHECK(t, !snapshot_find(snapshot, 1));
    CHECK_INT(t, snapshot_newest(snapshot), ==, 2);
    CHECK(t, snapshot_begin(snapshot) == older);
    CHECK(t, snapshot_sum(snapshot, 0) == sum_of(older, CHUNK));
    CHECK_INT(t, older[0], ==, 'a');
    snapshot_set_sum(snapshot, 0, SUM_NONE);
    CHECK(t, snapshot_sum(snapshot, 0) == SUM_NONE);
    snapshot_end(snapshot, 9);
    CHECK(t, snapshot_find(snapshot, 9) == older);
    CHECK(t, snapshot_find(snapshot, 2) != NULL);
}

TEST(a_new_name_for_the_newest)
{
    snapshot_rename(snapshot, 5); /* there is none */
    CHECK_INT(t, snapshot_newest(snapshot), ==, 0);
    write_commit(snapshot, 1, 'a');
    write_commit(snapshot, 2, 'b');
    snapshot_rename(snapshot, 7);
    CHECK(t, !snapshot_find(snapshot, 2));
    CHECK_INT(t, snapshot_find(snapshot, 7)[0], ==, 'b');
    CHECK_INT(t, snapshot_find(snapshot, 1)[0], ==, 'a');
    snapshot_rename(snapshot, 6); /* not higher */
    CHECK_INT(t, snapshot_newest(snapshot), ==, 7);
}

/* Ranks compare this checksum. */
TEST(the_checksum_is_of_the_replicated_part)
{
    struct msg_held held[3][2];

    for (int i = 0; i < 3; i++) {
        uint8_t *bytes;

        CHECK_OK(t, snapshot_create(&small, &others[i], NULL));
        bytes = snapshot_begin(others[i]);
        bytes[CHUNK + 5] = i == 2;
        bytes[2 * CHUNK] = (uint8_t)i;
        for (uint64_t k = 0; k < 3; k++)
            snapshot_set_sum(others[i], k, sum_of(bytes + k * CHUNK, CHUNK));
        snapshot_end(others[i], 1);
        CHECK_INT(t, snapshot_held(others[i], held[i]), ==, 1);
    }
    CHECK(t, held[0][0].checksum == held[1][0].checksum);
    CHECK(t, held[0][0].checksum != held[2][0].checksum);
}

TEST(two_mappings_are_one_snapshot)
{
    uint8_t *bytes;

    CHECK_OK(t, snapshot_open(dup(snapshot_fd(snapshot)), &small, &others[0], NULL));
    write_commit(others[0], 1, 'a');
    CHECK_INT(t, snapshot_find(snapshot, 1)[CHUNK], ==, 'a');
    /* the agent writes the replicated part, the worker its own part */
    bytes = snapshot_begin(snapshot);
    memset(bytes, 'b', 2 * CHUNK);
    snapshot_set_sum(snapshot, 0, sum_of(bytes, CHUNK));
    snapshot_set_sum(snapshot, 1, sum_of(bytes, CHUNK));
    bytes = snapshot_begin(others[0]);
    CHECK_INT(t, bytes[2 * CHUNK - 1], ==, 'b');
    CHECK(t, snapshot_sum(others[0], 1) == snapshot_sum(snapshot, 1));
    snapshot_end(others[0], 2);
    CHECK_INT(t, snapshot_newest(snapshot), ==, 2);
    snapshot_free(snapshot);
    snapshot = NULL;
    CHECK_INT(t, snapshot_find(others[0], 2)[0], ==, 'b');
}

TEST(a_snapshot_of_no_bytes_works)
{
    struct msg_held held[2];

    snapshot_free(snapshot);
    snapshot = NULL;
    CHECK_OK(t, snapshot_create(&empty, &snapshot, NULL));
    CHECK(t, snapshot_begin(snapshot) != NULL);
    snapshot_end(snapshot, 1);
    CHECK(t, snapshot_find(snapshot, 1) != NULL);
    CHECK_INT(t, snapshot_held(snapshot, held), ==, 1);
    CHECK(t, snapshot_chunk_sum(snapshot, 1, 0) == SUM_NONE);
    snapshot_begin(snapshot);
    snapshot_end(snapshot, 2);
    CHECK_INT(t, snapshot_held(snapshot, held), ==, 2);
}

TEST(unwritten_bytes_take_no_memory)
{
    struct snapshot_shape large = { 1, 8 * GIB, 8 * GIB };
    uint64_t last = large.bytes / CHUNK - 1;
    struct msg_held held[2];
    struct stat st;
    uint8_t *bytes;

    snapshot_free(snapshot);
    snapshot = NULL;
    CHECK_OK(t, snapshot_create(&large, &snapshot, NULL));
    for (int i = 0; i < 2; i++) {
        bytes = snapshot_begin(snapshot);
        CHECK_INT(t, snapshot_room(snapshot), ==, 0);
        CHECK(t, !snapshot_has_room(snapshot, last));
        CHECK_OK(t, snapshot_take_room(snapshot, last));
        CHECK_OK(t, snapshot_take_room(snapshot, last));
        CHECK(t, snapshot_has_room(snapshot, last));
        CHECK_INT(t, snapshot_room(snapshot), ==, CHUNK);
        bytes[large.bytes - 1] = 1;
        snapshot_set_sum(snapshot, last, sum_of(bytes + last * CHUNK, CHUNK));
        snapshot_end(snapshot, 10 + (uint64_t)i);
    }
    CHECK_INT(t, snapshot_held(snapshot, held), ==, 2);
    CHECK(t, held[0].checksum == held[1].checksum);
    CHECK(t, !fstat(snapshot_fd(snapshot), &st));
    CHECK_INT(t, (uint64_t)st.st_blocks * 512, <, 16 * CHUNK);
}

/* ---- wrong memory ---- */

static int create(uint64_t replicated_bytes, uint64_t bytes, struct hvd_err *err)
{
    struct snapshot_shape shape = { 1, replicated_bytes, bytes };
    struct snapshot *made = NULL;
    int rc = snapshot_create(&shape, &made, err);

    if (!rc)
        snapshot_free(made);
    return rc;
}

TEST(refuses_impossible_shapes)
{
    struct hvd_err err;

    CHECK_CODE(t, create(0, 1, NULL), HVD_E_INVAL);
    CHECK_CODE(t, create(1, CHUNK, NULL), HVD_E_INVAL);
    CHECK_CODE(t, create(2 * CHUNK, CHUNK, NULL), HVD_E_INVAL);
    CHECK_CODE(t, create(0, LIMIT_STATE_BYTES + CHUNK, &err), HVD_E_LIMIT);
    CHECK_HAS(t, err.text, "LIMIT_STATE_BYTES");
    CHECK_CODE(t, create(0, UINT64_MAX / CHUNK * CHUNK, NULL), HVD_E_LIMIT);
}

/* true: the descriptor, which is of no snapshot, is refused and closed. */
static bool refuses(int fd, const struct snapshot_shape *shape)
{
    struct snapshot *opened = NULL;
    struct hvd_err err = { 0 };
    int rc = snapshot_open(fd, shape, &opened, &err);

    if (!rc)
        snapshot_free(opened);
    return rc == HVD_E_CORRUPT && err.text[0] && fcntl(fd, F_GETFD) < 0;
}

static int plain_memfd(uint64_t bytes, unsigned seals)
{
    int fd = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);

    return fd >= 0 && !ftruncate(fd, (off_t)bytes) && !fcntl(fd, F_ADD_SEALS, seals) ? fd : -1;
}

TEST(refuses_foreign_descriptors)
{
    struct snapshot_shape other = small;
    struct stat st;
    int fds[2];

    CHECK(t, !fstat(snapshot_fd(snapshot), &st));
    other.manifest++;
    CHECK(t, refuses(dup(snapshot_fd(snapshot)), &other));
    other = small;
    other.replicated_bytes -= CHUNK;
    CHECK(t, refuses(dup(snapshot_fd(snapshot)), &other));
    other = small;
    other.bytes += CHUNK;
    CHECK(t, refuses(dup(snapshot_fd(snapshot)), &other));
    CHECK(t, refuses(-1, &small));
    CHECK(t, refuses(open("/dev/null", O_RDWR | O_CLOEXEC), &small));
    CHECK(t, !pipe(fds));
    CHECK(t, refuses(fds[0], &small));
    CHECK(t, refuses(fds[1], &small));
    CHECK(t, refuses(plain_memfd((uint64_t)st.st_size, 0), &small));
    CHECK(t, refuses(plain_memfd((uint64_t)st.st_size, F_SEAL_GROW), &small));
    CHECK(t, refuses(plain_memfd((uint64_t)st.st_size, F_SEAL_SHRINK | F_SEAL_GROW), &small));
    CHECK(t, refuses(plain_memfd(4096, F_SEAL_SHRINK | F_SEAL_GROW), &small));
}

TEST(the_size_cannot_change)
{
    int fd;

    fd = snapshot_fd(snapshot);
    CHECK(t, fcntl(fd, F_GETFD) & FD_CLOEXEC);
    CHECK(t, ftruncate(fd, 0) && ftruncate(fd, (off_t)(100 * CHUNK)));
    CHECK(t, fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE));
}

/* Runs in a process of its own, because a limit cannot be raised again. run returns 0, or the
 * number of the check that failed. */
static void in_a_child(struct test *t, int (*run)(void))
{
    int status = -1;
    pid_t pid = fork();

    CHECK(t, pid >= 0);
    if (pid == 0)
        _exit(run());
    CHECK(t, waitpid(pid, &status, 0) == pid);
    CHECK_INT(t, status, ==, 0);
}

#define LIMIT(resource, most) (!setrlimit(resource, &(struct rlimit){ most, most }))

static int with_small_files(void)
{
    struct hvd_err err = { 0 };

    if (!LIMIT(RLIMIT_FSIZE, CHUNK) || create(0, CHUNK, &err) != HVD_E_LIMIT)
        return 1;
    return strstr(err.text, "ulimit -f") ? 0 : 2;
}

static int with_few_files(void)
{
    struct hvd_err err = { 0 };

    if (!LIMIT(RLIMIT_NOFILE, 0) || create(0, CHUNK, &err) != HVD_E_LIMIT)
        return 1;
    return strstr(err.text, "ulimit -n") ? 0 : 2;
}

static int with_little_address_space(void)
{
    struct hvd_err err = { 0 };
    char text[64] = "";
    uint64_t pages;
    int fd = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
    ssize_t length = read(fd, text, sizeof(text) - 1);

    close(fd);
    pages = memory_number(length > 0 ? text : "", "");
    if (pages > UINT64_MAX / 4096 - GIB || !LIMIT(RLIMIT_AS, pages * 4096 + GIB / 2) ||
        create(0, GIB, &err) != HVD_E_NOMEM)
        return 1;
    return strstr(err.text, "ulimit -v") ? 0 : 2;
}

TEST_FLAGS(limits_of_the_machine_have_their_names, TEST_NO_TORTURE)
{
    in_a_child(t, with_small_files);
    CHECK(t, !t->failed);
    in_a_child(t, with_few_files);
    CHECK(t, !t->failed);
    in_a_child(t, with_little_address_space);
}

/* The other process may write only two numbers and the checksums. */
TEST_FLAGS(believes_no_field_of_the_memory, TEST_NO_TORTURE)
{
    struct msg_held held[2];
    uint64_t *words = MAP_FAILED;
    struct rng rng;

    rng_seed(&rng, 1);
    words = mmap(NULL, 3 * 4096, PROT_READ | PROT_WRITE, MAP_SHARED, snapshot_fd(snapshot), 0);
    CHECK(t, words != MAP_FAILED);
    for (int i = 0; i < 200; i++) {
        uint64_t commit;
        size_t count;

        for (size_t k = 0; k < 3 * 512; k++)
            words[k] = rng_next(&rng) >> rng_next(&rng) % 64;
        commit = snapshot_newest(snapshot);
        CHECK(t, snapshot_find(snapshot, commit) || !commit);
        (void)snapshot_chunk_sum(snapshot, commit, rng_next(&rng) % 5);
        count = snapshot_held(snapshot, held);
        CHECK_INT(t, count, <=, 2);
        snapshot_rename(snapshot, rng_next(&rng));
        write_commit(snapshot, 1 + rng_next(&rng) % 100, (uint8_t)i);
        CHECK_INT(t, snapshot_shape(snapshot)->bytes, ==, small.bytes);
    }
    if (words != MAP_FAILED)
        munmap(words, 3 * 4096);
}
