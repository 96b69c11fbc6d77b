/*
 * listener_bind.c: creates listening sockets: over TCP, in the abstract namespace, under a path.
 * Called by listener.c. Invariant: a socket file appears under its name only when the socket
 * listens, and only a file that this process made is removed.
 */
#include "wire/listener_internal.h"

#include "base/mem.h"
#include "base/text.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

/* how many connections may wait in the kernel to be accepted; the kernel limits this to
 * net.core.somaxconn */
#define BACKLOG 8192
/* A socket file has the name ".hvd-PID" until its socket listens. */
#define MAKING ".hvd-"

/* Reports a failed system call as "NAME: WHAT: the text of errno; the remedy". The remedy follows
 * from errno, so `what` says only what has failed. Returns the error code. */
static int bound_set_remedy(struct hvd_err *err, const char *name, const char *what)
{
    int number = errno;
    const char *remedy = number == EMFILE || number == ENFILE ? "; raise ulimit -n"
                         : number == EACCES || number == EPERM || number == EROFS
                             ? "; give this user the permission, or choose another address"
                             : "; choose another address";

    return err_set(err, address_code(number), "%s: %s: %s%s", name, what, strerror(number), remedy);
}

/* Reports HVD_E_BUSY: the agent of the host, or a driver of the job, has this name or port
 * already. */
static int bound_busy(const char *name, struct hvd_err *err)
{
    return err_set(
        err, HVD_E_BUSY,
        "%s: another process listens at this address; end that process, or choose another address",
        name);
}

/* Opens a TCP socket that listens on the address. SO_REUSEADDR: a driver that takes over gets the
 * port of its predecessor at once. */
int bound_tcp(const struct address *address, struct bound *ret_bound, struct hvd_err *err)
{
    int fd = socket(address->at.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    char text[ADDRESS_TEXT_MAX];
    int on = 1;
    int rc;

    address_show(address, text);
    if (fd >= 0 && !setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) &&
        !bind(fd, (const struct sockaddr *)&address->at, address->length) && !listen(fd, BACKLOG)) {
        *ret_bound = BOUND_NONE;
        ret_bound->fd = fd;
        return 0;
    }
    if (errno == EADDRINUSE)
        rc = err_set(err, HVD_E_BUSY,
                     "%s: the port is in use; choose another port, or 0 for any free port", text);
    else if (errno == EADDRNOTAVAIL)
        rc = err_set(err, HVD_E_INVAL,
                     "%s: this machine does not have this address; give an address of this "
                     "machine, or 0.0.0.0",
                     text);
    else
        rc = bound_set_remedy(err, text, "cannot listen at this address");
    if (fd >= 0)
        close(fd);
    return rc;
}

/* Closes the socket, and removes its file only if it is still the file that this process made. */
void bound_release(struct bound *bound)
{
    struct stat now;

    if (bound->file && !fstatat(bound->folder, bound->file, &now, AT_SYMLINK_NOFOLLOW) &&
        now.st_dev == bound->device && now.st_ino == bound->inode)
        unlinkat(bound->folder, bound->file, 0);
    mem_free(bound->file);
    if (bound->folder >= 0)
        close(bound->folder);
    if (bound->fd >= 0)
        close(bound->fd);
    *bound = BOUND_NONE;
}

static int bound_unix_socket(const char *name, struct hvd_err *err)
{
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

    return fd < 0 ? bound_set_remedy(err, name, "cannot open a socket for this address") : fd;
}

/* Makes a socket file at `path` and listens. The socket is bound under a short name in the folder,
 * because the kernel takes only short names, and the file is then renamed. So the file of a dead
 * process is replaced in one step, and no client finds a socket that does not listen yet. */
static int bound_make_file(struct bound *bound, const char *path, struct hvd_err *err)
{
    struct sockaddr_un at = { .sun_family = AF_UNIX };
    const char *slash = strrchr(path, '/');
    const char *name = slash ? slash + 1 : path;
    char *folder =
        slash ? mem_strndup(path, slash == path ? 1 : (size_t)(slash - path)) : mem_strdup(".");
    const struct dirent *entry;
    char making[32];
    struct stat made;
    DIR *listed;
    int rc = 0, fd;

    bound->file = mem_strdup(name);
    if (!folder || !bound->file)
        rc = err_set(err, HVD_E_NOMEM, "%s: %s", path, err_text(HVD_E_NOMEM));
    else if (!name[0])
        rc = err_set(err, HVD_E_INVAL, "%s: the path names a folder; give the path of a socket",
                     path);
    else if ((bound->folder = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC)) < 0)
        rc = bound_set_remedy(err, path, "cannot open the folder of this socket");
    mem_free(folder);
    if (rc)
        return rc;
    bound->fd = bound_unix_socket(path, err);
    if (bound->fd < 0)
        return bound->fd;

    snprintf(making, sizeof(making), MAKING "%d", (int)getpid());
    snprintf(at.sun_path, sizeof(at.sun_path), "/proc/self/fd/%d/%s", bound->folder, making);
    if ((unlinkat(bound->folder, making, 0) && errno != ENOENT) ||
        bind(bound->fd, (const struct sockaddr *)&at, sizeof(at)))
        return bound_set_remedy(err, path, "cannot make this socket");
    if (fchmodat(bound->folder, making, 0600, 0) || listen(bound->fd, BACKLOG) ||
        fstatat(bound->folder, making, &made, AT_SYMLINK_NOFOLLOW) ||
        renameat(bound->folder, making, bound->folder, bound->file)) {
        rc = bound_set_remedy(err, path, "cannot make this socket");
        unlinkat(bound->folder, making, 0);
        return rc;
    }
    bound->device = made.st_dev;
    bound->inode = made.st_ino;
    /* Removes socket files (".hvd-PID") that killed processes have left between bind and rename. An
     * error here does no harm. */
    fd = openat(bound->folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    listed = fd < 0 ? NULL : fdopendir(fd);
    while (listed && (entry = readdir(listed)) != NULL) {
        const char *pid = entry->d_name + strlen(MAKING);
        uint64_t number;

        if (strncmp(entry->d_name, MAKING, strlen(MAKING)) != 0 ||
            text_parse_u64((struct span){ pid, strlen(pid) }, 1, INT32_MAX, "pid", &number, NULL))
            continue;
        if (kill((pid_t)number, 0) && errno == ESRCH)
            unlinkat(bound->folder, entry->d_name, 0);
    }
    if (listed)
        closedir(listed);
    else if (fd >= 0)
        close(fd);
    return 0;
}

/* Listens under an abstract name ("@name") or a path. A path may be too long for the kernel, so the
 * socket file is made through a descriptor of its folder. */
int bound_unix(const char *name, struct bound *ret_bound, struct hvd_err *err)
{
    struct bound bound = BOUND_NONE;
    struct address address;
    struct stat found;
    int by_fd = -1, fd;
    int rc;

    if (name[0] == '@') {
        rc = address_unix(name, &address, &by_fd, err);
        if (!rc) {
            bound.fd = bound_unix_socket(name, err);
            rc = bound.fd < 0 ? bound.fd : 0;
        }
        if (!rc && (bind(bound.fd, (const struct sockaddr *)&address.at, address.length) ||
                    listen(bound.fd, BACKLOG)))
            rc = errno == EADDRINUSE ? bound_busy(name, err)
                                     : bound_set_remedy(err, name, "cannot listen at this address");
    } else {
        /* The name must be free: there is no file, or only a socket file of a dead process. */
        if (lstat(name, &found)) {
            rc = errno == ENOENT ? 0
                                 : bound_set_remedy(err, name, "cannot find out what this file is");
        } else if (!S_ISSOCK(found.st_mode)) {
            rc = err_set(err, HVD_E_EXISTS, "%s: this file is not a socket; move the file away",
                         name);
        } else if (!(rc = address_unix(name, &address, &by_fd, err))) {
            fd = bound_unix_socket(name, err);
            if (fd < 0)
                rc = fd;
            /* connected, or EAGAIN: a process listens, whose queue of connections is full */
            else if (!connect(fd, (const struct sockaddr *)&address.at, address.length) ||
                     errno == EAGAIN)
                rc = bound_busy(name, err);
            else if (errno != ECONNREFUSED && errno != ENOENT)
                rc = bound_set_remedy(err, name, "cannot find out whether a process listens here");
            if (fd >= 0)
                close(fd);
            if (by_fd >= 0)
                close(by_fd);
        } else if (rc == HVD_E_NOTFOUND) {
            rc = 0;
        }
        if (!rc)
            rc = bound_make_file(&bound, name, err);
    }
    if (rc) {
        bound_release(&bound);
        return rc;
    }
    *ret_bound = bound;
    return 0;
}
