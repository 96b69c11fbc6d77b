/*
 * agent_find.c: finds the sockets of this user's agents by the files that agent_socket.c makes,
 * FOLDER/JOB/HOST.agent. Called by healthy.c. Invariant: a name is found only while the process
 * that has written it holds the lock of the file, so no other user can have taken the name.
 */
#include "agent/processes/agent_find.h"

#include "base/limits.h"
#include "base/text.h"
#include "os/private.h"
#include "os/state_home.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

/* Reads the names of sockets in the files of one folder, FOLDER/JOB, if the processes that have
 * written them hold the locks of the files. With `jobs` true the path is that of FOLDER: each entry
 * in it is the folder of a job, and is read by a call of this function. The look takes a lock for a
 * moment: an agent that begins at this moment finds its lock taken, and tries again. */
static void find_below(const char *path, bool jobs, struct agent_names *names)
{
    DIR *dir = opendir(path);
    const struct dirent *entry;
    char below[LIMIT_PATH_BYTES];
    int folder = -1, fd;

    if (!jobs && private_folder(path, false, &folder, NULL))
        folder = -1;
    while (dir && (entry = readdir(dir)) != NULL && names->count < AGENT_FIND_MAX) {
        char *name = names->items[names->count];
        const char *ending = strrchr(entry->d_name, '.');
        ssize_t got;
        bool held;

        if (jobs && strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0 &&
            snprintf(below, sizeof(below), "%s/%s", path, entry->d_name) < LIMIT_PATH_BYTES)
            find_below(below, false, names);
        if (jobs || folder < 0 || !ending || strcmp(ending, STATE_AGENT_ENDING) != 0 ||
            private_open(folder, path, entry->d_name, O_RDONLY, &fd, NULL))
            continue;
        /* the lock cannot be had: the process that has written the name lives */
        held = flock(fd, LOCK_SH | LOCK_NB) && errno == EWOULDBLOCK;
        got = pread(fd, name, AGENT_SOCKET_MAX - 1, 0);
        close(fd);
        name[got > 0 ? got : 0] = '\0';
        if (held && !strncmp(name, AGENT_SOCKET_BEGIN, strlen(AGENT_SOCKET_BEGIN)) &&
            strlen(name) == (size_t)got && text_is_clean(name, (size_t)got))
            names->count++;
    }
    if (folder >= 0)
        close(folder);
    if (dir)
        closedir(dir);
}

/* Looks into the two folders where an agent may have made its file (agent_socket.c). */
void agent_find(struct agent_names *ret_names)
{
    char path[LIMIT_PATH_BYTES];

    ret_names->count = 0;
    if (!state_home(path, NULL))
        find_below(path, true, ret_names);
    snprintf(path, sizeof(path), STATE_HOME_TMP, (unsigned)geteuid());
    find_below(path, true, ret_names);
}
