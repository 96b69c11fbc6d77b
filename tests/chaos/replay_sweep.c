/*
 * replay_sweep.c: kills all processes of a host that a trace has removed, also processes that are
 * started there later. The host of a process is in its environment.
 */
#include "base/mem.h"
#include "tests/chaos/replay_hosts.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MARKED_MAX    4096
#define ENVIRON_BYTES 65536
#define STAT_BYTES    1024
#define PATH_BYTES    512

/* A process that has the arena's mark. */
struct marked {
    pid_t pid, parent;
    bool agent; /* true: an agent or a supervisor */
    char host[ARENA_NAME];
};

struct crowd {
    const struct arena *arena;
    struct marked all[MARKED_MAX];
    size_t count;
    char environ[ENVIRON_BYTES];
};

static ssize_t read_small(int folder, const char *name, char *text, size_t size)
{
    int fd = openat(folder, name, O_RDONLY | O_CLOEXEC);
    size_t length = 0;
    ssize_t got = 0;

    if (fd < 0)
        return -1;
    while (length < size - 1 && (got = read(fd, text + length, size - 1 - length)) > 0)
        length += (size_t)got;
    close(fd);
    text[length] = '\0';
    return got < 0 ? -1 : (ssize_t)length;
}

static const char *variable(const char *text, size_t length, const char *name)
{
    size_t name_length = strlen(name);

    for (size_t at = 0; at < length; at += strlen(text + at) + 1)
        if (!strncmp(text + at, name, name_length) && text[at + name_length] == '=')
            return text + at + name_length + 1;
    return NULL;
}

/* Reads "PID (COMM) STATE PARENT ...", where COMM may contain any bytes. */
static bool read_stat(int folder, struct marked *process)
{
    char text[STAT_BYTES];
    const char *name;
    const char *end;

    if (read_small(folder, "stat", text, sizeof(text)) <= 0)
        return false;
    name = strchr(text, '(');
    end = strrchr(text, ')');
    if (!name || !end || strlen(end) < 5 || end[2] == 'Z')
        return false;
    process->agent = !strncmp(name, "(hvd-agent)", 11);
    process->parent = (pid_t)strtol(end + 4, NULL, 10);
    return true;
}

/* Finds the host of an agent without workers by its open log file .../agents/HOST.log. */
static void read_log(int folder, char host[ARENA_NAME])
{
    char path[PATH_BYTES];
    ssize_t length = readlinkat(folder, "fd/2", path, sizeof(path) - 1);
    char *name;
    char *end;

    if (length <= 0)
        return;
    path[length] = '\0';
    name = strstr(path, "/agents/");
    end = name ? strstr(name, ".log") : NULL;
    if (!end)
        return;
    name += strlen("/agents/");
    snprintf(host, ARENA_NAME, "%.*s", (int)(end - name), name);
}

static bool look_at(struct crowd *crowd, int folder, struct marked *process)
{
    static const char *const names[] = { "HVD_HOST", "HVD_CHAOS_HOST", "HOROVOD_HOSTNAME" };
    ssize_t length = read_small(folder, "environ", crowd->environ, sizeof(crowd->environ));
    const char *mark = length > 0 ? variable(crowd->environ, (size_t)length, "CHAOS_ARENA") : NULL;
    const char *host = NULL;

    if (!mark || strcmp(mark, crowd->arena->folder) != 0 || !read_stat(folder, process))
        return false;
    for (size_t i = 0; !host && i < ARRAY_SIZE(names); i++)
        host = variable(crowd->environ, (size_t)length, names[i]);
    if (host)
        snprintf(process->host, sizeof(process->host), "%s", host);
    else if (process->agent)
        read_log(folder, process->host);
    return true;
}

static bool is_used(const struct arena *arena, const char *host)
{
    for (uint32_t i = 0; i < arena->host_count; i++)
        if (!strcmp(arena->hosts[i].name, host))
            return true;
    return false;
}

uint32_t replay_hosts_sweep(const struct replay_hosts *hosts)
{
    struct crowd *crowd = mem_zalloc(sizeof(*crowd));
    uint32_t killed = 0;
    DIR *proc;
    const struct dirent *entry;

    if (!crowd)
        return 0;
    crowd->arena = hosts->arena;
    proc = opendir("/proc");
    while (proc && crowd->count < MARKED_MAX && (entry = readdir(proc)) != NULL) {
        struct marked *process = &crowd->all[crowd->count];
        int folder;

        if (entry->d_name[0] < '1' || entry->d_name[0] > '9')
            continue;
        folder = openat(dirfd(proc), entry->d_name, O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (folder < 0)
            continue;
        *process = (struct marked){ .pid = (pid_t)strtol(entry->d_name, NULL, 10) };
        crowd->count += look_at(crowd, folder, process);
        close(folder);
    }
    if (proc)
        closedir(proc);
    /* Gives an agent or supervisor the host of its child. */
    for (bool moved = true; moved;) {
        moved = false;
        for (size_t i = 0; i < crowd->count; i++)
            for (size_t k = 0; crowd->all[i].host[0] && k < crowd->count; k++) {
                struct marked *above = &crowd->all[k];

                if (above->pid != crowd->all[i].parent || !above->agent || above->host[0])
                    continue;
                memcpy(above->host, crowd->all[i].host, sizeof(above->host));
                moved = true;
            }
    }
    for (size_t i = 0; i < crowd->count; i++) {
        const struct marked *process = &crowd->all[i];

        if (process->host[0] && process->pid != getpid() && !is_used(hosts->arena, process->host))
            killed += kill(process->pid, SIGKILL) == 0;
    }
    mem_free(crowd);
    return killed;
}
