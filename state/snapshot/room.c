#include "state/snapshot/room.h"

#include "base/limits.h"
#include "base/text.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* A file of the kernel: they are small, and come whole. */
struct file {
    char text[8192];
};

static uint64_t number_of(struct span text)
{
    uint64_t number;

    return text_parse_u64(text, 0, UINT64_MAX, "", &number, NULL) ? UINT64_MAX : number;
}

static bool begins_with(struct span text, const char *word)
{
    return text.length >= strlen(word) && !memcmp(text.at, word, strlen(word));
}

uint64_t room_number(const char *text, const char *word)
{
    struct span rest = { text, strlen(text) };
    struct span line;

    while (span_next(&rest, '\n', &line)) {
        struct span number;

        if (!begins_with(line, word))
            continue;
        line = span_trim((struct span){ line.at + strlen(word), line.length - strlen(word) });
        return span_next(&line, ' ', &number) ? number_of(number) : UINT64_MAX;
    }
    return UINT64_MAX;
}

/* What cannot be read is empty. */
static const char *contents(const char *path, struct file *file)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t length = fd < 0 ? 0 : read(fd, file->text, sizeof(file->text) - 1);

    if (fd >= 0)
        close(fd);
    file->text[length > 0 ? length : 0] = '\0';
    return file->text;
}

static uint64_t left_in_machine(struct file *file)
{
    uint64_t kib = room_number(contents("/proc/meminfo", file), "MemAvailable:");

    return kib > UINT64_MAX / 1024 ? UINT64_MAX : kib * 1024;
}

static const char *of_group(const char *group, const char *name, struct file *file)
{
    char path[LIMIT_PATH_BYTES];

    snprintf(path, sizeof(path), "/sys/fs/cgroup%s/%s", group, name);
    return contents(path, file);
}

/* What it has of files it can give back. */
static uint64_t left_in_group(const char *group, struct file *file)
{
    uint64_t max = room_number(of_group(group, "memory.max", file), "");
    uint64_t used = room_number(of_group(group, "memory.current", file), "");
    uint64_t files = room_number(of_group(group, "memory.stat", file), "file ");
    uint64_t shared = room_number(of_group(group, "memory.stat", file), "shmem ");

    if (max == UINT64_MAX || used == UINT64_MAX)
        return UINT64_MAX;
    if (files != UINT64_MAX && shared <= files && files - shared <= used)
        used -= files - shared;
    return used < max ? max - used : 0;
}

/* Of the group of this process, and of all above it. */
static uint64_t left_in_groups(struct file *file)
{
    uint64_t least = UINT64_MAX;
    char group[LIMIT_PATH_BYTES / 2];
    const char *line = strstr(contents("/proc/self/cgroup", file), "0::/");
    char *end;

    if (!line)
        return least;
    snprintf(group, sizeof(group), "%s", line + strlen("0::"));
    group[strcspn(group, "\n")] = '\0';
    do {
        uint64_t left = left_in_group(group, file);

        least = left < least ? left : least;
        end = strrchr(group, '/');
        if (end)
            *end = '\0';
    } while (end);
    return least;
}

uint64_t room_left(void)
{
    struct file file;
    uint64_t machine = left_in_machine(&file);
    uint64_t groups = left_in_groups(&file);

    return machine < groups ? machine : groups;
}
