/*
 * notice_file.c: a file that the user's own tools make when this machine is about to go away.
 * Called through the table of notice.c. Invariant: a file that cannot be read is no notice; an
 * empty file is a notice.
 */
#include "agent/notice/notice_internal.h"
#include "base/time.h"
#include "os/clock.h"
#include "os/file.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILE_PAUSE_US TIME_S

/* Finds what keeps the file from being a notice: the agent refuses to start with that, and logs it
 * when it comes later. */
int notice_file_check(const char *path, struct hvd_err *err)
{
    char folder[LIMIT_PATH_BYTES];
    const char *name = strrchr(path, '/'); /* the path is absolute */
    struct stat look;

    snprintf(folder, sizeof(folder), "%.*s", name == path ? 1 : (int)(name - path), path);
    if (stat(folder, &look) || !S_ISDIR(look.st_mode))
        return err_set(err, HVD_E_INVAL,
                       "file:%s: this host has no folder %s; make it, or name another file", path,
                       folder);
    if (access(folder, X_OK))
        return err_set(err, HVD_E_INVAL,
                       "file:%s: the user of this agent may not search the folder %s; permit it",
                       path, folder);
    if (stat(path, &look))
        return 0;               /* there is no file, so there is no notice */
    if (!S_ISREG(look.st_mode)) /* the read of a pipe could wait without end */
        return err_set(err, HVD_E_INVAL, "file:%s: no plain file; write the notice to a plain file",
                       path);
    if (access(path, R_OK))
        return err_set(err, HVD_E_INVAL,
                       "file:%s: the user of this agent may not read it; permit it", path);
    return 0;
}

/* One look: a file that exists is a notice; its first line may say the time that is left. */
static int file_look(struct notice_watch *watch, struct notice_said *ret_said, struct hvd_err *err)
{
    struct notice_line line = { .given = false };
    char path[LIMIT_PATH_BYTES], what[NOTICE_TEXT_MAX];
    struct stat look;
    struct buf text;
    int rc;

    snprintf(path, sizeof(path), "%.*s", (int)watch->target.length, watch->target.at);
    rc = notice_file_check(path, err);
    if (rc || stat(path, &look))
        return rc;
    buf_init(&text, LIMIT_NOTICE_BYTES);
    rc = file_read(path, &text, err);
    if (!rc)
        rc = notice_read_line((struct span){ buf_text(&text), text.length }, true,
                              watch->notice->default_us, clock_wall_us(), &line, err);
    if (!rc) {
        snprintf(what, sizeof(what), "%.200s%s%s", path, *line.words ? ": " : "", line.words);
        notice_say_left(watch, line.left_us, what, ret_said);
    }
    buf_release(&text);
    return rc;
}

const struct notice_giver notice_file = {
    .name = "file",
    .pause_us = FILE_PAUSE_US,
    .look = file_look,
};
