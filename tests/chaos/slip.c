/*
 * slip.c: leaks memory or a child process in a trainer that was started with --slip, so that a
 * campaign can prove that it finds a leak.
 */
#include "tests/chaos/slip.h"

#include <stddef.h>
#include <sys/mman.h>
#include <unistd.h>

#define LEFT_BYTES 4096

const char *const slip_names[SLIP_COUNT + 1] = {
    [SLIP_NONE] = "none",     [SLIP_STATE] = "state",       [SLIP_SAMPLE] = "sample",
    [SLIP_COMMIT] = "commit", [SLIP_MEMORY] = "memory",     [SLIP_CHILD] = "child",
    [SLIP_BUCKET] = "bucket", [SLIP_NAMELESS] = "nameless", [SLIP_ACCUSE] = "accuse",
};

static void leave_memory(void)
{
    int fd = memfd_create("slip", MFD_CLOEXEC);

    if (fd < 0)
        return;
    if (!ftruncate(fd, LEFT_BYTES))
        (void)mmap(NULL, LEFT_BYTES, PROT_READ, MAP_SHARED, fd, 0);
    close(fd);
}

void slip_leave(enum slip slip)
{
    if (slip == SLIP_MEMORY)
        leave_memory();
    if (slip == SLIP_CHILD && fork() == 0)
        _exit(0);
}
