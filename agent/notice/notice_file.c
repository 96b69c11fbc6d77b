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

#define FILE_PAUSE_US TIME_S

/* One look: a file that exists is a notice; its first line may say the time that is left. */
static int file_look(struct notice_watch *watch, struct notice_said *ret_said, struct hvd_err *err)
{
    struct notice_line line = { .given = false };
    char path[LIMIT_PATH_BYTES], what[NOTICE_TEXT_MAX];
    struct stat look;
    struct buf text;
    int rc;

    snprintf(path, sizeof(path), "%.*s", (int)watch->target.length, watch->target.at);
    if (stat(path, &look))
        return 0;               /* there is no file, so there is no notice */
    if (!S_ISREG(look.st_mode)) /* the read of a pipe could wait without end */
        return err_set(err, HVD_E_INVAL, "%s: is no regular file; write the notice to a plain file",
                       path);
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
