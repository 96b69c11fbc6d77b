/*
 * agent_socket.c: the agent's lock on its host, and the name of its socket. Called by main.c before
 * the agent listens, by its supervisor after an agent was killed, and by leftovers.c for the part
 * of the name that does not change. Invariant: of the agents of one job and user on a host, one
 * holds the lock, and the file has the name of its socket.
 */
#include "agent/processes/agent_socket.h"

#include "base/limits.h"
#include "base/log.h"
#include "os/private.h"
#include "os/remedy.h"
#include "os/state_home.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#define RANDOM_DIGITS 32 /* at the end of each name of a socket */
/* bytes that are left for the beginning of a name, before its random digits and the NUL */
#define PREFIX_MAX (AGENT_SOCKET_MAX - RANDOM_DIGITS - 1)
/* bytes; a digest replaces a longer host name, because file systems take names of 255 bytes */
#define FILE_NAME_MAX 220

/* Returns the FNV-1a hash of the text. Two digests with different seeds make a collision by
 * accident impossible in practice. A collision on purpose would harm only the user who makes it. */
static uint64_t socket_digest(const char *text, uint64_t seed)
{
    uint64_t hash = UINT64_C(14695981039346656037) ^ seed;

    for (size_t i = 0; text[i]; i++)
        hash = (hash ^ (unsigned char)text[i]) * UINT64_C(1099511628211);
    return hash;
}

/* Writes the beginning that the socket names of all agents of this job and host share; a long name
 * is replaced by a digest of 32 digits. Returns `prefix`. */
const char *agent_socket_prefix(const char *job, const char *host, char prefix[AGENT_SOCKET_MAX])
{
    int length = snprintf(prefix, AGENT_SOCKET_MAX, AGENT_SOCKET_BEGIN "%s/%s/", job, host);
    uint64_t high, low;

    if (length >= 0 && length < PREFIX_MAX)
        return prefix;
    high = socket_digest(host, socket_digest(job, 0));
    low = socket_digest(host, socket_digest(job, UINT64_C(0x9e3779b97f4a7c15)));
    snprintf(prefix, AGENT_SOCKET_MAX, AGENT_SOCKET_BEGIN "%016" PRIx64 "%016" PRIx64 "/", high,
             low);
    return prefix;
}

/* Opens the folder for the file with the agent's lock: the job's folder in the user's state
 * directory, where agents keep their logs. If that folder cannot be used (others can write to it,
 * or `has_locks` is false: its file system has no locks), a folder below /tmp is opened. All agents
 * of the user on this host choose the same folder. */
static int socket_folder(const char *job, bool has_locks, char path[LIMIT_PATH_BYTES], int *ret_fd,
                         struct hvd_err *err)
{
    char state[LIMIT_PATH_BYTES];

    /* private_folder with true makes the folders that are missing */
    if (has_locks && !state_home(state, NULL) &&
        snprintf(path, LIMIT_PATH_BYTES, "%s/%s", state, job) < LIMIT_PATH_BYTES &&
        !private_folder(path, true, ret_fd, NULL))
        return 0;
    snprintf(path, LIMIT_PATH_BYTES, STATE_HOME_TMP "/%s", (unsigned)geteuid(), job);
    return private_folder(path, true, ret_fd, err);
}

/* Makes the name of this agent's socket, and writes the name into the locked file. A failed write
 * is no error: the lock alone keeps a second agent away, which then cannot ask this agent anything,
 * because it cannot read the name. */
static int socket_write_name(struct agent_socket *socket, int fd, const char *prefix,
                             struct hvd_err *err)
{
    uint64_t random[2];
    int length;

    if (getrandom(random, sizeof(random), 0) != (ssize_t)sizeof(random))
        return err_set(
            err, HVD_E_IO,
            "the kernel gives no random bytes; allow the call getrandom in this container");
    length = snprintf(socket->name, sizeof(socket->name), "%s%016" PRIx64 "%016" PRIx64, prefix,
                      random[0], random[1]);
    errno = 0;
    if (ftruncate(fd, 0) || pwrite(fd, socket->name, (size_t)length, 0) != length)
        log_warning(
            AGENT,
            "%s: this file cannot be written: %s; a second agent on this host cannot find this "
            "agent; let this user write there, or free some space",
            socket->path, strerror(errno ? errno : ENOSPC));
    return 0;
}

/* Takes the lock of the file for this agent, in the folder that socket_folder chooses for
 * `has_locks`. HVD_E_BUSY: another agent has this host, and ret_socket->name is the name of its
 * socket. HVD_E_LOST: another agent has just begun or ended; the caller tries again later. */
static int socket_take_in(const char *job, const char *host, bool has_locks,
                          struct agent_socket *ret_socket, struct hvd_err *err)
{
    char path[LIMIT_PATH_BYTES], name[FILE_NAME_MAX + 16], prefix[AGENT_SOCKET_MAX];
    struct agent_socket socket = { .fd = -1 };
    struct stat mine, there;
    int folder = -1, fd = -1;
    ssize_t got;
    int rc;

    agent_socket_prefix(job, host, prefix);
    if (strlen(host) < FILE_NAME_MAX)
        snprintf(name, sizeof(name), "%s" STATE_AGENT_ENDING, host);
    else
        snprintf(name, sizeof(name), "%016" PRIx64 STATE_AGENT_ENDING, socket_digest(host, 0));
    rc = socket_folder(job, has_locks, path, &folder, err);
    if (rc)
        return rc;
    snprintf(socket.path, sizeof(socket.path), "%s/%s", path, name);
    rc = private_open(folder, path, name, O_RDWR | O_CREAT, &fd, err);
    if (rc == HVD_E_NOTFOUND) /* an agent that ends has just removed the folder */
        rc = err_set(err, HVD_E_LOST, "%s: removed by an agent that ends; try again", path);
    if (!rc && flock(fd, LOCK_EX | LOCK_NB)) {
        if (errno != EWOULDBLOCK) {
            rc = remedy_set(err, socket.path, "cannot be locked", errno);
        } else {
            /* Another agent holds the lock. The file holds the name of that agent's socket as soon
             * as that agent has written the name. */
            got = pread(fd, socket.name, sizeof(socket.name) - 1, 0);
            socket.name[got > 0 ? got : 0] = '\0';
            if (got == (ssize_t)strlen(prefix) + RANDOM_DIGITS &&
                !strncmp(socket.name, prefix, strlen(prefix)))
                rc =
                    err_set(err, HVD_E_BUSY,
                            "%s: another agent of this job runs on this host; end that agent first",
                            socket.path);
            else
                rc = err_set(
                    err, HVD_E_LOST,
                    "%s: an agent that begins, or has just ended, holds the lock; try again",
                    socket.path);
        }
    } else if (!rc && (fstat(fd, &mine) || fstatat(folder, name, &there, AT_SYMLINK_NOFOLLOW) ||
                       mine.st_ino != there.st_ino || mine.st_dev != there.st_dev)) {
        /* An agent that ends removes the file while it holds the lock: then the open file is no
         * longer the file with this path. */
        rc = err_set(err, HVD_E_LOST, "%s: removed by an agent that ends; try again", socket.path);
    }
    if (!rc)
        rc = socket_write_name(&socket, fd, prefix, err);
    close(folder);
    if (rc && fd >= 0)
        close(fd);
    else
        socket.fd = fd;
    *ret_socket = socket;
    return rc;
}

/* Makes this process the agent of this job on this host, in a folder whose file system has locks.
 */
int agent_socket_take(const char *job, const char *host, struct agent_socket *ret_socket,
                      struct hvd_err *err)
{
    int rc = socket_take_in(job, host, true, ret_socket, err);

    /* HVD_E_UNSUPPORTED: the file system of the state directory has no locks. false: the folder is
     * below /tmp. */
    return rc == HVD_E_UNSUPPORTED ? socket_take_in(job, host, false, ret_socket, err) : rc;
}

/* Gives the host back. The file is removed before the close releases its lock: an agent that gets
 * the lock then sees that the file is gone, and tries again. */
void agent_socket_release(struct agent_socket *socket)
{
    char *slash = strrchr(socket->path, '/');

    if (socket->fd < 0)
        return;
    (void)unlink(socket->path);
    if (slash)
        *slash = '\0';
    (void)rmdir(socket->path); /* fails if the folder has logs, or files of other agents */
    close(socket->fd);
    socket->fd = -1;
}
