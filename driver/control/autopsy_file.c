/*
 * autopsy_file.c: the files of autopsies in the folder of a job. autopsies.c calls it on a thread
 * of its own, and the verb "autopsy". Invariant: a file gets its name when it is whole, so no
 * reader sees half of one, and a full disk leaves nothing behind.
 */
#include "driver/control/autopsy_file.h"

#include "base/limits.h"
#include "base/text.h"
#include "base/time.h"
#include "os/file.h"
#include "os/remedy.h"
#include "proto/codec.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PLACE          "autopsies"
#define FRESH          "new" /* the name of a file that is being written */
#define STALL          "-stall"
#define NAMES_MAX      4096 /* files that are looked at; a driver leaves far fewer */
#define PATH_MAX_BYTES (LIMIT_PATH_BYTES + sizeof("/" PLACE "/18446744073709551615" STALL))

struct autopsy_names VEC(struct autopsy_name);

static void autopsy_path(const char *folder, const struct autopsy_name *name,
                         char path[PATH_MAX_BYTES])
{
    snprintf(path, PATH_MAX_BYTES, "%s/" PLACE "/%" PRIu64 "%s", folder, name->incarnation,
             name->stall ? STALL : "");
}

/* Lists the files in the order of their times, which are those of a clock that ticks slowly; of
 * equal ones by the worker. */
static int autopsy_file_names(const char *folder, struct autopsy_names *names, struct hvd_err *err)
{
    char path[PATH_MAX_BYTES];
    const struct dirent *item;
    int rc = 0;
    DIR *dir;

    snprintf(path, sizeof(path), "%s/" PLACE, folder);
    dir = opendir(path);
    if (!dir)
        return errno == ENOENT ? 0 : remedy_set(err, path, "cannot open the folder", errno);
    while (!rc && (item = readdir(dir))) {
        const char *dash = strchr(item->d_name, '-');
        const struct span number = { item->d_name, strcspn(item->d_name, "-") };
        struct autopsy_name name = { .stall = dash != NULL };
        struct stat file;
        size_t at;

        /* a file with another name is none of ours */
        if ((dash && strcmp(dash, STALL) != 0) ||
            text_parse_u64(number, 1, UINT64_MAX, "", &name.incarnation, NULL) ||
            fstatat(dirfd(dir), item->d_name, &file, AT_SYMLINK_NOFOLLOW) || !S_ISREG(file.st_mode))
            continue;
        name.wall_us = (int64_t)file.st_mtim.tv_sec * TIME_S + file.st_mtim.tv_nsec / 1000;
        rc = VEC_RESERVE(names, 1, NAMES_MAX);
        if (rc)
            break;
        for (at = names->count++; at > 0; at--) {
            const struct autopsy_name *before = &names->items[at - 1];

            if (before->wall_us < name.wall_us ||
                (before->wall_us == name.wall_us && before->incarnation < name.incarnation))
                break;
            names->items[at] = *before;
        }
        names->items[at] = name;
    }
    closedir(dir);
    return rc ? err_set(err, rc, "%s: %s", path, err_text(rc)) : 0;
}

/* Removes the oldest files but `kept`. */
static int autopsy_file_prune(const char *folder, size_t kept, struct hvd_err *err)
{
    struct autopsy_names names = { .count = 0 };
    char path[PATH_MAX_BYTES];
    int rc = autopsy_file_names(folder, &names, err);

    for (size_t i = 0; !rc && i + kept < names.count; i++) {
        autopsy_path(folder, &names.items[i], path);
        if (unlink(path) && errno != ENOENT)
            rc = remedy_set(err, path, "cannot be removed", errno);
    }
    VEC_RELEASE(&names);
    return rc;
}

int autopsy_file_clear(const char *folder, struct hvd_err *err)
{
    return autopsy_file_prune(folder, 0, err);
}

/* The file is not forced to the disk: it is a help, and nothing depends on it. */
int autopsy_file_write(const char *folder, const struct autopsy_name *name, const struct buf *frame,
                       struct hvd_err *err)
{
    char path[PATH_MAX_BYTES], fresh[PATH_MAX_BYTES];
    int error_number;

    snprintf(path, sizeof(path), "%s/" PLACE, folder);
    if (mkdir(path, 0700) && errno != EEXIST)
        return remedy_set(err, path, "the folder cannot be made", errno);
    snprintf(fresh, sizeof(fresh), "%s/" PLACE "/" FRESH, folder);
    autopsy_path(folder, name, path);
    error_number = file_replace(path, fresh, frame, 0600);
    return error_number ? remedy_set(err, path, "it cannot be written", error_number)
                        : autopsy_file_prune(folder, AUTOPSIES_KEPT, err);
}

int autopsy_file_parse(const void *bytes, size_t length, struct msg *ret_msg)
{
    const uint8_t *at = bytes;
    struct frame_reader reader;
    struct frame frame;
    struct msg msg;
    int rc;

    frame_reader_init(&reader, AUTOPSY_FILE_BYTES);
    rc = frame_feed(&reader, &at, &length, &frame, NULL);
    if (rc == 1 && !length && frame.type == MSG_AUTOPSY)
        rc = msg_decode(&frame, &msg, NULL);
    else if (rc != HVD_E_NOMEM)
        rc = HVD_E_CORRUPT;
    frame_reader_release(&reader);
    if (!rc)
        *ret_msg = msg;
    return !rc || rc == HVD_E_NOMEM ? rc : HVD_E_CORRUPT;
}

/* Reads one file into the list. A file that was removed meanwhile is left out. */
static int autopsy_file_take(const char *folder, const struct autopsy_name *name,
                             struct autopsy_list *list, struct hvd_err *err)
{
    struct autopsy autopsy = { .wall_us = name->wall_us };
    char path[PATH_MAX_BYTES];
    struct buf text;
    int rc = VEC_RESERVE(&list->found, 1, NAMES_MAX);

    autopsy_path(folder, name, path);
    buf_init(&text, AUTOPSY_FILE_BYTES);
    if (rc)
        err_set(err, rc, "%s: %s", path, err_text(rc));
    else
        rc = file_read(path, &text, err);
    if (!rc) {
        rc = autopsy_file_parse(buf_text(&text), text.length, &autopsy.msg);
        if (!rc)
            list->found.items[list->found.count++] = autopsy;
        else if (rc == HVD_E_CORRUPT)
            list->damaged++;
        else
            err_set(err, rc, "%s: %s", path, err_text(rc));
    }
    buf_release(&text);
    return rc == HVD_E_NOTFOUND || rc == HVD_E_CORRUPT ? 0 : rc;
}

int autopsy_file_list(const char *folder, struct autopsy_list *ret_list, struct hvd_err *err)
{
    struct autopsy_names names = { .count = 0 };
    struct autopsy_list list = { .damaged = 0 };
    int rc = autopsy_file_names(folder, &names, err);

    for (size_t i = 0; !rc && i < names.count; i++)
        rc = autopsy_file_take(folder, &names.items[i], &list, err);
    VEC_RELEASE(&names);
    if (rc)
        autopsy_list_release(&list);
    else
        *ret_list = list;
    return rc;
}

void autopsy_list_release(struct autopsy_list *list)
{
    for (size_t i = 0; i < list->found.count; i++)
        msg_release(&list->found.items[i].msg);
    VEC_RELEASE(&list->found);
}
