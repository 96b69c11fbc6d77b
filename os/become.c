/*
 * become.c: gives up root for the owner of a path. Verbs call it (driver/cli: find_job.c, jobs.c)
 * before they look at anything in a job's folder. Invariant: after a success the process has no
 * right that the owner lacks; a path that is exchanged after the look at its owner is refused by
 * the checks of os/private, which then hold for that user.
 */
#include "os/become.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define ENTRY_BYTES 16384 /* bytes for an entry of the user database; more than any entry takes */

/* Root becomes the owner of `path` for good. Nothing happens if the process is not root's, root
 * owns the path, or there is no such path: the caller's own use of the path reports that. */
int become_owner(const char *path, struct hvd_err *err)
{
    struct passwd entry, *user = NULL;
    char memory[ENTRY_BYTES];
    struct stat st;
    int rc;

    if (geteuid() != 0 || stat(path, &st) || st.st_uid == 0)
        return 0;
    if (getpwuid_r(st.st_uid, &entry, memory, sizeof(memory), &user))
        user = NULL;
    /* A user without an entry in the user database has the group of the folder, and no other. */
    rc = user ? initgroups(user->pw_name, user->pw_gid) : setgroups(0, NULL);
    if (!rc)
        rc = setresgid(user ? user->pw_gid : st.st_gid, user ? user->pw_gid : st.st_gid,
                       user ? user->pw_gid : st.st_gid);
    if (!rc)
        rc = setresuid(st.st_uid, st.st_uid, st.st_uid);
    if (rc)
        return err_set(
            err, HVD_E_DENIED,
            "%s: this path belongs to user %u, and root may not become that user here: %s; "
            "run the command as that user",
            path, (unsigned)st.st_uid, strerror(errno));
    /* From now on the state directory is that of the owner (os/state_home.c), also for the programs
     * that this process starts. */
    unsetenv("XDG_STATE_HOME");
    if (user ? setenv("HOME", user->pw_dir, 1) : unsetenv("HOME"))
        return err_set(err, HVD_E_NOMEM,
                       "no memory to set the variable HOME; free memory on this host");
    return 0;
}
