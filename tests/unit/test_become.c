/*
 * test_become.c: os/become: root gives up its rights for the owner of a path. Only root can do so,
 * and the cases test less as another user.
 */
#include "os/become.h"

#include "tests/lib/test.h"

#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#define STRANGER 12345 /* a user without a name, and so without a home folder */

/* Becomes the owner of the path in a child. Returns 0 if the child then had the user `uid` for
 * good, and no HOME and XDG_STATE_HOME of root's; else another number. */
static int become_in_child(const char *path, uid_t uid)
{
    int status = 1;
    pid_t pid = fork();

    if (pid == 0) {
        setenv("HOME", "/", 1);
        setenv("XDG_STATE_HOME", "/", 1);
        if (become_owner(path, NULL) || geteuid() != uid || getuid() != uid)
            _exit(1);
        if (uid && (getenv("HOME") || getenv("XDG_STATE_HOME") || !setuid(0)))
            _exit(2);
        _exit(!uid && !getenv("HOME"));
    }
    return pid > 0 && waitpid(pid, &status, 0) == pid ? status : -1;
}

TEST_FLAGS(root_becomes_the_owner_for_good, TEST_NO_TORTURE)
{
    const char *folder = test_dir(t);

    if (geteuid() != 0)
        return;
    CHECK(t, !chown(folder, STRANGER, STRANGER));
    CHECK_INT(t, become_in_child(folder, STRANGER), ==, 0);
out:;
}

TEST_FLAGS(what_is_our_own_or_is_not_there_changes_nothing, TEST_NO_TORTURE)
{
    CHECK_OK(t, become_owner(test_dir(t), NULL));
    CHECK_OK(t, become_owner("/no/such/path", NULL));
    if (geteuid() == 0)
        CHECK_INT(t, become_in_child("/", 0), ==, 0);
out:;
}
