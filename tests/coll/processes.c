/*
 * processes.c: starts the members of a collective round as processes with shared memory, and
 * exchanges single letters with each of them over a socket.
 */
#include "tests/coll/processes.h"

#include "os/process.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

void processes_layout_show(const struct processes_layout *layout, char text[PROCESSES_MAX + 1])
{
    for (uint32_t i = 0; i < layout->size; i++)
        text[i] = (char)('a' + layout->host[i]);
    text[layout->size] = '\0';
}

void *processes_share(size_t bytes)
{
    void *share = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    if (share == MAP_FAILED)
        abort();
    return share;
}

void processes_unshare(void *share, size_t bytes)
{
    (void)munmap(share, bytes);
}

NORETURN static void member(struct processes *processes, uint32_t rank, int talk, bool plainly,
                            processes_fn *be, void *arg)
{
    int code;

    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (uint32_t i = 0; i <= rank; i++)
        close(processes->members[i].talk);
    code = be(rank, talk, arg);
    close(talk);
    (void)fflush(NULL);
    if (plainly)
        exit(code);
    _exit(code);
}

bool processes_fork(struct processes *processes, uint32_t size, bool plainly, processes_fn *be,
                    void *arg)
{
    memset(processes, 0, sizeof(*processes));
    (void)fflush(NULL);
    for (uint32_t i = 0; i < size; i++) {
        int ends[2];

        if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends))
            return false;
        processes->members[i].talk = ends[0];
        processes->size = i + 1;
        processes->members[i].pid = fork();
        if (processes->members[i].pid == 0)
            member(processes, i, ends[1], plainly, be, arg);
        close(ends[1]);
        if (processes->members[i].pid < 0) {
            processes->members[i].pid = 0;
            return false;
        }
    }
    return true;
}

static int reap(struct processes *processes, uint32_t rank)
{
    int status = 0;

    if (waitpid(processes->members[rank].pid, &status, 0) < 0)
        abort();
    processes->members[rank].pid = 0;
    return status;
}

int processes_reap(struct processes *processes, uint32_t rank, int64_t timeout_us)
{
    struct pollfd watch = { .events = POLLIN };
    int ready;

    watch.fd = process_watch(processes->members[rank].pid);
    if (watch.fd < 0)
        abort();
    ready = poll(&watch, 1, (int)(timeout_us / 1000));
    close(watch.fd);
    return ready == 1 ? reap(processes, rank) : -1;
}

void processes_kill(struct processes *processes, uint32_t rank)
{
    (void)kill(processes->members[rank].pid, SIGKILL);
    (void)reap(processes, rank);
}

void processes_end(struct processes *processes)
{
    for (uint32_t i = 0; i < processes->size; i++) {
        if (processes->members[i].pid)
            processes_kill(processes, i);
        close(processes->members[i].talk);
    }
    processes->size = 0;
}

bool processes_say(int talk, char letter)
{
    return send(talk, &letter, 1, MSG_NOSIGNAL) == 1;
}

char processes_hear(int talk, int64_t timeout_us)
{
    struct pollfd readable = { .fd = talk, .events = POLLIN };
    char letter;

    if (poll(&readable, 1, (int)(timeout_us / 1000)) != 1 || read(talk, &letter, 1) != 1)
        return 0;
    return letter;
}
