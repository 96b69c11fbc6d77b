/*
 * private.c: checks folders and files by descriptors, each from the folder above it, so that no
 * name is looked up twice. The driver and the verbs call it for state directories, the driver and
 * workers for the files that they write. Invariant: a descriptor that was returned is of the object
 * that was checked.
 */
#include "os/private.h"

#include "base/limits.h"
#include "os/remedy.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LINKS_MAX 40                  /* the most links in a path; the kernel has the same limit */
#define OTHERS    (S_IWGRP | S_IWOTH) /* the group or other users may write */
/* The owner of a file whose owner a user namespace does not know, and the number of users in the
 * map of a process that is in no such namespace. */
#define OVERFLOW_UID 65534
#define ALL_USERS    "4294967295"

/* The walk of private_folder from "/" down a path. */
struct private_walk {
    int fd;                          /* the folder that the walk has reached, opened with O_PATH */
    int links;                       /* symbolic links that were followed so far */
    bool make;                       /* true: a folder that is missing is made */
    const char *path;                /* the path of the caller, for errors */
    char rest[2 * LIMIT_PATH_BYTES]; /* the names below `fd` that are still to be walked */
};

/* true: a file with this owner belongs to root, as far as this process can tell. In a user
 * namespace the files of root and of other users that the namespace lacks belong to the overflow
 * uid. These files cannot be told apart there, and "/" is among them. The last folder of a path
 * must be this user's own in any case. */
static bool private_is_root(uid_t owner)
{
    char map[64] = "";
    int fd;

    if (owner != OVERFLOW_UID)
        return owner == 0;
    fd = open("/proc/self/uid_map", O_RDONLY | O_CLOEXEC);
    if (fd >= 0) {
        (void)!read(fd, map, sizeof(map) - 1);
        close(fd);
    }
    return map[0] && !strstr(map, ALL_USERS);
}

/* Sets the error for a folder, file or link that is not safe: another user owns it, or may write to
 * it. `fd` is its descriptor; the kernel knows its real path, which the text names. */
static int private_refuse(int fd, const char *path, const struct stat *st, struct hvd_err *err)
{
    char link[32], real[LIMIT_PATH_BYTES];
    bool foreign = st->st_uid != geteuid();
    ssize_t length;

    snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    length = readlink(link, real, sizeof(real) - 1);
    real[length > 0 ? length : 0] = '\0';
    if (length <= 0)
        snprintf(real, sizeof(real), "%s", path);
    /* A chown would take the folder away from an ordinary user, so it is no remedy there. */
    if (foreign && st->st_uid)
        return err_set(err, HVD_E_DENIED,
                       "%s: belongs to user %u (mode %04o), and that user could exchange the files "
                       "there; choose another folder, or run the command as that user",
                       real, (unsigned)st->st_uid, (unsigned)st->st_mode & 07777);
    if (foreign)
        return err_set(err, HVD_E_DENIED,
                       "%s: belongs to root (mode %04o); choose another folder, or run as root: "
                       "chown -h %u %s",
                       real, (unsigned)st->st_mode & 07777, (unsigned)geteuid(), real);
    return err_set(err, HVD_E_DENIED,
                   "%s: other users may write there (owner %u, mode %04o); choose another folder, "
                   "or run: chmod go-w %s",
                   real, (unsigned)st->st_uid, (unsigned)st->st_mode & 07777, real);
}

/* Judges one folder of a path. The last folder must be this user's own. A folder above it may
 * belong to root, and may be open to all users if it is sticky (S_ISVTX), as /tmp is. */
static int private_judge(int fd, const char *path, const struct stat *st, bool last,
                         struct hvd_err *err)
{
    bool own = st->st_uid == geteuid();
    bool open_to_others = (st->st_mode & OTHERS) && (last || !(st->st_mode & S_ISVTX));

    if (!(own || (!last && private_is_root(st->st_uid))) || open_to_others)
        return private_refuse(fd, path, st, err);
    return 0;
}

/* Goes on at a symbolic link, whose descriptor is fd: the text of the link is put before the rest
 * of the path. If the text is an absolute path, the walk goes on from "/". */
static int private_follow(struct private_walk *walk, int fd, const struct stat *st,
                          struct hvd_err *err)
{
    char target[LIMIT_PATH_BYTES];
    ssize_t length = readlinkat(fd, "", target, sizeof(target) - 1);
    int root;

    if (st->st_uid != geteuid() && !private_is_root(st->st_uid))
        return private_refuse(fd, walk->path, st, err);
    if (length < 0)
        return remedy_set(err, walk->path, "cannot read a link", errno);
    if (++walk->links > LINKS_MAX || strlen(walk->rest) + (size_t)length + 2 > sizeof(walk->rest))
        return err_set(err, HVD_E_LIMIT,
                       "%s: this path leads through too many symbolic links; give another path",
                       walk->path);
    memmove(walk->rest + length + 1, walk->rest, strlen(walk->rest) + 1);
    memcpy(walk->rest, target, (size_t)length);
    walk->rest[length] = '/';
    if (target[0] != '/')
        return 0;
    root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (root < 0)
        return remedy_set(err, "/", "cannot open it", errno);
    close(walk->fd);
    walk->fd = root;
    return 0;
}

/* Goes one name further down. A folder that is missing is made if `make` is true. A link changes
 * the rest of the path, and the next step goes on from there. */
static int private_step(struct private_walk *walk, const char *name, struct hvd_err *err)
{
    const int flags = O_PATH | O_NOFOLLOW | O_CLOEXEC;
    bool last = walk->rest[strspn(walk->rest, "/")] == '\0';
    int fd = openat(walk->fd, name, flags);
    struct stat st;
    int rc;

    if (fd < 0 && errno == ENOENT && walk->make) {
        if (mkdirat(walk->fd, name, 0700) && errno != EEXIST)
            return err_set(err, errno == ENOSPC || errno == EDQUOT ? HVD_E_FULL : HVD_E_DENIED,
                           "%s: cannot be made: %s; choose another folder", walk->path,
                           strerror(errno));
        fd = openat(walk->fd, name, flags);
    }
    if (fd < 0 || fstat(fd, &st)) {
        rc = remedy_set(err, walk->path, "cannot open the folder", errno);
    } else if (S_ISLNK(st.st_mode)) {
        rc = private_follow(walk, fd, &st, err);
    } else if (!S_ISDIR(st.st_mode)) {
        rc = err_set(err, HVD_E_INVAL, "%s: %s is not a folder; choose another path", walk->path,
                     name);
    } else {
        rc = private_judge(fd, walk->path, &st, last, err);
        if (!rc) {
            close(walk->fd);
            walk->fd = fd;
            return 0;
        }
    }
    if (fd >= 0)
        close(fd);
    return rc;
}

/* Opens a folder that no other user can have changed, by walking down from "/" name by name. */
int private_folder(const char *path, bool make, int *ret_fd, struct hvd_err *err)
{
    struct private_walk walk = { .make = make, .path = path };
    char name[NAME_MAX + 1];
    struct stat st;
    int rc = 0;

    if (path[0] != '/' || strlen(path) >= LIMIT_PATH_BYTES)
        return err_set(err, HVD_E_LIMIT, "%s: give an absolute path of at most %d bytes", path,
                       LIMIT_PATH_BYTES - 1);
    snprintf(walk.rest, sizeof(walk.rest), "%s", path);
    walk.fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (walk.fd < 0)
        return remedy_set(err, "/", "cannot open it", errno);
    while (!rc) {
        size_t slashes = strspn(walk.rest, "/");
        size_t length = strcspn(walk.rest + slashes, "/");

        if (!length)
            break;
        if (length >= sizeof(name)) {
            rc = remedy_set(err, path, "cannot open the folder", ENAMETOOLONG);
            break;
        }
        snprintf(name, sizeof(name), "%.*s", (int)length, walk.rest + slashes);
        memmove(walk.rest, walk.rest + slashes + length, strlen(walk.rest + slashes + length) + 1);
        rc = private_step(&walk, name, err);
    }
    /* If the path ends in "/." or in a link to "/", the loop has judged the last folder as one
     * above the last one, which is less strict. So it is judged here again, as the last one. */
    if (!rc && fstat(walk.fd, &st))
        rc = remedy_set(err, path, "cannot read its owner and mode", errno);
    if (!rc)
        rc = private_judge(walk.fd, path, &st, true /* the last folder */, err);
    if (rc)
        close(walk.fd);
    else
        *ret_fd = walk.fd;
    return rc;
}

/* Checks that a file belongs to this user, that it is no link, and that other users may not write
 * to it. `folder` was opened by private_folder, so other users cannot exchange the file after the
 * check. Returns 0 also if the file is missing. */
int private_entry(int folder, const char *path, const char *name, struct hvd_err *err)
{
    char whole[2 * LIMIT_PATH_BYTES];
    struct stat st;
    int fd = openat(folder, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    int rc = 0;

    if (fd < 0 && errno == ENOENT)
        return 0;
    snprintf(whole, sizeof(whole), "%s/%s", path, name);
    if (fd < 0 || fstat(fd, &st))
        rc = remedy_set(err, whole, "cannot read its owner and mode", errno);
    else if (S_ISLNK(st.st_mode))
        rc = err_set(err, HVD_E_DENIED,
                     "%s: this name is a symbolic link (owner %u); move the file itself there, or "
                     "remove the link",
                     whole, (unsigned)st.st_uid);
    else if (st.st_uid != geteuid() || (st.st_mode & OTHERS))
        rc = private_refuse(fd, whole, &st, err);
    if (fd >= 0)
        close(fd);
    return rc;
}

/* Opens a folder below `folder`, name by name ("a/b"), and follows no link. `make`: folders that
 * are missing are made. */
int private_below(int folder, const char *path, const char *name, bool make, int *ret_fd,
                  struct hvd_err *err)
{
    char whole[2 * LIMIT_PATH_BYTES];
    const int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
    int at = fcntl(folder, F_DUPFD_CLOEXEC, 0);
    int rc = 0;

    snprintf(whole, sizeof(whole), "%s/%s", path, name);
    while (at >= 0 && !rc && *name) {
        size_t length = strcspn(name, "/");
        char part[NAME_MAX + 1];
        struct stat st;
        int fd;

        snprintf(part, sizeof(part), "%.*s", (int)length, name);
        name += length + (name[length] == '/');
        fd = openat(at, part, flags);
        if (fd < 0 && errno == ENOENT && make && (!mkdirat(at, part, 0700) || errno == EEXIST))
            fd = openat(at, part, flags);
        if (fd < 0 && (errno == ELOOP || errno == ENOTDIR))
            rc = err_set(err, HVD_E_DENIED,
                         "%s: %s in this path is a symbolic link or not a folder; remove it", whole,
                         part);
        else if (fd < 0 || fstat(fd, &st))
            rc = remedy_set(err, whole, "cannot open the folder", errno);
        else if (st.st_uid != geteuid())
            rc = private_refuse(fd, whole, &st, err);
        /* after a failure `at` is the last descriptor or -1, and is closed below */
        close(at);
        at = fd;
    }
    if (!rc && at < 0)
        rc = remedy_set(err, whole, "cannot open the folder", errno);
    if (rc && at >= 0)
        close(at);
    if (!rc)
        *ret_fd = at;
    return rc;
}

/* Opens a regular file of this user in `folder`. O_NONBLOCK: the open of a pipe does not wait. A
 * file with a second name (a hard link) is refused: another user may have linked a file of this
 * user there. */
int private_open(int folder, const char *path, const char *name, int flags, int *ret_fd,
                 struct hvd_err *err)
{
    char whole[2 * LIMIT_PATH_BYTES];
    struct stat st;
    int fd = openat(folder, name, flags | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0600);
    int number = errno;
    int rc = 0;

    snprintf(whole, sizeof(whole), "%s/%s", path, name);
    /* ENXIO: a pipe without a reader, or a socket */
    if (fd < 0 && number != ELOOP && number != ENXIO && number != EISDIR)
        rc = remedy_set(err, whole, "cannot open it", number);
    else if (fd < 0 || fstat(fd, &st) || !S_ISREG(st.st_mode))
        rc = err_set(err, HVD_E_DENIED, "%s: is a symbolic link or not a regular file; remove it",
                     whole);
    else if (st.st_uid != geteuid())
        rc = private_refuse(fd, whole, &st, err);
    else if (st.st_nlink > 1)
        rc =
            err_set(err, HVD_E_DENIED,
                    "%s: the file has another name as well (a hard link), under which another user "
                    "could change it; remove this name",
                    whole);
    if (rc && fd >= 0)
        close(fd);
    if (!rc)
        *ret_fd = fd;
    return rc;
}
