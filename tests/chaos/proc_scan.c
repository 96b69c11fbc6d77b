/*
 * proc_scan.c: finds the processes of the job in /proc by the mark in their environment, tells
 * drivers, supervisors, agents and workers apart, and counts what each process holds open.
 */
#include "tests/chaos/proc_scan.h"

#include "base/buf.h"
#include "base/rng.h"
#include "base/text.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#define ENVIRON_BYTES 65536 /* later variables are not read; the mark is the first one */
#define MAPS_BYTES    65536
#define STAT_BYTES    1024
#define STAT_FIELDS   4 /* fields after the name: state, parent, group, session */

/* The contents of /proc/PID for one process. */
struct found {
    struct proc_info process;
    pid_t session;
    /* true: the process has no environment, because it belongs to the kernel or has ended */
    bool is_bare;
};

/* The parents of processes that have ended and are not reaped. */
struct bereft {
    pid_t parents[PROC_SCAN_MAX];
    uint32_t count;
};

/* ---- small files ---- */

/* Reads the beginning of a file, up to size - 1 bytes, and adds a NUL. -1: the process is gone, or
 * not readable for this user. */
static ssize_t read_small(int folder, const char *name, char *text, size_t size)
{
    int fd = openat(folder, name, O_RDONLY | O_CLOEXEC);
    size_t length = 0;
    ssize_t got = fd < 0 ? -1 : 1;

    while (fd >= 0 && length < size - 1 && got > 0) {
        got = read(fd, text + length, size - 1 - length);
        if (got > 0)
            length += (size_t)got;
    }
    if (fd >= 0)
        close(fd);
    text[length] = '\0';
    return got < 0 ? -1 : (ssize_t)length;
}

/* Finds a variable in a sequence of texts; NULL: it is not there. */
static const char *variable(const char *text, size_t length, const char *name)
{
    const size_t name_length = strlen(name);

    for (size_t at = 0; at < length; at += strlen(text + at) + 1)
        if (!strncmp(text + at, name, name_length) && text[at + name_length] == '=')
            return text + at + name_length + 1;
    return NULL;
}

static uint64_t number_of(struct span span)
{
    uint64_t value = 0;

    (void)text_parse_u64(span, 0, UINT64_MAX, "", &value, NULL);
    return value;
}

/* The number in the text; 0: text is NULL. */
static uint64_t number(const char *text)
{
    return text ? number_of((struct span){ text, strlen(text) }) : 0;
}

/* ---- one process ---- */

/* Reads the file stat of a process: "PID (COMM) STATE PARENT GROUP SESSION ...", where COMM may
 * contain any bytes. */
static bool read_stat(int folder, struct found *found)
{
    char text[STAT_BYTES];
    const char *name, *end;
    struct span rest, fields[STAT_FIELDS];
    size_t count = 0;

    if (read_small(folder, "stat", text, sizeof(text)) < 0)
        return false;
    name = strchr(text, '(');
    end = strrchr(text, ')');
    if (!name || !end || end[1] != ' ')
        return false;
    rest = (struct span){ end + 2, strlen(end + 2) };
    while (count < STAT_FIELDS && span_next(&rest, ' ', &fields[count]))
        count++;
    if (count < STAT_FIELDS || fields[0].length != 1)
        return false;
    snprintf(found->process.name, sizeof(found->process.name), "%.*s", (int)(end - name - 1),
             name + 1);
    found->process.state = fields[0].at[0];
    found->process.parent = (pid_t)number_of(fields[1]);
    found->session = (pid_t)number_of(fields[3]);
    return true;
}

static int host_named(const struct arena *arena, const char *name)
{
    for (uint32_t i = 0; name && i < arena->host_count; i++)
        if (!strcmp(arena->hosts[i].name, name))
            return (int)i;
    return -1;
}

static bool read_environment(int folder, const struct arena *arena, struct found *found)
{
    char text[ENVIRON_BYTES];
    ssize_t length = read_small(folder, "environ", text, sizeof(text));
    const char *mark = length > 0 ? variable(text, (size_t)length, "CHAOS_ARENA") : NULL;

    found->is_bare = length <= 0;
    if (!mark || strcmp(mark, arena->folder) != 0)
        return false;
    found->process.host = host_named(arena, variable(text, (size_t)length, "HVD_HOST"));
    found->process.slot = (uint32_t)number(variable(text, (size_t)length, "HVD_SLOT"));
    found->process.incarnation = number(variable(text, (size_t)length, "HVD_INCARNATION"));
    return true;
}

static uint32_t count_files(int folder)
{
    int fd = openat(folder, "fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
    const struct dirent *entry;
    uint32_t files = 0;

    if (!dir) {
        if (fd >= 0)
            close(fd);
        return 0;
    }
    while ((entry = readdir(dir)) != NULL)
        files += entry->d_name[0] != '.';
    closedir(dir);
    return files;
}

/* Reads one process. false: the process is not of the arena. A process that has ended has no
 * environment, so only its parent is noted. */
static bool look_at(int proc, const char *pid, const struct arena *arena, struct found *found,
                    struct bereft *bereft)
{
    int folder = openat(proc, pid, O_PATH | O_DIRECTORY | O_CLOEXEC);
    bool marked, ended;

    if (folder < 0)
        return false;
    *found = (struct found){ .process.pid = (pid_t)number(pid) };
    marked = found->process.pid != getpid() && read_environment(folder, arena, found);
    ended = (marked || found->is_bare) && read_stat(folder, found) &&
            (found->process.state == 'Z' || found->process.state == 'X');
    if (ended && bereft->count < PROC_SCAN_MAX)
        bereft->parents[bereft->count++] = found->process.parent;
    if (marked && !ended) {
        char text[MAPS_BYTES];
        uint32_t memories;
        struct rlimit files;

        found->process.files = count_files(folder);
        if (!prlimit(found->process.pid, RLIMIT_NOFILE, NULL, &files))
            found->process.files_most = files.rlim_cur;
        memories = 0;
        (void)read_small(folder, "maps", text, sizeof(text));
        for (const char *at = text; (at = strstr(at, "/memfd:")) != NULL; at++)
            memories++;
        found->process.memories = memories;
    }
    close(folder);
    return marked && !ended && found->process.state;
}

/* ---- kinds and hosts ---- */

static struct proc_info *process_of(struct proc_scan *scan, pid_t pid)
{
    for (uint32_t i = 0; i < scan->count; i++)
        if (scan->processes[i].pid == pid)
            return &scan->processes[i];
    return NULL;
}

static bool is_named(const struct proc_info *process, const char *name)
{
    return process && !strncmp(process->name, name, sizeof(process->name) - 1);
}

/* The kind of a process; `front` is the one that the campaign has started. Between fork and exec a
 * child has its parent's name, and is not yet a driver, agent or worker; but a driver is a fork of
 * its parent. A supervisor leads a session, and its agent is in that session; the
 * program that has started both is not. An agent without its supervisor is still in the session. */
static enum proc_kind kind_of(struct proc_scan *scan, const struct found *found, pid_t front)
{
    const struct proc_info *process = &found->process;
    const struct proc_info *parent = process_of(scan, process->parent);

    if (is_named(process, "hvd-elastic") && process->pid == front)
        return PROC_FRONT;
    if (is_named(process, "hvd-elastic"))
        return is_named(parent, "hvd-elastic") && parent->pid != front ? PROC_OTHER : PROC_DRIVER;
    if (is_named(process, "chaos_trainer"))
        return is_named(parent, "chaos_trainer") ? PROC_OTHER : PROC_WORKER;
    if (!is_named(process, "hvd-agent"))
        return PROC_OTHER;
    if (found->session == process->pid)
        return PROC_KEEPER;
    if (is_named(parent, "hvd-elastic") ||
        (is_named(parent, "hvd-agent") && parent->pid != found->session))
        return PROC_OTHER;
    return PROC_AGENT;
}

/* Finds the hosts of agents from their workers, and the hosts of supervisors from their agents. */
static void place_parents(struct proc_scan *scan, enum proc_kind child, enum proc_kind parent)
{
    for (uint32_t i = 0; i < scan->count; i++) {
        const struct proc_info *it = &scan->processes[i];
        struct proc_info *above =
            it->kind == child && it->host >= 0 ? process_of(scan, it->parent) : NULL;

        if (above && above->kind == parent)
            above->host = it->host;
    }
}

void proc_scan_take(struct proc_scan *scan, const struct arena *arena)
{
    DIR *proc = opendir("/proc");
    static pid_t sessions[PROC_SCAN_MAX];
    static struct bereft bereft;
    const struct dirent *entry;
    struct found found;

    scan->count = bereft.count = 0;
    if (!proc)
        return;
    while (scan->count < PROC_SCAN_MAX && (entry = readdir(proc)) != NULL) {
        if (entry->d_name[0] < '1' || entry->d_name[0] > '9' ||
            !look_at(dirfd(proc), entry->d_name, arena, &found, &bereft))
            continue;
        sessions[scan->count] = found.session;
        scan->processes[scan->count++] = found.process;
    }
    closedir(proc);
    for (uint32_t i = 0; i < scan->count; i++) {
        found = (struct found){ .process = scan->processes[i], .session = sessions[i] };
        scan->processes[i].kind = kind_of(scan, &found, arena->driver);
        if (scan->processes[i].kind != PROC_WORKER)
            scan->processes[i].host = -1;
    }
    place_parents(scan, PROC_WORKER, PROC_AGENT);
    place_parents(scan, PROC_AGENT, PROC_KEEPER);
    for (uint32_t i = 0; i < bereft.count; i++) {
        struct proc_info *parent = process_of(scan, bereft.parents[i]);

        if (parent)
            parent->unreaped++;
    }
}

/* ---- questions about a scan ---- */

uint32_t proc_scan_count(const struct proc_scan *scan, enum proc_kind kind)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < scan->count; i++)
        count += scan->processes[i].kind == kind;
    return count;
}

static bool is_meant(const struct proc_info *process, enum proc_kind kind, int host)
{
    return process->kind == kind && (host < 0 || process->host == host);
}

const struct proc_info *proc_scan_pick(const struct proc_scan *scan, enum proc_kind kind, int host,
                                       struct rng *rng)
{
    uint64_t count = 0, chosen;

    for (uint32_t i = 0; i < scan->count; i++)
        count += is_meant(&scan->processes[i], kind, host);
    if (!count)
        return NULL;
    chosen = rng_below(rng, count);
    for (uint32_t i = 0; i < scan->count; i++)
        if (is_meant(&scan->processes[i], kind, host) && !chosen--)
            return &scan->processes[i];
    return NULL;
}

void proc_scan_show(const struct proc_scan *scan, struct buf *out)
{
    static const char *const kinds[] = { "front", "driver", "keeper", "agent", "worker", "other" };

    for (uint32_t i = 0; i < scan->count; i++) {
        const struct proc_info *it = &scan->processes[i];

        if (buf_printf(out,
                       "%-6s pid %d of %d, %c, host %d slot %" PRIu32 " #%" PRIu64 ", %" PRIu32
                       " of %" PRIu64 " files, %" PRIu32 " memories, %s\n",
                       kinds[it->kind], (int)it->pid, (int)it->parent, it->state, it->host,
                       it->slot, it->incarnation, it->files, it->files_most, it->memories,
                       it->name))
            return;
    }
}
