#include "tests/coll/crew.h"

#include "os/clock.h"
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

void crew_layout_show(const struct crew_layout *layout, char text[CREW_MAX + 1])
{
    for (uint32_t i = 0; i < layout->size; i++)
        text[i] = (char)('a' + layout->host[i]);
    text[layout->size] = '\0';
}

void *crew_share(size_t bytes)
{
    void *share = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    if (share == MAP_FAILED)
        abort();
    return share;
}

void crew_unshare(void *share, size_t bytes)
{
    (void)munmap(share, bytes);
}

NORETURN static void member(struct crew *crew, uint32_t rank, int talk, bool plainly, crew_fn *be,
                            void *arg)
{
    int code;

    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (uint32_t i = 0; i <= rank; i++)
        close(crew->members[i].talk);
    code = be(rank, talk, arg);
    close(talk);
    (void)fflush(NULL);
    if (plainly)
        exit(code);
    _exit(code);
}

bool crew_fork(struct crew *crew, uint32_t size, bool plainly, crew_fn *be, void *arg)
{
    memset(crew, 0, sizeof(*crew));
    (void)fflush(NULL);
    for (uint32_t i = 0; i < size; i++) {
        int ends[2];

        if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends))
            return false;
        crew->members[i].talk = ends[0];
        crew->size = i + 1;
        crew->members[i].pid = fork();
        if (crew->members[i].pid == 0)
            member(crew, i, ends[1], plainly, be, arg);
        close(ends[1]);
        if (crew->members[i].pid < 0) {
            crew->members[i].pid = 0;
            return false;
        }
    }
    return true;
}

static int reap(struct crew *crew, uint32_t rank)
{
    int status = 0;

    if (waitpid(crew->members[rank].pid, &status, 0) < 0)
        abort();
    crew->members[rank].pid = 0;
    return status;
}

int crew_reap(struct crew *crew, uint32_t rank, int64_t timeout_us)
{
    struct pollfd watch = { .events = POLLIN };
    int ready;

    watch.fd = process_watch(crew->members[rank].pid);
    if (watch.fd < 0)
        abort();
    ready = poll(&watch, 1, (int)(timeout_us / 1000));
    close(watch.fd);
    return ready == 1 ? reap(crew, rank) : -1;
}

void crew_kill(struct crew *crew, uint32_t rank)
{
    (void)kill(crew->members[rank].pid, SIGKILL);
    (void)reap(crew, rank);
}

void crew_end(struct crew *crew)
{
    for (uint32_t i = 0; i < crew->size; i++) {
        if (crew->members[i].pid)
            crew_kill(crew, i);
        close(crew->members[i].talk);
    }
    crew->size = 0;
}

bool crew_say(int talk, char letter)
{
    return send(talk, &letter, 1, MSG_NOSIGNAL) == 1;
}

char crew_hear(int talk, int64_t timeout_us)
{
    struct pollfd readable = { .fd = talk, .events = POLLIN };
    char letter;

    if (poll(&readable, 1, (int)(timeout_us / 1000)) != 1 || read(talk, &letter, 1) != 1)
        return 0;
    return letter;
}
