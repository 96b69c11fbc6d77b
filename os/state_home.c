/*
 * state_home.c: finds the folder for the state of jobs, by the environment or by the user database.
 * The driver and the verbs call it for a job's folder, the agents for their logs and their sockets.
 * Invariant: all programs of a user on one machine that have the same environment, or none at all,
 * find the same folder.
 */
#include "os/state_home.h"

#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define ENTRY_BYTES 16384 /* bytes for an entry of the user database; more than any entry takes */

/* Writes the folder of this user for the state of jobs: below XDG_STATE_HOME, or else below HOME.
 * Makes no folder. */
int state_home(char path[LIMIT_PATH_BYTES], struct hvd_err *err)
{
    const char *state = getenv("XDG_STATE_HOME");
    const char *home = getenv("HOME");
    struct passwd entry, *found = NULL;
    char memory[ENTRY_BYTES];
    int length;

    if (state && *state == '/') {
        length = snprintf(path, LIMIT_PATH_BYTES, "%s/hvd-elastic", state);
    } else {
        /* A service manager or a container may start programs without HOME. */
        if ((!home || *home != '/') &&
            !getpwuid_r(geteuid(), &entry, memory, sizeof(memory), &found) && found)
            home = entry.pw_dir;
        if (!home || *home != '/')
            return err_set(err, HVD_E_NOTFOUND,
                           "HOME: the variable is not set, and the user database has no home "
                           "folder for user %u, so there is no default state directory; give "
                           "--state-dir",
                           (unsigned)geteuid());
        length = snprintf(path, LIMIT_PATH_BYTES, "%s/.local/state/hvd-elastic", home);
    }
    if (length < 0 || length >= LIMIT_PATH_BYTES)
        return err_set(err, HVD_E_LIMIT,
                       "the path of the user's state directory is longer than %d bytes "
                       "(LIMIT_PATH_BYTES); give --state-dir",
                       LIMIT_PATH_BYTES - 1);
    return 0;
}
