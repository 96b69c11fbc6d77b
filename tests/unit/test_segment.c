/*
 * The memory that members of a round share on a host: who may open it, and how its failure reaches
 * all members. Where a second process makes no difference, the members are segments of this
 * process.
 */
#include "collectives/shm/segment_internal.h"
#include "tests/lib/fixture.h"

#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static const uint32_t all[] = { 0, 1, 2 }, some[] = { 0, 2 };
static const struct segment_board boards[] = {
    {all,   3},
    { some, 2}
};

static struct segment_spec spec_of(uint32_t place)
{
    return (struct segment_spec){
        .round = 7, .roster = 99, .count = 3, .place = place, .boards = boards, .board_count = 2
    };
}

static int made(struct segment **ret_segment, uint8_t ret_locator[SEGMENT_LOCATOR_BYTES])
{
    const struct segment_spec spec = spec_of(0);
    int rc = segment_create(&spec, ret_segment, NULL);

    if (!rc)
        segment_locate(*ret_segment, ret_locator);
    return rc;
}

static uint8_t locator[SEGMENT_LOCATOR_BYTES];
static struct segment *ours, *theirs, *next;

static void begin(struct test *t)
{
    ours = theirs = next = NULL;
    CHECK_OK(t, made(&ours, locator));
}

static void end(struct test *t)
{
    (void)t;
    segment_free(next);
    segment_free(theirs);
    segment_free(ours);
}
FIXTURE(begin, end)

TEST(is_shared)
{
    const struct segment_spec spec = spec_of(2);

    CHECK_OK(t, segment_open(&spec, locator, &theirs, NULL));
    CHECK(t, segment_board(ours, 0) && segment_board(theirs, 0));
    memcpy(board_opening(segment_board(ours, 1), 0, 0), "hello", 6);
    CHECK_TEXT(t, (const char *)board_opening(segment_board(theirs, 1), 0, 0), "hello");
    memcpy(board_stage(segment_board(theirs, 0), 2, 1), "there", 6);
    CHECK_TEXT(t, (const char *)board_stage(segment_board(ours, 0), 2, 1), "there");
}

/* The parts of two boards do not overlap, are inside the memory, and are aligned. */
TEST(has_room_for_all)
{
    struct segment *segment = NULL;
    uint8_t mark = 1;

    CHECK_OK(t, made(&segment, locator));
    for (int pass = 0; pass < 2; pass++) {
        mark = 1;
        for (size_t i = 0; i < 2; i++) {
            struct board *board = segment_board(segment, i);

            for (uint32_t k = 0; k < 2 * board_count(board); k++, mark++) {
                uint8_t *stage = board_stage(board, k / 2, k),
                        *said = board_opening(board, k / 2, k);
                uint8_t *result = board_result(board, k);

                CHECK(t, (uintptr_t)stage % 64 == 0 && (uintptr_t)said % 64 == 0);
                CHECK(t, (uintptr_t)result % 64 == 0);
                if (pass == 0) {
                    memset(stage, mark, BOARD_STAGE_BYTES);
                    memset(said, mark, BOARD_OPENING_BYTES);
                    memset(result, (int)(100 + 2 * i + k % 2), BOARD_RESULT_BYTES);
                }
                CHECK(t, stage[0] == mark && stage[BOARD_STAGE_BYTES - 1] == mark);
                CHECK(t, said[0] == mark && said[BOARD_OPENING_BYTES - 1] == mark);
                CHECK(t, result[0] == 100 + 2 * i + k % 2);
                CHECK(t, result[BOARD_RESULT_BYTES - 1] == 100 + 2 * i + k % 2);
            }
        }
    }
    CHECK_INT(t, segment_failure(segment, NULL, NULL), ==, 0);
    segment_free(segment);
}

TEST(a_member_outside_a_group_has_no_board)
{
    const struct segment_spec spec = spec_of(1);

    CHECK_OK(t, segment_open(&spec, locator, &theirs, NULL));
    CHECK_INT(t, board_local(segment_board(theirs, 0)), ==, 1);
    CHECK(t, !segment_board(theirs, 1));
}

/* A member whose round, members or boards differ cannot open the segment. */
TEST(refuses_another_specification)
{
    static const uint32_t others[] = { 1, 2 };
    const struct segment_board other_boards[] = {
        {all,     3},
        { others, 2}
    };
    struct segment_spec spec = spec_of(1);
    struct hvd_err err = { .text = "" };

    spec.round = 8;
    CHECK_CODE(t, segment_open(&spec, locator, &theirs, &err), HVD_E_MISMATCH);
    CHECK_HAS(t, err.text, "of round 7, not of round 8");
    spec = spec_of(1);
    spec.roster++;
    CHECK_CODE(t, segment_open(&spec, locator, &theirs, &err), HVD_E_MISMATCH);
    spec = spec_of(1);
    spec.count = 4;
    CHECK_CODE(t, segment_open(&spec, locator, &theirs, &err), HVD_E_MISMATCH);
    spec = spec_of(1);
    spec.boards = other_boards;
    CHECK_CODE(t, segment_open(&spec, locator, &theirs, &err), HVD_E_MISMATCH);
    CHECK_HAS(t, err.text, "other members or groups");
    spec.board_count = 1;
    CHECK_CODE(t, segment_open(&spec, locator, &theirs, &err), HVD_E_MISMATCH);
    ours->head->version++;
    spec = spec_of(1);
    CHECK_CODE(t, segment_open(&spec, locator, &theirs, &err), HVD_E_VERSION);
    spec.count = 100000;
    CHECK_CODE(t, segment_open(&spec, locator, &theirs, &err), HVD_E_LIMIT);
}

/* A locator of a freed segment is refused, also when another segment has its process and
 * descriptor; so are senseless locators. */
TEST(old_locators_lead_nowhere)
{
    uint8_t next_locator[SEGMENT_LOCATOR_BYTES];
    const struct segment_spec spec = spec_of(1);
    struct hvd_err err = { .text = "" };
    struct memory_place place;

    segment_free(ours);
    ours = NULL;
    CHECK_CODE(t, segment_open(&spec, locator, &theirs, &err), HVD_E_LOST);
    CHECK_HAS(t, err.text, "does not exist");
    CHECK_OK(t, made(&next, next_locator)); /* in the same process and descriptor */
    CHECK(t, memcmp(locator, next_locator, 8) == 0);
    CHECK_CODE(t, segment_open(&spec, locator, &theirs, &err), HVD_E_LOST);
    CHECK_HAS(t, err.text, "is no longer shared memory");
    memset(locator, 0, sizeof(locator));
    CHECK_CODE(t, segment_open(&spec, locator, &theirs, &err), HVD_E_PROTO);
    memcpy(&place, next_locator, sizeof(place));
    place.fd = -1;
    memcpy(locator, &place, sizeof(place));
    CHECK_CODE(t, segment_open(&spec, locator, &theirs, &err), HVD_E_PROTO);
    memset(locator, 0x7f, sizeof(locator));
    CHECK_CODE(t, segment_open(&spec, locator, &theirs, &err), HVD_E_LOST);
}

/* A pipe without a writer would stop the process that opens it. */
TEST(looks_before_it_opens)
{
    const struct segment_spec spec = spec_of(1);
    struct memory_place place = { .pid = getpid() };
    int ends[2] = { -1, -1 };

    CHECK_INT(t, pipe(ends), ==, 0);
    place.fd = ends[1];
    memcpy(locator, &place, sizeof(place));
    CHECK_CODE(t, segment_open(&spec, locator, &theirs, NULL), HVD_E_LOST);
    close(ends[0]);
    close(ends[1]);
}

/* Opens memory with the locator of a segment but other contents. */
static int open_forged(const void *bytes, size_t length, size_t size, int seals)
{
    const struct segment_spec spec = spec_of(1);
    uint8_t forged[SEGMENT_LOCATOR_BYTES] = { 0 };
    struct segment *opened = NULL;
    struct memory_place place = { .pid = getpid(),
                                  .fd = memfd_create("forged", MFD_ALLOW_SEALING) };
    struct stat found;
    int rc = HVD_E_IO;

    if (place.fd >= 0 && write(place.fd, bytes, length) == (ssize_t)length &&
        !ftruncate(place.fd, (off_t)size) && !fcntl(place.fd, F_ADD_SEALS, seals) &&
        !fstat(place.fd, &found)) {
        place.device = found.st_dev;
        place.inode = found.st_ino;
        memcpy(forged, &place, sizeof(place));
        rc = segment_open(&spec, forged, &opened, NULL);
    }
    segment_free(opened);
    close(place.fd);
    return rc;
}

TEST(refuses_other_memory)
{
    const int seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
    size_t size;

    size = ours->memory.bytes;
    CHECK_OK(t, open_forged(ours->head, 4096, size, seals));
    CHECK_CODE(t, open_forged(ours->head, 4096, size, 0), HVD_E_PROTO);
    CHECK_CODE(t, open_forged(ours->head, 4096, size, F_SEAL_GROW), HVD_E_PROTO);
    CHECK_CODE(t, open_forged(ours->head, 4096, size - 1, seals), HVD_E_MISMATCH);
    CHECK_CODE(t, open_forged(ours->head, 4096, 4096, seals), HVD_E_MISMATCH);
    CHECK_CODE(t, open_forged(ours->head, 4096, 8, seals), HVD_E_PROTO);
    CHECK_CODE(t, open_forged(ours->head, 4096, 0, seals), HVD_E_PROTO);
    CHECK_CODE(t, open_forged("nothing", 8, size, seals), HVD_E_PROTO);
}

TEST(never_shrinks)
{
    CHECK(t, ftruncate(ours->memory.fd, 0) != 0);
}

TEST(outlives_its_maker)
{
    const struct segment_spec spec = spec_of(1);

    CHECK_OK(t, segment_open(&spec, locator, &theirs, NULL));
    segment_free(ours);
    ours = NULL;
    board_arrive(segment_board(theirs, 0));
    segment_fail(theirs, HVD_E_LOST, 0, "rank 0 is gone");
    CHECK_CODE(t, board_await(segment_board(theirs, 0)), HVD_E_REVOKED);
}

TEST(first_failure_counts)
{
    const struct segment_spec spec = spec_of(2);
    struct hvd_err why = { .text = "" };
    uint32_t rank = 0;

    CHECK_OK(t, segment_open(&spec, locator, &theirs, NULL));
    CHECK_INT(t, segment_failure(ours, &rank, &why), ==, 0);
    segment_fail(theirs, HVD_E_MISMATCH, 5, "rank 5: something");
    segment_fail(ours, HVD_E_LOST, 6, "rank 6: another thing");
    CHECK_CODE(t, segment_failure(ours, &rank, &why), HVD_E_MISMATCH);
    CHECK_INT(t, rank, ==, 5);
    CHECK_INT(t, why.code, ==, HVD_E_MISMATCH);
    CHECK_TEXT(t, why.text, "rank 5: something");
    CHECK_CODE(t, segment_failure(theirs, NULL, NULL), HVD_E_MISMATCH);
    CHECK_CODE(t, board_step(segment_board(ours, 0)), HVD_E_REVOKED);
    CHECK_CODE(t, board_step(segment_board(theirs, 1)), HVD_E_REVOKED);
}

TEST(failure_without_words)
{
    struct hvd_err why = { .text = "" };
    char longest[2 * ERR_TEXT_MAX];
    uint32_t rank = 0;

    segment_fail(ours, HVD_E_REVOKED, UINT32_MAX, NULL);
    CHECK_CODE(t, segment_failure(ours, &rank, &why), HVD_E_REVOKED);
    CHECK_INT(t, rank, ==, UINT32_MAX);
    CHECK_TEXT(t, why.text, err_text(HVD_E_REVOKED));
    segment_free(ours);
    ours = NULL;
    CHECK_OK(t, made(&ours, locator));
    memset(longest, 'x', sizeof(longest));
    longest[sizeof(longest) - 1] = '\0';
    segment_fail(ours, HVD_E_IO, 0, longest);
    CHECK_CODE(t, segment_failure(ours, &rank, &why), HVD_E_IO);
    CHECK_INT(t, strlen(why.text), ==, ERR_TEXT_MAX - 1);
    memset(ours->head->failure.why, 'y', ERR_TEXT_MAX); /* a member that overwrites the reason */
    CHECK_CODE(t, segment_failure(ours, &rank, &why), HVD_E_IO);
    CHECK_INT(t, strlen(why.text), ==, ERR_TEXT_MAX - 1);
}

/* The member was killed after its claim, before it wrote the reason. */
TEST(failure_never_told)
{
    struct hvd_err why = { .text = "" };
    uint32_t rank = 0;

    atomic_store(&ours->head->failure.claim, (uint64_t)(uint32_t)HVD_E_LOST << 32 | 3);
    CHECK_CODE(t, segment_failure(ours, &rank, &why), HVD_E_LOST);
    CHECK_INT(t, rank, ==, 3);
    CHECK_HAS(t, why.text, "before it wrote the reason");
    CHECK_CODE(t, board_step(segment_board(ours, 0)), HVD_E_REVOKED);
    segment_fail(ours, HVD_E_REVOKED, 1, "too late");
    CHECK_CODE(t, segment_failure(ours, &rank, &why), HVD_E_LOST);
}

TEST(descriptors_run_out)
{
    struct rlimit before, none = { 0 };
    const struct segment_spec spec = spec_of(1);
    struct hvd_err err = { .text = "" };
    int create_rc, open_rc;

    CHECK_INT(t, getrlimit(RLIMIT_NOFILE, &before), ==, 0);
    none.rlim_max = before.rlim_max;
    CHECK_INT(t, setrlimit(RLIMIT_NOFILE, &none), ==, 0);
    create_rc = made(&next, locator);
    open_rc = segment_open(&spec, locator, &next, &err);
    (void)setrlimit(RLIMIT_NOFILE, &before);
    CHECK_CODE(t, create_rc, HVD_E_LIMIT);
    CHECK_CODE(t, open_rc, HVD_E_LIMIT);
    CHECK_HAS(t, err.text, "ulimit -n");
}

/* ---- members in other processes ---- */

/* Runs work in a child process. Returns the code of work; 1: the child was killed. */
static int in_child(int (*work)(void))
{
    pid_t pid = fork();
    int status;

    if (pid == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        _exit(-work());
    }
    if (pid < 0 || waitpid(pid, &status, 0) != pid || !WIFEXITED(status))
        return 1;
    return -WEXITSTATUS(status);
}

static int open_and_speak(void)
{
    const struct segment_spec spec = spec_of(2);
    struct segment *segment;
    int rc = segment_open(&spec, locator, &segment, NULL);

    if (!rc) {
        memcpy(board_opening(segment_board(segment, 0), 2, 0), "hello", 6);
        segment_fail(segment, HVD_E_BUSY, 2, "of another process");
    }
    return rc;
}

static int open_as_nobody(void)
{
    const struct segment_spec spec = spec_of(2);
    struct segment *segment;

    if (setgid(65534) || setuid(65534)) /* not root, so there is no other user to become */
        return HVD_E_DENIED;
    return segment_open(&spec, locator, &segment, NULL);
}

TEST_FLAGS(between_processes, TEST_NO_TORTURE)
{
    struct hvd_err why = { .text = "" };

    CHECK_CODE(t, in_child(open_as_nobody), HVD_E_DENIED);
    CHECK_OK(t, in_child(open_and_speak));
    CHECK_TEXT(t, (const char *)board_opening(segment_board(ours, 0), 2, 0), "hello");
    CHECK_CODE(t, segment_failure(ours, NULL, &why), HVD_E_BUSY);
    CHECK_TEXT(t, why.text, "of another process");
}

/* Another process has the pid now; or the process is a zombie, which has no descriptors. */
TEST_FLAGS(process_is_another, TEST_NO_TORTURE)
{
    const struct segment_spec spec = spec_of(1);
    struct memory_place place;
    siginfo_t info;
    pid_t pid;

    segment_free(ours); /* a process that began earlier has not inherited the next segment */
    ours = NULL;
    pid = fork();
    if (pid == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (;;)
            (void)pause();
    }
    CHECK(t, pid > 0);
    CHECK_OK(t, made(&ours, locator));
    memcpy(&place, locator, sizeof(place));
    place.pid = pid;
    memcpy(locator, &place, sizeof(place));
    CHECK_CODE(t, segment_open(&spec, locator, &theirs, NULL), HVD_E_LOST);
    (void)kill(pid, SIGKILL);
    CHECK_INT(t, waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), ==, 0);
    CHECK_INT(t, segment_open(&spec, locator, &theirs, NULL), <, 0);
    (void)waitpid(pid, NULL, 0);
}
