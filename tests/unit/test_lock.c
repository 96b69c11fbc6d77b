#include "os/lock.h"

#include "tests/lib/test.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char path[256];

static void begin(struct test *t)
{
    snprintf(path, sizeof(path), "%s/lock", test_dir(t));
    (void)unlink(path);
}

static void close_fd(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

static void one_has_it_and_the_next_learns_who(struct test *t)
{
    struct hvd_err err;
    struct stat st;
    char who[64];
    pid_t holder = -1;
    int second = -1;
    int fd = -1;

    begin(t);
    CHECK_OK(t, lock_take(path, &fd, &holder, NULL));
    CHECK_INT(t, holder, ==, -1);
    CHECK_INT(t, fcntl(fd, F_GETFD) & FD_CLOEXEC, !=, 0);
    CHECK_INT(t, fstat(fd, &st), ==, 0);
    CHECK_INT(t, st.st_mode & 0777, ==, 0600);
    CHECK_CODE(t, lock_take(path, &second, &holder, &err), HVD_E_BUSY);
    CHECK_INT(t, holder, ==, getpid());
    CHECK_INT(t, second, ==, -1);
    snprintf(who, sizeof(who), "process %ld has it", (long)getpid());
    CHECK_HAS(t, err.text, who);
    CHECK_HAS(t, err.text, path);
    close_fd(&fd);
    CHECK_OK(t, lock_take(path, &fd, &holder, NULL));
out:
    close_fd(&fd);
    close_fd(&second);
}

/* However it ends. */
static void who_dies_gives_it_back(struct test *t)
{
    pid_t holder = 0;
    pid_t child = -1;
    int fds[2] = { -1, -1 };
    int fd = -1;
    char byte;

    begin(t);
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
    child = -1;
    CHECK_OK(t, lock_take(path, &fd, &holder, NULL));
out:
    if (child > 0) {
        (void)kill(child, SIGKILL);
        (void)waitpid(child, NULL, 0);
    }
    close_fd(&fd);
    close_fd(&fds[0]);
    close_fd(&fds[1]);
}

/* What stands in the file is foreign text; and an old, longer pid leaves nothing behind. */
static void a_holder_that_cannot_be_read_is_nobody(struct test *t)
{
    static const char *const texts[] = { "", "x\n", "-5\n", "99999999999\n",
                                         "1111111111111111111111111111111111111111" };
    struct hvd_err err;
    pid_t holder = -1;
    int second = -1;
    int fd = -1;

    begin(t);
    CHECK_OK(t, lock_take(path, &fd, &holder, NULL));
    for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
        CHECK_INT(t, ftruncate(fd, 0), ==, 0);
        CHECK_INT(t, pwrite(fd, texts[i], strlen(texts[i]), 0), ==, strlen(texts[i]));
        holder = -1;
        CHECK_CODE(t, lock_take(path, &second, &holder, &err), HVD_E_BUSY);
        CHECK_INT(t, holder, ==, 0);
        CHECK_HAS(t, err.text, "another process has it");
    }
    close_fd(&fd);
    CHECK_OK(t, lock_take(path, &fd, &holder, NULL));
    CHECK_CODE(t, lock_take(path, &second, &holder, NULL), HVD_E_BUSY);
    CHECK_INT(t, holder, ==, getpid());
out:
    close_fd(&fd);
    close_fd(&second);
}

static void one_can_be_taken_over(struct test *t)
{
    pid_t holder = -1;
    int old = -1;
    int third = -1;
    int fd = -1;

    begin(t);
    CHECK_OK(t, lock_take_over(path, &old, NULL)); /* nobody had it */
    CHECK_OK(t, lock_take_over(path, &fd, NULL));
    CHECK_CODE(t, lock_take(path, &third, &holder, NULL), HVD_E_BUSY);
    CHECK_INT(t, holder, ==, getpid());
    close_fd(&old); /* gives nothing back that is not its own */
    CHECK_CODE(t, lock_take(path, &third, &holder, NULL), HVD_E_BUSY);
    close_fd(&fd);
    CHECK_OK(t, lock_take(path, &third, &holder, NULL));
    CHECK_CODE(t, lock_take_over("/nowhere/at/all", &fd, NULL), HVD_E_NOTFOUND);
out:
    close_fd(&old);
    close_fd(&third);
    close_fd(&fd);
}

static void says_why_it_cannot(struct test *t)
{
    struct hvd_err err;
    pid_t holder = -1;
    int fd = -1;

    begin(t);
    CHECK_CODE(t, lock_take("/nowhere/at/all", &fd, &holder, &err), HVD_E_NOTFOUND);
    CHECK_HAS(t, err.text, "create the directory");
    CHECK(t, lock_take(test_dir(t), &fd, &holder, &err) < 0);
    CHECK_INT(t, symlink("/dev/null", path), ==, 0);
    CHECK(t, lock_take(path, &fd, &holder, &err) < 0);
    CHECK_INT(t, holder, ==, -1);
out:
    close_fd(&fd);
}

TESTS(CASE(one_has_it_and_the_next_learns_who), CASE_FLAGS(who_dies_gives_it_back, TEST_NO_TORTURE),
      CASE(a_holder_that_cannot_be_read_is_nobody), CASE(one_can_be_taken_over),
      CASE(says_why_it_cannot))
