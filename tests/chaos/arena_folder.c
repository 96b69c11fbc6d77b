/*
 * arena_folder.c: makes and removes the folder of the job under attack, with the discovery script
 * and the files that make the script fail, hang or print rubbish.
 */
#include "tests/chaos/arena_folder.h"

#include "base/buf.h"
#include "base/panic.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define HOSTS_BYTES (ARENA_HOSTS * (ARENA_NAME + 16))
/* the folder's path has at most this many bytes, because job/control is a socket (107 bytes) */
#define FOLDER_MAX 90
#define TREE_FILES 16 /* descriptors that are open while the folder is removed */

/* The script runs in the arena's folder, which is also the driver's folder. When it hangs, a child
 * of the script hangs, as with scripts that ask a cloud: that child has to be found and killed too.
 */
static const char script[] = "#!/bin/sh\n"
                             "printf . >>\"$CHAOS_ARENA/looks\"\n"
                             "read -r mood <\"$CHAOS_ARENA/mood\"\n"
                             "case $mood in\n"
                             "  fail) echo 'the cloud does not answer' >&2; exit 3 ;;\n"
                             "  hang) sleep 3600; exit 4 ;;\n"
                             "  rubbish) echo 'Traceback: \"hosts\" ::: -1'; exit 0 ;;\n"
                             "  empty) exit 0 ;;\n"
                             "esac\n"
                             "exec cat \"$CHAOS_ARENA/hosts\"\n";

const char *arena_path(const struct arena *arena, const char *name, char path[ARENA_PATH])
{
    int length = snprintf(path, ARENA_PATH, "%s/%s", arena->folder, name);

    ASSERT(length < ARENA_PATH); /* true because FOLDER_MAX is kept */
    return path;
}

/* Replaces the file in one step: a reader sees the whole old text or the whole new text. */
static int replace(const struct arena *arena, const char *name, const char *text, mode_t mode,
                   struct hvd_err *err)
{
    char path[ARENA_PATH], fresh[ARENA_PATH + 8];
    size_t length = strlen(text);
    bool written;
    int fd;

    arena_path(arena, name, path);
    snprintf(fresh, sizeof(fresh), "%s.new", path);
    fd = open(fresh, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode);
    written = fd >= 0 && write(fd, text, length) == (ssize_t)length;
    if (fd >= 0 && close(fd))
        written = false;
    if (!written || rename(fresh, path))
        return err_set(err, HVD_E_IO, "%s: %s", path, strerror(errno));
    return 0;
}

int arena_list(struct arena *arena, struct hvd_err *err)
{
    struct buf text;
    int rc = 0;

    buf_init(&text, HOSTS_BYTES);
    for (uint32_t i = 0; !rc && i < arena->host_count; i++)
        if (arena->hosts[i].listed)
            rc = buf_printf(&text, "%s:%" PRIu32 "\n", arena->hosts[i].name, arena->hosts[i].slots);
    /* a script that prints nothing counts as failed, so the script prints a comment */
    if (!rc && text.length == 0 && !arena->plan->command)
        rc = buf_printf(&text, "# no host\n");
    if (rc)
        err_set(err, rc, "the list of hosts: %s", err_text(rc));
    else
        rc = replace(arena, "hosts", buf_text(&text), 0600, err);
    buf_release(&text);
    return rc;
}

int arena_mood(struct arena *arena, const char *mood, struct hvd_err *err)
{
    char line[32];

    snprintf(line, sizeof(line), "%s\n", mood ? mood : "good");
    return replace(arena, "mood", line, 0600, err);
}

int arena_folder_make(struct arena *arena, struct hvd_err *err)
{
    const char *in = getenv("TMPDIR");
    char path[ARENA_PATH];
    int rc;

    snprintf(path, sizeof(path), "%s/chaos-XXXXXX", in && *in ? in : "/tmp");
    if (strlen(path) > FOLDER_MAX)
        return err_set(err, HVD_E_LIMIT,
                       "%s: too long for sockets in it; set TMPDIR to a shorter one", path);
    if (!mkdtemp(path))
        return err_set(err, HVD_E_IO, "%s: %s", path, strerror(errno));
    snprintf(arena->folder, sizeof(arena->folder), "%s", path);
    if (mkdir(arena_path(arena, "samples", path), 0700))
        return err_set(err, HVD_E_IO, "%s: %s", path, strerror(errno));
    rc = replace(arena, "discover", script, 0700, err);
    if (!rc)
        rc = replace(arena, "wrong", "", 0600, err);
    if (!rc)
        rc = arena_mood(arena, NULL, err);
    return rc;
}

static int remove_one(const char *path, const struct stat *stat, int kind, struct FTW *ftw)
{
    (void)stat;
    (void)kind;
    (void)ftw;
    return remove(path);
}

void arena_folder_remove(const struct arena *arena)
{
    nftw(arena->folder, remove_one, TREE_FILES, FTW_DEPTH | FTW_PHYS);
}
