/* temp_db.c: makes and removes the folder of a database, for programs that open it again and again.
 */
#include "tests/lib/temp_db.h"

#include "base/base.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static char dir[64];
char temp_db_path[128];

void temp_db_begin(void)
{
    snprintf(dir, sizeof(dir), "%s/hvd-db-XXXXXX", access("/dev/shm", W_OK) ? "/tmp" : "/dev/shm");
    if (!mkdtemp(dir))
        abort();
    snprintf(temp_db_path, sizeof(temp_db_path), "%s/x.db", dir);
}

void temp_db_remove(void)
{
    static const char *const names[] = {
        "",         "-wal",         "-shm",         "-journal",
        ".hvd-new", ".hvd-new-wal", ".hvd-new-shm", ".hvd-new-journal"
    };
    char name[160];

    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        snprintf(name, sizeof(name), "%s%s", temp_db_path, names[i]);
        if (unlink(name) && errno != ENOENT)
            abort();
    }
}

void temp_db_end(void)
{
    temp_db_remove();
    (void)rmdir(dir);
}
