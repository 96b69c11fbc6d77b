/*
 * remove_tree.h: removes a folder with all that is in it.
 */
#ifndef OS_REMOVE_TREE_H
#define OS_REMOVE_TREE_H

#include "base/err.h"

/*
 * Removes the folder `path` and everything below it. No link is followed, and no other file system
 * is entered. The folder must be private (os/private.h): then no other user can exchange a part of
 * the path meanwhile. After a failure a part of the folder may be left; a later call removes the
 * rest. A folder that is missing is fine.
 */
int remove_tree(const char *path, struct hvd_err *err) MUST_CHECK;

#endif
