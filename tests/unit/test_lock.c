/*
 * test_lock.c: os/lock: one process has a lock, the next learns which, and a death gives it back.
 */
#include "os/lock.h"

#include "os/remedy.h"
#include "tests/lib/fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char path[256];
static int fd, second, third;
static pid_t holder;
static struct hvd_err err;

static void begin(struct test *t)
{
    snprintf(path, sizeof(path), "%s/lock", test_dir(t));
    (void)unlink(path);
    fd = second = third = -1;
    holder = -1;
}

static void close_fd(int *open_fd)
{
    if (*open_fd >= 0)
        close(*open_fd);
    *open_fd = -1;
}

static void end(struct test *t)
{
    (void)t;
    close_fd(&fd);
    close_fd(&second);
    close_fd(&third);
}
FIXTURE(begin, end)

TEST(a_second_taker_learns_the_holder)
{
    struct stat st;
    char who[64];

    CHECK_OK(t, lock_take(path, &fd, &holder, NULL));
    CHECK_INT(t, holder, ==, 0);
    CHECK_INT(t, fcntl(fd, F_GETFD) & FD_CLOEXEC, !=, 0);
    CHECK_INT(t, fstat(fd, &st), ==, 0);
    CHECK_INT(t, st.st_mode & 0777, ==, 0600);
    CHECK_CODE(t, lock_take(path, &second, &holder, &err), HVD_E_BUSY);
    CHECK_INT(t, holder, ==, getpid());
    CHECK_INT(t, second, ==, -1);
    snprintf(who, sizeof(who), "process %ld holds the lock", (long)getpid());
    CHECK_HAS(t, err.text, who);
    CHECK_HAS(t, err.text, path);
    close_fd(&fd);
    holder = -1;
    CHECK_OK(t, lock_take(path, &fd, &holder, NULL));
    CHECK_INT(t, holder, ==, getpid()); /* the last holder */
}

/* However it ends. */
TEST_FLAGS(the_death_of_the_holder_frees_the_lock, TEST_NO_TORTURE)
{
    pid_t child;
    int fds[2] = { -1, -1 };
    char byte;

    CHECK_INT(t, pipe(fds), ==, 0);
    child = fork();
    CHECK(t, child >= 0);
    if (child == 0) {
        if (!lock_take(path, &fd, &holder, NULL) && write(fds[1], "x", 1) == 1)
            pause();
        _exit(1);
    }
    close_fd(&fds[1]);
    CHECK_INT(t, read(fds[0], &byte, 1), ==, 1);
    CHECK_CODE(t, lock_take(path, &fd, &holder, NULL), HVD_E_BUSY);
    CHECK_INT(t, holder, ==, child);
    CHECK_INT(t, kill(child, SIGKILL), ==, 0);
    CHECK_INT(t, waitpid(child, NULL, 0), ==, child);
    CHECK_OK(t, lock_take(path, &fd, &holder, NULL));
    close_fd(&fds[0]);
}

/* The file may hold foreign text; an old, longer pid leaves nothing behind. */
TEST(an_unreadable_holder_is_unknown)
{
    static const char *const texts[] = { "", "x\n", "-5\n", "99999999999\n",
                                         "1111111111111111111111111111111111111111" };

    CHECK_OK(t, lock_take(path, &fd, &holder, NULL));
    for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
        CHECK_INT(t, ftruncate(fd, 0), ==, 0);
        CHECK_INT(t, pwrite(fd, texts[i], strlen(texts[i]), 0), ==, strlen(texts[i]));
        holder = -1;
        CHECK_CODE(t, lock_take(path, &second, &holder, &err), HVD_E_BUSY);
        CHECK_INT(t, holder, ==, 0);
        CHECK_HAS(t, err.text, "another process holds the lock");
    }
    close_fd(&fd);
    CHECK_OK(t, lock_take(path, &fd, &holder, NULL));
    CHECK_CODE(t, lock_take(path, &second, &holder, NULL), HVD_E_BUSY);
    CHECK_INT(t, holder, ==, getpid());
}

TEST(a_lock_can_be_taken_over)
{
    CHECK_OK(t, lock_take_over(path, &second, NULL)); /* the lock was free */
    CHECK_OK(t, lock_take_over(path, &fd, NULL));
    CHECK_CODE(t, lock_take(path, &third, &holder, NULL), HVD_E_BUSY);
    CHECK_INT(t, holder, ==, getpid());
    close_fd(&second); /* gives nothing back that is not its own */
    CHECK_CODE(t, lock_take(path, &third, &holder, NULL), HVD_E_BUSY);
    close_fd(&fd);
    CHECK_OK(t, lock_take(path, &third, &holder, NULL));
    CHECK_CODE(t, lock_take_over("/nowhere/at/all", &fd, NULL), HVD_E_NOTFOUND);
}

TEST(a_failed_lock_has_a_reason)
{
    CHECK_CODE(t, lock_take("/nowhere/at/all", &fd, &holder, &err), HVD_E_NOTFOUND);
    CHECK_HAS(t, err.text, "create the directory");
    CHECK(t, lock_take(test_dir(t), &fd, &holder, &err) < 0);
    CHECK_INT(t, symlink("/dev/null", path), ==, 0);
    CHECK(t, lock_take(path, &fd, &holder, &err) < 0);
    CHECK_INT(t, holder, ==, -1);
}

/* No change of a mode makes a file writable whose file system is not. */
TEST(a_read_only_file_system_has_a_remedy_of_its_own)
{
    CHECK_CODE(t, remedy_set(&err, "/mnt/x", "cannot write it", EROFS), HVD_E_DENIED);
    CHECK_TEXT(t, err.text,
               "/mnt/x: cannot write it: Read-only file system; mount its file system writable, or "
               "give another directory");
    CHECK_CODE(t, remedy_set(&err, "/mnt/x", "cannot write it", EACCES), HVD_E_DENIED);
    CHECK_HAS(t, err.text, "; make the file and its directory writable for this user");
    CHECK_CODE(t, remedy_set(&err, "/mnt/x", "cannot write it", EMFILE), HVD_E_IO);
    CHECK_HAS(t, err.text, "; raise the limit of open file descriptors (ulimit -n)");
}
