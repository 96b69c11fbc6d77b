/*
 * checkpoints.c: finds the newest complete checkpoint of the job under attack, and reads the step
 * of the training from it. Called by the faults that kill all processes, and by the judge.
 * Invariant: a folder without COMPLETE never counts.
 */
#include "tests/chaos/checkpoints.h"

#include "base/mem.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PATH_BYTES  512
#define HEADER_MAX  ((uint64_t)1 << 20)
#define LENGTH_SIZE 8 /* the length of the header, little-endian */

/* Reads the numbers of "commit-12.5". false: the name is another one. */
static bool read_name(const char *name, struct checkpoint_seen *seen)
{
    static const char prefix[] = "commit-";
    char *end;

    if (strncmp(name, prefix, sizeof(prefix) - 1) != 0)
        return false;
    seen->round = strtoull(name + sizeof(prefix) - 1, &end, 10);
    if (*end != '.')
        return false;
    seen->commit = strtoull(end + 1, &end, 10);
    return !*end;
}

static bool is_newer(const struct checkpoint_seen *a, const struct checkpoint_seen *b)
{
    return a->round != b->round ? a->round > b->round : a->commit > b->commit;
}

/* Reads the entry "step" out of a safetensors file. false: the file has none. */
static bool read_step(const char *path, int64_t *ret_step)
{
    static const char entry[] = "\"step\":{", offsets[] = "\"data_offsets\":[";
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    uint64_t length = 0;
    char *header = NULL;
    const char *at = NULL;
    bool found = false;

    if (fd < 0)
        return false;
    if (pread(fd, &length, LENGTH_SIZE, 0) == LENGTH_SIZE && length && length < HEADER_MAX)
        header = mem_alloc(length + 1);
    if (header && pread(fd, header, length, LENGTH_SIZE) == (ssize_t)length) {
        header[length] = '\0';
        at = strstr(header, entry);
        at = at ? strstr(at, offsets) : NULL;
    }
    if (at) {
        uint64_t from = strtoull(at + sizeof(offsets) - 1, NULL, 10);

        found = pread(fd, ret_step, sizeof(*ret_step), (off_t)(LENGTH_SIZE + length + from)) ==
                sizeof(*ret_step);
    }
    mem_free(header);
    close(fd);
    return found;
}

/* Reads the step from any file of the folder that has it. */
static bool read_folder(const char *folder, int64_t *ret_step)
{
    DIR *files = opendir(folder);
    const struct dirent *file;
    char path[2 * PATH_BYTES];
    bool found = false;

    while (files && !found && (file = readdir(files)) != NULL) {
        const char *end = strrchr(file->d_name, '.');

        snprintf(path, sizeof(path), "%s/%s", folder, file->d_name);
        found = end && !strcmp(end, ".safetensors") && read_step(path, ret_step);
    }
    if (files)
        closedir(files);
    return found;
}

int checkpoints_newest(const char *directory, struct checkpoint_seen *ret_seen, struct hvd_err *err)
{
    struct checkpoint_seen newest = { .round = 0 }, seen = { .round = 0 };
    DIR *folders = opendir(directory);
    const struct dirent *folder;
    char path[PATH_BYTES];

    while (folders && (folder = readdir(folders)) != NULL) {
        snprintf(path, sizeof(path), "%s/%.200s/COMPLETE", directory, folder->d_name);
        if (read_name(folder->d_name, &seen) && !access(path, F_OK) && is_newer(&seen, &newest))
            newest = seen;
    }
    if (folders)
        closedir(folders);
    if (!newest.round)
        return HVD_DONE;
    snprintf(path, sizeof(path), "%s/commit-%" PRIu64 ".%" PRIu64, directory, newest.round,
             newest.commit);
    if (!read_folder(path, &newest.step))
        return err_set(err, HVD_E_CORRUPT, "%s: is complete, and no file in it has the entry step",
                       path);
    *ret_seen = newest;
    return 0;
}

uint32_t checkpoints_count(const char *directory)
{
    DIR *folders = opendir(directory);
    struct checkpoint_seen seen;
    const struct dirent *folder;
    uint32_t count = 0;

    while (folders && (folder = readdir(folders)) != NULL)
        count += read_name(folder->d_name, &seen);
    if (folders)
        closedir(folders);
    return count;
}
