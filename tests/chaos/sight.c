#include "tests/chaos/sight.h"

#include "base/buf.h"
#include "base/rng.h"
#include "base/text.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define ENVIRON_BYTES 65536 /* further variables are not looked at: the mark stands first */
#define MAPS_BYTES    65536
#define STAT_BYTES    1024
#define STAT_FIELDS   4 /* behind the name: state, parent, group, session */

/* What /proc/PID says, while it is looked at. */
struct found {
    struct sight_process process;
    pid_t session;
    bool is_bare; /* without an environment: of the kernel, or it has ended */
};

/* Of each process that has ended and is still there, its parent. */
struct bereft {
    pid_t parents[SIGHT_MAX];
    uint32_t count;
};

/* ---- small files -------------------------------------------------------------------------------
 */

/* As far as it fits, and with a NUL behind it; -1: the process is gone, or not ours to look at. */
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

/* The value of a variable among texts that follow each other, or NULL. */
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

/* 0 where there is none. */
static uint64_t number(const char *text)
{
    return text ? number_of((struct span){ text, strlen(text) }) : 0;
}

/* ---- one process -------------------------------------------------------------------------------
 */

/* "PID (COMM) STATE PARENT GROUP SESSION ...", where COMM may have anything in it. */
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

static uint32_t count_memories(int folder)
{
    char text[MAPS_BYTES];
    uint32_t memories = 0;

    (void)read_small(folder, "maps", text, sizeof(text));
    for (const char *at = text; (at = strstr(at, "/memfd:")) != NULL; at++)
        memories++;
    return memories;
}

/* One that has ended has no environment any more, so nobody knows whose it was but its parent. */
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
    if (ended && bereft->count < SIGHT_MAX)
        bereft->parents[bereft->count++] = found->process.parent;
    if (marked && !ended) {
        found->process.files = count_files(folder);
        found->process.memories = count_memories(folder);
    }
    close(folder);
    return marked && !ended && found->process.state;
}

/* ---- who is what -------------------------------------------------------------------------------
 */

static struct sight_process *process_of(struct sight *sight, pid_t pid)
{
    for (uint32_t i = 0; i < sight->count; i++)
        if (sight->processes[i].pid == pid)
            return &sight->processes[i];
    return NULL;
}

static bool is_named(const struct sight_process *process, const char *name)
{
    return process && !strncmp(process->name, name, sizeof(process->name) - 1);
}

/*
 * Between fork and exec a child bears its parent's name: then it is no driver, agent or worker yet.
 * A keeper leads a session and its agent is in it; the program that has started both is not. An
 * agent that has lost its keeper is one all the same: it still has its session.
 */
static enum sight_kind kind_of(struct sight *sight, const struct found *found)
{
    const struct sight_process *process = &found->process;
    const struct sight_process *parent = process_of(sight, process->parent);

    if (is_named(process, "hvd-elastic"))
        return is_named(parent, "hvd-elastic") ? SIGHT_OTHER : SIGHT_DRIVER;
    if (is_named(process, "apprentice"))
        return is_named(parent, "apprentice") ? SIGHT_OTHER : SIGHT_WORKER;
    if (!is_named(process, "hvd-agent"))
        return SIGHT_OTHER;
    if (found->session == process->pid)
        return SIGHT_KEEPER;
    if (is_named(parent, "hvd-elastic") ||
        (is_named(parent, "hvd-agent") && parent->pid != found->session))
        return SIGHT_OTHER;
    return SIGHT_AGENT;
}

/* An agent is where its workers are, and a keeper where its agent is: nothing else says it. */
static void place_parents(struct sight *sight, enum sight_kind child, enum sight_kind parent)
{
    for (uint32_t i = 0; i < sight->count; i++) {
        const struct sight_process *it = &sight->processes[i];
        struct sight_process *above =
            it->kind == child && it->host >= 0 ? process_of(sight, it->parent) : NULL;

        if (above && above->kind == parent)
            above->host = it->host;
    }
}

static void count_unreaped(struct sight *sight, const struct bereft *bereft)
{
    for (uint32_t i = 0; i < bereft->count; i++) {
        struct sight_process *parent = process_of(sight, bereft->parents[i]);

        if (parent)
            parent->unreaped++;
    }
}

void sight_take(struct sight *sight, const struct arena *arena)
{
    DIR *proc = opendir("/proc");
    static pid_t sessions[SIGHT_MAX];
    static struct bereft bereft;
    const struct dirent *entry;
    struct found found;

    sight->count = bereft.count = 0;
    if (!proc)
        return;
    while (sight->count < SIGHT_MAX && (entry = readdir(proc)) != NULL) {
        if (entry->d_name[0] < '1' || entry->d_name[0] > '9' ||
            !look_at(dirfd(proc), entry->d_name, arena, &found, &bereft))
            continue;
        sessions[sight->count] = found.session;
        sight->processes[sight->count++] = found.process;
    }
    closedir(proc);
    for (uint32_t i = 0; i < sight->count; i++) {
        found = (struct found){ .process = sight->processes[i], .session = sessions[i] };
        sight->processes[i].kind = kind_of(sight, &found);
        if (sight->processes[i].kind != SIGHT_WORKER)
            sight->processes[i].host = -1;
    }
    place_parents(sight, SIGHT_WORKER, SIGHT_AGENT);
    place_parents(sight, SIGHT_AGENT, SIGHT_KEEPER);
    count_unreaped(sight, &bereft);
}

/* ---- what is asked of it -----------------------------------------------------------------------
 */

uint32_t sight_count(const struct sight *sight, enum sight_kind kind)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < sight->count; i++)
        count += sight->processes[i].kind == kind;
    return count;
}

static bool is_meant(const struct sight_process *process, enum sight_kind kind, int host)
{
    return process->kind == kind && (host < 0 || process->host == host);
}

const struct sight_process *sight_pick(const struct sight *sight, enum sight_kind kind, int host,
                                       struct rng *rng)
{
    uint64_t count = 0, chosen;

    for (uint32_t i = 0; i < sight->count; i++)
        count += is_meant(&sight->processes[i], kind, host);
    if (!count)
        return NULL;
    chosen = rng_below(rng, count);
    for (uint32_t i = 0; i < sight->count; i++)
        if (is_meant(&sight->processes[i], kind, host) && !chosen--)
            return &sight->processes[i];
    return NULL;
}

void sight_show(const struct sight *sight, struct buf *out)
{
    static const char *const kinds[] = { "driver", "keeper", "agent", "worker", "other" };

    for (uint32_t i = 0; i < sight->count; i++) {
        const struct sight_process *it = &sight->processes[i];

        if (buf_printf(out,
                       "%-6s pid %d of %d, %c, host %d slot %" PRIu32 " #%" PRIu64 ", %" PRIu32
                       " files, %" PRIu32 " memories, %s\n",
                       kinds[it->kind], (int)it->pid, (int)it->parent, it->state, it->host,
                       it->slot, it->incarnation, it->files, it->memories, it->name))
            return;
    }
}
