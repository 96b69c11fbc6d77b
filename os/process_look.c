#include "os/process.h"

#include "base/text.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The fields of /proc/PID/stat, as proc(5) numbers them, from the one after the name. */
enum field {
    FIELD_STATE = 3,
    FIELD_PARENT = 4,
    FIELD_GROUP = 5,
    FIELD_FLAGS = 9,
    FIELD_PENDING = 31,
    FIELD_STATUS = 52
};

#define FLAG_EXITING    UINT64_C(4) /* PF_EXITING */
#define PENDING_SIGKILL (UINT64_C(1) << (SIGKILL - 1))

/* <linux/pidfd.h> of 6.15, which is newer than the headers we may be built with. */
struct pidfd_state {
    uint64_t mask;
    uint64_t control_group;
    uint32_t ids[11];
    int32_t wait_status;
};
#define PIDFD_STATE_GET  _IOWR(0xff, 11, struct pidfd_state)
#define PIDFD_STATE_EXIT (UINT64_C(1) << 3)

int process_watch(pid_t pid)
{
    return (int)syscall(SYS_pidfd_open, pid, 0); /* close-on-exec by itself */
}

int process_status(int watch, int *ret_wait_status)
{
    struct pidfd_state state = { .mask = PIDFD_STATE_EXIT };

    if (ioctl(watch, PIDFD_STATE_GET, &state) || !(state.mask & PIDFD_STATE_EXIT))
        return HVD_E_UNSUPPORTED;
    *ret_wait_status = state.wait_status;
    return 0;
}

/* A number as the kernel prints it; what is none counts as 0. */
static int64_t number_of(struct span span)
{
    bool negative = span.length > 0 && *span.at == '-';
    uint64_t value = 0;

    for (size_t i = negative; i < span.length && span.at[i] >= '0' && span.at[i] <= '9'; i++)
        value = value * 10 + (uint64_t)(span.at[i] - '0');
    return (int64_t)(negative ? 0 - value : value);
}

static void take_field(int field, struct span text, struct process_state *state)
{
    int64_t number = number_of(text);

    switch (field) {
    case FIELD_STATE: state->ending |= text.length > 0 && strchr("ZXx", *text.at) != NULL; break;
    case FIELD_PARENT: state->parent = (pid_t)number; break;
    case FIELD_GROUP: state->group = (pid_t)number; break;
    case FIELD_FLAGS: state->ending |= ((uint64_t)number & FLAG_EXITING) != 0; break;
    case FIELD_PENDING: state->ending |= ((uint64_t)number & PENDING_SIGKILL) != 0; break;
    case FIELD_STATUS: state->wait_status = (int)number; break;
    default: break;
    }
}

static ssize_t read_stat(pid_t pid, char *text, size_t size)
{
    char path[32];
    ssize_t got;
    int fd;

    snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -1;
    do
        got = read(fd, text, size);
    while (got < 0 && errno == EINTR);
    close(fd);
    return got;
}

int process_look(pid_t pid, struct process_state *ret_state)
{
    struct process_state state = { .ending = false };
    char text[2048];
    ssize_t length = read_stat(pid, text, sizeof(text));
    struct span rest;
    struct span part;
    const char *name_end;

    if (length <= 0)
        return HVD_E_NOTFOUND;
    name_end = memrchr(text, ')', (size_t)length); /* the name itself may hold any byte */
    if (!name_end || text + length - name_end < 3)
        return HVD_E_NOTFOUND;
    rest = (struct span){ name_end + 2, (size_t)(text + length - name_end) - 2 };
    for (int field = FIELD_STATE; span_next(&rest, ' ', &part); field++)
        take_field(field, part, &state);
    if (!state.ending)
        state.wait_status = 0; /* a stopped one shows its signal there */
    *ret_state = state;
    return 0;
}
