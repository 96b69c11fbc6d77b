/*
 * files.c: reads, writes, patches and compares whole files in a test. A file that cannot be read
 * aborts the test's process, so no case continues with half a file.
 */
#include "tests/lib/files.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

NORETURN static void die(const char *what)
{
    perror(what);
    abort();
}

void files_read(const char *path, struct file_bytes *ret_bytes)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t length = fd < 0 ? -1 : read(fd, ret_bytes->bytes, sizeof(ret_bytes->bytes));

    if (length < 0 || length == (ssize_t)sizeof(ret_bytes->bytes))
        die(path);
    ret_bytes->length = (size_t)length;
    close(fd);
}

void files_write(const char *path, const void *bytes, size_t length)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

    if (fd < 0 || write(fd, bytes, length) != (ssize_t)length)
        die(path);
    close(fd);
}

void files_patch(const char *path, size_t offset, const void *bytes, size_t length)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);

    if (fd < 0 || pwrite(fd, bytes, length, (off_t)offset) != (ssize_t)length)
        die(path);
    close(fd);
}

bool files_exist(const char *path)
{
    struct stat st;

    return lstat(path, &st) == 0;
}

bool files_hold(const char *path, const struct file_bytes *bytes)
{
    static struct file_bytes now;

    files_read(path, &now);
    return now.length == bytes->length && !memcmp(now.bytes, bytes->bytes, now.length);
}

void files_obey_permissions(bool obey)
{
    struct __user_cap_header_struct header = { _LINUX_CAPABILITY_VERSION_3, 0 };
    struct __user_cap_data_struct sets[2];
    uint32_t override = 1U << CAP_DAC_OVERRIDE | 1U << CAP_DAC_READ_SEARCH;

    if (syscall(SYS_capget, &header, sets))
        die("capget");
    if (obey)
        sets[0].effective &= ~override;
    else
        sets[0].effective |= sets[0].permitted & override;
    if (syscall(SYS_capset, &header, sets))
        die("capset");
}
