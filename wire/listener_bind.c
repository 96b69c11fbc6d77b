#include "wire/listener_bind.h"

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

/* The kernel cuts it to its own maximum (net.core.somaxconn). */
#define BACKLOG 8192
#define MAKING  ".hvd-"

static int failure(struct hvd_err *err, const char *name, const char *what)
{
    return err_set(err, address_code(errno), "%s: %s: %s", name, what, strerror(errno));
}

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
        rc = err_set(err, HVD_E_BUSY, "%s: the port is taken; choose another, or 0 for any", text);
    else if (errno == EADDRNOTAVAIL)
        rc = err_set(err, HVD_E_INVAL, "%s: not an address of this machine", text);
    else
        rc = failure(err, text, "listening");
    if (fd >= 0)
        close(fd);
    return rc;
}

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

static int unix_socket(const char *name, struct hvd_err *err)
{
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

    return fd < 0 ? failure(err, name, "a socket") : fd;
}

static int bind_abstract(const char *name, struct bound *ret_bound, struct hvd_err *err)
{
    struct address address;
    int by_fd;
    int rc = address_unix(name, &address, &by_fd, err);
    int fd;

    if (rc)
        return rc;
    fd = unix_socket(name, err);
    if (fd < 0)
        return fd;
    if (bind(fd, (const struct sockaddr *)&address.at, address.length) || listen(fd, BACKLOG)) {
        rc = errno == EADDRINUSE ? err_set(err, HVD_E_BUSY, "%s: somebody listens there", name)
                                 : failure(err, name, "listening");
        close(fd);
        return rc;
    }
    *ret_bound = BOUND_NONE;
    ret_bound->fd = fd;
    return 0;
}

/* 0: there is nothing, or what a dead process has left. */
static int check_vacant(const char *path, struct hvd_err *err)
{
    struct address address;
    struct stat found;
    int by_fd = -1;
    int rc = 0;
    int fd;

    if (lstat(path, &found))
        return errno == ENOENT ? 0 : failure(err, path, "looking");
    if (!S_ISSOCK(found.st_mode))
        return err_set(err, HVD_E_EXISTS, "%s: is no socket; move it away", path);
    rc = address_unix(path, &address, &by_fd, err);
    if (rc)
        return rc == HVD_E_NOTFOUND ? 0 : rc;
    fd = unix_socket(path, err);
    if (fd < 0)
        rc = fd;
    else if (!connect(fd, (const struct sockaddr *)&address.at, address.length) || errno == EAGAIN)
        rc = err_set(err, HVD_E_BUSY, "%s: somebody listens there", path);
    else if (errno != ECONNREFUSED && errno != ENOENT)
        rc = failure(err, path, "looking");
    if (fd >= 0)
        close(fd);
    if (by_fd >= 0)
        close(by_fd);
    return rc;
}

/* A process that was killed between bind and rename leaves its short name behind. */
static void sweep(const struct bound *bound)
{
    int fd = openat(bound->folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *folder = fd < 0 ? NULL : fdopendir(fd);
    const struct dirent *entry;

    while (folder && (entry = readdir(folder)) != NULL) {
        const char *pid = entry->d_name + strlen(MAKING);
        uint64_t number;

        if (strncmp(entry->d_name, MAKING, strlen(MAKING)) != 0 ||
            text_parse_u64((struct span){ pid, strlen(pid) }, 1, INT32_MAX, "pid", &number, NULL))
            continue;
        if (kill((pid_t)number, 0) && errno == ESRCH)
            unlinkat(bound->folder, entry->d_name, 0);
    }
    if (folder)
        closedir(folder);
    else if (fd >= 0)
        close(fd);
}

/* Binds under a short name in the folder, for the kernel takes only short ones, and renames: so
 * what a dead process has left is replaced in one step, and nobody meets a socket that does not
 * listen yet. */
static int bind_and_rename(struct bound *bound, const char *path, struct hvd_err *err)
{
    struct sockaddr_un at = { .sun_family = AF_UNIX };
    char making[32];
    struct stat made;

    snprintf(making, sizeof(making), MAKING "%d", (int)getpid());
    snprintf(at.sun_path, sizeof(at.sun_path), "/proc/self/fd/%d/%s", bound->folder, making);
    if (unlinkat(bound->folder, making, 0) && errno != ENOENT)
        return failure(err, path, "making the socket");
    if (bind(bound->fd, (const struct sockaddr *)&at, sizeof(at)))
        return failure(err, path, "making the socket");
    if (fchmodat(bound->folder, making, 0600, 0) || listen(bound->fd, BACKLOG) ||
        fstatat(bound->folder, making, &made, AT_SYMLINK_NOFOLLOW) ||
        renameat(bound->folder, making, bound->folder, bound->file)) {
        int rc = failure(err, path, "making the socket");

        unlinkat(bound->folder, making, 0);
        return rc;
    }
    bound->device = made.st_dev;
    bound->inode = made.st_ino;
    sweep(bound);
    return 0;
}

static int open_folder(const char *path, struct bound *bound, struct hvd_err *err)
{
    const char *slash = strrchr(path, '/');
    const char *name = slash ? slash + 1 : path;
    char *folder =
        slash ? mem_strndup(path, slash == path ? 1 : (size_t)(slash - path)) : mem_strdup(".");
    int rc = 0;

    bound->file = mem_strdup(name);
    if (!folder || !bound->file)
        rc = err_set(err, HVD_E_NOMEM, "%s: %s", path, err_text(HVD_E_NOMEM));
    else if (!name[0])
        rc = err_set(err, HVD_E_INVAL, "%s: a folder, not a socket", path);
    else if ((bound->folder = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC)) < 0)
        rc = failure(err, path, "its folder");
    mem_free(folder);
    return rc;
}

int bound_unix(const char *name, struct bound *ret_bound, struct hvd_err *err)
{
    struct bound bound = BOUND_NONE;
    int rc;

    if (name[0] == '@')
        return bind_abstract(name, ret_bound, err);
    rc = check_vacant(name, err);
    if (!rc)
        rc = open_folder(name, &bound, err);
    if (!rc) {
        bound.fd = unix_socket(name, err);
        rc = bound.fd < 0 ? bound.fd : bind_and_rename(&bound, name, err);
    }
    if (rc) {
        bound_release(&bound);
        return rc;
    }
    *ret_bound = bound;
    return 0;
}
