/*
 * private.h: folders and files that no other user can have made, changed or exchanged.
 *
 * A driver trusts the files of its state directory: the driver runs the command that is written
 * there, and accepts each peer that has the key which is written there. So nothing in that folder
 * is read before private_folder has said that the folder is safe.
 *
 * A folder is safe if
 *   - it belongs to this user, and neither its group nor others may write to it;
 *   - each folder above it belongs to this user or to root, and is writable for its owner only, or
 *     has the sticky bit, as /tmp has;
 *   - each symbolic link on the way to it belongs to this user or to root.
 * As long as this holds, only this user and root can give a path in the folder another meaning, so
 * a library that opens its files by path (SQLite) opens the files that were checked.
 */
#ifndef OS_PRIVATE_H
#define OS_PRIVATE_H

#include "base/err.h"

/*
 * Opens the safe folder at an absolute path; *ret_fd is an O_PATH descriptor. make: makes the
 * folders that are missing, with mode 0700. HVD_E_NOTFOUND: there is no such folder. HVD_E_DENIED:
 * the folder is not safe; the text names the folder to blame, its owner and mode, and the command
 * that mends it. HVD_E_FULL, HVD_E_INVAL (not a folder), HVD_E_LIMIT.
 */
int private_folder(const char *path, bool make, int *ret_fd, struct hvd_err *err) MUST_CHECK;

/*
 * Checks a file, folder or socket of a safe folder: it must belong to this user, must not be a
 * link, and must not be writable for others. A name that is missing is fine. `path` is the name of
 * the folder in error texts.
 */
int private_entry(int folder, const char *path, const char *name, struct hvd_err *err) MUST_CHECK;

/*
 * Opens the folder NAME/NAME... below `folder`, which need not be safe. No link is followed, and
 * each folder must belong to this user. make: makes those that are missing, with mode 0700.
 */
int private_below(int folder, const char *path, const char *name, bool make, int *ret_fd,
                  struct hvd_err *err) MUST_CHECK;

/*
 * Opens a regular file in `folder`, which need not be safe, with these flags; O_CREAT makes it with
 * mode 0600. No link is followed; the file must belong to this user, and have one name only. A pipe
 * or a device is refused, and the call never waits for one.
 */
int private_open(int folder, const char *path, const char *name, int flags, int *ret_fd,
                 struct hvd_err *err) MUST_CHECK;

#endif
