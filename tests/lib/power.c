/*
 * power.c: keeps the old contents of each change of a file since its last sync, and puts some of
 * them back when the power fails.
 */
#include "tests/lib/power.h"

#include "base/list.h"
#include "base/mem.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SECTOR_BYTES 512

enum kind { BYTES, CREATED, DELETED, RENAMED };

struct change {
    struct list link;
    enum kind kind;
    char *path;
    char *to; /* only for RENAMED */
    int64_t offset;
    int64_t length;
    size_t old_length;
    char old[];
};

static struct list changes; /* the latest change first */
static bool is_on;

void power_on(void)
{
    list_init(&changes);
    is_on = true;
}

bool power_is_on(void)
{
    return is_on;
}

static void forget(struct change *change)
{
    list_remove(&change->link);
    mem_free(change->path);
    mem_free(change->to);
    mem_free(change);
}

/* Adds a change with the old bytes to the list; the latest change is the first. */
static struct change *note(enum kind kind, const char *path, const void *old, size_t old_length)
{
    struct change *change = mem_zalloc(sizeof(*change) + old_length);

    if (!change || !(change->path = mem_strdup(path)))
        abort();
    list_init(&change->link);
    list_insert_before(changes.next, &change->link);
    change->kind = kind;
    change->old_length = old_length;
    if (old_length)
        memcpy(change->old, old, old_length);
    return change;
}

void power_note_bytes(const char *path, int64_t offset, int64_t length, const void *old,
                      size_t old_length)
{
    struct change *change = note(BYTES, path, old, old_length);

    change->offset = offset;
    change->length = length;
}

void power_note_created(const char *path)
{
    note(CREATED, path, NULL, 0);
}

void power_note_deleted(const char *path, const void *bytes, size_t length)
{
    note(DELETED, path, bytes, length);
}

void power_note_renamed(const char *from, const char *to)
{
    struct change *change = note(RENAMED, from, NULL, 0);

    change->to = mem_strdup(to);
    if (!change->to)
        abort();
}

void power_synced(const char *path)
{
    LIST_EACH_SAFE (it, after, &changes) {
        struct change *change = CONTAINER_OF(it, struct change, link);

        if (change->kind == BYTES && !strcmp(change->path, path))
            forget(change);
    }
}

void power_synced_directory(void)
{
    LIST_EACH_SAFE (it, after, &changes) {
        struct change *change = CONTAINER_OF(it, struct change, link);

        if (change->kind != BYTES)
            forget(change);
    }
}

/* Chooses the part of a write that has not reached the disk: bytes [*ret_from, *ret_to). */
static void choose_lost(const struct change *change, struct rng *rng, int64_t *ret_from,
                        int64_t *ret_to)
{
    uint64_t sectors = (uint64_t)(change->length + SECTOR_BYTES - 1) / SECTOR_BYTES;
    int64_t cut;

    *ret_from = 0;
    *ret_to = change->length;
    if (!rng)
        return;
    cut = (int64_t)rng_below(rng, sectors + 1) * SECTOR_BYTES;
    if (cut > change->length)
        cut = change->length;
    if (rng_below(rng, 2))
        *ret_from = cut; /* only the first sectors have reached the disk */
    else
        *ret_to = cut; /* only the last sectors have reached the disk */
}

static void write_at(int fd, const char *bytes, int64_t length, int64_t offset)
{
    if (length > 0 && pwrite(fd, bytes, (size_t)length, offset) != length)
        abort();
}

/* Puts the old bytes back. Where the file had no bytes, it is cut off at its end, and zero
 * elsewhere. */
static void take_back_bytes(const struct change *change, struct rng *rng)
{
    static const char zeros[SECTOR_BYTES];
    int64_t had = (int64_t)change->old_length;
    int fd = open(change->path, O_RDWR | O_CLOEXEC);
    int64_t from;
    int64_t to;
    struct stat st;

    if (fd < 0)
        return; /* the file itself has not reached the disk */
    choose_lost(change, rng, &from, &to);
    if (fstat(fd, &st))
        abort();
    write_at(fd, change->old + from, (had < to ? had : to) - from, change->offset + from);
    if (from < had)
        from = had;
    if (from < to && change->offset + to >= st.st_size) {
        if (change->offset + from < st.st_size && ftruncate(fd, change->offset + from))
            abort();
        from = to;
    }
    for (; from < to; from += SECTOR_BYTES)
        write_at(fd, zeros, to - from < SECTOR_BYTES ? to - from : SECTOR_BYTES,
                 change->offset + from);
    close(fd);
}

/* Names reach the disk in the order of their changes, bytes in any order. */
void power_fail(struct rng *rng)
{
    bool names_reached = false;

    is_on = false;
    LIST_EACH (it, &changes) {
        const struct change *change = CONTAINER_OF(it, struct change, link);

        if (change->kind != BYTES && rng && rng_below(rng, 2))
            names_reached = true;
        if (change->kind == BYTES || !names_reached) {
            int fd;

            switch (change->kind) {
            case BYTES: take_back_bytes(change, rng); break;
            case CREATED: (void)unlink(change->path); break;
            case RENAMED: (void)rename(change->to, change->path); break;
            case DELETED:
                fd = open(change->path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
                if (fd < 0 ||
                    write(fd, change->old, change->old_length) != (ssize_t)change->old_length)
                    abort();
                close(fd);
                break;
            }
        }
    }
}
