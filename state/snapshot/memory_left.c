/*
 * memory_left.c: reads /proc/meminfo and the memory limits of control groups (version 2).
 *
 * Called before a commit and before a slot is made (copy.c, slot.c). A file that cannot be read
 * counts as no limit: this check prevents damage, and is never itself a reason to fail.
 */
#include "state/snapshot/memory_left.h"

#include "base/limits.h"
#include "base/text.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* More bytes than /proc/meminfo and the files of a control group have, so that one read gets a
 * whole file. */
#define FILE_MAX 8192

/* Returns the number after `word` in the line that begins with it; "" stands for the first line.
 * UINT64_MAX: there is no such line, or no number in it. */
uint64_t memory_number(const char *text, const char *word)
{
    struct span rest = { text, strlen(text) };
    struct span line;
    struct span number;
    uint64_t value;

    while (span_next(&rest, '\n', &line)) {
        if (line.length < strlen(word) || memcmp(line.at, word, strlen(word)) != 0)
            continue;
        line = span_trim((struct span){ line.at + strlen(word), line.length - strlen(word) });
        if (!span_next(&line, ' ', &number) ||
            text_parse_u64(number, 0, UINT64_MAX, "", &value, NULL))
            return UINT64_MAX;
        return value;
    }
    return UINT64_MAX;
}

/* Reads a file into text. A file that cannot be read gives an empty text. */
static void read_text(const char *path, char text[FILE_MAX])
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t length = fd < 0 ? 0 : read(fd, text, FILE_MAX - 1);

    if (fd >= 0)
        close(fd);
    text[length > 0 ? length : 0] = '\0';
}

/* Reads a number from the file `name` of a control group (see memory_number). UINT64_MAX: the group
 * has no such number or no limit ("max"). */
static uint64_t group_number(const char *group, const char *name, const char *word)
{
    char path[LIMIT_PATH_BYTES];
    char text[FILE_MAX];

    snprintf(path, sizeof(path), "/sys/fs/cgroup%s/%s", group, name);
    read_text(path, text);
    return memory_number(text, word);
}

/* Returns how many bytes of memory this process may still use: the least that the machine, or a
 * control group around the process, has left. UINT64_MAX: not known. */
uint64_t memory_left(void)
{
    char text[FILE_MAX];
    char group[LIMIT_PATH_BYTES / 2];
    const char *line;
    uint64_t least;
    char *end;

    read_text("/proc/meminfo", text);
    least = memory_number(text, "MemAvailable:");
    least = least > UINT64_MAX / 1024 ? UINT64_MAX : least * 1024;

    /* The control group of this process, and each group above it, has a limit of its own. */
    read_text("/proc/self/cgroup", text);
    line = strstr(text, "0::/");
    if (!line)
        return least;
    snprintf(group, sizeof(group), "%s", line + strlen("0::"));
    group[strcspn(group, "\n")] = '\0';
    do {
        uint64_t max = group_number(group, "memory.max", "");
        uint64_t used = group_number(group, "memory.current", "");
        uint64_t files = group_number(group, "memory.stat", "file ");
        uint64_t shared = group_number(group, "memory.stat", "shmem ");

        if (max != UINT64_MAX && used != UINT64_MAX) {
            /* Cached files do not count as used: the kernel gives their memory back. */
            if (files != UINT64_MAX && shared <= files && files - shared <= used)
                used -= files - shared;
            max = used < max ? max - used : 0;
            least = max < least ? max : least;
        }
        end = strrchr(group, '/');
        if (end)
            *end = '\0';
    } while (end);
    return least;
}
