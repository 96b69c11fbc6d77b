/*
 * remedy.c: the text that tells an operator what to do about an errno of a file or its directory.
 * Called where a job's files are created and locked.
 */
#include "os/remedy.h"

#include <errno.h>
#include <string.h>

/* Sets the error for a file operation that failed with this errno (`number`), with the remedy.
 * Returns the error code. */
int remedy_set(struct hvd_err *err, const char *path, const char *what, int number)
{
    const char *remedy = "check the disk";
    int code = HVD_E_IO;

    switch (number) {
    case ENOENT:
    case ENOTDIR:
        code = HVD_E_NOTFOUND;
        remedy = "create the directory";
        break;
    case EACCES:
    case EPERM:
        code = HVD_E_DENIED;
        remedy = "make the file and its directory writable for this user";
        break;
    case EROFS:
        code = HVD_E_DENIED;
        remedy = "mount its file system writable, or give another directory";
        break;
    case ENOSPC:
    case EDQUOT:
        code = HVD_E_FULL;
        remedy = "free some space";
        break;
    case ENOLCK:
    case EOPNOTSUPP:
        code = HVD_E_UNSUPPORTED;
        remedy = "put the file on a local file system";
        break;
    case ENAMETOOLONG:
        code = HVD_E_INVAL;
        remedy = "give a shorter path";
        break;
    case EMFILE:
    case ENFILE: remedy = "raise the limit of open file descriptors (ulimit -n)"; break;
    default: break;
    }
    return err_set(err, code, "%s: %s: %s; %s", path, what, strerrordesc_np(number), remedy);
}
