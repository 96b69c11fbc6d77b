/*
 * remove_tree.c: removes what a folder has, from the bottom up. The verb "prune" calls it
 * (driver/cli/prune.c). Invariant: the folder itself is removed last, so as long as anything is
 * left the folder is there, and a later call finds it.
 */
#include "os/remove_tree.h"

#include "os/remedy.h"

#include <errno.h>
#include <ftw.h>
#include <stdio.h>

/* The most folders that nftw has open at once; it walks deeper trees, too. */
#define OPEN_MAX_FOLDERS 16

/* Called by nftw for each entry, a folder after its entries. Returns an errno, which ends the walk;
 * 0: the walk goes on. FTW_DNR: the entry is a folder that this user may not read. */
static int remove_tree_entry(const char *path, const struct stat *st, int kind, struct FTW *walk)
{
    (void)st;
    (void)walk;
    if (kind == FTW_DNR)
        return EACCES;
    return remove(path) && errno != ENOENT ? errno : 0;
}

/* Removes a folder and all that it has. A folder that is missing is no failure. */
int remove_tree(const char *path, struct hvd_err *err)
{
    int number = nftw(path, remove_tree_entry, OPEN_MAX_FOLDERS, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);

    if (number < 0)
        number = errno;
    return number && number != ENOENT ? remedy_set(err, path, "cannot be removed", number) : 0;
}
