/*
 * process_look.c: asks the kernel about a process: its pidfd, and /proc/PID/stat. The agent asks
 * about its workers and about orphans. The kernel may give a pid to another process at any time; a
 * pidfd always means one process.
 */
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

/* The fields of /proc/PID/stat after the name, with the numbers of proc(5). */
enum field {
    FIELD_STATE = 3,
    FIELD_PARENT = 4,
    FIELD_GROUP = 5,
    FIELD_FLAGS = 9,
    FIELD_PENDING = 31,
    FIELD_STATUS = 52
};

#define FLAG_EXITING    UINT64_C(4) /* PF_EXITING: the process is exiting */
#define PENDING_SIGKILL (UINT64_C(1) << (SIGKILL - 1))

/* From <linux/pidfd.h> of 6.15, which may be newer than the headers of the build. */
struct pidfd_state {
    uint64_t mask;
    uint64_t control_group;
    uint32_t ids[11];
    int32_t wait_status;
};
#define PIDFD_STATE_GET  _IOWR(0xff, 11, struct pidfd_state)
#define PIDFD_STATE_EXIT (UINT64_C(1) << 3)

/* Returns a pidfd of the process, which is readable when the process has ended; -1 with errno. */
int process_watch(pid_t pid)
{
    return (int)syscall(SYS_pidfd_open, pid, 0); /* a pidfd is always close-on-exec */
}

/* Reads the wait status of an ended process from its pidfd. HVD_E_UNSUPPORTED: the process still
 * runs, or the kernel cannot tell. */
int process_status(int watch, int *ret_wait_status)
{
    struct pidfd_state state = { .mask = PIDFD_STATE_EXIT };

    if (ioctl(watch, PIDFD_STATE_GET, &state) || !(state.mask & PIDFD_STATE_EXIT))
        return HVD_E_UNSUPPORTED;
    *ret_wait_status = state.wait_status;
    return 0;
}

/* Reads the state of a process from /proc/PID/stat. A process counts as ending when it is a zombie,
 * is exiting, or has a SIGKILL to come. */
int process_look(pid_t pid, struct process_state *ret_state)
{
    struct process_state state = { .ending = false };
    char path[32];
    char text[2048];
    struct span rest;
    struct span part;
    const char *name_end;
    ssize_t length;
    int fd;

    snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return HVD_E_NOTFOUND;
    length = TEMP_FAILURE_RETRY(read(fd, text, sizeof(text)));
    close(fd);
    if (length <= 0)
        return HVD_E_NOTFOUND;
    /* The fields follow the name, which is in parentheses and may hold any bytes. */
    name_end = memrchr(text, ')', (size_t)length);
    if (!name_end || text + length - name_end < 3)
        return HVD_E_NOTFOUND;
    rest = (struct span){ name_end + 2, (size_t)(text + length - name_end) - 2 };
    for (int field = FIELD_STATE; span_next(&rest, ' ', &part); field++) {
        bool negative = part.length > 0 && *part.at == '-';
        uint64_t value = 0;
        int64_t number;

        /* Reads a number as the kernel prints it; other text counts as 0. */
        for (size_t i = negative; i < part.length && part.at[i] >= '0' && part.at[i] <= '9'; i++)
            value = value * 10 + (uint64_t)(part.at[i] - '0');
        number = (int64_t)(negative ? 0 - value : value);
        switch (field) {
        case FIELD_STATE: state.ending |= part.length > 0 && strchr("ZXx", *part.at); break;
        case FIELD_PARENT: state.parent = (pid_t)number; break;
        case FIELD_GROUP: state.group = (pid_t)number; break;
        case FIELD_FLAGS: state.ending |= ((uint64_t)number & FLAG_EXITING) != 0; break;
        case FIELD_PENDING: state.ending |= ((uint64_t)number & PENDING_SIGKILL) != 0; break;
        case FIELD_STATUS:
            state.wait_status = (int)number;
            /* The process was killed: the signal is no longer pending, and the exit has not
             * begun. */
            state.ending |= number == SIGKILL;
            break;
        default: break;
        }
    }
    if (!state.ending)
        state.wait_status = 0; /* for a stopped process the field is the signal that stopped it */
    *ret_state = state;
    return 0;
}

const char *process_core_pattern(char *text, size_t size)
{
    int fd = open("/proc/sys/kernel/core_pattern", O_RDONLY | O_CLOEXEC);
    ssize_t got = fd >= 0 ? read(fd, text, size - 1) : -1;

    if (fd >= 0)
        close(fd);
    text[got > 0 ? got : 0] = '\0';
    text[strcspn(text, "\n")] = '\0';
    if (!text_is_clean(text, strlen(text)))
        text[0] = '\0';
    return text;
}
